"""What is known of f: a Gaussian posterior that can be asked anywhere in the cube."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from askwise.data import Data
from askwise.kernels import Covariance
from askwise.normal import success_probability

__all__ = ["Belief"]


@dataclass(frozen=True, eq=False)
class Belief:
    r"""Gaussian posterior of f, with prior covariance k and the data's distinct points P.

    .. math:: \mu_f(x) = k(x, P)\,\alpha, \qquad
        \mathrm{cov}(x, x') = k(x, x') - k(x, P)\, F F^\top k(P, x')

    A point costs O(p r), at most O(n^2), and no solve; everything is differentiable in x.
    Points ``x`` [.., q, d] broadcast with the lanes: for a belief with lanes, [q, d] asks all
    lanes about the same points, [lane, q, d] each about its own.
    """

    prior: Covariance
    data: Data
    alpha: Float[Tensor, "*lane p"]
    factor: Float[Tensor, "*lane p r"]
    log_evidence: Float[Tensor, "*lane"]
    converged: Bool[Tensor, "*lane"]
    sweeps: Int[Tensor, "*lane"]
    """Sweeps over the data (or Newton steps, or draws) that inference took."""
    change: Float[Tensor, "*lane"]
    """Scaled change of the sites in the last sweep, which the tolerance is held against."""
    tau: Float[Tensor, "*lane n"]
    nu: Float[Tensor, "*lane n"]
    """Natural parameters of the Gaussian factor for each answer: a warm start for the next."""

    @classmethod
    def joined(cls, data: Data, parts: Sequence["Belief"]) -> "Belief":
        """One belief about ``data`` from beliefs about groups of its lanes, in order."""
        names = [field.name for field in fields(cls) if field.name not in ("prior", "data")]
        tensors = {name: torch.cat([getattr(part, name) for part in parts]) for name in names}
        return cls(parts[0].prior, data, **tensors)

    def select(self, lanes: Tensor | int) -> "Belief":
        """The belief about some of the lanes, or about one without its lane dimension."""
        names = [field.name for field in fields(self) if field.name not in ("prior", "data")]
        tensors = {name: getattr(self, name)[lanes] for name in names}
        return type(self)(self.prior.select(lanes), self.data.select(lanes), **tensors)

    def mean(self, x: Float[Tensor, "*b q d"]) -> Float[Tensor, "*c q"]:
        """Posterior mean of f."""
        return self._weighted(self._cross(x))

    def variance(self, x: Float[Tensor, "*b q d"]) -> Float[Tensor, "*c q"]:
        """Posterior variance of f."""
        explained = (self._cross(x) @ self.factor).square().sum(-1)
        return (self.prior.diagonal(x) - explained).clamp_min(0)

    def moments(self, x: Float[Tensor, "*b q d"]) -> tuple[Float[Tensor, "*c q"], Float[Tensor, "*c q"]]:
        """Posterior mean and variance, for little more than the price of the variance."""
        cross = self._cross(x)
        explained = (cross @ self.factor).square().sum(-1)
        return self._weighted(cross), (self.prior.diagonal(x) - explained).clamp_min(0)

    def cov(self, x: Float[Tensor, "*b q d"]) -> Float[Tensor, "*c q q"]:
        """Posterior covariance of f between the points of ``x``."""
        return self.joint(x)[1]

    def joint(self, x: Float[Tensor, "*b q d"]) -> tuple[Float[Tensor, "*c q"], Float[Tensor, "*c q q"]]:
        """Posterior mean, and covariance between the points of ``x``."""
        cross = self._cross(x)
        explained = cross @ self.factor
        return self._weighted(cross), self.prior.cross(x, x) - explained @ explained.mT

    def difference(
        self, x: Float[Tensor, "*b q d"], other: Float[Tensor, "*c q d"]
    ) -> tuple[Float[Tensor, "*e q"], Float[Tensor, "*e q"]]:
        """Mean and variance of ``f(x) - f(other)``, point by point."""
        x, other = torch.broadcast_tensors(x, other)
        cross = self._cross(x) - self._cross(other)
        explained = (cross @ self.factor).square().sum(-1)
        alone = self.prior.diagonal(x) + self.prior.diagonal(other)
        apart = alone - 2 * self.prior.paired(x, other)
        return self._weighted(cross), (apart - explained).clamp_min(0)

    def success_probability(
        self, x: Float[Tensor, "*b q d"], other: Float[Tensor, "*c q d"] | None = None
    ) -> Float[Tensor, "*e q"]:
        """Probability of a yes at ``x``, or that ``x`` wins against ``other``."""
        moments = self.moments(x) if other is None else self.difference(x, other)
        return success_probability(*moments)

    def _cross(self, x: Tensor) -> Tensor:
        return self.prior.cross(x, self.data.points)

    def _weighted(self, cross: Tensor) -> Tensor:
        return (cross @ self.alpha[..., None])[..., 0]
