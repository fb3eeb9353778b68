r"""Kernel parameters by maximum a posteriori: evidence times a prior.

The priors are those of BoTorch's models: lengthscales
:math:`\ell \sim \mathrm{LogNormal}(\sqrt2 + \tfrac12 \log d, \sqrt3)`, which grow with the dimension
so that distances in lengthscales do not (Hvarfner et al. 2024, ICML).  The prior variance has
:math:`\mathrm{LogNormal}(2, \sqrt2)`: mode 1, median 7.4, so that a priori answers are neither pure noise nor
certain.  The density is that of the parameters themselves, not of their logarithms: without answers, the
maximum is at the modes.  The margin of ties has :math:`\mathrm{LogNormal}(\log 0.4, 0.7)`: about one duel of
equals in three is a tie.
"""

import copy
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
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
from askwise.model.ep import FixedPoint, ep
from askwise.model.inference import Method, infer
from askwise.model.kernel_gradient import Pairs
from askwise.model.kernels import Stationary, covariance
from askwise.model.kernels import kernel as named_kernel
from askwise.model.landmarks import may_take_landmarks
from askwise.model.observer import Learnable, Observer
from askwise.model.sites import InferenceProblem, Sites
from askwise.numerics import minimize

_OUTPUTSCALE_PRIOR = LogNormal(torch.tensor(2.0, dtype=torch.float64), math.sqrt(2))
_MARGIN_PRIOR = LogNormal(torch.tensor(math.log(0.4), dtype=torch.float64), 0.7)
_MARGIN_GRID = math.log10(0.02), math.log10(3.0), 24  # first, last and number of margins, on a log scale
_EXPECTED_LENGTHSCALE, _EXPECTED_VARIANCE = 0.2, 4.0
_FIRST_REFIT, _REFIT_GROWTH = 8, 1.5  # after each of the first 8 answers, then at each growth by half
_DIFFERENCE, _LEAST_CURVATURE = 1e-3, 0.05  # of finite differences; a deviation of 4.5 at most
_GRADIENT_TOLERANCE, _VALUE_TOLERANCE = 1e-4, 1e-6  # lengthscales err by 1e-4 of themselves
_TOLERANCE, _FINE_TOLERANCE = 1e-4, 1e-8  # of EP: errors of the gradient are of this order
_CURVATURE_BY_ROW = 0.02  # what each answer adds to the curvature of the prior, roughly
_HALF_LOG_2_PI = math.log(2 * math.pi) / 2
_NAMES = ["raw_outputscale", "base_kernel.raw_lengthscale"]
_Transform = Callable[[Tensor], Tensor]
_BOUNDS = {"lengthscale": (1e-3, 1e3), "outputscale": (1e-6, 1e6)}


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
) -> Fitted:
    """Kernel parameters that maximise evidence times prior, starting from those of ``kernel``.

    A name starts at the mode of the prior, with one lengthscale per dimension.  A GPyTorch kernel keeps its
    own priors if it has any; the three named ones get those above; any other has none.  Each lane has its own
    parameters, and all are fitted.  The result is never worse than the start.

    ``observer`` says how people answer; what ``learn`` names of it is fitted as well.  Where answers may be
    lapses or are undecided about groups, sites may be held at zero precision, and the gradient is only that
    at fixed sites, as in EM.  The maximum is a local one: where a third of the answers
    are lapses, the learned rate may be a few percent.
    ``fixed``: the kernel stays as it is.  ``deviations``: also the posterior deviations of what is learned,
    by the curvature at the maximum.

    >>> import askwise as aw
    >>> fitted = aw.fit(aw.Data.binary([[0.1], [0.3], [0.6], [0.8]], [0, 0, 1, 1]), "se")
    >>> bool(fitted.log_posterior >= fitted.log_posterior_at_start)
    True
    """
    d = data.points.shape[-1]
    if isinstance(kernel, str):
        kernel = named_kernel(kernel, _lengthscale_prior(d).mode.expand(*data.lanes, d))
    with torch.inference_mode(False), torch.enable_grad():  # the caller may have switched gradients off
        target = _NegativeLogPosterior(data, one_per_lane(kernel, data), method, observer, tuple(learn))
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
            value_tolerance=_VALUE_TOLERANCE,
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


def expected_length(parameters: int) -> float:
    """Expected lengthscale in the unit cube, for this number of parameters."""
    return _EXPECTED_LENGTHSCALE * math.sqrt(parameters)


