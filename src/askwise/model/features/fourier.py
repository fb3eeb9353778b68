"""Random Fourier features: their error does not depend on the dimension."""

import itertools
import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from askwise.model.features.base import Features, chunks_in_cache

_CHUNK_ENTRIES = 2**17  # angles that fit the cache of a CPU core, with their sines and cosines


@dataclass(frozen=True)
class FourierFeatures(Features):
    r"""Random Fourier features :math:`s \sqrt{2/m} (\cos \omega^\top x, \sin \omega^\top x)`.

    Source: Rahimi & Recht (2007); the pairs have less variance than random phases.
    """

    frequencies: Float[Tensor, "*lane half d"]
    outputscale: Float[Tensor, "..."]

    @property
    def _fingerprints(self) -> Float[Tensor, "lane k"]:
        return torch.cat([self.frequencies[:, 0], self.outputscale.expand(self.lanes)[:, None]], -1)

    def single(self) -> "FourierFeatures":
        """The same features in single precision."""
        return FourierFeatures(self.frequencies.float(), self.outputscale.float())

    def select(self, lane: int) -> "FourierFeatures":
        """The features of one lane."""
        return FourierFeatures(self.frequencies[lane], self.outputscale.expand(self.lanes)[lane])

    @property
    def counts(self) -> Int[Tensor, "*lane"]:  # type: ignore[override]
        """Number of features of each lane."""
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

    def weighted_sum(self, x: Tensor, weights: Tensor) -> Tensor:
        """The same without concatenating the features, which takes as long as computing them.

        A single function needs a cosine for each pair.
        """
        half, weights = weights.shape[-2] // 2, self._scale * weights
        even, odd = weights[..., :half, :], weights[..., half:, :]
        chunks = chunks_in_cache(x, math.prod(x.shape[:-2]) * half)
        angles = (chunk @ self.frequencies.mT for chunk in chunks)
        if weights.shape[-1] == 1:
            size, phase = _polar(even, odd)
            return torch.cat([(angle - phase.mT).cos_() @ size for angle in angles], -2)
        return torch.cat([angle.cos() @ even + angle.sin() @ odd for angle in angles], -2)

    def sums(self, x: Float[Tensor, "q d"], weights: Float[Tensor, "k m"]) -> Float[Tensor, "k q"]:
        """The same without concatenating the features."""
        half, weights = weights.shape[-1] // 2, self._scale[..., 0] * weights
        angle = self.frequencies @ x.mT
        return (weights[:, :half] @ angle.cos()).addmm_(weights[:, half:], angle.sin_())

    def as_function(self, weights: Float[Tensor, "*e m"]) -> "Waves":
        """In less than half the time of autograd, which would dominate the search of a draw."""
        half = weights.shape[-1] // 2
        weights = self._scale[..., 0] * weights
        return Waves(self.frequencies, *_polar(weights[..., None, :half], weights[..., None, half:]))

    @property
    def _scale(self) -> Tensor:
        return (self.outputscale * 2 / self.count).sqrt()[..., None, None]


def _polar(even: Tensor, odd: Tensor) -> tuple[Tensor, Tensor]:
    """Size and phase of a wave, the sum of a cosine and a sine with these weights."""
    return torch.hypot(even, odd), torch.atan2(odd, even)


@dataclass(frozen=True)
class Waves:
    """Sums of waves, and their derivatives."""

    frequencies: Float[Tensor, "*lane half d"]
    size: Float[Tensor, "*e 1 half"]
    phase: Float[Tensor, "*e 1 half"]

    def __call__(self, x: Float[Tensor, "*e q d"], order: int = 1) -> tuple[Tensor, ...]:
        """Values, gradients and, of order 2, Hessians."""
        if x.ndim < 3 or x.is_cuda:
            return self._derivatives(x, order)
        # some lanes after others, as many as fit a cache: half the time
        lanes = max(1, _CHUNK_ENTRIES // max(1, x[..., 0, :, 0].numel() * self.size.shape[-1]))
        if lanes >= x.shape[-3]:
            return self._derivatives(x, order)
        shared = itertools.repeat(self.frequencies)
        own = self.frequencies.split(lanes, -3) if self.frequencies.ndim > 2 else shared
        each = zip(own, self.size.split(lanes, -3), self.phase.split(lanes, -3), strict=False)
        found = [
            Waves(*part)._derivatives(at, order) for at, part in zip(x.split(lanes, -3), each, strict=True)
        ]
        return tuple(torch.cat(part, x.ndim - 3) for part in zip(*found, strict=True))

    def select(self, index: Int[Tensor, " k"]) -> "Waves":
        """Some of the sums, counted in one dimension."""
        frequencies, lanes = self.frequencies, self.frequencies.shape[:-2]
        if lanes:
            frequencies = frequencies.flatten(0, -3)[index % lanes.numel()]
        return Waves(frequencies, self.size.flatten(0, -3)[index], self.phase.flatten(0, -3)[index])

    def _derivatives(self, x: Tensor, order: int) -> tuple[Tensor, ...]:
        angle = (x @ self.frequencies.mT).sub_(self.phase)
        cosine = angle.cos()
        value = (cosine @ self.size.mT)[..., 0]
        grad = angle.sin_().mul_(self.size) @ -self.frequencies
        if order == 1:
            return value, grad
        products = self.frequencies[..., :, None] * -self.frequencies[..., None, :]
        hessian = cosine.mul_(self.size) @ products.flatten(-2)
        return value, grad, hessian.unflatten(-1, products.shape[-2:])
