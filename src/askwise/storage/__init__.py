"""The append-only record of a study: in memory, in an SQLite file or in PostgreSQL.

>>> record = open_record(None, "coffee", settings={"seed": 1})
>>> record.append("asked", 0, {"points": [[0.25]]}, expected=0).number
1
>>> [event.kind for event in record.events()]
['asked']
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from askwise.storage.memory import MemoryRecord
from askwise.storage.record import KINDS as KINDS
from askwise.storage.record import Event as Event
from askwise.storage.record import Outrun as Outrun
from askwise.storage.record import Record as Record
from askwise.storage.record import StudyNotFound as StudyNotFound
from askwise.storage.record import check_name

__all__ = ["KINDS", "Event", "Outrun", "Record", "StudyNotFound", "names", "open_record"]


def open_record(storage: str | None, name: str, settings: dict[str, Any] | None) -> Record:
    """The record of a study; created with these settings if it is not there.

    ``storage``: ``None`` for memory, a file (``"study.db"``, ``"sqlite:///study.db"``) or
    ``"postgresql://user:password@host/database"``.  With ``settings=None`` the study must be there.
    """
    check_name(name)
    if not isinstance(storage, str | None):
        raise TypeError(f"storage must be a file or an address; got {storage!r}. Write 'study.db', say.")
    if storage is not None:
        with _packages():
            from askwise.storage import sql

            return sql.open_record(storage, name, settings)
    if settings is None:
        raise StudyNotFound(f"name must be a study in memory; got {name!r}. Give settings to create it.")
    return MemoryRecord(name, settings)


def names(storage: str) -> list[str]:
    """The names of the studies there, sorted; none if there is no such file yet."""
    with _packages():
        from askwise.storage import sql

        return sql.names(storage)


@contextmanager
def _packages() -> Iterator[None]:
    # imported only where they are needed: a study in memory works without them
    try:
        yield
    except ImportError as error:
        raise ImportError(
            f"storage must be None without the packages that keep studies; got: {error}. "
            "Run `pip install askwise[storage]`."
        ) from error
