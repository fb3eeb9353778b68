r"""Uncertainty about the next outcome c, split into an epistemic and an aleatoric part.

The epistemic part (f is unknown) vanishes with more data; the aleatoric part (c is random even for
known f) does not.  By variance,
:math:`\mathbb V[c] = \mathbb V[\Phi(f)] + \mathbb E[\Phi(f)(1 - \Phi(f))]`, or by entropy,
:math:`H[c] = I(c, f) + \mathbb E[H(c \mid f)]`.  Source: Fauvel & Chalk (2021), section 3.2.

Every part is the integral of a positive function, so nothing cancels and no part can be negative.
Throughout :math:`h = \mu/\sqrt{1+\sigma^2}` and :math:`a = 1/\sqrt{1+2\sigma^2}`.
"""

import functools
import math
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from askwise.numerics.autograd import last, sloped
from askwise.numerics.normal import binary_entropy, gauss_legendre, hazard, ndtr, owens_t, standardised

_VARIANCE_NODES = 20  # 1e-14 relative over the whole plane; 16 would do for |mean| <= 8
_CHUNK = 2**13  # points whose quadrature nodes fit the CPU cache
_NEGLIGIBLE_EXPONENT = 38.0  # exp(-38) < 4e-17, below rounding
_LEGENDRE_NODES, _HERMITE_NODES = 10, 16  # along y and over the normal: 1e-10 relative
_HOULSBY_C = math.sqrt(math.pi * math.log(2) / 2)


@sloped(lambda mean, var: _with_slopes(mean, var, log=False))
def epistemic_variance(mean: Float[Tensor, "*#b"], var: Float[Tensor, "*#b"]) -> Float[Tensor, "*#b"]:
    r"""Variance of the success rate: the epistemic part of the outcome's variance.

    .. math:: \mathbb V[\Phi(f)] = \mu_c (1 - \mu_c) - 2\,T(h, a)
        = \frac1\pi \int_a^1 \frac{e^{-h^2 (1 + u^2) / 2}}{1 + u^2} \, du

    The first form (section 3.2.1) cancels and becomes negative for small variances; the second equals it,
    since :math:`2\,T(h, 1) = \mu_c (1 - \mu_c)`.  Accuracy: relative error below 1e-12 for ``|mean| <= 8``
    and ``1e-16 <= var <= 1e8`` (measured: 1e-14); gradients are closed forms, finite at ``var = 0``.
    """
    return _EpistemicVariance.apply(*torch.broadcast_tensors(mean, var), False)  # type: ignore[no-untyped-call]


@sloped(lambda mean, var: _with_slopes(mean, var, log=True))
def log_epistemic_variance(mean: Float[Tensor, "*#b"], var: Float[Tensor, "*#b"]) -> Float[Tensor, "*#b"]:
    r"""Logarithm of :func:`epistemic_variance`, with a gradient where the variance itself underflows.

    .. math:: \log \mathbb V[\Phi(f)] = -\frac{\mu^2}{1 + 2\sigma^2}
        + \log \frac1\pi \int_a^1 \frac{e^{-h^2 (u^2 - a^2) / 2}}{1 + u^2} \, du

    Accuracy: absolute error below 1e-12 for ``|mean| <= 8``, relative below 1e-12 for
    ``|mean| <= 1e100`` and ``1e-300 <= var <= 1e8``; minus infinity at ``var = 0``.
    """
    return _EpistemicVariance.apply(*torch.broadcast_tensors(mean, var), True)  # type: ignore[no-untyped-call]


@sloped(lambda mean, var: _deviation_with_slopes(mean, var))
def epistemic_deviation(mean: Float[Tensor, "*#b"], var: Float[Tensor, "*#b"]) -> Float[Tensor, "*#b"]:
    """Standard deviation of the success rate, with a finite gradient where ``var`` is zero."""
    return torch.exp(0.5 * log_epistemic_variance(mean, var.clamp_min(1e-300)))


def _with_slopes(mean: Tensor, var: Tensor, log: bool) -> tuple[Tensor, Tensor, Tensor]:
    """The epistemic variance or its logarithm, and the slopes in mean and variance."""
    h2, a, by_angle, plain = _scaled_integrals(mean, var)
    by_mean, by_var = _slopes(mean, var, h2, a, plain)
    if log:
        value = torch.addcmul((by_angle / math.pi).log(), mean * a, mean * a, value=-1)
        return value, by_mean / by_angle, by_var / by_angle
    factor = torch.exp(-mean.square() / (1 + 2 * var)) / math.pi
    return factor * by_angle, factor * by_mean, factor * by_var


