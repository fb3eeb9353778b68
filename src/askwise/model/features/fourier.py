"""Random Fourier features: their error does not depend on the dimension."""

import itertools
import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from askwise.model.features.base import Derivatives, Features, chunks_in_cache

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

    def as_function(self, weights: Float[Tensor, "*e m"]) -> Derivatives:
        """In less than half the time of autograd, which would dominate the search of a draw."""
        half = weights.shape[-1] // 2
        weights = self._scale[..., 0] * weights
        size, phase = _polar(weights[..., None, :half], weights[..., None, half:])

        def derivatives(x: Tensor, order: int = 1) -> tuple[Tensor, ...]:
            if x.ndim < 3 or x.is_cuda:
                return _derivatives(x, self.frequencies, size, phase, order)
            # one lane after another, as far as a cache goes: half the time
            lanes = max(1, _CHUNK_ENTRIES // (x[..., 0, :, 0].numel() * half))
            own = self.frequencies.split(lanes) if self.lanes else itertools.repeat(self.frequencies)
            each = zip(x.split(lanes, -3), own, size.split(lanes, -3), phase.split(lanes, -3), strict=False)
            found = [_derivatives(*parts, order) for parts in each]
            return found[0] if len(found) == 1 else tuple(
                torch.cat(part, x.ndim - 3) for part in zip(*found, strict=True)
            )

        return derivatives

    @property
    def _scale(self) -> Tensor:
        return (self.outputscale * 2 / self.count).sqrt()[..., None, None]


def _polar(even: Tensor, odd: Tensor) -> tuple[Tensor, Tensor]:
    """Size and phase of a wave, the sum of a cosine and a sine with these weights."""
    return torch.hypot(even, odd), torch.atan2(odd, even)


def _derivatives(
    x: Tensor, frequencies: Float[Tensor, "*lane half d"], size: Tensor, phase: Tensor, order: int
) -> tuple[Tensor, ...]:
    """Of a sum of waves: values, gradients and, of order 2, Hessians."""
    angle = (x @ frequencies.mT).sub_(phase)
    cosine = angle.cos()
    value = (cosine @ size.mT)[..., 0]
    grad = angle.sin_().mul_(size) @ -frequencies
    if order == 1:
        return value, grad
    products = frequencies[..., :, None] * -frequencies[..., None, :]
    hessian = cosine.mul_(size) @ products.flatten(-2)
    return value, grad, hessian.unflatten(-1, products.shape[-2:])
