r"""Expectation propagation: each likelihood factor is replaced by the Gaussian that matches its moments.

All sites are updated in parallel, for all lanes at once; converged lanes drop out.
Source: Rasmussen & Williams (2006), section 3.6 ("GPML"), with the moments of the probit in a form
that does not cancel.  Where answers may be lapses the likelihood is not log-concave, and a surprising answer
would get a site of negative precision: it gets zero precision and the mean that matches.
"""

import copy
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from askwise.model.belief import Belief
from askwise.model.data import Data
from askwise.model.likelihood import Likelihood
from askwise.model.sites import (
    InferenceProblem,
    Posterior,
    Sites,
    initial_sites,
    logdet,
    scaled_change,
    site_scale,
)
from askwise.model.undecided import Undecided

_MIN_DAMPING = 0.02
_MEMORY = 5  # iterates that Anderson acceleration looks back to
_MAX_FAILURES = 3  # of the acceleration in a lane, before it is switched off
_STILL_RUNNING = {"cpu": 1.0, "cuda": 0.5}  # share of lanes, from which those that have converged are dropped


def ep(
    problem: InferenceProblem, warm: Sites | None = None, tolerance: float = 1e-8, max_sweeps: int = 1000
) -> Belief:
    """Posterior of f by expectation propagation, with evidence differentiable in the kernel.

    ``tolerance``: a lane has converged when the norm of the change of its sites is below it, each change
    scaled by the standard deviation (a precision: by the variance) of its row where that is above one.
    ``warm``: an earlier belief about the first rows of the data.
    A lane that does not converge in ``max_sweeps`` has ``converged`` false and its last sites.
    """
    found = fixed_point(problem.data, problem.posterior, warm, tolerance, max_sweeps)
    evidence, likelihood = found.log_evidence, Likelihood.of(problem.data)
    if likelihood.requires_grad and torch.is_grad_enabled():
        explicit = found.explicit(problem.data)
        evidence = evidence + (explicit - explicit.detach())
    return problem.at_sites(found.tau, found.nu, evidence, found.converged, found.sweeps, found.change)


class FixedPoint(NamedTuple):
    """What EP finds for each lane."""

    tau: Float[Tensor, "lane n"]
    nu: Float[Tensor, "lane n"]
    log_evidence: Float[Tensor, " lane"]
    converged: Bool[Tensor, " lane"]
    sweeps: Int[Tensor, " lane"]
    change: Float[Tensor, " lane"]
    cavity_mean: Float[Tensor, "lane n"]
    cavity_var: Float[Tensor, "lane n"]

    def explicit(self, data: Data) -> Float[Tensor, " lane"]:
        """The part of the log evidence through which parameters of the likelihood matter.

        Sites are stationary, so it is that at the cavities.
        """
        likelihood = Likelihood.of(data)
        each = likelihood.log_probability(self.cavity_mean, self.cavity_var)
        firsts = [groups.index[:, 0] for groups in Undecided.of(data)]
        undecided = sum(likelihood.log_sight[..., first].sum(-1) for first in firsts)
        return (each.masked_fill(data.undecided, 0.0) if firsts else each).sum(-1) + undecided


def fixed_point(
    data: Data,
    posterior: Posterior,
    warm: Sites | None = None,
    tolerance: float = 1e-8,
    max_sweeps: int = 1000,
) -> FixedPoint:
    """Sites that EP leaves as they are, and their evidence; arguments as for :func:`ep`."""
    with torch.inference_mode():  # a fifth faster than no_grad for one lane of n = 80
        found = _fixed_point(data, posterior, warm, tolerance, max_sweeps)
    return FixedPoint(*(part.clone() for part in found))


def _fixed_point(
    data: Data, posterior: Posterior, warm: Sites | None, tolerance: float, max_sweeps: int
) -> tuple[Tensor, ...]:
    """Sites, evidence and convergence of each lane; a sweep updates those that have not converged."""
    tau, nu = initial_sites(data, warm)
    iteration = _AndersonAcceleration(torch.stack([tau, nu], -2))
    whole, undecided = Likelihood.of(data), Undecided.of(data)
    likelihood, groups_of_all = whole, undecided
    each, active = tau.new_zeros(len(tau)), torch.arange(len(tau), device=tau.device)
    cavities = torch.zeros_like(tau), torch.zeros_like(tau)
    kept: list[Tensor] = [tau, nu, *cavities, each + math.inf, each, torch.zeros_like(active)]
    still = _STILL_RUNNING[tau.device.type]
    for sweep in range(1, max_sweeps + 1):
        tau, nu = iteration.sites.unbind(-2)
        mean, var, lower = posterior.marginals(tau, nu)
        left = (1 - tau * var).clamp_min(torch.finfo(var.dtype).tiny)
        cavity = (mean - var * nu) / left, var / left  # each row without its own site (GPML, eq. 3.56)
        residual = likelihood.sites(*cavity) - iteration.sites
        for groups in undecided:
            residual[..., groups.rows] = (
                groups.sites(mean, var, iteration.sites) - iteration.sites[..., groups.rows]
            )
        scale = site_scale(var, None if likelihood.plain else tau)
        change = scaled_change(residual, scale)
        now = change.cpu().numpy()
        new = iteration.ends((now <= tolerance) | (sweep == max_sweeps))
        if len(new):
            at = active[new]
            for total, part in zip(kept[:5], (tau, nu, *cavity, change), strict=True):
                total[at] = part[new]
            kept[5][at], kept[6][at] = logdet(lower[new]), sweep
            go = iteration.running
            if not len(go):
                break
            if len(go) <= still * len(now):
                active, posterior, likelihood = active[go], posterior.select(go), likelihood.select(go)
                undecided = [groups.select(go) for groups in undecided]
                iteration, residual, scale = iteration.select(go), residual[go], scale[go]
                now = now[go.cpu().numpy()]
        iteration.step(residual, scale, now)
    tau, nu, *_, change, log_determinant, sweeps = kept
    evidence = _log_evidence(whole, groups_of_all, *cavities, tau, nu) - log_determinant / 2
    return tau, nu, evidence, change <= tolerance, sweeps, change, *cavities


