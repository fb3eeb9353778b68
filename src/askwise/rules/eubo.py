"""Expected utility of the better of two points."""

from jaxtyping import Float
from torch import Tensor

from askwise.numerics import expected_best, log_expected_improvement, mixed_expectation
from askwise.rules.base import Asks, Belief, Points, Rule, Search, challenge


class ExpectedUtilityOfBestOption(Rule):
    r"""Ask for the duel whose better member has the highest expected value.

    .. math:: (x_1, x_2) = \arg\max \; \mathbb E[\max(f(x_1), f(x_2))]
        = \arg\max \; \mu_2 + \mathbb E[(f(x_1) - f(x_2))_+]

    Analytic, and one-step optimal for noiseless answers (Astudillo et al., 2023).  Both points are searched
    jointly, from the champion with its best challenger and from pairs of Sobol points.  A duel of a point
    with itself gains nothing over its mean and is never the best.
    """

    key, title = "eubo", "Expected utility of the best option"
    asks = frozenset({Asks.DUEL})
    source = "Lin, Astudillo, Frazier & Bakshy (2022); Astudillo et al. (2023), qEUBO"
    cost = "a search of the mean, one of mean and variance, and one of a pair's joint mean and covariance"

    def ask(self, belief: Belief, m: int, search: Search) -> Points:
        """The two points, the one of higher mean first."""
        champion, mixed = search.champion(belief), mixed_expectation(log_expected_improvement)
        pair = challenge(champion, belief, search, log_expected_improvement, log=True, mixed=mixed)
        found = search.argmax(lambda x: self.score(belief, x), q=2, extra=pair[None])
        order = belief.mean(found).argsort(dim=-1, descending=True)
        return found.gather(-2, order[..., None].expand_as(found))

    def score(self, belief: Belief, x: Float[Tensor, "*b 2 d"]) -> Float[Tensor, "*b"]:
        """Expected utility of the better of each pair."""

        def better(mean: Tensor, cov: Tensor) -> Tensor:
            var = cov[..., 0, 0] + cov[..., 1, 1] - 2 * cov[..., 0, 1]
            return expected_best(mean[..., 0], mean[..., 1], var)

        return belief.expectation(better, x)
