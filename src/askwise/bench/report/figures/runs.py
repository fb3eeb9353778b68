"""Runs, question by question: means over replicates with their standard errors."""

import math

import numpy as np
from jaxtyping import Float
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from askwise.bench.functions import FUNCTIONS
from askwise.bench.regret import levels
from askwise.bench.report.analysis import Analysis
from askwise.bench.report.figures.axes import questions_axis, regret_axis
from askwise.bench.report.figures.looks import Look, looks
from askwise.bench.report.numbers import spelled
from askwise.plots.style import INK, STYLE
from askwise.rules import parse

__all__ = ["all_runs", "some_runs"]

_COLUMNS = 5
_SHADE = 0.13  # of the standard errors
_SMALL = {**STYLE, "font.size": 8.5, "axes.titlesize": 9, "xtick.labelsize": 8, "ytick.labelsize": 8}


@rc_context(STYLE)
def some_runs(run: Analysis, functions: tuple[str, ...]) -> Figure:
    """Scores on a few functions."""
    results = run.results
    figure = Figure(figsize=(11, 4.3), layout="constrained")
    axes = figure.subplots(1, len(functions), squeeze=False)[0]
    for axis, name in zip(axes, functions, strict=True):
        place = results.functions.index(name)
        for label, look in _looks(run).items():
            _curve(axis, results.scores[label][place], look, label)
        best = levels(name, results.experiment.scale, results.experiment.score).best
        if math.isfinite(best):
            axis.axhline(best, color=INK, lw=0.9, ls=(0, (4, 3)), zorder=0)
        axis.set(title=FUNCTIONS[name].title, xlabel="questions")
        questions_axis(axis, run.results.experiment)
    axes[0].set_ylabel("score")
    _legend(figure, run)
    return figure


@rc_context(_SMALL)
def all_runs(run: Analysis) -> Figure:
    """Normalised regret on every function, a panel each."""
    functions, chosen = run.results.functions, _looks(run)
    columns = min(_COLUMNS, len(functions))
    rows = math.ceil(len(functions) / columns)
    figure = Figure(figsize=(0.6 + 2.3 * columns, 1.2 + 1.85 * rows), layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False, sharex=True).flat)
    for axis, (place, name) in zip(axes, enumerate(functions), strict=False):
        for label, look in chosen.items():
            _curve(axis, run.regret[label][place], look, label)
        regret_axis(axis, [run.regret[label][place].mean(0) for label in chosen])
        axis.set_title(f"{FUNCTIONS[name].title} ({FUNCTIONS[name].dim}-D)")
        questions_axis(axis, run.results.experiment)
    for axis in axes[len(functions) :]:
        axis.remove()
    for axis in axes[max(0, len(functions) - columns) : len(functions)]:
        axis.tick_params(labelbottom=True)
        axis.set_xlabel("questions")
    figure.supylabel("normalised regret")
    _legend(figure, run)
    return figure


def _looks(run: Analysis) -> dict[str, Look]:
    return looks({label: run.results.experiment.arm(label).rule for label in run.arms})


def _curve(axis: Axes, values: Float[np.ndarray, "replicate iteration"], look: Look, label: str) -> None:
    """The mean, and a standard error on each side."""
    mean, count = values.mean(0), len(values)
    error = values.std(0, ddof=1) / count**0.5 if count > 1 else np.zeros_like(mean)
    questions = np.arange(1, len(mean) + 1)
    axis.fill_between(questions, mean - error, mean + error, color=look.colour, alpha=_SHADE, lw=0)
    axis.plot(questions, mean, color=look.colour, ls=look.dash, lw=1.3, label=spelled(label))


def _legend(figure: Figure, run: Analysis) -> None:
    """Below the axes; of experiments with variants of rules, a column for each rule."""
    rules = len({parse(arm.rule).key for arm in run.results.experiment.arms})
    handles, labels = figure.axes[0].get_legend_handles_labels()
    columns = rules if rules < len(labels) else min(5, rules)
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, fontsize=9.5)
