"""The figures of the report, drawn from plain data."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from askwise.bench.published import Matrix
from askwise.bench.regret import Interval
from askwise.bench.report.analysis import Advantage, Sized, Weighted
from askwise.bench.report.looks import Look, look, looks, query_axis, regret_axis, values_axis
from askwise.bench.report.page import spelled
from askwise.plots.style import GREY, INK, STYLE
from askwise.rules import parse

_SQUARE = 0.31  # inches, of an entry of a matrix
_DARK = 0.55  # share of functions above which the number is white
_COLUMNS, _SIZES_COLUMNS = 5, 3
_SHADE = 0.13  # opacity of error bands
_SMALL = {**STYLE, "font.size": 8.5, "axes.titlesize": 9, "xtick.labelsize": 8, "ytick.labelsize": 8}


@dataclass(frozen=True, eq=False)
class Wins:
    """Shares of functions won, by final score and by AUC, with these rules in rows and columns."""

    title: str
    rules: tuple[str, ...]
    final: Matrix | Float[np.ndarray, "rule rule"]
    auc: Matrix | Float[np.ndarray, "rule rule"]


@dataclass(frozen=True, eq=False)
class Curves:
    """The replicates of every arm on one function."""

    title: str
    values: Mapping[str, Float[np.ndarray, "replicate iteration"]]
    best: float = math.inf
    """Drawn as a line if finite."""

    @property
    def iterations(self) -> int:
        """Number of queries."""
        return next(iter(self.values.values())).shape[-1]


@rc_context({**STYLE, "axes.spines.left": False, "axes.spines.bottom": False})
def win_matrices(panels: Sequence[Wins], rules: Sequence[str]) -> Figure:
    """Two rows of matrices with the rules in this order; grey where a rule was not compared."""
    side = _SQUARE * len(rules)
    names = [spelled(rule) for rule in rules]
    room = 0.085 * max(map(len, names))
    size = (max(side, 1.6) * len(panels) + room + 0.7, 2 * (side + 0.37) + 0.87 * room + 0.25)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(2, len(panels), squeeze=False, sharex=True, sharey=True)
    for column, panel in enumerate(panels):
        for axis, matrix, what in zip(
            grid[:, column], (panel.final, panel.auc), ("final", "AUC"), strict=True
        ):
            _draw_matrix(axis, _reordered(np.asarray(matrix), panel.rules, rules))
            axis.set_title(f"{panel.title}: {what}")
    for axis in grid[:, 0]:
        axis.set_yticks(range(len(rules)), names)
    for axis in grid[-1]:
        axis.set_xticks(range(len(rules)), names, rotation=60, ha="right", rotation_mode="anchor")
    return figure


def _reordered(
    matrix: Float[np.ndarray, "own own"], own: Sequence[str], rules: Sequence[str]
) -> Float[np.ndarray, "rule rule"]:
    """The matrix with its rules in another order; NaN for missing rules and on the diagonal."""
    full = np.full((len(rules), len(rules)), np.nan)
    at = [rules.index(rule) for rule in own]
    full[np.ix_(at, at)] = matrix
    np.fill_diagonal(full, np.nan)
    return full


def _draw_matrix(axis: Axes, shares: Float[np.ndarray, "rule rule"]) -> None:
    axis.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    axis.patch.set_facecolor("#ebebeb")
    axis.tick_params(length=0)
    for (row, column), share in np.ndenumerate(shares):
        if np.isfinite(share):
            colour = "white" if share > _DARK else INK
            axis.text(column, row, f"{100 * share:.0f}", ha="center", va="center", color=colour, fontsize=8.5)


@rc_context(STYLE)
def superiority_of_best(found: Mapping[str, tuple[str, Advantage]]) -> Figure:
    """A panel per experiment: the probability that its best rule beats each of the others.

    ``found``: by the title of the experiment, its best rule and that rule's advantage.
    """
    most = max(len(others) for _, others in found.values())
    figure = Figure(figsize=(0.6 + 4.6 * len(found), 1.4 + 0.36 * most), layout="constrained")
    axes = figure.subplots(1, len(found), squeeze=False, sharex=True)[0]
    for axis, (way, (best, others)) in zip(axes, found.items(), strict=True):
        for height, (rule, pair) in enumerate(others.items()):
            for chance, offset, hollow in zip(pair, (-0.13, 0.13), (False, True), strict=True):
                axis.errorbar(
                    chance.mean,
                    height + offset,
                    xerr=_reach([chance]),
                    fmt="o",
                    ms=5.5,
                    color=look(rule).colour,
                    mfc="white" if hollow else look(rule).colour,
                )
        axis.axvline(0.5, color=GREY, lw=1, zorder=0)
        axis.set_yticks(range(len(others)), map(spelled, others))
        axis.set(
            ylim=(len(others) - 0.5, -0.5),
            title=f"{way}: {spelled(best)} against",
            xlabel="probability that it is better",
        )
    final = axes[0].plot([], [], "o", color=GREY, ms=5.5)[0]
    auc = axes[0].plot([], [], "o", color=GREY, mfc="white", ms=5.5)[0]
    figure.legend([final, auc], ["final score", "AUC"], loc="outside lower center", ncols=2)
    return figure


@rc_context(STYLE)
def score_curves(panels: Sequence[Curves], arms: Mapping[str, str], initial: int) -> Figure:
    """Scores on a few functions; ``arms``: the rule of each arm by label."""
    figure = Figure(figsize=(11, 4.3), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, panel in zip(axes, panels, strict=True):
        _draw_curves(axis, panel, looks(arms))
        if math.isfinite(panel.best):
            axis.axhline(panel.best, color=INK, lw=0.9, ls=(0, (4, 3)), zorder=0)
        axis.set(title=panel.title, xlabel="queries")
        query_axis(axis, initial, panel.iterations)
    axes[0].set_ylabel("score")
    _arms_legend(figure, arms)
    return figure


@rc_context(_SMALL)
def regret_curves(panels: Sequence[Curves], arms: Mapping[str, str], initial: int) -> Figure:
    """Normalised regret on every function, a panel each."""
    columns = min(_COLUMNS, len(panels))
    rows = math.ceil(len(panels) / columns)
    figure = Figure(figsize=(0.6 + 2.3 * columns, 1.2 + 1.85 * rows), layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False, sharex=True).flat)
    for axis, panel in zip(axes, panels, strict=False):
        _draw_curves(axis, panel, looks(arms))
        regret_axis(axis, [values.mean(0) for values in panel.values.values()])
        axis.set_title(panel.title)
        query_axis(axis, initial, panel.iterations)
    for axis in axes[len(panels) :]:
        axis.remove()
    for axis in axes[max(0, len(panels) - columns) : len(panels)]:
        axis.tick_params(labelbottom=True)
        axis.set_xlabel("queries")
    figure.supylabel("normalised regret")
    _arms_legend(figure, arms)
    return figure


def _draw_curves(axis: Axes, panel: Curves, styles: Mapping[str, Look]) -> None:
    """The mean of each arm over replicates, ± a standard error."""
    for label, style in styles.items():
        values = panel.values[label]
        mean, count = values.mean(0), len(values)
        error = values.std(0, ddof=1) / count**0.5 if count > 1 else np.zeros_like(mean)
        queries = np.arange(1, len(mean) + 1)
        axis.fill_between(queries, mean - error, mean + error, color=style.colour, alpha=_SHADE, lw=0)
        axis.plot(queries, mean, color=style.colour, ls=style.dash, lw=1.3, label=spelled(label))


def _arms_legend(figure: Figure, arms: Mapping[str, str]) -> None:
    """Below the axes; with variants of rules, a column for each rule."""
    rules = len({parse(rule).key for rule in arms.values()})
    handles, labels = figure.axes[0].get_legend_handles_labels()
    columns = rules if rules < len(labels) else min(5, rules)
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, fontsize=9.5)


@rc_context(STYLE)
def regret_by_beta(found: Sequence[Weighted]) -> Figure:
    """Regret of each rule after the last query, and over all queries."""
    figure = Figure(figsize=(9.5, 4), layout="constrained")
    final, average = figure.subplots(1, 2)
    betas = sorted({one.beta for one in found})
    for axis, part in ((final, "final"), (average, "average")):
        for rule in sorted({one.rule for one in found}):
            _draw_betas(axis, [one for one in found if one.rule == rule], part)
        values_axis(axis, betas, log=min(betas) > 0)
        axis.set_xlabel("β")
        axis.set_ylim(bottom=0)
    final.set(title="after the last query", ylabel="mean normalised regret")
    average.set(title="over all queries")
    known = dict(zip(*reversed(final.get_legend_handles_labels()), strict=True))
    figure.legend(
        [known[label] for label in sorted(known)], sorted(known), loc="outside lower center", ncols=4
    )
    return figure


def _draw_betas(axis: Axes, own: Sequence[Weighted], part: str) -> None:
    """One rule; its default is marked."""
    style, regrets = look(own[0].rule), [getattr(one, part) for one in own]
    _draw_intervals(axis, [one.beta for one in own], regrets, style, own[0].rule, mfc="white")
    for one, regret in zip(own, regrets, strict=True):
        if one.usual:
            label = f"{one.rule}, default ({one.beta:.3g})"
            axis.plot(
                one.beta, regret.mean, style.mark, color=style.colour, ms=10, zorder=5, ls="none", label=label
            )


@rc_context(STYLE)
def regret_by_size(found: Sequence[Sized], initial: int) -> Figure:
    """A panel for each batch size, and one of all sizes after the last query."""
    sizes = sorted({one.m for one in found})
    rows = math.ceil((len(sizes) + 1) / _SIZES_COLUMNS)
    figure = Figure(figsize=(10.5, 0.8 + 3 * rows), layout="constrained")
    axes = list(figure.subplots(rows, _SIZES_COLUMNS, squeeze=False, sharey=True).flat)
    for axis, m in zip(axes, sizes, strict=False):
        for one in found:
            if one.m == m:
                style, queries = look(one.rule), np.arange(1, len(one.course) + 1)
                axis.plot(queries, one.course, color=style.colour, ls=style.dash, lw=1.6)
        axis.set(title=f"m = {m}", xlabel="queries")
        query_axis(axis, initial, len(found[0].course))
    last = axes[len(sizes)]
    for rule in dict.fromkeys(one.rule for one in found):
        own = sorted((one for one in found if one.rule == rule), key=lambda one: one.m)
        _draw_intervals(
            last, [one.m for one in own], [one.final for one in own], look(rule), spelled(rule), mfc=None
        )
    last.set(title="after the last query", xlabel="points in a query, m")
    values_axis(last, sizes, log=True)
    for axis in axes[len(sizes) + 1 :]:
        axis.remove()
    regret_axis(axes[0], [one.course for one in found])
    for row in range(rows):
        axes[_SIZES_COLUMNS * row].set_ylabel("mean normalised regret")
    handles, labels = last.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure


def _draw_intervals(
    axis: Axes, x: Sequence[float | int], y: Sequence[Interval], style: Look, label: str, *, mfc: str | None
) -> None:
    axis.errorbar(
        x,
        [one.mean for one in y],
        yerr=_reach(y),
        color=style.colour,
        ls=style.dash,
        marker=style.mark,
        mfc=mfc,
        ms=6,
        capsize=2.5,
        label=label,
    )


def _reach(intervals: Sequence[Interval]) -> list[list[float]]:
    """Lengths of error bars below and above the means."""
    below = [one.mean - one.low for one in intervals]
    return [below, [one.high - one.mean for one in intervals]]
