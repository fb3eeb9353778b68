"""The upper credible bound in the space of observations, the paper's rule for yes/no answers."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from askwise.belief import Belief
from askwise.normal import success_probability
from askwise.rules.base import Asks, Rule
from askwise.search import Search
from askwise.uncertainty import epistemic_deviation

__all__ = ["UpperCredibleBoundPhi"]


@dataclass(frozen=True)
class UpperCredibleBoundPhi(Rule):
    r"""Ask where the success rate is high or not yet known.

    .. math:: \arg\max_x \; \mathbb E[\Phi(f(x))] + \beta \sqrt{\mathbb V[\Phi(f(x))]}

    The default is :math:`\beta = \Phi^{-1}(0.99)`.  Unlike a bound on f itself it does not ask about
    points whose answer is sure to be yes, however uncertain f may be there.
    """

    beta: float = 2.3263478740408408

    key = "ucb_phi"
    title = "UCB in the space of observations"
    asks = frozenset({Asks.BINARY})
    source = "Fauvel & Chalk (2021), section 4.1"
    cost = "one search of mean and variance"

    def ask(self, belief: Belief, m: int, search: Search) -> Float[Tensor, "*lane m d"]:
        """The point of highest bound."""
        return search.argmax(belief.view.score(self.score))

    def score(self, mean: Tensor, var: Tensor) -> Tensor:
        """The bound, from mean and variance of f."""
        return success_probability(mean, var) + self.beta * epistemic_deviation(mean, var)
