"""Answers read from files that `askwise export` or others wrote."""

import csv
import hashlib
import io
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import count, groupby
from pathlib import Path
from typing import Any

from askwise.cli.session import read_value
from askwise.errors import Refused
from askwise.study import Answer, Study, labels
from askwise.study.answers.base import KINDS
from askwise.study.cells import restored, text_of
from askwise.study.export import AFTER, BEFORE
from askwise.study.validation import recorded


@dataclass(frozen=True)
class Imported:
    """A question and its answer."""

    options: list[dict[str, Any]]
    answer: Answer
    participant: str | None
    seconds: float | int | None = None


def read_rows(file: Path, study: Study) -> tuple[list[Imported], int]:
    """All answers in a file, and the number of questions without one."""
    text = text_of(file)
    is_json = text.lstrip().startswith("{")
    questions, read = _json_questions(text) if is_json else _csv_questions(file, text, study)
    found = []
    for place, question in questions:
        try:
            row = read(question, study)
            if row is not None:
                _check(row, study)
                found.append(row)
        except Refused as error:
            raise error.at(place) from None
    return found, len(questions) - len(found)


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
    content = [asdict(row) | {"answer": row.answer.to_json()} for row in rows]
    text = json.dumps(content, sort_keys=True)
    keys = (f"import {hashlib.sha256(text.encode()).hexdigest()}{' again' * times}" for times in count())
    return next(key for key in keys if not (again and study.is_recorded(key)))


def _identity(
    options: Sequence[Mapping[str, Any]], answer: Answer, participant: str | None, study: Study
) -> str:
    """A key that is equal for equal settings in the same order with the same answer, up to rounding.

    Where people differ, the answers of two of them are not the same.
    """
    places = [[round(place, 9) for place in study.space.unit(option).tolist()] for option in options]
    who = participant if study.plan.people.differ else None
    return json.dumps([places, answer.to_json(), who], sort_keys=True)


def _check(row: Imported, study: Study) -> None:
    if len(row.options) != study.size:
        expected = f"be {study.size}, as many as this study asks about"
        raise Refused("options", expected, len(row.options), "Import them into a study of that kind.")
    recorded(study.plan, **vars(row))


Cells = dict[str, str]
Read = Callable[[Any, Study], Imported | None]
"""Reads one question of a file; None for one without an answer."""
Questions = tuple[list[tuple[str, Any]], Read]
"""Questions with their positions in the file, and the function that reads one."""


def _csv_questions(file: Path, text: str, study: Study) -> Questions:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header, *lines = [(reader.line_num, line) for line in reader if any(cell.strip() for cell in line)]
    except (csv.Error, ValueError) as error:
        got = f"{file} ({error})"
        raise Refused("file", "be CSV with a header", got, "Run `askwise export` for an example.") from None
    columns = [restored(cell.strip()) for cell in header[1]]
    twice = [name for name in columns if columns.count(name) > 1]
    if twice:
        raise Refused("columns", "have different names", f"{twice[0]!r} twice", "Rename one.")
    rows: list[tuple[str, Cells]] = []
    for number, cells in lines:
        if len(cells) != len(columns):
            advice = "Put quotes around a cell with a comma in it."
            raise Refused(f"row {number}", f"have {len(columns)} cells, like the header", len(cells), advice)
        rows.append(
            (f"row {number}", dict(zip(columns, (restored(cell.strip()) for cell in cells), strict=True)))
        )
    if set(BEFORE + AFTER) <= set(columns):
        return _grouped(rows, columns, study), _exported_question
    _check_simple(columns, study)
    return rows, _simple_question


def _setting(cells: Cells, study: Study, end: str = "") -> dict[str, Any]:
    """A setting from the columns with this suffix."""
    there = {name: p for name, p in study.space.parameters.items() if name + end in cells}
    return {name: read_value(name + end, p, cells[name + end]) for name, p in there.items()}


