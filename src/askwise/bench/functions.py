"""The 34 benchmark functions with their boxes, kernels and maxima, to be maximised.

Boxes and kernels: Fauvel & Chalk (2021), table of benchmarks.  Maxima: exact where there is a closed
form, else by Newton's method in 40 digits.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch
from jaxtyping import Float
from torch import Tensor

from askwise.bench import formulas
from askwise.kernels import Name

__all__ = ["FUNCTIONS", "Function"]

Box = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Function:
    """A benchmark function: callable on points in natural units, larger is better.

    >>> FUNCTIONS["trid"](torch.tensor([[2.0, 2.0], [1.0, 1.0]])).tolist()
    [2.0, 1.0]
    """

    name: str
    title: str
    formula: Callable[[Tensor], Tensor]  # what the literature minimises
    box: Box  # lowest and highest value of each dimension
    kernel: Name  # the family that Fauvel & Chalk (2021) chose
    argmax: tuple[float, ...]  # one of the maximisers
    max: float

    @property
    def dim(self) -> int:
        """Number of dimensions."""
        return len(self.box)

    def __call__(self, x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch"]:
        """Values at points in natural units."""
        self._check(x)
        return -self.formula(x)

    def unit(self, x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch"]:
        """Values at points of the unit cube, which the box is stretched from."""
        return self(self.natural(x))

    def natural(self, x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        """Points of the unit cube in natural units; never outside the box, whatever the rounding."""
        self._check(x)
        low, high = _corners(self.box, x.dtype, x.device)
        return (low + (high - low) * x).clamp(low, high)

    def normalised(self, x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        """Points in natural units as points of the unit cube."""
        self._check(x)
        low, high = _corners(self.box, x.dtype, x.device)
        return ((x - low) / (high - low)).clamp(0, 1)

    def _check(self, x: Tensor) -> None:
        if x.ndim == 0 or x.shape[-1] != self.dim:
            raise ValueError(
                f"points of {self.name} must have {self.dim} as their last dimension; got shape "
                f"{tuple(x.shape)}. Give a tensor [..., {self.dim}]."
            )


@cache
def _corners(box: Box, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
    """Lowest and highest corner; kept, since a copy to a GPU would be waited for."""
    with torch.inference_mode(False):  # a tensor of that mode could not be differentiated later
        low, high = torch.tensor(box, dtype=dtype, device=device).unbind(-1)
    return low, high


def _cube(half: float, d: int = 2) -> Box:
    """The box from -half to half in each dimension."""
    return ((-half, half),) * d


_UNIT: tuple[float, float] = (0.0, 1.0)
_TEN: tuple[float, float] = (0.0, 10.0)
_ORIGIN = (0.0, 0.0)

_ALL = (
    Function("ackley", "Ackley", formulas.ackley, _cube(32.768), "matern32", _ORIGIN, 0.0),
    Function("beale", "Beale", formulas.beale, _cube(4.5), "se", (3.0, 0.5), 0.0),
    Function("bohachevsky", "Bohachevsky", formulas.bohachevsky, _cube(100.0), "se", _ORIGIN, 0.0),
    Function(
        "three_hump_camel",
        "Three-hump camel",
        formulas.three_hump_camel,
        _cube(5.0),
        "matern52",
        _ORIGIN,
        0.0,
    ),
    Function(
        "six_hump_camel",
        "Six-hump camel",
        formulas.six_hump_camel,
        ((-3.0, 3.0), (-2.0, 2.0)),
        "se",
        (0.08984201310031806, -0.7126564030207396),
        1.0316284534898774,
    ),
    Function("colville", "Colville", formulas.colville, _cube(10.0, 4), "matern52", (1.0,) * 4, 0.0),
    Function(
        "cross_in_tray",
        "Cross-in-tray",
        formulas.cross_in_tray,
        _cube(10.0),
        "matern52",
        (1.3494066171539107, 1.3494066171539107),
        2.062611870822737,
    ),
    Function(
        "dixon_price",
        "Dixon-Price",
        formulas.dixon_price,
        _cube(5.0),
        "matern52",
        (1.0, math.sqrt(0.5)),
        0.0,
    ),
    Function("drop_wave", "Drop-wave", formulas.drop_wave, _cube(5.12), "matern32", _ORIGIN, 1.0),
    Function(
        "eggholder",
        "Eggholder",
        formulas.eggholder,
        _cube(512.0),
        "se",
        (512.0, 404.2318051137578),
        959.6406627208509,
    ),
    Function(
        "forrester",
        "Forrester",
        formulas.forrester,
        (_UNIT,),
        "se",
        (0.7572487578418559,),
        6.0207400557670825,
    ),
    Function(
        "goldstein_price", "Goldstein-Price", formulas.goldstein_price, _cube(2.0), "se", (0.0, -1.0), -3.0
    ),
    Function("griewank", "Griewank", formulas.griewank, _cube(600.0), "se", _ORIGIN, 0.0),
    Function(
        "gramacy_lee",
        "Gramacy-Lee",
        formulas.gramacy_lee,
        ((0.5, 2.5),),
        "se",
        (0.5485634445276052,),
        0.8690111349894998,
    ),
    Function(
        "hartmann3",
        "Hartmann 3",
        formulas.hartmann3,
        (_UNIT,) * 3,
        "se",
        (0.11458887665506896, 0.55564889461693, 0.8525469846866774),
        3.8627797873326624,
    ),
    Function(
        "hartmann4",
        "Hartmann 4",
        formulas.hartmann4,
        (_UNIT,) * 4,
        "se",
        (0.1873952729734667, 0.19415152930244073, 0.557917780062569, 0.26477962417039713),
        3.134494141222399,
    ),
    Function(
        "hartmann6",
        "Hartmann 6",
        formulas.hartmann6,
        (_UNIT,) * 6,
        "se",
        (
            0.20168951100670543,
            0.15001069182345797,
            0.476873974221897,
            0.2753324304940561,
            0.31165161660011326,
            0.6573005340656203,
        ),
        3.042457737843049,
    ),
    Function(
        "holder_table",
        "Holder table",
        formulas.holder_table,
        _cube(10.0),
        "se",
        (8.055023475736563, 9.664590019241272),
        19.208502567886732,
    ),
    Function(
        "langermann",
        "Langermann",
        formulas.langermann,
        (_TEN,) * 2,
        "matern32",
        (2.7934022086450367, 1.5972325013283601),
        4.155809291847785,
    ),
    Function("levy", "Levy", formulas.levy, _cube(10.0), "se", (1.0, 1.0), 0.0),
    Function("levy13", "Levy 13", formulas.levy13, _cube(10.0), "matern52", (1.0, 1.0), 0.0),
    Function("perm0", "Perm 0", formulas.perm0, _cube(2.0), "se", (1.0, 0.5), 0.0),
    Function("perm", "Perm", formulas.perm, _cube(2.0), "se", (1.0, 2.0), 0.0),
    Function("powell", "Powell", formulas.powell, ((-4.0, 5.0),) * 4, "se", (0.0,) * 4, 0.0),
    Function("rosenbrock", "Rosenbrock", formulas.rosenbrock, _cube(2.048), "se", (1.0, 1.0), 0.0),
    Function(
        "rotated_hyper_ellipsoid",
        "Rotated hyper-ellipsoid",
        formulas.rotated_hyper_ellipsoid,
        _cube(65.536),
        "matern32",
        _ORIGIN,
        0.0,
    ),
    Function(
        "schaffer4",
        "Schaffer 4",
        formulas.schaffer4,
        _cube(100.0),
        "matern32",
        (0.0, 1.2531318314637332),
        -0.29257863203598056,
    ),
    Function(
        "schwefel",
        "Schwefel",
        formulas.schwefel,
        _cube(500.0),
        "se",
        (420.96874635998205, 420.96874635998205),
        -2.5455132587450428e-05,
    ),
    Function(
        "shekel",
        "Shekel",
        formulas.shekel,
        (_TEN,) * 4,
        "se",
        (4.000746868270634, 3.9995094800857736, 4.000746868270634, 3.9995094800857736),
        10.536443153483528,
    ),
    Function(
        "shubert",
        "Shubert",
        formulas.shubert,
        (_TEN,) * 2,
        "matern32",
        (4.858056878859825, 5.482864206707613),
        186.73090883102384,
    ),
    Function("sphere", "Sphere", formulas.sphere, _cube(5.12), "se", _ORIGIN, 0.0),
    Function("sum_squares", "Sum of squares", formulas.sum_squares, _cube(10.0), "se", _ORIGIN, 0.0),
    Function("trid", "Trid", formulas.trid, _cube(4.0), "se", (2.0, 2.0), 2.0),
    Function(
        "ursem_waves",
        "Ursem waves",
        formulas.ursem_waves,
        ((-0.9, 1.2), (-1.2, 1.2)),
        "se",
        (-0.605689493588859, -1.1775619344871524),
        7.306998731324459,
    ),
)

FUNCTIONS: dict[str, Function] = {function.name: function for function in _ALL}
"""Every benchmark function by its name, in the order of Fauvel & Chalk's list."""
