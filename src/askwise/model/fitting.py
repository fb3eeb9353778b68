r"""Kernel parameters by maximum a posteriori: evidence times a prior.

The priors are those of BoTorch's models: lengthscales
:math:`\ell \sim \mathrm{LogNormal}(\sqrt2 + \tfrac12 \log d, \sqrt3)`, which grow with the dimension
so that distances in lengthscales do not (Hvarfner et al. 2024, ICML).  The prior variance has
:math:`\mathrm{LogNormal}(2, \sqrt2)`: mode 1, median 7.4, so that a priori answers are neither pure noise nor
certain.  The margin of ties has :math:`\mathrm{LogNormal}(\log 0.4, 0.7)`: about one duel of equals in three
is a tie.
"""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from gpytorch.constraints import Interval
from gpytorch.kernels import Kernel
from gpytorch.priors import LogNormalPrior
from jaxtyping import Float
from torch import Tensor
from torch.distributions import LogNormal

from askwise.errors import Refused
from askwise.model.belief import Belief
from askwise.model.data import Data
from askwise.model.ep import ep
from askwise.model.inference import Method, infer
from askwise.model.kernels import Stationary, covariance
from askwise.model.kernels import kernel as named_kernel
from askwise.model.sites import InferenceProblem
from askwise.numerics import minimize

_OUTPUTSCALE_PRIOR = LogNormal(torch.tensor(2.0, dtype=torch.float64), math.sqrt(2))
_MARGIN_PRIOR = LogNormal(torch.tensor(math.log(0.4), dtype=torch.float64), 0.7)
_MARGIN_GRID = (0.02, 3.0, 24)  # first, last and number of margins, equally spaced on a log scale
_EXPECTED_LENGTHSCALE, _EXPECTED_VARIANCE = 0.2, 4.0
_FIRST_REFIT, _REFIT_GROWTH = (
    8,
    1.5,
)  # refit after each answer up to 8, then whenever their number has grown by half
_BOUNDS = {"lengthscale": (1e-3, 1e3), "outputscale": (1e-6, 1e6)}


@dataclass(frozen=True)
class Fitted:
    """The fitted kernel, its belief, and the log posterior there and at the start."""

    kernel: Kernel
    belief: Belief
    log_posterior: Float[Tensor, "*lane"]
    log_posterior_at_start: Float[Tensor, "*lane"]


def fit(
    data: Data, kernel: Kernel | str = "matern52", method: Method = "ep", *, max_steps: int = 100
) -> Fitted:
    """Kernel parameters that maximise evidence times prior, starting from those of ``kernel``.

    A name starts at the mode of the prior, with one lengthscale per dimension.  A GPyTorch kernel keeps its
    own priors if it has any; the three named ones get those above; any other has none.  Each lane has its own
    parameters, and all are fitted.  The result is never worse than the start.

    >>> import askwise as aw
    >>> fitted = aw.fit(aw.Data.binary([[0.1], [0.3], [0.6], [0.8]], [0, 0, 1, 1]), "se")
    >>> bool(fitted.log_posterior >= fitted.log_posterior_at_start)
    True
    """
    d = data.points.shape[-1]
    if isinstance(kernel, str):
        kernel = named_kernel(kernel, _lengthscale_prior(d).mode.expand(*data.lanes, d))
    with torch.inference_mode(False), torch.enable_grad():  # the caller may have switched gradients off
        target = _NegativeLogPosterior(data, _one_per_lane(kernel, data), method)
        start = target.vector
        first, _ = target(start)
        best, value = minimize(target, start, *target.bounds(start), max_steps=max_steps)
    final = target.kernel_at(torch.where((value <= first)[:, None], best, start))
    final.requires_grad_(False)
    return Fitted(
        final,
        infer(data, final, method, warm=target.belief),
        -value.minimum(first).reshape(data.lanes),
        -first.reshape(data.lanes),
    )


def expected_length(parameters: int) -> float:
    """Expected lengthscale in the unit cube, for this number of parameters."""
    return _EXPECTED_LENGTHSCALE * math.sqrt(parameters)


