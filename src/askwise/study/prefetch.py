"""Queries computed while people think: for each of them, one for each likely answer."""

import heapq
import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Generic, TypeVar

Key = TypeVar("Key")
T = TypeVar("T")
_PEOPLE = 256  # whose next queries are kept; of those who asked last


class Prefetch(Generic[Key, T]):
    """Values of a pure function, computed by a background thread before they are needed.

    The key is everything that a value depends on, so a stale one is never returned.  The likeliest of
    everybody come before the others of anybody.
    """

    def __init__(self, compute: Callable[[Key], T], ahead: Callable[[Key], T] | None = None) -> None:
        """Compute values of this function; ``ahead``: the same function in another way, by the thread."""
        self._compute, self._ahead = compute, ahead
        self._lock = threading.Lock()
        self._found: dict[Key, Future[T]] = {}
        self._expected: OrderedDict[Hashable, list[Key]] = OrderedDict()
        self._waiting: list[tuple[int, int, Key, Future[T]]] = []
        self._numbers = itertools.count()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="askwise prefetch")
        self._closed = False

    def expect(self, keys: Iterable[Key], who: Hashable = None) -> None:
        """Start to compute these, in order, and drop others that the same person was expected to need."""
        wanted = list(keys)
        with self._lock:
            if self._closed:
                return
            before = self._expected.pop(who, [])
            if len(self._expected) >= _PEOPLE:
                before = before + self._expected.popitem(last=False)[1]
            self._expected[who] = wanted
            for key in before:
                if key in self._found and key not in wanted:
                    self._found.pop(key).cancel()
            for rank, key in enumerate(wanted):
                if key not in self._found:
                    self._found[key] = Future()
                    heapq.heappush(self._waiting, (rank, next(self._numbers), key, self._found[key]))
                    self._pool.submit(self._compute_one)

    def get(self, key: Key) -> T:
        """The value, which may have been computed already; if that failed, it is tried again."""
        with self._lock:
            future = self._found.get(key)
        # one that has not started waits behind others that may not be needed any more
        if future is None or future.cancel() or future.exception() is not None:
            return self._compute(key)
        return future.result()

    def known(self, key: Key, patience: float) -> T | None:
        """The value if it has been computed, or is within so many seconds; nothing is computed for it."""
        with self._lock:
            future = self._found.get(key)
        with suppress(TimeoutError, CancelledError):
            if future is not None and future.exception(patience) is None:
                return future.result()
        return None

    def _compute_one(self) -> None:
        with self._lock:
            *_, key, future = heapq.heappop(self._waiting)
        if not future.set_running_or_notify_cancel():
            return
        try:
            future.set_result((self._ahead or self._compute)(key))
        except BaseException as error:
            future.set_exception(error)

    def close(self) -> None:
        """Stop computing."""
        with self._lock:
            self._closed = True
            for *_, future in self._waiting:
                future.cancel()
        self._pool.shutdown(wait=True, cancel_futures=True)
