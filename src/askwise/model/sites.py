r"""A Gaussian prior times one Gaussian factor ("site") per row of the data.

EP and Laplace both replace the likelihood of row i by :math:`e^{\nu_i g_i - \tau_i g_i^2 / 2}` in
:math:`g = A f`.  The posterior of f is then linear algebra, shared by both and done in the smaller of two
spaces: that of the rows or that of the independent directions among them.  Neither inverts the prior,
which is singular when points repeat.
"""

import functools
import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float
from torch import Tensor

from askwise.errors import Refused
from askwise.model.belief import Belief
from askwise.model.data import Data
from askwise.model.kernels import Covariance, Stationary, covariance
from askwise.numerics import cholesky, last, root, thin_root

_WEAK_PRECISION = 1e-8
_LOW_RANK_FROM, _LOW_RANK_RATIO = 160, 0.6  # rows from which a low rank is looked for, and how low it must be


@dataclass(frozen=True)
class InferenceProblem:
    """Data and prior covariance, with a lane dimension that the given data may lack."""

    prior: Covariance
    given: Data
    data: Data
    K: Float[Tensor, "lane p p"]
    """Prior covariance at the points, including their noise."""

    @classmethod
    def of(cls, data: Data, prior: Kernel | Covariance) -> "InferenceProblem":
        """The problem for a prior, given as a kernel or as its covariance."""
        if isinstance(prior, Kernel):
            prior = covariance(prior)
            if prior.lanes not in (torch.Size(), data.lanes):
                expected = f"have no lanes or those of the data, {tuple(data.lanes)}"
                advice = "Give data and kernel the same first dimension."
                raise Refused("kernel", expected, tuple(prior.lanes), advice)
        d, dims = data.points.shape[-1], prior.lengthscale.shape[-1] if isinstance(prior, Stationary) else 1
        if dims not in (1, d):
            expected = f"have one lengthscale or one for each of the {d} dimensions"
            raise Refused("kernel", expected, dims, "Give as many as the points have coordinates.")
        K = prior.cross(data.points, data.points)
        if data.share.any():
            K = K * data.rater_correlation
        if not K.isfinite().all():
            raise Refused("kernel", "give finite covariances", "NaN or infinity", "Check its parameters.")
        if data.point_noise.any():
            K = K + torch.diag_embed(data.point_noise)
        return cls(prior, data, data.unsqueezed(), K if data.lanes else K[None])

    @functools.cached_property
    def G(self) -> Float[Tensor, "lane n n"]:
        """Prior covariance of the rows."""
        return self.data.row_covariance(self.K.detach())

    @functools.cached_property
    def posterior(self) -> "Posterior":
        """The posterior of the rows, in the cheaper of the two forms."""
        if has_few_points(self.data):
            return posterior_of_points(self.data, self.K.detach())
        return posterior_of_rows(self.G)

    def at_sites(self, tau: Tensor, nu: Tensor, *fit: Tensor, shift: Tensor | None = None) -> Belief:
        """The belief at these sites; ``fit`` and ``shift`` as in :meth:`belief`."""
        data = self.data
        if has_few_points(data):
            alpha, factor = point_weights(data, self.K.detach(), self.posterior, tau, nu)
        else:
            X, dual, _ = _RowPosterior(self.G).solve(tau, nu)
            alpha, factor = data.rmatvec(dual[..., None])[..., 0], data.rmatvec(X.mT)
        return self.belief(alpha, factor, *fit, tau, nu, shift=shift)

    def belief(
        self, alpha: Tensor, factor: Tensor, evidence: Tensor, *fit: Tensor, shift: Tensor | None = None
    ) -> Belief:
        r"""The belief with these parts, in its order, and evidence differentiable in the kernel's parameters.

        The derivative of the evidence in K is
        :math:`\frac12 (\alpha \alpha^\top - F F^\top + u \alpha^\top + \alpha u^\top)`, where the
        ``shift`` u is the effect of moving sites: zero for EP, whose sites are stationary, and for
        exact moments.
        """
        if self.K.requires_grad and torch.is_grad_enabled():
            shifted = alpha if shift is None else alpha + 2 * shift
            evidence = _Evidence.apply(self.K, evidence, alpha, shifted, factor)  # type: ignore[no-untyped-call]
        parts = [alpha, factor, evidence, *fit]
        if not self.given.lanes:
            parts = [part[0] for part in parts]
        found = Belief(self.prior.detached(), self.given, *parts)  # type: ignore[arg-type]
        return found if not self.given.share.any() else found.of_rater(None)


