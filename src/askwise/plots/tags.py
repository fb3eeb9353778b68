"""Values written beside marks, where they hide least."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox

_GID = "value beside a mark"
_GAPS = (9, 20)  # points between the mark and its value
_SIDES = ((1, 1), (-1, 1), (1, -1), (-1, -1), (1, 0), (-1, 0), (0, 1), (0, -1))  # the first are preferred
_PAD = 3  # pixels around the text
_OUTSIDE = (
    100.0  # what a text costs that leaves its panel; a mark that it hides costs 1, a bit of a curve less
)
_CURVE = 0.1


def tag(axis: Axes, x: float, y: float, text: str) -> None:
    """Write something beside a mark; :func:`settle` moves it to its place."""
    box: dict[str, Any] = {"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.8}
    look: dict[str, Any] = {"fontsize": 9, "gid": _GID, "zorder": 7, "bbox": box, "linespacing": 1.1}
    axis.annotate(text, (x, y), (0, 0), textcoords="offset points", **look).set_in_layout(False)


def settle(figure: Figure) -> None:
    """Move the values of a finished figure to where they hide least."""
    if layout := figure.get_layout_engine():
        layout.execute(figure)  # only now it is known where everything is
    for axis in figure.axes:
        for text in axis.texts:
            if isinstance(text, Annotation) and text.get_gid() == _GID:
                _settle(axis, text)


def _settle(axis: Axes, text: Annotation) -> None:
    panel, marks, curve = axis.get_window_extent(), _marks(axis), _curve(axis)

    def cost(gap: int, side: tuple[int, int]) -> float:
        _put(text, gap, side)
        box = text.get_window_extent().padded(_PAD)
        beyond = (panel.x0 - box.x0, box.x1 - panel.x1, panel.y0 - box.y0, box.y1 - panel.y1)
        outside = sum(max(0.0, overhang) for overhang in beyond)
        return _OUTSIDE * outside + _hidden(box, marks) + _CURVE * _hidden(box, curve)

    _put(text, *min(((gap, side) for gap in _GAPS for side in _SIDES), key=lambda place: cost(*place)))


def _put(text: Annotation, gap: int, side: tuple[int, int]) -> None:
    across, up = side
    text.set(ha=("center", "left", "right")[across], va=("center", "bottom", "top")[up])
    text.xyann = (gap * across, gap * up * (1.2 if not across else 0.6))


def _marks(axis: Axes) -> np.ndarray:
    """Where marks are, in pixels."""
    found = [np.asarray(one.get_offsets()) for one in axis.collections if isinstance(one, PathCollection)]
    return axis.transData.transform(np.concatenate([*found, np.empty((0, 2))]))


def _curve(axis: Axes) -> np.ndarray:
    """Points of the curves, in pixels."""
    every = [np.asarray(line.get_xydata(), dtype=float) for line in axis.lines]
    found = [points for points in every if len(points) > 2]
    return axis.transData.transform(np.concatenate([*found, np.empty((0, 2))]))


def _hidden(box: Bbox, points: np.ndarray) -> float:
    """How many points are below a text."""
    return float(((points > (box.x0, box.y0)) & (points < (box.x1, box.y1))).all(-1).sum())
