"""Uncertainty about the next outcome under a belief, split into epistemic and aleatoric parts."""

from dataclasses import dataclass
from typing import Literal

from jaxtyping import Float
from torch import Tensor

from askwise.errors import Refused
from askwise.model.belief import Belief
from askwise.numerics import (
    aleatoric_entropy,
    aleatoric_variance,
    binary_entropy,
    epistemic_variance,
    mutual_information,
    standardised,
    success_probability,
)


@dataclass(frozen=True)
class Decomposition:
    """Uncertainty about an outcome: ``total = epistemic + aleatoric``."""

    total: Tensor
    epistemic: Tensor
    aleatoric: Tensor


def decompose(
    belief: Belief,
    x: Float[Tensor, "*b q d"],
    other: Float[Tensor, "*c q d"] | None = None,
    measure: Literal["variance", "entropy"] = "variance",
) -> Decomposition:
    """Uncertainty about a yes/no answer at ``x``, or about the duel of ``x`` with ``other``."""
    mean, var = belief.in_noise(x, other)
    if measure == "variance":
        p, q = success_probability(mean, var), success_probability(-mean, var)
        return Decomposition(p * q, epistemic_variance(mean, var), aleatoric_variance(mean, var))
    if measure == "entropy":
        total = binary_entropy(standardised(mean, var))
        return Decomposition(total, mutual_information(mean, var), aleatoric_entropy(mean, var))
    raise Refused("measure", "be 'variance' or 'entropy'", repr(measure), "Choose one of the two.")
