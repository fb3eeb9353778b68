"""A study as text (CSV for tables, JSON for everything)."""

import csv
import io
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import Any

from askwise.cli.session import Session
from askwise.errors import Refused
from askwise.storage import open_record
from askwise.study import Answer, Study, labels
from askwise.study.answer_tables import AFTER, BEFORE, Imported, content_key
from askwise.study.cells import defused


def csv_text(study: Study) -> str:
    """A row for each option of each question, in the order in which they were shown."""
    taken = [name for name in study.space.parameters if name in BEFORE + AFTER]
    if taken:
        expected = "not have the names of columns of the table"
        raise Refused("parameters", expected, ", ".join(taken), "Use --format json.")
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
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


def json_text(session: Session) -> str:
    """The whole record: settings, all questions with their status and answers, and all events."""
    history, config, events = session.study.history(), session.config, []
    if session.recorded:
        with closing(open_record(config.storage, config.name, None)) as record:
            events = [asdict(event) for event in record.events()]
    answers = [{"answer": entry.answer and entry.answer.to_json()} for entry in history]
    document = {
        "askwise": version("askwise"),
        "name": config.name,
        "question": config.question,
        "settings": session.study.plan.to_dict(),
        "questions": [asdict(entry) | answer for entry, answer in zip(history, answers, strict=True)],
        "events": events,
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def check_new(file: Path, rows: Sequence[Imported], study: Study) -> None:
    """Refuse a file if the study already has all its answers, since they would count twice."""
    there = Counter(
        _identity(entry.options, entry.answer, entry.participant, study)
        for entry in study.history()
        if entry.status == "answered" and entry.answer is not None
    )
    given = Counter(_identity(row.options, row.answer, row.participant, study) for row in rows)
    if given and given <= there:
        got = f"{len(rows)} in {file}, all of which it already has"
        raise Refused("answers", "be new to the study", got, "Add --again if they were given a second time.")


def import_key(rows: Sequence[Imported], study: Study, again: bool) -> str:
    """By which these answers are recorded once; ``again``: a key that has not been used."""
    keys = (content_key(rows) + " again" * times for times in count())
    return next(key for key in keys if not (again and study.is_recorded(key)))


def _identity(
    options: Sequence[Mapping[str, Any]], answer: Answer, participant: str | None, study: Study
) -> str:
    """A key that is equal for equal settings in the same order with the same answer, up to rounding.

    Where people differ, the answers of two of them are not the same.
    """
    places = [[round(place, 9) for place in point] for point in study.model.points(options).tolist()]
    who = participant if study.plan.people.differ else None
    return json.dumps([places, answer.to_json(), who], sort_keys=True)
