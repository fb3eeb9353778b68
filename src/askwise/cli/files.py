"""A study as text (CSV for tables, JSON for everything), and answers read from such files."""

import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any

from askwise.cli.session import Session, read_value
from askwise.errors import Refused
from askwise.storage import open_record
from askwise.study import Answer, Entry, Study, labels
from askwise.study.answers.base import KINDS

_BEFORE, _AFTER = ("question", "option"), ("status", "outcome", "participant", "seconds", "asked")
"""Columns before and after those of the parameters."""


def csv_text(study: Study) -> str:
    """A row for each option of each question, in the order in which they were shown."""
    taken = [name for name in study.space.parameters if name in _BEFORE + _AFTER]
    if taken:
        expected = "be named unlike columns of the table"
        raise Refused("parameters", expected, ", ".join(taken), "Use --format json.")
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*_BEFORE, *study.space.parameters, *_AFTER])
    for entry in study.history():
        asked = datetime.fromtimestamp(entry.asked, UTC).isoformat(timespec="milliseconds")
        last = [entry.participant, entry.seconds, asked]
        names = labels(len(entry.options))
        outcomes = [""] * len(names)
        if entry.status == "answered" and entry.answer is not None:
            outcomes = entry.answer.outcomes(names)
        for label, option, outcome in zip(names, entry.options, outcomes, strict=True):
            values = [_written(option[name]) for name in study.space.parameters]
            writer.writerow([entry.id, label, *values, entry.status, outcome, *last])
    return out.getvalue()


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
        "questions": [_question(entry) for entry in study.history()],
        "events": events,
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _question(entry: Entry) -> dict[str, Any]:
    return {**asdict(entry), "answer": None if entry.answer is None else entry.answer.to_json()}


@dataclass(frozen=True)
class Imported:
    """A question and its answer."""

    options: list[dict[str, Any]]
    answer: Answer
    participant: str | None
    seconds: float | int | None = None


def read_rows(file: Path, study: Study) -> tuple[list[Imported], int]:
    """All answers of a file, and how many questions of it have none."""
    text = file.read_text(encoding="utf-8-sig")
    if text.lstrip().startswith("{"):
        return _checked(_from_json(text), study)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header, *lines = [(reader.line_num, line) for line in reader if any(cell.strip() for cell in line)]
    except (csv.Error, ValueError) as error:
        got = f"{file} ({error})"
        raise Refused("file", "be CSV with a header", got, "Export one to see.") from None
    columns = [cell.strip() for cell in header[1]]
    twice = [name for name in columns if columns.count(name) > 1]
    if twice:
        raise Refused("columns", "have different names", f"{twice[0]!r} twice", "Rename one.")
    rows = []
    for number, cells in lines:
        if len(cells) != len(columns):
            expected = f"have {len(columns)} cells, as the header"
            advice = "Put quotes around a cell with a comma in it."
            raise Refused(f"row {number}", expected, len(cells), advice)
        rows.append((number, dict(zip(columns, (cell.strip() for cell in cells), strict=True))))
    exported = set(_BEFORE + _AFTER) <= set(columns)
    return _checked(_from_table(rows, study) if exported else _from_simple(rows, columns, study), study)


def check_new(file: Path, rows: Sequence[Imported], study: Study) -> None:
    """Refuse answers all of which the study has, since they would count twice."""
    there = Counter(
        _identity(entry.options, entry.answer, study)
        for entry in study.history()
        if entry.status == "answered" and entry.answer is not None
    )
    given = Counter(_identity(row.options, row.answer, study) for row in rows)
    if given and given <= there:
        got = f"{len(rows)} in {file}, all of which it has already"
        raise Refused("answers", "be new to the study", got, "Add --again if they were given once more.")


def _identity(options: Sequence[Mapping[str, Any]], answer: Answer, study: Study) -> str:
    """Equal for equal settings in the same order with the same answer, up to rounding."""
    places = [[round(place, 9) for place in study.space.unit(option).tolist()] for option in options]
    return json.dumps([places, answer.to_json()], sort_keys=True)


Reader = tuple[str, Callable[[], Imported | None]]
"""Where a question stands in the file, and what reads it; None for one without an answer."""


def _checked(rows: Iterator[Reader], study: Study) -> tuple[list[Imported], int]:
    found, without = [], 0
    for where, read in rows:
        try:
            row = read()
            if row is None:
                without += 1
                continue
            _check(row, study)
            found.append(row)
        except Refused as error:
            raise error.at(where) from None
    return found, without


