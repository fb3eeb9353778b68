"""A page that compares rules, with tables and figures, from results on disk; needs ``askwise[plots]``."""

from collections.abc import Sequence
from pathlib import Path

from askwise.bench.report.analysis import Analysis
from askwise.bench.report.page import Page
from askwise.bench.results import load
from askwise.errors import Refused, extra

with extra("plots", "a report"):
    from askwise.bench.report import appendix, causes, comparison, introduction, variations

__all__ = ["write"]

_ORDER = (*(name for one in comparison.SCENARIOS for name in one.experiments.values()), *variations.NAMES)


def write(directories: Sequence[Path], out: Path, findings: Path | None = None) -> None:
    """Write ``report.md`` into a folder, with ``tables/*.tex`` and ``figures/*.png``.

    Args:
        directories: results of one experiment each; sections about other experiments are left out.
        out: created if missing; files of an earlier report are overwritten.
        findings: Markdown to insert after the introduction.
    """
    if findings is not None and not findings.is_file():
        raise Refused(
            "findings", "be a file of Markdown", f"{findings}, which is not a file", "Check its name."
        )
    runs = _analyses(directories)
    page = Page(out)
    introduction.add(page, runs)
    if findings is not None:
        page.text(findings.read_text(encoding="utf-8").strip())
    for scenario in comparison.SCENARIOS:
        comparison.add_scenario(page, scenario, runs)
    variations.add(page, runs)
    for name, run in runs.items():
        if name not in _ORDER:
            comparison.add_other(page, run)
    causes.add(page, runs)
    appendix.add(page, runs)
    page.save()


def _analyses(directories: Sequence[Path]) -> dict[str, Analysis]:
    """The analysis of each experiment by name, in the order of the page."""
    if not directories:
        raise Refused("directories", "hold results", "none", "Give the folder of an experiment.")
    runs: dict[str, Analysis] = {}
    for directory in directories:
        results = load(directory)
        name = results.experiment.name
        if name in runs:
            raise Refused("directories", f"hold one {name} only", f"another in {directory}", "Leave one out.")
        runs[name] = Analysis(results, directory)
    known = [name for name in _ORDER if name in runs]
    return {name: runs[name] for name in (*known, *sorted(runs.keys() - set(known)))}
