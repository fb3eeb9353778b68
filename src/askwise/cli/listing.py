"""Tables of questions and of settings, for the terminal."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rich.table import Table

from askwise.cli.screen import name_of, table
from askwise.space import Space, readable
from askwise.study import Entry, Study, labels

if TYPE_CHECKING:
    from askwise.study import Comparison, Prediction
else:  # which need torch, as a list of questions does not
    Comparison = Prediction = Any


def history_table(entries: Sequence[Entry], space: Space) -> Table:
    """A row for each question: what was asked, what was answered, by whom and when."""
    size = len(entries[0].options)
    names = labels(size)
    heads = [*space.parameters]
    if size > 1:
        heads = [f"{name}: {', '.join(space.parameters)}" for name in names]
    more = {
        "who": any(entry.participant for entry in entries),
        "seconds": any(entry.seconds is not None for entry in entries),
    }
    last = [name for name, shown in more.items() if shown]
    rows = []
    for entry in entries:
        each = [[p.text(option[name]) for name, p in space.parameters.items()] for option in entry.options]
        cells = each[0] if size == 1 else [", ".join(values) for values in each]
        known = {"who": name_of(entry.participant), "seconds": _seconds(entry)}
        rows.append([entry.id, *cells, _answer(entry, names), *(known[name] for name in last), _asked(entry)])
    return table(["", *heads, "answer", *last, "asked"], rows, right=[0])


def _answer(entry: Entry, names: Sequence[str]) -> str:
    """The answer, or what became of the question."""
    if entry.status == "answered" and entry.answer is not None:
        return entry.answer.text(names)
    return f"({entry.status}{f': {entry.reason}' if entry.reason else ''})"


def _seconds(entry: Entry) -> str:
    return "" if entry.seconds is None else f"{entry.seconds:.1f}"


def _asked(entry: Entry) -> str:
    return datetime.fromtimestamp(entry.asked).strftime("%Y-%m-%d %H:%M")


def prediction_table(found: Sequence[Prediction], study: Study, level: float | None = None) -> Table:
    """A row for each setting, with intervals of 95%; ``level``: to be reached, by default the study's."""
    rate = study.plan.level if level is None else level
    parameters = study.space.parameters
    chance = "preferred" if study.plan.kind.compares else "works"
    reached = [] if rate is None else [f"{100 * rate:.4g}% or more"]
    rows = [
        (
            *(parameter.text(one.params[name]) for name, parameter in parameters.items() if parameter.width),
            _percent(one.probability, one.probability_interval),
            *([] if one.above_level is None else [f"{one.above_level:.0%}"]),
            _number(one.mean, one.interval),
        )
        for one in found
    ]
    heads = [name for name, parameter in parameters.items() if parameter.width]
    columns = [*heads, chance, *reached, "utility"]
    return table(columns, rows, right=range(len(columns)))


def prediction_notes(study: Study, level: float | None = None) -> str:
    """What the columns of :func:`prediction_table` mean."""
    works = "Works: how often the setting is expected to work"
    preferred = "Preferred: how often the setting is expected to be preferred to the recommended one"
    chance = preferred if study.plan.kind.compares else works
    level = study.plan.level if level is None else level
    if level is not None:
        rate = f"{100 * level:.4g}%"
        chance += f".\n{rate} or more: the probability that it works at least {rate} of the time"
    return (
        f"{chance}.\nUtility: the higher the better; {study.plan.kind.unit}.\nIn brackets: intervals of 95%."
    )


def comparison_sentences(found: Comparison, study: Study) -> str:
    """Which of two settings is better, and how sure that is."""
    first = f"The first setting is better with a probability of {found.better:.0%}."
    if study.plan.kind.compares:
        chance = f"{found.probability:.0%}"
        first += f" It is expected to be preferred to the second {chance} of the time, by noisy answers."
    by = f"Its utility is higher by {_number(found.difference, found.interval)}"
    return f"{first}\n{by}, with an interval of 95%; {study.plan.kind.unit}."


def _percent(share: float, ends: tuple[float, float]) -> str:
    return f"{share:.0%} ({ends[0]:.0%} to {ends[1]:.0%})"


def _number(value: float, ends: tuple[float, float]) -> str:
    shown = [readable(float(f"{one:.3g}")) for one in (value, *ends)]
    return f"{shown[0]} ({shown[1]} to {shown[2]})"
