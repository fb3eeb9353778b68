"""The best points of the unit cube by a score, for all lanes at once.

Sobol points and warm candidates (what was asked about, and its surroundings) are scored; the best
local maxima among them are then climbed together by projected BFGS.  A study is one lane of it.
Where not every point is a setting, all of this is done among settings: slopes lead along real
parameters, and along whole numbers as if they were real; then what was found is snapped, and steps of
whole numbers and other values of choices are tried around it.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int
from torch import Tensor

from askwise.belief import Belief
from askwise.climb import GAIN, Scored, finalists, ranked, unit_of
from askwise.climb import Sloped as Sloped
from askwise.climb import with_slope as with_slope
from askwise.domain import Domain
from askwise.normal import standardised
from askwise.seeds import Generators, rand, randn

__all__ = ["Search", "Sloped", "with_slope"]

_POINTS_AT_ONCE = {"cpu": 2**12, "cuda": 2**16}  # more do not fit the cache, or the memory
_ROWS_AT_ONCE = 2**10  # of a matrix of distances
_WARM, _NEAR = 32, 0.05  # warm points: so many of the best asked about, and some so far from them
_CANDIDATES, _STARTS = 128, 8  # Sobol points and starts, for each dimension (and one more)
_EASY, _FOR_DRAWS = 3, (8, 16)  # times as many Sobol points for draws, up to so many dimensions and beyond
_WARM_STARTS = 2
_TRIES = 64  # random points of which the first that satisfies the constraints is taken
_MORE = 8  # Sobol points drawn for each that must satisfy the constraints
_ROUNDS = 4  # of steps in discrete parameters, each followed by a climb in the real ones


@dataclass(frozen=True)
class Search:
    """Where to look; ``source`` also serves rules that draw at random."""

    lanes: torch.Size
    source: Generators
    warm: Float[Tensor, "*lane w d"]
    """Points that may be good starts; at least one a lane."""
    domain: Domain | None = None
    """Which points are settings; if None, all are."""
    found: "dict[tuple[str, int], tuple[Belief, Tensor]]" = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """Points that were looked for before, and what was believed then: rules and their judges share them."""

    def __post_init__(self) -> None:
        """Start from settings."""
        if self.domain is not None:
            object.__setattr__(self, "domain", self.domain.on(self.warm.device))
            object.__setattr__(self, "warm", self.settings(self.warm))

    @classmethod
    def around(cls, belief: Belief, source: Generators, domain: Domain | None = None) -> "Search":
        """A search that knows the best of what has been asked about."""
        data, points = belief.data, belief.data.points
        lanes, d = data.lanes, points.shape[-1]
        if data.n == 0:
            return cls(lanes, source, points.new_full((*lanes, 1, d), 0.5), domain)
        # by answer, not by point: a lane with fewer distinct points than another is filled up with copies
        members = torch.cat([data.first, torch.where(data.second < 0, data.first, data.second)], -1)
        with torch.no_grad():
            means = belief.mean(points).gather(-1, members)
        best = members.gather(-1, means.topk(min(_WARM, means.shape[-1]), -1).indices)[..., None]
        good = points.gather(-2, best.expand(*best.shape[:-1], d))
        near = good + _NEAR * randn(source, lanes, good.shape[-2], d, like=points)
        return cls(lanes, source, torch.cat([good, near.clamp(0, 1)], -2), domain)

    def champion(self, belief: Belief) -> Float[Tensor, "*lane 1 d"]:
        """The point of highest posterior mean."""
        return self._once("champion", belief, lambda: belief.view.mean_only().score())

    def likeliest(self, belief: Belief) -> Float[Tensor, "*lane 1 d"]:
        """The point with the highest chance of a yes."""
        return self._once("likeliest", belief, lambda: belief.view.score(standardised))

    def _once(self, what: str, belief: Belief, score: Callable[[], Scored]) -> Float[Tensor, "*lane 1 d"]:
        if (what, id(belief)) not in self.found:
            self.found[what, id(belief)] = belief, self.argmax(score())
        return self.found[what, id(belief)][1]

    def argmax(
        self,
        score: Scored,
        q: int = 1,
        *,
        draws: int | None = None,
        extra: Float[Tensor, "k *lane q d"] | None = None,
    ) -> Float[Tensor, "*c q d"]:
        """The ``q`` points of highest score, [*lane, q, d].

        With ``q = 1`` the score is of points, [*lane, k, d] to [*lane, k].  With more it is of groups,
        [k, *lane, q, d] to [k, *lane], and ``extra`` are groups to start from.  With ``draws`` there is
        one search for each of so many scores of a lane: [draws, *lane, k, d] to [draws, *lane, k].
        A score that is not finite is never chosen if another is.
        """
        with torch.no_grad():
            if q > 1:
                return self._best_group(score, q, extra)
            return self._best_point(score, () if draws is None else (draws,))

    def climbed(self, score: Scored, groups: Float[Tensor, "k *lane q d"]) -> Float[Tensor, "*lane q d"]:
        """The best group that can be reached from these."""
        with torch.no_grad():
            unit = unit_of(ranked(score(groups).movedim(0, -1)))
            return self._best_from(score, groups, unit)

    def select(self, lanes: Int[Tensor, " k"]) -> "Search":
        """The search for some of the lanes."""
        source = self.source
        if not isinstance(source, torch.Generator):
            source = [source[lane] for lane in lanes.tolist()]
        return Search(lanes.shape, source, self.warm[lanes], self.domain)

    def settings(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        """Settings near these points, which are the points themselves if every point is one."""
        return x if self.domain is None else self.domain.snapped(x)

    def spread(self, count: int) -> Float[Tensor, "*lane k d"]:
        """So many settings spread over the cube."""
        if self.domain is None:
            points, _ = _sobol(count, self.warm.shape[-1], self.warm.device)
        else:
            points = _spread_settings(count, self.domain)
        return points.expand(*self.lanes, -1, -1)

    def faces(self, count: int) -> Float[Tensor, "*lane k d"]:
        """So many settings, most of them on the faces of the cube."""
        spread = self.spread(count)
        # stretched to twice the size of the cube, points land on its faces
        return self._on_settings((2 * spread - 0.5).clamp(0, 1), spread)

    def corners(self) -> Float[Tensor, "*lane k d"]:
        """Corners of the cube, at most 64 of them, or settings close to them."""
        d = self.warm.shape[-1]
        number = torch.arange(2 ** min(d, 6), device=self.warm.device)[:, None]
        points = (number >> torch.arange(d, device=self.warm.device) % 6) & 1
        points = points.to(self.warm.dtype).expand(*self.lanes, -1, -1)
        return points if self.domain is None else self._on_settings(points, self.spread(len(number)))

    def random(self, count: int) -> Float[Tensor, "*lane k d"]:
        """So many settings drawn uniformly and independently."""
        d = self.warm.shape[-1]
        if self.domain is None:
            return rand(self.source, self.lanes, count, d, like=self.warm)
        tries = _TRIES if self.domain.constrained else 1
        return self.domain.uniform(rand(self.source, self.lanes, count, tries, d, like=self.warm))

    @property
    def candidates(self) -> int:
        """How many Sobol points are scored."""
        return _CANDIDATES * (1 + self._dimensions)

    @property
    def _dimensions(self) -> int:
        """Number of parameters to choose."""
        return self.warm.shape[-1] if self.domain is None else self.domain.dimensions

    def _on_settings(self, points: Tensor, spread: Tensor) -> Tensor:
        """Settings near these points, with the choices of others: those of a corner are ties."""
        if self.domain is None:
            return points
        return self.domain.snapped(torch.where(self.domain.of_choice, spread, points))

    def _best_point(self, score: Scored, draws: tuple[int, ...]) -> Tensor:
        d, dimensions = self.warm.shape[-1], self._dimensions
        # a draw of f has many more maxima than what is believed of f, the more so in more dimensions
        more = _FOR_DRAWS[dimensions > _EASY] if draws else 1
        shape, count = (*draws, *self.lanes), more * self.candidates
        if self.domain is None:
            fixed, neighbours = _sobol(count, d, self.warm.device)
        else:
            fixed, neighbours = _distinct_settings(count, self.domain)
        spread, warm = fixed.expand(*shape, -1, -1), self.warm.expand(*shape, -1, -1)
        values = ranked(torch.cat([_in_parts(score, spread, -2), _in_parts(score, warm, -2)], -1))
        x = torch.cat([spread, warm], -2)
        starts = min(_STARTS * dimensions, len(fixed))
        start = x.gather(-2, _starts(values, neighbours, starts)[..., None].expand(*shape, -1, d))
        unit = unit_of(values)
        if self.domain is None:
            return _best(*finalists(score, start[..., None, :], unit))[..., 0, :, :]
        best, value = self._settled(score, start[..., None, :], unit, self.domain.climbs)
        return self._stepped(score, best, value, unit)[..., 0, :, :]

    def _best_group(self, score: Scored, q: int, extra: Tensor | None) -> Tensor:
        d = self.warm.shape[-1]
        fixed, _ = _sobol(self.candidates // q, q * d, self.warm.device)
        x = self.settings(fixed.view(-1, *[1] * len(self.lanes), q, d)).expand(-1, *self.lanes, -1, -1)
        values = ranked(_in_parts(score, x, 0).movedim(0, -1))
        best = values.topk(min(_STARTS, len(fixed)), -1).indices.movedim(-1, 0)
        start = x.gather(0, best[..., None, None].expand(*best.shape, q, d))
        if extra is not None:
            start = torch.cat([start, extra])
        return self._best_from(score, start, unit_of(values))

    def _best_from(self, score: Scored, groups: Tensor, unit: Tensor) -> Tensor:
        lanes = len(self.lanes)

        def by_lane(x: Tensor) -> Tensor:
            return score(x.movedim(lanes, 0)).movedim(0, lanes)

        start = groups.movedim(0, lanes)
        if self.domain is None:
            return _best(*finalists(by_lane, start, unit)).squeeze(lanes)
        return self._settled(by_lane, start, unit, self.domain.climbs)[0].squeeze(lanes)

    def _settled(
        self, score: Scored, start: Float[Tensor, "*c s q d"], unit: Float[Tensor, "*c 1"], free: Tensor
    ) -> tuple[Float[Tensor, "*c 1 q d"], Float[Tensor, "*c 1"]]:
        """The best setting (or group) that can be reached, and its score; no worse than the best start."""
        options = start
        if free.any():
            found, _ = finalists(score, start, unit, self.domain, free)
            options = torch.cat([start, self.settings(found)], -3)
        values = ranked(score(options if start.shape[-2] > 1 else options[..., 0, :]))
        return _best(options, -values), values.amax(-1, keepdim=True)

    def _stepped(
        self,
        score: Scored,
        best: Float[Tensor, "*c 1 1 d"],
        value: Float[Tensor, "*c 1"],
        unit: Float[Tensor, "*c 1"],
    ) -> Float[Tensor, "*c 1 1 d"]:
        """The best setting after steps in discrete parameters, as long as they help."""
        assert self.domain is not None
        going = torch.ones_like(value, dtype=torch.bool)
        for _ in range(_ROUNDS):
            around = self.settings(self.domain.neighbours(best[..., 0, 0, :]))
            options = torch.cat([best, around[..., None, :]], -3)
            found, reached = self._settled(score, options, unit, ~self.domain.stays)
            better = going & (reached > value)
            going = going & (reached > value + GAIN * unit)
            best = torch.where(better[..., None, None], found, best)
            value = torch.where(better, reached, value)
            if not going.any():
                break
        return best


def _in_parts(score: Scored, x: Tensor, dim: int) -> Tensor:
    """Scores of all candidates, as many at once as fit the memory."""
    parts = math.ceil(max(1, math.prod(x.shape[:-1])) / _POINTS_AT_ONCE[x.device.type])
    size = max(1, math.ceil(x.shape[dim] / parts))
    return torch.cat([score(part) for part in x.split(size, dim)], -1 if dim == -2 else 0)


def _starts(values: Tensor, neighbours: Tensor, count: int) -> Int[Tensor, "*c s"]:
    """Indices of the best local maxima among the Sobol points, and of the best warm ones."""
    fixed = len(neighbours)
    sobol, warm = values[..., :fixed], values[..., fixed:]
    top = (sobol[..., None] >= sobol[..., neighbours]).all(-1)
    # where there are too few local maxima the next best points fill up
    reach = 2 * (sobol.amax(-1, keepdim=True) - sobol.amin(-1, keepdim=True))
    best = torch.where(top, sobol, sobol - reach).topk(count, -1).indices
    best_warm = warm.topk(min(_WARM_STARTS, warm.shape[-1]), -1).indices
    return torch.cat([best, best_warm + fixed], -1)


def _best(found: Float[Tensor, "*c s q d"], value: Float[Tensor, "*c s"]) -> Float[Tensor, "*c 1 q d"]:
    """That of lowest value."""
    *shape, _, q, d = found.shape
    return found.gather(-3, value.argmin(-1)[..., None, None, None].expand(*shape, 1, q, d))


@functools.lru_cache(maxsize=32)
def _sobol(count: int, d: int, device: torch.device) -> tuple[Float[Tensor, "s d"], Int[Tensor, "s k"]]:
    """Scrambled Sobol points, the same for everyone, and the nearest others of each."""
    points = torch.quasirandom.SobolEngine(d, scramble=True, seed=0).draw(count, dtype=torch.float64)
    return points.to(device), _nearest(points, 2 * d + 4).to(device)


@functools.lru_cache(maxsize=32)
def _spread_settings(count: int, domain: Domain) -> Float[Tensor, "s d"]:
    """So many settings spread over the cube, as many of them inside the constraints as can be had."""
    many = _MORE * count if domain.constrained else count
    engine = torch.quasirandom.SobolEngine(domain.d, scramble=True, seed=0)
    points = domain.rounded(engine.draw(many, dtype=torch.float64).to(domain.low.device))
    inside = domain.feasible(points)
    return domain.snapped(torch.cat([points[inside], points[~inside]])[:count])


@functools.lru_cache(maxsize=32)
def _distinct_settings(count: int, domain: Domain) -> tuple[Float[Tensor, "s d"], Int[Tensor, "s k"]]:
    """All settings if they are so few, else many of them; and the nearest others of each."""
    points = domain.settings(count)
    if points is None:
        points = _spread_settings(count, domain).unique(dim=0)
    return points, _nearest(points, 2 * domain.d + 4)


def _nearest(points: Float[Tensor, "s d"], count: int) -> Int[Tensor, "s k"]:
    """Which so many points are nearest to each, but for the first, which is the point itself."""
    count = min(count, len(points))
    parts = points.split(_ROWS_AT_ONCE)  # all distances at once may not fit the memory
    near = [torch.cdist(part, points).topk(count, largest=False).indices for part in parts]
    return torch.cat(near)[:, 1:]
