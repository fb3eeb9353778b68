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

__all__ = ["Search", "Sloped"]

Scored = Callable[[Tensor], Tensor]
_POINTS_AT_ONCE = {"cpu": 2**12, "cuda": 2**16}
_WARM_STARTS = 2
_FEW = 8  # variables for which the curvature is worth an evaluation of its own
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
    """Where to look, and how hard; ``source`` also serves rules that draw at random."""

    lanes: torch.Size
    source: Generators
    warm: Float[Tensor, "*lane w d"]
    """Points that may be good starts; at least one a lane."""
    candidates: int = 512
    starts: int = 6
    max_steps: int = 40

    @classmethod
    def around(cls, belief: Belief, source: Generators) -> "Search":
        """A search that knows what has been asked about."""
        points = belief.data.points
        lanes, (p, d) = belief.data.lanes, points.shape[-2:]
        if p == 0:
            return cls(lanes, source, points.new_full((*lanes, 1, d), 0.5))
        near = points + 0.05 * randn(source, lanes, p, d, like=points)
        return cls(lanes, source, torch.cat([points, near.clamp(0, 1)], -2))

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
        [k, *lane, q, d] to [k, *lane], and ``extra`` are groups worth a look.  With ``draws`` there is
        one search for each of so many scores of a lane: [draws, *lane, k, d] to [draws, *lane, k].
        A score that is not finite is never chosen if another is.
        """
        with torch.no_grad():
            if q > 1:
                return self._best_group(score, q, extra)
            return self._best_point(score, () if draws is None else (draws,))

    def spread(self, count: int) -> Float[Tensor, "*lane k d"]:
        """So many points spread over the cube."""
        points, _ = _sobol(count, self.warm.shape[-1], self.warm.device)
        return points.expand(*self.lanes, -1, -1)

    def _best_point(self, score: Scored, draws: tuple[int, ...]) -> Tensor:
        d = self.warm.shape[-1]
        shape = (*draws, *self.lanes)
        fixed, neighbours = _sobol(self.candidates, d, self.warm.device)
        x = torch.cat([fixed.expand(*self.lanes, -1, -1), self.warm], -2)
        x = x.expand(*shape, -1, -1)
        values = _finite(self._scored(score, x, x.shape[-2], -2))
        start = x.gather(-2, self._starts(values, neighbours)[..., None].expand(*shape, -1, d))
        unit = _spread(values)

        def objective(flat: Tensor) -> tuple[Tensor, Tensor]:
            value, slope = _with_slope(score, flat.view(*shape, -1, d))
            return (value / -unit).reshape(-1), (slope / -unit[..., None]).reshape(-1, d)

        flat, among = start.reshape(-1, d), start.shape[-2]
        found, value = self._climbed(objective, flat, _inverse_curvature(objective, flat, 1), among)
        best = value.view(*shape, -1).argmin(-1, keepdim=True)
        return found.view_as(start).gather(-2, best[..., None].expand(*shape, 1, d))

    def _starts(self, values: Tensor, neighbours: Tensor) -> Int[Tensor, "*c s"]:
        """Indices of the best local maxima among the Sobol points, and of the best warm ones."""
        fixed = len(neighbours)
        sobol, warm = values[..., :fixed], values[..., fixed:]
        top = (sobol[..., None] >= sobol[..., neighbours]).all(-1)
        # where there are too few local maxima the next best points fill up
        height = torch.where(
            top, sobol, sobol - 2 * (sobol.amax(-1, keepdim=True) - sobol.amin(-1, keepdim=True))
        )
        best = height.topk(min(self.starts, fixed), -1).indices
        best_warm = warm.topk(min(_WARM_STARTS, warm.shape[-1]), -1).indices
        return torch.cat([best, best_warm + fixed], -1)

    def _best_group(self, score: Scored, q: int, extra: Tensor | None) -> Tensor:
        d = self.warm.shape[-1]
        fixed, _ = _sobol(self.candidates, q * d, self.warm.device)
        x = fixed.view(-1, *[1] * len(self.lanes), q, d).expand(-1, *self.lanes, -1, -1)
        if extra is not None:
            x = torch.cat([x, extra])
        values = _finite(self._scored(score, x, x.shape[0] * q, 0))
        best = values.topk(min(self.starts, len(values)), 0).indices
        start = x.gather(0, best[..., None, None].expand(*best.shape, q, d))
        unit = _spread(values.movedim(0, -1))[..., 0]

        def objective(flat: Tensor) -> tuple[Tensor, Tensor]:
            value, slope = _with_slope(score, flat.view(-1, *self.lanes, q, d))
            return (value / -unit).reshape(-1), (slope / -unit[..., None, None]).reshape(-1, q * d)

        flat = start.reshape(-1, q * d)
        inverse = _inverse_curvature(objective, flat, 0) if q * d <= _FEW else None
        found, value = self._climbed(objective, flat, inverse, 1)
        best = value.view(best.shape).argmin(0, keepdim=True)
        return found.view_as(start).gather(0, best[..., None, None].expand(1, *best.shape[1:], q, d))[0]

    def _scored(self, score: Scored, x: Tensor, points: int, dim: int) -> Tensor:
        """Scores of all candidates, in parts that fit the memory."""
        total = max(1, math.prod(x.shape[:-1]))
        parts = math.ceil(total / _POINTS_AT_ONCE[x.device.type])
        size = max(1, math.ceil(x.shape[dim] / parts))
        return torch.cat([score(part) for part in x.split(size, dim)], -1 if dim == -2 else 0)

    def _climbed(
        self, objective: bfgs.Objective, start: Tensor, inverse: Tensor | None, rivals: int
    ) -> tuple[Tensor, Tensor]:
        return bfgs.minimize(
            objective,
            start,
            torch.zeros_like(start),
            torch.ones_like(start),
            max_steps=self.max_steps,
            gradient_tolerance=1e-5,
            value_tolerance=1e-9,
            longest_step=0.3,
            inverse=inverse,
            rivals=rivals,
        )


def _inverse_curvature(
    objective: bfgs.Objective, start: Float[Tensor, "r k"], dim: int
) -> Float[Tensor, "r k k"]:
    """Inverse of the absolute Hessian, by differences of gradients.

    All of them are one evaluation, with the moved points put beside the starts along ``dim``.  For a
    single study it costs hardly more than that of the starts alone, and saves half of the steps that
    BFGS would need to learn as much.
    """
    k = start.shape[-1]
    size = torch.where(start > 0.5, -_STEP, _STEP)
    moved = torch.cat([start[:, None, :], start[:, None, :] + torch.diag_embed(size)], 1)
    _, grad = objective(moved.movedim(1, dim).reshape(-1, k))
    grad = grad.view((len(start), k + 1, k) if dim else (k + 1, len(start), k)).movedim(dim, 1)
    hessian = ((grad[:, 1:] - grad[:, :1]) / size[..., None]).nan_to_num(0.0, 0.0, 0.0)
    values, vectors = torch.linalg.eigh((hessian + hessian.mT) / 2)
    floor = 1e-3 * values.abs().amax(-1, keepdim=True) + 1e-12
    return (vectors / values.abs().clamp_min(floor)[:, None, :]) @ vectors.mT


def _with_slope(score: Scored, x: Tensor) -> tuple[Tensor, Tensor]:
    if isinstance(score, Sloped):
        return score.with_slope(x)
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        value = score(x)
        return value.detach(), torch.autograd.grad(value.sum(), x)[0]


def _finite(values: Tensor) -> Tensor:
    return torch.nan_to_num(values, nan=-torch.inf, posinf=-torch.inf).clamp_min(-1e300)


def _spread(values: Float[Tensor, "*c k"]) -> Float[Tensor, "*c 1"]:
    """What counts as one unit of the score in each lane: the range of its better half."""
    top, middle = values.amax(-1, keepdim=True), values.median(-1, keepdim=True).values
    return (top - middle).clamp_min(1e-300)


@functools.lru_cache(maxsize=32)
def _sobol(count: int, d: int, device: torch.device) -> tuple[Float[Tensor, "s d"], Int[Tensor, "s k"]]:
    """Scrambled Sobol points, the same for everyone, and the nearest others of each."""
    points = torch.quasirandom.SobolEngine(d, scramble=True, seed=0).draw(count, dtype=torch.float64)
    near = torch.cdist(points, points).topk(2 * d + 4, largest=False).indices[:, 1:]
    return points.to(device), near.to(device)
