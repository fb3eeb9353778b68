"""The 34 test functions as their authors give them: minimised, in natural units, on tensors [..., d].

Source: Surjanovic & Bingham, Virtual Library of Simulation Experiments (formulas), and Fauvel & Chalk
(2021) for those that differ there.  Terms such as 1 - cos are written as squares of sines, so
that no digit is lost beside the minimum; a function whose minimum is zero is exactly zero there.
"""

import math
from functools import cache
from typing import Any

import torch
from torch import Tensor

_PI = math.pi
_Numbers = tuple[Any, ...]  # nested as the tensor it stands for


def ackley(x: Tensor) -> Tensor:
    """20 + e - 20 exp(-0.2 root mean square) - exp(mean of cos 2 pi x)."""
    radius = _norm(x) / math.sqrt(x.shape[-1])
    waves = 2 * torch.sin(_PI * x).square().mean(-1)
    return -20 * torch.expm1(-0.2 * radius) - math.e * torch.expm1(-waves)


def beale(x: Tensor) -> Tensor:
    """Three squares of products, with sharp peaks at the corners of the domain."""
    a, b = x.unbind(-1)
    return (1.5 - a + a * b).square() + (2.25 - a + a * b.square()).square() + (2.625 - a + a * b**3).square()


def bohachevsky(x: Tensor) -> Tensor:
    """The first function of Bohachevsky: a bowl with ripples."""
    a, b = x.unbind(-1)
    ripples = 0.6 * torch.sin(1.5 * _PI * a).square() + 0.8 * torch.sin(2 * _PI * b).square()
    return a.square() + 2 * b.square() + ripples


def three_hump_camel(x: Tensor) -> Tensor:
    """A polynomial with three minima."""
    a, b = x.unbind(-1)
    return 2 * a.square() - 1.05 * a**4 + a**6 / 6 + a * b + b.square()


def six_hump_camel(x: Tensor) -> Tensor:
    """A polynomial with six minima, two of them global."""
    a, b = x.unbind(-1)
    return (4 - 2.1 * a.square() + a**4 / 3) * a.square() + a * b + (4 * b.square() - 4) * b.square()


def colville(x: Tensor) -> Tensor:
    """Two coupled valleys in four dimensions."""
    a, b, c, d = x.unbind(-1)
    valleys = 100 * (a.square() - b).square() + 90 * (c.square() - d).square()
    centre = (a - 1).square() + (c - 1).square() + 10.1 * ((b - 1).square() + (d - 1).square())
    return valleys + centre + 19.8 * (b - 1) * (d - 1)


def cross_in_tray(x: Tensor) -> Tensor:
    """A cross of ridges, with four equal minima."""
    peaks = torch.sin(x).prod(-1) * torch.exp((100 - _norm(x) / _PI).abs())
    return -1e-4 * (peaks.abs() + 1) ** 0.1


def dixon_price(x: Tensor) -> Tensor:
    """(x1 - 1)^2 + 2 (2 x2^2 - x1)^2."""
    a, b = x.unbind(-1)
    return (a - 1).square() + 2 * (2 * b.square() - a).square()


def drop_wave(x: Tensor) -> Tensor:
    """Rings around the origin."""
    return -(1 + torch.cos(12 * _norm(x))) / (0.5 * x.square().sum(-1) + 2)


def eggholder(x: Tensor) -> Tensor:
    """Many deep minima, the lowest at the edge of the domain."""
    a, b = x[..., 0], x[..., 1] + 47
    return -b * torch.sin((b + a / 2).abs().sqrt()) - a * torch.sin((a - b).abs().sqrt())


def forrester(x: Tensor) -> Tensor:
    """(6 x - 2)^2 sin(12 x - 4), of Forrester et al. (2008)."""
    return ((6 * x - 2).square() * torch.sin(12 * x - 4))[..., 0]


def goldstein_price(x: Tensor) -> Tensor:
    """A product of two polynomials, over five decades."""
    a, b = x.unbind(-1)
    first = 19 - 14 * a + 3 * a.square() - 14 * b + 6 * a * b + 3 * b.square()
    second = 18 - 32 * a + 12 * a.square() + 48 * b - 36 * a * b + 27 * b.square()
    return (1 + (a + b + 1).square() * first) * (30 + (2 * a - 3 * b).square() * second)


def griewank(x: Tensor) -> Tensor:
    """A wide bowl with small regular ripples; 1 - cos u cos v is a sum of two squared sines."""
    a, b = x[..., 0], x[..., 1] / math.sqrt(2)
    ripples = torch.sin((a + b) / 2).square() + torch.sin((a - b) / 2).square()
    return x.square().sum(-1) / 4000 + ripples


