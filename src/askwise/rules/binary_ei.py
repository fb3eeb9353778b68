"""Expected improvement of the success rate."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from askwise.belief import Belief
from askwise.improvement import log_rate_improvement
from askwise.normal import standardised
from askwise.rules.base import Asks, Rule
from askwise.search import Search

__all__ = ["BinaryExpectedImprovement"]


@dataclass(frozen=True)
class BinaryExpectedImprovement(Rule):
    r"""Ask where the success rate is expected to beat the best one known by most.

    .. math:: \arg\max_x \; \mathbb E\big[(\Phi(f(x)) - \mu_c^\star)_+\big], \qquad
        \mu_c^\star = \max_x \mathbb E[\Phi(f(x))]

    Exact, by one integral of a positive function.  The authors' code maximised the expectation
    given an improvement, by Monte Carlo, which is another rule.
    """

    key = "binary_ei"
    title = "Binary expected improvement"
    asks = frozenset({Asks.BINARY})
    source = "Tesch, Schneider & Choset (2013)"
    cost = "two searches of mean and variance, the second with 40 nodes of quadrature a point"

    def ask(self, belief: Belief, m: int, search: Search) -> Float[Tensor, "*lane m d"]:
        """The point of highest expected improvement."""
        bar = standardised(*belief.moments(search.likeliest(belief))).detach()

        def log_improvement(mean: Tensor, var: Tensor) -> Tensor:
            return self.log_score(mean, var, bar)

        return search.argmax(belief.view.score(log_improvement))

    def log_score(self, mean: Tensor, var: Tensor, bar: Tensor) -> Tensor:
        """Logarithm of the improvement over the rate ``ndtr(bar)``, from mean and variance of f."""
        return log_rate_improvement(mean, var, bar)
