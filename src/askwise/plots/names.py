"""Names of values on an axis: side by side, in several lines, slanted, or as numbers with a key."""

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

_LINES = 3  # of a name
_WIDE = 17  # letters beside an upright axis
_TALL = 13  # lines that fit beside an upright axis
_SLANTED, _MANY = 14, 8  # letters of names that may be slanted, and their number
_ENTRY = 48  # letters of an entry of the key
_ALL = 24  # names up to which the key has all, else only those with a label


@dataclass(frozen=True)
class Names:
    """Labels of some of the values."""

    places: Sequence[int]
    """Which of the values have a label."""
    labels: Sequence[str]
    slanted: bool = False
    key: Sequence[str] = ()
    """What the numbers stand for, if the labels are numbers."""


def fitted(names: Sequence[str], room: int) -> Names:
    """Labels that fit: below a panel with room for so many letters, or (0) beside an upright axis.

    >>> fitted(["soft", "very hard", "off"], 20).labels
    ['soft', 'very\\nhard', 'off']
    """
    every, count = range(len(names)), len(names)
    lines = [_wrapped(name, room // count - 1 if room else _WIDE) for name in names]
    tallest = max(map(len, lines))
    if all(lines) and tallest <= (_LINES if room else min(_LINES, _TALL // count)):
        return Names(every, ["\n".join(parts) for parts in lines])
    if room and max(map(len, names)) <= _SLANTED and count <= _MANY:
        return Names(every, names, slanted=True)
    digits = len(str(count)) + 1
    step = math.ceil(count * digits / room) if room else math.ceil(count / _TALL)
    chosen = range(0, count, step)
    explained = every if count <= _ALL else chosen
    key = [f"{n + 1} = {shortened(names[n], _ENTRY)}" for n in explained]
    return Names(chosen, [str(place + 1) for place in chosen], key=key)


def shortened(text: str, width: int) -> str:
    """The beginning of a long text, on one line.

    >>> shortened("a prompt that is long", 12)
    'a prompt th…'
    """
    line = " ".join(text.split())
    return line if len(line) <= width else f"{line[: width - 1].rstrip()}…"


def _wrapped(name: str, width: int) -> list[str]:
    """Lines of a name; none if a word is too long."""
    if width < 1:
        return []
    lines = textwrap.wrap(name, width, break_long_words=False) or [name]
    return lines if max(map(len, lines)) <= width else []
