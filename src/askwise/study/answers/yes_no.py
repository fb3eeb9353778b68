"""Did it work?"""

from collections.abc import Sequence
from dataclasses import dataclass

from askwise.errors import Refused
from askwise.study.answers.base import Answer, Data, Tensor, Threshold, Verdict, is_truth, whole

_YES, _NO = ("yes", "y", "true"), ("no", "n", "false")


@dataclass(frozen=True)
class YesNo(Answer):
    """Yes or no to one setting."""

    yes: bool

    key = "yes"

    @classmethod
    def given(cls, value: object, size: int, how: str) -> "YesNo":
        """True or False, or 1 or 0."""
        number = int(value) if is_truth(value) else whole(value)  # type: ignore[call-overload]
        if number not in (0, 1):
            raise Refused("answer", "be True or False", repr(value), how)
        return cls(bool(number))

    @classmethod
    def typed(cls, text: str, names: Sequence[str]) -> "YesNo | None":
        """Yes, no, or the like."""
        return cls(text.lower() in _YES) if text.lower() in _YES + _NO else None

    @staticmethod
    def _rows(data: type[Data], points: Tensor, answers: "Sequence[YesNo]", threshold: Threshold) -> Data:
        return data.binary(points[:, 0], [int(answer.yes) for answer in answers])

    def text(self, names: Sequence[str]) -> str:
        """Yes or no."""
        return "yes" if self.yes else "no"

    def in_words(self, names: Sequence[str]) -> str:
        """Yes or no."""
        return self.text(names)

    def outcomes(self, names: Sequence[str]) -> list[str]:
        """Yes or no."""
        return [self.text(names)]

    @classmethod
    def from_outcomes(cls, outcomes: Sequence[str]) -> "YesNo | None":
        """From yes or no."""
        return cls(outcomes[0] == "yes") if list(outcomes) in (["yes"], ["no"]) else None

    def verdicts(self, size: int) -> list[Verdict]:
        """Good if it worked."""
        return ["good" if self.yes else "bad"]
