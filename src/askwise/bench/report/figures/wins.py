"""Who beats whom, on how many of the functions."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from askwise.bench.published import Matrix
from askwise.bench.report.numbers import spelled
from askwise.plots.style import INK, STYLE

__all__ = ["Panel", "wins"]

_CELL = 0.31  # inches
_DARK = 0.55  # share of functions from which on the number is white


@dataclass(frozen=True, eq=False)
class Panel:
    """Shares of functions won, by final score and by AUC, with the rules of rows and columns."""

    title: str
    rules: tuple[str, ...]
    final: Matrix | Float[np.ndarray, "rule rule"]
    auc: Matrix | Float[np.ndarray, "rule rule"]


@rc_context({**STYLE, "axes.spines.left": False, "axes.spines.bottom": False})
def wins(panels: Sequence[Panel], rules: Sequence[str]) -> Figure:
    """Two rows of matrices, all with their rules in the same order; grey where a rule is not compared."""
    side = _CELL * len(rules)
    names = [spelled(rule) for rule in rules]
    room = 0.085 * max(map(len, names))
    size = (max(side, 1.6) * len(panels) + room + 0.7, 2 * (side + 0.37) + 0.87 * room + 0.25)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(2, len(panels), squeeze=False, sharex=True, sharey=True)
    for column, panel in enumerate(panels):
        for axis, matrix, what in zip(
            grid[:, column], (panel.final, panel.auc), ("final", "AUC"), strict=True
        ):
            _draw(axis, _placed(np.asarray(matrix), panel.rules, rules))
            axis.set_title(f"{panel.title}: {what}")
    for axis in grid[:, 0]:
        axis.set_yticks(range(len(rules)), names)
    for axis in grid[-1]:
        axis.set_xticks(range(len(rules)), names, rotation=60, ha="right", rotation_mode="anchor")
    return figure


def _placed(
    matrix: Float[np.ndarray, "own own"], own: Sequence[str], rules: Sequence[str]
) -> Float[np.ndarray, "rule rule"]:
    """The matrix with its rules in another order; not a number where they are not in it."""
    full = np.full((len(rules), len(rules)), np.nan)
    at = [rules.index(rule) for rule in own]
    full[np.ix_(at, at)] = matrix
    np.fill_diagonal(full, np.nan)
    return full


def _draw(axis: Axes, shares: Float[np.ndarray, "rule rule"]) -> None:
    axis.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    axis.patch.set_facecolor("#ebebeb")
    axis.tick_params(length=0)
    for (row, column), share in np.ndenumerate(shares):
        if np.isfinite(share):
            colour = "white" if share > _DARK else INK
            axis.text(column, row, f"{100 * share:.0f}", ha="center", va="center", color=colour, fontsize=8.5)
