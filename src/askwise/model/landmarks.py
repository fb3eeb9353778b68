r"""Inference from thousands of answers through landmarks: some of the points that stand for all.

With the covariance :math:`K_Z = L L^\top` of the landmarks Z and the features
:math:`\phi(x) = L^{-1} k(Z, x)`, the rows of the data have the prior

.. math:: g = Q w + e, \quad w \sim \mathcal N(0, I), \quad e \sim \mathcal N(0, \operatorname{diag}(\delta))

where Q has the features of the rows and :math:`\delta` is the prior variance of each that these leave
over: every row has its true variance, and two rows have their true covariance but for what is left over.
Away from the answers f has its true prior variance.  A sweep costs O(n r^2) for r landmarks, and a belief
has weights at these alone.  Source: Snelson & Ghahramani (2006), "Sparse Gaussian processes using
pseudo-inputs" (FITC; with EP, Naish-Guzman & Holden 2007).

Landmarks are the pivots of a Cholesky factorisation of the prior, until the variance left over at every
point is below 1e-4 of the prior's (and below 1e-3), at most 1000.  Where that is reached, the mean of every
row is within 0.02 posterior deviations of the exact one and its deviation within 1%: tested with 1000
answers.  Where 1000 landmarks do not reach it, as with short lengthscales in six dimensions, up to 2000
answers are inferred exactly; with more, errors are as in ``docs/bench-scale.md``.
"""

import functools
from dataclasses import dataclass, replace

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float, Int
from torch import Tensor

from askwise.model.belief import Belief
from askwise.model.data import Data
from askwise.model.kernels import Covariance
from askwise.model.sites import (
    InferenceProblem,
    LowRankPosterior,
    Problem,
    Solved,
    as_belief,
    check_finite,
    checked_prior,
    eye_plus,
    eye_plus_gram,
)
from askwise.numerics import cholesky, leading_rows

EXACT_TO = 1000
"""Number of answers up to which inference is exact but for EP."""
_EXACT_IF_HARD_TO = 2000
_LANDMARKS, _RELATIVE, _ABSOLUTE, _ROUNDING = 1000, 1e-4, 1e-3, 1e-10
_CANDIDATES, _BLOCK, _SHARE = 256, 64, 0.5  # of a block of pivots: at least half of the largest


