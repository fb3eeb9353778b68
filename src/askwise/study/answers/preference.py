"""Which of two is better?"""

from collections.abc import Sequence
from dataclasses import dataclass

from askwise.errors import Refused
from askwise.study.answers.base import Answer, Data, Tensor, Threshold, Verdict, whole


@dataclass(frozen=True)
class Preference(Answer):
    """The better of two options."""

    prefers: int

    key = "prefers"

    @classmethod
    def given(cls, value: object, size: int, how: str) -> "Preference":
        """The index of the preferred option."""
        index = whole(value)
        if index not in (0, 1):
            raise Refused("answer", "be 0 or 1, the index of the preferred option", repr(value), how)
        return cls(index)

    @classmethod
    def typed(cls, text: str, names: Sequence[str]) -> "Preference | None":
        """The name of the preferred option."""
        return cls(names.index(text.upper())) if text.upper() in names else None

    @staticmethod
    def _rows(
        data: type[Data], points: Tensor, answers: "Sequence[Preference]", threshold: Threshold
    ) -> Data:
        return data.duels(points, [1 - answer.prefers for answer in answers])

    def text(self, names: Sequence[str]) -> str:
        """The preferred option."""
        return names[self.prefers]

    def in_words(self, names: Sequence[str]) -> str:
        """The preferred option."""
        return f"{names[self.prefers]} preferred"

    def outcomes(self, names: Sequence[str]) -> list[str]:
        """Better and worse."""
        return ["better" if option == self.prefers else "worse" for option in range(len(names))]

    @classmethod
    def from_outcomes(cls, outcomes: Sequence[str]) -> "Preference | None":
        """From better and worse."""
        return cls(list(outcomes).index("better")) if sorted(outcomes) == ["better", "worse"] else None

    def verdicts(self, size: int) -> list[Verdict]:
        """Good is the preferred one."""
        return ["good" if option == self.prefers else "bad" for option in range(size)]
