"""Runs in lock-step: replicates of one rule on functions of like dimension and kernel, a lane each.

All lanes ask, are answered and believe together, through the same :func:`askwise.loop.next_query` that
a study calls, on a CPU or a GPU.  A lane run with others equals the lane run alone.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Bool, Float
from torch import Tensor

from askwise.belief import Belief
from askwise.bench.experiments.base import Arm, Experiment
from askwise.bench.problems import Problem
from askwise.data import Data
from askwise.fitting import expected_kernel, expected_length, fit, learned_from
from askwise.kernels import kernel
from askwise.loop import Query, next_query
from askwise.rules import parse
from askwise.seeds import generator

__all__ = ["Cell", "Runs", "run"]


@dataclass(frozen=True, order=True)
class Cell:
    """One run of an experiment, by name; its random numbers follow from that."""

    experiment: str
    function: str
    arm: str
    replicate: int

    @property
    def start(self) -> tuple[str | int, ...]:
        """Identity of its first questions and answers, which it shares with all other rules."""
        return self.experiment, self.function, self.replicate, "start"

    @property
    def identity(self) -> tuple[str | int, ...]:
        """Identity of all that comes after."""
        return self.experiment, self.function, self.arm, self.replicate


@dataclass(frozen=True)
class Runs:
    """What happened in each lane, question by question."""

    questions: Float[Tensor, "lane t m d"]
    answers: Bool[Tensor, "lane t k"]
    optima: Float[Tensor, "lane t d"]
    """The point believed best after each answer."""
    scores: Float[Tensor, "lane t"]
    converged: Bool[Tensor, "lane t"]
    seconds: Float[Tensor, " t"]
    """Time that each question took, of all lanes together."""

    @classmethod
    def joined(cls, parts: "Sequence[Runs]") -> "Runs":
        """Runs that were made one part after the other."""
        names = [field.name for field in fields(cls) if field.name != "seconds"]
        lanes = {name: torch.cat([getattr(part, name) for part in parts]) for name in names}
        return cls(**lanes, seconds=torch.stack([part.seconds for part in parts]).sum(0))


def run(experiment: Experiment, cells: Sequence[Cell], device: torch.device | str = "cpu") -> Runs:
    """Run these cells together; they must share arm, kernel and number of dimensions."""
    problems = [Problem.of(cell.function, experiment.scale) for cell in cells]
    arm = _common_arm(experiment, cells, problems)
    return _Lanes(experiment, arm, cells, problems, torch.device(device)).run()


def _common_arm(experiment: Experiment, cells: Sequence[Cell], problems: Sequence[Problem]) -> Arm:
    arms = {cell.arm for cell in cells}
    kinds = {(problem.function.dim, _family(problem, experiment)) for problem in problems}
    if len(arms) != 1 or len(kinds) != 1:
        raise ValueError(
            "cells must share one arm, kernel and number of dimensions to run together; "
            f"got {len(arms)} arms and {len(kinds)} kinds of problem. Run them in groups."
        )
    return experiment.arm(arms.pop())


def _family(problem: Problem, experiment: Experiment) -> str:
    known = problem.hyperparameters(experiment.prior)
    return "learned" if known is None else known.kernel


class _Lanes:
    def __init__(
        self,
        experiment: Experiment,
        arm: Arm,
        cells: Sequence[Cell],
        problems: Sequence[Problem],
        device: torch.device,
    ) -> None:
        self.experiment, self.arm, self.cells, self.device = experiment, arm, cells, device
        self.rule, self.first = parse(arm.rule), parse("random")
        self.d = problems[0].function.dim
        self.pairs = max(1, arm.m * (arm.m - 1) // 2)
        # each function is evaluated once for all its lanes
        self.parts = _grouped(problems, device)
        self.prior: Kernel | None = None
        if experiment.prior != "learned":
            self.prior = _known_prior(experiment, problems, device)

    def run(self) -> Runs:
        """Ask and answer to the end."""
        questions, chance = self._beginnings()
        answers, optima, scores, converged, clock = [], [], [], [], [time.perf_counter()]
        query: Query | None = None
        for number in range(self.experiment.iterations):
            if number >= self.experiment.initial:
                assert query is not None
                questions.append(query.points)
            answers.append(self._answers(questions[number], chance[:, number]))
            query = self._query(questions[: number + 1], answers, query)
            assert query.optimum is not None
            optima.append(query.optimum[:, 0])
            scores.append(self._judged(optima[-1]))
            converged.append(query.belief.converged)
            clock.append(time.perf_counter())
        return Runs(
            torch.stack(questions[: self.experiment.iterations], 1),
            torch.stack(answers, 1),
            torch.stack(optima, 1),
            torch.stack(scores, 1),
            torch.stack(converged, 1),
            torch.tensor(clock, dtype=torch.float64).diff(),
        )

    def _beginnings(self) -> tuple[list[Tensor], Tensor]:
        """First questions [lane, m, d], and the chance that decides each answer [lane, t, pairs]."""
        m, d, pairs = self.arm.m, self.d, self.pairs
        # all first ones, also for a run that ends before: it is the beginning of a longer one
        first, later = self.experiment.initial, max(0, self.experiment.iterations - self.experiment.initial)
        asked, chance = [], []
        for cell in self.cells:
            start, rest = generator(*cell.start), generator(*cell.identity, "answers")
            asked.append(torch.rand(first, m, d, generator=start, dtype=torch.float64))
            early = torch.rand(first, pairs, generator=start, dtype=torch.float64)
            late = torch.rand(later, pairs, generator=rest, dtype=torch.float64)
            chance.append(torch.cat([early, late]))
        questions = torch.stack(asked, 1).to(self.device)
        return list(questions), torch.stack(chance).to(self.device)

    def _answers(self, question: Tensor, chance: Tensor) -> Tensor:
        return self.experiment.user.answers(self._each(lambda problem, x: problem.value(x), question), chance)

    def _judged(self, optimum: Tensor) -> Tensor:
        return self._each(lambda problem, x: problem.score(x, self.experiment.score), optimum)

    def _each(self, value: Callable[[Problem, Tensor], Tensor], x: Tensor) -> Tensor:
        """Values of points of each lane by its own function."""
        found = x.new_empty(x.shape[:-1])
        for problem, lanes in self.parts:
            found[lanes] = value(problem, x[lanes])
        return found

    def _query(self, questions: list[Tensor], answers: list[Tensor], last: Query | None) -> Query:
        """What is believed after these answers, and what to ask next, if it is the rule that asks."""
        number = len(answers)
        asks = self.experiment.initial <= number < self.experiment.iterations
        data = self._data(torch.stack(questions, 1), torch.stack(answers, 1))
        prior, warm = self._prior(data, None if last is None else last.belief)
        sources = [generator(*cell.identity, number) for cell in self.cells]
        rule = self.rule if asks else self.first
        return next_query(data, rule, prior, self.arm.m, sources, warm=warm, identify=True)

    def _data(self, questions: Tensor, answers: Tensor) -> Data:
        if self.arm.m == 1:
            return Data.binary(questions[:, :, 0], answers[..., 0])
        return Data.batches(questions, answers)

    def _prior(self, data: Data, warm: Belief | None) -> tuple[Kernel, Belief | None]:
        """The prior for these answers, and the belief to start from, if it is one under the same prior."""
        if self.experiment.prior == "learned":
            enough = learned_from(asked := len(data.signs[0]) // self.pairs)
            if enough == asked or self.prior is None:
                self.prior = fit(data, expected_kernel("matern52", [expected_length(self.d)] * self.d)).kernel
                return self.prior, None
        assert self.prior is not None
        return self.prior, warm


def _grouped(problems: Sequence[Problem], device: torch.device) -> list[tuple[Problem, Tensor]]:
    lanes: dict[Problem, list[int]] = {}
    for lane, problem in enumerate(problems):
        lanes.setdefault(problem, []).append(lane)
    return [(problem, torch.tensor(own, device=device)) for problem, own in lanes.items()]


def _known_prior(experiment: Experiment, problems: Sequence[Problem], device: torch.device) -> Kernel:
    """The kernels of all lanes; a single one where they share it."""
    found = [problem.hyperparameters(experiment.prior) for problem in problems]
    known = [one for one in found if one is not None]
    if len(set(known)) == 1:
        return kernel(known[0].kernel, known[0].lengthscale, known[0].outputscale).to(device)
    lengths = torch.tensor([one.lengthscale for one in known], dtype=torch.float64)
    scales = torch.tensor([one.outputscale for one in known], dtype=torch.float64)
    return kernel(known[0].kernel, lengths, scales).to(device)
