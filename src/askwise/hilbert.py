"""Hilbert-space features: exact to a stated error, in few dimensions or for long lengthscales."""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import pad

from askwise.basis import FEW_FUNCTIONS, Features, Slope
from askwise.kernels import Name, Stationary

__all__ = ["HilbertFeatures", "hilbert_of_lanes", "hilbert_within", "kinds_of"]

_SAFETY = 2.0
_LARGEST_BOX = 2**18


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

    @property
    def lanes(self) -> torch.Size:
        """Shape of the lanes."""
        return self.counts.shape

    @property
    def _marks(self) -> Float[Tensor, "lane k"]:
        # the first two terms tell the variance from the lengthscales
        return torch.cat([self.boundary, self.scale[:, :2], self.counts[:, None]], -1)

    def select(self, lane: int) -> "HilbertFeatures":
        """The features of one lane, without what it was filled up with."""
        kept = slice(int(self.counts[lane]))
        parts = self.boundary[lane], self.scale[lane, kept], self.error[lane], self.counts[lane]
        return HilbertFeatures(self.index[lane, kept], *parts)

    def __call__(self, x: Float[Tensor, "*b q d"]) -> Float[Tensor, "*c q m"]:
        """Features of the points ``x``."""
        product: Tensor | None = None
        for k in range(x.shape[-1]):
            # the sines of one dimension are few: make each once, then look them up
            number = self.index[..., k]
            sines = self._angles(x, k)[0].sin()
            at = (number - 1)[..., None, :].expand(*sines.shape[:-1], number.shape[-1])
            factor = sines.gather(-1, at)
            product = factor if product is None else product * factor
        assert product is not None
        return product * self.scale[..., None, :]

    def sloped(self, weights: Float[Tensor, "*e m"]) -> Slope:
        """By products of one dimension's sines after another with all weights on their grid.

        The grid is larger than what is used of it, but these are products of matrices: 30 times faster
        than to look up and multiply 3,300 features in four dimensions, and to differentiate that.
        """
        grid = self._on_grid(weights)

        def value_and_slope(x: Tensor) -> tuple[Tensor, Tensor]:
            waves = []
            for k in range(x.shape[-1]):
                angle, frequency = self._angles(x, k)
                waves.append((angle.sin(), angle.cos() * frequency))
            with_sine, with_cosine = (_along_first(wave, grid, len(waves)) for wave in waves[0])
            value, slopes = _contracted(with_sine, waves[1:])
            return value, torch.stack([_contracted(with_cosine, waves[1:], slopes=False)[0], *slopes], -1)

        return value_and_slope

    def combined(
        self, x: Float[Tensor, "*b q d"], weights: Float[Tensor, "*e m k"]
    ) -> Float[Tensor, "*c q k"]:
        """The same; few functions by products along the grid, as in :meth:`sloped`."""
        if weights.shape[-1] > FEW_FUNCTIONS:
            return super().combined(x, weights)
        return self._along_grid(x, weights.movedim(-1, 0)).movedim(0, -1)

    def shared(
        self, x: Float[Tensor, "q d"], weights: Float[Tensor, "count *lane m"]
    ) -> Float[Tensor, "count *lane q"]:
        """The same for all lanes at points that they share; few functions by products along the grid."""
        return self._along_grid(x, weights) if self.hardly_shared(weights) else super().shared(x, weights)

    def _along_grid(
        self, x: Float[Tensor, "*b q d"], weights: Float[Tensor, "*e m"]
    ) -> Float[Tensor, "*c q"]:
        """One function a batch of points, by products of one dimension's sines after another."""
        sines = [self._angles(x, k)[0].sin() for k in range(x.shape[-1])]
        first = _along_first(sines[0], self._on_grid(weights), len(sines))
        return _contracted(first, [(sine, sine) for sine in sines[1:]], slopes=False)[0]

    def _angles(self, x: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Arguments of all sines of a dimension at points [.., q, d], and their frequencies."""
        order = torch.arange(1, self._sizes[k] + 1, dtype=x.dtype, device=x.device)
        boundary = self.boundary[..., k, None, None]
        frequency = (math.pi / 2) / boundary * order
        return (x[..., k, None] - 0.5 + boundary) * frequency, frequency

    @functools.cached_property
    def _sizes(self) -> list[int]:
        """Number of sines in each dimension."""
        return [int(most) for most in self.index.flatten(0, -2).amax(0)]

    def _on_grid(self, weights: Float[Tensor, "*e m"]) -> Float[Tensor, "..."]:
        """Weights of the products of sines, at their places in a grid of all products."""
        place = torch.zeros_like(self.index[..., 0])
        for k, size in enumerate(self._sizes):
            place = place * size + self.index[..., k] - 1
        grid = weights.new_zeros(*weights.shape[:-1], math.prod(self._sizes))
        grid.scatter_add_(-1, place.expand(weights.shape), weights * self.scale)
        return grid.unflatten(-1, self._sizes)


def _along_first(
    wave: Float[Tensor, "..."], grid: Float[Tensor, "..."], dimensions: int
) -> Float[Tensor, "..."]:
    """The grid of so many dimensions multiplied by waves [.., q, n] of the first: [.., q, rest]."""
    if dimensions == 1:
        return (wave @ grid[..., None])[..., 0]
    rest = grid.shape[-dimensions + 1 :]
    return (wave @ grid.flatten(-dimensions + 1, -1)).unflatten(-1, rest)


def _contracted(
    grid: Float[Tensor, "..."], waves: Sequence[tuple[Tensor, Tensor]], *, slopes: bool = True
) -> tuple[Tensor, list[Tensor]]:
    """A grid [.., q, n, ..] for each point, multiplied by its sines; and with one of them a cosine."""
    if not waves:
        return grid, []
    sine, cosine = (wave.reshape(*wave.shape, *[1] * (len(waves) - 1)) for wave in waves[0])
    axis = -len(waves)
    value, rest = _contracted((grid * sine).sum(axis), waves[1:], slopes=slopes)
    if not slopes:
        return value, []
    own, _ = _contracted((grid * cosine).sum(axis), waves[1:], slopes=False)
    return value, [own, *rest]


def kinds_of(prior: Stationary) -> list[tuple[float, ...]]:
    """Lengthscales and variance of each lane."""
    own = prior.lengthscale.shape[-1]
    lengths = prior.lengthscale.expand(*prior.lanes, own).reshape(-1, own).tolist()
    scales = prior.outputscale.reshape(-1).tolist()
    return [(*each, scale) for each, scale in zip(lengths, scales, strict=True)]


def hilbert_of_lanes(prior: Stationary, d: int, tolerance: float, limit: int) -> HilbertFeatures | None:
    """Features of all lanes side by side; None if one of them needs more than ``limit``."""
    device, kinds = prior.lengthscale.device, kinds_of(prior)
    distinct = list(dict.fromkeys(kinds))
    found = []
    for kind in distinct:
        one = hilbert_within(prior.name, kind, d, tolerance, limit)
        if one is None:
            return None
        found.append(one)
    place = {kind: number for number, kind in enumerate(distinct)}
    which = torch.tensor([place[kind] for kind in kinds]).reshape(prior.lanes)
    joined = _side_by_side(found)
    return HilbertFeatures(*(getattr(joined, part.name)[which].to(device) for part in fields(joined)))


@functools.lru_cache(maxsize=1024)
def hilbert_within(
    name: Name, kind: tuple[float, ...], d: int, tolerance: float, limit: int
) -> HilbertFeatures | None:
    """Features of a kernel (lengthscales and variance), of the first tolerance that ``limit`` reach."""
    numbers = torch.tensor(kind, dtype=torch.float64)
    prior = Stationary(name, numbers[:-1], numbers[-1])
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


def _side_by_side(parts: Sequence[HilbertFeatures]) -> HilbertFeatures:
    """The features of several kernels as lanes, filled up with zeros."""
    most = max(part.count for part in parts)
    return HilbertFeatures(
        torch.stack([pad(part.index, (0, 0, 0, most - part.count), value=1) for part in parts]),
        torch.stack([part.boundary for part in parts]),
        torch.stack([pad(part.scale, (0, most - part.count)) for part in parts]),
        torch.stack([part.error for part in parts]),
        torch.stack([part.counts for part in parts]),
    )
