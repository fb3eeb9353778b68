"""MUC by entropy instead of variance."""

from torch import Tensor

from askwise.numerics import mixed_information, mutual_information
from askwise.rules.base import Asks, Belief, Points, Rule, Search, challenge

_TINY = 1e-300


class MaxEntropyChallenge(Rule):
    r"""Pit the champion against the point whose duel with it is most informative about f.

    .. math:: x_1 = \arg\max_x \mu_f(x), \qquad x_2 = \arg\max_x I(c, f(x) - f(x_1))

    The epistemic part of the uncertainty by entropy (section 3.2.2), exact to 1e-8; searched on its
    logarithm.  A duel of the champion with itself has no information and is never asked.
    """

    key, title = "max_entropy_challenge", "Maximum entropy challenge"
    asks = frozenset({Asks.DUEL})
    source = "Houlsby, Huszar, Ghahramani & Lengyel (2011); Fauvel & Chalk (2021), section 3.2.2"
    cost = "a search of the mean, and one of mean and variance with 160 quadrature nodes per point"

    score = staticmethod(mutual_information)  # from mean and variance of the difference

    def ask(self, belief: Belief, m: int, search: Search) -> Points:
        """The champion and its challenger."""
        return challenge(search.champion(belief), belief, search, self.log_score, log=True, mixed=self.mixed)

    def log_score(self, mean: Tensor, var: Tensor) -> Tensor:
        """Logarithm of the score, with a useful gradient where it is small."""
        return mutual_information(mean, var).log()

    def mixed(self, mean: Tensor, var: Tensor, weights: Tensor) -> Tensor:
        """The same of several kernels, with the information about which of them is right."""
        return mixed_information(mean, var, weights).clamp_min(_TINY).log()
