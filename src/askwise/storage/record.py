"""The record of a study: its events, their order, and what they may contain."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from reprlib import repr as _short
from typing import Any, Protocol, cast, runtime_checkable

from askwise.errors import Conflict, NotFound, Refused, WrongType

KINDS = ("asked", "again", "answered", "skipped", "amended", "voided", "expired")
ONCE = (("asked",), ("answered", "skipped"))
"""A question has at most one event of each of these groups."""

_DEPTH = 64  # of nested lists and dicts; json itself fails somewhere below a thousand
_BITS = 4096  # of an int; Python refuses to read numbers of more than 4300 digits
_NAME = 200


@dataclass(frozen=True)
class Event:
    """Something that happened to a question of a study; immutable."""

    number: int
    """1, 2, 3, ... within the study, without gaps."""
    kind: str
    """One of ``KINDS``."""
    question: int
    """Number of the question it is about: 0, 1, 2, ..."""
    at: float
    """Seconds since 1970, when it was recorded."""
    body: dict[str, Any]
    """JSON: str, int, float, bool, None, list, dict."""


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
        self,
        kind: str,
        question: int,
        body: dict[str, Any],
        *,
        expected: int,
        at: float | int | None = None,
    ) -> Event:
        """Write an event atomically; once this returns, it survives a crash and a power cut.

        ``expected`` is the number of the last event that the caller knows; ``Conflict`` if there is a
        later one.  After an ``OSError`` read the events: a connection lost at the last moment leaves open
        whether this one was written.
        """

    def close(self) -> None:
        """Release files and connections; a record that is garbage-collected closes itself."""


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
        raise Refused(
            "name",
            f"have 1 to {_NAME} printable characters, no blank at either end",
            repr(name),
            "Choose another.",
        )


def check_expected(expected: int, last: int) -> None:
    """Refuse to write after an event that is not the last."""
    if expected < last:
        raise Conflict(
            "expected",
            f"be the number of the last event, {last}",
            expected,
            "Read the events after it and decide again.",
        )
    if expected > last:
        raise Refused(
            "expected",
            f"be at most {last}, the number of the last event",
            expected,
            "Open the study again: it is not the one that was read.",
        )


def repeated(kind: str, question: int) -> ValueError:
    """The refusal of a question number that is taken, or of a second answer."""
    if kind == "asked":
        return Refused(f"question {question}", "be new", "one asked before", "Take the next number.")
    return Refused(
        f"question {question}",
        "be open",
        f"{kind!r} after it was answered or skipped",
        "Amend the answer instead.",
    )


def json_text(what: str, value: object) -> str:
    """The value as JSON that reads back exactly; refused if that is impossible."""
    _check_json(what, value, 0)
    if type(value) is not dict:
        raise WrongType(what, "be a dict", _short(value), "Put it into one.")
    return json.dumps(value, separators=(",", ":"))


def _check_json(where: str, value: object, depth: int) -> None:
    if depth > _DEPTH:
        raise Refused(where, f"be at most {_DEPTH} levels deep", "more", "Flatten it.")
    kind = type(value)  # not isinstance: a subclass would come back as something else
    if isinstance(value, dict) and kind is dict:
        for key, inner in value.items():
            if type(key) is not str:
                raise WrongType(f"keys of {where}", "be str", _short(key), "Write str(key).")
            _check_json(f"{where}[{key!r}]", inner, depth + 1)
    elif isinstance(value, list) and kind is list:
        for index, inner in enumerate(value):
            _check_json(f"{where}[{index}]", inner, depth + 1)
    elif kind in (int, float):
        _check_number(where, cast(float, value))
    elif kind not in (str, bool, type(None)):
        raise WrongType(
            where,
            "be str, int, float, bool, None, list or dict",
            _short(value),
            "Convert it first.",
        )


def _check_number(where: str, value: float | int) -> None:
    if isinstance(value, int) and value.bit_length() > _BITS:
        raise Refused(where, f"have at most {_BITS} bits", "more", "Write it as a str.")
    if isinstance(value, float) and not math.isfinite(value):
        raise Refused(where, "be finite", value, "Write None for what is not known.")
