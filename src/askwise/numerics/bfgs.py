"""Batched projected BFGS: many small smooth problems at once, within bounds."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

Objective = Callable[[Tensor], tuple[Tensor, Tensor]]
_ARMIJO = 1e-4  # sufficient decrease, as a fraction of the predicted one
_PRUNING_MARGIN = 3.0  # prune a lane if this multiple of its predicted gain would not make it the best
_EXPANSION = 4.0  # growth of the inverse Hessian after a step along negative curvature
_COMPACT_FROM, _COMPACT_ENTRIES = 256, 2**12  # lanes or entries from which skipping converged ones pays off
_DIVIDE_FROM = 32  # the same where whole groups can be skipped
_MANY_VARIABLES = 16  # from which batched products are faster: with 50, by a factor of two to four
_MIN_CURVATURE = 1e-200
_MIN_STEP_SIZE = 1e-6


@runtime_checkable
class Divisible(Protocol):
    """An objective that may be evaluated for some groups of lanes alone."""

    @property
    def divisible(self) -> bool:
        """Whether it may."""

    def among(self, groups: Tensor) -> Objective:
        """The objective of these groups."""


@dataclass(frozen=True)
class Pruning:
    """A ``group`` of consecutive lanes seeks one minimum; ``after`` steps, only the best ``keep`` go on."""

    group: int
    keep: int
    after: int


def minimize(  # noqa: PLR0913
    objective: Objective,
    start: Float[Tensor, "lane k"],
    lower: Float[Tensor, "lane k"],
    upper: Float[Tensor, "lane k"],
    *,
    max_steps: int = 200,
    gradient_tolerance: float = 1e-5,
    value_tolerance: float = 0.0,
    longest_step: float = 2.0,
    inverse: Float[Tensor, "lane k k"] | None = None,
    known: tuple[Float[Tensor, " lane"], Float[Tensor, "lane k"]] | None = None,
    pruning: Pruning | None = None,
) -> tuple[Float[Tensor, "kept k"], Float[Tensor, " kept"]]:
    """Local minimiser of each lane and its value, by projected BFGS; never worse than ``start``.

    ``objective`` maps [lane, k] to values [lane] and gradients [lane, k]; a non-finite value counts as
    too high.  A lane has converged when its projected gradient is below ``gradient_tolerance``, when a step
    lowers its value by less than ``value_tolerance``, or can be expected to once it is short enough, or when
    backtracking along the gradient fails; it then stays where it is.  Each evaluation serves one step of
    every lane, a new one or a backtracked one.  ``inverse``: initial inverse Hessian.  ``known``: values and
    gradients at the starts.  ``pruning``: lanes that fall far behind their group stop, and only the best of
    each group are returned.
    Source: Bertsekas (1982), SIAM J. Control Optim. 20, for the treatment of the bounds.
    """
    with torch.no_grad():
        lanes = _Lanes(objective, start.clamp(lower, upper), lower, upper, inverse, known)
        for number in range(max_steps):
            if pruning is not None and number == pruning.after:
                lanes.prune(pruning)
                pruning = replace(pruning, group=pruning.keep)
            group = 1 if pruning is None else pruning.group
            if not lanes.choose_directions(gradient_tolerance, longest_step, group):
                break
            lanes.step(value_tolerance, group)
        if pruning is not None and pruning.group > pruning.keep:
            lanes.prune(pruning)
        return lanes.x, lanes.value


class _Lanes:
    """State of all lanes between two evaluations.

    A study has few lanes, for which every tensor operation costs 2 to 4 us: hence as few as possible.
    """

    def __init__(
        self,
        objective: Objective,
        x: Tensor,
        lower: Tensor,
        upper: Tensor,
        inverse: Tensor | None,
        known: tuple[Tensor, Tensor] | None,
    ) -> None:
        self.objective, self.x, self.lower, self.upper = objective, x, lower, upper
        # where it can be divided: what is evaluated, and of which groups; all before the first time
        self.divisible = isinstance(objective, Divisible) and objective.divisible
        self.some, self.groups = objective, torch.empty(0, dtype=torch.long)
        self.value, self.grad = self.evaluate(x) if known is None else known
        self.value = self.value.nan_to_num(torch.inf, torch.inf, -torch.inf)
        self.running = torch.ones_like(self.value, dtype=torch.bool)
        self.step_size = torch.ones_like(self.value)
        # a fresh lane has no curvature information and follows the gradient
        self.fresh = self.running if inverse is None else ~self.running
        self.some_fresh = inverse is None
        self.eye = torch.eye(x.shape[-1], dtype=x.dtype, device=x.device)
        self.inverse = self.eye.expand(*x.shape, -1) if inverse is None else inverse

    def evaluate(self, x: Tensor) -> tuple[Tensor, Tensor]:
        with torch.enable_grad():
            return self.objective(x)

    def evaluate_running(self, x: Tensor, group: int) -> tuple[Tensor, Tensor]:
        """Evaluate without most of the converged lanes: as many of each group as the busiest one needs.

        Saves more than half of the time for draws with many features; on a GPU it costs more than it saves.
        """
        few = len(x) < _COMPACT_FROM and x.numel() < _COMPACT_ENTRIES
        if x.is_cuda or (len(x) < _DIVIDE_FROM if self.divisible else few):
            return self.evaluate(x)
        running = self.running.view(-1, group)
        each = running.sum(-1)
        needed, divided = int(each.max()), self.divide(each)
        if needed == group and not divided:
            return self.evaluate(x)
        chosen = running[self.groups].to(torch.uint8).topk(needed, -1).indices
        rows = (chosen + group * self.groups[:, None]).view(-1)
        with torch.enable_grad():
            value, grad = self.some(x[rows])
        return self.value.index_copy(0, rows, value), self.grad.index_copy(0, rows, grad)

    def divide(self, running: Int[Tensor, " groups"]) -> bool:
        """Leave out groups that have converged, half of them at a time; whether any are left out."""
        if not len(self.groups):
            self.groups = torch.arange(len(running))
        active = running[self.groups] > 0
        if self.divisible and 2 * int(active.sum()) <= len(active):
            assert isinstance(self.some, Divisible)
            kept = active.nonzero()[:, 0]
            self.some, self.groups = self.some.among(kept), self.groups[kept]
        return len(self.groups) < len(running)

    def rows(self, chosen: Tensor, group: int) -> Tensor:
        """Indices of lanes from indices within each group."""
        first = torch.arange(0, len(self.x), group, device=chosen.device)
        return (chosen + first[:, None]).view(-1)

    def prune(self, pruning: Pruning) -> None:
        """Drop all but the best lanes of each group."""
        best = self.value.view(-1, pruning.group).topk(pruning.keep, -1, largest=False).indices
        rows = self.rows(best, pruning.group)
        for name in ("x", "value", "grad", "lower", "upper", "running", "step_size", "fresh", "inverse"):
            setattr(self, name, getattr(self, name)[rows])

    def choose_directions(self, gradient_tolerance: float, longest_step: float, group: int) -> bool:
        """Set the direction of each lane; false if all have converged."""
        # active: the gradient step leaves the bounds (or is zero)
        self.active = (self.x - self.grad).clamp(self.lower, self.upper) == self.x
        downhill = self.grad.masked_fill(self.active, 0.0).neg_()
        running = self.running & (downhill.abs().amax(-1) > gradient_tolerance)
        direction = self._inverse_times(downhill).masked_fill_(self.active, 0.0)
        gain = (direction * downhill).sum(-1)
        uphill = ~(gain > 0)
        direction = torch.where(uphill[:, None], downhill, direction)
        size = direction.abs().amax(-1, keepdim=True).clamp_min_(longest_step)
        self.direction = direction.mul_(longest_step).div_(size)
        if group > 1:
            value = self.value.view(-1, group)
            behind = (value - value.amin(-1, keepdim=True)).view(-1)
            running = running & (uphill | (behind <= _PRUNING_MARGIN * gain))
        self.running = running
        return bool(running.any())

    def step(self, value_tolerance: float, group: int) -> None:
        """Try the step of each running lane; accept it, or shorten it for the next try."""
        step_size = self.step_size.masked_fill(~self.running, 0.0)[:, None]
        new_x = torch.addcmul(self.x, step_size, self.direction).clamp_(self.lower, self.upper)
        value, grad = self.evaluate_running(new_x, group)
        s, decrease = new_x - self.x, self.value - value
        predicted = (self.grad * s).sum(-1)
        probe = value + grad.sum(-1)  # probe - probe is 0 only if value and gradient are finite
        accepted = self.running & (decrease >= -_ARMIJO * predicted) & (probe - probe == 0)
        self._update_inverse(s, (grad - self.grad).masked_fill_(self.active, 0.0), accepted)
        rejected = self.running & ~accepted
        if rejected.any():
            self._backtrack(decrease, predicted, rejected, value_tolerance)
        self.step_size.masked_fill_(accepted, 1.0)
        self.running = self.running & ~(accepted & (decrease < value_tolerance))
        moved = accepted[:, None]
        self.x = torch.where(moved, new_x, self.x)
        self.grad = torch.where(moved, grad, self.grad)
        self.value = torch.where(accepted, value, self.value)

    def _backtrack(
        self, decrease: Tensor, predicted: Tensor, rejected: Tensor, value_tolerance: float
    ) -> None:
        """Shrink to the minimum of the interpolating parabola, by a factor of 0.1 to 0.5."""
        factor = (predicted / (2 * (predicted + decrease))).nan_to_num_(0.5).clamp_(0.1, 0.5)
        self.step_size = torch.where(rejected, self.step_size * factor, self.step_size)
        self.running = self.running & ~(rejected & ((predicted * factor).abs() < value_tolerance))
        # where the quasi-Newton direction fails, restart once along the gradient
        stuck = rejected & (self.step_size < _MIN_STEP_SIZE)
        if stuck.any():
            self.running = self.running & ~(stuck & self.fresh)
            self.inverse = torch.where(stuck[:, None, None], self.eye, self.inverse)
            self.step_size = self.step_size.masked_fill(stuck, 1.0)
            self.fresh, self.some_fresh = self.fresh | stuck, True

    def _update_inverse(self, s: Tensor, y: Tensor, accepted: Tensor) -> None:
        """BFGS update of the inverse Hessian for a step s that changed the gradient by y."""
        curvature = (s * y).sum(-1)
        used = accepted & (curvature > _MIN_CURVATURE)
        rate = curvature.reciprocal().masked_fill_(~used, 0.0)
        if self.some_fresh:  # the first step sets the scale
            scale = torch.where(used & self.fresh, curvature / y.square().sum(-1), 1.0)
            self.inverse = self.inverse * scale[:, None, None]
            self.fresh = self.fresh & ~used
        Hy = self._inverse_times(y)
        along = torch.addcmul(rate, rate.square(), (y * Hy).sum(-1)).div_(2)
        other = along[:, None] * s - rate[:, None] * Hy
        if s.shape[-1] >= _MANY_VARIABLES:
            left, right = torch.stack([s, other], -1), torch.stack([other, s], -2)
            self.inverse = torch.baddbmm(self.inverse, left, right)
        else:
            half = s[..., None] * other[:, None, :]
            self.inverse = self.inverse + (half + half.mT)
        concave = accepted & ~used
        if concave.any():  # negative curvature gives no step length: take longer steps
            self.inverse = torch.where(concave[:, None, None], _EXPANSION * self.inverse, self.inverse)

    def _inverse_times(self, vector: Float[Tensor, "lane k"]) -> Float[Tensor, "lane k"]:
        """The inverse Hessians times a vector each."""
        if vector.shape[-1] >= _MANY_VARIABLES:
            return (vector[:, None, :] @ self.inverse)[:, 0]
        return (self.inverse * vector[:, None, :]).sum(-1)
