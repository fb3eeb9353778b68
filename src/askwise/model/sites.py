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
from askwise.numerics import cholesky, last, root, scaled_inverse, thin_root

_WEAK_PRECISION = 1e-8
_GRAM_BLOCK = 128  # columns of a triangle that are computed together
_LOW_RANK_FROM, _LOW_RANK_RATIO = 160, 0.5  # rows from which a low rank is looked for, and how low it must be


def checked_prior(data: Data, prior: Kernel | Covariance) -> Covariance:
    """The covariance of a prior, if it has the lanes and dimensions of the data."""
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
    return prior


def check_finite(K: Tensor) -> None:
    """Refuses prior covariances that are not finite; one by one would take ten times as long."""
    if not K.detach().sum().isfinite():
        raise Refused("kernel", "give finite covariances", "NaN or infinity", "Check its parameters.")


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
        prior = checked_prior(data, prior)
        K = prior.cross(data.points, data.points)
        if data.share.any():
            K = K * data.rater_correlation
        check_finite(K)
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
        if has_few_points(data):
            alpha, factor = point_weights(data, self.K.detach(), self.posterior, tau, nu)
        else:
            dual, X = row_weights(self.G, self.posterior, tau, nu, solved)
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
        return as_belief(self.prior, self.given, (alpha, factor, evidence, *fit))


def as_belief(prior: Covariance, given: Data, parts: Sequence[Tensor]) -> Belief:
    """The belief with these parts, in its order, for the data as they were given: with lanes or without."""
    tensors = parts if given.lanes else [part[0] for part in parts]
    found = Belief(prior.detached(), given, *tensors)  # type: ignore[arg-type]
    return found if not given.share.any() else found.of_rater(None)


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
class Posterior(Protocol):
    """The posterior of the rows as a function of their sites."""

    def marginals(self, tau: Tensor, nu: Tensor) -> "tuple[Tensor, Tensor, Solved]":
        """Mean and variance of each row, and what the two took."""

    def times(self, vector: Tensor, solved: "Solved") -> Tensor:
        """The posterior covariance of the rows times a vector."""

    def select(self, lanes: Tensor) -> "Posterior":
        """That of some of the lanes."""


@runtime_checkable
class Problem(Protocol):
    """What EP needs: the rows, their posterior given sites, and the belief that it makes of them."""

    @property
    def prior(self) -> Covariance:
        """The prior covariance of f."""

    @property
    def data(self) -> Data:
        """The rows, with a lane dimension."""

    @property
    def posterior(self) -> Posterior:
        """The posterior of the rows."""

    def at_sites(self, tau: Tensor, nu: Tensor, *fit: Tensor, solved: "Solved | None" = None) -> Belief:
        """The belief at these sites."""


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
    weight = var.clamp_min(1) if tau is None else var.maximum(1 / tau.clamp_min(1))
    return torch.stack([weight, weight.sqrt()], -2)


def scaled_change(step: Float[Tensor, "lane 2 n"], scale: Tensor) -> Float[Tensor, " lane"]:
    """Norm of the scaled step of all sites of a lane.

    To first order no posterior mean moves by more than sqrt(n) of this in its standard deviations.
    """
    return torch.linalg.vector_norm(step * scale, dim=(-2, -1))


def eye_plus(matrix: Tensor) -> Tensor:
    """Add the identity in place."""
    matrix.diagonal(dim1=-2, dim2=-1).add_(1.0)
    return matrix


