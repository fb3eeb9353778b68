r"""Kernels drawn from the posterior of their parameters, so that a belief can be averaged over them.

In the logarithms of lengthscales and variance the priors are normal.  In units of these, u, the posterior is

.. math:: p(u \mid \mathscr D) \propto p(\mathscr D \mid u)\, \mathcal N(u; 0, I)

with the evidence of EP.  Importance sampling starts from half of the candidates around the kernel of highest
posterior (Laplace's approximation) and half from the prior, so that no weight exceeds twice the ratio of the
evidence to its average, wherever the modes are.  As many as are wanted are resampled, and
each moves by Hamiltonian Monte Carlo through the gradient of the evidence, which leaves the posterior
invariant: sequential Monte Carlo in one step, with rejuvenation.  All candidates are lanes of one inference.
A pure function of the answers and the generators: nothing depends on what was computed before.
"""

from dataclasses import dataclass, replace

import torch
from gpytorch.kernels import Kernel
from gpytorch.priors import LogNormalPrior
from jaxtyping import Float, Int
from torch import Tensor

from askwise.errors import Refused
from askwise.model.data import Data
from askwise.model.ep import ep
from askwise.model.kernels import Stationary, covariance
from askwise.model.mixture import Kernels
from askwise.model.sites import InferenceProblem, Start
from askwise.numerics import Generators, rand, randn, sobol

COUNT = 8
"""Kernels that a study averages over."""
_CANDIDATES = 4  # for each kernel
_MOVES, _LEAPS, _STEP = 3, 3, 0.8  # of Hamiltonian Monte Carlo, in units of Laplace's approximation
_TOLERANCE = 1e-5  # of EP, whose evidence errs by the order of the square
_DIFFERENCE = 1e-3
_LEAST_CURVATURE = 0.5  # of the prior's; where evidence is not concave, the approximation is not wider
_FARTHEST = 1.0  # of the approximation's middle from the fitted kernel, in deviations of the prior
_BOUND = 8.0  # deviations of the prior beyond which nothing is looked for
_CHUNK_ENTRIES = {"cpu": 2**19, "cuda": 2**27}  # matrix entries of the lanes that run together


