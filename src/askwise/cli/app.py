"""The program `askwise`, to which each command adds itself, and how it tells errors.

Nothing here or in the files of the commands imports torch: what needs it is imported when a command runs,
so that help comes at once.
"""

import json
import re
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

__all__ = ["main", "message_of", "print_json"]

_HOUSE = re.compile(r"[^;]+ must [^;]+; got .+\. .+", re.DOTALL)
_OURS = (ValueError, TypeError, OSError, ImportError)


class _Commands(TyperGroup):
    """Commands whose errors are told in one line, or as JSON to those who asked for it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta["askwise.json"] = "--json" in args
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # whoever read the output had enough
            raise
        except Exception as error:
            as_json = ctx.meta["askwise.json"]
            usage = getattr(error, "format_message", None)
            message = message_of(error) if usage is None else usage()
            if message is None or (usage is not None and not as_json):
                raise
            if as_json:
                print_json({"error": message})
            else:
                typer.echo(f"askwise: {message}", err=True)
            raise typer.Exit(getattr(error, "exit_code", 1)) from None


def message_of(error: Exception) -> str | None:
    """What to tell of an error that is not a bug; None if it is one."""
    if not isinstance(error, _OURS):
        return None
    text = str(error)
    if _HOUSE.match(text):
        return " ".join(text.split())
    if isinstance(error, OSError) and error.filename is not None:
        what = "reached" if error.strerror is None else "used"
        return (
            f"{error.filename} must be there to be {what}; got {(error.strerror or text).lower()}. "
            "Check its name and permissions."
        )
    return None


main = typer.Typer(
    cls=_Commands,
    rich_markup_mode=None,  # with it `askwise --help` takes four times as long
    pretty_exceptions_enable=False,
    add_completion=False,
    no_args_is_help=True,
    help="Find the best setting of something nobody can measure, only answer questions about.",
    epilog="Begin with `askwise init`, look with `askwise check`, then `askwise run`.",
)


def _told_version(wanted: bool) -> bool:
    if wanted:
        typer.echo(f"askwise {version('askwise')}")
        raise typer.Exit
    return wanted


@main.callback()
def _program(
    show_version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_told_version, is_eager=True)
    ] = False,
) -> None:
    """Options of the program itself."""


def print_json(document: object) -> None:
    """Print one JSON document."""
    typer.echo(json.dumps(document, indent=2, ensure_ascii=False))
