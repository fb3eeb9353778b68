"""A benchmark function as an experiment poses it: its units and its prior.

Two tables of the package hold the constants.  ``tables/recovered.csv``: what Fauvel & Chalk (2021) used,
recovered from their published result files, for functions in ``raw`` units (duels, batches) and ``rescaled``
to mean 0 and variance 1, some after a logarithm (yes/no).  ``tables/likelihood.csv``: maximum-likelihood fits
to functions ``standardised`` without a logarithm, made by ``benchmarks/likelihood.py``.
"""

import csv
import math
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

import torch
from gpytorch.kernels import ScaleKernel
from jaxtyping import Float
from torch import Tensor

from askwise.bench.functions import Function, named
from askwise.errors import Refused
from askwise.model import SMOOTHNESS, kernel
from askwise.numerics import ndtr, one_thread, sobol

Units = Literal["raw", "rescaled", "standardised"]
"""The function itself; rescaled by the authors (some through a logarithm); to mean 0 and variance 1."""
Prior = Literal["recovered", "likelihood", "learned", "averaged"]
"""The authors' kernels; our maximum-likelihood fits; learned from the answers during the run; averaged over
kernels drawn from their posterior during the run."""
Metric = Literal["value", "probability"]
"""What a run is scored by: the function at the estimated optimum, or the probability of a yes there."""

TABLES = files("askwise.bench") / "tables"
_TABLED = {"recovered": "the authors' constants", "likelihood": "maximum-likelihood kernels"}


@dataclass(frozen=True)
class Hyperparameters:
    """A zero-mean Gaussian process on the unit cube: kernel family, a lengthscale per dimension, variance."""

    kernel: str
    lengthscale: tuple[float, ...]
    outputscale: float

    def gpytorch(self) -> ScaleKernel:
        """The kernel with these parameters."""
        return kernel(self.kernel, self.lengthscale, self.outputscale)


@dataclass(frozen=True)
class Rescaling:
    r"""Maps values g of a function to z with mean 0 and variance 1; both are maximised.

    .. math:: z = (g - m) / \sqrt v, \qquad\text{with a logarithm}\quad z = (m - \log(-g)) / \sqrt v

    With a logarithm, a maximum of g = 0 becomes infinite.
    """

    mean: float  # of g, or of log(-g)
    variance: float
    log: bool = False

    def __call__(self, values: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
        """Rescaled values."""
        above = self.mean - torch.log(-values) if self.log else values - self.mean
        return above / math.sqrt(self.variance)


@dataclass(frozen=True)
class Problem:
    """A function in some units, over the unit cube."""

    function: Function
    units: Units

    @classmethod
    def of(cls, name: str, units: Units) -> "Problem":
        """The problem of this function; refuses units that it has no constants for."""
        if units == "rescaled":
            _row("recovered", name)
        return cls(named(name), units)

    def value(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b"]:
        """Values at points of the unit cube, larger is better."""
        return self._rescaled(self.function.unit(x))

    @property
    def best(self) -> float:
        """The maximum; infinite where the logarithm of a function that reaches zero is taken."""
        return float(self._rescaled(torch.tensor(self.function.max, dtype=torch.float64)))

    def score(self, x: Float[Tensor, "*b d"], metric: Metric) -> Float[Tensor, "*b"]:
        """The score of a run that estimates the optimum at x."""
        value = self.value(x)
        return ndtr(value) if metric == "probability" else value

    def hyperparameters(self, prior: Prior) -> Hyperparameters | None:
        """The prior for this function in these units; None if it is learned."""
        if prior in ("learned", "averaged"):
            return None
        return (recovered if prior == "recovered" else likelihood)(self.function.name, self.units)

    def _rescaled(self, raw: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
        return rescaling(self.function.name, self.units)(raw)


def recovered(function: str, units: str) -> Hyperparameters:
    """The prior of Fauvel & Chalk (2021) for a function, ``raw`` or ``rescaled``.

    >>> recovered("trid", "raw")
    Hyperparameters(kernel='se', lengthscale=(0.190511, 0.176473), outputscale=11.3635)
    """
    _check_units(units, ("raw", "rescaled"))
    row = _row("recovered", function)
    return _hyperparameters(function, row["kernel"], row[f"{units}_lengthscale"], row[f"{units}_outputscale"])


def likelihood(function: str, units: str = "standardised") -> Hyperparameters:
    """The maximum-likelihood prior for a function, ``standardised`` to mean 0 and variance 1."""
    _check_units(units, ("standardised",))
    row = _row("likelihood", function)
    family = row["kernel"]
    return _hyperparameters(function, family, row[f"lengthscale_{family}"], row[f"outputscale_{family}"])


def rescaling(function: str, units: str) -> Rescaling:
    """The map from a function's raw values to ``raw``, ``rescaled`` or ``standardised`` ones.

    >>> rescaling("trid", "rescaled")
    Rescaling(mean=-12.72624612, variance=117.2082049, log=False)
    """
    _check_units(units, ("raw", "rescaled", "standardised"))
    if units == "rescaled":
        row = _row("recovered", function)
        log = row["rescale_log"] == "1"
        mean = float(row["rescale_mean"])  # of f = -g or of its logarithm
        return Rescaling(mean if log else -mean, float(row["rescale_variance"]), log)
    if units == "standardised":
        tabled = _table("likelihood").get(function)
        if tabled is None:
            return Rescaling(*moments(named(function)))
        return Rescaling(float(tabled["mean"]), float(tabled["variance"]))
    named(function)
    return Rescaling(0.0, 1.0)


@cache
def moments(function: Function, count: int = 2**20) -> tuple[float, float]:
    """Mean and variance of a function over its box, by quasi-Monte Carlo with a fixed seed."""
    with one_thread():  # more would change the last bits
        values = function.unit(sobol(function.dim, count))
        mean, variance = values.mean().item(), values.var(correction=0).item()
    if not (math.isfinite(mean) and 0 < variance < math.inf):
        have, got = "have a finite mean and a positive variance", f"mean {mean:g} and variance {variance:g}"
        raise Refused(f"values of {function.name}", have, got, "Correct its formula or its box.")
    return mean, variance


def _hyperparameters(function: str, family: str, lengthscale: str, outputscale: str) -> Hyperparameters:
    if family not in SMOOTHNESS:
        known = f"be one of {', '.join(SMOOTHNESS)}"
        raise Refused(f"kernel of {function}", known, repr(family), "Correct the table.")
    lengths = tuple(float(length) for length in lengthscale.split())
    if len(lengths) == 1:
        lengths *= named(function).dim
    return Hyperparameters(family, lengths, float(outputscale))


def _row(table: str, function: str) -> dict[str, str]:
    named(function)
    known = _table(table)
    if function not in known:
        expected = f"be one of {', '.join(known)}, for which {_TABLED[table]} are known"
        advice = "Choose one of them, or run pbo-learned, which learns the kernel."
        raise Refused("function", expected, repr(function), advice)
    return known[function]


@cache
def _table(name: str) -> dict[str, dict[str, str]]:
    return {row["function"]: row for row in rows(name)}


def rows(table: str) -> list[dict[str, str]]:
    """The rows of a table of the package."""
    return list(csv.DictReader((TABLES / f"{table}.csv").read_text().splitlines()))


def _check_units(units: str, known: tuple[str, ...]) -> None:
    if units not in known:
        raise Refused("scale", f"be one of {', '.join(known)}", repr(units), "Choose one of them.")
