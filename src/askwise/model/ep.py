r"""Expectation propagation: each likelihood factor is replaced by the Gaussian that matches its moments.

All sites are updated in parallel, for all lanes at once; converged lanes drop out.
Source: Rasmussen & Williams (2006), section 3.6 ("GPML"), with the moments of the probit in a form
that does not cancel.  Where answers may be lapses the likelihood is not log-concave, and a surprising answer
would get a site of negative precision: it gets zero precision and the mean that matches.
"""

import copy
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from askwise.model.belief import Belief
from askwise.model.data import Data
from askwise.model.likelihood import Likelihood
from askwise.model.sites import (
    Posterior,
    Problem,
    Sites,
    Solved,
    initial_sites,
    scaled_change,
    site_scale,
)
from askwise.model.undecided import Undecided

_MIN_DAMPING = 0.02
_MEMORY = 5  # iterates that Anderson acceleration looks back to
_MAX_FAILURES = 3  # of the acceleration in a lane, before it is switched off
_REFINED_FROM = 160  # rows from which a factorisation costs more than ten products
_FURTHER = 4  # steps between two factorisations at most; more may lead astray
_FAR = 0.03  # change of the sites in the last of them, as a share of the first: further ones bring little
_MIXED_BELOW, _MIXED_FROM = 0.1, 4  # change of the sites, or number of steps: the first, long ones mislead
_STILL_RUNNING = {"cpu": 1.0, "cuda": 0.5}  # share of lanes, from which those that have converged are dropped


