"""Progress of a running campaign: a line that is rewritten, or a new one every half minute."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Protocol, runtime_checkable

_OFTEN, _SELDOM = 1.0, 30.0  # seconds between lines, on a terminal and elsewhere


@runtime_checkable
class Stream(Protocol):
    """Where lines are written: a terminal, a file, a buffer."""

    def write(self, text: str, /) -> object:
        """Append text."""

    def flush(self) -> None:
        """Show what was written."""

    def isatty(self) -> bool:
        """Whether it is a terminal, where lines can be rewritten."""


class Progress:
    """Counts finished runs in ``done``, and estimates speed and time left."""

    def __init__(
        self, total: int, done: int, iterations: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """``done``: runs that were finished before; ``iterations``: of each run."""
        self.total, self.before, self.done, self.iterations = total, done, done, iterations
        self.clock, self.began = clock, clock()

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return self.clock() - self.began

    @property
    def new(self) -> int:
        """Runs finished since the start."""
        return self.done - self.before

    @property
    def rate(self) -> float:
        """Lane-iterations per second."""
        return self.new * self.iterations / max(self.seconds, 1e-9)

    def __str__(self) -> str:
        """One line."""
        parts = [f"{self.done} of {self.total} runs"]
        if self.new:
            parts.append(f"{self.rate:.4g} iterations/s")
        seconds, word = self.seconds, "in all" if self.done == self.total else "so far"
        if self.new and self.done < self.total:
            seconds, word = (self.total - self.done) * self.iterations / self.rate, "left"
        return ", ".join([*parts, f"{timedelta(seconds=round(seconds))} {word}"])


@contextmanager
def shown(progress: Progress, out: Stream) -> Iterator[None]:
    """Show progress at intervals inside the block, and once at the end."""
    is_terminal, over = out.isatty(), threading.Event()

    def write() -> None:
        out.write(f"\r\x1b[K{progress}" if is_terminal else f"{progress}\n")
        out.flush()

    def tick() -> None:
        while not over.wait(_OFTEN if is_terminal else _SELDOM):
            write()

    write()
    ticker = threading.Thread(target=tick, daemon=True)
    ticker.start()
    try:
        yield
    finally:
        over.set()
        ticker.join()
        write()
        if is_terminal:
            out.write("\n")
            out.flush()
