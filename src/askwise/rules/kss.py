"""Maxima of independent draws against each other."""

from askwise.rules.base import Asks, Belief, Points, Rule, Search, sampled_maxima


class KernelSelfSparring(Rule):
    r"""Pit the maxima of independent draws of f against each other.

    .. math:: x_i = \arg\max_x \tilde f_i(x), \qquad \tilde f_1, \dots, \tilde f_m \sim p(f \mid \mathscr D)

    A draw whose maximum is a duplicate is repeated at most five times; remaining duplicates are asked.
    """

    key, title = "kss", "Kernel Self-Sparring"
    asks = frozenset({Asks.DUEL, Asks.BATCH})
    source = "Sui, Zhuang, Burdick & Yue (2017); Fauvel & Chalk (2021), supplement, table 1"
    cost = "m draws and their searches"

    def ask(self, belief: Belief, m: int, search: Search) -> Points:
        """The maxima of m draws."""
        return sampled_maxima(belief, m, search)
