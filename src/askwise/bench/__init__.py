"""Benchmarks of rules: functions with known maxima, simulated answers, campaigns and rankings."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from askwise.bench import campaign as campaign
    from askwise.bench import effects as effects
    from askwise.bench import executors as executors
    from askwise.bench import experiments as experiments
    from askwise.bench import functions as functions
    from askwise.bench import published as published
    from askwise.bench import ranking as ranking
    from askwise.bench import report as report
    from askwise.bench import results as results

__all__ = ["campaign", "effects", "executors", "experiments", "functions"]
__all__ += ["published", "ranking", "report", "results"]


def __getattr__(name: str) -> object:
    """A module, imported on first use: a ranking needs neither torch nor matplotlib."""
    if name not in __all__:
        raise AttributeError(f"module 'askwise.bench' has no attribute {name!r}")
    return import_module(f"askwise.bench.{name}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
