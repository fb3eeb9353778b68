"""Hilbert-space features: a bounded error, in few dimensions or for long lengthscales."""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import pad

from askwise.model.features.base import FEW_FUNCTIONS, Features, lanes_by
from askwise.model.kernels import Stationary

_SAFETY_FACTOR = 2.0
_MAX_GRID = 2**18
Half = tuple[float, ...]
"""Half the width, in each dimension, of a box around the middle of the cube that has all points."""


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
    cheap_sums = FEW_FUNCTIONS

    @property
    def _fingerprints(self) -> Float[Tensor, "lane k"]:
        # the first two terms separate the variance from the lengthscales
        return torch.cat([self.boundary, self.scale[:, :2], self.counts[:, None]], -1)

    def single(self) -> "HilbertFeatures":
        """The same features in single precision."""
        return replace(self, boundary=self.boundary.float(), scale=self.scale.float())

    def select(self, lane: int) -> "HilbertFeatures":
        """The features of one lane, without padding."""
        kept = slice(int(self.counts[lane]))
        parts = self.boundary[lane], self.scale[lane, kept], self.error[lane], self.counts[lane]
        return HilbertFeatures(self.index[lane, kept], *parts)

    def __call__(self, x: Float[Tensor, "*b q d"]) -> Float[Tensor, "*c q m"]:
        """Features of the points ``x``."""
        factors = []
        for k in range(x.shape[-1]):  # of the few distinct sines of a dimension, each is computed once
            sines, at = self._angles(x, k)[0].sin(), self.index[..., k] - 1
            if self.lanes:
                at = at[..., None, :]
                factors.append(sines.gather(-1, at.expand(*sines.shape[:-1], at.shape[-1])))
            else:  # whole rows in memory are taken in a third of the time
                factors.append(sines.mT.contiguous().index_select(-2, at).mT)
        return functools.reduce(torch.mul, factors).mul_(self.scale[..., None, :])

    def sums(self, x: Float[Tensor, "q d"], weights: Float[Tensor, "k m"]) -> Float[Tensor, "k q"]:
        """The same from rows of sines, which are copied ten times faster than single ones are looked up."""
        rows = (self._angles(x, k)[0].sin().mT.contiguous() for k in range(x.shape[-1]))
        factors = (sines.index_select(0, self.index[:, k] - 1) for k, sines in enumerate(rows))
        return (weights * self.scale) @ functools.reduce(torch.Tensor.mul_, factors)

    def as_function(self, weights: Float[Tensor, "*e m"]) -> "Product":
        """By contracting the grid of all weights with the sines of one dimension after another.

        The grid has unused entries, but these are matrix products: 30 times faster than looking up and
        multiplying 3,300 features in four dimensions and differentiating that.
        """
        return Product(self.boundary, self._on_grid(weights), len(self._sizes))

    def weighted_sum(self, x: Tensor, weights: Tensor) -> Tensor:
        """The same; few functions by contracting the grid, as in :meth:`as_function`."""
        if weights.shape[-1] > FEW_FUNCTIONS:
            return super().weighted_sum(x, weights)
        waves = [_waves(x, self.boundary, k, size, 0) for k, size in enumerate(self._sizes)]
        return _contracted(self._on_grid(weights.movedim(-1, 0)), waves)[..., 0].movedim(0, -1)

    def _angles(self, x: Tensor, k: int) -> tuple[Tensor, Tensor]:
        return _angles(x, self.boundary, k, self._sizes[k])

    @functools.cached_property
    def _sizes(self) -> list[int]:
        """Number of sines in each dimension."""
        return [int(most) for most in self.index.flatten(0, -2).amax(0)]

    def _on_grid(self, weights: Float[Tensor, "*e m"]) -> Float[Tensor, "..."]:
        """Weights of the products of sines, scattered into the grid of all products."""
        flat = torch.zeros_like(self.index[..., 0])
        for k, size in enumerate(self._sizes):
            flat = flat * size + self.index[..., k] - 1
        grid = weights.new_zeros(*weights.shape[:-1], math.prod(self._sizes))
        grid.scatter_add_(-1, flat.expand(weights.shape), weights * self.scale)
        return grid.unflatten(-1, self._sizes)


