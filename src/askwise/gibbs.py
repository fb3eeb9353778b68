r"""The exact posterior by Markov chains, summarised as a Gaussian: slow, and right up to its noise.

An answer says on which side of zero a latent reaction :math:`u = A f + \varepsilon` with
:math:`\varepsilon \sim \mathcal N(0, I)` fell (Albert & Chib 1993, JASA 88), how far from it, or, if
it is a tie, within which margin.  Given u, f is Gaussian with a covariance that does not depend on u;
so the mean and covariance of f follow exactly from those of u, which is a normal truncated to a
box, drawn one coordinate at a time.  Of a tie of many the latent values are the differences to the
first of them; the differences of the others follow from those, and are held within the margin too.
"""

import math
from dataclasses import dataclass, replace

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float
from torch import Tensor

from askwise.belief import Belief
from askwise.data import Data
from askwise.linalg import cholesky, root
from askwise.normal import log_ndtr, ndtr
from askwise.seeds import Generators, generator, rand
from askwise.sites import Outcome, Problem

__all__ = ["gibbs", "hallucinated", "truncated_normal"]

_WARM_UP = 0.2  # share of the sweeps that is thrown away
_FAR = 30.0  # beyond it the tail is exponential to 1e-3 of its own width, and ndtr nears underflow


def gibbs(
    data: Data,
    kernel: Kernel,
    *,
    generators: Generators | None = None,
    chains: int = 256,
    tolerance: float = 1e-2,
    max_sweeps: int = 500,
) -> Belief:
    """Mean and covariance of the exact posterior, by ``chains`` chains of ``max_sweeps`` sweeps.

    ``converged``: the potential scale reduction (Gelman & Rubin) of every reaction is within
    ``tolerance`` of one; ``change`` says how far it is.  The sites are left at zero, for the exact
    posterior has none.  The evidence is the estimate of Geweke, Hajivassiliou and Keane, which
    ``converged`` does not speak of.  With the default number of chains and a prior variance of 4
    its standard deviation is 0.2 for 20 duels and 0.6 for 80; with a variance of 100 and 80 duels
    it is worthless.
    """
    if chains < 2 or max_sweeps < 1:
        raise ValueError(
            f"chains must be 2 or more and max_sweeps at least 1; got {chains} and {max_sweeps}. "
            "The defaults are 256 and 500."
        )
    problem = Problem.of(data, kernel)
    source = generator("gibbs") if generators is None else generators
    with torch.no_grad():
        latent = _Latent.of(problem)
        start, weight = _sequential(latent, chains, source)
        evidence = weight.logsumexp(-1) - math.log(chains)
        mean, spread, reduction = _box_moments(latent, start, max_sweeps, source)
        alpha, factor = _gaussian_of(latent, mean, spread)
        sweeps = torch.full_like(reduction, max_sweeps, dtype=torch.long)
        none = torch.zeros_like(problem.data.signs)
        outcome = Outcome(none, none, evidence, reduction <= tolerance, sweeps, reduction)
    return problem.belief(alpha, factor, outcome)


def hallucinated(belief: Belief, generators: Generators, sweeps: int = 20, tries: int = 64) -> Belief:
    """The belief if the reactions behind the answers were known, for one draw of them.

    A reaction is f (or its difference) with a normal error, of which the answer tells the sign, or
    that it was small.  The draw is picked among ``tries`` sequential ones by their weight, and then
    improved by ``sweeps`` of Gibbs sampling.
    """
    problem = Problem.under(belief.data, belief.prior)
    with torch.no_grad():
        latent = _Latent.of(problem)
        w, weight = _sequential(latent, tries, generators)
        # the largest of log weight + Gumbel noise is a draw by weight
        noise = -(-rand(generators, w.shape[:-2], tries, like=w).log()).log()
        picked = (weight + noise).argmax(-1)[..., None, None].expand(*w.shape[:-2], 1, w.shape[-1])
        w = _swept(latent, w.gather(-2, picked), sweeps, generators)[..., 0, :]
        alpha, factor = _gaussian_of(latent, w, torch.zeros_like(latent.lower))
    if not belief.data.lanes:
        alpha, factor = alpha[0], factor[0]
    return replace(belief, alpha=alpha, factor=factor)


