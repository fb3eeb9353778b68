r"""Features, whose inner product is the prior covariance: :math:`k \approx \phi(x)^\top \phi(x')`.

With them a draw of f is a draw of weights.  Duel features are :math:`\phi(x) - \phi(x')`, so a draw of a
preference is antisymmetric by construction (supplement, section 4.1).
"""

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from typing import Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

Key = TypeVar("Key", bound=Hashable)
FEW_FUNCTIONS = 4
"""Number of functions of one kernel up to which computing its features does not pay off."""
_CHUNK_ENTRIES = 2**20  # feature values that nearly fit the CPU cache; with 2**24 each takes twice as long


@runtime_checkable
class Derivatives(Protocol):
    """A function with its derivatives in closed form."""

    def __call__(self, x: Tensor, order: int = 1) -> tuple[Tensor, ...]:
        """Values [*b, q] at points [*b, q, d] gradients [*b, q, d]; of order 2 Hessians [*b, q, d, d]."""

    def select(self, index: Int[Tensor, " k"]) -> "Derivatives":
        """Some of the functions, counted in one dimension."""


class Features(ABC):
    """Features of points in the unit cube, for all lanes of the kernel."""

    error: Float[Tensor, "*lane"]
    """Bound (Hilbert) or standard error (Fourier) of the kernel, relative to its variance."""
    counts: Int[Tensor, "*lane"]
    """Number of features of each lane; lanes with fewer are padded with zeros."""
    cheap_sums = 1
    """Number of functions up to which weighted sums are cheaper than the features; more on a GPU."""

    @property
    def count(self) -> int:
        """Number of features, padding included."""
        return int(self.counts.max())

    @abstractmethod
    def __call__(self, x: Float[Tensor, "*b q d"]) -> Float[Tensor, "*c q m"]:
        """Features of the points ``x``."""

    def weighted_sum(
        self, x: Float[Tensor, "*b q d"], weights: Float[Tensor, "*e m k"]
    ) -> Float[Tensor, "*c q k"]:
        """``self(x) @ weights``."""
        return self(x) @ weights

    @abstractmethod
    def as_function(self, weights: Float[Tensor, "*e m"]) -> Derivatives:
        """The function with these weights, one per batch of points, and its derivatives, without autograd."""

    def at_shared_points(
        self, x: Float[Tensor, "q d"], weights: Float[Tensor, "count *lane m"]
    ) -> Float[Tensor, "count *lane q"]:
        """Functions of all lanes at points that they share: features are computed once per kernel."""
        if self.few_functions(weights, FEW_FUNCTIONS if x.is_cuda else self.cheap_sums):
            return self.weighted_sum(x, weights.movedim(0, -1)).movedim(-1, 0)
        if not self.lanes:
            flat, parts = weights.flatten(0, -2), chunks_in_cache(x, self.count)
            found = torch.cat([self.sums(part, flat) for part in parts], -1)
            return found.view(*weights.shape[:-1], len(x))
        found = weights.new_empty(*weights.shape[:-1], len(x))
        for lanes in self.groups:
            one = self.select(int(lanes[0]))
            found[:, lanes] = one.at_shared_points(x, weights[:, lanes, : one.count])
        return found

    @abstractmethod
    def sums(self, x: Float[Tensor, "q d"], weights: Float[Tensor, "k m"]) -> Float[Tensor, "k q"]:
        """``weights @ self(x).mT`` of many functions, with one kernel for all lanes."""

    def few_functions(self, weights: Float[Tensor, "count *lane m"], most: int) -> bool:
        """Whether there are at most so many functions per kernel."""
        kernels = len(self.groups) if self.lanes else 1
        return math.prod(weights.shape[:-1]) <= most * kernels

    @property
    def lanes(self) -> torch.Size:
        """Shape of the lanes: empty if all lanes share the features."""
        return self.counts.shape

    @functools.cached_property
    def groups(self) -> list[Int[Tensor, " k"]]:
        """Groups of lanes with the same features."""
        groups = lanes_by(map(tuple, self._fingerprints.tolist()))
        return [lanes.to(self.counts.device) for lanes in groups.values()]

    @property
    @abstractmethod
    def _fingerprints(self) -> Float[Tensor, "lane k"]:
        """Numbers that identify the features of a lane."""

    @abstractmethod
    def single(self) -> "Features":
        """The same features in single precision."""

    @abstractmethod
    def select(self, lane: int) -> "Features":
        """The features of one lane."""

    def duel(self, x: Float[Tensor, "*b q d"], other: Float[Tensor, "*b q d"]) -> Float[Tensor, "*c q m"]:
        """Features of the duel of ``x`` with ``other``."""
        return self(x) - self(other)


def lanes_by(keys: Iterable[Key]) -> dict[Key, Int[Tensor, " k"]]:
    """The lanes that have each key, for one key per lane."""
    lanes: dict[Key, list[int]] = {}
    for lane, key in enumerate(keys):
        lanes.setdefault(key, []).append(lane)
    return {key: torch.tensor(members) for key, members in lanes.items()}


def chunks_in_cache(x: Float[Tensor, "*b q d"], each: int) -> Sequence[Float[Tensor, "*b p d"]]:
    """The points in even chunks that fit the CPU cache with ``each`` features a point; on a GPU one chunk."""
    if x.is_cuda:
        return [x]
    chunks = math.ceil(x.shape[-2] * max(1, each) / _CHUNK_ENTRIES)
    return x.split(math.ceil(max(1, x.shape[-2]) / max(1, chunks)), -2)