def expected_kernel(name: str, lengths: Sequence[float]) -> Kernel:
    """A kernel with informative priors for a search space that someone chose to study.

    Each parameter is expected to matter over its whole range: lengthscales of about a quarter of it,
    longer in more dimensions, where distances grow.  Good settings clearly beat bad ones: a standard
    deviation of two.  A few answers say little about either, and with wide priors the fit is often a
    featureless function, for which only the corners are worth querying.
    """
    expected = named_kernel(name, lengths, _EXPECTED_VARIANCE)
    log_lengths = torch.tensor(lengths, dtype=torch.float64).log()
    expected.base_kernel.register_prior("length", LogNormalPrior(log_lengths, 0.5), "lengthscale")
    expected.register_prior("variance", LogNormalPrior(math.log(_EXPECTED_VARIANCE), 0.7), "outputscale")
    return expected.double()


def learned_kernel(data: Data, prior: Kernel) -> Kernel:
    """The maximum a posteriori kernel, for priors as in :func:`expected_kernel`."""
    return fit(data, prior).kernel


def refit_count(count: int) -> int:
    """Number of answers at the last refit of the kernel: a geometric refit schedule.

    >>> [refit_count(count) for count in (5, 11, 12, 30)]
    [5, 8, 12, 27]
    """
    step = min(count, _FIRST_REFIT)
    while (more := math.ceil(_REFIT_GROWTH * step)) <= count and step >= _FIRST_REFIT:
        step = more
    return step


def with_fitted_margin(data: Data, kernel: Kernel) -> Data:
    """The data with the margin that maximises evidence times prior, in each lane that has ties.

    The 24 candidates from 0.02 to 3 are lanes of one inference.
    """
    tied = data.has_ties
    if not tied.any():
        return data
    low, high, steps = _MARGIN_GRID
    margins = torch.logspace(
        math.log10(low), math.log10(high), steps, dtype=torch.float64, device=data.points.device
    )
    laned = data.unsqueezed()
    lanes = torch.arange(laned.lanes.numel(), device=margins.device).repeat(steps)
    tried = laned.select(lanes).with_margin(margins.repeat_interleave(len(laned.signs)))
    prior = InferenceProblem.from_kernel(data, kernel).prior.detached().select(lanes)
    with torch.no_grad():
        evidence = ep(InferenceProblem.from_prior(tried, prior)).log_evidence.reshape(steps, -1)
    best = (evidence + _MARGIN_PRIOR.log_prob(margins)[:, None]).argmax(0)
    return data.with_margin(torch.where(tied, margins[best].reshape(data.lanes), data.margin))


def _lengthscale_prior(d: int) -> LogNormal:
    return LogNormal(torch.tensor(math.sqrt(2) + math.log(d) / 2, dtype=torch.float64), math.sqrt(3))


def _one_per_lane(kernel: Kernel, data: Data) -> Kernel:
    """A copy in float64 with the data's lanes: a kernel without lanes is repeated for each."""
    copied = copy.deepcopy(kernel).to(device=data.points.device, dtype=torch.float64)
    if data.lanes and not copied.batch_shape:
        for part in copied.parameters():
            part.data = part.data.expand(*data.lanes, *part.shape).clone()
        for module in copied.modules():
            if isinstance(module, Kernel):
                module.batch_shape = data.lanes
    if any(part.shape[: len(data.lanes)] != data.lanes for part in copied.parameters()):
        expected = f"have the data's lanes, {tuple(data.lanes)}, or none, in all its parts"
        advice = "Give every part that batch_shape, or none of them."
        raise Refused("kernel", expected, tuple(kernel.batch_shape), advice)
    return copied


