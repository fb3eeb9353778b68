"""Runs in lockstep: one rule on functions of the same dimension and kernel family, a lane per run.

Each step queries, answers and infers in all lanes at once, on a CPU or a GPU, through the same
:func:`askwise.loop.next_query` that a study calls.  A lane gives the same result alone and with others.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Bool, Float, Int8
from torch import Tensor

from askwise.bench.experiments import Experiment
from askwise.bench.habits import Habits
from askwise.bench.problems import Hyperparameters, Problem
from askwise.bench.tastes import Tastes
from askwise.errors import Refused
from askwise.loop import Query, next_query
from askwise.model import (
    Belief,
    Data,
    Kernels,
    averaged,
    expected_kernel,
    expected_length,
    kernel,
    lanes_by,
    refit_count,
)
from askwise.numerics import generator
from askwise.rules import parse


@dataclass(frozen=True, order=True)
class RunId:
    """The name of one run of an experiment, which seeds its random numbers."""

    experiment: str
    function: str
    arm: str
    replicate: int

    @property
    def start(self) -> tuple[str | int, ...]:
        """Seed of the initial queries and answers, shared by all arms."""
        return self.experiment, self.function, self.replicate, "start"

    @property
    def identity(self) -> tuple[str | int, ...]:
        """Seed of everything after that."""
        return self.experiment, self.function, self.arm, self.replicate


@dataclass(frozen=True)
class Runs:
    """The course of each lane, query by query."""

    questions: Float[Tensor, "lane t m d"]
    answers: Int8[Tensor, "lane t k"]
    optima: Float[Tensor, "lane t d"]  # the estimated optimum after each answer
    scores: Float[Tensor, "lane t"]
    converged: Bool[Tensor, "lane t"]
    seconds: Float[Tensor, " t"]  # time of each step, all lanes together

    @classmethod
    def joined(cls, parts: "Sequence[Runs]") -> "Runs":
        """Runs whose parts were computed one after the other."""
        names = [field.name for field in fields(cls) if field.name != "seconds"]
        lanes = {name: torch.cat([getattr(part, name) for part in parts]) for name in names}
        return cls(**lanes, seconds=torch.stack([part.seconds for part in parts]).sum(0))


def group_of(experiment: Experiment, run_id: RunId) -> tuple[str, int, str | None]:
    """What runs must share to be lanes of one step: arm, dimension, kernel family (None if learned)."""
    problem = Problem.of(run_id.function, experiment.scale)
    known = problem.hyperparameters(experiment.prior)
    return run_id.arm, problem.function.dim, None if known is None else known.kernel


def alike(one: Experiment, other: Experiment) -> bool:
    """Whether runs of the two can be lanes of one step: only what is run and the users' noise differ."""
    free = {"name", "title", "about", "arms", "functions", "replicates", "user"}
    same = all(
        getattr(one, part.name) == getattr(other, part.name) for part in fields(one) if part.name not in free
    )
    return same and replace(one.user, noise=1.0) == replace(other.user, noise=1.0)


def run(
    experiment: Experiment,
    ids: Sequence[RunId],
    device: torch.device | str = "cpu",
    others: Sequence[Experiment] = (),
) -> Runs:
    """Compute these runs together; they must belong to one group.

    Some may belong to ``others``, which are :func:`alike`.
    """
    groups = {group_of(experiment, run_id) for run_id in ids}
    if len(groups) != 1:
        expected = "share one arm, kernel family and dimension to be computed together"
        raise Refused("runs", expected, f"{len(groups)} groups", "Compute each group separately.")
    return _Lanes(experiment, ids, torch.device(device), others).run()


