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
from askwise.storage.record import (
    Event,
    Finding,
    StudyNotFound,
    check_event,
    check_expected,
    json_text,
    repeated,
)

_LITTLE = 100 * 2**20  # bytes of free disk
_STUDIES = sa.table("studies", *map(sa.column, ("id", "name", "settings", "created")))
_EVENTS = sa.table("events", *map(sa.column, ("study_id", "number", "kind", "question", "at", "body")))


class _NotWritten(Exception):
    """The event does not follow the last one, or repeats one of its kind."""


class SqlRecord:
    """A record in a database; a study may be open in several places."""

    def __init__(self, database: Database, study: int, name: str, settings: dict[str, Any]) -> None:
        """Made by :func:`open_record`."""
        self.name = name
        self.settings = settings
        self._database = database
        self._study = study

    def events(self, after: int = 0) -> list[Event]:
        """The events after that number, in order."""
        e = _EVENTS.c
        query = (
            sa.select(e.number, e.kind, e.question, e.at, e.body)
            .where(e.study_id == self._study, e.number > after)
            .order_by(e.number)
        )
        rows = self._database.read(lambda connection: connection.execute(query).all())
        return [Event(n, kind, q, at, json.loads(text)) for n, kind, q, at, text in rows]

    def append(
        self,
        kind: str,
        question: int,
        body: dict[str, Any],
        *,
        expected: int,
        at: float | int | None = None,
    ) -> Event:
        """Write an event; see :class:`~askwise.storage.Record`."""
        at = float(time.time() if at is None else at) + 0.0  # SQLite does not keep minus zero
        check_event(kind, question, at)
        text = json_text("body", body)
        event = Event(expected + 1, kind, question, at, json.loads(text))
        try:
            self._database.write(lambda connection: self._write(connection, event, text))
        except _NotWritten:
            check_expected(expected, self._database.read(self._last))
            raise repeated(kind, question) from None
        return event

    def close(self) -> None:
        """Close the connection."""
        self._database.close()

    def _write(self, connection: sa.Connection, event: Event, body: str) -> None:
        """Write an event if it follows the last one, in a single statement."""
        e = _EVENTS.c
        last = sa.select(sa.func.coalesce(sa.func.max(e.number), 0)).where(e.study_id == self._study)
        values = (self._study, event.number, event.kind, event.question, event.at, body)
        row = sa.select(*map(sa.literal, values)).where(last.scalar_subquery() == event.number - 1)
        try:
            insert = sa.insert(_EVENTS).from_select(list(e), row).execution_options(preserve_rowcount=True)
            written = connection.execute(insert).rowcount
        except IntegrityError as error:  # the number is taken, or the question has such an event
            raise _NotWritten from error
        if written != 1:
            raise _NotWritten

    def _last(self, connection: sa.Connection) -> int:
        """Number of the last event."""
        study = sa.select(_STUDIES.c.id).where(_STUDIES.c.id == self._study)
        if connection.scalar(study) is None:
            raise StudyNotFound(
                f"study {self.name!r}", f"stay in {self._database.place}", "it deleted", "Restore a backup."
            )
        last = sa.select(sa.func.max(_EVENTS.c.number)).where(_EVENTS.c.study_id == self._study)
        return connection.scalar(last) or 0


def open_record(storage: str, name: str, settings: dict[str, Any] | None) -> SqlRecord:
    """The record of the study of this name; created if it is missing and settings are given."""
    text = None if settings is None else json_text("settings", settings)
    database = Database(storage)
    try:
        found = None
        if schema.ready(database, create=text is not None):
            found = database.read(lambda connection: _study(connection, name))
            if found is None and text is not None:
                found = database.write(lambda connection: _created(connection, name, text))
        if found is None:
            raise _not_found(database, name)
        return SqlRecord(database, found[0], name, json.loads(found[1]))
    except BaseException:
        database.close()
        raise


def names(storage: str) -> list[str]:
    """The names of the studies there, sorted."""
    with closing(Database(storage)) as database:
        return _names(database)


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
            yield Finding(
                "write permission", False, f"none for {file.parent}.", "Allow it, or move the record."
            )
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


def _study(connection: sa.Connection, name: str) -> tuple[int, str] | None:
    s = _STUDIES.c
    row = connection.execute(sa.select(s.id, s.settings).where(s.name == name)).first()
    return None if row is None else (row[0], row[1])


def _created(connection: sa.Connection, name: str, settings: str) -> tuple[int, str] | None:
    connection.execute(
        sa.text(
            "INSERT INTO studies (name, settings, created) VALUES (:name, :settings, :created) "
            "ON CONFLICT (name) DO NOTHING"  # somebody else was faster
        ),
        {"name": name, "settings": settings, "created": time.time()},
    )
    return _study(connection, name)


def _names(database: Database) -> list[str]:
    if not schema.ready(database, create=False):
        return []
    return sorted(database.read(lambda connection: connection.scalars(sa.select(_STUDIES.c.name)).all()))


def _not_found(database: Database, name: str) -> StudyNotFound:
    there = ", ".join(map(repr, _names(database))) or "none"
    return StudyNotFound("name", f"be a study in {database.place}", repr(name), f"Studies there: {there}.")
