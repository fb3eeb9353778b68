"""The three kinds of questions: what a study asks, which answers it takes, and what follows from them.

Everything that differs between yes/no questions, duels and batches is here; nothing else asks which kind it
is.  What needs torch imports it when it is called, so that defaults are known without it.
"""

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from askwise.errors import Refused
from askwise.rules.asks import Asks
from askwise.study.answers import UNGIVEN, Answer, Pairs, Preference, Ranking, Tie, Verdict, Worst, YesNo

if TYPE_CHECKING:
    from torch import Generator, Tensor

    from askwise.model import Belief, Data
    from askwise.search import Search
else:
    Belief = Data = Generator = Search = Tensor = Any

Words = Mapping[Verdict, str]
Chances = list[tuple[Tensor, Answer]]
"""Answers that may come, each with its probability in each lane."""
_KEYWORDS = ("ranking", "pairs", "worst")  # of answers that mean nothing without
_MOST_AHEAD = 6  # answers to a batch for which the next query is computed ahead
AVERAGED = "averaged"
"""The kernel of a study that averages over many, of the default family."""
_TRIALS = 4096  # draws of utilities, by which the chances to win are counted


class Feedback:
    """A kind of question, by default one that is answered in one of two ways."""

    asks: ClassVar[Asks]
    question: ClassVar[str]
    """What people are asked, unless the study says otherwise."""
    rule: ClassVar[str]
    """The default rule."""
    level_rule: ClassVar[str] = ""
    """The default rule of a study with a level; none where settings are compared."""
    kernel: ClassVar[str] = "matern52"
    """The default kernel of a new study."""
    size: ClassVar[int]
    """Settings that one question is about, by default."""
    sizes: ClassVar[range]
    """Settings that one question may be about."""
    initial: ClassVar[int]
    """Space-filling questions before the first model, by default."""
    simulated_answers: ClassVar[int] = 40
    """Answers that `askwise simulate` asks of each user, by default."""
    compares: ClassVar[bool] = True
    """Whether settings are compared with each other."""
    either: ClassVar[tuple[Answer, ...]] = ()
    """The two answers: the first where the utility (of a duel, the difference of two) is positive."""
    takes: ClassVar[Mapping[str, Callable[[object, int, str], Answer]]]
    """The reader of an answer given by this keyword of `Study.tell`."""
    expected: ClassVar[str]
    """What an answer must be, in Python."""
    how: ClassVar[str]
    """How to answer in Python."""
    letters: ClassVar[str] = "the letter of the preferred option"
    """What an answer must be, in a terminal."""
    words: ClassVar[Words] = {"good": "preferred", "bad": "not preferred", "undecided": "can't decide"}
    """What a verdict is called."""
    unit: ClassVar[str] = "1 is a difference that is preferred in 84% of duels"
    """What a difference of one means, in units of the noise of an answer."""
    noticeable: ClassVar[float] = 2 / 3
    """A setting that wins this share of duels with the recommended one is noticeably better (yes/no: one that
    succeeds more often by this)."""
    noticeably: ClassVar[str] = "would win two of three duels with the recommended one"
    """The same in words."""
    held: ClassVar[str] = ""
    """How few settings really were, when simulated studies said "you may stop", if not as few as the model
    says: docs/calibration.md."""
    unknown: ClassVar[str] = (
        "A peak that takes up less than a twentieth of the space is not known unless a question came near it."
    )
    """What no number of answers rules out."""
    # sentences to be filled in with names of options, a number of answers or a probability
    _examples: ClassVar[str]
    _keys: ClassVar[str]
    _needs: ClassVar[str] = "{} answers"
    _best: ClassVar[str] = "the best one is expected to win {:.0%} (50% is no better)"
    _alone: ClassVar[str] = "It is expected to be preferred to a setting at random {:.0%} of the time."
    _against: ClassVar[str] = "It is expected to be preferred to the reference {:.0%} of the time."
    _column: ClassVar[tuple[str, str]] = (
        "preferred",
        "Preferred: how often it is expected to be preferred to a setting at random.",
    )
    _column_against: ClassVar[tuple[str, str]] = (
        "preferred",
        "Preferred: how often it is expected to be preferred to the reference.",
    )

    def check_size(self, size: object) -> int:
        """The number of settings in a question."""
        value = self.size if size is None else size
        if isinstance(value, bool) or not isinstance(value, int) or value not in self.sizes:
            expected = f"be {self.sizes[0]}{' or more' * (len(self.sizes) > 1)} for {self.asks} questions"
            raise Refused("size", expected, repr(size), "Leave it out.")
        return value

    def usual_rule(self, level: float | None) -> str:
        """The default rule, of a study with this level."""
        return self.rule if level is None else self.level_rule

    def read(self, size: int, answer: object = UNGIVEN, **batch: object) -> Answer:
        """The answer given in Python, alone or by one of the keywords of a batch; else a refusal."""
        given = {name: value for name, value in batch.items() if value is not None}
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
            name = key if key in _KEYWORDS else "answer"
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

    def _typed(self, word: str, names: Sequence[str]) -> Answer | None:
        return self.either[0].typed(word, names)

    def examples(self, names: Sequence[str]) -> str:
        """What may be typed, in a sentence."""
        return self._examples.format(*names)

    def keys(self, names: Sequence[str]) -> str:
        """The keys of the answers, for a prompt."""
        return self._keys.format(*(name.lower() for name in names))

    def likely_answers(self, size: int, last: Answer | None) -> list[Answer]:
        """Answers for which it is worth computing the next query ahead; ``last`` is the one before."""
        return list(self.either)

    def chances(self, belief: Belief, query: Tensor, source: Generator, threshold: str = "best") -> Chances:
        """What may be answered to a query [*lane, m, d], and how likely that is; ties if there have been
        some."""
        from askwise.numerics import ndtr

        margin, other = belief.data.margin[..., None], query[..., 1:, :] if self.compares else None

        def beyond(mean: Tensor, var: Tensor, side: int) -> Tensor:
            return ndtr((side * mean - margin) / (1 + var).sqrt())

        chance = [partial(beyond, side=side) for side in (1, -1)]
        above, below = (belief.averaged(formula, query[..., :1, :], other)[..., 0] for formula in chance)
        chances = list(zip((above, below, 1 - above - below), (*self.either, Tie()), strict=True))
        return chances if (margin > 0).any() else chances[:2]

    def simulated(self, values: Tensor, source: Generator) -> Answer:
        """What a person answers who feels these values [m] with the noise that the model expects."""
        lead = values[0] - values[1] if self.compares else values[0]
        return self.either[int(not lead + _noise((), values, source) > 0)]

    def champion(self, search: Search, belief: Belief) -> Tensor:
        """The point to recommend, [1, d]: of highest mean."""
        return search.champion(belief)

    def has_both_outcomes(self, data: Data) -> bool:
        """Whether there is something to model."""
        return True

    def needs(self, initial: int) -> str:
        """What it takes until there is a model, in words."""
        return self._needs.format(initial)

    def best(self, rate: float) -> str:
        """How much better the best setting is expected to be, in words."""
        return self._best.format(rate)

    def sentence(self, probability: float, reference: bool) -> str:
        """What the probability of a recommended setting means."""
        return (self._against if reference else self._alone).format(probability)

    def column(self, reference: bool) -> tuple[str, str]:
        """What that probability is called above a column of a table, and what it means."""
        return self._column_against if reference else self._column


