"""A study as text: CSV for tables, JSON for everything."""

import csv
import io
import json
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from askwise.cli.replies import labels
from askwise.cli.session import Session
from askwise.state import Entry
from askwise.storage import open_record
from askwise.study import Study

__all__ = ["AFTER", "BEFORE", "csv_text", "json_text", "outcomes"]

BEFORE = ("question", "option")
AFTER = ("status", "outcome", "participant", "seconds", "asked")
"""Columns before and after those of the parameters."""


def csv_text(study: Study) -> str:
    """A row for each option of each question, in the order in which they were shown."""
    taken = [name for name in study.space.parameters if name in BEFORE + AFTER]
    if taken:
        raise ValueError(
            f"parameters must be named unlike columns of the table; got {', '.join(taken)}. "
            "Use --format json."
        )
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*BEFORE, *study.space.parameters, *AFTER])
    for entry in study.history():
        asked = datetime.fromtimestamp(entry.asked, UTC).isoformat(timespec="milliseconds")
        last = [entry.participant, entry.seconds, asked]
        rows = zip(labels(len(entry.options)), entry.options, outcomes(entry), strict=True)
        for label, option, outcome in rows:
            values = [_written(option[name]) for name in study.space.parameters]
            writer.writerow([entry.id, label, *values, entry.status, outcome, *last])
    return out.getvalue()


def outcomes(entry: Entry) -> list[str]:
    """What the answer says of each option: yes, no, better, worse, its place, whom it beats, tie."""
    names, answer = labels(len(entry.options)), entry.answer
    if entry.status != "answered" or answer is None:
        return [""] * len(names)
    ((kind, value),) = answer.items()
    if kind == "yes":
        return ["yes" if value else "no"]
    if kind == "prefers":
        return ["better" if place == value else "worse" for place in range(len(names))]
    if kind == "ranking":
        return [str(value.index(place) + 1) if place in value else "" for place in range(len(names))]
    if kind == "pairs":
        beaten = [[names[worse] for better, worse in value if better == place] for place in range(len(names))]
        return [f"beats {' '.join(those)}" if those else "" for those in beaten]
    return ["tie"] * len(names)


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def json_text(session: Session) -> str:
    """The whole record: settings, every question and what became of it, and every event that led there."""
    study, config = session.study, session.config
    events = []
    if session.recorded:
        record = open_record(config.storage, config.name, None)
        events = [asdict(event) for event in record.events()]
        record.close()
    document = {
        "askwise": version("askwise"),
        "name": config.name,
        "question": config.question,
        "settings": study.plan.to_dict(),
        "questions": [asdict(entry) for entry in study.history()],
        "events": events,
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