class _Evidence(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, K: Tensor, value: Tensor, alpha: Tensor, shifted: Tensor, factor: Tensor) -> Tensor:
        ctx.save_for_backward(K, alpha, shifted, factor)
        return value.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        K, alpha, shifted, factor = ctx.saved_tensors
        outer = alpha[..., None] * shifted[..., None, :]
        by_K = last((outer + outer.mT) / 4 - factor @ factor.mT / 2, K)
        return grad[..., None, None] * by_K, grad, None, None, None


@runtime_checkable
class Sites(Protocol):
    """What has the sites of some rows: a belief, or kernels that were learned from them."""

    @property
    def tau(self) -> Tensor:
        """Precisions, [*lane, n]."""

    @property
    def nu(self) -> Tensor:
        """Precisions times means, [*lane, n]."""


class Start(NamedTuple):
    """Sites to start inference from."""

    tau: Tensor
    nu: Tensor


def initial_sites(data: Data, warm: Sites | None) -> tuple[Tensor, Tensor]:
    """Sites to start from: those of an earlier belief for its rows, zero for new ones."""
    tau, nu = torch.zeros_like(data.signs), torch.zeros_like(data.signs)
    if warm is not None:
        *lanes, known = warm.tau.shape
        if known > data.n or math.prod(lanes) != data.lanes.numel():
            expected = f"be a belief about the first of these {data.n} answers in the same lanes"
            raise Refused("warm", expected, f"one about {known} in lanes {tuple(lanes)}", "Leave it out.")
        shape = *tau.shape[:-1], known
        tau[..., :known], nu[..., :known] = warm.tau.reshape(shape), warm.nu.reshape(shape)
    return tau, nu


def site_scale(var: Tensor, tau: Tensor | None = None) -> Float[Tensor, "lane 2 n"]:
    """Weight of a site's change: a small change matters more where the row is uncertain.

    A precision ``tau`` above one, which rows without noise of their own may have, counts by its relative
    change.
    """
    if tau is None:
        return torch.stack([var.clamp_min(1), var.sqrt().clamp_min(1)], -2)
    weight = var.maximum(1 / tau.clamp_min(1))
    return torch.stack([weight, weight.sqrt()], -2)


def scaled_change(step: Float[Tensor, "lane 2 n"], scale: Tensor) -> Float[Tensor, " lane"]:
    """Norm of the scaled step of all sites of a lane.

    To first order no posterior mean moves by more than sqrt(n) of this in its standard deviations.
    """
    return (step * scale).square().sum((-2, -1)).sqrt()


def _eye_plus(matrix: Tensor) -> Tensor:
    """Add the identity in place."""
    matrix.diagonal(dim1=-2, dim2=-1).add_(1.0)
    return matrix


def logdet(lower: Float[Tensor, "*b r r"]) -> Float[Tensor, "*b"]:
    r"""Log determinant of a matrix with this Cholesky factor."""
    return 2 * lower.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def _vecmat(vector: Tensor, matrix: Tensor) -> Tensor:
    """``matrix.mT @ vector``, four times as fast for many small matrices."""
    return (vector[..., None, :] @ matrix)[..., 0, :]


