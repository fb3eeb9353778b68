"""Upper credible bound in latent space, as in standard Bayesian optimization."""

from dataclasses import dataclass

from torch import Tensor

from askwise.numerics import Sloped, utility_deviation, utility_mean
from askwise.rules.base import Asks, Belief, Points, Rule, Search


@dataclass(frozen=True)
class UpperCredibleBoundF(Rule):
    r"""Ask where f is high or uncertain.

    .. math:: \arg\max_x \; \mu_f(x) + \beta \sigma_f(x)

    It explores too little: where f is high a yes is nearly certain and says nothing about f, which stays
    uncertain and is queried again.
    """

    beta: float = 1.0

    key, title = "ucb_f", "UCB in latent space"
    asks = frozenset({Asks.BINARY})
    source = "Tesch, Schneider & Choset (2013); Fauvel & Chalk (2021), section 4.1"
    cost = "one search of mean and variance"

    def ask(self, belief: Belief, m: int, search: Search) -> Points:
        """The point of highest bound."""
        return search.argmax(belief.predictive.of_utility.score(self.bound))

    @property
    def bound(self) -> Sloped:
        """The score with its slopes."""
        return utility_mean.plus(utility_deviation, self.beta)

    def score(self, mean: Tensor, var: Tensor) -> Tensor:
        """The bound, from mean and variance of f."""
        return self.bound(mean, var)
