r"""A Gaussian prior seen through one Gaussian factor ("site") for each answer.

EP and Laplace both replace the answer of row i by a factor
:math:`e^{\nu_i g_i - \tau_i g_i^2 / 2}` in :math:`g = A f`.  What f is then is linear algebra,
done here once for both, and in whichever space is smaller: that of the answers or that of the
independent directions among them.  Neither inverts the prior, which is singular when points repeat.
"""

import functools
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Bool, Float, Int
from torch import Tensor

from askwise.belief import Belief
from askwise.data import Data
from askwise.kernels import Covariance, Stationary, covariance
from askwise.linalg import cholesky, root, thin_root
from askwise.slopes import last

__all__ = ["Outcome", "Problem", "Space", "logdet", "scaled_change", "site_scale", "warm_sites"]

_WEAK = 1e-8
_MANY, _THIN = 160, 0.6  # when a thin root is worth looking for, and how thin it must be


@runtime_checkable
class Space(Protocol):
    """The posterior of the rows ``g = A f`` for given sites."""

    def marginals(self, tau: Tensor, nu: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        r"""Mean and variance of each row, and a factor whose :func:`logdet` is that of I + T G."""

    def select(self, lanes: Tensor) -> "Space":
        """The same for some of the lanes."""


@dataclass(frozen=True)
class Outcome:
    """What a method found for each lane: sites, evidence, and whether it got there."""

    tau: Float[Tensor, "lane n"]
    nu: Float[Tensor, "lane n"]
    log_evidence: Float[Tensor, " lane"]
    converged: Bool[Tensor, " lane"]
    sweeps: Int[Tensor, " lane"]
    change: Float[Tensor, " lane"]


@dataclass(frozen=True)
class Problem:
    """Answers and prior, made ready for inference: with lanes, which the given data may not have."""

    prior: Covariance
    given: Data
    data: Data
    K: Float[Tensor, "lane p p"]
    """Prior covariance of f at the points, and of the noise there."""

    @classmethod
    def of(cls, data: Data, kernel: Kernel) -> "Problem":
        """The problem of these answers under the prior of a kernel."""
        if kernel.batch_shape not in (torch.Size(), data.lanes):
            raise ValueError(
                f"kernel must have no lanes or those of the data, {tuple(data.lanes)}; got "
                f"{tuple(kernel.batch_shape)}. Give data and kernel the same first dimension."
            )
        return cls.under(data, covariance(kernel))

    @classmethod
    def under(cls, data: Data, prior: Covariance) -> "Problem":
        """The problem of these answers under this prior."""
        d, dims = data.points.shape[-1], prior.lengthscale.shape[-1] if isinstance(prior, Stationary) else 1
        if dims not in (1, d):
            raise ValueError(
                f"kernel must have one lengthscale or one for each of the {d} dimensions; got {dims}. "
                "Give as many as the points have coordinates."
            )
        K = prior.cross(data.points, data.points)
        if not K.isfinite().all():
            raise ValueError(
                "kernel must give finite covariances; got NaN or infinity. Check its parameters."
            )
        if data.noise.any():
            K = K + torch.diag_embed(data.noise)
        return cls(prior, data, data.unsqueezed(), K if data.lanes else K[None])

    @functools.cached_property
    def G(self) -> Float[Tensor, "lane n n"]:
        """Prior covariance of the rows."""
        G = self.data.rows(self.data.rows(self.K.detach()).mT)
        return (G + G.mT) / 2

    @functools.cached_property
    def space(self) -> Space:
        """The cheaper of the two for these answers."""
        if self._few_points:
            return _ThinSpace(self.data.rows(thin_root(self.K.detach())))
        if self.data.n >= _MANY and not self.K.is_cuda:
            Q = thin_root(self.G)
            if Q.shape[-1] <= _THIN * self.data.n:
                return _ThinSpace(Q)
        return _RowSpace(self.G)

    @property
    def _few_points(self) -> bool:
        return self.data.points.shape[-2] < self.data.n

    def at_sites(self, outcome: Outcome, shift: Float[Tensor, "lane p"] | None = None) -> Belief:
        """The belief at the sites found; ``shift`` as in :meth:`belief`."""
        posterior = self._point_posterior if self._few_points else self._row_posterior
        alpha, factor = posterior(outcome.tau, outcome.nu)
        return self.belief(alpha, factor, outcome, shift)

    def _row_posterior(self, tau: Tensor, nu: Tensor) -> tuple[Tensor, Tensor]:
        X, pull, _ = _RowSpace(self.G).solved(tau, nu)
        return self.data.spread(pull[..., None])[..., 0], self.data.spread(X.mT)

    def _point_posterior(self, tau: Tensor, nu: Tensor) -> tuple[Tensor, Tensor]:
        """The same at the price of p, not n: at most p rows U say what the n say together."""
        K, (mean, _, _) = self.K.detach(), self.space.marginals(tau, nu)
        eye = torch.eye(K.shape[-1], dtype=tau.dtype, device=tau.device).expand_as(K)
        U = root(self.data.spread(tau[..., None] * self.data.rows(eye))).mT  # A^T T A = U^T U
        lower, _ = cholesky(_eye_plus(U @ K @ U.mT))
        factor = torch.linalg.solve_triangular(lower, U, upper=False).mT
        return self.data.spread((nu - tau * mean)[..., None])[..., 0], factor

    def belief(
        self,
        alpha: Float[Tensor, "lane p"],
        factor: Float[Tensor, "lane p r"],
        outcome: Outcome,
        shift: Float[Tensor, "lane p"] | None = None,
    ) -> Belief:
        r"""The belief, its evidence differentiable in the kernel's parameters.

        The derivative of the evidence in K is
        :math:`\frac12 (\alpha \alpha^\top - F F^\top + u \alpha^\top + \alpha u^\top)`, where the
        ``shift`` u is what moving the sites adds: nothing for EP, whose sites are stationary, nor
        for exact moments.
        """
        evidence = outcome.log_evidence
        if self.K.requires_grad and torch.is_grad_enabled():
            slope = alpha if shift is None else alpha + 2 * shift
            evidence = _Evidence.apply(self.K, evidence, alpha, slope, factor)  # type: ignore[no-untyped-call]
        parts: tuple[Tensor, ...] = (alpha, factor, evidence, outcome.converged, outcome.sweeps)
        parts = (*parts, outcome.change, outcome.tau, outcome.nu)
        if not self.given.lanes:
            parts = tuple(part[0] for part in parts)
        return Belief(self.prior.detached(), self.given, *parts)


class _Evidence(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, K: Tensor, value: Tensor, alpha: Tensor, slope: Tensor, factor: Tensor) -> Tensor:
        ctx.save_for_backward(K, alpha, slope, factor)
        return value.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None, None]:
        K, alpha, slope, factor = ctx.saved_tensors
        outer = alpha[..., None] * slope[..., None, :]
        by_K = last((outer + outer.mT) / 4 - factor @ factor.mT / 2, K)
        return grad[..., None, None] * by_K, None, None, None, None


