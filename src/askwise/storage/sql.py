"""Records in SQLite and PostgreSQL."""

import json
import time
from contextlib import closing
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from askwise.storage import schema
from askwise.storage.database import Database
from askwise.storage.record import (
    Event,
    StudyNotFound,
    check_event,
    check_expected,
    json_text,
    repeated,
)

__all__ = ["SqlRecord", "names", "open_record"]

_STUDIES = sa.table("studies", *map(sa.column, ("id", "name", "settings", "created")))
_EVENTS = sa.table("events", *map(sa.column, ("study_id", "number", "kind", "question", "at", "body")))


class SqlRecord:
    """A record in a database; several of the same study may be open anywhere."""

    def __init__(self, database: Database, study: int, name: str, settings: dict[str, Any]) -> None:
        """Take a study that is there; made by :func:`open_record`."""
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
        at = float(time.time() if at is None else at)
        check_event(kind, question, at)
        text = json_text("body", body)
        event = Event(expected + 1, kind, question, at, json.loads(text))
        self._database.write(lambda connection: self._write(connection, event, text))
        return event

    def close(self) -> None:
        """Close the connection."""
        self._database.close()

    def _write(self, connection: sa.Connection, event: Event, body: str) -> None:
        check_expected(event.number - 1, self._last(connection))
        row = {"study_id": self._study, "number": event.number, "kind": event.kind, "body": body}
        try:
            connection.execute(sa.insert(_EVENTS).values(question=event.question, at=event.at, **row))
        except IntegrityError as error:
            raise repeated(event.kind, event.question) from error

    def _last(self, connection: sa.Connection) -> int:
        """Number of the last event, which stays the last until the transaction ends."""
        study = sa.select(_STUDIES.c.id).where(_STUDIES.c.id == self._study)
        if connection.scalar(study.with_for_update()) is None:  # SQLite, of one writer, has no FOR UPDATE
            raise StudyNotFound(
                f"study {self.name!r} must stay in {self._database.place}; got it deleted. Restore a backup."
            )
        last = sa.select(sa.func.max(_EVENTS.c.number)).where(_EVENTS.c.study_id == self._study)
        return connection.scalar(last) or 0


def open_record(storage: str, name: str, settings: dict[str, Any] | None) -> SqlRecord:
    """The record of the study of that name; created if it is not there and settings are given."""
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


def _study(connection: sa.Connection, name: str) -> tuple[int, str] | None:
    s = _STUDIES.c
    row = connection.execute(sa.select(s.id, s.settings).where(s.name == name)).first()
    return None if row is None else (row[0], row[1])


def _created(connection: sa.Connection, name: str, settings: str) -> tuple[int, str] | None:
    connection.execute(
        sa.text(
            "INSERT INTO studies (name, settings, created) VALUES (:name, :settings, :created) "
            "ON CONFLICT (name) DO NOTHING"  # somebody else's, a moment ago
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
    return StudyNotFound(f"name must be a study in {database.place}; got {name!r}. Studies there: {there}.")
