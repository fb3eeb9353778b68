"""The scores themselves: each rule on each function."""

from collections.abc import Mapping

import numpy as np

from askwise.bench.report.analysis import Analysis, recipe
from askwise.bench.report.numbers import measured, spelled
from askwise.bench.report.page import Page
from askwise.bench.report.sheets import Cell, Column, Sheet, code

__all__ = ["add"]


def add(page: Page, runs: Mapping[str, Analysis]) -> None:
    """Add a folded table for each experiment."""
    page.heading(2, "Scores on each function")
    page.text("Mean score after the last question ± SEM; the highest mean of each function is bold.")
    for run in runs.values():
        page.sheet(_sheet(run), folded=f"{run.results.experiment.title} (<code>{run.name}</code>)")


def _sheet(run: Analysis) -> Sheet:
    means, errors = {}, {}
    for label, scores in run.results.scores.items():
        final = scores[..., -1]
        means[label] = final.mean(1)
        count = final.shape[1]
        errors[label] = final.std(1, ddof=1) / count**0.5 if count > 1 else np.full(len(final), np.nan)
    best = np.max(list(means.values()), axis=0)
    rows = []
    for place, function in enumerate(run.results.functions):
        cells = [
            Cell(
                measured(float(means[label][place]), float(errors[label][place])),
                bold=bool(means[label][place] == best[place]),
            )
            for label in run.arms
        ]
        rows.append([code(function), *cells])
    columns = [Column.of("function", align="l"), *(Column(code(spelled(label))) for label in run.arms)]
    caption = f"Mean final score ± SEM of {run.results.experiment.replicates} runs, `{run.name}`."
    return Sheet(f"scores-{run.name}", caption, columns, rows, recipe(run))
