"""What larger batches are good for, and which rule fills them best."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from askwise.bench.regret import Interval
from askwise.bench.report import trajectories
from askwise.bench.report.analysis import Analysis, described, recipe
from askwise.bench.report.numbers import spelled, within
from askwise.bench.report.page import Page
from askwise.bench.report.sheets import MISSING, Cell, Column, Recipe, Sheet, code

__all__ = ["NAME", "Sized", "add"]

NAME = "batch-sizes"


@dataclass(frozen=True, eq=False)
class Sized:
    """A rule that asks about m points at once, and what regret it had."""

    rule: str
    m: int
    final: Interval
    course: Float[np.ndarray, " iteration"]
    """Mean over functions and replicates after each question."""


def add(page: Page, runs: Mapping[str, Analysis]) -> None:
    """Add regret against questions and batch size; nothing if that experiment is not there."""
    if NAME not in runs:
        return
    from askwise.bench.report.figures.batches import batches

    run = runs[NAME]
    page.heading(2, "Batch sizes")
    page.text(
        f"A question about m points is answered by m(m - 1)/2 comparisons. The experiment, {described(run)}"
    )
    found = _sized(run)
    page.figure(
        "batch-sizes",
        batches(found, run.results.experiment),
        "Mean normalised regret over all functions: against the number of questions, for each size m, and "
        "after the last question against m, with intervals of 95 %.",
    )
    page.sheet(_sheet(found, recipe(run)))
    trajectories.add(page, run, "Runs by batch size", ())


def _sized(run: Analysis) -> list[Sized]:
    found = []
    for label in run.arms:
        arm = run.results.experiment.arm(label)
        course = run.regret[label].mean((0, 1))
        found.append(Sized(arm.rule, arm.m, run.final_regret(label), course))
    return found


def _sheet(found: list[Sized], made: Recipe) -> Sheet:
    """Rules by sizes, the least regret of each size in bold."""
    sizes = sorted({one.m for one in found})
    least = {m: min(one.final.mean for one in found if one.m == m) for m in sizes}
    by_place = {(one.rule, one.m): one.final for one in found}
    rows = []
    for rule in dict.fromkeys(one.rule for one in found):
        cells = [by_place.get((rule, m)) for m in sizes]
        rows.append(
            [
                code(spelled(rule)),
                *(
                    MISSING if cell is None else Cell(within(cell, 4), bold=cell.mean == least[m])
                    for m, cell in zip(sizes, cells, strict=True)
                ),
            ]
        )
    columns = [Column.of("rule", align="l"), *(Column.of(f"m = {m}") for m in sizes)]
    caption = "Mean normalised regret after the last question, with intervals of 95 %."
    return Sheet("batch-sizes", caption, columns, rows, made)
