r"""Mean and variance of f, or of its difference to a rival, as a search asks for them: very often.

Both follow from the covariances c(x) with some fixed points by one product,
:math:`(m, v, u) = c^\top W - o`:

.. math:: \mu(x) = m, \qquad \sigma^2(x) = k(x, x) + k(z, z) - 2 u - \lVert v \rVert^2

where z is the rival (without one, its terms are absent).  Their slope is written by hand, since
autograd through the parts takes three times as long, and a search does little else.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from askwise.kernels import Covariance, Stationary

__all__ = ["Score", "View"]

Formula = Callable[[Tensor, Tensor], Tensor]
"""A score as a function of mean and variance, differentiable by autograd."""


@dataclass(frozen=True, eq=False)
class View:
    """What is believed of f, or of its difference to f at a rival."""

    prior: Covariance
    points: Float[Tensor, "*lane p d"]
    weights: Float[Tensor, "*lane p k"]
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
        return replace(self, weights=self.weights[..., :1])

    def moments(self, x: Float[Tensor, "*lane q d"]) -> tuple[Float[Tensor, "*c q"], Float[Tensor, "*c q"]]:
        """Mean and variance at ``x``."""
        mean, var, _ = self._moments(x, self.prior.cross(x, self.points))
        return mean, var

    def score(self, formula: Formula | None = None) -> "Score":
        """A score that is a function of mean and variance; by default the mean."""
        return Score(self, formula)

    def _moments(self, x: Tensor, cross: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        seen, alone = cross @ self.weights, self._alone(x)
        if self.offset is None:
            return seen[..., 0], (alone - seen[..., 1:].square().sum(-1)).clamp_min(0), seen
        seen = seen - self.offset
        apart = torch.add(alone, seen[..., -1], alpha=-2)
        return seen[..., 0], (apart - seen[..., 1:-1].square().sum(-1)).clamp_min(0), seen

    def _alone(self, x: Tensor) -> Tensor:
        """What the variances of the point and of the rival add up to before any answer."""
        if isinstance(self.prior, Stationary):
            return (1 if self.rival is None else 2) * self.prior.outputscale[..., None]
        prior = self.prior.diagonal(x)
        return prior if self.rival is None else prior + self.prior.diagonal(self.rival)


@dataclass(frozen=True, eq=False)
class Score:
    """A formula of the mean and variance at points, with its slope in them."""

    view: View
    formula: Formula | None = None

    def __call__(self, x: Float[Tensor, "*lane q d"]) -> Float[Tensor, "*c q"]:
        """Scores of the points."""
        mean, var = self.view.moments(x)
        return mean if self.formula is None else self.formula(mean, var)

    def with_slope(
        self, x: Float[Tensor, "*lane q d"]
    ) -> tuple[Float[Tensor, "*lane q"], Float[Tensor, "*lane q d"]]:
        """Scores of the points and their gradients, which autograd does not follow further."""
        view, prior = self.view, self.view.prior
        if not isinstance(prior, Stationary):
            with torch.enable_grad():
                x = x.detach().requires_grad_()
                value = self(x)
                return value.detach(), torch.autograd.grad(value.sum(), x)[0]
        with torch.no_grad():
            cross, pull = prior.cross_with_pull(x, view.points)
            mean, var, seen = view._moments(x, cross)
            if self.formula is None:
                return mean, pull(view.weights[..., 0][..., None, :].expand_as(cross))
        with torch.enable_grad():
            value = self.formula(mean.requires_grad_(), var.requires_grad_())
            by_mean, by_var = torch.autograd.grad(value.sum(), (mean, var), materialize_grads=True)
        with torch.no_grad():
            return value.detach(), pull(self._by_cross(seen, by_mean, by_var * (var > 0)))

    def _by_cross(self, seen: Tensor, by_mean: Tensor, by_var: Tensor) -> Tensor:
        twice = -2 * by_var
        by_seen = seen * twice[..., None]
        by_seen[..., 0] = by_mean
        if self.view.rival is not None:
            by_seen[..., -1] = twice
        return by_seen @ self.view.weights.mT
