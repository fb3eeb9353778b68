"""Upper credible bound on the probability of beating the champion."""

from dataclasses import dataclass

from torch import Tensor

from askwise.numerics import Sloped, epistemic_deviation, mixed_deviation, mixed_rate, success_probability
from askwise.rules.base import Asks, Belief, Points, Rule, Search, challenge


@dataclass(frozen=True)
class DuelingUpperCredibleBoundPhi(Rule):
    r"""Pit the champion against the point that may beat it most often.

    .. math:: x_1 = \arg\max_x \mu_f(x), \qquad x_2 = \arg\max_x \;
        \mathbb E[\Phi(f(x) - f(x_1))] + \beta \sqrt{\mathbb V[\Phi(f(x) - f(x_1))]}

    with :math:`\beta = \Phi^{-1}(0.975)`: the dueling bound in the space of observations, which the paper
    leaves for future work.  At the champion the bound is 1/2.
    """

    beta: float = 1.959963984540054

    key, title = "dueling_ucb_phi", "Dueling UCB in the space of observations"
    asks = frozenset({Asks.DUEL})
    source = "the outlook of Fauvel & Chalk (2021), section 6"
    cost = "a search of the mean, and one of mean and variance"

    def ask(self, belief: Belief, m: int, search: Search) -> Points:
        """The champion and its challenger."""
        return challenge(search.champion(belief), belief, search, self.bound, mixed=self.mixed)

    @property
    def bound(self) -> Sloped:
        """The score with its slopes."""
        return success_probability.plus(epistemic_deviation, self.beta)

    def score(self, mean: Tensor, var: Tensor) -> Tensor:
        """The bound, from mean and variance of the difference."""
        return self.bound(mean, var)

    @property
    def mixed(self) -> Sloped:
        """The bound on the rate that is averaged over several kernels."""
        return mixed_rate.plus(mixed_deviation, self.beta)
