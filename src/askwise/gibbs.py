r"""The exact posterior by Markov chains, summarised as a Gaussian: slow, and right up to its noise.

An answer says on which side of zero a latent reaction :math:`u = A f + \varepsilon` with
:math:`\varepsilon \sim \mathcal N(0, I)` fell (Albert & Chib 1993, JASA 88).  Given u, f is Gaussian
with a covariance that does not depend on u; so the mean and covariance of f follow exactly from
those of u, which is a normal truncated to an orthant, drawn one coordinate at a time.
"""

import math
from dataclasses import replace

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float
from torch import Tensor

from askwise.belief import Belief
from askwise.data import Data
from askwise.linalg import cholesky, root
from askwise.normal import log_ndtr, ndtr
from askwise.seeds import Generators, generator, rand
from askwise.sites import Outcome, Problem

__all__ = ["gibbs", "hallucinated", "truncated_normal"]

_WARM_UP = 0.2  # share of the sweeps that is thrown away
_FAR = 30.0  # beyond it the tail is exponential to 1e-3 of its own width, and ndtr nears underflow


def gibbs(
    data: Data,
    kernel: Kernel,
    *,
    generators: Generators | None = None,
    chains: int = 256,
    tolerance: float = 1e-2,
    max_sweeps: int = 500,
) -> Belief:
    """Mean and covariance of the exact posterior, by ``chains`` chains of ``max_sweeps`` sweeps.

    ``converged``: the potential scale reduction (Gelman & Rubin) of every reaction is within
    ``tolerance`` of one; ``change`` says how far it is.  The sites are left at zero, for the exact
    posterior has none.  The evidence is the estimate of Geweke, Hajivassiliou and Keane, which
    ``converged`` does not speak of.  With the default number of chains and a prior variance of 4
    its standard deviation is 0.2 for 20 duels and 0.6 for 80; with a variance of 100 and 80 duels
    it is worthless.
    """
    if chains < 2 or max_sweeps < 1:
        raise ValueError(
            f"chains must be 2 or more and max_sweeps at least 1; got {chains} and {max_sweeps}. "
            "The defaults are 256 and 500."
        )
    problem = Problem.of(data, kernel)
    source = generator("gibbs") if generators is None else generators
    with torch.no_grad():
        lower = _reactions(problem)
        start, weight = _sequential(lower, chains, source)
        evidence = weight.logsumexp(-1) - math.log(chains)
        precision = torch.cholesky_inverse(lower)
        mean, spread, reduction = _orthant_moments(precision, start, max_sweeps, source)
        alpha, factor = _gaussian_of(problem.data, lower, mean, spread)
        sweeps = torch.full_like(reduction, max_sweeps, dtype=torch.long)
        none = torch.zeros_like(problem.data.signs)
        outcome = Outcome(none, none, evidence, reduction <= tolerance, sweeps, reduction)
    return problem.belief(alpha, factor, outcome)


def hallucinated(belief: Belief, generators: Generators, sweeps: int = 20, tries: int = 64) -> Belief:
    """The belief if the reactions behind the answers were known, for one draw of them.

    A reaction is f (or its difference) with a standard normal error, of which the answer tells the
    sign.  The draw is picked among ``tries`` sequential ones by their weight, and then
    improved by ``sweeps`` of Gibbs sampling.
    """
    problem = Problem.under(belief.data, belief.prior)
    with torch.no_grad():
        lower = _reactions(problem)
        w, weight = _sequential(lower, tries, generators)
        # the largest of log weight + Gumbel noise is a draw by weight
        noise = -(-rand(generators, w.shape[:-2], tries, like=w).log()).log()
        picked = (weight + noise).argmax(-1)[..., None, None].expand(*w.shape[:-2], 1, w.shape[-1])
        w = _swept(torch.cholesky_inverse(lower), w.gather(-2, picked), sweeps, generators)[..., 0, :]
        alpha, factor = _gaussian_of(problem.data, lower, w, torch.zeros_like(lower))
    if not belief.data.lanes:
        alpha, factor = alpha[0], factor[0]
    return replace(belief, alpha=alpha, factor=factor)