@dataclass(frozen=True)
class _Latent:
    """The values behind the answers, turned so that a win says "above the margin"."""

    rows: Data
    """Which rows of f they are, each with its sign."""
    lower: Float[Tensor, "lane k k"]
    """Cholesky factor of their prior covariance."""
    precision: Float[Tensor, "lane k k"]
    least: Float[Tensor, "lane k"]
    most: Float[Tensor, "lane k"] | None
    """Upper bounds, if there are any."""
    together: Float[Tensor, "lane j k"] | None = None
    """Signed rows over the latent values that are within the margin, if there are ties of many."""
    margin: Float[Tensor, "lane 1"] | None = None

    @classmethod
    def of(cls, problem: Problem) -> "_Latent":
        data = problem.data
        hanging = (data.signs == 0) & (data.slack == 0)
        if not hanging.any():
            return cls._bounded(data, data.signs == 0, problem)
        rows, ties, together = _independent(data, hanging)
        latent = cls._bounded(rows, ties, problem)
        return replace(latent, together=together, margin=data.margin[..., None])

    @classmethod
    def _bounded(cls, rows: Data, ties: Tensor, problem: Problem) -> "_Latent":
        """Wins above the margin, ``ties`` within, and other rows without a sign anywhere."""
        signs = torch.where(rows.signs == 0, 1.0, rows.signs)
        G = rows.rows(rows.rows(problem.K.detach()).mT)
        cov = signs[..., None] * ((G + G.mT) / 2 + torch.diag_embed(rows.slack)) * signs[..., None, :]
        lower, _ = cholesky(cov)
        margin = rows.margin[..., None].expand_as(signs)
        least = torch.where(rows.signs != 0, margin, torch.where(ties, -margin, -math.inf))
        most = torch.where(ties, margin, math.inf) if bool((rows.signs == 0).any()) else None
        return cls(replace(rows, signs=signs), lower, torch.cholesky_inverse(lower), least, most)

    def bounds(self, i: int, w: Tensor, known: int | None = None) -> tuple[Tensor, Tensor | None]:
        """Between which values [.., chains] the latent value i may lie, given the others of ``w``.

        With ``known``, given the first so many alone.
        """
        least = self.least[..., i, None]
        most = None if self.most is None else self.most[..., i, None]
        if self.together is None or self.margin is None or most is None:
            return least, most
        side = self.together[..., i]
        if known is not None:
            side = side * (self.together[..., known:] == 0).all(-1)
        # side * others + own is within the margin
        others = (w @ self.together.mT - side[..., None, :] * w[..., i, None]) * side[..., None, :]
        out = (side == 0)[..., None, :]
        above = (-others).masked_fill(out, -math.inf).amax(-1) - self.margin
        below = (-others).masked_fill(out, math.inf).amin(-1) + self.margin
        return least.maximum(above), most.minimum(below)


def _independent(data: Data, hanging: Tensor) -> tuple[Data, Tensor, Tensor]:
    """Rows of which none follows from others; the ties among them; and over them the ties that do follow.

    Of ``hanging`` ties, all pairs of a group, those with the group's first point are kept.
    Lanes may differ in which rows follow; where one is kept for another lane, it is a row of nothing.
    """
    eye = torch.eye(data.points.shape[-2], dtype=data.signs.dtype, device=data.signs.device)
    over_points = data.rows(eye.expand(len(data.signs), -1, -1))
    beaten = (hanging[..., None] & (over_points < 0)).any(-2)  # a point that another comes before
    follows = hanging & beaten.gather(-1, data.first)
    kept, left = ((~follows).any(0).nonzero()[:, 0], follows.any(0).nonzero()[:, 0])
    idle, first = follows[:, kept], data.first[:, kept]
    to_first = (hanging & ~follows)[:, kept, None] * over_points[:, kept].clamp_max(0)  # - e of the other one
    together = follows[:, left, None] * (over_points[:, left] @ to_first.mT)
    if not torch.equal(together @ over_points[:, kept], follows[:, left, None] * over_points[:, left]):
        raise ValueError(
            "ties without a noise of their own must be of all pairs of a group; got others. Use Data.ties."
        )
    rows = replace(
        data,
        first=first,
        second=torch.where(idle, first, data.second[:, kept]),
        signs=data.signs[:, kept],
        slack=torch.where(idle, 1.0, data.slack[:, kept]),
    )
    return rows, (rows.signs == 0) & ~idle, together


def truncated_normal(
    bound: Float[Tensor, "*b"], uniform: Float[Tensor, "*b"], upper: Float[Tensor, "*b"] | None = None
) -> Float[Tensor, "*b"]:
    """Standard normals above ``bound``, and below ``upper`` if given, by inversion of ``uniform``."""
    if upper is None:
        near = -torch.special.ndtri(uniform * ndtr(-bound))
        far = (bound.square() - 2 * uniform.log()).sqrt()
        return torch.where(bound < _FAR, near, far).maximum(bound)
    turned = bound + upper < 0  # the upper tail has the digits
    least, most = torch.where(turned, -upper, bound), torch.where(turned, -bound, upper)
    beyond = ndtr(-most)
    near = -torch.special.ndtri(beyond + uniform * (ndtr(-least) - beyond))
    left = torch.exp((least - most) * (least + most).clamp_min(0) / 2)
    far = (least.square() - 2 * (left + uniform * (1 - left)).log()).sqrt()
    drawn = torch.where(least < _FAR, near, far).maximum(least).minimum(most)
    return torch.where(turned, -drawn, drawn)


