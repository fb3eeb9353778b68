r"""Which settings work at least so often: those believed to, those believed not to, and the rest.

The success rate at x is :math:`\Phi(f(x))`, and f is Gaussian there, so the probability that the rate reaches
the level :math:`\lambda` is

.. math:: p(x) = P(\Phi(f(x)) \ge \lambda) = \Phi\big((\mu_f(x) - \Phi^{-1}(\lambda)) / \sigma_f(x)\big)

A setting is inside if p is at least the confidence, outside if 1 - p is, else unclear.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from askwise.errors import Refused
from askwise.model import Belief, noise_variance, paths
from askwise.numerics import generator, one_thread
from askwise.rules import latent_level
from askwise.search import Search
from askwise.space import Domain
from askwise.study.plan import Plan
from askwise.study.predictions import Prediction, predictions
from askwise.study.raters import Estimate

Side = Literal["inside", "outside", "unclear"]
"""Believed to reach the level, believed not to, and neither."""
CONFIDENCE = 0.95
"""Probability from which a setting is inside or outside."""
SETTINGS = 2048
"""Settings by which shares of the space are estimated; all of them, if there are no more."""
_DRAWS, _DRAWN = 256, 1024  # draws of f, and settings at which each is evaluated
_SIDES = 1.959963984540054  # deviations on either side, for 95%
_MOST, _RELATIVE = 0.05, 0.25  # wrong at most: this share of the space, and this part of the smaller side
_APART = 0.1  # distance between the safest settings in some parameter, as a share of its range
UNKNOWN_REGION = "A small region that no question came near would not be known."
"""What no number of answers rules out."""


@dataclass(frozen=True)
class LevelSet:
    """The settings that work at least so often, as far as they are known."""

    level: float
    confidence: float
    inside: Estimate
    """Share of the space that is believed to reach the level: in the unit cube, among allowed settings."""
    outside: Estimate
    """Share that is believed not to."""
    unclear: Estimate
    """The rest.  The intervals of these three are only about the settings of which they are counted; None if
    these are all there are."""
    share: Estimate
    """Share that really reaches the level, by the posterior, with an interval of 95%."""
    misclassified: float
    """Share that is expected to be on the other side, if every setting is put on its likelier one."""
    settings: int
    """Number of settings of which shares are counted."""
    safest: list[Prediction]
    """The settings that reach the level with the highest probability first; no two are close together."""


@dataclass(frozen=True)
class LevelOutlook:
    """What is left to find out in a study with a level."""

    share: float
    """Share of the space that is expected to reach the level."""
    misclassified: float
    """Share that is expected to be on the other side, if every setting is put on its likelier one."""


@dataclass(frozen=True)
class Classified:
    """A setting, and on which side of the level it is."""

    params: dict[str, Any]
    rate: float
    """How often it is expected to work."""
    above_level: float
    """Probability that it works at least as often as the level."""
    side: Side


def side_of(probability: float, confidence: float) -> Side:
    """The side of a setting that reaches the level with this probability."""
    if probability >= confidence:
        return "inside"
    return "outside" if 1 - probability >= confidence else "unclear"


def checked_confidence(value: object) -> float:
    """A probability from which settings are put on a side; more than one half, or they could be on both."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (number and 0.5 < value < 1):  # type: ignore[operator]
        expected = "be a probability above 0.5 and below 1"
        raise Refused("confidence", expected, repr(value), "Write 0.95 for 95%.")
    return float(value)  # type: ignore[arg-type]


@one_thread()
def level_set(
    belief: Belief, plan: Plan, domain: Domain | None, level: float, confidence: float, safest: int
) -> LevelSet:
    """The settings that reach the level, of those spread over the space."""
    points, everything = spread(belief, plan, domain, SETTINGS)
    with torch.no_grad():
        above = belief.probability_above(points, latent_level(level))
    inside, outside = int((above >= confidence).sum()), int((1 - above >= confidence).sum())
    total = len(points)
    return LevelSet(
        level=level,
        confidence=confidence,
        inside=_share(inside, total, everything),
        outside=_share(outside, total, everything),
        unclear=_share(total - inside - outside, total, everything),
        share=_true_share(belief, plan, points[:_DRAWN], level),
        misclassified=_misclassified(above),
        settings=total,
        safest=_safest(belief, plan, points, above, level, safest),
    )


