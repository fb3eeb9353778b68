"""A record in memory, lost with the object."""

import json
import threading
import time
from typing import Any

from askwise.storage.record import ONCE, Event, check_event, check_expected, json_text, repeated


class MemoryRecord:
    """Keeps events as text, so that later changes of a body do not reach them."""

    def __init__(self, name: str, settings: dict[str, Any]) -> None:
        """Start without events."""
        self.name = name
        self.settings: dict[str, Any] = json.loads(json_text("settings", settings))
        self._events: list[tuple[int, str, int, float, str]] = []
        self._once: set[tuple[tuple[str, ...], int]] = set()
        self._lock = threading.Lock()

    def events(self, after: int = 0) -> list[Event]:
        """The events after that number, in order."""
        with self._lock:
            rows = self._events[max(after, 0) :]
        return [Event(n, kind, q, at, json.loads(text)) for n, kind, q, at, text in rows]

    def append(
        self,
        kind: str,
        question: int,
        body: dict[str, Any],
        *,
        expected: int,
        at: float | int | None = None,
    ) -> Event:
        """Write an event; see :class:`~askwise.storage.Record`."""
        at = float(time.time() if at is None else at) + 0.0  # SQLite does not keep minus zero
        check_event(kind, question, at)
        text = json_text("body", body)
        with self._lock:
            check_expected(expected, len(self._events))
            once = {(group, question) for group in ONCE if kind in group}
            if once & self._once:
                raise repeated(kind, question)
            self._once |= once
            number = len(self._events) + 1
            self._events.append((number, kind, question, at, text))
        return Event(number, kind, question, at, json.loads(text))

    def close(self) -> None:
        """Nothing to release."""
