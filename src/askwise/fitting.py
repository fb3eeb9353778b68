r"""Kernel parameters from the answers: the maximum of the evidence times a prior.

The priors are those of BoTorch's models: lengthscales
:math:`\ell \sim \mathrm{LogNormal}(\sqrt2 + \tfrac12 \log d, \sqrt3)`, which grow with the dimension
so that distances in lengthscales do not (Hvarfner et al. 2024, ICML).  The prior variance has
:math:`\mathrm{LogNormal}(2, \sqrt2)`: mode 1, median 7.4, so that answers are neither all noise nor
all certain before any is in.  The margin of ties has :math:`\mathrm{LogNormal}(\log 0.4, 0.7)`: of two
equals, about one person in three cannot tell the better.
"""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

import torch
from gpytorch.constraints import Interval
from gpytorch.kernels import Kernel
from gpytorch.priors import LogNormalPrior
from jaxtyping import Float
from torch import Tensor
from torch.distributions import LogNormal

from askwise.belief import Belief
from askwise.bfgs import minimize
from askwise.data import Data
from askwise.ep import ep_of
from askwise.inference import Method, infer
from askwise.kernels import Name, Stationary, covariance
from askwise.kernels import kernel as named_kernel
from askwise.sites import Problem

__all__ = ["Fitted", "expected_kernel", "expected_length", "fit", "learned_from", "with_fitted_margin"]

_OUTPUTSCALE_PRIOR = LogNormal(torch.tensor(2.0, dtype=torch.float64), math.sqrt(2))
_MARGIN_PRIOR = LogNormal(torch.tensor(math.log(0.4), dtype=torch.float64), 0.7)
_MARGINS = (0.02, 3.0, 24)  # from, to, and how many steps of equal ratio
_LENGTH, _VARIANCE = 0.2, 4.0
_EVERY, _GROWTH = 8, 1.5  # so many answers from each of which a kernel is learned, then half as many more
_BOUNDS = {"lengthscale": (1e-3, 1e3), "outputscale": (1e-6, 1e6)}


@dataclass(frozen=True)
class Fitted:
    """A kernel, the belief it gives, and how much better than the start it is."""

    kernel: Kernel
    belief: Belief
    log_posterior: Float[Tensor, "*lane"]
    log_posterior_at_start: Float[Tensor, "*lane"]


def fit(
    data: Data,
    kernel: Kernel | Name = "matern52",
    method: Method = "ep",
    *,
    max_steps: int = 100,
) -> Fitted:
    """Kernel parameters that maximise evidence times prior, starting from those of ``kernel``.

    A name starts at the mode of the prior, with one lengthscale a dimension.  A GPyTorch kernel
    keeps its own priors if it has any; the three named ones have those above; any other has none.
    Each lane has its own parameters, and all are fitted.  The result is never worse than the start.

    >>> import askwise as aw
    >>> fitted = aw.fit(aw.Data.binary([[0.1], [0.3], [0.6], [0.8]], [0, 0, 1, 1]), "se")
    >>> bool(fitted.log_posterior >= fitted.log_posterior_at_start)
    True
    """
    d = data.points.shape[-1]
    if isinstance(kernel, str):
        kernel = named_kernel(cast(Name, kernel), _lengthscale_prior(d).mode.expand(*data.lanes, d))
    with torch.inference_mode(False), torch.enable_grad():  # whatever the caller is in
        target = _Target(data, _one_per_lane(kernel, data), method)
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
    """The lengthscale to expect of each of so many parameters, on a scale from 0 to 1."""
    return _LENGTH * math.sqrt(parameters)


def expected_kernel(name: Name, lengths: Sequence[float]) -> Kernel:
    """A kernel with what can be expected of a space that somebody chose to study, to learn from.

    Its parameters matter, yet not only at one end: lengthscales of about a quarter of the range, longer
    where distances grow with the dimension; and good settings beat bad ones clearly: a deviation of two.
    A few answers say little about any of this, and with wide priors they often talk the model into a
    function without features, of which only the corners are worth asking about.
    """
    expected = named_kernel(name, lengths, _VARIANCE)
    usual = torch.tensor(lengths, dtype=torch.float64).log()
    expected.base_kernel.register_prior("length", LogNormalPrior(usual, 0.5), "lengthscale")
    expected.register_prior("variance", LogNormalPrior(math.log(_VARIANCE), 0.7), "outputscale")
    return expected.double()


def learned_from(count: int) -> int:
    """How many of so many answers a kernel is learned from: seldom all, for it takes a while.

    >>> [learned_from(count) for count in (5, 11, 12, 30)]
    [5, 8, 12, 27]
    """
    step = min(count, _EVERY)
    while (more := math.ceil(_GROWTH * step)) <= count and step >= _EVERY:
        step = more
    return step


