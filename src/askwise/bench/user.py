"""The simulated user: one person, or several who answer in turn."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int8
from torch import Tensor

from askwise.errors import Refused
from askwise.numerics import ndtr

UNDECIDED = 2
"""The answer "can't decide", beside 1 (yes, or the first is better) and 0."""


@dataclass(frozen=True)
class User:
    r"""A user who says yes, or prefers the first option, with probability
    :math:`\lambda/2 + (1 - \lambda) \Phi(v / \sigma - t)`,
    where v is the value (in a duel, the difference of values), :math:`\sigma` the noise,
    :math:`\lambda` the lapse rate, the fraction of answers given at random, and t the margin, in units of the
    noise, within which somebody can't decide.

    Of several ``people``, who answer in turn, each likes :math:`\sqrt{1 - \rho}\, f + \sqrt\rho\, g_p`, where
    :math:`\rho` is the share of variance of one's ``own``; what they have in common is looked for.
    """

    noise: float = 1.0
    lapses: float = 0.0
    margin: float = 0.0
    people: int = 1
    own: float = 0.0

    def __post_init__(self) -> None:
        """Refuse impossible rates."""
        if not 0 < self.noise < float("inf"):
            raise Refused("noise", "be positive and finite", f"{self.noise:g}", "The models assume 1.")
        if not 0 <= self.lapses <= 1:
            raise Refused("lapses", "be a share between 0 and 1", f"{self.lapses:g}", "Try 0.05.")
        if not 0 <= self.margin < float("inf"):
            raise Refused("margin", "be zero or more, and finite", f"{self.margin:g}", "Try 0.5.")
        if self.people < 1:
            raise Refused("people", "be 1 or more", self.people, "Somebody has to answer.")
        if not 0 <= self.own < 1:
            advice = "People who share nothing have no best setting in common."
            raise Refused("own", "be a share from 0 to below 1", f"{self.own:g}", advice)

    def answers(
        self, values: Float[Tensor, "*lane m"], chance: Float[Tensor, "*lane k"]
    ) -> Int8[Tensor, "*lane k"]:
        """Answers to a query of m points with these values, decided by uniform random numbers.

        One point: whether the answer is yes.  Several: for each pair i < j, in the order (0, 1), (0, 2), ..,
        (1, 2), .., whether the first was preferred; pairs are independent.
        """
        m = values.shape[-1]
        if m > 1:
            i, j = torch.triu_indices(m, m, offset=1, device=values.device)
            values = (values[..., i] - values[..., j]).nan_to_num(0.0)  # two infinities are equally good
        first, second = (
            self.lapses / 2 + (1 - self.lapses) * ndtr(sign * values / self.noise - self.margin)
            for sign in (1, -1)
        )
        said = (chance < first).to(torch.int8)
        if self.margin == 0:
            return said
        return torch.where((chance >= first) & (chance < 1 - second), UNDECIDED, said)
