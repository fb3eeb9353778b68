r"""Posterior given more answers, differentiable in the points that these are about.

EP's sites are a fixed point, :math:`s = u(s, K)`, where u matches the moments of all rows once.  With the
prior covariance K they change by

.. math:: ds = \Bigl(I - \frac{\partial u}{\partial s}\Bigr)^{-1} \frac{\partial u}{\partial K} \, dK,

which takes one linear system of 2n unknowns, however many sweeps were needed to get there.
"""

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from askwise.errors import Refused
from askwise.model.belief import Belief
from askwise.model.data import Data
from askwise.model.ep import ep
from askwise.model.likelihood import Likelihood
from askwise.model.mixture import Mixture
from askwise.model.sites import InferenceProblem
from askwise.numerics import cholesky

_LEAST_PRECISION = 1e-200


def given_answers(belief: Belief, answers: Data) -> Belief:
    """The posterior by EP once ``answers`` are known as well, as if inferred from all of them at once.

    The lanes of the belief broadcast to those of the answers, which may have several dimensions.
    """
    if isinstance(belief, Mixture):
        expected, advice = "have one kernel", "Infer it with one, or from all the data."
        raise Refused("belief to condition", expected, f"{len(belief.weights)}", advice)
    if belief.about is not None or belief.slopes is not None or belief.data.share.any():
        expected, advice = "be about one taste, with the same noise everywhere", "Infer it from all the data."
        raise Refused("belief to condition", expected, "people or noise that differ", advice)
    lanes = answers.lanes
    flat = belief.in_lanes(lanes or torch.Size([1]))
    more = answers.in_lanes(lanes or torch.Size([1]))
    if more.n:
        data = flat.data.appended(more)
        fixed = replace(data, points=data.points.detach())
        found = ep(InferenceProblem.of(fixed, flat.prior.detached()), flat)
        flat = _differentiable(found, data) if data.points.requires_grad else found
    return flat.unflattened(lanes, belief.prior) if lanes else flat.select(0)


def _differentiable(found: Belief, data: Data) -> Belief:
    """The belief at EP's fixed point as a function of the points."""
    likelihood = Likelihood.of(data)
    if data.undecided.any() or (likelihood.joint is not None and likelihood.joint.answer is not None):
        expected = "be without gradients, with lapses in answers about three points or with these undecided"
        raise Refused("points", expected, "points that require them", "Detach them.")
    G = data.row_covariance(replace(found, data=data).data_covariance)
    tau, nu = _moved_sites(likelihood, G, found.tau, found.nu)
    root, lower = _factorised(G, tau)
    X = torch.linalg.solve_triangular(lower, torch.diag_embed(root), upper=False)
    dual = X.mT @ (X @ (nu / root.square())[..., None])
    return replace(found, data=data, alpha=data.rmatvec(dual)[..., 0], factor=data.rmatvec(X.mT))


def _factorised(G: Tensor, tau: Tensor) -> tuple[Tensor, Tensor]:
    """The roots S of the precisions, and the Cholesky factor of I + S G S."""
    root = tau.clamp_min(_LEAST_PRECISION).sqrt()  # a site of none has no slope
    eye = torch.eye(G.shape[-1], dtype=G.dtype, device=G.device)
    return root, cholesky(eye + root[..., None] * G * root[..., None, :])[0]


def _moved_sites(
    likelihood: Likelihood, G: Float[Tensor, "lane n n"], tau: Tensor, nu: Tensor
) -> tuple[Float[Tensor, "lane n"], Float[Tensor, "lane n"]]:
    """The sites, with the gradient of the fixed point in the prior covariance of the rows."""
    root, lower = _factorised(G, tau)
    V = torch.linalg.solve_triangular(lower, root[..., None] * G, upper=False)
    cov = G - V.mT @ V
    mean, var = (cov @ nu[..., None])[..., 0], cov.diagonal(dim1=-2, dim2=-1)
    local = [part.detach().requires_grad_() for part in (mean, var, tau, nu)]
    with torch.enable_grad():  # a row depends on its own moments alone, so the sum has the slopes of each
        sums = _matched(likelihood, *local).sum((0, -1)).unbind()
    with torch.no_grad():
        n, C, m = tau.shape[-1], cov.detach(), mean.detach()
        blocks = []
        for total in sums:
            partials = torch.autograd.grad(total, local, retain_graph=True)
            by_mean, by_var, by_tau, by_nu = (part[..., None] for part in partials)
            eye = torch.eye(n, dtype=C.dtype, device=C.device)
            by_other_tau = -by_mean * C * m[..., None, :] - by_var * C.square() + by_tau * eye
            blocks.append(torch.cat([by_other_tau, by_mean * C + by_nu * eye], -1))
        jacobian = torch.cat(blocks, -2)
        # by QR: batched LU is wrong on several threads
        Q, R = torch.linalg.qr(torch.eye(2 * n, dtype=C.dtype, device=C.device) - jacobian)
    moved = _matched(likelihood, mean, var, tau, nu).flatten(-2)[..., None]
    step = torch.linalg.solve_triangular(R, Q.mT @ (moved - moved.detach()), upper=True)[..., 0]
    return tau + step[..., :n], nu + step[..., n:]


def _matched(
    likelihood: Likelihood, mean: Tensor, var: Tensor, tau: Tensor, nu: Tensor
) -> Float[Tensor, "lane 2 n"]:
    """Sites that match the moments of each row, whose own site is taken out first."""
    left = 1 - tau * var
    return likelihood.sites((mean - var * nu) / left, var / left)
