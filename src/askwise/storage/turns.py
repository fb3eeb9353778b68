"""Turns in asking: whoever computes a question while others do has to compute it again.

So programs that ask the same study wait for each other, in the order in which they came.  Nothing depends on
it but speed, and nobody waits for one who has stopped: a turn is a courtesy, not a lock.
"""

import hashlib
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

PATIENCE = 2.0
"""Seconds to wait while nobody gets on."""
LONGEST = 20.0
"""Seconds to wait at most."""


def nobody_gets_on() -> bool:
    """No: what is not known is taken for a program that has stopped."""
    return False


@contextmanager
def turn(identity: str, others_get_on: Callable[[], bool] = nobody_gets_on) -> Iterator[bool]:
    """Take a turn among the programs on this machine that name the same thing; yields whether it had to wait.

    The lock is a file in the folder for temporary files.  The system releases it if a program dies.  One who
    lost patience too early would compute beside the others, which makes all of them slower: so as long as
    ``others_get_on``, which is asked each time patience ends, it goes on waiting.
    """
    name = hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:24]
    try:
        number = os.open(Path(tempfile.gettempdir(), f"askwise-{name}.turn"), os.O_RDWR | os.O_CREAT, 0o666)
    except OSError:  # of somebody else, perhaps
        yield False
        return
    waiting = _Waiting(number, others_get_on)
    try:
        yield waiting.had_to_wait
    finally:
        waiting.leave()


class _Waiting:
    """A place in the queue of a lock; one who gives up leaves it as soon as the system lets them."""

    def __init__(self, number: int, others_get_on: Callable[[], bool]) -> None:
        self._number, self._lock, self._left, self._taken = number, threading.Lock(), False, False
        self.had_to_wait = fcntl is not None and not self._try()
        if self.had_to_wait:
            thread = threading.Thread(target=self._wait, daemon=True)
            thread.start()
            try:
                self._be_patient(thread, others_get_on)
            except BaseException:
                self.leave()
                raise

    def leave(self) -> None:
        with self._lock:
            self._left = True
            if self._taken or not self.had_to_wait:
                os.close(self._number)

    def _be_patient(self, thread: threading.Thread, others_get_on: Callable[[], bool]) -> None:
        latest = time.monotonic() + LONGEST
        thread.join(PATIENCE)
        while thread.is_alive() and time.monotonic() < latest and others_get_on():
            thread.join(PATIENCE)

    def _try(self) -> bool:
        try:
            fcntl.flock(self._number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def _wait(self) -> None:
        with suppress(OSError):
            fcntl.flock(self._number, fcntl.LOCK_EX)  # in order, which polling would not be
        with self._lock:
            self._taken = True
            if self._left:
                os.close(self._number)
