"""The features that suit a kernel: of Hilbert space where they are few enough, else random ones."""

import math

import torch
from jaxtyping import Int
from torch import Tensor

from askwise.basis import Features as Features
from askwise.fourier import FourierFeatures as FourierFeatures
from askwise.hilbert import HilbertFeatures as HilbertFeatures
from askwise.hilbert import hilbert_of_lanes, hilbert_within, kinds_of
from askwise.kernels import Covariance, Stationary
from askwise.seeds import Generators

__all__ = ["Features", "FourierFeatures", "HilbertFeatures", "features", "lanes_alike"]


def features(
    prior: Covariance,
    d: int,
    tolerance: float = 1e-3,
    limit: int = 4096,
    generators: Generators | None = None,
    lanes: torch.Size | None = None,
) -> Features:
    """Hilbert-space features whose kernel errs by less than ``tolerance``, if ``limit`` of them suffice.

    If not, the tolerance is doubled until they do, up to the ``1 / sqrt(limit)`` by which as many
    random Fourier features err in any dimension; beyond, it is those, drawn from ``generators`` for
    each of ``lanes``.  Errors are relative to the prior variance; ``.error`` tells what was reached.
    Each lane of the prior has the features that it would have alone, unless one needs random ones:
    see :func:`lanes_alike`.
    """
    if not isinstance(prior, Stationary):
        raise ValueError(
            "kernel must be a squared exponential or Matern 3/2 or 5/2 to have features; "
            f"got {prior}. Use one of the three, e.g. askwise.kernel('se')."
        )
    if not 1e-12 <= tolerance < 1 or limit < 2:
        raise ValueError(
            f"tolerance must lie between 1e-12 and 1 and limit be 2 or more; got {tolerance:g} and {limit}. "
            "The defaults are 1e-3 and 4096."
        )
    prior, random_error = prior.detached(), 1 / math.sqrt(limit)
    alone = hilbert_of_lanes(prior, d, tolerance, limit)
    if alone is not None:
        return alone
    if generators is None:
        raise ValueError(
            f"generators must be given where {limit} Hilbert features err by more than "
            f"{random_error:g}; got none. Give a torch.Generator or a larger limit."
        )
    return FourierFeatures(prior.spectral_draws(limit // 2, d, generators, lanes), prior.outputscale)


def lanes_alike(
    prior: Covariance, d: int, tolerance: float = 1e-3, limit: int = 4096
) -> list[Int[Tensor, " k"]]:
    """Lanes that have Hilbert-space features, and those that need random ones; one group if all are alike."""
    if not isinstance(prior, Stationary) or not prior.lanes:
        return []
    needs_random = {
        kind: hilbert_within(prior.name, kind, d, tolerance, limit) is None for kind in set(kinds_of(prior))
    }
    random = torch.tensor([needs_random[kind] for kind in kinds_of(prior)])
    groups = [mask.nonzero()[:, 0].to(prior.lengthscale.device) for mask in (~random, random)]
    return [group for group in groups if len(group)]
