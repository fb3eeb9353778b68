"""The belief as it will be when questions that are out are answered: surer, and no wiser."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from askwise.belief import Belief
from askwise.data import Data
from askwise.ep import Likelihood
from askwise.sites import Outcome, Problem

__all__ = ["anticipated"]


def anticipated(belief: Belief, pending: Data, weight: float | int = 1.0) -> Belief:
    r"""The belief with the doubt that is expected once ``pending`` is answered, and the mean as it is now.

    Each pending row, of mean m and variance v now, gets a site at m whose precision is what expectation
    propagation expects of its answer, times ``weight``:

    .. math:: \tau = w \sum_y p(y) \, \tau_y(m, v), \qquad \nu = \tau m

    over the answers y: yes and no, a win and a loss, and a tie where the margin allows one.  What was
    answered in ``pending`` is not looked at.  For beliefs that have sites: by EP or Laplace's approximation.
    """
    if not (math.isfinite(weight) and weight >= 0):
        raise ValueError(f"weight must be finite and not negative; got {weight}. Leave it out.")
    if belief.data.n > 0 and not belief.tau.any():
        raise ValueError(
            "belief must have a site for each answer; got one of exact moments. Infer it with method='ep'."
        )
    known = belief.data.n
    problem = Problem.under(belief.data + pending, belief.prior)
    with torch.no_grad():
        tau, nu = (torch.zeros_like(problem.data.signs) for _ in range(2))
        tau[..., :known], nu[..., :known] = belief.tau, belief.nu
        mean, var, _ = problem.space.marginals(tau, nu)
        expected = float(weight) * _expected_precision(Likelihood.of(problem.data), mean, var)[..., known:]
        tau[..., known:], nu[..., known:] = expected, expected * mean[..., known:]
        kept: tuple[Tensor, ...] = (belief.log_evidence, belief.converged, belief.sweeps, belief.change)
        if not belief.data.lanes:
            kept = tuple(part[None] for part in kept)
        return problem.at_sites(Outcome(tau, nu, *kept))


def _expected_precision(likelihood: Likelihood, mean: Tensor, var: Tensor) -> Float[Tensor, "lane n"]:
    """Precision of each row's site, averaged over its answers."""
    outcomes = (1.0, -1.0) if likelihood.margin.max() == 0 else (1.0, -1.0, 0.0)
    heard = [likelihood.all_as(sign) for sign in outcomes]
    return torch.stack([one.log_mass(mean, var).exp() * one.sites(mean, var)[:, 0] for one in heard]).sum(0)
