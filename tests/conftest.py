"""Fixtures and helpers that every test file may use."""

import pytest
import torch
from hypothesis import settings

settings.register_profile("askwise", deadline=None, print_blob=True, derandomize=True)
settings.load_profile("askwise")


@pytest.fixture(autouse=True)
def one_thread():
    """Several workers share the cores; more threads each would only get in each other's way."""
    torch.set_num_threads(1)


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)
