"""How well a model explains answers: its evidence, that of chance, and answers foreseen from the others."""

import math
from collections.abc import Sequence

import torch
from gpytorch.kernels import Kernel
from gpytorch.priors import LogNormalPrior
from jaxtyping import Float
from torch import Tensor

from askwise.model.belief import Belief
from askwise.model.data import Data
from askwise.model.ep import ep
from askwise.model.fitting import one_per_lane
from askwise.model.inference import infer
from askwise.model.kernels import kernel as named_kernel
from askwise.model.sites import InferenceProblem

_DRAWS = 32  # kernels over which evidence is averaged
_NOTHING = 1e-9  # prior variance of a utility that does not depend on the setting
_TOLERANCE = 1e-4  # evidence is stationary in the sites, so its error is of the order of the square


def average_evidence(data: Data, kernel: Kernel) -> float:
    r"""Log evidence of data without lanes, averaged over the kernel's log-normal priors.

    .. math:: \log \int p(\text{answers} \mid \theta)\, p(\theta)\, d\theta

    by a Sobol sequence of 32 kernels, the same for all data.  Unlike the evidence of a fitted kernel it has
    not seen the answers.
    """
    laned = data.unsqueezed().select(data.first.new_zeros(_DRAWS))
    drawn = one_per_lane(kernel, laned).requires_grad_(False)
    priors = list(drawn.named_priors())
    sizes = [value(module)[0].numel() for _, module, _, value, _ in priors]
    sobol = torch.quasirandom.SobolEngine(sum(sizes), scramble=True, seed=1)
    uniform = sobol.draw(_DRAWS, dtype=torch.float64).clamp(1e-9, 1 - 1e-9)
    normals = torch.special.ndtri(uniform).split(sizes, -1)
    for (_, module, prior, value, put), normal in zip(priors, normals, strict=True):
        assert isinstance(prior, LogNormalPrior)
        put(module, (prior.loc + prior.scale * normal.reshape(value(module).shape)).exp())
    with torch.no_grad():
        evidence = infer(laned, drawn, tolerance=_TOLERANCE).log_evidence
    return float(evidence.logsumexp(0)) - math.log(_DRAWS)


def chance_evidence(data: Data) -> float:
    """Log probability of the outcomes if f were zero everywhere: for n duels without ties, n log 1/2."""
    flat = named_kernel("se", [1.0] * data.points.shape[-1], _NOTHING)
    with torch.no_grad():
        return float(infer(data, flat, tolerance=_TOLERANCE).log_evidence)


def infer_shares(belief: Belief, shares: Sequence[float]) -> Float[Tensor, " k"]:
    """Log evidence of data without lanes if this share of everybody's prior variance were their own."""
    data = belief.data.unsqueezed().select(belief.data.first.new_zeros(len(shares)))
    data = data.with_share(data.signs.new_tensor(shares))
    with torch.no_grad():
        return ep(InferenceProblem.of(data, belief.shared_prior), None, _TOLERANCE).log_evidence


def held_out(belief: Belief, counts: Sequence[int]) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
    r"""Mean and variance of each row given all answers but its own, which has ``counts[k]`` rows.

    The sites of the answer's rows are taken out of the posterior, with mean :math:`\mu` and covariance
    :math:`\Sigma` of these rows: the cavity (GPML, eq. 3.56, for a block) has the covariance
    :math:`(I - \Sigma T)^{-1} \Sigma` and the mean :math:`(I - \Sigma T)^{-1} (\mu - \Sigma \nu)`.
    The other sites stay as they are, which differs little from inferring them anew.
    """
    data, weights = belief.data, torch.cat([belief.alpha[:, None], belief.factor], -1)
    K = belief.data_covariance
    projected = data.matvec(K @ weights)
    mean, cov = projected[:, 0], data.row_covariance(K) - projected[:, 1:] @ projected[:, 1:].mT
    left_mean, left_var = torch.empty_like(mean), torch.empty_like(mean)
    for rows in torch.arange(data.n, device=mean.device).split(list(counts)):
        block, tau = cov[rows][:, rows], belief.tau[rows]
        both = torch.cat([(mean[rows] - block @ belief.nu[rows])[:, None], block], -1)
        solved = torch.linalg.solve(
            torch.eye(len(rows), dtype=block.dtype, device=block.device) - block * tau, both
        )
        left_mean[rows], left_var[rows] = solved[:, 0], solved[:, 1:].diagonal()
    return left_mean, left_var
