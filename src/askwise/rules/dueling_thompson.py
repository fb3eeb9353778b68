"""The champion against the maximum of a draw."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from askwise.model import Belief
from askwise.rules.asks import Asks
from askwise.rules.base import Rule, sampled_maxima
from askwise.search import Search


@dataclass(frozen=True)
class DuelingThompson(Rule):
    r"""Pit the champion against the maximum of one draw of f.

    .. math:: x_1 = \arg\max_x \mu_f(x), \qquad
        x_2 = \arg\max_x \tilde f(x), \quad \tilde f \sim p(f \mid \mathscr D)

    A draw whose maximum is the champion is repeated at most five times; if it still is, the champion duels
    with itself.
    """

    key = "dueling_thompson"
    title = "Dueling Thompson sampling"
    asks = frozenset({Asks.DUEL})
    source = "Benavoli, Azzimonti & Piga (2020); Fauvel & Chalk (2021), supplement, table 1"
    cost = "a search of the mean, one draw and its search"

    def ask(self, belief: Belief, m: int, search: Search) -> Float[Tensor, "*lane m d"]:
        """The champion and the maximum of a draw."""
        champion = search.champion(belief)
        return torch.cat([champion, sampled_maxima(belief, 1, search, avoid=champion)], -2)