def _slopes(mean: Tensor, var: Tensor, h2: Tensor, a: Tensor, plain: Tensor) -> tuple[Tensor, Tensor]:
    """Slopes of the epistemic variance in mean and variance, divided by its factor outside the integral."""
    scaled = plain / (1 + var)
    a2 = a.square()
    return (mean * scaled).neg_(), torch.addcmul(a2 * a / (1 + a2), h2, scaled, value=0.5)


def _deviation_with_slopes(mean: Tensor, var: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    log, by_mean, by_var = _with_slopes(mean, var.clamp_min(1e-300), log=True)
    value = (0.5 * log).exp_()
    half = 0.5 * value
    return value, half * by_mean, half * by_var


def _scaled_integrals(mean: Tensor, var: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    r"""``h^2``, ``a`` and the integrals over [a, 1] of ``e(u) / (1 + u^2)`` and ``e(u)``.

    Here :math:`e(u) = e^{-h^2 (u^2 - a^2) / 2}` falls from 1, and is cut where it is below rounding.
    On a CPU the work is done in chunks that fit its cache: three times as fast for a million points.
    """
    if not mean.is_cuda and mean.numel() > _CHUNK:
        chunks = zip(mean.reshape(-1).split(_CHUNK), var.reshape(-1).split(_CHUNK), strict=True)
        parts = zip(*(_scaled_integrals(*chunk) for chunk in chunks), strict=True)
        h2, a, by_angle, plain = (torch.cat(part).view(mean.shape) for part in parts)
        return h2, a, by_angle, plain
    nodes, weights = gauss_legendre(_VARIANCE_NODES, mean)
    h2 = mean.square() / (1 + var)
    a2 = 1 / (1 + 2 * var)
    a = a2.sqrt()
    whole = 2 * var * a2 / (1 + a)  # 1 - a
    visible = (2 * _NEGLIGIBLE_EXPONENT) / h2.clamp_min(1e-290)
    width = torch.minimum(whole, visible / ((a2 + visible).sqrt_() + a))
    start, step = a[..., None], width[..., None] * nodes
    fall = torch.add(start, step, alpha=0.5).mul_(step).mul_(-h2[..., None]).exp_()
    by_angle = fall / step.add_(start).square_().add_(1)
    return h2, a, width * (by_angle @ weights), width * (fall @ weights)


class _EpistemicVariance(torch.autograd.Function):
    """The epistemic variance, or its logarithm."""

    @staticmethod
    def forward(ctx: Any, mean: Tensor, var: Tensor, log: bool) -> Tensor:
        h2, a, by_angle, plain = _scaled_integrals(mean, var)
        factor = by_angle if log else torch.exp(-mean.square() / (1 + 2 * var)) / math.pi
        ctx.save_for_backward(mean, var, h2, a, plain, factor)
        ctx.log = log
        return (by_angle / math.pi).log() - mean.square() * a.square() if log else factor * by_angle

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        mean, var, h2, a, plain, factor = ctx.saved_tensors
        by_mean, by_var = _slopes(mean, var, h2, a, plain)
        grad = grad / factor if ctx.log else grad * factor
        return grad * last(by_mean, mean, var), grad * last(by_var, mean, var), None


def aleatoric_variance(mean: Float[Tensor, "*#b"], var: Float[Tensor, "*#b"]) -> Float[Tensor, "*#b"]:
    r"""Expected variance of the outcome for known f, :math:`\mathbb E[\Phi(1-\Phi)] = 2\,T(h, a)`.

    Source: section 3.2.1.  Accuracy: that of :func:`askwise.numerics.normal.owens_t` for ``a <= 1``.
    """
    return 2 * owens_t(standardised(mean, var), (1 + 2 * var).rsqrt())


def mutual_information(mean: Float[Tensor, "*#b"], var: Float[Tensor, "*#b"]) -> Float[Tensor, "*#b"]:
    r"""Mutual information in nats of outcome and f: the epistemic part by entropy (section 3.2.2).

    .. math:: I(c, f) = e^{-h^2/2} \int_{1/\sqrt{1+\sigma^2}}^1
        \mathbb E\big[\ell(h y + \sqrt{1 - y^2}\, t)\big] \, dy, \qquad
        \ell(z) = \frac{e^{z^2/2} \phi(z)^2}{\Phi(z)\Phi(-z)}, \quad t \sim \mathcal N(0, 1)

    Why: let a Brownian motion run from the mean to f.  The success rate along the way is a martingale, and
    by Ito's formula its entropy falls at the rate inside the integral.  The integrand is positive and
    nearly constant, so nothing cancels and few nodes suffice.
    Accuracy: relative error below 1e-8 for ``|mean| <= 30`` and ``1e-16 <= var <= 1e8``.
    """
    h, gap = _entropy_bounds(mean, var)
    return _EntropyIntegral.apply(h, torch.zeros_like(gap), gap)  # type: ignore[no-untyped-call]


def aleatoric_entropy(mean: Float[Tensor, "*#b"], var: Float[Tensor, "*#b"]) -> Float[Tensor, "*#b"]:
    r"""Expected entropy in nats of the outcome for known f, :math:`\mathbb E[H(\Phi(f))]`.

    The integral of :func:`mutual_information` over the rest of [0, 1]; the two add up to the entropy of
    the outcome.  Accuracy: relative error below 1e-8 for ``|mean| <= 8`` and ``1e-16 <= var <= 1e8``.
    """
    h, gap = _entropy_bounds(mean, var)
    return _EntropyIntegral.apply(h, gap, torch.ones_like(gap))  # type: ignore[no-untyped-call]


def _entropy_bounds(mean: Tensor, var: Tensor) -> tuple[Tensor, Tensor]:
    """``h``, and ``1 - 1/sqrt(1 + var)`` without cancellation for small variances."""
    mean, var = torch.broadcast_tensors(mean, var)
    s = (1 + var).sqrt()
    return standardised(mean, var), var / (s * (1 + s))


class _EntropyIntegral(torch.autograd.Function):
    """The integral of :func:`mutual_information` for ``1 - y`` between two bounds."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, start: Tensor, end: Tensor) -> Tensor:
        nodes, weights = gauss_legendre(_LEGENDRE_NODES, h)
        width = end - start
        gap = start[..., None] + width[..., None] * nodes
        rate, by_z = _expected_rate(h[..., None], gap)
        factor = torch.exp(-h.square() / 2)
        value = factor * width * (rate @ weights)
        by_h = factor * width * (((1 - gap) * by_z) @ weights) - h * value
        ctx.save_for_backward(h, start, end, factor, by_h)
        return value

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None, Tensor | None]:
        h, start, end, factor, by_h = ctx.saved_tensors
        _, need_start, need_end = ctx.needs_input_grad
        inputs = (h, start, end)
        by_start = last(-factor * _expected_rate(h, start)[0], *inputs) * grad if need_start else None
        by_end = last(factor * _expected_rate(h, end)[0], *inputs) * grad if need_end else None
        return last(by_h, *inputs) * grad, by_start, by_end


def _expected_rate(h: Tensor, gap: Tensor) -> tuple[Tensor, Tensor]:
    """Expectation of the rate at ``y = 1 - gap``, and of its derivative in ``z``."""
    points, weights = _hermite(_HERMITE_NODES)
    sd = (gap * (2 - gap)).sqrt()
    z = (h * (1 - gap))[..., None] + sd[..., None] * h.new_tensor(points)
    size = z.abs()
    rate = 1 / (math.pi * ndtr(size) * torch.special.erfcx(size * math.sqrt(0.5)))
    by_z = rate * (hazard(-z) - hazard(z) - z)
    return rate @ h.new_tensor(weights), by_z @ h.new_tensor(weights)


@functools.cache
def _hermite(count: int) -> tuple[np.ndarray, np.ndarray]:
    points, weights = np.polynomial.hermite_e.hermegauss(count)
    return points, weights / weights.sum()


def houlsby_information(mean: Float[Tensor, "*#b"], var: Float[Tensor, "*#b"]) -> Float[Tensor, "*#b"]:
    r"""Cheap approximation of :func:`mutual_information` by Houlsby et al. (2011), in nats.

    .. math:: H\Big(\frac{\mu}{\sqrt{1+\sigma^2}}\Big) - \ln 2\,
        \frac{C e^{-\mu^2 / (2 (\sigma^2 + C^2))}}{\sqrt{\sigma^2 + C^2}}, \quad C^2 = \frac{\pi \ln 2}2

    Source: arXiv 1112.5745, section 3.1.  Accuracy: at most 0.002 nats below the information, never above it.
    """
    total = var + _HOULSBY_C**2
    expected = math.log(2) * _HOULSBY_C * torch.exp(-mean.square() / (2 * total)) / total.sqrt()
    return binary_entropy(standardised(mean, var)) - expected
