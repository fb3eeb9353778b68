"""The schema, one change a file; ``m0001_tables.py`` is revision 0001, and so on."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa

__all__ = ["HEAD", "REVISIONS", "VERSION_TABLE", "upgrade"]

_FOLDER = Path(__file__).parent
REVISIONS = tuple(sorted(file.stem[1:5] for file in _FOLDER.glob("m[0-9]*.py")))
HEAD = REVISIONS[-1]
VERSION_TABLE = "askwise_version"  # not Alembic's default: another program may keep its own table beside ours

_ONE_AT_A_TIME = threading.Lock()  # Alembic's ``op`` is global to the process


def upgrade(connection: sa.Connection, to: str = HEAD) -> None:
    """Upgrade the schema within the current transaction."""
    from alembic.operations import Operations
    from alembic.runtime.migration import MigrationContext, MigrationStep
    from alembic.script import ScriptDirectory

    scripts = ScriptDirectory(str(_FOLDER), version_locations=[str(_FOLDER)])

    def steps(now: Sequence[str], _: MigrationContext) -> list[Any]:
        missing = list(scripts.iterate_revisions(to, tuple(now) or "base"))
        return [MigrationStep.upgrade_from_script(scripts.revision_map, step) for step in reversed(missing)]

    context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE, "fn": steps})
    with _ONE_AT_A_TIME, Operations.context(context):
        context.run_migrations()
