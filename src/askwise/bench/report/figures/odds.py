"""How often runs of the best rule beat those of the others."""

from collections.abc import Mapping

from matplotlib import rc_context
from matplotlib.figure import Figure

from askwise.bench.regret import Interval
from askwise.bench.report.figures.looks import look
from askwise.bench.report.numbers import spelled
from askwise.plots.style import GREY, STYLE

__all__ = ["odds"]


@rc_context(STYLE)
def odds(found: Mapping[str, tuple[str, Mapping[str, tuple[Interval, Interval]]]]) -> Figure:
    """For each experiment, the probability that its best rule beats each other, with intervals.

    Args:
        found: by the experiments' names, the best rule, and its chances against each other by final score
            and by AUC.
    """
    most = max(len(others) for _, others in found.values())
    figure = Figure(figsize=(0.6 + 4.6 * len(found), 1.4 + 0.36 * most), layout="constrained")
    axes = figure.subplots(1, len(found), squeeze=False, sharex=True)[0]
    for axis, (way, (best, others)) in zip(axes, found.items(), strict=True):
        for height, (rule, pair) in enumerate(others.items()):
            for chance, offset, hollow in zip(pair, (-0.13, 0.13), (False, True), strict=True):
                axis.errorbar(
                    chance.mean,
                    height + offset,
                    xerr=[[chance.mean - chance.low], [chance.high - chance.mean]],
                    fmt="o",
                    ms=5.5,
                    color=look(rule).colour,
                    mfc="white" if hollow else look(rule).colour,
                )
        axis.axvline(0.5, color=GREY, lw=1, zorder=0)
        axis.set_yticks(range(len(others)), map(spelled, others))
        axis.set(
            ylim=(len(others) - 0.5, -0.5),
            title=f"{way}: {spelled(best)} against",
            xlabel="probability that it is better",
        )
    _legend(figure)
    return figure


def _legend(figure: Figure) -> None:
    axis = figure.axes[0]
    final = axis.plot([], [], "o", color=GREY, ms=5.5)[0]
    auc = axis.plot([], [], "o", color=GREY, mfc="white", ms=5.5)[0]
    figure.legend([final, auc], ["final score", "AUC"], loc="outside lower center", ncols=2)
