"""A TOML text whose errors name the line."""

import difflib
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from askwise.errors import Refused


@dataclass(frozen=True)
class Tables:
    """A TOML file, and the line on which each of its keys is."""

    content: dict[str, Any]
    lines: Mapping[tuple[str, ...], int]

    @classmethod
    def read(cls, text: str) -> "Tables":
        """The tables of a text; a refusal names the line that is not valid TOML."""
        try:
            content = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            place = re.search(r" \(at line (\d+), column \d+\)", str(error))
            line = int(place[1]) if place else text.rstrip().count("\n") + 1
            what = re.sub(r" \(at .*\)", "", str(error))
            got = what[:1].lower() + what[1:]
            hint = _hint(text.split("\n")[line - 1])
            got, advice = hint or (got, "Correct this line.")
            raise Refused("study file", "be TOML", got, advice, f"line {line}") from None
        except RecursionError:
            got = "brackets in brackets in brackets, too deep to be read"
            raise Refused("study file", "be TOML", got, "Leave most of them out.", "somewhere") from None
        except ValueError as error:  # a number of thousands of digits
            raise Refused(
                "study file", "have numbers of usual size", error, "Shorten it.", "somewhere"
            ) from None
        return cls(content, _lines_of(text))

    def at(self, *path: str) -> str:
        """The line of this key, or of the table in which it would be."""
        while path not in self.lines:
            path = path[:-1]
        return f"line {self.lines[path]}"

    @contextmanager
    def placing(self, *path: str) -> Iterator[None]:
        """Refusals inside the block name the line of the key that they are about, or of this path."""
        try:
            yield
        except Refused as error:
            raise error.at(self.at(*path, error.what)) from None

    def table(self, *path: str) -> dict[str, Any]:
        """A copy of this table."""
        found: Any = self.content
        for key in path:
            if key not in found:
                raise Refused("study file", f"have [{'.'.join(path)}]", "none", "Add it.", self.at(*path))
            found = found[key]
        if not isinstance(found, dict):
            advice = f"Write [{'.'.join(path)}] on a line of its own."
            raise Refused(path[-1], "be a table", repr(found), advice, self.at(*path))
        return dict(found)

    def check_known(self, path: tuple[str, ...], key: str, known: Iterable[str]) -> None:
        """Refuse an unknown key, and suggest a similar one."""
        if key in known:
            return
        close = difflib.get_close_matches(key, known, 1, 0.5)
        advice = f"Did you mean {close[0]!r}?" if close else "Leave it out."
        raise Refused("key", f"be one of {', '.join(known)}", repr(key), advice, self.at(*path, key))


_QUOTED = re.compile(r"""\"(?:\\\\.|[^"\\\\])*\"|'[^']*'""")
_DECIMAL_COMMA = re.compile(r"=\s*([+-]?\d+),(\d+)\s*(?:#.*)?$")
_CURLY = dict.fromkeys(map(ord, "\u201c\u201d\u201e\u201f\u2018\u2019\u201a\u201b\u00ab\u00bb"), '"')


def _hint(line: str) -> tuple[str, str] | None:
    """What is wrong with a line that people often write so, and what to write; None if it is another."""
    bare = _QUOTED.sub("_", line)
    if found := re.search(r"(?:^|[=\[,])\s*(True|False)\b", bare):
        return found[1], f"Write {found[1].lower()}, in lower case."
    if found := _DECIMAL_COMMA.search(bare):
        return f"{found[1]},{found[2]}", f"Write {found[1]}.{found[2]}, with a decimal point."
    if bare.translate(_CURLY) != bare:
        curly = next(char for char in bare if ord(char) in _CURLY)
        return f"a quote {curly}", f"Write {line.strip().translate(_CURLY)} with straight quotes."
    return None


def _lines_of(text: str) -> dict[tuple[str, ...], int]:
    """The line on which each key or table of a TOML text begins, by its path."""
    found: dict[tuple[str, ...], int] = {(): 1}
    table: tuple[str, ...] = ()
    statement, first = "", 1
    for number, line in enumerate(text.split("\n"), 1):
        statement += line + "\n"
        try:
            keys = tomllib.loads(statement)
        except tomllib.TOMLDecodeError:  # it continues on the next line
            continue
        paths = _paths(keys)
        if statement.lstrip().startswith("["):
            table = max(paths, key=len)
            paths = [table[:length] for length in range(1, len(table) + 1)]
        else:
            paths = [table + path for path in paths]
        for path in paths:
            found.setdefault(path, first)
        statement, first = "", number + 1
    return found


def _paths(table: object) -> list[tuple[str, ...]]:
    """Paths of all keys in nested tables."""
    if isinstance(table, list):
        return [path for part in table for path in _paths(part)]
    if not isinstance(table, dict):
        return []
    return [path for key in table for path in ((key,), *((key, *rest) for rest in _paths(table[key])))]
