"""Ranking of rules over many functions by significant wins and Borda scores, as in Fauvel & Chalk (2021).

Larger scores are better.  Effect sizes, which such a ranking hides, are in :mod:`askwise.bench.effects`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from jaxtyping import Bool, Float, Int, Real

from askwise.bench.estimates import check_bootstraps, drawn_means, resampled_counts
from askwise.bench.mannwhitney import p_values
from askwise.errors import Refused

Scores = Mapping[str, Real[np.ndarray, "function _ iteration"]]
Measured = Float[np.ndarray, "function _"]
Wins = Bool[np.ndarray, "function rule rule"]
BOOTSTRAPS = 200  # of Borda scores: their deviations have an error of 5 %


@dataclass(frozen=True)
class Row:
    """The place of one rule; rules with equal Borda scores share the best rank (1, 1, 3)."""

    rule: str
    rank: int
    borda: int


@dataclass(frozen=True, eq=False)
class Table:
    """A ranking; in every array the rules are in the order of ``rows``, best first.

    ``wins_final`` and ``wins_auc``: the fraction of functions on which the rule of the row beats that of the
    column, by final score and by the mean of all scores.
    """

    rows: tuple[Row, ...]
    wins_final: Float[np.ndarray, "rule rule"]
    wins_auc: Float[np.ndarray, "rule rule"]
    borda_by_function: Int[np.ndarray, "function rule"]
    smallest_p: float
    """The smallest p-value that a test of so many replicates can have, whatever their scores."""
    alpha: float
    """Significance level of each test."""

    @property
    def undecidable(self) -> str:
        """Why no rule can beat another at this level, in words; empty if one can."""
        if self.smallest_p <= self.alpha:
            return ""
        found = f"whatever the scores, p is at least {self.smallest_p:.2g}, above the level {self.alpha:g}"
        advice = f"Run {enough_replicates(self.alpha)} replicates of each rule, or take a higher level."
        return f"No rule can beat another with so few replicates: {found}. These ranks say nothing. {advice}"

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules, best first; ties keep the order of the input."""
        return tuple(row.rule for row in self.rows)


def rank(scores: Scores, alpha: float = 5e-4) -> Table:
    r"""The rules ranked by Borda score, summed over functions.

    On each function a rule beats another if a one-sided Mann-Whitney test of their replicates (normal
    approximation, corrected for ties and continuity) has :math:`p \le \alpha`.  With :math:`w_i` the number
    of rules that i beats by final score, and :math:`v_i` the number of rules with :math:`w_j = w_i` that
    it beats by the mean over iterations (the area under the curve),

    .. math:: \text{Borda}_i = \#\{j : w_j < w_i\} + \#\{j : w_j = w_i, \; v_j < v_i\}

    Losses do not count.  Source: Fauvel & Chalk (2021), section 5, after Dewancker et al. (2016).

    Args:
        scores: for each rule an array [function, replicate, iteration]; only the numbers of replicates may
            differ.
        alpha: significance level of each test.

    >>> slow, fast = np.tile([0.0, 1.0], (1, 20, 1)), np.ones((1, 20, 2))
    >>> rank({"slow": slow, "fast": fast, "never": np.zeros((1, 20, 2))}).rows
    (Row(rule='fast', rank=1, borda=2), Row(rule='slow', rank=2, borda=1), Row(rule='never', rank=3, borda=0))
    """
    return ranks_at(scores, (alpha,))[alpha]


def ranks_at(scores: Scores, alphas: Iterable[float]) -> dict[float, Table]:
    """The ranking at each of these significance levels."""
    levels = _checked(alphas)
    final, auc = measures(scores)
    p_final, p_auc = _p_values(final), _p_values(auc)
    counts = [values.shape[-1] for values in final]
    least = min(smallest_p(n, m) for n, m in permutations(counts, 2))
    return {alpha: _table(tuple(scores), p_final <= alpha, p_auc <= alpha, least, alpha) for alpha in levels}


@dataclass(frozen=True, eq=False)
class Spread:
    """Borda scores of resampled runs: how far chance moves them."""

    rules: tuple[str, ...]
    fixed: Float[np.ndarray, "bootstrap rule"]
    """Totals with the replicates of each function resampled."""
    drawn: Float[np.ndarray, "bootstrap rule"]
    """Totals with the functions resampled, too."""

    def error(self, rule: str) -> float:
        """Standard error of the total of a rule on these functions."""
        return float(self.fixed[:, self.rules.index(rule)].std(ddof=1))

    def errors_between(self, rule: str, other: str) -> tuple[float, float]:
        """Standard errors of the difference of two totals: on these functions, on functions like these."""
        row, column = self.rules.index(rule), self.rules.index(other)
        fixed, drawn = ((part[:, row] - part[:, column]).std(ddof=1) for part in (self.fixed, self.drawn))
        return float(fixed), float(drawn)


