"""Points at random: what every other rule must beat."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from askwise.belief import Belief
from askwise.rules.base import Asks, Rule
from askwise.search import Search
from askwise.seeds import rand

__all__ = ["Random"]


@dataclass(frozen=True)
class Random(Rule):
    r"""Ask about points drawn uniformly and independently.

    .. math:: x_1, \dots, x_m \sim \mathcal U([0, 1]^d)

    Two points coincide with probability zero.
    """

    key = "random"
    title = "Random"
    asks = frozenset({Asks.BINARY, Asks.DUEL, Asks.BATCH})
    source = "the baseline of Fauvel & Chalk (2021), section 5"
    cost = "nothing"

    def ask(self, belief: Belief, m: int, search: Search) -> Float[Tensor, "*lane m d"]:
        """Uniform points for each lane."""
        return rand(search.source, search.lanes, m, search.warm.shape[-1], like=search.warm)
