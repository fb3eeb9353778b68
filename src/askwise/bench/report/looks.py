"""Colours, lines, marks and axes that the figures share."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from askwise.plots.style import BLUE, GREY, INK, ORANGE, RED
from askwise.rules import RULES, parse

_GREEN, _PURPLE = "#009e73", "#6a3d9a"
_DASHED, _DOTTED, _BROKEN = (0, (5.0, 2.0)), (0, (1.0, 1.3)), (0, (6.0, 1.5, 1.5, 1.5))
_FLOOR = 1e-7  # smaller regrets are drawn as this


@dataclass(frozen=True)
class Look:
    """Colour, line and mark."""

    colour: str
    dash: str | tuple[int, tuple[float, ...]] = "-"
    mark: str = "o"


_LOOKS = {
    "ucb_phi": Look(BLUE),
    "ucb_f": Look(RED, _DASHED, "s"),
    "thompson": Look(ORANGE, "-", "^"),
    "binary_ei": Look(_GREEN, _DASHED, "D"),
    "muc": Look(BLUE),
    "dueling_ucb": Look(RED, _DASHED, "s"),
    "bivariate_ei": Look(_GREEN, _DASHED, "D"),
    "duel_thompson": Look(ORANGE, "-", "^"),
    "dueling_thompson": Look("#cc79a7", "-", "v"),
    "kss": Look("#56b4e9", _BROKEN, "P"),
    "eiig": Look("#8c510a", _BROKEN, "X"),
    "ei": Look("#b5a300", _DASHED, "d"),
    "muc_joint": Look(_PURPLE, "-", "*"),
    "dueling_ucb_phi": Look(_PURPLE, _DASHED, "p"),
    "eubo": Look("#117733", "-", "<"),
    "hallucination_believer": Look("#882255", _BROKEN, ">"),
    "max_entropy_challenge": Look("#44aa99", _BROKEN, "h"),
    "random": Look(GREY, _DOTTED, "x"),
}
_PALEST, _PALE = 0.75, 0.5  # share of white in the first of several variants of a rule, and of two


def look(rule: str) -> Look:
    """The look of a rule, whatever its settings; rules not listed here are black."""
    return _LOOKS.get(parse(rule).key, Look(INK))


def looks(arms: Mapping[str, str]) -> dict[str, Look]:
    """The look of each arm, given its rule by label; variants of a rule go from pale to full by beta.

    Of two variants the default has the full colour.
    """
    found = {}
    for key in dict.fromkeys(parse(rule).key for rule in arms.values()):
        variants = [label for label in arms if parse(arms[label]).key == key]
        variants.sort(key=lambda label: getattr(parse(arms[label]), "beta", 0.0))
        palest = _PALEST
        if len(variants) == 2:
            variants.sort(key=lambda label: parse(arms[label]) == RULES[key]())
            palest = _PALE
        for place, label in enumerate(variants):
            white = palest * (1 - place / (len(variants) - 1)) if len(variants) > 1 else 0.0
            full = look(arms[label])
            red, green, blue = (white + (1 - white) * part for part in to_rgb(full.colour))
            found[label] = replace(full, colour=to_hex((red, green, blue)))
    return found


def query_axis(axis: Axes, initial: int, iterations: int) -> None:
    """From the first query to the last, with a line after the random ones."""
    axis.axvline(initial, color=GREY, lw=0.8, alpha=0.6, zorder=0)
    axis.set_xlim(1, max(2, iterations))
    axis.xaxis.set_major_locator(MaxNLocator(5, integer=True, steps=[1, 2, 5, 10]))


def regret_axis(axis: Axes, means: Sequence[Float[np.ndarray, " _"]]) -> None:
    """A logarithmic axis that these means fill; error bands below it are cut off."""
    low = max(_FLOOR, min(float(mean.min()) for mean in means))
    high = max(2 * low, max(float(mean.max()) for mean in means))
    axis.set_yscale("log", nonpositive="clip")
    axis.set_ylim(0.7 * low, 1.3 * high)
    decades = math.log10(high / low)
    steps = (1, 2, 5) if decades < 1.2 else (1, 3) if decades < 1.8 else (1,)
    axis.yaxis.set_major_locator(LogLocator(subs=steps, numticks=5))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.yaxis.set_minor_formatter(NullFormatter())


def values_axis(axis: Axes, values: Sequence[float | int], log: bool) -> None:
    """A tick at each of these values."""
    if log:
        axis.set_xscale("log")
    axis.xaxis.set_major_locator(FixedLocator(values))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))
