"""How each experiment was run, so that it can be run again."""

from collections.abc import Iterator, Mapping

import numpy as np

from askwise.bench.report.analysis import Analysis, recipe
from askwise.bench.report.numbers import short, spelled
from askwise.bench.report.page import Page
from askwise.bench.report.sheets import Cell, Column, Sheet, code

__all__ = ["add"]

_SCALES = {
    "raw": "in their own units",
    "rescaled": "rescaled to mean 0 and variance 1 by the authors' constants, some of them after a logarithm",
    "standardised": "rescaled to mean 0 and variance 1",
}
_PRIORS = {
    "recovered": "the authors' families and parameters, recovered from their published result files",
    "likelihood": "families and parameters of maximum likelihood, fitted to each function",
    "learned": "Matérn 5/2, its parameters learned from the answers on the way",
}
_SCORES = {"value": "the function", "probability": "the probability of a yes"}


def add(page: Page, runs: Mapping[str, Analysis]) -> None:
    """Add a table for each experiment: what it is, and what was noted when it ran."""
    page.heading(2, "How the experiments were run")
    for run in runs.values():
        noted = {name: value for name, value in run.results.about.items() if name != "experiment"}
        rows = [[Cell(name), Cell(value)] for name, value in (*_definition(run), *_lines(noted))]
        columns = [Column.of("experiment", align="l"), Column(code(run.name), align="p")]
        caption = f"{run.results.experiment.title}."
        page.sheet(Sheet(f"run-{run.name}", caption, columns, rows, recipe(run)))


def _definition(run: Analysis) -> Iterator[tuple[str, str]]:
    experiment, converged = run.results.experiment, run.results.converged
    yield "rules", ", ".join(map(spelled, run.arms))
    yield "functions", f"{len(run.results.functions)}, {_SCALES[experiment.scale]}"
    yield "kernels", _PRIORS[experiment.prior]
    counts = f"{experiment.replicates} of each rule on each function, of {experiment.iterations} questions"
    yield "design", f"{counts}, the first {experiment.initial} at random"
    yield "score", f"{_SCORES[experiment.score]} at the point held for the best"
    yield "user", f"noise {experiment.user.noise:g}, {100 * experiment.user.lapses:g} % of answers at random"
    share = np.mean([part.mean() for part in converged.values()])
    yield "inference", f"to its tolerance after {100 * share:.6g} % of the questions"


def _lines(noted: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """What was noted, by name; several of a kind, from several sessions, are separated by semicolons."""
    for name, value in noted.items():
        several = value if isinstance(value, list | tuple) else [value]
        shown = [short(one) if isinstance(one, float) else str(one) for one in several]
        yield name.replace("_", " "), "; ".join(shown)
