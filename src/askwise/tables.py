"""A TOML text whose errors name the line."""

import difflib
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Refused", "Tables"]

Refused = Callable[[str], ValueError]
"""An error on a certain line, from what is wrong there."""


@dataclass(frozen=True)
class Tables:
    """A TOML file, and the line on which each of its keys is."""

    content: dict[str, Any]
    lines: Mapping[tuple[str, ...], int]

    @classmethod
    def read(cls, text: str) -> "Tables":
        """The tables of a text, or an error that names the line on which it is no TOML."""
        try:
            content = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            place = re.search(r" \(at line (\d+), column \d+\)", str(error))
            line = int(place[1]) if place else text.rstrip().count("\n") + 1
            what = re.sub(r" \(at .*\)", "", str(error))
            raise ValueError(
                f"line {line}: study file must be TOML; got {what[:1].lower()}{what[1:]}. Correct this line."
            ) from None
        return cls(content, _lines_of(text))

    def at(self, *path: str) -> Refused:
        """An error on the line of this key, or of the table in which it would be."""
        while path not in self.lines:
            path = path[:-1]
        return lambda message: ValueError(f"line {self.lines[path]}: {message}")

    def table(self, *path: str) -> dict[str, Any]:
        """A copy of this table."""
        found: Any = self.content
        for key in path:
            if key not in found:
                raise self.at(*path)(f"study file must have [{'.'.join(path)}]; got none. Add it.")
            found = found[key]
        if not isinstance(found, dict):
            raise self.at(*path)(
                f"{path[-1]} must be a table; got {found!r}. Write [{'.'.join(path)}] on a line of its own."
            )
        return dict(found)

    def check_known(self, path: tuple[str, ...], key: str, known: Iterable[str]) -> None:
        """Refuse a key that means nothing, and suggest the one that was meant."""
        if key in known:
            return
        close = difflib.get_close_matches(key, known, 1, 0.5)
        advice = f"Did you mean {close[0]!r}?" if close else "Leave it out."
        raise self.at(*path, key)(f"key must be one of {', '.join(known)}; got {key!r}. {advice}")


def _lines_of(text: str) -> dict[tuple[str, ...], int]:
    """The line on which each key or table of a TOML text begins, by its path."""
    found: dict[tuple[str, ...], int] = {(): 1}
    table: tuple[str, ...] = ()
    statement, first = "", 1
    for number, line in enumerate(text.split("\n"), 1):
        statement += line + "\n"
        try:
            keys = tomllib.loads(statement)
        except tomllib.TOMLDecodeError:  # it goes on in the next line
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
