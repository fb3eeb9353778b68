"""A file that can only be read is read from a copy: SQLite would have to write beside it."""

import os
import shutil
import tempfile
import weakref
from pathlib import Path

_TRIES = 5


def is_read_only(file: Path) -> bool:
    """Whether the file exists, and it or its folder cannot be written to."""
    return file.exists() and not (os.access(file, os.W_OK) and os.access(file.parent, os.W_OK))


class Mirror:
    """A private copy of a database with its log, made anew when the original has changed."""

    def __init__(self, file: Path) -> None:
        """Copy the file."""
        folder = tempfile.TemporaryDirectory(prefix="askwise-")
        self._closing = weakref.finalize(self, folder.cleanup)
        self.file, self.copy = file, Path(folder.name, file.name)
        self.renew()

    def is_old(self) -> bool:
        """Whether somebody who may write to the original has done so."""
        return self._stamps() != self._copied

    def renew(self) -> None:
        """Copy the file again, unchanged while it is copied if possible."""
        for _ in range(_TRIES):
            self._copied = self._stamps()
            for ending in ("", "-wal"):
                source, target = (Path(f"{path}{ending}") for path in (self.file, self.copy))
                target.unlink(missing_ok=True)
                if source.exists():
                    shutil.copyfile(source, target)
            Path(f"{self.copy}-shm").unlink(missing_ok=True)
            if not self.is_old():
                return

    def _stamps(self) -> list[tuple[int, int]]:
        files = [path for path in (self.file, Path(f"{self.file}-wal")) if path.exists()]
        return [(stat.st_mtime_ns, stat.st_size) for stat in map(os.stat, files)]
