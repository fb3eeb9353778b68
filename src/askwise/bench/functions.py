"""Benchmark functions with known maxima, one definition each; :func:`register_function` adds another.

A formula is written as the literature has it: minimised, in natural units, on tensors [..., d].  The
:class:`Function` made of it is maximised.  Sources: Surjanovic & Bingham, Virtual Library of Simulation
Experiments; boxes, kernels and deviating formulas: Fauvel & Chalk (2021).  Maxima are exact where a closed
form exists, otherwise from Newton's method in 40 digits.  Terms such as 1 - cos are written as squared sines
to avoid cancellation near the minimum; a function with minimum zero is exactly zero there.

Other packages add functions through the entry point ``askwise.functions``, which names a module that
registers them.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from askwise import plugins
from askwise.errors import NotFound, Refused

Box = tuple[tuple[float, float], ...]
_Numbers = tuple[Any, ...]  # nested like the tensor it becomes
_PI = math.pi


@dataclass(frozen=True)
class Function:
    """A benchmark function: callable on points in natural units, larger is better.

    >>> FUNCTIONS["trid"](torch.tensor([[2.0, 2.0], [1.0, 1.0]])).tolist()
    [2.0, 1.0]
    """

    name: str
    title: str
    formula: Callable[[Tensor], Tensor]  # to be minimised
    box: Box  # lower and upper bound of each dimension
    kernel: str  # family
    argmax: tuple[float, ...]  # one of the maximisers
    max: float

    def __post_init__(self) -> None:
        """Refuse a maximiser outside the box."""
        inside = [low <= x <= high for x, (low, high) in zip(self.argmax, self.box, strict=False)]
        if len(self.argmax) != self.dim or not all(inside):
            raise Refused(f"argmax of {self.name}", f"lie in the box {self.box}", self.argmax, "Correct it.")

    @property
    def dim(self) -> int:
        """Number of dimensions."""
        return len(self.box)

    def __call__(self, x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch"]:
        """Values at points in natural units."""
        self._check(x)
        return -self.formula(x)

    def unit(self, x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch"]:
        """Values at points of the unit cube."""
        return self(self.natural(x))

    def natural(self, x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        """Points of the unit cube in natural units; rounding never takes them out of the box."""
        self._check(x)
        low, high = _constant(self.box, x).unbind(-1)
        return (low + (high - low) * x).clamp(low, high)

    def normalised(self, x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        """Points in natural units as points of the unit cube."""
        self._check(x)
        low, high = _constant(self.box, x).unbind(-1)
        return ((x - low) / (high - low)).clamp(0, 1)

    def _check(self, x: Tensor) -> None:
        if x.ndim == 0 or x.shape[-1] != self.dim:
            have, advice = f"have {self.dim} as their last dimension", f"Give a tensor [..., {self.dim}]."
            raise Refused(f"points of {self.name}", have, f"shape {tuple(x.shape)}", advice)


FUNCTIONS: dict[str, Function] = {}
"""Every function registered so far, by name; :func:`named` also loads those of installed plug-ins."""


def register_function(
    title: str, *, box: Box, kernel: str, argmax: tuple[float, ...], max: float
) -> Callable[[Callable[[Tensor], Tensor]], Function]:
    """Decorator that turns a formula into a :class:`Function` and registers it under the formula's name.

    Args:
        title: name in figures.
        box: lower and upper bound of each dimension.
        kernel: family of kernel that suits it.
        argmax: one of the maximisers of minus the formula.
        max: the value there.
    """

    def register(formula: Callable[[Tensor], Tensor]) -> Function:
        name = formula.__name__
        if name in FUNCTIONS:
            raise Refused("function", "have a name of its own", f"{name!r} twice", "Rename one.")
        FUNCTIONS[name] = Function(name, title, formula, box, kernel, argmax, max)
        return FUNCTIONS[name]

    return register


def named(name: str) -> Function:
    """The function of this name."""
    if name not in FUNCTIONS:
        plugins.load("functions")
    if name not in FUNCTIONS:
        raise NotFound("function", f"be one of {', '.join(FUNCTIONS)}", repr(name), "Choose one of them.")
    return FUNCTIONS[name]


def _constant(values: _Numbers, x: Tensor) -> Tensor:
    """These numbers as a tensor like ``x``."""
    return _cached(values, x.dtype, x.device)


@cache  # because a copy to a GPU would block
def _cached(values: _Numbers, dtype: torch.dtype, device: torch.device) -> Tensor:
    with torch.inference_mode(False):  # an inference tensor could not be differentiated later
        return torch.tensor(values, dtype=dtype, device=device)


def _norm(x: Tensor) -> Tensor:
    """Distance from the origin, with a finite gradient there."""
    return torch.linalg.vector_norm(x, dim=-1)


def _cube(half: float, d: int = 2) -> Box:
    """The box from -half to half in each dimension."""
    return ((-half, half),) * d


_UNIT: Box = ((0.0, 1.0),)
_ORIGIN = (0.0, 0.0)


@register_function("Ackley", box=_cube(32.768), kernel="matern32", argmax=_ORIGIN, max=0.0)
def ackley(x: Tensor) -> Tensor:
    """20 + e - 20 exp(-0.2 root mean square) - exp(mean of cos 2 pi x)."""
    radius = _norm(x) / math.sqrt(x.shape[-1])
    waves = 2 * torch.sin(_PI * x).square().mean(-1)
    return -20 * torch.expm1(-0.2 * radius) - math.e * torch.expm1(-waves)


@register_function("Beale", box=_cube(4.5), kernel="se", argmax=(3.0, 0.5), max=0.0)
def beale(x: Tensor) -> Tensor:
    """Three squares of products, with sharp peaks at the corners of the box."""
    a, b = x.unbind(-1)
    return (1.5 - a + a * b).square() + (2.25 - a + a * b.square()).square() + (2.625 - a + a * b**3).square()


@register_function("Bohachevsky", box=_cube(100.0), kernel="se", argmax=_ORIGIN, max=0.0)
def bohachevsky(x: Tensor) -> Tensor:
    """Bohachevsky's first function: a bowl with ripples."""
    a, b = x.unbind(-1)
    ripples = 0.6 * torch.sin(1.5 * _PI * a).square() + 0.8 * torch.sin(2 * _PI * b).square()
    return a.square() + 2 * b.square() + ripples


