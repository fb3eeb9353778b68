r"""Laplace's approximation: the Gaussian at the mode of the posterior, with its curvature.

Newton's method on all lanes at once; the log posterior is concave, so halving a step until it does not
descend cannot fail.  Source: Rasmussen & Williams (2006), algorithms 3.1 and 5.1.
"""

import math

import torch
from torch import Tensor

from askwise.errors import Refused
from askwise.model.belief import Belief
from askwise.model.sites import InferenceProblem, Sites, initial_sites, scaled_change, site_scale
from askwise.numerics import log_ndtr, truncated_moments

_MAX_HALVINGS = 30


def laplace(
    problem: InferenceProblem, warm: Sites | None = None, tolerance: float = 1e-8, max_sweeps: int = 1000
) -> Belief:
    """Posterior of f by Laplace's approximation; arguments as for :func:`askwise.model.ep.ep`.

    Only for data with the plain probit likelihood: no rankings, no ties.
    """
    if not problem.data.plain:
        expected = "be 'ep' or 'gibbs' for rankings and ties"
        raise Refused("method", expected, "'laplace'", "Choose one of the two.")
    posterior, signs = problem.posterior, problem.data.signs
    with torch.no_grad():
        tau, nu = initial_sites(problem.data, warm)
        g, _, _ = posterior.marginals(tau, nu)
        dual = nu - tau * g
        tau, nu = _sites(g, signs)
        change = tau.new_full(tau.shape[:1], math.inf)
        sweeps = torch.zeros_like(change, dtype=torch.long)
        while (running := change > tolerance).any() and int(sweeps.max()) < max_sweeps:
            target, var, _ = posterior.marginals(tau, nu)
            g, dual = _newton_step(g, dual, target, tau, nu, signs, running)
            new_tau, new_nu = _sites(g, signs)
            step = torch.stack([new_tau - tau, new_nu - nu], -2)
            change = torch.where(running, scaled_change(step, site_scale(var)), change)
            sweeps = sweeps + running
            tau, nu = new_tau, new_nu
        _, var, solved = posterior.marginals(tau, nu)
        evidence = _objective(g, dual, signs) - solved.logdet / 2
        # contribution of the moving mode to the derivative of the evidence (GPML, eqs. 5.23 and 5.24)
        rate, depth, r = truncated_moments(signs * g)
        by_mode = -var / 2 * signs * rate * (r - depth.square())
        by_row = by_mode - tau * posterior.times(by_mode, solved)
        shift = problem.data.rmatvec(by_row[..., None])[..., 0]
    return problem.at_sites(
        tau, nu, evidence, change <= tolerance, sweeps, change, shift=shift, solved=solved
    )


def _sites(g: Tensor, signs: Tensor) -> tuple[Tensor, Tensor]:
    """Second-order expansion of the log likelihood around ``g``."""
    rate, depth, _ = truncated_moments(signs * g)
    tau = rate * depth
    return tau, tau * g + signs * rate


def _objective(g: Tensor, dual: Tensor, signs: Tensor) -> Tensor:
    """Log posterior density up to a constant, at ``g = G dual`` (GPML, eq. 3.12)."""
    return (log_ndtr(signs * g) - g * dual / 2).sum(-1)


def _newton_step(
    g: Tensor, dual: Tensor, target: Tensor, tau: Tensor, nu: Tensor, signs: Tensor, running: Tensor
) -> tuple[Tensor, Tensor]:
    """Move the running lanes towards ``target``, halving steps that would descend."""
    target_dual = nu - tau * target
    before = _objective(g, dual, signs)
    floor = before - 1e-12 * before.abs()  # rounding may look like a descent
    step = running.to(g.dtype)
    for _ in range(_MAX_HALVINGS):
        new_g = torch.lerp(g, target, step[:, None])
        new_dual = torch.lerp(dual, target_dual, step[:, None])
        descends = ~(_objective(new_g, new_dual, signs) >= floor)
        if not descends.any():
            break
        step = torch.where(descends, step / 2, step)
    return new_g, new_dual
