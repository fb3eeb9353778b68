r"""Finite features with the prior covariance as inner product, :math:`k \approx \phi(x)^\top \phi(x')`.

With them a draw of f is a draw of weights.  Duel features are :math:`\phi(x) - \phi(x')`, so a
draw of a preference is antisymmetric by construction (supplement, section 4.1).
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from askwise.kernels import Covariance, Stationary
from askwise.seeds import Generators

__all__ = ["Features", "FourierFeatures", "HilbertFeatures", "features"]

_SAFETY = 2.0
_LARGEST_BOX = 2**18


class Features(ABC):
    """Features of points in the unit cube, for all lanes of the kernel."""

    error: float
    """Bound (Hilbert) or standard error (Fourier) of the kernel they give, relative to its variance."""

    @property
    @abstractmethod
    def count(self) -> int:
        """How many there are."""

    @abstractmethod
    def __call__(self, x: Float[Tensor, "*b q d"]) -> Float[Tensor, "*c q m"]:
        """Features of the points ``x``."""

    def duel(self, x: Float[Tensor, "*b q d"], other: Float[Tensor, "*b q d"]) -> Float[Tensor, "*c q m"]:
        """Features of the duel of ``x`` with ``other``, the negative of those of the reverse."""
        return self(x) - self(other)


def features(
    prior: Covariance,
    d: int,
    tolerance: float = 1e-3,
    limit: int = 4096,
    generators: Generators | None = None,
) -> Features:
    """Hilbert-space features whose kernel errs by less than ``tolerance``, if ``limit`` of them suffice.

    If not, the tolerance is doubled until they do, up to the ``1 / sqrt(limit)`` by which as many
    random Fourier features err in any dimension; beyond, it is those, drawn from ``generators``.
    Errors are relative to the prior variance; ``.error`` tells what was reached.
    """
    if not isinstance(prior, Stationary):
        raise ValueError(
            "kernel must be a squared exponential or Matern 3/2 or 5/2 to have features; "
            f"got {prior}. Use one of the three, e.g. askwise.kernel('se')."
        )
    random_error = 1 / math.sqrt(limit)
    while tolerance < random_error:
        if (hilbert := _hilbert(prior, d, tolerance, limit)) is not None:
            return hilbert
        tolerance *= 2
    if generators is None:
        raise ValueError(
            f"generators must be given where {limit} Hilbert features err by more than "
            f"{random_error:g}; got none. Give a torch.Generator or a larger limit."
        )
    frequencies = prior.spectral_draws(limit // 2, d, generators)
    return FourierFeatures(frequencies, prior.outputscale, random_error)


@dataclass(frozen=True)
class FourierFeatures(Features):
    r"""Random Fourier features :math:`s \sqrt{2/m} (\cos \omega^\top x, \sin \omega^\top x)`.

    Source: Rahimi & Recht (2007); the pairs have less variance than random phases.
    """

    frequencies: Float[Tensor, "*lane half d"]
    outputscale: Float[Tensor, "*lane"]
    error: float

    @property
    def count(self) -> int:
        """How many there are."""
        return 2 * self.frequencies.shape[-2]

    def __call__(self, x: Float[Tensor, "*b q d"]) -> Float[Tensor, "*c q m"]:
        """Features of the points ``x``."""
        angle = x @ self.frequencies.mT
        scale = (self.outputscale * 2 / self.count).sqrt()[..., None, None]
        return scale * torch.cat([angle.cos(), angle.sin()], -1)


@dataclass(frozen=True)
class HilbertFeatures(Features):
    r"""Eigenfunctions of the Laplacian on a box around the cube, weighted by the spectral density.

    .. math:: \phi_j(x) = \sqrt{S(\omega_j)} \prod_k L_k^{-1/2}
        \sin\big(\omega_{jk} (x_k - \tfrac12 + L_k)\big), \qquad \omega_{jk} = \frac{\pi j_k}{2 L_k}

    Source: Solin & Sarkka (2020), Stat. Comput. 30.
    """

    index: Int[Tensor, "*lane m d"]
    boundary: Float[Tensor, "*lane d"]
    scale: Float[Tensor, "*lane m"]
    error: float

    @property
    def count(self) -> int:
        """How many there are."""
        return self.index.shape[-2]

    def __call__(self, x: Float[Tensor, "*b q d"]) -> Float[Tensor, "*c q m"]:
        """Features of the points ``x``."""
        product: Tensor | None = None
        for k in range(x.shape[-1]):
            # the sines of one dimension are few: make each once, then look them up
            number = self.index[..., k]
            order = torch.arange(1, int(number.max()) + 1, dtype=x.dtype, device=x.device)
            boundary = self.boundary[..., k, None, None]
            angle = (x[..., k, None] - 0.5 + boundary) * (math.pi / 2) / boundary * order
            sines = angle.sin()
            at = (number - 1)[..., None, :].expand(*sines.shape[:-1], number.shape[-1])
            factor = sines.gather(-1, at)
            product = factor if product is None else product * factor
        assert product is not None
        return product * self.scale[..., None, :]


def _hilbert(prior: Stationary, d: int, tolerance: float, limit: int) -> HilbertFeatures | None:
    """Features within the tolerance, or None if that takes more than ``limit``.

    Half the tolerance goes to the boundary: with all eigenfunctions the kernel is that of the
    prior plus mirror images, the nearest at a distance of 2 L - 1.  A quarter each goes to the
    spectrum outside the box of frequencies and to the smallest terms inside it.
    """
    lengthscale = prior.lengthscale.expand(*prior.lanes, d)
    share = tolerance / (2 * _SAFETY * d)
    boundary = 0.5 + prior.reach(share) * lengthscale / 2
    cutoff = prior.bandwidth(share / 2) / lengthscale
    sizes = (cutoff * 2 * boundary / math.pi).ceil().clamp_min(1).reshape(-1, d).amax(0)
    if float(sizes.prod()) > _LARGEST_BOX:
        return None
    axes = [torch.arange(1, int(size) + 1, device=lengthscale.device) for size in sizes]
    box = torch.cartesian_prod(*axes).reshape(-1, d)
    density = prior.spectral_density(box * (math.pi / 2) / boundary[..., None, :])
    variance = density / (2 * boundary).prod(-1)[..., None]  # of each term, averaged over the box
    ordered, order = variance.sort(-1, descending=True)
    dropped = ordered.flip(-1).cumsum(-1).flip(-1)  # what goes if this term and all after it go
    budget = tolerance / (4 * _SAFETY) * prior.outputscale[..., None]
    count = int((dropped > budget).sum(-1).max())
    if count > limit:
        return None
    kept = order[..., :count]
    scale = (density.gather(-1, kept) / boundary.prod(-1)[..., None]).sqrt()
    return HilbertFeatures(box[kept], boundary, scale, tolerance)
