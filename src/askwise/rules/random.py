"""Points at random: what every other rule must beat."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from askwise.belief import Belief
from askwise.rules.base import Asks, Rule
from askwise.search import Search

__all__ = ["Random"]


@dataclass(frozen=True)
class Random(Rule):
    r"""Ask about points drawn uniformly and independently.

    .. math:: x_1, \dots, x_m \sim \mathcal U([0, 1]^d)

    Two points coincide with probability zero.  Where not every point is a setting, it is settings that
    are drawn: each value of a choice and each whole number is as likely as any other.
    """

    key = "random"
    title = "Random"
    asks = frozenset({Asks.BINARY, Asks.DUEL, Asks.BATCH})
    source = "the baseline of Fauvel & Chalk (2021), section 5"
    cost = "nothing"

    def ask(self, belief: Belief, m: int, search: Search) -> Float[Tensor, "*lane m d"]:
        """Uniform points for each lane."""
        return search.random(m)
