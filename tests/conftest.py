"""Fixtures and helpers that every test file may use."""

import jaxtyping
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


@pytest.fixture
def unchecked():
    """Without the checks of types that only tests make, which would speak up before ours."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
