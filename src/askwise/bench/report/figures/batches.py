"""Regret against questions and batch size."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from askwise.bench.experiments import Experiment
from askwise.bench.report.figures.axes import questions_axis, regret_axis
from askwise.bench.report.figures.looks import look
from askwise.bench.report.numbers import spelled
from askwise.bench.report.sizes import Sized
from askwise.plots.style import STYLE

__all__ = ["batches"]

_COLUMNS = 3


@rc_context(STYLE)
def batches(found: Sequence[Sized], experiment: Experiment) -> Figure:
    """A panel for each size, and one of all sizes after the last question."""
    sizes = sorted({one.m for one in found})
    rows = math.ceil((len(sizes) + 1) / _COLUMNS)
    figure = Figure(figsize=(10.5, 0.8 + 3 * rows), layout="constrained")
    axes = list(figure.subplots(rows, _COLUMNS, squeeze=False, sharey=True).flat)
    for axis, m in zip(axes, sizes, strict=False):
        for one in found:
            if one.m == m:
                style = look(one.rule)
                x = np.arange(1, len(one.course) + 1)
                axis.plot(x, one.course, color=style.colour, ls=style.dash, lw=1.6, label=spelled(one.rule))
        axis.set(title=f"m = {m}", xlabel="questions")
        questions_axis(axis, experiment)
    _by_size(axes[len(sizes)], found, sizes)
    for axis in axes[len(sizes) + 1 :]:
        axis.remove()
    regret_axis(axes[0], [one.course for one in found])
    for row in range(rows):
        axes[_COLUMNS * row].set_ylabel("mean normalised regret")
    handles, labels = axes[len(sizes)].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure


def _by_size(axis: Axes, found: Sequence[Sized], sizes: Sequence[int]) -> None:
    for rule in dict.fromkeys(one.rule for one in found):
        own = sorted((one for one in found if one.rule == rule), key=lambda one: one.m)
        style = look(rule)
        reach = [[o.final.mean - o.final.low for o in own], [o.final.high - o.final.mean for o in own]]
        axis.errorbar(
            [one.m for one in own],
            [one.final.mean for one in own],
            yerr=reach,
            color=style.colour,
            ls=style.dash,
            marker=style.mark,
            ms=6,
            capsize=2.5,
            label=spelled(rule),
        )
    axis.set(title="after the last question", xlabel="points in a question, m")
    axis.set_xscale("log")
    axis.xaxis.set_major_locator(FixedLocator(sizes))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}"))
