"""The Maximally Uncertain Challenge, the paper's rule for duels and batches."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from askwise.belief import Belief
from askwise.challengers import Pairs, best_challengers
from askwise.rules.base import Asks, Rule, challenge
from askwise.search import Search
from askwise.uncertainty import epistemic_variance, log_epistemic_variance

__all__ = ["MaximallyUncertainChallenge"]


@dataclass(frozen=True)
class MaximallyUncertainChallenge(Rule):
    r"""Pit the likely best point against those whose duels we can least foresee.

    .. math::

        x_1 &= \arg\max_x \mu_f(x) \\
        (x_2, \dots, x_m) &= \arg\max \sum_{i < j} \mathbb V[\Phi(f(x_i) - f(x_j))]

    For a duel the second is :math:`\arg\max_x \mathbb V[\Phi(f(x_1) - f(x))]`, searched on its
    logarithm; it is never the champion itself, whose duel with itself has variance zero.  In large
    batches members may coincide, since the sum ignores that duels are correlated: they are asked
    as they are, and ``muc_joint`` does better.
    """

    key = "muc"
    title = "Maximally Uncertain Challenge"
    asks = frozenset({Asks.DUEL, Asks.BATCH})
    source = "Fauvel & Chalk (2021), sections 4.2 and 4.3"
    cost = "a search of the mean, and one of mean and variance in m - 1 points"

    def ask(self, belief: Belief, m: int, search: Search) -> Float[Tensor, "*lane m d"]:
        """The champion and its challengers."""
        champion = search.champion(belief)
        if m == 2:
            return challenge(champion, belief, search, self.log_score)
        return torch.cat([champion, best_challengers(belief, champion, m, search, self.total)], -2)

    def score(self, mean: Tensor, var: Tensor) -> Tensor:
        """Doubt about a duel, from mean and variance of the difference."""
        return epistemic_variance(mean, var)

    def log_score(self, mean: Tensor, var: Tensor) -> Tensor:
        """Its logarithm, with a slope where it is nil."""
        return log_epistemic_variance(mean, var)

    def total(self, pairs: Pairs) -> Tensor:
        """Sum of the doubts about all duels in a batch."""
        return pairs.doubt.sum((-2, -1)) / 2
