r"""Laplace's approximation: the Gaussian at the mode of the posterior, with its curvature.

Newton's method on all lanes at once; the log posterior is concave, so a step that is halved until
it does not descend cannot fail.  Source: Rasmussen & Williams (2006), algorithms 3.1 and 5.1.
"""

import math

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from askwise.belief import Belief
from askwise.data import Data
from askwise.normal import log_ndtr, truncated_moments
from askwise.sites import Outcome, Problem, logdet, scaled_change, site_scale, warm_sites

__all__ = ["laplace"]

_HALVINGS = 30


def laplace(
    data: Data,
    kernel: Kernel,
    *,
    warm: Belief | None = None,
    tolerance: float = 1e-8,
    max_sweeps: int = 1000,
) -> Belief:
    """Posterior of f by Laplace's approximation; arguments as :func:`askwise.ep.ep`.

    For answers with a noise of their own each, and none that are ties.
    """
    if not data.plain:
        raise ValueError(
            "method must be 'ep' or 'gibbs' for rankings and ties; got 'laplace'. Choose one of the two."
        )
    problem = Problem.of(data, kernel)
    space, signs = problem.space, problem.data.signs
    with torch.no_grad():
        tau, nu = warm_sites(problem.data, warm)
        g, _, _ = space.marginals(tau, nu)
        pull = nu - tau * g
        tau, nu = _sites(g, signs)
        change = tau.new_full(tau.shape[:1], math.inf)
        sweeps = torch.zeros_like(change, dtype=torch.long)
        while (running := change > tolerance).any() and int(sweeps.max()) < max_sweeps:
            goal, var, _ = space.marginals(tau, nu)
            g, pull = _newton_step(g, pull, goal, tau, nu, signs, running)
            new_tau, new_nu = _sites(g, signs)
            move = torch.stack([new_tau - tau, new_nu - nu], -2)
            change = torch.where(running, scaled_change(move, site_scale(var)), change)
            sweeps = sweeps + running
            tau, nu = new_tau, new_nu
        _, var, lower = space.marginals(tau, nu)
        evidence = _objective(g, pull, signs) - logdet(lower) / 2
        outcome = Outcome(tau, nu, evidence, change <= tolerance, sweeps, change)
        shift = problem.data.spread(_evidence_shift(problem, g, var, tau)[..., None])[..., 0]
    return problem.at_sites(outcome, shift)


def _sites(g: Tensor, signs: Tensor) -> tuple[Tensor, Tensor]:
    """The second-order expansion of the log likelihood around ``g``."""
    rate, depth, _ = truncated_moments(signs * g)
    tau = rate * depth
    return tau, tau * g + signs * rate


def _objective(g: Tensor, pull: Tensor, signs: Tensor) -> Tensor:
    """Log posterior density up to a constant, at ``g = G pull`` (GPML, eq. 3.12)."""
    return (log_ndtr(signs * g) - g * pull / 2).sum(-1)


def _newton_step(
    g: Tensor, pull: Tensor, goal: Tensor, tau: Tensor, nu: Tensor, signs: Tensor, running: Tensor
) -> tuple[Tensor, Tensor]:
    """Move the running lanes towards ``goal``, halving the step of those that would descend."""
    goal_pull = nu - tau * goal
    before = _objective(g, pull, signs)
    floor = before - 1e-12 * before.abs()  # rounding may look like a descent
    step = running.to(g.dtype)
    for _ in range(_HALVINGS):
        new_g = torch.lerp(g, goal, step[:, None])
        new_pull = torch.lerp(pull, goal_pull, step[:, None])
        descends = ~(_objective(new_g, new_pull, signs) >= floor)
        if not descends.any():
            break
        step = torch.where(descends, step / 2, step)
    return new_g, new_pull


def _evidence_shift(problem: Problem, g: Tensor, var: Tensor, tau: Tensor) -> Tensor:
    """What the movement of the mode adds to the evidence's derivative (GPML, eqs. 5.23 and 5.24)."""
    signs = problem.data.signs
    rate, depth, r = truncated_moments(signs * g)
    by_mode = -var / 2 * signs * rate * (r - depth.square())
    return by_mode - tau * problem.space.marginals(tau, by_mode)[0]
