"""Averages over functions with two intervals: for these functions, and for functions like these."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Real

from askwise.errors import Refused

_TAIL = 0.025  # on each side of a 95 % interval


@dataclass(frozen=True)
class Interval:
    """A mean and its 95 % confidence interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Estimate:
    """A mean over functions with its interval for these functions, and that for functions like these."""

    fixed: Interval
    """The functions are fixed: replicates are resampled."""
    drawn: Interval
    """The functions are a sample of others like them: functions are resampled, then their replicates."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """How the rule of the row compares with that of the column: means over functions and 95 % intervals."""

    rules: tuple[str, ...]
    mean: Float[np.ndarray, "rule rule"]
    fixed: Float[np.ndarray, "2 rule rule"]
    """Lower and upper ends, for these functions."""
    drawn: Float[np.ndarray, "2 rule rule"]
    """Lower and upper ends, for functions like these."""

    def of(self, rule: str, other: str) -> Estimate:
        """One rule compared with another."""
        row, column = self.rules.index(rule), self.rules.index(other)
        mean, ends = float(self.mean[row, column]), (self.fixed[:, row, column], self.drawn[:, row, column])
        return Estimate(*(Interval(mean, float(low), float(high)) for low, high in ends))


def check_bootstraps(bootstraps: int) -> None:
    """Refuse anything but a whole number from 1."""
    if isinstance(bootstraps, bool) or not isinstance(bootstraps, int) or bootstraps < 1:
        raise Refused("bootstraps", "be a whole number from 1", repr(bootstraps), "2000 is usual.")


def resampled_counts(
    sizes: Sequence[int], bootstraps: int, source: np.random.Generator
) -> Int[np.ndarray, "bootstrap run"]:
    """How often each run is drawn if the runs of each rule are resampled; rules side by side."""
    counts = [source.multinomial(n, np.full(n, 1 / n), bootstraps) for n in sizes]
    return np.concatenate(counts, axis=1)


def drawn_means(
    pool: Real[np.ndarray, "bootstrap function *rest"], source: np.random.Generator
) -> Float[np.ndarray, "bootstrap *rest"]:
    """Means over functions that are drawn with replacement, each with replicates resampled anew.

    Args:
        pool: a statistic of each function, from several resamples of its replicates.
        source: of the functions and resamples drawn.
    """
    count, functions = pool.shape[:2]
    total = np.zeros((count, *pool.shape[2:]))
    for _ in range(functions):
        total += pool[source.integers(count, size=count), source.integers(functions, size=count)]
    return total / functions


def bounds(resampled: Float[np.ndarray, "bootstrap *rest"], known: bool) -> Float[np.ndarray, "2 *rest"]:
    """The percentiles between which 95 % of the resamples lie; infinite if nothing is ``known`` of others."""
    if known:
        return np.quantile(resampled, (_TAIL, 1 - _TAIL), axis=0)
    shape = resampled.shape[1:]
    return np.stack([np.full(shape, -np.inf), np.full(shape, np.inf)])
