r"""Expectation propagation: each likelihood factor is replaced by the Gaussian that matches its moments.

All sites are updated in parallel, for all lanes at once; converged lanes drop out.
Source: Rasmussen & Williams (2006), section 3.6 ("GPML"), with the moments of the probit in a form
that does not cancel.
"""

import copy
import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from askwise.model.belief import Belief
from askwise.model.data import Data
from askwise.model.sites import InferenceProblem, initial_sites, logdet, scaled_change, site_scale
from askwise.numerics import interval_moments, log_ndtr, truncated_moments

_MIN_DAMPING = 0.02
_MEMORY = 5  # iterates that Anderson acceleration looks back to
_MAX_FAILURES = 3  # of the acceleration in a lane, before it is switched off
_MIN_ROW_NOISE = 1e-12  # keeps the site of a row without noise of its own finite


def ep(
    problem: InferenceProblem, warm: Belief | None = None, tolerance: float = 1e-8, max_sweeps: int = 1000
) -> Belief:
    """Posterior of f by expectation propagation, with evidence differentiable in the kernel.

    ``tolerance``: a lane has converged when the norm of the change of its sites is below it, each change
    scaled by the standard deviation (a precision: by the variance) of its row where that is above one.
    ``warm``: an earlier belief about the first rows of the data.
    A lane that does not converge in ``max_sweeps`` has ``converged`` false and its last sites.
    """
    with torch.inference_mode():  # a fifth faster than no_grad for one lane of n = 80
        found = _fixed_point(problem, warm, tolerance, max_sweeps)
    return problem.at_sites(*(part.clone() for part in found))


def _fixed_point(
    problem: InferenceProblem, warm: Belief | None, tolerance: float, max_sweeps: int
) -> tuple[Tensor, ...]:
    """Sites, evidence and convergence of each lane; a sweep updates those that have not converged."""
    tau, nu = initial_sites(problem.data, warm)
    iteration = _AndersonAcceleration(torch.stack([tau, nu], -2))
    posterior, likelihood = problem.posterior, Likelihood.of(problem.data)
    each, active = tau.new_zeros(len(tau)), torch.arange(len(tau), device=tau.device)
    cavities = torch.zeros_like(tau), torch.zeros_like(tau)
    kept: list[Tensor] = [tau, nu, *cavities, each + math.inf, each, torch.zeros_like(active)]
    for sweep in range(1, max_sweeps + 1):
        tau, nu = iteration.sites.unbind(-2)
        mean, var, lower = posterior.marginals(tau, nu)
        left = (1 - tau * var).clamp_min(torch.finfo(var.dtype).tiny)
        cavity = (mean - var * nu) / left, var / left  # each row without its own site (GPML, eq. 3.56)
        residual = likelihood.sites(*cavity) - iteration.sites
        scale = site_scale(var, None if likelihood.plain else tau)
        change = scaled_change(residual, scale)
        ready = (change <= tolerance) | (sweep == max_sweeps)
        if ready.any():
            at = active[ready]
            for whole, part in zip(kept[:5], (tau, nu, *cavity, change), strict=True):
                whole[at] = part[ready]
            kept[5][at], kept[6][at] = logdet(lower[ready]), sweep
            if ready.all():
                break
            go = ~ready
            active, posterior, likelihood = active[go], posterior.select(go), likelihood.select(go)
            iteration, residual, scale, change = iteration.select(go), residual[go], scale[go], change[go]
        iteration.step(residual, scale, change)
    tau, nu, *_, change, log_determinant, sweeps = kept
    evidence = _log_evidence(Likelihood.of(problem.data), *cavities, tau, nu) - log_determinant / 2
    return tau, nu, evidence, change <= tolerance, sweeps, change


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
        self.last_change = np.full(lanes, np.inf)

    def select(self, lanes: Tensor) -> "_AndersonAcceleration":
        chosen, host = copy.copy(self), lanes.cpu().numpy()
        for name, value in vars(self).items():
            if name != "count":
                setattr(chosen, name, value[lanes if isinstance(value, Tensor) else host])
        return chosen

    def step(self, residual: Tensor, scale: Tensor, change: Tensor) -> None:
        now = change.cpu().numpy()
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


