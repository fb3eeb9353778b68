"""The next question of a study, from all that it depends on and nothing else.

So a study that was interrupted goes on as if it had not been, a question can be computed while the
answer before it is awaited, and the record of a study can be checked question by question.
"""

import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float
from torch import Tensor

from askwise.answers import Answer, data_of, pending_data
from askwise.anticipation import anticipated
from askwise.belief import Belief
from askwise.data import Data
from askwise.domain import Domain
from askwise.fitting import fit, learned_from, with_fitted_margin
from askwise.inference import infer
from askwise.kernels import kernel
from askwise.loop import ask, next_query
from askwise.plan import Plan
from askwise.rules import parse
from askwise.seeds import generator
from askwise.state import State
from askwise.threads import one_thread

__all__ = ["Model", "Setting", "Situation", "as_text", "next_question"]

_INSISTENCE = (1.0, 4.0, 16.0, 64.0)  # how many answers an open question counts for, until the next differs
_SAME = 1e-3
_BLOCKS = 64  # of points, among which to look for some that satisfy the constraints
_SPARE = 64  # settings that may be taken in the place of one that was there before

Setting = Mapping[str, Any]


@dataclass(frozen=True)
class Situation:
    """All that a question depends on, apart from the plan of the study; each part as JSON."""

    number: int
    answers: tuple[str, ...]
    """Options as they were shown, and the answer, for each question that has one."""
    open: tuple[str, ...] = ()
    """Members of each question that somebody is thinking about."""
    context: str = "null"

    @classmethod
    def of(cls, state: State, context: Setting | None = None) -> "Situation":
        """The situation in which the next question is asked."""
        answers = tuple(as_text([entry.options, entry.answer]) for entry in state.answered())
        waiting = tuple(as_text(entry.members) for entry in state.open())
        return cls(len(state.entries), answers, waiting, as_text(context))


class Model:
    """What is believed after answers: a function of these and of the plan, which remembers only its results.

    A kernel that is learned is learned from the first answers, as many as there were when half as
    many more had come in since the last time; so most questions are spared that, and none depends on which
    were asked before in this process.
    """

    def __init__(self, plan: Plan) -> None:
        """A model of the answers to a study with this plan."""
        self.plan = plan
        self._learned = functools.lru_cache(maxsize=16)(self._learn)
        self._believed = functools.lru_cache(maxsize=4)(self._infer)
        self._answered = functools.lru_cache(maxsize=4096)(self._read)

    def belief(self, answers: tuple[str, ...]) -> Belief:
        """What the answers tell of f."""
        return self._believed(answers)

    def prepared(self, answers: tuple[str, ...]) -> tuple[Data, Kernel]:
        """The answers over the unit cube, and the prior under which to take them."""
        prior, margin = self._learned(answers[: learned_from(len(answers))])
        data = self.data(answers)
        ties = bool((data.signs == 0).any())
        return data.with_margin(margin) if ties and margin > 0 else data, prior

    def data(self, answers: Iterable[str]) -> Data:
        """The answers over the unit cube."""
        return data_of([self._answered(text) for text in answers], self.plan.space.d)

    def points(self, settings: Sequence[Setting]) -> Float[Tensor, "m d"]:
        """Their places in the unit cube."""
        return torch.stack([self.plan.space.unit(setting) for setting in settings])

    def heard_both(self, data: Data) -> bool:
        """Whether there is something to model: yes alone, or no alone, does not tell where the other is."""
        if self.plan.feedback != "binary":
            return True
        return bool((data.signs > 0).any() and (data.signs < 0).any())

    def _read(self, text: str) -> tuple[Tensor, Answer]:
        options, answer = json.loads(text)
        return self.points(options), answer

    @one_thread()
    def _learn(self, answers: tuple[str, ...]) -> tuple[Kernel, float]:
        data, given = self.data(answers), self.plan.kernel
        prior = given if isinstance(given, Kernel) else self.plan.expected_kernel()
        data = with_fitted_margin(data, prior)
        margin = data.margin.item()
        if isinstance(given, Kernel):
            return given, margin
        return fit(data, prior).kernel, margin

    @one_thread()
    def _infer(self, answers: tuple[str, ...]) -> Belief:
        return infer(*self.prepared(answers))


