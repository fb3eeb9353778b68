"""A database that several processes write to: its address, its connection, and its retries."""

import hashlib
import math
import os
import random
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from askwise.errors import Busy, Damaged, Failed, Refused, Unreachable
from askwise.storage.filesystem import network_file_system
from askwise.storage.mirror import Mirror, is_read_only
from askwise.storage.watchdog import Watchdog

PATIENCE = 60.0
"""Seconds to wait for other writers."""
TIMEOUT = 30.0
"""Seconds that a server may take for one transaction, unless the address says ``?timeout=``."""
_LARGE = 64 * 2**20  # bytes of a file above which it is not checked in full each time it is opened
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)
_LOCK_TIMEOUT = "55P03"  # PostgreSQL's lock_not_available
_STARTING = ("57P03",)  # cannot_connect_now
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR)  # such as a table that is missing
_RESTORE = "Restore a backup, or run `askwise salvage`."

Result = TypeVar("Result")


class Database:
    """One connection, used by one thread at a time, opened on demand and never shared by two processes."""

    def __init__(self, storage: str) -> None:
        """Parse the address; nothing is opened yet."""
        url, limit = _url(storage)
        self.sqlite = url.get_backend_name() == "sqlite"
        self.file = Path(url.database or "") if self.sqlite else None
        # without a password, which may also be in the query
        server = url.set(drivername="postgresql", query={})
        self.place = str(self.file) if self.sqlite else server.render_as_string()
        self._mirror = Mirror(self.file) if self.file and is_read_only(self.file) else None
        self._watchdog = Watchdog(limit)
        # of a server we must hear that it is a lock before the connection is cut
        self._patience = PATIENCE if self.sqlite else min(PATIENCE, 0.8 * limit)
        queried = [part for name, part in url.query.items() if "pass" in name.lower()]
        self._secrets = [str(secret) for secret in (url.password, *queried) if secret]
        if self._mirror is not None:
            url = url.set(database=str(self._mirror.copy))
        try:
            self._engine = (
                _file_engine(url) if self.sqlite else _server_engine(url, self._watchdog, self._patience)
            )
        except (ArgumentError, ValueError):  # which would show the address
            expected = "have an address that the driver understands"
            advice = "Check what follows the question mark."
            raise Refused("storage", expected, self.place, advice) from None
        self._lock = threading.RLock()
        self._seen: os.stat_result | None = None
        self._closing = weakref.finalize(self, self._engine.dispose)
        _forks.watch(self)

    def close(self) -> None:
        """Close the connection for good."""
        with self._lock:
            self._closing()

    @property
    def read_only(self) -> bool:
        """Whether it can only be read, and is read from a copy."""
        return self._mirror is not None

    @property
    def present_file(self) -> Path | None:
        """The file that is read, which is a copy if the medium is read-only."""
        return self.file if self._mirror is None else self._mirror.copy

    @property
    def engine(self) -> str:
        """What keeps the tables, and its version."""
        if self.sqlite:
            return f"sqlite {sqlite3.sqlite_version}"
        version = self.read(lambda connection: connection.dialect.server_version_info) or ()
        return f"postgresql {'.'.join(map(str, version))}"

    def exists(self) -> bool:
        """Whether the file exists; a server is contacted later."""
        return self.file is None or self.file.exists()

    def pin(self) -> None:
        """From now on, raise if the file was replaced or cut short."""
        self._seen = self._stat()

    def touched(self) -> bool:
        """Whether somebody else has written to the file since we did, or since it was pinned."""
        now, seen = self._stat(), self._seen
        return bool(now and seen and (now.st_mtime_ns, now.st_size) != (seen.st_mtime_ns, seen.st_size))

    def check_writable(self) -> None:
        """Refuse to write to a medium that can only be read."""
        if self._mirror is not None:
            advice = "Copy it to another folder, or change its permissions."
            raise Failed("storage", "be writable to record anything", f"{self.place}, read-only", advice)

    def check_intact(self) -> None:
        """Refuse a damaged file; large ones are checked in part."""
        if self.file is None or not self.exists():
            return
        pragma = _integrity(self.file)
        said = self.read(lambda connection: connection.exec_driver_sql(pragma).scalar())
        if said != "ok":
            raise Damaged("storage", "be whole", f"{self.place} damaged ({said})", _RESTORE)

    def read_anew(self, work: Callable[[sqlite3.Connection], bool]) -> bool:
        """Whether the file is whole and the work, on a new connection that sees what is there, says so."""
        file = self.present_file
        with self._lock, suppress(sqlite3.Error, OSError):  # locked: the process must not fork meanwhile
            if file is not None:
                with closing(sqlite3.connect(f"{file.as_uri()}?mode=rw", uri=True)) as connection:
                    return connection.execute(_integrity(file)).fetchone() == ("ok",) and work(connection)
        return False

    def read(self, work: Callable[[sa.Connection], Result]) -> Result:
        """The result of the work on one snapshot of the database."""
        return self._retried(work, "BEGIN")

    def write(self, work: Callable[[sa.Connection], Result]) -> Result:
        """The result of the work, once everything it wrote is durable; if it raises, nothing is written."""
        return self._retried(work, "BEGIN IMMEDIATE")

    @contextmanager
    def advisory_lock(
        self, name: str, patience: float, longest: float, others_get_on: Callable[[], bool]
    ) -> Iterator[bool]:
        """Hold a lock of the server, if it comes in time; yields whether it had to wait.

        The server gives it in the order of asking, and releases it when the connection ends.  Patience is
        renewed as long as others get on.
        """
        key = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big", signed=True)

        def wait(connection: sa.Connection) -> None:
            connection.exec_driver_sql(f"SET LOCAL lock_timeout = {int(1000 * patience)}")
            connection.execute(sa.select(sa.func.pg_advisory_lock(key)))

        def call(function: Any) -> Any:
            return self.read(lambda connection: connection.scalar(sa.select(function(key))))

        taken = call(sa.func.pg_try_advisory_lock)
        waited, latest = not taken, time.monotonic() + longest
        while not taken:
            with suppress(Busy):
                self.read(wait)
                taken = True
            if not taken and (time.monotonic() > latest or not others_get_on()):
                break
        try:
            yield waited
        finally:
            if taken:
                with suppress(Failed):
                    call(sa.func.pg_advisory_unlock)

    def use_wal(self) -> None:
        """Switch the file to write-ahead logging, so that readers and the writer do not block each other."""
        # outside a transaction, in which the journal mode cannot be set
        self._retried(lambda connection: connection.exec_driver_sql("PRAGMA journal_mode = WAL").close(), "")

    def _retried(self, work: Callable[[sa.Connection], Result], begin: str) -> Result:
        deadline = time.monotonic() + self._patience
        while True:
            try:
                with self._lock:
                    self._check_open()
                    return self._once(work, begin)
            except DBAPIError as error:
                again = _is_busy(error) or _is_starting(error)
                if not again or time.monotonic() > deadline:
                    raise _failure(error, self.place, self._patience, self._secrets) from error
            except (SQLAlchemyError, UnicodeDecodeError, OverflowError, sqlite3.Error) as error:
                if not self.sqlite:
                    raise
                raise Damaged("storage", "be whole", f"{self.place} damaged ({error})", _RESTORE) from error
            time.sleep(random.uniform(0.001, 0.02))

    def _once(self, work: Callable[[sa.Connection], Result], begin: str) -> Result:
        with self._engine.connect() as connection:
            if self.sqlite:
                with connection.begin():
                    if begin:
                        connection.exec_driver_sql(begin)
                    return work(connection)
            with self._watchdog.over(connection.connection.driver_connection):
                if self._is_alive(connection):
                    with connection.begin():
                        return work(connection)
        return self._once(work, begin)  # on a new connection: the server has closed the old one

    def _is_alive(self, connection: sa.Connection) -> bool:
        """Whether the server still knows a connection; tried before anything is written on it."""
        try:
            connection.exec_driver_sql("SELECT 1")
            connection.rollback()
        except DBAPIError as error:
            if not error.connection_invalidated or self._watchdog.has_cut:
                raise
            return False
        return True

    def _check_open(self) -> None:
        if not self._closing.alive:
            raise Refused("record", "be open", "one that was closed", "Open the study again.")
        if self._mirror is not None and self._mirror.is_old():
            self._engine.dispose()
            self._mirror.renew()
        now, seen = self._stat(), self._seen
        if seen is None or self._mirror is not None:
            return
        if now is None or (now.st_dev, now.st_ino) != (seen.st_dev, seen.st_ino):
            self._engine.dispose()
            got, advice = f"{self.place} moved, deleted or replaced", "Put it back, or open the study again."
            raise Failed("storage", "stay where it was opened", got, advice)

    def _stat(self) -> os.stat_result | None:
        try:
            return os.stat(self.file) if self.file else None
        except FileNotFoundError:
            return None


