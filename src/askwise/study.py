"""Ask, tell, best: an experiment in memory."""

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np
import torch
from gpytorch.kernels import Kernel
from gpytorch.priors import LogNormalPrior
from torch import Tensor

from askwise.belief import Belief
from askwise.data import Data
from askwise.fit import fit
from askwise.inference import infer
from askwise.kernels import Name, kernel
from askwise.loop import next_query
from askwise.normal import standardised, success_probability
from askwise.rules import Asks, Rule, parse
from askwise.search import Search
from askwise.seeds import generator
from askwise.space import Space

__all__ = ["Best", "Question", "Study"]

Feedback = Literal["binary", "duel", "batch"]
_DEFAULT_RULE = {"binary": "ucb_phi", "duel": "muc", "batch": "muc_joint"}
_DEFAULT_SIZE = {"binary": 1, "duel": 2, "batch": 3}
_AT_RANDOM = {"binary": 3, "duel": 5, "batch": 2}
_LENGTH, _VARIANCE = 0.2, 4.0
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
    The first ``initial`` questions are asked at random, and yes/no questions until both answers have
    been heard.  Equal seeds and answers give equal questions.

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
        if not isinstance(feedback, str) or feedback not in _DEFAULT_RULE:
            raise ValueError(
                f"feedback must be 'binary', 'duel' or 'batch'; got {feedback!r}. Choose one of the three."
            )
        rule = _DEFAULT_RULE[feedback] if rule is None else rule
        self.space, self.feedback, self.seed = space, feedback, seed
        self.rule = _checked_rule(rule, feedback)
        self.size = _checked_size(feedback, size)
        self.kernel = _checked_kernel(kernel, space.d)
        self.initial = _checked_initial(_AT_RANDOM[feedback] if initial is None else initial)
        self._questions: list[Tensor] = []
        self._answers: dict[int, Data] = {}

    def ask(self) -> Question:
        """The next question; the one before it if that is still open."""
        if len(self._questions) == len(self._answers):
            self._questions.append(self._next())
        return self._shown(len(self._questions) - 1)

    def tell(
        self,
        question: Question | int,
        answer: bool | int | None = None,
        *,
        ranking: Sequence[int] | None = None,
    ) -> None:
        """Record an answer: True or False, the index of the preferred option, or a ranking, best first."""
        number = _index(question.id if isinstance(question, Question) else question)
        if number is None or not 0 <= number < len(self._questions):
            raise ValueError(
                f"question must be one that was asked, or its id; got {question!r}. "
                f"Asked so far: {len(self._questions)}."
            )
        if isinstance(question, Question) and question != self._shown(number):
            raise ValueError(
                f"question must be of this study; got {question!r}. Tell the study that asked it."
            )
        if number in self._answers:
            raise ValueError(f"question {number} must be open; got an answer to it before. Ask the next one.")
        self._answers[number] = self._read(self._questions[number], answer, ranking)

    def best(self) -> Best:
        """The setting most likely to be best, given all answers."""
        belief = self.belief()
        search = Search.around(belief, generator("askwise study", self.seed, "best"))
        if self.feedback == "binary":
            point = search.argmax(belief.view.score(standardised))
        else:
            point = search.champion(belief)
        mean, var = belief.moments(point)
        chance = success_probability(mean, var)
        if self.feedback != "binary":
            crowd = search.spread(_CROWD)
            chance = belief.success_probability(point.expand_as(crowd), crowd).mean()
        return Best(self.space.natural(point[0]), float(mean), float(var.sqrt()), float(chance))

    def belief(self) -> Belief:
        """What all answers tell of f, over the unit cube (``space.unit`` leads there)."""
        data = self._data()
        return infer(data, self._prior(data))

    def _shown(self, number: int) -> Question:
        return Question(number, [self.space.natural(point) for point in self._questions[number]])

    def _next(self) -> Tensor:
        number = len(self._questions)
        source = generator("askwise study", self.seed, number)
        data = self._data()
        # one kind of answer to yes/no questions says nothing about where the other is
        unequal = self.feedback != "binary" or bool((data.signs != data.signs[:1]).any())
        if number < self.initial or not unequal:
            return next_query(data, parse("random"), kernel("matern52"), self.size, source).points
        return next_query(data, self.rule, self._prior(data), self.size, source).points

    def _data(self) -> Data:
        data = Data.binary(torch.empty(0, self.space.d, dtype=torch.float64), torch.empty(0))
        for number in sorted(self._answers):
            data = data + self._answers[number]
        return data

    def _prior(self, data: Data) -> Kernel:
        if not isinstance(self.kernel, str):
            return self.kernel
        return fit(data, _expected(cast(Name, self.kernel), self.space.d)).kernel

    def _read(self, points: Tensor, answer: object, ranking: object) -> Data:
        if self.feedback == "batch":
            return self._ranked(points, answer, ranking)
        value = _index(int(answer) if self.feedback == "binary" and _is_truth(answer) else answer)  # type: ignore[call-overload]
        if ranking is not None or value not in (0, 1):
            what = (
                "True or False" if self.feedback == "binary" else "0 or 1, the index of the preferred option"
            )
            got = repr(answer) if ranking is None else f"ranking={ranking!r}"
            raise ValueError(f"answer must be {what}; got {got}. Tell again.")
        if self.feedback == "binary":
            return Data.binary(points, torch.tensor([value]))
        return Data.duels(points[None], torch.tensor([1 - value]))

    def _ranked(self, points: Tensor, answer: object, ranking: object) -> Data:
        ordered = isinstance(ranking, Sequence | np.ndarray | Tensor) and not isinstance(ranking, str)
        places = [_index(place) for place in ranking] if ordered else []  # type: ignore[attr-defined]
        if answer is not None or sorted(-1 if p is None else p for p in places) != list(range(self.size)):
            raise ValueError(
                f"ranking must name each of the options 0 to {self.size - 1} once, best first; "
                f"got {ranking if answer is None else answer!r}. Write ranking=[2, 0, 1], say."
            )
        place = torch.tensor(places).argsort()
        i, j = torch.triu_indices(self.size, self.size, offset=1)
        return Data.batches(points[None], (place[i] < place[j])[None])


