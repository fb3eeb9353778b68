"""The figures of the report."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from askwise.bench.estimates import Interval
from askwise.bench.functions import named
from askwise.bench.published import Published
from askwise.bench.ranking import Table
from askwise.bench.regret import levels
from askwise.bench.report.analysis import Advantage, Analysis, Variant
from askwise.bench.report.looks import look, looks, query_axis, regret_axis, values_axis
from askwise.bench.report.page import spelled
from askwise.plots.style import GREY, INK, STYLE
from askwise.rules import parse

_SQUARE = 0.31  # inches, of an entry of a matrix
_DARK = 0.55  # share of functions above which the number is white
_COLUMNS, _SIZES_COLUMNS, _LEGEND = 5, 3, 5
_SHADE = 0.13  # opacity of error bands
_SMALL = {**STYLE, "font.size": 8.5, "axes.titlesize": 9, "xtick.labelsize": 8, "ytick.labelsize": 8}


@rc_context({**STYLE, "axes.spines.left": False, "axes.spines.bottom": False})
def win_matrices(tables: Mapping[str, Table | Published], rules: Sequence[str]) -> Figure:
    """Shares of functions won in each table, by final score above, by AUC below.

    The rules are in this order; grey where a rule was not compared.
    """
    side = _SQUARE * len(rules)
    names = [spelled(rule) for rule in rules]
    room = 0.085 * max(map(len, names))
    size = (max(side, 1.6) * len(tables) + room + 0.7, 2 * (side + 0.37) + 0.87 * room + 0.25)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(2, len(tables), squeeze=False, sharex=True, sharey=True)
    for (above, below), (title, table) in zip(grid.T, tables.items(), strict=True):
        at = [rules.index(rule) for rule in table.rules]
        for axis, wins, what in ((above, table.wins_final, "final"), (below, table.wins_auc, "AUC")):
            shares = np.full((len(rules), len(rules)), np.nan)
            shares[np.ix_(at, at)] = wins
            np.fill_diagonal(shares, np.nan)
            _draw_matrix(axis, shares)
            axis.set_title(f"{title}: {what}")
    for axis in grid[:, 0]:
        axis.set_yticks(range(len(rules)), names)
    for axis in grid[-1]:
        axis.set_xticks(range(len(rules)), names, rotation=60, ha="right", rotation_mode="anchor")
    return figure


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
    for axis, (title, (best, others)) in zip(axes, found.items(), strict=True):
        for height, (rule, pair) in enumerate(others.items()):
            colour = look(rule).colour
            for chance, offset, face in zip(pair, (-0.13, 0.13), (colour, "white"), strict=True):
                for one, width in ((chance.drawn, 0.9), (chance.fixed, 2.4)):
                    place = {"x": one.mean, "y": height + offset, "xerr": _reach([one])}
                    axis.errorbar(**place, fmt="o", ms=5.5, color=colour, mfc=face, elinewidth=width)
        axis.axvline(0.5, color=GREY, lw=1, zorder=0)
        axis.set_yticks(range(len(others)), map(spelled, others))
        axis.set(title=f"{title}: {spelled(best)} against", xlabel="probability that it is better")
        axis.set_ylim(len(others) - 0.5, -0.5)
    final = axes[0].plot([], [], "o", color=GREY, ms=5.5)[0]
    auc = axes[0].plot([], [], "o", color=GREY, mfc="white", ms=5.5)[0]
    figure.legend([final, auc], ["final score", "AUC"], loc="outside lower center", ncols=2)
    return figure


@rc_context(STYLE)
def score_curves(run: Analysis, functions: Sequence[str]) -> Figure:
    """Scores on a few functions, with the maximum as a dashed line."""
    experiment = run.results.experiment
    figure = Figure(figsize=(11, 4.3), layout="constrained")
    axes = figure.subplots(1, len(functions), squeeze=False)[0]
    for axis, name in zip(axes, functions, strict=True):
        place = run.results.functions.index(name)
        _draw_curves(axis, run.arms, {label: scores[place] for label, scores in run.results.scores.items()})
        best = levels(name, experiment.scale, experiment.score).best
        if math.isfinite(best):
            axis.axhline(best, color=INK, lw=0.9, ls=(0, (4, 3)), zorder=0)
        query_axis(axis, experiment.initial, experiment.iterations)
        axis.set(title=named(name).title, xlabel="queries")
    axes[0].set_ylabel("score")
    _arms_legend(figure, run.arms)
    return figure


@rc_context(_SMALL)
def regret_curves(run: Analysis) -> Figure:
    """Normalised regret on every function, a panel each."""
    experiment, functions = run.results.experiment, run.results.functions
    columns = min(_COLUMNS, len(functions))
    rows = math.ceil(len(functions) / columns)
    figure = Figure(figsize=(0.6 + 2.3 * columns, 1.2 + 1.85 * rows), layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False, sharex=True).flat)
    for place, (axis, name) in enumerate(zip(axes, functions, strict=False)):
        regrets = {label: regret[place] for label, regret in run.regret.items()}
        _draw_curves(axis, run.arms, regrets)
        regret_axis(axis, [values.mean(0) for values in regrets.values()])
        query_axis(axis, experiment.initial, experiment.iterations)
        axis.set_title(f"{named(name).title} ({named(name).dim}-D)")
    for axis in axes[len(functions) :]:
        axis.remove()
    for axis in axes[max(0, len(functions) - columns) : len(functions)]:
        axis.tick_params(labelbottom=True)
        axis.set_xlabel("queries")
    figure.supylabel("normalised regret")
    _arms_legend(figure, run.arms)
    return figure


def _draw_curves(
    axis: Axes, arms: Mapping[str, str], runs: Mapping[str, Float[np.ndarray, "replicate iteration"]]
) -> None:
    """The mean of each arm over replicates, ± a standard error."""
    for label, style in looks(arms).items():
        values = runs[label]
        mean, count, queries = values.mean(0), len(values), np.arange(1, values.shape[-1] + 1)
        error = values.std(0, ddof=1) / count**0.5 if count > 1 else np.zeros_like(mean)
        axis.fill_between(queries, mean - error, mean + error, color=style.colour, alpha=_SHADE, lw=0)
        axis.plot(queries, mean, color=style.colour, ls=style.dash, lw=1.3, label=spelled(label))


def _arms_legend(figure: Figure, arms: Mapping[str, str]) -> None:
    """Below the axes; with variants of rules, a column for each rule."""
    rules = len({parse(rule).key for rule in arms.values()})
    handles, labels = figure.axes[0].get_legend_handles_labels()
    columns = rules if rules < len(labels) and rules <= _LEGEND else min(_LEGEND, len(labels))
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, fontsize=9.5)


@rc_context(STYLE)
def regret_by_beta(found: Sequence[Variant]) -> Figure:
    """Regret of each rule after the last query, and over all queries."""
    figure = Figure(figsize=(9.5, 4), layout="constrained")
    final, average = figure.subplots(1, 2)
    betas = sorted({one.value for one in found})
    for axis, part in ((final, "final"), (average, "average")):
        for rule in sorted({one.rule for one in found}):
            _draw_variants(axis, [one for one in found if one.rule == rule], part, mfc="white")
        values_axis(axis, betas, log=min(betas) > 0)
        axis.set_xlabel("β")
        axis.set_ylim(bottom=0)
    final.set(title="after the last query", ylabel="mean normalised regret")
    average.set(title="over all queries")
    handles = dict(sorted(zip(*reversed(final.get_legend_handles_labels()), strict=True)))
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=4)
    return figure


@rc_context(STYLE)
def regret_by_size(found: Sequence[Variant], initial: int) -> Figure:
    """A panel for each batch size, and one of all sizes after the last query."""
    sizes = sorted({one.value for one in found})
    rows = math.ceil((len(sizes) + 1) / _SIZES_COLUMNS)
    figure = Figure(figsize=(10.5, 0.8 + 3 * rows), layout="constrained")
    axes = list(figure.subplots(rows, _SIZES_COLUMNS, squeeze=False, sharey=True).flat)
    for axis, m in zip(axes, sizes, strict=False):
        for one in found:
            if one.value == m:
                style, queries = look(one.rule), np.arange(1, len(one.course) + 1)
                axis.plot(queries, one.course, color=style.colour, ls=style.dash, lw=1.6)
        axis.set(title=f"m = {m}", xlabel="queries")
        query_axis(axis, initial, len(found[0].course))
    last = axes[len(sizes)]
    for rule in dict.fromkeys(one.rule for one in found):
        variants = sorted((one for one in found if one.rule == rule), key=lambda one: one.value)
        _draw_variants(last, variants, "final", mfc=None)
    last.set(title="after the last query", xlabel="points in a query, m")
    values_axis(last, sizes, log=True)
    for axis in axes[len(sizes) + 1 :]:
        axis.remove()
    regret_axis(axes[0], [one.course for one in found])
    for axis in axes[::_SIZES_COLUMNS]:
        axis.set_ylabel("mean normalised regret")
    handles, labels = last.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure


def _draw_variants(axis: Axes, variants: Sequence[Variant], part: str, mfc: str | None) -> None:
    """The regret of one rule with its interval; the default of the rule is marked."""
    rule, style = variants[0].rule, look(variants[0].rule)
    x, y = [one.value for one in variants], [getattr(one, part) for one in variants]
    line: dict[str, Any] = {
        "color": style.colour,
        "ls": style.dash,
        "marker": style.mark,
        "ms": 6,
        "mfc": mfc,
    }
    axis.errorbar(x, [one.mean for one in y], yerr=_reach(y), capsize=2.5, label=spelled(rule), **line)
    for one in variants:
        if one.default:
            line |= {"ls": "none", "mfc": style.colour, "ms": 10}
            label = f"{rule}, default ({one.value:.3g})"
            axis.plot(one.value, getattr(one, part).mean, zorder=5, label=label, **line)


def _reach(intervals: Sequence[Interval]) -> list[list[float]]:
    """Lengths of error bars below and above the means; none where the interval is infinite."""
    known = [one if math.isfinite(one.high - one.low) else Interval(0.0, 0.0, 0.0) for one in intervals]
    return [[max(0.0, one.mean - one.low) for one in known], [max(0.0, one.high - one.mean) for one in known]]
