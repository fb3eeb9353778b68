"""A database that several processes write to: its address, its connection, and its retries."""

import os
import random
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import closing
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
        self.place = (
            str(self.file) if self.sqlite else url.set(drivername="postgresql", query={}).render_as_string()
        )
        self._engine = _sqlite_engine(url) if self.sqlite else _postgresql_engine(url)
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
        return self._retried(lambda connection: _in_transaction(connection, work, "BEGIN"))

    def write(self, work: Callable[[sa.Connection], Result]) -> Result:
        """The result of the work, once everything it wrote is durable; if it raises, nothing is written."""
        return self._retried(lambda connection: _in_transaction(connection, work, "BEGIN IMMEDIATE"))

    def use_wal(self) -> None:
        """Switch the file to write-ahead logging, so that readers and the writer do not block each other."""
        self._retried(lambda connection: connection.exec_driver_sql("PRAGMA journal_mode = WAL").close())

    def _retried(self, work: Callable[[sa.Connection], Result]) -> Result:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                with self._lock:
                    self._check_open()
                    with self._engine.connect() as connection:
                        return work(connection)
            except DBAPIError as error:
                if not _is_busy(error) or time.monotonic() > deadline:
                    raise _failure(error, self.place) from error
            time.sleep(random.uniform(0.001, 0.02))

    def _check_open(self) -> None:
        if not self._closing.alive:
            raise Refused("record", "be open", "one that was closed", "Open the study again.")
        if self._inode not in (None, self._present_inode()):
            self._engine.dispose()
            raise Failed(
                "storage",
                "stay where it was opened",
                f"{self.place} moved, deleted or replaced",
                "Put it back, or open the study again.",
            )

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
        self._held: list[Database] = []
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._hold, after_in_parent=self._release, after_in_child=self._release
            )

    def watch(self, database: Database) -> None:
        with self._lock:
            self._databases.add(database)

    def _hold(self) -> None:
        self._lock.acquire()
        self._held = list(self._databases)
        for database in self._held:
            database._lock.acquire()
            database._engine.dispose()

    def _release(self) -> None:
        for database in self._held:
            database._lock.release()
        self._held = []
        self._lock.release()


_forks = _Forks()


def _in_transaction(connection: sa.Connection, work: Callable[[sa.Connection], Result], begin: str) -> Result:
    connection.execution_options(askwise_begin=begin)
    with connection.begin():
        return work(connection)


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
            raise Refused(
                "storage",
                "be a file (study.db, sqlite:///study.db) or postgresql://user@host/database",
                f"an address of kind {kind!r}",
                "Write it like one of these.",
            )


def _file_url(name: str) -> sa.URL:
    if name in ("", ":memory:") or name.startswith("file:"):
        raise Refused("storage", "name a file", repr(name), "Write e.g. study.db, or None to keep nothing.")
    file = Path(name).expanduser().absolute()  # the working directory may change later
    if not file.parent.is_dir():
        raise Refused("storage", "be in a folder that exists", file, f"Make {file.parent} first.")
    if file.is_dir():
        raise Refused("storage", "be a file", f"the folder {file}", f"Write e.g. {file / 'study.db'}.")
    return sa.URL.create("sqlite", database=str(file))


def _sqlite_engine(url: sa.URL) -> sa.Engine:
    # Time-outs are short because we retry ourselves: there are locks that SQLite does not wait for at all.
    patience = {"timeout": 0.2, "isolation_level": None, "check_same_thread": False}
    engine = sa.create_engine(url, poolclass=sa.QueuePool, pool_size=1, max_overflow=0, connect_args=patience)

    sa.event.listen(engine, "connect", _sqlite_connected)
    sa.event.listen(engine, "begin", _sqlite_begun)
    return engine


def _sqlite_connected(connection: Any, _: object) -> None:
    with closing(connection.cursor()) as cursor:
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.execute("PRAGMA synchronous = FULL")  # a commit that returned survives a power cut


def _sqlite_begun(connection: sa.Connection) -> None:
    # without it no transaction begins: the journal mode cannot be set in one
    if begin := connection.get_execution_options().get("askwise_begin"):
        connection.exec_driver_sql(begin)


def _postgresql_engine(url: sa.URL) -> sa.Engine:
    engine = sa.create_engine(
        url if "connect_timeout" in url.query else url.update_query_dict({"connect_timeout": "10"}),
        poolclass=sa.QueuePool,
        pool_size=1,
        max_overflow=0,
        pool_pre_ping=True,
        isolation_level="READ COMMITTED",  # after waiting for a lock we must see what its holder wrote
        connect_args={"prepare_threshold": None},  # prepared plans would outlive an upgrade of the tables
    )

    sa.event.listen(engine, "connect", _postgresql_connected)
    return engine


def _postgresql_connected(connection: Any, _: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SET lock_timeout = {int(1000 * PATIENCE)}")
        cursor.execute(
            "SELECT set_config('synchronous_commit', 'on', false) "
            "WHERE current_setting('synchronous_commit') = 'off'"
        )
    connection.commit()


def _is_busy(error: DBAPIError) -> bool:
    return getattr(error.orig, "sqlite_errorcode", -1) & 0xFF in _BUSY


def _failure(error: DBAPIError, place: str) -> Exception:
    code = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF
    said = " ".join(str(error.orig).split())
    if _is_busy(error) or getattr(error.orig, "sqlstate", None) == _LOCK_TIMEOUT:
        return Busy(
            "storage",
            f"be free to use within {PATIENCE:g} seconds",
            f"{place}, which another program holds",
            "Close that program, or try again later.",
        )
    if code == sqlite3.SQLITE_NOTADB:
        return Refused(
            "storage", "be a study file", f"{place}, which is something else", "Choose another name."
        )
    if code == sqlite3.SQLITE_CORRUPT:
        return Failed("storage", "be whole", f"{place} damaged ({said})", "Restore it from a backup.")
    if error.connection_invalidated or (not code and getattr(error.orig, "sqlstate", None) is None):
        return Unreachable(
            "storage", "be reachable", f"{said} from {place}", "Check the address and that the server runs."
        )
    return Failed(
        "storage", "be readable and writable", f"{said} from {place}", "Check permissions and free space."
    )
