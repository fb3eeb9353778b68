r"""The posterior of f where the kernel is unknown: a mixture over kernels.

.. math:: p(f \mid \mathscr D) = \sum_k w_k \, p(f \mid \mathscr D, \theta_k), \qquad
    w_k \propto \frac{p(\mathscr D \mid \theta_k)}{p(\mathscr D_0 \mid \theta_k)}

The parameters :math:`\theta_k` are draws of their posterior given the first answers :math:`\mathscr D_0`
(:mod:`askwise.model.particles`); their weights follow from the answers since.  Kernels are lanes of one
inference, the first dimension of all tensors.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from askwise.model.belief import Belief, pair_moments, symmetric
from askwise.model.data import Lanes
from askwise.model.kernels import Stationary
from askwise.model.predictive import Formula, Predictive
from askwise.numerics import Generators, mixed_log_variance, mixed_moments, rand


@dataclass(frozen=True, eq=False)
class Kernels:
    """Kernels of one family, drawn from the posterior of their parameters given some answers."""

    prior: Stationary
    """With the lanes [k, *lane]."""
    log_evidence: Float[Tensor, "k *lane"]
    """Of the answers from which they were learned."""
    tau: Float[Tensor, "k *lane n"]
    nu: Float[Tensor, "k *lane n"]
    """Sites given these answers, from which inference starts."""

    @classmethod
    def equally_likely(cls, prior: Stationary) -> "Kernels":
        """Kernels that are equally likely before any answer, with the lanes [k, *lane]."""
        nothing = prior.outputscale.new_zeros(*prior.lanes, 0)
        return cls(prior, torch.zeros_like(prior.outputscale), nothing, nothing)

    @property
    def lanes(self) -> torch.Size:
        """Shape of the lanes, each of which has kernels of its own."""
        return self.prior.lanes[1:]


@dataclass(frozen=True, eq=False)
class Mixture(Belief):
    """The posterior of f given several kernels, each with its probability.

    As a :class:`Belief` it has the mean, variance and covariance of the mixture, and its success
    probabilities.  Fields that only one kernel can have (prior, sites, evidence) are those of the likeliest.
    """

    parts: Belief = field(kw_only=True)
    """The beliefs given each kernel, with the lanes [k, *lane]."""
    weights: Float[Tensor, "k *lane"] = field(kw_only=True)

    @classmethod
    def of(cls, parts: Belief, weights: Float[Tensor, "k *lane"]) -> "Mixture":
        """The mixture of these beliefs."""
        index = weights.argmax(0)
        top = parts.select(int(index) if index.ndim == 0 else (index, *_indices(index.shape, index)))
        top = replace(top, converged=parts.converged.all(0))
        own = {one.name: getattr(top, one.name) for one in fields(Belief)}
        return cls(**own, parts=parts, weights=weights)

    def each(self, change: Callable[[Belief], Belief]) -> "Mixture":
        """The mixture after the same change of the belief given each kernel."""
        return Mixture.of(change(self.parts), self.weights)

    @functools.cached_property
    def predictive(self) -> Predictive:
        """Means and variances of all kernels, for searches."""
        return replace(self.parts.predictive, shares=self.weights)

    def select(self, lanes: Lanes) -> "Mixture":
        """The mixture of some of the lanes, or of one without its lane dimension."""
        index = lanes if isinstance(lanes, tuple) else (lanes,)
        return Mixture.of(self.parts.select((slice(None), *index)), self.weights[(slice(None), *index)])

    def with_noise_slopes(self, slopes: Float[Tensor, "*lane d"]) -> "Mixture":
        """The same mixture, where answers have noise that depends on the setting."""
        return self.each(
            lambda parts: parts.with_noise_slopes(slopes.expand(*self.weights.shape, slopes.shape[-1]))
        )

    def of_rater(self, rater: int | None, noise: float | Tensor = 1.0) -> "Mixture":
        """The mixture about the utility of one person; None for what all have in common."""
        return self.each(lambda parts: parts.of_rater(rater, noise))

    def like(self, other: Belief) -> "Mixture":
        """This mixture about the utility that ``other`` is about, in the same units."""
        assert isinstance(other, Mixture)
        return self.each(lambda parts: parts.like(other.parts))

    def in_units(self, noise: float | Tensor) -> "Mixture":
        """The mixture about the utility divided by this noise."""
        return self.each(lambda parts: parts.in_units(noise))

    def joint(self, x: Float[Tensor, "*b q d"]) -> tuple[Float[Tensor, "*c q"], Float[Tensor, "*c q q"]]:
        """Mean, and covariance between the points of ``x``."""
        mean, cov = self.joint_by_kernel(x)
        weights = self._shaped_like(mean)
        middle = (weights * mean).sum(0)
        apart = mean - middle
        between = apart[..., :, None] * apart[..., None, :]
        return middle, (weights[..., None] * (cov + between)).sum(0)

    def difference(
        self, x: Float[Tensor, "*b q d"], other: Float[Tensor, "*c q d"]
    ) -> tuple[Float[Tensor, "*e q"], Float[Tensor, "*e q"]]:
        """Mean and variance of ``f(x) - f(other)``, point by point."""
        mean, var = (self._first(part) for part in self.parts.difference(*self._for_each(x, other)))
        return mixed_moments(mean, var, self._shaped_like(mean))

    def averaged(
        self, formula: Formula, x: Float[Tensor, "*b q d"], other: Float[Tensor, "*c q d"] | None = None
    ) -> Float[Tensor, "*e q"]:
        """An expectation over f, or over its difference to ``other``: the average over the kernels."""
        mean, var, weights = self.by_kernel(x, other)
        return (weights * formula(mean, var)).sum(0)

    def quantile(
        self, x: Float[Tensor, "*b q d"], other: Float[Tensor, "*c q d"] | None = None
    ) -> Float[Tensor, "*e q"]:
        """Normal quantile of :meth:`success_probability`."""
        return torch.special.ndtri(self.success_probability(x, other).clamp(1e-300, 1 - 1e-16))

    def by_kernel(
        self, x: Float[Tensor, "*b q d"], other: Float[Tensor, "*c q d"] | None = None
    ) -> tuple[Float[Tensor, "k *e q"], Float[Tensor, "k *e q"], Float[Tensor, "k *f 1"]]:
        """Means and variances given each kernel, in units of the noise of an answer; and the weights."""
        points = self._for_each(x) if other is None else self._for_each(x, other)
        mean, var = (self._first(part) for part in self.parts.in_noise(*points))
        return mean, var, self._shaped_like(mean)

    def expectation(
        self, formula: Callable[[Tensor, Tensor], Tensor], x: Float[Tensor, "*b q d"]
    ) -> Float[Tensor, "*c"]:
        """An expectation over f at the points of ``x``: the average of those given each kernel."""
        mean, cov = self.joint_by_kernel(x)
        return (self._shaped_like(mean)[..., 0] * formula(mean, cov)).sum(0)

    def duels(self, x: Float[Tensor, "*b q d"]) -> tuple[Float[Tensor, "*c q q"], Float[Tensor, "*c q q"]]:
        """Variance of the difference of f, and epistemic variance of the outcome, of all pairs of points."""
        mean, cov = self.joint_by_kernel(x)
        _, apart, var = pair_moments(mean, cov)
        weights = self._shaped_like(mean)
        # all pairs from those above the diagonal; the rest is zero
        upper = mixed_moments(apart, var, weights)[1], mixed_log_variance(apart, var, weights).exp()
        return symmetric(upper[0], x.shape[-2]), symmetric(upper[1], x.shape[-2])

    def drawn_indices(self, count: int, generators: Generators) -> Int[Tensor, "count *lane"]:
        """Indices of ``count`` kernels for each lane, drawn by their weights."""
        chance = rand(generators, self.data.lanes, count, like=self.weights).movedim(-1, 0)
        bounds = self.weights.cumsum(0)[:-1, None]  # the last one has the rest
        return (chance > bounds).sum(0)

    def drawn_kernels(self, count: int, generators: Generators) -> Belief:
        """Beliefs given ``count`` kernels drawn by their weights for each lane, with lanes [count * lane]."""
        chosen = self.drawn_indices(count, generators)
        lanes = _indices(self.data.lanes, chosen)
        return self.parts.select((chosen.flatten(), *(one.flatten() for one in lanes)))

    def of_drawn_kernel(self, generators: Generators) -> Belief:
        """The belief of each lane given one kernel, drawn by its weight."""
        drawn = self.drawn_kernels(1, generators)
        return drawn if self.data.lanes else drawn.select(0)

    def joint_by_kernel(self, x: Tensor) -> tuple[Float[Tensor, "k *c q"], Float[Tensor, "k *c q q"]]:
        """Mean, and covariance between the points of ``x``, given each kernel."""
        mean, cov = self.parts.joint(*self._for_each(x))
        return self._first(mean), cov.movedim(-3 - len(self.data.lanes), 0)

    def _for_each(self, *points: Tensor) -> list[Tensor]:
        """Points that broadcast with the kernels as well, in groups or not."""
        lanes = len(self.data.lanes)
        if all(x.ndim - 2 <= lanes for x in points):
            return list(points)
        return [x.unsqueeze(-3 - lanes) for x in torch.broadcast_tensors(*points)]

    def _first(self, values: Float[Tensor, "*c q"]) -> Float[Tensor, "k *e q"]:
        """Values with the kernels as their first dimension."""
        return values.movedim(-2 - len(self.data.lanes), 0)

    def _shaped_like(self, values: Float[Tensor, "k *c q"]) -> Float[Tensor, "k *e 1"]:
        """The weights, to be multiplied with values."""
        lanes = self.data.lanes
        return self.weights.reshape(-1, *[1] * (values.ndim - 2 - len(lanes)), *lanes, 1)


def _indices(lanes: torch.Size, like: Tensor) -> list[Tensor]:
    """The index of the lanes in each of their dimensions, [*#b, *lane]."""
    each = [torch.arange(size, device=like.device) for size in lanes]
    return [one.expand(like.shape) for one in torch.meshgrid(*each, indexing="ij")] if each else []
