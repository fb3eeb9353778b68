"""The append-only record of a study: in memory, in SQLite, in PostgreSQL, or where a plug-in keeps it.

>>> record = open_record(None, "coffee", settings={"seed": 1})
>>> record.append("asked", 0, {"points": [[0.25]]}, expected=0).number
1
>>> [event.kind for event in record.events()]
['asked']
"""

import os
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any, cast

from askwise import plugins
from askwise.errors import Refused, WrongType, extra
from askwise.storage.overwriting import overwritable as overwritable
from askwise.storage.overwriting import overwrite as overwrite
from askwise.storage.record import KINDS as KINDS
from askwise.storage.record import OF_STUDY as OF_STUDY
from askwise.storage.record import CheckedRecord as CheckedRecord
from askwise.storage.record import Draft as Draft
from askwise.storage.record import Event as Event
from askwise.storage.record import Finding as Finding
from askwise.storage.record import MemoryRecord, check_name
from askwise.storage.record import Record as Record
from askwise.storage.record import Storage as Storage
from askwise.storage.record import StudyNotFound as StudyNotFound
from askwise.storage.record import check_event as check_event
from askwise.storage.record import check_expected as check_expected
from askwise.storage.record import json_text as json_text
from askwise.storage.record import once_of as once_of
from askwise.storage.record import repeated as repeated

STORAGES: dict[str, Storage] = {}
"""Storages of plug-ins, by the scheme of their addresses: ``{"redis": ...}`` for ``redis://host``."""
_BUILT_IN = ("sqlite", "postgresql", "postgres")
_SCHEME = re.compile(r"([A-Za-z][\w+.-]+)(:/|//)")
_SERVER = re.compile(r"([^@/]*(:[^@]*)?@)?[^@/?%:]*(\[[^]@]*\])?(:\d+)?([/?][^@]*)?")
_PATH = re.compile(r"[/.~\\]|[A-Za-z]:[/\\]")
_SECRET = re.compile(r":[^/]*@|(password|passwd|pwd)\s*=", re.IGNORECASE)


def open_record(storage: str | None, name: str, settings: dict[str, Any] | None) -> Record:
    """The record of a study; created with these settings if it does not exist.

    ``storage``: ``None`` for memory, a file (``"study.db"``, ``"sqlite:///study.db"``),
    ``"postgresql://user:password@host/database"`` or an address that a plug-in knows.  With ``settings=None``
    the study must exist.
    """
    check_name(name)
    if not isinstance(storage, str | None):
        raise WrongType("storage", "be a file or an address", repr(storage), "Write 'study.db', say.")
    if storage is not None:
        return _storage(storage).open_record(storage, name, settings)
    if settings is None:
        raise StudyNotFound("name", "be a study in memory", repr(name), "Give settings to create it.")
    return MemoryRecord(name, settings)


def check_address(storage: str) -> None:
    """Refuse an address that is not understood, without showing it: it may have a password in it.

    Nor is it taken for the name of a file.  An address is whatever has ``://``, begins with a word and ``:/``
    or ``//``, or has an ``@`` unless it begins as a path does (``/``, ``./``, ``~``); a file with an ``@`` in
    its name is written as ``./me@home.db`` or ``sqlite:///me@home.db``.
    """
    scheme, colon, rest = storage.partition("://")
    kind = scheme.partition("+")[0]  # of postgresql+psycopg, say
    if not colon:
        is_path = _PATH.match(storage) or not (_SCHEME.match(storage) or "@" in storage)
        known = bool(is_path) and not _SECRET.search(storage)
    elif kind == "sqlite":
        known = not _SECRET.search(rest)
    elif kind in _BUILT_IN:
        known = bool(_SERVER.fullmatch(rest))
    else:
        plugins.load("storages")
        known = scheme in STORAGES
    if not known:
        found = _SCHEME.match(storage)
        got = f"an address of kind {found[1]!r}" if found else "something else, perhaps with a password"
        expected = "be a file (study.db, sqlite:///study.db) or postgresql://user@host/database"
        raise Refused("storage", expected, got, "Write it like one of these, an @ in a password as %40.")


def names(storage: str) -> list[str]:
    """The names of the studies there, sorted; none if there is no such file yet."""
    return _storage(storage).names(storage)


def shown(storage: str) -> str:
    """The address without a password, to be shown to anyone."""
    return _storage(storage).shown(storage)


def findings(storage: str) -> Iterator[Finding]:
    """Whether the storage works, one finding after the other."""
    return _storage(storage).findings(storage)


def backup(record: Record, path: str | os.PathLike[str]) -> None:
    """Copy a record, wherever it is kept, to a new SQLite file, and check the copy."""
    with extra("storage", "a backup"):
        from askwise.storage.copies import backup as copy
    copy(record, path)


def _storage(address: str) -> Storage:
    check_address(address)
    scheme, colon, _ = address.partition("://")
    if colon and scheme not in _BUILT_IN:
        plugins.load("storages")
        if scheme in STORAGES:
            return STORAGES[scheme]
    with extra("storage", "storage"):  # not at the top: a study in memory works without these packages
        return cast(Storage, import_module("askwise.storage.sql"))
