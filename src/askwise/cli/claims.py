"""Which open questions are being answered by programs on this machine.

An open question is asked again after a program was killed, but not while the program is still at work on
it.  A claim is a lock on one byte of a file, which the system releases if the program dies.
"""

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


class Claims:
    """Questions of a study that this program is at work on."""

    def __init__(self, file: int | None) -> None:
        """``file``: descriptor of the file of locks; None if there can be none."""
        self._file = file
        self.held: set[int] = set()

    def take(self, question: int) -> bool:
        """Whether no other program is at work on this question; then it is ours."""
        if self._file is not None and fcntl is not None:
            try:
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, question)
            except OSError:
                return False
        self.held.add(question)
        return True

    def release(self, question: int) -> None:
        """Leave a question to others."""
        self.held.discard(question)
        if self._file is not None and fcntl is not None:
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, question)


@contextlib.contextmanager
def claims(storage: str, name: str) -> Iterator[Claims]:
    """The claims of this program on questions of a study, released at the end of the block."""
    file = storage.removeprefix("sqlite:///").partition("?")[0]
    place = storage if "://" in file else str(Path(file).resolve())
    identity = hashlib.sha256(f"{place} {name}".encode("utf-8", "surrogatepass")).hexdigest()[:24]
    path = Path(tempfile.gettempdir(), f"askwise-{identity}.claims")
    try:
        number = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError:  # of somebody else, perhaps
        yield Claims(None)
        return
    try:
        yield Claims(number)
    finally:
        os.close(number)
