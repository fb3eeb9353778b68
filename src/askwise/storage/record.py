"""The record of a study: its events, their order, what they may contain; and a record in memory."""

import json
import math
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from reprlib import repr as _short
from typing import Any, Protocol, runtime_checkable

from askwise.errors import Conflict, NotFound, Refused, WrongType

KINDS = ("asked", "again", "answered", "skipped", "amended", "voided", "expired", "undone", "changed")
ONCE = (("asked",), ("answered", "skipped"))
"""A question has at most one event of each of these groups."""
OF_STUDY = ("changed",)
"""Kinds of events about the study, not about a question; their question is 0."""

_DEPTH = 64  # of nested lists and dicts; json itself fails somewhere below a thousand
_BITS = 4096  # of an int; Python refuses to read numbers of more than 4300 digits
_NAME = 200


@dataclass(frozen=True)
class Event:
    """Something that happened to a study or one of its questions; immutable."""

    number: int
    """1, 2, 3, ... within the study, without gaps."""
    kind: str
    """One of ``KINDS``."""
    question: int
    """Number of the question it is about: 0, 1, 2, ...; 0 if it is about the study (``OF_STUDY``)."""
    at: float
    """Seconds since 1970, when it was recorded."""
    body: dict[str, Any]
    """JSON: str, int, float, bool, None, list, dict."""


@dataclass(frozen=True)
class Draft:
    """An event that is to be written."""

    kind: str
    question: int
    body: dict[str, Any]
    at: float | int | None = None
    """When it happened; None for now."""


class StudyNotFound(NotFound):
    """There is no study of this name."""


@runtime_checkable
class Record(Protocol):
    """The events of one study in order; safe to share between threads."""

    name: str
    settings: dict[str, Any]
    """What the study was created with."""

    def events(self, after: int = 0) -> list[Event]:
        """The events after that number, in order."""

    def append(
        self, kind: str, question: int, body: dict[str, Any], *, expected: int, at: float | int | None = None
    ) -> Event:
        """Write an event atomically; once this returns, it survives a crash and a power cut.

        ``expected`` is the number of the last event that the caller knows; ``Conflict`` if there is a
        later one.  After an ``OSError`` read the events: a connection lost at the last moment leaves open
        whether this one was written.
        """

    def append_all(self, drafts: Sequence[Draft], *, expected: int) -> list[Event]:
        """Write all of these events, or none."""

    def close(self) -> None:
        """Release files and connections; a record that is garbage-collected closes itself."""


class CheckedRecord(ABC):
    """Checks events and makes their text; a subclass writes both."""

    def append(
        self, kind: str, question: int, body: dict[str, Any], *, expected: int, at: float | int | None = None
    ) -> Event:
        """Write an event; see :class:`Record`."""
        return self.append_all([Draft(kind, question, body, at)], expected=expected)[0]

    def append_all(self, drafts: Sequence[Draft], *, expected: int) -> list[Event]:
        """Write all of these events, or none."""
        now, written = time.time(), []
        for number, draft in enumerate(drafts, expected + 1):
            at = float(now if draft.at is None else draft.at) + 0.0  # SQLite does not keep minus zero
            check_event(draft.kind, draft.question, at)
            text = json_text("body", draft.body)
            written.append((Event(number, draft.kind, draft.question, at, json.loads(text)), text))
        if written:
            self._write(written)
        return [event for event, _ in written]

    @abstractmethod
    def _write(self, written: Sequence[tuple[Event, str]]) -> None:
        """Write events and their bodies if they follow the last one and repeat none, else refuse.

        By :func:`check_expected` and :func:`repeated`.
        """


def once_of(event: Event) -> set[object]:
    """What no later event may be: the groups of kinds that its question has at most one of."""
    return {(group, event.question) for group in ONCE if event.kind in group}


