"""Probability of beating the champion, and information from the duel."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor

from askwise.numerics import (
    houlsby_information,
    kernel_information,
    log_ndtr,
    mixed_expectation,
    standardised,
)
from askwise.rules.base import Asks, Belief, Points, Rule, Search, challenge


@dataclass(frozen=True)
class ExpectedImprovementInformationGain(Rule):
    r"""Pit the champion against a point that may beat it in an informative duel.

    .. math:: x_1 = \arg\max_x \mu_f(x), \qquad
        x_2 = \arg\max_x \; k \log \mathbb E[\Phi(f(x) - f(x_1))] + I(c, f(x) - f(x_1))

    The paper's table has minus the information I, which makes the champion duel with itself; that is
    ``sign=-1``.  Rewarding information is the rule's stated purpose and the default; even so, where every
    challenger is likely to lose, the champion itself has the highest score, :math:`k \log \frac12`.  Such
    duels are asked.  The weight 0.1 is that of Benavoli's code; Fauvel & Chalk took 0.5, with which most
    duels are of that kind.  I is the approximation of Houlsby et al., at most 0.002 nats too low.
    """

    k: float = 0.1
    sign: Literal[1, -1] = 1

    key, title = "eiig", "Expected improvement with information gain"
    asks = frozenset({Asks.DUEL})
    source = "Benavoli, Azzimonti & Piga (2020); Fauvel & Chalk (2021), supplement, table 1"
    cost = "a search of the mean, and one of mean and variance"
    former: ClassVar[dict[str, object]] = {"k": 0.5}

    def ask(self, belief: Belief, m: int, search: Search) -> Points:
        """The champion and its challenger."""
        return challenge(search.champion(belief), belief, search, self.score, mixed=self.mixed)

    def score(self, mean: Tensor, var: Tensor) -> Tensor:
        """The score, from mean and variance of the difference."""
        log_probability = log_ndtr(standardised(mean, var))
        return self.k * log_probability + self.sign * houlsby_information(mean, var)

    def mixed(self, mean: Tensor, var: Tensor, weights: Tensor) -> Tensor:
        """The score of several kernels, with the information about which of them is right."""
        within = (weights * houlsby_information(mean, var)).sum(0)
        information = within + kernel_information(mean, var, weights)
        log_rate = mixed_expectation(lambda mean, var: log_ndtr(standardised(mean, var)))
        return self.k * log_rate(mean, var, weights) + self.sign * information
