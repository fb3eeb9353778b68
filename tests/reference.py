"""Sequential EP and Laplace's approximation as in the textbook, to hold ours against.

Written from Rasmussen & Williams (2006), "GPML", algorithms 3.1, 3.2, 3.5 and 3.6, for the probit
likelihood and a latent ``g = A f`` with a dense signed matrix A.  The same text runs in two
arithmetics: float64, and 50 digits, which tell who is right where float64 ends.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
import scipy.special

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Arithmetic:
    """Numbers, and the functions of them that the algorithms need."""

    array: Callable[[Any], Array]
    exp: Callable[[Any], Any]
    log: Callable[[Any], Any]
    sqrt: Callable[[Any], Any]
    log_ndtr: Callable[[Any], Any]
    pi: Any
    tolerance: float
    """Relative change of the sites at which an algorithm stops."""


_mp = mpmath.MPContext()
_mp.dps = 50

FLOAT64 = Arithmetic(
    lambda values: np.array(values, dtype=np.float64),
    np.exp,
    np.log,
    np.sqrt,
    scipy.special.log_ndtr,
    np.pi,
    1e-12,
)
DIGITS50 = Arithmetic(
    lambda values: np.array(np.frompyfunc(_mp.mpf, 1, 1)(np.asarray(values)), dtype=object),
    np.frompyfunc(_mp.exp, 1, 1),
    np.frompyfunc(_mp.log, 1, 1),
    np.frompyfunc(_mp.sqrt, 1, 1),
    np.frompyfunc(lambda z: _mp.log(_mp.erfc(-z / _mp.sqrt(2)) / 2), 1, 1),
    _mp.pi,
    1e-20,
)


@dataclass(frozen=True)
class Problem:
    """Answers ``signs`` to the rows of ``A`` over ``points`` under a stationary kernel."""

    points: Array
    A: Array
    signs: Array
    kernel: str
    lengthscale: Array
    outputscale: float


@dataclass(frozen=True)
class Posterior:
    """The answer in float64; ``difference`` is of each test point and the one before it."""

    mean: Array
    variance: Array
    cov: Array
    difference: tuple[Array, Array]
    log_evidence: float
    sweeps: int


def covariance(problem: Problem, x: Array, y: Array, numbers: Arithmetic) -> Array:
    """The squared exponential and the Matern kernels (GPML, eqs. 4.9 and 4.17)."""
    gap = (numbers.array(x)[:, None, :] - numbers.array(y)[None, :, :]) / numbers.array(problem.lengthscale)
    r = numbers.sqrt((gap * gap).sum(-1))
    if problem.kernel == "se":
        correlation = numbers.exp(-r * r / 2)
    elif problem.kernel == "matern32":
        a = numbers.sqrt(numbers.array(3)) * r
        correlation = (1 + a) * numbers.exp(-a)
    else:
        a = numbers.sqrt(numbers.array(5)) * r
        correlation = (1 + a + a * a / 3) * numbers.exp(-a)
    return numbers.array(problem.outputscale) * correlation


def posterior(problem: Problem, x: Array, method: str, numbers: Arithmetic = FLOAT64) -> Posterior:
    """Posterior of f at the test points ``x`` by ``method``: "ep" or "laplace"."""
    A, signs = numbers.array(problem.A), numbers.array(problem.signs)
    G = A @ covariance(problem, problem.points, problem.points, numbers) @ A.T
    sites = ep(G, signs, numbers) if method == "ep" else laplace(G, signs, numbers)
    cross = A @ covariance(problem, problem.points, x, numbers)
    v = _solve_lower(sites.lower, sites.S[:, None] * cross)
    mean = cross.T @ sites.pull
    cov = covariance(problem, x, x, numbers) - v.T @ v
    var, before = np.diagonal(cov), np.roll(np.arange(len(x)), 1)
    apart = var + var[before] - 2 * cov[np.arange(len(x)), before]
    return Posterior(
        _float(mean),
        _float(var),
        _float(cov),
        (_float(mean - mean[before]), _float(apart)),
        float(sites.log_evidence),
        sites.sweeps,
    )


@dataclass(frozen=True)
class Sites:
    """Where an algorithm ended: ``S = sqrt(tau)``, Cholesky of B, weights of the mean, evidence."""

    S: Array
    lower: Array
    pull: Array
    log_evidence: Any
    sweeps: int


def ep(G: Array, y: Array, numbers: Arithmetic, max_sweeps: int = 200) -> Sites:
    """GPML, algorithm 3.5, and lines 2 to 4 of algorithm 3.6."""
    n = len(y)
    nu, tau = numbers.array(np.zeros(n)), numbers.array(np.zeros(n))
    Sigma, mu = G.copy(), numbers.array(np.zeros(n))
    cavity_mean, cavity_var = mu.copy(), np.diagonal(G).copy()
    sweep, changed = 0, True
    while changed and sweep < max_sweeps:
        sweep += 1
        old = tau.copy(), nu.copy()
        for i in range(n):
            # eq. 3.56, multiplied out: the row of a point against itself has variance 0
            left = 1 - tau[i] * Sigma[i, i]
            m, v = (Sigma[i] @ nu - Sigma[i, i] * nu[i]) / left, Sigma[i, i] / left
            # eq. 3.58: mean m + v b and variance v - v^2 w; eq. 3.59, multiplied out likewise
            z = y[i] * m / numbers.sqrt(1 + v)
            ratio = _ratio(z, numbers)
            b = y[i] * ratio / numbers.sqrt(1 + v)
            w = ratio * (z + ratio) / (1 + v)
            step, tau[i] = w / (1 - v * w) - tau[i], w / (1 - v * w)
            nu[i] = (b + m * w) / (1 - v * w)
            # eq. 3.70
            column = Sigma[:, i].copy()
            Sigma -= np.outer(step / (1 + step * column[i]) * column, column)
        S, lower = _factor(G, tau, numbers)
        V = _solve_lower(lower, S[:, None] * G)
        Sigma = G - V.T @ V
        mu = Sigma @ nu
        left = 1 - tau * np.diagonal(Sigma)
        cavity_mean, cavity_var = (mu - np.diagonal(Sigma) * nu) / left, np.diagonal(Sigma) / left
        changed = max(_change(tau, old[0]), _change(nu, old[1])) > numbers.tolerance
    pull = nu - S * _solve_upper(lower.T, _solve_lower(lower, S * (G @ nu)))
    # eqs. 3.73 and 3.74 with the cavity precision T = 1 / v multiplied out
    one = 1 + tau * cavity_var
    z = y * cavity_mean / numbers.sqrt(1 + cavity_var)
    evidence = (numbers.log(one) / 2 + numbers.log_ndtr(z)).sum() - numbers.log(np.diagonal(lower)).sum()
    evidence += (nu @ mu) / 2 - (nu * nu * cavity_var / one).sum() / 2
    evidence += (cavity_mean * (tau * cavity_mean - 2 * nu) / one).sum() / 2
    return Sites(S, lower, pull, evidence, sweep)


def laplace(G: Array, y: Array, numbers: Arithmetic, max_sweeps: int = 200) -> Sites:
    """GPML, algorithm 3.1, with the step halved where it would descend, and 3.2."""

    def objective(a: Array) -> Any:
        return numbers.log_ndtr(y * (G @ a)).sum() - (a @ (G @ a)) / 2

    a = numbers.array(np.zeros(len(y)))
    sweep, changed = 0, True
    while changed and sweep < max_sweeps:
        sweep += 1
        g = G @ a
        ratio = _ratio(y * g, numbers)
        W = ratio * (y * g + ratio)
        S, lower = _factor(G, W, numbers)
        b = W * g + y * ratio
        goal = b - S * _solve_upper(lower.T, _solve_lower(lower, S * (G @ b)))
        step, new = 1.0, goal
        slack = 1e4 * numbers.tolerance * abs(objective(a))  # rounding may look like a descent
        while objective(new) < objective(a) - slack and step > 1e-9:
            step = step / 2
            new = a + numbers.array(step) * (goal - a)
        changed, a = _change(new, a) > numbers.tolerance, new
    g = G @ a
    ratio = _ratio(y * g, numbers)
    S, lower = _factor(G, ratio * (y * g + ratio), numbers)
    evidence = objective(a) - numbers.log(np.diagonal(lower)).sum()
    return Sites(S, lower, a, evidence, sweep)  # a is the gradient at the mode, and has more digits


def _ratio(z: Any, numbers: Arithmetic) -> Any:
    return numbers.exp(-z * z / 2 - numbers.log_ndtr(z)) / numbers.sqrt(numbers.array(2 * numbers.pi))


def _factor(G: Array, tau: Array, numbers: Arithmetic) -> tuple[Array, Array]:
    S = numbers.sqrt(tau)
    return S, _cholesky(numbers.array(np.eye(len(tau))) + S[:, None] * G * S[None, :], numbers)


def _cholesky(matrix: Array, numbers: Arithmetic) -> Array:
    lower = 0 * matrix
    for j in range(len(matrix)):
        column = matrix[j:, j] - (lower[j:, :j] * lower[j, :j]).sum(-1)
        lower[j:, j] = column / numbers.sqrt(column[0])
    return lower


def _solve_lower(lower: Array, right: Array) -> Array:
    left = right.copy()
    for j in range(len(lower)):
        left[j] = left[j] / lower[j, j]
        left[j + 1 :] = left[j + 1 :] - np.multiply.outer(lower[j + 1 :, j], left[j])
    return left


def _solve_upper(upper: Array, right: Array) -> Array:
    return _solve_lower(upper[::-1, ::-1], right[::-1])[::-1]


def _change(new: Array, old: Array) -> float:
    return float(abs(new - old).max() / max(abs(new).max(), 1e-300))


def _float(values: Array) -> Array:
    return values.astype(np.float64)
