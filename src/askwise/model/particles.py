r"""Kernels drawn from the posterior of their parameters, so that a belief can be averaged over them.

In the logarithms of lengthscales and variance the priors are normal.  In units of these, u, the posterior is

.. math:: p(u \mid \mathscr D) \propto p(\mathscr D \mid u)\, \mathcal N(u; 0, I)

with the evidence of EP.  Importance sampling starts from candidates around the kernel of highest posterior
(Laplace's approximation), and one in three from the prior, so that no weight exceeds three times the ratio of
the evidence to its average, wherever the modes are.  As many as are wanted are resampled.  Where few
candidates have weight, each moves by Hamiltonian Monte Carlo, which leaves the posterior invariant:
sequential Monte Carlo in one step, with rejuvenation.  Moves are exact where the posterior is the
approximation, and corrected by the gradient where it differs (split HMC: Shahbaba et al. 2014, Stat. Comput.
24), so that a long one takes a single inference.  All candidates are lanes of one inference.

Means over eight kernels differ from those of the posterior by 0.73 to 1.03 times as much as those over eight
independent draws, in 1 to 12 dimensions after 12 to 93 duels.
A pure function of the answers and the generators: nothing depends on what was computed before.
"""

import math
from dataclasses import dataclass, fields, replace

import torch
from gpytorch.kernels import Kernel
from gpytorch.priors import LogNormalPrior
from jaxtyping import Bool, Float, Int
from torch import Tensor

from askwise.errors import Refused
from askwise.model.data import Data
from askwise.model.kernel_gradient import Pairs
from askwise.model.kernels import Stationary, covariance
from askwise.model.mixture import Kernels
from askwise.model.sites import Sites, Start
from askwise.numerics import Generators, of_lanes, rand, randn, sobol

COUNT = 8
"""Kernels that a study averages over."""
_CLOSE, _WIDE = 2, 1  # candidates for each kernel: around the fitted one, and from the prior
_ANGLE = 1.3  # by which a move turns around the approximation; a quarter turn forgets where it was
_ENOUGH = 1.5  # effective candidates for each kernel; from fewer, kernels are alike until they have moved
_DIMENSIONS_PER_MOVE = 4  # the more there are, the less candidates cover them
_TOLERANCE, _FINE_TOLERANCE = 0.03, 1e-5  # of EP, whose evidence errs by the order of the square
_ROUGH_TOLERANCE = 0.1  # of candidates, of which most are dropped
_DIFFERENCE = 0.25  # in u, between gradients whose difference is the curvature
_LEAST_CURVATURE = 0.5  # of the prior's; where evidence is not concave, the approximation is not wider
_FARTHEST = 1.0  # of the approximation's middle from the fitted kernel, in deviations of the prior
_BOUND = 8.0  # deviations of the prior beyond which nothing is looked for
_CHUNK_ENTRIES = {"cpu": 2**18, "cuda": 2**27}  # matrix entries of the lanes that run together


