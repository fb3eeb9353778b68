"""The record of a study and the state that follows from it, kept in agreement."""

from collections.abc import Callable
from typing import Any

from askwise.state import Entry, State
from askwise.storage import Outrun, Record

__all__ = ["Ledger"]


class Ledger:
    """The record as far as it is known here; others may write to it at any time.

    An event is added only if nothing was added since this ledger last looked.  If something was, the
    ledger catches up, and whoever wanted to add the event decides again.
    """

    def __init__(self, record: Record) -> None:
        """All that is recorded so far."""
        self.record, self.state = record, State()
        self.catch_up()

    def catch_up(self) -> None:
        """Take what others have recorded."""
        for event in self.record.events(self.state.last):
            self.state.take(event)

    def add(self, kind: str, question: int, body: dict[str, Any]) -> bool:
        """Whether the event was recorded; if not, the record had moved on, and is known now."""
        try:
            event = self.record.append(kind, question, body, expected=self.state.last)
        except Outrun:
            self.catch_up()
            return False
        self.state.take(event)
        return True

    def change(self, kind: str, question: int, body: dict[str, Any], wanted: Callable[[Entry], bool]) -> None:
        """Record an event about a question, as long as it is wanted; ``wanted`` may raise to refuse it."""
        while wanted(self.state.entries[question]) and not self.add(kind, question, body):
            pass
