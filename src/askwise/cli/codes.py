"""What the exit codes of a command mean."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from askwise.errors import Refused

CANNOT_RUN = (126, 127)
"""By shell convention: not executable, not found."""
Meaning = Literal["yes", "no", "tie", "skip", "failure"]
_ITEM = re.compile(r"(\d{1,3})(?:-(\d{1,3}))?")
_USUAL: Mapping[int, Meaning] = {0: "yes", 1: "no"}


@dataclass(frozen=True)
class Codes:
    """The meaning of each exit code; of those that are not listed it is a failure."""

    meanings: Mapping[int, Meaning] = field(default_factory=lambda: _USUAL)
    listed: frozenset[int] = frozenset()
    """Codes that somebody has given a meaning on purpose."""

    @classmethod
    def read(cls, no: str | None, tie: str | None, skip: str | None) -> "Codes":
        """The codes in lists such as ``2,3`` or ``64-78``; a list for no replaces the usual 1."""
        meanings: dict[int, Meaning] = {}
        given: list[tuple[Meaning, str | None]] = [("no", no), ("tie", tie), ("skip", skip)]
        for meaning, text in given:
            for code in [] if text is None else _codes(f"--{meaning}-codes", text):
                if code in meanings:
                    got = f"{code} in --{meanings[code]}-codes as well"
                    raise Refused(f"--{meaning}-codes", "have codes of its own", got, "Leave one out.")
                meanings[code] = meaning
        usual = {code: meaning for code, meaning in _USUAL.items() if code == 0 or no is None}
        return cls({**usual, **meanings}, frozenset(meanings))

    def meaning(self, code: int) -> Meaning:
        """What a code means; a signal has the code that shells give it, 128 and its number."""
        return self.meanings.get(128 - code if code < 0 else code, "failure")


def _codes(option: str, text: str) -> list[int]:
    """The numbers in a list of numbers and ranges."""
    found: list[int] = []
    for item in text.split(","):
        match = _ITEM.fullmatch(item.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if not 1 <= first <= last <= 255:
            expected = "be exit codes from 1 to 255, such as 2,3 or 64-78"
            raise Refused(option, expected, repr(text), "0 is always a yes, or that an answer was printed.")
        found += [code for code in range(first, last + 1) if code not in found]
    return found