def _check(row: Imported, study: Study) -> None:
    if len(row.options) != study.size:
        expected = f"be {study.size}, as many as this study asks about"
        raise Refused("options", expected, len(row.options), "Import them into a study of that kind.")
    for option in row.options:
        study.space.unit(option)
    study.plan.kind.read(study.size, row.answer)


# a row for each question


def _from_simple(
    rows: Sequence[tuple[int, dict[str, str]]], columns: Sequence[str], study: Study
) -> Iterator[Reader]:
    """Columns ``gain, answer`` for yes/no, ``gain_a, gain_b, answer`` for more; perhaps ``participant``."""
    ends = [""] if study.size == 1 else [f"_{label.lower()}" for label in labels(study.size)]
    wanted = [f"{name}{end}" for name, p in study.space.parameters.items() if p.width for end in ends]
    allowed = {f"{name}{end}" for name in study.space.parameters for end in ends} | {"participant"}
    missing = [name for name in [*wanted, "answer"] if name not in columns]
    unknown = [name for name in columns if name not in allowed | {"answer"}]
    if missing or unknown:
        expected = f"be {', '.join([*wanted, 'answer'])} and perhaps participant"
        got = f"no {missing[0]}" if missing else f"{unknown[0]!r}"
        raise Refused("columns", expected, got, "Rename, add or remove it.")
    for number, cells in rows:
        yield f"row {number}", lambda cells=cells: _simple(cells, ends, study)  # type: ignore[misc]


def _simple(cells: Mapping[str, str], ends: Sequence[str], study: Study) -> Imported | None:
    if cells["answer"] in ("", "skip", "void"):
        return None
    options = [
        {
            name: read_value(name + end, parameter, cells[name + end])
            for name, parameter in study.space.parameters.items()
            if name + end in cells
        }
        for end in ends
    ]
    answer = study.plan.kind.typed(cells["answer"], labels(study.size))
    return Imported(options, answer, cells.get("participant") or None)


# a row for each option, as exported


def _from_table(rows: Sequence[tuple[int, dict[str, str]]], study: Study) -> Iterator[Reader]:
    unknown = set(rows[0][1]) ^ {*_BEFORE, *_AFTER, *study.space.parameters} if rows else set()
    if unknown:
        raise Refused(
            "columns",
            "be those of this study's export",
            f"another {', '.join(sorted(unknown))}",
            "Import it into a study with the same parameters.",
        )
    for _, group in groupby(rows, key=lambda row: row[1]["question"]):
        members = list(group)
        cells = [row for _, row in members]
        yield f"row {members[0][0]}", lambda cells=cells: _tabled(cells, study)  # type: ignore[misc]


def _tabled(cells: Sequence[Mapping[str, str]], study: Study) -> Imported | None:
    if [row["option"] for row in cells] != labels(len(cells)):
        got = ", ".join(row["option"] for row in cells)
        advice = "Give each question its number."
        raise Refused("options of a question", "be A, B, ... in order", got, advice)
    if cells[0]["status"] != "answered":
        return None
    options = [
        {name: read_value(name, parameter, row[name]) for name, parameter in study.space.parameters.items()}
        for row in cells
    ]
    answer = _from_outcomes([row["outcome"] for row in cells])
    seconds = cells[0]["seconds"]
    return Imported(options, answer, cells[0]["participant"] or None, float(seconds) if seconds else None)


def _from_outcomes(outcomes: Sequence[str]) -> Answer:
    """The answer that was written as one outcome for each option."""
    for kind in KINDS.values():
        if (found := kind.from_outcomes(outcomes)) is not None:
            return found
    expected = "be yes or no, better and worse, places from 1, beats B C, or tie"
    raise Refused("outcome", expected, list(outcomes), "Write it as `askwise export` does.")


# JSON, as exported


def _from_json(text: str) -> Iterator[Reader]:
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise Refused("file", "be JSON that `askwise export` wrote", error, "Export it again.") from None
    questions = document.get("questions")
    if not isinstance(questions, list):
        raise Refused("file", "have a list of questions", "none", "Export it again.")
    for number, written in enumerate(questions):
        yield f"question {number}", lambda written=written: _from_written(written)  # type: ignore[misc]


def _from_written(question: Any) -> Imported | None:
    try:
        if question["status"] != "answered":
            return None
        options = [dict(option) for option in question["options"]]
        answer = Answer.from_json(question["answer"])
        return Imported(options, answer, question["participant"], question["seconds"])
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        expected = "have options, status, answer and participant"
        raise Refused("it", expected, f"{question!r} ({error!r})", "Export it again.") from None
