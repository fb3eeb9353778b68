r"""What each of several simulated people likes beside what all like.

A random smooth function for each person of each lane, of mean zero and variance one at every point:

.. math:: g(x) = \sqrt{2 / F} \sum_{j=1}^{F} \cos(\omega_j^\top x + \varphi_j), \qquad
    \omega_j \sim \mathcal N(0, \ell^{-2} I), \; \varphi_j \sim \mathcal U(0, 2\pi)

with the lengthscale :math:`\ell = \sqrt d / 4`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from askwise.numerics import generator

_WAVES, _LENGTH = 64, 0.25


@dataclass(frozen=True, eq=False)
class Tastes:
    """The functions of all people of all lanes."""

    frequencies: Float[Tensor, "lane people waves d"]
    phases: Float[Tensor, "lane people waves"]

    @classmethod
    def drawn(cls, seeds: Sequence[tuple[str | int, ...]], people: int, d: int) -> "Tastes":
        """For a lane of each seed."""
        frequencies, phases = [], []
        for seed in seeds:
            source = generator(*seed, "tastes")
            frequencies.append(torch.randn(people, _WAVES, d, generator=source, dtype=torch.float64))
            phases.append(torch.rand(people, _WAVES, generator=source, dtype=torch.float64))
        length = _LENGTH * math.sqrt(d)
        return cls(torch.stack(frequencies) / length, 2 * math.pi * torch.stack(phases))

    def to(self, device: torch.device) -> "Tastes":
        """The same on another device."""
        return Tastes(self.frequencies.to(device), self.phases.to(device))

    def values(self, x: Float[Tensor, "lane m d"], person: int) -> Float[Tensor, "lane m"]:
        """How much this person of each lane likes the points, beside what all like."""
        angles = x @ self.frequencies[:, person].mT + self.phases[:, person, None]
        return math.sqrt(2 / _WAVES) * angles.cos().sum(-1)
