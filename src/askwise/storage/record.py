"""What a record of a study is: its events, their order, and what may stand in them."""

import json
import math
from dataclasses import dataclass
from reprlib import repr as _short
from typing import Any, Protocol, cast, runtime_checkable

__all__ = ["KINDS", "Event", "Outrun", "Record", "StudyNotFound"]

KINDS = ("asked", "again", "answered", "skipped", "amended", "voided", "expired")
ONCE = (("asked",), ("answered", "skipped"))
"""A question has at most one event of each of these groups."""

_DEPTH = 64  # of lists and dicts within each other; json itself gives up somewhere below a thousand
_BITS = 4096  # of an int; Python refuses to read numbers of more than 4300 digits
_NAME = 200


@dataclass(frozen=True)
class Event:
    """Something that happened to a question of a study; it is never changed."""

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


class Outrun(Exception):
    """The record has moved on since it was read; nothing was written."""


class StudyNotFound(ValueError):
    """There is no study of this name."""


@runtime_checkable
class Record(Protocol):
    """The events of one study, in the order in which they happened; safe to share between threads."""

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
        """Write an event, whole or not at all; once this returns, it survives a crash and a power cut.

        ``expected`` is the number of the last event that the caller knows; :class:`Outrun` if there is a
        later one.  After an ``OSError`` read the events: a connection lost at the last moment leaves open
        whether this one was written.
        """

    def close(self) -> None:
        """Let go of files and connections; a record that is forgotten closes itself."""


def check_event(kind: str, question: int, at: float | int) -> None:
    """Refuse an event that cannot be."""
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}; got {kind!r}. Choose one of these.")
    if type(question) is not int or not 0 <= question < 2**31:
        raise ValueError(f"question must be a number from 0 on; got {question!r}. Give the question's id.")
    if not math.isfinite(at):
        raise ValueError(f"at must be seconds since 1970; got {at!r}. Leave it out for the present time.")


def check_name(name: object) -> None:
    """Refuse a name that could not be typed."""
    text = name if isinstance(name, str) else ""
    if not text.isprintable() or text != text.strip() or not 0 < len(text) <= _NAME:
        raise ValueError(
            f"name must have 1 to {_NAME} printable characters, no blank at either end; got {name!r}. "
            "Choose another."
        )


def check_expected(expected: int, last: int) -> None:
    """Refuse to write after an event that is not the last."""
    if expected < last:
        raise Outrun(
            f"expected must be the number of the last event, {last}; got {expected}. "
            "Read the events after it and decide again."
        )
    if expected > last:
        raise ValueError(
            f"expected must be at most {last}, the number of the last event; got {expected}. "
            "Open the study again: it is not the one that was read."
        )


def repeated(kind: str, question: int) -> ValueError:
    """The refusal of a second question of this number, or of a second answer to it."""
    if kind == "asked":
        return ValueError(f"question {question} must be new; got one asked before. Take the next number.")
    return ValueError(
        f"question {question} must be open; got {kind!r} after it was answered or skipped. "
        "Amend the answer instead."
    )


def json_text(what: str, value: object) -> str:
    """The value as JSON that gives back exactly the same value; refused if there is none."""
    _check_json(what, value, 0)
    if type(value) is not dict:
        raise TypeError(f"{what} must be a dict; got {_short(value)}. Put it into one.")
    return json.dumps(value, separators=(",", ":"))


def _check_json(where: str, value: object, depth: int) -> None:
    if depth > _DEPTH:
        raise ValueError(f"{where} must be at most {_DEPTH} levels deep; got more. Flatten it.")
    kind = type(value)  # not isinstance: a subclass would come back as something else
    if isinstance(value, dict) and kind is dict:
        for key, inner in value.items():
            if type(key) is not str:
                raise TypeError(f"keys of {where} must be str; got {_short(key)}. Write str(key).")
            _check_json(f"{where}[{key!r}]", inner, depth + 1)
    elif isinstance(value, list) and kind is list:
        for index, inner in enumerate(value):
            _check_json(f"{where}[{index}]", inner, depth + 1)
    elif kind in (int, float):
        _check_number(where, cast(float, value))
    elif kind not in (str, bool, type(None)):
        raise TypeError(
            f"{where} must be str, int, float, bool, None, list or dict; got {_short(value)}. "
            "Convert it first."
        )


def _check_number(where: str, value: float | int) -> None:
    if isinstance(value, int) and value.bit_length() > _BITS:
        raise ValueError(f"{where} must have at most {_BITS} bits; got more. Write it as a str.")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{where} must be finite; got {value}. Write None for what is not known.")
