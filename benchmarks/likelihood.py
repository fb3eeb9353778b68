r"""Maximum-likelihood kernels of the benchmark functions: makes ``src/askwise/bench/tables/likelihood.csv``.

    python benchmarks/likelihood.py --workers 8 --out likelihood.csv
    python benchmarks/likelihood.py --functions branin        # the row of one function

Every function is standardised to mean 0 and variance 1 over its box.  A zero-mean Gaussian process is fitted
to 1000 uniform points with each kernel: the squared exponential with one lengthscale per dimension, the
Materns with a single one.  The kernel with the smallest squared error at 3000 other points is chosen.  Values
are noise-free; a nugget of 1e-6 (a standard deviation of 1/1000 of the function's) is added to the diagonal,
since the matrices are singular to working precision otherwise.  The nugget does not scale with the
outputscale: otherwise a huge outputscale could explain misfit as noise.
"""

import argparse
import csv
import io
import math
import multiprocessing
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.optimize
import torch
from jaxtyping import Float
from torch import Tensor

from askwise.bench.functions import FUNCTIONS, Function, named
from askwise.bench.problems import Rescaling, moments
from askwise.model import SMOOTHNESS, correlation_at, distance, steepness
from askwise.numerics import generator

NUGGET = 1e-6
LENGTHSCALES = (0.001, 20.0)  # bounds: far below the spacing of the points, and twenty boxes
OUTPUTSCALES = (1e-4, 2e4)  # bounds; the function itself has variance 1
STARTS = (0.02, 0.06, 0.2, 0.6, 1.7, 5.0)  # lengthscales; outputscale 1
EVALUATIONS = 80  # of the evidence, per start
FAMILIES: tuple[str, ...] = tuple(SMOOTHNESS)


@dataclass(frozen=True)
class Sample:
    """Points of the unit cube with standardised values, for fitting and for testing."""

    x: Float[Tensor, "n d"]
    y: Float[Tensor, " n"]
    test_x: Float[Tensor, "t d"]
    test_y: Float[Tensor, " t"]


@dataclass(frozen=True)
class Fit:
    """The maximum-likelihood parameters of a kernel, and how well they predict."""

    kernel: str
    lengthscale: tuple[float, ...]  # one per dimension; a single one for the Materns
    outputscale: float
    evidence: float  # logarithm of the marginal likelihood
    rmse: float  # root mean squared error at the test points
    at_bound: str  # the parameters at a bound


def sample(function: Function, n: int = 1000, tests: int = 3000, device: str = "cpu") -> Sample:
    """Uniform points with standardised values, the same for every kernel."""
    stream = generator("likelihood", function.name)
    x = torch.rand(n + tests, function.dim, generator=stream, dtype=torch.float64).to(device)
    y = Rescaling(*moments(function))(function.unit(x))
    return Sample(x[:n], y[:n], x[n:], y[n:])


def fitted(kernel: str, points: Sample) -> Fit:
    """The best of several optimizations with different initial lengthscales."""
    evidence = Evidence(kernel, points)
    lengths = points.x.shape[-1] if kernel == "se" else 1
    bounds = np.log([LENGTHSCALES] * lengths + [OUTPUTSCALES])
    found = [
        scipy.optimize.minimize(
            evidence.descent,
            np.log([start] * lengths + [1.0]),
            jac=True,
            bounds=bounds,
            options={"maxfun": EVALUATIONS},
        )
        for start in STARTS
    ]
    best = min(found, key=lambda one: one.fun)
    return Fit(
        kernel,
        tuple(np.exp(best.x[:-1]).tolist()),
        math.exp(best.x[-1]),
        evidence=-best.fun * len(points.y),
        rmse=evidence.error(best.x),
        at_bound=_at_bound(best.x, bounds),
    )


def chosen(fits: Iterable[Fit]) -> Fit:
    """The fit with the smallest test error."""
    return min(fits, key=lambda fit: fit.rmse)


