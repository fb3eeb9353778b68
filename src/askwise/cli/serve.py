"""The command that serves studies: serve."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from askwise.cli.app import AsJson, main, show
from askwise.errors import Refused, extra

if TYPE_CHECKING:
    from askwise.web.server import Place
    from askwise.web.settings import Settings

_FILES = "Study files; without one, the studies in the database are served."
_STORAGE = "Where studies are kept that are created here, or whose file does not say where."
_KEYS = "Where keys and links are kept; by default beside the database."
_HOST = "Where to listen; 0.0.0.0 for the whole network."
_URL = "How browsers reach it through a proxy, such as https://lab.example.org/askwise."
_ROOT = "Path under which a proxy shows it; by default that of --public-url."
_PROXY = "Believe a proxy on this machine, or in $FORWARDED_ALLOW_IPS, about who asks."
_ORIGIN = "Site whose pages may use the API with a participant's link; repeatable."
_PRESENT = "Command that makes what is shown of an option, such as './render.sh {gain} {out.wav}'."
_DEMO = "Find the flower you like best: a study without files, forgotten at the end."
_LOG = "Write a line of JSON for each request to standard error."


@main.command()
def serve(  # noqa: PLR0913 - one for each option
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="STUDY.toml ...", help=_FILES, show_default=False)
    ] = None,
    storage: Annotated[
        str, typer.Option(metavar="PLACE", envvar="ASKWISE_STORAGE", help=_STORAGE)
    ] = "askwise.db",
    server_file: Annotated[
        Path | None, typer.Option(metavar="FILE", envvar="ASKWISE_SERVER_FILE", help=_KEYS)
    ] = None,
    host: Annotated[str, typer.Option(help=_HOST)] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for any that is free.")] = 0,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Processes; for several use PostgreSQL.")] = 1,
    public_url: Annotated[str | None, typer.Option(metavar="URL", help=_URL)] = None,
    root_path: Annotated[str | None, typer.Option(metavar="PATH", help=_ROOT)] = None,
    proxy_headers: Annotated[bool, typer.Option("--proxy-headers", help=_PROXY)] = False,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Another name of this server; repeatable.")
    ] = None,
    allow_origin: Annotated[list[str] | None, typer.Option(metavar="URL", help=_ORIGIN)] = None,
    new_token: Annotated[bool, typer.Option("--new-token", help="Make the old link void.")] = False,
    present: Annotated[str | None, typer.Option(metavar="COMMAND", help=_PRESENT)] = None,
    demo: Annotated[bool, typer.Option("--demo", help=_DEMO)] = False,
    log: Annotated[bool, typer.Option("--log", help=_LOG)] = False,
    as_json: AsJson = False,
) -> None:
    """Serve studies: pages for participants and experimenters, and an HTTP API.

    Prints the link of the experimenter's page.  Ctrl-C ends it; every answer is
    already recorded.
    """
    from urllib.parse import urlsplit

    from askwise.web.memory import use_less

    use_less()
    with extra("web", "the server"):
        from askwise.web.server import Place, serve
        from askwise.web.serverfile import ServerFile
        from askwise.web.settings import Settings

    public = urlsplit(public_url or "")
    if public_url is not None and not (public.scheme in ("http", "https") and public.hostname):
        raise Refused("--public-url", "begin with https:// or http://", repr(public_url), _EXAMPLE)
    path = public.path if root_path is None else root_path
    settings = Settings(
        storage,
        tuple(map(str, files or ())),
        None if server_file is None else str(server_file),
        host,
        root_path=f"/{path.strip('/')}" if path.strip("/") else "",
        hosts=(*(allow_host or ()), *filter(None, [public.hostname])),
        origins=tuple(one.rstrip("/") for one in allow_origin or ()),
        public_url=public_url,
        present=present,
        log=log,
        ahead=True,
    )
    if demo:
        _serve_demo(settings, Place(port, workers, proxy_headers), as_json)
        return
    if new_token:
        ServerFile(settings.keeps).new_token()

    def announce(link: str) -> None:
        words = f"{link}\nOpen this link for the experimenter's page. Ctrl-C ends the server."
        show(as_json, {"link": link}, words)

    serve(settings, Place(port, workers, proxy_headers), announce)


def _serve_demo(settings: "Settings", place: "Place", as_json: bool) -> None:
    """Serve the flowers, kept in a folder that is removed at the end."""
    import tempfile
    from dataclasses import replace

    from askwise.web.demo import FILE, participants_path
    from askwise.web.server import serve

    if settings.files:
        raise Refused("--demo", "come without study files", settings.files[0], "Leave one of them out.")
    with tempfile.TemporaryDirectory(prefix="askwise-demo-") as folder:
        storage = str(Path(folder) / "demo.db")
        settings = replace(settings, storage=storage, files=(str(FILE),), server_file=None, present=None)
        path = participants_path(settings)

        def announce(link: str) -> None:
            page = f"{link.partition('/?token=')[0].removesuffix(settings.root_path)}{path}"
            words = f"{page}\nOpen this link and choose flowers. The experimenter's page: {link}"
            show(as_json, {"link": link, "participants": page}, f"{words}\nCtrl-C ends the server.")

        serve(settings, place, announce)


_EXAMPLE = "Write https://lab.example.org/askwise, say."
