"""Figures of what is believed and of what the rules ask; needs matplotlib (``askwise[plots]``).

Every function returns a :class:`matplotlib.figure.Figure`; save it with ``figure.savefig("name.png")``.
Colours are told apart by the colour-blind too (Okabe & Ito, cividis), and marks differ in shape as well.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from jaxtyping import Float
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from torch import Tensor

from askwise.belief import Belief
from askwise.loop import check_size
from askwise.normal import binary_entropy, deviation, ndtr, success_probability
from askwise.rules import Rule
from askwise.rules.ucb_f import UpperCredibleBoundF
from askwise.rules.ucb_phi import UpperCredibleBoundPhi
from askwise.search import Search
from askwise.seeds import generator
from askwise.uncertainty import aleatoric_entropy, aleatoric_variance, epistemic_variance, mutual_information

__all__ = ["bounds_compared", "decomposition_maps", "question"]

_STYLE: dict[Any, Any] = {
    "font.size": 9.5,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "legend.fontsize": 9,
}
_INK, _GREY, _SKY, _BLUE, _RED = "#222222", "#767676", "#cfe3f1", "#0072b2", "#d55e00"
_MEMBERS = ((_BLUE, "*"), (_RED, "D"), ("#009e73", "s"), ("#cc79a7", "^"), ("#e69f00", "v"))
_BAND = 1.959963984540054  # deviations that hold 95% of a normal
_GRID = 501
_OTHERS = 12


@rc_context(_STYLE)
def decomposition_maps() -> Figure:
    """Doubt about an answer and its two parts, over mean and variance of f (figure 1 of the paper)."""
    mean = torch.linspace(-8, 8, 129, dtype=torch.float64)
    var = torch.linspace(0, 10, 101, dtype=torch.float64)
    m, v = torch.broadcast_tensors(mean, var[:, None])
    by_variance = (
        success_probability(m, v) * success_probability(-m, v),
        epistemic_variance(m, v),
        aleatoric_variance(m, v),
    )
    by_entropy = binary_entropy(m / (1 + v).sqrt()), mutual_information(m, v), aleatoric_entropy(m, v)
    formulas = (
        (r"$\mathbb{V}[c]$", r"$\mathbb{V}[\Phi(f)]$", r"$\mathbb{E}[\mathbb{V}(c\,|\,f)]$"),
        (r"$H[c]$", r"$I(c, f)$", r"$\mathbb{E}[H(c\,|\,f)]$"),
    )
    meanings = ("total doubt", "epistemic: answers remove it", "aleatoric: it stays")
    scales = (("variance", 0.25, 0.05), ("entropy (nats)", math.log(2), 0.1))
    figure = Figure(figsize=(9.2, 4.9), layout="constrained")
    axes = figure.subplots(2, 3, sharex=True, sharey=True)
    for row, maps, names, (unit, top, step) in zip(
        axes, (by_variance, by_entropy), formulas, scales, strict=True
    ):
        lines = [step * k for k in range(1, round(top / step))]
        for axis, values, name in zip(row, maps, names, strict=True):
            image = axis.imshow(
                values.numpy(),
                cmap="cividis",
                vmin=0,
                vmax=top,
                extent=(-8.0625, 8.0625, -0.05, 10.05),
                origin="lower",
                aspect="auto",
                interpolation="bilinear",
            )
            axis.contour(mean, var, values, levels=lines, colors="white", linewidths=0.5)
            axis.set(title=name, xlim=(-8, 8), ylim=(0, 10), xticks=(-8, -4, 0, 4, 8))
        figure.colorbar(
            image, ax=row, label=unit, shrink=0.9, pad=0.015, ticks=[0, *lines, top], format="%.2g"
        )
    for axis, meaning in zip(axes[0], meanings, strict=True):
        axis.set_title(f"{meaning}\n{axis.get_title(loc='left')}")
    figure.supxlabel(r"posterior mean of $f$", fontsize=10)
    figure.supylabel(r"posterior variance of $f$", fontsize=10)
    return figure


@rc_context(_STYLE)
def bounds_compared(
    belief: Belief,
    latent: UpperCredibleBoundF | None = None,
    observed: UpperCredibleBoundPhi | None = None,
) -> Figure:
    """What the bound on f asks about, beside what the bound on the success rate does."""
    x = _grid(belief)
    line = x[:, 0]
    rules: list[UpperCredibleBoundF | UpperCredibleBoundPhi]
    rules = [latent or UpperCredibleBoundF(), observed or UpperCredibleBoundPhi()]
    styles = ((r"UCB$_f$", _RED, "$f$"), (r"UCB$_\Phi$", _BLUE, r"$\Phi(f)$"))
    choices = [_asked(belief, rule, 1, 0).points for rule in rules]
    mean, var = belief.moments(x)
    figure = Figure(figsize=(9.2, 6), layout="constrained")
    (rates, values), bounds = figure.subplots(2, 2, sharex=True)
    _ventiles(rates, line, mean, var)
    rates.plot(line, success_probability(mean, var), color=_INK, lw=1.6)
    for choice, (name, colour, _) in zip(choices, styles, strict=True):
        rate = belief.success_probability(choice)
        look = {"color": colour, "mec": "white", "ms": 12, "clip_on": False, "zorder": 5}
        rates.plot(choice[:, 0], rate, "X", label=f"{name} asks here", **look)
    rates.set(title=r"$\bf{A}$  chance of a yes, $\Phi(f)$", ylim=(-0.02, 1.02), xlim=(0, 1))
    _band(values, line, mean, var)
    _answers_at_the_rim(values, belief)
    values.set_title(r"$\bf{B}$  latent value, $f$")
    for letter, axis, rule, choice, (name, colour, what) in zip(
        "CD", bounds, rules, choices, styles, strict=True
    ):
        axis.plot(line, rule.score(mean, var), color=colour, lw=1.6)
        axis.axvline(choice.item(), color=colour, ls="--", lw=1.3, clip_on=False)
        formula = rf"mean + {rule.beta:.3g} $\times$ deviation of {what}"
        axis.set(title=rf"$\bf{{{letter}}}$  {name}: {formula}", xlabel="$x$")
    _legend_below(figure, (rates, values), 3)
    return figure


@rc_context(_STYLE)
def question(belief: Belief, rule: Rule, m: int, seed: int = 0) -> Figure:
    """What a rule asks after some answers, and why.

    Above, what is believed of f, with the points asked about; then the answers so far; below, the
    score that the rule maximises.  A rule that maximises draws of f shows those above, and below what
    it asks with other seeds.
    """
    x = _grid(belief)
    line = x[:, 0]
    trace = _asked(belief, rule, m, seed)
    figure = Figure(figsize=(7, 5.1), layout="constrained")
    values, answers, reason = figure.subplots(3, 1, sharex=True, height_ratios=(5, 2.2, 3))
    _band(values, line, *belief.moments(x))
    heights = belief.mean(trace.points).tolist()
    for member, drawn in trace.drawn(x).items():
        values.plot(line, drawn, color=_look(member)[0], lw=1, label=f"draw for {_name(member, m)}")
        heights[member] = float(trace.drawn(trace.points[member : member + 1])[member])
    for member, (place, height) in enumerate(zip(trace.points[:, 0].tolist(), heights, strict=True)):
        _mark(values, member, place, height, label=f"asks {_name(member, m)}")
    values.set(ylabel="$f$", title=_headline(rule, m), xlim=(0, 1))
    _answer_rows(answers, belief)
    curves = trace.curves(x)
    if curves:
        _score(reason, line, curves, trace.points, len(curves) > 1)
    else:
        _other_seeds(reason, [_asked(belief, rule, m, seed + 1 + k).points for k in range(_OTHERS)])
    reason.set(xlabel="$x$", xlim=(0, 1))
    for axis in (values, answers, reason):
        for member, place in enumerate(trace.points[:, 0].tolist()):
            axis.axvline(place, color=_look(member)[0], ls=(0, (4, 3)), lw=0.9, zorder=1, clip_on=False)
    figure.align_ylabels()
    _legend_below(figure, (values, answers), 4)
    return figure


@dataclass(frozen=True)
class _Step:
    """One search of a rule: the score it maximised, and where."""

    score: Callable[[Tensor], Tensor]
    found: Tensor
    draws: int | None


@dataclass(frozen=True)
class _Watched(Search):
    """A search that remembers what it was asked to maximise, other than the mean of f."""

    steps: list[_Step] = field(default_factory=list)

    def champion(self, belief: Belief) -> Tensor:
        """The point of highest posterior mean."""
        return Search.champion(replace(self, steps=[]), belief)

    def argmax(
        self,
        score: Callable[[Tensor], Tensor],
        q: int = 1,
        *,
        draws: int | None = None,
        extra: Tensor | None = None,
    ) -> Tensor:
        """The same points as ever."""
        found = super().argmax(score, q, draws=draws, extra=extra)
        self.steps.append(_Step(score, found, draws))
        return found


@dataclass(frozen=True)
class _Trace:
    """A question and the searches that led to it."""

    points: Float[Tensor, "m 1"]
    steps: Sequence[_Step]

    def drawn(self, x: Float[Tensor, "q 1"]) -> dict[int, Float[Tensor, " q"]]:
        """The draws of f whose maxima are asked about, by member of the question."""
        found: dict[int, Tensor] = {}
        for step in self.steps:
            for draw in range(step.draws or 0):
                for member, point in enumerate(self.points):
                    if torch.equal(step.found[draw, 0], point):
                        found[member] = step.score(x)[draw]
        return found

    def curves(self, x: Float[Tensor, "q 1"]) -> dict[int, Float[Tensor, " q"]]:
        """The last score that was maximised, along each of the points that it chose."""
        steps = [step for step in self.steps if step.draws is None]
        if not steps:
            return {}
        step = max(reversed(steps), key=lambda step: len(step.found))  # of a batch, that of all its members
        score, first = step.score, len(self.points) - len(step.found)
        found = self.points[first:]  # in the order asked, which does not matter to the score of a group
        if len(found) == 1:
            values = score(x)
            return {first: values.exp() if getattr(score, "logarithmic", False) else values}
        groups = found.expand(len(x), *found.shape)
        moved = [groups.clone() for _ in found]
        for member, group in enumerate(moved):
            group[:, member] = x
        return {first + member: score(group) for member, group in enumerate(moved)}


def _asked(belief: Belief, rule: Rule, m: int, seed: int) -> _Trace:
    """What :func:`askwise.next_query` would ask, and how it came to that."""
    check_size(rule, m)
    search = _Watched(**vars(Search.around(belief, generator("question", seed))))
    with torch.no_grad():
        return _Trace(rule.ask(belief, m, search), search.steps)


def _grid(belief: Belief) -> Float[Tensor, "q 1"]:
    points = belief.data.points
    if belief.data.lanes or points.shape[-1] != 1:
        raise ValueError(
            "belief to draw must be of one study in one dimension; got "
            f"{tuple(belief.data.lanes)} lanes, d = {points.shape[-1]}. Select a lane of a 1-D study."
        )
    return torch.linspace(0, 1, _GRID, dtype=torch.float64)[:, None]


def _look(member: int) -> tuple[str, str]:
    return _MEMBERS[member % len(_MEMBERS)]


def _name(member: int, m: int) -> str:
    return f"$x_{{{member + 1}}}$" if m > 1 else "$x$"


def _headline(rule: Rule, m: int) -> str:
    what = "about one point" if m == 1 else "for a duel" if m == 2 else f"for a batch of {m}"
    return f"{rule.title} asks {what}"


def _band(axis: Axes, line: Tensor, mean: Tensor, var: Tensor) -> None:
    reach = _BAND * deviation(var)
    axis.fill_between(line, mean - reach, mean + reach, color=_SKY, lw=0, label="95% of the belief about $f$")
    axis.plot(line, mean, color=_INK, lw=1.6, label="mean")


def _legend_below(figure: Figure, axes: Sequence[Axes], columns: int) -> None:
    handles, labels = [], []
    for axis in axes:
        here = axis.get_legend_handles_labels()
        handles += here[0]
        labels += here[1]
    figure.legend(handles, labels, loc="outside lower center", ncols=columns)


def _ventiles(axis: Axes, line: Tensor, mean: Tensor, var: Tensor) -> None:
    """Nested bands between the twentieths of the distribution of the success rate."""
    light, dark = (torch.tensor(to_rgb(colour)) for colour in ("#eaf3f9", "#5fa3cf"))
    for k in range(1, 10):
        reach = -torch.special.ndtri(torch.tensor(k / 20, dtype=torch.float64)) * deviation(var)
        colour = tuple((light + (dark - light) * (k - 1) / 8).tolist())
        label = r"twentieths of the belief about $\Phi(f)$" if k == 5 else None
        axis.fill_between(line, ndtr(mean - reach), ndtr(mean + reach), color=colour, lw=0, label=label)


def _mark(axis: Axes, member: int, place: float, height: float, label: str | None = None) -> None:
    colour, shape = _look(member)
    size = 18 if shape == "*" else 7
    axis.plot(
        [place], [height], shape, color=colour, mec="white", ms=size, clip_on=False, zorder=5, label=label
    )


def _answers_at_the_rim(axis: Axes, belief: Belief) -> None:
    """Yes answers as ticks at the top, no answers at the bottom."""
    places = belief.data.points[belief.data.first, 0]
    yes = belief.data.signs > 0
    for chosen, height, label in ((yes, 0.97, "answered yes (top)"), (~yes, 0.03, "answered no (bottom)")):
        heights = [height] * int(chosen.sum())
        colour = _INK if height > 0.5 else _GREY
        axis.plot(
            places[chosen],
            heights,
            "|",
            color=colour,
            ms=9,
            transform=axis.get_xaxis_transform(),
            label=label,
        )


def _answer_rows(axis: Axes, belief: Belief) -> None:
    """Each answer on a row of its own, the first at the top."""
    data = belief.data
    duels = bool((data.second >= 0).any())
    good, bad = ("won", "lost") if duels else ("yes", "no")
    first, second = (data.points[index.clamp_min(0), 0] for index in (data.first, data.second))
    won = torch.where(data.signs > 0, first, second)
    lost = torch.where(data.signs > 0, second, first)
    alone = data.second < 0
    rows = torch.arange(1, data.n + 1)
    axis.hlines(rows[~alone], first[~alone], second[~alone], color=_GREY, lw=0.9)
    up = ~alone | (data.signs > 0)
    down = ~alone | (data.signs < 0)
    better = torch.where(alone, first, won)
    worse = torch.where(alone, first, lost)
    axis.plot(better[up], rows[up], "o", color=_INK, ms=4.5, label=good)
    axis.plot(worse[down], rows[down], "o", mfc="white", mec=_INK, ms=4.5, label=bad)
    axis.set(ylabel="answers", ylim=(data.n + 0.8, 0.2), yticks=())


def _score(axis: Axes, line: Tensor, curves: dict[int, Tensor], points: Tensor, several: bool) -> None:
    top = max(float(values.max()) for values in curves.values())
    low = min(float(values.min()) for values in curves.values())
    middle = min(float(values.median()) for values in curves.values())
    for member, values in curves.items():
        axis.plot(line, values, color=_look(member)[0], lw=1.5)
        nearest = int((line - points[member, 0]).abs().argmin())
        _mark(axis, member, points[member, 0].item(), float(values[nearest]))
    low = max(low, top - 3 * (top - middle))
    axis.set(ylabel="score as one\npoint moves" if several else "score")
    axis.set_ylim(low - 0.05 * (top - low), top + 0.12 * (top - low))


def _other_seeds(axis: Axes, others: Iterable[Tensor]) -> None:
    for row, points in enumerate(others, 1):
        if len(points) > 1:
            axis.hlines(row, float(points.min()), float(points.max()), color=_GREY, lw=0.6)
        for member, place in enumerate(points[:, 0].tolist()):
            colour, shape = _look(member)
            size = 8 if shape == "*" else 5
            axis.plot(place, row, shape, color=colour, mec="white", mew=0.4, ms=size, clip_on=False)
    axis.set(ylabel="with other\nseeds", yticks=(), ylim=(_OTHERS + 0.8, 0.2))
