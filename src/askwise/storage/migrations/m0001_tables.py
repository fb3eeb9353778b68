"""Studies and their events; a question is asked once and answered once."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "studies",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        sa.Column("settings", sa.Text, nullable=False),
        sa.Column("created", sa.Double, nullable=False),
    )
    op.create_table(
        "events",
        sa.Column("study_id", sa.Integer, sa.ForeignKey("studies.id"), primary_key=True, autoincrement=False),
        sa.Column(
            "number", sa.Integer, sa.CheckConstraint("number > 0"), primary_key=True, autoincrement=False
        ),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("question", sa.Integer, sa.CheckConstraint("question >= 0"), nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    _one_a_question("events_asked_once", "kind = 'asked'")
    _one_a_question("events_answered_once", "kind IN ('answered', 'skipped')")


def _one_a_question(name: str, where: str) -> None:
    op.create_index(
        name,
        "events",
        ["study_id", "question"],
        unique=True,
        sqlite_where=sa.text(where),
        postgresql_where=sa.text(where),
    )
