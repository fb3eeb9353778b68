"""Maximally Uncertain Challenge, the paper's rule for duels and batches."""

import torch
from torch import Tensor

from askwise.numerics import epistemic_variance, log_epistemic_variance, mixed_log_variance
from askwise.rules.base import Asks, Belief, Points, Rule, Search, challenge
from askwise.search import Pairs, best_challengers


class MaximallyUncertainChallenge(Rule):
    r"""Pit the champion against challengers whose duels have the highest epistemic variance.

    .. math::

        x_1 &= \arg\max_x \mu_f(x) \\
        (x_2, \dots, x_m) &= \arg\max \sum_{i < j} \mathbb V[\Phi(f(x_i) - f(x_j))]

    For a duel the second is :math:`\arg\max_x \mathbb V[\Phi(f(x_1) - f(x))]`, searched on its logarithm;
    it is never the champion, whose duel with itself has variance zero.  Large batches may contain duplicates,
    since the sum ignores that duels are correlated; duplicates are asked.  ``muc_joint`` does better.
    """

    key, title = "muc", "Maximally Uncertain Challenge"
    asks = frozenset({Asks.DUEL, Asks.BATCH})
    source = "Fauvel & Chalk (2021), sections 4.2 and 4.3"
    cost = "a search of the mean, and one of mean and variance in m - 1 points"

    score = staticmethod(epistemic_variance)  # from mean and variance of the difference
    log_score = staticmethod(log_epistemic_variance)  # its gradient is useful where the score underflows

    def ask(self, belief: Belief, m: int, search: Search) -> Points:
        """The champion and its challengers."""
        champion = search.champion(belief)
        if m == 2:
            return challenge(champion, belief, search, self.log_score, log=True, mixed=mixed_log_variance)
        return torch.cat([champion, best_challengers(belief, champion, m, search, self.total)], -2)

    def total(self, pairs: Pairs) -> Tensor:
        """Sum of the epistemic variances of all duels in a batch."""
        return pairs.epistemic.sum((-2, -1)) / 2