class _Lanes:
    def __init__(
        self, experiment: Experiment, ids: Sequence[RunId], device: torch.device, others: Sequence[Experiment]
    ) -> None:
        self.experiment, self.ids, self.device = experiment, ids, device
        noise = {each.name: each.user.noise for each in (experiment, *others)}
        clearer = [experiment.user.noise / noise[run_id.experiment] for run_id in ids]
        self.clearer = torch.tensor(clearer, dtype=torch.float64, device=device)[:, None] if others else None
        self.arm = experiment.arm(ids[0].arm)
        self.rule, self.first = parse(self.arm.rule), parse("random")
        problems = [Problem.of(run_id.function, experiment.scale) for run_id in ids]
        self.d = problems[0].function.dim
        self.lanes_of = {problem: lanes.to(device) for problem, lanes in lanes_by(problems).items()}
        known = [problem.hyperparameters(experiment.prior) for problem in problems]
        self.prior: Kernel | Kernels | None = _prior_of([each for each in known if each is not None], device)
        self.habits, people = Habits(experiment.user), experiment.user.people
        starts = [run_id.start for run_id in ids]
        self.tastes = Tastes.drawn(starts, people, self.d).to(device) if people > 1 else None

    def run(self) -> Runs:
        """All queries and answers of the runs."""
        questions, chance = self._beginnings()
        answers, optima, scores, converged, clock = [], [], [], [], [time.perf_counter()]
        query: Query | None = None
        for number in range(self.experiment.iterations):
            if number >= self.experiment.initial:
                assert query is not None
                questions.append(query.points)
            values = self._values(questions[number], number)
            if self.clearer is not None:
                values = values * self.clearer
            answers.append(self.experiment.user.answers(values, chance[:, number]))
            query = self._query(questions[: number + 1], answers, query)
            assert query.optimum is not None
            optima.append(query.optimum[:, 0])
            scores.append(self._each(lambda problem, x: problem.score(x, self.experiment.score), optima[-1]))
            converged.append(query.belief.converged)
            clock.append(time.perf_counter())
        by_query = (questions[: self.experiment.iterations], answers, optima, scores, converged)
        seconds = torch.tensor(clock, dtype=torch.float64).diff()
        return Runs(*[*(torch.stack(course, 1) for course in by_query), seconds])

    def _beginnings(self) -> tuple[list[Tensor], Tensor]:
        """Initial queries [lane, m, d], and the uniform numbers that decide all answers [lane, t, pairs]."""
        m, d, pairs = self.arm.m, self.d, self.arm.pairs
        # draw all initial ones even if the run ends earlier, so that it equals the start of a longer run
        first, later = self.experiment.initial, max(0, self.experiment.iterations - self.experiment.initial)
        asked, chance = [], []
        for run_id in self.ids:
            start, rest = generator(*run_id.start), generator(*run_id.identity, "answers")
            asked.append(torch.rand(first, m, d, generator=start, dtype=torch.float64))
            early = torch.rand(first, pairs, generator=start, dtype=torch.float64)
            late = torch.rand(later, pairs, generator=rest, dtype=torch.float64)
            chance.append(torch.cat([early, late]))
        questions = torch.stack(asked, 1).to(self.device)
        return list(questions), torch.stack(chance).to(self.device)

    def _values(self, x: Float[Tensor, "lane m d"], number: int) -> Float[Tensor, "lane m"]:
        """How much whoever answers this query likes its points."""
        common, own = self._each(lambda problem, x: problem.value(x), x), self.experiment.user.own
        if self.tastes is None:
            return common
        person = number % self.experiment.user.people
        return math.sqrt(1 - own) * common + math.sqrt(own) * self.tastes.values(x, person)

    def _each(self, value: Callable[[Problem, Tensor], Tensor], x: Tensor) -> Tensor:
        """Values at the points of each lane by its own function, evaluated once per function."""
        found = x.new_empty(x.shape[:-1])
        for problem, lanes in self.lanes_of.items():
            found[lanes] = value(problem, x[lanes])
        return found

    def _query(self, questions: list[Tensor], answers: list[Tensor], last: Query | None) -> Query:
        """The posterior after these answers, the estimated optimum and the next query."""
        number = len(answers)
        data = self.habits.data(torch.stack(questions, 1), torch.stack(answers, 1))
        prior, warm = self._prior(data, None if last is None else last.belief)
        sources = [generator(*run_id.identity, number) for run_id in self.ids]
        rule = self.rule if self.experiment.initial <= number < self.experiment.iterations else self.first
        data = self.habits.applied(data)
        return next_query(data, rule, prior, self.arm.m, sources, warm=warm, identify=True)

    def _prior(self, data: Data, warm: Belief | None) -> tuple[Kernel | Kernels, Belief | None]:
        """The prior for these answers, and the belief to warm-start from if it has the same prior."""
        if self.experiment.prior in ("learned", "averaged"):
            asked = len(data.signs[0]) // self.arm.pairs
            if refit_count(asked) == asked or self.prior is None:
                averages, lengths = self.experiment.prior == "averaged", [expected_length(self.d)] * self.d
                prior = expected_kernel(self.experiment.family, lengths, averaged=averages)
                self.habits, fitted = self.habits.fitted(data, prior, roughly=averages)
                data, found = self.habits.applied(data), fitted.kernel
                self.prior = self._averaged(data, found, asked) if averages else found
                return self.prior, None
        assert self.prior is not None
        return self.prior, warm

    def _averaged(self, data: Data, fitted: Kernel, asked: int) -> Kernels:
        """Kernels to average over, drawn for each lane."""
        sources = [generator(*run_id.identity, "kernels", asked) for run_id in self.ids]
        return averaged(data, fitted, sources)


def _prior_of(known: Sequence[Hyperparameters], device: torch.device) -> Kernel | None:
    """The known kernels of all lanes; a single one if they share it, None if it is to be learned."""
    if len(set(known)) <= 1:
        return known[0].gpytorch().to(device) if known else None
    lengths = torch.tensor([each.lengthscale for each in known], dtype=torch.float64)
    scales = torch.tensor([each.outputscale for each in known], dtype=torch.float64)
    return kernel(known[0].kernel, lengths, scales).to(device)
