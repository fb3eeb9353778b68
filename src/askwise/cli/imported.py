"""Answers that were given elsewhere, read from a file and checked before any is recorded."""

import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from askwise.answers import Answer, read_answer
from askwise.cli.exported import AFTER, BEFORE
from askwise.cli.replies import labels, read_pairs, read_reply, told_again
from askwise.cli.session import read_value
from askwise.parameters import Fixed
from askwise.study import Study

__all__ = ["Imported", "check_new", "read_rows"]


@dataclass(frozen=True)
class Imported:
    """A question and its answer."""

    options: list[dict[str, Any]]
    told: dict[str, Any]
    """The answer, as `Study.record` takes it."""
    participant: str | None
    seconds: float | int | None = None


def read_rows(file: Path, study: Study) -> tuple[list[Imported], int]:
    """All answers of a file, and how many questions of it have none."""
    text = file.read_text(encoding="utf-8-sig")
    if text.lstrip().startswith("{"):
        return _checked(_from_json(text, study), study)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header, *lines = [(reader.line_num, line) for line in reader if any(cell.strip() for cell in line)]
    except (csv.Error, ValueError) as error:
        raise ValueError(
            f"file must be CSV with a header; got {file} ({error}). Export one to see."
        ) from None
    columns = [cell.strip() for cell in header[1]]
    twice = [name for name in columns if columns.count(name) > 1]
    if twice:
        raise ValueError(f"columns must have different names; got {twice[0]!r} twice. Rename one.")
    rows = []
    for number, cells in lines:
        if len(cells) != len(columns):
            raise ValueError(
                f"row {number} must have {len(columns)} cells, as the header; got {len(cells)}. "
                "Put quotes around a cell with a comma in it."
            )
        rows.append((number, dict(zip(columns, (cell.strip() for cell in cells), strict=True))))
    exported = set(BEFORE + AFTER) <= set(columns)
    return _checked(_from_table(rows, study) if exported else _from_simple(rows, columns, study), study)


def check_new(file: Path, rows: Sequence[Imported], study: Study) -> None:
    """Refuse answers all of which the study has, for they would count twice."""
    there = Counter(
        _sameness(entry.options, entry.answer, study)
        for entry in study.history()
        if entry.status == "answered" and entry.answer is not None
    )
    given = Counter(
        _sameness(row.options, read_answer(study.feedback, study.size, **row.told), study) for row in rows
    )
    if given and given <= there:
        raise ValueError(
            f"answers must be new to the study; got {len(rows)} in {file}, all of which it has already. "
            "Add --again if they were given once more."
        )


def _sameness(options: Sequence[Mapping[str, Any]], answer: Answer, study: Study) -> str:
    """Equal for equal settings in the same order with the same answer, whatever the last digits say."""
    places = [[round(place, 9) for place in study.space.unit(option).tolist()] for option in options]
    return json.dumps([places, answer], sort_keys=True)


Row = tuple[str, Callable[[], Imported | None]]
"""Where a question stands in the file, and what reads it; None for one without an answer."""


def _checked(rows: Iterator[Row], study: Study) -> tuple[list[Imported], int]:
    found, without = [], 0
    for where, read in rows:
        with _at(where):
            row = read()
            if row is None:
                without += 1
                continue
            _check(row, study)
            found.append(row)
    return found, without


@contextmanager
def _at(where: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, TypeError) as error:
        raise ValueError(f"{where}: {error}") from None


def _check(row: Imported, study: Study) -> None:
    if len(row.options) != study.size:
        raise ValueError(
            f"options must be {study.size}, as many as this study asks about; got {len(row.options)}. "
            "Import them into a study of that kind."
        )
    for option in row.options:
        study.space.unit(option)
    read_answer(study.feedback, study.size, **row.told)


# a row for each question