class MemoryRecord(CheckedRecord):
    """A record that is lost with the object; bodies are kept as text, so that nobody can change them."""

    def __init__(self, name: str, settings: dict[str, Any]) -> None:
        """Start without events."""
        self.name = name
        self.settings: dict[str, Any] = json.loads(json_text("settings", settings))
        self._events: list[tuple[Event, str]] = []
        self._once: set[object] = set()
        self._lock = threading.Lock()

    def events(self, after: int = 0) -> list[Event]:
        """The events after that number, in order."""
        with self._lock:
            kept = self._events[max(after, 0) :]
        return [replace(event, body=json.loads(text)) for event, text in kept]

    def close(self) -> None:
        """Nothing to release."""

    def _write(self, written: Sequence[tuple[Event, str]]) -> None:
        with self._lock:
            check_expected(written[0][0].number - 1, len(self._events))
            once: set[object] = set()
            for event, _ in written:
                if once_of(event) & self._once or once_of(event) & once:
                    raise repeated(event.kind, event.question)
                once |= once_of(event)
            self._once |= once
            self._events += written


@dataclass(frozen=True)
class Finding:
    """What was looked at, and whether it works."""

    what: str
    ok: bool
    detail: str
    advice: str = ""


@runtime_checkable
class Storage(Protocol):
    """Where records are kept; a module or an object with these functions."""

    def open_record(self, storage: str, name: str, settings: dict[str, Any] | None) -> Record:
        """The record of a study; created with these settings if it does not exist, else refused."""

    def names(self, storage: str) -> list[str]:
        """The names of the studies there, sorted."""

    def shown(self, storage: str) -> str:
        """The address without a password."""

    def findings(self, storage: str) -> Iterator[Finding]:
        """Whether it works, for ``askwise doctor``."""


def check_event(kind: str, question: int, at: float | int) -> None:
    """Refuse an impossible event."""
    if kind not in KINDS:
        raise Refused("kind", f"be one of {', '.join(KINDS)}", repr(kind), "Choose one of these.")
    if type(question) is not int or not 0 <= question < 2**31:
        raise Refused("question", "be a number from 0 on", repr(question), "Give the question's id.")
    if not math.isfinite(at):
        raise Refused("at", "be seconds since 1970", repr(at), "Leave it out for the present time.")


def check_name(name: object) -> None:
    """Refuse a name that cannot be typed."""
    text = name if isinstance(name, str) else ""
    if not text.isprintable() or text != text.strip() or not 0 < len(text) <= _NAME:
        expected = f"have 1 to {_NAME} printable characters, no blank at either end"
        raise Refused("name", expected, repr(name), "Choose another.")


def check_expected(expected: int, last: int) -> None:
    """Refuse to write after an event that is not the last."""
    if expected < last:
        advice = "Read the events after it and decide again."
        raise Conflict("expected", f"be the number of the last event, {last}", expected, advice)
    if expected > last:
        advice = "Open the study again: it is not the one that was read."
        raise Refused("expected", f"be at most {last}, the number of the last event", expected, advice)


def repeated(kind: str, question: int) -> ValueError:
    """The refusal of a question number that is taken, or of a second answer."""
    if kind == "asked":
        return Refused(f"question {question}", "be new", "one asked before", "Take the next number.")
    got = f"{kind!r} after it was answered or skipped"
    return Refused(f"question {question}", "be open", got, "Amend the answer instead.")


def json_text(what: str, value: object) -> str:
    """The value as JSON that reads back exactly; refused if that is impossible."""
    _check_json(what, value, 0)
    if type(value) is not dict:
        raise WrongType(what, "be a dict", _short(value), "Put it into one.")
    return json.dumps(value, separators=(",", ":"))


def _check_json(where: str, value: Any, depth: int) -> None:
    if depth > _DEPTH:
        raise Refused(where, f"be at most {_DEPTH} levels deep", "more", "Flatten it.")
    kind = type(value)  # not isinstance: a subclass would come back as something else
    if kind is dict:
        for key, inner in value.items():
            if type(key) is not str:
                raise WrongType(f"keys of {where}", "be str", _short(key), "Write str(key).")
            _check_json(f"{where}[{key!r}]", inner, depth + 1)
    elif kind is list:
        for index, inner in enumerate(value):
            _check_json(f"{where}[{index}]", inner, depth + 1)
    elif kind is int and value.bit_length() > _BITS:
        raise Refused(where, f"have at most {_BITS} bits", "more", "Write it as a str.")
    elif kind is float and not math.isfinite(value):
        raise Refused(where, "be finite", value, "Write None for what is not known.")
    elif kind not in (str, int, float, bool, type(None)):
        expected = "be str, int, float, bool, None, list or dict"
        raise WrongType(where, expected, _short(value), "Convert it first.")
