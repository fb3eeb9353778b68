"""A study along each of its parameters."""

import math

import torch
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from askwise.numerics import deviation, ndtr, success_probability
from askwise.plots.scales import Scale
from askwise.plots.scene import Scene
from askwise.plots.style import BAND, GREY, INK, SKY, STYLE, hatch_spans, legend_below
from askwise.space import Setting
from askwise.study import Study

_POINTS = 201
_COLUMNS = 3
_RIM = 0.07  # distance of the answers above and below the rates


@rc_context(STYLE)
def study_slices(study: Study, context: Setting | None = None) -> Figure:
    """Predictions along each parameter, with the others as in the recommended setting.

    For yes/no studies the chance of a yes; else how often a setting would be preferred to the
    recommended one, with a 95% credible band.  Settings asked about are marked above (yes, preferred) or
    below (no, not preferred); marks fade with their distance from the slice.
    """
    scene = Scene.of(study, context)
    columns = 2 if len(scene.free) == 4 else min(_COLUMNS, len(scene.free))
    rows = math.ceil(len(scene.free) / columns)
    figure = Figure(figsize=(max(4.6, 0.6 + 2.9 * columns), 0.7 + 2.7 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, sharey=True, squeeze=False)
    for name, axis in zip(scene.free, panels.flat, strict=False):
        _slice(axis, scene, *scene.scales([name], _POINTS))
    for axis in panels.flat[len(scene.free) :]:
        axis.remove()
    what = "how often preferred\nto the recommended setting" if scene.compares else "chance of a yes"
    for axis in panels[:, 0]:
        axis.set_ylabel(what)
    scene.head(figure)
    legend_below(figure, panels.flat[: len(scene.free)], 2 if columns == 1 else 3)
    return figure


def _slice(axis: Axes, scene: Scene, scale: Scale) -> None:
    points = scene.along([scale], scene.best)
    mean = scene.over(points, lambda x: scene.moments(x)[0])
    var = scene.over(points, lambda x: scene.moments(x)[1])
    reach = BAND * deviation(var)
    rate, low, high = success_probability(mean, var), ndtr(mean - reach), ndtr(mean + reach)
    if scene.compares:
        axis.axhline(0.5, color=GREY, lw=1, ls=(0, (4, 3)), zorder=1.5)
    if scale.discrete:
        axis.vlines(scale.at, low, high, color=SKY, lw=7, label="95% credible band")
        axis.plot(scale.at, rate, "_", color=INK, ms=12, mew=2, label="expected")
    else:
        axis.fill_between(scale.at, low, high, color=SKY, lw=0, label="95% credible band")
        axis.plot(scale.at, rate, color=INK, lw=1.6, label="expected")
    scene.mark_asked(axis, [scale], {"good": 1 + _RIM, "bad": -_RIM, "undecided": -2 * _RIM})
    star = scene.moments(scene.best[None])
    scene.mark_best(axis, [scale], success_probability(*star).item())
    scale.dress(axis)
    hatch_spans(axis, scale.edges, scene.allowed(points))
    axis.set_ylim(-3 * _RIM, 1 + 2 * _RIM)
    axis.set_yticks(torch.linspace(0, 1, 5).tolist())
    axis.yaxis.set_major_formatter(PercentFormatter(1))
