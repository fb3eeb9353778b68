"""Records in SQLite and PostgreSQL."""

import json
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from askwise.errors import Damaged
from askwise.storage import schema
from askwise.storage.chain import damaged, followed, last_of, link, origin
from askwise.storage.database import Database
from askwise.storage.migrations import HEAD
from askwise.storage.record import (
    CheckedRecord,
    Event,
    Finding,
    StudyNotFound,
    check_expected,
    json_text,
    once_of,
    repeated,
)
from askwise.storage.turns import LONGEST, PATIENCE, nobody_gets_on, turn

_LITTLE = 100 * 2**20  # bytes of free disk
_STUDIES = sa.table("studies", *map(sa.column, ("id", "name", "settings", "created", "hash")))
_EVENTS = sa.table(
    "events", *map(sa.column, ("study_id", "number", "kind", "question", "at", "body", "hash"))
)


class _NotWritten(Exception):
    """An event does not follow the last one, or repeats one of its kind."""


class _Stored(NamedTuple):
    """A study as it is stored."""

    id: int
    settings: str
    hash: str


class SqlRecord(CheckedRecord):
    """A record in a database; a study may be open in several places."""

    def __init__(self, database: Database, storage: str, name: str, stored: _Stored) -> None:
        """Made by :func:`open_record`."""
        self.name, self.settings = name, json.loads(stored.settings)
        self._database, self._storage, self._study, self._origin = database, storage, stored.id, stored.hash
        self._last = (0, stored.hash)
        """Number and hash of the last event that was read or written here."""

    @property
    def engine(self) -> str:
        """What keeps it."""
        return self._database.engine

    @property
    def file(self) -> Path | None:
        """The SQLite file that it is in, if it is in one."""
        return self._database.present_file

    def events(self, after: int = 0) -> list[Event]:
        """The events after that number, in order; refused if they are not as they were written."""
        after, last = max(after, 0), self._last
        study, *columns = _EVENTS.c
        query = sa.select(*columns).where(study == self._study, _EVENTS.c.number >= after)
        query = query.order_by(_EVENTS.c.number)
        rows = [tuple(row) for row in self._database.read(lambda connection: connection.execute(query).all())]
        start = rows.pop(0)[-1] if after and rows and rows[0][0] == after else self._origin
        found = list(followed(rows, after, start))
        links = {after: start, **{event.number: link for event, link in found}}
        if after <= last[0] and links.get(last[0]) != last[1]:  # what was read before is not there any more
            self._database.read(self._check_exists)
            raise damaged(last[0])
        self._last = max(self._last, (max(links), links[max(links)])) if after <= last[0] else self._last
        return [event for event, _ in found]

    @contextmanager
    def turn(self, others_get_on: Callable[[], bool] = nobody_gets_on) -> Iterator[bool]:
        """Ask after those who came before; yields whether it had to wait, and the record may have grown."""
        if self._database.file is not None:
            with turn(f"{self._database.file.resolve()} {self.name}", others_get_on) as waited:
                yield waited
            return
        with self._database.advisory_lock(self._origin, PATIENCE, LONGEST, others_get_on) as waited:
            yield waited

    def close(self) -> None:
        """Close the connection."""
        self._database.close()

    def _write(self, written: Sequence[tuple[Event, str]]) -> None:
        self._database.check_writable()
        expected = written[0][0].number - 1
        if expected > self._last[0]:
            self.events(self._last[0])
        check_expected(expected, self._last[0])
        link_, rows = self._last[1], []
        for event, body in written:
            link_ = link(link_, event, body)
            rows.append((self._study, event.number, event.kind, event.question, event.at, body, link_))
        touched = self._database.touched()
        try:
            self._database.write(lambda connection: self._insert(connection, rows))
        except _NotWritten:
            self._refuse(written)
        self._last = (rows[-1][1], link_)
        if touched:
            self._check_again()
        self._database.pin()

    def _insert(self, connection: sa.Connection, rows: Sequence[Sequence[Any]]) -> None:
        """Write rows if they follow the last event that is known here."""
        (number, previous), e, s = self._last, _EVENTS.c, _STUDIES.c
        before = sa.exists().where(e.study_id == self._study, e.number == number, e.hash == previous)
        if number == 0:
            before = sa.exists().where(s.id == self._study, s.hash == previous)
        first = sa.insert(_EVENTS).from_select(list(e), sa.select(*map(sa.literal, rows[0])).where(before))
        try:
            if connection.execute(first.execution_options(preserve_rowcount=True)).rowcount != 1:
                raise _NotWritten
            if len(rows) > 1:
                names = [column.name for column in e]
                connection.execute(
                    sa.insert(_EVENTS), [dict(zip(names, row, strict=True)) for row in rows[1:]]
                )
        except IntegrityError as error:  # a number is taken, or a question has such an event
            raise _NotWritten from error

    def _refuse(self, written: Sequence[tuple[Event, str]]) -> NoReturn:
        """Say why events were not written."""
        self._database.read(self._check_exists)
        expected = written[0][0].number - 1
        there = self.events()
        check_expected(expected, len(there))
        once = set().union(*map(once_of, there))
        for event, _ in written:
            if once_of(event) & once:
                raise repeated(event.kind, event.question)
            once |= once_of(event)
        raise damaged(expected)  # nothing stands against them that could be read

    def _check_exists(self, connection: sa.Connection) -> None:
        study = sa.select(_STUDIES.c.id).where(_STUDIES.c.id == self._study)
        if connection.scalar(study) is None:
            what, expected = f"study {self.name!r}", f"stay in {self._database.place}"
            raise StudyNotFound(what, expected, "it deleted", "Restore a backup.")

    def _check_again(self) -> None:
        """Read everything by a new connection, which sees what is in the file now."""
        if self._database.read_anew(self._is_as_known):
            return
        with closing(open_record(self._storage, self.name, None)) as again:
            again._last = self._last
            again.events()

    def _is_as_known(self, connection: sqlite3.Connection) -> bool:
        """Whether the file has what is known here; 7 times as fast as opening it, but says no reason."""
        studies = connection.execute("SELECT name, settings FROM studies WHERE id = ?", (self._study,))
        events = (
            "SELECT number, kind, question, at, body, hash FROM events WHERE study_id = ? ORDER BY number"
        )
        rows = connection.execute(events, (self._study,)).fetchmany(self._last[0])
        there = [origin(name, settings) for name, settings in studies]
        return there == [self._origin] and last_of(rows, self._origin) == self._last


