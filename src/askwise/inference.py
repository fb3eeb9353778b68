"""One door to the ways of inferring f from answers."""

from typing import Literal

from gpytorch.kernels import Kernel

from askwise.belief import Belief
from askwise.data import Data
from askwise.ep import ep
from askwise.laplace import laplace

__all__ = ["infer"]

_METHODS = {"ep": ep, "laplace": laplace}


def infer(
    data: Data,
    kernel: Kernel,
    method: Literal["ep", "laplace"] = "ep",
    *,
    warm: Belief | None = None,
    tolerance: float = 1e-8,
    max_sweeps: int = 1000,
) -> Belief:
    """Posterior of f given answers and a prior.

    ``method``: ``"ep"`` (the best of the fast ones), ``"laplace"`` (for comparison).
    ``warm``: an earlier belief about the first of these answers; ``tolerance``: the largest change
    of a site at which a lane is done.  Check ``belief.converged``.

    >>> import askwise as aw
    >>> belief = aw.infer(aw.Data.binary([[0.2], [0.8]], [0, 1]), aw.kernel("se", 0.3))
    >>> bool(belief.converged), int(belief.sweeps) < 20
    (True, True)
    """
    if method not in _METHODS:
        known = ", ".join(repr(name) for name in _METHODS)
        raise ValueError(f"method must be one of {known}; got {method!r}. Choose one of them.")
    return _METHODS[method](data, kernel, warm=warm, tolerance=tolerance, max_sweeps=max_sweeps)
