"""The straddle heuristic in the space of observations, which counts only what answers can tell."""

from dataclasses import dataclass

from torch import Tensor

from askwise.numerics import epistemic_deviation, mixed_deviation, mixed_rate, success_probability
from askwise.rules.base import Asks, Belief, Points, Rule, Search
from askwise.rules.levels import LEVEL, checked_level


@dataclass(frozen=True)
class StraddlePhi(Rule):
    r"""Ask where the success rate is uncertain, and may be on either side of the level.

    .. math:: \arg\max_x \; \beta \sqrt{\mathbb V[\Phi(f(x))]} - |\mathbb E[\Phi(f(x))] - \lambda|

    :math:`\lambda` is the level, a success rate.  The deviation is the epistemic part of the uncertainty
    about the answer.  Rates saturate: far above a high level neither the deviation nor the distance can be
    large, so the rule asks on the lower slope, where answers tell most about where the level is reached.
    """

    level: float = LEVEL
    beta: float = 1.96

    key, title = "straddle_phi", "Straddle in the space of observations"
    asks = frozenset({Asks.BINARY})
    source = "Bryan et al. (2005), NeurIPS 18, with the epistemic deviation of Fauvel & Chalk (2021)"
    cost = "one search of mean and variance"

    def __post_init__(self) -> None:
        """Check the level."""
        super().__post_init__()
        checked_level(self.level)

    def ask(self, belief: Belief, m: int, search: Search) -> Points:
        """The point of highest score."""
        return search.argmax(belief.predictive.score(self.score, mixed=self.mixed))

    def score(self, mean: Tensor, var: Tensor) -> Tensor:
        """Deviation of the rate against its distance from the level, from mean and variance of f."""
        distance = (success_probability(mean, var) - self.level).abs()
        return self.beta * epistemic_deviation(mean, var) - distance

    def mixed(self, mean: Tensor, var: Tensor, weights: Tensor) -> Tensor:
        """The score of the rate that is averaged over several kernels."""
        distance = (mixed_rate(mean, var, weights) - self.level).abs()
        return self.beta * mixed_deviation(mean, var, weights) - distance
