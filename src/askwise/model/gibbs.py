r"""The exact posterior by Markov chains, summarised as a Gaussian: slow, and exact up to Monte Carlo noise.

An outcome restricts a latent response :math:`u = A f + \varepsilon` with
:math:`\varepsilon \sim \mathcal N(0, I)` to one side of the margin or, for a tie, to within it (Albert &
Chib 1993, JASA 88).  Given u, f is Gaussian with a covariance that does not depend on u; so the mean and
covariance of f follow exactly from those of u, a normal truncated to a box, which is drawn one coordinate at
a time.  For a tie of many points the latent values are the differences to the first of them, which restrict
each other: the other differences follow from those.

An answer that may be a lapse restricts its latent values only if it is none.  Whether it is, is drawn
together with each of them, given the others.
"""

import math
from dataclasses import dataclass, replace

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float
from torch import Tensor

from askwise.errors import Refused
from askwise.model.belief import Belief
from askwise.model.data import Data
from askwise.model.likelihood import Likelihood
from askwise.model.mixture import Mixture
from askwise.model.sites import InferenceProblem
from askwise.numerics import Generators, cholesky, generator, log_ndtr, ndtr, rand, root

_BURN_IN = 0.2  # fraction of the sweeps that is discarded
_BY_ROW = ("first", "second", "signs", "row_noise", "has_margin", "answer", "chance", "lapse")
_TAIL_FROM = 30.0  # from here the tail is exponential to 1e-3 of its own width, and ndtr nears underflow


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

    ``converged``: the potential scale reduction (Gelman & Rubin) of every latent response is within
    ``tolerance`` of one; ``change`` is its largest excess.  The sites are zero, since the exact posterior
    has none.  The evidence is the estimate of Geweke, Hajivassiliou and Keane, which ``converged`` does
    not cover.  With the default number of chains and a prior variance of 4 its standard deviation is 0.2
    for 20 duels and 0.6 for 80; with a variance of 100 and 80 duels it is useless.
    """
    if chains < 2 or max_sweeps < 1:
        expected = "be 2 or more and max_sweeps at least 1"
        raise Refused("chains", expected, f"{chains} and {max_sweeps}", "The defaults are 256 and 500.")
    problem = InferenceProblem.of(data, kernel)
    source = generator("gibbs") if generators is None else generators
    with torch.no_grad():
        latent = _Latent.of(problem)
        start, log_weight = _sequential_draws(latent, chains, source)
        evidence = log_weight.logsumexp(-1) - math.log(chains)
        mean, cov, reduction = _box_moments(latent, start, max_sweeps, source)
        alpha, factor = _posterior_weights(latent, mean, cov)
        sweeps = torch.full_like(reduction, max_sweeps, dtype=torch.long)
        none = torch.zeros_like(problem.data.signs)
    fit = (evidence, reduction <= tolerance, sweeps, reduction, none, none)
    return problem.belief(alpha, factor, *fit)


def hallucinated(belief: Belief, generators: Generators, sweeps: int = 20, tries: int = 64) -> Belief:
    """The belief given one posterior draw of the latent responses, as if they had been observed.

    The draw is picked among ``tries`` sequential ones by their weight, and then improved by ``sweeps`` of
    Gibbs sampling.  Of several kernels, one is drawn first.
    """
    if isinstance(belief, Mixture):
        belief = belief.of_drawn_kernel(generators)
    problem = InferenceProblem.of(belief.data, belief.shared_prior)
    with torch.no_grad():
        latent = _Latent.of(problem)
        w, log_weight = _sequential_draws(latent, tries, generators)
        # the largest of log weight + Gumbel noise is a draw by weight
        noise = -(-rand(generators, w.shape[:-2], tries, like=w).log()).log()
        picked = (log_weight + noise).argmax(-1)[..., None, None].expand(*w.shape[:-2], 1, w.shape[-1])
        w = _gibbs_sweeps(latent, w.gather(-2, picked), sweeps, generators)[..., 0, :]
        alpha, factor = _posterior_weights(latent, w, torch.zeros_like(latent.lower))
    if not belief.data.lanes:
        alpha, factor = alpha[0], factor[0]
    return replace(belief, alpha=alpha, factor=factor)


@dataclass(frozen=True)
class _Latent:
    """Latent responses with their bounds, signed so that a win is above the margin."""

    rows: Data
    """The rows of f that they observe, each with its sign."""
    lower: Float[Tensor, "lane k k"]
    """Cholesky factor of their prior covariance."""
    precision: Float[Tensor, "lane k k"]
    low: Float[Tensor, "lane k"]
    high: Float[Tensor, "lane k"] | None
    """Upper bounds, if any."""
    tied: Float[Tensor, "lane j k"] | None
    """Signed rows over the latent values that are also within the margin, for ties of many points."""
    groups: dict[int, list[int]]
    """For a latent value of an answer that is undecided about a group, those of the whole answer."""
    lapses: "_Lapses | None"

    @classmethod
    def of(cls, problem: InferenceProblem) -> "_Latent":
        rows, ties, tied = problem.data, problem.data.signs == 0, None
        groups: dict[int, list[int]] = {}
        if (undecided := rows.undecided).any():
            rows, groups = _differences(rows, undecided)
            ties = rows.signs == 0
        if (noiseless := ties & (rows.row_noise == 0) & ~rows.undecided).any():
            rows, ties, tied = _independent_rows(rows, noiseless)
        # wins are above the margin, ties within it; other rows without a sign are unbounded
        signs = torch.where(rows.signs == 0, 1.0, rows.signs)
        noisy = rows.row_covariance(problem.K.detach()) + torch.diag_embed(rows.row_noise)
        lower, _ = cholesky(signs[..., None] * noisy * signs[..., None, :])
        margin = torch.where(rows.has_margin, rows.margin[..., None], 0.0)
        low = torch.where(rows.signs != 0, margin, torch.where(ties, -margin, -math.inf))
        high = torch.where(ties, margin, math.inf) if bool((rows.signs == 0).any()) else None
        signed = replace(rows, signs=signs)
        precision = torch.cholesky_inverse(lower)
        return cls(signed, lower, precision, low, high, tied, groups, _Lapses.of(rows, low, high))

    def bounds(self, i: int, w: Tensor, known: int | None = None) -> tuple[Tensor, Tensor | None]:
        """Bounds [.., chains] of latent value i given the others of ``w``, or given the first ``known``."""
        low = self.low[..., i, None]
        high = None if self.high is None else self.high[..., i, None]
        if i in self.groups:
            return self._among_group(i, w, known)
        if self.tied is None or high is None:
            return low, high
        side, margin = self.tied[..., i], self.rows.margin[..., None]
        if known is not None:
            side = side * (self.tied[..., known:] == 0).all(-1)
        # side * others + own is within the margin
        others = (w @ self.tied.mT - side[..., None, :] * w[..., i, None]) * side[..., None, :]
        out = (side == 0)[..., None, :]
        above = (-others).masked_fill(out, -math.inf).amax(-1) - margin
        below = (-others).masked_fill(out, math.inf).amin(-1) + margin
        return low.maximum(above), high.minimum(below)

    def _among_group(self, i: int, w: Tensor, known: int | None) -> tuple[Tensor, Tensor]:
        """Bounds that leave the two highest of the group within the margin.

        The utilities are -w, that of the first point is zero.  Let a and b be the highest of the others.  If
        they are within t, this one may be anywhere below a + t; if not, it must be within t of a.
        """
        anywhere = torch.full_like(w[..., i], math.inf)
        others = [k for k in self.groups[i] if k != i]
        if known is not None and max(others) >= known:  # restricted when the last of the group is drawn
            return -anywhere, anywhere
        utilities = torch.cat([torch.zeros_like(w[..., :1]), -w[..., others]], -1)
        (highest, next_), margin = utilities.topk(2, -1).values.unbind(-1), self.rows.margin[..., None]
        lowest = torch.where(highest - next_ <= margin, -anywhere, highest - margin)
        return -(highest + margin), -lowest


@dataclass(frozen=True)
class _Lapses:
    """Which answers may be lapses, and whether the rows of an answer hold."""

    floor: Float[Tensor, "lane k"]
    sight: Float[Tensor, "lane k"]
    others: list[list[int]]
    """The other latent values of the same answer."""
    low: Float[Tensor, "lane k"]

    @classmethod
    def of(cls, rows: Data, low: Tensor, high: Tensor | None) -> "_Lapses | None":
        if not rows.has_lapses:
            return None
        joint = Likelihood.of(rows).joint
        assert joint is not None
        if not (rows.answer == rows.answer[0]).all():
            raise Refused("lanes", "have the same rows to each answer", "others", "Infer them one by one.")
        answer = rows.answer[0].tolist()
        others = [
            [k for k in range(len(answer)) if answer[k] == mine and k != i] for i, mine in enumerate(answer)
        ]
        return cls(joint.floor, joint.sight, others, low)

    def log_chances(self, i: int, w: Tensor, log_probability: Tensor) -> tuple[Tensor, Tensor]:
        """Log probability of value i within its bounds and of a lapse, given the other values."""
        holds = torch.ones_like(w[..., 0], dtype=torch.bool)
        if others := self.others[i]:
            holds = (w[..., others] >= self.low[:, None, others]).all(-1)
        seen = torch.where(holds, self.sight[..., i, None].log() + log_probability, -math.inf)
        return seen, self.floor[..., i, None].log().expand_as(seen)


def _differences(data: Data, undecided: Tensor) -> tuple[Data, dict[int, list[int]]]:
    """The data with only the differences to the first point of each undecided group, and these groups."""
    if not ((undecided == undecided[0]).all() and (data.answer == data.answer[0]).all()):
        raise Refused(
            "lanes", "be undecided about groups at the same rows", "others", "Infer them one by one."
        )
    kept: list[int] = []
    groups: dict[int, list[int]] = {}
    for answer in data.answer[0].unique_consecutive().tolist():
        rows = (data.answer[0] == answer).nonzero()[:, 0].tolist()
        if undecided[0, rows[0]]:
            m = round((1 + (1 + 8 * len(rows)) ** 0.5) / 2)
            group = [len(kept) + k for k in range(m - 1)]
            groups |= dict.fromkeys(group, group)
            rows = rows[: m - 1]
        kept += rows
    taken = {name: getattr(data, name)[:, kept] for name in _BY_ROW}
    return replace(data, **taken), groups


def _independent_rows(data: Data, noiseless: Tensor) -> tuple[Data, Tensor, Tensor]:
    """Independent rows, the ties among them, and the implied ties as combinations of them.

    Of ``noiseless`` ties, which are all pairs of a group, those with the group's first point are kept.
    Lanes may differ in which rows are implied; a row kept for another lane is empty.
    """
    eye = torch.eye(data.points.shape[-2], dtype=data.signs.dtype, device=data.signs.device)
    over_points = data.matvec(eye.expand(len(data.signs), -1, -1))
    later = (noiseless[..., None] & (over_points < 0)).any(-2)  # points that are not first in their group
    implied = noiseless & later.gather(-1, data.first)
    kept, left = ((~implied).any(0).nonzero()[:, 0], implied.any(0).nonzero()[:, 0])
    empty, first = implied[:, kept], data.first[:, kept]
    to_first = (noiseless & ~implied)[:, kept, None] * over_points[:, kept].clamp_max(0)  # - e of the other
    tied = implied[:, left, None] * (over_points[:, left] @ to_first.mT)
    if not torch.equal(tied @ over_points[:, kept], implied[:, left, None] * over_points[:, left]):
        expected = "be of all pairs of a group"
        raise Refused("ties without a noise of their own", expected, "others", "Use Data.ties.")
    second, noise = torch.where(empty, first, data.second[:, kept]), data.row_noise[:, kept]
    noise = torch.where(empty, 1.0, noise)
    taken = {name: getattr(data, name)[:, kept] for name in _BY_ROW}
    rows = replace(data, **(taken | {"first": first, "second": second, "row_noise": noise}))
    return rows, (rows.signs == 0) & ~empty, tied


def truncated_normal(
    bound: Float[Tensor, "*b"], uniform: Float[Tensor, "*b"], upper: Float[Tensor, "*b"] | None = None
) -> Float[Tensor, "*b"]:
    """Standard normals above ``bound``, and below ``upper`` if given, by inversion of ``uniform``."""
    if upper is None:
        near = -torch.special.ndtri(uniform * ndtr(-bound))
        far = (bound.square() - 2 * uniform.log()).sqrt()
        return torch.where(bound < _TAIL_FROM, near, far).maximum(bound)
    turned, low, high = _to_upper_tail(bound, upper)
    beyond = ndtr(-high)
    near = -torch.special.ndtri(beyond + uniform * (ndtr(-low) - beyond))
    left = torch.exp((low - high) * (low + high).clamp_min(0) / 2)
    far = (low.square() - 2 * (left + uniform * (1 - left)).log()).sqrt()
    drawn = torch.where(low < _TAIL_FROM, near, far).maximum(low).minimum(high)
    return torch.where(turned, -drawn, drawn)


def _log_probability(bound: Tensor, upper: Tensor | None) -> Tensor:
    """Log probability of a standard normal above ``bound`` and below ``upper``."""
    if upper is None:
        return log_ndtr(-bound)
    _, low, high = _to_upper_tail(bound, upper)
    above = log_ndtr(-low)
    return above + torch.log(-torch.expm1(log_ndtr(-high) - above))


def _to_upper_tail(bound: Tensor, upper: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Which intervals are mirrored, and all of them in the upper tail, where no digits are lost."""
    turned = bound + upper < 0
    return turned, torch.where(turned, -upper, bound), torch.where(turned, -bound, upper)


