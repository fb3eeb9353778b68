"""Effect sizes: how much better one rule is than another."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Real

from askwise.bench.estimates import (
    Estimate,
    Interval,
    Pairs,
    bounds,
    check_bootstraps,
    drawn_means,
    resampled_counts,
)
from askwise.bench.mannwhitney import statistics
from askwise.bench.ranking import Scores, measures
from askwise.errors import Refused

Statistic = Callable[..., Any]
"""Of replicates, along an axis: ``np.mean`` or ``np.median``."""


def superiority(
    scores: Scores, bootstraps: int = 2000, seed: int = 0, of: Literal["final", "auc"] = "final"
) -> Pairs:
    r"""The probability that a run of one rule beats a run of another, on a function drawn from these.

    .. math:: \frac1F \sum_f P(X_f > Y_f) + \tfrac12 P(X_f = Y_f) = \frac1F \sum_f \frac{U_f}{n m}

    with U the Mann-Whitney statistic; one half means neither is better.  ``of="auc"`` compares means over
    iterations instead of final scores.

    The intervals are bootstrap percentiles.  For these functions, replicates are resampled within each rule
    and function; for functions like these, functions are resampled first, and all rules keep theirs together.
    Accuracy: with normal scores on 10 functions and 5 to 40 replicates, those for these functions covered the
    truth in 94 % of simulations.  With functions drawn, too, the noise of replicates counts twice (functions
    differ by it, and it is resampled), so that intervals are too wide rather than too narrow.
    """
    if of not in ("final", "auc"):
        raise Refused("of", "be 'final' or 'auc'", repr(of), "Choose one of them.")
    check_bootstraps(bootstraps)
    final, auc = measures(scores)
    samples = final if of == "final" else auc
    sizes, source = [sample.shape[1] for sample in samples], np.random.default_rng(seed)
    pool = np.empty((bootstraps, len(samples[0]), len(sizes), len(sizes)))
    wins = np.zeros((len(sizes), len(sizes)))  # sums of halves are exact; one division at the end
    for place, values in enumerate(np.concatenate(samples, axis=1)):  # one function, rules side by side
        wins += statistics(values, sizes, np.ones(len(values)))
        pool[:, place] = statistics(values, sizes, resampled_counts(sizes, bootstraps, source))
    pairs = np.outer(sizes, sizes)
    pool /= pairs
    several = min(sizes) > 1, len(samples[0]) > 1
    redrawn = pool.mean(1), drawn_means(pool, source)
    intervals = (bounds(one, known) for one, known in zip(redrawn, several, strict=True))
    return Pairs(tuple(scores), wins / (len(samples[0]) * pairs), *intervals)


@dataclass(frozen=True, eq=False)
class Averages:
    """Of several rules, means over functions of the means or medians of replicates; and their differences."""

    each: dict[str, Estimate]
    differences: Pairs
    """By how much the rule of the row exceeds that of the column; intervals without zero are significant."""


def averages(
    measured: Mapping[str, Real[np.ndarray, "function _"]],
    statistic: Statistic = np.mean,
    bootstraps: int = 2000,
    seed: int = 0,
) -> Averages:
    """Means over functions of the means (or medians) of the replicates, and differences between rules.

    Differences are taken function by function, so that functions on which all rules do badly do not blur a
    comparison.  The intervals are bootstrap percentiles, as those of :func:`superiority`; infinite for a
    single replicate, or for functions like a single one.

    >>> found = averages({"a": np.full((2, 5), 3.0), "b": np.ones((2, 5))})
    >>> found.differences.of("a", "b").fixed
    Interval(mean=2.0, low=2.0, high=2.0)
    """
    check_bootstraps(bootstraps)
    source, names = np.random.default_rng(seed), tuple(measured)
    centres = np.stack([statistic(measured[name], axis=-1) for name in names], axis=-1)
    pool = np.empty((bootstraps, *centres.shape))
    for column, name in enumerate(names):
        for place, values in enumerate(measured[name]):
            again = source.integers(len(values), size=(bootstraps, len(values)))
            pool[:, place, column] = statistic(values[again], axis=-1)
    several = min(values.shape[1] for values in measured.values()) > 1, len(centres) > 1
    means, redrawn = centres.mean(0), (pool.mean(1), drawn_means(pool, source))
    fixed, drawn = (bounds(one, known) for one, known in zip(redrawn, several, strict=True))
    each = {
        name: Estimate(*(Interval(float(means[at]), *map(float, part[:, at])) for part in (fixed, drawn)))
        for at, name in enumerate(names)
    }
    between = (bounds(_minus(one), known) for one, known in zip(redrawn, several, strict=True))
    return Averages(each, Pairs(names, _minus(means), *between))


def _minus(values: Float[np.ndarray, "*b rule"]) -> Float[np.ndarray, "*b rule rule"]:
    return values[..., :, None] - values[..., None, :]
