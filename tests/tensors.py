"""Tensors in float64, drawn or given, and their slopes, as several test files need them."""

from collections.abc import Sequence

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
