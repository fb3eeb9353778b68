"""Cells of a CSV file that no spreadsheet takes for a formula, and the text of such files."""

import re
from pathlib import Path

from askwise.errors import Refused

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


def defused(cell: object) -> object:
    """The cell with an apostrophe before what a spreadsheet would compute; numbers stay numbers.

    >>> [defused(cell) for cell in ("=1+1", "-3.5", "-soft", "'=x", "it's", 3)]
    ["'=1+1", '-3.5', "'-soft", "''=x", "it's", 3]
    """
    is_formula = isinstance(cell, str) and _FORMULA.match(cell) and not _NUMBER.fullmatch(cell)
    return f"'{cell}" if is_formula else cell


def restored(cell: str) -> str:
    """The cell as it was before :func:`defused`."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def text_of(file: Path) -> str:
    """The text of a file in UTF-8, or in UTF-16 with its mark."""
    content = file.read_bytes()
    try:
        text = content.decode("utf-16" if content.startswith(_UTF_16) else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        advice = "Save it as UTF-8; spreadsheets call it CSV UTF-8."
        got = f"other bytes on line {line} of {file}"
        raise Refused("file", "be text in UTF-8 or UTF-16", got, advice) from None
    if "\0" in text:
        raise Refused("file", "be text", f"zeros in {file}", "Save it as UTF-8, or as UTF-16 with its mark.")
    return text
