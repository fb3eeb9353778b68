"""Minimisation of many small smooth problems at once, within bounds."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["minimize"]

Objective = Callable[[Tensor], tuple[Tensor, Tensor]]
_HALVINGS = 20
_ENOUGH = 1e-4  # share of the predicted decrease that a step must bring (Armijo)


def minimize(
    objective: Objective,
    start: Float[Tensor, "lane k"],
    lower: Float[Tensor, "lane k"],
    upper: Float[Tensor, "lane k"],
    *,
    max_steps: int = 100,
    gradient_tolerance: float = 1e-5,
    longest_step: float = 2.0,
) -> tuple[Float[Tensor, "lane k"], Float[Tensor, " lane"]]:
    """Local minimiser of each lane and its value, by projected BFGS; never worse than ``start``.

    ``objective`` maps [lane, k] to values [lane] and gradients [lane, k]; a value that is not
    finite counts as too high.  A lane is done when its projected gradient is below
    ``gradient_tolerance``, or no step along it helps any more; done lanes stay where they are.
    Source: Bertsekas (1982), SIAM J. Control Optim. 20, for the treatment of the bounds.
    """
    x = start.clamp(lower, upper)
    value, grad = objective(x)
    eye = torch.eye(x.shape[-1], dtype=x.dtype, device=x.device).expand(*x.shape, -1)
    hessian = eye
    running = torch.ones_like(value, dtype=torch.bool)
    for _ in range(max_steps):
        free = ~(((x <= lower) & (grad > 0)) | ((x >= upper) & (grad < 0)))
        running = running & ((grad * free).abs().amax(-1) > gradient_tolerance)
        if not running.any():
            break
        move = _direction(hessian, grad, free, longest_step)
        new_x, new_value, new_grad, found = _line_search(
            objective, x, value, grad, move, lower, upper, running
        )
        # a lane without a step along its quasi-Newton direction gets one more chance, downhill
        stuck = running & ~found
        fresh = (hessian == eye).flatten(1).all(-1)
        running = running & ~(stuck & fresh)
        hessian = _updated(hessian, new_x - x, new_grad - grad, found, fresh)
        hessian = torch.where(stuck[:, None, None], eye, hessian)
        x, value, grad = new_x, new_value, new_grad
    return x, value


def _direction(hessian: Tensor, grad: Tensor, free: Tensor, longest: float) -> Tensor:
    """Newton's step in the free variables alone, no longer than ``longest`` in any of them."""
    mask = free.to(grad.dtype)
    held = torch.diag_embed(1 - mask)
    lower, info = torch.linalg.cholesky_ex(mask[..., None] * hessian * mask[..., None, :] + held)
    downhill = -mask * grad
    move = torch.cholesky_solve(downhill[..., None], lower)[..., 0]
    usable = (info == 0)[:, None] & ((move * grad).sum(-1, keepdim=True) < 0)
    move = torch.where(usable, move, downhill)
    return move * (longest / move.abs().amax(-1, keepdim=True).clamp_min(longest))


def _line_search(  # noqa: PLR0913
    objective: Objective,
    x: Tensor,
    value: Tensor,
    grad: Tensor,
    move: Tensor,
    lower: Tensor,
    upper: Tensor,
    running: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The longest halved step that decreases enough, for each lane; lanes without one stay."""
    found = ~running
    new_x, new_value, new_grad = x, value, grad
    step = torch.ones_like(value)
    for _ in range(_HALVINGS):
        trial = torch.where(found[:, None], new_x, (x + step[:, None] * move).clamp(lower, upper))
        trial_value, trial_grad = objective(trial)
        predicted = (grad * (trial - x)).sum(-1)
        sound = trial_value.isfinite() & trial_grad.isfinite().all(-1)
        good = ~found & sound & (trial_value <= value + _ENOUGH * predicted)
        new_x = torch.where(good[:, None], trial, new_x)
        new_value = torch.where(good, trial_value, new_value)
        new_grad = torch.where(good[:, None], trial_grad, new_grad)
        found = found | good
        if found.all():
            break
        step = torch.where(found, step, step / 2)
    return new_x, new_value, new_grad, found & running


def _updated(hessian: Tensor, s: Tensor, y: Tensor, moved: Tensor, fresh: Tensor) -> Tensor:
    """The Hessian after a step s that changed the gradient by y (BFGS); the first one sets its scale."""
    curvature = (s * y).sum(-1)
    useful = moved & (curvature > 1e-10 * s.norm(dim=-1) * y.norm(dim=-1))
    safe = torch.where(useful, curvature, 1.0)
    scale = torch.where(useful & fresh, y.square().sum(-1) / safe, 1.0)[:, None, None]
    s, y, start = s[..., None], y[..., None], scale * hessian
    Bs = start @ s
    along = (s.mT @ Bs).clamp_min(torch.finfo(s.dtype).tiny)
    updated = start + y @ y.mT / safe[:, None, None] - Bs @ Bs.mT / along
    return torch.where(useful[:, None, None], updated, hessian)
