"""Fixtures and helpers that every test file may use."""

import signal

import jaxtyping
import pytest
import torch
from hypothesis import settings

settings.register_profile("all", deadline=None, print_blob=True, derandomize=True)
settings.register_profile("fast", settings.get_profile("all"), max_examples=25)


def pytest_configure(config: pytest.Config) -> None:
    """Fewer examples of each property in the fast suite; Ctrl-C as in a terminal."""
    settings.load_profile("fast" if config.option.markexpr == "not slow" else "all")
    # shells start what runs in the background with Ctrl-C ignored, and so would be the programs we start
    signal.signal(signal.SIGINT, signal.default_int_handler)


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
