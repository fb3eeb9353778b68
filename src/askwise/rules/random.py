"""Random points: the baseline of all other rules."""

from askwise.rules.base import Asks, Belief, Points, Rule, Search


class Random(Rule):
    r"""Ask about points drawn uniformly and independently.

    .. math:: x_1, \dots, x_m \sim \mathcal U([0, 1]^d)

    Two points coincide with probability zero.  In a space of settings these are drawn: all values of a choice
    and all whole numbers are equally likely.
    """

    key, title = "random", "Random"
    asks = frozenset({Asks.BINARY, Asks.DUEL, Asks.BATCH})
    source = "the baseline of Fauvel & Chalk (2021), section 5"
    cost = "nothing"

    def ask(self, belief: Belief, m: int, search: Search) -> Points:
        """Uniform points for each lane."""
        return search.random(m)
