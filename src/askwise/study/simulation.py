"""Simulated users of a study: how many answers will it take?"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from gpytorch.kernels import Kernel
from gpytorch.priors import LogNormalPrior
from jaxtyping import Float
from torch import Tensor

from askwise.model import Belief, infer, paths
from askwise.numerics import generator, ndtr
from askwise.rules import latent_level
from askwise.search import Search
from askwise.study.answers import Answer
from askwise.study.plan import Plan, no_answers
from askwise.study.question import Question
from askwise.study.study import Study

_EVERY, _CROWD = 10, 1024  # answers between checkpoints, and settings over which the average is taken
_MOST = 0.9  # share of users in the conclusion


@dataclass(frozen=True)
class Simulation:
    """What is simulated."""

    plan: Plan
    answers: int
    users: int
    seed: int
    context: dict[str, Any] | None = None
    counts: tuple[int, ...] | None = None
    """Numbers of answers after which the recommended settings are judged; None for every ten."""
    said: Callable[[Answer], Answer] = lambda answer: answer
    """What users say of what they would answer: only who is best, perhaps."""

    @property
    def checkpoints(self) -> list[int]:
        """Numbers of answers after which the recommended settings are judged."""
        return sorted({*(self.counts or range(_EVERY, self.answers, _EVERY)), self.answers})


@dataclass(frozen=True)
class Checkpoint:
    """How good the recommended settings are after this many answers, one number for each user."""

    answers: int
    share: list[float]
    """Where it lies between the average setting (0) and the user's best (1)."""
    chance: list[float]
    """Probability that the true best is preferred to it; in yes/no studies, that it works."""
    misclassified: list[float] = field(default_factory=list)
    """In a study with a level, the share of the space that the model puts on the wrong side of it."""


class SimulatedUser:
    """A user whose utility is a draw from the study's prior, and who answers accordingly."""

    def __init__(self, wanted: Simulation, user: int) -> None:
        """Draw the utility."""
        plan = wanted.plan
        self.plan, self._source = plan, generator("askwise simulate", wanted.seed, user)
        belief = infer(no_answers(plan.space.d), drawn_kernel(plan, self._source))
        self._path = paths.draw(belief, 1, self._source)
        looking = generator("askwise simulate", wanted.seed, user, "best")
        self._search = Search.around(belief, looking, plan.space.domain(wanted.context))

    @functools.cached_property
    def best(self) -> float:
        """The highest utility."""
        found = self._search.argmax(self._path, draws=1)
        return float(self._path(found.reshape(-1, self.plan.space.d))[0].max())

    @functools.cached_property
    def average(self) -> float:
        """Average of what counts over the space."""
        return float(self._scaled(self._path(self._search.space_filling(_CROWD))[0]).mean())

    def answer(self, question: Question) -> Answer:
        """What this user answers: lapses and guesses as the plan assumes them, none if they are learned."""
        kind, people, felt = self.plan.kind, self.plan.people, self.utilities(question.options)
        lapses = 0.0 if people.lapses == "learned" else people.lapses
        if lapses or people.guess:
            drawn = float(torch.rand((), generator=self._source))
            if drawn < people.guess:
                return kind.either[0]
            if drawn < people.guess + lapses:
                return (
                    kind.either[1] if people.guess else kind.simulated(torch.zeros_like(felt), self._source)
                )
        return kind.simulated(felt, self._source)

    def utilities(self, settings: list[dict[str, Any]]) -> Float[Tensor, " m"]:
        """How much this user likes settings, in units of the noise of an answer."""
        return self._path(torch.stack([self.plan.space.unit(setting) for setting in settings]))[0]

    def judged(self, setting: dict[str, Any]) -> tuple[float, float]:
        """Share and chance of a setting, as in :class:`Checkpoint`."""
        utility = float(self.utilities([setting]))
        best = max(self.best, utility)
        top, reached = (float(self._scaled(torch.tensor(number))) for number in (best, utility))
        share = (reached - self.average) / (top - self.average)
        chance = float(ndtr(torch.tensor(best - utility))) if self.plan.kind.compares else reached
        return share, chance

    def misclassified(self, belief: Belief, level: float) -> float:
        """Share of the space that a belief puts on the wrong side of the level."""
        points, border = self._search.space_filling(_CROWD), latent_level(level)
        with torch.no_grad():
            put = belief.probability_above(points, border) >= 0.5
        return float((put != (self._path(points)[0] >= border)).double().mean())

    def _scaled(self, utilities: Tensor) -> Tensor:
        """What counts: the success rate in yes/no studies, else the utility itself."""
        return utilities if self.plan.kind.compares else ndtr(utilities)


def drawn_kernel(plan: Plan, source: torch.Generator) -> Kernel:
    """The given kernel, or one with parameters drawn from their priors."""
    if isinstance(plan.kernel, Kernel):
        return plan.kernel
    drawn = plan.expected_kernel()
    for _, module, prior, value, put in drawn.named_priors():
        assert isinstance(prior, LogNormalPrior)
        normal = torch.randn(value(module).shape, generator=source, dtype=torch.float64)
        put(module, (prior.loc + prior.scale * normal).exp())
    return drawn


def simulated(wanted: Simulation, step: Callable[[], None] = lambda: None) -> list[Checkpoint]:
    """How good the recommended settings of all users are; ``step`` is called after every answer."""
    users = [_one_user(wanted, user, step) for user in range(wanted.users)]
    judged = zip(wanted.checkpoints, zip(*users, strict=True), strict=True)
    return [Checkpoint(count, *map(list, zip(*each, strict=True))) for count, each in judged]


def _one_user(wanted: Simulation, user: int, step: Callable[[], None]) -> list[tuple[float, ...]]:
    """Share, chance and perhaps what is misclassified of one user, at each checkpoint."""
    person, level = SimulatedUser(wanted, user), wanted.plan.level
    judged: list[tuple[float, ...]] = []
    study = Study.of(replace(wanted.plan, seed=wanted.plan.seed + user, expires=None))
    for count in range(1, wanted.answers + 1):
        question = study.ask(context=wanted.context)
        study.tell(question, wanted.said(person.answer(question)))
        step()
        if count in wanted.checkpoints:
            wrong = () if level is None else (person.misclassified(study.belief(), level),)
            judged.append((*person.judged(study.best(wanted.context).params), *wrong))
    return judged


def conclusion(last: Checkpoint) -> str:
    """What nine in ten users reach, in a sentence."""
    users = len(last.share)
    most = math.ceil(_MOST * users)
    if last.misclassified:
        wrong = sorted(last.misclassified)[most - 1]
        return (
            f"With {last.answers} answers, the model of {most} of {users} users puts at most {wrong:.0%} of "
            "the space on the wrong side of the level."
        )
    reached = sorted(last.share, reverse=True)[most - 1]
    return (
        f"With {last.answers} answers, {most} of {users} users are recommended a setting "
        f"at least {reached:.0%} of the way from an average one to their best."
    )