def expected_kernel(name: str, lengths: Sequence[float], *, averaged: bool = False) -> Kernel:
    r"""A kernel with informative priors for a search space that someone chose to study.

    Each parameter is expected to matter over its whole range: lengthscales of about a quarter of it, longer
    in more dimensions, where distances grow.  Good settings clearly beat bad ones: a standard deviation of
    two.  With wide priors a fit to few answers is often featureless, and only corners are worth querying.
    ``averaged``: for averages over kernels, in which a featureless one is only one of several, lengthscales
    are less certain, and by a quarter longer.

    These are medians of log-normal priors.  A fit maximises their density in natural units, whose mode is
    lower: without answers, learned lengthscales are 0.78 of the expected ones (0.61 if
    ``averaged``), and the deviation is 1.57.

    .. math:: \ell \, e^{-0.5^2} = 0.78 \, \ell, \qquad \sqrt{4 \, e^{-0.7^2}} = 1.57
    """
    stretch, spread_of_lengths = (1.25, 0.7) if averaged else (1.0, 0.5)
    lengths = [stretch * length for length in lengths]
    expected = named_kernel(name, lengths, _EXPECTED_VARIANCE)
    log_lengths = torch.tensor(lengths, dtype=torch.float64).log()
    prior = LogNormalPrior(log_lengths, spread_of_lengths)
    expected.base_kernel.register_prior("length", prior, "lengthscale")
    # float32, as torch makes numbers by default: so it stays for those who set another default
    spread = torch.tensor([math.log(_EXPECTED_VARIANCE), 0.7], dtype=torch.float32)
    expected.register_prior("variance", LogNormalPrior(spread[0], spread[1]), "outputscale")
    return expected.double()


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
    margins, density = _margin_posterior(data, kernel)
    best = density.argmax(0)
    return data.with_margin(torch.where(tied, margins[best].reshape(data.lanes), data.margin))


def margin_interval(data: Data, kernel: Kernel, level: float = 0.95) -> tuple[float, float]:
    """The central interval of the posterior of the margin, given the kernel; of one lane with ties."""
    from scipy.interpolate import CubicSpline  # with the package, the slowest import but torch

    margins, density = _margin_posterior(data, kernel)
    logs = margins.log().cpu().numpy()
    fine = np.linspace(logs[0], logs[-1], 1000)
    height = CubicSpline(logs, density[:, 0].cpu().numpy())(fine) + fine  # as a density of the logarithm
    weights = np.exp(height - height.max())
    reached = (weights.cumsum() - weights / 2) / weights.sum()
    low, high = np.exp(np.interp([(1 - level) / 2, (1 + level) / 2], reached, fine))
    return float(low), float(high)


def _margin_posterior(
    data: Data, kernel: Kernel
) -> tuple[Float[Tensor, " steps"], Float[Tensor, "steps lane"]]:
    """Margins, and the log of evidence times prior density at each of them."""
    margins = torch.logspace(*_MARGIN_GRID, dtype=torch.float64, device=data.points.device)
    laned, steps = data.unsqueezed(), len(margins)
    lanes = torch.arange(laned.lanes.numel(), device=margins.device).repeat(steps)
    tried = laned.select(lanes).with_margin(margins.repeat_interleave(len(laned.signs)))
    prior = InferenceProblem.of(data, kernel).prior.detached().select(lanes)
    with torch.no_grad():
        # undecided answers about groups converge slowly, and evidence is stationary in the sites
        tolerance, sweeps = (1e-4, 100) if data.undecided.any() else (1e-8, 1000)
        found = ep(InferenceProblem.of(tried, prior), None, tolerance, sweeps)
        evidence = found.log_evidence.reshape(steps, -1)
    return margins, evidence + _MARGIN_PRIOR.log_prob(margins)[:, None]


def _lengthscale_prior(d: int) -> LogNormal:
    return LogNormal(torch.tensor(math.sqrt(2) + math.log(d) / 2, dtype=torch.float64), math.sqrt(3))


def one_per_lane(kernel: Kernel, data: Data) -> Kernel:
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


def with_parameters(kernel: Kernel, raw: Mapping[str, Any]) -> Kernel:
    """A copy with these raw parameters: equal to a fitted kernel, if they are those of one."""
    copied = copy.deepcopy(kernel).to(dtype=torch.float64).requires_grad_(False)
    for name, part in copied.named_parameters():
        part.data = torch.tensor(raw[name], dtype=torch.float64).reshape(part.shape)
    return copied


