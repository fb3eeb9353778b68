"""Answers from tables: files that `askwise export` wrote, DataFrames, and rows by hand."""

import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from askwise.errors import Refused
from askwise.space import Parameter, Real, Value
from askwise.study.answers import Answer, labels
from askwise.study.answers.base import KINDS
from askwise.study.cells import text_of
from askwise.study.plan import Plan
from askwise.study.sheets import Sheet, check_different
from askwise.study.validation import recorded

BEFORE, AFTER = ("question", "option"), ("status", "outcome", "participant", "seconds", "asked")
"""Columns of an export before and after those of the parameters."""
_MORE = ("question", "status", "participant", "seconds", "asked")
"""Columns that may be beside those of parameters and answer, in a table with a row for each question."""
Cells = dict[str, Any]
"""A row by column; texts from files, values from a DataFrame, "" where there is nothing."""
Read = Callable[[Any, Plan], "Imported | None"]
"""Reads one question; None for one without an answer."""
Questions = tuple[list[tuple[str, Any]], Read]
"""Questions with their positions in the table, and the function that reads one."""


@dataclass(frozen=True)
class Imported:
    """A question and its answer."""

    options: list[dict[str, Any]]
    answer: Answer
    participant: str | None
    seconds: float | int | None = None


def is_table(answers: object) -> bool:
    """Whether this is a table: a path, a DataFrame, or rows that do not have their options in one cell."""
    if isinstance(answers, str | os.PathLike) or _is_frame(answers):
        return True
    rows = isinstance(answers, Sequence) and all(isinstance(row, Mapping) for row in answers)
    return rows and bool(answers) and not any("options" in row for row in answers)  # type: ignore[attr-defined]


def read_answers(table: Any, plan: Plan) -> tuple[list[Imported], int]:
    """All answers in a table, and the number of questions without one."""
    questions, read = _questions(table, plan)
    found = []
    for place, question in questions:
        try:
            row = read(question, plan)
            if row is not None:
                found.append(_checked(row, plan))
        except Refused as error:
            raise error.at(place) from None
    return found, len(questions) - len(found)


def content_key(rows: Sequence[Imported]) -> str:
    """A key by which these answers are recorded once."""
    content = [asdict(row) | {"answer": row.answer.to_json()} for row in rows]
    return f"import {hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()}"


def read_value(name: str, parameter: Parameter, text: str) -> Value:
    """The value in a text; whether it is allowed is checked later."""
    try:
        return parameter.read(text)
    except Refused as error:
        raise error.about(name) from None


def _is_frame(table: object) -> bool:
    return hasattr(table, "to_dict") and hasattr(table, "columns")


def _questions(table: Any, plan: Plan) -> Questions:
    if isinstance(table, str | os.PathLike):
        file = Path(table)
        text = text_of(file)
        return _json_questions(text) if text.lstrip().startswith("{") else _of_csv(file, text, plan)
    records = table.to_dict("records") if _is_frame(table) else table
    columns = [str(name) for name in (table.columns if _is_frame(table) else records[0])]
    check_different(columns)
    rows = []
    for number, record in enumerate(records, 1):
        if {str(name) for name in record} != set(columns):
            got, advice = ", ".join(map(str, record)), "Give each row the same columns."
            raise Refused(f"row {number}", f"have the columns {', '.join(columns)}", got, advice)
        rows.append((f"row {number}", {str(name): _filled(value) for name, value in record.items()}))
    return _of_rows(rows, columns, plan)


def _filled(value: Any) -> Any:
    """A cell of a DataFrame; "" for what is missing there."""
    not_a_number = isinstance(value, float) and math.isnan(value)
    return "" if value is None or not_a_number or str(value) in ("<NA>", "NaT") else value


def _checked(row: Imported, plan: Plan) -> Imported:
    """The row with plain values, equal whatever table they were read from."""
    if len(row.options) != plan.size:
        expected = f"be {plan.size}, as many as this study asks about"
        raise Refused("options", expected, len(row.options), "Import them into a study of that kind.")
    body = recorded(plan, **vars(row))
    return replace(row, options=body["options"], seconds=body["seconds"])


def _of_csv(file: Path, text: str, plan: Plan) -> Questions:
    sheet, ends = Sheet.of(file, text), _ends(plan)
    if set(BEFORE + AFTER) <= set(sheet.columns):
        ends = [""]
    else:
        sheet = sheet.renamed(_spellings(sheet.columns, plan))
    known: dict[str, Parameter] = {
        f"{name}{end}": p for name, p in plan.space.parameters.items() for end in ends
    }
    known["seconds"] = Real(0, 1)
    sheet = sheet.with_decimal_points(known)
    return _of_rows([(f"row {line}", cells) for line, cells in sheet.rows], sheet.columns, plan)


