r"""A Gaussian prior times one Gaussian factor ("site") per row of the data.

EP and Laplace both replace the likelihood of row i by :math:`e^{\nu_i g_i - \tau_i g_i^2 / 2}` in
:math:`g = A f`.  The posterior of f is then linear algebra, shared by both and done in the smaller of two
spaces: that of the rows or that of the independent directions among them.  Neither inverts the prior,
which is singular when points repeat.
"""

import functools
import math
from collections.abc import Sequence
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
from askwise.numerics import cholesky, inverse_factor_, last, root, thin_root

_WEAK_PRECISION = 1e-8
_LOW_RANK_FROM, _LOW_RANK_RATIO = 160, 0.5  # rows from which a low rank is looked for, and how low it must be


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
        if not K.detach().sum().isfinite():  # of all entries it would take ten times as long
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
        if self._few_points:
            return _LowRankPosterior(self.data.matvec(thin_root(self.K.detach())))
        if self.data.n >= _LOW_RANK_FROM and not self.K.is_cuda:
            low = int(_LOW_RANK_RATIO * self.data.n)
            if thin_root(self.G[..., : low + 1, : low + 1]).shape[-1] <= low:  # else the whole has more
                Q = thin_root(self.G)
                if Q.shape[-1] <= low:
                    return _LowRankPosterior(Q)
        return _RowPosterior(self.G)

    @property
    def _few_points(self) -> bool:
        return self.data.points.shape[-2] < self.data.n

    def at_sites(
        self,
        tau: Tensor,
        nu: Tensor,
        *fit: Tensor,
        shift: Tensor | None = None,
        solved: "Solved | None" = None,
    ) -> Belief:
        """The belief at these sites; ``fit`` and ``shift`` as in :meth:`belief`.

        ``solved``: what :attr:`posterior` found at them, if it is known.
        """
        data = self.data
        if self._few_points:  # at the cost of p, not n: at most p rows U replace the n rows
            K, (mean, _, _) = self.K.detach(), self.posterior.marginals(tau, nu)
            eye = torch.eye(K.shape[-1], dtype=tau.dtype, device=tau.device).expand_as(K)
            U = root(data.rmatvec(tau[..., None] * data.matvec(eye))).mT  # A^T T A = U^T U
            lower, _ = cholesky(_eye_plus(U @ K @ U.mT))
            dual, factor = nu - tau * mean, torch.linalg.solve_triangular(lower, U, upper=False).mT
        else:
            if solved is None or not isinstance(self.posterior, _RowPosterior):
                _, _, solved = _RowPosterior(self.G).marginals(tau, nu)
            dual, factor = _dual(tau, nu, solved.half), data.rmatvec(solved.half.mT)
        alpha = data.rmatvec(dual[..., None])[..., 0]
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


def _vecmat(vector: Tensor, matrix: Tensor) -> Tensor:
    """``matrix.mT @ vector``, four times as fast for many small matrices."""
    return (vector[..., None, :] @ matrix)[..., 0, :]


class Solved(NamedTuple):
    """What the linear algebra at some sites leaves for products and determinants."""

    half: Float[Tensor, "lane r n"]
    pivots: Float[Tensor, "lane r"]
    """Diagonal of a Cholesky factor of I + T G."""

    @classmethod
    def joined(cls, parts: Sequence[tuple[Tensor, "Solved"]]) -> "Solved":
        """That of all lanes from those of some, each with their indices."""
        if len(parts) == 1:
            return parts[0][1]
        order = torch.cat([lanes for lanes, _ in parts]).argsort()
        return cls(*(torch.cat(part)[order] for part in zip(*(solved for _, solved in parts), strict=True)))

    def select(self, lanes: Tensor) -> "Solved":
        """That of some of the lanes, in their order."""
        return self if len(lanes) == len(self.pivots) else Solved(self.half[lanes], self.pivots[lanes])

    @property
    def logdet(self) -> Float[Tensor, " lane"]:
        """Log determinant of I + T G."""
        return 2 * self.pivots.log().sum(-1)


def _dual(tau: Tensor, nu: Tensor, X: Tensor) -> Tensor:
    """The dual weights of :class:`_RowPosterior`."""
    scaled = X @ torch.where(tau > 0, nu / tau, 0.0)[..., None]
    return _vecmat(scaled[..., 0], X)


@dataclass(frozen=True)
class _RowPosterior:
    r"""Through :math:`B = I + S G S = L L^\top`, whose eigenvalues are at least 1 (GPML, eq. 3.26).

    With :math:`X = L^{-1} S` and the dual weights :math:`b = X^\top X T^{-1} \nu`, the rows have mean
    :math:`(\nu - b)/\tau` and variance :math:`(1 - (X^\top X)_{ii} / \tau)/\tau`.  That divides rounding by
    :math:`\tau`, so rows with a weak site take :math:`G b` and the quadratic form instead.
    """

    G: Tensor

    def marginals(self, tau: Tensor, nu: Tensor) -> tuple[Tensor, Tensor, Solved]:
        """Mean and variance of each row, and what the two took."""
        weak = tau < _WEAK_PRECISION
        any_weak = bool(weak.any())
        if any_weak and not tau.any():  # the prior
            prior = Solved(torch.zeros_like(self.G), torch.ones_like(tau))
            return _vecmat(nu, self.G), self.G.diagonal(dim1=-2, dim2=-1), prior
        S = tau.sqrt()
        inverse, pivots = inverse_factor_(_eye_plus((S[..., None] * self.G).mul_(S[..., None, :])))
        X = inverse.mul_(S[..., None, :])
        dual = _dual(tau, nu, X)
        mean, var = (nu - dual) / tau, (1 - torch.linalg.vector_norm(X, dim=-2).square_() / tau) / tau
        if any_weak:
            some = weak.flatten(0, -2).any(0).nonzero()[:, 0]
            part, among = self.G[..., some], weak[..., some]
            left = self.G.diagonal(dim1=-2, dim2=-1)[..., some] - (X @ part).square_().sum(-2)
            mean[..., some] = torch.where(among, _vecmat(dual, part), mean[..., some])
            var[..., some] = torch.where(among, left, var[..., some])
        return mean, var.clamp_min_(0), Solved(X, pivots)

    def times(self, vector: Tensor, solved: Solved) -> Tensor:
        """The posterior covariance of the rows times a vector."""
        prior = _vecmat(vector, self.G)
        return prior - _vecmat(_vecmat(_vecmat(prior, solved.half.mT), solved.half), self.G)

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

    def marginals(self, tau: Tensor, nu: Tensor) -> tuple[Tensor, Tensor, Solved]:
        """As those of :class:`_RowPosterior`."""
        weighted = tau.sqrt()[..., None] * self.Q
        lower, _ = cholesky(_eye_plus(weighted.mT @ weighted))
        V = torch.linalg.solve_triangular(lower, self.Q.mT, upper=False)
        solved = Solved(V, lower.diagonal(dim1=-2, dim2=-1))
        return self.times(nu, solved), torch.linalg.vector_norm(V, dim=-2).square_(), solved

    def times(self, vector: Tensor, solved: Solved) -> Tensor:
        """The posterior covariance of the rows, which is V^T V, times a vector."""
        return _vecmat((solved.half @ vector[..., None])[..., 0], solved.half)

    def select(self, lanes: Tensor) -> "_LowRankPosterior":
        return _LowRankPosterior(self.Q[lanes])


Posterior = _RowPosterior | _LowRankPosterior
"""The posterior of the rows as a function of their sites."""
