"""The simulated user."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from askwise.errors import Refused
from askwise.numerics import ndtr


@dataclass(frozen=True)
class User:
    r"""A user who says yes, or prefers the first option, with probability
    :math:`\lambda/2 + (1 - \lambda) \Phi(v / \sigma)`,
    where v is the value (in a duel, the difference of values), :math:`\sigma` the noise and
    :math:`\lambda` the lapse rate, the fraction of answers given at random.
    """

    noise: float = 1.0
    lapses: float = 0.0

    def __post_init__(self) -> None:
        """Refuse impossible rates."""
        if not 0 < self.noise < float("inf"):
            raise Refused("noise", "be positive and finite", f"{self.noise:g}", "The models assume 1.")
        if not 0 <= self.lapses <= 1:
            raise Refused("lapses", "be a share between 0 and 1", f"{self.lapses:g}", "Try 0.05.")

    def answers(
        self, values: Float[Tensor, "*lane m"], chance: Float[Tensor, "*lane k"]
    ) -> Bool[Tensor, "*lane k"]:
        """Answers to a query of m points with these values, decided by uniform random numbers.

        One point: whether the answer is yes.  Several: for each pair i < j, in the order (0, 1), (0, 2), ..,
        (1, 2), .., whether the first was preferred; pairs are independent.
        """
        m = values.shape[-1]
        if m > 1:
            i, j = torch.triu_indices(m, m, offset=1, device=values.device)
            values = (values[..., i] - values[..., j]).nan_to_num(0.0)  # two infinities are equally good
        attentive = ndtr(values / self.noise)
        return chance < self.lapses / 2 + (1 - self.lapses) * attentive
