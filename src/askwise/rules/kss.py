"""Maxima of independent draws against each other."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from askwise.model import Belief
from askwise.rules.asks import Asks
from askwise.rules.base import Rule, sampled_maxima
from askwise.search import Search


@dataclass(frozen=True)
class KernelSelfSparring(Rule):
    r"""Pit the maxima of independent draws of f against each other.

    .. math:: x_i = \arg\max_x \tilde f_i(x), \qquad \tilde f_1, \dots, \tilde f_m \sim p(f \mid \mathscr D)

    A draw whose maximum duplicates an earlier one is repeated at most five times; remaining duplicates are
    asked.
    """

    key = "kss"
    title = "Kernel Self-Sparring"
    asks = frozenset({Asks.DUEL, Asks.BATCH})
    source = "Sui, Zhuang, Burdick & Yue (2017); Fauvel & Chalk (2021), supplement, table 1"
    cost = "m draws and their searches"

    def ask(self, belief: Belief, m: int, search: Search) -> Float[Tensor, "*lane m d"]:
        """The maxima of m draws."""
        return sampled_maxima(belief, m, search)
