"""Regret against beta."""

from collections.abc import Sequence

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from askwise.bench.report.figures.looks import look
from askwise.bench.report.sweep import Weighted
from askwise.plots.style import STYLE

__all__ = ["weights"]


@rc_context(STYLE)
def weights(found: Sequence[Weighted]) -> Figure:
    """Regret after the last question, and over all, for each rule."""
    figure = Figure(figsize=(9.5, 4), layout="constrained")
    final, average = figure.subplots(1, 2)
    for axis, part in ((final, "final"), (average, "average")):
        for rule in sorted({one.rule for one in found}):
            _draw(axis, [one for one in found if one.rule == rule], part)
        _weights_axis(axis, sorted({one.beta for one in found}))
    final.set(title="after the last question", ylabel="mean normalised regret")
    average.set(title="over all questions")
    known = dict(zip(*reversed(final.get_legend_handles_labels()), strict=True))
    figure.legend(
        [known[label] for label in sorted(known)], sorted(known), loc="outside lower center", ncols=4
    )
    return figure


def _draw(axis: Axes, own: Sequence[Weighted], part: str) -> None:
    look_ = look(own[0].rule)
    regrets = [getattr(one, part) for one in own]
    betas = [one.beta for one in own]
    means = [regret.mean for regret in regrets]
    reach = [[r.mean - r.low for r in regrets], [r.high - r.mean for r in regrets]]
    axis.errorbar(
        betas,
        means,
        yerr=reach,
        color=look_.colour,
        ls=look_.dash,
        marker=look_.mark,
        mfc="white",
        ms=6,
        capsize=2.5,
        label=own[0].rule,
    )
    for one, mean in zip(own, means, strict=True):
        if one.usual:
            label = f"{one.rule}, default ({one.beta:.3g})"
            axis.plot(one.beta, mean, look_.mark, color=look_.colour, ms=10, zorder=5, ls="none", label=label)


def _weights_axis(axis: Axes, betas: Sequence[float]) -> None:
    if min(betas) > 0:
        axis.set_xscale("log")
    axis.xaxis.set_major_locator(FixedLocator(betas))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))
    axis.set_xlabel("β")
    axis.set_ylim(bottom=0)
