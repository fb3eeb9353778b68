"""Tensors in float64, drawn or given, and their slopes, as several test files need them."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from torch import Tensor


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def uniform(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=seeded(seed), dtype=torch.float64)


def f64(values: object) -> Tensor:
    return torch.as_tensor(values, dtype=torch.float64)


def assert_same_slopes(
    ours: Tensor, theirs: Tensor, inputs: Sequence[Tensor], rtol: float, atol: float
) -> None:
    """Both have the same gradients in the inputs, whatever the weights of their entries."""
    weights = uniform(*ours.shape, seed=5)
    for got, want in zip(
        torch.autograd.grad((weights * ours).sum(), inputs),
        torch.autograd.grad((weights * theirs).sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(got, want, rtol=rtol, atol=atol)


def assert_slopes_are_differences(
    value: Callable[[], Tensor], parameters: Sequence[Tensor], rel: float, abs: float, step: float = 1e-4
) -> None:
    """The gradient of a number in the parameters, which it depends on, is that of finite differences."""
    grads = torch.autograd.grad(value(), parameters)
    for parameter, grad in zip(parameters, grads, strict=True):
        for index in np.ndindex(*parameter.shape):
            ends = []
            for by in (step, -step):
                with torch.no_grad():
                    parameter[index] += by
                    ends.append(float(value()))
                    parameter[index] -= by
            assert float(grad[index]) == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=rel, abs=abs)