class Evidence:
    r"""The log marginal likelihood of a sample, with K the kernel matrix plus nugget.

    .. math:: -\tfrac12 y^\top K^{-1} y - \tfrac12 \log |K| - \tfrac n2 \log 2\pi

    Source: Rasmussen & Williams (2006), eqs. 2.30 and 5.9.  Parameters are logarithms: lengthscales, then
    the outputscale.  Squared differences of all pairs are cached, 8 MB per dimension.
    """

    def __init__(self, kernel: str, points: Sample) -> None:
        """The evidence of a kernel on the fitting points."""
        self.kernel, self.points = kernel, points
        columns = points.x.T[:, :, None]
        gaps = (columns - columns.mT).square()
        self.squares = gaps if kernel == "se" else gaps.sum(0, keepdim=True)

    def descent(self, parameters: np.ndarray) -> tuple[float, np.ndarray]:
        """Minus the evidence per point of the sample, and its gradient."""
        y, n = self.points.y, len(self.points.y)
        inverse_squares, scale = self._natural(parameters)
        r = torch.tensordot(inverse_squares, self.squares, 1).sqrt_()
        factor = self._factor(r, scale)
        if factor is None:
            return 1e10, np.zeros_like(parameters)
        weights = torch.cholesky_solve(y[:, None], factor)[:, 0]
        fit = 0.5 * y @ weights
        loss = fit + factor.diagonal().log().sum() + 0.5 * n * math.log(2 * math.pi)
        # gradient: tr((K^-1 - w w') dK) / 2
        pull = torch.cholesky_inverse(factor).sub_(torch.outer(weights, weights))
        by_scale = 0.5 * n - fit - 0.5 * NUGGET * pull.diagonal().sum()
        pull.mul_(steepness(self.kernel, r)).mul_(-0.5 * scale)
        by_length = inverse_squares * torch.tensordot(self.squares, pull, 2)
        slope = torch.cat([by_length, by_scale[None]])
        return loss.item() / n, slope.cpu().numpy() / n

    def error(self, parameters: np.ndarray) -> float:
        """Root mean squared error at the test points."""
        inverse_squares, scale = self._natural(parameters)
        per_length = inverse_squares.sqrt()
        x, test_x = self.points.x * per_length, self.points.test_x * per_length
        factor = self._factor(distance(x, x), scale)
        if factor is None:
            return math.inf
        weights = torch.cholesky_solve(self.points.y[:, None], factor)[:, 0]
        predicted = scale * (correlation_at(self.kernel, distance(test_x, x)) @ weights)
        return (predicted - self.points.test_y).square().mean().sqrt().item()

    def _natural(self, parameters: np.ndarray) -> tuple[Tensor, float]:
        """One over the squared lengthscales, and the outputscale."""
        lengths = torch.as_tensor(np.exp(-2 * parameters[:-1])).to(self.points.x)
        return lengths, math.exp(parameters[-1])

    def _factor(self, r: Tensor, scale: float) -> Tensor | None:
        """Cholesky factor of the kernel matrix; None if it is not positive definite numerically."""
        matrix = correlation_at(self.kernel, r).mul_(scale)
        matrix.diagonal().add_(NUGGET)
        factor, info = torch.linalg.cholesky_ex(matrix)
        return None if info.item() else factor


def _at_bound(parameters: np.ndarray, bounds: np.ndarray) -> str:
    names = [*(f"lengthscale{i + 1}" for i in range(len(parameters) - 1)), "outputscale"]
    return " ".join(
        f"{name}={'low' if value - low < 1e-6 else 'high'}"
        for name, value, (low, high) in zip(names, parameters, bounds, strict=True)
        if min(value - low, high - value) < 1e-6
    )


def row(function: Function, fits: Sequence[Fit]) -> dict[str, str]:
    """A function's row of the table: its moments, the chosen kernel, and the fit of every kernel."""
    mean, variance = moments(function)
    line = {"function": function.name, "mean": repr(mean), "variance": repr(variance)}
    line["kernel"] = chosen(fits).kernel
    for fit in fits:
        figures = {
            "lengthscale": " ".join(f"{length:.6g}" for length in fit.lengthscale),
            "outputscale": f"{fit.outputscale:.6g}",
            "evidence": f"{fit.evidence:.2f}",
            "rmse": f"{fit.rmse:.4g}",
            "at_bound": fit.at_bound,
        }
        line |= {f"{what}_{fit.kernel}": figure for what, figure in figures.items()}
    return line


def table(rows: Sequence[dict[str, str]]) -> str:
    """The rows as CSV."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


@dataclass(frozen=True)
class _Job:
    """One fit, for a worker process."""

    function: str
    kernel: str
    samples: int
    tests: int
    device: str


def _fit(job: _Job) -> Fit:
    return fitted(job.kernel, sample(named(job.function), job.samples, job.tests, job.device))


def _fits(jobs: Sequence[_Job], workers: int) -> list[Fit]:
    """The fits in order, in worker processes if there are several."""
    if workers <= 1:
        return [_fit(job) for job in jobs]
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, spawn, torch.set_num_threads, (1,)) as pool:
        return list(pool.map(_fit, jobs))


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Make the table of maximum-likelihood kernels.")
    parser.add_argument("--functions", default=",".join(FUNCTIONS), help="names, separated by commas")
    parser.add_argument("--samples", type=int, default=1000, help="points for fitting")
    parser.add_argument("--tests", type=int, default=3000, help="points for choosing the kernel")
    parser.add_argument("--workers", type=int, default=1, help="processes of one thread each")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--out", help="file; by default the table is printed")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    """Fit, choose and write the table."""
    arguments = _arguments(argv)
    functions = [named(name) for name in arguments.functions.split(",")]
    sizes = (arguments.samples, arguments.tests)
    jobs = [_Job(each.name, kernel, *sizes, arguments.device) for each in functions for kernel in FAMILIES]
    fits, k = _fits(jobs, arguments.workers), len(FAMILIES)
    rows = [row(function, fits[k * i : k * (i + 1)]) for i, function in enumerate(functions)]
    if arguments.out is None:
        sys.stdout.write(table(rows))
    else:
        Path(arguments.out).write_text(table(rows))


if __name__ == "__main__":
    main()