@register_function("Three-hump camel", box=_cube(5.0), kernel="matern52", argmax=_ORIGIN, max=0.0)
def three_hump_camel(x: Tensor) -> Tensor:
    """A polynomial with three minima."""
    a, b = x.unbind(-1)
    return 2 * a.square() - 1.05 * a**4 + a**6 / 6 + a * b + b.square()


@register_function(
    "Six-hump camel",
    box=((-3.0, 3.0), (-2.0, 2.0)),
    kernel="se",
    argmax=(0.08984201310031806, -0.7126564030207396),
    max=1.0316284534898774,
)
def six_hump_camel(x: Tensor) -> Tensor:
    """A polynomial with six minima, two of them global."""
    a, b = x.unbind(-1)
    return (4 - 2.1 * a.square() + a**4 / 3) * a.square() + a * b + (4 * b.square() - 4) * b.square()


@register_function("Colville", box=_cube(10.0, 4), kernel="matern52", argmax=(1.0,) * 4, max=0.0)
def colville(x: Tensor) -> Tensor:
    """Two coupled valleys in four dimensions."""
    a, b, c, d = x.unbind(-1)
    valleys = 100 * (a.square() - b).square() + 90 * (c.square() - d).square()
    centre = (a - 1).square() + (c - 1).square() + 10.1 * ((b - 1).square() + (d - 1).square())
    return valleys + centre + 19.8 * (b - 1) * (d - 1)


@register_function(
    "Cross-in-tray",
    box=_cube(10.0),
    kernel="matern52",
    argmax=(1.3494066171539107,) * 2,
    max=2.062611870822737,
)
def cross_in_tray(x: Tensor) -> Tensor:
    """A cross of ridges, with four equal minima."""
    peaks = torch.sin(x).prod(-1) * torch.exp((100 - _norm(x) / _PI).abs())
    return -1e-4 * (peaks.abs() + 1) ** 0.1


@register_function("Dixon-Price", box=_cube(5.0), kernel="matern52", argmax=(1.0, math.sqrt(0.5)), max=0.0)
def dixon_price(x: Tensor) -> Tensor:
    """(x1 - 1)^2 + 2 (2 x2^2 - x1)^2."""
    a, b = x.unbind(-1)
    return (a - 1).square() + 2 * (2 * b.square() - a).square()


