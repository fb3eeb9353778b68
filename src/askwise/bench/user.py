"""The simulated user: answers with the noise that the models expect, or with more."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from askwise.normal import ndtr

__all__ = ["User"]


@dataclass(frozen=True)
class User:
    r"""Somebody who says yes, or prefers the first, with probability
    :math:`\lambda/2 + (1 - \lambda) \Phi(v / \sigma)`,
    where v is the value (of a duel, the difference of the two), :math:`\sigma` the noise and
    :math:`\lambda` the share of answers given at random.
    """

    noise: float = 1.0
    lapses: float = 0.0

    def __post_init__(self) -> None:
        """Check the numbers."""
        if not 0 < self.noise < float("inf"):
            raise ValueError(
                f"noise must be positive and finite; got {self.noise:g}. The models take it for 1."
            )
        if not 0 <= self.lapses <= 1:
            raise ValueError(f"lapses must be a share between 0 and 1; got {self.lapses:g}. Give 0.05, say.")

    def answers(
        self, values: Float[Tensor, "*lane m"], chance: Float[Tensor, "*lane k"]
    ) -> Bool[Tensor, "*lane k"]:
        """Answers to a question about m points of these values, decided by uniform numbers.

        One point: whether the answer is yes.  More: of each pair i < j, in the order (0, 1), (0, 2), ..,
        (1, 2), .., whether the first was preferred, independently.
        """
        m = values.shape[-1]
        if m > 1:
            i, j = torch.triu_indices(m, m, offset=1, device=values.device)
            values = values[..., i] - values[..., j]
            values = values.nan_to_num(0.0)  # two infinities are equally good
        certain = ndtr(values / self.noise)
        return chance < self.lapses / 2 + (1 - self.lapses) * certain
