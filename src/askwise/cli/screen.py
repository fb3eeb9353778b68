"""Tables and progress bars for the terminal."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from askwise.cli.app import counted
from askwise.errors import printable
from askwise.space import Space
from askwise.study import labels

_WIDTH = 1000  # in files and pipes, where lines must not be broken
_BAR = 30


class _Screen(Console):
    """A console that escapes what could command the terminal."""

    def print(self, *objects: Any, **options: Any) -> None:
        super().print(*(printable(one) if isinstance(one, str) else one for one in objects), **options)


def console(*, stderr: bool = False) -> Console:
    """A console that uses colours only in a terminal, and not if NO_COLOR is set."""
    made = _Screen(stderr=stderr, highlight=False, markup=False, emoji=False)
    if not made.is_terminal:
        made.width = _WIDTH
    return made


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], right: Collection[int] = ()) -> Table:
    """A table whose first column has names; the columns in ``right`` are aligned to the right."""
    made = Table(box=box.SIMPLE, show_header=any(columns), show_edge=False)
    for number, column in enumerate(columns):
        side: Literal["left", "right"] = "right" if number in right else "left"
        style = "bold" if number == 0 else None
        made.add_column(
            Text(printable(column)), justify=side, overflow="fold", no_wrap=number == 0, style=style
        )
    for row in rows:
        made.add_row(*(Text(printable(str(cell))) for cell in row))
    return made


def question_table(options: Sequence[Mapping[str, Any]], space: Space, *, headed: bool = True) -> Table:
    """Options side by side, one parameter per row."""
    names = labels(len(options)) if len(options) > 1 else ["value" if headed else ""]
    parameters = space.parameters.items()
    rows = [(name, *(parameter.text(option[name]) for option in options)) for name, parameter in parameters]
    return table(["", *names], rows, right=range(1, 1 + len(options)))


def progress_line(answers: int, target: int | None) -> Text:
    """Progress towards the wanted number of answers."""
    if target is None:
        return Text(f"{counted(answers, 'answer')} so far", style="dim")
    full = round(_BAR * answers / target)
    bar = ("█" * full, "green"), ("░" * (_BAR - full), "dim")
    return Text.assemble(*bar, f" {answers} of {target} answers")


@contextmanager
def progress(what: str, total: int, *, shown: bool) -> Iterator[Callable[[], None]]:
    """A progress bar; yields a function that advances it by one."""
    out = console(stderr=True)
    with Progress(console=out, transient=True, disable=not (shown and out.is_terminal)) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)


def name_of(participant: str | None) -> str:
    """A participant in a table or a sentence."""
    return "(no name)" if participant is None else participant