class Binary(Feedback):
    """Did it work?"""

    asks, sizes = Asks.BINARY, range(1, 2)
    question, rule, size, initial = "Did it work?", "ucb_phi", 1, 3
    level_rule = "straddle_phi"
    compares, either = False, (YesNo(True), YesNo(False))
    takes: ClassVar = {"answer": YesNo.given}
    expected, letters = "True or False", "yes or no"
    how = "Tell True, False, or None for can't decide."
    words: ClassVar[Words] = {"good": "yes", "bad": "no", "undecided": "can't decide"}
    unit = "1 is the difference between success rates of 50% and 84%"
    noticeable, noticeably = 0.1, "would succeed 10% more often than the recommended one"
    unknown = (
        "A peak that takes up less than a hundredth of the space is not known unless a question came near it."
    )
    _examples, _keys, _needs = "yes, no, tie, skip or void", "y yes, n no", "a yes and a no"
    _best = "the best one is expected to succeed {:.0%} more often"
    _alone = "It is expected to work {:.0%} of the time."
    _against = "It is more likely to work than the reference with a probability of {:.0%}."
    _column = "works", "Works: how often it is expected to work."
    _column_against = "better", "Better: the probability that it is more likely to work than the reference."

    def champion(self, search: Search, belief: Belief) -> Tensor:
        """The point with the highest chance of a yes."""
        return search.likeliest(belief)

    def has_both_outcomes(self, data: Data) -> bool:
        """Whether there are a yes and a no: one alone does not tell where the other is."""
        return bool((data.signs > 0).any() and (data.signs < 0).any())


