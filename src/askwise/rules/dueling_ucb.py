"""Upper credible bound on the difference from the champion."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from askwise.numerics import Sloped, utility_deviation, utility_mean
from askwise.rules.base import Asks, Belief, Points, Rule, Search, challenge


@dataclass(frozen=True)
class DuelingUpperCredibleBound(Rule):
    r"""Pit the champion against the point that may beat it by the most.

    .. math:: x_1 = \arg\max_x \mu_f(x), \qquad
        x_2 = \arg\max_x \; \mu_g(x, x_1) + \beta \sigma_g(x, x_1), \qquad g(x, x') = f(x) - f(x')

    with :math:`\beta = \Phi^{-1}(0.975)`, as in the authors' code.  ``of="value"`` is the version in their
    table, :math:`\mu_f + \beta \sigma_f`, whose deviation does not vanish at the champion.  If the belief is
    very certain, both may choose :math:`x_2 = x_1`, and that duel is asked.
    """

    beta: float = 1.959963984540054
    of: Literal["difference", "value"] = "difference"

    key, title = "dueling_ucb", "Dueling UCB"
    asks = frozenset({Asks.DUEL})
    source = "Benavoli, Azzimonti & Piga (2020); Fauvel & Chalk (2021), supplement, table 1"
    cost = "a search of the mean, and one of mean and variance"

    def ask(self, belief: Belief, m: int, search: Search) -> Points:
        """The champion and its challenger."""
        champion = search.champion(belief)
        if self.of == "difference":
            return challenge(champion, belief, search, self.bound)
        return torch.cat([champion, search.argmax(belief.predictive.of_utility.score(self.bound))], -2)

    @property
    def bound(self) -> Sloped:
        """The score with its slopes."""
        return utility_mean.plus(utility_deviation, self.beta)

    def score(self, mean: Tensor, var: Tensor) -> Tensor:
        """The bound, from mean and variance of the difference (or of f)."""
        return self.bound(mean, var)
