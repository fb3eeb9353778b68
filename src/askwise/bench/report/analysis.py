"""Everything that the report says of one experiment, computed once."""

import shlex
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from jaxtyping import Float

from askwise.bench.effects import Superiority, superiority
from askwise.bench.provenance import command
from askwise.bench.published import ALPHA
from askwise.bench.ranking import Table, ranks_at
from askwise.bench.regret import Interval, mean_regret, normalised_regret
from askwise.bench.report.sheets import Recipe
from askwise.bench.results import Results
from askwise.rules import parse

__all__ = ["ALPHAS", "Analysis", "described", "recipe"]

ALPHAS = (ALPHA, 0.005, 0.05)


@dataclass(frozen=True, eq=False)
class Analysis:
    """One experiment's results, and what follows from them."""

    results: Results
    directory: Path

    @property
    def name(self) -> str:
        """The name of the experiment."""
        return self.results.experiment.name

    @property
    def command(self) -> str:
        """What to type to run it; where to is left open, since what was read here may be packed."""
        return command(self.results.experiment, self.directory).rpartition(" --out ")[0]

    @property
    def arms(self) -> tuple[str, ...]:
        """The labels of the rules compared, in the order of the experiment."""
        return tuple(self.results.scores)

    @cached_property
    def tables(self) -> dict[float, Table]:
        """The ranking at each level; none if there is only one rule."""
        return ranks_at(self.results.scores, ALPHAS) if len(self.arms) > 1 else {}

    @cached_property
    def regret(self) -> dict[str, Float[np.ndarray, "function _ iteration"]]:
        """Normalised regret of each rule."""
        return normalised_regret(self.results)

    @cached_property
    def _superiority(self) -> dict[str, Superiority]:
        return {}

    def superiority(self, of: Literal["final", "auc"]) -> Superiority:
        """How often runs of one rule beat those of another."""
        if of not in self._superiority:
            self._superiority[of] = superiority(self.results.scores, of=of)
        return self._superiority[of]

    def final_regret(self, arm: str) -> Interval:
        """Mean normalised regret after the last question."""
        return mean_regret(self.regret[arm][..., -1])

    def average_regret(self, arm: str) -> Interval:
        """Mean normalised regret over all questions."""
        return mean_regret(self.regret[arm].mean(-1))


def described(run: Analysis) -> str:
    """What the experiment is, in a sentence or two that begin with its name."""
    experiment, count = run.results.experiment, len(run.arms)
    rules = len({parse(arm.rule).key for arm in experiment.arms})
    compared = f"{count} rules" if rules == count else f"{count} variants of {rules} rules"
    return (
        f"`{run.name}`: {' '.join(experiment.about.split())} {compared} on {len(run.results.functions)} "
        f"functions, {experiment.replicates} times {experiment.iterations} questions, "
        f"the first {experiment.initial} at random."
    )


def recipe(*runs: Analysis) -> Recipe:
    """How to make a table about these experiments."""
    report = shlex.join(["askwise", "bench", "report", *(str(run.directory) for run in runs)])
    return Recipe(report, tuple(run.command for run in runs))