def _sequential_draws(latent: _Latent, chains: int, source: Generators) -> tuple[Tensor, Tensor]:
    """Draws within the bounds, one coordinate after the other, and their log weights."""
    lower = latent.lower
    lanes, n = lower.shape[:-2], lower.shape[-1]
    noise = lower.new_zeros(*lanes, chains, n)
    log_weight = lower.new_zeros(*lanes, chains)
    lapsed = noise.new_zeros(noise.shape, dtype=torch.bool)
    for i in range(n):
        centre, sd = (noise[..., :i] @ lower[..., i, :i, None])[..., 0], lower[..., i, i, None]
        w = noise if latent.tied is None and not latent.groups else noise @ lower.mT
        low, high = latent.bounds(i, w, known=i + 1)
        bound, upper = (low - centre) / sd, None if high is None else (high - centre) / sd
        log_probability = _log_probability(bound, upper)
        if latent.lapses is not None:
            first = min([i, *latent.lapses.others[i]])
            if i == first:  # a lapse is drawn with the first row of an answer
                seen = latent.lapses.sight[..., i, None].log() + log_probability
                blind = latent.lapses.floor[..., i, None].log().expand_as(seen)
                log_probability = torch.logaddexp(seen, blind)
                lapsed[..., i] = rand(source, lanes, chains, like=lower).log() < blind - log_probability
            else:
                lapsed[..., i] = lapsed[..., first]
                log_probability = log_probability.masked_fill(lapsed[..., i], 0.0)
            bound, upper = _freed(bound, upper, lapsed[..., i])
        log_weight = log_weight + log_probability
        noise[..., i] = truncated_normal(bound, rand(source, lanes, chains, like=lower), upper)
    return noise @ lower.mT, log_weight


