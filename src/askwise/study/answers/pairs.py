"""Some comparisons of two among many."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from askwise.errors import Refused
from askwise.study.answers.base import Answer, Data, Tensor, Threshold, Verdict, indices, labels


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
        """``pairs A>B, C>B``, better first; without the word if semicolons are between them.

        ``A>B`` alone is a ranking, in which both are above all others.
        """
        word, _, rest = text.partition(" ")
        if word.lower() == cls.key:
            return cls.listed(rest, names)
        return cls.listed(text, names) if ";" in text else None

    @classmethod
    def listed(cls, text: str, names: Sequence[str]) -> "Pairs":
        """``A>B, C>B``, better first, with commas or semicolons between."""
        pairs = []
        for part in re.split("[;,]", text):
            sides = [side.strip().upper() for side in part.split(">")]
            if len(sides) != 2 or not all(side in names for side in sides):
                expected = f"be like {names[0]}>{names[1]}, better first, with commas between"
                advice = f"Options are {names[0]} to {names[-1]}."
                raise Refused("pairs", expected, repr(part.strip()), advice)
            pairs.append([names.index(side) for side in sides])
        return cls.given(pairs, len(names), "Name each pair once.")

    @staticmethod
    def _rows(data: type[Data], points: Tensor, answers: "Sequence[Pairs]", threshold: Threshold) -> Data:
        question = [[number] for number, answer in enumerate(answers) for _ in answer.pairs]
        pairs = [list(pair) for answer in answers for pair in answer.pairs]
        made = data.duels(points[question, pairs], [1] * len(pairs))
        return made.together(made.first.new_tensor(question)[:, 0])

    def text(self, names: Sequence[str]) -> str:
        """Pair by pair."""
        return f"pairs {', '.join(f'{names[better]}>{names[worse]}' for better, worse in self.pairs)}"

    def in_words(self, names: Sequence[str]) -> str:
        """Pair by pair."""
        said = ", ".join(f"{names[better]} better than {names[worse]}" for better, worse in self.pairs)
        return f"{said}; nothing else said"

    @property
    def compound(self) -> bool:
        """At least two options, and which is better."""
        return True

    def outcomes(self, names: Sequence[str]) -> list[str]:
        """The options that each one beats."""
        beaten = [[names[worse] for better, worse in self.pairs if better == k] for k in range(len(names))]
        return [f"beats {' '.join(those)}" if those else "" for those in beaten]

    @classmethod
    def from_outcomes(cls, outcomes: Sequence[str]) -> "Pairs | None":
        """From the options that each one beats."""
        if not any(outcomes) or not all(outcome.startswith("beats ") for outcome in outcomes if outcome):
            return None
        names = labels(len(outcomes))
        beaten = [outcome.removeprefix("beats ").split() for outcome in outcomes]
        pairs = [f"{name}>{worse}" for name, those in zip(names, beaten, strict=True) for worse in those]
        return cls.listed(";".join(pairs), names)

    def verdicts(self, size: int) -> list[Verdict]:
        """Good is what won and never lost."""
        better, worse = ({pair[side] for pair in self.pairs} for side in (0, 1))
        return ["bad" if k in worse else "good" if k in better else "undecided" for k in range(size)]
