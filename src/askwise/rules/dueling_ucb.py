"""The upper credible bound of the difference to the champion."""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from askwise.belief import Belief
from askwise.normal import deviation
from askwise.rules.base import Asks, Rule
from askwise.search import Search

__all__ = ["DuelingUpperCredibleBound"]


@dataclass(frozen=True)
class DuelingUpperCredibleBound(Rule):
    r"""Pit the champion against the point that may beat it by most.

    .. math:: x_1 = \arg\max_x \mu_f(x), \qquad
        x_2 = \arg\max_x \; \mu_g(x, x_1) + \beta \sigma_g(x, x_1), \qquad g(x, x') = f(x) - f(x')

    with :math:`\beta = \Phi^{-1}(0.975)`, as the authors coded it.  ``of="value"`` is what their table
    prints, :math:`\mu_f + \beta \sigma_f`, whose deviation does not vanish at the champion.  Neither
    forbids :math:`x_2 = x_1`; where the belief is that sure, the duel is asked as it is.
    """

    beta: float = 1.959963984540054
    of: Literal["difference", "value"] = "difference"

    key = "dueling_ucb"
    title = "Dueling UCB"
    asks = frozenset({Asks.DUEL})
    source = "Benavoli, Azzimonti & Piga (2020); Fauvel & Chalk (2021), supplement, table 1"
    cost = "a search of the mean, and one of mean and variance"

    def __post_init__(self) -> None:
        """Refuse another kind of bound."""
        if self.of not in ("difference", "value"):
            raise ValueError(f"of must be 'difference' or 'value'; got {self.of!r}. Choose one of the two.")

    def ask(self, belief: Belief, m: int, search: Search) -> Float[Tensor, "*lane m d"]:
        """The champion and its most promising rival."""
        champion = search.champion(belief)
        view = belief.view if self.of == "value" else belief.view.against(champion)
        return torch.cat([champion, search.argmax(view.score(self.score))], -2)

    def score(self, mean: Tensor, var: Tensor) -> Tensor:
        """The bound, from mean and variance of the difference (or of f)."""
        return mean + self.beta * deviation(var)
