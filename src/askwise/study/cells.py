"""Cells of a CSV file that no spreadsheet takes for a formula, with all blanks, and the text of files."""

import re
from pathlib import Path

from askwise.errors import NotFound, Refused

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_FORMULA = re.compile(r"'*[=+\-@]")
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


def defused(cell: object) -> object:
    """The cell with an apostrophe before what a spreadsheet would compute, or strip; numbers stay numbers.

    >>> [defused(cell) for cell in ("=1+1", "-3.5", "-soft", "'=x", "it's", " soft", 3)]
    ["'=1+1", '-3.5', "'-soft", "''=x", "it's", "' soft", 3]
    """
    if not isinstance(cell, str) or _NUMBER.fullmatch(cell):
        return cell
    return f"'{cell}" if _needs_guard(cell) else cell


def restored(cell: str) -> str:
    """The cell as it was before :func:`defused`; of any other without the blanks around it.

    >>> [restored(cell) for cell in ("'=1+1", " -3.5 ", "' soft", "'soft ", "it's ")]
    ['=1+1', '-3.5', ' soft', 'soft ', "it's"]
    """
    inner = cell.lstrip()
    return inner[1:] if inner.startswith("'") and _needs_guard(inner[1:]) else cell.strip()


def _needs_guard(cell: str) -> bool:
    return bool(_FORMULA.match(cell)) or cell.lstrip("'") != cell.lstrip("'").strip()


def text_of(file: Path) -> str:
    """The text of a file in UTF-8, or in UTF-16 with its mark."""
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        got, advice = f"{str(file)!r}, where there is none", "Create it, or give another path."
        raise NotFound("file", "exist", got, advice) from None
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