def warm_sites(data: Data, warm: Belief | None) -> tuple[Tensor, Tensor]:
    """Sites to start from: those of an earlier belief for its answers, none for the others."""
    tau, nu = torch.zeros_like(data.signs), torch.zeros_like(data.signs)
    if warm is not None:
        known = warm.data.n
        if known > data.n or warm.data.lanes.numel() != data.lanes.numel():
            raise ValueError(
                f"warm must be a belief about the first of these {data.n} answers in the same lanes; "
                f"got one about {known} in lanes {tuple(warm.data.lanes)}. Leave it out."
            )
        tau[..., :known], nu[..., :known] = warm.tau, warm.nu
    return tau, nu


def site_scale(
    var: Float[Tensor, "lane n"], tau: Float[Tensor, "lane n"] | None = None
) -> Float[Tensor, "lane 2 n"]:
    """By how much a site's change counts: where a row is uncertain, a small one has a large effect.

    A precision ``tau`` above one, which answers without a noise of their own may have, counts by
    its relative change.
    """
    if tau is None:
        return torch.stack([var.clamp_min(1), var.sqrt().clamp_min(1)], -2)
    counts = var.maximum(1 / tau.clamp_min(1))
    return torch.stack([counts, counts.sqrt()], -2)


def scaled_change(
    move: Float[Tensor, "lane 2 n"], scale: Float[Tensor, "lane 2 n"]
) -> Float[Tensor, " lane"]:
    """Length of the scaled move of all sites of a lane.

    To first order no posterior mean moves by more than sqrt(n) of this in its standard deviations.
    """
    return (move * scale).square().sum((-2, -1)).sqrt()


