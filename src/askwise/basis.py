r"""What features are: their inner product is the prior covariance, :math:`k \approx \phi(x)^\top \phi(x')`.

With them a draw of f is a draw of weights.  Duel features are :math:`\phi(x) - \phi(x')`, so a
draw of a preference is antisymmetric by construction (supplement, section 4.1).
"""

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

__all__ = ["FEW_FUNCTIONS", "Features", "Slope", "in_cache"]

Slope = Callable[[Tensor], tuple[Tensor, Tensor]]
"""From points [*b, q, d] to values [*b, q] and gradients [*b, q, d]."""
FEW_FUNCTIONS = 4
"""Functions of the same kernel for which it does not pay to make its features."""
_ENTRIES_IN_CACHE = 2**18  # features of points that a CPU's cache holds; 2**24 take twice as long each


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
        if x.is_cuda and self.hardly_shared(weights):  # one by one the kernels would be waited for
            return self.combined(x, weights.movedim(0, -1)).movedim(-1, 0)
        if not self.lanes:
            flat, parts = weights.flatten(0, -2), in_cache(x, self.count)
            return torch.cat([flat @ self(part).mT for part in parts], -1).view(*weights.shape[:-1], len(x))
        found = weights.new_empty(*weights.shape[:-1], len(x))
        for lanes in self.alike:
            own = self.select(int(lanes[0]))
            found[:, lanes] = own.shared(x, weights[:, lanes, : own.count])
        return found

    def hardly_shared(self, weights: Float[Tensor, "count *lane m"]) -> bool:
        """Whether there are few functions for each kernel."""
        kernels = len(self.alike) if self.lanes else 1
        return math.prod(weights.shape[:-1]) <= FEW_FUNCTIONS * kernels

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


def in_cache(x: Float[Tensor, "*b q d"], each: int) -> Sequence[Float[Tensor, "*b p d"]]:
    """The points in parts whose features, so many ``each``, fit the cache of a CPU; on a GPU all of them."""
    return [x] if x.is_cuda else x.split(max(1, _ENTRIES_IN_CACHE // max(1, each)), -2)
