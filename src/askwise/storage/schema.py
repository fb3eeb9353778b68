"""The revision of a database's tables, and upgrades to the current one."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy as sa

from askwise.errors import Damaged, Refused
from askwise.storage.database import Database
from askwise.storage.migrations import HEAD, REVISIONS, VERSION_TABLE, upgrade

_TABLES = ("studies", "events")
_ADVISORY_LOCK = 0x61736B77697365  # "askwise"


def ready(database: Database, create: Callable[[sa.Connection], object] | None = None) -> bool:
    """Whether the tables exist in the current revision.

    Older tables are backed up and upgraded; newer ones, and those of other programs, are refused.  Where
    there are none, they are made together with their first study by ``create``: so tables without a study
    have lost it.
    """
    if create is None and not database.exists():
        return False
    found = database.read(_revision)
    if found is None and create is None:
        return False
    if found is None:
        database.check_writable()
        _check_never_used(database.file)
    if found != HEAD:
        database.write(lambda connection: _upgraded(database, connection, create))
    if database.sqlite:
        database.use_wal()
    database.check_intact()
    database.pin()
    return True


def _check_never_used(file: Path | None) -> None:
    """Refuse a file that was once a database with a log, all of which is gone."""
    if file is not None and file.exists():
        with file.open("rb") as opened:
            if opened.read(20)[18:] == b"\x02\x02":
                raise lost(str(file))


def lost(place: str) -> Damaged:
    """The refusal of a storage whose studies are gone."""
    advice = "Restore a backup (was it copied without its -wal?), or choose another place."
    return Damaged("storage", "hold its studies", f"{place} without any", advice)


def _upgraded(
    database: Database, connection: sa.Connection, create: Callable[[sa.Connection], object] | None
) -> None:
    if not database.sqlite:
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_ADVISORY_LOCK)))
    found = _revision(connection)  # again, now that nobody else can change it
    if found == HEAD:
        return
    if database.read_only:  # what is upgraded is a copy
        pass
    elif found is not None and database.file is not None:
        _copy_file(database.file, found)
    elif found is not None:
        _copy_tables(connection, found)
    upgrade(connection)
    if found is None and create is not None:
        create(connection)


def _revision(connection: sa.Connection) -> str | None:
    """The revision of the tables; None if there are none at all."""
    tables = sorted(sa.inspect(connection).get_table_names())
    if VERSION_TABLE in tables:
        version = sa.table(VERSION_TABLE, sa.column("version_num"))
        found = [str(number) for number in connection.scalars(sa.select(version.c.version_num))]
        if len(found) == 1 and found[0] in REVISIONS:
            return found[0]
        got = f"{', '.join(found) or 'none'}, which this askwise does not know"
        raise Refused("storage", f"have revision {HEAD} or an older one", got, "Update askwise.")
    if tables:
        got, advice = f"other tables ({', '.join(tables[:5])})", "Choose another file, database or schema."
        raise Refused("storage", "be empty or made by askwise", got, advice)
    if connection.dialect.name != "sqlite" and connection.scalar(sa.func.current_schema()) is None:
        raise Refused("storage", "have a schema that exists", "none on the search path", "Create it first.")
    return None


def _copy_file(file: Path, found: str) -> None:
    """Back up the file as it was before our transaction; an unfinished copy has no final name."""
    part = file.with_name(f"{file.name}.backup.part")
    for rest in (part, part.with_name(f"{part.name}-journal")):  # left by an interrupted one
        rest.unlink(missing_ok=True)
    with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(part)) as target:
        source.backup(target)
    part.replace(file.with_name(f"{file.name}.backup-{found}-{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}"))


def _copy_tables(connection: sa.Connection, found: str) -> None:
    there = sa.inspect(connection).get_table_names()
    for table in _TABLES:
        copy = f"{table}_before_{found}"
        if copy in there:
            expected = f"have no table {copy} before an upgrade"
            raise Refused("storage", expected, "one", "Rename it, or drop it.")
        connection.exec_driver_sql(f"CREATE TABLE {copy} AS TABLE {table}")