def _text(cell: Any) -> str:
    """A cell that is text; pandas reads places and names that are numbers as such."""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def _of_rows(rows: Sequence[tuple[str, Cells]], columns: Sequence[str], plan: Plan) -> Questions:
    if set(BEFORE + AFTER) <= set(columns):
        return _grouped(rows, columns, plan), _exported_question
    _check_simple(columns, plan)
    return list(rows), _simple_question


def _setting(cells: Cells, plan: Plan, end: str = "") -> dict[str, Any]:
    """A setting from the columns with this suffix."""
    there = {name: p for name, p in plan.space.parameters.items() if name + end in cells}
    given = {name: cells[name + end] for name in there}
    return {
        name: read_value(name + end, there[name], cell) if isinstance(cell, str) else cell
        for name, cell in given.items()
    }


# a row for each question


def _ends(plan: Plan) -> list[str]:
    """Suffixes of columns: ``gain, answer`` for yes/no, ``gain_a, gain_b, answer`` for more."""
    return [""] if plan.size == 1 else [f"_{label.lower()}" for label in labels(plan.size)]


def _spellings(columns: Sequence[str], plan: Plan) -> dict[str, str]:
    """Columns whose option is a capital letter, such as ``gain_A``, as they are spelled here."""
    pairs = [(name, end) for name in plan.space.parameters for end in _ends(plan)]
    known = {f"{name}{end}" for name, end in pairs}
    other = {f"{name}{end.upper()}": f"{name}{end}" for name, end in pairs}
    return {spelled: name for spelled, name in other.items() if spelled in columns and spelled not in known}


def _check_simple(columns: Sequence[str], plan: Plan) -> None:
    parameters, ends = plan.space.parameters, _ends(plan)
    wanted = [f"{name}{end}" for name, p in parameters.items() if p.width for end in ends] + ["answer"]
    allowed = {f"{name}{end}" for name in parameters for end in ends} | {"answer", *_MORE}
    missing = [name for name in wanted if name not in columns]
    unknown = [name for name in columns if name not in allowed]
    if missing or unknown:
        expected = f"be {', '.join(wanted)} and perhaps participant"
        got = f"no {missing[0]}" if missing else f"{unknown[0]!r}"
        raise Refused("columns", expected, got, "Rename, add or remove it.")


def _simple_question(cells: Cells, plan: Plan) -> Imported | None:
    if cells["answer"] in ("", "skip", "void") or cells.get("status", "answered") != "answered":
        return None
    options = [_setting(cells, plan, end) for end in _ends(plan)]
    given = cells["answer"]
    kind, names = plan.kind, labels(plan.size)
    answer = kind.typed(given, names) if isinstance(given, str) else kind.read(plan.size, given)
    who = _text(cells.get("participant", "")) or None
    return Imported(options, answer, who, _seconds(cells.get("seconds", "")))


# a row for each option, as exported


def _grouped(
    rows: Sequence[tuple[str, Cells]], columns: Sequence[str], plan: Plan
) -> list[tuple[str, list[Cells]]]:
    unknown = set(columns) ^ {*BEFORE, *AFTER, *plan.space.parameters}
    if unknown:
        expected, got = "be those of this study's export", f"a difference in {', '.join(sorted(unknown))}"
        raise Refused("columns", expected, got, "Import it into a study with the same parameters.")
    groups = [list(group) for _, group in groupby(rows, key=lambda row: row[1]["question"])]
    return [(group[0][0], [cells for _, cells in group]) for group in groups]


def _exported_question(rows: Sequence[Cells], plan: Plan) -> Imported | None:
    names, first = [_text(row["option"]) for row in rows], rows[0]
    if names != labels(len(rows)):
        advice = "Give each question its number."
        raise Refused("options of a question", "be A, B, ... in order", ", ".join(names), advice)
    if first["status"] != "answered":
        return None
    options = [_setting(row, plan) for row in rows]
    answer, seconds = _from_outcomes([_text(row["outcome"]) for row in rows]), first["seconds"]
    return Imported(options, answer, _text(first["participant"]) or None, _seconds(seconds))


def _seconds(text: Any) -> float | None:
    try:
        return None if text == "" else float(text)
    except (TypeError, ValueError):
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


def _answer(written: Any) -> Answer:
    """An answer of a file, in which a 1 may be an option and not a yes."""
    if type(written.get("yes", True)) is not bool or written.get("undecided", True) is not True:
        raise ValueError(f"answer {written!r}")
    return Answer.from_json(written)


def _json_question(question: Any, plan: Plan) -> Imported | None:
    try:
        if question["status"] != "answered":
            return None
        options = [dict(option) for option in question["options"]]
        answer = _answer(question["answer"])
        return Imported(options, answer, question["participant"], question["seconds"])
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        expected = "have options, status, answer and participant"
        raise Refused("it", expected, f"{question!r} ({error!r})", "Export it again.") from None