@one_thread()
def next_question(model: Model, situation: Situation) -> tuple[list[dict[str, Any]], list[int]]:
    """Options in the order in which to show them, and which member of the rule's question each is."""
    plan = model.plan
    points = _points(model, situation)
    members = [plan.space.natural(point) for point in points]
    shuffle = generator("askwise study", plan.seed, situation.number, "order")
    order = torch.randperm(len(members), generator=shuffle).tolist()
    return [members[member] for member in order], order


def _points(model: Model, situation: Situation) -> Float[Tensor, "m d"]:
    plan, number = model.plan, situation.number
    domain = plan.space.domain(json.loads(situation.context))
    data = model.data(situation.answers)
    waiting = [model.points(json.loads(text)) for text in situation.open]
    early = not situation.answers or len(situation.answers) + len(waiting) < plan.initial
    if early or not model.heard_both(data):
        return _spread_out(plan, number, domain, waiting)
    data, prior = model.prepared(situation.answers)
    if not waiting:
        source = generator("askwise study", plan.seed, number)
        return next_query(data, plan.rule, prior, plan.size, source, domain=domain).points
    belief, pending = infer(data, prior), pending_data(waiting)
    for weight in _INSISTENCE:
        source = generator("askwise study", plan.seed, number)
        points = ask(anticipated(belief, pending, weight), plan.rule, plan.size, source, domain)
        if not any(_alike(points, other) for other in waiting):
            break
    return points


def _spread_out(
    plan: Plan, number: int, domain: Domain | None, waiting: Sequence[Tensor]
) -> Float[Tensor, "m d"]:
    """The next of settings drawn at random, yet so that they cover the space evenly (scrambled Sobol points).

    So a small part that works is found sooner than by independent draws, which leave gaps.  Of few
    settings the same may come again: then those after it are taken, as long as there are others.
    """
    settings = _sequence(plan, (number + 1) * plan.size + _SPARE, domain)
    first = number * plan.size
    if len(settings) < first + plan.size:  # hardly anything satisfies the constraints
        source, nothing = generator("askwise study", plan.seed, number), data_of([], plan.space.d)
        rule = parse("random")
        return next_query(nothing, rule, kernel("matern52"), plan.size, source, domain=domain).points
    for start in range(first, len(settings) - plan.size + 1):
        question = _different(settings[start:], plan.size)
        if len(question) == plan.size and not any(_alike(question, other) for other in waiting):
            return question
    question = _different(settings[first:], plan.size)
    return question if len(question) == plan.size else settings[first : first + plan.size]


def _sequence(plan: Plan, count: int, domain: Domain | None) -> Float[Tensor, "k d"]:
    """So many settings spread evenly; fewer if hardly any satisfy the constraints."""
    seed = generator("askwise study", plan.seed, "start").initial_seed() % 2**31
    sobol = torch.quasirandom.SobolEngine(plan.space.d, scramble=True, seed=seed)
    sobol.fast_forward(1)  # the first point, and only that, depends on torch's default dtype
    found = torch.empty(0, plan.space.d, dtype=torch.float64)
    for _ in range(_BLOCKS):
        points = sobol.draw(max(64, count), dtype=torch.float64)
        if domain is not None:
            points = domain.rounded(points)
            points = points[domain.feasible(points)]
        found = torch.cat([found, points])
        if len(found) >= count:
            break
    return found[:count]


def _different(settings: Float[Tensor, "k d"], count: int) -> Float[Tensor, "m d"]:
    """The first settings that are different from those before them, at most so many."""
    chosen = settings[:1]
    for setting in settings[1:]:
        if len(chosen) == count:
            break
        if ((chosen - setting).abs() >= _SAME).any(-1).all():
            chosen = torch.cat([chosen, setting[None]])
    return chosen


def _alike(points: Float[Tensor, "m d"], other: Float[Tensor, "m d"]) -> bool:
    """Whether two questions are about the same settings, in whatever order."""
    apart = (points[:, None, :] - other[None, :, :]).abs().amax(-1)
    return bool((apart.amin(0) < _SAME).all() and (apart.amin(1) < _SAME).all())


def as_text(value: object) -> str:
    """A value as JSON: equal texts for equal values of equal types, for 1 is not True."""
    return json.dumps(value, sort_keys=True)
