"""Global maximisation of a score over the unit cube, for all lanes at once.

Sobol points and warm points (the best queried points and perturbations of them) are scored; projected BFGS
improves the best local maxima among them.  In a domain, all points are settings: the ascent treats integers
as reals, its result is snapped, and steps to neighbouring integers and other choices are tried around it.
"""

import functools
import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from askwise.model import Belief, Score
from askwise.numerics import (
    Generators,
    mixed_logit,
    of_lanes,
    plain_precision,
    rand,
    randn,
    seeded_place,
    sobol,
    standardised,
)
from askwise.search.ascent import (
    VALUE_TOLERANCE,
    Scored,
    finite_scores,
    local_maxima,
    score_scale,
    with_gradient,
)
from askwise.space import LISTED, Domain, Pool

_CHUNK_POINTS = {"cpu": 2**12, "cuda": 2**18}  # points that fit the CPU cache or GPU memory
_ROUGH_POINTS = {"cpu": 2**14, "cuda": 2**18}  # the same of draws in single precision
_OF_KERNELS = {"cpu": 4, "cuda": 1}  # times as small are the chunks of several kernels
_KEPT_ENTRIES = {"cpu": 2**24, "cuda": 2**28}  # of correlations between candidates and data
_DISTANCE_ROWS = 2**10  # of a distance matrix computed at once
_WARM_POINTS, _PERTURBATION = 32, 0.05  # the best queried points, and perturbations of them
_CANDIDATES = 128  # Sobol points per dimension plus one
_STARTS, _GROUP_STARTS = 4, 8  # per dimension, the first two of which count twice; and groups
_DRAW_STARTS = 4  # per dimension; draws have more candidates
_LOW_DIMENSION, _DRAW_FACTORS = 3, (8, 16)  # more Sobol points for draws, in low and in high dimension
# with many dimensions maxima are on faces: a point in five has a given coordinate there, and half of them do
_STRETCH, _STRETCHED = 1.25, 2**13
_WARM_STARTS = 2
_LATER_STARTS = 2  # for a mean that was searched before the last answer; as good as all on 114 beliefs
_RANKED = 64  # times as many as starts are the highest points, among which local maxima are looked for
_DUPLICATE_DISTANCE = 1e-6  # points closer than this in every coordinate are duplicates
_FEASIBLE_TRIES = 64  # random points, of which the first feasible one is taken
_OVERSAMPLING = 8  # Sobol points drawn per feasible one
_VALUES = 16  # of the other parameters, tried with each item of a small pool
_ITEMS = 8  # best items from which an ascent in the other parameters starts
_DISCRETE_ROUNDS = 4  # of steps in discrete parameters, each followed by an ascent in the real ones


