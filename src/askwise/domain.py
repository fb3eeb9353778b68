"""Which points of the unit cube are settings: whole steps, one of several values, constraints, context.

A value of a choice is a coordinate that is one where the others of the choice are zero.  Constraints
are linear in natural units, in which they are checked; a climb that is to keep to them is led by
*shares*, natural values on a scale from 0 to 1.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

__all__ = ["Domain", "placed", "rounded"]

_EQUAL_CELLS = 2**20  # with more whole numbers than this it does not matter how the cells are divided
_HALVINGS, _PROJECTIONS = 40, 50
_TOLERANCE = 1e-9  # of a constraint, in parts of its terms
_VAST = 1e7
_AIM = 1e-12  # what is moved inside comes so close, lest another order of adding puts it outside again
_STILL = 1e-14  # values that move by a smaller part of themselves stand still


def rounded(
    place: Float[Tensor, "*b"], low: Float[Tensor, "*c"], high: Float[Tensor, "*c"], log: Bool[Tensor, "*c"]
) -> Float[Tensor, "*b"]:
    """The whole number to which a place between 0 and 1 belongs, both ends included."""
    steps = high - low
    cell = torch.where(steps < _EQUAL_CELLS, (place * (steps + 1)).floor(), (place * steps).round())
    value = low + cell
    if log.any():
        value = torch.where(log, _natural(place, low, high, log).round(), value)
    return value.clamp(low, high)


def placed(
    value: Float[Tensor, "*b"], low: Float[Tensor, "*c"], high: Float[Tensor, "*c"], log: Bool[Tensor, "*c"]
) -> Float[Tensor, "*b"]:
    """The place between 0 and 1 of a natural value."""
    place = (value - low) / (high - low)
    if log.any():
        bottom, ratio = _logarithms(low, high, log)
        in_ratio = (torch.where(log, value, 1.0).log() - bottom) / ratio
        place = torch.where(log & (value > low) & (value < high), in_ratio, place)
    return place.clamp(0, 1)


@dataclass(frozen=True, eq=False)
class Domain:
    """The settings among the points of the unit cube, for one context."""

    low: Float[Tensor, " d"]
    high: Float[Tensor, " d"]
    """Natural bounds of each coordinate; 0 and 1 for those of a choice."""
    log: Bool[Tensor, " d"]
    whole: Bool[Tensor, " d"]
    choices: Sequence[tuple[int, int]]
    """First coordinate of each choice, and the one after its last."""
    given: Float[Tensor, " d"]
    """Places that the context sets; nan for all others."""
    weights: Float[Tensor, "c d"]
    limits: Float[Tensor, " c"]
    """Constraints ``weights @ natural <= limits``."""
    anchor: Float[Tensor, " d"]
    """A setting that satisfies all constraints, well inside them if possible."""

    @property
    def d(self) -> int:
        """Number of coordinates."""
        return len(self.low)

    @functools.cached_property
    def of_choice(self) -> Bool[Tensor, " d"]:
        """Coordinates of choices."""
        mask = torch.zeros_like(self.whole)
        for first, end in self.choices:
            mask[first:end] = True
        return mask

    @functools.cached_property
    def held(self) -> Bool[Tensor, " d"]:
        """Coordinates that no slope leads along: those of choices and of the context."""
        return self.of_choice | ~self.given.isnan()

    @functools.cached_property
    def climbs(self) -> Bool[Tensor, " d"]:
        """Coordinates along which a score is climbed, whole numbers as if they were real."""
        return ~self.held

    @functools.cached_property
    def stays(self) -> Bool[Tensor, " d"]:
        """Everything but real parameters."""
        return self.held | self.whole

    @property
    def dimensions(self) -> int:
        """Number of parameters to choose."""
        free = [first for first, _ in self.choices if self.given[first].isnan()]
        return int(self.climbs.sum()) + len(free)

    @property
    def constrained(self) -> bool:
        """Whether there are constraints."""
        return len(self.limits) > 0

    @functools.cached_property
    def rows(self) -> Float[Tensor, "c d"]:
        """Weights of shares in the constraints, of length one in the coordinates not given."""
        return self.weights * (self.high - self.low) / self._lengths[:, None]

    @functools.cached_property
    def bounds(self) -> Float[Tensor, " c"]:
        """Limits of the constraints in shares: ``rows @ share <= bounds``."""
        return (self.limits - self.weights @ self.low) / self._lengths

    @functools.cached_property
    def _vast(self) -> Bool[Tensor, " c"] | None:
        """Constraints in whole numbers so large that one more or less could pass for rounding, if any."""
        numbers = torch.cat([self.weights, self.limits[:, None]], -1)
        size = self.weights.abs() @ torch.maximum(self.low.abs(), self.high.abs()) + self.limits.abs()
        vast = (numbers == numbers.round()).all(-1) & (size > _VAST)
        return vast if vast.any() else None

    @functools.cached_property
    def _lengths(self) -> Float[Tensor, " c"]:
        return torch.where(self.given.isnan(), self.weights * (self.high - self.low), 0.0).norm(dim=-1)

    def on(self, device: torch.device) -> "Domain":
        """The same domain with its tensors on this device."""
        if self.low.device == device:
            return self
        parts = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "choices"}
        return replace(self, **{name: part.to(device) for name, part in parts.items()})

    def snapped(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        """Settings near these points; a setting is left as it is.

        Context is set, whole numbers are rounded, of each choice the largest coordinate wins.  A point
        that then violates a constraint is moved to the nearest real values that satisfy all, or if
        there are none towards the anchor, as little as it takes.
        """
        x = self.rounded(x)
        if not self.constrained:
            return x
        bad = ~self.feasible(x)
        if bad.any():
            x[bad] = self._moved_in(x[bad])
        return x

    def feasible(self, x: Float[Tensor, "*b d"], tolerance: float = _TOLERANCE) -> Bool[Tensor, "*b"]:
        """Whether points satisfy the constraints as :meth:`satisfied` says, whole numbers rounded."""
        return self.satisfied(self.natural(x), tolerance)

    def satisfied(self, values: Float[Tensor, "*b d"], tolerance: float = _TOLERANCE) -> Bool[Tensor, "*b"]:
        """Whether natural values satisfy the constraints, but for so small a part of the terms there.

        Where all terms of a constraint are whole numbers it is satisfied exactly.
        """
        over = values @ self.weights.mT - self.limits
        size = values.abs() @ self.weights.abs().mT + self.limits.abs()
        allowed = tolerance * size
        if self._vast is not None:
            broken = (values != values.round()).to(values.dtype) @ (self.weights != 0).to(values.dtype).mT
            allowed = torch.where(self._vast & (broken == 0), allowed.clamp_max(0.5), allowed)
        return (over <= allowed).all(-1)

    def natural(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        """Natural values as they are shown, whole numbers rounded."""
        value = torch.where(x >= 1, self.high, self.low + x * (self.high - self.low))
        if self.log.any():
            value = torch.where(self.log, _natural(x, self.low, self.high, self.log), value)
        if self.whole.any():
            value = torch.where(self.whole, rounded(x, self.low, self.high, self.log), value)
        return value.clamp(self.low, self.high)

    def depth(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b"]:
        """How far inside all constraints points are, in shares of the range; negative outside."""
        return -self._violations(self.shares(x)).amax(-1)

    def shares(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        """Natural values on a scale from 0 to 1."""
        if not self.log.any():
            return x
        natural = _natural(x, self.low, self.high, self.log)
        return torch.where(self.log, (natural - self.low) / (self.high - self.low), x)

    def excess(self, x: Float[Tensor, "*b d"]) -> tuple[Float[Tensor, "*b"], Float[Tensor, "*b d"]]:
        """Sum of the squared violations of the constraints, and its slope."""
        over = self._violations(self.shares(x)).clamp_min(0)
        slope = 2 * over @ self.rows
        if self.log.any():
            _, ratio = _logarithms(self.low, self.high, self.log)
            steepness = _natural(x, self.low, self.high, self.log) * ratio / (self.high - self.low)
            slope = torch.where(self.log, slope * steepness, slope)
        return over.square().sum(-1), slope

    def neighbours(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b k d"]:
        """Variants of settings in one discrete parameter: a step up or down, every other value of a choice.

        They may violate constraints, and at the end of a range one of them is the setting itself.
        """
        variants = []
        for column in (self.whole & ~self.held).nonzero()[:, 0].tolist():
            axis = self.low[column], self.high[column], self.log[column]
            value = rounded(x[..., column], *axis)
            for step in (-1, 1):
                variant = x.clone()
                variant[..., column] = placed((value + step).clamp(axis[0], axis[1]), *axis)
                variants.append(variant)
        for first, end in self.choices:
            for shift in range(1, end - first) if self.given[first].isnan() else ():
                variant = x.clone()
                variant[..., first:end] = x[..., first:end].roll(shift, -1)
                variants.append(variant)
        return torch.stack(variants, -2) if variants else x.new_empty(*x.shape[:-1], 0, self.d)

    def uniform(self, draws: Float[Tensor, "*b t d"]) -> Float[Tensor, "*b d"]:
        """A setting from several uniform draws of points: the first that satisfies the constraints.

        Each value of a choice and each whole number (in ratios, if logarithmic) is as likely as any other.
        If none of the draws satisfies the constraints, the first is moved until it does.
        """
        settings = self.rounded(draws)
        first = self.feasible(settings).to(torch.uint8).argmax(-1)[..., None, None]
        return self.snapped(settings.gather(-2, first.expand(*first.shape[:-1], self.d))[..., 0, :])

    def settings(self, most: int) -> Float[Tensor, "s d"] | None:
        """All settings, if no parameter is real and there are at most so many."""
        counts = torch.where(self.whole & ~self.held, self.high - self.low + 1, 1).long().tolist()
        free = [(first, end) for first, end in self.choices if self.given[first].isnan()]
        total = math.prod(counts) * math.prod(end - first for first, end in free)
        if not self.stays.all() or total > most:
            return None
        points = self.anchor[None]
        for column in [column for column, count in enumerate(counts) if count > 1]:
            axis = self.low[column], self.high[column], self.log[column]
            values = torch.arange(counts[column], dtype=points.dtype, device=points.device) + axis[0]
            points = points.repeat_interleave(len(values), 0)
            points[:, column] = placed(values, *axis).repeat(len(points) // len(values))
        for first, end in free:
            eye = torch.eye(end - first, dtype=points.dtype, device=points.device)
            points = points.repeat_interleave(len(eye), 0)
            points[:, first:end] = eye.repeat(len(points) // len(eye), 1)
        return points[self.feasible(points)]

    def rounded(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        """Context set, whole numbers rounded, one of each choice: whatever the constraints say."""
        x = torch.where(self.given.isnan(), x.clamp(0, 1), self.given)
        if self.whole.any():
            axes = self.low, self.high, self.log
            x = torch.where(self.whole, placed(rounded(x, *axes), *axes), x)
        for first, end in self.choices:
            winner = x[..., first:end].argmax(-1, keepdim=True)
            x[..., first:end] = torch.zeros_like(x[..., first:end]).scatter_(-1, winner, 1.0)
        return x

    def _violations(self, shares: Tensor) -> Tensor:
        return shares @ self.rows.mT - self.bounds

    def projected(self, x: Float[Tensor, "r d"]) -> Float[Tensor, "r d"]:
        """Real values moved onto one constraint after the other, until all are satisfied or it is vain."""
        values = self.natural(x)
        rows = torch.where(self.stays, 0.0, self.rows)
        # what it takes to undo a violation of one, in natural units
        length = self._lengths * rows.square().sum(-1).clamp_min(1e-300)
        steps = rows * (self.high - self.low) / length[:, None]
        moving = torch.arange(len(x), device=x.device)
        for _ in range(_PROJECTIONS):
            before = now = values[moving]
            for step, weights, limit in zip(steps, self.weights, self.limits, strict=True):
                over = (now @ weights - limit).clamp_min(0)
                now = (now - over[:, None] * step).clamp(self.low, self.high)
            values[moving] = now
            moving = moving[((now - before).abs() > _STILL * before.abs()).any(-1)]
            if not len(moving):
                break
        return torch.where(rows.any(0), placed(values, self.low, self.high, self.log), x)

    def _moved_in(self, x: Float[Tensor, "r d"]) -> Float[Tensor, "r d"]:
        x = self.projected(x)
        bad = ~self.feasible(x)
        if bad.any():
            x[bad] = self._pulled(x[bad])
        return x

    def _pulled(self, x: Float[Tensor, "r d"]) -> Float[Tensor, "r d"]:
        """Settings as far from the anchor as bisection finds on the way to these points."""
        anchor = torch.where(self.of_choice, x, self.anchor)
        best = anchor
        near, far = x.new_zeros(len(x), 1), x.new_ones(len(x), 1)
        for _ in range(_HALVINGS):
            middle = (near + far) / 2
            trial = self.rounded(anchor + middle * (x - anchor))
            good = self.feasible(trial, _AIM)[:, None]
            best = torch.where(good, trial, best)
            near, far = torch.where(good, middle, near), torch.where(good, far, middle)
        return best


def _natural(place: Tensor, low: Tensor, high: Tensor, log: Tensor) -> Tensor:
    """Natural values of logarithmic coordinates, both ends exact; anything for the others."""
    bottom, ratio = _logarithms(low, high, log)
    value = (bottom + place * ratio).exp()
    return torch.where(place <= 0, low, torch.where(place >= 1, high, value))


def _logarithms(low: Tensor, high: Tensor, log: Tensor) -> tuple[Tensor, Tensor]:
    """Logarithm of the lower bound and of the ratio of bounds; of any number where that does not count."""
    bottom = torch.where(log, low, 1.0).log()
    return bottom, torch.where(log, high, 2.0).log() - bottom