class _AndersonAcceleration:
    """Anderson acceleration of the sites towards their fixed point, with damping.

    Takes the point in the span of the last few iterates whose residual is smallest.  That saves a third of
    the sweeps on easy problems; a lane in which it increases the residual three times falls back to damped
    steps, which are slow but safe.
    """

    def __init__(self, sites: Float[Tensor, "lane 2 n"]) -> None:
        lanes, _, n = sites.shape
        self.sites, self.last_sites, self.last_residual = sites, sites, torch.zeros_like(sites)
        self.site_changes = sites.new_zeros(lanes, _MEMORY, 2 * n)
        self.residual_changes = torch.zeros_like(self.site_changes)
        self.count = 0
        # per-lane scalars are numpy arrays, whose calls cost a fifth of torch's when small
        self.failures, self.damping = np.zeros(lanes), np.ones(lanes)
        self.last_change, self.ended = np.full(lanes, np.inf), np.zeros(lanes, bool)

    def ends(self, ready: np.ndarray) -> Int[Tensor, " some"]:
        """End the lanes that are ready, whose sites then stay; those that had not ended before."""
        new = ready & ~self.ended
        self.ended |= ready
        return torch.from_numpy(new.nonzero()[0]).to(self.sites.device)

    @property
    def running(self) -> Int[Tensor, " some"]:
        """Lanes that have not ended."""
        return torch.from_numpy((~self.ended).nonzero()[0]).to(self.sites.device)

    def select(self, lanes: Tensor) -> "_AndersonAcceleration":
        chosen, host = copy.copy(self), lanes.cpu().numpy()
        for name, value in vars(self).items():
            if name != "count":
                setattr(chosen, name, value[lanes if isinstance(value, Tensor) else host])
        return chosen

    def step(self, residual: Tensor, scale: Tensor, now: np.ndarray) -> None:
        """The next sites, from the residual of these, whose scaled norm is ``now``."""
        accelerated = self.failures < _MAX_FAILURES
        worse = now > np.where(accelerated, 2.0, 1.0) * self.last_change
        self.failures = self.failures + worse
        raised = np.minimum(self.damping * np.where(accelerated, 1.2, 1.05), 1.0)
        self.damping = np.where(worse, np.maximum(self.damping / 2, _MIN_DAMPING), raised)
        damping = torch.from_numpy(self.damping).to(residual)[:, None, None]
        self._remember(residual, scale, damping)
        if (forget := worse | ~accelerated).any():
            lanes = torch.from_numpy(forget).to(residual.device)
            self.site_changes[lanes], self.residual_changes[lanes] = 0.0, 0.0
        proposal = torch.addcmul(self.sites, damping, residual)
        if self.count % 2 == 0:  # as few sweeps as when done at every step, at half the cost
            mixed = proposal - self._correction((residual * scale).flatten(1)).reshape(residual.shape)
            valid = (mixed[:, :1] >= 0).all(-1, keepdim=True)  # precisions must not be negative
            proposal = torch.where(valid, mixed, proposal)
        if self.ended.any():
            ended = torch.from_numpy(self.ended).to(residual.device)
            proposal = torch.where(ended[:, None, None], self.sites, proposal)
        self.last_sites, self.last_residual, self.last_change = self.sites, residual, now
        self.sites = proposal

    def _remember(self, residual: Tensor, scale: Tensor, damping: Tensor) -> None:
        """Store the last step and the change of the residual along it."""
        if self.count > 0:
            slot, change = self.count % _MEMORY, residual - self.last_residual
            self.residual_changes[:, slot] = (change * scale).flatten(1)
            step = torch.addcmul(self.sites - self.last_sites, damping, change)
            self.site_changes[:, slot] = step.flatten(1)
        self.count += 1

    def _correction(self, residual: Float[Tensor, "lane k"]) -> Float[Tensor, "lane k"]:
        """Correction to a plain step, by least squares of the scaled residual on its last changes."""
        gram = self.residual_changes @ self.residual_changes.mT
        gram.diagonal(dim1=-2, dim2=-1).mul_(1 + 1e-10).add_(1e-300)  # without memory the correction is zero
        rhs = self.residual_changes @ residual[..., None]
        weights = torch.cholesky_solve(rhs, torch.linalg.cholesky_ex(gram).L)
        return (weights.mT @ self.site_changes)[..., 0, :]


def _log_evidence(
    likelihood: Likelihood, undecided: Sequence[Undecided], m: Tensor, v: Tensor, tau: Tensor, nu: Tensor
) -> Tensor:
    """EP's log evidence from cavities and sites, but for the determinant (GPML, eqs. 3.73 and 3.74)."""
    one = 1 + tau * v
    mean = (m + v * nu) / one
    each = likelihood.log_probability(m, v) + one.log() / 2 + nu * mean / 2
    each = each + (m * (tau * m - 2 * nu) - nu.square() * v) / (2 * one)
    for groups in undecided:
        each[..., groups.rows] = groups.log_evidence(mean, v / one, torch.stack([tau, nu], -2))
        each[..., groups.index[:, 0]] += likelihood.log_sight[..., groups.index[:, 0]]
    return each.sum(-1)
