"""One door to the ways of inferring f from answers."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from askwise.belief import Belief
from askwise.data import Data
from askwise.ep import ep
from askwise.gibbs import gibbs
from askwise.kernels import covariance
from askwise.laplace import laplace
from askwise.seeds import Generators

__all__ = ["Method", "infer"]

Method = Literal["ep", "laplace", "gibbs"]
_CACHED = 2**19  # matrix entries of the lanes that run together
_METHODS: dict[str, Callable[..., Belief]] = {"ep": ep, "laplace": laplace, "gibbs": gibbs}


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
    """Posterior of f given answers and a prior; check ``belief.converged``.

    ``method``: ``"ep"``, the best of the fast ones; ``"laplace"``, for comparison; ``"gibbs"``,
    exact up to Monte Carlo noise and hundreds of times slower, with ``generators`` to draw from.
    ``warm``: an earlier belief about the first of these answers, to start from.
    ``tolerance`` and ``max_sweeps``: when to stop, by default what the method finds sensible.

    >>> import askwise as aw
    >>> belief = aw.infer(aw.Data.binary([[0.2], [0.8]], [0, 1]), aw.kernel("se", 0.3))
    >>> bool(belief.converged), int(belief.sweeps) < 20
    (True, True)
    """
    if method not in _METHODS:
        known = ", ".join(repr(name) for name in _METHODS)
        raise ValueError(f"method must be one of {known}; got {method!r}. Choose one of them.")
    infer_one = _METHODS[method]
    options: dict[str, Any] = {"tolerance": tolerance, "max_sweeps": max_sweeps}
    options = {name: value for name, value in options.items() if value is not None}
    if method == "gibbs":
        return infer_one(data, kernel, generators=generators, **options)
    chunks = _chunks(data, kernel)
    if len(chunks) == 1:
        return infer_one(data, kernel, warm=warm, **options)
    parts = []
    for lanes in chunks:
        own = kernel[lanes] if kernel.batch_shape else kernel
        start = None if warm is None else warm.select(lanes)
        parts.append(infer_one(data.select(lanes), own, warm=start, **options))
    return Belief.joined(covariance(kernel).detached(), data, parts)


def _chunks(data: Data, kernel: Kernel) -> Sequence[Tensor]:
    """Lanes to run together: on a CPU as many as its cache holds, which is faster by a half."""
    lanes = torch.arange(data.lanes.numel(), device=data.points.device)
    trained = any(part.requires_grad for part in kernel.parameters())
    if not data.lanes or data.points.is_cuda or trained:
        return [lanes]
    entries = data.n**2 + data.points.shape[-2] ** 2
    return lanes.split(max(1, _CACHED // max(1, entries)))