def eye_plus_gram(half: Float[Tensor, "*b n r"]) -> Float[Tensor, "*b r r"]:
    """The lower triangle of ``I + half.mT @ half``, which is all that a Cholesky factor takes."""
    r = half.shape[-1]
    size = max(_GRAM_BLOCK, -(-r // 8))
    if r <= size:
        return eye_plus(half.mT @ half)
    found = half.new_zeros(*half.shape[:-2], r, r)
    for start in range(0, r, size):
        found[..., start:, start : start + size] = half[..., start:].mT @ half[..., start : start + size]
    return eye_plus(found)


def _vecmat(vector: Tensor, matrix: Tensor) -> Tensor:
    """``matrix.mT @ vector``, four times as fast for many small matrices."""
    return (vector[..., None, :] @ matrix)[..., 0, :]


class Solved(NamedTuple):
    """What the linear algebra at some sites leaves for products and determinants."""

    half: Float[Tensor, "lane r n"]
    pivots: Float[Tensor, "lane k"]
    """Diagonal of a Cholesky factor of I + T G."""
    own: Float[Tensor, "lane n"] | None = None
    """Posterior variance of the rows that is independent."""
    tau: Float[Tensor, "lane n"] | None = None
    """The sites' precisions, where all are strong enough to divide by."""

    @classmethod
    def joined(cls, parts: Sequence[tuple[Tensor, "Solved"]]) -> "Solved":
        """That of all lanes from those of some, each with their indices."""
        if len(parts) == 1:
            return parts[0][1]
        order = torch.cat([lanes for lanes, _ in parts]).argsort()
        halves, pivots = zip(*((solved.half, solved.pivots) for _, solved in parts), strict=True)
        return cls(torch.cat(halves)[order], torch.cat(pivots)[order])

    def select(self, lanes: Tensor) -> "Solved":
        """That of some of the lanes, in their order."""
        if len(lanes) == len(self.pivots):
            return self
        return Solved(self.half[lanes], self.pivots[lanes], tau=None if self.tau is None else self.tau[lanes])

    @property
    def logdet(self) -> Float[Tensor, " lane"]:
        """Log determinant of I + T G."""
        return 2 * self.pivots.log().sum(-1)


def _dual(tau: Tensor, nu: Tensor, X: Tensor) -> Tensor:
    """The dual weights of :class:`_RowPosterior`."""
    return _gram_times(torch.where(tau > 0, nu / tau, 0.0), X)


def _gram_times(vector: Tensor, X: Tensor) -> Tensor:
    """``X.mT @ X @ vector``."""
    return _vecmat((X @ vector[..., None])[..., 0], X)


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
        lower, _ = cholesky(eye_plus((S[..., None] * S[..., None, :]).mul_(self.G)))
        pivots = lower.diagonal(dim1=-2, dim2=-1).clone()
        X = scaled_inverse(lower, S)
        dual = _dual(tau, nu, X) if any_weak else _gram_times(nu / tau, X)
        mean, var = (nu - dual) / tau, (1 - torch.linalg.vector_norm(X, dim=-2).square_() / tau) / tau
        if any_weak:
            some = weak.flatten(0, -2).any(0).nonzero()[:, 0]
            part, among = self.G[..., some], weak[..., some]
            left = self.G.diagonal(dim1=-2, dim2=-1)[..., some] - (X @ part).square_().sum(-2)
            mean[..., some] = torch.where(among, _vecmat(dual, part), mean[..., some])
            var[..., some] = torch.where(among, left, var[..., some])
        strong = None if any_weak else tau
        return mean, var.clamp_min_(0), Solved(X, pivots, tau=strong)

    def times(self, vector: Tensor, solved: Solved) -> Tensor:
        """The posterior covariance of the rows times a vector."""
        if solved.tau is not None:  # half the products
            whole = vector / solved.tau
            return whole - _gram_times(whole, solved.half) / solved.tau
        prior = _vecmat(vector, self.G)
        return prior - _vecmat(_gram_times(prior, solved.half), self.G)

    def select(self, lanes: Tensor) -> "_RowPosterior":
        return _RowPosterior(self.G[lanes])


@dataclass(frozen=True)
class LowRankPosterior:
    r"""Through :math:`C = I + Q^\top \tilde T Q`, where :math:`Q Q^\top + \operatorname{diag}(\delta) = G`.

    The rank r of Q is well below n when points repeat, and to working precision when the prior is smooth:
    1000 duels in 2-D under a squared exponential of lengthscale 0.3 have rank 199, and a sweep takes 4 ms,
    not 21.  Then :math:`\delta = 0`.  With landmarks (:mod:`askwise.model.landmarks`) it is the variance
    that these leave over, and :math:`\tilde T = T (I + T \Delta)^{-1}`.  Everything is a sum of squares, so
    nothing cancels.
    """

    Q: Tensor
    left: Tensor | None = None

    def marginals(self, tau: Tensor, nu: Tensor) -> tuple[Tensor, Tensor, Solved]:
        """As those of :class:`_RowPosterior`."""
        solved = self._solved(tau) if tau.any() else Solved(self.Q.mT, torch.ones_like(tau), self.left)
        var = torch.linalg.vector_norm(solved.half, dim=-2).square_()
        return self.times(nu, solved), var if solved.own is None else var + solved.own, solved

    def _solved(self, tau: Tensor) -> Solved:
        one = None if self.left is None else 1 + tau * self.left
        lower, _ = cholesky(eye_plus_gram((tau if one is None else tau / one).sqrt()[..., None] * self.Q))
        V = torch.linalg.solve_triangular(lower, self.Q.mT, upper=False)
        pivots = lower.diagonal(dim1=-2, dim2=-1)
        if self.left is None or one is None:
            return Solved(V, pivots)
        return Solved(V.div_(one[..., None, :]), torch.cat([pivots, one.sqrt()], -1), self.left / one)

    def times(self, vector: Tensor, solved: Solved) -> Tensor:
        """The posterior covariance of the rows, which is V^T V but for their own part, times a vector."""
        found = _gram_times(vector, solved.half)
        return found if solved.own is None else torch.addcmul(found, solved.own, vector)

    def select(self, lanes: Tensor) -> "LowRankPosterior":
        """That of some of the lanes."""
        return LowRankPosterior(self.Q[lanes], None if self.left is None else self.left[lanes])


def has_few_points(data: Data) -> bool:
    """Whether the points are fewer than the rows, so that linear algebra is done in their space."""
    return data.points.shape[-2] < data.n


def posterior_of_points(data: Data, K: Float[Tensor, "lane p p"]) -> Posterior:
    """That for a prior covariance of few points."""
    return LowRankPosterior(data.matvec(thin_root(K)))


def posterior_of_rows(G: Float[Tensor, "lane n n"]) -> Posterior:
    """That for a prior covariance of the rows, in the cheaper of the two forms."""
    n = G.shape[-1]
    if n >= _LOW_RANK_FROM and not G.is_cuda:
        low = int(_LOW_RANK_RATIO * n)
        if thin_root(G[..., : low + 1, : low + 1]).shape[-1] <= low:  # else the whole has more
            Q = thin_root(G)
            if Q.shape[-1] <= low:
                return LowRankPosterior(Q)
    return _RowPosterior(G)


def point_weights(
    data: Data, K: Float[Tensor, "lane p p"], posterior: Posterior, tau: Tensor, nu: Tensor
) -> tuple[Float[Tensor, "lane p"], Float[Tensor, "lane p p"]]:
    """The weights and the factor of the belief for few points, at the cost of p, not n."""
    mean, _, _ = posterior.marginals(tau, nu)
    eye = torch.eye(K.shape[-1], dtype=tau.dtype, device=tau.device).expand_as(K)
    U = root(data.rmatvec(tau[..., None] * data.matvec(eye))).mT  # A^T T A = U^T U: p rows replace the n
    lower, _ = cholesky(eye_plus(U @ K @ U.mT))
    factor = torch.linalg.solve_triangular(lower, U, upper=False).mT
    return data.rmatvec((nu - tau * mean)[..., None])[..., 0], factor


def row_weights(
    G: Float[Tensor, "lane n n"], posterior: Posterior, tau: Tensor, nu: Tensor, solved: Solved | None
) -> tuple[Float[Tensor, "lane n"], Float[Tensor, "lane n n"]]:
    r"""The dual weights b of the rows and the X of :class:`_RowPosterior`.

    The derivative of the log evidence in G is :math:`\tfrac12 (b b^\top - X^\top X)` at stationary sites.
    ``solved``: what the posterior found at them, if it is known.
    """
    if solved is None or not isinstance(posterior, _RowPosterior):
        _, _, solved = _RowPosterior(G).marginals(tau, nu)
    return _dual(tau, nu, solved.half), solved.half