# a row for each question


def _ends(study: Study) -> list[str]:
    """Suffixes of columns: ``gain, answer`` for yes/no, ``gain_a, gain_b, answer`` for more."""
    return [""] if study.size == 1 else [f"_{label.lower()}" for label in labels(study.size)]


def _check_simple(columns: Sequence[str], study: Study) -> None:
    parameters, ends = study.space.parameters, _ends(study)
    wanted = [f"{name}{end}" for name, p in parameters.items() if p.width for end in ends] + ["answer"]
    allowed = {f"{name}{end}" for name in parameters for end in ends} | {"participant", "answer"}
    missing = [name for name in wanted if name not in columns]
    unknown = [name for name in columns if name not in allowed]
    if missing or unknown:
        expected = f"be {', '.join(wanted)} and perhaps participant"
        got = f"no {missing[0]}" if missing else f"{unknown[0]!r}"
        raise Refused("columns", expected, got, "Rename, add or remove it.")


def _simple_question(cells: Cells, study: Study) -> Imported | None:
    if cells["answer"] in ("", "skip", "void"):
        return None
    options = [_setting(cells, study, end) for end in _ends(study)]
    answer = study.plan.kind.typed(cells["answer"], labels(study.size))
    return Imported(options, answer, cells.get("participant") or None)


# a row for each option, as exported


def _grouped(
    rows: Sequence[tuple[str, Cells]], columns: Sequence[str], study: Study
) -> list[tuple[str, list[Cells]]]:
    unknown = set(columns) ^ {*BEFORE, *AFTER, *study.space.parameters}
    if unknown:
        expected, got = "be those of this study's export", f"a difference in {', '.join(sorted(unknown))}"
        raise Refused("columns", expected, got, "Import it into a study with the same parameters.")
    groups = [list(group) for _, group in groupby(rows, key=lambda row: row[1]["question"])]
    return [(group[0][0], [cells for _, cells in group]) for group in groups]


def _exported_question(rows: Sequence[Cells], study: Study) -> Imported | None:
    names, first = [row["option"] for row in rows], rows[0]
    if names != labels(len(rows)):
        advice = "Give each question its number."
        raise Refused("options of a question", "be A, B, ... in order", ", ".join(names), advice)
    if first["status"] != "answered":
        return None
    options = [_setting(row, study) for row in rows]
    answer, seconds = _from_outcomes([row["outcome"] for row in rows]), first["seconds"]
    return Imported(options, answer, first["participant"] or None, _seconds(seconds))


def _seconds(text: str) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        raise Refused("seconds", "be a number", repr(text), "Correct it, or leave it empty.") from None


def _from_outcomes(outcomes: Sequence[str]) -> Answer:
    """The answer that an export wrote as one outcome for each option."""
    for kind in KINDS.values():
        if (found := kind.from_outcomes(outcomes)) is not None:
            return found
    expected = "be yes or no, better and worse, places from 1, worst, beats B C, or tie"
    raise Refused("outcome", expected, list(outcomes), "Write it as `askwise export` does.")


# JSON, as exported


def _json_questions(text: str) -> Questions:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:  # no JSON, a number of thousands of digits, too deep
        raise Refused("file", "be JSON that `askwise export` wrote", error, "Export it again.") from None
    questions = document.get("questions")
    if not isinstance(questions, list):
        raise Refused("file", "have a list of questions", "none", "Export it again.")
    return [(f"question {number}", question) for number, question in enumerate(questions)], _json_question


def _json_question(question: Any, study: Study) -> Imported | None:
    try:
        if question["status"] != "answered":
            return None
        options = [dict(option) for option in question["options"]]
        answer = Answer.from_json(question["answer"])
        return Imported(options, answer, question["participant"], question["seconds"])
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        expected = "have options, status, answer and participant"
        raise Refused("it", expected, f"{question!r} ({error!r})", "Export it again.") from None