def ep(
    problem: Problem, warm: Sites | None = None, tolerance: float = 1e-8, max_sweeps: int = 1000
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
    fit = evidence, found.converged, found.sweeps, found.change
    return problem.at_sites(found.tau, found.nu, *fit, solved=found.solved)


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
    solved: Solved

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
        found, solved = _fixed_point(data, posterior, warm, tolerance, max_sweeps)
    tau, nu, evidence, converged, sweeps, change, mean, var = (part.clone() for part in found)
    return FixedPoint(tau, nu, evidence, converged, sweeps, change, mean, var, solved)


def _fixed_point(
    data: Data, posterior: Posterior, warm: Sites | None, tolerance: float, max_sweeps: int
) -> tuple[tuple[Tensor, ...], Solved]:
    """Sites, evidence and convergence of each lane; a sweep updates those that have not converged."""
    tau, nu = initial_sites(data, warm)
    refined = data.n >= _REFINED_FROM and _is_log_concave(data)
    iteration = _AndersonAcceleration(torch.stack([tau, nu], -2), _MIXED_BELOW if refined else math.inf)
    whole = update = _Update.of(data)
    each, active = tau.new_zeros(len(tau)), torch.arange(len(tau), device=tau.device)
    cavities = torch.zeros_like(tau), torch.zeros_like(tau)
    kept: list[Tensor] = [tau, nu, *cavities, each + math.inf, each, torch.zeros_like(active)]
    ended: list[tuple[Tensor, Solved]] = []
    still = _STILL_RUNNING[tau.device.type]
    for sweep in range(1, max_sweeps + 1):
        tau, nu = iteration.sites.unbind(-2)
        mean, var, solved = posterior.marginals(tau, nu)
        cavity = _cavity(mean, var, iteration.sites)
        residual = update(mean, var, iteration.sites, cavity) - iteration.sites
        scale = site_scale(var, None if update.likelihood.plain else tau)
        change = scaled_change(residual, scale)
        now = change.cpu().numpy()
        new = iteration.ends((now <= tolerance) | (sweep == max_sweeps))
        if len(new):
            at = active[new]
            for total, part in zip(kept[:5], (tau, nu, *cavity, change), strict=True):
                total[at] = part[new]
            ended.append((at, solved.select(new)))
            kept[5][at], kept[6][at] = ended[-1][1].logdet, sweep
            go = iteration.running
            if not len(go):
                break
            if len(go) <= still * len(now):
                active, posterior, update = active[go], posterior.select(go), update.select(go)
                iteration, residual, scale = iteration.select(go), residual[go], scale[go]
                mean, var, solved = mean[go], var[go], solved.select(go)
                now = now[go.cpu().numpy()]
        if refined:
            further = _further(residual, scale, posterior, update, iteration.sites, mean, var, solved)
            residual = torch.where(iteration.is_failing[:, None, None], residual, further)
        iteration.step(residual, scale, now)
    tau, nu, *_, change, log_determinant, sweeps = kept
    evidence = _log_evidence(whole, *cavities, tau, nu) - log_determinant / 2
    return (tau, nu, evidence, change <= tolerance, sweeps, change, *cavities), Solved.joined(ended)


@dataclass(frozen=True)
class _Update:
    """Sites that match the moments of all rows."""

    likelihood: Likelihood
    undecided: list[Undecided]

    @classmethod
    def of(cls, data: Data) -> "_Update":
        return cls(Likelihood.of(data), Undecided.of(data))

    def __call__(self, mean: Tensor, var: Tensor, sites: Tensor, cavity: tuple[Tensor, Tensor]) -> Tensor:
        found = self.likelihood.sites(*cavity)
        for groups in self.undecided:
            found[..., groups.rows] = groups.sites(mean, var, sites)
        return found

    def select(self, lanes: Tensor) -> "_Update":
        return _Update(self.likelihood.select(lanes), [groups.select(lanes) for groups in self.undecided])


def _is_log_concave(data: Data) -> bool:
    """Whether all likelihoods are; otherwise long steps may lead far away."""
    return not (data.has_lapses or bool(data.undecided.any()))


def _cavity(mean: Tensor, var: Tensor, sites: Float[Tensor, "lane 2 n"]) -> tuple[Tensor, Tensor]:
    """Mean and variance of each row without its own site (GPML, eq. 3.56)."""
    tau, nu = sites.unbind(-2)
    left = (1 - tau * var).clamp_min(torch.finfo(var.dtype).tiny)
    return torch.addcmul(mean, var, nu, value=-1).div_(left), var / left


def _further(  # noqa: PLR0913
    residual: Float[Tensor, "lane 2 n"],
    scale: Tensor,
    posterior: Posterior,
    update: _Update,
    sites: Float[Tensor, "lane 2 n"],
    mean: Float[Tensor, "lane n"],
    var: Float[Tensor, "lane n"],
    solved: Solved,
) -> Float[Tensor, "lane 2 n"]:
    r"""A longer step than the residual: sweeps that cost products instead of a factorisation.

    With the covariance :math:`\Sigma` of the rows at ``sites``, those a step
    :math:`(\delta\tau, \delta\nu)` further have the mean
    :math:`m' = \Sigma (\nu + \delta\nu - \delta\tau \, m')` (solved step by step, for the row itself at
    once) and, but for the precisions of other rows, the variance :math:`v / (1 + \delta\tau \, v)`.  A lane
    takes another step while these get smaller.  With 1000 yes/no answers EP then takes 9 sweeps, not 18.
    """
    found, middle = sites + residual, mean
    last = first = scaled_change(residual, scale)
    for _ in range(_FURTHER):
        by_tau, by_nu = (found - sites).unbind(-2)
        grown = 1 + by_tau * var
        moved = posterior.times(sites[..., 1, :] + by_nu - by_tau * middle, solved)
        middle, own = (moved + by_tau * var * middle) / grown, var / grown
        new = update(middle, own, found, _cavity(middle, own, found))
        change = scaled_change(new - found, scale)
        better = change < last
        found = torch.where(better[:, None, None], new, found)
        last = torch.where(better, change, 0.0)
        if not (last > _FAR * first).any():
            break
    return found - sites


class _AndersonAcceleration:
    """Anderson acceleration of the sites towards their fixed point, with damping.

    Takes the point in the span of the last few iterates whose residual is smallest.  That saves a third of
    the sweeps on easy problems; a lane in which it increases the residual three times falls back to damped
    steps, which are slow but safe.  The first few residuals are mixed only below ``mixed_below``.
    """

    def __init__(self, sites: Float[Tensor, "lane 2 n"], mixed_below: float = math.inf) -> None:
        lanes, _, n = sites.shape
        self.mixed_below = mixed_below
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

    @property
    def is_failing(self) -> Bool[Tensor, " lane"]:
        """Lanes that take damped steps only."""
        return torch.from_numpy(self.failures >= _MAX_FAILURES).to(self.sites.device)

    def select(self, lanes: Tensor) -> "_AndersonAcceleration":
        chosen, host = copy.copy(self), lanes.cpu().numpy()
        for name, value in vars(self).items():
            if isinstance(value, Tensor | np.ndarray):
                setattr(chosen, name, value[lanes if isinstance(value, Tensor) else host])
        return chosen

    def step(self, residual: Tensor, scale: Tensor, now: np.ndarray) -> None:
        """The next sites, from the residual of these, whose scaled norm is ``now``."""
        mixes = (now < self.mixed_below) | (self.count >= _MIXED_FROM)
        accelerated = (self.failures < _MAX_FAILURES) & mixes
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


def _log_evidence(whole: _Update, m: Tensor, v: Tensor, tau: Tensor, nu: Tensor) -> Tensor:
    """EP's log evidence from cavities and sites, but for the determinant (GPML, eqs. 3.73 and 3.74)."""
    one = 1 + tau * v
    mean = (m + v * nu) / one
    each = whole.likelihood.log_probability(m, v) + one.log() / 2 + nu * mean / 2
    each = each + (m * (tau * m - 2 * nu) - nu.square() * v) / (2 * one)
    for groups in whole.undecided:
        each[..., groups.rows] = groups.log_evidence(mean, v / one, torch.stack([tau, nu], -2))
        each[..., groups.index[:, 0]] += whole.likelihood.log_sight[..., groups.index[:, 0]]
    return each.sum(-1)
