"""A storage: each study a file of JSON lines, ``jsonl:///folder``."""

import fcntl
import json
import os
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, unquote

from askwise import Refused
from askwise.storage import (
    ONCE,
    STORAGES,
    Event,
    Finding,
    StudyNotFound,
    check_event,
    check_expected,
    json_text,
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


class JsonLinesRecord:
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

    def append(self, kind, question, body, *, expected, at=None):
        """Write an event; once this returns, it is on the disk."""
        self._check_open()
        at = float(time.time() if at is None else at)
        check_event(kind, question, at)
        text = json_text("body", body)
        with self._threads, _locked(self._file) as lines:
            before = _events(lines)
            check_expected(expected, len(before))
            for group in ONCE:
                if kind in group and any(e.kind in group and e.question == question for e in before):
                    raise repeated(kind, question)
            event = Event(expected + 1, kind, question, at, json.loads(text))
            _write(lines, json.dumps([event.number, kind, question, at, event.body]))
        return event

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
