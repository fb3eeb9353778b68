"""The command that serves studies: serve."""

from pathlib import Path
from typing import Annotated

import typer

from askwise.cli.app import AsJson, main, print_json
from askwise.errors import extra

_STORAGE = "Where studies are kept that are created here, or whose file does not say where."


@main.command()
def serve(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="STUDY.toml ...", help="Study files.", show_default=False)
    ] = None,
    storage: Annotated[
        str, typer.Option(metavar="PLACE", envvar="ASKWISE_STORAGE", help=_STORAGE)
    ] = "askwise.db",
    host: Annotated[str, typer.Option(help="Where to listen; 0.0.0.0 for the whole network.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for any that is free.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Serve studies: pages for participants and experimenters, and an HTTP API.

    Prints the link of the experimenter's page.  Ctrl-C ends it; every answer is
    already recorded.
    """
    with extra("web", "the server"):
        from askwise.web.server import Place, serve
        from askwise.web.settings import Settings

    settings = Settings(storage, tuple(map(str, files or ())), host=host)

    def announce(link: str) -> None:
        if as_json:
            print_json({"link": link})
        else:
            typer.echo(f"{link}\nOpen this link for the experimenter's page. Ctrl-C ends the server.")

    serve(settings, Place(host, port), announce)
