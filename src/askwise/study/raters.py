"""What is learned of the people who answer: how often they lapse, how noisy they are, how they differ."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from askwise.model import Belief, Fitted, Observer, infer_shares

_SIDES = 1.96  # deviations on either side of an estimate, for 95%
SHARES = (0.2, 0.4, 0.6, 0.8, 0.95)
"""Shares of variance of one's own, all equally likely, that are weighed against none."""
Interval = tuple[float, float]


@dataclass(frozen=True)
class Estimate:
    """A number that was learned, with an interval of 95%; none where it was assumed."""

    value: float
    interval: Interval | None = None


@dataclass(frozen=True)
class Rater:
    """One of the people, or all of them where they share a taste."""

    name: str | None
    answers: int
    lapse: Estimate
    """Share of answers that are given without looking."""
    noise: Estimate
    """Deviation of the noise in their answers; 1 is what is typical."""


@dataclass(frozen=True)
class Raters:
    """What is known of the people."""

    each: list[Rater]
    share: Estimate | None
    """Share of a person's utility that is their own, of a population study with two people or more."""
    slopes: list[Estimate] | None
    """How the logarithm of the noise changes over the range of each coordinate, if that is learned."""
    margin: Estimate | None = None
    """The difference that people need to feel to decide, in noises of an answer, if there are ties."""


def raters(
    names: Sequence[str | None],
    counts: Sequence[int],
    fitted: Fitted,
    learn: Sequence[str],
    margin: Estimate | None = None,
) -> Raters:
    """Estimates of what was learned; intervals are those of a normal logit or logarithm."""
    observer, deviation = fitted.observer, fitted.deviation
    assert observer is not None
    found = _estimates(observer, learn, deviation)
    lapses = found.get("lapse") or [Estimate(value) for value in observer.lapse.tolist()]
    noises = found.get("noise") or [Estimate(value) for value in observer.noise.tolist()]
    each = [Rater(*one) for one in zip(names, counts, lapses, noises, strict=True)]
    return Raters(each, found["share"][0] if "share" in found else None, found.get("slopes"), margin)


def _estimates(
    observer: Observer, learn: Sequence[str], deviation: torch.Tensor | None
) -> dict[str, list[Estimate]]:
    read = {"lapse": _rate, "share": _rate, "noise": math.exp, "slopes": float}
    sizes = observer.sizes(learn)  # type: ignore[arg-type]
    values = observer.free(learn).split(sizes, -1) if learn else ()  # type: ignore[arg-type]
    spreads = deviation.split(sizes, -1) if deviation is not None else [None] * len(sizes)
    found: dict[str, list[Estimate]] = {}
    for name, value, spread in zip(learn, values, spreads, strict=True):
        sides = [0.0] * len(value) if spread is None else (_SIDES * spread).tolist()
        found[name] = [
            Estimate(read[name](middle), (read[name](middle - side), read[name](middle + side)))
            for middle, side in zip(value.tolist(), sides, strict=True)
        ]
    return found


def _rate(logit: float) -> float:
    return 1 / (1 + math.exp(-logit))


def disagreement(belief: Belief) -> float:
    """Log likelihood ratio of tastes that differ, to any of the shares above, to one taste of all.

    ``belief`` is about answers with raters, under one taste; its kernel was learned under that, too, which
    favours it.
    """
    evidence = infer_shares(belief, [0.0, *SHARES])
    return float(evidence[1:].logsumexp(0) - math.log(len(SHARES)) - evidence[0])
