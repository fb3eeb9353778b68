"""The numerical functions of the field, for use on their own: tensors, float64, differentiable."""

from askwise.normal import (
    binary_entropy,
    hazard,
    log_ndtr,
    ndtr,
    owens_t,
    success_probability,
)
from askwise.uncertainty import (
    aleatoric_entropy,
    aleatoric_variance,
    epistemic_variance,
    houlsby_information,
    log_epistemic_variance,
    mutual_information,
)

__all__ = [
    "aleatoric_entropy",
    "aleatoric_variance",
    "binary_entropy",
    "epistemic_variance",
    "hazard",
    "houlsby_information",
    "log_epistemic_variance",
    "log_ndtr",
    "mutual_information",
    "ndtr",
    "owens_t",
    "success_probability",
]
