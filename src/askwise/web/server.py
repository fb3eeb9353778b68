"""Run the application: bind the port, say where it is, serve until Ctrl-C."""

import errno
import os
import socket
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import uvicorn
from uvicorn.supervisors import Multiprocess

from askwise.errors import Failed, Refused
from askwise.web import logs
from askwise.web.app import create
from askwise.web.serverfile import ServerFile
from askwise.web.settings import ENVIRONMENT, Settings

_EVERYWHERE = ("0.0.0.0", "::")


@dataclass(frozen=True)
class Place:
    """Where and how the server listens."""

    port: int = 0
    """0 for a free one."""
    workers: int = 1
    proxy_headers: bool = False
    """Whether to believe a proxy, here or in $FORWARDED_ALLOW_IPS, who asks and whether by https."""


def serve(settings: Settings, place: Place, announce: Callable[[str], None]) -> None:
    """Serve until Ctrl-C; ``announce`` gets the link of the experimenter's page once the port is bound."""
    logs.configure(settings.log)
    app = create(settings)
    options: dict[str, Any] = {
        "log_config": None,
        "access_log": False,  # it would show links of participants
        "proxy_headers": place.proxy_headers,
        "server_header": False,
        "timeout_graceful_shutdown": 5,
        "timeout_keep_alive": 75,  # people think longer than for 5 s, the default
    }
    with _bound(settings.host, place.port) as listening, suppress(KeyboardInterrupt):
        announce(_link(settings, listening))
        if place.workers == 1:
            uvicorn.Server(uvicorn.Config(app, **options)).run(sockets=[listening])
            return
        app.state.studies.close()
        with tempfile.TemporaryDirectory(prefix="askwise-") as notes:
            os.environ[ENVIRONMENT] = replace(settings, notes=notes).to_json()
            worker = "askwise.web.app:from_environment"
            config = uvicorn.Config(worker, factory=True, workers=place.workers, **options)
            Multiprocess(config, sockets=[listening]).run()


def _link(settings: Settings, listening: socket.socket) -> str:
    token = ServerFile(settings.keeps).kept.token
    if settings.public_url is not None:
        return f"{settings.public_url.rstrip('/')}/?token={token}"
    host, port = listening.getsockname()[:2]
    name = _own_address() if host in _EVERYWHERE else host
    return f"http://{f'[{name}]' if ':' in name else name}:{port}{settings.root_path}/?token={token}"


def _own_address() -> str:
    """The address of this machine in its network; nothing is sent to find it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        try:
            line.connect(("192.0.2.1", 9))  # an address that nobody has
            return str(line.getsockname()[0])
        except OSError:
            return "127.0.0.1"


def _bound(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.socket(family)
    except OSError as error:
        raise Refused("host", "be an address of this machine", repr(host), "Leave it out.") from error
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(2048)
        listening.set_inheritable(True)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            advice = "Choose another by --port, or leave it out for any that is free."
            raise Failed("port", "be free", f"{port}, which another program uses", advice) from error
        got, advice = f"{host}:{port} ({str(error.strerror).lower()})", "Choose others by --host and --port."
        raise Failed("address", "be one that can be listened on", got, advice) from error
    return listening
