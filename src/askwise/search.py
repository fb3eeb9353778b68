"""The best points of the unit cube by a score, for all lanes at once.

Sobol points and warm candidates (what was asked about, and its surroundings) are scored; the best
local maxima among them are then climbed together by projected BFGS.  A study is one lane of it.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from askwise import bfgs
from askwise.belief import Belief
from askwise.seeds import Generators, randn
from askwise.slopes import by_autograd

__all__ = ["Search", "Sloped", "with_slope"]

Scored = Callable[[Tensor], Tensor]
_POINTS_AT_ONCE = {"cpu": 2**9, "cuda": 2**16}  # more do not fit the cache, or the memory
_WARM, _NEAR = 32, 0.05  # warm points: so many of the best asked about, and some so far from them
_CANDIDATES, _STARTS = 128, 8  # Sobol points and starts, for each dimension (and one more)
_STEEP, _GAIN = 1e-4, 1e-7  # where a climb ends, in units of the range of the better half of the scores
_EASY, _DRAW_EFFORT = 3, (4, 12)  # times as many for draws, up to so many dimensions and beyond
_TRIAL, _FINALISTS, _MOST_STEPS = 5, 4, 50  # after so many steps, so many starts go on, so far
_WARM_STARTS = 2
_FEW = 24  # variables for which the curvature is worth an evaluation of its own
_STEP = 1e-4


@runtime_checkable
class Sloped(Protocol):
    """A score that knows its gradient; any other is differentiated by autograd."""

    def __call__(self, x: Tensor) -> Tensor:
        """Scores of the points."""

    def with_slope(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Scores and gradients."""


