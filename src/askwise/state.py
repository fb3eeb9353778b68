"""What the record of a study says: every question and what became of it.

The record is a list of events; the state follows from it, event by event, and from nothing else.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from askwise.answers import Answer
from askwise.storage import Event

__all__ = ["Entry", "State"]

Status = Literal["open", "expired", "answered", "skipped", "voided"]
Value = str | int | float | bool | None


@dataclass(frozen=True)
class Entry:
    """A question of the record."""

    id: int
    options: tuple[Mapping[str, Value], ...]
    """Settings in natural units, in the order in which they are shown."""
    order: tuple[int, ...]
    """Which member of the rule's question each shown option is."""
    participant: str | None
    context: Mapping[str, Value] | None
    seen: int | None
    """How many events were known when it was chosen; None if it was not chosen but given."""
    asked: float
    """When it was asked last, in seconds since 1970."""
    status: Status = "open"
    answer: Answer | None = None
    seconds: float | int | None = None
    """How long the answer took, if that was told."""

    @property
    def members(self) -> list[Mapping[str, Value]]:
        """The options in the order of the rule."""
        return [self.options[self.order.index(member)] for member in range(len(self.order))]


@dataclass
class State:
    """Every question of a study by number, after so many events."""

    entries: dict[int, Entry] = field(default_factory=dict)
    last: int = 0
    """Number of the last event."""

    @classmethod
    def after(cls, events: Iterable[Event]) -> "State":
        """The state that these events lead to."""
        state = cls()
        for event in events:
            state.take(event)
        return state

    def take(self, event: Event) -> None:
        """Go on by one event."""
        if event.number != self.last + 1:
            raise ValueError(
                f"event must be number {self.last + 1}; got {event.number}. "
                "The record has a gap: restore it from a backup."
            )
        self.entries[event.question] = _CHANGES[event.kind](self.entries.get(event.question), event)
        self.last = event.number

    def if_answered(self, question: int, answer: Answer) -> "State":
        """The state that there would be with this answer."""
        changed = replace(self.entries[question], status="answered", answer=answer)
        return State({**self.entries, question: changed}, self.last)

    def answered(self) -> list[Entry]:
        """Questions with an answer that counts, by number."""
        return [entry for _, entry in sorted(self.entries.items()) if entry.status == "answered"]

    def open(self) -> list[Entry]:
        """Questions that wait for an answer, by number."""
        return [entry for _, entry in sorted(self.entries.items()) if entry.status == "open"]

    def count(self, status: Status) -> int:
        """How many questions have come to this."""
        return sum(entry.status == status for entry in self.entries.values())


def _asked(_: Entry | None, event: Event) -> Entry:
    body: dict[str, Any] = event.body
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
        body.get("answer"),
        body.get("seconds"),
    )


def _again(entry: Entry | None, event: Event) -> Entry:
    return replace(_known(entry), status="open", participant=event.body["participant"], asked=event.at)


def _answered(entry: Entry | None, event: Event) -> Entry:
    answer, seconds = event.body["answer"], event.body["seconds"]
    return replace(_known(entry), status="answered", answer=answer, seconds=seconds)


def _amended(entry: Entry | None, event: Event) -> Entry:
    return replace(_known(entry), status="answered", answer=event.body["answer"])


def _skipped(entry: Entry | None, event: Event) -> Entry:
    return replace(_known(entry), status="skipped", seconds=event.body["seconds"])


def _voided(entry: Entry | None, _: Event) -> Entry:
    return replace(_known(entry), status="voided")


def _expired(entry: Entry | None, _: Event) -> Entry:
    return replace(_known(entry), status="expired")


def _known(entry: Entry | None) -> Entry:
    if entry is None:
        raise ValueError(
            "event must be about a question that was asked; got one that was not. "
            "The record is damaged: restore it from a backup."
        )
    return entry


_CHANGES = {
    "asked": _asked,
    "again": _again,
    "answered": _answered,
    "skipped": _skipped,
    "amended": _amended,
    "voided": _voided,
    "expired": _expired,
}
