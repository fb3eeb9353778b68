"""Which settings of a yes/no study work at least so often, along one parameter or over two."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import torch
from jaxtyping import Float
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from torch import Tensor

from askwise.errors import Refused
from askwise.plots.planes import Plane, checked_pair, pairs
from askwise.plots.readings import chance_of_best, chances, probabilities
from askwise.plots.scene import Scene
from askwise.plots.style import GOOD, INK, RED, STYLE, legend_below
from askwise.plots.tags import settle
from askwise.rules import checked_level
from askwise.space import Setting
from askwise.study import CONFIDENCE, Study, checked_confidence

_SIDES = {"outside": "#f7f7f7", "unclear": "#f0cf97", "inside": "#5b9bc8"}  # lightest to darkest
_RIM = 0.07  # distance of the answers above and below the rates
_ANY = 1000  # characters of a title that is wrapped later


@rc_context(STYLE)
def study_level(
    study: Study,
    context: Setting | None = None,
    participant: str | None = None,
    pair: Sequence[str] | None = None,
    *,
    level: float | None = None,
    confidence: float = CONFIDENCE,
) -> Figure:
    """Settings that work at least so often (inside), those that do not (outside), and the rest (unclear).

    Over a pair of parameters, by default those along which the mean of f changes most, through the
    recommended setting: on the left the sides, on the right the probability of reaching the level; the line
    is where that is one half.  Of a single parameter: the rate with a 95% credible band, and the sides behind
    it.  ``level``: by default that of the study; ``confidence``: see :meth:`askwise.Study.level_set`.
    """
    rate = study.plan.level if level is None else level
    if rate is None or study.plan.kind.compares:
        got = f"a {study.feedback} study" if study.plan.kind.compares else "none"
        raise Refused("level", "be given, of a yes/no study", got, "Write level=0.95, say.")
    checked_level(rate)
    checked_confidence(confidence)
    scene = Scene.of(study, context, participant)
    drawn = pairs(scene)[0] if pair is None else checked_pair(scene, pair)
    plane = Plane.of(scene, drawn)
    above = probabilities(plane, rate)
    text = f"works at least {100 * rate:.4g}% of the time"
    axes = (
        _along(plane, above, rate, confidence)
        if len(plane.scales) == 1
        else _over(plane, above, confidence, text)
    )
    figure = axes[0].figure
    assert isinstance(figure, Figure)
    scene.head(figure, plane.held(text, _ANY))
    legend_below(figure, axes[:1], 3 if len(axes) == 1 else 4, plane.keys)
    settle(figure)
    return figure


def _over(plane: Plane, above: Float[Tensor, "*grid"], confidence: float, text: str) -> list[Axes]:
    """The sides on the left, the probability on the right."""
    figure = Figure(figsize=(8.6, 3.9), layout="constrained")
    left, right = figure.subplots(1, 2)
    colours = ListedColormap(list(_SIDES.values()))
    plane.draw(left, _coded(above, confidence), (-0.5, 2.5), colours=colours)
    for side, colour in reversed(_SIDES.items()):
        left.plot([], [], "s", color=colour, mec=INK, mew=0.6, ms=8, label=side)
    image = plane.draw(right, above, (0.0, 1.0), colours=GOOD)
    plane.label(figure, right, image, "probability")
    left.set_title(f"inside, outside: with {100 * confidence:.4g}% confidence")
    right.set_title(f"probability that it {text}")
    for axis, colour in ((left, INK), (right, "white")):
        _border(axis, plane, above, colour)
        plane.mark_asked(axis)
        plane.mark_best(axis, 0.0)
    return [left, right]


def _border(axis: Axes, plane: Plane, above: Float[Tensor, "*grid"], colour: str) -> None:
    """A line where either side is equally likely; not between values without an order."""
    known = above[above.isfinite()]
    if not len(known) or not known.min() < 0.5 < known.max() or not all(one.ordered for one in plane.scales):
        return
    across, up = (scale.at for scale in plane.scales)
    axis.contour(across, up, above.numpy(), levels=[0.5], colors=[colour], linewidths=1.8)
    if colour == INK:
        axis.plot([], [], color=INK, lw=1.8, label="the level, by the model")


def _along(plane: Plane, above: Float[Tensor, "*grid"], rate: float, confidence: float) -> list[Axes]:
    """The success rate along one parameter, on a ground of the sides."""
    figure = Figure(figsize=(6.2, 4.4), layout="constrained")
    axis = figure.subplots()
    (scale,) = plane.scales
    expected, *ends = chances(plane)
    plane.curve(axis, expected, (ends[0], ends[1]), "95% credible band", "chance of a yes")
    coded, start, names = _coded(above, confidence).nan_to_num(-1).tolist(), 0, list(_SIDES)
    for code, run in groupby(coded):
        end = start + len(list(run))
        if code >= 0:
            look: dict[str, Any] = {"color": _SIDES[names[int(code)]], "alpha": 0.6, "lw": 0, "zorder": 0}
            axis.axvspan(float(scale.edges[start]), float(scale.edges[end]), **look)
        start = end
    axis.axhline(rate, color=RED, lw=1.2, ls=(0, (4, 3)), label=f"the level, {100 * rate:.4g}%")
    for side, colour in reversed(_SIDES.items()):
        axis.plot([], [], "s", color=colour, mec=INK, mew=0.6, ms=8, label=side)
    plane.mark_asked(axis, {"good": 1 + _RIM, "bad": -_RIM, "undecided": -2 * _RIM})
    plane.mark_best(axis, chance_of_best(plane.scene))
    axis.set(ylim=(-3 * _RIM, 1 + 2 * _RIM), yticks=(0, 0.25, 0.5, 0.75, 1), ylabel="chance of a yes")
    axis.yaxis.set_major_formatter(PercentFormatter(1))
    return [axis]


def _coded(above: Float[Tensor, "*grid"], confidence: float) -> Float[Tensor, "*grid"]:
    """0 outside, 1 unclear, 2 inside; nan where infeasible."""
    coded = torch.ones_like(above) + (above >= confidence).double() - (1 - above >= confidence).double()
    return coded.masked_fill(above.isnan(), torch.nan)
