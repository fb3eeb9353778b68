"""How well a model explains answers: its evidence, that of chance, and answers foreseen from the others."""

import functools
import math
from collections.abc import Sequence

import numpy as np
import torch
from gpytorch.kernels import Kernel
from gpytorch.priors import LogNormalPrior
from jaxtyping import Float, Int
from torch import Tensor

from askwise.model.belief import Belief
from askwise.model.copies import one_per_lane
from askwise.model.data import Data
from askwise.model.ep import ep
from askwise.model.inference import infer
from askwise.model.kernel_gradient import Pairs
from askwise.model.kernels import Covariance, Stationary, covariance
from askwise.model.kernels import kernel as named_kernel
from askwise.model.landmarks import may_take_landmarks
from askwise.model.likelihood import Likelihood
from askwise.model.sites import InferenceProblem, Start
from askwise.numerics import cholesky

_DRAWS = 32  # kernels over which evidence is averaged
_PORTIONS = (1, 7, 24)  # of them, after which it may be enough
_NOTHING = 1e-9  # prior variance of a utility that does not depend on the setting
_TOLERANCE = 0.03  # evidence is stationary in the sites, so its error is of the order of the square
_FINE_TOLERANCE = 1e-4
_CHUNK_ENTRIES = 2**18  # covariances of the kernels that are inferred together


def average_evidence(
    data: Data, kernel: Kernel, known: Belief | None = None, enough: float = math.inf
) -> float:
    r"""Log evidence of data without lanes, averaged over the kernel's log-normal priors.

    .. math:: \log \int p(\text{answers} \mid \theta)\, p(\theta)\, d\theta

    by a Sobol sequence of 32 kernels, the same for all data.  Unlike the evidence of a fitted kernel it has
    not seen the answers.  ``known``: a belief about these data, to start from.  Where the kernels that are
    most like its own make the average ``enough`` alone, this lower bound is returned: with 100 duels
    in 3 to 9 ms in place of 25.
    """
    laned = data.unsqueezed().select(data.first.new_zeros(_DRAWS))
    drawn = one_per_lane(kernel, laned).requires_grad_(False)
    priors = list(drawn.named_priors())
    sizes = [value(module)[0].numel() for _, module, _, value, _ in priors]
    uniform = _uniform(sum(sizes)).to(data.points.device)
    normals = torch.special.ndtri(uniform).split(sizes, -1)
    for (_, module, prior, value, put), normal in zip(priors, normals, strict=True):
        assert isinstance(prior, LogNormalPrior)
        put(module, (prior.loc + prior.scale * normal.reshape(value(module).shape)).exp())

    kernels, total = covariance(drawn), -math.inf
    order = torch.arange(_DRAWS) if known is None else _by_likeness(kernels, known.shared_prior)
    for portion in order.to(data.points.device).split(_PORTIONS):
        for some in portion.split(max(1, _CHUNK_ENTRIES // max(1, data.n**2))):
            start = None
            if known is not None:
                start = Start(*(part.expand(len(some), -1) for part in (known.tau, known.nu)))
            own = kernels.select(some) if isinstance(kernels, Stationary) else drawn[some]
            found = float(_evidence(laned.select(some), own, start).logsumexp(0)) - math.log(_DRAWS)
            total = float(np.logaddexp(total, found))
        if total > enough + _TOLERANCE:
            break
    return total


def _evidence(data: Data, prior: Kernel | Stationary, start: Start | None) -> Float[Tensor, " lane"]:
    """Log evidence given each kernel; half of the time of :func:`infer` where no more is needed."""
    with torch.no_grad():
        if isinstance(prior, Stationary) and not may_take_landmarks(data):
            found, _ = Pairs.of(data).evidence(prior, start, _TOLERANCE, gradient=False)
            return found.log_evidence
        return infer(data, prior, warm=start, tolerance=_TOLERANCE).log_evidence


@functools.cache
def _uniform(count: int) -> Float[Tensor, "draws count"]:
    sobol = torch.quasirandom.SobolEngine(count, scramble=True, seed=1)
    return sobol.draw(_DRAWS, dtype=torch.float64).clamp(1e-9, 1 - 1e-9)


def _by_likeness(drawn: Covariance, prior: Covariance) -> Int[Tensor, " k"]:
    """The lanes of kernels, first those whose parameters are close to those of another."""
    if not (isinstance(drawn, Stationary) and isinstance(prior, Stationary)):
        return torch.arange(_DRAWS)
    apart = (drawn.lengthscale / prior.lengthscale).log().square().sum(-1)
    return (apart + (drawn.outputscale / prior.outputscale).log().square()).argsort()


def chance_evidence(data: Data) -> float:
    """Log probability of the outcomes if f were zero everywhere: for n duels without ties, n log 1/2."""
    flat = named_kernel("se", [1.0] * data.points.shape[-1], _NOTHING)
    with torch.no_grad():
        if not data.point_noise.any():  # answers are then independent
            laned = data.unsqueezed()
            nothing = torch.zeros_like(laned.signs)
            return float(Likelihood.of(laned).log_probability(nothing, nothing).sum())
        return float(infer(data, flat, tolerance=_FINE_TOLERANCE).log_evidence)


def infer_shares(belief: Belief, shares: Sequence[float]) -> Float[Tensor, " k"]:
    """Log evidence of data without lanes if this share of everybody's prior variance were their own."""
    data = belief.data.unsqueezed().select(belief.data.first.new_zeros(len(shares)))
    data = data.with_share(data.signs.new_tensor(shares))
    with torch.no_grad():
        return ep(InferenceProblem.of(data, belief.shared_prior), None, _FINE_TOLERANCE).log_evidence


def held_out(belief: Belief, counts: Sequence[int]) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
    r"""Mean and variance of each row given all answers but its own, which has ``counts[k]`` rows.

    The sites of the answer's rows are taken out of the posterior, with mean :math:`\mu` and covariance
    :math:`\Sigma` of these rows: the cavity (GPML, eq. 3.56, for a block) has the covariance
    :math:`(I - \Sigma T)^{-1} \Sigma` and the mean :math:`(I - \Sigma T)^{-1} (\mu - \Sigma \nu)`, with
    :math:`(I - \Sigma T)^{-1} = I + \Sigma S (I - S \Sigma S)^{-1} S` for :math:`T = S^2`.
    The other sites stay as they are, which differs little from inferring them anew.
    """
    data, weights = belief.data, torch.cat([belief.alpha[:, None], belief.factor], -1)
    K = belief.data_covariance
    projected = data.matvec(K @ weights)
    mean, cov = projected[:, 0], data.row_covariance(K) - projected[:, 1:] @ projected[:, 1:].mT
    left_mean, left_var = torch.empty_like(mean), torch.empty_like(mean)
    answers = torch.arange(data.n, device=mean.device).split(list(counts))
    for count in set(counts):
        rows = torch.stack([each for each in answers if len(each) == count])
        block, root = cov[rows[:, :, None], rows[:, None, :]], belief.tau[rows].sqrt()
        shift = mean[rows] - (block @ belief.nu[rows][..., None])[..., 0]
        left = torch.eye(count, dtype=block.dtype, device=block.device)
        left = left - root[:, :, None] * block * root[:, None, :]
        scaled = root[:, :, None] * torch.cat([shift[..., None], block], -1)
        half = torch.linalg.solve_triangular(cholesky(left)[0], scaled, upper=False)
        left_mean[rows] = shift + (half[..., 1:].mT @ half[..., :1])[..., 0]
        left_var[rows] = block.diagonal(dim1=-2, dim2=-1) + half[..., 1:].square().sum(-2)
    return left_mean, left_var
