"""Copies of records: backups of whole ones, and what can be saved of damaged ones."""

import os
import sqlite3
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from askwise.errors import Damaged, NotFound, Refused
from askwise.storage.chain import Row, link, origin, readable
from askwise.storage.database import Database
from askwise.storage.mirror import Mirror
from askwise.storage.record import OF_STUDY, Draft, Event, Record, check_name
from askwise.storage.sql import SqlRecord, names, open_record

_SKIPPED = 10_000  # rows that are tried after one that cannot be read


@dataclass(frozen=True)
class Saved:
    """What was saved of a study."""

    name: str
    events: int
    lost: int
    """Events that are missing or not as they were written, as far as is known."""


def backup(record: Record, path: str | os.PathLike[str]) -> None:
    """Copy a record to a new SQLite file, and read the copy to the end; of a SQLite file, all studies."""
    with _new_file(path) as part:
        if isinstance(record, SqlRecord) and record.file is not None:
            with closing(sqlite3.connect(record.file)) as source, closing(sqlite3.connect(part)) as target:
                source.backup(target)
        else:
            drafts = [Draft(event.kind, event.question, event.body, event.at) for event in record.events()]
            with closing(open_record(str(part), record.name, record.settings)) as copy:
                copy.append_all(drafts, expected=0)
        for name in names(str(part)):
            with closing(open_record(str(part), name, None)) as copy:
                copy.events()


def salvage(file: str | os.PathLike[str], path: str | os.PathLike[str]) -> list[Saved]:
    """Write what is intact of a damaged SQLite file to a new one; the damaged file is only read.

    Events are saved that are proven by their hashes to be as they were written, and whose question was saved.
    After a gap, questions are numbered anew and count as recorded, not as chosen by the study: what they were
    chosen from is lost.
    """
    source = Path(file).expanduser().absolute()
    if not source.is_file():
        raise NotFound("file", "exist", repr(str(file)), "Give the damaged file.")
    mirror = Mirror(source)
    with closing(sqlite3.connect(mirror.copy)) as connection:
        connection.text_factory = lambda text: text.decode("utf-8", "replace")
        events = defaultdict[Any, list[Row]](list)
        for study, *row in _rows(connection, "events"):
            events[study].append(
                tuple(row) if len(row) > 5 else (*row, None)
            )  # None: before there were hashes
        studies = [row for row in _rows(connection, "studies") if _is_study(row)]
    if not studies:
        raise Damaged("file", "have a study that can be read", f"none in {source}", "Restore a backup.")
    with _new_file(path) as part:
        saved = []
        for study, name, settings, *_ in studies:
            drafts, lost = _intact(events[study], origin(name, settings))
            with closing(open_record(str(part), name, _settings(settings))) as copy:
                copy.append_all(drafts, expected=0)
            saved.append(Saved(name, len(drafts), lost))
    return saved


@contextmanager
def _new_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A file that gets its name only when it is complete, if nobody else took that meanwhile."""
    target = Path(path).expanduser().absolute()
    taken = Refused("file", "be new", f"{target}, which exists", "Choose another name.")
    if target.exists():
        raise taken
    Database(str(target)).close()  # refuses a folder that does not exist
    with tempfile.TemporaryDirectory(prefix=f"{target.name}.", dir=target.parent) as folder:
        part = Path(folder, target.name)
        try:
            yield part
        except sqlite3.OperationalError as error:
            raise Refused(
                "file", "be writable", f"{target}: {error}", "Free some room, and try again."
            ) from None
        with part.open("rb+") as written:
            os.fsync(written.fileno())
        try:
            target.touch(exist_ok=False)
        except FileExistsError:
            raise taken from None
        part.replace(target)


def _rows(connection: sqlite3.Connection, table: str) -> Iterator[Sequence[Any]]:
    """The rows of a table that can be read, each once, in whatever order its pages have them."""
    last, skipped, seen = -1, 0, set[int]()
    while skipped < _SKIPPED:
        query = f"SELECT rowid, * FROM {table} NOT INDEXED WHERE rowid > ? ORDER BY rowid"
        try:
            for number, *row in connection.execute(query, (last,)):
                if number in seen:  # a page that is in the place of another leads back to earlier rows
                    continue
                seen.add(number)
                last, skipped = max(last, number), 0
                yield row
            return
        except (sqlite3.Error, OverflowError, UnicodeDecodeError):
            last, skipped = last + 1, skipped + 1


def _settings(text: str) -> dict[str, Any]:
    read = readable((1, "", 0, 0.0, text, None))
    return {} if read is None else read[0].body


def _is_study(row: Sequence[Any]) -> bool:
    """Whether name and settings of a study are as they were written, or can at least be read."""
    _, name, settings, _, *hashes = row
    try:
        check_name(name)
    except Refused:
        return False
    return bool(_settings(settings)) and hashes in ([], [origin(name, settings)])


def _intact(rows: Sequence[Row], start: str) -> tuple[list[Draft], int]:
    """Events that are as they were written, renumbered if some are missing, and the number of those lost."""
    hashes = {0: start, **{row[0]: row[-1] for row in rows}}
    proven: dict[int, Event] = {}
    for row in rows:
        read = readable(row)
        if read is None:
            continue
        event, text = read
        if row[-1] is None or row[-1] == link(str(hashes.get(event.number - 1)), event, text):
            proven[event.number] = event
    questions: dict[int, int] = {}
    drafts: list[Draft] = []
    for number, event in sorted(proven.items()):
        body = event.body
        if event.kind == "asked":
            questions[event.question] = len(questions)
            if number != len(drafts) + 1 and body.get("seen") is not None:
                body = body | {"seen": None}
        if event.kind in OF_STUDY:
            drafts.append(Draft(event.kind, event.question, body, event.at))
        elif event.question in questions:
            drafts.append(Draft(event.kind, questions[event.question], body, event.at))
    known = [row[0] for row in rows if isinstance(row[0], int)]
    return drafts, max([*known, *proven, 0]) - len(drafts)
