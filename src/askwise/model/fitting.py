"""Kernel parameters by maximum a posteriori: evidence times a prior."""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import get_args

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float
from torch import Tensor

from askwise.errors import Refused
from askwise.model.belief import Belief
from askwise.model.copies import one_per_lane
from askwise.model.data import Data
from askwise.model.inference import Method, infer
from askwise.model.kernels import kernel as named_kernel
from askwise.model.log_posterior import NegativeLogPosterior
from askwise.model.observer import Learnable, Observer
from askwise.model.priors import lengthscale_prior
from askwise.numerics import minimize

_FIRST_REFIT, _REFIT_GROWTH = 8, 1.5  # after each of the first 8 answers, then at each growth by half
_GRADIENT_TOLERANCE, _VALUE_TOLERANCE = 1e-4, 1e-6  # lengthscales err by 1e-4 of themselves
_ROUGH_VALUE, _ROUGH_INFERENCE = 1e-4, 1e-2  # where averages start: by up to 1e-2


@dataclass(frozen=True)
class Fitted:
    """The fitted kernel, its belief, and the log posterior there and at the start."""

    kernel: Kernel
    inference: Callable[[], Belief] = field(repr=False)
    log_posterior: Float[Tensor, "*lane"]
    log_posterior_at_start: Float[Tensor, "*lane"]
    observer: Observer | None = None
    """What was learned of the people who answered, if anything was."""
    deviation: Float[Tensor, "*lane k"] | None = None
    """Posterior standard deviations of the free parameters of ``observer``, if they were asked for."""

    @functools.cached_property
    def belief(self) -> Belief:
        """The posterior given the fitted kernel, inferred when it is first asked for."""
        return self.inference()


def fit(  # noqa: PLR0913
    data: Data,
    kernel: Kernel | str = "matern52",
    method: Method = "ep",
    *,
    max_steps: int = 100,
    observer: Observer | None = None,
    learn: Sequence[Learnable] = (),
    fixed: bool = False,
    deviations: bool = False,
    roughly: bool = False,
) -> Fitted:
    """Kernel parameters that maximise evidence times prior, starting from those of ``kernel``.

    A name starts at the mode of the prior, with one lengthscale per dimension.  A GPyTorch kernel keeps its
    own priors if it has any; the three named ones get those of :mod:`askwise.model.priors`, whose modes are
    the maximum without answers; any other has none.  Each lane has its own
    parameters, and all are fitted.  The result is never worse than the start.

    ``observer`` says how people answer; what ``learn`` names of it is fitted as well.  Where answers may be
    lapses or are undecided about groups, sites may be held at zero precision, and the gradient is only that
    at fixed sites, as in EM.  The maximum is a local one: where a third of the answers
    are lapses, the learned rate may be a few percent.
    ``fixed``: the kernel stays as it is.  ``deviations``: also the posterior deviations of what is learned,
    by the curvature at the maximum.  ``roughly``: in two thirds of the time, to start averages from.

    >>> import askwise as aw
    >>> fitted = aw.fit(aw.Data.binary([[0.1], [0.3], [0.6], [0.8]], [0, 0, 1, 1]), "se")
    >>> bool(fitted.log_posterior >= fitted.log_posterior_at_start)
    True
    """
    d = data.points.shape[-1]
    _check_learnable(observer, learn)
    if isinstance(kernel, str):
        kernel = named_kernel(kernel, lengthscale_prior(d).mode.expand(*data.lanes, d))
    with torch.inference_mode(False), torch.enable_grad():  # the caller may have switched gradients off
        target = NegativeLogPosterior(data, one_per_lane(kernel, data), method, observer, tuple(learn))
        if roughly:
            target.tolerance = _ROUGH_INFERENCE
        start = target.vector
        first, _ = target(start)
        lower, upper = target.bounds(start)
        if fixed:
            for side in (lower, upper):
                side[:, : target.of_kernel] = start[:, : target.of_kernel]
        best, value = minimize(
            target,
            start,
            lower,
            upper,
            max_steps=max_steps,
            gradient_tolerance=_GRADIENT_TOLERANCE,
            value_tolerance=_ROUGH_VALUE if roughly else _VALUE_TOLERANCE,
            inverse=target.inverse_at_start,
        )
        best = torch.where((value <= first)[:, None], best, start)
        deviation = target.deviations(best, fixed) if deviations else None
    final, people = target.kernel_at(best).requires_grad_(False), target.observer_at(best)
    people = None if people is None else people.detached()
    answered = data if people is None else people.applied(data)
    belief = functools.partial(infer, answered, final, method, warm=target.warm)
    posteriors = -value.minimum(first).reshape(data.lanes), -first.reshape(data.lanes)
    return Fitted(final, belief, *posteriors, people, deviation)


def _check_learnable(observer: Observer | None, learn: Sequence[Learnable]) -> None:
    known = get_args(Learnable)
    if isinstance(learn, str) or any(name not in known for name in learn):
        expected = f"be a list of {', '.join(map(repr, known))}"
        raise Refused("learn", expected, repr(learn), "Name what is to be learned of the people.")
    if learn and observer is None:
        raise Refused(
            "observer", "be given where something is to be learned of it", None, "Start from Observer.start."
        )


def refit_count(count: int) -> int:
    """Number of answers at the last refit of the kernel: a geometric refit schedule.

    >>> [refit_count(count) for count in (5, 11, 12, 30)]
    [5, 8, 12, 27]
    """
    step = min(count, _FIRST_REFIT)
    while (more := math.ceil(_REFIT_GROWTH * step)) <= count and step >= _FIRST_REFIT:
        step = more
    return step
