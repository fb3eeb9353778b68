"""The standard normal distribution in float64, accurate in both tails and differentiable.

Every function broadcasts and states its error, which the tests check against 50-digit arithmetic.
"""

import functools
import math
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from askwise.numerics.autograd import sloped

_SQRT_HALF = math.sqrt(0.5)
_INV_SQRT_2PI = 1 / math.sqrt(2 * math.pi)
_SQRT_2_OVER_PI = math.sqrt(2 / math.pi)
_FRACTION_BELOW = -5.0  # below it z + hazard cancels by more than 1e-13; use the continued fraction
_FRACTION_TERMS = 20  # accurate to 2e-14 at -5, and more accurate below
_SMALLEST_VARIANCE = 1e-300
_NINE_SIGMA = 9.0  # exp(-81/2) < 3e-18, below rounding
_CLOSED_FORM_HALF = 1.0  # half-width from which the closed form of an interval around zero is accurate


def gauss_legendre(count: int, like: Tensor) -> tuple[Float[Tensor, " k"], Float[Tensor, " k"]]:
    """Nodes and weights of Gauss-Legendre quadrature on [0, 1], with the dtype and device of ``like``."""
    return _gauss_legendre(count, like.dtype, like.device)


@functools.cache  # creating the tensors takes as long as using them
def _gauss_legendre(count: int, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
    nodes, weights = np.polynomial.legendre.leggauss(count)
    nodes, weights = (nodes + 1) / 2, weights / 2
    with torch.inference_mode(False):  # whoever calls first; later ones may need gradients
        both = torch.tensor(np.stack([nodes, weights]), dtype=dtype, device=device)
        return both[0], both[1]


def ndtr(z: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
    r"""Probability that a standard normal is below ``z``, :math:`\Phi(z)`.

    ``torch.special.ndtr`` is ``(1 + erf) / 2`` and has no correct digit at ``z = -9``; ``erfc`` keeps all.
    Accuracy: relative error below 3e-13 for ``-37 <= z``, the range of normal float64.
    """
    return torch.erfc(-_SQRT_HALF * z) / 2


def log_ndtr(z: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
    r"""Logarithm of :math:`\Phi(z)`.

    Accuracy: relative error of value and derivative below 3e-13 for ``z <= 37`` whose square is finite
    (torch's derivative is off by 7e-7 at ``-1e5``); above, the result is below 1e-296 in size.
    """
    return _LogNdtr.apply(z)  # type: ignore[no-untyped-call]


class _LogNdtr(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor) -> Tensor:
        ctx.save_for_backward(z)
        return torch.special.log_ndtr(z)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad * hazard(ctx.saved_tensors[0])


def hazard(z: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
    r"""Derivative of the log probability, :math:`\lambda(z) = \phi(z) / \Phi(z)`.

    Accuracy: relative error below 3e-13 for ``z <= 37``; above, the result is below 1e-296.
    Relative error of the derivative, :math:`-\lambda (z + \lambda)`: below 1e-12.
    """
    return _Hazard.apply(z)  # type: ignore[no-untyped-call]


def _hazard(z: Tensor) -> Tensor:
    return _SQRT_2_OVER_PI / torch.special.erfcx(-_SQRT_HALF * z)


class _Hazard(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor) -> Tensor:
        ctx.save_for_backward(z)
        return _hazard(z)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        rate, depth, _ = truncated_moments(ctx.saved_tensors[0])
        return -grad * rate * depth


def truncated_moments(
    z: Float[Tensor, "*b"],
) -> tuple[Float[Tensor, "*b"], Float[Tensor, "*b"], Float[Tensor, "*b"]]:
    r"""Hazard, depth and variance of a standard normal t truncated to ``t < z``.

    .. math:: \lambda = \phi(z)/\Phi(z), \qquad
        z - \mathbb E[t \mid t < z] = z + \lambda, \qquad
        \mathbb V[t \mid t < z] = 1 - \lambda (z + \lambda)

    Far below zero the last two (about ``-1/z`` and ``1/z^2``) cancel and are taken from the continued
    fraction of Mills' ratio, :math:`\lambda = x + 1/(x + 2/(x + 3/(x + \dots)))` with :math:`x = -z`.
    Accuracy: relative error below 1e-12 for ``-1e100 <= z <= 37``.
    """
    rate = hazard(z) if z.requires_grad else _hazard(z)  # 11 us or 4, in EP's inner loop
    depth = z + rate
    var = 1 - rate * depth
    deep = z < _FRACTION_BELOW
    if deep.any():
        x = -torch.where(deep, z, _FRACTION_BELOW)
        rest = (x + (x.square() + 4 * (_FRACTION_TERMS + 1)).sqrt()) / 2  # estimate of the remaining terms
        for k in range(_FRACTION_TERMS, 2, -1):
            rest = x + k / rest
        rest = 2 / rest
        tail = 1 / (x + rest)
        depth = torch.where(deep, tail, depth)
        var = torch.where(deep, tail * (rest - tail), var)
    return rate, depth, var


def interval_moments(
    centre: Float[Tensor, "*b"], half: Float[Tensor, "*b"]
) -> tuple[Float[Tensor, "*b"], Float[Tensor, "*b"], Float[Tensor, "*b"]]:
    r"""Log probability that a standard normal is within ``half`` of ``centre``, and its moments there.

    .. math:: \log [\Phi(c + h) - \Phi(c - h)], \qquad
        \mathbb E[t \mid |t - c| \le h] - c, \qquad \mathbb V[t \mid |t - c| \le h]

    The closed forms cancel for a narrow interval and for one in a tail.  There the moments are sums of
    positive terms: quadrature of :math:`e^{-a s - s^2/2}` in the distance s from the end a nearer to
    zero, cut where it falls below rounding.  Accuracy: for ``|centre| <= 1e100`` and
    ``1e-100 <= half <= 1e100``, relative error of the variance below 1e-12, of the logarithm below 1e-12
    (absolute where it is below one); error of the mean below 1e-12 of ``half``.
    """
    c = centre.abs()
    a, b = c - half, c + half
    reach = (2 * half).minimum(_NINE_SIGMA**2 / (a + (a.square() + _NINE_SIGMA**2).sqrt()))
    nodes, weights = gauss_legendre(24, c)
    s = reach[..., None] * nodes
    density = weights * torch.exp(-s * (a[..., None] + s / 2))
    total = density.sum(-1)
    near = (density * s).sum(-1) / total
    var = (density * (s - near[..., None]).square()).sum(-1) / total
    log_mass = (_INV_SQRT_2PI * reach * total).log() - a.square() / 2
    offset = near - half
    wide = (a < 0) & (half > _CLOSED_FORM_HALF)
    if wide.any():
        mass = ndtr(b) - ndtr(a)
        height_a, height_b = (_INV_SQRT_2PI * torch.exp(-end.square() / 2) / mass for end in (a, b))
        mean = height_a - height_b
        rest = b * height_b - a * height_a + mean.square()
        log_mass = torch.where(wide, mass.log(), log_mass)
        offset, var = torch.where(wide, mean - c, offset), torch.where(wide, 1 - rest, var)
    return log_mass, torch.where(centre < 0, -offset, offset), var


@sloped(lambda mean, var: rate_with_slopes(mean, var))
def success_probability(mean: Float[Tensor, "*#b"], var: Float[Tensor, "*#b"]) -> Float[Tensor, "*#b"]:
    r"""Probability of a yes when f is normal, :math:`\mathbb E[\Phi(f)] = \Phi(\mu/\sqrt{1+\sigma^2})`.

    Source: Fauvel & Chalk (2021), section 2.1.  Accuracy: relative error below 1e-12 above 1e-296.
    """
    return ndtr(standardised(mean, var))


@sloped(lambda mean, var: _standardised_with_slopes(mean, var))
def standardised(mean: Float[Tensor, "*#b"], var: Float[Tensor, "*#b"]) -> Float[Tensor, "*#b"]:
    r"""Normal quantile of :func:`success_probability`, :math:`\mu/\sqrt{1+\sigma^2}`."""
    return mean / (1 + var).sqrt()


def _standardised_with_slopes(mean: Tensor, var: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    one = 1 + var
    scale = one.rsqrt()
    h = mean * scale
    return h, scale, h / (-2 * one)


def rate_with_slopes(mean: Tensor, var: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """:func:`success_probability`, and its slopes in mean and variance."""
    one = 1 + var
    scale = one.rsqrt()
    h = mean * scale
    by_mean = torch.exp(-0.5 * h.square()).mul_(scale).mul_(_INV_SQRT_2PI)
    return ndtr(h), by_mean, mean * by_mean / (-2 * one)


@sloped(lambda mean, var: (mean, torch.ones_like(mean), torch.zeros_like(var)))
def utility_mean(mean: Float[Tensor, "*#b"], var: Float[Tensor, "*#b"]) -> Float[Tensor, "*#b"]:
    """The mean, as a formula of both moments."""
    return mean


@sloped(lambda mean, var: _deviation_with_slopes(mean, var))
def utility_deviation(mean: Float[Tensor, "*#b"], var: Float[Tensor, "*#b"]) -> Float[Tensor, "*#b"]:
    """:func:`deviation`, as a formula of both moments."""
    return deviation(var)


def _deviation_with_slopes(mean: Tensor, var: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    sd = deviation(var)
    return sd, torch.zeros_like(mean), 0.5 / sd


def deviation(var: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
    """Standard deviation, with a finite gradient where the variance is zero."""
    return var.clamp_min(_SMALLEST_VARIANCE).sqrt()


def binary_entropy(z: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
    r"""Entropy in nats of a Bernoulli variable with success probability :math:`\Phi(z)`.

    Accuracy: relative error below 1e-12 for ``|z| <= 37``.
    """
    return -(ndtr(z) * log_ndtr(z) + ndtr(-z) * log_ndtr(-z))


def owens_t(h: Float[Tensor, "*#b"], a: Float[Tensor, "*#b"]) -> Float[Tensor, "*#b"]:
    r"""Owen's T function, for all real ``h`` and ``a``, infinities included.

    .. math:: T(h, a) = \frac1{2\pi} \int_0^a \frac{e^{-h^2 (1 + t^2) / 2}}{1 + t^2} \, dt

    Quadrature for ``|a| <= 1``; beyond, :math:`T(h, a) = \frac14 [c_1 + c_2 (1 - c_1)] - T(ah, 1/a)`
    with :math:`c_1 = \mathrm{erfc}(h/\sqrt2)`, :math:`c_2 = \mathrm{erfc}(ah/\sqrt2)`, which does not cancel.

    Source: Owen (1956), Ann. Math. Stat. 27.  Accuracy: absolute error below 1e-14 (measured: 1e-16);
    gradients are closed forms.
    """
    return _OwensT.apply(*torch.broadcast_tensors(h, a))  # type: ignore[no-untyped-call]


class _OwensT(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, a: Tensor) -> Tensor:
        ctx.save_for_backward(h, a)
        h, side, a = h.abs(), a.sign(), a.abs()
        steep = a > 1
        far = torch.where(h == 0, 0.0, a * h)  # 0 * inf counts as 0: T(0, inf) = 1/4
        inner = _owens_t_integral(torch.where(steep, far, h), torch.where(steep, 1 / a, a))
        c1, c2 = torch.erfc(_SQRT_HALF * h), torch.erfc(_SQRT_HALF * far)
        return side * torch.where(steep, (c1 + c2 * (1 - c1)) / 4 - inner, inner)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        h, a = ctx.saved_tensors
        far = torch.where((h == 0) | (a == 0), 0.0, a * h)
        by_h = -torch.exp(-h.square() / 2) * torch.erf(_SQRT_HALF * far) / math.sqrt(8 * math.pi)
        by_a = torch.exp(-(h.square() + far.square()) / 2) / (1 + a.square()) / (2 * math.pi)
        return grad * by_h, grad * by_a


def _owens_t_integral(h: Tensor, a: Tensor) -> Tensor:
    """T(h, a) for h >= 0 and 0 <= a <= 1, by quadrature within nine sigma."""
    nodes, weights = gauss_legendre(20, h)
    reach = torch.minimum(a, _NINE_SIGMA / h)
    scaled = torch.where(reach == 0, 0.0, h * reach)  # at h = inf the product is nan
    exponent = (scaled[..., None] * nodes).square() / 2
    height = torch.exp(-exponent) / (1 + (reach[..., None] * nodes).square())
    return torch.exp(-h.square() / 2) * reach / (2 * math.pi) * (height @ weights)
