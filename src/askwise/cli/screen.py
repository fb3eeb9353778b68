"""How things look in the terminal."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from askwise.cli.replies import labels
from askwise.parameters import Choice, Fixed, Parameter, Value
from askwise.space import Space

__all__ = [
    "console",
    "counted",
    "facts",
    "progress_line",
    "question_table",
    "readable",
    "setting_table",
    "space_table",
    "table",
]

_DIGITS = 4
_WIDTH = 1000  # of a file or a pipe: lines are not to be broken there
_BAR = 30


def console(*, stderr: bool = False) -> Console:
    """Where to print; it colours only in a terminal, and not where NO_COLOR is set."""
    made = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    if not made.is_terminal:
        made.width = _WIDTH
    return made


def readable(value: object) -> str:
    """A value as people write it: four digits of a real number, all of a whole one."""
    if not isinstance(value, float) or not math.isfinite(value):
        return str(value)
    size = abs(value)
    if size != 0 and not 1e-4 <= size < 1e7:
        return f"{value:.{_DIGITS - 1}e}"
    before = 1 if size < 1e-4 else math.floor(math.log10(size)) + 1
    text = f"{value:.{max(0, _DIGITS - before)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def counted(number: int, noun: str) -> str:
    """So many of these: 1 answer, 2 answers."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def table(*columns: str, right: Sequence[int] = ()) -> Table:
    """An empty table; columns of these numbers are aligned to the right."""
    made = Table(box=box.SIMPLE, show_header=any(columns), show_edge=False)
    for number, column in enumerate(columns):
        name = number == 0  # names are not broken, however narrow the terminal is
        side: Literal["left", "right"] = "right" if number in right else "left"
        made.add_column(Text(column), justify=side, overflow="fold", no_wrap=name)
    return made


def facts(pairs: Mapping[str, object]) -> Table:
    """Names and what they are, one below the other."""
    made = table("", "")
    for name, value in pairs.items():
        made.add_row(Text(name, style="bold"), Text(str(value)))
    return made


def question_table(options: Sequence[Mapping[str, Any]], space: Space) -> Table:
    """Options side by side, a row for each parameter."""
    names = labels(len(options)) if len(options) > 1 else ["value"]
    made = table("", *names, right=range(1, 1 + len(options)))
    for name, parameter in space.parameters.items():
        values = [_with_unit(option[name], parameter) for option in options]
        made.add_row(Text(name, style="bold"), *(Text(value) for value in values))
    return made


def setting_table(params: Mapping[str, Any], space: Space) -> Table:
    """A setting, a row for each parameter."""
    made = table("", "", right=[1])
    for name, parameter in space.parameters.items():
        made.add_row(Text(name, style="bold"), Text(_with_unit(params[name], parameter)))
    return made


def space_table(space: Space) -> Table:
    """The parameters and what they may be."""
    made = table("parameter", "kind", "values", "unit")
    for name, parameter in space.parameters.items():
        kind = type(parameter).__name__.lower()
        if getattr(parameter, "log", False):
            kind += ", log"
        if parameter.context:
            kind += ", context"
        made.add_row(Text(name, style="bold"), kind, _values(parameter), getattr(parameter, "unit", ""))
    return made


def progress_line(answers: int, target: int | None) -> Text:
    """How far it is to the wanted number of answers."""
    if target is None:
        return Text(f"{counted(answers, 'answer')} so far", style="dim")
    full = round(_BAR * answers / target)
    bar = ("█" * full, "green"), ("░" * (_BAR - full), "dim")
    return Text.assemble(*bar, f" {answers} of {target} answers")


def _values(parameter: Parameter) -> str:
    if isinstance(parameter, Fixed):
        return str(parameter.value)
    if isinstance(parameter, Choice):
        return ", ".join(str(value) for value in parameter.values)
    return f"{readable(parameter.low)} to {readable(parameter.high)}"


def _with_unit(value: Value, parameter: Parameter) -> str:
    unit = getattr(parameter, "unit", "")
    return f"{readable(value)} {unit}".rstrip()