@dataclass(frozen=True)
class Search:
    """Where to look; ``source`` also serves rules that draw at random."""

    lanes: torch.Size
    source: Generators
    warm: Float[Tensor, "*lane w d"]
    """Points that may be good starts; at least one a lane."""

    @classmethod
    def around(cls, belief: Belief, source: Generators) -> "Search":
        """A search that knows the best of what has been asked about."""
        data, points = belief.data, belief.data.points
        lanes, d = data.lanes, points.shape[-1]
        if data.n == 0:
            return cls(lanes, source, points.new_full((*lanes, 1, d), 0.5))
        # by answer, not by point: a lane with fewer distinct points than another is filled up with copies
        members = torch.cat([data.first, torch.where(data.second < 0, data.first, data.second)], -1)
        with torch.no_grad():
            means = belief.mean(points).gather(-1, members)
        best = members.gather(-1, means.topk(min(_WARM, means.shape[-1]), -1).indices)[..., None]
        good = points.gather(-2, best.expand(*best.shape[:-1], d))
        near = good + _NEAR * randn(source, lanes, good.shape[-2], d, like=points)
        return cls(lanes, source, torch.cat([good, near.clamp(0, 1)], -2))

    def champion(self, belief: Belief) -> Float[Tensor, "*lane 1 d"]:
        """The point of highest posterior mean."""
        return self.argmax(belief.view.mean_only().score())

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
            unit = _spread(_ranked(score(groups).movedim(0, -1)))
            return self._best_from(score, groups, unit)

    def spread(self, count: int) -> Float[Tensor, "*lane k d"]:
        """So many points spread over the cube."""
        points, _ = _sobol(count, self.warm.shape[-1], self.warm.device)
        return points.expand(*self.lanes, -1, -1)

    def corners(self) -> Float[Tensor, "*lane k d"]:
        """Corners of the cube, at most 64 of them."""
        d = self.warm.shape[-1]
        number = torch.arange(2 ** min(d, 6), device=self.warm.device)[:, None]
        points = (number >> torch.arange(d, device=self.warm.device) % 6) & 1
        return points.to(self.warm.dtype).expand(*self.lanes, -1, -1)

    @property
    def candidates(self) -> int:
        """How many Sobol points are scored."""
        return _CANDIDATES * (1 + self.warm.shape[-1])

    def _best_point(self, score: Scored, draws: tuple[int, ...]) -> Tensor:
        d = self.warm.shape[-1]
        # a draw of f has many more maxima than what is believed of f, the more so in more dimensions
        more = _DRAW_EFFORT[d > _EASY] if draws else 1
        shape = (*draws, *self.lanes)
        fixed, neighbours = _sobol(more * self.candidates, d, self.warm.device)
        x = torch.cat([fixed.expand(*self.lanes, -1, -1), self.warm], -2)
        x = x.expand(*shape, -1, -1)
        values = _ranked(_in_parts(score, x, -2))
        starts = more * _STARTS * d
        start = x.gather(-2, _starts(values, neighbours, starts)[..., None].expand(*shape, -1, d))
        return _climbed(score, start[..., None, :], _spread(values))[..., 0, :, :]

    def _best_group(self, score: Scored, q: int, extra: Tensor | None) -> Tensor:
        d = self.warm.shape[-1]
        fixed, _ = _sobol(self.candidates // q, q * d, self.warm.device)
        x = fixed.view(-1, *[1] * len(self.lanes), q, d).expand(-1, *self.lanes, -1, -1)
        values = _ranked(_in_parts(score, x, 0).movedim(0, -1))
        best = values.topk(min(_STARTS, len(fixed)), -1).indices.movedim(-1, 0)
        start = x.gather(0, best[..., None, None].expand(*best.shape, q, d))
        if extra is not None:
            start = torch.cat([start, extra])
        return self._best_from(score, start, _spread(values))

    def _best_from(self, score: Scored, groups: Tensor, unit: Tensor) -> Tensor:
        lanes = len(self.lanes)

        def by_lane(x: Tensor) -> Tensor:
            return score(x.movedim(lanes, 0)).movedim(0, lanes)

        return _climbed(by_lane, groups.movedim(0, lanes), unit).squeeze(lanes)


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


def _climbed(
    score: Scored, start: Float[Tensor, "*c s q d"], unit: Float[Tensor, "*c 1"]
) -> Float[Tensor, "*c 1 q d"]:
    """The best maximum that can be reached from the starts of each lane."""
    *shape, count, q, d = start.shape

    def objective(flat: Tensor) -> tuple[Tensor, Tensor]:
        x = flat.view(*shape, -1, q, d) if q > 1 else flat.view(*shape, -1, d)
        value, slope = with_slope(score, x)
        value = (value / -unit).nan_to_num_(torch.inf, torch.inf, torch.inf)  # too high, whatever it is
        return value.reshape(-1), (slope.reshape(*shape, -1, q * d) / -unit[..., None]).flatten(0, -2)

    flat, curved = start.reshape(-1, q * d), q * d <= _FEW
    found, value = bfgs.minimize(
        objective,
        flat,
        torch.zeros_like(flat),
        torch.ones_like(flat),
        max_steps=_MOST_STEPS,
        gradient_tolerance=_STEEP,
        value_tolerance=_GAIN,
        longest_step=0.3,
        inverse=_inverse_curvature(objective, flat) if curved else None,
        rivals=bfgs.Rivals(
            count, left=min(count, max(_FINALISTS, count // 8)), trial=_TRIAL if curved else 4 * _TRIAL
        ),
    )
    value = value.view(*shape, -1)
    best = value.argmin(-1)[..., None, None, None].expand(*shape, 1, q, d)
    return found.view(*shape, -1, q, d).gather(-3, best)


def _inverse_curvature(objective: bfgs.Objective, start: Float[Tensor, "r k"]) -> Float[Tensor, "r k k"]:
    """Inverse of the absolute Hessian, by differences of gradients.

    All of them are one evaluation, which for a single study costs hardly more than that of the
    starts alone, and saves more than a third of all evaluations (291 instead of 463 on 15 beliefs).
    """
    k = start.shape[-1]
    size = torch.where(start > 0.5, -_STEP, _STEP)
    moved = torch.cat([start[:, None, :], start[:, None, :] + torch.diag_embed(size)], 1)
    _, grad = objective(moved.view(-1, k))
    grad = grad.view(-1, k + 1, k)
    hessian = ((grad[:, 1:] - grad[:, :1]) / size[..., None]).nan_to_num(0.0, 0.0, 0.0)
    values, vectors = torch.linalg.eigh((hessian + hessian.mT) / 2)
    floor = 1e-3 * values.abs().amax(-1, keepdim=True) + 1e-12
    return (vectors / values.abs().clamp_min(floor)[:, None, :]) @ vectors.mT


def with_slope(score: Scored, x: Tensor) -> tuple[Tensor, Tensor]:
    """Scores and their gradients, by the score itself or by autograd."""
    return score.with_slope(x) if isinstance(score, Sloped) else by_autograd(score, x)


def _ranked(values: Float[Tensor, "*c k"]) -> Float[Tensor, "*c k"]:
    """Scores in which one that is not finite is well below all others."""
    bad = ~values.isfinite()
    if not bad.any():
        return values
    top = values.masked_fill(bad, -torch.inf).amax(-1, keepdim=True)
    low = values.masked_fill(bad, torch.inf).amin(-1, keepdim=True)
    return torch.where(bad, low - 4 * (top - low), values).nan_to_num(0.0, 0.0, 0.0)


def _spread(values: Float[Tensor, "*c k"]) -> Float[Tensor, "*c 1"]:
    """What counts as one unit of the score in each lane: the range of its better half."""
    top, middle = values.amax(-1, keepdim=True), values.median(-1, keepdim=True).values
    return (top - middle).clamp_min(1e-300)


@functools.lru_cache(maxsize=32)
def _sobol(count: int, d: int, device: torch.device) -> tuple[Float[Tensor, "s d"], Int[Tensor, "s k"]]:
    """Scrambled Sobol points, the same for everyone, and the nearest others of each."""
    points = torch.quasirandom.SobolEngine(d, scramble=True, seed=0).draw(count, dtype=torch.float64)
    near = torch.cdist(points, points).topk(min(count, 2 * d + 4), largest=False).indices[:, 1:]
    return points.to(device), near.to(device)