def _eye_plus(matrix: Tensor) -> Tensor:
    """Add the identity in place."""
    matrix.diagonal(dim1=-2, dim2=-1).add_(1.0)
    return matrix


def logdet(lower: Float[Tensor, "*b r r"]) -> Float[Tensor, "*b"]:
    r"""Log determinant of a matrix with this Cholesky factor."""
    return 2 * lower.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def _matvec(matrix: Tensor, vector: Tensor) -> Tensor:
    return (matrix @ vector[..., None])[..., 0]


def _vecmat(vector: Tensor, matrix: Tensor) -> Tensor:
    """``matrix.mT @ vector``, four times as fast for many small matrices."""
    return (vector[..., None, :] @ matrix)[..., 0, :]


@dataclass(frozen=True)
class _RowSpace:
    r"""Through :math:`B = I + S G S`, whose eigenvalues are at least 1 (GPML, eq. 3.26).

    With :math:`b = S B^{-1} S^{-1} \nu`, the pull of each row, the rows have mean
    :math:`(\nu - b)/\tau` and variance :math:`(1 - B^{-1}_{ii})/\tau`.  That divides rounding by
    :math:`\tau`, so rows with hardly a site take :math:`G b` and the quadratic form instead.
    """

    G: Tensor

    def solved(self, tau: Tensor, nu: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        r""":math:`L^{-1} S` with :math:`L L^\top = B`, the pulls, and L."""
        S = tau.sqrt()
        lower, _ = cholesky(_eye_plus((S[..., None] * self.G).mul_(S[..., None, :])))
        X = torch.linalg.solve_triangular(lower, torch.diag_embed(S), upper=False)
        pull = _vecmat(_matvec(X, torch.where(tau > 0, nu / tau, 0.0)), X)
        return X, pull, lower

    def marginals(self, tau: Tensor, nu: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        X, pull, lower = self.solved(tau, nu)
        mean = (nu - pull) / tau
        weak = tau < _WEAK
        V = X @ self.G if weak.any() else None
        var = (1 - X.square_().sum(-2) / tau) / tau
        if V is not None:
            weak_var = self.G.diagonal(dim1=-2, dim2=-1) - V.square_().sum(-2)
            mean = torch.where(weak, _vecmat(pull, self.G), mean)
            var = torch.where(weak, weak_var, var)
        return mean, var.clamp_min(0), lower

    def select(self, lanes: Tensor) -> "_RowSpace":
        return _RowSpace(self.G[lanes])


@dataclass(frozen=True)
class _ThinSpace:
    r"""Through :math:`C = I + Q^\top T Q` with :math:`Q Q^\top = G` of rank r, when r is well below n.

    So it is when points repeat, and to working precision when the prior is smooth: 1000 duels in
    2-D under a squared exponential of lengthscale 0.3 have rank 199, and a sweep takes 5 ms, not 43.
    All is sums of squares, so nothing cancels.
    """

    Q: Tensor

    def marginals(self, tau: Tensor, nu: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        weighted = tau.sqrt()[..., None] * self.Q
        lower, _ = cholesky(_eye_plus(weighted.mT @ weighted))
        V = torch.linalg.solve_triangular(lower, self.Q.mT, upper=False)
        mean = _vecmat(_matvec(V, nu), V)
        return mean, V.square_().sum(-2), lower

    def select(self, lanes: Tensor) -> "_ThinSpace":
        return _ThinSpace(self.Q[lanes])
