"""Which is worst?"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from askwise.errors import Refused
from askwise.study.answers.base import Answer, Data, Tensor, Threshold, Verdict, listed, whole

FEWEST = 3
"""Of two options, the better one is named instead."""
_TYPED = re.compile(r"worst\s+(\w+)|-\s*([a-z]+)", re.IGNORECASE)  # -1 might be meant as an index


@dataclass(frozen=True)
class Worst(Answer):
    """The worst of three options or more; nothing is said of how the others compare."""

    worst: int

    key = "worst"

    @classmethod
    def given(cls, value: object, size: int, how: str) -> "Worst":
        """The index of the worst option."""
        if size < FEWEST:
            got, advice = f"{size} options", "Name the better one instead."
            raise Refused("worst", f"be one of {FEWEST} options or more", got, advice)
        index = whole(value)
        if index is None or not 0 <= index < size:
            raise Refused("worst", f"be one of the options 0 to {size - 1}", repr(value), how)
        return cls(index)

    @classmethod
    def typed(cls, text: str, names: Sequence[str]) -> "Worst | None":
        """``worst C``, or ``-c``."""
        found = _TYPED.fullmatch(text)
        name = (found[1] or found[2]).upper() if found else ""
        return cls.given(names.index(name), len(names), "") if name in names else None

    @staticmethod
    def _rows(data: type[Data], points: Tensor, answers: "Sequence[Worst]", threshold: Threshold) -> Data:
        return data.worst(points, [answer.worst for answer in answers])

    def text(self, names: Sequence[str]) -> str:
        """Worst, and its name."""
        return f"worst {names[self.worst]}"

    def in_words(self, names: Sequence[str]) -> str:
        """The worst; the others are not compared with each other."""
        others = [name for option, name in enumerate(names) if option != self.worst]
        return f"{names[self.worst]} worst; nothing said of {listed(others)}"

    @property
    def compound(self) -> bool:
        """A word or a sign, and a name."""
        return True

    def outcomes(self, names: Sequence[str]) -> list[str]:
        """Worst, and nothing of the others."""
        return ["worst" if option == self.worst else "" for option in range(len(names))]

    @classmethod
    def from_outcomes(cls, outcomes: Sequence[str]) -> "Worst | None":
        """From a single worst."""
        said = list(filter(None, outcomes))
        return cls(list(outcomes).index("worst")) if said == ["worst"] and len(outcomes) >= FEWEST else None

    def verdicts(self, size: int) -> list[Verdict]:
        """Bad is the worst; none of the others was chosen."""
        return ["bad" if option == self.worst else "undecided" for option in range(size)]