def averaged(
    data: Data, fitted: Kernel, generators: Generators, count: int = COUNT, *, moves: int = _MOVES
) -> Kernels:
    """``count`` kernels for each lane, drawn from the posterior of their parameters.

    ``fitted``: the kernel of highest posterior, with log-normal priors on lengthscales and variance, as
    :func:`~askwise.model.fitting.fit` returns it for ``expected_kernel``.

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
        u = _resampled(posterior, near, count, generators)
        for _ in range(moves):
            u = _moved(posterior, near, u, generators)
        found, lanes = posterior.at(u), torch.Size([count, *data.lanes])
        parts = (part.reshape(*lanes, *part.shape[2:]) for part in (found.log_evidence, found.tau, found.nu))
        lengths, variance = posterior.natural(u)
        prior = Stationary(posterior.name, lengths.reshape(*lanes, -1), variance.reshape(lanes))
        return Kernels(prior, *parts)


@dataclass(frozen=True, eq=False)
class _Found:
    """What inference finds for candidates."""

    log_density: Float[Tensor, "k lane"]
    """Of the posterior, up to a constant."""
    gradient: Float[Tensor, "k lane e"]
    log_evidence: Float[Tensor, "k lane"]
    tau: Float[Tensor, "k lane n"]
    nu: Float[Tensor, "k lane n"]


@dataclass(frozen=True, eq=False)
class _Posterior:
    """The posterior of the parameters u of each lane: lengthscales, then the variance."""

    data: Data
    name: str
    middle: Float[Tensor, " e"]
    """Mean of their logarithms under the prior."""
    spread: Float[Tensor, " e"]
    fitted: Float[Tensor, "lane e"]
    """The fitted kernel, in u."""
    sites: tuple[Float[Tensor, "lane n"], Float[Tensor, "lane n"]] | None = None
    """Those of the fitted kernel, from which inference starts; from none it takes longer."""

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
        alone = cls(laned, prior.name, middle, spread, u.clamp(-_BOUND, _BOUND))
        found = alone.at(alone.fitted[None])
        return replace(alone, sites=(found.tau[0], found.nu[0]))

    def natural(self, u: Float[Tensor, "*b e"]) -> tuple[Float[Tensor, "*b d"], Float[Tensor, "*b"]]:
        """Lengthscales and variance."""
        both = (self.middle + self.spread * u).exp()
        return both[..., :-1], both[..., -1]

    def at(self, u: Float[Tensor, "k lane e"]) -> _Found:
        """Log density and gradient at candidates, whatever was computed before."""
        shape, flat = u.shape[:-1], u.clamp(-_BOUND, _BOUND).flatten(0, 1)
        lanes = torch.arange(shape[1], device=u.device).repeat(shape[0])
        size = self.data.n**2 + self.data.points.shape[-2] ** 2
        each = max(1, _CHUNK_ENTRIES[u.device.type] // max(1, size))
        chunks = torch.arange(len(flat), device=u.device).split(each)
        parts = [self._in_lanes(flat[chunk], lanes[chunk]) for chunk in chunks]
        evidence, grad, tau, nu = (torch.cat(part).unflatten(0, shape) for part in zip(*parts, strict=True))
        log_density = evidence - u.square().sum(-1) / 2
        inside = (u.abs() <= _BOUND).all(-1) & log_density.isfinite()
        return _Found(torch.where(inside, log_density, -torch.inf), grad - u, evidence, tau, nu)

    def _in_lanes(self, u: Float[Tensor, "lane e"], lanes: Int[Tensor, " lane"]) -> tuple[Tensor, ...]:
        """Log evidence of these lanes, its gradient, and the sites."""
        with torch.enable_grad():
            u = u.detach().requires_grad_()
            problem = InferenceProblem.of(self.data.select(lanes), Stationary(self.name, *self.natural(u)))
            warm = None if self.sites is None else Start(*(part[lanes] for part in self.sites))
            belief = ep(problem, warm, _TOLERANCE)
            (grad,) = torch.autograd.grad(belief.log_evidence.sum(), u)
        return belief.log_evidence.detach(), grad, belief.tau, belief.nu


@dataclass(frozen=True, eq=False)
class _Laplace:
    """A normal approximation of the posterior around the fitted kernel."""

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
        moves = torch.cat([torch.zeros_like(steps[:1]), steps, -steps])[:, None, :]
        gradients = posterior.at(start + moves).gradient
        above, below = gradients[1:].chunk(2)
        precision = ((below - above) / (2 * _DIFFERENCE)).movedim(0, -2)
        values, vectors = torch.linalg.eigh((precision + precision.mT) / 2)
        values = values.clamp_min(_LEAST_CURVATURE)[..., None, :]
        root, inverse = ((vectors * values.pow(power)) @ vectors.mT for power in (-0.5, 0.5))
        newton = (root @ (root @ gradients[0][..., None]))[..., 0]
        length = newton.norm(dim=-1, keepdim=True).clamp_min(1e-12)
        middle = start + newton * (_FARTHEST / length).clamp_max(1)
        return cls(middle, root, inverse, values[..., 0, :].log().sum(-1) / 2)

    def log_density(self, u: Float[Tensor, "k lane e"]) -> Float[Tensor, "k lane"]:
        """Up to the constant of a standard normal."""
        away = (self.inverse @ (u - self.middle)[..., None])[..., 0]
        return self.log_scale - away.square().sum(-1) / 2


def _resampled(
    posterior: _Posterior, near: _Laplace, count: int, generators: Generators
) -> Float[Tensor, "k lane e"]:
    """Kernels resampled from candidates around the fitted one and from the prior, by their weights."""
    lanes, e = posterior.data.lanes, posterior.fitted.shape[-1]
    shift = rand(generators, lanes, 1, e, like=posterior.fitted).movedim(-2, 0)
    grid = sobol(e, _CANDIDATES * count).to(posterior.fitted)[:, None, :]
    normal = torch.special.ndtri(((grid + shift) % 1).clamp(1e-9, 1 - 1e-9))
    close, wide = normal.chunk(2)
    u = torch.cat([near.middle + (near.root @ close[..., None])[..., 0], wide])
    log_prior = -u.square().sum(-1) / 2
    log_weight = posterior.at(u).log_density - near.log_density(u).logaddexp(log_prior)
    reached = log_weight.softmax(0).cumsum(0)
    offset = rand(generators, lanes, 1, like=reached).movedim(-1, 0)
    places = (torch.arange(count, device=u.device)[:, None] + offset) / count
    chosen = (places[:, None] > reached[None]).sum(1).clamp_max(len(u) - 1)
    return u.gather(0, chosen[..., None].expand(*chosen.shape, e))


def _moved(
    posterior: _Posterior, near: _Laplace, u: Float[Tensor, "k lane e"], generators: Generators
) -> Float[Tensor, "k lane e"]:
    """The kernels after one move of Hamiltonian Monte Carlo each."""
    lanes, (count, _, e) = posterior.data.lanes, u.shape
    momentum = randn(generators, lanes, count, e, like=u).movedim(-2, 0)
    chance = rand(generators, lanes, count, like=u).movedim(-1, 0)
    step = _STEP * e**-0.25

    def pushed(momentum: Tensor, gradient: Tensor, by: float) -> Tensor:
        return momentum + by * step * (near.root @ gradient[..., None])[..., 0]

    start = posterior.at(u)
    place, moving = u, pushed(momentum, start.gradient, 0.5)
    for leap in range(_LEAPS):
        place = place + step * (near.root @ moving[..., None])[..., 0]
        end = posterior.at(place)
        moving = pushed(moving, end.gradient, 0.5 if leap == _LEAPS - 1 else 1.0)
    gain = end.log_density - start.log_density - (moving.square() - momentum.square()).sum(-1) / 2
    return torch.where((chance.log() < gain)[..., None], place, u)