@register_function("Drop-wave", box=_cube(5.12), kernel="matern32", argmax=_ORIGIN, max=1.0)
def drop_wave(x: Tensor) -> Tensor:
    """Rings around the origin."""
    return -(1 + torch.cos(12 * _norm(x))) / (0.5 * x.square().sum(-1) + 2)


@register_function(
    "Eggholder", box=_cube(512.0), kernel="se", argmax=(512.0, 404.2318051137578), max=959.6406627208509
)
def eggholder(x: Tensor) -> Tensor:
    """Many deep minima, the lowest on the boundary."""
    a, b = x[..., 0], x[..., 1] + 47
    return -b * torch.sin((b + a / 2).abs().sqrt()) - a * torch.sin((a - b).abs().sqrt())


@register_function("Forrester", box=_UNIT, kernel="se", argmax=(0.7572487578418559,), max=6.0207400557670825)
def forrester(x: Tensor) -> Tensor:
    """(6 x - 2)^2 sin(12 x - 4), from Forrester et al. (2008)."""
    return ((6 * x - 2).square() * torch.sin(12 * x - 4))[..., 0]


@register_function("Goldstein-Price", box=_cube(2.0), kernel="se", argmax=(0.0, -1.0), max=-3.0)
def goldstein_price(x: Tensor) -> Tensor:
    """A product of two polynomials that spans five decades."""
    a, b = x.unbind(-1)
    first = 19 - 14 * a + 3 * a.square() - 14 * b + 6 * a * b + 3 * b.square()
    second = 18 - 32 * a + 12 * a.square() + 48 * b - 36 * a * b + 27 * b.square()
    return (1 + (a + b + 1).square() * first) * (30 + (2 * a - 3 * b).square() * second)


@register_function("Griewank", box=_cube(600.0), kernel="se", argmax=_ORIGIN, max=0.0)
def griewank(x: Tensor) -> Tensor:
    """A wide bowl with small regular ripples; 1 - cos u cos v is a sum of two squared sines."""
    a, b = x[..., 0], x[..., 1] / math.sqrt(2)
    ripples = torch.sin((a + b) / 2).square() + torch.sin((a - b) / 2).square()
    return x.square().sum(-1) / 4000 + ripples


@register_function(
    "Gramacy-Lee", box=((0.5, 2.5),), kernel="se", argmax=(0.5485634445276052,), max=0.8690111349894998
)
def gramacy_lee(x: Tensor) -> Tensor:
    """sin(10 pi x) / (2 x) + (x - 1)^4, from Gramacy & Lee (2012)."""
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


def _hartmann_bumps(x: Tensor, precisions: _Numbers, centres: _Numbers) -> Tensor:
    """A weighted sum of four Gaussian bumps, from the first d columns of the constants."""
    d = x.shape[-1]
    squared = (x[..., None, :] - _constant(centres, x)[:, :d]).square()
    bumps = torch.exp(-(_constant(precisions, x)[:, :d] * squared).sum(-1))
    return (_constant(_HARTMANN_WEIGHTS, x) * bumps).sum(-1)


@register_function(
    "Hartmann 3",
    box=_UNIT * 3,
    kernel="se",
    argmax=(0.11458887665506896, 0.55564889461693, 0.8525469846866774),
    max=3.8627797873326624,
)
def hartmann3(x: Tensor) -> Tensor:
    """Four bumps in three dimensions, not rescaled."""
    return -_hartmann_bumps(x, *_HARTMANN3)


@register_function(
    "Hartmann 4",
    box=_UNIT * 4,
    kernel="se",
    argmax=(0.1873952729734667, 0.19415152930244073, 0.557917780062569, 0.26477962417039713),
    max=3.134494141222399,
)
def hartmann4(x: Tensor) -> Tensor:
    """(1.1 - bumps) / 0.839, with the first four columns of the six-dimensional constants."""
    return (1.1 - _hartmann_bumps(x, *_HARTMANN6)) / 0.839


@register_function(
    "Hartmann 6",
    box=_UNIT * 6,
    kernel="se",
    argmax=(
        *(0.20168951100670543, 0.15001069182345797, 0.476873974221897),
        *(0.2753324304940561, 0.31165161660011326, 0.6573005340656203),
    ),
    max=3.042457737843049,
)
def hartmann6(x: Tensor) -> Tensor:
    """-(2.58 + bumps) / 1.94: the rescaled form, where most libraries have the plain one."""
    return -(2.58 + _hartmann_bumps(x, *_HARTMANN6)) / 1.94


