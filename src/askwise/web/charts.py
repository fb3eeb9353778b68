"""Slices and maps of a study as numbers for the experimenter's page, in natural units.

The numbers are those of the figures of `askwise.plots`, on coarser grids.
"""

import itertools
import math
from typing import Any

from torch import Tensor

from askwise.errors import Refused
from askwise.plots.planes import Plane, pairs
from askwise.plots.readings import chance_of_best, chances, heights, probabilities, uncertainties
from askwise.plots.scales import Scale
from askwise.plots.scene import Scene
from askwise.study import Study
from askwise.web.lens import Lens

POINTS, CELLS = 101, 48
"""Values along a slice, and along each side of a map."""
_DIGITS = 5  # of numbers, since more cannot be seen


def slices(study: Study, lens: Lens) -> dict[str, Any]:
    """Predictions along each parameter, with the others as in the recommended setting."""
    scene = Scene.of(study, lens.context, lens.participant)
    what = "that a setting is preferred to the recommended one" if scene.compares else "of a yes"
    there = _number(chance_of_best(scene))
    return {
        "compares": scene.compares,
        "what": what,
        "curves": [_curve(Plane.of(scene, [name], count=POINTS), there) for name in scene.free],
        "pairs": [list(pair) for pair in itertools.combinations(scene.free, 2)],
        "pair": list(pairs(scene)[0]),
    }


def map_of(study: Study, lens: Lens, names: list[str]) -> dict[str, Any]:
    """Mean and deviation of f, and both parts of the uncertainty about an answer, over two parameters."""
    scene = Scene.of(study, lens.context, lens.participant)
    if len(set(names)) != 2 or not set(names) <= set(scene.free):
        listed = ", ".join(scene.free)
        raise Refused("parameters of a map", f"be two of {listed}", ", ".join(names), "Choose others.")
    plane = Plane.of(scene, names, count=CELLS)
    mean, spread = heights(plane)
    epistemic, aleatoric = uncertainties(plane)
    x, y = plane.positions(scene.params, 0.0)
    level = study.plan.level
    above = {} if level is None else {"above": _numbers(probabilities(plane, level))}
    return {
        "axes": [_axis(scale) for scale in plane.scales],
        "held": plane.held(),
        "values": {
            "mean": _numbers(mean),
            "spread": _numbers(spread),
            "epistemic": _numbers(epistemic),
            "aleatoric": _numbers(aleatoric),
            **above,
        },
        "best": [_number(x), _number(y)],
        "asked": _asked(plane),
    }


def _curve(plane: Plane, there: float | None) -> dict[str, Any]:
    scene, (scale,) = plane.scene, plane.scales
    expected, low, high = chances(plane)
    epistemic, aleatoric = uncertainties(plane)
    return {
        "axis": _axis(scale),
        "expected": _numbers(expected),
        "low": _numbers(low),
        "high": _numbers(high),
        "epistemic": _numbers(epistemic),
        "aleatoric": _numbers(aleatoric),
        "best": [_number(plane.positions(scene.params, 0.0)[0]), there],
        "asked": _asked(plane),
    }


def _axis(scale: Scale) -> dict[str, Any]:
    axis, parameter = scale.axis, scale.parameter
    return {
        "name": scale.name,
        "unit": parameter.unit,
        "at": [_number(place) for place in axis.at],
        "edges": [_number(edge) for edge in axis.edges],
        "limits": [_number(end) for end in axis.limits],
        "log": axis.log,
        "whole": axis.whole,
        "discrete": axis.discrete,
        "names": list(axis.names),
        "texts": [parameter.text(value) for value in axis.values],
    }


def _asked(plane: Plane) -> list[list[Any]]:
    """Of each setting asked about: where it is, what was said of it, and how near to the plane it is."""
    verdicts = [verdict for _, verdict in plane.scene.asked]
    places = [[_number(one) for one in along] for along in plane.asked_positions]
    near = [_number(one) for one in plane.opacity]
    return [list(mark) for mark in zip(*places, verdicts, near, strict=True)]


def _numbers(values: Tensor) -> Any:
    """Nested lists of numbers; None where there are none."""
    if values.ndim > 1:
        return [_numbers(row) for row in values]
    return [_number(value) for value in values.tolist()]


def _number(value: float) -> float | None:
    return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
