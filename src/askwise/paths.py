r"""Draws of f from its posterior, as functions that can be evaluated and maximised anywhere.

Both methods of the supplement, section 4.  ``weight_space`` draws the values at the answers, then
weights of the features given those; with more answers than features it has no freedom left and
grows overconfident away from the data ("variance starvation").  ``decoupled`` draws the prior from
the features and adds the exact update (Matheron's rule), and does not.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from askwise.belief import Belief
from askwise.features import Features, features
from askwise.kernels import Covariance
from askwise.linalg import cholesky, root
from askwise.seeds import Generators, randn

__all__ = ["Path", "draw"]


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
        drawn = self._combined(self.features(x), self.weights)
        return drawn + self._combined(self.prior.cross(x, self.points), self.update)

    def _combined(self, basis: Tensor, weights: Tensor) -> Tensor:
        if basis.ndim > weights.ndim:  # each draw has its own points
            return (basis @ weights[..., None])[..., 0]
        return (basis @ weights.movedim(0, -1)).movedim(-1, 0)


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
    with torch.no_grad():
        if basis is None:
            basis = features(belief.prior, belief.data.points.shape[-1], generators=generators)
        lanes = belief.data.lanes
        weights = randn(generators, lanes, basis.count, count, like=belief.alpha)
        if method == "decoupled":
            update = _decoupled_update(belief, basis, weights, generators)
        else:
            weights = _fitted_weights(belief, basis, weights, generators)
            update = torch.zeros_like(belief.alpha)[..., None].expand(*belief.alpha.shape, count)
        return Path(basis, weights.movedim(-1, 0), belief.prior, belief.data.points, update.movedim(-1, 0))


def _decoupled_update(belief: Belief, basis: Features, weights: Tensor, generators: Generators) -> Tensor:
    r"""Weights of :math:`k(\cdot, P)` that turn a draw of the prior into one of the posterior.

    :math:`\alpha - F (F^\top f_0(P) + \eta)` with :math:`\eta \sim \mathcal N(0, I - F^\top K F)`:
    Matheron's rule with the sites as noisy observations, in a form that never inverts K.
    """
    points, factor = belief.data.points, belief.factor
    before = basis(points) @ weights
    within = factor.mT @ belief.prior.cross(points, points) @ factor
    lower, _ = cholesky(torch.eye(within.shape[-1], dtype=within.dtype, device=within.device) - within)
    eta = lower @ randn(generators, belief.data.lanes, lower.shape[-1], weights.shape[-1], like=weights)
    return belief.alpha[..., None] - factor @ (factor.mT @ before + eta)


def _fitted_weights(belief: Belief, basis: Features, weights: Tensor, generators: Generators) -> Tensor:
    """Weights of the features given a draw of the values at the answers, by regression with noise.

    The noise is what the features leave out: fitting rough values of close points more tightly
    than the features can follow would blow the weights up.
    """
    data, lanes, count = belief.data, belief.data.lanes, weights.shape[-1]
    spread = data.rows(data.rows(belief.cov(data.points)).mT)
    values = data.rows(belief.mean(data.points)[..., None])
    values = values + root((spread + spread.mT) / 2) @ randn(generators, lanes, data.n, count, like=weights)
    rows = data.rows(basis(data.points))
    noise = basis.error * belief.prior.diagonal(data.points).amax(-1)[..., None, None]
    error = randn(generators, lanes, data.n, count, like=weights) * noise.sqrt()
    eye = torch.eye(data.n, dtype=rows.dtype, device=rows.device)
    lower, _ = cholesky(rows @ rows.mT + noise * eye)
    return weights + rows.mT @ torch.cholesky_solve(values - rows @ weights - error, lower)
