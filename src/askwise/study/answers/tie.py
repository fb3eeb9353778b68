"""Can't decide."""

from collections.abc import Sequence
from dataclasses import dataclass

from askwise.study.answers.base import Answer, Data, Tensor, Threshold, Verdict, listed

_WORDS = ("tie", "can't-decide", "can't decide", "cant-decide")


@dataclass(frozen=True)
class Tie(Answer):
    """Neither yes nor no, or no option noticeably better than another; this informs the model."""

    undecided: bool = True

    key = "undecided"

    @classmethod
    def given(cls, value: object, size: int, how: str) -> "Tie":
        """None."""
        return cls()

    @classmethod
    def typed(cls, text: str, names: Sequence[str]) -> "Tie | None":
        """Tie, or can't decide."""
        return cls() if text.lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'") in _WORDS else None

    @staticmethod
    def _rows(data: type[Data], points: Tensor, answers: "Sequence[Tie]", threshold: Threshold) -> Data:
        return data.ties(points, threshold=threshold)

    def text(self, names: Sequence[str]) -> str:
        """Tie."""
        return "tie"

    def in_words(self, names: Sequence[str]) -> str:
        """Can't decide, and between which."""
        return f"can't decide between {listed(names)}" if len(names) > 1 else "can't decide"

    def outcomes(self, names: Sequence[str]) -> list[str]:
        """A tie of all."""
        return ["tie"] * len(names)

    @classmethod
    def from_outcomes(cls, outcomes: Sequence[str]) -> "Tie | None":
        """From ties."""
        return cls() if {outcome for outcome in outcomes if outcome} == {"tie"} else None

    def verdicts(self, size: int) -> list[Verdict]:
        """Nothing said."""
        return ["undecided"] * size
