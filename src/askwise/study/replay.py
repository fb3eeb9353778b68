"""Every question of a record derived again, from what was known when it was asked."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from askwise.storage import Event
from askwise.study.plan import Plan
from askwise.study.questions import Model, Situation, next_question
from askwise.study.state import State


@dataclass(frozen=True)
class Replayed:
    """A question of the record beside the one that follows from the record."""

    id: int
    asked: list[dict[str, Any]]
    again: list[dict[str, Any]]
    equal: bool


def replayed(plan: Plan, events: Sequence[Event]) -> list[Replayed]:
    """Every question that the study chose, by number."""
    model, found = Model(plan), []
    for number, entry in sorted(State.after(events).entries.items()):
        if entry.seen is None:
            continue
        then = State.after(events[: entry.seen])
        options, order = next_question(model, Situation.of(then, entry.context))
        equal = options == list(entry.options) and tuple(order) == entry.order
        found.append(Replayed(number, [dict(option) for option in entry.options], options, equal))
    return found