def _index(value: object) -> int | None:
    """A whole number of any kind as an int; None for anything else, truth values among it."""
    try:
        return None if _is_truth(value) else operator.index(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def _is_truth(value: object) -> bool:
    return isinstance(value, bool | np.bool_) or (isinstance(value, Tensor) and value.dtype == torch.bool)


def _expected(name: Name, d: int) -> Kernel:
    """A kernel with what can be expected of a space that somebody chose to study.

    Its parameters matter, yet not only at one end: lengthscales of about a quarter of the range, longer
    where distances grow with the dimension; and good settings beat bad ones clearly: a deviation of two.
    A few answers say little about either, and with wide priors they often talk the model into
    a function without features, of which only the corners are worth asking about.
    """
    expected = kernel(name, [_LENGTH * math.sqrt(d)] * d, _VARIANCE)
    base = expected.base_kernel
    base.register_prior("length", LogNormalPrior(math.log(_LENGTH * math.sqrt(d)), 0.5), "lengthscale")
    expected.register_prior("variance", LogNormalPrior(math.log(_VARIANCE), 0.7), "outputscale")
    return expected.double()


def _checked_rule(rule: object, feedback: str) -> Rule:
    if not isinstance(rule, str | Rule):
        raise TypeError(f"rule must be a Rule or its spelling; got {rule!r}. Write rule='muc', say.")
    chosen = parse(rule) if isinstance(rule, str) else rule
    if Asks(feedback) not in chosen.asks:
        kinds = ", ".join(sorted(chosen.asks))
        raise ValueError(
            f"rule must ask {feedback} questions; got {chosen}, which asks {kinds}. Choose another."
        )
    return chosen


def _checked_size(feedback: str, size: object) -> int:
    value = _DEFAULT_SIZE[feedback] if size is None else size
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or (value < 2 if feedback == "batch" else value != _DEFAULT_SIZE[feedback]):  # type: ignore[operator]
        expected = "2 or more" if feedback == "batch" else str(_DEFAULT_SIZE[feedback])
        raise ValueError(f"size must be {expected} for {feedback} questions; got {size!r}. Leave it out.")
    return int(value)  # type: ignore[call-overload]


def _checked_kernel(given: object, d: int) -> Kernel | Name:
    if not isinstance(given, str | Kernel):
        raise TypeError(f"kernel must be a GPyTorch kernel or a name; got {given!r}. Write 'matern52', say.")
    nothing = Data.binary(torch.empty(0, d, dtype=torch.float64), torch.empty(0))
    infer(nothing, kernel(cast(Name, given)) if isinstance(given, str) else given)
    return cast(Name, given) if isinstance(given, str) else given


def _checked_initial(initial: object) -> int:
    if isinstance(initial, bool) or not isinstance(initial, int) or initial < 0:
        raise ValueError(f"initial must be a whole number, 0 or more; got {initial!r}. Leave it out.")
    return initial