def _reactions(problem: Problem) -> Float[Tensor, "lane n n"]:
    """Cholesky factor of the prior covariance of the reactions, signed so that all are positive."""
    signs, cov = problem.data.signs, problem.G.clone()
    cov.diagonal(dim1=-2, dim2=-1).add_(1.0)
    lower, _ = cholesky(signs[..., None] * cov * signs[..., None, :])
    return lower


def truncated_normal(bound: Float[Tensor, "*b"], uniform: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
    """Standard normals above ``bound``, by inversion of ``uniform``."""
    near = -torch.special.ndtri(uniform * ndtr(-bound))
    far = (bound.square() - 2 * uniform.log()).sqrt()
    return torch.where(bound < _FAR, near, far).maximum(bound)


def _sequential(lower: Tensor, chains: int, source: Generators) -> tuple[Tensor, Tensor]:
    """Draws above zero, one coordinate after the other, and their log weights."""
    lanes, n = lower.shape[:-2], lower.shape[-1]
    noise = lower.new_zeros(*lanes, chains, n)
    weight = lower.new_zeros(*lanes, chains)
    for i in range(n):
        bound = -(noise[..., :i] @ lower[..., i, :i, None])[..., 0] / lower[..., i, i, None]
        weight = weight + log_ndtr(-bound)
        noise[..., i] = truncated_normal(bound, rand(source, lanes, chains, like=lower))
    return noise @ lower.mT, weight


def _orthant_moments(
    precision: Tensor, w: Tensor, sweeps: int, source: Generators
) -> tuple[Tensor, Tensor, Tensor]:
    """Mean and covariance of a normal restricted to positive values, and the chains' disagreement."""
    lanes, n, chains = w.shape[:-2], w.shape[-1], w.shape[-2]
    warm_up = int(_WARM_UP * sweeps)
    kept = sweeps - warm_up
    total, square, outer = torch.zeros_like(w), torch.zeros_like(w), torch.zeros_like(precision)
    for sweep in range(sweeps):
        w = _swept(precision, w, 1, source)
        if sweep >= warm_up:
            total, square, outer = total + w, square + w.square(), outer + w.mT @ w
    each = total / kept
    mean = each.mean(-2)
    spread = outer / (kept * chains) - mean[..., :, None] * mean[..., None, :]
    within = (square / kept - each.square()).mean(-2)
    if n == 0:
        return mean, spread, mean.new_zeros(lanes)
    reduction = ((within + each.var(-2)) / within).sqrt() - 1
    return mean, spread, reduction.amax(-1)


def _swept(precision: Tensor, w: Tensor, sweeps: int, source: Generators) -> Tensor:
    """The draws after so many sweeps of Gibbs sampling over their coordinates."""
    w, (chains, n) = w.clone(), w.shape[-2:]
    scale = precision.diagonal(dim1=-2, dim2=-1).rsqrt()
    for _ in range(sweeps):
        uniform = rand(source, w.shape[:-2], n, chains, like=w)
        for i in range(n):
            sd = scale[..., i, None]
            centre = w[..., i] - (w @ precision[..., :, i, None])[..., 0] * sd.square()
            w[..., i] = centre + sd * truncated_normal(-centre / sd, uniform[..., i, :])
    return w


def _gaussian_of(data: Data, lower: Tensor, mean: Tensor, spread: Tensor) -> tuple[Tensor, Tensor]:
    r""":math:`\alpha = A^\top C^{-1} \mathbb E[u]` and F of :math:`C^{-1} - C^{-1} \mathbb V[u] C^{-1}`.

    With :math:`C = L L^\top` the latter is :math:`L^{-\top} (I - L^{-1} \mathbb V[u] L^{-\top}) L^{-1}`.
    """
    half = torch.linalg.solve_triangular(lower, spread, upper=False)
    inner = torch.linalg.solve_triangular(lower, half.mT, upper=False)
    eye = torch.eye(inner.shape[-1], dtype=inner.dtype, device=inner.device)
    reduction = root(eye - (inner + inner.mT) / 2)
    factor = torch.linalg.solve_triangular(lower.mT, reduction, upper=True)
    pull = torch.cholesky_solve(mean[..., None], lower)
    y = data.signs[..., None]
    return data.spread(y * pull)[..., 0], data.spread(y * factor)
