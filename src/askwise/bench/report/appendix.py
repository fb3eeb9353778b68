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
    "likelihood": "families and parameters of maximum likelihood, fitted to each function",
    "learned": "Matérn 5/2, with parameters learned from the answers during the run",
}
_SCORES = {"value": "the function", "probability": "the probability of a yes"}


def add(page: Page, runs: Mapping[str, Analysis]) -> None:
    """Add a folded table of scores and a table of circumstances for each experiment."""
    page.heading(2, "Scores on each function")
    page.text("Mean score after the last query ± SEM; the highest mean of each function is bold.")
    for run in runs.values():
        page.sheet(_scores(run), folded=f"{run.results.experiment.title} (<code>{run.name}</code>)")
    page.heading(2, "How the experiments were run")
    for run in runs.values():
        page.sheet(_circumstances(run))


def _scores(run: Analysis) -> Sheet:
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


def _circumstances(run: Analysis) -> Sheet:
    recorded = {name: value for name, value in run.results.about.items() if name != "experiment"}
    rows = [[Cell(name), Cell(value)] for name, value in (*_definition(run), *_lines(recorded))]
    columns = [Column.of("experiment", align="l"), Column(code(run.name), align="p")]
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
