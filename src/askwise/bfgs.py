"""Minimisation of many small smooth problems at once, within bounds."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["Objective", "Rivals", "minimize"]

Objective = Callable[[Tensor], tuple[Tensor, Tensor]]
_ENOUGH = 1e-4  # share of the predicted decrease that a step must bring (Armijo)
_HOPE = 3.0  # a lane goes on if so many times the gain it can expect would make it the best
_FASTER = 4.0
_MANY = 256  # lanes of which it pays to leave out those that are done
_FLAT = 1e-200  # a curvature below it is taken for negative
_SHORTEST = 1e-6  # share of the first try below which a direction is given up


@dataclass(frozen=True)
class Rivals:
    """``count`` lanes in a row compete; after ``trial`` steps only the best ``left`` go on."""

    count: int
    left: int
    trial: int


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
    rivals: Rivals | None = None,
) -> tuple[Float[Tensor, "left k"], Float[Tensor, " left"]]:
    """Local minimiser of each lane and its value, by projected BFGS; never worse than ``start``.

    ``objective`` maps [lane, k] to values [lane] and gradients [lane, k]; a value that is not
    finite counts as too high.  A lane is done when its projected gradient is below
    ``gradient_tolerance``, or a step lowers its value by less than ``value_tolerance``, or no step
    along the gradient helps any more; done lanes stay where they are.  Each evaluation is one step of
    every lane: forward, or a shorter one where the last went too far.

    ``inverse``: what is known of the inverse Hessian at the start.  ``rivals``: groups of lanes look for
    one and the same minimum; those far behind give up, and only some are returned.
    Source: Bertsekas (1982), SIAM J. Control Optim. 20, for the treatment of the bounds.
    """
    with torch.no_grad():
        x = start.clamp(lower, upper)
        lanes = _Lanes(objective, x, lower, upper, inverse, longest_step)
        for number in range(max_steps):
            if rivals is not None and number == rivals.trial:
                lanes.keep(rivals)
                rivals = replace(rivals, count=rivals.left)
            if not lanes.look(gradient_tolerance, 1 if rivals is None else rivals.count):
                break
            lanes.step(value_tolerance, 1 if rivals is None else rivals.count)
        if rivals is not None and rivals.count > rivals.left:
            lanes.keep(rivals)
        return lanes.x, lanes.value


class _Lanes:
    """The state of all lanes between two evaluations.

    A study is a handful of lanes, and then every tensor operation costs the same 2 to 4 us, whatever
    it does; so this is written in few operations.
    """

    def __init__(
        self,
        objective: Objective,
        x: Tensor,
        lower: Tensor,
        upper: Tensor,
        inverse: Tensor | None,
        longest: float,
    ) -> None:
        self.objective, self.lower, self.upper, self.longest = objective, lower, upper, longest
        self.x = x
        self.value, self.grad = self.evaluated(x)
        self.value = self.value.nan_to_num(torch.inf, torch.inf, -torch.inf)
        self.running = torch.ones_like(self.value, dtype=torch.bool)
        self.share = torch.ones_like(self.value)
        # nothing is known of a fresh lane's curvature: it goes downhill
        self.fresh = self.running if inverse is None else ~self.running
        self.some_fresh = inverse is None
        self.unit = torch.eye(x.shape[-1], dtype=x.dtype, device=x.device)
        self.inverse = self.unit.expand(*x.shape, -1) if inverse is None else inverse

    def evaluated(self, x: Tensor) -> tuple[Tensor, Tensor]:
        with torch.enable_grad():
            return self.objective(x)

    def evaluated_while_running(self, x: Tensor, rivals: int) -> tuple[Tensor, Tensor]:
        """The same without most of the lanes that are done: as many of each group as one of them needs.

        Saves a third of the time of draws with many features.  A GPU is better off without the choosing.
        """
        if x.is_cuda or len(x) < _MANY:
            return self.evaluated(x)
        running = self.running.view(-1, rivals)
        needed = int(running.sum(-1).max())
        if needed == rivals:
            return self.evaluated(x)
        first = torch.arange(0, len(x), rivals, device=x.device)
        rows = (running.to(torch.uint8).topk(needed, -1).indices + first[:, None]).view(-1)
        value, grad = self.evaluated(x[rows])
        return self.value.index_copy(0, rows, value), self.grad.index_copy(0, rows, grad)

    def keep(self, rivals: Rivals) -> None:
        """Go on with the best of each group of rivals alone."""
        best = self.value.view(-1, rivals.count).topk(rivals.left, -1, largest=False).indices
        first = torch.arange(0, len(self.value), rivals.count, device=best.device)
        rows = (best + first[:, None]).view(-1)
        for name in ("x", "value", "grad", "lower", "upper", "running", "share", "fresh", "inverse"):
            setattr(self, name, getattr(self, name)[rows])

    def look(self, gradient_tolerance: float, rivals: int) -> bool:
        """Choose each lane's direction; false if all are done."""
        # held: downhill leads out of the bounds (or nowhere)
        self.held = (self.x - self.grad).clamp(self.lower, self.upper) == self.x
        downhill = self.grad.masked_fill(self.held, 0.0).neg_()
        running = self.running & (downhill.abs().amax(-1) > gradient_tolerance)
        move = (self.inverse * downhill[:, None, :]).sum(-1).masked_fill_(self.held, 0.0)
        gain = (move * downhill).sum(-1)
        uphill = ~(gain > 0)
        move = torch.where(uphill[:, None], downhill, move)
        size = move.abs().amax(-1, keepdim=True).clamp_min_(self.longest)
        self.move = move.mul_(self.longest).div_(size)
        if rivals > 1:
            value = self.value.view(-1, rivals)
            behind = (value - value.amin(-1, keepdim=True)).view(-1)
            running = running & (uphill | (behind <= _HOPE * gain))
        self.running = running
        return bool(running.any())

    def step(self, value_tolerance: float, rivals: int) -> None:
        """Try each running lane's step; take it, or remember to try a shorter one."""
        share = self.share.masked_fill(~self.running, 0.0)[:, None]
        new_x = torch.addcmul(self.x, share, self.move).clamp_(self.lower, self.upper)
        value, grad = self.evaluated_while_running(new_x, rivals)
        s, change = new_x - self.x, self.value - value
        predicted = (self.grad * s).sum(-1)
        probe = value + grad.sum(-1)  # minus itself it is zero if all of them are finite
        good = self.running & (change >= -_ENOUGH * predicted) & (probe - probe == 0)
        self._learn(s, (grad - self.grad).masked_fill_(self.held, 0.0), good)
        short = self.running & ~good
        if short.any():
            self._shorten(change, predicted, short)
        self.share.masked_fill_(good, 1.0)
        self.running = self.running & ~(good & (change < value_tolerance))
        taken = good[:, None]
        self.x = torch.where(taken, new_x, self.x)
        self.grad = torch.where(taken, grad, self.grad)
        self.value = torch.where(good, value, self.value)

    def _shorten(self, change: Tensor, predicted: Tensor, short: Tensor) -> None:
        """Where a parabola through what is known has its minimum; a tenth to a half of the step."""
        factor = (predicted / (2 * (predicted + change))).nan_to_num_(0.5).clamp_(0.1, 0.5)
        self.share = torch.where(short, self.share * factor, self.share)
        # a lane without a step along its quasi-Newton direction gets one more chance, downhill
        stuck = short & (self.share < _SHORTEST)
        if stuck.any():
            self.running = self.running & ~(stuck & self.fresh)
            self.inverse = torch.where(stuck[:, None, None], self.unit, self.inverse)
            self.share = self.share.masked_fill(stuck, 1.0)
            self.fresh, self.some_fresh = self.fresh | stuck, True

    def _learn(self, s: Tensor, y: Tensor, good: Tensor) -> None:
        """Update the inverse Hessian for a step s that changed the gradient by y (BFGS)."""
        curvature = (s * y).sum(-1)
        used = good & (curvature > _FLAT)
        rate = curvature.reciprocal().masked_fill_(~used, 0.0)
        if self.some_fresh:  # the first step tells the scale
            scale = torch.where(used & self.fresh, curvature / y.square().sum(-1), 1.0)
            self.inverse = self.inverse * scale[:, None, None]
            self.fresh = self.fresh & ~used
        Hy = (self.inverse * y[:, None, :]).sum(-1)
        along = torch.addcmul(rate, rate.square(), (y * Hy).sum(-1)).div_(2)
        half = s[..., None] * (along[:, None] * s - rate[:, None] * Hy)[:, None, :]
        self.inverse = self.inverse + (half + half.mT)
        idle = good & ~used
        if idle.any():  # where the curvature is negative it tells no step length: go faster
            self.inverse = torch.where(idle[:, None, None], _FASTER * self.inverse, self.inverse)
