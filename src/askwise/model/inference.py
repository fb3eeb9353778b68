"""Inference of f by the chosen method, in chunks of lanes."""

import functools
from collections.abc import Callable
from typing import Any, Literal, get_args

import torch
from gpytorch.kernels import Kernel

from askwise.errors import Refused
from askwise.model.belief import Belief
from askwise.model.data import Data
from askwise.model.ep import ep
from askwise.model.gibbs import gibbs
from askwise.model.kernels import Stationary, covariance
from askwise.model.landmarks import EXACT_TO, LandmarkProblem, inference_problem
from askwise.model.laplace import laplace
from askwise.model.mixture import Kernels, Mixture
from askwise.model.sites import InferenceProblem, Sites, Start
from askwise.numerics import Generators

Method = Literal["ep", "laplace", "gibbs"]
_CHUNK_ENTRIES = 2**19  # matrix entries of the lanes that run together
_COARSE = 1e-2  # tolerance with few landmarks


def infer(
    data: Data,
    kernel: Kernel | Stationary | Kernels,
    method: Method = "ep",
    *,
    warm: Sites | None = None,
    tolerance: float | None = None,
    max_sweeps: int | None = None,
    generators: Generators | None = None,
) -> Belief:
    """Posterior of f given data and a prior; check ``belief.converged``.

    ``method``: ``"ep"``, the most accurate of the fast ones, beyond 1000 answers with landmarks
    (:mod:`askwise.model.landmarks`); ``"laplace"``, for comparison; ``"gibbs"``,
    exact up to Monte Carlo noise and hundreds of times slower, which draws from ``generators``.
    ``warm``: an earlier belief about the first of these answers, to start from.  ``tolerance`` and
    ``max_sweeps``: stopping criteria; by default those of the method.  Given several kernels the posterior
    is their mixture.

    >>> import askwise as aw
    >>> belief = aw.infer(aw.Data.binary([[0.2], [0.8]], [0, 1]), aw.kernel("se", 0.3))
    >>> bool(belief.converged), int(belief.sweeps) < 20
    (True, True)
    """
    if method not in get_args(Method):
        known = ", ".join(repr(name) for name in get_args(Method))
        raise Refused("method", f"be one of {known}", repr(method), "Choose one of them.")
    if isinstance(kernel, str):
        advice = f"Write aw.kernel({kernel!r}, 0.3), or learn its parameters with aw.fit."
        raise Refused("kernel", "be one with parameters", repr(kernel), advice)
    if tolerance is not None and not tolerance >= 0:
        raise Refused("tolerance", "be zero or positive", tolerance, "Leave it out for the usual one.")
    options: dict[str, Any] = {"tolerance": tolerance, "max_sweeps": max_sweeps}
    options = {name: value for name, value in options.items() if value is not None}
    if method == "gibbs" and isinstance(kernel, Kernels):
        raise Refused("method", "be 'ep' or 'laplace' for several kernels", "'gibbs'", "Choose one of these.")
    if method == "gibbs":
        return gibbs(data, kernel, generators=generators, **options)
    approximation = functools.partial(_ep if method == "ep" else _laplace, **options)
    if isinstance(kernel, Kernels):
        return _mixture(data, kernel, approximation, warm)
    return _in_chunks(data, kernel, approximation, warm)


def _ep(data: Data, kernel: Kernel | Stationary, warm: Sites | None, **options: Any) -> Belief:
    problem = inference_problem(data, kernel)
    if warm is None and isinstance(problem, LandmarkProblem):
        with torch.no_grad():
            warm = ep(problem.coarse, None, _COARSE)
    return ep(problem, warm, **options)


def _laplace(data: Data, kernel: Kernel | Stationary, warm: Sites | None, **options: Any) -> Belief:
    return laplace(InferenceProblem.of(data, kernel), warm, **options)


def _in_chunks(
    data: Data, kernel: Kernel | Stationary, approximation: Callable[..., Belief], warm: Sites | None
) -> Belief:
    """The posterior, on a CPU in chunks of lanes; with thousands of answers lane by lane."""
    entries = data.n**2 + data.points.shape[-2] ** 2
    many = data.n > EXACT_TO
    chunk = 1 if many else _CHUNK_ENTRIES // max(1, entries)
    chunks = torch.arange(data.lanes.numel(), device=data.points.device).split(max(1, chunk))
    trained = isinstance(kernel, Kernel) and any(part.requires_grad for part in kernel.parameters())
    if len(chunks) == 1 or not data.lanes or (data.points.is_cuda and not many) or trained:
        return approximation(data, kernel, warm)
    parts = []
    for lanes in chunks:  # lanes that fit the CPU cache together run faster by a half
        own = kernel.select(lanes) if isinstance(kernel, Stationary) else kernel
        if isinstance(own, Kernel) and own.batch_shape:
            own = own[lanes]
        known = None if warm is None else Start(warm.tau[lanes], warm.nu[lanes])
        parts.append(approximation(data.select(lanes), own, known))
    prior = kernel if isinstance(kernel, Stationary) else covariance(kernel)
    return Belief.joined(prior.detached(), data, parts)


def _mixture(
    data: Data, kernels: Kernels, approximation: Callable[..., Belief], warm: Sites | None
) -> Mixture:
    """The posterior given each of the kernels, weighted by how well it foretold the answers since."""
    if kernels.lanes != data.lanes:
        expected = f"have the lanes of the data, {tuple(data.lanes)}"
        raise Refused("kernels", expected, tuple(kernels.lanes), "Learn them from the same lanes.")
    lanes = kernels.prior.lanes
    known: Sites = warm.parts if isinstance(warm, Mixture) and warm.weights.shape == lanes else kernels
    known = Start(known.tau.flatten(0, -2), known.nu.flatten(0, -2))
    flat = kernels.prior.flattened()
    parts = _in_chunks(data.in_lanes(lanes), flat, approximation, known).unflattened(lanes, kernels.prior)
    if data.share.any():
        parts = parts.of_rater(None)
    return Mixture.of(parts, (parts.log_evidence - kernels.log_evidence).softmax(0))
