r"""Answers that are undecided about three points or more, in expectation propagation.

"Can't decide" says that the two highest noisy utilities, whichever they are, are within the margin.  Each
way for that to happen, "i is highest, j follows within t, all others are below j", is a polytope with m - 1
faces in the m - 1 differences.  Its probability and its moments under a Gaussian are those of EP; the ways
exclude each other, so the moments of the answer are those of a mixture.  For three points of equal prior the
probabilities of all answers sum to 0.998, for four to 0.99.

The rows of such an answer are all pairs of its points.  Their m (m - 1)/2 sites stand for any Gaussian factor
of the differences, and their variances give the covariance of the differences:
:math:`\mathrm{cov}(u_1 - u_i, u_1 - u_j) = [v_{1i} + v_{1j} - v_{ij}] / 2`.
"""

from dataclasses import dataclass
from itertools import combinations, permutations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from askwise.errors import Refused
from askwise.model.data import Data
from askwise.model.sites import site_scale
from askwise.numerics import cholesky, interval_moments, log_ndtr, truncated_moments

_SWEEPS, _UNDAMPED = 80, 20  # of EP for a way: at most, and before steps are halved
_TOLERANCE = 1e-9
_FACE_NOISE = 1e-6  # variance; far below that of an answer, and enough to keep sites finite
_LEAST_PRECISION = 1e-9
_ROUNDING = 1e-6  # a scaled change of a site that is mostly rounding


