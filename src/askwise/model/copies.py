"""Copies of GPyTorch kernels: with parameters of their own in each lane, or with other ones."""

import copy
from collections.abc import Mapping
from typing import Any

import torch
from gpytorch.kernels import Kernel

from askwise.errors import Refused
from askwise.model.data import Data


def one_per_lane(kernel: Kernel, data: Data) -> Kernel:
    """A copy in float64 with the data's lanes: a kernel without lanes is repeated for each."""
    copied = copy.deepcopy(kernel).to(device=data.points.device, dtype=torch.float64)
    if data.lanes and not copied.batch_shape:
        for part in copied.parameters():
            part.data = part.data.expand(*data.lanes, *part.shape).clone()
        for module in copied.modules():
            if isinstance(module, Kernel):
                module.batch_shape = data.lanes
    if any(part.shape[: len(data.lanes)] != data.lanes for part in copied.parameters()):
        expected = f"have the data's lanes, {tuple(data.lanes)}, or none, in all its parts"
        advice = "Give every part that batch_shape, or none of them."
        raise Refused("kernel", expected, tuple(kernel.batch_shape), advice)
    return copied


def with_parameters(kernel: Kernel, raw: Mapping[str, Any]) -> Kernel:
    """A copy with these raw parameters: equal to a fitted kernel, if they are those of one."""
    copied = copy.deepcopy(kernel).to(dtype=torch.float64).requires_grad_(False)
    for name, part in copied.named_parameters():
        part.data = torch.tensor(raw[name], dtype=torch.float64).reshape(part.shape)
    return copied
