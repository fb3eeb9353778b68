"""A draw's maximum against the point whose duel with it is least foreseeable."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from askwise.belief import Belief
from askwise.rules.base import Asks, Rule, challenge, sampled_maxima
from askwise.search import Search
from askwise.uncertainty import log_epistemic_variance

__all__ = ["DuelThompson"]


@dataclass(frozen=True)
class DuelThompson(Rule):
    r"""Pit the best point of one draw of f against the point whose duel with it is least foreseeable.

    .. math:: x_1 = \arg\max_x \tilde f(x), \quad \tilde f \sim p(f \mid \mathscr D), \qquad
        x_2 = \arg\max_x \mathbb V[\Phi(f(x) - f(x_1))]

    With the value function in place of Gonzalez' soft Copeland score, as in the paper.  A duel of a
    point with itself has variance zero and is never asked.
    """

    key = "duel_thompson"
    title = "Duel Thompson sampling"
    asks = frozenset({Asks.DUEL})
    source = "Gonzalez, Dai, Damianou & Lawrence (2017); Fauvel & Chalk (2021), supplement, table 1"
    cost = "one draw and a search of it, and one search of mean and variance"

    def ask(self, belief: Belief, m: int, search: Search) -> Float[Tensor, "*lane m d"]:
        """A draw's maximum and its challenger."""
        return challenge(sampled_maxima(belief, 1, search), belief, search, self.log_score)

    def log_score(self, mean: Tensor, var: Tensor) -> Tensor:
        """Logarithm of the doubt about the duel, from mean and variance of the difference."""
        return log_epistemic_variance(mean, var)
