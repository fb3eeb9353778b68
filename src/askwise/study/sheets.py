"""Tables as spreadsheets write them: CSV with commas, or with semicolons and perhaps decimal commas."""

import csv
import io
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from askwise.errors import Refused
from askwise.space import Parameter
from askwise.study.cells import restored, text_of

_WITH_COMMA = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")


@dataclass(frozen=True)
class Sheet:
    """The rows of a table by column, each with the number of its line."""

    columns: list[str]
    rows: list[tuple[int, dict[str, str]]]
    semicolons: bool
    """Whether cells are separated by semicolons, so that commas may be decimal ones."""

    @classmethod
    def read(cls, file: Path) -> "Sheet":
        """The table in a file."""
        return cls.of(file, text_of(file))

    @classmethod
    def of(cls, file: Path, text: str) -> "Sheet":
        """The table in the text of this file, separated by whatever gives its header more cells."""
        first = text.lstrip().partition("\n")[0]
        semicolons = first.count(";") > first.count(",")
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=";" if semicolons else ",", strict=True)
        try:
            header, *lines = [
                (reader.line_num, line) for line in reader if any(cell.strip() for cell in line)
            ]
        except (csv.Error, ValueError) as error:
            got = f"{file} ({error})"
            advice = "Run `askwise export` for an example."
            raise Refused("file", "be CSV with a header", got, advice) from None
        columns = [restored(cell) for cell in header[1]]
        check_different(columns)
        rows = []
        for number, cells in lines:
            if len(cells) != len(columns):
                advice = f"Put quotes around a cell with a {'semicolon' if semicolons else 'comma'} in it."
                expected = f"have {len(columns)} cells, like the header"
                raise Refused(f"row {number}", expected, len(cells), advice)
            cleaned = (restored(cell) for cell in cells)
            rows.append((number, dict(zip(columns, cleaned, strict=True))))
        return cls(columns, rows, semicolons)

    def renamed(self, names: Mapping[str, str]) -> "Sheet":
        """The table with some of its columns renamed."""
        columns = [names.get(name, name) for name in self.columns]
        check_different(columns)
        rows = [(line, dict(zip(columns, row.values(), strict=True))) for line, row in self.rows]
        return replace(self, columns=columns, rows=rows)

    def with_decimal_points(self, parameters: Mapping[str, Parameter]) -> "Sheet":
        """The table with points in place of decimal commas, in the columns of these parameters.

        Only where that is unambiguous: cells are separated by semicolons, no number has a point, and the
        commas are not all where English writes those of thousands.
        """
        there = [(name, p) for name, p in parameters.items() if name in self.columns]
        cells = [(row[name], p) for _, row in self.rows for name, p in there]
        commas = [cell for cell, p in cells if _WITH_COMMA.fullmatch(cell) and not _reads(p, cell)]
        if not self.semicolons or not commas or any("." in cell and p.numeric for cell, p in cells):
            return self
        if all(map(_THOUSANDS.fullmatch, commas)):
            expected = "have a comma where it can only be a decimal one"
            advice = "Write numbers with a decimal point, and none between thousands."
            raise Refused("numbers", expected, repr(commas[0]), advice)
        rows = [(line, {**row, **_pointed(row, there)}) for line, row in self.rows]
        return replace(self, rows=rows)


def _pointed(row: Mapping[str, str], there: Iterable[tuple[str, Parameter]]) -> dict[str, str]:
    each = ((name, row[name], p) for name, p in there if _WITH_COMMA.fullmatch(row[name]))
    return {name: cell.replace(",", ".") for name, cell, p in each if not _reads(p, cell)}


def _reads(parameter: Parameter, text: str) -> bool:
    """Whether the text is a value as it is: of a choice, perhaps."""
    try:
        parameter.read(text)
    except Refused:
        return False
    return True


def check_different(columns: list[str]) -> None:
    """Refuse a table two of whose columns have one name."""
    twice = [name for name in columns if columns.count(name) > 1]
    if twice:
        raise Refused("columns", "have different names", f"{twice[0]!r} twice", "Rename one.")