def open_record(storage: str, name: str, settings: dict[str, Any] | None) -> SqlRecord:
    """The record of the study of this name; created if it is missing and settings are given."""
    text = None if settings is None else json_text("settings", settings)
    database = Database(storage)
    try:
        stored = None
        if schema.ready(
            database, None if text is None else lambda connection: _create(connection, name, text)
        ):
            stored = database.read(lambda connection: _study(connection, name))
            if stored is None and text is not None:
                stored = _created(database, name, text)
        if stored is None:
            there = ", ".join(map(repr, names(storage))) or "none"
            expected, advice = f"be a study in {database.place}", f"Studies there: {there}."
            raise StudyNotFound("name", expected, repr(name), advice)
        if origin(name, stored.settings) != stored.hash:
            raise damaged(0)
        return SqlRecord(database, storage, name, stored)
    except BaseException:
        database.close()
        raise


def names(storage: str) -> list[str]:
    """The names of the studies there, sorted."""
    with closing(Database(storage)) as database:
        if not schema.ready(database):
            return []
        return sorted(database.read(lambda connection: connection.scalars(sa.select(_STUDIES.c.name)).all()))


def shown(storage: str) -> str:
    """The address without a password, which may also be in the query."""
    return storage if "://" not in storage else sa.make_url(storage).set(query={}).render_as_string()


def findings(storage: str) -> Iterator[Finding]:
    """Whether the database exists, is writable, has room and is intact."""
    with closing(Database(storage)) as database:
        place, file = database.place, database.file
        if not database.exists():
            yield Finding("storage", True, f"nothing yet at {place}; the first question makes it")
            return
        try:
            studies = ", ".join(map(repr, names(storage))) or "no study"
        except Damaged as error:
            yield Finding("integrity", False, f"{error.got}.", error.advice)
            return
        yield Finding("storage", True, f"{place}, revision {HEAD}, with {studies}")
        if database.read_only:
            yield Finding("write permission", False, f"none for {place}.", "Allow it, or move the record.")
            return
        database.write(lambda connection: None)
        yield Finding("write permission", True, f"granted for {place}")
        if file is None:
            return
        free = shutil.disk_usage(file.parent).free
        if free < _LITTLE:
            yield Finding("free disk", False, f"only {free / 2**20:.0f} MiB in {file.parent}.", "Make room.")
        else:
            yield Finding("free disk", True, f"{free / 2**30:.1f} GiB in {file.parent}")
        yield Finding("integrity", True, "the database file is intact")  # else `names` has refused it


def _study(connection: sa.Connection, name: str) -> _Stored | None:
    s = _STUDIES.c
    row = connection.execute(sa.select(s.id, s.settings, s.hash).where(s.name == name)).first()
    return None if row is None else _Stored(*row)


def _created(database: Database, name: str, settings: str) -> _Stored | None:
    """A study beside others that are there."""
    database.check_writable()
    if database.read(lambda connection: connection.scalar(sa.select(_STUDIES.c.id).limit(1))) is None:
        raise schema.lost(database.place)
    database.write(lambda connection: _create(connection, name, settings))
    return database.read(lambda connection: _study(connection, name))


def _create(connection: sa.Connection, name: str, settings: str) -> None:
    """Create a study, unless somebody else was faster."""
    values = {"name": name, "settings": settings, "created": time.time(), "hash": origin(name, settings)}
    columns = "INSERT INTO studies (name, settings, created, hash) VALUES (:name, :settings, :created, :hash)"
    connection.execute(sa.text(f"{columns} ON CONFLICT (name) DO NOTHING"), values)
