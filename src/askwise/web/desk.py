"""What the experimenter's pages compute: once for the same answers, one at a time, after participants."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from askwise.study import Entry, Study
from askwise.study.state import as_text

T = TypeVar("T")
_KEPT = 128  # results
_PATIENCE = 5.0  # seconds after which the experimenter waits no longer for participants


class Desk:
    """Computes for the experimenter while no participant waits for a question."""

    def __init__(self) -> None:
        """Nothing is known, and nobody waits."""
        self._waiting, self._calm = 0, threading.Condition()
        self._turn = threading.Lock()
        self._kept: OrderedDict[Hashable, Any] = OrderedDict()

    @contextmanager
    def participant(self) -> Iterator[None]:
        """Somebody waits for a question meanwhile."""
        with self._calm:
            self._waiting += 1
        try:
            yield
        finally:
            with self._calm:
                self._waiting -= 1
                self._calm.notify_all()

    def get(self, key: Hashable, compute: Callable[[], T]) -> T:
        """The result with this key, which says all that it depends on; else it is computed and kept."""
        if key in self._kept:
            return self._kept[key]
        with self._turn:
            if key not in self._kept:
                with self._calm:
                    self._calm.wait_for(lambda: not self._waiting, _PATIENCE)
                self._kept[key] = compute()
                if len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)
            return self._kept[key]


def answers_key(entries: list[Entry]) -> str:
    """A name for the answers of these questions: the same for the same answers, whatever is open."""
    answered = [
        [entry.id, entry.answered.identity, entry.seconds] for entry in entries if entry.status == "answered"
    ]
    return hashlib.sha256(as_text(answered).encode()).hexdigest()[:16]


def key_of(study: Study) -> str:
    """The name of all answers of a study."""
    return answers_key(study.history())
