"""Epistemic and aleatoric uncertainty, and the two credible bounds, of which one separates them."""

import math
from typing import Any

import torch
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from torch import Tensor

from askwise.model import Belief
from askwise.numerics import (
    aleatoric_entropy,
    aleatoric_variance,
    binary_entropy,
    deviation,
    epistemic_variance,
    mutual_information,
    ndtr,
    success_probability,
)
from askwise.plots.style import BLUE, GREY, INK, RED, STYLE, UNSURE, band, legend_below
from askwise.plots.trace import asked, grid
from askwise.rules.ucb_f import UpperCredibleBoundF
from askwise.rules.ucb_phi import UpperCredibleBoundPhi


@rc_context(STYLE)
def decomposition_maps() -> Figure:
    """Uncertainty about an answer and its two parts, over mean and variance of f (figure 1 of the paper)."""
    mean = torch.linspace(-8, 8, 129, dtype=torch.float64)
    var = torch.linspace(0, 10, 101, dtype=torch.float64)
    m, v = torch.broadcast_tensors(mean, var[:, None])
    total = success_probability(m, v) * success_probability(-m, v)
    by_variance = total, epistemic_variance(m, v), aleatoric_variance(m, v)
    by_entropy = binary_entropy(m / (1 + v).sqrt()), mutual_information(m, v), aleatoric_entropy(m, v)
    names = (
        ("total uncertainty\n$\\mathbb{V}[c]$", r"$H[c]$"),
        ("epistemic: answers reduce it\n$\\mathbb{V}[\\Phi(f)]$", r"$I(c, f)$"),
        ("aleatoric: irreducible\n$\\mathbb{E}[\\mathbb{V}(c\\,|\\,f)]$", r"$\mathbb{E}[H(c\,|\,f)]$"),
    )
    scales = (("variance", 0.25, 0.05), ("entropy (nats)", math.log(2), 0.1))
    figure = Figure(figsize=(9.2, 4.9), layout="constrained")
    axes = figure.subplots(2, 3, sharex=True, sharey=True)
    shape: dict[str, Any] = {"origin": "lower", "extent": (-8.0625, 8.0625, -0.05, 10.05), "aspect": "auto"}
    for place, (maps, (unit, top, step)) in enumerate(zip((by_variance, by_entropy), scales, strict=True)):
        lines = [step * k for k in range(1, round(top / step))]
        look: dict[str, Any] = {"cmap": UNSURE, "vmin": 0, "vmax": top, "interpolation": "bilinear"}
        for axis, values, titles in zip(axes[place], maps, names, strict=True):
            image = axis.imshow(values.numpy(), **shape, **look)
            axis.contour(mean, var, values, levels=lines, colors=INK, linewidths=0.4)
            axis.set(title=titles[place], xlim=(-8, 8), ylim=(0, 10), xticks=(-8, -4, 0, 4, 8))
        bar: dict[str, Any] = {"shrink": 0.9, "pad": 0.015, "ticks": [0, *lines, top], "format": "%.2g"}
        figure.colorbar(image, ax=axes[place], label=unit, **bar)
    figure.supxlabel(r"posterior mean of $f$", fontsize=10)
    figure.supylabel(r"posterior variance of $f$", fontsize=10)
    return figure


@rc_context(STYLE)
def bounds_compared(
    belief: Belief, latent: UpperCredibleBoundF | None = None, observed: UpperCredibleBoundPhi | None = None
) -> Figure:
    """What the credible bound on f asks about, beside the bound on the success rate."""
    x = grid(belief)
    line = x[:, 0]
    rules: list[UpperCredibleBoundF | UpperCredibleBoundPhi]
    rules = [latent or UpperCredibleBoundF(), observed or UpperCredibleBoundPhi()]
    styles = ((r"UCB$_f$", RED, "$f$"), (r"UCB$_\Phi$", BLUE, r"$\Phi(f)$"))
    choices = [asked(belief, rule, 1, 0).points for rule in rules]
    mean, var = belief.moments(x)
    figure = Figure(figsize=(9.2, 6), layout="constrained")
    (rates, values), bounds = figure.subplots(2, 2, sharex=True)
    _ventiles(rates, line, mean, var)
    rates.plot(line, success_probability(mean, var), color=INK, lw=1.6)
    for choice, (name, colour, _) in zip(choices, styles, strict=True):
        rate = belief.success_probability(choice)
        look = {"color": colour, "mec": "white", "ms": 12, "clip_on": False, "zorder": 5}
        rates.plot(choice[:, 0], rate, "X", label=f"{name} asks here", **look)
    rates.set(title=r"$\bf{A}$  chance of a yes, $\Phi(f)$", ylim=(-0.02, 1.02), xlim=(0, 1))
    band(values, line, mean, var)
    _answer_ticks(values, belief)
    values.set_title(r"$\bf{B}$  latent value, $f$")
    panels = zip("CD", bounds, rules, choices, styles, strict=True)
    for letter, axis, rule, choice, (name, colour, what) in panels:
        axis.plot(line, rule.score(mean, var), color=colour, lw=1.6)
        axis.axvline(choice.item(), color=colour, ls="--", lw=1.3, clip_on=False)
        formula = rf"mean + {rule.beta:.3g} $\times$ SD of {what}"
        axis.set(title=rf"$\bf{{{letter}}}$  {name}: {formula}", xlabel="$x$")
    legend_below(figure, (rates, values), 3)
    return figure


def _ventiles(axis: Axes, line: Tensor, mean: Tensor, var: Tensor) -> None:
    """Nested bands between the ventiles of the success rate."""
    light, dark = (torch.tensor(to_rgb(colour)) for colour in ("#eaf3f9", "#5fa3cf"))
    for k in range(1, 10):
        reach = -torch.special.ndtri(torch.tensor(k / 20, dtype=torch.float64)) * deviation(var)
        colour = tuple((light + (dark - light) * (k - 1) / 8).tolist())
        label = r"5% quantiles of $\Phi(f)$" if k == 5 else None
        axis.fill_between(line, ndtr(mean - reach), ndtr(mean + reach), color=colour, lw=0, label=label)


def _answer_ticks(axis: Axes, belief: Belief) -> None:
    """Yes answers as ticks at the top, no answers at the bottom, without ties."""
    places, signs = belief.data.points[belief.data.first, 0], belief.data.signs
    ticks = (1, 0.97, INK, "answered yes (top)"), (-1, 0.03, GREY, "answered no (bottom)")
    for sign, height, colour, label in ticks:
        x, across = places[signs == sign], axis.get_xaxis_transform()
        axis.plot(x, [height] * len(x), "|", color=colour, ms=9, transform=across, label=label)
