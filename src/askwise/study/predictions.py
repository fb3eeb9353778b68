"""What the model says of given settings: how good they are, which is better, which parameters matter."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from askwise.model import Belief, paths
from askwise.numerics import generator, ndtr, one_thread, sobol
from askwise.rules import latent_level
from askwise.space import Setting, Space
from askwise.study.plan import Plan
from askwise.study.raters import Estimate, Interval

_SIDES = 1.96  # deviations on either side, for 95%
_DRAWS, _DESIGN = 64, 512  # draws of f, and settings at which each parameter is varied


@dataclass(frozen=True)
class Prediction:
    """What is known of a setting."""

    params: dict[str, Any]
    mean: float
    """Posterior mean of f, in units of the noise of one answer."""
    std: float
    interval: Interval
    """95% of the posterior of f."""
    probability: float
    """That it succeeds (yes/no), or that it is preferred to the recommended setting."""
    probability_interval: Interval
    """The same for the values of f at the ends of 95% of its posterior."""
    above_level: float | None = None
    """That it works at least as often as the level of the study; None in a study without one."""


@dataclass(frozen=True)
class Comparison:
    """Which of two settings is better."""

    probability: float
    """That the first is preferred, or succeeds more often, with the noise of an answer."""
    better: float
    """That the first is really better: the probability without that noise."""
    difference: float
    """Posterior mean of f of the first minus that of the second."""
    interval: Interval
    """95% of the posterior of that difference."""


@one_thread()
def predictions(
    belief: Belief,
    plan: Plan,
    points: Float[Tensor, "k d"],
    settings: Sequence[Setting],
    best: Tensor | None = None,
    *,
    level: float | None = None,
) -> list[Prediction]:
    """What is known of each setting; ``best``: where settings are compared, the point of the recommended one.

    ``level``: a success rate to be reached, by default that of the study.
    """
    (mean, var), rival = belief.moments(points), None if best is None else best.expand_as(points)
    rate = plan.level if level is None else level
    above = None if rate is None else belief.probability_above(points, latent_level(rate))
    over, spread = belief.in_noise(points, rival)
    chance = belief.success_probability(points, rival)
    sides = [ndtr(over + side * spread.sqrt()) for side in (-_SIDES, _SIDES)]
    return [
        Prediction(
            dict(setting),
            float(mean[k]),
            float(var[k].sqrt()),
            _interval(float(mean[k]), float(var[k].sqrt())),
            float(chance[k]),
            (float(sides[0][k]), float(sides[1][k])),
            None if above is None else float(above[k]),
        )
        for k, setting in enumerate(settings)
    ]


@one_thread()
def comparison(belief: Belief, first: Float[Tensor, "1 d"], second: Float[Tensor, "1 d"]) -> Comparison:
    """Which of two settings is better."""
    mean, var = (float(part) for part in belief.difference(first, second))
    deviation = math.sqrt(max(var, 0.0))
    better, chance = belief.probability_of_better(first, second), belief.success_probability(first, second)
    return Comparison(float(chance), float(better), mean, _interval(mean, deviation))


@one_thread()
def importance(belief: Belief, space: Space, seed: int, context: Setting | None) -> dict[str, Estimate]:
    r"""The share of the variance of f over the space that each parameter takes part in, most first.

    .. math:: S_k = \mathbb E_{x, x'_k} [f(x) - f(x'_k, x_{-k})]^2 / (2 \mathbb V[f])

    Sobol's total effect, by Jansen's estimator at 512 pairs of settings, for 64 draws of f: the median, and
    an interval of 95%.  Shares add up to more than one where parameters act together.  Source: Saltelli et
    al. (2010), Comput. Phys. Commun. 181, table 2.
    """
    domain, owners = space.domain(context), space.owners
    names = [name for name in dict.fromkeys(owners) if name not in space.contexts]
    one, other = sobol(2 * len(owners), _DESIGN).chunk(2, -1)
    swapped = [torch.where(torch.tensor([owner == name for owner in owners]), other, one) for name in names]
    points = torch.cat([one, *swapped])
    if domain is not None:
        points = domain.snapped(domain.dealt(points))
    drawn = paths.draw_at(points, belief, _DRAWS, generator("askwise importance", seed, "draws"))
    base, *varied = drawn.split(len(one), -1)
    total = base.var(-1).clamp_min(1e-12)
    shares = {
        name: (base - part).square().mean(-1) / (2 * total) for name, part in zip(names, varied, strict=True)
    }
    sides = torch.tensor([0.025, 0.5, 0.975], dtype=torch.float64)
    found = {name: share.clamp(0, 1).quantile(sides).tolist() for name, share in shares.items()}
    ordered = sorted(found.items(), key=lambda item: -item[1][1])
    return {name: Estimate(middle, (low, high)) for name, (low, middle, high) in ordered}


def _interval(mean: float, deviation: float) -> Interval:
    return mean - _SIDES * deviation, mean + _SIDES * deviation
