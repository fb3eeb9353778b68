"""The state of a study: every question and what became of it, folded from the events of the record."""

import functools
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from askwise.errors import Refused
from askwise.space import Setting
from askwise.storage import Event
from askwise.study.answers import Answer

EntryStatus = Literal["open", "expired", "answered", "skipped", "voided"]


@dataclass(frozen=True)
class Answered:
    """Options as they were shown, and the answer; equal if their JSON is."""

    options: tuple[Setting, ...] = field(compare=False)
    answer: Answer = field(compare=False)
    identity: str = ""

    def __post_init__(self) -> None:
        """Identify it by its JSON, in which 1 is not true."""
        object.__setattr__(self, "identity", as_text([self.options, self.answer.to_json()]))


@dataclass(frozen=True)
class Entry:
    """A question of the record."""

    id: int
    options: tuple[Setting, ...]
    """Settings in natural units, in the order in which they are shown."""
    order: tuple[int, ...]
    """Which member of the rule's query each shown option is."""
    participant: str | None
    context: Setting | None
    seen: int | None
    """Number of events known when it was chosen; None if it was not chosen but recorded."""
    asked: float
    """When it was last asked, in seconds since 1970."""
    status: EntryStatus = "open"
    answer: Answer | None = None
    seconds: float | int | None = None
    """Response time, if known."""

    @property
    def members(self) -> list[Setting]:
        """The options in the order of the rule's query."""
        return [self.options[self.order.index(member)] for member in range(len(self.order))]

    @functools.cached_property
    def answered(self) -> Answered:
        """The answer with what it is about."""
        assert self.answer is not None
        return Answered(self.options, self.answer)


@dataclass
class State:
    """Every question of a study by number."""

    entries: dict[int, Entry] = field(default_factory=dict)
    last: int = 0
    """Number of the last event."""

    @classmethod
    def after(cls, events: Iterable[Event]) -> "State":
        """The state after these events."""
        state = cls()
        for event in events:
            state.take(event)
        return state

    def take(self, event: Event) -> None:
        """Fold in one event."""
        if event.number != self.last + 1:
            raise Refused(
                "event",
                f"be number {self.last + 1}",
                event.number,
                "The record has a gap: restore it from a backup.",
            )
        body = event.body
        if event.kind == "asked":
            entry = _asked(event)
        elif event.question in self.entries:
            entry = replace(self.entries[event.question], **_CHANGES[event.kind](event, body))
        else:
            raise Refused(
                "event",
                "be about a question that was asked",
                "one that was not",
                "The record is damaged: restore it from a backup.",
            )
        self.entries[event.question] = entry
        self.last = event.number

    def if_answered(self, question: int, answer: Answer) -> "State":
        """The state if this question were answered so."""
        changed = replace(self.entries[question], status="answered", answer=answer)
        return State({**self.entries, question: changed}, self.last)

    def having(self, status: EntryStatus) -> list[Entry]:
        """Questions of this status, by number."""
        return [entry for _, entry in sorted(self.entries.items()) if entry.status == status]

    def count(self, status: EntryStatus) -> int:
        """Number of questions of this status."""
        return sum(entry.status == status for entry in self.entries.values())


def _asked(event: Event) -> Entry:
    body = event.body
    given = "answer" in body  # asked and answered elsewhere
    return Entry(
        event.question,
        tuple(body["options"]),
        tuple(body["order"]),
        body["participant"],
        body["context"],
        body["seen"],
        event.at,
        "answered" if given else "open",
        Answer.from_json(body["answer"]) if given else None,
        body.get("seconds"),
    )


Change = Callable[[Event, dict[str, Any]], dict[str, Any]]
_CHANGES: dict[str, Change] = {
    "again": lambda event, body: {
        "status": "open",
        "participant": body["participant"],
        "asked": event.at,
    },
    "answered": lambda _, body: {
        "status": "answered",
        "answer": Answer.from_json(body["answer"]),
        "seconds": body["seconds"],
    },
    "amended": lambda _, body: {"status": "answered", "answer": Answer.from_json(body["answer"])},
    "skipped": lambda _, body: {"status": "skipped", "seconds": body["seconds"]},
    "voided": lambda *_: {"status": "voided"},
    "expired": lambda *_: {"status": "expired"},
}
"""What each kind of event changes in its question."""


def as_text(value: object) -> str:
    """A value as JSON: equal texts for equal values of equal types, since 1 is not True."""
    return json.dumps(value, sort_keys=True)
