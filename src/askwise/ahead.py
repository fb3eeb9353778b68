"""Questions computed while a person thinks: one for each answer that may come."""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

__all__ = ["Ahead"]

Key = TypeVar("Key")
Value = TypeVar("Value")


class Ahead(Generic[Key, Value]):
    """Values of a pure function, computed by a thread of their own before they are asked for.

    A value is found by all that it depends on, so one that does not fit is never given; whether it
    was computed ahead can only be told by the clock.
    """

    def __init__(self, compute: Callable[[Key], Value]) -> None:
        """Compute values of this function."""
        self._compute = compute
        self._lock = threading.Lock()
        self._found: dict[Key, Future[Value]] = {}
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="askwise ahead")
        self._closed = False

    def expect(self, keys: Iterable[Key]) -> None:
        """Begin to compute these, in order, and drop all others."""
        wanted = list(keys)
        with self._lock:
            for key in [key for key in self._found if key not in wanted]:
                self._found.pop(key).cancel()
            for key in wanted:
                if key not in self._found and not self._closed:
                    self._found[key] = self._pool.submit(self._compute, key)

    def get(self, key: Key) -> Value:
        """The value, which may be there already; what went wrong ahead of time is tried again."""
        with self._lock:
            future = self._found.get(key)
        # one that has not begun waits behind others, which may be needless by now
        if future is None or future.cancel() or future.exception() is not None:
            return self._compute(key)
        return future.result()

    def close(self) -> None:
        """Stop computing."""
        with self._lock:
            self._closed = True
        self._pool.shutdown(wait=True, cancel_futures=True)
