r"""Kernel parameters from the answers: the maximum of the evidence times a prior.

The priors are those of BoTorch's models: lengthscales
:math:`\ell \sim \mathrm{LogNormal}(\sqrt2 + \tfrac12 \log d, \sqrt3)`, which grow with the dimension
so that distances in lengthscales do not (Hvarfner et al. 2024, ICML).  The prior variance has
:math:`\mathrm{LogNormal}(2, \sqrt2)`: mode 1, median 7.4, so that answers are neither all noise nor
all certain before any is in.
"""

import copy
import math
from dataclasses import dataclass
from typing import cast

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float
from torch import Tensor
from torch.distributions import LogNormal

from askwise.belief import Belief
from askwise.bfgs import minimize
from askwise.data import Data
from askwise.inference import Method, infer
from askwise.kernels import Name, Stationary, covariance
from askwise.kernels import kernel as named_kernel

__all__ = ["Fitted", "fit"]

_OUTPUTSCALE_PRIOR = LogNormal(torch.tensor(2.0, dtype=torch.float64), math.sqrt(2))
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
    Each lane has its own parameters.  The result is never worse than the start.

    >>> import askwise as aw
    >>> fitted = aw.fit(aw.Data.binary([[0.1], [0.3], [0.6], [0.8]], [0, 0, 1, 1]), "se")
    >>> bool(fitted.log_posterior >= fitted.log_posterior_at_start)
    True
    """
    d = data.points.shape[-1]
    if isinstance(kernel, str):
        kernel = named_kernel(cast(Name, kernel), _lengthscale_prior(d).mode.expand(*data.lanes, d))
    target = _Target(data, _one_per_lane(kernel, data).to(data.points.device), method)
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


def _lengthscale_prior(d: int) -> LogNormal:
    return LogNormal(torch.tensor(math.sqrt(2) + math.log(d) / 2, dtype=torch.float64), math.sqrt(3))


def _one_per_lane(kernel: Kernel, data: Data) -> Kernel:
    """The kernel itself if it has the data's lanes; a named one is repeated for each lane."""
    if kernel.batch_shape == data.lanes:
        return kernel
    prior = covariance(kernel)
    if kernel.batch_shape or not isinstance(prior, Stationary):
        raise ValueError(
            f"kernel must have the data's lanes, {tuple(data.lanes)}; got {tuple(kernel.batch_shape)}. "
            "Give it that batch_shape, so that each lane has its own parameters."
        )
    length = prior.lengthscale.expand(*data.lanes, -1)
    return named_kernel(prior.name, length, prior.outputscale.expand(data.lanes))


class _Target:
    """Minus log evidence minus log prior of all lanes, in the kernel's raw parameters."""

    def __init__(self, data: Data, kernel: Kernel, method: Method) -> None:
        self.data, self.kernel, self.method = data, kernel, method
        self.belief: Belief | None = None
        self.count = data.lanes.numel()

    @property
    def vector(self) -> Float[Tensor, "lane k"]:
        parameters = [part.detach().reshape(self.count, -1) for part in self.kernel.parameters()]
        return torch.cat(parameters, -1).clone()

    def bounds(self, start: Float[Tensor, "lane k"]) -> tuple[Tensor, Tensor]:
        """For parameters in logarithms what inference was tested for; the start is always inside."""
        lower, upper = torch.full_like(start, -math.inf), torch.full_like(start, math.inf)
        if isinstance(covariance(self.kernel), Stationary) and _in_logarithms(self.kernel):
            column = 0
            for name, part in self.kernel.named_parameters():
                width = part.numel() // self.count
                low, high = _BOUNDS[name.rpartition("raw_")[-1]]
                lower[:, column : column + width] = math.log(low)
                upper[:, column : column + width] = math.log(high)
                column += width
        return lower.minimum(start), upper.maximum(start)

    def kernel_at(self, vector: Float[Tensor, "lane k"]) -> Kernel:
        kernel = copy.deepcopy(self.kernel).requires_grad_(True)
        parts = list(kernel.parameters())
        widths = [part.numel() // self.count for part in parts]
        for part, values in zip(parts, vector.split(widths, -1), strict=True):
            part.data = values.reshape(part.shape).clone()
        return kernel

    def __call__(self, vector: Float[Tensor, "lane k"]) -> tuple[Tensor, Tensor]:
        kernel = self.kernel_at(vector)
        self.belief = infer(self.data, kernel, self.method, warm=self.belief)
        value = -(self.belief.log_evidence.reshape(self.count) + self._log_prior(kernel))
        grads = torch.autograd.grad(value.sum(), list(kernel.parameters()))
        return value.detach(), torch.cat([grad.reshape(self.count, -1) for grad in grads], -1)

    def _log_prior(self, kernel: Kernel) -> Float[Tensor, " lane"]:
        own = [prior.log_prob(closure(module)) for _, module, prior, closure, _ in kernel.named_priors()]
        prior = covariance(kernel)
        if not own and isinstance(prior, Stationary):
            lengths = _lengthscale_prior(self.data.points.shape[-1]).log_prob(prior.lengthscale)
            own = [lengths, _OUTPUTSCALE_PRIOR.log_prob(prior.outputscale)]
        total = torch.zeros(self.count, dtype=torch.float64, device=self.data.points.device)
        for part in own:
            total = total + part.reshape(self.count, -1).sum(-1)
        return total


def _in_logarithms(kernel: Kernel) -> bool:
    constraints = [constraint for _, constraint in kernel.named_constraints()]
    return all(constraint._transform is torch.exp for constraint in constraints)
