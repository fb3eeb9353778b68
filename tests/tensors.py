"""Tensors in float64, drawn or given, as several test files need them."""

import torch
from torch import Tensor


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def uniform(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=seeded(seed), dtype=torch.float64)


def f64(values: object) -> Tensor:
    return torch.as_tensor(values, dtype=torch.float64)
