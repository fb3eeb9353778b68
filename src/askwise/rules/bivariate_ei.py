"""Expected improvement over the best point asked about, as uncertain as it is."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from askwise.belief import Belief
from askwise.improvement import log_expected_improvement
from askwise.rules.base import Asks, Rule, challenge, top_of_data
from askwise.search import Search

__all__ = ["BivariateExpectedImprovement"]


@dataclass(frozen=True)
class BivariateExpectedImprovement(Rule):
    r"""Pit the best point asked about against the one expected to improve on it by most.

    .. math:: x_1 = \arg\max_{x \in \mathcal X_t} \mu_f(x), \qquad
        x_2 = \arg\max_x \; \mathbb E\big[(f(x) - f(x_1))_+\big]

    Both values are uncertain, and correlated.  At :math:`x_1` the improvement is zero, so the duel is
    never one of a point with itself.  The authors' code had a wrong gradient.
    """

    key = "bivariate_ei"
    title = "Bivariate expected improvement"
    asks = frozenset({Asks.DUEL})
    source = "Nielsen, Nielsen & Larsen (2015); Fauvel & Chalk (2021), supplement, table 1"
    cost = "one search of mean and variance"

    def ask(self, belief: Belief, m: int, search: Search) -> Float[Tensor, "*lane m d"]:
        """The best point asked about and its most promising rival."""
        return challenge(top_of_data(belief, search), belief, search, self.log_score)

    def log_score(self, mean: Tensor, var: Tensor) -> Tensor:
        """Logarithm of the improvement, from mean and variance of the difference."""
        return log_expected_improvement(mean, var)