def gramacy_lee(x: Tensor) -> Tensor:
    """sin(10 pi x) / (2 x) + (x - 1)^4, of Gramacy & Lee (2012)."""
    return (torch.sin(10 * _PI * x) / (2 * x) + (x - 1) ** 4)[..., 0]


_HARTMANN_WEIGHTS = (1.0, 1.2, 3.0, 3.2)
_HARTMANN3 = (
    ((3.0, 10.0, 30.0), (0.1, 10.0, 35.0), (3.0, 10.0, 30.0), (0.1, 10.0, 35.0)),
    ((0.3689, 0.1170, 0.2673), (0.4699, 0.4387, 0.7470), (0.1091, 0.8732, 0.5547), (0.0381, 0.5743, 0.8828)),
)
_HARTMANN6 = (
    (
        (10.0, 3.0, 17.0, 3.5, 1.7, 8.0),
        (0.05, 10.0, 17.0, 0.1, 8.0, 14.0),
        (3.0, 3.5, 1.7, 10.0, 17.0, 8.0),
        (17.0, 8.0, 0.05, 10.0, 0.1, 14.0),
    ),
    (
        (0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886),
        (0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991),
        (0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650),
        (0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381),
    ),
)


def hartmann3(x: Tensor) -> Tensor:
    """Four bumps in three dimensions, as they are."""
    return -_hartmann_bumps(x, *_HARTMANN3)


def hartmann4(x: Tensor) -> Tensor:
    """(1.1 - bumps) / 0.839, with the first four columns of the constants in six dimensions."""
    return (1.1 - _hartmann_bumps(x, *_HARTMANN6)) / 0.839


def hartmann6(x: Tensor) -> Tensor:
    """-(2.58 + bumps) / 1.94: the rescaled form, not the plain one of most libraries."""
    return -(2.58 + _hartmann_bumps(x, *_HARTMANN6)) / 1.94


def holder_table(x: Tensor) -> Tensor:
    """A table with four legs at its corners."""
    a, b = x.unbind(-1)
    return -(torch.sin(a) * torch.cos(b) * torch.exp((1 - _norm(x) / _PI).abs())).abs()


_LANGERMANN_WEIGHTS = (1.0, 2.0, 5.0, 2.0, 3.0)
_LANGERMANN_CENTRES = ((3.0, 5.0), (5.0, 2.0), (2.0, 1.0), (1.0, 4.0), (7.0, 9.0))


def langermann(x: Tensor) -> Tensor:
    """Five sources of fading rings; the sum has a positive sign."""
    squared = (x[..., None, :] - _constant(_LANGERMANN_CENTRES, x)).square().sum(-1)
    rings = torch.exp(-squared / _PI) * torch.cos(_PI * squared)
    return (_constant(_LANGERMANN_WEIGHTS, x) * rings).sum(-1)


def levy(x: Tensor) -> Tensor:
    """Levy's function, in v = (x - 1) / 4, two-dimensional."""
    v, w = ((x - 1) / 4).unbind(-1)
    first = torch.sin(_PI * v).square() + v.square() * (1 + 10 * torch.sin(_PI * v + 1).square())
    return first + w.square() * (1 + torch.sin(2 * _PI * w).square())


def levy13(x: Tensor) -> Tensor:
    """Levy's function number 13, in v = x - 1."""
    v, w = (x - 1).unbind(-1)
    first = torch.sin(3 * _PI * v).square() + v.square() * (1 + torch.sin(3 * _PI * w).square())
    return first + w.square() * (1 + torch.sin(2 * _PI * w).square())


def perm0(x: Tensor) -> Tensor:
    """Perm 0, d, beta with beta = 10: zero at (1, 1/2), and at (11/23, 45/46)."""
    a, b = x.unbind(-1)
    first, second = 11 * (a - 1) + 12 * (b - 0.5), 11 * (a.square() - 1) + 12 * (b.square() - 0.25)
    return first.square() + second.square()


def perm(x: Tensor) -> Tensor:
    """Perm d, beta with beta = 1/2: zero at (1, 2)."""
    a, b = x[..., 0], x[..., 1] / 2
    first, second = 1.5 * (a - 1) + 2.5 * (b - 1), 1.5 * (a.square() - 1) + 4.5 * (b.square() - 1)
    return first.square() + second.square()


def powell(x: Tensor) -> Tensor:
    """Powell's function, whose second derivatives are singular at the minimum."""
    a, b, c, d = x.unbind(-1)
    return (a + 10 * b).square() + 5 * (c - d).square() + (b - 2 * c) ** 4 + 10 * (a - d) ** 4


