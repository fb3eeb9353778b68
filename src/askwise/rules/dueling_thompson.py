"""The champion against a draw's maximum."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from askwise.belief import Belief
from askwise.rules.base import Asks, Rule, sampled_maxima
from askwise.search import Search

__all__ = ["DuelingThompson"]


@dataclass(frozen=True)
class DuelingThompson(Rule):
    r"""Pit the champion against the best point of one draw of f.

    .. math:: x_1 = \arg\max_x \mu_f(x), \qquad
        x_2 = \arg\max_x \tilde f(x), \quad \tilde f \sim p(f \mid \mathscr D)

    A draw whose maximum is the champion is drawn again, at most five times; if it still is, the duel
    of the point with itself is asked.
    """

    key = "dueling_thompson"
    title = "Dueling Thompson sampling"
    asks = frozenset({Asks.DUEL})
    source = "Benavoli, Azzimonti & Piga (2020); Fauvel & Chalk (2021), supplement, table 1"
    cost = "a search of the mean, one draw and a search of it"

    def ask(self, belief: Belief, m: int, search: Search) -> Float[Tensor, "*lane m d"]:
        """The champion and a draw's maximum."""
        champion = search.champion(belief)
        return torch.cat([champion, sampled_maxima(belief, 1, search, avoid=champion)], -2)
