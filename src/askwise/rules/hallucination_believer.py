"""Improvement on the last winner, believing one imagined course of the past duels."""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from askwise.belief import Belief
from askwise.gibbs import hallucinated
from askwise.improvement import log_expected_improvement
from askwise.normal import deviation
from askwise.rules.base import Asks, Rule, top_of_data
from askwise.search import Search

__all__ = ["HallucinationBeliever"]


@dataclass(frozen=True)
class HallucinationBeliever(Rule):
    r"""Imagine how much the winner of each duel was better, believe it, and try to improve on the last.

    .. math:: v \sim p(v \mid \mathscr D), \quad v_i = f(w_i) - f(l_i) + \varepsilon_i > 0, \qquad
        x_1 = w_n, \qquad x_2 = \arg\max_x \alpha(x \mid v)

    where :math:`w_i` beat :math:`l_i`, and :math:`\alpha` is the expected improvement over the mean at
    :math:`x_1` (``of="ei"``) or :math:`\mu + 2 \sigma` (``of="ucb"``), both given v.  v is one draw of the
    exact posterior by Gibbs sampling.  Without a duel that was won as last answer :math:`x_1` is the best
    point asked about.  :math:`x_2` often lies close to :math:`x_1` and may be it; such duels are asked
    as they come.
    """

    of: Literal["ei", "ucb"] = "ei"
    beta: float = 2.0

    key = "hallucination_believer"
    title = "Hallucination believer"
    asks = frozenset({Asks.DUEL})
    source = "Takeno, Nomura & Karasuyama (2023)"
    cost = "some tens of Gibbs sweeps over the answers, one search of mean and variance"

    def __post_init__(self) -> None:
        """Refuse another acquisition."""
        if self.of not in ("ei", "ucb"):
            raise ValueError(f"of must be 'ei' or 'ucb'; got {self.of!r}. Choose one of the two.")

    def ask(self, belief: Belief, m: int, search: Search) -> Float[Tensor, "*lane m d"]:
        """The last winner and its rival."""
        imagined = hallucinated(belief, search.source)
        winner = _last_winner(belief, search)
        bar = imagined.mean(winner)

        def bound(mean: Tensor, var: Tensor) -> Tensor:
            return mean + self.beta * deviation(var)

        def log_improvement(mean: Tensor, var: Tensor) -> Tensor:
            return log_expected_improvement(mean - bar, var)

        formula = bound if self.of == "ucb" else log_improvement
        return torch.cat([winner, search.argmax(imagined.view.score(formula))], -2)


def _last_winner(belief: Belief, search: Search) -> Float[Tensor, "*lane 1 d"]:
    """The winner of each lane's last answer if that was a duel with one, else the best point asked about."""
    best, data = top_of_data(belief, search), belief.data
    first, second = data.first[..., -1:], data.second[..., -1:]
    winner = torch.where(data.signs[..., -1:] > 0, first, second.clamp_min(0))[..., None]
    points = data.points.gather(-2, winner.expand(*winner.shape[:-1], data.points.shape[-1]))
    won = (second >= 0) & (data.signs[..., -1:] != 0) & (data.slack[..., -1:] == 1)
    return torch.where(won[..., None], search.settings(points), best)