@dataclass(frozen=True)
class Likelihood:
    """Observed outcome of each row: above its margin, below it, or within."""

    signs: Float[Tensor, "lane n"]
    row_noise: Float[Tensor, "lane n"]
    margin: Float[Tensor, "lane 1"]
    plain: bool

    @classmethod
    def of(cls, data: Data) -> "Likelihood":
        """The likelihood of data with lanes."""
        return cls(data.signs, data.row_noise.clamp_min(_MIN_ROW_NOISE), data.margin[..., None], data.plain)

    def select(self, lanes: Tensor) -> "Likelihood":
        """The likelihood of some of the lanes."""
        return Likelihood(self.signs[lanes], self.row_noise[lanes], self.margin[lanes], self.plain)

    def with_outcome(self, sign: float) -> "Likelihood":
        """The same rows, all with the outcome ``sign``: a tie only with a margin."""
        return replace(self, signs=torch.full_like(self.signs, sign))

    def sites(self, mean: Tensor, var: Tensor) -> Float[Tensor, "lane 2 n"]:
        r"""Sites that match the moments of the cavity times the likelihood (GPML, eq. 3.58).

        With :math:`z = (y m - t) / s`, :math:`s^2 = \sigma^2 + v` for a row noise :math:`\sigma^2`, and the
        moments of a normal below z (hazard :math:`\lambda`, depth e, variance r):
        :math:`\tau = \lambda e / (\sigma^2 + v r)` and
        :math:`\nu = y [s (e - z r) + t \lambda e] / (\sigma^2 + v r)`, where
        :math:`e - z r = \lambda + z \lambda e`.

        For a tie, r is the variance of a standard normal within t/s of :math:`-m/s`, and o the offset of its
        mean from there: :math:`\tau = (1 - r) / (\sigma^2 + v r)` and
        :math:`\nu = (s o - m r) / (\sigma^2 + v r)`.
        """
        row_noise = 1 if self.plain else self.row_noise
        s, z = self._standardised(mean, var)
        rate, depth, r = truncated_moments(z)
        weight = rate * depth
        pull = torch.where(z > 0, torch.addcmul(rate, z, weight), torch.addcmul(depth, z, r, value=-1))
        push = self.signs * s * pull
        if not self.plain:
            push = push + self.signs * self.margin * weight
        if not self.plain and (ties := self.signs == 0).any():
            _, offset, left = interval_moments((-mean / s)[ties], (self.margin / s)[ties])
            tied = ((1 - left).clamp_min(0), s[ties] * offset - mean[ties] * left, left)
            both = zip((weight, push, r), tied, strict=True)
            weight, push, r = (one.masked_scatter(ties, other) for one, other in both)
        return torch.stack([weight, push], -2) / (row_noise + var * r)[:, None]

    def log_probability(self, mean: Tensor, var: Tensor) -> Float[Tensor, "lane n"]:
        """Log probability of each outcome if its row has this mean and variance."""
        s, z = self._standardised(mean, var)
        value = log_ndtr(z)
        if self.plain or not (ties := self.signs == 0).any():
            return value
        return value.masked_scatter(ties, interval_moments((-mean / s)[ties], (self.margin / s)[ties])[0])

    def _standardised(self, mean: Tensor, var: Tensor) -> tuple[Tensor, Tensor]:
        """s and z, as in :meth:`sites`."""
        if self.plain:
            return (s := (1 + var).sqrt()), self.signs * mean / s
        return (s := (self.row_noise + var).sqrt()), (self.signs * mean - self.margin) / s


def _log_evidence(likelihood: Likelihood, m: Tensor, v: Tensor, tau: Tensor, nu: Tensor) -> Tensor:
    """EP's log evidence from cavities and sites, but for the determinant (GPML, eqs. 3.73 and 3.74)."""
    one = 1 + tau * v
    mean = (m + v * nu) / one
    each = likelihood.log_probability(m, v) + one.log() / 2 + nu * mean / 2
    return (each + (m * (tau * m - 2 * nu) - nu.square() * v) / (2 * one)).sum(-1)