class _NegativeLogPosterior:
    """Minus log evidence minus log prior of all lanes, in unconstrained parameters.

    A positive parameter is replaced by its logarithm, or by that of its excess over its lower bound, so that
    steps are relative whatever GPyTorch's constraint; any other is used as it is.
    """

    def __init__(self, data: Data, kernel: Kernel, method: Method) -> None:
        self.data, self.kernel, self.method = data, kernel, method
        self.belief: Belief | None = None
        self.count = data.lanes.numel()
        self.names = [name for name, _ in kernel.named_parameters()]
        self.constraints = [kernel.constraint_for_parameter_name(name) for name in self.names]

    @property
    def vector(self) -> Float[Tensor, "lane k"]:
        parts = zip(self.kernel.parameters(), self.constraints, strict=True)
        columns = [_unconstrained(part.detach(), constraint) for part, constraint in parts]
        return torch.cat([column.reshape(self.count, -1) for column in columns], -1)

    def bounds(self, start: Float[Tensor, "lane k"]) -> tuple[Tensor, Tensor]:
        """The range for which inference is tested, within the constraints; the start is always inside."""
        lower, upper = torch.full_like(start, -math.inf), torch.full_like(start, math.inf)
        split = [part.numel() // self.count for part in self.kernel.parameters()]
        columns = zip(
            self.names, self.constraints, lower.split(split, -1), upper.split(split, -1), strict=True
        )
        for name, constraint, low, high in columns:
            limits = _BOUNDS.get(name.rpartition("raw_")[-1])
            if limits is not None and _transform_of(constraint) != "identity":
                low.fill_(math.log(limits[0]))
                high.fill_(math.log(limits[1]))
            if constraint is not None and not constraint.enforced:
                low.copy_(low.maximum(_unconstrained(constraint.lower_bound, constraint)))
                high.copy_(high.minimum(_unconstrained(constraint.upper_bound, constraint)))
        return lower.minimum(start), upper.maximum(start)

    def kernel_at(self, vector: Float[Tensor, "lane k"]) -> Kernel:
        """The kernel, set to these parameters; copying it instead would take a fifth of a fit."""
        for part, raw in zip(self.kernel.parameters(), self._raw_parameters(vector), strict=True):
            part.data = raw.detach().clone()
        return self.kernel.requires_grad_(True)

    def __call__(self, vector: Float[Tensor, "lane k"]) -> tuple[Tensor, Tensor]:
        vector = vector.detach().requires_grad_()
        kernel = self.kernel_at(vector)
        self.belief = infer(self.data, kernel, self.method, warm=self.belief)
        value = -(self.belief.log_evidence.reshape(self.count) + self._log_prior(kernel))
        by_raw = torch.autograd.grad(value.sum(), list(kernel.parameters()))
        (grad,) = torch.autograd.grad(self._raw_parameters(vector), vector, by_raw)
        return value.detach(), grad

    def _raw_parameters(self, vector: Tensor) -> list[Tensor]:
        """The kernel's raw parameters."""
        parts = list(self.kernel.parameters())
        columns = vector.split([part.numel() // self.count for part in parts], -1)
        return [
            _raw(column.reshape(part.shape), constraint)
            for part, column, constraint in zip(parts, columns, self.constraints, strict=True)
        ]

    def _log_prior(self, kernel: Kernel) -> Float[Tensor, " lane"]:
        # GPyTorch leaves priors on the CPU when it moves a kernel to a GPU; ours are there too
        own = [
            prior.log_prob(closure(module).cpu()) for _, module, prior, closure, _ in kernel.named_priors()
        ]
        prior = covariance(kernel)
        if not own and isinstance(prior, Stationary):
            lengths = _lengthscale_prior(self.data.points.shape[-1]).log_prob(prior.lengthscale.cpu())
            own = [lengths, _OUTPUTSCALE_PRIOR.log_prob(prior.outputscale.cpu())]
        total = torch.zeros(self.count, dtype=torch.float64)
        for part in own:
            total = total + part.reshape(self.count, -1).sum(-1)
        return total.to(self.data.points.device)


def _transform_of(constraint: Interval | None) -> Literal["identity", "log", "log above bound"]:
    if constraint is None or not bool((constraint.lower_bound >= 0).all()):
        return "identity"
    if not constraint.enforced:
        return "log"  # the optimiser keeps within the bounds
    return "log above bound" if bool(torch.isinf(constraint.upper_bound).all()) else "identity"


def _unconstrained(raw: Tensor, constraint: Interval | None) -> Tensor:
    transform = _transform_of(constraint)
    if transform == "identity" or constraint is None:
        return raw
    if transform == "log":
        return raw.log()
    above = constraint.transform(raw) - constraint.lower_bound
    return above.clamp_min(torch.finfo(above.dtype).tiny).log()


def _raw(free: Tensor, constraint: Interval | None) -> Tensor:
    transform = _transform_of(constraint)
    if transform == "identity" or constraint is None:
        return free
    if transform == "log":
        return free.exp()
    return constraint.inverse_transform(constraint.lower_bound + free.exp())
