"""Features of stationary kernels: Hilbert-space features where few suffice, else random Fourier features."""

import math

import torch
from jaxtyping import Int
from torch import Tensor

from askwise.errors import Refused
from askwise.model.features.base import Features as Features
from askwise.model.features.base import lanes_by as lanes_by
from askwise.model.features.fourier import FourierFeatures as FourierFeatures
from askwise.model.features.hilbert import Half, hilbert_for_kernel, hilbert_for_lanes, lane_parameters
from askwise.model.features.hilbert import HilbertFeatures as HilbertFeatures
from askwise.model.kernels import Covariance, Stationary
from askwise.numerics import Generators


def features(
    prior: Covariance,
    d: int,
    tolerance: float = 1e-3,
    limit: int = 4096,
    generators: Generators | None = None,
    lanes: torch.Size | None = None,
    half: Half | None = None,
) -> Features:
    """Hilbert-space features with a kernel error below ``tolerance``, if ``limit`` of them suffice.

    Otherwise the tolerance is doubled until they do, up to ``1 / sqrt(limit)``, the error of as many random
    Fourier features in any dimension; beyond that the features are random, drawn from ``generators`` for each
    of ``lanes``.  Errors are relative to the prior variance; ``.error`` is the one reached.  Each lane of the
    prior has the features that it would have alone, unless one needs random ones: see :func:`lane_groups`.
    ``half``: of points outside the cube, half the width of a box that has them in its middle.
    """
    if not isinstance(prior, Stationary):
        expected = "be a squared exponential or Matern 3/2 or 5/2 to have features"
        raise Refused("kernel", expected, prior, "Use one of the three, e.g. askwise.kernel('se').")
    if not 1e-12 <= tolerance < 1 or limit < 2:
        expected = "lie between 1e-12 and 1 and limit be 2 or more"
        raise Refused("tolerance", expected, f"{tolerance:g} and {limit}", "The defaults are 1e-3 and 4096.")
    prior = prior.detached()
    if (hilbert := hilbert_for_lanes(prior, d, tolerance, limit, half)) is not None:
        return hilbert
    if generators is None:
        expected = f"be given where {limit} Hilbert features err by more than {1 / math.sqrt(limit):g}"
        raise Refused("generators", expected, "none", "Give a torch.Generator or a larger limit.")
    return FourierFeatures(prior.spectral_draws(limit // 2, d, generators, lanes), prior.outputscale)


def lane_groups(
    prior: Covariance, d: int, tolerance: float = 1e-3, limit: int = 4096
) -> list[Int[Tensor, " k"]]:
    """Lanes with Hilbert-space features and lanes that need random ones; one group if all are of one kind."""
    if not isinstance(prior, Stationary) or not prior.lanes:
        return []
    found = (hilbert_for_kernel(prior.name, one, d, tolerance, limit) for one in lane_parameters(prior))
    groups = lanes_by(one is None for one in found)
    return [groups[random].to(prior.lengthscale.device) for random in sorted(groups)]