@register_function(
    "Holder table",
    box=_cube(10.0),
    kernel="se",
    argmax=(8.055023475736563, 9.664590019241272),
    max=19.208502567886732,
)
def holder_table(x: Tensor) -> Tensor:
    """A table with four legs at its corners."""
    a, b = x.unbind(-1)
    return -(torch.sin(a) * torch.cos(b) * torch.exp((1 - _norm(x) / _PI).abs())).abs()


_LANGERMANN_WEIGHTS = (1.0, 2.0, 5.0, 2.0, 3.0)
_LANGERMANN_CENTRES = ((3.0, 5.0), (5.0, 2.0), (2.0, 1.0), (1.0, 4.0), (7.0, 9.0))


@register_function(
    "Langermann",
    box=((0.0, 10.0),) * 2,
    kernel="matern32",
    argmax=(2.7934022086450367, 1.5972325013283601),
    max=4.155809291847785,
)
def langermann(x: Tensor) -> Tensor:
    """Damped rings around five centres; the sum has a positive sign."""
    squared = (x[..., None, :] - _constant(_LANGERMANN_CENTRES, x)).square().sum(-1)
    rings = torch.exp(-squared / _PI) * torch.cos(_PI * squared)
    return (_constant(_LANGERMANN_WEIGHTS, x) * rings).sum(-1)


@register_function("Levy", box=_cube(10.0), kernel="se", argmax=(1.0, 1.0), max=0.0)
def levy(x: Tensor) -> Tensor:
    """Levy's function in two dimensions, in v = (x - 1) / 4."""
    v, w = ((x - 1) / 4).unbind(-1)
    first = torch.sin(_PI * v).square() + v.square() * (1 + 10 * torch.sin(_PI * v + 1).square())
    return first + w.square() * (1 + torch.sin(2 * _PI * w).square())


@register_function("Levy 13", box=_cube(10.0), kernel="matern52", argmax=(1.0, 1.0), max=0.0)
def levy13(x: Tensor) -> Tensor:
    """Levy's function number 13, in v = x - 1."""
    v, w = (x - 1).unbind(-1)
    first = torch.sin(3 * _PI * v).square() + v.square() * (1 + torch.sin(3 * _PI * w).square())
    return first + w.square() * (1 + torch.sin(2 * _PI * w).square())


@register_function("Perm 0", box=_cube(2.0), kernel="se", argmax=(1.0, 0.5), max=0.0)
def perm0(x: Tensor) -> Tensor:
    """Perm 0, d, beta with beta = 10: zero at (1, 1/2) and at (11/23, 45/46)."""
    a, b = x.unbind(-1)
    first, second = 11 * (a - 1) + 12 * (b - 0.5), 11 * (a.square() - 1) + 12 * (b.square() - 0.25)
    return first.square() + second.square()


@register_function("Perm", box=_cube(2.0), kernel="se", argmax=(1.0, 2.0), max=0.0)
def perm(x: Tensor) -> Tensor:
    """Perm d, beta with beta = 1/2: zero at (1, 2)."""
    a, b = x[..., 0], x[..., 1] / 2
    first, second = 1.5 * (a - 1) + 2.5 * (b - 1), 1.5 * (a.square() - 1) + 4.5 * (b.square() - 1)
    return first.square() + second.square()


@register_function("Powell", box=((-4.0, 5.0),) * 4, kernel="se", argmax=(0.0,) * 4, max=0.0)
def powell(x: Tensor) -> Tensor:
    """Powell's function, with a singular Hessian at the minimum."""
    a, b, c, d = x.unbind(-1)
    return (a + 10 * b).square() + 5 * (c - d).square() + (b - 2 * c) ** 4 + 10 * (a - d) ** 4


@register_function("Rosenbrock", box=_cube(2.048), kernel="se", argmax=(1.0, 1.0), max=0.0)
def rosenbrock(x: Tensor) -> Tensor:
    """A curved valley."""
    a, b = x.unbind(-1)
    return 100 * (b - a.square()).square() + (a - 1).square()


@register_function("Rotated hyper-ellipsoid", box=_cube(65.536), kernel="matern32", argmax=_ORIGIN, max=0.0)
def rotated_hyper_ellipsoid(x: Tensor) -> Tensor:
    """2 x1^2 + x2^2."""
    return 2 * x[..., 0].square() + x[..., 1].square()


