r"""Draws of f from its posterior, as functions that can be evaluated and maximised anywhere.

Both methods of the supplement, section 4.  ``weight_space`` draws the values at the answers, then
weights of the features given those; with more answers than features it has no freedom left and
grows overconfident away from the data ("variance starvation").  ``decoupled`` draws the prior from
the features and adds the exact update (Matheron's rule), and does not.
"""

import functools
import math
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

from askwise.basis import Features, Slope
from askwise.belief import Belief
from askwise.features import features
from askwise.kernels import Covariance
from askwise.linalg import cholesky, root
from askwise.seeds import Generators, check_one_a_lane, generator, randn
from askwise.view import Score, View

__all__ = ["Path", "draw"]

_ENTRIES_AT_ONCE = {"cpu": 2**20, "cuda": 2**26}  # features of points that fit the cache, or the memory


@dataclass(frozen=True)
class Path:
    """``count`` draws of f for each lane; call it with points to get [count, *lane, q].

    Points [q, d] or [lane, q, d] are given to all draws; [count, lane, q, d] (or [count, q, d]
    without lanes) gives each draw its own.
    """

    features: Features
    weights: Float[Tensor, "count *lane m"]
    prior: Covariance
    points: Float[Tensor, "*lane p d"]
    update: Float[Tensor, "count *lane p"]

    def __call__(self, x: Float[Tensor, "*b q d"]) -> Float[Tensor, "count *lane q"]:
        """Values of all draws at ``x``."""
        if (common := _common(x)) is not None:
            update = self.prior.cross(common, self.points) @ self.update.movedim(0, -1)
            return self.features.shared(common, self.weights) + update.movedim(-1, 0)
        cross = self.prior.cross(x, self.points)
        if x.ndim > self.weights.ndim:  # each draw has its own points
            drawn = self.features.combined(x, self.weights[..., None])
            return (drawn + cross @ self.update[..., None])[..., 0]
        drawn = self.features.combined(x, self.weights.movedim(0, -1))
        return (drawn + cross @ self.update.movedim(0, -1)).movedim(-1, 0)

    def with_slope(
        self, x: Float[Tensor, "count *lane q d"]
    ) -> tuple[Float[Tensor, "count *lane q"], Float[Tensor, "count *lane q d"]]:
        """Values and gradients of the draws, each at its own points."""
        with torch.no_grad():
            update, sloped = self._slopes
            each = max(1, math.prod(x.shape[:-2]) * self.features.count)
            fitting = max(1, _ENTRIES_AT_ONCE[x.device.type] // each)
            drawn, slopes = zip(*(sloped(part) for part in x.split(fitting, -2)), strict=True)
            added, more = update.with_slope(x)
            return torch.cat(drawn, -1) + added, torch.cat(slopes, -2) + more

    @functools.cached_property
    def _slopes(self) -> tuple[Score, Slope]:
        """What adds up to the draws, ready to be evaluated with slopes."""
        return View(self.prior, self.points, self.update[..., None]).score(), self.features.sloped(
            self.weights
        )


def _common(x: Tensor) -> Float[Tensor, "q d"] | None:
    """The points, if they are the same for all draws and lanes: expanded, not copied."""
    if x.requires_grad or any(
        size > 1 and step > 0 for size, step in zip(x.shape[:-2], x.stride(), strict=False)
    ):
        return None
    return x[(0,) * (x.ndim - 2)]


def draw(
    belief: Belief,
    count: int,
    generators: Generators,
    method: Literal["decoupled", "weight_space"] = "decoupled",
    basis: Features | None = None,
) -> Path:
    """Draw ``count`` functions for each lane; ``basis`` are features made earlier for this prior."""
    if method not in ("decoupled", "weight_space"):
        raise ValueError(
            f"method must be 'decoupled' or 'weight_space'; got {method!r}. Choose one of the two."
        )
    data = belief.data
    with torch.no_grad():
        if basis is None:
            # the same frequencies for everyone: lanes with one kernel share the features of shared points
            source = generator("frequencies of draws")
            d = data.points.shape[-1]
            basis = features(belief.prior, d, generators=source, lanes=torch.Size())
        weights = _prior_weights(basis, count, generators, belief)
        if method == "decoupled":
            update = _decoupled_update(belief, basis, weights, generators)
        else:
            weights = _fitted_weights(belief, basis, weights, generators)
            update = torch.zeros_like(belief.alpha)[..., None].expand(*belief.alpha.shape, count)
        return Path(basis, weights.movedim(-1, 0), belief.prior, data.points, update.movedim(-1, 0))


def _prior_weights(basis: Features, count: int, generators: Generators, belief: Belief) -> Tensor:
    """Standard normals [*lane, m, count]; a lane with its own generator takes only what it needs."""
    lanes, like = belief.data.lanes, belief.alpha
    if isinstance(generators, torch.Generator):
        return randn(generators, lanes, basis.count, count, like=like)
    check_one_a_lane(generators, lanes)
    counts = basis.counts.expand(lanes).reshape(-1).tolist()
    drawn = [
        pad(randn(own, torch.Size(), needed, count, like=like), (0, 0, 0, basis.count - needed))
        for own, needed in zip(generators, counts, strict=True)
    ]
    return torch.stack(drawn).reshape(*lanes, basis.count, count)


def _decoupled_update(belief: Belief, basis: Features, weights: Tensor, generators: Generators) -> Tensor:
    r"""Weights of :math:`k(\cdot, P)` that turn a draw of the prior into one of the posterior.

    Matheron's rule with the sites as noisy observations, in a form that never inverts K:
    :math:`\alpha - F F^\top f_0(P) - (I - F F^\top K) u`, where :math:`u = A^\top S \varepsilon` is the
    noise of the sites, one normal for each answer.  A belief without sites (exact moments) has
    noise of covariance :math:`I - F^\top K F` in the place of :math:`F^\top (f_0 - f)`.
    """
    data, factor, count = belief.data, belief.factor, weights.shape[-1]
    before, K = basis.combined(data.points, weights), belief.prior.cross(data.points, data.points)
    sites = bool(belief.tau.any())
    normals = randn(generators, data.lanes, data.n if sites else factor.shape[-1], count, like=weights)
    if data.noise.any():  # what a noisy copy of a point was, not f, is what the sites look at
        own = randn(generators, data.lanes, data.noise.shape[-1], count, like=weights)
        before = before + data.noise.sqrt()[..., None] * own
        K = K + torch.diag_embed(data.noise)
    if sites:
        noise = data.spread(belief.tau.sqrt()[..., None] * normals)
        update = noise + factor @ (factor.mT @ (before - K @ noise))
    else:
        within = factor.mT @ K @ factor
        eye = torch.eye(within.shape[-1], dtype=within.dtype, device=within.device)
        update = factor @ (factor.mT @ before + cholesky(eye - within)[0] @ normals)
    return belief.alpha[..., None] - update


def _fitted_weights(belief: Belief, basis: Features, weights: Tensor, generators: Generators) -> Tensor:
    """Weights of the features given a draw of the values at the answers, by regression with noise.

    The noise is what the features leave out: fitting rough values of close points more tightly
    than the features can follow would blow the weights up.  The values get as much noise as the
    regression expects of them (hence twice), else the draws would vary too little.
    """
    data, lanes, count = belief.data, belief.data.lanes, weights.shape[-1]
    if data.n == 0:
        return weights
    spread = data.rows(data.rows(belief.cov(data.points)).mT)
    values = data.rows(belief.mean(data.points)[..., None])
    values = values + root((spread + spread.mT) / 2) @ randn(generators, lanes, data.n, count, like=weights)
    rows = data.rows(basis(data.points))
    noise = (basis.error * rows.square().sum(-1).amax(-1))[..., None, None]
    error = randn(generators, lanes, data.n, count, like=weights) * (2 * noise).sqrt()
    eye = torch.eye(data.n, dtype=rows.dtype, device=rows.device)
    lower, _ = cholesky(rows @ rows.mT + noise * eye)
    return weights + rows.mT @ torch.cholesky_solve(values - rows @ weights - error, lower)
