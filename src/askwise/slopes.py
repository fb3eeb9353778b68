"""Slopes by autograd, and slopes by hand that autograd must not follow further."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

__all__ = ["by_autograd", "last"]


def by_autograd(f: Callable[[Tensor], Tensor], x: Tensor) -> tuple[Tensor, Tensor]:
    """Values of f at ``x`` and their gradients, where each point has its own value."""
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        value = f(x)
        if not value.requires_grad:  # the same everywhere
            return value, torch.zeros_like(x)
        return value.detach(), torch.autograd.grad(value.sum(), x)[0]


def last(slope: Tensor, *inputs: Tensor) -> Tensor:
    """A slope computed by hand, whose own slope in the inputs is refused.

    Without this, a second derivative would silently take the first for a constant.
    """
    if not torch.is_grad_enabled():  # nobody asks for a second derivative
        return slope
    refused: Tensor = _Last.apply(slope, *inputs)  # type: ignore[no-untyped-call]
    return refused


class _Last(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, slope: Tensor, *inputs: Tensor) -> Tensor:
        return slope.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> None:
        raise RuntimeError(
            "derivative of this function must be of first order; got a request for the second. "
            "Use finite differences of the first."
        )
