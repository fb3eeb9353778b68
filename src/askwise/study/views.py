"""The questions of a study as a table: for pandas, and for notebooks."""

import datetime
import html
from collections.abc import Sequence
from typing import Any

from askwise.errors import extra
from askwise.space import Setting, readable
from askwise.study.answers import labels
from askwise.study.state import Entry

_SHOWN = 5  # last answers in a notebook


def dataframe(entries: Sequence[Entry]) -> Any:
    """Every question as a row: the options side by side, the answer, who gave it, when."""
    with extra("pandas", "a DataFrame"):
        import pandas
    return pandas.DataFrame([_row(entry) for entry in entries])


def as_html(head: str, size: int, entries: Sequence[Entry]) -> str:
    """The last answers as a table of HTML."""
    names = labels(size)
    title = f"<p>{html.escape(head)}</p>"
    if not entries:
        return title
    columns = ["#", *(["setting"] if size == 1 else names), "answer"]
    rows = [
        [str(entry.id), *map(_brief, entry.options), entry.answer.in_words(names) if entry.answer else ""]
        for entry in entries[-_SHOWN:]
    ]
    lines = [_line("th", columns), *(_line("td", row) for row in rows)]
    return f"{title}<table>{''.join(lines)}</table>"


def _row(entry: Entry) -> dict[str, Any]:
    names = labels(len(entry.options))
    ends = [""] if len(names) == 1 else [f"_{name.lower()}" for name in names]
    options = {
        f"{key}{end}": value
        for end, option in zip(ends, entry.options, strict=True)
        for key, value in option.items()
    }
    return {
        "question": entry.id,
        **options,
        "status": entry.status,
        "answer": None if entry.answer is None else entry.answer.text(names),
        "participant": entry.participant,
        "seconds": entry.seconds,
        "asked": datetime.datetime.fromtimestamp(entry.asked, datetime.UTC),
    }


def _line(cell: str, values: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{cell}>{html.escape(value)}</{cell}>' for value in values)}</tr>"


def _brief(option: Setting) -> str:
    shown = {name: readable(value) if isinstance(value, float) else value for name, value in option.items()}
    return ", ".join(f"{name} {value}" for name, value in shown.items())
