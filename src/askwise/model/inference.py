"""Inference of f by the chosen method, in chunks of lanes."""

from typing import Any, Literal, get_args

import torch
from gpytorch.kernels import Kernel

from askwise.errors import Refused
from askwise.model.belief import Belief
from askwise.model.data import Data
from askwise.model.ep import ep
from askwise.model.gibbs import gibbs
from askwise.model.kernels import covariance
from askwise.model.laplace import laplace
from askwise.model.sites import InferenceProblem
from askwise.numerics import Generators

Method = Literal["ep", "laplace", "gibbs"]
_CHUNK_ENTRIES = 2**19  # matrix entries of the lanes that run together


def infer(
    data: Data,
    kernel: Kernel,
    method: Method = "ep",
    *,
    warm: Belief | None = None,
    tolerance: float | None = None,
    max_sweeps: int | None = None,
    generators: Generators | None = None,
) -> Belief:
    """Posterior of f given data and a prior; check ``belief.converged``.

    ``method``: ``"ep"``, the most accurate of the fast ones; ``"laplace"``, for comparison; ``"gibbs"``,
    exact up to Monte Carlo noise and hundreds of times slower, which draws from ``generators``.
    ``warm``: an earlier belief about the first of these answers, to start from.  ``tolerance`` and
    ``max_sweeps``: stopping criteria; by default those of the method.

    >>> import askwise as aw
    >>> belief = aw.infer(aw.Data.binary([[0.2], [0.8]], [0, 1]), aw.kernel("se", 0.3))
    >>> bool(belief.converged), int(belief.sweeps) < 20
    (True, True)
    """
    if method not in get_args(Method):
        known = ", ".join(repr(name) for name in get_args(Method))
        raise Refused("method", f"be one of {known}", repr(method), "Choose one of them.")
    options: dict[str, Any] = {"tolerance": tolerance, "max_sweeps": max_sweeps}
    options = {name: value for name, value in options.items() if value is not None}
    if method == "gibbs":
        return gibbs(data, kernel, generators=generators, **options)
    approximation = ep if method == "ep" else laplace
    chunk = _CHUNK_ENTRIES // max(1, data.n**2 + data.points.shape[-2] ** 2)
    chunks = torch.arange(data.lanes.numel(), device=data.points.device).split(max(1, chunk))
    trained = any(part.requires_grad for part in kernel.parameters())
    if len(chunks) == 1 or not data.lanes or data.points.is_cuda or trained:
        return approximation(InferenceProblem.of(data, kernel), warm, **options)
    parts = []
    for lanes in chunks:  # lanes that fit the CPU cache together run faster by a half
        problem = InferenceProblem.of(data.select(lanes), kernel[lanes] if kernel.batch_shape else kernel)
        parts.append(approximation(problem, None if warm is None else warm.select(lanes), **options))
    return Belief.joined(covariance(kernel).detached(), data, parts)
