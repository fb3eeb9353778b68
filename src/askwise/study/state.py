"""The state of a study: every question and what became of it, folded from the events of the record."""

import functools
import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from askwise.errors import Conflict, Refused
from askwise.space import Setting
from askwise.storage import OF_STUDY, Event
from askwise.study.answers import UNGIVEN, Answer
from askwise.study.people import People

EntryStatus = Literal["open", "expired", "answered", "skipped", "voided"]
_STATUS: dict[str, EntryStatus] = {status: status for status in get_args(EntryStatus)}
_STATUS |= {"asked": "open", "again": "open", "undone": "open", "amended": "answered"}
"""What a question is after an event of each kind."""
_BEFORE: dict[str, tuple[tuple[EntryStatus, ...], str, str]] = {
    "answered": (("open", "expired"), "be open to be answered", "Use amend to change an answer."),
    "skipped": (("open", "expired"), "be open to be skipped", "Use void to withdraw an answer."),
    "expired": (("open",), "be open to expire", "Only what has no answer can."),
    "amended": (("answered", "skipped", "voided"), "have an answer to amend", "Use tell to answer it."),
}
"""What a question must be before an event of this kind: its status, the same in words, and advice."""


@dataclass(frozen=True)
class Answered:
    """Options as they were shown, and the answer; equal if their JSON is."""

    options: tuple[Setting, ...] = field(compare=False)
    answer: Answer = field(compare=False)
    participant: str | None = field(default=None, compare=False)
    identity: str = ""

    def __post_init__(self) -> None:
        """Identify it by its JSON, in which 1 is not true."""
        parts = [self.options, self.answer.to_json(), self.participant]
        object.__setattr__(self, "identity", as_text(parts))


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
    reason: str | None = None
    """Why it was skipped, amended or voided, if somebody said so."""
    undone: bool = False
    """Whether an answer or a skip was taken back, so that the record has one already."""

    @property
    def members(self) -> list[Setting]:
        """The options in the order of the rule's query."""
        return [self.options[self.order.index(member)] for member in range(len(self.order))]

    def allows(self, kind: str, answer: Answer | None = None) -> bool:
        """Whether an event of this kind would change anything; one that must not happen is refused."""
        if self.status == _STATUS[kind] and answer in (None, self.answer):
            return False
        statuses, expected, advice = _BEFORE.get(kind, ((self.status,), "", ""))
        if self.status not in statuses:
            answered = self.answer if self.status == "answered" else None
            has = f"{self.status}: {answered.to_json()}" if answered else self.status
            raise Conflict(f"question {self.id}", expected, f"one that is {has}", advice)
        return True

    def written(self, kind: str, body: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """The kind and body by which an event is recorded: a second answer or skip amends the first."""
        if not self.undone or kind not in ("answered", "skipped"):
            return kind, body
        return "amended", {"answer": None, **body}

    def numbered(self, number: int) -> "Entry":
        """The same question with another number."""
        entry = replace(self, id=number)
        if self.status == "answered":
            entry.__dict__["answered"] = self.answered  # has no number, and takes a while to make
        return entry

    @functools.cached_property
    def answered(self) -> Answered:
        """The answer with what it is about."""
        assert self.answer is not None
        return Answered(self.options, self.answer, self.participant)


@dataclass
class State:
    """Every question of a study by number."""

    entries: dict[int, Entry] = field(default_factory=dict)
    last: int = 0
    """Number of the last event."""
    programs: dict[int, dict[str, Any]] = field(default_factory=dict)
    """Versions of the programs that asked, by the first event that says so."""
    keys: dict[str, int] = field(default_factory=dict)
    """Questions that were recorded with a key, by which they are recorded once."""
    changes: dict[int, Event] = field(default_factory=dict)
    """Changes of the plan, by the numbers of their events."""
    given: dict[int, int] = field(default_factory=dict)
    """Number of the event by which a question got its last answer or skip."""
    undone: dict[str, list[int]] = field(default_factory=dict)
    """Questions whose answers were taken back with a key, by which that is done once."""

    def __post_init__(self) -> None:
        """Index the questions: looking through all of them took most of the time of a server with many."""
        self._having: dict[EntryStatus, dict[int, Entry]] = defaultdict(dict)
        self._of: dict[str | None, dict[int, Entry]] = defaultdict(dict)
        for entry in self.entries.values():
            self._index(entry)

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
            advice = "The record has a gap: restore it from a backup."
            raise Refused("event", f"be number {self.last + 1}", event.number, advice)
        if event.kind in OF_STUDY:
            self.changes[event.number] = event
        else:
            self._put(_changed(self.entries.get(event.question), event))
        self.last = event.number
        if "answer" in event.body or event.kind == "skipped":
            self.given[event.question] = event.number
        if "program" in event.body:
            self.programs[event.number] = event.body["program"]
        if "key" in event.body:
            self.keys[event.body["key"]] = event.question
        if "undo" in event.body:
            self.undone.setdefault(event.body["undo"], []).append(event.question)

    @property
    def program(self) -> dict[str, Any] | None:
        """Versions of the last program that asked, if it said so."""
        return self.programs[max(self.programs)] if self.programs else None

    def program_of(self, event: int) -> dict[str, Any] | None:
        """Versions of the program that wrote this event; None if that was before they were noted."""
        return next(
            (self.programs[first] for first in sorted(self.programs, reverse=True) if first <= event), None
        )

    def of(self, participant: str | None) -> list[Entry]:
        """One person's questions, by number."""
        return [entry for _, entry in sorted(self._of.get(participant, {}).items())]

    def of_participant(self, participant: str | None) -> "State":
        """The state of one person's questions, numbered as in a study of their own."""
        each = enumerate(self.of(participant))
        return State({number: entry.numbered(number) for number, entry in each}, self.last)

    def answers_by_participant(self) -> dict[str | None, int]:
        """How many answers everybody has given, in the order of their first answers."""
        return dict(Counter(entry.participant for entry in self.having("answered")))

    def whose(self, people: People, participant: str | None) -> str | None:
        """Whose utility is modelled for this participant; see :meth:`Study.whose`."""
        if people.participants != "separate":
            return participant if people.differ else None
        known = list(self.answers_by_participant())
        if participant is not None or not known or None in known:
            return participant
        if len(known) > 1:
            names = ", ".join(map(repr, known))
            expected = "be named in a study of separate people"
            raise Refused("participant", expected, "none", f"Choose one of {names}.")
        return known[0]

    def replies(self, participant: object = UNGIVEN) -> list[Entry]:
        """Questions that are answered or skipped, by anybody or by this participant, last reply last."""
        replied = [*self.having("answered"), *self.having("skipped")]
        theirs = [entry for entry in replied if participant in (UNGIVEN, entry.participant)]
        return sorted(theirs, key=lambda entry: self.given[entry.id])

    def last_replies(self, n: int, participant: object = UNGIVEN) -> list[Entry]:
        """The last so many of them, by number; refuses to find more than there are."""
        replies = self.replies(participant)
        if n > len(replies):
            whose = "" if participant is UNGIVEN else f" of {participant or 'the one without a name'}"
            expected = f"be at most {len(replies)}, the number of answers and skips{whose}"
            raise Refused("n", expected, n, "Take back fewer." if replies else "Ask first.")
        return sorted(replies[-n:], key=lambda entry: entry.id)

    def taken_back(self, key: str | None, n: int, participant: object) -> list[Entry]:
        """Questions whose answers were taken back with this key; none if it is new or there is none."""
        taken = [] if key is None else [self.entries[number] for number in self.undone.get(key, ())]
        others = [one for one in taken if participant not in (UNGIVEN, one.participant)]
        if taken and (len(taken) != n or others):
            got = f"{key!r}, by which other answers were taken back"
            raise Conflict("key", "be new, or come with the same request", got, "Choose another key.")
        return taken

    def having(self, status: EntryStatus) -> list[Entry]:
        """Questions of this status, by number."""
        return [entry for _, entry in sorted(self._having.get(status, {}).items())]

    def count(self, status: EntryStatus) -> int:
        """Number of questions of this status."""
        return len(self._having.get(status, {}))

    def count_of(self, participant: str | None, status: EntryStatus | None = None) -> int:
        """Number of one person's questions, of this status or of any."""
        theirs = self._of.get(participant, {})
        return len(theirs) if status is None else sum(one.status == status for one in theirs.values())

    def _put(self, entry: Entry) -> None:
        """Take a question in place of the one with its number."""
        before = self.entries.get(entry.id)
        if before is not None:
            del self._having[before.status][entry.id], self._of[before.participant][entry.id]
        self.entries[entry.id] = entry
        self._index(entry)

    def _index(self, entry: Entry) -> None:
        self._having[entry.status][entry.id] = self._of[entry.participant][entry.id] = entry


def _changed(entry: Entry | None, event: Event) -> Entry:
    """A question after an event; ``asked`` comes with an answer if both happened elsewhere."""
    kind, body = event.kind, event.body
    if kind == "asked":
        options, order = tuple(body["options"]), tuple(body["order"])
        entry = Entry(event.question, options, order, None, body["context"], body["seen"], event.at)
    if entry is None:
        advice = "The record is damaged: restore it from a backup."
        raise Refused("event", "be about a question that was asked", "one that was not", advice)
    told = ("participant", "seconds", "reason")
    changes: dict[str, Any] = {name: body[name] for name in told if name in body}
    if kind in ("again", "undone"):
        changes["asked"] = event.at
    if kind == "undone":
        changes |= {"answer": None, "seconds": None, "reason": None, "undone": True}
    if body.get("answer") is not None:
        return replace(entry, status="answered", answer=Answer.from_json(body["answer"]), **changes)
    if "answer" in body:  # skipped, after an answer was taken back
        return replace(entry, status="skipped", **changes)
    return replace(entry, status=_STATUS[kind], **changes)


def as_text(value: object) -> str:
    """A value as JSON: equal texts for equal values of equal types, since 1 is not True."""
    return json.dumps(value, sort_keys=True)