@dataclass(frozen=True)
class Product:
    """Sums of products of sines, one of each dimension, and their derivatives."""

    boundary: Float[Tensor, "*lane d"]
    grid: Float[Tensor, "..."]
    """Their weights [*e, n, n', ..]."""
    dimensions: int

    def __call__(self, x: Float[Tensor, "*e q d"], order: int = 1) -> tuple[Tensor, ...]:
        """Values, gradients and, of order 2, Hessians."""
        d, sizes = self.dimensions, self.grid.shape[-self.dimensions :]
        waves = [_waves(x, self.boundary, k, size, order) for k, size in enumerate(sizes)]
        mixed = _contracted(self.grid, waves)
        # of all mixed derivatives [.., (order + 1)^d], those of this order and below
        each = [(order + 1) ** (d - 1 - k) for k in range(d)]
        value, grad = mixed[..., 0], torch.stack([mixed[..., one] for one in each], -1)
        if order == 1:
            return value, grad
        hessian = torch.stack([mixed[..., one + other] for one in each for other in each], -1)
        return value, grad, hessian.unflatten(-1, (d, d))

    def select(self, index: Int[Tensor, " k"]) -> "Product":
        """Some of the sums, counted in one dimension."""
        boundary, lanes = self.boundary, self.boundary.shape[:-1]
        if lanes:
            boundary = boundary.flatten(0, -2)[index % lanes.numel()]
        return Product(boundary, self.grid.flatten(0, -self.dimensions - 1)[index], self.dimensions)


def _waves(
    x: Float[Tensor, "*b q d"], boundary: Float[Tensor, "*lane d"], k: int, size: int, order: int
) -> Float[Tensor, "*c q o n"]:
    """The first sines of dimension k at points, and their derivatives up to this order."""
    angle, frequency = _angles(x, boundary, k, size)
    sine = angle.sin()
    found = [sine]
    if order:
        found.append(angle.cos() * frequency)
    if order > 1:
        found.append(-sine * frequency.square())
    return torch.stack(found, -2)


def _angles(x: Tensor, boundary: Tensor, k: int, size: int) -> tuple[Tensor, Tensor]:
    """Arguments of the first sines of dimension k at points [.., q, d], and their frequencies."""
    numbers = torch.arange(1, size + 1, dtype=x.dtype, device=x.device)
    half = boundary[..., k, None, None]
    frequency = (math.pi / 2) / half * numbers
    return (x[..., k, None] - 0.5 + half) * frequency, frequency


def _contracted(
    grid: Float[Tensor, "..."], waves: Sequence[Float[Tensor, "*b q o n"]]
) -> Float[Tensor, "*c q e"]:
    """The grid [*c, n, n', ..] at each point contracted with all products of one wave per dimension.

    Of o waves each, the products are numbered like the digits of a number of base o.
    """
    first, *rest = waves
    flat = grid.flatten(-len(waves), -1).unflatten(-1, (first.shape[-1], -1))
    sums = (first.flatten(-3, -2) @ flat).unflatten(-2, first.shape[-3:-1])
    for wave in rest:  # sums [.., q, products so far, what is left of the grid]
        sums = wave[..., None, :, :] @ sums.unflatten(-1, (wave.shape[-1], -1))
        sums = sums.flatten(-3, -2)
    return sums[..., 0]


def lane_parameters(prior: Stationary) -> list[tuple[float, ...]]:
    """Lengthscales and variance of each lane."""
    scale = prior.outputscale[..., None]
    lengths = prior.lengthscale.expand(*prior.lanes, prior.lengthscale.shape[-1])
    return [tuple(lane) for lane in torch.atleast_2d(torch.cat([lengths, scale], -1)).tolist()]


