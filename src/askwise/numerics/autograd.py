"""Gradients by autograd, and hand-written gradients that must not be differentiated again."""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def by_autograd(f: Callable[[Tensor], Tensor], x: Tensor) -> tuple[Tensor, Tensor]:
    """Values and gradients at the points ``x``, for f that maps each point to its own value."""
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        value = f(x)
        if not value.requires_grad:  # f does not depend on x
            return value, torch.zeros_like(x)
        return value.detach(), torch.autograd.grad(value.sum(), x)[0]


class Sloped:
    """A formula of mean and variance that also gives its slopes in both, without autograd.

    In a search's inner loop autograd takes as long as the formula.
    """

    def __init__(
        self, value: Callable[..., Tensor], with_slopes: Callable[..., tuple[Tensor, Tensor, Tensor]]
    ) -> None:
        """``with_slopes``: the value, and its slopes in mean and variance, from the same arguments."""
        functools.update_wrapper(self, value)  # its name and description
        self.value, self.with_slopes = value, with_slopes

    def __call__(self, *arguments: Tensor) -> Tensor:
        """The value alone, differentiable by autograd."""
        return self.value(*arguments)

    def plus(self, other: "Sloped", factor: float) -> "Sloped":
        """The sum of this formula and a multiple of another."""

        def with_slopes(*arguments: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            value, by_mean, by_var = self.with_slopes(*arguments)
            more, more_by_mean, more_by_var = other.with_slopes(*arguments)
            return value + factor * more, by_mean + factor * more_by_mean, by_var + factor * more_by_var

        return Sloped(lambda *arguments: self(*arguments) + factor * other(*arguments), with_slopes)


def sloped(
    with_slopes: Callable[..., tuple[Tensor, Tensor, Tensor]],
) -> Callable[[Callable[..., Tensor]], Sloped]:
    """Decorator that adds the slopes to a formula."""
    return lambda value: Sloped(value, with_slopes)


def last(gradient: Tensor, *inputs: Tensor) -> Tensor:
    """A hand-written gradient that raises if it is differentiated in the inputs.

    Otherwise a second derivative would silently treat it as a constant.
    """
    if not torch.is_grad_enabled():  # no second derivative is being built
        return gradient
    return _OnceDifferentiable.apply(gradient, *inputs)  # type: ignore[no-untyped-call]


class _OnceDifferentiable(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gradient: Tensor, *inputs: Tensor) -> Tensor:
        return gradient.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> None:
        problem = "derivative of this function must be of first order; got a request for the second."
        raise RuntimeError(f"{problem} Use finite differences of the first.")
