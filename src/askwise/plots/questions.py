"""What a rule asks next, and why."""

from collections.abc import Iterable

import torch
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from askwise.model import Belief
from askwise.plots.style import GREY, INK, STYLE, band, legend_below, look, mark, member_name
from askwise.plots.trace import asked, grid
from askwise.rules import Rule

_OTHERS = 12


@rc_context(STYLE)
def question(belief: Belief, rule: Rule, m: int, seed: int = 0) -> Figure:
    """What a rule asks next, and why.

    Top: the posterior of f and the query; middle: the answers so far; bottom: the score that the rule
    maximises.  A rule that maximises draws of f shows these at the top, and at the bottom its queries with
    other seeds.
    """
    x = grid(belief)
    line = x[:, 0]
    trace = asked(belief, rule, m, seed)
    figure = Figure(figsize=(7, 5.1), layout="constrained")
    values, answers, reason = figure.subplots(3, 1, sharex=True, height_ratios=(5, 2.2, 3))
    band(values, line, *belief.moments(x))
    heights = belief.mean(trace.points).tolist()
    for member, drawn in trace.drawn(x).items():
        values.plot(line, drawn, color=look(member)[0], lw=1, label=f"draw for {member_name(member, m)}")
        heights[member] = float(trace.drawn(trace.points[member : member + 1])[member])
    for member, (place, height) in enumerate(zip(trace.points[:, 0].tolist(), heights, strict=True)):
        mark(values, member, place, height, label=f"asks {member_name(member, m)}")
    what = "about one point" if m == 1 else "for a duel" if m == 2 else f"for a batch of {m}"
    values.set(ylabel="$f$", title=f"{rule.title} asks {what}", xlim=(0, 1))
    _answer_rows(answers, belief)
    curves = {member: trace.score(member, x) for member in trace.chosen}
    if curves:
        _score(reason, line, curves, trace.points, len(curves) > 1)
    else:
        _other_seeds(reason, [asked(belief, rule, m, seed + 1 + k).points for k in range(_OTHERS)])
    reason.set(xlabel="$x$", xlim=(0, 1))
    for axis in (values, answers, reason):
        for member, place in enumerate(trace.points[:, 0].tolist()):
            axis.axvline(place, color=look(member)[0], ls=(0, (4, 3)), lw=0.9, zorder=1, clip_on=False)
    figure.align_ylabels()
    legend_below(figure, (values, answers), 4)
    return figure


def _answer_rows(axis: Axes, belief: Belief) -> None:
    """One row per answer, the first at the top; a tie is a line without a winner."""
    data, signs = belief.data, belief.data.signs
    alone, decided = data.second < 0, signs != 0
    first, second = (data.points[index, 0] for index in (data.first, data.second.where(~alone, data.first)))
    better, worse = second.where(signs <= 0, first), first.where(signs <= 0, second)
    rows = torch.arange(1, data.n + 1)
    axis.hlines(rows[~alone], first[~alone], second[~alone], color=GREY, lw=0.9)
    up, down = (decided & (~alone | side) for side in (signs > 0, signs < 0))
    good, bad = ("yes", "no") if alone.all() else ("won", "lost")
    axis.plot(better[up], rows[up], "o", color=INK, ms=4.5, label=good)
    axis.plot(worse[down], rows[down], "o", mfc="white", mec=INK, ms=4.5, label=bad)
    if not decided.all():
        tied, between = rows[~decided].repeat(2), torch.cat([first[~decided], second[~decided]])
        axis.plot(between, tied, "o", color=GREY, ms=4.5, label="tied")
    axis.set(ylabel="answers", ylim=(data.n + 0.8, 0.2), yticks=())


def _score(axis: Axes, line: Tensor, curves: dict[int, Tensor], points: Tensor, several: bool) -> None:
    top = max(float(values.max()) for values in curves.values())
    low = min(float(values.min()) for values in curves.values())
    middle = min(float(values.median()) for values in curves.values())
    for member, values in curves.items():
        axis.plot(line, values, color=look(member)[0], lw=1.5)
        nearest = int((line - points[member, 0]).abs().argmin())
        mark(axis, member, points[member, 0].item(), float(values[nearest]))
    low = max(low, top - 3 * (top - middle))
    axis.set(ylabel="score as one\npoint moves" if several else "score")
    axis.set_ylim(low - 0.05 * (top - low), top + 0.12 * (top - low))


def _other_seeds(axis: Axes, others: Iterable[Tensor]) -> None:
    for row, points in enumerate(others, 1):
        if len(points) > 1:
            axis.hlines(row, float(points.min()), float(points.max()), color=GREY, lw=0.6)
        for member, place in enumerate(points[:, 0].tolist()):
            colour, shape = look(member)
            size = 8 if shape == "*" else 5
            axis.plot(place, row, shape, color=colour, mec="white", mew=0.4, ms=size, clip_on=False)
    axis.set(ylabel="with other\nseeds", yticks=(), ylim=(_OTHERS + 0.8, 0.2))
