r"""Kernels of the benchmark functions by maximum likelihood: what makes ``tables/likelihood.csv``.

    python -m askwise.bench.likelihood --workers 8 --out likelihood.csv

Every function is standardised to mean 0 and variance 1 over its box.  A Gaussian process of mean zero is
fitted to 1000 uniform points with each kernel, the squared exponential with one lengthscale per
dimension, the Materns with one; the kernel whose predictions at 3000 other points have the least squared
error is chosen.  Answers are without noise; a variance of 1e-6 (a thousandth of the function's deviation)
is added to the diagonal, since the matrices are singular to working precision without it.  It does not
grow with the outputscale: if it did, a huge outputscale would explain what a kernel cannot as noise.
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
from functools import cache
from pathlib import Path
from typing import get_args

import numpy as np
import scipy.optimize
import torch
from jaxtyping import Float
from torch import Tensor

from askwise.bench.functions import FUNCTIONS, Function
from askwise.bench.hyperparameters import Rescaling
from askwise.kernels import Name, correlation_at, distance, steepness
from askwise.seeds import generator

__all__ = ["Evidence", "Fit", "Sample", "chosen", "fitted", "main", "moments", "sample"]

NUGGET = 1e-6
LENGTHSCALES = (0.001, 20.0)  # bounds: far less than the distance between neighbours, and twenty boxes
OUTPUTSCALES = (1e-4, 2e4)  # bounds, where the function itself has variance 1
STARTS = (0.02, 0.06, 0.2, 0.6, 1.7, 5.0)  # lengthscales; outputscale 1
EVALUATIONS = 80  # of the evidence, from each start
FAMILIES: tuple[Name, ...] = get_args(Name)


@dataclass(frozen=True)
class Sample:
    """Points of the unit cube with standardised values: to fit to, and to test on."""

    x: Float[Tensor, "n d"]
    y: Float[Tensor, " n"]
    test_x: Float[Tensor, "t d"]
    test_y: Float[Tensor, " t"]


@dataclass(frozen=True)
class Fit:
    """The parameters of highest evidence for a kernel, and how well they predict."""

    kernel: Name
    lengthscale: tuple[float, ...]  # one per dimension, or one in all for the Materns
    outputscale: float
    evidence: float  # logarithm of the marginal likelihood
    rmse: float  # root mean squared error at the test points
    at_bound: str  # the parameters that the bounds stopped


def moments(function: Function, count: int = 2**20) -> tuple[float, float]:
    """Mean and variance of a function over its box, by quasi-Monte Carlo with a fixed seed."""
    engine = torch.quasirandom.SobolEngine(function.dim, scramble=True, seed=0)
    values = function.unit(engine.draw(count, dtype=torch.float64))
    return values.mean().item(), values.var(correction=0).item()


_moments = cache(moments)  # one process fits several kernels to a function


def sample(function: Function, n: int = 1000, tests: int = 3000, device: str = "cpu") -> Sample:
    """Uniform points with the function's standardised values, the same for every kernel."""
    stream = generator("likelihood", function.name)
    x = torch.rand(n + tests, function.dim, generator=stream, dtype=torch.float64).to(device)
    y = Rescaling(*_moments(function))(function.unit(x))
    return Sample(x[:n], y[:n], x[n:], y[n:])


def fitted(kernel: Name, points: Sample) -> Fit:
    """The best of climbs from several lengthscales."""
    evidence = Evidence(kernel, points)
    lengths = points.x.shape[-1] if kernel == "se" else 1
    bounds = np.log([LENGTHSCALES] * lengths + [OUTPUTSCALES])
    climbs = [
        scipy.optimize.minimize(
            evidence.descent,
            np.log([start] * lengths + [1.0]),
            jac=True,
            bounds=bounds,
            options={"maxfun": EVALUATIONS},
        )
        for start in STARTS
    ]
    best = min(climbs, key=lambda climb: climb.fun)
    return Fit(
        kernel,
        tuple(np.exp(best.x[:-1]).tolist()),
        math.exp(best.x[-1]),
        evidence=-best.fun * len(points.y),
        rmse=evidence.error(best.x),
        at_bound=_at_bound(best.x, bounds),
    )


def chosen(fits: Iterable[Fit]) -> Fit:
    """The fit of least error at the test points."""
    return min(fits, key=lambda fit: fit.rmse)


