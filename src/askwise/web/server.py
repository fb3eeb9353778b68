"""Run the application: bind the port, say where it is, serve until Ctrl-C."""

import errno
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass

import uvicorn
from uvicorn.supervisors import Multiprocess

from askwise.errors import Failed, Refused
from askwise.web.app import create
from askwise.web.serverfile import ServerFile
from askwise.web.settings import ENVIRONMENT, Settings


@dataclass(frozen=True)
class Place:
    """Where the server listens."""

    host: str = "127.0.0.1"
    port: int = 0
    """0 for a free one."""
    workers: int = 1
    proxy_headers: bool = False


def serve(settings: Settings, place: Place, announce: Callable[[str], None]) -> None:
    """Serve until Ctrl-C; ``announce`` gets the link of the experimenter's page once the port is bound."""
    app = create(settings)
    options = {
        "log_config": None,
        "access_log": False,  # it would show links of participants
        "proxy_headers": place.proxy_headers,
        "forwarded_allow_ips": None,
        "server_header": False,
        "timeout_graceful_shutdown": 5,
    }
    with _bound(place.host, place.port) as listening:
        announce(_link(settings, listening))
        if place.workers == 1:
            uvicorn.Server(uvicorn.Config(app, **options)).run(sockets=[listening])  # type: ignore[arg-type]
            return
        app.state.studies.close()
        os.environ[ENVIRONMENT] = settings.to_json()
        target = "askwise.web.app:from_environment"
        config = uvicorn.Config(target, factory=True, workers=place.workers, **options)  # type: ignore[arg-type]
        Multiprocess(config, sockets=[listening]).run()


def _link(settings: Settings, listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    name = {"0.0.0.0": socket.gethostname(), "::": socket.gethostname()}.get(host, host)
    shown = f"[{name}]" if ":" in name else name
    return f"http://{shown}:{port}{settings.root_path}/?token={ServerFile(settings.keeps).kept.token}"


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
        advice = "Choose others by --host and --port."
        got = f"{host}:{port} ({str(error.strerror).lower()})"
        raise Failed("address", "be one that can be listened on", got, advice) from error
    return listening
