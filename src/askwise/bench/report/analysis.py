"""Everything the report says about one experiment, computed once."""

import shlex
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from jaxtyping import Float

from askwise.bench.effects import Averages, averages, superiority
from askwise.bench.estimates import Estimate, Interval, Pairs
from askwise.bench.provenance import command
from askwise.bench.published import ALPHA
from askwise.bench.ranking import Spread, Table, ranks_at, spreads_at
from askwise.bench.regret import normalised_regret
from askwise.bench.report.page import Recipe
from askwise.bench.results import Results
from askwise.rules import RULES, parse

ALPHAS = (ALPHA, 0.005, 0.05)
COINCIDENT = 1e-3  # of the range: points of a query that are nearer in every coordinate are the same

Advantage = dict[str, tuple[Estimate, Estimate]]
"""Superiority of the best rule over each of the others, best first: by final score, and by AUC."""


@dataclass(frozen=True, eq=False)
class Variant:
    """The regret of an arm, in an experiment that varies beta or the number m of points in a query."""

    label: str
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

    def among(self, rules: Iterable[str]) -> "Analysis":
        """The same experiment with these rules only, as if the others had not been run."""
        kept = set(rules)
        scores = {label: held for label, held in self.results.scores.items() if label in kept}
        return replace(self, results=replace(self.results, scores=scores))

    @cached_property
    def tables(self) -> dict[float, Table]:
        """The ranking at each significance level; empty if there is only one rule."""
        return ranks_at(self.results.scores, ALPHAS) if len(self.arms) > 1 else {}

    @cached_property
    def spreads(self) -> dict[float, Spread]:
        """How far chance moves the Borda scores at each significance level."""
        return spreads_at(self.results.scores, ALPHAS)

    @cached_property
    def superiority(self) -> tuple[Pairs, Pairs]:
        """How often runs of one rule beat those of another: by final score, and by AUC."""
        return superiority(self.results.scores), superiority(self.results.scores, of="auc")

    @cached_property
    def regret(self) -> dict[str, Float[np.ndarray, "function _ iteration"]]:
        """Normalised regret of each arm."""
        return normalised_regret(self.results)

    @property
    def last_regret(self) -> dict[str, Float[np.ndarray, "function _"]]:
        """Normalised regret of each arm after the last query."""
        return {arm: regret[..., -1] for arm, regret in self.regret.items()}

    @cached_property
    def final_regret(self) -> Averages:
        """Mean normalised regret after the last query."""
        return averages(self.last_regret)

    @cached_property
    def median_regret(self) -> Averages:
        """Normalised regret after the last query: the median of the runs, averaged over functions."""
        return averages(self.last_regret, np.median)

    @cached_property
    def average_regret(self) -> Averages:
        """Mean normalised regret over all queries."""
        return averages({arm: regret.mean(-1) for arm, regret in self.regret.items()})

    @property
    def best(self) -> str:
        """The rule with the highest Borda score."""
        return self.tables[ALPHA].rules[0]

    def advantage(self) -> Advantage:
        """How often runs of the best rule beat those of each of the others."""
        best, *others = self.tables[ALPHA].rules
        final, auc = self.superiority
        return {rule: (final.of(best, rule), auc.of(best, rule)) for rule in others}

    def coincident(self, arm: str) -> float:
        """The share of queries chosen by the rule in which two points coincide; of the first runs."""
        found = []
        for function in self.results.functions:
            chosen = self.results.firsts[arm, function].questions[self.results.experiment.initial :]
            apart = np.abs(chosen[:, :, None] - chosen[:, None]).max(-1)
            first, second = np.triu_indices(chosen.shape[1], 1)
            found.append((apart[:, first, second] < COINCIDENT).any(-1).mean())
        return float(np.mean(found))

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
        final, average = self.final_regret.each[label].fixed, self.average_regret.each[label].fixed
        return Variant(label, rule, value, default, final, average, course)


def described(run: Analysis) -> str:
    """The experiment in a sentence or two, beginning with its name."""
    experiment, count = run.results.experiment, len(run.arms)
    rules = len({parse(rule).key for rule in run.arms.values()})
    compared = f"{count} rules" if rules == count else f"{rules} rules in {count} variants"
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