def _from_simple(
    rows: Sequence[tuple[int, dict[str, str]]], columns: Sequence[str], study: Study
) -> Iterator[Row]:
    """Columns ``gain, answer`` for yes/no, ``gain_a, gain_b, answer`` for more; perhaps ``participant``."""
    ends = [""] if study.size == 1 else [f"_{label.lower()}" for label in labels(study.size)]
    wanted = [
        f"{name}{end}"
        for name, p in study.space.parameters.items()
        if not isinstance(p, Fixed)
        for end in ends
    ]
    allowed = {f"{name}{end}" for name in study.space.parameters for end in ends} | {"participant"}
    missing = [name for name in [*wanted, "answer"] if name not in columns]
    unknown = [name for name in columns if name not in allowed | {"answer"}]
    if missing or unknown:
        what = f"no {missing[0]}" if missing else f"{unknown[0]!r}"
        raise ValueError(
            f"columns must be {', '.join([*wanted, 'answer'])} and perhaps participant; got {what}. "
            "Rename, add or remove it."
        )
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
    text = cells["answer"]
    has_pairs = study.feedback == "batch" and ";" in text
    reply = read_pairs(text, study.size) if has_pairs else read_reply(text, study.feedback, study.size)
    return Imported(options, reply.told, cells.get("participant") or None)


# a row for each option, as exported


def _from_table(rows: Sequence[tuple[int, dict[str, str]]], study: Study) -> Iterator[Row]:
    unknown = set(rows[0][1]) ^ {*BEFORE, *AFTER, *study.space.parameters} if rows else set()
    if unknown:
        raise ValueError(
            f"columns must be those of this study's export; got another {', '.join(sorted(unknown))}. "
            "Import it into a study with the same parameters."
        )
    for _, group in groupby(rows, key=lambda row: row[1]["question"]):
        members = list(group)
        cells = [row for _, row in members]
        yield f"row {members[0][0]}", lambda cells=cells: _tabled(cells, study)  # type: ignore[misc]


def _tabled(cells: Sequence[Mapping[str, str]], study: Study) -> Imported | None:
    if [row["option"] for row in cells] != labels(len(cells)):
        got = ", ".join(row["option"] for row in cells)
        raise ValueError(
            f"options of a question must be A, B, ... in order; got {got}. Give each question its number."
        )
    if cells[0]["status"] != "answered":
        return None
    options = [
        {name: read_value(name, parameter, row[name]) for name, parameter in study.space.parameters.items()}
        for row in cells
    ]
    told = _from_outcomes([row["outcome"] for row in cells])
    seconds = cells[0]["seconds"]
    return Imported(options, told, cells[0]["participant"] or None, float(seconds) if seconds else None)


def _from_outcomes(outcomes: Sequence[str]) -> dict[str, Any]:
    """The answer that was written as one outcome for each option."""
    given = {outcome for outcome in outcomes if outcome}
    if given == {"tie"}:
        return {"answer": None}
    if given in ({"yes"}, {"no"}):
        return {"answer": given == {"yes"}}
    if sorted(outcomes) == ["better", "worse"]:
        return {"answer": outcomes.index("better")}
    if given and all(outcome.isdecimal() for outcome in given):
        places = sorted((int(outcome), index) for index, outcome in enumerate(outcomes) if outcome)
        if [place for place, _ in places] == list(range(1, len(places) + 1)):
            return {"ranking": [index for _, index in places]}
    if given and all(outcome.startswith("beats ") for outcome in given):
        names = labels(len(outcomes))
        text = ";".join(
            f"{name}>{worse}"
            for name, outcome in zip(names, outcomes, strict=True)
            for worse in outcome.removeprefix("beats ").split()
        )
        return read_pairs(text, len(outcomes)).told
    raise ValueError(
        "outcome must be yes or no, better and worse, places from 1, beats B C, or tie; "
        f"got {list(outcomes)}. Write it as `askwise export` does."
    )


# JSON, as exported


def _from_json(text: str, study: Study) -> Iterator[Row]:
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"file must be JSON that `askwise export` wrote; got {error}. Export it again."
        ) from None
    questions = document.get("questions")
    if not isinstance(questions, list):
        raise ValueError("file must have a list of questions; got none. Export it again.")
    for number, written in enumerate(questions):
        yield f"question {number}", lambda written=written: _written(written)  # type: ignore[misc]


def _written(question: Any) -> Imported | None:
    try:
        if question["status"] != "answered":
            return None
        options = [dict(option) for option in question["options"]]
        told = told_again(question["answer"])
        return Imported(options, told, question["participant"], question["seconds"])
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(
            f"it must have options, status, answer and participant; got {question!r} ({error!r}). "
            "Export it again."
        ) from None