def inference_problem(data: Data, prior: Kernel | Covariance) -> Problem:
    """The problem of EP: with landmarks for more than a thousand answers of one lane.

    Rankings, whose rows share the noise of their points, are always inferred exactly.
    """
    if not may_take_landmarks(data):
        return InferenceProblem.of(data, prior)
    size = min(data.n, data.points.shape[-2])
    prior = checked_prior(data, prior)
    whole = _Prior(prior.detached(), data.unsqueezed())
    index, features, left = _landmarks(whole, min(_LANDMARKS, size // 2))  # with more, the rows are cheaper
    if left > 1 and size <= _EXACT_IF_HARD_TO:
        return InferenceProblem.of(data, prior)
    Q = whole.data.matvec(features.mT[None])
    return LandmarkProblem(prior, data, whole.data, index, features[:, index].mT[None], Q, whole.left_by(Q))


def may_take_landmarks(data: Data) -> bool:
    """Whether inference is not exact for some kernels."""
    size = min(data.n, data.points.shape[-2])
    return size > EXACT_TO and data.lanes.numel() == 1 and not bool(data.point_noise.any())


@dataclass(frozen=True, eq=False)
class _Prior:
    """The prior covariance of points, as their raters see them."""

    kernel: Covariance
    data: Data

    def cross(self, x: Tensor, some: Int[Tensor, " r"]) -> Float[Tensor, "lane k r"]:
        """Covariance of the points of index ``x`` with those of index ``some``."""
        points, rater = self.data.points, self.data.rater
        K = self.kernel.cross(points[:, x], points[:, some])
        if not self.data.share.any():
            return K
        apart = rater[:, x, None] != rater[:, None, some]
        return K * (1 - self.data.share[:, None, None] * apart.to(K))

    def left_by(self, Q: Float[Tensor, "lane n r"]) -> Float[Tensor, "lane n"]:
        """The variance of each row that is left over by its features."""
        return (self._of_rows() - Q.square().sum(-1)).clamp_min(0)

    def _of_rows(self) -> Float[Tensor, "lane n"]:
        """Variance of each row."""
        data, points = self.data, self.data.points
        first, second = data.first[0], data.second[0]
        var = self.kernel.diagonal(points[:, first])
        if not (paired := second >= 0).any():
            return var
        other = points[:, second.clamp_min(0)]
        shared = self.kernel.paired(points[:, first], other)
        if data.share.any():
            apart = data.rater[:, first] != data.rater[:, second.clamp_min(0)]
            shared = shared * (1 - data.share[:, None] * apart.to(shared))
        return var + torch.where(paired, self.kernel.diagonal(other) - 2 * shared, 0.0)


@torch.no_grad()
def _landmarks(prior: _Prior, limit: int) -> tuple[Int[Tensor, " r"], Float[Tensor, "r p"], float]:
    """Indices of the landmarks; the features of all points; the largest variance that these leave over.

    The last is a multiple of what is allowed; there are no more landmarks than ``limit``.
    """
    points = prior.data.points
    every = torch.arange(points.shape[-2], device=points.device)
    left = prior.kernel.diagonal(points)[0].clone()
    check_finite(left)
    allowed = min(_RELATIVE * float(left.max()), max(_ABSOLUTE, _ROUNDING * float(left.max())))
    features, chosen = points.new_empty(limit, len(every)), every[:0]
    while (most := float(left.max())) > allowed and (known := len(chosen)) < limit:
        some = left.topk(min(_CANDIDATES, len(every))).indices
        of_some = features[:known, some]
        within = prior.cross(some, some)[0] - of_some.mT @ of_some
        order = leading_rows(within, min(max(_SHARE * most, allowed), 0.9 * most))[
            : min(_BLOCK, limit - known)
        ]
        new, (lower, _) = some[order], cholesky(within[order][:, order])
        block = prior.cross(new, every)[0] - of_some[:, order].mT @ features[:known]
        torch.linalg.solve_triangular(lower, block, upper=False, out=features[known : known + len(new)])
        left = (left - features[known : known + len(new)].square().sum(0)).clamp_min_(0)
        chosen = torch.cat([chosen, new])
    return chosen, features[: len(chosen)], most / allowed


@dataclass(frozen=True, eq=False)
class LandmarkProblem:
    """As :class:`~askwise.model.sites.InferenceProblem`, of one lane, for EP."""

    prior: Covariance
    given: Data
    data: Data
    index: Int[Tensor, " r"]
    """The landmarks among the points."""
    lower: Float[Tensor, "lane r r"]
    Q: Float[Tensor, "lane n r"]
    """Features of the rows."""
    left: Float[Tensor, "lane n"]
    """Prior variance of the rows that these leave over."""

    @functools.cached_property
    def coarse(self) -> "LandmarkProblem":
        """The same with a quarter of the landmarks, for sites to start from at a tenth of the cost."""
        r = -(-len(self.index) // 4)
        Q = self.Q[..., :r].contiguous()
        left = _Prior(self.prior.detached(), self.data).left_by(Q)
        return replace(self, index=self.index[:r], lower=self.lower[..., :r, :r], Q=Q, left=left)

    @functools.cached_property
    def posterior(self) -> LowRankPosterior:
        """The posterior of the rows."""
        return LowRankPosterior(self.Q, self.left)

    def at_sites(self, tau: Tensor, nu: Tensor, *fit: Tensor, solved: Solved | None = None) -> Belief:
        r"""The belief at these sites, with weights at the landmarks.

        With :math:`C = I + Q^\top \tilde T Q` they are :math:`L^{-\top} C^{-1} Q^\top \tilde\nu` and a factor
        of :math:`L^{-\top} (I - C^{-1}) L^{-1}`.
        """
        Q, one = self.Q, 1 + tau * self.left
        weighted = (tau / one).sqrt()[..., None] * Q
        lower, _ = cholesky(eye_plus_gram(weighted))
        explained, _ = cholesky(eye_plus(-torch.cholesky_inverse(lower)))
        w = torch.cholesky_solve(Q.mT @ (nu / one)[..., None], lower)
        weights = torch.linalg.solve_triangular(self.lower.mT, torch.cat([w, explained], -1), upper=True)
        whole = weights.new_zeros(*weights.shape[:-2], self.data.points.shape[-2], weights.shape[-1])
        whole[..., self.index, :] = weights
        evidence, *rest = fit
        if torch.is_grad_enabled():
            explicit = self._log_integral(tau, nu)
            evidence = evidence + (explicit - explicit.detach())
        parts = (whole[..., 0], whole[..., 1:], evidence, *rest, tau, nu)
        return as_belief(self.prior, self.given, parts)

    def _log_integral(self, tau: Tensor, nu: Tensor) -> Float[Tensor, " lane"]:
        r"""Log integral of the prior times the sites, as a function of the kernel's parameters.

        .. math:: \frac12 \left(\sum \frac{\delta \nu^2}{1 + \tau\delta}
            + \tilde\nu^\top Q C^{-1} Q^\top \tilde\nu - \log |C| - \sum \log(1 + \tau\delta)\right)

        EP's sites are stationary, so its derivative is that of the evidence (landmarks stay as they are).
        """
        prior = _Prior(self.prior, self.data)
        if not prior.cross(self.index[:1], self.index[:1]).requires_grad:
            return torch.zeros_like(tau[..., 0])
        every = torch.arange(self.data.points.shape[-2], device=tau.device)
        cross = self.data.matvec(prior.cross(every, self.index))
        lower, _ = cholesky(prior.cross(self.index, self.index))
        Q = torch.linalg.solve_triangular(lower, cross.mT, upper=False).mT
        left = prior.left_by(Q)
        one = 1 + tau * left
        weighted = (tau / one).sqrt()[..., None] * Q
        lower, _ = cholesky(eye_plus_gram(weighted))
        projected = torch.linalg.solve_triangular(lower, Q.mT @ (nu / one)[..., None], upper=False)
        own = (left * nu.square() / one - one.log()).sum(-1)
        within = projected.square().sum((-2, -1)) - 2 * lower.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return (own + within) / 2
