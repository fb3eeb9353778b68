"""Posterior given pending queries: the mean stays, the variance shrinks."""

import math
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from askwise.errors import Refused
from askwise.model.belief import Belief
from askwise.model.data import Data
from askwise.model.landmarks import inference_problem
from askwise.model.likelihood import Likelihood
from askwise.model.mixture import Mixture
from askwise.model.sites import InferenceProblem, initial_sites


def given_pending(belief: Belief, pending: Data, weight: float | int = 1.0) -> Belief:
    r"""The posterior with its present mean and the variance expected once ``pending`` is answered.

    Each pending row, of present mean m and variance v, gets a site at m whose precision is its expectation
    under EP, times ``weight``:

    .. math:: \tau = w \sum_y p(y) \, \tau_y(m, v), \qquad \nu = \tau m

    over the outcomes y: yes and no, a win and a loss, and a tie where the margin allows one.  Outcomes in
    ``pending`` are ignored.  For beliefs with sites, that is, by EP or Laplace's approximation.  Several
    kernels stay as likely as they are.
    """
    if isinstance(belief, Mixture):
        rows = pending.in_lanes(belief.weights.shape)
        return belief.each(lambda parts: given_pending(parts, rows, weight))
    if not (math.isfinite(weight) and weight >= 0):
        raise Refused("weight", "be finite and not negative", weight, "Leave it out.")
    if belief.data.n > 0 and not belief.tau.any():
        got, advice = "one of exact moments", "Infer it with method='ep'."
        raise Refused("belief", "have a site for each answer", got, advice)
    if belief.is_thin and len(belief.data.lanes) == 1 and len(belief.alpha) > 1:
        each = torch.arange(len(belief.alpha), device=belief.alpha.device).split(1)
        parts = [given_pending(belief.select(lane), pending.select(lane), weight) for lane in each]
        return Belief.joined(belief.prior, belief.data + pending, parts).like(belief)
    known, data = belief.data.n, belief.data + pending
    problem = (inference_problem if belief.is_thin else InferenceProblem.of)(data, belief.shared_prior)
    with torch.no_grad():
        tau, nu = initial_sites(problem.data, belief)
        mean, var, _ = problem.posterior.marginals(tau, nu)
        expected = float(weight) * _expected_precision(Likelihood.of(problem.data), mean, var)[..., known:]
        tau[..., known:], nu[..., known:] = expected, expected * mean[..., known:]
        kept: tuple[Tensor, ...] = (belief.log_evidence, belief.converged, belief.sweeps, belief.change)
        if not belief.data.lanes:
            kept = tuple(part[None] for part in kept)
        found = problem.at_sites(tau, nu, *kept)
    return found.like(belief)


def away_from_pending(
    belief: Belief,
    pending: Data,
    choose: Callable[[Belief], Tensor],
    is_new: Callable[[Tensor], bool],
    weights: Sequence[float],
) -> tuple[Tensor, bool]:
    """The choice of ``choose`` given the pending queries, and whether it is new.

    The weight of the pending queries goes through ``weights`` until the choice is new.
    """
    for weight in weights:
        found = choose(given_pending(belief, pending, weight) if pending.n else belief)
        if is_new(found):
            return found, True
    return found, False


def _expected_precision(likelihood: Likelihood, mean: Tensor, var: Tensor) -> Float[Tensor, "lane n"]:
    """Precision of each row's site, averaged over its outcomes."""
    outcomes = (1.0, -1.0) if likelihood.margin.max() == 0 else (1.0, -1.0, 0.0)
    each = [likelihood.with_outcome(sign) for sign in outcomes]
    weighted = [one.log_probability(mean, var).exp() * one.sites(mean, var)[:, 0] for one in each]
    return torch.stack(weighted).sum(0)
