"""Random points: the baseline of all other rules."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from askwise.model import Belief
from askwise.rules.asks import Asks
from askwise.rules.base import Rule
from askwise.search import Search


@dataclass(frozen=True)
class Random(Rule):
    r"""Ask about points drawn uniformly and independently.

    .. math:: x_1, \dots, x_m \sim \mathcal U([0, 1]^d)

    Two points coincide with probability zero.  In a domain, settings are drawn: all values of a choice and
    all whole numbers are equally likely.
    """

    key = "random"
    title = "Random"
    asks = frozenset({Asks.BINARY, Asks.DUEL, Asks.BATCH})
    source = "the baseline of Fauvel & Chalk (2021), section 5"
    cost = "nothing"

    def ask(self, belief: Belief, m: int, search: Search) -> Float[Tensor, "*lane m d"]:
        """Uniform points for each lane."""
        return search.random(m)
