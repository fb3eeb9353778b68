"""Which points of the unit cube are settings: steps, one-hot choices, linear constraints, context.

Constraints are linear in natural units, in which they are checked.  The search works with *shares*: natural
values rescaled to [0, 1], in which the constraints are linear, too.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from askwise.space.pool import Pool

_EQUAL_CELLS = 2**20  # with more steps than this it does not matter how the interval is divided
_HALVINGS, _PROJECTIONS = 40, 50
_TOLERANCE = 1e-9  # of a constraint, relative to the size of its terms
_VAST = 1e7
_AIM = 1e-12  # tighter than the tolerance, so that another summation order does not leave the feasible set
_STALLED = 1e-14  # relative change of a value below which a projection has stalled
LISTED = 100_000
"""Combinations of discrete values among which settings are looked for one by one."""
_TIGHTENINGS = 20
_SAMPLE = 512  # points whose nearest settings are counted
_APART = 1e-7  # in the unit cube: settings closer than this count as one


@dataclass(frozen=True, eq=False)
class Scale:
    """Maps places between 0 and 1 to natural values, and back."""

    low: Float[Tensor, "*c"]
    high: Float[Tensor, "*c"]
    """Natural bounds; 0 and 1 for one-hot coordinates."""
    log: Bool[Tensor, "*c"]
    """Whether the scale is logarithmic."""
    step: Float[Tensor, "*c"]
    """Natural distance between neighbouring values; zero where every value is allowed."""

    @functools.cached_property
    def stepped(self) -> Bool[Tensor, "*c"]:
        """Coordinates with steps."""
        return self.step > 0

    @functools.cached_property
    def _grid(self) -> Float[Tensor, "*c"]:
        """The step, or one where there is none."""
        return torch.where(self.stepped, self.step, 1.0)

    def on_grid(self, place: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
        """Value ``low + k * step`` of a place, both ends included.

        All values have equal shares of the unit interval; with ``log``, each has the places whose value is
        nearest to it.
        """
        low, step = self.low, self._grid
        steps = ((self.high - low) / step).round()
        cell = torch.where(steps < _EQUAL_CELLS, (place * (steps + 1)).floor(), (place * steps).round())
        value = low + cell * step
        if self.log.any():
            rest = low.remainder(step)  # of the lowest value; all others have the same
            nearest = rest + ((self.by_ratio(place) - rest) / step).round() * step
            value = torch.where(self.log, nearest, value)
        return value.clamp(low, self.high)

    def placed(self, value: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
        """Place between 0 and 1 of a natural value."""
        place = (value - self.low) / (self.high - self.low)
        if self.log.any():
            bottom, ratio = self._logarithms
            in_ratio = (torch.where(self.log, value, 1.0).log() - bottom) / ratio
            place = torch.where(self.log & (value > self.low) & (value < self.high), in_ratio, place)
        return place.clamp(0, 1)

    def by_ratio(self, place: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
        """Natural values of logarithmic coordinates, both ends exact; arbitrary for the others."""
        bottom, ratio = self._logarithms
        value = (bottom + place * ratio).exp()
        return torch.where(place <= 0, self.low, torch.where(place >= 1, self.high, value))

    @functools.cached_property
    def _logarithms(self) -> tuple[Tensor, Tensor]:
        """Logarithms of the lower bound and of the ratio of bounds; arbitrary where not logarithmic."""
        bottom = torch.where(self.log, self.low, 1.0).log()
        return bottom, torch.where(self.log, self.high, 2.0).log() - bottom


@dataclass(frozen=True, eq=False)
class Domain(Scale):
    """The settings among the points of the unit cube, for one context; one scale for each coordinate."""

    choices: Sequence[tuple[int, int]]
    """Slices of one-hot coordinates: first, and one past the last."""
    given: Float[Tensor, " d"]
    """Places fixed by the context; nan elsewhere."""
    weights: Float[Tensor, "c d"]
    limits: Float[Tensor, " c"]
    """Constraints ``weights @ natural <= limits``."""
    anchor: Float[Tensor, " d"]
    """A feasible setting, well inside the constraints if possible."""
    pools: Sequence[Pool] = ()
    """Coordinates that are those of an item of a table."""

    @property
    def d(self) -> int:
        """Number of coordinates."""
        return len(self.low)

    @functools.cached_property
    def one_hot(self) -> Bool[Tensor, " d"]:
        """One-hot coordinates."""
        mask = torch.zeros_like(self.log)
        for first, end in self.choices:
            mask[first:end] = True
        return mask

    @functools.cached_property
    def held(self) -> Bool[Tensor, " d"]:
        """Coordinates without a gradient: one-hot ones, those of items, and the context."""
        mask = self.one_hot | ~self.given.isnan()
        for pool in self.pools:
            mask[pool.first : pool.end] = True
        return mask

    @functools.cached_property
    def free_pools(self) -> tuple[Pool, ...]:
        """The pools from which an item is to be chosen."""
        return tuple(pool for pool in self.pools if self.given[pool.first].isnan())

    @functools.cached_property
    def climbs(self) -> Bool[Tensor, " d"]:
        """Coordinates that gradient ascent moves; stepped ones are relaxed to real numbers."""
        return ~self.held

    @functools.cached_property
    def stays(self) -> Bool[Tensor, " d"]:
        """Everything but continuous coordinates."""
        return self.held | self.stepped

    @property
    def dimensions(self) -> int:
        """Number of parameters to choose."""
        free = [first for first, _ in self.choices if self.given[first].isnan()]
        return int(self.climbs.sum()) + len(free) + len(self.free_pools)

    @property
    def constrained(self) -> bool:
        """Whether there are constraints."""
        return len(self.limits) > 0

    @functools.cached_property
    def rows(self) -> Float[Tensor, "c d"]:
        """Constraint normals in shares, of unit length over the free coordinates."""
        return self.weights * (self.high - self.low) / self._lengths[:, None]

    @functools.cached_property
    def bounds(self) -> Float[Tensor, " c"]:
        """Constraint limits in shares: ``rows @ share <= bounds``."""
        return (self.limits - self.weights @ self.low) / self._lengths

    @functools.cached_property
    def _vast(self) -> Bool[Tensor, " c"] | None:
        """Integer constraints with terms so large that an excess of one could pass for rounding, if any."""
        numbers = torch.cat([self.weights, self.limits[:, None]], -1)
        size = self.weights.abs() @ torch.maximum(self.low.abs(), self.high.abs()) + self.limits.abs()
        vast = (numbers == numbers.round()).all(-1) & (size > _VAST)
        return vast if vast.any() else None

    @functools.cached_property
    def _lengths(self) -> Float[Tensor, " c"]:
        return torch.where(self.given.isnan(), self.weights * (self.high - self.low), 0.0).norm(dim=-1)

    def on(self, device: torch.device) -> "Domain":
        """The domain with its tensors on this device."""
        if self.low.device == device:
            return self
        parts = {field.name: getattr(self, field.name) for field in fields(self)}
        moved: dict[str, Any] = {
            name: part.to(device) for name, part in parts.items() if isinstance(part, Tensor)
        }
        return replace(self, **moved, pools=[pool.on(device) for pool in self.pools])

    def snapped(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        """Settings near these points; a setting stays as it is.

        The context is set, steps are rounded, the largest one-hot coordinate wins.  An infeasible result is
        projected onto the constraints in its continuous coordinates or, if that fails, moved towards the
        anchor until it is feasible.
        """
        x = self.rounded(x)
        if not self.constrained:
            return x
        bad = ~self.feasible(x)
        if bad.any():
            moved = self.projected(x[bad])
            still = ~self.feasible(moved)
            if still.any():
                listed = self.listed
                lead = self._towards_anchor if listed is None else self._nearest
                moved[still] = lead(moved[still])
            x[bad] = moved
        return x

    def feasible(self, x: Float[Tensor, "*b d"], tolerance: float = _TOLERANCE) -> Bool[Tensor, "*b"]:
        """Whether points satisfy the constraints, after rounding steps."""
        return self.satisfied(self.natural(x), tolerance)

    def satisfied(self, values: Float[Tensor, "*b d"], tolerance: float = _TOLERANCE) -> Bool[Tensor, "*b"]:
        """Whether natural values satisfy the constraints, up to a tolerance relative to their terms.

        Constraints whose terms are all whole numbers are checked exactly.
        """
        over = values @ self.weights.mT - self.limits
        size = values.abs() @ self.weights.abs().mT + self.limits.abs()
        allowed = tolerance * size
        if self._vast is not None:
            broken = (values != values.round()).to(values.dtype) @ (self.weights != 0).to(values.dtype).mT
            allowed = torch.where(self._vast & (broken == 0), allowed.clamp_max(0.5), allowed)
        return (over <= allowed).all(-1)

    def natural(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        """Natural values, steps rounded."""
        value = torch.where(x >= 1, self.high, self.low + x * (self.high - self.low))
        if self.log.any():
            value = torch.where(self.log, self.by_ratio(x), value)
        if self.stepped.any():
            value = torch.where(self.stepped, self.on_grid(x), value)
        return value.clamp(self.low, self.high)

    def violations(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b c"]:
        """Distance to each constraint in shares; negative inside."""
        return self.shares(x) @ self.rows.mT - self.bounds

    def shares(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        """Natural values rescaled to [0, 1]."""
        if not self.log.any():
            return x
        return torch.where(self.log, (self.by_ratio(x) - self.low) / (self.high - self.low), x)

    def excess(self, x: Float[Tensor, "*b d"]) -> tuple[Float[Tensor, "*b"], Float[Tensor, "*b d"]]:
        """Sum of squared constraint violations, and its gradient."""
        over = self.violations(x).clamp_min(0)
        slope = 2 * over @ self.rows
        if self.log.any():
            steepness = self.by_ratio(x) * self._logarithms[1] / (self.high - self.low)
            slope = torch.where(self.log, slope * steepness, slope)
        return over.square().sum(-1), slope

    def neighbours(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b k d"]:
        """Settings that differ in one discrete parameter: a step up or down, every other value of a choice.

        They may be infeasible, and at the end of a range one of them is the setting itself.
        """
        variants = []
        for column in (self.stepped & ~self.held).nonzero()[:, 0].tolist():
            scale, variant = self._scale(column), x.clone()
            value = scale.on_grid(x[..., column])
            for way in (-scale.step, scale.step):
                variant[..., column] = scale.placed((value + way).clamp(scale.low, scale.high))
                variants.append(variant.clone())
        for first, end in self.choices:
            for shift in range(1, end - first) if self.given[first].isnan() else ():
                variant = x.clone()
                variant[..., first:end] = x[..., first:end].roll(shift, -1)
                variants.append(variant)
        return torch.stack(variants, -2) if variants else x.new_empty(*x.shape[:-1], 0, self.d)

    def uniform(self, draws: Float[Tensor, "*b t d"]) -> Float[Tensor, "*b d"]:
        """The first feasible of several uniform draws; if there is none, the first draw snapped.

        All values of a choice, and all steps of a linear scale, are equally likely.
        """
        if self.listed is not None:  # draws hardly ever meet an equality; their sum is uniform, too
            number = (draws[..., 0, :].sum(-1) % 1 * len(self.listed)).long()
            return self.listed[number.clamp_max(len(self.listed) - 1)]
        settings = self.rounded(self.dealt(draws))
        first = self.feasible(settings).to(torch.uint8).argmax(-1)[..., None, None]
        return self.snapped(settings.gather(-2, first.expand(*first.shape[:-1], self.d))[..., 0, :])

    @functools.cached_property
    def equalities(self) -> Bool[Tensor, " c"]:
        """Constraints of discrete values whose opposites are there, too, with the same limit."""
        discrete = (torch.where(self.stays, 0.0, self.weights) == 0).all(-1)
        opposite = (self.weights[:, None] == -self.weights[None]).all(-1)
        same = (self.limits[:, None] + self.limits[None]).abs() <= _TOLERANCE * self.limits.abs()
        return discrete & (opposite & same).any(-1)

    @functools.cached_property
    def listed(self) -> Float[Tensor, "s d"] | None:
        """All settings where there are items or equalities of discrete values, unless there are too many."""
        return self.settings(LISTED) if self.free_pools or self.equalities.any() else None

    def distinct(self) -> int:
        """How many settings there are or, where they are too many to look at, how many a sample has."""
        found = self.settings(LISTED)
        if found is None:
            engine = torch.quasirandom.SobolEngine(self.d, scramble=True, seed=0)
            found = self.rounded(self.dealt(engine.draw(_SAMPLE, dtype=torch.float64)))
            # whoever misses an equality of discrete values ends at the anchor, or close to it
            found = found[self.feasible(found)] if self.equalities.any() else self.snapped(found)
        return len((found / _APART).round().unique(dim=0))

    def _nearest(self, x: Float[Tensor, "r d"]) -> Float[Tensor, "r d"]:
        """The nearest of all settings."""
        assert self.listed is not None
        return self.listed[torch.cdist(x, self.listed).argmin(-1)]

    @functools.cached_property
    def _ranges(self) -> tuple[Tensor, Tensor]:
        """Lowest and highest number of steps of each coordinate; equalities leave fewer of them."""
        low = torch.zeros_like(self.low)
        high = (self.high - self.low) / self._grid
        high = torch.where(self.stepped, high.round(), high)
        if not self.equalities.any():
            return low, high
        given = (self.natural(self.given.nan_to_num(0.0)) - self.low) / self._grid
        low, high = (torch.where(self.given.isnan(), end, given) for end in (low, high))
        rows, limits = self.weights * self._grid, self.limits - self.weights @ self.low
        for _ in range(_TIGHTENINGS):
            size = rows.abs() @ high + limits.abs()
            # what the others need at least leaves that much for this one
            least = torch.where(rows > 0, rows * low, rows * high)
            room = (limits - least.sum(-1) + 1e-9 * size)[:, None] + least
            bound = torch.where(rows == 0, math.nan, room / rows)
            up = torch.where(rows > 0, bound, math.inf).nan_to_num(math.inf).amin(0).floor()
            down = torch.where(rows < 0, bound, -math.inf).nan_to_num(-math.inf).amax(0).ceil()
            high = torch.where(self.stays, torch.minimum(high, up), high)
            low = torch.where(self.stays, torch.maximum(low, down), low)
        return low, torch.maximum(low, high)

    def settings(self, most: int) -> Float[Tensor, "s d"] | None:
        """All settings, if none is continuous and at most ``most`` combinations are to be looked at."""
        least, last = self._ranges
        counts = torch.where(self.stepped & ~self.held, last - least + 1, 1).long().tolist()
        free = [(first, end) for first, end in self.choices if self.given[first].isnan()]
        total = math.prod(counts) * math.prod(end - first for first, end in free)
        total *= math.prod(len(pool.rows) for pool in self.free_pools)
        if not self.stays.all() or total > most:
            return None
        points = self.anchor[None]
        for column in (self.stepped & ~self.held).nonzero()[:, 0].tolist():
            scale = self._scale(column)
            values = torch.arange(counts[column], dtype=points.dtype, device=points.device) + least[column]
            places = scale.placed(values * scale.step + scale.low)
            points = points.repeat_interleave(len(places), 0)
            points[:, column] = places.repeat(len(points) // len(places))
        for first, end in free:
            eye = torch.eye(end - first, dtype=points.dtype, device=points.device)
            points = points.repeat_interleave(len(eye), 0)
            points[:, first:end] = eye.repeat(len(points) // len(eye), 1)
        for pool in self.free_pools:
            points = points.repeat_interleave(len(pool.rows), 0)
            points[:, pool.first : pool.end] = pool.rows.repeat(len(points) // len(pool.rows), 1)
        return points[self.feasible(points)]

    def rounded(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        """Context set, steps rounded, one value of each choice, the nearest item; constraints are ignored."""
        x = torch.where(self.given.isnan(), x.clamp(0, 1), self.given)
        if self.stepped.any():
            x = torch.where(self.stepped, self.placed(self.on_grid(x)), x)
        for first, end in self.choices:
            winner = x[..., first:end].argmax(-1, keepdim=True)
            x[..., first:end] = torch.zeros_like(x[..., first:end]).scatter_(-1, winner, 1.0)
        for pool in self.free_pools:
            x[..., pool.first : pool.end] = pool.nearest(x[..., pool.first : pool.end])
        return x

    def dealt(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        """Points spread over the cube, with all items equally often (nearest would be outer ones)."""
        for pool in self.free_pools:
            parts = x[..., : pool.first], pool.numbered(x[..., pool.first]), x[..., pool.end :]
            x = torch.cat(parts, -1)
        return x

    def _scale(self, column: int) -> Scale:
        return Scale(self.low[column], self.high[column], self.log[column], self.step[column])

    def projected(self, x: Float[Tensor, "r d"]) -> Float[Tensor, "r d"]:
        """Cyclic projection of the continuous coordinates, until feasible or stalled."""
        values = self.natural(x)
        rows = torch.where(self.stays, 0.0, self.rows)
        # step in natural units that undoes a violation of one
        length = self._lengths * rows.square().sum(-1).clamp_min(1e-300)
        steps = rows * (self.high - self.low) / length[:, None]
        moving = torch.arange(len(x), device=x.device)
        for _ in range(_PROJECTIONS):
            before = now = values[moving]
            for step, weights, limit in zip(steps, self.weights, self.limits, strict=True):
                over = (now @ weights - limit).clamp_min(0)
                now = (now - over[:, None] * step).clamp(self.low, self.high)
            values[moving] = now
            moving = moving[((now - before).abs() > _STALLED * before.abs()).any(-1)]
            if not len(moving):
                break
        return torch.where(rows.any(0), self.placed(values), x)

    def _towards_anchor(self, x: Float[Tensor, "r d"]) -> Float[Tensor, "r d"]:
        """Feasible settings between the anchor and these points, as near to them as bisection finds."""
        anchor = torch.where(self.one_hot, x, self.anchor)
        best = anchor
        near, far = x.new_zeros(len(x), 1), x.new_ones(len(x), 1)
        for _ in range(_HALVINGS):
            middle = (near + far) / 2
            trial = self.rounded(anchor + middle * (x - anchor))
            good = self.feasible(trial, _AIM)[:, None]
            best = torch.where(good, trial, best)
            near, far = torch.where(good, middle, near), torch.where(good, far, middle)
        return best
