"""What a fit maximises: log evidence plus log prior, in parameters that may have any value."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from gpytorch.constraints import Interval
from gpytorch.kernels import Kernel
from jaxtyping import Float
from torch import Tensor

from askwise.model.data import Data
from askwise.model.ep import FixedPoint
from askwise.model.inference import Method, infer
from askwise.model.kernel_gradient import Pairs
from askwise.model.kernels import Stationary, covariance
from askwise.model.landmarks import may_take_landmarks
from askwise.model.observer import Learnable, Observer
from askwise.model.priors import OUTPUTSCALE_PRIOR, lengthscale_prior, log_normals
from askwise.model.sites import Sites

_DIFFERENCE, _LEAST_CURVATURE = 1e-3, 0.05  # of finite differences; a deviation of 4.5 at most
_TOLERANCE, _FINE_TOLERANCE = 1e-4, 1e-8  # of EP: errors of the gradient are of this order
_CURVATURE_BY_ROW = 0.02  # what each answer adds to the curvature of the prior, roughly
_HALF_LOG_2_PI = math.log(2 * math.pi) / 2
_Transform = Callable[[Tensor], Tensor]
_BOUNDS = {"lengthscale": (1e-3, 1e3), "outputscale": (1e-6, 1e6)}


class NegativeLogPosterior:
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
        """Of these answers and this kernel, which is set to every vector that is tried."""
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
        if (normals := log_normals(self.kernel, self.data)) is None:
            return None
        precision = torch.ones_like(self.vector)
        precision[:, : self.of_kernel] = normals[1].pow(-2)
        return torch.diag_embed(1 / (precision + _CURVATURE_BY_ROW * self.data.n))

    @property
    def vector(self) -> Float[Tensor, "lane k"]:
        """The present parameters: those of the kernel, then what is learned of the people."""
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
        """Value and gradient of each lane."""
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
            lengths = lengthscale_prior(self.data.points.shape[-1]).log_prob(prior.lengthscale.cpu())
            terms = [lengths, OUTPUTSCALE_PRIOR.log_prob(prior.outputscale.cpu())]
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
        prior, normals = covariance(kernel), log_normals(kernel, data)
        if method != "ep" or normals is None or not isinstance(prior, Stationary):
            return None
        if "share" in learn or (bool(data.point_noise.any()) and {"noise", "slopes"} & {*learn}):
            return None
        if may_take_landmarks(data):
            return None
        return cls(prior.name, Pairs.of(data.unsqueezed()), *normals)

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
