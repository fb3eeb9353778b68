"""How the runs went, question by question."""

from askwise.bench.report.analysis import Analysis
from askwise.bench.report.page import Page

__all__ = ["add"]

_SCORES = {"value": "Mean score", "probability": "Mean score, the probability of a yes,"}


def add(page: Page, run: Analysis, heading: str, shown: tuple[str, ...]) -> None:
    """Add the runs on the functions to be shown large, and on all."""
    from askwise.bench.report.figures.runs import all_runs, some_runs

    page.heading(3, heading)
    there = tuple(name for name in shown if name in run.results.functions)
    if there:
        page.figure(
            f"examples-{run.name}",
            some_runs(run, there),
            f"{_SCORES[run.results.experiment.score]} ± SEM after each question, `{run.name}`.",
        )
    page.figure(
        f"runs-{run.name}",
        all_runs(run),
        f"Mean normalised regret ± SEM after each question, `{run.name}`.",
    )
