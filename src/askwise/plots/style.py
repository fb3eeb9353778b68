"""The style of all figures, and parts that several of them share."""

import textwrap
from collections.abc import Iterable
from itertools import groupby
from typing import Any

from jaxtyping import Bool, Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from askwise.numerics import deviation

STYLE: dict[Any, Any] = {
    "font.size": 9.5,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "legend.fontsize": 9,
}
INK, GREY, SKY, BLUE, RED, ORANGE = "#222222", "#767676", "#cfe3f1", "#0072b2", "#d55e00", "#e69f00"
GOOD, UNSURE, ASKED = "cividis", "Purples", "Greys"
"""Colour maps of expected values, of uncertainty, and of the score of a question."""
BAND = 1.959963984540054  # standard deviations of a 95% interval
HATCH: dict[str, Any] = {"facecolor": "#f2f2f2", "hatch": "////", "edgecolor": "#b5b5b5"}
_LETTERS, _LINE = 12, 0.17  # letters of a line to an inch, and its height in inches
_MEMBER_COLOURS = (BLUE, RED, "#009e73", "#cc79a7", ORANGE, "#56b4e9", INK)
_MEMBER_MARKS = "*Ds^vPX"


def look(member: int) -> tuple[str, str]:
    """Colour and shape of the mark of a member of a query."""
    place = member % len(_MEMBER_MARKS)
    return _MEMBER_COLOURS[place], _MEMBER_MARKS[place]


def member_name(member: int, m: int) -> str:
    """The name of a member of a query about m points."""
    return f"$x_{{{member + 1}}}$" if m > 1 else "$x$"


def band(axis: Axes, line: Tensor, mean: Tensor, var: Tensor) -> None:
    """The posterior mean of f with a 95% credible band."""
    reach = BAND * deviation(var)
    axis.fill_between(line, mean - reach, mean + reach, color=SKY, lw=0, label="95% credible band of $f$")
    axis.plot(line, mean, color=INK, lw=1.6, label="mean")


def mark(axis: Axes, member: int, x: float, y: float, label: str | None = None, hollow: bool = False) -> None:
    """Mark a member of a query."""
    colour, shape = look(member)
    inks: dict[str, Any] = {"color": colour, "mec": "white"}
    if hollow:
        inks = {"ls": "none", "mfc": "white", "mec": colour, "mew": 1.4}
    size = 18 if shape == "*" else 7
    axis.plot([x], [y], shape, ms=size, clip_on=False, zorder=5, label=label, **inks)


def legend_below(figure: Figure, axes: Iterable[Axes], columns: int, keys: Iterable[str] = ()) -> None:
    """One legend for several axes, below them, and above it what numbered names stand for."""
    found: dict[str, Any] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    lines = [line for key in dict.fromkeys(filter(None, keys)) for line in wrapped(key, figure)]
    title: dict[str, Any] = {"title": "\n".join(lines), "title_fontsize": 9} if lines else {}
    figure.set_figheight(figure.get_figheight() + _LINE * len(lines))
    box = figure.legend(found.values(), found, loc="outside lower center", ncols=columns, **title)
    box.get_title().set_multialignment("left")


def wrapped(text: str, figure: Figure) -> list[str]:
    """Text in lines as wide as a figure."""
    width = round(_LETTERS * figure.get_figwidth())
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def title(figure: Figure, name: str, *parts: str) -> None:
    """A title above all panels: the name of the study, then what is shown."""
    said = ", ".join(part for part in parts if part)
    lines = wrapped(f"{name}: {said}" if said else name, figure)
    figure.set_figheight(figure.get_figheight() + _LINE * (len(lines) - 1))
    figure.suptitle("\n".join(lines), fontsize=10.5, x=0.01, ha="left")


def hatch_spans(axis: Axes, edges: Float[Tensor, " e"], allowed: Bool[Tensor, " k"]) -> None:
    """Hatch the infeasible stretches of an axis."""
    start = 0
    for inside, run in groupby(allowed.tolist()):
        end = start + len(list(run))
        if not inside:
            axis.axvspan(float(edges[start]), float(edges[end]), lw=0, zorder=0, **HATCH)
        start = end


def message(axis: Axes, text: str) -> None:
    """Say why there is nothing to draw."""
    axis.text(0.5, 0.5, text, transform=axis.transAxes, ha="center", va="center", wrap=True)
