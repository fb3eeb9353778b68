"""Upper credible bound in the space of observations, the paper's rule for yes/no answers."""

from dataclasses import dataclass

from torch import Tensor

from askwise.numerics import Sloped, epistemic_deviation, mixed_deviation, mixed_rate, success_probability
from askwise.rules.base import Asks, Belief, Points, Rule, Search


@dataclass(frozen=True)
class UpperCredibleBoundPhi(Rule):
    r"""Ask where the success rate is high or uncertain.

    .. math:: \arg\max_x \; \mathbb E[\Phi(f(x))] + \beta \sqrt{\mathbb V[\Phi(f(x))]}

    The default is :math:`\beta = \Phi^{-1}(0.99)`.  Unlike a bound on f it does not query points where a yes
    is nearly certain, however uncertain f is there.
    """

    beta: float = 2.3263478740408408

    key, title = "ucb_phi", "UCB in the space of observations"
    asks = frozenset({Asks.BINARY})
    source = "Fauvel & Chalk (2021), section 4.1"
    cost = "one search of mean and variance"

    def ask(self, belief: Belief, m: int, search: Search) -> Points:
        """The point of highest bound."""
        return search.argmax(belief.predictive.score(self.bound, mixed=self.mixed))

    @property
    def bound(self) -> Sloped:
        """The score with its slopes."""
        return success_probability.plus(epistemic_deviation, self.beta)

    def score(self, mean: Tensor, var: Tensor) -> Tensor:
        """The bound, from mean and variance of f."""
        return self.bound(mean, var)

    @property
    def mixed(self) -> Sloped:
        """The bound on the rate that is averaged over several kernels."""
        return mixed_rate.plus(mixed_deviation, self.beta)