def hilbert_for_lanes(
    prior: Stationary, d: int, tolerance: float, limit: int, half: Half | None = None
) -> HilbertFeatures | None:
    """Features of all lanes; None if one of them needs more than ``limit``."""
    parts: list[HilbertFeatures] = []
    which = torch.empty(prior.lanes.numel(), dtype=torch.long)
    for kernel, lanes in lanes_by(lane_parameters(prior)).items():
        which[lanes] = len(parts)
        if (one := hilbert_for_kernel(prior.name, kernel, d, tolerance, limit, half)) is None:
            return None
        parts.append(one)
    count = max(part.count for part in parts)  # lanes with fewer are padded with zeros
    padded = []
    for part in parts:
        index = pad(part.index, (0, 0, 0, count - part.count), value=1)
        scale = pad(part.scale, (0, count - part.count))
        padded.append((index, part.boundary, scale, part.error, part.counts))
    stacked = (torch.stack(each)[which.reshape(prior.lanes)] for each in zip(*padded, strict=True))
    return HilbertFeatures(*(part.to(prior.lengthscale.device) for part in stacked))


@functools.lru_cache(maxsize=1024)
def hilbert_for_kernel(
    name: str,
    parameters: tuple[float, ...],
    d: int,
    tolerance: float,
    limit: int,
    half: Half | None = None,
) -> HilbertFeatures | None:
    """Features of a kernel (lengthscales and variance), doubling the tolerance until ``limit`` suffice."""
    numbers = torch.tensor(parameters, dtype=torch.float64)
    prior = Stationary(name, numbers[:-1], numbers[-1])
    halves = torch.tensor(half or (0.5,) * d, dtype=torch.float64)
    while (found := _hilbert(prior, halves, tolerance, limit)) is None:
        tolerance *= 2
        if tolerance >= 1 / math.sqrt(limit):
            return None
    return found


def _hilbert(
    prior: Stationary, half: Float[Tensor, " d"], tolerance: float, limit: int
) -> HilbertFeatures | None:
    """Features of one kernel within the tolerance, or None if that takes more than ``limit``.

    Half the tolerance goes to the boundary: with all eigenfunctions the kernel is the prior's plus mirror
    images, the nearest at a distance of 2 (L - h), h being half the width of the points' box.  A quarter each
    goes to the spectrum outside the grid of frequencies and to the smallest terms inside it.
    """
    d = len(half)
    lengthscale = prior.lengthscale.expand(d)
    per_dimension = tolerance / (2 * _SAFETY_FACTOR * d)
    boundary = half + prior.reach(per_dimension) * lengthscale / 2
    sizes = (prior.bandwidth(per_dimension / 2) / lengthscale * 2 * boundary / math.pi).ceil().clamp_min(1)
    if float(sizes.prod()) > _MAX_GRID:
        return None
    axes = [torch.arange(1, int(size) + 1, device=lengthscale.device) for size in sizes]
    grid = torch.cartesian_prod(*axes).reshape(-1, d)
    omega = grid * (math.pi / 2) / boundary
    density = prior.spectral_density(omega) / boundary.prod()
    # the variance that each term contributes, averaged over the points' box rather than that around it
    mirror, angle = 1 - 2 * (grid % 2), 2 * half * omega
    variance = density * ((1 - mirror * angle.sin() / angle) / 2).prod(-1)
    ordered, order = variance.sort(descending=True)
    dropped = ordered.flip(-1).cumsum(-1).flip(-1)  # variance lost without this term and all after it
    count = max(1, int((dropped > tolerance / (4 * _SAFETY_FACTOR) * prior.outputscale).sum()))
    if count > limit:
        return None
    kept = order[:count]
    error, counts = lengthscale.new_tensor(tolerance), torch.tensor(count, device=lengthscale.device)
    return HilbertFeatures(grid[kept], boundary, density[kept].sqrt(), error, counts)
