"""Scores on each function, and how each experiment was run."""

from collections.abc import Iterator, Mapping

import numpy as np

from askwise.bench.report.analysis import Analysis, recipe
from askwise.bench.report.page import Cell, Column, Page, Sheet, code, measured, short, spelled

_SCALES = {
    "raw": "in their own units",
    "rescaled": "rescaled to mean 0 and variance 1 by the authors' constants, some after a logarithm",
    "standardised": "rescaled to mean 0 and variance 1",
}
_PRIORS = {
    "recovered": "the authors' families and parameters, recovered from their published result files",
    "likelihood": "families and parameters of maximum likelihood, fitted to each function, with a variance "
    "of at most 20000",
    "learned": "Matérn 5/2, with parameters learned from the answers during the run",
    "averaged": "Matérn 5/2, averaged over parameters drawn from their posterior during the run",
}
_SCORES = {"value": "the function", "probability": "the probability of a yes"}


def add(page: Page, runs: Mapping[str, Analysis]) -> None:
    """Add a folded table of scores and a table of circumstances for each experiment."""
    page.text("## Scores on each function")
    page.text("Mean score after the last query ± SEM; the highest mean of each function is bold.")
    for run in runs.values():
        page.sheet(_scores(run), folded=f"{run.results.experiment.title} (<code>{run.name}</code>)")
    page.text("## How the experiments were run")
    for run in runs.values():
        page.sheet(_circumstances(run))


def _scores(run: Analysis) -> Sheet:
    rows = []
    for place, function in enumerate(run.results.functions):
        final = [scores[place, :, -1] for scores in run.results.scores.values()]
        best = max(runs.mean() for runs in final)
        errors = [runs.std(ddof=1) / len(runs) ** 0.5 if len(runs) > 1 else np.nan for runs in final]
        cells = [
            Cell(measured(float(runs.mean()), float(error)), bold=bool(runs.mean() == best))
            for runs, error in zip(final, errors, strict=True)
        ]
        rows.append([code(function), *cells])
    columns = [Column("function", align="l"), *(Column(spelled(label), code=True) for label in run.arms)]
    caption = f"Mean final score ± SEM of {run.results.experiment.replicates} runs, `{run.name}`."
    return Sheet(f"scores-{run.name}", caption, columns, rows, recipe(run))


def _circumstances(run: Analysis) -> Sheet:
    recorded = {name: value for name, value in run.results.about.items() if name != "experiment"}
    rows = [[Cell(name), Cell(value)] for name, value in (*_definition(run), *_lines(recorded))]
    columns = [Column("experiment", align="l"), Column(run.name, code=True, align="p")]
    return Sheet(f"run-{run.name}", f"{run.results.experiment.title}.", columns, rows, recipe(run))


def _definition(run: Analysis) -> Iterator[tuple[str, str]]:
    experiment, converged = run.results.experiment, run.results.converged
    yield "rules", ", ".join(map(spelled, run.arms))
    yield "functions", f"{len(run.results.functions)}, {_SCALES[experiment.scale]}"
    yield "kernels", _PRIORS[experiment.prior]
    counts = f"{experiment.replicates} replicates per rule and function, of {experiment.iterations} queries"
    yield "design", f"{counts}, the first {experiment.initial} at random"
    yield "score", f"{_SCORES[experiment.score]} at the estimated optimum"
    yield "user", f"noise {experiment.user.noise:g}, {100 * experiment.user.lapses:g} % of answers at random"
    share = np.mean([part.mean() for part in converged.values()])
    yield "inference", f"converged after {100 * share:.6g} % of the queries"


def _lines(recorded: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """The entries of about.json; values of several sessions are separated by semicolons."""
    for name, value in recorded.items():
        several = value if isinstance(value, list | tuple) else [value]
        shown = [short(one) if isinstance(one, float) else str(one) for one in several]
        yield name.replace("_", " "), "; ".join(shown)
