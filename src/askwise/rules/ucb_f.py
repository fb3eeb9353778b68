"""The upper credible bound in latent space, as in standard Bayesian optimization."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from askwise.belief import Belief
from askwise.normal import deviation
from askwise.rules.base import Asks, Rule
from askwise.search import Search

__all__ = ["UpperCredibleBoundF"]


@dataclass(frozen=True)
class UpperCredibleBoundF(Rule):
    r"""Ask where f is high or not yet known.

    .. math:: \arg\max_x \; \mu_f(x) + \beta \sigma_f(x)

    It explores too little: where f is high the answer is a sure yes and tells nothing of f, which
    stays uncertain and is asked about again.
    """

    beta: float = 1.0

    key = "ucb_f"
    title = "UCB in latent space"
    asks = frozenset({Asks.BINARY})
    source = "Tesch, Schneider & Choset (2013); Fauvel & Chalk (2021), section 4.1"
    cost = "one search of mean and variance"

    def ask(self, belief: Belief, m: int, search: Search) -> Float[Tensor, "*lane m d"]:
        """The point of highest bound."""
        return search.argmax(belief.view.score(self.score))

    def score(self, mean: Tensor, var: Tensor) -> Tensor:
        """The bound, from mean and variance of f."""
        return mean + self.beta * deviation(var)
