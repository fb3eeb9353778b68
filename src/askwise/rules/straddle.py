"""The straddle heuristic: ask where it is unclear on which side of a level f lies."""

from dataclasses import dataclass

from torch import Tensor

from askwise.numerics import deviation
from askwise.rules.base import Asks, Belief, Points, Rule, Search
from askwise.rules.levels import LEVEL, checked_level, latent_level


@dataclass(frozen=True)
class Straddle(Rule):
    r"""Ask where the credible interval of f reaches farthest beyond the level, on its shorter side.

    .. math:: \arg\max_x \; \beta \, \sigma_f(x) - |\mu_f(x) - \Phi^{-1}(\lambda)|

    :math:`\lambda` is the level, a success rate.  With the default :math:`\beta = 1.96` the score is positive
    where the 95% interval of f contains the level.  It was made for measurements with constant noise.  An
    answer says little about f where a yes is nearly certain, so at a high level the rule goes on asking where
    f may be far above the level and the answer hardly tells.
    """

    level: float = LEVEL
    beta: float = 1.96

    key, title = "straddle", "Straddle"
    asks = frozenset({Asks.BINARY})
    source = "Bryan et al. (2005), NeurIPS 18"
    cost = "one search of mean and variance"

    def __post_init__(self) -> None:
        """Check the level."""
        super().__post_init__()
        checked_level(self.level)

    def ask(self, belief: Belief, m: int, search: Search) -> Points:
        """The point of highest score."""
        return search.argmax(belief.predictive.score(self.score))

    def score(self, mean: Tensor, var: Tensor) -> Tensor:
        """How far the interval reaches beyond the level, from mean and variance of f."""
        return self.beta * deviation(var) - (mean - latent_level(self.level)).abs()
