"""Whose tables are in a database, of what revision, and how they come to the present one."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy as sa

from askwise.storage.database import Database
from askwise.storage.migrations import HEAD, REVISIONS, VERSION_TABLE, upgrade

__all__ = ["ready"]

_TABLES = ("studies", "events")
_ADVISORY_LOCK = 0x61736B77697365  # "askwise"


def ready(database: Database, *, create: bool) -> bool:
    """Whether the tables are there and of the present revision, which they are after ``create``.

    Older tables are copied and upgraded; newer ones, and what is not ours, are refused and left alone.
    """
    if not (create or database.exists()):
        return False
    found = database.read(_revision)
    if found is None and not create:
        return False
    if database.sqlite:
        database.use_wal()
    if found != HEAD:
        database.write(lambda connection: _upgraded(database, connection))
    database.stays()
    return True


def _upgraded(database: Database, connection: sa.Connection) -> None:
    if not database.sqlite:
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_ADVISORY_LOCK)))
    found = _revision(connection)  # again, now that nobody else is about to change it
    if found == HEAD:
        return
    if found is not None and database.file is not None:
        _copy_file(database.file, found)
    elif found is not None:
        _copy_tables(connection, found)
    upgrade(connection)


def _revision(connection: sa.Connection) -> str | None:
    """The revision of the tables, None where there are none at all."""
    tables = sorted(sa.inspect(connection).get_table_names())
    if VERSION_TABLE in tables:
        version = sa.table(VERSION_TABLE, sa.column("version_num"))
        found = [str(number) for number in connection.scalars(sa.select(version.c.version_num))]
        if len(found) == 1 and found[0] in REVISIONS:
            return found[0]
        raise ValueError(
            f"storage must have revision {HEAD} or an older one; got {', '.join(found) or 'none'}, which "
            "this askwise does not know. Update askwise."
        )
    if tables:
        raise ValueError(
            f"storage must be empty or made by askwise; got other tables ({', '.join(tables[:5])}). "
            "Choose another file, database or schema."
        )
    if connection.dialect.name != "sqlite" and connection.scalar(sa.func.current_schema()) is None:
        raise ValueError(
            "storage must have a schema that exists; got none on the search path. Create it first."
        )
    return None


def _copy_file(file: Path, found: str) -> None:
    """A second connection reads what was there before our transaction; a half-made copy has no final name."""
    part = file.with_name(f"{file.name}.backup.part")
    for rest in (part, part.with_name(f"{part.name}-journal")):  # of one that was interrupted
        rest.unlink(missing_ok=True)
    with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(part)) as target:
        source.backup(target)
    part.replace(file.with_name(f"{file.name}.backup-{found}-{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}"))


def _copy_tables(connection: sa.Connection, found: str) -> None:
    there = sa.inspect(connection).get_table_names()
    for table in _TABLES:
        copy = f"{table}_before_{found}"
        if copy in there:
            raise ValueError(
                f"storage must have no table {copy} before an upgrade; got one. Rename it, or drop it."
            )
        connection.exec_driver_sql(f"CREATE TABLE {copy} AS TABLE {table}")