def spreads_at(
    scores: Scores, alphas: Iterable[float], bootstraps: int = BOOTSTRAPS, seed: int = 0
) -> dict[float, Spread]:
    """Borda scores of resampled runs, at each of these significance levels.

    The replicates of each rule and function are drawn with replacement, as many as there are, and ranked
    again.  Resampling adds to the noise that the runs have already, so that the resampled scores have the
    right spread around another mean: their deviations are standard errors, their percentiles no intervals.
    Accuracy: on three of our experiments, resamples of half of the replicates deviated by 1.07 to 1.18 times
    as much as the halves themselves do, in the mean over rules: the errors are rather too large, and
    clearly so for rules that hardly win.
    """
    check_bootstraps(bootstraps)
    levels, (final, auc) = _checked(alphas), measures(scores)
    sizes, source = [values.shape[1] for values in final], np.random.default_rng(seed)
    both = zip(np.concatenate(final, axis=1), np.concatenate(auc, axis=1), strict=True)
    borda = {alpha: np.empty((bootstraps, len(final[0]), len(sizes))) for alpha in levels}
    for place, measured in enumerate(both):
        weights = resampled_counts(sizes, bootstraps, source)
        p_final, p_auc = (p_values(values, sizes, weights) for values in measured)
        for alpha, held in borda.items():
            held[:, place] = _borda(p_final <= alpha, p_auc <= alpha)
    count = len(final[0])
    return {
        alpha: Spread(tuple(scores), held.sum(1), count * drawn_means(held, source))
        for alpha, held in borda.items()
    }


def smallest_p(n: int, m: int) -> float:
    """The smallest p-value of n replicates against m: each is better, and those of a rule are equal.

    Equal scores of a rule leave no doubt about ranks, so the correction for ties makes p smaller still than
    that of different scores.
    """
    return _p(np.ones(n), np.zeros(m))


def enough_replicates(alpha: float) -> int:
    """The smallest number of replicates of two rules with which different scores can be significant."""
    count = 2
    while _p(np.arange(count) + count, np.arange(count)) > alpha:
        count += 1
    return count


def measures(scores: Scores) -> tuple[list[Measured], list[Measured]]:
    """For each rule the final scores and the means over iterations; refuses scores that do not match."""
    if not isinstance(scores, Mapping) or len(scores) < 2:
        got = sorted(scores) if isinstance(scores, Mapping) else type(scores).__name__
        raise Refused("scores", "be of two rules or more", got, "Give a dictionary of arrays.")
    # one memory layout, so that equal trajectories have equal means to the last bit
    arrays = {rule: np.array(values, dtype=float, order="C") for rule, values in scores.items()}
    shapes = {rule: array.shape for rule, array in arrays.items()}
    for rule, array in arrays.items():
        if array.ndim != 3 or array.size == 0:
            shape = f"shape {array.shape}"
            advice = "Stack replicates, then functions."
            raise Refused(f"scores of {rule}", "be an array [function, replicate, iteration]", shape, advice)
        if not np.isfinite(array).all():
            bad = tuple(np.argwhere(~np.isfinite(array))[0].tolist())
            advice = "Leave that function out for all rules, or run it again."
            raise Refused(f"scores of {rule}", "be finite", f"{array[bad]} at {bad}", advice)
    if len({(shape[0], shape[2]) for shape in shapes.values()}) > 1:
        same = "have the same functions and iterations for every rule"
        raise Refused("scores", same, f"shapes {shapes}", "Keep the functions that all rules were run on.")
    return [array[..., -1] for array in arrays.values()], [array.mean(-1) for array in arrays.values()]


def _checked(alphas: Iterable[float]) -> tuple[float, ...]:
    """The significance levels, if they are possible."""
    levels = tuple(alphas)
    for alpha in levels:
        if not 0 < alpha < 1:
            raise Refused("alpha", "lie between 0 and 1", repr(alpha), "The usual level is 5e-4.")
    return levels


def _p_values(samples: list[Measured]) -> Float[np.ndarray, "function rule rule"]:
    """One-sided p-values of the hypothesis that the rule of the row is not better than that of the column."""
    sizes = [sample.shape[1] for sample in samples]
    values = np.concatenate(samples, axis=1)
    return np.stack([p_values(row, sizes, np.ones(row.shape)) for row in values])


def _p(better: np.ndarray, other: np.ndarray) -> float:
    """The p-value of the hypothesis that the first is not better than the other."""
    sizes, values = (len(better), len(other)), np.concatenate([better, other])
    return float(p_values(values, sizes, np.ones(values.shape))[0, 1])


def _table(rules: tuple[str, ...], final: Wins, auc: Wins, smallest: float, alpha: float) -> Table:
    borda = _borda(final, auc)
    total = borda.sum(0)
    order = np.argsort(-total, kind="stable")
    rows = tuple(Row(rules[i], 1 + int((total > total[i]).sum()), int(total[i])) for i in order)
    square = np.ix_(order, order)
    return Table(rows, final.mean(0)[square], auc.mean(0)[square], borda[:, order], smallest, alpha)


def _borda(final: Wins, auc: Wins) -> Int[np.ndarray, "function rule"]:
    wins = final.sum(-1)
    tied = wins[:, :, None] == wins[:, None, :]
    broken = (auc & tied).sum(-1)
    ahead = (wins[:, :, None] > wins[:, None, :]) | (tied & (broken[:, :, None] > broken[:, None, :]))
    return ahead.sum(-1)
