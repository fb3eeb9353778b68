"""Kernels and scales of the benchmark functions, from two tables in the package.

``tables/recovered.csv`` holds what Fauvel & Chalk (2021) used, recovered from the authors' published
result files: ``raw`` for functions as they are (duels, batches), ``rescaled`` for those with mean 0
and variance 1, partly after a logarithm (yes/no answers).  ``tables/likelihood.csv`` holds what maximum
likelihood gives for functions ``standardised`` without a logarithm; ``askwise.bench.likelihood`` makes it.
"""

import csv
import math
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import cast, get_args

import torch
from gpytorch.kernels import ScaleKernel
from jaxtyping import Float
from torch import Tensor

from askwise.bench.functions import FUNCTIONS
from askwise.kernels import Name, kernel

__all__ = ["Hyperparameters", "Rescaling", "likelihood", "recovered", "rescaling"]

TABLES = files("askwise.bench") / "tables"
Row = dict[str, str]


@dataclass(frozen=True)
class Hyperparameters:
    """A Gaussian process on the unit cube: its mean, and a kernel with one lengthscale per dimension."""

    kernel: Name
    lengthscale: tuple[float, ...]
    outputscale: float
    mean: float = 0.0

    def gpytorch(self) -> ScaleKernel:
        """The kernel with these parameters."""
        return kernel(self.kernel, self.lengthscale, self.outputscale)


@dataclass(frozen=True)
class Rescaling:
    r"""From values g of a function to z of mean 0 and variance 1; both are maximised.

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


def recovered(function: str, scale: str) -> Hyperparameters:
    """What Fauvel & Chalk (2021) used for a function, ``raw`` or ``rescaled``.

    >>> recovered("trid", "raw")
    Hyperparameters(kernel='se', lengthscale=(0.190511, 0.176473), outputscale=11.3635, mean=0.0)
    """
    _check_scale(scale, ("raw", "rescaled"))
    row = _row("recovered", function)
    return _hyperparameters(function, row["kernel"], row[f"{scale}_lengthscale"], row[f"{scale}_outputscale"])


def likelihood(function: str, scale: str = "standardised") -> Hyperparameters:
    """What maximum likelihood gives for a function, ``standardised`` to mean 0 and variance 1."""
    _check_scale(scale, ("standardised",))
    row = _row("likelihood", function)
    family = row["kernel"]
    return _hyperparameters(function, family, row[f"lengthscale_{family}"], row[f"outputscale_{family}"])


def rescaling(function: str, scale: str) -> Rescaling:
    """From a function's values to those on a scale: ``raw``, ``rescaled`` or ``standardised``.

    >>> rescaling("trid", "rescaled")
    Rescaling(mean=-12.72624612, variance=117.2082049, log=False)
    """
    _check_scale(scale, ("raw", "rescaled", "standardised"))
    if scale == "rescaled":
        row = _row("recovered", function)
        log = row["rescale_log"] == "1"
        mean = float(row["rescale_mean"])  # of f = -g or of its logarithm
        return Rescaling(mean if log else -mean, float(row["rescale_variance"]), log)
    if scale == "standardised":
        row = _row("likelihood", function)
        return Rescaling(float(row["mean"]), float(row["variance"]))
    _check_function(function)
    return Rescaling(0.0, 1.0)


def _hyperparameters(function: str, family: str, lengthscale: str, outputscale: str) -> Hyperparameters:
    if family not in get_args(Name):
        raise ValueError(
            f"kernel of {function} must be one of {get_args(Name)}; got {family!r}. Mend the table."
        )
    lengths = tuple(float(length) for length in lengthscale.split())
    d = FUNCTIONS[function].dim
    everywhere = lengths * d if len(lengths) == 1 else lengths
    return Hyperparameters(cast(Name, family), everywhere, float(outputscale))


def _row(table: str, function: str) -> Row:
    _check_function(function)
    return _table(table)[function]


@cache
def _table(name: str) -> dict[str, Row]:
    """The rows of a table of the package by their functions."""
    text = (TABLES / f"{name}.csv").read_text()
    return {row["function"]: row for row in csv.DictReader(text.splitlines())}


def _check_function(function: str) -> None:
    if function not in FUNCTIONS:
        raise ValueError(
            f"function must be one of {', '.join(FUNCTIONS)}; got {function!r}. Choose one of them."
        )


def _check_scale(scale: str, known: tuple[str, ...]) -> None:
    if scale not in known:
        raise ValueError(f"scale must be one of {', '.join(known)}; got {scale!r}. Choose one of them.")
