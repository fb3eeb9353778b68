"""Each event has a hash of itself and of the one before."""

import sqlalchemy as sa
from alembic import op

from askwise.storage.chain import link, origin, readable
from askwise.storage.migrations.m0002_append_only import guard, unguard

revision = "0003"
down_revision = "0002"

_STUDIES = sa.table("studies", *map(sa.column, ("id", "name", "settings", "hash")))
_EVENTS = sa.table(
    "events", *map(sa.column, ("study_id", "number", "kind", "question", "at", "body", "hash"))
)


def upgrade() -> None:
    """Add the hashes of what is there."""
    for table in ("studies", "events"):
        op.add_column(table, sa.Column("hash", sa.Text, nullable=False, server_default=""))
    unguard()
    for study, *parts in op.get_bind().execute(sa.select(*list(_STUDIES.c)[:3])).all():
        _chain(study, origin(*parts))
    guard()


def _chain(study: int, previous: str) -> None:
    """Hash a study and its events; after one that cannot be read the chain stays broken."""
    connection, s, e = op.get_bind(), _STUDIES.c, _EVENTS.c
    connection.execute(sa.update(_STUDIES).where(s.id == study).values(hash=previous))
    query = sa.select(*list(e)[1:6]).where(e.study_id == study).order_by(e.number)
    for row in connection.execute(query).all():
        read = readable((*row, ""))
        if read is None:
            return
        previous = link(previous, *read)
        this = (e.study_id == study) & (e.number == row[0])
        connection.execute(sa.update(_EVENTS).where(this).values(hash=previous))
