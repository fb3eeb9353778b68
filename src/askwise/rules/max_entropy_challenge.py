"""MUC with the entropy in place of the variance."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from askwise.belief import Belief
from askwise.rules.base import Asks, Rule, challenge
from askwise.search import Search
from askwise.uncertainty import mutual_information

__all__ = ["MaxEntropyChallenge"]


@dataclass(frozen=True)
class MaxEntropyChallenge(Rule):
    r"""Pit the champion against the point whose duel with it tells most about f.

    .. math:: x_1 = \arg\max_x \mu_f(x), \qquad x_2 = \arg\max_x I(c, f(x) - f(x_1))

    The epistemic part of the doubt by entropy (section 3.2.2), exact to 1e-8; searched on its
    logarithm.  A duel of the champion with itself tells nothing and is never asked.
    """

    key = "max_entropy_challenge"
    title = "Maximum entropy challenge"
    asks = frozenset({Asks.DUEL})
    source = "Houlsby, Huszar, Ghahramani & Lengyel (2011); Fauvel & Chalk (2021), section 3.2.2"
    cost = "a search of the mean, and one of mean and variance with 160 nodes of quadrature a point"

    def ask(self, belief: Belief, m: int, search: Search) -> Float[Tensor, "*lane m d"]:
        """The champion and its challenger."""
        return challenge(search.champion(belief), belief, search, self.log_score)

    def score(self, mean: Tensor, var: Tensor) -> Tensor:
        """Information in nats, from mean and variance of the difference."""
        return mutual_information(mean, var)

    def log_score(self, mean: Tensor, var: Tensor) -> Tensor:
        """Its logarithm, with a slope where it is small."""
        return mutual_information(mean, var).log()
