"""A chain of hashes over the events of a study, by which damage and foreign hands are noticed.

Each event has a hash of itself and of the hash before; the first follows the hash of the study.  So what is
read is what was written, from the first event to the last.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Any

from askwise.errors import Damaged
from askwise.storage.record import Event

Row = tuple[Any, ...]
"""An event as it is stored: number, kind, question, at, body, hash."""


def origin(name: str, settings: str) -> str:
    """The hash of a study, which its first event follows."""
    return _hash("study", name, settings)


def link(previous: str, event: Event, body: str) -> str:
    """The hash of an event that follows the one with hash ``previous``."""
    return _hash(previous, event.number, event.kind, event.question, repr(event.at), body)


def followed(rows: Iterable[Row], number: int, previous: str) -> Iterator[tuple[Event, str]]:
    """Events and their hashes, checked to follow the event of this number and hash, without a gap."""
    for row in rows:
        number += 1
        event, text = _event(row)
        previous = link(previous, event, text)
        if event.number != number or row[-1] != previous:
            raise damaged(number)
        yield event, previous


def last_of(rows: Iterable[Row], start: str) -> tuple[int, str] | None:
    """Number and hash of the last row, if all are as they were written; bodies are not parsed."""
    number = 0
    for row in rows:
        number, start = number + 1, _hash(start, *row[:3], repr(row[3]), row[4])
        if (row[0], row[5]) != (number, start):
            return None
    return number, start


def readable(row: Row) -> tuple[Event, str] | None:
    """The event of a row and its body as text, if it can be one."""
    try:
        return _event(row)
    except Damaged:
        return None


def _event(row: Row) -> tuple[Event, str]:
    number, kind, question, at, text, _ = row
    try:
        if [type(part) for part in row[:5]] != [int, str, int, float, str]:
            raise TypeError
        return Event(number, kind, question, at, dict(json.loads(text))), text
    except (TypeError, ValueError, RecursionError):
        raise damaged(number if isinstance(number, int) else 0) from None


def damaged(number: int) -> Damaged:
    """The refusal of a record whose event of this number is not as it was written."""
    got, advice = (
        f"event {number} changed, missing or out of order",
        "Restore a backup, or run `askwise salvage`.",
    )
    return Damaged("record", "be as it was written", got, advice)


def _hash(*parts: object) -> str:
    # lengths too, so that no two lists of parts give the same text
    text = "".join(f"{len(part)}:{part}" for part in map(str, parts))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
