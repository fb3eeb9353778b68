"""Simulated users of a study: how many answers will it take?"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from gpytorch.kernels import Kernel
from gpytorch.priors import LogNormalPrior
from jaxtyping import Float
from torch import Tensor

from askwise.model import Data, infer, paths
from askwise.numerics import generator, ndtr
from askwise.search import Search
from askwise.study.answers import Answer
from askwise.study.plan import Plan
from askwise.study.study import Question, Study

_EVERY = 10
_CROWD = 1024
_MOST = 0.9  # of the users, in the sentence at the end


@dataclass(frozen=True)
class Simulation:
    """What is simulated."""

    plan: Plan
    answers: int
    users: int
    seed: int
    context: dict[str, Any] | None = None

    @property
    def checkpoints(self) -> list[int]:
        """Numbers of answers after which the recommended settings are judged."""
        return sorted({*range(_EVERY, self.answers, _EVERY), self.answers})


@dataclass(frozen=True)
class Checkpoint:
    """How good the recommended settings are after this many answers, one number for each user."""

    answers: int
    share: list[float]
    """Way from the average setting (0) to the user's best (1)."""
    chance: list[float]
    """That the true best is preferred to it; in yes/no studies, that it works."""


class SimulatedUser:
    """A user whose utility is a draw from the study's prior, and the answers that it leads to."""

    def __init__(self, wanted: Simulation, user: int) -> None:
        """Draw the utility."""
        plan = wanted.plan
        self.plan, self._source = plan, generator("askwise simulate", wanted.seed, user)
        nothing = Data.binary(torch.empty(0, plan.space.d, dtype=torch.float64), torch.empty(0))
        belief = infer(nothing, _drawn_kernel(plan, self._source))
        self._path = paths.draw(belief, 1, self._source)
        looking = generator("askwise simulate", wanted.seed, user, "best")
        self._search = Search.around(belief, looking, plan.space.domain(wanted.context))

    @functools.cached_property
    def best(self) -> float:
        """The highest utility."""
        found = self._search.argmax(self._path, draws=1)
        return float(self._utilities(found.reshape(-1, self.plan.space.d)).max())

    @functools.cached_property
    def average(self) -> float:
        """What counts of a setting, averaged over all."""
        return float(self._scaled(self._utilities(self._search.space_filling(_CROWD))).mean())

    def answer(self, question: Question) -> Answer:
        """What this user answers."""
        return self.plan.kind.simulated(self.utilities(question.options), self._source)

    def utilities(self, settings: list[dict[str, Any]]) -> Float[Tensor, " m"]:
        """How much this user likes settings, in units of the noise of an answer."""
        return self._utilities(torch.stack([self.plan.space.unit(setting) for setting in settings]))

    def judged(self, setting: dict[str, Any]) -> tuple[float, float]:
        """Share and chance of a setting, as in :class:`Checkpoint`."""
        utility = float(self.utilities([setting]))
        best = max(self.best, utility)
        top, reached = (float(self._scaled(torch.tensor(number))) for number in (best, utility))
        share = (reached - self.average) / (top - self.average)
        chance = float(ndtr(torch.tensor(best - utility))) if self.plan.kind.compares else reached
        return share, chance

    def _utilities(self, points: Float[Tensor, "m d"]) -> Float[Tensor, " m"]:
        return self._path(points)[0]

    def _scaled(self, utilities: Tensor) -> Tensor:
        """What counts: the success rate in yes/no studies, else the utility itself."""
        return utilities if self.plan.kind.compares else ndtr(utilities)


def _drawn_kernel(plan: Plan, source: torch.Generator) -> Kernel:
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
    """How all users fare, at each checkpoint; ``step`` is called after every answer."""
    users = [_course(wanted, user, step) for user in range(wanted.users)]
    return [
        Checkpoint(count, [course[k][0] for course in users], [course[k][1] for course in users])
        for k, count in enumerate(wanted.checkpoints)
    ]


def _course(wanted: Simulation, user: int, step: Callable[[], None]) -> list[tuple[float, float]]:
    """How one user's recommended setting is judged at each checkpoint."""
    person, judged = SimulatedUser(wanted, user), []
    study = Study.of(replace(wanted.plan, seed=wanted.plan.seed + user, expires=None))
    for count in range(1, wanted.answers + 1):
        question = study.ask(context=wanted.context)
        study.tell(question, person.answer(question))
        step()
        if count in wanted.checkpoints:
            judged.append(person.judged(study.best(wanted.context).params))
    return judged


def conclusion(last: Checkpoint) -> str:
    """What nine in ten users get, in a sentence."""
    users = len(last.share)
    most = math.ceil(_MOST * users)
    reached = sorted(last.share, reverse=True)[most - 1]
    return (
        f"With {last.answers} answers, {most} of {users} users are recommended a setting "
        f"at least {reached:.0%} of the way from an average one to their best."
    )