class Duel(Feedback):
    """Which of two is better?

    Ten first duels cost nothing after forty (regret on Branin and Hartmann 3 as with five) and keep more
    users off a lower hill: regret 0.2 to 0.5 instead of 0.7 on the two hills of the demo, 40 users each.
    """

    asks, sizes, kernel = Asks.DUEL, range(2, 3), AVERAGED
    question, rule, size, initial = "Which is better?", "muc", 2, 10
    either = (Preference(0), Preference(1))
    takes: ClassVar = {"answer": Preference.given}
    expected = "0 or 1, the index of the preferred option"
    how = "Name the better one: tell 0, 1, or None for can't decide."
    held = "In nine of ten simulated studies that said so, fewer than one in twenty would."
    _examples, _keys = "{0} or {1}, or tie, skip, void", "{0} or {1}, the better one"


class Batch(Feedback):
    """Which of several are better than others?"""

    asks, sizes = Asks.BATCH, range(2, sys.maxsize)
    question, rule, size, initial = "Which are better than others?", "muc_joint", 3, 2
    simulated_answers = 20  # rankings say more, and take longer to choose
    takes: ClassVar = {
        "answer": Ranking.winner,
        "winner": Ranking.winner,
        "ranking": Ranking.given,
        "pairs": Pairs.given,
        "worst": Worst.given,
    }
    expected, letters = "the options that are better", "letters of options"
    how = (
        "Tell winner=2, ranking=[2, 0, 1], pairs=[(2, 0)] (better first), worst=1 (of three or more), "
        "or None for can't decide."
    )
    # with commas, since a shell takes > as the name of a file to write
    _examples = "the best one ({1}), a ranking ({1},{0}){worst}, pairs ('pairs {1}>{0}'), or tie, skip, void"
    _keys = "{1} the best, {1}>{0} the best in order{worst}, pairs {1}>{0} these two alone"

    def examples(self, names: Sequence[str]) -> str:
        """What may be typed, in a sentence."""
        return self._examples.format(*names, worst=f", the worst one (worst {names[2]})" if names[2:] else "")

    def keys(self, names: Sequence[str]) -> str:
        """The keys of the answers, for a prompt."""
        lower = [name.lower() for name in names]
        return self._keys.format(*lower, worst=f", -{lower[2]} the worst" if names[2:] else "")

    def _typed(self, word: str, names: Sequence[str]) -> Answer | None:
        return Pairs.typed(word, names) or Worst.typed(word, names) or Ranking.typed(word, names)

    def likely_answers(self, size: int, last: Answer | None) -> list[Answer]:
        """Every winner, if they are few; after the worst was named, every worst."""
        if size > _MOST_AHEAD:
            return []
        return [Worst(k) if isinstance(last, Worst) else Ranking((k,)) for k in range(size)]

    def chances(self, belief: Belief, query: Tensor, source: Generator, threshold: str = "best") -> Chances:
        """Who wins, and "can't decide", by draws of noisy utilities; of one lane without its dimension."""
        import torch

        mean, cov = belief.joint(query)
        values, vectors = torch.linalg.eigh(cov)
        normal = _noise((_TRIALS, 2, len(mean)), mean, source)
        drawn = mean + normal[:, 0] * values.clamp_min(0).sqrt() @ vectors.mT + normal[:, 1] * math.sqrt(0.5)
        if threshold == "best":
            first, second = drawn.topk(2).values.unbind(-1)
            tied = first - second < belief.data.margin
        else:
            tied = drawn.amax(-1) - drawn.amin(-1) < belief.data.margin
        wins = torch.bincount(drawn.argmax(-1)[~tied], minlength=len(mean)).double() / _TRIALS
        chances: Chances = [(rate, Ranking((k,))) for k, rate in enumerate(wins)]
        chances.append((tied.double().mean(), Tie()))
        return [(rate, answer) for rate, answer in chances if rate > 0]

    def simulated(self, values: Tensor, source: Generator) -> Answer:
        """The order of noisy utilities; the noise of two is that of a duel."""
        noisy = values + math.sqrt(0.5) * _noise(values.shape, values, source)
        return Ranking.given(noisy.argsort(descending=True).tolist(), len(values), self.how)


FEEDBACKS: dict[str, Feedback] = {kind.asks: kind for kind in (Binary(), Duel(), Batch())}
"""Every kind of question, by what it is called in a study."""


def feedback_of(name: object) -> Feedback:
    """The kind of question of this name."""
    if not isinstance(name, str) or name not in FEEDBACKS:
        raise Refused("feedback", "be 'binary', 'duel' or 'batch'", repr(name), "Choose one of the three.")
    return FEEDBACKS[name]


def _noise(shape: tuple[int, ...], like: Tensor, source: Generator) -> Tensor:
    import torch

    return torch.randn(shape, generator=source, dtype=like.dtype)