def _box_moments(latent: _Latent, w: Tensor, sweeps: int, source: Generators) -> tuple[Tensor, ...]:
    """Mean and covariance of a normal truncated to its bounds, and the excess scale reduction."""
    lanes, n, chains = w.shape[:-2], w.shape[-1], w.shape[-2]
    burn_in = int(_BURN_IN * sweeps)
    kept = sweeps - burn_in
    total, square, outer = torch.zeros_like(w), torch.zeros_like(w), torch.zeros_like(latent.lower)
    for sweep in range(sweeps):
        w = _gibbs_sweeps(latent, w, 1, source)
        if sweep >= burn_in:
            total, square, outer = total + w, square + w.square(), outer + w.mT @ w
    each = total / kept
    mean = each.mean(-2)
    cov = outer / (kept * chains) - mean[..., :, None] * mean[..., None, :]
    within = (square / kept - each.square()).mean(-2)
    if n == 0:
        return mean, cov, mean.new_zeros(lanes)
    reduction = ((within + each.var(-2)) / within).sqrt() - 1
    return mean, cov, reduction.amax(-1)


def _gibbs_sweeps(latent: _Latent, w: Tensor, sweeps: int, source: Generators) -> Tensor:
    """The draws after Gibbs sweeps over their coordinates."""
    w, (chains, n) = w.clone(), w.shape[-2:]
    precision = latent.precision
    scale = precision.diagonal(dim1=-2, dim2=-1).rsqrt()
    for _ in range(sweeps):
        uniform = rand(source, w.shape[:-2], n, chains, like=w)
        for i in range(n):
            sd = scale[..., i, None]
            centre = w[..., i] - (w @ precision[..., :, i, None])[..., 0] * sd.square()
            low, high = latent.bounds(i, w)
            bound, upper = (low - centre) / sd, None if high is None else (high - centre) / sd
            if latent.lapses is not None:
                seen, blind = latent.lapses.log_chances(i, w, _log_probability(bound, upper))
                chance = torch.sigmoid(blind - seen)
                bound, upper = _freed(bound, upper, rand(source, w.shape[:-2], chains, like=w) < chance)
            w[..., i] = centre + sd * truncated_normal(bound, uniform[..., i, :], upper)
    return w


