"""Expected improvement over the best posterior mean of the queried points."""

import torch

from askwise.numerics import Sloped, log_expected_improvement, mixed_expectation
from askwise.rules.base import Asks, Belief, Points, Rule, Search, incumbent


class ExpectedImprovement(Rule):
    r"""Pit the best queried point against the one expected to improve on its mean the most.

    .. math:: x_1 = \arg\max_{x \in \mathcal X_t} \mu_f(x), \qquad
        x_2 = \arg\max_x \; \mathbb E\big[(f(x) - \mu_f(x_1))_+\big]

    As if :math:`f(x_1)` were known.  Near :math:`x_1` the mean is high and f uncertain, so :math:`x_2` is
    often at or next to :math:`x_1`, a duel with little or no information: a known weakness of the rule
    (Nielsen et al., 2015).  Such duels are asked.
    """

    key, title = "ei", "Expected improvement"
    asks = frozenset({Asks.DUEL})
    source = "Brochu, Cora & de Freitas (2010); Fauvel & Chalk (2021), supplement, table 1"
    cost = "one search of mean and variance"

    log_score = staticmethod(log_expected_improvement)  # from the mean above the bar and the variance of f

    def ask(self, belief: Belief, m: int, search: Search) -> Points:
        """The best queried point and its challenger."""
        best = incumbent(belief, search)
        bar = belief.mean(best)

        formula = Sloped(
            lambda mean, var: self.log_score(mean - bar, var),
            lambda mean, var: log_expected_improvement.with_slopes(mean - bar, var),
        )
        mixed = mixed_expectation(formula)
        score = belief.predictive.of_utility.score(formula, log=True, mixed=mixed)
        return torch.cat([best, search.argmax(score)], -2)
