"""Thompson sampling for yes/no answers."""

from askwise.rules.base import Asks, Belief, Points, Rule, Search, sampled_maxima


class Thompson(Rule):
    r"""Ask about the maximum of one draw of f.

    .. math:: \arg\max_x \tilde f(x), \qquad \tilde f \sim p(f \mid \mathscr D)

    The draw is decoupled (Matheron's rule) with features of the kernel.  The authors' code had a wrong
    spectral density and too few features.
    """

    key, title = "thompson", "Thompson sampling"
    asks = frozenset({Asks.BINARY})
    source = "Thompson (1933); Fauvel & Chalk (2021), supplement, section 4"
    cost = "one draw of up to 4096 features, and its search"

    def ask(self, belief: Belief, m: int, search: Search) -> Points:
        """The maximum of a draw."""
        return sampled_maxima(belief, 1, search)
