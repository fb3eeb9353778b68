"""A study as text: CSV for tables, JSON for everything."""

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from askwise.errors import Refused
from askwise.study.answer_tables import AFTER, BEFORE
from askwise.study.answers import labels
from askwise.study.cells import defused
from askwise.study.study import Study

if TYPE_CHECKING:
    from askwise.study.level_sets import Classified
else:  # which needs torch, as the record does not
    Classified = Any


class _Writer:
    """CSV with quotes where they are needed; Python 3.11 forgets carriage returns."""

    def __init__(self, out: io.StringIO) -> None:
        self._usual = csv.writer(out, lineterminator="\n")
        self._quoted = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL)

    def writerow(self, cells: Iterable[object]) -> None:
        row = list(cells)
        (self._quoted if any("\r" in str(cell) for cell in row) else self._usual).writerow(row)


def csv_text(study: Study) -> str:
    """A row for each option of each question, in the order in which they were shown."""
    taken = [name for name in study.space.parameters if name in BEFORE + AFTER]
    if taken:
        expected = "not have the names of columns of the table"
        raise Refused("parameters", expected, ", ".join(taken), "Use --format json.")
    out = io.StringIO(newline="")
    writer = _Writer(out)
    writer.writerow(map(defused, [*BEFORE, *study.space.parameters, *AFTER]))
    for entry in study.history():
        asked = datetime.fromtimestamp(entry.asked, UTC).isoformat(timespec="milliseconds")
        names, given = labels(len(entry.options)), entry.answer if entry.status == "answered" else None
        outcomes = [""] * len(names) if given is None else given.outcomes(names)
        for label, option, outcome in zip(names, entry.options, outcomes, strict=True):
            values = [option[name] for name in study.space.parameters]
            written = [str(value).lower() if isinstance(value, bool) else str(value) for value in values]
            last = [entry.status, outcome, entry.participant, entry.seconds, asked]
            writer.writerow(map(defused, [entry.id, label, *written, *last]))
    return out.getvalue()


def level_csv(settings: Sequence[Classified]) -> str:
    """A row for each setting: its values, how often it is expected to work, and its side of the level."""
    out = io.StringIO(newline="")
    writer = _Writer(out)
    columns = ("rate", "above_level", "side")
    names = list(settings[0].params)
    if taken := [name for name in names if name in columns]:
        expected = "not have the names of columns of the table"
        raise Refused("parameters", expected, ", ".join(taken), "Use --json.")
    writer.writerow(map(defused, [*names, *columns]))
    for one in settings:
        values = [
            str(value).lower() if isinstance(value, bool) else str(value) for value in one.params.values()
        ]
        last = [f"{one.rate:.6g}", f"{one.above_level:.6g}", one.side]
        writer.writerow(map(defused, [*values, *last]))
    return out.getvalue()


def json_text(study: Study, question: str) -> str:
    """The whole record: settings, all questions with their status and answers, and all events.

    ``question``: what people are asked, in words.
    """
    history = study.history()
    answers = [{"answer": entry.answer and entry.answer.to_json()} for entry in history]
    document = {
        "askwise": version("askwise"),
        "name": study.name,
        "question": question,
        "settings": study.plan.to_dict(),
        "questions": [asdict(entry) | answer for entry, answer in zip(history, answers, strict=True)],
        "events": [asdict(event) for event in study.events()],
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
