r"""Mean and variance of f, or of its difference to a rival, as a search asks for them: very often.

Both follow from the covariances c(x) with some fixed points by one product,
:math:`(m, v, u) = c^\top W - o`:

.. math:: \mu(x) = m, \qquad \sigma^2(x) = k(x, x) + k(z, z) - 2 u - \lVert v \rVert^2

where z is the rival (without one, its terms are absent).  For eight points and 160 covariances mean,
variance and slopes take 0.4 ms so, and 0.9 ms by autograd through ``Belief.difference``; a search
does little else.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from askwise.kernels import Covariance, Stationary, correlation_at, distance, slope_in_first, steepness
from askwise.slopes import by_autograd

__all__ = ["Formula", "Score", "View"]

Formula = Callable[[Tensor, Tensor], Tensor]
"""A score as a function of mean and variance, differentiable by autograd."""


@dataclass(frozen=True, eq=False)
class View:
    """What is believed of f, or of its difference to f at a rival."""

    prior: Covariance
    points: Float[Tensor, "*lane p d"]
    weights: Float[Tensor, "*c p k"]
    """One column for the mean, those of the explained variance, and with a rival one that picks it."""
    rival: Float[Tensor, "*lane 1 d"] | None = None
    offset: Float[Tensor, "*lane 1 k"] | None = None

    def against(self, rival: Float[Tensor, "*c 1 d"]) -> "View":
        """The view of f minus its value at ``rival``."""
        *lanes, p, k = self.weights.shape
        rival = rival.expand(*lanes, 1, -1)
        points = torch.cat([self.points, rival], -2)
        weights = self.weights.new_zeros(*lanes, p + 1, k + 1)
        weights[..., :p, :k] = self.weights
        weights[..., p, k] = 1.0
        offset = self.prior.cross(rival, points) @ weights
        offset[..., -1] = 0.0  # the covariance with the rival counts as it is
        return View(self.prior, points, weights, rival, offset)

    def mean_only(self) -> "View":
        """The same mean, with a variance that no answer has lowered."""
        if self.offset is None:
            return replace(self, weights=self.weights[..., :1])
        kept = [0, -1]  # the mean, and the covariance with the rival
        return replace(self, weights=self.weights[..., kept], offset=self.offset[..., kept])

    def moments(self, x: Float[Tensor, "*lane q d"]) -> tuple[Float[Tensor, "*c q"], Float[Tensor, "*c q"]]:
        """Mean and variance at ``x``."""
        seen = self.prior.cross(x, self.points) @ self.weights
        alone = self.prior.diagonal(x)
        if self.rival is not None and self.offset is not None:
            seen, alone = seen - self.offset, alone + self.prior.diagonal(self.rival)
        return self.split(seen, alone)

    def score(self, formula: Formula | None = None) -> "Score":
        """A score that is a function of mean and variance; by default the mean."""
        return Score(self, formula)

    def split(self, seen: Tensor, alone: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance from the product with the weights and the variance before any answer."""
        if self.rival is None:
            return seen[..., 0], (alone - seen[..., 1:].square().sum(-1)).clamp_min(0)
        apart = torch.add(alone, seen[..., -1], alpha=-2)
        return seen[..., 0], (apart - seen[..., 1:-1].square().sum(-1)).clamp_min(0)


@dataclass(frozen=True, eq=False)
class Score:
    """A formula of the mean and variance at points, with its slope in them."""

    view: View
    formula: Formula | None = None

    def __call__(self, x: Float[Tensor, "*lane q d"]) -> Float[Tensor, "*c q"]:
        """Scores of the points."""
        mean, var = self.view.moments(x)
        return mean if self.formula is None else self.formula(mean, var)

    @property
    def logarithmic(self) -> bool:
        """Whether the formula is a logarithm, which it is if its name begins with ``log_``."""
        return getattr(self.formula, "__name__", "").startswith("log_")

    def with_slope(
        self, x: Float[Tensor, "*lane q d"]
    ) -> tuple[Float[Tensor, "*lane q"], Float[Tensor, "*lane q d"]]:
        """Scores of the points and their gradients, which autograd does not follow further."""
        prior = self.view.prior
        if not isinstance(prior, Stationary):
            return by_autograd(self, x)
        length, points, weights, alone = self._scaled
        with torch.no_grad():
            x = x / length
            r = distance(x, points)
            seen = correlation_at(prior.name, r) @ weights
            if self.formula is None:
                value, by_cross = seen[..., 0], weights[..., 0][..., None, :]
                if self.view.offset is not None:
                    value = value - self.view.offset[..., 0]
            else:
                value, by_seen = self._through_formula(seen, alone)
                by_cross = by_seen @ weights.mT
            return value, slope_in_first(x, points, steepness(prior.name, r).mul_(by_cross)) / length

    @functools.cached_property
    def _scaled(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Lengthscale, points in its units, weights of correlations, variance before any answer."""
        view, prior = self.view, self.view.prior
        assert isinstance(prior, Stationary)
        length, scale = prior.lengthscale[..., None, :], prior.outputscale
        alone = scale[..., None] * (1 if view.rival is None else 2)
        return length, view.points / length, scale[..., None, None] * view.weights, alone

    def _through_formula(self, seen: Tensor, alone: Tensor) -> tuple[Tensor, Tensor]:
        """Scores, and their slopes in the product with the weights."""
        assert self.formula is not None
        if self.view.offset is not None:
            seen = seen.sub_(self.view.offset)
        mean, var = self.view.split(seen, alone)
        with torch.enable_grad():
            value = self.formula(mean.requires_grad_(), var.requires_grad_())
            by_mean, by_var = torch.autograd.grad(value.sum(), (mean, var), materialize_grads=True)
        twice = (by_var * (var > 0)).mul_(-2)
        by_seen = seen * twice[..., None]
        by_seen[..., 0] = by_mean
        if self.view.rival is not None:
            by_seen[..., -1] = twice
        return value.detach(), by_seen