def rosenbrock(x: Tensor) -> Tensor:
    """A curved valley."""
    a, b = x.unbind(-1)
    return 100 * (b - a.square()).square() + (a - 1).square()


def rotated_hyper_ellipsoid(x: Tensor) -> Tensor:
    """2 x1^2 + x2^2."""
    return 2 * x[..., 0].square() + x[..., 1].square()


def schaffer4(x: Tensor) -> Tensor:
    """The fourth function of Schaffer: fine ripples that a quadratic envelope damps."""
    a, b = x.square().unbind(-1)
    wave = torch.cos(torch.sin((a - b).abs())).square()
    return 0.5 + (wave - 0.5) / (1 + 0.001 * (a + b)).square()


def schwefel(x: Tensor) -> Tensor:
    """Deep minima far apart; 418.9829 as printed, so that the lowest value is 2.5e-5, not zero."""
    return 418.9829 * x.shape[-1] - (x * torch.sin(x.abs().sqrt())).sum(-1)


_SHEKEL_WIDTHS = (0.1, 0.2, 0.2, 0.4, 0.4, 0.6, 0.3, 0.7, 0.5, 0.5)
_SHEKEL_CENTRES = (
    (4.0, 4.0, 4.0, 4.0),
    (1.0, 1.0, 1.0, 1.0),
    (8.0, 8.0, 8.0, 8.0),
    (6.0, 6.0, 6.0, 6.0),
    (3.0, 7.0, 3.0, 7.0),
    (2.0, 9.0, 2.0, 9.0),
    (5.0, 3.0, 5.0, 3.0),
    (8.0, 1.0, 8.0, 1.0),
    (6.0, 2.0, 6.0, 2.0),
    (7.0, 3.6, 7.0, 3.6),
)


def shekel(x: Tensor) -> Tensor:
    """Ten narrow foxholes in four dimensions."""
    squared = (x[..., None, :] - _constant(_SHEKEL_CENTRES, x)).square().sum(-1)
    return -(squared + _constant(_SHEKEL_WIDTHS, x)).reciprocal().sum(-1)


def shubert(x: Tensor) -> Tensor:
    """A product of two sums of five cosines."""
    steps = torch.arange(1, 6, dtype=x.dtype, device=x.device)
    return (steps * torch.cos((steps + 1) * x[..., None] + steps)).sum(-1).prod(-1)


def sphere(x: Tensor) -> Tensor:
    """Squared distance from the origin."""
    return x.square().sum(-1)


def sum_squares(x: Tensor) -> Tensor:
    """x1^2 + 2 x2^2."""
    return x[..., 0].square() + 2 * x[..., 1].square()


def trid(x: Tensor) -> Tensor:
    """(x1 - 1)^2 + (x2 - 1)^2 - x1 x2."""
    return (x - 1).square().sum(-1) - x.prod(-1)


def ursem_waves(x: Tensor) -> Tensor:
    """Ursem's waves with (0.3 x1)^3, as Fauvel & Chalk (2021) computed it; elsewhere 0.3 x1^3."""
    a, b = x.unbind(-1)
    waves = torch.cos(3 * a - b.square() * (2 + a)) * torch.sin(2.5 * _PI * a)
    return -((0.3 * a) ** 3) - 3.5 * a * b**3 + 4.7 * waves


def _norm(x: Tensor) -> Tensor:
    """Distance from the origin; unlike that of a square root, its slope is finite there."""
    return torch.linalg.vector_norm(x, dim=-1)


def _hartmann_bumps(x: Tensor, narrow: _Numbers, centres: _Numbers) -> Tensor:
    """Weighted Gaussian bumps, with as many columns of the constants as there are dimensions."""
    d = x.shape[-1]
    squared = (x[..., None, :] - _constant(centres, x)[:, :d]).square()
    bumps = torch.exp(-(_constant(narrow, x)[:, :d] * squared).sum(-1))
    return (_constant(_HARTMANN_WEIGHTS, x) * bumps).sum(-1)


def _constant(values: _Numbers, x: Tensor) -> Tensor:
    """These numbers as a tensor like ``x``; kept, since a copy to a GPU would be waited for."""
    return _kept(values, x.dtype, x.device)


@cache
def _kept(values: _Numbers, dtype: torch.dtype, device: torch.device) -> Tensor:
    with torch.inference_mode(False):  # a tensor of that mode could not be differentiated later
        return torch.tensor(values, dtype=dtype, device=device)