class _NegativeLogPosterior:
    """Minus log evidence minus log prior of all lanes, in unconstrained parameters.

    A positive parameter is replaced by its logarithm, or by that of its excess over its lower bound, so that
    steps are relative whatever GPyTorch's constraint; any other is used as it is.
    """

    def __init__(
        self,
        data: Data,
        kernel: Kernel,
        method: Method,
        observer: Observer | None = None,
        learn: tuple[Learnable, ...] = (),
    ) -> None:
        self.data, self.kernel, self.method, self.observer, self.learn = data, kernel, method, observer, learn
        self.tolerance = _TOLERANCE
        self.latest: tuple[Tensor, Tensor, Tensor] | None = None
        """The latest vector, its value and its gradient."""
        self.warm: Sites | None = None
        """Sites from which inference starts: those of the evaluation before."""
        self.count = data.lanes.numel()
        self.names, self.parts = zip(*kernel.named_parameters(), strict=True)
        self.constraints = [kernel.constraint_for_parameter_name(name) for name in self.names]
        self.to_free, self.to_raw = zip(*map(_transforms, self.constraints), strict=True)
        self.sizes = [part.numel() // self.count for part in self.parts]
        self.of_kernel = sum(self.sizes)
        """Number of free parameters of the kernel, before those of the observer."""
        applied = data if observer is None else observer.applied(data)
        self.by_hand = _ByHand.of(applied, kernel, method, learn)
        """Evidence of a named kernel with priors of ours; None for any other."""

    @property
    def inverse_at_start(self) -> Float[Tensor, "lane k k"] | None:
        """A rough inverse Hessian: a third fewer steps than from none."""
        if (log_normals := _log_normals(self.kernel, self.data)) is None:
            return None
        precision = torch.ones_like(self.vector)
        precision[:, : self.of_kernel] = log_normals[1].pow(-2)
        return torch.diag_embed(1 / (precision + _CURVATURE_BY_ROW * self.data.n))

    @property
    def vector(self) -> Float[Tensor, "lane k"]:
        columns = [free(part.detach()) for free, part in zip(self.to_free, self.parts, strict=True)]
        if self.observer is not None and self.learn:
            columns.append(self.observer.free(self.learn))
        return torch.cat([column.reshape(self.count, -1) for column in columns], -1)

    def observer_at(self, vector: Float[Tensor, "lane k"]) -> Observer | None:
        """The observer with these parameters."""
        if self.observer is None or not self.learn:
            return self.observer
        values = vector[:, self.of_kernel :].reshape(*self.data.lanes, -1)
        return self.observer.with_free(self.learn, values)

    def bounds(self, start: Float[Tensor, "lane k"]) -> tuple[Tensor, Tensor]:
        """The range for which inference is tested, within the constraints; the start is always inside."""
        lower, upper = torch.full_like(start, -math.inf), torch.full_like(start, math.inf)
        if self.observer is not None and self.learn:
            for side, limit in zip((lower, upper), self.observer.bounds(self.learn), strict=True):
                side[:, self.of_kernel :] = side.new_tensor(limit)
        of_kernel = (side[:, : self.of_kernel] for side in (lower, upper))
        columns = zip(*(side.split(self.sizes, -1) for side in of_kernel), strict=True)
        parts = zip(self.names, self.constraints, self.to_free, columns, strict=True)
        for name, constraint, free, (low, high) in parts:
            limits = _BOUNDS.get(name.rpartition("raw_")[-1])
            if limits is not None and free is not _identity:
                low.fill_(math.log(limits[0]))
                high.fill_(math.log(limits[1]))
            if constraint is not None and not constraint.enforced:
                low.copy_(low.maximum(free(constraint.lower_bound)))
                high.copy_(high.minimum(free(constraint.upper_bound)))
        return lower.minimum(start), upper.maximum(start)

    def kernel_at(self, vector: Float[Tensor, "lane k"]) -> Kernel:
        """The kernel, set to these parameters; copying it instead would take a fifth of a fit."""
        for part, raw in zip(self.parts, self._raw_parameters(vector), strict=True):
            part.data = raw.detach().clone()
        return self.kernel.requires_grad_(True)

    def __call__(self, vector: Float[Tensor, "lane k"]) -> tuple[Tensor, Tensor]:
        if self.latest is None or not torch.equal(vector, self.latest[0]):
            self.latest = vector, *self._evaluated(vector)
        return self.latest[1:]

    def _evaluated(self, vector: Float[Tensor, "lane k"]) -> tuple[Tensor, Tensor]:
        vector = vector.detach().requires_grad_()
        people = self.observer_at(vector)
        data = self.data if people is None else people.applied(self.data)
        if self.by_hand is not None:
            return self._by_hand(self.by_hand, vector, data, people)
        kernel = self.kernel_at(vector)
        belief = self.warm = infer(data, kernel, self.method, warm=self.warm)
        value = -(belief.log_evidence.reshape(self.count) + self._log_prior(kernel))
        if people is None or not self.learn:
            by_raw = torch.autograd.grad(value.sum(), self.parts)
            return value.detach(), self._pulled(vector, by_raw)
        value = value - people.log_prior(self.learn).reshape(self.count)
        *by_parts, by_people = torch.autograd.grad(value.sum(), [*self.parts, vector])
        return value.detach(), self._pulled(vector, by_parts) + by_people

    def _by_hand(
        self, by_hand: "_ByHand", vector: Float[Tensor, "lane k"], data: Data, people: Observer | None
    ) -> tuple[Tensor, Tensor]:
        """The same with hand-written gradients; autograd only for what is learned of people."""
        laned, free = data.unsqueezed(), vector.detach()[:, : self.of_kernel]
        found, value, grad = by_hand(free, laned, self.warm, self.tolerance)
        self.warm = found
        if people is None or not self.learn:
            return -value, -grad
        prior = people.log_prior(self.learn).reshape(self.count)
        (by_people,) = torch.autograd.grad((found.explicit(laned) + prior).sum(), vector)
        by_people[:, : self.of_kernel] += grad
        return -(value + prior.detach()), -by_people

    def _pulled(self, vector: Float[Tensor, "lane k"], by_raw: Sequence[Tensor]) -> Float[Tensor, "lane k"]:
        """The gradient in the vector, from that in the raw parameters."""
        # not as torch's grad_outputs, for which it imports sympy
        parts = zip(self._raw_parameters(vector), by_raw, strict=True)
        total = torch.stack([(raw * by).sum() for raw, by in parts]).sum()
        (grad,) = torch.autograd.grad(total, vector)
        return grad

    def deviations(self, vector: Float[Tensor, "lane k"], fixed: bool) -> Float[Tensor, "*lane j"]:
        """Posterior deviations of the observer's parameters: Laplace's approximation.

        The kernel is as uncertain as its own curvature says, unless it is ``fixed``.
        """
        self.tolerance = _FINE_TOLERANCE
        columns, known = [], self.of_kernel if fixed else 0
        for index in range(known, vector.shape[-1]):
            step = torch.zeros_like(vector)
            step[:, index] = _DIFFERENCE
            above, below = (self(vector + sign * step)[1] for sign in (1, -1))
            columns.append((above - below) / (2 * _DIFFERENCE))
        hessian = torch.stack(columns, -1)[:, known:]
        values, vectors = torch.linalg.eigh((hessian + hessian.mT) / 2)
        variance = (vectors.square() / values.clamp_min(_LEAST_CURVATURE)[:, None]).sum(-1)
        return variance[:, self.of_kernel - known :].sqrt().reshape(*self.data.lanes, -1)

    def _raw_parameters(self, vector: Tensor) -> list[Tensor]:
        """The kernel's raw parameters."""
        of_kernel = vector[:, : self.of_kernel].split(self.sizes, -1)
        columns = zip(self.to_raw, self.parts, of_kernel, strict=True)
        return [raw(column.reshape(part.shape)) for raw, part, column in columns]

    def _log_prior(self, kernel: Kernel) -> Float[Tensor, " lane"]:
        # GPyTorch leaves priors on the CPU when it moves a kernel to a GPU; ours are there too
        terms = [one.log_prob(closure(part).cpu()) for _, part, one, closure, _ in kernel.named_priors()]
        prior = covariance(kernel)
        if not terms and isinstance(prior, Stationary):
            lengths = _lengthscale_prior(self.data.points.shape[-1]).log_prob(prior.lengthscale.cpu())
            terms = [lengths, _OUTPUTSCALE_PRIOR.log_prob(prior.outputscale.cpu())]
        total = torch.zeros(self.count, dtype=torch.float64)
        for term in terms:
            total = total + term.reshape(self.count, -1).sum(-1)
        return total.to(self.data.points.device)


@dataclass(frozen=True, eq=False)
class _ByHand:
    """Log evidence of a named kernel under EP plus log prior, with gradients by hand.

    Free parameters are the logarithms of the variance and of the lengthscales, in this order.
    """

    name: str
    pairs: Pairs
    middle: Float[Tensor, " k"]
    """Means of the free parameters under the prior."""
    spread: Float[Tensor, " k"]

    @classmethod
    def of(cls, data: Data, kernel: Kernel, method: Method, learn: Sequence[Learnable]) -> "_ByHand | None":
        """That of this kernel; None for another, if what is learned of people changes covariances, or if
        inference is not exact.
        """
        prior, log_normals = covariance(kernel), _log_normals(kernel, data)
        if method != "ep" or log_normals is None or not isinstance(prior, Stationary):
            return None
        if "share" in learn or (bool(data.point_noise.any()) and {"noise", "slopes"} & {*learn}):
            return None
        if may_take_landmarks(data):
            return None
        return cls(prior.name, Pairs.of(data.unsqueezed()), *log_normals)

    def __call__(
        self, free: Float[Tensor, "lane k"], data: Data, warm: Sites | None, tolerance: float
    ) -> tuple[FixedPoint, Tensor, Tensor]:
        """What EP finds for these answers, the value and the gradient."""
        lengths = free[:, 1:].exp().expand(-1, data.points.shape[-1])
        prior = Stationary(self.name, lengths, free[:, 0].exp())
        found, grad = self.pairs.with_answers(data).evidence(prior, warm, tolerance)
        by_length, by_variance = grad[:, :-1], grad[:, -1:]
        if free.shape[1] == 2:
            by_length = by_length.sum(-1, keepdim=True)
        away = (free - self.middle) / self.spread
        # the density is that of the parameters, not of their logarithms
        log_prior = -(free + away.square() / 2 + self.spread.log() + _HALF_LOG_2_PI).sum(-1)
        by_prior = -(1 + away / self.spread)
        return found, found.log_evidence + log_prior, torch.cat([by_variance, by_length], -1) + by_prior


def _log_normals(kernel: Kernel, data: Data) -> tuple[Tensor, Tensor] | None:
    """Means and deviations of the prior of the logarithms of the variance and of the lengthscales.

    None for kernels that were not named, and for other priors than those of this file.
    """
    prior, names = covariance(kernel), [name for name, _ in kernel.named_parameters()]
    d = data.points.shape[-1]
    if not isinstance(prior, Stationary) or prior.lanes != data.lanes or names != _NAMES:
        return None
    constraints = [kernel.constraint_for_parameter_name(name) for name in names]
    if any(one is None or one.lower_bound.any() or one.upper_bound.isfinite().any() for one in constraints):
        return None
    priors = {name.rpartition(".")[-1]: one for name, _, one, *_ in kernel.named_priors()}
    default = {"variance": _OUTPUTSCALE_PRIOR, "length": _lengthscale_prior(d)}
    pair = [(priors or default).get(name) for name in default]
    sizes = [1, kernel.base_kernel.lengthscale.shape[-1]]
    if (
        len(priors) not in (0, 2)
        or not all(isinstance(one, LogNormal) for one in pair)
        or sizes[1] not in (1, d)
    ):
        return None
    middle, spread = (
        torch.cat([getattr(one, part).double().expand(size) for one, size in zip(pair, sizes, strict=True)])
        for part in ("loc", "scale")
    )
    return middle.to(data.points), spread.to(data.points)


def _transforms(constraint: Interval | None) -> tuple[_Transform, _Transform]:
    """From a raw parameter to an unconstrained one, and back."""
    if constraint is None or not bool((constraint.lower_bound >= 0).all()):
        return _identity, _identity
    if not constraint.enforced:
        return torch.log, torch.exp  # the optimiser keeps within the bounds
    if not bool(torch.isinf(constraint.upper_bound).all()):
        return _identity, _identity

    def log_above_bound(raw: Tensor) -> Tensor:
        above = constraint.transform(raw) - constraint.lower_bound
        return above.clamp_min(torch.finfo(above.dtype).tiny).log()

    return log_above_bound, lambda free: constraint.inverse_transform(constraint.lower_bound + free.exp())


def _identity(parameter: Tensor) -> Tensor:
    return parameter
