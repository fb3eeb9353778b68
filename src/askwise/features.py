r"""Finite features with the prior covariance as inner product, :math:`k \approx \phi(x)^\top \phi(x')`.

With them a draw of f is a draw of weights.  Duel features are :math:`\phi(x) - \phi(x')`, so a
draw of a preference is antisymmetric by construction (supplement, section 4.1).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import pad

from askwise.kernels import Covariance, Stationary
from askwise.seeds import Generators
from askwise.slopes import by_autograd

__all__ = ["Features", "FourierFeatures", "HilbertFeatures", "features"]

_SAFETY = 2.0
_LARGEST_BOX = 2**18


class Features(ABC):
    """Features of points in the unit cube, for all lanes of the kernel."""

    error: Float[Tensor, "*lane"]
    """Bound (Hilbert) or standard error (Fourier) of the kernel, relative to its variance."""
    counts: Int[Tensor, "*lane"]
    """How many each lane has; in a lane with fewer than another the rest are zero."""

    @property
    def count(self) -> int:
        """How many there are."""
        return int(self.counts.max())

    @abstractmethod
    def __call__(self, x: Float[Tensor, "*b q d"]) -> Float[Tensor, "*c q m"]:
        """Features of the points ``x``."""

    def combined(
        self, x: Float[Tensor, "*b q d"], weights: Float[Tensor, "*e m k"]
    ) -> Float[Tensor, "*c q k"]:
        """``self(x) @ weights``: functions with these weights."""
        return self(x) @ weights

    def with_slope(
        self, x: Float[Tensor, "*b q d"], weights: Float[Tensor, "*e m"]
    ) -> tuple[Float[Tensor, "*b q"], Float[Tensor, "*b q d"]]:
        """One function a batch of points, and its gradient, which autograd does not follow further."""
        return by_autograd(lambda x: self.combined(x, weights[..., None])[..., 0], x)

    def duel(self, x: Float[Tensor, "*b q d"], other: Float[Tensor, "*b q d"]) -> Float[Tensor, "*c q m"]:
        """Features of the duel of ``x`` with ``other``, the negative of those of the reverse."""
        return self(x) - self(other)


def features(
    prior: Covariance,
    d: int,
    tolerance: float = 1e-3,
    limit: int = 4096,
    generators: Generators | None = None,
    lanes: torch.Size | None = None,
) -> Features:
    """Hilbert-space features whose kernel errs by less than ``tolerance``, if ``limit`` of them suffice.

    If not, the tolerance is doubled until they do, up to the ``1 / sqrt(limit)`` by which as many
    random Fourier features err in any dimension; beyond, it is those, drawn from ``generators`` for
    each of ``lanes``.  Errors are relative to the prior variance; ``.error`` tells what was reached.
    Each lane of the prior has the features that it would have alone, unless one needs random ones.
    """
    if not isinstance(prior, Stationary):
        raise ValueError(
            "kernel must be a squared exponential or Matern 3/2 or 5/2 to have features; "
            f"got {prior}. Use one of the three, e.g. askwise.kernel('se')."
        )
    if not 1e-12 <= tolerance < 1 or limit < 2:
        raise ValueError(
            f"tolerance must lie between 1e-12 and 1 and limit be 2 or more; got {tolerance:g} and {limit}. "
            "The defaults are 1e-3 and 4096."
        )
    prior, random_error = prior.detached(), 1 / math.sqrt(limit)
    alone = [_hilbert_within(one, d, tolerance, limit) for one in prior.each_lane()]
    if all(part is not None for part in alone):
        return _side_by_side([part for part in alone if part is not None], prior.lanes)
    if generators is None:
        raise ValueError(
            f"generators must be given where {limit} Hilbert features err by more than "
            f"{random_error:g}; got none. Give a torch.Generator or a larger limit."
        )
    return FourierFeatures(prior.spectral_draws(limit // 2, d, generators, lanes), prior.outputscale)


@dataclass(frozen=True)
class FourierFeatures(Features):
    r"""Random Fourier features :math:`s \sqrt{2/m} (\cos \omega^\top x, \sin \omega^\top x)`.

    Source: Rahimi & Recht (2007); the pairs have less variance than random phases.
    """

    frequencies: Float[Tensor, "*lane half d"]
    outputscale: Float[Tensor, "..."]

    @property
    def counts(self) -> Int[Tensor, "*lane"]:  # type: ignore[override]
        """How many each lane has."""
        *lanes, half, _ = self.frequencies.shape
        return torch.full(lanes, 2 * half, device=self.frequencies.device)

    @property
    def error(self) -> Float[Tensor, "*lane"]:  # type: ignore[override]
        """Standard error of the kernel, relative to its variance."""
        return self.counts.to(self.frequencies.dtype).rsqrt()

    def __call__(self, x: Float[Tensor, "*b q d"]) -> Float[Tensor, "*c q m"]:
        """Features of the points ``x``."""
        angle = x @ self.frequencies.mT
        return self._scale * torch.cat([angle.cos(), angle.sin()], -1)

    def combined(
        self, x: Float[Tensor, "*b q d"], weights: Float[Tensor, "*e m k"]
    ) -> Float[Tensor, "*c q k"]:
        """The same without putting the features together, which takes as long as making them."""
        angle, half = x @ self.frequencies.mT, weights.shape[-2] // 2
        weights = self._scale * weights
        return angle.cos() @ weights[..., :half, :] + angle.sin() @ weights[..., half:, :]

    def with_slope(
        self, x: Float[Tensor, "*b q d"], weights: Float[Tensor, "*e m"]
    ) -> tuple[Float[Tensor, "*b q"], Float[Tensor, "*b q d"]]:
        """The same by hand, in less than half the time, which is most of the time of a search of draws."""
        angle, half = x @ self.frequencies.mT, weights.shape[-1] // 2
        weights = self._scale[..., 0] * weights
        even, odd = weights[..., None, :half], weights[..., None, half:]
        cosine, sine = angle.cos(), angle.sin_()
        value = (cosine @ even.mT + sine @ odd.mT)[..., 0]
        return value, cosine.mul_(odd).sub_(sine.mul_(even)) @ self.frequencies

    @property
    def _scale(self) -> Tensor:
        return (self.outputscale * 2 / self.count).sqrt()[..., None, None]


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
    error: Float[Tensor, "*lane"]
    counts: Int[Tensor, "*lane"]

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


def _hilbert_within(prior: Stationary, d: int, tolerance: float, limit: int) -> HilbertFeatures | None:
    """Features of one lane, of the first tolerance that ``limit`` of them reach."""
    while (found := _hilbert(prior, d, tolerance, limit)) is None:
        tolerance *= 2
        if tolerance >= 1 / math.sqrt(limit):
            return None
    return found


def _hilbert(prior: Stationary, d: int, tolerance: float, limit: int) -> HilbertFeatures | None:
    """Features of one lane within the tolerance, or None if that takes more than ``limit``.

    Half the tolerance goes to the boundary: with all eigenfunctions the kernel is that of the
    prior plus mirror images, the nearest at a distance of 2 L - 1.  A quarter each goes to the
    spectrum outside the box of frequencies and to the smallest terms inside it.
    """
    lengthscale = prior.lengthscale.expand(d)
    share = tolerance / (2 * _SAFETY * d)
    boundary = 0.5 + prior.reach(share) * lengthscale / 2
    sizes = (prior.bandwidth(share / 2) / lengthscale * 2 * boundary / math.pi).ceil().clamp_min(1)
    if float(sizes.prod()) > _LARGEST_BOX:
        return None
    axes = [torch.arange(1, int(size) + 1, device=lengthscale.device) for size in sizes]
    box = torch.cartesian_prod(*axes).reshape(-1, d)
    omega = box * (math.pi / 2) / boundary
    density = prior.spectral_density(omega) / boundary.prod()
    # the variance that each term adds, averaged over the cube, not the box: they differ near its middle
    mirror = 1 - 2 * (box % 2)
    variance = density * ((1 - mirror * omega.sin() / omega) / 2).prod(-1)
    ordered, order = variance.sort(descending=True)
    dropped = ordered.flip(-1).cumsum(-1).flip(-1)  # what goes if this term and all after it go
    count = max(1, int((dropped > tolerance / (4 * _SAFETY) * prior.outputscale).sum()))
    if count > limit:
        return None
    kept = order[:count]
    error, counts = lengthscale.new_tensor(tolerance), torch.tensor(count, device=lengthscale.device)
    return HilbertFeatures(box[kept], boundary, density[kept].sqrt(), error, counts)


def _side_by_side(parts: Sequence[HilbertFeatures], lanes: torch.Size) -> HilbertFeatures:
    """The features of several lanes as one, filled up with zeros."""
    most = max(part.count for part in parts)

    def stacked(column: list[Tensor]) -> Tensor:
        return torch.stack(column).reshape((*lanes, *column[0].shape))

    return HilbertFeatures(
        stacked([pad(part.index, (0, 0, 0, most - part.count), value=1) for part in parts]),
        stacked([part.boundary for part in parts]),
        stacked([pad(part.scale, (0, most - part.count)) for part in parts]),
        stacked([part.error for part in parts]),
        stacked([part.counts for part in parts]),
    )