class Evidence:
    r"""The logarithm of the marginal likelihood of a sample, with K the kernel's matrix plus nugget.

    .. math:: -\tfrac12 y^\top K^{-1} y - \tfrac12 \log |K| - \tfrac n2 \log 2\pi

    Source: Rasmussen & Williams (2006), eqs. 2.30 and 5.9.  Parameters are logarithms: lengthscales, then
    the outputscale.  The squared differences of all pairs are kept: 8 MB for each dimension.
    """

    def __init__(self, kernel: Name, points: Sample) -> None:
        """The evidence of a kernel on the points to fit to."""
        self.kernel, self.points = kernel, points
        columns = points.x.T[:, :, None]
        gaps = (columns - columns.mT).square()
        self.squares = gaps if kernel == "se" else gaps.sum(0, keepdim=True)

    def descent(self, parameters: np.ndarray) -> tuple[float, np.ndarray]:
        """Minus the evidence for each point of the sample, and its slope in the parameters."""
        y, n = self.points.y, len(self.points.y)
        inverse_squares, scale = self._natural(parameters)
        r = torch.tensordot(inverse_squares, self.squares, 1).sqrt_()
        factor = self._factor(r, scale)
        if factor is None:
            return 1e10, np.zeros_like(parameters)
        weights = torch.cholesky_solve(y[:, None], factor)[:, 0]
        fit = 0.5 * y @ weights
        loss = fit + factor.diagonal().log().sum() + 0.5 * n * math.log(2 * math.pi)
        # slope: tr((K^-1 - w w') dK) / 2
        pull = torch.cholesky_inverse(factor).sub_(torch.outer(weights, weights))
        by_scale = 0.5 * n - fit - 0.5 * NUGGET * pull.diagonal().sum()
        pull.mul_(steepness(self.kernel, r)).mul_(-0.5 * scale)
        by_length = inverse_squares * torch.tensordot(self.squares, pull, 2)
        slope = torch.cat([by_length, by_scale[None]])
        return loss.item() / n, slope.cpu().numpy() / n

    def error(self, parameters: np.ndarray) -> float:
        """Root mean squared error of the predictions at the test points."""
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
        """Cholesky factor of the kernel's matrix, if there is one to working precision."""
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
    """A function's line of the table: its moments, the chosen kernel, and the figures of every kernel."""
    mean, variance = _moments(function)
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
    """The lines as a CSV file."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


@dataclass(frozen=True)
class _Task:
    """One fit, as it is handed to a process."""

    function: str
    kernel: Name
    samples: int
    tests: int
    device: str


def _fit(task: _Task) -> Fit:
    points = sample(FUNCTIONS[task.function], task.samples, task.tests, task.device)
    return fitted(task.kernel, points)


def _fits(tasks: Sequence[_Task], workers: int) -> list[Fit]:
    """The fits in order; in processes if there are workers."""
    if workers <= 1:
        return [_fit(task) for task in tasks]
    # one thread each: several would only get in each other's way
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, spawn, torch.set_num_threads, (1,)) as pool:
        return list(pool.map(_fit, tasks))


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m askwise.bench.likelihood", description="Make the table.")
    parser.add_argument("--functions", default=",".join(FUNCTIONS), help="names, with commas between them")
    parser.add_argument("--samples", type=int, default=1000, help="points to fit to")
    parser.add_argument("--tests", type=int, default=3000, help="points to choose the kernel by")
    parser.add_argument("--workers", type=int, default=1, help="processes, each on one thread")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--out", help="file; without it, the table is printed")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    """Fit, choose and write the table."""
    arguments = _arguments(argv)
    names = arguments.functions.split(",")
    unknown = [name for name in names if name not in FUNCTIONS]
    if unknown:
        raise ValueError(
            f"functions must be some of {', '.join(FUNCTIONS)}; got {', '.join(unknown)}. Choose among them."
        )
    sizes = (arguments.samples, arguments.tests)
    tasks = [_Task(name, kernel, *sizes, arguments.device) for name in names for kernel in FAMILIES]
    fits, k = _fits(tasks, arguments.workers), len(FAMILIES)
    rows = [row(FUNCTIONS[name], fits[k * i : k * (i + 1)]) for i, name in enumerate(names)]
    if arguments.out is None:
        sys.stdout.write(table(rows))
    else:
        Path(arguments.out).write_text(table(rows))


if __name__ == "__main__":
    main()
