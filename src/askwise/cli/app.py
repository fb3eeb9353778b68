"""The program `askwise`: what its commands share, and how errors are reported."""

import errno
import json
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from askwise import plugins
from askwise.errors import Refused, printable, shortened

_FULL = [getattr(errno, name) for name in ("ENOSPC", "EDQUOT", "EFBIG", "EIO") if hasattr(errno, name)]
_LONGEST = 500  # characters of a message about a wrong call
DEFAULT_FILE = Path("askwise.toml")

StudyFile = Annotated[Path, typer.Option("--study", "-s", metavar="FILE", help="The study file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Participant = Annotated[str | None, typer.Option("--participant", "-p", metavar="NAME", help="Who answers.")]
Whose = Annotated[
    str | None, typer.Option("--participant", "-p", metavar="NAME", help="Of whom, where people differ.")
]
Context = Annotated[
    list[str] | None,
    typer.Option("--context", "-c", metavar="NAME=VALUE", help="Value of a context parameter; repeatable."),
]


New = Annotated[
    bool, typer.Option("--new", help="Begin a study beside others that are kept in the same place.")
]


class _Commands(TyperGroup):
    """Commands that report errors in one line, or as JSON with ``--json``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta["askwise.json"] = "--json" in args
        rest, ctx.meta["askwise.imports"] = _without_imports(args)
        try:
            return super().parse_args(ctx, rest)
        except Exception as error:
            _tame(error)
            raise

    def invoke(self, ctx: Any) -> Any:
        try:
            for module in ctx.meta["askwise.imports"]:
                plugins.use(module)
            return super().invoke(ctx)
        except Exception as error:
            as_json = ctx.meta["askwise.json"]
            _tame(error)
            usage = getattr(error, "format_message", None)
            message = message_of(error) if usage is None else usage()
            if message is None or (usage is not None and not as_json):
                raise
            if as_json:
                print_json({"error": message})
            else:
                typer.echo(printable(f"askwise: {message}"), err=True)
            raise typer.Exit(getattr(error, "exit_code", 1)) from None


def _tame(error: Any) -> None:
    """Escape and shorten what a wrong call is quoted with."""
    if hasattr(error, "format_message"):
        error.message = printable(shortened(error.message, _LONGEST))


def _without_imports(args: list[str]) -> tuple[list[str], list[str]]:
    """The arguments without ``--import MODULE``, which may occur anywhere, and these modules."""
    rest, modules, words = [], [], iter(args)
    for word in words:
        name, equals, value = word.partition("=")
        if name != "--import":
            rest.append(word)
        elif module := value if equals else next(words, ""):
            modules.append(module)
        else:
            raise typer.BadParameter("--import must be followed by a module.")
    return rest, modules


def message_of(error: Exception) -> str | None:
    """The message of an expected error; None if the error is a bug."""
    if isinstance(error, Refused):
        return " ".join(str(error).split())
    if isinstance(error, OSError) and error.filename is not None:
        reason, advice = str(error.strerror).lower(), "Check its name and permissions."
        return str(Refused(error.filename, "be accessible", reason, advice))
    if isinstance(error, OSError) and error.errno in _FULL:
        reason = str(error.strerror).lower()
        return str(Refused("disk", "have room for what is written", reason, "Free some, and try again."))
    return None


main = typer.Typer(
    cls=_Commands,
    rich_markup_mode=None,  # with it `askwise --help` takes four times as long
    pretty_exceptions_enable=False,
    add_completion=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Find the best setting of something that nobody can measure, by asking questions about it.",
    epilog="Start with `askwise init`, verify with `askwise check`, then `askwise run`.",
)


def _print_version(wanted: bool) -> bool:
    if wanted:
        typer.echo(f"askwise {version('askwise')}")
        raise typer.Exit
    return wanted


_IMPORT = "A module that defines rules, functions, kernels, storages or parameters; may be repeated."


@main.callback()
def _program(
    show_version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_print_version, is_eager=True)
    ] = False,
    modules: Annotated[list[str] | None, typer.Option("--import", metavar="MODULE", help=_IMPORT)] = None,
) -> None:
    """Options of the program itself; ``--import`` may also follow the command."""


def print_json(document: object) -> None:
    """Print one JSON document; what could command a terminal is escaped as JSON does it."""
    text = json.dumps(document, indent=2, ensure_ascii=False)
    typer.echo(
        "".join(char if char == "\n" or printable(char) == char else json.dumps(char)[1:-1] for char in text)
    )


def show(as_json: bool, document: object, sentence: str) -> None:
    """Print a JSON document for programs, or a sentence for people."""
    if as_json:
        print_json(document)
    else:
        typer.echo(printable(sentence))


def counted(number: int, noun: str) -> str:
    """A number with its noun: 1 answer, 2 answers."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
