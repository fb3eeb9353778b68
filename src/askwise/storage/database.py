"""A database that several processes write to: its address, its connection, and its retries."""

import os
import random
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, DBAPIError

from askwise.errors import Busy, Failed, Refused, Unreachable

PATIENCE = 60.0
"""Seconds to wait for other writers."""
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)
_LOCK_TIMEOUT = "55P03"  # PostgreSQL's lock_not_available

Result = TypeVar("Result")


class Database:
    """One connection, used by one thread at a time, opened on demand and never shared by two processes."""

    def __init__(self, storage: str) -> None:
        """Parse the address; nothing is opened yet."""
        url = _url(storage)
        self.sqlite = url.get_backend_name() == "sqlite"
        self.file = Path(url.database or "") if self.sqlite else None
        # without a password, which may also be in the query
        server = url.set(drivername="postgresql", query={})
        self.place = str(self.file) if self.sqlite else server.render_as_string()
        queried = [part for name, part in url.query.items() if "pass" in name.lower()]
        self._secrets = [str(secret) for secret in (url.password, *queried) if secret]
        try:
            self._engine = _engine(url)
        except (ArgumentError, ValueError):  # which would show the address
            expected, advice = (
                "have an address that the driver understands",
                "Check what follows the question mark.",
            )
            raise Refused("storage", expected, self.place, advice) from None
        self._lock = threading.RLock()
        self._inode: tuple[int, int] | None = None
        self._closing = weakref.finalize(self, self._engine.dispose)
        _forks.watch(self)

    def close(self) -> None:
        """Close the connection for good."""
        with self._lock:
            self._closing()

    def exists(self) -> bool:
        """Whether the file exists; a server is contacted later."""
        return self.file is None or self.file.exists()

    def pin(self) -> None:
        """From now on, raise if the file was replaced."""
        self._inode = self._present_inode()

    def read(self, work: Callable[[sa.Connection], Result]) -> Result:
        """The result of the work on one snapshot of the database."""
        return self._retried(work, "BEGIN")

    def write(self, work: Callable[[sa.Connection], Result]) -> Result:
        """The result of the work, once everything it wrote is durable; if it raises, nothing is written."""
        return self._retried(work, "BEGIN IMMEDIATE")

    def use_wal(self) -> None:
        """Switch the file to write-ahead logging, so that readers and the writer do not block each other."""
        # outside a transaction, in which the journal mode cannot be set
        self._retried(lambda connection: connection.exec_driver_sql("PRAGMA journal_mode = WAL").close(), "")

    def _retried(self, work: Callable[[sa.Connection], Result], begin: str) -> Result:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                with self._lock:
                    self._check_open()
                    with self._engine.connect() as connection, connection.begin():
                        if self.sqlite and begin:
                            connection.exec_driver_sql(begin)
                        return work(connection)
            except DBAPIError as error:
                if not _is_busy(error) or time.monotonic() > deadline:
                    raise _failure(error, self.place, self._secrets) from error
            time.sleep(random.uniform(0.001, 0.02))

    def _check_open(self) -> None:
        if not self._closing.alive:
            raise Refused("record", "be open", "one that was closed", "Open the study again.")
        if self._inode not in (None, self._present_inode()):
            self._engine.dispose()
            got, advice = f"{self.place} moved, deleted or replaced", "Put it back, or open the study again."
            raise Failed("storage", "stay where it was opened", got, advice)

    def _present_inode(self) -> tuple[int, int] | None:
        try:
            status = os.stat(self.file) if self.file else None
        except FileNotFoundError:
            return (0, 0)
        return (status.st_dev, status.st_ino) if status else None


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


def _url(storage: str) -> sa.URL:
    if "://" not in storage:
        return _file_url(storage)
    try:
        url = sa.make_url(storage)
    except (ArgumentError, ValueError):
        url = sa.URL.create("unreadable")
    match url.get_backend_name():
        case "sqlite" if not url.query and not url.host:
            return _file_url(url.database or "")
        case "postgresql" | "postgres":
            return url.set(drivername="postgresql+psycopg")
        case kind:  # not the address, which may contain a password
            expected = "be a file (study.db, sqlite:///study.db) or postgresql://user@host/database"
            raise Refused("storage", expected, f"an address of kind {kind!r}", "Write it like one of these.")


def _file_url(name: str) -> sa.URL:
    if name in ("", ":memory:") or name.startswith("file:"):
        raise Refused("storage", "name a file", repr(name), "Write e.g. study.db, or None to keep nothing.")
    file = Path(name).expanduser().absolute()  # the working directory may change later
    if not file.parent.is_dir():
        raise Refused("storage", "be in a folder that exists", file, f"Make {file.parent} first.")
    if file.is_dir():
        raise Refused("storage", "be a file", f"the folder {file}", f"Write e.g. {file / 'study.db'}.")
    return sa.URL.create("sqlite", database=str(file))


def _engine(url: sa.URL) -> sa.Engine:
    options: dict[str, Any]
    if url.get_backend_name() == "sqlite":
        # a short time-out, because we retry ourselves: there are locks that SQLite does not wait for
        options = {"connect_args": {"timeout": 0.2, "isolation_level": None, "check_same_thread": False}}
        # a commit that returned survives a power cut
        first = ["PRAGMA foreign_keys = ON", "PRAGMA synchronous = FULL"]
    else:
        if "connect_timeout" not in url.query:
            url = url.update_query_dict({"connect_timeout": "10"})
        # after waiting for a lock we must see what its holder wrote
        options = {"pool_pre_ping": True, "isolation_level": "READ COMMITTED"}
        options["connect_args"] = {"prepare_threshold": None}  # prepared plans would outlive an upgrade
        wait = "SELECT set_config('synchronous_commit', 'on', false)"
        wait += " WHERE current_setting('synchronous_commit') = 'off'"
        first = [f"SET lock_timeout = {int(1000 * PATIENCE)}", wait]
    engine = sa.create_engine(url, poolclass=sa.QueuePool, pool_size=1, max_overflow=0, **options)

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: Any, _: object) -> None:
        with closing(connection.cursor()) as cursor:
            for statement in first:
                cursor.execute(statement)
        connection.commit()

    return engine


def _is_busy(error: DBAPIError) -> bool:
    return getattr(error.orig, "sqlite_errorcode", -1) & 0xFF in _BUSY


def _failure(error: DBAPIError, place: str, secrets: Sequence[str]) -> Failed | Refused:
    code = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF
    state, said = getattr(error.orig, "sqlstate", None), " ".join(str(error.orig).split())
    for secret in secrets:
        said = said.replace(secret, "***")
    if _is_busy(error) or state == _LOCK_TIMEOUT:
        expected, got = f"be free to use within {PATIENCE:g} seconds", f"{place}, which another program holds"
        return Busy("storage", expected, got, "Close that program, or try again later.")
    if code == sqlite3.SQLITE_NOTADB:
        got = f"{place}, which is something else"
        return Refused("storage", "be a study file", got, "Choose another name.")
    if code == sqlite3.SQLITE_CORRUPT:
        return Failed("storage", "be whole", f"{place} damaged ({said})", "Restore it from a backup.")
    got = f"{said} from {place}"
    if error.connection_invalidated or (not code and state is None):
        return Unreachable("storage", "be reachable", got, "Check the address and that the server runs.")
    return Failed("storage", "be readable and writable", got, "Check permissions and free space.")
