"""The maximum of a draw against the point whose duel with it is most uncertain."""

from askwise.numerics import log_epistemic_variance, mixed_log_variance
from askwise.rules.base import Asks, Belief, Points, Rule, Search, challenge, sampled_maxima


class DuelThompson(Rule):
    r"""Pit the maximum of one draw of f against the point whose duel with it is most uncertain.

    .. math:: x_1 = \arg\max_x \tilde f(x), \quad \tilde f \sim p(f \mid \mathscr D), \qquad
        x_2 = \arg\max_x \mathbb V[\Phi(f(x) - f(x_1))]

    With the value function instead of Gonzalez' soft Copeland score, as in the paper.  A duel of a point
    with itself has variance zero and is never asked.
    """

    key, title = "duel_thompson", "Duel Thompson sampling"
    asks = frozenset({Asks.DUEL})
    source = "Gonzalez, Dai, Damianou & Lawrence (2017); Fauvel & Chalk (2021), supplement, table 1"
    cost = "one draw and its search, and one search of mean and variance"

    log_score = staticmethod(log_epistemic_variance)  # from mean and variance of the difference

    def ask(self, belief: Belief, m: int, search: Search) -> Points:
        """The maximum of a draw and its challenger."""
        first = sampled_maxima(belief, 1, search)
        return challenge(first, belief, search, self.log_score, log=True, mixed=mixed_log_variance)
