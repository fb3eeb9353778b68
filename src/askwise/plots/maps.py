"""A study along its parameters and over pairs of them."""

import math
from collections.abc import Sequence
from typing import Any, Literal

import torch
from jaxtyping import Float
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from torch import Tensor

from askwise.errors import Refused
from askwise.model import Decomposition, decompose
from askwise.numerics import deviation, ndtr
from askwise.plots.matrix import matrix
from askwise.plots.planes import Plane, checked_pair
from askwise.plots.planes import pairs as sorted_pairs
from askwise.plots.scene import Scene
from askwise.plots.style import BAND, BLUE, GREY, INK, ORANGE, STYLE, UNSURE, legend_below
from askwise.plots.tags import settle
from askwise.space import Setting
from askwise.study import Study

_PAIRS, _COLUMNS = 3, 3  # of maps, and of slices beside each other
_RIM = 0.07  # distance of the answers above and below the rates
_SLANTED = 0.4  # inches that slanted names take
_ANY = 1000  # characters of a title that is wrapped later
_MEAN = "expected value\n(noise of one answer = 1)"
_SPREAD = "uncertainty\n(standard deviation)"


@rc_context(STYLE)
def study_slices(study: Study, context: Setting | None = None, participant: str | None = None) -> Figure:
    """Predictions along each parameter, with the others as in the recommended setting.

    For yes/no studies the chance of a yes; else the chance that a setting is preferred to the
    recommended one, with a 95% credible band.  Settings asked about are marked above (yes, preferred) or
    below (no, not preferred); marks fade with their distance from the slice.
    """
    scene = Scene.of(study, context, participant)
    columns = 2 if len(scene.free) == 4 else min(_COLUMNS, len(scene.free))
    rows = math.ceil(len(scene.free) / columns)
    planes = [Plane.of(scene, [name]) for name in scene.free]
    slanted = any(names.slanted for plane in planes if (names := plane.scales[0].names()))
    height = 0.8 + (2.7 + _SLANTED * slanted) * rows
    figure = Figure(figsize=(max(4.6, 0.6 + 2.9 * columns), height), layout="constrained")
    panels = figure.subplots(rows, columns, sharey=True, squeeze=False)
    for plane, axis in zip(planes, panels.flat, strict=False):
        _slice(axis, scene, plane)
    for axis in panels.flat[len(scene.free) :]:
        axis.remove()
    what = "chance of being preferred\nto the recommended setting" if scene.compares else "chance of a yes"
    for axis in panels[:, 0]:
        axis.set_ylabel(what)
    scene.head(figure)
    keys = [key for plane in planes for key in plane.keys]
    legend_below(figure, panels.flat[: len(scene.free)], 2 if columns == 1 else 3, keys)
    settle(figure)
    return figure


def _slice(axis: Axes, scene: Scene, plane: Plane) -> None:
    def rival(x: Float[Tensor, "q d"]) -> Float[Tensor, "q d"] | None:
        return scene.best.expand_as(x) if scene.compares else None

    def moments(x: Float[Tensor, "q d"]) -> tuple[Float[Tensor, " q"], Float[Tensor, " q"]]:
        """Mean and variance of f, or of its lead over the recommended setting, in units of the noise."""
        return scene.belief.in_noise(x, rival(x))

    mean, var = plane.values(lambda x: moments(x)[0]), plane.values(lambda x: moments(x)[1])
    reach = BAND * deviation(var)
    if scene.compares:
        axis.axhline(0.5, color=GREY, lw=1, ls=(0, (4, 3)), zorder=1.5)
    ends = ndtr(mean - reach), ndtr(mean + reach)
    chance = plane.values(lambda x: scene.belief.success_probability(x, rival(x)))
    plane.curve(axis, chance, ends, "95% credible band", "expected")
    plane.mark_asked(axis, {"good": 1 + _RIM, "bad": -_RIM, "undecided": -2 * _RIM})
    there = scene.best[None]
    plane.mark_best(axis, scene.belief.success_probability(there, rival(there)))
    axis.set(ylim=(-3 * _RIM, 1 + 2 * _RIM), yticks=(0, 0.25, 0.5, 0.75, 1))
    axis.yaxis.set_major_formatter(PercentFormatter(1))


