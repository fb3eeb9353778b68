"""Expected improvement of the success rate."""

from torch import Tensor

from askwise.numerics import log_rate_improvement, mixed_expectation
from askwise.rules.base import Asks, Belief, Points, Rule, Search


class BinaryExpectedImprovement(Rule):
    r"""Ask where the success rate is expected to exceed the best known one by the most.

    .. math:: \arg\max_x \; \mathbb E\big[(\Phi(f(x)) - \mu_c^\star)_+\big], \qquad
        \mu_c^\star = \max_x \mathbb E[\Phi(f(x))]

    Exact, by one integral of a positive function.  The authors' code maximised a Monte Carlo estimate of the
    expectation given an improvement, which is a different rule.
    """

    key, title = "binary_ei", "Binary expected improvement"
    asks = frozenset({Asks.BINARY})
    source = "Tesch, Schneider & Choset (2013)"
    cost = "two searches of mean and variance, the second with 40 quadrature nodes per point"

    log_score = staticmethod(log_rate_improvement)  # over the rate ndtr(bar), from mean and variance of f

    def ask(self, belief: Belief, m: int, search: Search) -> Points:
        """The point of highest expected improvement."""
        bar = belief.quantile(search.likeliest(belief)).detach()

        def formula(mean: Tensor, var: Tensor) -> Tensor:
            return self.log_score(mean, var, bar)

        mixed = mixed_expectation(formula)
        return search.argmax(belief.predictive.score(formula, log=True, mixed=mixed))
