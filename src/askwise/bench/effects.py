"""Effect sizes: how much better one rule is than another."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

from askwise.bench.ranking import Scores, measures
from askwise.errors import Refused

_TAIL = 0.025  # on each side of a 95 % interval


@dataclass(frozen=True, eq=False)
class Superiority:
    """Probability that the rule of the row is better than that of the column, with 95 % intervals."""

    rules: tuple[str, ...]
    matrix: Float[np.ndarray, "rule rule"]
    low: Float[np.ndarray, "rule rule"]
    high: Float[np.ndarray, "rule rule"]


def superiority(
    scores: Scores, bootstraps: int = 2000, seed: int = 0, of: Literal["final", "auc"] = "final"
) -> Superiority:
    r"""The probability that a run of one rule beats a run of another, on a function drawn from these.

    .. math:: \frac1F \sum_f P(X_f > Y_f) + \tfrac12 P(X_f = Y_f) = \frac1F \sum_f \frac{U_f}{n m}

    with U the Mann-Whitney statistic; one half means neither is better.  ``of="auc"`` compares means over
    iterations instead of final scores.

    The intervals are bootstrap percentiles; replicates are resampled within each rule and function.  The
    functions are fixed: the intervals do not extend to others.
    Accuracy: with normal scores on 10 functions and 5 to 40 replicates, they covered the truth in 94 % of
    simulations.
    """
    if of not in ("final", "auc"):
        raise Refused("of", "be 'final' or 'auc'", repr(of), "Choose one of them.")
    if isinstance(bootstraps, bool) or not isinstance(bootstraps, int) or bootstraps < 1:
        raise Refused("bootstraps", "be a whole number from 1", repr(bootstraps), "2000 is usual.")
    final, auc = measures(scores)
    samples = final if of == "final" else auc
    sizes = [sample.shape[1] for sample in samples]
    source = np.random.default_rng(seed)
    pairs = len(samples[0]) * np.outer(sizes, sizes)
    wins = np.zeros((1, len(sizes), len(sizes)))  # sums of halves are exact; one division at the end
    redrawn = np.zeros((bootstraps, len(sizes), len(sizes)))
    for values in np.concatenate(samples, axis=1):  # one function, all rules side by side
        # 1 where the run of the row is better than that of the column, 1/2 where they are equal
        better = (values[:, None] > values) + 0.5 * (values[:, None] == values)
        wins += _wins(better, np.ones((1, len(values))), sizes)
        # how often each run is drawn when the runs of each rule are resampled
        counts = [source.multinomial(n, np.full(n, 1 / n), bootstraps) for n in sizes]
        redrawn += _wins(better, np.concatenate(counts, 1).astype(float), sizes)
    low, high = np.quantile(redrawn / pairs, (_TAIL, 1 - _TAIL), axis=0)
    return Superiority(tuple(scores), wins[0] / pairs, low, high)


def _wins(
    better: Float[np.ndarray, "run run"], weights: Float[np.ndarray, "bootstrap run"], sizes: list[int]
) -> Float[np.ndarray, "bootstrap rule rule"]:
    """The statistic U of every pair of rules, with weighted runs.

    As matrix products: 2000 bootstraps of 9 rules with 40 replicates on 34 functions take 3 s.
    """
    starts = np.cumsum([0, *sizes[:-1]])
    blocks = [slice(begin, begin + n) for begin, n in zip(starts, sizes, strict=True)]
    rows = [np.add.reduceat((weights[:, of] @ better[of]) * weights, starts, axis=1) for of in blocks]
    return np.stack(rows, axis=1)
