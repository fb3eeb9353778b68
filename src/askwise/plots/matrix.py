"""All pairs of parameters in one figure."""

import itertools
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from askwise.errors import Refused
from askwise.numerics import deviation
from askwise.plots.planes import Plane, span
from askwise.plots.scene import Scene
from askwise.plots.style import BAND, GOOD, UNSURE, legend_below
from askwise.plots.tags import settle

_MOST = 6  # parameters
_CELLS = 40
_ROOM = 18  # letters of tick labels that fit below a panel
_SIZE = 1.75  # of a panel, in inches
_STAR = 11


def matrix(scene: Scene) -> Figure:
    """Means of f below the diagonal, deviations above it, and on it both along each parameter."""
    count = len(scene.free)
    if count > _MOST:
        advice = "Name a pair: pairs=[('gain', 'cutoff')], in a terminal --pair gain,cutoff."
        raise Refused(
            "study", f"have at most {_MOST} parameters to draw all pairs", f"{count} parameters", advice
        )
    figure = Figure(figsize=(2.2 + _SIZE * count, 1.1 + _SIZE * count), layout="constrained")
    panels = figure.subplots(count, count)
    planes = {place: _plane(scene, *place) for place in itertools.product(range(count), range(count))}
    _maps(figure, panels, {place: plane for place, plane in planes.items() if place[0] != place[1]})
    for place in range(count):
        _curve(panels[place, place], planes[place, place])
    for (row, column), plane in planes.items():
        _trim(panels[row, column], row, column, count)
        if row != column:
            plane.mark_best(panels[row, column], 0.0, _STAR, said=False)
    below, above = "expected value (noise of one answer = 1)", "uncertainty (standard deviation)"
    scene.head(figure, f"below the diagonal {below}, above it {above}")
    legend_below(figure, [panels[0, 0]], 3, [planes[k, j].keys[k != j] for k in range(count) for j in (0, 1)])
    settle(figure)
    return figure


def _plane(scene: Scene, row: int, column: int) -> Plane:
    names = [scene.free[column], scene.free[row]]
    return Plane.of(scene, names[: 1 + (row != column)], count=_CELLS, room=_ROOM)


def _maps(figure: Figure, panels: Any, planes: dict[tuple[int, int], Plane]) -> None:
    """Maps with one scale of colours for all means, and one for all deviations."""
    belief = next(iter(planes.values())).scene.belief
    for lower, colours, text in ((False, UNSURE, "uncertainty"), (True, GOOD, "expected value")):
        side = {place: plane for place, plane in planes.items() if (place[0] > place[1]) is lower}
        values = {
            place: plane.values(belief.mean) if lower else deviation(plane.values(belief.variance))
            for place, plane in side.items()
        }
        limits = span(torch.cat([part.flatten() for part in values.values()]))
        for place, plane in side.items():
            plane.draw(panels[place], values[place], limits, colours=colours)
        image = ScalarMappable(Normalize(*limits), colours)
        figure.colorbar(image, ax=panels, label=text, pad=0.015, shrink=0.5, aspect=30)


def _curve(axis: Axes, plane: Plane) -> None:
    belief = plane.scene.belief
    mean = plane.values(belief.mean)
    plane.draw(axis, mean, reach=BAND * deviation(plane.values(belief.variance)))
    axis.lines[0].set_label("expected value")
    plane.mark_best(axis, belief.mean(plane.scene.best[None]), _STAR)
    axis.set_yticks(())


def _trim(axis: Axes, row: int, column: int, count: int) -> None:
    """Labels only left and below; the first row, which begins with a curve, has them at its end."""
    axis.tick_params(axis="both", which="both", labelsize=9)
    if row < count - 1:
        axis.set_xlabel("")
        axis.tick_params(axis="x", which="both", labelbottom=False)
    if (row, column) == (0, count - 1):
        axis.yaxis.set_label_position("right")
        axis.yaxis.tick_right()
    elif column or row == column:
        axis.set_ylabel("")
        axis.tick_params(axis="y", which="both", labelleft=False)
