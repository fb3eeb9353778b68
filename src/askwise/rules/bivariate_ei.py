"""Expected improvement over the best queried point, whose value is uncertain too."""

from askwise.numerics import log_expected_improvement, mixed_expectation
from askwise.rules.base import Asks, Belief, Points, Rule, Search, challenge, incumbent


class BivariateExpectedImprovement(Rule):
    r"""Pit the best queried point against the one expected to improve on it the most.

    .. math:: x_1 = \arg\max_{x \in \mathcal X_t} \mu_f(x), \qquad
        x_2 = \arg\max_x \; \mathbb E\big[(f(x) - f(x_1))_+\big]

    Both values are uncertain and correlated.  At :math:`x_1` the improvement is zero, so a point never duels
    with itself.  The authors' code had a wrong gradient.
    """

    key, title = "bivariate_ei", "Bivariate expected improvement"
    asks = frozenset({Asks.DUEL})
    source = "Nielsen, Nielsen & Larsen (2015); Fauvel & Chalk (2021), supplement, table 1"
    cost = "one search of mean and variance"

    log_score = staticmethod(log_expected_improvement)  # from mean and variance of the difference

    def ask(self, belief: Belief, m: int, search: Search) -> Points:
        """The best queried point and its challenger."""
        mixed = mixed_expectation(self.log_score)
        return challenge(incumbent(belief, search), belief, search, self.log_score, log=True, mixed=mixed)
