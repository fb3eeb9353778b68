"""The record of a study and the state folded from it, kept in agreement."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

from askwise.errors import Conflict, Damaged, Refused
from askwise.storage import Draft, Record
from askwise.study.program import program
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

    @property
    def _program(self) -> dict[str, Any]:
        return program(getattr(self.record, "engine", type(self.record).__name__))

    def catch_up(self) -> bool:
        """Take what others have recorded; whether there was anything."""
        events = self.record.events(self.state.last)
        for event in events:
            self.state.take(event)
        return bool(events)

    @contextmanager
    def turn(self, catch_up: Callable[[], bool]) -> Iterator[None]:
        """Wait for others who are choosing a question, if the storage knows them; then theirs are known.

        ``catch_up``: takes what they have recorded, guarded against other threads.
        """
        turn = getattr(self.record, "turn", None)
        with nullcontext() if turn is None else turn(catch_up) as waited:
            if waited:
                catch_up()
            yield

    def add(self, kind: str, question: int, body: dict[str, Any]) -> bool:
        """Whether the event was recorded; if not, others had written, and their events are known now."""
        return self.add_all([Draft(kind, question, body)])

    def add_all(self, drafts: Sequence[Draft]) -> bool:
        """Whether all of these events were recorded; if not, none was.

        The first question of a program that is not the last one to have asked says which it is; answers do
        not depend on it.
        """
        first, *others = drafts
        if first.kind == "asked" and self.state.program != self._program:
            first = replace(first, body=first.body | {"program": self._program})
        try:
            events = self.record.append_all([first, *others], expected=self.state.last)
        except Conflict as error:
            if not self.catch_up():  # else we would try for ever
                got, advice = (
                    "later events that cannot be read",
                    "Restore a backup, or run `askwise salvage`.",
                )
                raise Damaged("record", "be as it was written", got, advice) from error
            return False
        for event in events:
            self.state.take(event)
        return True

    def change(self, kind: str, question: int, body: dict[str, Any], wanted: Callable[[Entry], bool]) -> None:
        """Record an event about a question, as long as it is wanted; ``wanted`` may raise to refuse it.

        It is decided by what is known here, without reading the record first.  If others have written, the
        event is not recorded; before anything is refused or skipped, their events are read.
        """
        while True:
            try:
                entry = self.state.entries[question]
                if wanted(entry):
                    written, what = entry.written(kind, body)
                    if self.add(written, question, what):
                        return
                elif not self.catch_up():
                    return
            except Refused:
                if not self.catch_up():
                    raise
