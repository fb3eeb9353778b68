r"""The margin of ties, which is learned: below it people can't decide.

Its prior is :math:`\mathrm{LogNormal}(\log 0.4, 0.7)`: about one duel of equals in three is a tie.
"""

import math

import numpy as np
import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float
from torch import Tensor
from torch.distributions import LogNormal

from askwise.model.data import Data
from askwise.model.ep import ep
from askwise.model.sites import InferenceProblem

_PRIOR = LogNormal(torch.tensor(math.log(0.4), dtype=torch.float64), 0.7)
_GRID = math.log10(0.02), math.log10(3.0), 24  # first, last and number of margins, on a log scale


def with_fitted_margin(data: Data, kernel: Kernel) -> Data:
    """The data with the margin that maximises evidence times prior, in each lane that has ties.

    The 24 candidates from 0.02 to 3 are lanes of one inference.
    """
    tied = data.has_ties
    if not tied.any():
        return data
    margins, density = _margin_posterior(data, kernel)
    best = density.argmax(0)
    return data.with_margin(torch.where(tied, margins[best].reshape(data.lanes), data.margin))


def margin_interval(data: Data, kernel: Kernel, level: float = 0.95) -> tuple[float, float]:
    """The central interval of the posterior of the margin, given the kernel; of one lane with ties."""
    from scipy.interpolate import CubicSpline  # with the package, the slowest import but torch

    margins, density = _margin_posterior(data, kernel)
    logs = margins.log().cpu().numpy()
    fine = np.linspace(logs[0], logs[-1], 1000)
    height = CubicSpline(logs, density[:, 0].cpu().numpy())(fine) + fine  # as a density of the logarithm
    weights = np.exp(height - height.max())
    reached = (weights.cumsum() - weights / 2) / weights.sum()
    low, high = np.exp(np.interp([(1 - level) / 2, (1 + level) / 2], reached, fine))
    return float(low), float(high)


def _margin_posterior(
    data: Data, kernel: Kernel
) -> tuple[Float[Tensor, " steps"], Float[Tensor, "steps lane"]]:
    """Margins, and the log of evidence times prior density at each of them."""
    margins = torch.logspace(*_GRID, dtype=torch.float64, device=data.points.device)
    laned, steps = data.unsqueezed(), len(margins)
    lanes = torch.arange(laned.lanes.numel(), device=margins.device).repeat(steps)
    tried = laned.select(lanes).with_margin(margins.repeat_interleave(len(laned.signs)))
    prior = InferenceProblem.of(data, kernel).prior.detached().select(lanes)
    with torch.no_grad():
        # undecided answers about groups converge slowly, and evidence is stationary in the sites
        tolerance, sweeps = (1e-4, 100) if data.undecided.any() else (1e-8, 1000)
        found = ep(InferenceProblem.of(tried, prior), None, tolerance, sweeps)
        evidence = found.log_evidence.reshape(steps, -1)
    return margins, evidence + _PRIOR.log_prob(margins)[:, None]
