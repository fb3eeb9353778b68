"""Made-up users of a study: how many answers will it take?"""

import functools
import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from gpytorch.kernels import Kernel
from gpytorch.priors import LogNormalPrior
from jaxtyping import Float
from rich.progress import Progress
from torch import Tensor

from askwise import paths
from askwise.cli.screen import console, table
from askwise.data import Data
from askwise.inference import infer
from askwise.normal import ndtr
from askwise.plan import Plan
from askwise.search import Search
from askwise.seeds import generator
from askwise.study import Question, Study

__all__ = ["After", "Simulation", "Taste", "conclusion", "print_simulation", "simulated"]

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
class After:
    """How good the recommended settings of all users are after so many answers: quartiles, or all."""

    answers: int
    share: list[float]
    """Way from the average setting (0) to the best one (1), one for each user."""
    chance: list[float]
    """That the true best is preferred to it; in yes/no studies, that it works."""


class Taste:
    """What a user likes: a function drawn from what the study expects, and the answers it leads to."""

    def __init__(self, wanted: Simulation, user: int) -> None:
        """Draw it."""
        plan = wanted.plan
        self.plan, self._source = plan, generator("askwise simulate", wanted.seed, user)
        nothing = Data.binary(torch.empty(0, plan.space.d, dtype=torch.float64), torch.empty(0))
        belief = infer(nothing, _drawn_kernel(plan, self._source))
        self._path = paths.draw(belief, 1, self._source)
        looking = generator("askwise simulate", wanted.seed, user, "best")
        self._search = Search.around(belief, looking, plan.space.domain(wanted.context))

    @functools.cached_property
    def best(self) -> float:
        """The highest value."""
        found = self._search.argmax(self._path, draws=1)
        return float(self._values(found.reshape(-1, self.plan.space.d)).max())

    @functools.cached_property
    def average(self) -> float:
        """What counts of a setting, on average over all."""
        return float(self._scaled(self._values(self._search.spread(_CROWD))).mean())

    def answer(self, question: Question) -> dict[str, Any]:
        """What this user answers, as `Study.tell` takes it."""
        values = self.values(question.options)
        if self.plan.feedback == "batch":  # each option has a noise of its own; that of two is that of a duel
            noise = torch.randn(len(values), generator=self._source, dtype=values.dtype)
            return {"ranking": (values + math.sqrt(0.5) * noise).argsort(descending=True).tolist()}
        reaction = values[0] - (values[1] if self.plan.feedback == "duel" else 0.0)
        positive = bool(reaction + torch.randn((), generator=self._source, dtype=values.dtype) > 0)
        return {"answer": positive if self.plan.feedback == "binary" else int(not positive)}

    def values(self, settings: list[dict[str, Any]]) -> Float[Tensor, " m"]:
        """How much this user likes settings, in units of the noise of an answer."""
        return self._values(torch.stack([self.plan.space.unit(setting) for setting in settings]))

    def judged(self, setting: dict[str, Any]) -> tuple[float, float]:
        """How far a setting is on the way from the average to the best, and its chance, as in `After`."""
        value = float(self.values([setting]))
        best = max(self.best, value)
        top, reached = (float(self._scaled(torch.tensor(number))) for number in (best, value))
        share = (reached - self.average) / (top - self.average)
        chance = reached if self.plan.feedback == "binary" else float(ndtr(torch.tensor(best - value)))
        return share, chance

    def _values(self, points: Float[Tensor, "m d"]) -> Float[Tensor, " m"]:
        return self._path(points)[0]

    def _scaled(self, values: Tensor) -> Tensor:
        """What counts: the chance to work in yes/no studies, else the taste itself."""
        return ndtr(values) if self.plan.feedback == "binary" else values


def _drawn_kernel(plan: Plan, source: torch.Generator) -> Kernel:
    """A kernel as the study expects it, its parameters drawn from their priors; or the given one."""
    if isinstance(plan.kernel, Kernel):
        return plan.kernel
    drawn = plan.expected_kernel()
    for _, module, prior, value, put in drawn.named_priors():
        assert isinstance(prior, LogNormalPrior)
        normal = torch.randn(value(module).shape, generator=source, dtype=torch.float64)
        put(module, (prior.loc + prior.scale * normal).exp())
    return drawn


def simulated(wanted: Simulation, *, shows_progress: bool) -> list[After]:
    """What becomes of all users, at each checkpoint."""
    bar = _bar() if shows_progress else nullcontext()
    with bar as progress:
        step: Callable[[], None] = lambda: None  # noqa: E731
        if progress is not None:
            task = progress.add_task("answers", total=wanted.users * wanted.answers)
            step = lambda: progress.advance(task)  # noqa: E731
        users = [_course(wanted, user, step) for user in range(wanted.users)]
    return [
        After(count, [course[k][0] for course in users], [course[k][1] for course in users])
        for k, count in enumerate(wanted.checkpoints)
    ]


def _bar() -> Progress:
    out = console(stderr=True)
    return Progress(console=out, transient=True, disable=not out.is_terminal)


def _course(wanted: Simulation, user: int, step: Callable[[], None]) -> list[tuple[float, float]]:
    """How one user's recommended setting is judged at each checkpoint."""
    plan, taste, judged = wanted.plan, Taste(wanted, user), []
    study = Study(
        plan.space,
        plan.feedback,
        plan.rule,
        seed=plan.seed + user,
        size=plan.size,
        kernel=plan.kernel,
        initial=plan.initial,
    )
    for count in range(1, wanted.answers + 1):
        question = study.ask(context=wanted.context)
        study.tell(question, **taste.answer(question))
        step()
        if count in wanted.checkpoints:
            judged.append(taste.judged(study.best(wanted.context).params))
    return judged


def print_simulation(wanted: Simulation, results: list[After]) -> None:
    """Show the results as a table and in a sentence."""
    binary = wanted.plan.feedback == "binary"
    out = console()
    out.print(f"{wanted.users} made-up users; the middle one, and the quartiles in brackets:\n")
    shown = table("answers", "way to the best", "works" if binary else "true best preferred", right=[0, 1, 2])
    for row in results:
        shown.add_row(str(row.answers), _quartiles(row.share), _quartiles(row.chance))
    out.print(shown)
    out.print("\nWay to the best: 0% is an average setting, 100% the user's best.")
    if not binary:
        out.print("True best preferred: 50% is no better than the recommended setting.")
    out.print(f"\n{conclusion(results[-1])}")


def _quartiles(values: list[float]) -> str:
    low, middle, high = torch.tensor(values).quantile(torch.tensor([0.25, 0.5, 0.75])).tolist()
    return f"{middle:.0%} ({low:.0%} to {high:.0%})"


def conclusion(last: After) -> str:
    """What nine in ten users get, in a sentence."""
    users = len(last.share)
    most = math.ceil(_MOST * users)
    reached = sorted(last.share, reverse=True)[most - 1]
    return (
        f"With {last.answers} answers, {most} of {users} users are recommended a setting "
        f"at least {reached:.0%} of the way from an average one to their best."
    )
