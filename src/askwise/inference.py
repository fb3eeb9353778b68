"""One door to the ways of inferring f from answers."""

from collections.abc import Callable
from typing import Any, Literal

from gpytorch.kernels import Kernel

from askwise.belief import Belief
from askwise.data import Data
from askwise.ep import ep
from askwise.gibbs import gibbs
from askwise.laplace import laplace
from askwise.seeds import Generators

__all__ = ["Method", "infer"]

Method = Literal["ep", "laplace", "gibbs"]
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
    exact up to Monte Carlo noise and a thousand times slower, with ``generators`` to draw from.
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
    options: dict[str, Any] = {"tolerance": tolerance, "max_sweeps": max_sweeps}
    options["generators" if method == "gibbs" else "warm"] = generators if method == "gibbs" else warm
    given = {name: value for name, value in options.items() if value is not None}
    return _METHODS[method](data, kernel, **given)
