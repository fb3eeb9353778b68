"""Axes that several figures share."""

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from askwise.bench.experiments import Experiment
from askwise.plots.style import GREY

__all__ = ["questions_axis", "regret_axis"]

_FLOOR = 1e-7  # lower regrets are not told apart


def questions_axis(axis: Axes, experiment: Experiment) -> None:
    """From the first question to the last, with a line where the rules take over from chance."""
    if experiment.initial:
        axis.axvline(experiment.initial, color=GREY, lw=0.8, alpha=0.6, zorder=0)
    axis.set_xlim(1, max(2, experiment.iterations))
    axis.xaxis.set_major_locator(MaxNLocator(5, integer=True, steps=[1, 2, 5, 10]))


def regret_axis(axis: Axes, means: Sequence[Float[np.ndarray, " _"]]) -> None:
    """A logarithmic axis that these means fill; what of their errors lies lower is cut off."""
    low = max(_FLOOR, min(float(mean.min()) for mean in means))
    high = max(2 * low, max(float(mean.max()) for mean in means))
    axis.set_yscale("log", nonpositive="clip")
    axis.set_ylim(0.7 * low, 1.3 * high)
    decades = math.log10(high / low)
    steps = (1, 2, 5) if decades < 1.2 else (1, 3) if decades < 1.8 else (1,)
    axis.yaxis.set_major_locator(LogLocator(subs=steps, numticks=5))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.yaxis.set_minor_formatter(NullFormatter())