@register_function(
    "Schaffer 4",
    box=_cube(100.0),
    kernel="matern32",
    argmax=(0.0, 1.2531318314637332),
    max=-0.29257863203598056,
)
def schaffer4(x: Tensor) -> Tensor:
    """Schaffer's fourth function: fine ripples under a damping quadratic envelope."""
    a, b = x.square().unbind(-1)
    wave = torch.cos(torch.sin((a - b).abs())).square()
    return 0.5 + (wave - 0.5) / (1 + 0.001 * (a + b)).square()


@register_function(
    "Schwefel", box=_cube(500.0), kernel="se", argmax=(420.96874635998205,) * 2, max=-2.5455132587450428e-05
)
def schwefel(x: Tensor) -> Tensor:
    """Deep minima far apart; with 418.9829 as printed the minimum is 2.5e-5, not zero."""
    return 418.9829 * x.shape[-1] - (x * torch.sin(x.abs().sqrt())).sum(-1)


_SHEKEL_WIDTHS = (0.1, 0.2, 0.2, 0.4, 0.4, 0.6, 0.3, 0.7, 0.5, 0.5)
_SHEKEL_HALVES = ((4, 4), (1, 1), (8, 8), (6, 6), (3, 7), (2, 9), (5, 3), (8, 1), (6, 2), (7, 3.6))
_SHEKEL_CENTRES = tuple(half * 2 for half in _SHEKEL_HALVES)  # the second two coordinates repeat the first


@register_function(
    "Shekel",
    box=((0.0, 10.0),) * 4,
    kernel="se",
    argmax=(4.000746868270634, 3.9995094800857736) * 2,
    max=10.536443153483528,
)
def shekel(x: Tensor) -> Tensor:
    """Ten narrow foxholes in four dimensions."""
    squared = (x[..., None, :] - _constant(_SHEKEL_CENTRES, x)).square().sum(-1)
    return -(squared + _constant(_SHEKEL_WIDTHS, x)).reciprocal().sum(-1)


@register_function(
    "Shubert",
    box=((0.0, 10.0),) * 2,
    kernel="matern32",
    argmax=(4.858056878859825, 5.482864206707613),
    max=186.73090883102384,
)
def shubert(x: Tensor) -> Tensor:
    """A product of two sums of five cosines."""
    steps = torch.arange(1, 6, dtype=x.dtype, device=x.device)
    return (steps * torch.cos((steps + 1) * x[..., None] + steps)).sum(-1).prod(-1)


@register_function("Sphere", box=_cube(5.12), kernel="se", argmax=_ORIGIN, max=0.0)
def sphere(x: Tensor) -> Tensor:
    """Squared distance from the origin."""
    return x.square().sum(-1)


@register_function("Sum of squares", box=_cube(10.0), kernel="se", argmax=_ORIGIN, max=0.0)
def sum_squares(x: Tensor) -> Tensor:
    """x1^2 + 2 x2^2."""
    return x[..., 0].square() + 2 * x[..., 1].square()


@register_function("Trid", box=_cube(4.0), kernel="se", argmax=(2.0, 2.0), max=2.0)
def trid(x: Tensor) -> Tensor:
    """(x1 - 1)^2 + (x2 - 1)^2 - x1 x2."""
    return (x - 1).square().sum(-1) - x.prod(-1)


@register_function(
    "Ursem waves",
    box=((-0.9, 1.2), (-1.2, 1.2)),
    kernel="se",
    argmax=(-0.605689493588859, -1.1775619344871524),
    max=7.306998731324459,
)
def ursem_waves(x: Tensor) -> Tensor:
    """Ursem's waves with (0.3 x1)^3, as Fauvel & Chalk (2021) computed them; elsewhere 0.3 x1^3."""
    a, b = x.unbind(-1)
    waves = torch.cos(3 * a - b.square() * (2 + a)) * torch.sin(2.5 * _PI * a)
    return -((0.3 * a) ** 3) - 3.5 * a * b**3 + 4.7 * waves


@register_function(
    "Branin", box=((-5.0, 10.0), (0.0, 15.0)), kernel="se", argmax=(_PI, 2.275), max=-0.39788735772973816
)
def branin(x: Tensor) -> Tensor:
    """Branin's function, with three equal minima; not part of Fauvel & Chalk's benchmark."""
    a, b = x.unbind(-1)
    parabola = b - 5.1 / (4 * _PI**2) * a.square() + 5 / _PI * a - 6
    return parabola.square() + 10 * (1 - 1 / (8 * _PI)) * torch.cos(a) + 10
