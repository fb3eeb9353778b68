"""Tables, progress bars and sentences for the terminal."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import torch
from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from askwise.cli.session import Session
from askwise.errors import printable
from askwise.space import Space
from askwise.study import UNTRUSTED, Best, Checkpoint, Simulation, YesNo, conclusion, labels
from askwise.study.program import differences
from askwise.study.questions import Replayed

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


def counted(number: int, noun: str) -> str:
    """A number with its noun: 1 answer, 2 answers."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


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


def print_best(out: Console, session: Session, found: Best, has_reference: bool = False) -> None:
    """Show a recommended setting, and how likely it is to be preferred or to work."""
    study, count = session.study, session.study.count()
    if not count:
        out.print("No answers yet, so this is a guess; `askwise run` asks.")
    elif not study.plan.kind.compares and not any(
        entry.status == "answered" and entry.answer == YesNo(True) for entry in study.history()
    ):
        out.print("Nothing has worked yet, so this is a guess.")
    out.print(f"Recommended setting, after {counted(count, 'answer')}:\n")
    out.print(question_table([found.params], session.config.space, headed=False))
    out.print()
    out.print(study.plan.kind.sentence(found.probability, has_reference))
    if flagged := [check.detail for check in study.checks() if check.flagged]:
        out.print(f"\n{' '.join([*flagged, UNTRUSTED])}", style="bold")


def print_simulation(wanted: Simulation, results: Sequence[Checkpoint]) -> None:
    """Show the results in a table and a sentence."""
    out, compares = console(), wanted.plan.kind.compares
    out.print(f"{counted(wanted.users, 'simulated user')}; medians, with quartiles in brackets:\n")
    last = "true best preferred" if compares else "works"
    rows = [(row.answers, _quartiles(row.share), _quartiles(row.chance)) for row in results]
    out.print(table(["answers", "way to the best", last], rows, right=[0, 1, 2]))
    out.print("\nWay to the best: 0% is an average setting, 100% the user's best.")
    if compares:
        out.print("True best preferred: 50% is no better than the recommended setting.")
    out.print(f"\n{conclusion(results[-1])}")


def _quartiles(values: list[float]) -> str:
    low, middle, high = torch.tensor(values).quantile(torch.tensor([0.25, 0.5, 0.75])).tolist()
    return f"{middle:.0%} ({low:.0%} to {high:.0%})"


def other_programs(replayed: Iterable[Replayed]) -> list[str]:
    """By which other versions these questions were asked, in sentences."""
    groups: dict[str, list[int]] = {}
    for one in replayed:
        groups.setdefault(differences(one.program), []).append(one.id)
    groups.pop("", None)
    return [f"Questions {min(ids)} to {max(ids)} were asked with {what}." for what, ids in groups.items()]