@dataclass(frozen=True)
class Search:
    """Lanes, random source, warm points and domain of a search; rules may draw from ``source``."""

    lanes: torch.Size
    source: Generators
    warm: Float[Tensor, "*lane w d"]  # points that may be good starts; at least one per lane
    domain: Domain | None = None  # the settings among the points of the cube; None if all are
    # results of `champion` and `likeliest`, shared by rules and the loop
    cache: dict[tuple[str, int], tuple[Belief, Tensor]] = field(default_factory=dict, init=False, repr=False)
    # correlations of the candidates with the points of a belief, by prior and points
    _correlations: dict[tuple[int, int], tuple[object, Tensor, list[Tensor]]] = field(
        default_factory=dict, init=False, repr=False
    )

    def __post_init__(self) -> None:
        """Snap the warm points to the domain; queried points may lie outside the cube."""
        if self.domain is not None:
            object.__setattr__(self, "domain", self.domain.on(self.warm.device))
        object.__setattr__(self, "warm", self.snapped(self.warm))

    @classmethod
    def around(cls, belief: Belief, source: Generators, domain: Domain | None = None) -> "Search":
        """A search that also starts from the best queried points."""
        data, points = belief.data, belief.data.points
        lanes, d = data.lanes, points.shape[-1]
        if data.n == 0:
            return cls(lanes, source, points.new_full((*lanes, 1, d), 0.5), domain)
        # by row, not by point: lanes with fewer distinct points are padded with copies
        members = torch.cat([data.first, torch.where(data.second < 0, data.first, data.second)], -1)
        with torch.no_grad():
            means = belief.mean(points).gather(-1, members)
        best = members.gather(-1, means.topk(min(_WARM_POINTS, means.shape[-1]), -1).indices)[..., None]
        good = points.gather(-2, best.expand(*best.shape[:-1], d))
        near = good + _PERTURBATION * randn(source, lanes, good.shape[-2], d, like=points)
        return cls(lanes, source, torch.cat([good, near.clamp(0, 1)], -2), domain)

    def beside(self, source: Generators) -> "Search":
        """Another search about the same belief, which draws from ``source``; what one finds both know."""
        if (perturbed := self.warm.shape[-2] // 2) > 0:  # as many numbers as :meth:`around` draws
            randn(source, self.lanes, perturbed, self.warm.shape[-1], like=self.warm)
        other = Search(self.lanes, source, self.warm, self.domain)
        object.__setattr__(other, "cache", self.cache)
        object.__setattr__(other, "_correlations", self._correlations)
        return other

    def champion(self, belief: Belief) -> Float[Tensor, "*lane 1 d"]:
        """The point of highest posterior mean."""
        return self._cached("champion", belief, lambda: belief.predictive.mean_only().score())

    def champion_after(self, later: Belief, before: Belief) -> Float[Tensor, "*lane 1 d"]:
        """The point of highest mean, given one answer more than before: by fewer ascents, of known scores."""
        score = later.predictive.after(before.predictive).mean_only().score()
        with _without_autograd(score):
            found = self._best_point(score, (), _LATER_STARTS)
        return found.clone()

    def likeliest(self, belief: Belief) -> Float[Tensor, "*lane 1 d"]:
        """The point of highest success probability."""
        return self._cached(
            "likeliest", belief, lambda: belief.predictive.score(standardised, mixed=mixed_logit)
        )

    def _cached(self, what: str, belief: Belief, score: Callable[[], Scored]) -> Float[Tensor, "*lane 1 d"]:
        if (what, id(belief)) not in self.cache:
            self.cache[what, id(belief)] = belief, self.argmax(score())
        return self.cache[what, id(belief)][1]

    def argmax(
        self,
        score: Scored,
        q: int = 1,
        *,
        draws: int | None = None,
        extra: Float[Tensor, "k *lane q d"] | None = None,
    ) -> Float[Tensor, "*c q d"]:
        """The ``q`` points of highest score, [*lane, q, d].

        With ``q = 1`` the score maps points [*lane, k, d] to [*lane, k].  With more it maps groups
        [k, *lane, q, d] to [k, *lane], and ``extra`` are groups to start from.  With ``draws`` each lane has
        this number of scores, searched separately: [draws, *lane, k, d] to [draws, *lane, k].
        A non-finite score is never chosen if there is a finite one.
        """
        with _without_autograd(score):
            if q > 1:
                found = self._best_group(score, q, extra)
            else:
                found = self._best_point(score, () if draws is None else (draws,))
        return found.clone()

    def local_maximum(
        self, score: Scored, groups: Float[Tensor, "k *lane q d"], scale: Float[Tensor, "*lane 1"]
    ) -> Float[Tensor, "*lane q d"]:
        """The best group reached by an ascent from these; ``scale``: that of the scores."""
        with torch.no_grad():
            return self._best_from(score, groups, scale)

    def select(self, lanes: Int[Tensor, " k"]) -> "Search":
        """The search for some of the lanes."""
        return Search(lanes.shape, of_lanes(self.source, lanes), self.warm[lanes], self.domain)

    def snapped(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        """The points moved to settings of the domain."""
        return x.clamp(0, 1) if self.domain is None else self.domain.snapped(x)

    def space_filling(self, count: int) -> Float[Tensor, "*lane k d"]:
        """Sobol points, snapped to settings."""
        if self.domain is None:
            points = _sobol_points(count, self.warm.shape[-1], self.warm.device)
        else:
            points = _sobol_settings(count, self.domain)
        return points.expand(*self.lanes, -1, -1)

    def faces(self, count: int) -> Float[Tensor, "*lane k d"]:
        """Settings, most of them on the faces of the cube."""
        inside = self.space_filling(count)
        # stretched to twice the size of the cube, points are clamped to its faces
        return self._snapped_except_choices((2 * inside - 0.5).clamp(0, 1), inside)

    def corners(self) -> Float[Tensor, "*lane k d"]:
        """Corners of the cube, at most 64 of them, or settings close to them."""
        d = self.warm.shape[-1]
        number = torch.arange(2 ** min(d, 6), device=self.warm.device)[:, None]
        points = (number >> torch.arange(d, device=self.warm.device) % 6) & 1
        points = points.to(self.warm.dtype).expand(*self.lanes, -1, -1)
        return self._snapped_except_choices(points, self.space_filling(len(number)))

    def random(self, count: int) -> Float[Tensor, "*lane k d"]:
        """Settings drawn uniformly and independently."""
        d = self.warm.shape[-1]
        if self.domain is None:
            return rand(self.source, self.lanes, count, d, like=self.warm)
        tries = _FEASIBLE_TRIES if self.domain.constrained else 1
        return self.domain.uniform(rand(self.source, self.lanes, count, tries, d, like=self.warm))

    @property
    def _dimensions(self) -> int:
        """Number of parameters to choose."""
        return self.warm.shape[-1] if self.domain is None else self.domain.dimensions

    @property
    def _all_are_scored(self) -> bool:
        """Whether the candidates are all settings there are, as in a domain of items alone."""
        return self.domain is not None and bool(self.domain.free_pools) and self.domain.listed is not None

    def _snapped_except_choices(self, points: Tensor, others: Tensor) -> Tensor:
        """Settings near these points, but with the choices of ``others``, since several tie at a corner."""
        if self.domain is None:
            return points
        return self.domain.snapped(torch.where(self.domain.one_hot, others, points))

    def _best_point(self, score: Scored, draws: tuple[int, ...], starts: int | None = None) -> Tensor:
        d, dimensions = self.warm.shape[-1], self._dimensions
        # a draw of f has many more local maxima than posterior moments, especially in high dimension
        high = dimensions > _LOW_DIMENSION
        factor = _DRAW_FACTORS[high] if draws else 1
        shape, count = (*draws, *self.lanes), factor * _CANDIDATES * (1 + dimensions)
        if self.domain is None:
            if draws and high:
                fixed, neighbours = _sobol(max(_STRETCHED, count // 2), d, self.warm.device, _STRETCH)
            else:
                fixed, neighbours = _sobol(count, d, self.warm.device)
        else:
            fixed, neighbours = _distinct_settings(count, self.domain)
        sobol, warm = fixed.expand(*shape, -1, -1), self.warm.expand(*shape, -1, -1)
        x = torch.cat([sobol, warm], -2)
        if isinstance(score, Score) and score.in_closed_form:
            values = self._candidate_scores(score, x)
        else:
            ranked = getattr(score, "roughly", score)
            room = (_CHUNK_POINTS if ranked is score else _ROUGH_POINTS)[x.device.type]
            values = torch.cat([_in_chunks(ranked, part, -2, room) for part in (sobol, warm)], -1)
        values = finite_scores(values)
        usual = _DRAW_STARTS * dimensions if draws else _STARTS * (dimensions + min(2, dimensions))
        starts = starts or usual
        # draws of f have no ties
        first = None if draws else seeded_place(self.source, self.lanes, len(fixed), x.device)
        start_points = _start_indices(values, neighbours, min(starts, len(fixed)), first)
        start = x.gather(-2, start_points[..., None].expand(*shape, -1, d))
        scale = score_scale(values)
        best, value = self._best_reached(score, start[..., None, :], scale)
        return self._discrete_steps(score, best, value, scale)[..., 0, :, :]

    @plain_precision()
    def _candidate_scores(self, score: Score, x: Float[Tensor, "*lane k d"]) -> Float[Tensor, "*lane k"]:
        """Scores that rank where a search may start; correlations of these points with the data are kept.

        In single precision, unless no ascent from the best of them follows.

        A challenger's search then takes a tenth less.
        """
        predictive = score.predictive
        points = predictive.points if predictive.observed is None else predictive.observed
        parts = x.split(_chunk_size(score, x, -2), -2)
        dtype = x.dtype if self._all_are_scored else torch.float32
        key = id(predictive.prior), id(points)
        if key not in self._correlations:
            if score.kernels * x[..., 0].numel() * points.shape[-2] > _KEPT_ENTRIES[x.device.type]:
                scores = [score.from_correlation(part, score.correlation(part, dtype)) for part in parts]
                return torch.cat(scores, -1)
            kept = [score.correlation(part, dtype) for part in parts]
            self._correlations[key] = predictive.prior, points, kept
        known = self._correlations[key][2]
        each = zip(parts, known, strict=True)
        return torch.cat([score.from_correlation(part, correlation) for part, correlation in each], -1)

    def _best_group(self, score: Scored, q: int, extra: Tensor | None) -> Tensor:
        d = self.warm.shape[-1]
        fixed, _ = _sobol(_CANDIDATES * (1 + self._dimensions) // q, q * d, self.warm.device)
        groups = fixed.view(-1, *[1] * len(self.lanes), q, d)
        groups = groups if self.domain is None else self.snapped(self.domain.dealt(groups))
        x = groups.expand(-1, *self.lanes, -1, -1)
        values = finite_scores(_in_chunks(score, x, 0).movedim(0, -1))
        best = values.topk(min(_GROUP_STARTS, len(fixed)), -1).indices.movedim(-1, 0)
        start = x.gather(0, best[..., None, None].expand(*best.shape, q, d))
        if extra is not None:
            start = torch.cat([start, extra])
        return self._best_from(score, start, score_scale(values))

    def _best_from(self, score: Scored, groups: Tensor, scale: Tensor) -> Tensor:
        lanes = len(self.lanes)
        by_lane = _ByLane(score, lanes)
        return self._best_reached(by_lane, groups.movedim(0, lanes), scale)[0].squeeze(lanes)

    def _best_reached(
        self, score: Scored, start: Float[Tensor, "*c s q d"], scale: Tensor, free: Tensor | None = None
    ) -> tuple[Float[Tensor, "*c 1 q d"], Float[Tensor, "*c 1"]]:
        """The best result of an ascent, and its score; in a domain the best of starts and snapped results."""
        if self.domain is None:
            found, negative = local_maxima(score, start, scale)
            return _lowest(found, negative), -scale * negative.amin(-1, keepdim=True)
        free, options = self.domain.climbs if free is None else free, start
        if free.any():
            found, _ = local_maxima(score, start, scale, self.domain, free)
            options = torch.cat([start, self.snapped(found)], -3)
        values = finite_scores(score(options if start.shape[-2] > 1 else options[..., 0, :]))
        return _lowest(options, -values), values.amax(-1, keepdim=True)

    def _discrete_steps(
        self, score: Scored, best: Float[Tensor, "*c 1 1 d"], value: Tensor, scale: Float[Tensor, "*c 1"]
    ) -> Float[Tensor, "*c 1 1 d"]:
        """The best setting after steps in the discrete parameters, while they improve the score."""
        if self.domain is None or self._all_are_scored:
            return best
        running = torch.ones_like(value, dtype=torch.bool)
        for _ in range(_DISCRETE_ROUNDS):
            around = self.snapped(self.domain.neighbours(best[..., 0, 0, :]))
            for pool in self.domain.free_pools:
                around = torch.cat([around, self._best_items(score, best[..., 0, :, :], pool)], -2)
            options = torch.cat([best, around[..., None, :]], -3)
            found, reached = self._best_reached(score, options, scale, ~self.domain.stays)
            better = running & (reached > value)
            running = running & (reached > value + VALUE_TOLERANCE * scale)
            best = torch.where(better[..., None, None], found, best)
            value = torch.where(better, reached, value)
            if not running.any():
                break
        return best

    def _best_items(self, score: Scored, x: Float[Tensor, "*c 1 d"], pool: Pool) -> Float[Tensor, "*c k d"]:
        """The settings of highest score that differ from this one in the item."""
        rows, (*shape, _, d) = pool.rows, x.shape
        every = x.expand(*shape, len(rows), d).clone()
        every[..., pool.first : pool.end] = rows
        values = finite_scores(_in_chunks(score, every, -2))
        best = values.topk(min(_ITEMS, len(rows)), -1).indices
        return every.gather(-2, best[..., None].expand(*best.shape, d))


@dataclass(frozen=True)
class _ByLane:
    """A score of groups [k, *lane, q, d] as one of [*lane, k, q, d]."""

    score: Scored
    lanes: int

    def __call__(self, x: Tensor) -> Tensor:
        return self.score(x.movedim(self.lanes, 0)).movedim(0, self.lanes)

    def with_gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        value, grad = with_gradient(self.score, x.movedim(self.lanes, 0))
        return value.movedim(0, self.lanes), grad.movedim(0, self.lanes)


def coincide(
    some: Float[Tensor, "*lane k d"], others: Float[Tensor, "*lane j d"]
) -> Bool[Tensor, "*lane k j"]:
    """Which points are duplicates of which others."""
    return ((some[..., :, None, :] - others[..., None, :, :]).abs() < _DUPLICATE_DISTANCE).all(-1)


def _without_autograd(score: Scored) -> AbstractContextManager[None]:
    """Inference mode, which saves a tenth of a study's search, where a score needs no autograd."""
    return torch.inference_mode() if getattr(score, "in_closed_form", False) else torch.no_grad()


def _in_chunks(score: Scored, x: Tensor, dim: int, room: int | None = None) -> Tensor:
    """Scores of all candidates, in chunks that fit the cache or memory."""
    parts = x.split(_chunk_size(score, x, dim, room), dim)
    return torch.cat([score(chunk) for chunk in parts], -1 if dim == -2 else 0)


def _chunk_size(score: Scored, x: Tensor, dim: int, room: int | None = None) -> int:
    """Size in this dimension of chunks of candidates that fit the cache or memory, with so many points."""
    room = room or _CHUNK_POINTS[x.device.type]
    if isinstance(score, Score) and score.kernels > 1:
        room = max(1, room // (_OF_KERNELS[x.device.type] * score.kernels))
    chunks = math.ceil(max(1, math.prod(x.shape[:-1])) / room)
    return max(1, math.ceil(x.shape[dim] / chunks))


def _start_indices(
    values: Float[Tensor, "*c k"], neighbours: Tensor, count: int, first: Int[Tensor, "*lane"] | None
) -> Int[Tensor, "*c s"]:
    """Indices of the best local maxima among the Sobol points, and of the best warm points.

    Of equal scores, as far from all answers, those from ``first`` on come first, on every device: if it were
    always the same point, all runs would look for a narrow peak in the same places.
    """
    fixed, near = neighbours.shape
    sobol, warm = values[..., :fixed], values[..., fixed:]
    ranked = min(_RANKED * count, fixed)  # of draws, an eighth of thousands
    stable = first is not None
    if first is None:
        top, index = _highest(sobol, ranked, stable)
    else:
        order = (torch.arange(fixed, device=sobol.device) + first[..., None]) % fixed
        top, place = _highest(sobol.gather(-1, order), ranked, stable)
        index = order.gather(-1, place)
    around = sobol.gather(-1, neighbours[index].flatten(-2)).view(*index.shape, near)  # items have none
    is_maximum = (top[..., None] >= around).all(-1)
    # if there are too few local maxima, the next best points follow
    penalty = 2 * (sobol.amax(-1, keepdim=True) - sobol.amin(-1, keepdim=True))
    best = index.gather(-1, _highest(torch.where(is_maximum, top, top - penalty), count, stable)[1])
    best_warm = warm.topk(min(_WARM_STARTS, warm.shape[-1]), -1).indices
    return torch.cat([best, best_warm + fixed], -1)


def _highest(values: Tensor, count: int, stable: bool) -> tuple[Tensor, Tensor]:
    """The highest values and their places; of equal ones the first, if it is to be stable."""
    if not stable:
        return values.topk(count, -1)
    found, place = torch.sort(values, dim=-1, descending=True, stable=True)
    return found[..., :count], place[..., :count]


def _lowest(found: Float[Tensor, "*c s q d"], value: Float[Tensor, "*c s"]) -> Float[Tensor, "*c 1 q d"]:
    """The group of lowest value."""
    *shape, _, q, d = found.shape
    return found.gather(-3, value.argmin(-1)[..., None, None, None].expand(*shape, 1, q, d))


@functools.lru_cache(maxsize=32)
@torch.inference_mode(False)  # others may need gradients
def _sobol(
    count: int, d: int, device: torch.device, stretch: float = 1.0
) -> tuple[Float[Tensor, "s d"], Int[Tensor, "s k"]]:
    """Scrambled Sobol points with a fixed seed, and their nearest neighbours.

    Those of a cube that is stretched to this size are clamped to the faces.
    """
    points = _sobol_points(count, d, device)
    if stretch != 1:
        points = (stretch * (points - 0.5) + 0.5).clamp(0, 1)
    return points, _nearest_neighbours(points.cpu(), 2 * d + 4).to(device)


@functools.lru_cache(maxsize=32)
@torch.inference_mode(False)
def _sobol_points(count: int, d: int, device: torch.device) -> Float[Tensor, "s d"]:
    return sobol(d, count).to(device)


@functools.lru_cache(maxsize=32)
@torch.inference_mode(False)
def _sobol_settings(count: int, domain: Domain) -> Float[Tensor, "s d"]:
    """Sobol points snapped to settings, feasible points first."""
    drawn = _OVERSAMPLING * count if domain.constrained else count
    points = domain.rounded(domain.dealt(sobol(domain.d, drawn).to(domain.low.device)))
    feasible = domain.feasible(points)
    return domain.snapped(torch.cat([points[feasible], points[~feasible]])[:count])


@functools.lru_cache(maxsize=32)
@torch.inference_mode(False)
def _distinct_settings(count: int, domain: Domain) -> tuple[Float[Tensor, "s d"], Int[Tensor, "s k"]]:
    """All settings if there are at most ``count``, else Sobol ones; and their nearest neighbours.

    Of items, all are there whatever their number, without neighbours: the best of them are where to start.
    """
    if domain.free_pools:
        items = max(len(pool.rows) for pool in domain.free_pools)
        count = max(count, items, min(_VALUES * items, LISTED))
        points = _sobol_settings(count, domain).unique(dim=0) if domain.listed is None else domain.listed
        return points, torch.empty(len(points), 0, dtype=torch.long, device=points.device)
    points = domain.settings(count)
    if points is None:
        points = _sobol_settings(count, domain).unique(dim=0)
    return points, _nearest_neighbours(points, 2 * domain.d + 4)


def _nearest_neighbours(points: Float[Tensor, "s d"], count: int) -> Int[Tensor, "s k"]:
    """Nearest-neighbour indices, self excluded."""
    count = min(count, len(points))
    chunks = points.split(_DISTANCE_ROWS)  # the whole distance matrix may not fit memory
    near = [torch.cdist(chunk, points).topk(count, largest=False).indices for chunk in chunks]
    return torch.cat(near)[:, 1:]
