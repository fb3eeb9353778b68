"""Final regrets of campaigns, and means with their intervals in words, for pages with tables of them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float

from askwise.bench.estimates import Interval
from askwise.bench.functions import named
from askwise.bench.problems import Problem
from askwise.bench.results import load

Regrets = dict[str, Float[np.ndarray, "function replicate"]]
"""By rule; 0 is the best point, 1 an average one."""


def regrets(folder: Path, dimensions: tuple[int, ...] | None = None) -> Regrets:
    """Those of all runs of a campaign with standardised functions, of all or of some dimensions."""
    found = load(folder)
    chosen = [k for k, name in enumerate(found.functions) if not dimensions or named(name).dim in dimensions]
    best = np.array([Problem.of(found.functions[k], "standardised").best for k in chosen])[:, None]
    return {rule: (best - scores[chosen][..., -1]) / best for rule, scores in found.scores.items()}


def together(found: Regrets, rules: Sequence[str]) -> np.ndarray:
    """All runs of these rules on each function."""
    return np.concatenate([found[rule] for rule in rules], axis=1)


def within(one: Interval, digits: int = 3) -> str:
    """A mean and its interval."""
    return f"{one.mean:.{digits}f} ({one.low:.{digits}f} to {one.high:.{digits}f})"


def within_both(fixed: Interval, drawn: Interval, digits: int = 3) -> str:
    """A mean and its intervals for these functions and for functions like these."""
    return f"{within(fixed, digits)[:-1]}; {drawn.low:.{digits}f} to {drawn.high:.{digits}f})"