def _log_mass(bound: Tensor, upper: Tensor | None) -> Tensor:
    """Logarithm of the probability of a standard normal above ``bound`` and below ``upper``."""
    if upper is None:
        return log_ndtr(-bound)
    turned = bound + upper < 0
    least, most = torch.where(turned, -upper, bound), torch.where(turned, -bound, upper)
    above = log_ndtr(-least)
    return above + torch.log(-torch.expm1(log_ndtr(-most) - above))


def _sequential(latent: _Latent, chains: int, source: Generators) -> tuple[Tensor, Tensor]:
    """Draws within the bounds, one coordinate after the other, and their log weights."""
    lower = latent.lower
    lanes, n = lower.shape[:-2], lower.shape[-1]
    noise = lower.new_zeros(*lanes, chains, n)
    weight = lower.new_zeros(*lanes, chains)
    for i in range(n):
        centre, sd = (noise[..., :i] @ lower[..., i, :i, None])[..., 0], lower[..., i, i, None]
        w = noise if latent.together is None else noise @ lower.mT
        least, most = latent.bounds(i, w, known=i + 1)
        bound, upper = (least - centre) / sd, None if most is None else (most - centre) / sd
        weight = weight + _log_mass(bound, upper)
        noise[..., i] = truncated_normal(bound, rand(source, lanes, chains, like=lower), upper)
    return noise @ lower.mT, weight


def _box_moments(
    latent: _Latent, w: Tensor, sweeps: int, source: Generators
) -> tuple[Tensor, Tensor, Tensor]:
    """Mean and covariance of a normal restricted to its bounds, and the chains' disagreement."""
    lanes, n, chains = w.shape[:-2], w.shape[-1], w.shape[-2]
    warm_up = int(_WARM_UP * sweeps)
    kept = sweeps - warm_up
    total, square, outer = torch.zeros_like(w), torch.zeros_like(w), torch.zeros_like(latent.lower)
    for sweep in range(sweeps):
        w = _swept(latent, w, 1, source)
        if sweep >= warm_up:
            total, square, outer = total + w, square + w.square(), outer + w.mT @ w
    each = total / kept
    mean = each.mean(-2)
    spread = outer / (kept * chains) - mean[..., :, None] * mean[..., None, :]
    within = (square / kept - each.square()).mean(-2)
    if n == 0:
        return mean, spread, mean.new_zeros(lanes)
    reduction = ((within + each.var(-2)) / within).sqrt() - 1
    return mean, spread, reduction.amax(-1)


def _swept(latent: _Latent, w: Tensor, sweeps: int, source: Generators) -> Tensor:
    """The draws after so many sweeps of Gibbs sampling over their coordinates."""
    w, (chains, n) = w.clone(), w.shape[-2:]
    precision = latent.precision
    scale = precision.diagonal(dim1=-2, dim2=-1).rsqrt()
    for _ in range(sweeps):
        uniform = rand(source, w.shape[:-2], n, chains, like=w)
        for i in range(n):
            sd = scale[..., i, None]
            centre = w[..., i] - (w @ precision[..., :, i, None])[..., 0] * sd.square()
            least, most = latent.bounds(i, w)
            upper = None if most is None else (most - centre) / sd
            w[..., i] = centre + sd * truncated_normal((least - centre) / sd, uniform[..., i, :], upper)
    return w


def _gaussian_of(latent: _Latent, mean: Tensor, spread: Tensor) -> tuple[Tensor, Tensor]:
    r""":math:`\alpha = A^\top C^{-1} \mathbb E[u]` and F of :math:`C^{-1} - C^{-1} \mathbb V[u] C^{-1}`.

    With :math:`C = L L^\top` the latter is :math:`L^{-\top} (I - L^{-1} \mathbb V[u] L^{-\top}) L^{-1}`.
    """
    lower, data = latent.lower, latent.rows
    half = torch.linalg.solve_triangular(lower, spread, upper=False)
    inner = torch.linalg.solve_triangular(lower, half.mT, upper=False)
    eye = torch.eye(inner.shape[-1], dtype=inner.dtype, device=inner.device)
    reduction = root(eye - (inner + inner.mT) / 2)
    factor = torch.linalg.solve_triangular(lower.mT, reduction, upper=True)
    pull = torch.cholesky_solve(mean[..., None], lower)
    y = data.signs[..., None]
    return data.spread(y * pull)[..., 0], data.spread(y * factor)
