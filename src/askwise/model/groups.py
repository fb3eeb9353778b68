r"""Scores of groups of points that depend on the duels between them, with gradients in closed form.

For points i and j, the difference of f has the mean :math:`\mu_i - \mu_j` and the variance

.. math:: \sigma_{ij} = k_{ii} + k_{jj} - 2 k_{ij} - \lVert v_i - v_j \rVert^2

where :math:`(\mu, v) = c^\top W` follows from the covariances c with the points of the data.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from askwise.model.belief import Belief, symmetric
from askwise.model.kernels import Stationary, correlation_and_fall, distance
from askwise.model.mixture import Mixture
from askwise.numerics import by_autograd, epistemic_variance

Total = Callable[[Tensor, Tensor], Tensor]
"""From the variance and the epistemic variance of all pairs [*b, m, m] to a score [*b]."""


@dataclass(frozen=True, eq=False)
class GroupScore:
    """``total`` of the duels between a champion and the points of a group."""

    belief: Belief
    champion: Float[Tensor, "*lane 1 d"]
    total: Total

    @property
    def in_closed_form(self) -> bool:
        """Whether gradients need autograd in the total alone, and none in the points."""
        return not isinstance(self.belief, Mixture) and isinstance(self.belief.prior, Stationary)

    def __call__(self, x: Float[Tensor, "*s q d"]) -> Float[Tensor, "*s"]:
        """Scores of groups [*s, *lane, q, d]."""
        group = torch.cat([self.champion.expand(*x.shape[:-2], 1, -1), x], -2)
        return self.total(*self.belief.duels(group))

    def with_gradient(
        self, x: Float[Tensor, "k *lane q d"]
    ) -> tuple[Float[Tensor, "k *lane"], Float[Tensor, "k *lane q d"]]:
        """Scores and gradients: a third of autograd's time."""
        if not self.in_closed_form:
            return by_autograd(self, x)
        with torch.no_grad():
            count, q = x.shape[0], x.shape[-2]
            scaled = self.belief.predictive.scaled
            at = x.movedim(0, -3).flatten(-3, -2) * scaled.per_length
            correlation, fall = correlation_and_fall(scaled.name, scaled.squares(at))
            own_at, own = self._champions
            each = (count, q)
            group = _joined(own, (correlation @ scaled.weights).unflatten(-2, each))
            points = _joined(own_at, at.unflatten(-2, each))
            between, between_fall = correlation_and_fall(scaled.name, distance(points, points).square_())
            value, by_group, by_between = self._through_total(group, between)
            by_projected = by_group[..., 1:, :].flatten(-3, -2)
            grad = scaled.slope(at, fall, by_projected @ scaled.weights.mT).unflatten(-2, each)
            pull = between_fall * by_between
            apart = pull.sum(-1, keepdim=True) * points - pull @ points
            grad = torch.addcmul(grad, apart[..., 1:, :], scaled.per_fall[..., None, :, :])
            return value.movedim(-1, 0), grad.movedim(-3, 0)

    @functools.cached_property
    def _champions(self) -> tuple[Tensor, Tensor]:
        """The champion in the units of :func:`correlation_and_fall`, and its product with the weights."""
        scaled = self.belief.predictive.scaled
        at = self.champion * scaled.per_length
        return at, correlation_and_fall(scaled.name, scaled.squares(at))[0] @ scaled.weights

    def _through_total(
        self, group: Float[Tensor, "*b m k"], between: Float[Tensor, "*b m m"]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Scores, and gradients in the products with the weights and in the correlations between points."""
        q, mean, explained = group.shape[-2], group[..., 0], group[..., 1:]
        scale = self.belief.prior.outputscale[..., None, None, None]  # type: ignore[union-attr]
        cov = scale * between - explained @ explained.mT
        alone = cov.diagonal(dim1=-2, dim2=-1)
        var = (alone[..., :, None] + alone[..., None, :] - 2 * cov).clamp_min_(0)
        one, other = torch.triu_indices(q, q, 1, device=group.device)
        upper = one * q + other
        apart = mean.index_select(-1, one) - mean.index_select(-1, other)
        within = var.flatten(-2).index_select(-1, upper)
        epistemic, by_mean, by_var = epistemic_variance.with_slopes(apart, within)
        each = symmetric(epistemic, q)
        with torch.inference_mode(False), torch.enable_grad():
            parts = var.clone().requires_grad_(), each.clone().requires_grad_()
            value = self.total(*parts)
            by_parts = torch.autograd.grad(value.sum(), parts, materialize_grads=True)
        total_by_var, total_by_each = (
            (part + part.mT).flatten(-2).index_select(-1, upper) for part in by_parts
        )
        slope = symmetric((total_by_var + total_by_each * by_var) * (within > 0), q)
        lean = symmetric(total_by_each * by_mean, q)
        sign = torch.ones(q, q, dtype=lean.dtype, device=lean.device).triu(1)
        by_mean = (lean * (sign - sign.mT)).sum(-1, keepdim=True)
        by_explained = 2 * (slope @ explained - slope.sum(-1, keepdim=True) * explained)
        return value.detach(), torch.cat([by_mean, by_explained], -1), -2 * scale * slope


def _joined(own: Float[Tensor, "*lane 1 k"], group: Float[Tensor, "*lane s q k"]) -> Tensor:
    """The champion's row before those of each group."""
    return torch.cat([own[..., None, :, :].expand(*group.shape[:-2], 1, -1), group], -2)
