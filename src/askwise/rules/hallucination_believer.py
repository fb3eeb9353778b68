"""Improvement on the last winner, given one draw of the latent responses of past duels."""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from askwise.model import hallucinated
from askwise.numerics import deviation, log_expected_improvement
from askwise.rules.base import Asks, Belief, Points, Rule, Search, incumbent


@dataclass(frozen=True)
class HallucinationBeliever(Rule):
    r"""Draw by how much each past winner was better, take that as observed, and improve on the last winner.

    .. math:: v \sim p(v \mid \mathscr D), \quad v_i = f(w_i) - f(l_i) + \varepsilon_i > 0, \qquad
        x_1 = w_n, \qquad x_2 = \arg\max_x \alpha(x \mid v)

    where :math:`w_i` beat :math:`l_i`, and :math:`\alpha` is the expected improvement over the mean at
    :math:`x_1` (``of="ei"``) or :math:`\mu + 2 \sigma` (``of="ucb"``), both given v.  v is one draw of the
    exact posterior by Gibbs sampling.  If the last answer is not a decided duel, :math:`x_1` is the best
    queried point.  :math:`x_2` is often close to :math:`x_1` or equal to it; such duels are asked.
    """

    of: Literal["ei", "ucb"] = "ei"
    beta: float = 2.0

    key, title = "hallucination_believer", "Hallucination believer"
    asks = frozenset({Asks.DUEL})
    source = "Takeno, Nomura & Karasuyama (2023)"
    cost = "64 sequential draws and 20 Gibbs sweeps over the answers, one search of mean and variance"

    def ask(self, belief: Belief, m: int, search: Search) -> Points:
        """The last winner and its challenger."""
        imagined = hallucinated(belief, search.source)
        winner = _last_winner(belief, search)
        bar = imagined.mean(winner)

        def formula(mean: Tensor, var: Tensor) -> Tensor:
            if self.of == "ucb":
                return mean + self.beta * deviation(var)
            return log_expected_improvement(mean - bar, var)

        score = imagined.predictive.of_utility.score(formula, log=self.of == "ei")
        return torch.cat([winner, search.argmax(score)], -2)


def _last_winner(belief: Belief, search: Search) -> Float[Tensor, "*lane 1 d"]:
    """The winner of each lane's last answer if that was a decided duel, else the best queried point."""
    best, data = incumbent(belief, search), belief.data
    first, second = data.first[..., -1:], data.second[..., -1:]
    winner = torch.where(data.signs[..., -1:] > 0, first, second.clamp_min(0))[..., None]
    points = data.points.gather(-2, winner.expand(*winner.shape[:-1], data.points.shape[-1]))
    alone = (data.answer == data.answer[..., -1:]).sum(-1, keepdim=True) == 1
    won = (second >= 0) & (data.signs[..., -1:] != 0) & alone
    return torch.where(won[..., None], search.snapped(points), best)