def _integrity(file: Path) -> str:
    """The statement that checks a file; large ones in part."""
    return "PRAGMA integrity_check" if file.stat().st_size < _LARGE else "PRAGMA quick_check"


class _Forks:
    """Closes every connection before the process forks.

    A child that inherits one breaks it for both: SQLite's locks belong to the process that took them, and
    PostgreSQL would get two protocols on one line.
    """

    def __init__(self) -> None:
        self._databases: weakref.WeakSet[Database] = weakref.WeakSet()
        self._lock = threading.RLock()
        self._held = ExitStack()
        if hasattr(os, "register_at_fork"):
            after = {"after_in_parent": self._held.close, "after_in_child": self._held.close}
            os.register_at_fork(before=self._hold, **after)

    def watch(self, database: Database) -> None:
        with self._lock:
            self._databases.add(database)

    def _hold(self) -> None:
        self._held.enter_context(self._lock)
        for database in list(self._databases):
            self._held.enter_context(database._lock)
            database._engine.dispose()


_forks = _Forks()


def _url(storage: str) -> tuple[sa.URL, float]:
    """The address, and the seconds that a transaction may take."""
    if "://" not in storage:
        return _file_url(storage), TIMEOUT
    try:
        url = sa.make_url(storage)
    except (ArgumentError, ValueError):
        url = sa.URL.create("unreadable")
    match url.get_backend_name():
        case "sqlite" if not url.host and dict(url.query) in ({}, {"network": "yes"}):
            return _file_url(url.database or "", network=bool(url.query)), TIMEOUT
        case "postgresql" | "postgres":
            limit, others = url.query.get("timeout", TIMEOUT), url.difference_update_query(["timeout"])
            return others.set(drivername="postgresql+psycopg"), _seconds(limit)
        case kind:  # not the address, which may contain a password
            expected = "be a file (study.db, sqlite:///study.db) or postgresql://user@host/database"
            raise Refused("storage", expected, f"an address of kind {kind!r}", "Write it like one of these.")


