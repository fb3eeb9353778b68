"""Records in SQLite and PostgreSQL."""

import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from askwise.storage import schema
from askwise.storage.database import Database
from askwise.storage.migrations import HEAD
from askwise.storage.record import CheckedRecord, Event, Finding, StudyNotFound, json_text

_LITTLE = 100 * 2**20  # bytes of free disk
_STUDIES = sa.table("studies", *map(sa.column, ("id", "name", "settings", "created")))
_EVENTS = sa.table("events", *map(sa.column, ("study_id", "number", "kind", "question", "at", "body")))


class _NotWritten(Exception):
    """The event does not follow the last one, or repeats one of its kind."""


class SqlRecord(CheckedRecord):
    """A record in a database; a study may be open in several places."""

    def __init__(self, database: Database, study: int, name: str, settings: dict[str, Any]) -> None:
        """Made by :func:`open_record`."""
        self.name, self.settings = name, settings
        self._database, self._study = database, study

    def events(self, after: int = 0) -> list[Event]:
        """The events after that number, in order."""
        study, number, *others = _EVENTS.c
        query = sa.select(number, *others).where(study == self._study, number > after).order_by(number)
        rows = self._database.read(lambda connection: connection.execute(query).all())
        return [Event(n, kind, q, at, json.loads(text)) for n, kind, q, at, text in rows]

    def close(self) -> None:
        """Close the connection."""
        self._database.close()

    def _write(self, event: Event, body: str) -> None:
        try:
            self._database.write(lambda connection: self._insert(connection, event, body))
            return
        except _NotWritten:
            last = self._database.read(self._last)
        self._refuse(event, last)

    def _insert(self, connection: sa.Connection, event: Event, body: str) -> None:
        """Write an event if it follows the last one, in a single statement."""
        e = _EVENTS.c
        last = sa.select(sa.func.coalesce(sa.func.max(e.number), 0)).where(e.study_id == self._study)
        values = (self._study, event.number, event.kind, event.question, event.at, body)
        row = sa.select(*map(sa.literal, values)).where(last.scalar_subquery() == event.number - 1)
        insert = sa.insert(_EVENTS).from_select(list(e), row).execution_options(preserve_rowcount=True)
        try:
            if connection.execute(insert).rowcount != 1:
                raise _NotWritten
        except IntegrityError as error:  # the number is taken, or the question has such an event
            raise _NotWritten from error

    def _last(self, connection: sa.Connection) -> int:
        """Number of the last event."""
        study = sa.select(_STUDIES.c.id).where(_STUDIES.c.id == self._study)
        if connection.scalar(study) is None:
            what, expected = f"study {self.name!r}", f"stay in {self._database.place}"
            raise StudyNotFound(what, expected, "it deleted", "Restore a backup.")
        last = sa.select(sa.func.max(_EVENTS.c.number)).where(_EVENTS.c.study_id == self._study)
        return connection.scalar(last) or 0


def open_record(storage: str, name: str, settings: dict[str, Any] | None) -> SqlRecord:
    """The record of the study of this name; created if it is missing and settings are given."""
    text = None if settings is None else json_text("settings", settings)
    database = Database(storage)
    try:
        found = None
        if schema.ready(database, create=text is not None):
            found = database.read(lambda connection: _study(connection, name, None))
            if found is None and text is not None:
                found = database.write(lambda connection: _study(connection, name, text))
        if found is None:
            there = ", ".join(map(repr, names(storage))) or "none"
            expected, advice = f"be a study in {database.place}", f"Studies there: {there}."
            raise StudyNotFound("name", expected, repr(name), advice)
        return SqlRecord(database, found[0], name, json.loads(found[1]))
    except BaseException:
        database.close()
        raise


def names(storage: str) -> list[str]:
    """The names of the studies there, sorted."""
    with closing(Database(storage)) as database:
        if not schema.ready(database, create=False):
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
        studies = ", ".join(map(repr, names(storage))) or "no study"
        yield Finding("storage", True, f"{place}, revision {HEAD}, with {studies}")
        if file is not None and not os.access(file.parent, os.W_OK):
            advice = "Allow it, or move the record."
            yield Finding("write permission", False, f"none for {file.parent}.", advice)
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
        said = database.read(lambda connection: connection.exec_driver_sql("PRAGMA integrity_check").scalar())
        if said == "ok":
            yield Finding("integrity", True, "the database file is intact")
        else:
            yield Finding("integrity", False, f"{said}.", "Restore the record from a backup.")


def _study(connection: sa.Connection, name: str, settings: str | None) -> tuple[int, str] | None:
    """The id and settings of a study; created first if there are settings and nobody else was faster."""
    if settings is not None:
        columns = "INSERT INTO studies (name, settings, created) VALUES (:name, :settings, :created)"
        create = sa.text(f"{columns} ON CONFLICT (name) DO NOTHING")
        connection.execute(create, {"name": name, "settings": settings, "created": time.time()})
    s = _STUDIES.c
    row = connection.execute(sa.select(s.id, s.settings).where(s.name == name)).first()
    return None if row is None else (row[0], row[1])
