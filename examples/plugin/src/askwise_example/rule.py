"""A rule: one class in one module."""

from dataclasses import dataclass

from askwise.rules import Asks, Rule, challenge


@dataclass(frozen=True)
class VarianceChallenge(Rule):
    r"""Pit the champion against the point whose difference from it is most uncertain.

    .. math:: x_1 = \arg\max_x \mu_f(x), \qquad x_2 = \arg\max_x \mathbb V[f(x) - f(x_1)]

    It explores far too much: the variance of f stays high where the answer is certain.
    """

    key = "variance_challenge"
    title = "Variance challenge"
    asks = frozenset({Asks.DUEL})
    source = "an example"
    cost = "a search of the mean, and one of mean and variance"

    def ask(self, belief, m, search):
        """The champion and its challenger."""
        return challenge(search.champion(belief), belief, search, self.score)

    def score(self, mean, var):
        """The variance of the difference."""
        return var
