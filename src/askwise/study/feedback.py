"""The three kinds of questions: what a study asks, which answers it takes, and what follows from them.

Everything that differs between yes/no questions, duels and batches is here; nothing else asks which kind it
is.  What needs torch imports it when it is called, so that defaults are known without it.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from askwise.errors import Refused
from askwise.rules.asks import Asks
from askwise.study.answers import UNGIVEN, Answer, Pairs, Preference, Ranking, Tie, Verdict, YesNo

if TYPE_CHECKING:
    import torch

    import askwise.model
    import askwise.search

Chances = list[tuple[float, Answer]]
"""Answers that may come, each with its probability."""
_MOST_AHEAD = 6  # answers to a batch for which the next query is computed ahead
_TRIALS = 4096  # draws of utilities, by which the chances to win are counted


class Feedback(ABC):
    """A kind of question."""

    asks: ClassVar[Asks]
    question: ClassVar[str]
    """What people are asked, unless the study says otherwise."""
    rule: ClassVar[str]
    """The default rule."""
    size: ClassVar[int]
    """Settings that one question is about, by default."""
    initial: ClassVar[int]
    """Space-filling questions before the first model, by default."""
    simulated_answers: ClassVar[int] = 40
    """Answers that `askwise simulate` asks of each user, by default."""
    compares: ClassVar[bool] = True
    """Whether settings are compared with each other."""
    takes: ClassVar[Mapping[str, Callable[[object, int, str], Answer]]]
    """What reads an answer that is given by this keyword of `Study.tell`."""
    expected: ClassVar[str]
    """What an answer must be, in Python."""
    how: ClassVar[str]
    """How to answer in Python."""
    letters: ClassVar[str] = "the letter of the preferred option"
    """What an answer must be, in a terminal."""
    words: ClassVar[Mapping[Verdict, str]] = {
        "good": "preferred",
        "bad": "not preferred",
        "undecided": "can't decide",
    }
    unit: ClassVar[str] = "1 is a difference that is preferred in 84% of duels"
    """What a difference of one means, in units of the noise of an answer."""
    close: ClassVar[float] = 2 / 3
    """You may stop when the true best is expected to win fewer duels with the recommended setting than this
    (yes/no: to succeed more often by less than this)."""

    def check_size(self, size: object) -> int:
        """The number of settings in a question."""
        value = self.size if size is None else size
        if isinstance(value, bool) or value != self.size or not isinstance(value, int):
            raise Refused("size", f"be {self.size} for {self.asks} questions", repr(size), "Leave it out.")
        return value

    def read(
        self,
        size: int,
        answer: object = UNGIVEN,
        *,
        ranking: object = None,
        winner: object = None,
        pairs: object = None,
    ) -> Answer:
        """The answer that was given in Python, or a refusal that says how to give one."""
        more = {"ranking": ranking, "winner": winner, "pairs": pairs}
        given = {name: value for name, value in more.items() if value is not None}
        if answer is not UNGIVEN:
            given["answer"] = answer
        if len(given) != 1:
            what = ", ".join(f"{name}={value!r}" for name, value in given.items()) or "none"
            raise Refused("answer", "be given once", what, self.how)
        ((name, value),) = given.items()
        if name == "answer" and value is None:
            return Tie()
        if isinstance(value, Tie):
            return value
        if isinstance(value, Answer):  # read before: it must fit this kind of question
            ((key, value),) = value.to_json().items()
            name = key if key in more else "answer"
        if name not in self.takes:
            raise Refused("answer", f"be {self.expected}", f"{name}={value!r}", self.how)
        return self.takes[name](value, size, self.how)

    def typed(self, text: str, names: Sequence[str], index: bool = False) -> Answer:
        """The answer that was typed; ``index``: options are counted from 0, not lettered."""
        word = text.strip()
        found = Tie.typed(word, names) or self._typed(word, names)
        if found is None:
            more = "; to count options from 0, add --index" if self.compares and not index else ""
            expected = "indices of options, counted from 0" if index else self.letters
            raise Refused("answer", f"be {expected}", repr(text), f"Write {self.examples(names)}{more}.")
        return found

    @abstractmethod
    def _typed(self, word: str, names: Sequence[str]) -> Answer | None: ...

    @abstractmethod
    def examples(self, names: Sequence[str]) -> str:
        """What may be typed, in a sentence."""

    @abstractmethod
    def keys(self, names: Sequence[str]) -> str:
        """The keys of the answers, for a prompt."""

    @abstractmethod
    def likely_answers(self, size: int) -> list[Answer]:
        """Answers for which it is worth to compute the next query ahead."""

    @abstractmethod
    def chances(
        self, belief: "askwise.model.Belief", query: "torch.Tensor", source: "torch.Generator"
    ) -> Chances:
        """What may be answered to a query [m, d], and how likely that is."""

    @abstractmethod
    def simulated(self, values: "torch.Tensor", source: "torch.Generator") -> Answer:
        """What a person answers who feels these values [m] with the noise that the model expects."""

    def champion(self, search: "askwise.search.Search", belief: "askwise.model.Belief") -> "torch.Tensor":
        """The point to recommend, [1, d]: of highest mean."""
        return search.champion(belief)

    def has_both_outcomes(self, data: "askwise.model.Data") -> bool:
        """Whether there is something to model."""
        return True

    def needs(self, initial: int) -> str:
        """What it takes until there is a model, in words."""
        return f"{initial} answers"

    def remaining(self, rate: float) -> str:
        """How much better the true best is expected to be, in words."""
        return f"the true best would win {rate:.0%} of duels with the recommended one (50% is no better)"

    def sentence(self, probability: float, reference: bool) -> str:
        """What the probability of a recommended setting means."""
        rival = "the reference" if reference else "a setting at random"
        return f"It is expected to be preferred to {rival} {probability:.0%} of the time."


class Binary(Feedback):
    """Did it work?"""

    asks = Asks.BINARY
    question, rule, size, initial = "Did it work?", "ucb_phi", 1, 3
    compares = False
    takes: ClassVar = {"answer": YesNo.given}
    expected, letters = "True or False", "yes or no"
    how = "Tell True, False, or None for can't decide."
    words: ClassVar[Mapping[Verdict, str]] = {"good": "yes", "bad": "no", "undecided": "can't decide"}
    unit = "1 is the difference between success rates of 50% and 84%"
    close = 0.1

    def _typed(self, word: str, names: Sequence[str]) -> Answer | None:
        return YesNo.typed(word, names)

    def examples(self, names: Sequence[str]) -> str:
        """Words."""
        return "yes, no, tie, skip or void"

    def keys(self, names: Sequence[str]) -> str:
        """Letters."""
        return "y yes, n no"

    def likely_answers(self, size: int) -> list[Answer]:
        """Both."""
        return [YesNo(True), YesNo(False)]

    def chances(
        self, belief: "askwise.model.Belief", query: "torch.Tensor", source: "torch.Generator"
    ) -> Chances:
        """Yes, no, and a tie if there have been some."""
        return _chances(belief, *belief.moments(query), YesNo(True), YesNo(False))

    def simulated(self, values: "torch.Tensor", source: "torch.Generator") -> Answer:
        """Yes if the value with noise is positive."""
        return YesNo(bool(values[0] + _noise(values[0], source) > 0))

    def champion(self, search: "askwise.search.Search", belief: "askwise.model.Belief") -> "torch.Tensor":
        """The point with the highest chance of a yes."""
        return search.likeliest(belief)

    def has_both_outcomes(self, data: "askwise.model.Data") -> bool:
        """Whether there are a yes and a no: one alone does not tell where the other is."""
        return bool((data.signs > 0).any() and (data.signs < 0).any())

    def needs(self, initial: int) -> str:
        """Both outcomes."""
        return "a yes and a no"

    def remaining(self, rate: float) -> str:
        """As a difference of success rates."""
        return f"the true best is expected to succeed {rate:.0%} more often than the recommended setting"

    def sentence(self, probability: float, reference: bool) -> str:
        """As a success rate, or a chance to be better than the reference."""
        if reference:
            return f"It is more likely to work than the reference with a probability of {probability:.0%}."
        return f"It is expected to work {probability:.0%} of the time."


class Duel(Feedback):
    """Which of two is better?

    Ten first duels cost nothing after forty (regret on Branin and Hartmann 3 as with five) and keep more
    users off a lower hill: regret 0.2 to 0.5 instead of 0.7 on the two hills of the demo, 40 users each.
    """

    asks = Asks.DUEL
    question, rule, size, initial = "Which is better?", "muc", 2, 10
    takes: ClassVar = {"answer": Preference.given}
    expected = "0 or 1, the index of the preferred option"
    how = "Tell 0, 1, or None for can't decide."

    def _typed(self, word: str, names: Sequence[str]) -> Answer | None:
        return Preference.typed(word, names)

    def examples(self, names: Sequence[str]) -> str:
        """Letters."""
        return f"{names[0]} or {names[1]}, or tie, skip, void"

    def keys(self, names: Sequence[str]) -> str:
        """Letters."""
        return f"{names[0].lower()} or {names[1].lower()}, the better one"

    def likely_answers(self, size: int) -> list[Answer]:
        """Both."""
        return [Preference(0), Preference(1)]

    def chances(
        self, belief: "askwise.model.Belief", query: "torch.Tensor", source: "torch.Generator"
    ) -> Chances:
        """A win of either, and a tie if there have been some."""
        return _chances(belief, *belief.difference(query[:1], query[1:]), Preference(0), Preference(1))

    def simulated(self, values: "torch.Tensor", source: "torch.Generator") -> Answer:
        """The first if its lead with noise is positive."""
        lead = values[0] - values[1]
        return Preference(int(not lead + _noise(lead, source) > 0))


class Batch(Feedback):
    """Which of several are better than others?"""

    asks = Asks.BATCH
    question, rule, size, initial = "Which are better than others?", "muc_joint", 3, 2
    simulated_answers = 20  # rankings say more, and take longer to choose
    takes: ClassVar = {
        "answer": Ranking.winner,
        "winner": Ranking.winner,
        "ranking": Ranking.given,
        "pairs": Pairs.given,
    }
    expected, letters = "the options that are better", "letters of options"
    how = "Tell winner=2, ranking=[2, 0, 1], pairs=[(2, 0)] (better first), or None for can't decide."

    def check_size(self, size: object) -> int:
        """Two or more."""
        value = self.size if size is None else size
        if isinstance(value, bool) or not isinstance(value, int) or value < 2:
            raise Refused("size", "be 2 or more for batch questions", repr(size), "Leave it out.")
        return value

    def _typed(self, word: str, names: Sequence[str]) -> Answer | None:
        return Pairs.typed(word, names) if ";" in word else Ranking.typed(word, names)

    def examples(self, names: Sequence[str]) -> str:
        """Letters; by commas, since a shell takes > as the name of a file to write."""
        return f"the best one ({names[1]}), a ranking ({names[1]},{names[0]}), or tie, skip, void"

    def keys(self, names: Sequence[str]) -> str:
        """Letters."""
        first, second = names[0].lower(), names[1].lower()
        return f"the best one ({second}) or a ranking ({second}>{first})"

    def likely_answers(self, size: int) -> list[Answer]:
        """Every winner, if they are few."""
        return [Ranking((option,)) for option in range(size)] if size <= _MOST_AHEAD else []

    def chances(
        self, belief: "askwise.model.Belief", query: "torch.Tensor", source: "torch.Generator"
    ) -> Chances:
        """Who wins, and a tie of all, by draws of noisy utilities."""
        import torch

        mean, cov = belief.joint(query)
        values, vectors = torch.linalg.eigh(cov)
        normal = torch.randn(_TRIALS, 2, len(mean), generator=source, dtype=mean.dtype)
        drawn = mean + normal[:, 0] * values.clamp_min(0).sqrt() @ vectors.mT + normal[:, 1] * math.sqrt(0.5)
        tied = drawn.amax(-1) - drawn.amin(-1) < belief.data.margin
        wins = torch.bincount(drawn.argmax(-1)[~tied], minlength=len(mean)) / _TRIALS
        chances: Chances = [(rate, Ranking((k,))) for k, rate in enumerate(wins.tolist())]
        chances.append((tied.double().mean().item(), Tie()))
        return [(rate, answer) for rate, answer in chances if rate > 0]

    def simulated(self, values: "torch.Tensor", source: "torch.Generator") -> Answer:
        """The order of noisy utilities; the noise of two is that of a duel."""
        import torch

        noise = torch.randn(len(values), generator=source, dtype=values.dtype)
        order = (values + math.sqrt(0.5) * noise).argsort(descending=True).tolist()
        return Ranking.given(order, len(order), self.how)


FEEDBACKS: dict[str, Feedback] = {kind.asks: kind for kind in (Binary(), Duel(), Batch())}
"""Every kind of question, by what it is called in a study."""


def feedback_of(name: object) -> Feedback:
    """The kind of question of this name."""
    if not isinstance(name, str) or name not in FEEDBACKS:
        raise Refused("feedback", "be 'binary', 'duel' or 'batch'", repr(name), "Choose one of the three.")
    return FEEDBACKS[name]


def _chances(
    belief: "askwise.model.Belief", mean: "torch.Tensor", var: "torch.Tensor", first: Answer, second: Answer
) -> Chances:
    """Of a row of this mean and variance: above the margin, below it, and within if there is one."""
    from askwise.numerics import ndtr

    margin, spread = belief.data.margin, (1 + var).sqrt()
    above, below = (ndtr((side * mean - margin) / spread).item() for side in (1, -1))
    chances: Chances = [(above, first), (below, second), (1 - above - below, Tie())]
    return chances if margin > 0 else chances[:2]


def _noise(like: "torch.Tensor", source: "torch.Generator") -> "torch.Tensor":
    import torch

    return torch.randn((), generator=source, dtype=like.dtype)
