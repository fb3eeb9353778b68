r"""Finite features with the prior covariance as inner product, :math:`k \approx \phi(x)^\top \phi(x')`.

With them a draw of f is a draw of weights.  Duel features are :math:`\phi(x) - \phi(x')`, so a
draw of a preference is antisymmetric by construction (supplement, section 4.1).
"""

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import pad

from askwise.kernels import Covariance, Name, Stationary
from askwise.seeds import Generators

__all__ = ["Features", "FourierFeatures", "HilbertFeatures", "Slope", "features", "lanes_alike"]

Slope = Callable[[Tensor], tuple[Tensor, Tensor]]
"""From points [*b, q, d] to values [*b, q] and gradients [*b, q, d]."""
_FEW_FUNCTIONS = 4  # of the same kernel, for which it does not pay to make its features
_ENTRIES_IN_CACHE = 2**18  # features of points that a CPU's cache holds; 2**24 take twice as long each
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

    @abstractmethod
    def sloped(self, weights: Float[Tensor, "*e m"]) -> Slope:
        """One function a batch of points, with its gradient, which autograd does not follow further."""

    def shared(
        self, x: Float[Tensor, "q d"], weights: Float[Tensor, "count *lane m"]
    ) -> Float[Tensor, "count *lane q"]:
        """Functions of all lanes at points that they share: features are made once for each kernel."""
        if x.is_cuda and self._hardly_shared(weights):  # one by one the kernels would be waited for
            return self.combined(x, weights.movedim(0, -1)).movedim(-1, 0)
        if not self.lanes:
            flat, fitting = weights.flatten(0, -2), max(1, _ENTRIES_IN_CACHE // self.count)
            parts = [x] if x.is_cuda else x.split(fitting)
            return torch.cat([flat @ self(part).mT for part in parts], -1).view(*weights.shape[:-1], len(x))
        found = weights.new_empty(*weights.shape[:-1], len(x))
        for lanes in self.alike:
            own = self.select(int(lanes[0]))
            found[:, lanes] = own.shared(x, weights[:, lanes, : own.count])
        return found

    def _hardly_shared(self, weights: Float[Tensor, "count *lane m"]) -> bool:
        """Whether there are few functions for each kernel."""
        kernels = len(self.alike) if self.lanes else 1
        return math.prod(weights.shape[:-1]) <= _FEW_FUNCTIONS * kernels

    @property
    @abstractmethod
    def lanes(self) -> torch.Size:
        """Shape of the lanes: empty if all lanes share the features."""

    @functools.cached_property
    def alike(self) -> list[Int[Tensor, " k"]]:
        """Groups of lanes with the same features."""
        _, which = self._marks.unique(dim=0, return_inverse=True)
        return [(which == group).nonzero()[:, 0] for group in range(int(which.max()) + 1)]

    @property
    @abstractmethod
    def _marks(self) -> Float[Tensor, "lane k"]:
        """Numbers that tell the features of one lane from those of another."""

    @abstractmethod
    def select(self, lane: int) -> "Features":
        """The features of one lane."""

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
    Each lane of the prior has the features that it would have alone, unless one needs random ones:
    see :func:`lanes_alike`.
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
    alone = _hilbert_of_lanes(prior, d, tolerance, limit)
    if alone is not None:
        return alone
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
    def lanes(self) -> torch.Size:
        """Shape of the lanes."""
        return self.frequencies.shape[:-2]

    @property
    def _marks(self) -> Float[Tensor, "lane k"]:
        scale = self.outputscale.expand(self.lanes)[:, None]
        return torch.cat([self.frequencies[:, 0], scale], -1)

    def select(self, lane: int) -> "FourierFeatures":
        """The features of one lane."""
        return FourierFeatures(self.frequencies[lane], self.outputscale.expand(self.lanes)[lane])

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
        half, weights = weights.shape[-2] // 2, self._scale * weights
        even, odd = weights[..., :half, :], weights[..., half:, :]
        fitting = max(1, _ENTRIES_IN_CACHE // max(1, math.prod(x.shape[:-2]) * half))
        found = []
        for part in [x] if x.is_cuda else x.split(fitting, -2):
            angle = part @ self.frequencies.mT
            found.append(angle.cos() @ even + angle.sin() @ odd)
        return torch.cat(found, -2)

    def sloped(self, weights: Float[Tensor, "*e m"]) -> Slope:
        """By hand, in less than half the time of autograd, which is most of the time of a search of draws."""
        half = weights.shape[-1] // 2
        weights = self._scale[..., 0] * weights
        even, odd = weights[..., None, :half], weights[..., None, half:]

        def value_and_slope(x: Tensor) -> tuple[Tensor, Tensor]:
            angle = x @ self.frequencies.mT
            cosine, sine = angle.cos(), angle.sin_()
            value = (cosine @ even.mT + sine @ odd.mT)[..., 0]
            return value, cosine.mul_(odd).sub_(sine.mul_(even)) @ self.frequencies

        return value_and_slope

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
        if weights.shape[-1] > _FEW_FUNCTIONS:
            return super().combined(x, weights)
        return self._along_grid(x, weights.movedim(-1, 0)).movedim(0, -1)

    def shared(
        self, x: Float[Tensor, "q d"], weights: Float[Tensor, "count *lane m"]
    ) -> Float[Tensor, "count *lane q"]:
        """The same for all lanes at points that they share; few functions by products along the grid."""
        return self._along_grid(x, weights) if self._hardly_shared(weights) else super().shared(x, weights)

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


def lanes_alike(
    prior: Covariance, d: int, tolerance: float = 1e-3, limit: int = 4096
) -> list[Int[Tensor, " k"]]:
    """Lanes that have Hilbert-space features, and those that need random ones; one group if all are alike."""
    if not isinstance(prior, Stationary) or not prior.lanes:
        return []
    few = {
        kind: _hilbert_within(prior.name, kind, d, tolerance, limit) is None for kind in set(_kinds(prior))
    }
    random = torch.tensor([few[kind] for kind in _kinds(prior)])
    groups = [mask.nonzero()[:, 0].to(prior.lengthscale.device) for mask in (~random, random)]
    return [group for group in groups if len(group)]


def _kinds(prior: Stationary) -> list[tuple[float, ...]]:
    """Lengthscales and variance of each lane."""
    own = prior.lengthscale.shape[-1]
    lengths = prior.lengthscale.expand(*prior.lanes, own).reshape(-1, own).tolist()
    scales = prior.outputscale.reshape(-1).tolist()
    return [(*each, scale) for each, scale in zip(lengths, scales, strict=True)]


def _hilbert_of_lanes(prior: Stationary, d: int, tolerance: float, limit: int) -> HilbertFeatures | None:
    """Features of all lanes side by side; None if one of them needs more than ``limit``."""
    device, kinds = prior.lengthscale.device, _kinds(prior)
    distinct = list(dict.fromkeys(kinds))
    found = []
    for kind in distinct:
        one = _hilbert_within(prior.name, kind, d, tolerance, limit)
        if one is None:
            return None
        found.append(one)
    place = {kind: number for number, kind in enumerate(distinct)}
    which = torch.tensor([place[kind] for kind in kinds]).reshape(prior.lanes)
    joined = _side_by_side(found)
    return HilbertFeatures(*(getattr(joined, part.name)[which].to(device) for part in fields(joined)))


@functools.lru_cache(maxsize=1024)
def _hilbert_within(
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