def averaged(
    data: Data, fitted: Kernel, generators: Generators, count: int = COUNT, *, moves: int | None = None
) -> Kernels:
    """``count`` kernels for each lane, drawn from the posterior of their parameters.

    ``fitted``: the kernel of highest posterior, with log-normal priors on lengthscales and variance, as
    :func:`~askwise.model.fitting.fit` returns it for ``expected_kernel``.  ``moves``: of each kernel after it
    was resampled; by default none where many candidates have weight, and more in more dimensions.

    >>> import askwise as aw
    >>> from askwise.model import expected_kernel
    >>> data = aw.Data.duels([[[0.2], [0.6]], [[0.6], [0.9]]], [0, 1])
    >>> fitted = aw.fit(data, expected_kernel("matern52", [0.2]))
    >>> averaged(data, fitted.kernel, aw.seeds.generator(0)).prior.lanes
    torch.Size([8])
    """
    with torch.inference_mode(False), torch.no_grad():
        posterior = _Posterior.of(data, fitted)
        near = _Laplace.at(posterior)
        found, effective = _resampled(posterior, near, count, generators)
        u, tau, nu = found.u, found.tau, found.nu
        few = effective < (_ENOUGH * count if moves is None else math.inf)
        if len(some := few.nonzero()[:, 0]):
            if moves is None:
                moves = 1 + u.shape[-1] // _DIMENSIONS_PER_MOVE
            moved = _rejuvenated(
                posterior.select(some),
                near.select(some),
                found.select(some),
                moves,
                of_lanes(generators, some),
            )
            u, tau, nu = (
                u.index_copy(1, some, moved.u),
                tau.index_copy(1, some, moved.tau),
                nu.index_copy(1, some, moved.nu),
            )
        found = posterior.at(u, Start(tau, nu), _FINE_TOLERANCE, gradient=False)
        lanes = torch.Size([count, *data.lanes])
        parts = (part.reshape(*lanes, *part.shape[2:]) for part in (found.log_evidence, found.tau, found.nu))
        lengths, variance = posterior.natural(found.u)
        prior = Stationary(
            posterior.name,
            lengths.reshape(*lanes, -1).contiguous(),  # products round by the layout, and a record keeps none
            variance.reshape(lanes).contiguous(),
        )
        return Kernels(prior, *parts)


@dataclass(frozen=True, eq=False)
class _Found:
    """Candidates, and what inference finds for them."""

    u: Float[Tensor, "k lane e"]
    log_density: Float[Tensor, "k lane"]
    """Of the posterior, up to a constant."""
    gradient: Float[Tensor, "k lane g"]
    """That of the log density, or nothing."""
    log_evidence: Float[Tensor, "k lane"]
    tau: Float[Tensor, "k lane n"]
    nu: Float[Tensor, "k lane n"]

    def gathered(self, chosen: Int[Tensor, "k lane"]) -> "_Found":
        """Some of them, by their index in each lane."""
        parts = (getattr(self, part.name) for part in fields(self))
        return _Found(*(part.take_along_dim(_like(chosen, part), 0) for part in parts))

    def select(self, lanes: Int[Tensor, " some"]) -> "_Found":
        """Those of some of the lanes."""
        return _Found(*(getattr(self, part.name)[:, lanes] for part in fields(self)))

    def where(self, taken: Bool[Tensor, "k lane"], other: "_Found") -> "_Found":
        """These where they are taken, and else the others."""
        pairs = ((getattr(self, part.name), getattr(other, part.name)) for part in fields(self))
        return _Found(*(torch.where(_like(taken, one), one, two) for one, two in pairs))


def _like(index: Tensor, part: Tensor) -> Tensor:
    """An index of candidates, for parts with more dimensions."""
    return index if part.ndim == index.ndim else index[..., None]