def _freed(bound: Tensor, upper: Tensor | None, where: Tensor) -> tuple[Tensor, Tensor | None]:
    """The bounds, but none where the answer is a lapse."""
    bound = torch.where(where, -math.inf, bound)
    return bound, None if upper is None else torch.where(where, math.inf, upper)


def _posterior_weights(latent: _Latent, mean: Tensor, cov: Tensor) -> tuple[Tensor, Tensor]:
    r""":math:`\alpha = A^\top C^{-1} \mathbb E[u]` and F of :math:`C^{-1} - C^{-1} \mathbb V[u] C^{-1}`.

    With :math:`C = L L^\top` the latter is :math:`L^{-\top} (I - L^{-1} \mathbb V[u] L^{-\top}) L^{-1}`.
    """
    lower, rows = latent.lower, latent.rows
    half = torch.linalg.solve_triangular(lower, cov, upper=False)
    inner = torch.linalg.solve_triangular(lower, half.mT, upper=False)
    reduction = root(
        torch.eye(inner.shape[-1], dtype=inner.dtype, device=inner.device) - (inner + inner.mT) / 2
    )
    factor = torch.linalg.solve_triangular(lower.mT, reduction, upper=True)
    dual = torch.cholesky_solve(mean[..., None], lower)
    y = rows.signs[..., None]
    return rows.rmatvec(y * dual)[..., 0], rows.rmatvec(y * factor)
