"""A storage: each study a file of JSON lines, ``jsonl:///folder``."""

import fcntl
import json
import os
import threading
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, unquote

from askwise import Refused
from askwise.storage import (
    STORAGES,
    CheckedRecord,
    Event,
    Finding,
    StudyNotFound,
    check_expected,
    json_text,
    once_of,
    repeated,
)


class JsonLines:
    """The records of a folder."""

    def open_record(self, storage, name, settings):
        """The record of a study; created with these settings if it does not exist."""
        text = None if settings is None else json_text("settings", settings)
        file = _folder(storage) / f"{quote(name, safe='')}.jsonl"
        if not file.exists():
            if text is None:
                there = ", ".join(map(repr, self.names(storage))) or "none"
                raise StudyNotFound(
                    "name", f"be a study in {storage}", repr(name), f"Studies there: {there}."
                )
            with _locked(file) as lines:
                if not os.fstat(lines.fileno()).st_size:  # else somebody else was faster
                    _write(lines, text)
        return JsonLinesRecord(name, file)

    def names(self, storage):
        """The names of the studies there, sorted."""
        return sorted(unquote(file.stem) for file in _folder(storage).glob("*.jsonl"))

    def shown(self, storage):
        """The address, which has no password."""
        return storage

    def findings(self, storage):
        """Whether the folder may be written to."""
        folder = _folder(storage)
        yield Finding("storage", folder.is_dir(), f"{folder}", "" if folder.is_dir() else "Make it first.")


class JsonLinesRecord(CheckedRecord):
    """A file whose first line has the settings of the study, and every other an event."""

    def __init__(self, name, file):
        """Read the settings."""
        self.name, self._file, self._open, self._threads = name, file, True, threading.Lock()
        with _locked(file) as lines:
            self.settings = json.loads(lines.readline())

    def events(self, after=0):
        """The events after that number, in order."""
        self._check_open()
        with _locked(self._file) as lines:
            return _events(lines)[after:]

    def _write(self, written):
        """Write events; once this returns, they are on the disk."""
        self._check_open()
        with self._threads, _locked(self._file) as lines:
            before = _events(lines)
            check_expected(written[0][0].number - 1, len(before))
            once = set().union(*map(once_of, before))
            for event, _ in written:
                if once_of(event) & once:
                    raise repeated(event.kind, event.question)
                once |= once_of(event)
            rows = [[e.number, e.kind, e.question, e.at, e.body] for e, _ in written]
            _write(lines, "\n".join(map(json.dumps, rows)))

    def close(self):
        """Refuse everything from now on."""
        self._open = False

    def _check_open(self):
        if not self._open:
            raise Refused("record", "be open", "one that was closed", "Open the study again.")


def _folder(storage):
    folder = Path(storage.removeprefix("jsonl://"))
    if not folder.is_dir():
        raise Refused("storage", "be a folder that exists", folder, "Make it first.")
    return folder


@contextmanager
def _locked(file):
    """The file, for one process at a time."""
    with file.open("a+", encoding="utf-8", errors="surrogatepass", newline="\n") as lines:
        fcntl.flock(lines, fcntl.LOCK_EX)
        lines.seek(0)
        yield lines


def _events(lines):
    lines.seek(0)
    return [Event(*json.loads(line)) for line in lines.readlines()[1:]]


def _write(lines, text):
    lines.write(text + "\n")
    lines.flush()
    os.fsync(lines.fileno())


STORAGES["jsonl"] = JsonLines()
