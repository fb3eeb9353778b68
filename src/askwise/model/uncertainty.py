"""Uncertainty about the next outcome under a belief, split into epistemic and aleatoric parts."""

from dataclasses import dataclass
from typing import Literal

from jaxtyping import Float
from torch import Tensor

from askwise.errors import Refused
from askwise.model.belief import Belief
from askwise.model.mixture import Mixture
from askwise.numerics import (
    aleatoric_entropy,
    aleatoric_variance,
    binary_entropy,
    epistemic_variance,
    mixed_entropy,
    mixed_information,
    mixed_log_variance,
    mixed_rate,
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
    """Uncertainty about a yes/no answer at ``x``, or about the duel of ``x`` with ``other``.

    Of several kernels, the epistemic part includes what is unknown of the kernel.
    """
    if measure not in ("variance", "entropy"):
        raise Refused("measure", "be 'variance' or 'entropy'", repr(measure), "Choose one of the two.")
    if isinstance(belief, Mixture):
        return _of_mixture(*belief.by_kernel(x, other), measure)
    mean, var = belief.in_noise(x, other)
    if measure == "variance":
        p, q = success_probability(mean, var), success_probability(-mean, var)
        return Decomposition(p * q, epistemic_variance(mean, var), aleatoric_variance(mean, var))
    total = binary_entropy(standardised(mean, var))
    return Decomposition(total, mutual_information(mean, var), aleatoric_entropy(mean, var))


def _of_mixture(
    mean: Float[Tensor, "k *b"], var: Float[Tensor, "k *b"], weights: Float[Tensor, "k *c 1"], measure: str
) -> Decomposition:
    """The parts given means and variances of several kernels."""
    if measure == "variance":
        p, q = mixed_rate(mean, var, weights), mixed_rate(-mean, var, weights)
        left = (weights * aleatoric_variance(mean, var)).sum(0)
        return Decomposition(p * q, mixed_log_variance(mean, var, weights).exp(), left)
    left = (weights * aleatoric_entropy(mean, var)).sum(0)
    return Decomposition(mixed_entropy(mean, var, weights), mixed_information(mean, var, weights), left)