@dataclass(frozen=True, eq=False)
class _Posterior:
    """The posterior of the parameters u of each lane: lengthscales, then the variance."""

    pairs: Pairs
    name: str
    middle: Float[Tensor, " e"]
    """Mean of their logarithms under the prior."""
    spread: Float[Tensor, " e"]
    fitted: Float[Tensor, "lane e"]
    """The fitted kernel, in u."""

    @classmethod
    def of(cls, data: Data, fitted: Kernel) -> "_Posterior":
        laned, prior = data.unsqueezed(), covariance(fitted)
        priors = {name.rpartition(".")[-1]: one for name, _, one, *_ in fitted.named_priors()}
        known = {"length", "variance"} == {*priors}
        if not (known and all(isinstance(one, LogNormalPrior) for one in priors.values())):
            expected, advice = "have the priors of expected_kernel", "Fit that one."
            raise Refused("kernel to average over", expected, ", ".join(priors) or "none", advice)
        if not isinstance(prior, Stationary):
            expected = "be a squared exponential or Matern 3/2 or 5/2"
            raise Refused("kernel to average over", expected, repr(fitted), "Choose one of these.")
        middle, spread = (
            torch.cat([getattr(priors[part], what).reshape(-1) for part in ("length", "variance")])
            for what in ("loc", "scale")
        )
        middle, spread = middle.to(laned.points), spread.to(laned.points)
        both = torch.cat([prior.lengthscale, prior.outputscale[..., None]], -1).detach().to(laned.points)
        u = ((both.log() - middle) / spread).expand(*laned.lanes, -1)
        return cls(Pairs.of(laned), prior.name, middle, spread, u.clamp(-_BOUND, _BOUND))

    def select(self, lanes: Int[Tensor, " some"]) -> "_Posterior":
        """That of some of the lanes."""
        return replace(self, pairs=self.pairs.select(lanes), fitted=self.fitted[lanes])

    def natural(self, u: Float[Tensor, "*b e"]) -> tuple[Float[Tensor, "*b d"], Float[Tensor, "*b"]]:
        """Lengthscales and variance."""
        both = (self.middle + self.spread * u).exp()
        return both[..., :-1], both[..., -1]

    def at(
        self, u: Float[Tensor, "k lane e"], start: Sites | None, tolerance: float, *, gradient: bool = True
    ) -> _Found:
        """Log density and gradient at candidates; inference starts from the sites of others, one or each."""
        shape, flat = u.shape[:-1], u.clamp(-_BOUND, _BOUND).flatten(0, 1)
        lanes = torch.arange(shape[1], device=u.device).repeat(shape[0])
        sites = None
        if start is not None:
            sites = [part.expand(*shape, -1).flatten(0, 1) for part in (start.tau, start.nu)]
        data = self.pairs.data
        size = data.n**2
        each = max(1, _CHUNK_ENTRIES[u.device.type] // max(1, size))
        parts = []
        for chunk in torch.arange(len(flat), device=u.device).split(each):
            lengths, variance = self.natural(flat[chunk])
            prior = Stationary(self.name, lengths, variance)
            warm = None if sites is None else Start(*(part[chunk] for part in sites))
            pairs = self.pairs.select(lanes[chunk])
            found, grad = pairs.evidence(prior, warm, tolerance, gradient=gradient)
            parts.append((found.log_evidence, grad, found.tau, found.nu))
        evidence, grad, tau, nu = (torch.cat(part).unflatten(0, shape) for part in zip(*parts, strict=True))
        log_density = evidence - u.square().sum(-1) / 2
        inside = (u.abs() <= _BOUND).all(-1) & log_density.isfinite()
        slope = grad * self.spread - u if gradient else grad
        return _Found(u, torch.where(inside, log_density, -torch.inf), slope, evidence, tau, nu)


@dataclass(frozen=True, eq=False)
class _Laplace:
    """A normal approximation of the posterior around the fitted kernel."""

    found: _Found
    """What was found at the fitted kernel."""
    middle: Float[Tensor, "lane e"]
    root: Float[Tensor, "lane e e"]
    """Symmetric root of its covariance."""
    inverse: Float[Tensor, "lane e e"]
    """The inverse of the root."""
    log_scale: Float[Tensor, " lane"]
    """Logarithm of its determinant."""

    @classmethod
    def at(cls, posterior: _Posterior) -> "_Laplace":
        """By the curvature at the fitted kernel, from differences of gradients, and one Newton step."""
        start, e = posterior.fitted, posterior.fitted.shape[-1]
        steps = _DIFFERENCE * torch.eye(e, dtype=start.dtype, device=start.device)
        found = posterior.at(start[None], None, _TOLERANCE)
        moves = torch.cat([steps, -steps])[:, None, :]
        above, below = posterior.at(start + moves, found, _TOLERANCE).gradient.chunk(2)
        precision = ((below - above) / (2 * _DIFFERENCE)).movedim(0, -2)
        values, vectors = torch.linalg.eigh((precision + precision.mT) / 2)
        values = values.clamp_min(_LEAST_CURVATURE)[..., None, :]
        root, inverse = ((vectors * values.pow(power)) @ vectors.mT for power in (-0.5, 0.5))
        newton = (root @ (root @ found.gradient[0][..., None]))[..., 0]
        length = newton.norm(dim=-1, keepdim=True).clamp_min(1e-12)
        middle = start + newton * (_FARTHEST / length).clamp_max(1)
        return cls(found, middle, root, inverse, values[..., 0, :].log().sum(-1) / 2)

    def select(self, lanes: Int[Tensor, " some"]) -> "_Laplace":
        """That of some of the lanes."""
        parts = (getattr(self, part.name)[lanes] for part in fields(self)[1:])
        return _Laplace(self.found.select(lanes), *parts)

    def log_density(self, u: Float[Tensor, "k lane e"]) -> Float[Tensor, "k lane"]:
        """Up to the constant of a standard normal."""
        return self.log_scale - self.away(u).square().sum(-1) / 2

    def away(self, u: Float[Tensor, "k lane e"]) -> Float[Tensor, "k lane e"]:
        """Distances from the middle, in its own units."""
        return (self.inverse @ (u - self.middle)[..., None])[..., 0]

    def excess(self, found: _Found) -> Float[Tensor, "k lane e"]:
        """Gradient of the log density beyond that of the approximation, in its own units."""
        return (self.root @ found.gradient[..., None])[..., 0] + self.away(found.u)


def _resampled(
    posterior: _Posterior, near: _Laplace, count: int, generators: Generators
) -> tuple[_Found, Float[Tensor, " lane"]]:
    """Kernels resampled from candidates around the fitted one and from the prior, by their weights.

    And the effective number of candidates.
    """
    lanes, e = posterior.pairs.data.lanes, posterior.fitted.shape[-1]
    shift = rand(generators, lanes, 1, e, like=posterior.fitted).movedim(-2, 0)
    grid = sobol(e, (_CLOSE + _WIDE) * count).to(posterior.fitted)[:, None, :]
    normal = torch.special.ndtri(((grid + shift) % 1).clamp(1e-9, 1 - 1e-9))
    close, wide = normal.split([_CLOSE * count, _WIDE * count])
    u = torch.cat([near.middle + (near.root @ close[..., None])[..., 0], wide])
    log_prior = -u.square().sum(-1) / 2
    found = posterior.at(u, near.found, _ROUGH_TOLERANCE, gradient=False)
    each = torch.stack([near.log_density(u) + math.log(_CLOSE), log_prior + math.log(_WIDE)])
    log_weight = found.log_density - each.logsumexp(0)
    weight = log_weight.softmax(0)
    order = u[..., -1].argsort(0)  # by variance, so that those at regular steps have all of them
    reached = weight.gather(0, order).cumsum(0)
    offset = rand(generators, lanes, 1, like=reached).movedim(-1, 0)
    places = (torch.arange(count, device=u.device)[:, None] + offset) / count
    chosen = order.gather(0, (places[:, None] > reached[None]).sum(1).clamp_max(len(u) - 1))
    return found.gathered(chosen), 1 / weight.square().sum(0)


def _rejuvenated(
    posterior: _Posterior, near: _Laplace, found: _Found, moves: int, generators: Generators
) -> _Found:
    """The kernels after moves."""
    found = posterior.at(found.u, found, _TOLERANCE)  # the gradient is known for none of them
    for _ in range(moves):
        found = _moved(posterior, near, found, generators)
    return found


def _moved(posterior: _Posterior, near: _Laplace, start: _Found, generators: Generators) -> _Found:
    """The kernels after one move of Hamiltonian Monte Carlo each."""
    lanes, (count, _, e) = posterior.pairs.data.lanes, start.u.shape
    momentum = randn(generators, lanes, count, e, like=start.u).movedim(-2, 0)
    chance = rand(generators, lanes, count, like=start.u).movedim(-1, 0)
    half = math.tan(_ANGLE / 2)
    # a push by half of the excess, a turn around the middle, and the other half
    moving = momentum + half * near.excess(start)
    away = near.away(start.u)
    turned = math.cos(_ANGLE) * away + math.sin(_ANGLE) * moving
    moving = math.cos(_ANGLE) * moving - math.sin(_ANGLE) * away
    end = posterior.at(near.middle + (near.root @ turned[..., None])[..., 0], start, _TOLERANCE)
    moving = moving + half * near.excess(end)
    gain = end.log_density - start.log_density - (moving.square() - momentum.square()).sum(-1) / 2
    return end.where(chance.log() < gain, start)
