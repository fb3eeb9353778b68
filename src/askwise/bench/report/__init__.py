"""A page about the rules compared: tables, figures and how they were made, from results on disk."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from askwise.bench.report import (
    introduction,
    learning,
    origin,
    scoreboard,
    settings,
    sizes,
    sweep,
)
from askwise.bench.report.analysis import Analysis
from askwise.bench.report.page import Page
from askwise.bench.results import load

__all__ = ["write"]

_ORDER = (*settings.NAMES, sweep.NAME, sizes.NAME, learning.LEARNED)


def write(directories: Sequence[Path], out: Path, findings: Path | None = None) -> None:
    """Write ``report.md`` into a folder, with its ``tables/*.tex`` and ``figures/*.png``.

    Args:
        directories: results, an experiment in each; what needs an experiment that is not there is left out.
        out: made if need be; files of an earlier report are written over.
        findings: a file of Markdown to insert after the introduction.
    """
    if find_spec("matplotlib") is None:
        raise ImportError("a report must have matplotlib; got none. Run `pip install askwise[plots]`.")
    if findings is not None and not findings.is_file():
        raise ValueError(
            f"findings must be a file of Markdown; got {findings}, which is none. Check its name."
        )
    runs = _analyses(directories)
    page = Page(out)
    introduction.add(page, runs)
    if findings is not None:
        page.text(findings.read_text(encoding="utf-8").strip())
    for setting in settings.SETTINGS:
        settings.add(page, setting, runs)
    sweep.add(page, runs)
    sizes.add(page, runs)
    learning.add(page, runs)
    for name, run in runs.items():
        if name not in _ORDER:
            settings.add_other(page, run)
    scoreboard.add(page, runs)
    origin.add(page, runs)
    page.save()


def _analyses(directories: Sequence[Path]) -> dict[str, Analysis]:
    """What was found in each experiment, by its name, in the order of the page."""
    if not directories:
        raise ValueError("directories must hold results; got none. Give the folder of an experiment.")
    runs: dict[str, Analysis] = {}
    for directory in directories:
        results = load(directory)
        name = results.experiment.name
        if name in runs:
            raise ValueError(
                f"directories must hold one {name} only; got another in {directory}. Leave one out."
            )
        runs[name] = Analysis(results, directory)
    known = [name for name in _ORDER if name in runs]
    return {name: runs[name] for name in (*known, *sorted(runs.keys() - set(known)))}
