"""Everything the report says about one experiment, computed once."""

import shlex
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from jaxtyping import Float

from askwise.bench.effects import Superiority, superiority
from askwise.bench.provenance import command
from askwise.bench.published import ALPHA
from askwise.bench.ranking import Table, ranks_at
from askwise.bench.regret import Interval, mean_regret, normalised_regret
from askwise.bench.report.page import Recipe
from askwise.bench.results import Results
from askwise.rules import RULES, parse

ALPHAS = (ALPHA, 0.005, 0.05)

Advantage = dict[str, tuple[Interval, Interval]]
"""Superiority of the best rule over each of the others, best first: by final score, and by AUC."""


@dataclass(frozen=True, eq=False)
class Variant:
    """The regret of an arm, in an experiment that varies beta or the number m of points in a query."""

    rule: str
    value: float | int
    """The value of beta, or of m."""
    default: bool
    final: Interval
    average: Interval
    course: Float[np.ndarray, " iteration"]
    """Mean over functions and replicates after each query."""


@dataclass(frozen=True, eq=False)
class Analysis:
    """The results of one experiment, and what follows from them."""

    results: Results
    directory: Path

    @property
    def name(self) -> str:
        """The name of the experiment."""
        return self.results.experiment.name

    @property
    def arms(self) -> dict[str, str]:
        """The rule of each arm by label, in the order of the experiment."""
        return {label: self.results.experiment.arm(label).rule for label in self.results.scores}

    @cached_property
    def tables(self) -> dict[float, Table]:
        """The ranking at each significance level; empty if there is only one rule."""
        return ranks_at(self.results.scores, ALPHAS) if len(self.arms) > 1 else {}

    @cached_property
    def regret(self) -> dict[str, Float[np.ndarray, "function _ iteration"]]:
        """Normalised regret of each arm."""
        return normalised_regret(self.results)

    def final_regret(self, arm: str) -> Interval:
        """Mean normalised regret after the last query."""
        return mean_regret(self.regret[arm][..., -1])

    def average_regret(self, arm: str) -> Interval:
        """Mean normalised regret over all queries."""
        return mean_regret(self.regret[arm].mean(-1))

    def advantage(self) -> Advantage:
        """How often runs of the best rule beat those of each of the others."""
        best, *others = self.tables[ALPHA].rules
        final, auc = superiority(self.results.scores), superiority(self.results.scores, of="auc")
        return {rule: (_against(final, best, rule), _against(auc, best, rule)) for rule in others}

    def by_beta(self) -> list[Variant]:
        """The arms with a beta, sorted by rule and beta."""
        found = []
        for label, text in self.arms.items():
            rule = parse(text)
            if (beta := getattr(rule, "beta", None)) is not None:
                default = beta == getattr(RULES[rule.key], "beta", None)
                found.append(self._variant(label, rule.key, beta, default))
        return sorted(found, key=lambda one: (one.rule, one.value))

    def by_size(self) -> list[Variant]:
        """Every arm, with its number of points."""
        arms = map(self.results.experiment.arm, self.arms)
        return [self._variant(arm.label, arm.rule, arm.m) for arm in arms]

    def _variant(self, label: str, rule: str, value: float | int, default: bool = False) -> Variant:
        course = self.regret[label].mean((0, 1))
        return Variant(rule, value, default, self.final_regret(label), self.average_regret(label), course)


def _against(found: Superiority, best: str, rule: str) -> Interval:
    at = found.rules.index(best), found.rules.index(rule)
    return Interval(float(found.matrix[at]), float(found.low[at]), float(found.high[at]))


def described(run: Analysis) -> str:
    """The experiment in a sentence or two, beginning with its name."""
    experiment, count = run.results.experiment, len(run.arms)
    rules = len({parse(rule).key for rule in run.arms.values()})
    compared = f"{count} rules" if rules == count else f"{count} variants of {rules} rules"
    return (
        f"`{run.name}`: {' '.join(experiment.about.split())} {compared} on {len(run.results.functions)} "
        f"functions, {experiment.replicates} replicates of {experiment.iterations} queries, "
        f"the first {experiment.initial} at random."
    )


def recipe(*runs: Analysis) -> Recipe:
    """How to reproduce a table about these experiments."""
    report = shlex.join(["askwise", "bench", "report", *(str(run.directory) for run in runs)])
    about = [(run.results.experiment, run.results.about.get("imports", ())) for run in runs]
    # without directories: these results may be packed
    return Recipe(report, tuple(command(experiment, imports=imports) for experiment, imports in about))
