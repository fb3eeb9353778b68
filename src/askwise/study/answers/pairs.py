"""Some comparisons of two among many."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from askwise.errors import Refused
from askwise.study.answers.base import Answer, Verdict, indices, labels

if TYPE_CHECKING:
    import torch

    import askwise.model


@dataclass(frozen=True)
class Pairs(Answer):
    """Independent comparisons, each the better option and the worse."""

    pairs: tuple[tuple[int, int], ...]

    key = "pairs"

    @classmethod
    def given(cls, value: object, size: int, how: str) -> "Pairs":
        """Pairs of indices, better first."""
        several = isinstance(value, Iterable) and not isinstance(value, str | bytes)
        listed = list(value) if several and getattr(value, "ndim", 1) > 0 else []  # type: ignore[call-overload]
        read = [indices(pair) or [] for pair in listed]
        proper = all(len(set(pair)) == len(pair) == 2 and all(0 <= k < size for k in pair) for pair in read)
        if not read or not proper or len({frozenset(pair) for pair in read}) != len(read):
            expected = f"name two different options of 0 to {size - 1} each, better first, no pair twice"
            raise Refused("pairs", expected, repr(value), how)
        return cls(tuple(sorted((better, worse) for better, worse in read)))

    @classmethod
    def typed(cls, text: str, names: Sequence[str]) -> "Pairs | None":
        """``A>B;C>B``, better first."""
        pairs = []
        for part in text.split(";"):
            sides = [side.strip().upper() for side in part.split(">")]
            if len(sides) != 2 or not all(side in names for side in sides):
                raise Refused(
                    "pairs",
                    f"be like {names[0]}>{names[1]}, better first, with semicolons between",
                    repr(part.strip()),
                    f"Options are {names[0]} to {names[-1]}.",
                )
            pairs.append([names.index(side) for side in sides])
        return cls.given(pairs, len(names), "Name each pair once.")

    @classmethod
    def rows(cls, points: "torch.Tensor", answers: "Sequence[Pairs]") -> "askwise.model.Data":
        """A duel for each pair."""
        import torch

        from askwise.model import Data

        duels = [
            own[list(pair)] for own, answer in zip(points, answers, strict=True) for pair in answer.pairs
        ]
        return Data.duels(torch.stack(duels), torch.ones(len(duels)))

    def text(self, names: Sequence[str]) -> str:
        """Pair by pair."""
        return ";".join(f"{names[better]}>{names[worse]}" for better, worse in self.pairs)

    def outcomes(self, names: Sequence[str]) -> list[str]:
        """Whom each option beats."""
        beaten = [
            [names[worse] for better, worse in self.pairs if better == option] for option in range(len(names))
        ]
        return [f"beats {' '.join(those)}" if those else "" for those in beaten]

    @classmethod
    def from_outcomes(cls, outcomes: Sequence[str]) -> "Pairs | None":
        """From whom each option beats."""
        if not any(outcomes) or not all(outcome.startswith("beats ") for outcome in outcomes if outcome):
            return None
        names = labels(len(outcomes))
        pairs = [
            f"{name}>{worse}"
            for name, outcome in zip(names, outcomes, strict=True)
            for worse in outcome.removeprefix("beats ").split()
        ]
        return cls.typed(";".join(pairs), names)

    def verdicts(self, size: int) -> list[Verdict]:
        """Good is what won and never lost."""
        better, worse = ({pair[side] for pair in self.pairs} for side in (0, 1))
        return [
            "bad" if option in worse else "good" if option in better else "undecided"
            for option in range(size)
        ]
