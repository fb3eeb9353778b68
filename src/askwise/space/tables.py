"""Tables as columns by name: from a CSV file, a DataFrame, columns, rows, names or an array."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from askwise.errors import NotFound, Refused, WrongType

NAME = "name"
"""The column of a list of names, where none is given."""


def columns_of(table: Any, id: str, features: Any) -> tuple[dict[str, list[Any]], tuple[str, ...]]:
    """The columns of a table by name, and the features; of an array, these are all its columns by default."""
    names = _checked_names(features)
    if isinstance(table, str | Path):
        return _of_csv(Path(table)), names
    if hasattr(table, "to_dict") and hasattr(table, "columns"):  # a DataFrame
        table = table.to_dict("list")
    if isinstance(table, Mapping):
        return _same_length({str(name): _as_list(name, column) for name, column in table.items()}), names
    rows = table.tolist() if hasattr(table, "tolist") else table
    if not isinstance(rows, Sequence) or not rows:
        expected = "be a CSV file, a DataFrame, columns by name, rows, names or an array"
        raise WrongType("table", expected, repr(table), "Write {'name': [...], 'sugar': [...]}, say.")
    if all(isinstance(row, Mapping) for row in rows):
        return {str(name): [row.get(name) for row in rows] for name in rows[0]}, names
    if all(isinstance(row, list | tuple) for row in rows):
        return _of_array(rows, names)
    return {id or NAME: list(rows)}, names


def _checked_names(features: Any) -> tuple[str, ...]:
    is_list = isinstance(features, Sequence) and not isinstance(features, str)
    if not is_list or not all(isinstance(name, str) for name in features):
        raise WrongType("features", "be a list of columns", repr(features), "Write ['sugar', 'acid'], say.")
    if len(set(features)) < len(features):
        raise Refused("features", "all differ", list(features), "Name each once.")
    return tuple(features)


def _of_array(
    rows: Sequence[Sequence[Any]], features: tuple[str, ...]
) -> tuple[dict[str, list[Any]], tuple[str, ...]]:
    width = len(rows[0])
    if any(len(row) != width for row in rows):
        raise Refused("table", "have rows of equal length", "an array that has not", "Fill them in.")
    names = features or tuple(f"x{column}" for column in range(width))
    if len(names) != width:
        expected = f"be {width}, one for each column of the array"
        raise Refused("features", expected, len(names), "Leave them out, or name each column.")
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)), names


def _of_csv(path: Path) -> dict[str, list[Any]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            rows, names = list(reader), reader.fieldnames or ()
    except FileNotFoundError:
        got = f"{str(path)!r}, where there is none"
        raise NotFound("table", "exist", got, "Create it, or give another path.") from None
    except (OSError, ValueError, csv.Error) as error:  # a name with a zero, or other bytes
        raise Refused("table", "be a CSV file in UTF-8", f"{str(path)!r}: {error}", "Save it so.") from None
    for number, row in enumerate(rows, 2):
        if None in row or None in row.values():
            got = f"another number of cells in row {number} of {str(path)!r}"
            raise Refused("table", "have a cell for each column", got, "Correct this row.")
    return {name: [row[name] for row in rows] for name in names}


def _as_list(name: object, column: Any) -> list[Any]:
    column = column.tolist() if hasattr(column, "tolist") else column
    if isinstance(column, str) or not isinstance(column, Sequence):
        raise WrongType(f"column {name}", "be a list", repr(column), "Write ['a', 'b'], say.")
    return list(column)


def _same_length(columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    if len({len(column) for column in columns.values()}) > 1:
        got = ", ".join(f"{len(column)} of {name}" for name, column in columns.items())
        raise Refused("table", "have columns of equal length", got, "Fill them in.")
    return columns
