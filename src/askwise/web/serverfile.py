"""What the server itself remembers: its keys, the links it gave out, and studies that were made here.

One JSON file that only its owner can read.  All workers share it; each reads it again when it has changed,
and whoever changes it holds a lock meanwhile.
"""

import json
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from askwise.errors import Damaged, Failed, NotFound

try:
    import fcntl
except ImportError:  # Windows: one worker
    fcntl = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Link:
    """A way into one study, for one named participant or for anybody who has it."""

    id: str
    study: str
    participant: str | None
    created: float
    revoked: bool = False


@dataclass(frozen=True)
class Kept:
    """The content of the file."""

    secret: str
    """Signs links and cookies."""
    token: str
    """Opens the experimenter's page and the API."""
    links: dict[str, Link] = field(default_factory=dict)
    studies: dict[str, str] = field(default_factory=dict)
    """TOML of the studies that were created here, by name."""
    paused: tuple[str, ...] = ()
    """Names of studies that ask nothing for now."""

    @classmethod
    def new(cls) -> "Kept":
        """Keys that nobody can guess, and nothing else."""
        return cls(secrets.token_urlsafe(32), secrets.token_urlsafe(24))

    @classmethod
    def from_json(cls, text: str) -> "Kept":
        """What :meth:`to_json` wrote."""
        read: dict[str, Any] = json.loads(text)
        links = {name: Link(**link) for name, link in read.pop("links").items()}
        return cls(**read | {"links": links, "paused": tuple(read["paused"])})

    def to_json(self) -> str:
        """As it is in the file."""
        return json.dumps(asdict(self), indent=1)


class ServerFile:
    """The file, and what was last read from it."""

    def __init__(self, path: Path) -> None:
        """Read it, or make a new one."""
        self.path, self._lock = path, threading.RLock()
        self._seen: tuple[int, ...] = ()
        with self._exclusive():
            if not path.exists():
                self._write(Kept.new())
        self._kept = self._read()

    @property
    def kept(self) -> Kept:
        """What is in the file now."""
        with self._lock:
            if self._stamp() != self._seen:
                self._kept = self._read()
            return self._kept

    def change(self, how: Callable[[Kept], Kept]) -> Kept:
        """Change what is kept, whoever else does the same."""
        with self._lock, self._exclusive():
            changed = how(self._read())
            self._write(changed)
            self._kept = self._read()
            return changed

    def add_link(self, study: str, participant: str | None) -> Link:
        """A new way into a study."""
        link = Link(secrets.token_urlsafe(9), study, participant, time.time())
        self.change(lambda kept: replace(kept, links=kept.links | {link.id: link}))
        return link

    def revoke(self, link: str) -> Link:
        """Close a way into a study for good."""
        if link not in self.kept.links:
            raise NotFound("link", "be one that was given out", repr(link), "List the links of the study.")
        closed = replace(self.kept.links[link], revoked=True)
        self.change(lambda kept: replace(kept, links=kept.links | {link: closed}))
        return closed

    def new_token(self) -> str:
        """Another token for the owner; the old one and all cookies are void."""
        token = secrets.token_urlsafe(24)
        self.change(lambda kept: replace(kept, token=token))
        return token

    def _stamp(self) -> tuple[int, ...]:
        try:
            found = os.stat(self.path)
        except OSError:
            return ()
        return found.st_ino, found.st_mtime_ns, found.st_size

    def _read(self) -> Kept:
        self._seen = self._stamp()
        try:
            return Kept.from_json(self.path.read_text(encoding="utf-8"))
        except OSError as error:
            advice = "Put it back, or start the server again."
            raise Failed("server file", "be readable", f"{self.path} ({error.strerror})", advice) from error
        except (ValueError, KeyError, TypeError, AttributeError):
            advice = "Restore it; or move it away, and give out new links."
            raise Damaged("server file", "be as it was written", str(self.path), advice) from None

    def _write(self, kept: Kept) -> None:
        part = self.path.with_name(f"{self.path.name}.{secrets.token_hex(4)}")
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="utf-8") as out:
            out.write(kept.to_json())
            out.flush()
            os.fsync(descriptor)
        os.replace(part, self.path)

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Alone among the workers."""
        try:
            lock = os.open(self.path.with_name(f"{self.path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            got = f"{self.path.parent} ({str(error.strerror).lower()})"
            advice = "Choose another by --server-file."
            raise Failed("folder of the server file", "be writable", got, advice) from error
        try:
            if fcntl is not None:
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)
