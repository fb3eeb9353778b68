"""Expected improvement over the best posterior mean."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from askwise.belief import Belief
from askwise.improvement import log_expected_improvement
from askwise.rules.base import Asks, Rule, top_of_data
from askwise.search import Search

__all__ = ["ExpectedImprovement"]


@dataclass(frozen=True)
class ExpectedImprovement(Rule):
    r"""Pit the best point asked about against the one expected to improve on its mean by most.

    .. math:: x_1 = \arg\max_{x \in \mathcal X_t} \mu_f(x), \qquad
        x_2 = \arg\max_x \; \mathbb E\big[(f(x) - \mu_f(x_1))_+\big]

    As if :math:`f(x_1)` were known.  Near :math:`x_1` the mean is high and f uncertain, so
    :math:`x_2` often lies at or beside :math:`x_1`, a duel that tells little or nothing (Nielsen et
    al., 2015).  That is this rule's own fault, and such duels are asked as they come.
    """

    key = "ei"
    title = "Expected improvement"
    asks = frozenset({Asks.DUEL})
    source = "Brochu, Cora & de Freitas (2010); Fauvel & Chalk (2021), supplement, table 1"
    cost = "one search of mean and variance"

    def ask(self, belief: Belief, m: int, search: Search) -> Float[Tensor, "*lane m d"]:
        """The best point asked about and its most promising rival."""
        best = top_of_data(belief, search)
        bar = belief.mean(best)

        def log_improvement(mean: Tensor, var: Tensor) -> Tensor:
            return self.log_score(mean - bar, var)

        return torch.cat([best, search.argmax(belief.view.score(log_improvement))], -2)

    def log_score(self, mean: Tensor, var: Tensor) -> Tensor:
        """Logarithm of the improvement, from the mean above the bar and the variance of f."""
        return log_expected_improvement(mean, var)
