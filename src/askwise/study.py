"""Ask, tell, best: an experiment in memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from askwise.belief import Belief
from askwise.data import Data
from askwise.fit import fit
from askwise.inference import infer
from askwise.kernels import Name, kernel
from askwise.loop import next_query
from askwise.normal import success_probability
from askwise.rules import Asks, Rule, parse
from askwise.search import Search
from askwise.seeds import generator
from askwise.space import Space

__all__ = ["Best", "Question", "Study"]

Feedback = Literal["binary", "duel", "batch"]
_DEFAULT_RULE = {"binary": "ucb_phi", "duel": "muc", "batch": "muc_joint"}
_DEFAULT_SIZE = {"binary": 1, "duel": 2, "batch": 3}
_AT_RANDOM = {"binary": 3, "duel": 5, "batch": 2}
_CROWD = 256  # settings spread over the space that the best one is compared with


@dataclass(frozen=True)
class Question:
    """What to show: one setting for a yes/no question, several to compare."""

    id: int
    options: list[dict[str, float]]


@dataclass(frozen=True)
class Best:
    """The recommended setting, and how sure that is."""

    params: dict[str, float]
    mean: float
    """Posterior mean of f there; with duels alone, f is zero on average over what one would expect."""
    std: float
    """Posterior standard deviation of f there."""
    probability: float
    """That it succeeds (yes/no), or that it beats a setting drawn at random (duels, batches)."""


class Study:
    """Questions and answers about a space.

    ``feedback``: ``"binary"`` (did it work?), ``"duel"`` (which of two?) or ``"batch"`` (compare ``size``).
    ``kernel``: fixed, or the name of one whose parameters are learned from the answers.
    The first ``initial`` questions are asked at random.  Equal seeds and answers give equal questions.

    >>> import askwise as aw
    >>> study = aw.Study(aw.Space(gain=aw.Real(0, 10)), feedback="duel", seed=1)
    >>> question = study.ask()
    >>> study.tell(question, int(question.options[1]["gain"] > question.options[0]["gain"]))
    >>> 0 <= study.best().params["gain"] <= 10
    True
    """

    def __init__(
        self,
        space: Space,
        feedback: Feedback = "duel",
        rule: str | Rule | None = None,
        *,
        seed: int = 0,
        size: int | None = None,
        kernel: Kernel | Name = "matern52",
        initial: int | None = None,
    ) -> None:
        """Start without answers."""
        if feedback not in _DEFAULT_RULE:
            raise ValueError(
                f"feedback must be 'binary', 'duel' or 'batch'; got {feedback!r}. Choose one of the three."
            )
        rule = _DEFAULT_RULE[feedback] if rule is None else rule
        self.space, self.feedback, self.seed, self.kernel = space, feedback, seed, kernel
        self.rule = parse(rule) if isinstance(rule, str) else rule
        self.size = _checked_size(feedback, size)
        if Asks(feedback) not in self.rule.asks:
            kinds = ", ".join(sorted(self.rule.asks))
            raise ValueError(
                f"rule must ask {feedback} questions; got {self.rule}, which asks {kinds}. Choose another."
            )
        self.initial = _AT_RANDOM[feedback] if initial is None else initial
        self._questions: list[Tensor] = []
        self._answers: dict[int, Data] = {}

    def ask(self) -> Question:
        """The next question; the one before it if that is still open."""
        if len(self._questions) == len(self._answers):
            self._questions.append(self._next())
        number = len(self._questions) - 1
        return Question(number, [self.space.natural(point) for point in self._questions[number]])

    def tell(
        self,
        question: Question | int,
        answer: bool | int | None = None,
        *,
        ranking: Sequence[int] | None = None,
    ) -> None:
        """Record an answer: True or False, the index of the preferred option, or a ranking, best first."""
        number = question.id if isinstance(question, Question) else question
        if not 0 <= number < len(self._questions):
            raise ValueError(
                f"question must be one that was asked; got {number!r}. Asked so far: {len(self._questions)}."
            )
        if number in self._answers:
            raise ValueError(f"question {number} must be open; got an answer to it before. Ask the next one.")
        self._answers[number] = self._read(self._questions[number], answer, ranking)

    def best(self) -> Best:
        """The setting most likely to be best, given all answers."""
        belief = self._belief()
        search = Search.around(belief, generator("askwise study", self.seed, "best"))
        if self.feedback == "binary":
            point = search.argmax(belief.view.score(lambda mean, var: mean * torch.rsqrt(1 + var)))
        else:
            point = search.champion(belief)
        mean, var = belief.moments(point)
        chance = success_probability(mean, var)
        if self.feedback != "binary":
            crowd = search.spread(_CROWD)
            chance = belief.success_probability(point.expand_as(crowd), crowd).mean()
        return Best(self.space.natural(point[0]), float(mean), float(var.sqrt()), float(chance))

    def _next(self) -> Tensor:
        number = len(self._questions)
        source = generator("askwise study", self.seed, number)
        rule = parse("random") if number < self.initial else self.rule
        data = self._data()
        prior = kernel("matern52") if number < self.initial else self._prior(data)
        return next_query(data, rule, prior, self.size, source).points

    def _data(self) -> Data:
        data = Data.binary(torch.empty(0, self.space.d, dtype=torch.float64), torch.empty(0))
        for number in sorted(self._answers):
            data = data + self._answers[number]
        return data

    def _prior(self, data: Data) -> Kernel:
        if not isinstance(self.kernel, str):
            return self.kernel
        return fit(data, self.kernel).kernel

    def _belief(self) -> Belief:
        data = self._data()
        return infer(data, self._prior(data))

    def _read(self, points: Tensor, answer: object, ranking: Sequence[int] | None) -> Data:
        if self.feedback == "batch":
            if ranking is None or sorted(ranking) != list(range(self.size)):
                raise ValueError(
                    f"ranking must name each of the options 0 to {self.size - 1} once, best first; "
                    f"got {ranking!r}. Write ranking=[2, 0, 1], say."
                )
            place = torch.tensor(ranking).argsort()
            i, j = torch.triu_indices(self.size, self.size, offset=1)
            return Data.batches(points[None], (place[i] < place[j])[None])
        if ranking is not None or answer not in (0, 1):
            what = (
                "True or False" if self.feedback == "binary" else "0 or 1, the index of the preferred option"
            )
            raise ValueError(
                f"answer must be {what}; got {answer if ranking is None else ranking!r}. Tell again."
            )
        if self.feedback == "binary":
            return Data.binary(points, torch.tensor([bool(answer)]))
        return Data.duels(points[None], torch.tensor([not answer]))


def _checked_size(feedback: str, size: int | None) -> int:
    size = _DEFAULT_SIZE[feedback] if size is None else size
    if (feedback == "batch" and size < 2) or (feedback != "batch" and size != _DEFAULT_SIZE[feedback]):
        expected = "2 or more" if feedback == "batch" else str(_DEFAULT_SIZE[feedback])
        raise ValueError(f"size must be {expected} for {feedback} questions; got {size}. Leave it out.")
    return size
