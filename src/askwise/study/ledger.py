"""The record of a study and the state folded from it, kept in agreement."""

from collections.abc import Callable
from typing import Any

from askwise.errors import Conflict, Refused
from askwise.storage import Record
from askwise.study.state import Entry, State


class Ledger:
    """The record as far as it is known here; others may write to it at any time.

    An event is added only if nothing was added since this ledger last looked.  If something was, the
    ledger catches up, and whoever wanted to add the event decides again.
    """

    def __init__(self, record: Record) -> None:
        """Read all that is recorded."""
        self.record, self.state = record, State()
        self.catch_up()

    def catch_up(self) -> bool:
        """Take what others have recorded; whether there was anything."""
        events = self.record.events(self.state.last)
        for event in events:
            self.state.take(event)
        return bool(events)

    def add(self, kind: str, question: int, body: dict[str, Any]) -> bool:
        """Whether the event was recorded; if not, others had written, and their events are known now."""
        try:
            event = self.record.append(kind, question, body, expected=self.state.last)
        except Conflict:
            self.catch_up()
            return False
        self.state.take(event)
        return True

    def change(self, kind: str, question: int, body: dict[str, Any], wanted: Callable[[Entry], bool]) -> None:
        """Record an event about a question, as long as it is wanted; ``wanted`` may raise to refuse it.

        It is decided by what is known here, without reading the record first.  If others have written, the
        event is not recorded; before anything is refused or skipped, their events are read.
        """
        while True:
            try:
                if wanted(self.state.entries[question]):
                    if self.add(kind, question, body):
                        return
                elif not self.catch_up():
                    return
            except Refused:
                if not self.catch_up():
                    raise