@dataclass(frozen=True)
class _RowPosterior:
    r"""Through :math:`B = I + S G S`, whose eigenvalues are at least 1 (GPML, eq. 3.26).

    With the dual weights :math:`b = S B^{-1} S^{-1} \nu`, the rows have mean :math:`(\nu - b)/\tau` and
    variance :math:`(1 - B^{-1}_{ii})/\tau`.  That divides rounding by :math:`\tau`, so rows with a weak site
    take :math:`G b` and the quadratic form instead.
    """

    G: Tensor

    def solve(self, tau: Tensor, nu: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        r""":math:`L^{-1} S` with :math:`L L^\top = B`, the dual weights, and L."""
        S = tau.sqrt()
        lower, _ = cholesky(_eye_plus((S[..., None] * self.G).mul_(S[..., None, :])))
        X = torch.linalg.solve_triangular(lower, torch.diag_embed(S), upper=False)
        scaled = X @ torch.where(tau > 0, nu / tau, 0.0)[..., None]
        return X, _vecmat(scaled[..., 0], X), lower

    def marginals(self, tau: Tensor, nu: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Mean and variance of each row, and a factor whose :func:`logdet` is that of I + T G."""
        X, dual, lower = self.solve(tau, nu)
        mean = (nu - dual) / tau
        weak = tau < _WEAK_PRECISION
        if some := bool(weak.any()):
            count = int(weak.sum(-1).max())  # a few, where answers may be lapses
            index = weak.to(torch.uint8).topk(count, -1).indices
            columns = self.G.gather(-1, index[:, None, :].expand(-1, tau.shape[-1], -1))
            explained = (X @ columns).square_().sum(-2)
            weak_var = self.G.diagonal(dim1=-2, dim2=-1).gather(-1, index) - explained
            weak_mean = _vecmat(dual, columns)
        var = (1 - X.square_().sum(-2) / tau) / tau
        if some:
            mean = torch.where(weak, mean.scatter(-1, index, weak_mean), mean)
            var = torch.where(weak, var.scatter(-1, index, weak_var), var)
        return mean, var.clamp_min(0), lower

    def select(self, lanes: Tensor) -> "_RowPosterior":
        return _RowPosterior(self.G[lanes])


@dataclass(frozen=True)
class _LowRankPosterior:
    r"""Through :math:`C = I + Q^\top T Q` with :math:`Q Q^\top = G` of rank r well below n.

    The rank is low when points repeat, and to working precision when the prior is smooth: 1000 duels in
    2-D under a squared exponential of lengthscale 0.3 have rank 199, and a sweep takes 5 ms, not 43.
    Everything is a sum of squares, so nothing cancels.
    """

    Q: Tensor

    def marginals(self, tau: Tensor, nu: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """As those of :class:`_RowPosterior`."""
        weighted = tau.sqrt()[..., None] * self.Q
        lower, _ = cholesky(_eye_plus(weighted.mT @ weighted))
        V = torch.linalg.solve_triangular(lower, self.Q.mT, upper=False)
        mean = _vecmat((V @ nu[..., None])[..., 0], V)
        return mean, V.square_().sum(-2), lower

    def select(self, lanes: Tensor) -> "_LowRankPosterior":
        return _LowRankPosterior(self.Q[lanes])


Posterior = _RowPosterior | _LowRankPosterior
"""The posterior of the rows as a function of the sites."""


def has_few_points(data: Data) -> bool:
    """Whether the points are fewer than the rows, so that linear algebra is done in their space."""
    return data.points.shape[-2] < data.n


def posterior_of_points(data: Data, K: Float[Tensor, "lane p p"]) -> Posterior:
    """That for a prior covariance of few points."""
    return _LowRankPosterior(data.matvec(thin_root(K)))


def posterior_of_rows(G: Float[Tensor, "lane n n"]) -> Posterior:
    """That for a prior covariance of the rows."""
    if G.shape[-1] >= _LOW_RANK_FROM and not G.is_cuda:
        Q = thin_root(G)
        if Q.shape[-1] <= _LOW_RANK_RATIO * G.shape[-1]:
            return _LowRankPosterior(Q)
    return _RowPosterior(G)


def point_weights(
    data: Data, K: Float[Tensor, "lane p p"], posterior: Posterior, tau: Tensor, nu: Tensor
) -> tuple[Float[Tensor, "lane p"], Float[Tensor, "lane p p"]]:
    """The weights and the factor of the belief for few points, at the cost of p, not n."""
    mean, _, _ = posterior.marginals(tau, nu)
    eye = torch.eye(K.shape[-1], dtype=tau.dtype, device=tau.device).expand_as(K)
    U = root(data.rmatvec(tau[..., None] * data.matvec(eye))).mT  # A^T T A = U^T U: p rows replace the n
    lower, _ = cholesky(_eye_plus(U @ K @ U.mT))
    factor = torch.linalg.solve_triangular(lower, U, upper=False).mT
    return data.rmatvec((nu - tau * mean)[..., None])[..., 0], factor


def row_gradient(G: Float[Tensor, "lane n n"], tau: Tensor, nu: Tensor) -> Float[Tensor, "lane n n"]:
    r"""Derivative of the log evidence in the covariance of the rows, at stationary sites.

    .. math:: \tfrac12 (b b^\top - S B^{-1} S), \qquad B = I + S G S, \quad b = S B^{-1} S^{-1} \nu
    """
    S = tau.sqrt()
    lower, _ = cholesky(_eye_plus((S[..., None] * G).mul_(S[..., None, :])))
    inverse = torch.cholesky_inverse(lower).mul_(S[..., None]).mul_(S[..., None, :])
    dual = _vecmat(torch.where(tau > 0, nu / tau, 0.0), inverse)
    return torch.addcmul(inverse.neg_(), dual[..., None], dual[..., None, :]).div_(2)
