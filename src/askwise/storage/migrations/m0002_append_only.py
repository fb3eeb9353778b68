"""Events are neither changed nor deleted: the database itself refuses."""

from alembic import op

revision = "0002"
down_revision = "0001"

_REFUSAL = "events must stay as they were written"


def upgrade() -> None:
    """Make the triggers."""
    if op.get_bind().dialect.name != "sqlite":
        op.execute(
            "CREATE FUNCTION events_refuse_change() RETURNS trigger LANGUAGE plpgsql "
            f"AS $$ BEGIN RAISE EXCEPTION '{_REFUSAL}'; END $$"
        )
    guard()


def guard() -> None:
    """From now on, refuse changes."""
    if op.get_bind().dialect.name == "sqlite":
        for change in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER events_no_{change.lower()} BEFORE {change} ON events "
                f"BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END"
            )
        return
    op.execute(
        "CREATE TRIGGER events_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON events "
        "FOR EACH STATEMENT EXECUTE FUNCTION events_refuse_change()"
    )


def unguard() -> None:
    """Allow changes, until :func:`guard` is called in the same transaction."""
    if op.get_bind().dialect.name == "sqlite":
        for change in ("update", "delete"):
            op.execute(f"DROP TRIGGER events_no_{change}")
        return
    op.execute("DROP TRIGGER events_no_change ON events")
