"""The champion against the maximum of a draw."""

import torch

from askwise.rules.base import Asks, Belief, Points, Rule, Search, sampled_maxima


class DuelingThompson(Rule):
    r"""Pit the champion against the maximum of one draw of f.

    .. math:: x_1 = \arg\max_x \mu_f(x), \qquad
        x_2 = \arg\max_x \tilde f(x), \quad \tilde f \sim p(f \mid \mathscr D)

    A draw whose maximum is the champion is repeated at most five times; then the champion duels with itself.
    """

    key, title = "dueling_thompson", "Dueling Thompson sampling"
    asks = frozenset({Asks.DUEL})
    source = "Benavoli, Azzimonti & Piga (2020); Fauvel & Chalk (2021), supplement, table 1"
    cost = "a search of the mean, one draw and its search"

    def ask(self, belief: Belief, m: int, search: Search) -> Points:
        """The champion and the maximum of a draw."""
        champion = search.champion(belief)
        return torch.cat([champion, sampled_maxima(belief, 1, search, avoid=champion)], -2)
