"""Which parameters of a study matter."""

import textwrap

from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from askwise.plots.scales import escaped
from askwise.plots.scene import Scene
from askwise.plots.style import BLUE, INK, STYLE, legend_below
from askwise.space import Setting
from askwise.study import Study

_NAME = 24  # letters of a line of a name


@rc_context(STYLE)
def study_importance(study: Study, context: Setting | None = None, participant: str | None = None) -> Figure:
    """The share of the variance of f that each parameter takes part in, most first, with intervals of 95%.

    As in :meth:`askwise.Study.importance`; shares add up to more than 100% where parameters act together.
    """
    scene = Scene.of(study, context, participant)
    shares = study.importance(context, scene.participant)
    figure = Figure(figsize=(6.6, 1.5 + 0.42 * len(shares)), layout="constrained")
    axis = figure.subplots()
    for row, share in enumerate(shares.values()):
        low, high = share.interval or (share.value, share.value)
        axis.barh(row, share.value, 0.6, color=BLUE, alpha=0.45, label="share (median)")
        axis.plot([low, high], [row, row], color=INK, lw=1.4, label="95% interval")
        axis.plot([low, high], [row, row], "|", color=INK, ms=8)
        axis.text(1.02, row, f"{share.value:.0%}", va="center", transform=axis.get_yaxis_transform())
    names = [textwrap.fill(escaped(name), _NAME) for name in shares]
    axis.set(xlim=(0, 1), ylim=(len(shares) - 0.5, -0.5))
    axis.set_yticks(range(len(shares)), names)
    axis.set_xlabel(
        "share of the variation in value that the parameter\ntakes part in, alone or together with others"
    )
    axis.tick_params(axis="y", length=0)
    axis.xaxis.set_major_formatter(PercentFormatter(1))
    scene.head(figure, "which parameters matter")
    legend_below(figure, [axis], 2)
    return figure