def _seconds(text: object) -> float:
    try:
        seconds = float(str(text))
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise Refused("timeout", "be a positive number of seconds", repr(text), "Write ?timeout=30, say.")
    return seconds


def _file_url(name: str, network: bool = False) -> sa.URL:
    if name in ("", ":memory:") or name.startswith("file:") or "\0" in name:
        raise Refused("storage", "name a file", repr(name), "Write e.g. study.db, or None to keep nothing.")
    file = Path(name).expanduser().absolute()  # the working directory may change later
    if not file.parent.is_dir():
        raise Refused("storage", "be in a folder that exists", file, f"Make {file.parent} first.")
    if file.is_dir():
        raise Refused("storage", "be a file", f"the folder {file}", f"Write e.g. {file / 'study.db'}.")
    kind = None if network else network_file_system(file)
    if kind is not None:
        got, advice = f"{kind} at {file.parent}", f"Move it, or insist by sqlite:///{file}?network=yes."
        expected = "be on a local disk, since on a network several programs may lose answers"
        raise Refused("storage", expected, got, advice)
    return sa.URL.create("sqlite", database=str(file))


def _file_engine(url: sa.URL) -> sa.Engine:
    # a short time-out, because we retry ourselves: there are locks that SQLite does not wait for
    options = {"timeout": 0.2, "isolation_level": None, "check_same_thread": False}
    engine = sa.create_engine(url, poolclass=sa.QueuePool, pool_size=1, max_overflow=0, connect_args=options)
    # a commit that returned survives a power cut, and is in the file itself at once (which takes no
    # longer: 2.5 against 3.7 ms): a copy of the file without its -wal has everything
    first = ("foreign_keys = ON", "synchronous = FULL", "wal_autocheckpoint = 1")

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: Any, _: object) -> None:
        with closing(connection.cursor()) as cursor:
            for pragma in first:
                cursor.execute(f"PRAGMA {pragma}")

    return engine


def _server_engine(url: sa.URL, watchdog: Watchdog, patience: float) -> sa.Engine:
    if "connect_timeout" not in url.query:
        url = url.update_query_dict({"connect_timeout": "10"})
    engine = sa.create_engine(
        url,
        poolclass=sa.QueuePool,
        pool_size=1,
        max_overflow=0,
        isolation_level="READ COMMITTED",  # after waiting for a lock we must see what its holder wrote
        connect_args={"prepare_threshold": None},  # prepared plans would outlive an upgrade
    )
    wait = "SELECT set_config('synchronous_commit', 'on', false)"
    wait += " WHERE current_setting('synchronous_commit') = 'off'"

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: Any, _: object) -> None:
        with watchdog.over(connection), closing(connection.cursor()) as cursor:
            for statement in (f"SET lock_timeout = {int(1000 * patience)}", wait):
                cursor.execute(statement)
            connection.commit()

    return engine


def _is_starting(error: DBAPIError) -> bool:
    """Whether a server is about to accept connections."""
    state = getattr(error.orig, "sqlstate", None)
    return state in _STARTING or "the database system is starting up" in str(error.orig)


def _is_busy(error: DBAPIError) -> bool:
    return getattr(error.orig, "sqlite_errorcode", -1) & 0xFF in _BUSY


def _failure(error: DBAPIError, place: str, patience: float, secrets: Sequence[str]) -> Failed | Refused:
    code = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF
    state, said = getattr(error.orig, "sqlstate", None), " ".join(str(error.orig).split())
    for secret in secrets:
        said = said.replace(secret, "***")
    if _is_busy(error) or state == _LOCK_TIMEOUT:
        expected, got = f"be free to use within {patience:g} seconds", f"{place}, which another program holds"
        return Busy("storage", expected, got, "Close that program, or try again later.")
    if code == sqlite3.SQLITE_NOTADB:
        got = f"{place}, which is something else"
        return Refused("storage", "be a study file", got, "Choose another name.")
    if code in _DAMAGE:
        return Damaged("storage", "be whole", f"{place} damaged ({said})", _RESTORE)
    got = f"{said} from {place}"
    if error.connection_invalidated or (not code and state is None):
        advice = "Check the address and that the server runs; the same call again is safe."
        return Unreachable("storage", "be reachable", got, advice)
    return Failed("storage", "be readable and writable", got, "Check permissions and free space.")
