"""Minimisation of many small smooth problems at once, within bounds."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["Objective", "minimize"]

Objective = Callable[[Tensor], tuple[Tensor, Tensor]]
_ENOUGH = 1e-4  # share of the predicted decrease that a step must bring (Armijo)
_HOPE = 3.0  # a lane goes on if so many times the gain it can expect would make it the best
_FASTER = 4.0
_SHORTEST = 1e-6  # share of the first try below which a direction is given up


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
    rivals: int = 1,
) -> tuple[Float[Tensor, "lane k"], Float[Tensor, " lane"]]:
    """Local minimiser of each lane and its value, by projected BFGS; never worse than ``start``.

    ``objective`` maps [lane, k] to values [lane] and gradients [lane, k]; a value that is not
    finite counts as too high.  A lane is done when its projected gradient is below
    ``gradient_tolerance``, or a step lowers its value by less than ``value_tolerance``, or no step
    along the gradient helps any more; done lanes stay where they are.  Each evaluation is one step of
    every lane: forward, or a shorter one where the last went too far.

    ``inverse``: what is known of the inverse Hessian at the start.  ``rivals``: so many lanes in a row
    look for one and the same minimum; one that is far behind the best of them gives up.
    Source: Bertsekas (1982), SIAM J. Control Optim. 20, for the treatment of the bounds.
    """
    with torch.no_grad():
        x = start.clamp(lower, upper)
        lanes = _Lanes(objective, x, lower, upper, inverse, longest_step)
        for _ in range(max_steps):
            if not lanes.look(gradient_tolerance, rivals):
                break
            lanes.step(value_tolerance)
        return lanes.x, lanes.value


class _Lanes:
    """The state of all lanes between two evaluations."""

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
        self.unit = torch.eye(x.shape[-1], dtype=x.dtype, device=x.device).expand(*x.shape, -1)
        self.running = torch.ones_like(self.value, dtype=torch.bool)
        # nothing is known of a fresh lane's curvature: it goes downhill
        self.fresh = self.running if inverse is None else ~self.running
        self.inverse = self.unit if inverse is None else inverse
        self.share = torch.ones_like(self.value)

    def evaluated(self, x: Tensor) -> tuple[Tensor, Tensor]:
        with torch.enable_grad():
            return self.objective(x)

    def look(self, gradient_tolerance: float, rivals: int) -> bool:
        """Choose each lane's direction; false if all are done."""
        self.held = ((self.x <= self.lower) & (self.grad > 0)) | ((self.x >= self.upper) & (self.grad < 0))
        downhill = -self.grad.masked_fill(self.held, 0.0)
        self.running = self.running & (downhill.abs().amax(-1) > gradient_tolerance)
        move = (self.inverse @ downhill[..., None])[..., 0].masked_fill_(self.held, 0.0)
        gain = (move * downhill).sum(-1)
        uphill = ~(gain > 0)
        move = torch.where(uphill[:, None], downhill, move)
        size = move.abs().amax(-1, keepdim=True)
        self.move = move * (self.longest / size.clamp_min(self.longest))
        if rivals > 1:
            behind = self.value.view(-1, rivals)
            behind = (behind - behind.amin(-1, keepdim=True)).view(-1)
            self.running = self.running & (uphill | (behind <= _HOPE * gain))
        return bool(self.running.any())

    def step(self, value_tolerance: float) -> None:
        """Try each running lane's step; take it, or remember to try a shorter one."""
        share = torch.where(self.running, self.share, 0.0)[:, None]
        new_x = (self.x + share * self.move).clamp(self.lower, self.upper)
        value, grad = self.evaluated(new_x)
        s = new_x - self.x
        predicted = (self.grad * s).sum(-1)
        sound = value.isfinite() & grad.isfinite().all(-1)
        good = self.running & sound & (value <= self.value + _ENOUGH * predicted)
        self._learn(s, (grad - self.grad).masked_fill(self.held, 0.0), good)
        short = self.running & ~good
        if short.any():
            self._shorten(value, predicted, sound, short)
        self.share = torch.where(good, 1.0, self.share)
        self.running = self.running & ~(good & (self.value - value < value_tolerance))
        self.x = torch.where(good[:, None], new_x, self.x)
        self.grad = torch.where(good[:, None], grad, self.grad)
        self.value = torch.where(good, value, self.value)

    def _shorten(self, value: Tensor, predicted: Tensor, sound: Tensor, short: Tensor) -> None:
        """Where a parabola through what is known has its minimum; a tenth to a half of the step."""
        parabola = predicted / (2 * (predicted - (value - self.value)))
        factor = torch.where(sound, parabola, 0.5).nan_to_num(0.5).clamp(0.1, 0.5)
        self.share = torch.where(short, self.share * factor, self.share)
        # a lane without a step along its quasi-Newton direction gets one more chance, downhill
        stuck = short & (self.share < _SHORTEST)
        self.running = self.running & ~(stuck & self.fresh)
        self.inverse = torch.where(stuck[:, None, None], self.unit, self.inverse)
        self.share = torch.where(stuck, 1.0, self.share)
        self.fresh = self.fresh | stuck

    def _learn(self, s: Tensor, y: Tensor, good: Tensor) -> None:
        """Update the inverse Hessian for a step s that changed the gradient by y (BFGS)."""
        curvature, squared = (s * y).sum(-1), y.square().sum(-1)
        used = good & (curvature > 1e-10 * (s.square().sum(-1) * squared).sqrt())
        safe = torch.where(used, curvature, 1.0)
        start = self.inverse
        if self.fresh.any():  # the first step tells the scale
            scale = torch.where(used, safe / squared, 1.0)[:, None, None]
            start = torch.where(self.fresh[:, None, None], scale * self.unit, start)
        Hy = (start @ y[..., None])[..., 0]
        along = (1 + (y * Hy).sum(-1) / safe) / safe
        cross = s[..., None] * (along[:, None] * s / 2 - Hy / safe[:, None])[..., None, :]
        # where the curvature is negative it tells no step length: go faster
        factor = torch.where(good & ~used, _FASTER, 1.0)[:, None, None]
        self.inverse = torch.where(used[:, None, None], start + (cross + cross.mT), factor * self.inverse)
        self.fresh = self.fresh & ~used