@one_thread()
def classified(
    belief: Belief, plan: Plan, domain: Domain | None, level: float, confidence: float, count: int
) -> list[Classified]:
    """Settings spread over the space, each with its side; all, if there are no more than ``count``."""
    points, _ = spread(belief, plan, domain, count)
    with torch.no_grad():
        rates = belief.success_probability(points).tolist()
        above = belief.probability_above(points, latent_level(level)).tolist()
    each = zip(points, rates, above, strict=True)
    return [
        Classified(plan.space.natural(point), rate, chance, side_of(chance, confidence))
        for point, rate, chance in each
    ]


@one_thread()
def level_outlook(belief: Belief, plan: Plan, domain: Domain | None, level: float) -> LevelOutlook:
    """What is left to find out about this level."""
    points, _ = spread(belief, plan, domain, SETTINGS)
    with torch.no_grad():
        above = belief.probability_above(points, latent_level(level))
    return LevelOutlook(float(above.mean()), _misclassified(above))


def level_hint(look: LevelOutlook, level: float, few: bool) -> str:
    """Whether to go on, in words, and why; ``few``: it rests on few answers.

    Where hardly any setting is on one side, taking all of them for the other costs little of the space; so
    what is misclassified must also be a small part of the smaller side.  That nothing seems to reach the
    level is no reason to stop: the simulated studies in which it seemed so had missed what does.
    """
    smaller = min(look.share, 1 - look.share)
    said = (
        f"{percent(look.share)} of the space is expected to work at least {100 * level:.4g}% of the time, "
        f"and {percent(look.misclassified)} is expected to be taken for the wrong side"
    )
    if look.misclassified >= _MOST or look.misclassified >= _RELATIVE * smaller:
        return f"Go on: {said}."
    if few:
        return f"Go on a little: {said}, but that rests on few answers."
    return f"You may stop: {said}. {UNKNOWN_REGION}"


def level_sentence(level: float, probability: float) -> str:
    """How likely it is that a setting works often enough."""
    return f"That it works at least {100 * level:.4g}% of the time has a probability of {probability:.0%}."


def spread(
    belief: Belief, plan: Plan, domain: Domain | None, count: int
) -> tuple[Float[Tensor, "k d"], bool]:
    """Settings spread evenly over the space, and whether they are all there are."""
    every = None if domain is None else domain.settings(count)
    if every is not None:
        return every, True
    search = Search.around(belief, generator("askwise study", plan.seed, "level"), domain)
    return search.space_filling(count), False


def _misclassified(above: Float[Tensor, " k"]) -> float:
    return float(torch.minimum(above, 1 - above).mean())


def _share(count: int, total: int, everything: bool) -> Estimate:
    """A share with Wilson's interval for independent settings; those here are spread more evenly."""
    share = count / total
    if everything:
        return Estimate(share)
    weight = _SIDES**2 / total
    middle = (share + weight / 2) / (1 + weight)
    reach = _SIDES * math.sqrt(share * (1 - share) / total + weight / (4 * total)) / (1 + weight)
    return Estimate(share, (max(0.0, middle - reach), min(1.0, middle + reach)))


def _true_share(belief: Belief, plan: Plan, points: Float[Tensor, "k d"], level: float) -> Estimate:
    """The share of settings above the level, by draws of f: its mean, and an interval of 95%."""
    source = generator("askwise study", plan.seed, "level share")
    with torch.no_grad():
        drawn = paths.draw_at(points, belief, _DRAWS, source)
        if belief.slopes is not None:
            drawn = drawn / noise_variance(belief.slopes, points).sqrt()
        shares = (drawn >= latent_level(level)).double().mean(-1)
    low, high = shares.quantile(torch.tensor([0.025, 0.975], dtype=shares.dtype)).tolist()
    return Estimate(float(shares.mean()), (low, high))


def _safest(
    belief: Belief,
    plan: Plan,
    points: Float[Tensor, "k d"],
    above: Float[Tensor, " k"],
    level: float,
    count: int,
) -> list[Prediction]:
    """The likeliest settings to reach the level, each at some distance from those before."""
    chosen: list[int] = []
    for place in above.argsort(descending=True, stable=True).tolist():
        if len(chosen) == count:
            break
        if bool(((points[chosen] - points[place]).abs().amax(-1) > _APART).all()):
            chosen.append(place)
    settings = [plan.space.natural(point) for point in points[chosen]]
    return predictions(belief, plan, points[chosen], settings, level=level)


def percent(share: float) -> str:
    """A share in words, with a digit after the point where it is small."""
    return f"{share:.1%}" if share < 0.1 else f"{share:.0%}"