def with_fitted_margin(data: Data, kernel: Kernel) -> Data:
    """The data with the margin that maximises evidence times prior, in each lane that holds ties.

    Among 24 margins from 0.02 to 3, which all are lanes of one inference.
    """
    tied = data.has_ties
    if not tied.any():
        return data
    least, most, steps = _MARGINS
    margins = torch.logspace(
        math.log10(least), math.log10(most), steps, dtype=torch.float64, device=data.points.device
    )
    laned = data.unsqueezed()
    lanes = torch.arange(laned.lanes.numel(), device=margins.device).repeat(steps)
    tried = laned.select(lanes).with_margin(margins.repeat_interleave(len(laned.signs)))
    prior = Problem.of(data, kernel).prior.detached().select(lanes)
    with torch.no_grad():
        evidence = ep_of(Problem.under(tried, prior)).log_evidence.reshape(steps, -1)
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
        raise ValueError(
            f"kernel must have the data's lanes, {tuple(data.lanes)}, or none, in all its parts; got "
            f"{tuple(kernel.batch_shape)}. Give every part that batch_shape, or none of them."
        )
    return copied


class _Target:
    """Minus log evidence minus log prior of all lanes, in numbers that are free to move.

    A positive parameter moves as its logarithm, or that of what it has above its lower bound, so
    that steps are relative, whatever GPyTorch's constraint does; any other moves as it is.
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
        free = [_freed(part.detach(), constraint) for part, constraint in parts]
        return torch.cat([part.reshape(self.count, -1) for part in free], -1)

    def bounds(self, start: Float[Tensor, "lane k"]) -> tuple[Tensor, Tensor]:
        """What inference was tested for and the constraints allow; the start is always inside."""
        lower, upper = torch.full_like(start, -math.inf), torch.full_like(start, math.inf)
        split = [part.numel() // self.count for part in self.kernel.parameters()]
        columns = zip(
            self.names, self.constraints, lower.split(split, -1), upper.split(split, -1), strict=True
        )
        for name, constraint, low, high in columns:
            limits = _BOUNDS.get(name.rpartition("raw_")[-1])
            if limits is not None and _scale_of(constraint) != "as it is":
                low.fill_(math.log(limits[0]))
                high.fill_(math.log(limits[1]))
            if constraint is not None and not constraint.enforced:
                low.copy_(low.maximum(_freed(constraint.lower_bound, constraint)))
                high.copy_(high.minimum(_freed(constraint.upper_bound, constraint)))
        return lower.minimum(start), upper.maximum(start)

    def kernel_at(self, vector: Float[Tensor, "lane k"]) -> Kernel:
        """The kernel with these parameters: the same one each time, for a copy takes a fifth of a fit."""
        for part, raw in zip(self.kernel.parameters(), self._raw(vector), strict=True):
            part.data = raw.detach().clone()
        return self.kernel.requires_grad_(True)

    def __call__(self, vector: Float[Tensor, "lane k"]) -> tuple[Tensor, Tensor]:
        vector = vector.detach().requires_grad_()
        kernel = self.kernel_at(vector)
        self.belief = infer(self.data, kernel, self.method, warm=self.belief)
        value = -(self.belief.log_evidence.reshape(self.count) + self._log_prior(kernel))
        by_raw = torch.autograd.grad(value.sum(), list(kernel.parameters()))
        (grad,) = torch.autograd.grad(self._raw(vector), vector, by_raw)
        return value.detach(), grad

    def _raw(self, vector: Tensor) -> list[Tensor]:
        """The kernel's parameters as it stores them."""
        parts = list(self.kernel.parameters())
        columns = vector.split([part.numel() // self.count for part in parts], -1)
        return [
            _stored(column.reshape(part.shape), constraint)
            for part, column, constraint in zip(parts, columns, self.constraints, strict=True)
        ]

    def _log_prior(self, kernel: Kernel) -> Float[Tensor, " lane"]:
        # priors stay on the CPU when GPyTorch moves a kernel to a GPU, and so do ours
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


def _scale_of(constraint: Interval | None) -> Literal["as it is", "logarithm", "logarithm above bound"]:
    if constraint is None or not bool((constraint.lower_bound >= 0).all()):
        return "as it is"
    if not constraint.enforced:
        return "logarithm"  # the search keeps to its bounds
    return "logarithm above bound" if bool(torch.isinf(constraint.upper_bound).all()) else "as it is"


def _freed(raw: Tensor, constraint: Interval | None) -> Tensor:
    scale = _scale_of(constraint)
    if scale == "as it is" or constraint is None:
        return raw
    if scale == "logarithm":
        return raw.log()
    above = constraint.transform(raw) - constraint.lower_bound
    return above.clamp_min(torch.finfo(above.dtype).tiny).log()


def _stored(free: Tensor, constraint: Interval | None) -> Tensor:
    scale = _scale_of(constraint)
    if scale == "as it is" or constraint is None:
        return free
    if scale == "logarithm":
        return free.exp()
    return constraint.inverse_transform(constraint.lower_bound + free.exp())