@rc_context(STYLE)
def study_maps(
    study: Study,
    context: Setting | None = None,
    participant: str | None = None,
    pairs: Literal["all"] | Sequence[Sequence[str]] | None = None,
) -> Figure:
    """Mean of f and its standard deviation over pairs of parameters, through the recommended setting.

    ``pairs``: such as ``[("gain", "cutoff")]``, by default at most three, those along which the mean changes
    most; ``"all"`` for every pair of up to six parameters, in one matrix.  Infeasible regions are hatched.
    Marks fade with their distance from the plane, by prior correlation.
    """
    scene = Scene.of(study, context, participant)
    if pairs == "all" and len(scene.free) > 2:
        return matrix(scene)
    if pairs is None or pairs == "all":
        return _maps(scene, sorted_pairs(scene)[:_PAIRS])
    if isinstance(pairs, str) or not len(pairs):
        advice = "Write [('gain', 'cutoff')], say."
        raise Refused("pairs", "be 'all' or a list of pairs of parameters", repr(pairs), advice)
    return _maps(scene, [checked_pair(scene, pair) for pair in pairs])


def _maps(scene: Scene, drawn: Sequence[Sequence[str]]) -> Figure:
    """Means on the left, deviations on the right."""
    figure = Figure(figsize=(8.6, 0.8 + 2.9 * len(drawn)), layout="constrained")
    panels = figure.subplots(len(drawn), 2, squeeze=False)
    planes = [Plane.of(scene, names) for names in drawn]
    mean_there, var_there = scene.belief.moments(scene.best[None])
    for (left, right), plane in zip(panels, planes, strict=True):
        mean = plane.values(scene.belief.mean)
        spread = deviation(plane.values(scene.belief.variance))
        plane.label(figure, left, plane.draw(left, mean, reach=BAND * spread), _MEAN)
        plane.label(figure, right, plane.draw(right, spread, colours=UNSURE), _SPREAD)
        left.set_title(plane.held())
        for axis, height in ((left, mean_there), (right, deviation(var_there))):
            plane.mark_asked(axis)
            plane.mark_best(axis, height)
    scene.head(figure)
    legend_below(figure, panels[0, :1], 4, [key for plane in planes for key in plane.keys])
    settle(figure)
    return figure


@rc_context(STYLE)
def study_uncertainty(
    study: Study,
    context: Setting | None = None,
    participant: str | None = None,
    pair: Sequence[str] | None = None,
) -> Figure:
    """Uncertainty about the next answer, split into its epistemic and its aleatoric part.

    Of a yes, or of a duel with the recommended setting, as a variance (at most 1/4), over a pair of
    parameters, by default those along which the mean of f changes most.
    """
    scene = Scene.of(study, context, participant)
    plane = Plane.of(scene, sorted_pairs(scene)[0] if pair is None else checked_pair(scene, pair))

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
            plane.label(figure, axis, plane.draw(axis, part, (0.0, _top(part)), colours=UNSURE), "variance")
            axis.set_title(title)
    there = uncertainty(scene.best[None])
    for axis in axes:
        plane.mark_asked(axis)
        plane.mark_best(axis, there.epistemic + there.aleatoric)
    of = "a duel with the recommended setting" if scene.compares else "a yes/no answer"
    scene.head(figure, plane.held(f"uncertainty about {of}", _ANY))
    legend_below(figure, axes[:1], 2 if len(axes) == 1 else 4, plane.keys)
    settle(figure)
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
        if scale.axis.discrete:
            axis.bar(scale.at, high - low, 0.5, bottom=low, lw=0, **look)
        elif not scale.ordered:  # so many that there is no room for gaps
            axis.bar(scale.at, high - low, scale.edges.diff(), bottom=low, lw=0, **{**look, "hatch": ""})
        else:
            axis.fill_between(scale.at, low, high, lw=0, **look)
    top = _top(total)
    axis.lines[0].set(color=INK, label="total")
    axis.set_ylim(-0.16 * top, 1.16 * top)


def _top(values: Tensor) -> float:
    return float(values.nan_to_num(0).max().clamp_min(1e-12))
