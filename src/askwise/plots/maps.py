"""A study over pairs of parameters, or along its only one."""

from typing import Any

import torch
from jaxtyping import Float
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from askwise.model import Decomposition, decompose
from askwise.numerics import deviation
from askwise.plots.planes import Plane
from askwise.plots.scene import Scene
from askwise.plots.style import BAND, BLUE, INK, ORANGE, STYLE, legend_below
from askwise.space import Setting
from askwise.study import Study

_PAIRS = 3
_WIDE = 90  # characters that fit above two panels
_MEAN = "expected value\n(noise of one answer = 1)"
_SPREAD = "uncertainty\n(standard deviation)"


@rc_context(STYLE)
def study_maps(study: Study, context: Setting | None = None) -> Figure:
    """Mean of f and its standard deviation over pairs of parameters, through the recommended setting.

    At most three pairs: those along which the mean changes most.  Infeasible regions are hatched.  Marks
    fade with their distance from the plane, by prior correlation.
    """
    scene = Scene.of(study, context)
    pairs = scene.pairs[:_PAIRS]
    figure = Figure(figsize=(8.6, 0.8 + 2.9 * len(pairs)), layout="constrained")
    panels = figure.subplots(len(pairs), 2, squeeze=False)
    mean_there, var_there = scene.belief.moments(scene.best[None])
    for (left, right), names in zip(panels, pairs, strict=True):
        plane = Plane.of(scene, names)
        mean = plane.values(scene.belief.mean)
        spread = deviation(plane.values(scene.belief.variance))
        plane.label(figure, left, plane.draw(left, mean, reach=BAND * spread), _MEAN)
        plane.label(figure, right, plane.draw(right, spread), _SPREAD)
        left.set_title(plane.held())
        for axis, height in ((left, mean_there), (right, deviation(var_there))):
            plane.mark_asked(axis)
            plane.mark_best(axis, height)
    scene.head(figure)
    legend_below(figure, panels[0, :1], 4)
    return figure


@rc_context(STYLE)
def study_uncertainty(study: Study, context: Setting | None = None) -> Figure:
    """Uncertainty about the next answer, split into its epistemic and its aleatoric part.

    Of a yes, or of a duel with the recommended setting, as a variance (at most 1/4), over the two parameters
    along which the mean of f changes most.
    """
    scene = Scene.of(study, context)
    plane = Plane.of(scene, scene.pairs[0])

    def uncertainty(x: Float[Tensor, "q d"]) -> Decomposition:
        return decompose(scene.belief, x, scene.best.expand_as(x) if scene.compares else None)

    epistemic = plane.values(lambda x: uncertainty(x).epistemic)
    aleatoric = plane.values(lambda x: uncertainty(x).aleatoric)
    if len(plane.scales) == 1:
        figure = Figure(figsize=(6.2, 4.4), layout="constrained")
        axes = [figure.subplots()]
        _stacked(axes[0], plane, epistemic, aleatoric)
        axes[0].set_ylabel("variance")
    else:
        figure = Figure(figsize=(8.6, 3.9), layout="constrained")
        axes = list(figure.subplots(1, 2))
        titles = ("epistemic: more answers reduce it", "aleatoric: irreducible")
        for axis, part, title in zip(axes, (epistemic, aleatoric), titles, strict=True):
            plane.label(figure, axis, plane.draw(axis, part, (0.0, _top(part))), "variance")
            axis.set_title(title)
    there = uncertainty(scene.best[None])
    for axis in axes:
        plane.mark_asked(axis)
        plane.mark_best(axis, there.epistemic + there.aleatoric)
    of = "a duel with the recommended setting" if scene.compares else "a yes/no answer"
    scene.head(figure, plane.held(f"uncertainty about {of}", _WIDE))
    legend_below(figure, axes[:1], 2 if len(axes) == 1 else 4)
    return figure


def _stacked(axis: Axes, plane: Plane, epistemic: Tensor, aleatoric: Tensor) -> None:
    """The two parts stacked: together they are the total uncertainty."""
    (scale,) = plane.scales
    total = epistemic + aleatoric
    plane.draw(axis, total)
    parts = (
        (torch.zeros_like(total), aleatoric, ORANGE, "aleatoric: irreducible", "..."),
        (aleatoric, total, BLUE, "epistemic: more answers reduce it", ""),
    )
    for low, high, colour, label, pattern in parts:
        look: dict[str, Any] = {"color": colour, "alpha": 0.45, "label": label, "hatch": pattern}
        if scale.discrete:
            axis.bar(scale.at, high - low, 0.5, bottom=low, lw=0, **look)
        else:
            axis.fill_between(scale.at, low, high, lw=0, **look)
    top = _top(total)
    axis.lines[0].set(color=INK, label="total")
    axis.set_ylim(-0.16 * top, 1.16 * top)


def _top(values: Tensor) -> float:
    return float(values.nan_to_num(0).max().clamp_min(1e-12))