@dataclass(frozen=True)
class Undecided:
    """Undecided answers about m points each."""

    m: int
    index: Int[Tensor, "a pairs"]
    """Rows of each answer: pairs (1, 2), (1, 3), .., (2, 3), .."""
    margin: Float[Tensor, " lane"]

    @classmethod
    def of(cls, data: Data) -> "list[Undecided]":
        """Those of data with lanes, by the number of their points."""
        undecided = data.undecided
        if not undecided.any():
            return []
        if not (undecided == undecided[0]).all() or not (data.answer == data.answer[0]).all():
            expected = "be undecided about groups at the same rows"
            raise Refused("lanes", expected, "others", "Infer them one by one.")
        rows = undecided[0].nonzero()[:, 0]
        _, counts = data.answer[0, rows].unique_consecutive(return_counts=True)
        parts, found = rows.split(counts.tolist()), []
        for pairs in sorted({len(part) for part in parts}):
            m = round((1 + (1 + 8 * pairs) ** 0.5) / 2)
            index = torch.stack([part for part in parts if len(part) == pairs])
            found.append(cls(m, index, data.margin))
        return found

    @property
    def rows(self) -> Int[Tensor, " k"]:
        """All their rows."""
        return self.index.flatten()

    def select(self, lanes: Tensor) -> "Undecided":
        """Those of some of the lanes."""
        return Undecided(self.m, self.index, self.margin[lanes])

    def sites(self, mean: Tensor, var: Tensor, sites: Float[Tensor, "lane 2 n"]) -> Float[Tensor, "lane 2 k"]:
        """Sites of their rows that match the moments of the differences, given the posterior of all rows."""
        precision, shift = self._cavity(mean, var, sites)
        centre, cov, _ = self._tilted(precision, shift)
        site = torch.cholesky_inverse(cholesky(cov)[0]) - precision
        tau = self._to_pairs(site).clamp_min(_LEAST_PRECISION)
        total = precision + self._from_pairs(tau)  # matches the mean where a precision was raised
        nu = torch.zeros_like(tau)
        nu[..., : self.m - 1] = (total @ centre[..., None])[..., 0] - shift
        found, before = torch.stack([tau, nu], -3).flatten(-2), sites[..., self.rows]
        scale = site_scale(var[..., self.rows], before[:, 0])
        return torch.where(((found - before) * scale).abs() < _ROUNDING, before, found)

    def log_evidence(
        self, mean: Tensor, var: Tensor, sites: Float[Tensor, "lane 2 n"]
    ) -> Float[Tensor, "lane k"]:
        r"""Their part of EP's log evidence, at the first row of each answer.

        :math:`\log P - \log \int \text{cavity} \cdot \text{site} + \nu^\top \mu / 2`.
        """
        precision, shift = self._cavity(mean, var, sites)
        _, _, log_probability = self._tilted(precision, shift)
        tau, nu = (part[..., self.index] for part in sites.unbind(-2))
        total, push = precision + self._from_pairs(tau), shift + self._vector(nu)
        normaliser = _log_integral(total, push) - _log_integral(precision, shift)
        part = torch.zeros_like(tau)
        part[..., 0] = log_probability - normaliser + (nu * mean[..., self.index]).sum(-1) / 2
        return part.flatten(-2)

    def _cavity(self, mean: Tensor, var: Tensor, sites: Tensor) -> tuple[Tensor, Tensor]:
        """Precision and shift of the differences to the first point, without their sites."""
        d = self.m - 1
        v, mu = var[..., self.index], mean[..., self.index][..., :d]
        square = v.new_zeros(*v.shape[:-1], d + 1, d + 1)
        i, j = torch.triu_indices(self.m, self.m, offset=1, device=v.device)
        square[..., i, j] = square[..., j, i] = v
        cov = (square[..., 1:, :1] + square[..., :1, 1:] - square[..., 1:, 1:]) / 2
        precision = torch.cholesky_inverse(cholesky(cov)[0])
        tau, nu = (part[..., self.index] for part in sites.unbind(-2))
        return precision - self._from_pairs(tau), (precision @ mu[..., None])[..., 0] - self._vector(nu)

    def _tilted(self, precision: Tensor, shift: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Mean and covariance of the differences given the answers, and the log probability of these."""
        lower, _ = cholesky(precision)
        cov = torch.cholesky_inverse(lower)
        mean = torch.cholesky_solve(shift[..., None], lower)[..., 0]
        directions = _ways(self.m, mean)
        cov, mean = cov[..., None, :, :], mean[..., None, :]
        log_probability, mean, tau = _polytope(mean, cov, directions, self.margin[:, None, None, None])
        within = precision[..., None, :, :] + directions.mT @ (tau[..., None] * directions)
        cov = torch.cholesky_inverse(cholesky(within)[0])
        weight = log_probability.softmax(-1)[..., None]
        centre = (weight * mean).sum(-2)
        off = mean - centre[..., None, :]
        spread = (weight[..., None] * (cov + off[..., :, None] * off[..., None, :])).sum(-3)
        return centre, spread, log_probability.logsumexp(-1)

    def _from_pairs(self, tau: Tensor) -> Tensor:
        """Precision of the differences from those of all pairs."""
        directions = _pairs(self.m, tau)
        return directions.mT @ (tau[..., None] * directions)

    def _to_pairs(self, precision: Tensor) -> Tensor:
        """The reverse: minus the entries off the diagonal; sums of rows for pairs with the first point."""
        i, j = torch.triu_indices(self.m - 1, self.m - 1, offset=1, device=precision.device)
        return torch.cat([precision.sum(-1), -precision[..., i, j]], -1)

    def _vector(self, nu: Tensor) -> Tensor:
        return nu @ _pairs(self.m, nu)


def _pairs(m: int, like: Tensor) -> Float[Tensor, "pairs d"]:
    """Every difference of two as a combination of the differences of the first to the others."""
    eye = torch.cat([like.new_zeros(1, m - 1), torch.eye(m - 1, dtype=like.dtype, device=like.device)])
    return torch.stack([eye[j] - eye[i] for i, j in combinations(range(m), 2)])


def _ways(m: int, like: Tensor) -> Float[Tensor, "w d d"]:
    """The faces of each way as directions: the highest minus the next, then the next minus each other."""
    eye = torch.cat([like.new_zeros(1, m - 1), torch.eye(m - 1, dtype=like.dtype, device=like.device)])
    ways = []
    for i, j in permutations(range(m), 2):
        others = [k for k in range(m) if k not in (i, j)]
        ways.append(torch.stack([eye[j] - eye[i], *(eye[k] - eye[j] for k in others)]))
    return torch.stack(ways)


def _polytope(mean: Tensor, cov: Tensor, directions: Tensor, margin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Log probability and mean of a Gaussian where all directions are positive, and EP's precision of each.

    The first of them is below the margin as well.
    """
    centre = (directions @ mean[..., None])[..., 0]
    G = directions @ cov @ directions.mT
    tau, nu = torch.zeros_like(centre), torch.zeros_like(centre)
    eye = torch.eye(centre.shape[-1], dtype=centre.dtype, device=centre.device)
    for sweep in range(_SWEEPS):
        S = tau.sqrt()
        lower, _ = cholesky(eye + S[..., None] * G * S[..., None, :])
        X = torch.linalg.solve_triangular(lower, S[..., None] * G, upper=False)
        row_cov = G - X.mT @ X
        var = row_cov.diagonal(dim1=-2, dim2=-1).clamp_min(1e-300)
        row_mean = (row_cov @ nu[..., None])[..., 0]  # of the rows minus their prior mean
        left = (1 - tau * var).clamp_min(1e-12)
        v = var / left
        m = (row_mean - var * nu) / left + centre
        log_z, new_tau, new_nu = _face_sites(m, v, margin)
        new_nu = new_nu - new_tau * centre
        change = ((new_tau - tau) * var).abs().maximum(((new_nu - nu) * var.sqrt()).abs()).amax()
        if change < _TOLERANCE:
            break
        step = 1.0 if sweep < _UNDAMPED else 0.5
        tau, nu = torch.lerp(tau, new_tau, step), torch.lerp(nu, new_nu, step)
    m = m - centre
    one = 1 + tau * v
    each = log_z + one.log() / 2 + nu * row_mean / 2 + (m * (tau * m - 2 * nu) - nu.square() * v) / (2 * one)
    log_probability = each.sum(-1) - lower.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    weights = nu - tau * row_mean
    return log_probability, mean + (cov @ directions.mT @ weights[..., None])[..., 0], tau


def _face_sites(mean: Tensor, var: Tensor, margin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Log probability and matching site of each face: the first within 0 and the margin, others above 0."""
    s = (_FACE_NOISE + var).sqrt()
    z = mean / s
    rate, depth, r = truncated_moments(z)
    weight = rate * depth
    push = s * torch.where(z > 0, rate + z * weight, depth - z * r)
    log_z = log_ndtr(z)
    half, top = margin[..., 0] / 2, s[..., 0]
    off = mean[..., 0] - half
    log_z[..., 0], offset, r[..., 0] = interval_moments(-off / top, half / top)
    weight[..., 0] = (1 - r[..., 0]).clamp_min(0)
    push[..., 0] = top * offset - off * r[..., 0] + half * weight[..., 0]
    left = _FACE_NOISE + var * r
    return log_z, weight / left, push / left


def _log_integral(precision: Tensor, shift: Tensor) -> Tensor:
    r""":math:`\log \int \exp(h^\top x - x^\top \Lambda x / 2) \, dx`, up to a constant."""
    lower, _ = cholesky(precision)
    half = torch.linalg.solve_triangular(lower, shift[..., None], upper=False)[..., 0]
    return half.square().sum(-1) / 2 - lower.diagonal(dim1=-2, dim2=-1).log().sum(-1)
