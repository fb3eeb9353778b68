"""How much hangs on the weight of uncertainty, beta, in the two rules for yes/no questions that have one."""

from collections.abc import Mapping
from dataclasses import dataclass

from askwise.bench.regret import Interval
from askwise.bench.report import trajectories
from askwise.bench.report.analysis import Analysis, described, recipe
from askwise.bench.report.numbers import within
from askwise.bench.report.page import Page
from askwise.bench.report.sheets import Cell, Column, Recipe, Sheet, code
from askwise.rules import RULES, parse

__all__ = ["NAME", "Weighted", "add"]

NAME = "beta"


@dataclass(frozen=True)
class Weighted:
    """A rule with one weight, and what regret it had."""

    rule: str
    beta: float
    usual: bool
    """Whether it is the rule's default."""
    final: Interval
    average: Interval


def add(page: Page, runs: Mapping[str, Analysis]) -> None:
    """Add regret against beta; nothing if that experiment is not there."""
    if NAME not in runs:
        return
    from askwise.bench.report.figures.weights import weights

    run = runs[NAME]
    page.heading(2, "Sensitivity to β")
    page.text(
        "The bounds `ucb_phi` and `ucb_f` add β times the uncertainty to what is expected. The experiment, "
        f"{described(run)}"
    )
    found = _weighted(run)
    page.figure(
        "beta",
        weights(found),
        "Mean normalised regret over all functions against β, with intervals of 95 %: after the last "
        "question, and over all questions. The filled marks are the defaults.",
    )
    page.sheet(_sheet(found, recipe(run)))
    trajectories.add(page, run, "Runs by β", ())


def _weighted(run: Analysis) -> list[Weighted]:
    """The arms with a weight, by rule and weight."""
    found = []
    for label in run.arms:
        rule = parse(run.results.experiment.arm(label).rule)
        beta = getattr(rule, "beta", None)
        if beta is None:
            continue
        usual = beta == getattr(RULES[rule.key], "beta", None)
        found.append(Weighted(rule.key, beta, usual, run.final_regret(label), run.average_regret(label)))
    return sorted(found, key=lambda one: (one.rule, one.beta))


def _sheet(found: list[Weighted], made: Recipe) -> Sheet:
    columns = [
        Column.of("rule", align="l"),
        Column.of("β"),
        Column.of("after the last question"),
        Column.of("over all questions"),
    ]
    least = {
        rule: min(one.final.mean for one in found if one.rule == rule) for rule in {w.rule for w in found}
    }
    rows = [
        [
            code(one.rule),
            Cell(f"{one.beta:.4g}{' (default)' if one.usual else ''}"),
            Cell(within(one.final, 4), bold=one.final.mean == least[one.rule]),
            Cell(within(one.average, 4)),
        ]
        for one in found
    ]
    return Sheet("beta", "Mean normalised regret by β, with intervals of 95 %.", columns, rows, made)
