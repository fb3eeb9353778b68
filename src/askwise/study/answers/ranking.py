"""Which is best, or the best few in order."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from askwise.errors import Refused
from askwise.study.answers.base import Answer, Data, Tensor, Threshold, Verdict, indices, listed, whole


@dataclass(frozen=True)
class Ranking(Answer):
    """The best options in order, best first; a winner is a ranking of one."""

    ranking: tuple[int, ...]

    key = "ranking"

    @classmethod
    def given(cls, value: object, size: int, how: str) -> "Ranking":
        """Indices, best first; the first few are enough."""
        places = indices(value)
        if not places or len(set(places)) != len(places) or not all(0 <= place < size for place in places):
            expected = f"name options of 0 to {size - 1}, each once at most, best first"
            raise Refused("ranking", expected, repr(value), how)
        return cls(tuple(places[: size - 1]))  # the last place follows from all others

    @classmethod
    def winner(cls, value: object, size: int, how: str) -> "Ranking":
        """The index of the best option."""
        best = whole(value)
        if best is None or not 0 <= best < size:
            raise Refused("winner", f"be one of the options 0 to {size - 1}", repr(value), how)
        return cls((best,))

    @classmethod
    def typed(cls, text: str, names: Sequence[str]) -> "Ranking | None":
        """One name, or several with either > or commas between them."""
        parts = [part.strip().upper() for part in re.split("[>,]", text)]
        if not all(part in names for part in parts):
            return None
        if ">" in text and "," in text:  # A>B,C>D would be a ranking to some and two pairs to others
            advice = f"Write {'>'.join(parts)} for a ranking, or `pairs {text}` for pairs."
            raise Refused("ranking", "have either > or commas between options", repr(text), advice)
        if len(set(parts)) < len(parts):
            raise Refused("answer", "name each option once at most", repr(text), "Leave one out.")
        return cls.given([names.index(part) for part in parts], len(names), "")

    @staticmethod
    def _rows(data: type[Data], points: Tensor, answers: "Sequence[Ranking]", threshold: Threshold) -> Data:
        return data.rankings(points, [list(answer.ranking) for answer in answers], threshold=threshold)

    @property
    def shape(self) -> object:
        """How many are ranked."""
        return len(self.ranking)

    def text(self, names: Sequence[str]) -> str:
        """Best first."""
        return ">".join(names[place] for place in self.ranking)

    def in_words(self, names: Sequence[str]) -> str:
        """The best in order, and the others, which are below them."""
        first, *next_ = (names[place] for place in self.ranking)
        others = [name for place, name in enumerate(names) if place not in self.ranking]
        below = {1: "it", 2: "both"}.get(len(self.ranking), "these")
        rest = f"{others[0]} last" if len(others) == 1 else f"{listed(others)} below {below}"
        return f"{', then '.join([f'{first} best', *next_])}; {rest}"

    @property
    def compound(self) -> bool:
        """A winner is one key."""
        return len(self.ranking) > 1

    def outcomes(self, names: Sequence[str]) -> list[str]:
        """The place of each option that has one."""
        places = {option: place for place, option in enumerate(self.ranking, 1)}
        return [str(places.get(option, "")) for option in range(len(names))]

    @classmethod
    def from_outcomes(cls, outcomes: Sequence[str]) -> "Ranking | None":
        """From places 1, 2, .."""
        if not any(outcomes) or not all(outcome.isdecimal() for outcome in outcomes if outcome):
            return None
        places = sorted((int(outcome), index) for index, outcome in enumerate(outcomes) if outcome)
        if [place for place, _ in places] != list(range(1, len(places) + 1)):
            return None
        return cls.given([index for _, index in places], len(outcomes), "")

    def verdicts(self, size: int) -> list[Verdict]:
        """Good is the first."""
        return ["good" if option == self.ranking[0] else "bad" for option in range(size)]
