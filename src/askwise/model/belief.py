"""The Gaussian posterior of f, which can be evaluated anywhere in the cube."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from askwise.model.data import Data, Lanes, in_lanes
from askwise.model.kernels import Covariance
from askwise.model.predictive import Formula, Predictive, noise_variance
from askwise.numerics import deviation, epistemic_variance, ndtr, standardised, success_probability


@dataclass(frozen=True, eq=False)
class About:
    r"""Whose utility a belief is about.

    With the share :math:`\rho` of variance of one's own, the utility of person p has the prior covariance
    :math:`k(x, x')` and the covariance :math:`(1 - \rho + \rho\, \delta_{pq})\, k(x, x')` with that of
    person q.  What all have in common, :math:`f_0`, has :math:`(1 - \rho)\, k(x, x')` with itself and with
    everybody's.
    """

    variance: Float[Tensor, "*lane"]
    """Its prior variance, as a multiple of anybody's."""
    coupling: Float[Tensor, "*lane p"]
    """Its covariance with the utility at the points of the data, as a multiple of that with itself there."""
    rater: int | None = None

    @classmethod
    def all_people(cls, data: Data) -> "About":
        """What all have in common."""
        return cls(1 - data.share, torch.ones_like(data.point_noise))

    @classmethod
    def person(cls, data: Data, rater: int) -> "About":
        """The utility of one person."""
        coupling = 1 - data.share[..., None] * (data.rater != rater).to(data.share)
        return cls(torch.ones_like(data.share), coupling, rater)

    def in_units(self, unit: Float[Tensor, "*lane"]) -> "About":
        """The same utility divided by ``unit``."""
        return About(self.variance * unit.pow(-2), self.coupling * unit[..., None], self.rater)

    def select(self, lanes: Lanes) -> "About":
        """That of some of the lanes."""
        return About(self.variance[lanes], self.coupling[lanes], self.rater)


@dataclass(frozen=True, eq=False)
class Belief:
    r"""Gaussian posterior of f, with prior covariance k and the data's distinct points P.

    .. math:: \mu_f(x) = k(x, P)\,\alpha, \qquad
        \mathrm{cov}(x, x') = k(x, x') - k(x, P)\, F F^\top k(P, x')

    A point costs O(p r), at most O(n^2), and no solve; everything is differentiable in x.
    Points ``x`` [.., q, d] broadcast with the lanes: for a belief with lanes, [q, d] are the same points for
    all lanes, [lane, q, d] are points for each lane, and [s, lane, q, d] are s groups of them.
    """

    prior: Covariance
    data: Data
    alpha: Float[Tensor, "*lane p"]
    factor: Float[Tensor, "*lane p r"]
    log_evidence: Float[Tensor, "*lane"]
    converged: Bool[Tensor, "*lane"]
    sweeps: Int[Tensor, "*lane"]
    """Sweeps over the data, Newton steps, or Gibbs sweeps taken by inference."""
    change: Float[Tensor, "*lane"]
    """Scaled change of the sites in the last sweep, which was compared with the tolerance."""
    tau: Float[Tensor, "*lane n"]
    nu: Float[Tensor, "*lane n"]
    """Natural parameters of the site of each row: a warm start for the next inference."""
    about: "About | None" = None
    """Whose utility it is about where people differ; None if all have the same."""
    slopes: Float[Tensor, "*lane d"] | None = None
    """Slopes of the logarithm of the answers' noise over the cube; None if it is constant."""

    @classmethod
    def joined(cls, prior: Covariance, data: Data, parts: Sequence["Belief"]) -> "Belief":
        """One belief about ``data`` from beliefs about consecutive groups of its lanes."""
        width = max(part.factor.shape[-1] for part in parts)
        padded = [replace(one, factor=pad(one.factor, (0, width - one.factor.shape[-1]))) for one in parts]
        tensors = map(torch.cat, zip(*(part._tensors() for part in padded), strict=True))
        joined = cls._made(prior, data, [*tensors], None)
        return joined.of_rater(None) if data.share.any() else joined

    def with_noise_slopes(self, slopes: Float[Tensor, "*lane d"]) -> "Belief":
        """The same belief, where answers have noise that depends on the setting."""
        return replace(self, slopes=slopes)

    @classmethod
    def _made(
        cls, prior: Covariance, data: Data, tensors: Sequence[Tensor], about: "About | None"
    ) -> "Belief":
        return replace(cls(prior, data, *tensors), about=about)  # type: ignore[arg-type]

    def select(self, lanes: Lanes) -> "Belief":
        """The belief of some of the lanes, or of one without its lane dimension."""
        tensors = [tensor[lanes] for tensor in self._tensors()]
        about = None if self.about is None else self.about.select(lanes)
        chosen = self._made(self.prior.select(lanes), self.data.select(lanes), tensors, about)
        return chosen if self.slopes is None else replace(chosen, slopes=self.slopes[lanes])

    def in_lanes(self, lanes: torch.Size) -> "Belief":
        """The same belief in lanes that its own broadcast to, counted in one dimension."""
        tensors = [in_lanes(tensor, self.data.lanes, lanes) for tensor in self._tensors()]
        prior, own = self.prior, self.prior.lanes
        if own:
            prior = prior.select(in_lanes(torch.arange(own.numel(), device=self.alpha.device), own, lanes))
        return self._made(prior, self.data.in_lanes(lanes), tensors, None)

    def unflattened(self, lanes: torch.Size, prior: Covariance) -> "Belief":
        """The same belief with its one dimension of lanes as several; ``prior``: with those of its own."""
        data = Data(*(part.unflatten(0, lanes) for part in self.data._parts()))
        return self._made(prior, data, [tensor.unflatten(0, lanes) for tensor in self._tensors()], None)

    def _tensors(self) -> list[Tensor]:
        others = ("prior", "data", "about", "slopes")
        return [getattr(self, field.name) for field in fields(self) if field.name not in others]

    def of_rater(self, rater: int | None, noise: float | Tensor = 1.0) -> "Belief":
        """The belief about the utility of one person; None for what all have in common.

        ``noise``: standard deviation of the noise in this person's answers, which becomes the unit.
        """
        about = About.all_people(self.data) if rater is None else About.person(self.data, rater)
        return replace(self, prior=self.shared_prior.scaled(about.variance), about=about).in_units(noise)

    def like(self, other: "Belief") -> "Belief":
        """This belief about the utility that ``other`` is about, in the same units."""
        if other.slopes is not None:
            self = replace(self, slopes=other.slopes)
        if other.about is None:
            return self
        plain = self.of_rater(other.about.rater)
        assert plain.about is not None
        return plain.in_units((plain.about.variance / other.about.variance).sqrt())

    def in_units(self, noise: float | Tensor) -> "Belief":
        """The belief about the utility divided by this noise."""
        unit = torch.as_tensor(noise, dtype=self.alpha.dtype, device=self.alpha.device)
        if (unit == 1).all():
            return self
        about = About.all_people(self.data) if self.about is None else self.about
        return replace(self, prior=self.prior.scaled(unit.pow(-2)), about=about.in_units(unit))

    @property
    def shared_prior(self) -> Covariance:
        """The prior covariance of anybody's utility, whoever this belief is about."""
        return self.prior if self.about is None else self.prior.scaled(1 / self.about.variance)

    @property
    def data_covariance(self) -> Float[Tensor, "*lane p p"]:
        """Prior covariance at the points of the data, as their raters see them, including their noise."""
        K = self.shared_prior.cross(self.data.points, self.data.points)
        if self.data.share.any():
            K = K * self.data.rater_correlation
        return K + torch.diag_embed(self.data.point_noise) if self.data.point_noise.any() else K

    def covariance_among(self, index: Int[Tensor, " r"]) -> Float[Tensor, "*lane r r"]:
        """That of some of the points, which have no noise."""
        points, rater = self.data.points[..., index, :], self.data.rater[..., index]
        apart = (rater[..., :, None] != rater[..., None, :]).to(points)
        return self.shared_prior.cross(points, points) * (1 - self.data.share[..., None, None] * apart)

    def mean(self, x: Float[Tensor, "*b q d"]) -> Float[Tensor, "*c q"]:
        """Posterior mean of f."""
        return self._unfolded(self.predictive.mean_only().moments(self._folded(x))[0], x)

    def variance(self, x: Float[Tensor, "*b q d"]) -> Float[Tensor, "*c q"]:
        """Posterior variance of f."""
        return self.moments(x)[1]

    def moments(self, x: Float[Tensor, "*b q d"]) -> tuple[Float[Tensor, "*c q"], Float[Tensor, "*c q"]]:
        """Posterior mean and variance, at little more than the cost of the variance."""
        mean, var = self.predictive.moments(self._folded(x))
        return self._unfolded(mean, x), self._unfolded(var, x)

    @functools.cached_property
    def predictive(self) -> Predictive:
        """The same mean and variance with hand-written gradients, for searches."""
        weights, points = torch.cat([self.alpha[..., None], self.factor], -1), self.data.points
        if self.about is not None:
            weights = self.about.coupling[..., None] * weights
        if self.is_thin:
            weights, points = weights[..., self.support, :], points[..., self.support, :]
        return Predictive(self.prior, points, weights, slopes=self.slopes)

    @property
    def is_thin(self) -> bool:
        """Whether only some of the points have weights: landmarks that stand for the others."""
        return self.factor.shape[-1] < min(self.data.n, self.data.points.shape[-2])

    @functools.cached_property
    def support(self) -> Int[Tensor, " r"]:
        """Indices of the points that have weights in any lane."""
        weighted = (self.alpha != 0) | (self.factor != 0).any(-1)
        return weighted.reshape(-1, weighted.shape[-1]).any(0).nonzero()[:, 0]

    def cov(self, x: Float[Tensor, "*b q d"]) -> Float[Tensor, "*c q q"]:
        """Posterior covariance of f between the points of ``x``."""
        return self.joint(x)[1]

    def joint(self, x: Float[Tensor, "*b q d"]) -> tuple[Float[Tensor, "*c q"], Float[Tensor, "*c q q"]]:
        """Posterior mean, and covariance between the points of ``x``."""
        projected = self.prior.cross(self._folded(x), self.predictive.points) @ self.predictive.weights
        projected = self._unfolded(projected.mT, x).mT
        explained = projected[..., 1:]
        return projected[..., 0], self.prior.cross(x, x) - explained @ explained.mT

    def difference(
        self, x: Float[Tensor, "*b q d"], other: Float[Tensor, "*c q d"]
    ) -> tuple[Float[Tensor, "*e q"], Float[Tensor, "*e q"]]:
        """Mean and variance of ``f(x) - f(other)``, point by point."""
        shaped = torch.broadcast_tensors(x, other)
        if self._extra(shaped[0]):
            x, other = shaped  # else one point is compared with many at the cost of one
        folded, against = self._folded(x), self._folded(other)
        cross, other_cross = (self.prior.cross(part, self.predictive.points) for part in (folded, against))
        projected = (cross - other_cross) @ self.predictive.weights
        both = self.prior.diagonal(folded) + self.prior.diagonal(against)
        prior_var = both - 2 * self.prior.paired(folded, against)
        var = (prior_var - projected[..., 1:].square().sum(-1)).clamp_min(0)
        return self._unfolded(projected[..., 0], shaped[0]), self._unfolded(var, shaped[0])

    def success_probability(
        self, x: Float[Tensor, "*b q d"], other: Float[Tensor, "*c q d"] | None = None
    ) -> Float[Tensor, "*e q"]:
        """Probability of a yes at ``x``, or that ``x`` wins against ``other``."""
        return self.averaged(success_probability, x, other)

    def probability_of_better(
        self, x: Float[Tensor, "*b q d"], other: Float[Tensor, "*c q d"]
    ) -> Float[Tensor, "*e q"]:
        """Probability that f is higher at ``x`` than at ``other``, whatever the noise of answers."""
        return self.averaged(lambda mean, var: ndtr(mean / var.clamp_min(1e-300).sqrt()), x, other)

    def probability_above(self, x: Float[Tensor, "*b q d"], value: float) -> Float[Tensor, "*c q"]:
        """Probability that f, in units of the noise of an answer, is at least ``value`` at ``x``."""
        return self.averaged(lambda mean, var: ndtr((mean - value) / deviation(var)), x)

    def averaged(
        self, formula: Formula, x: Float[Tensor, "*b q d"], other: Float[Tensor, "*c q d"] | None = None
    ) -> Float[Tensor, "*e q"]:
        """An expectation over f, or over its difference to ``other``, as a formula of mean and variance.

        Both are in units of the noise of an answer.  Of several kernels, it is averaged over them.
        """
        return formula(*self.in_noise(x, other))

    def quantile(
        self, x: Float[Tensor, "*b q d"], other: Float[Tensor, "*c q d"] | None = None
    ) -> Float[Tensor, "*e q"]:
        """Normal quantile of :meth:`success_probability`."""
        return standardised(*self.in_noise(x, other))

    def expectation(
        self, formula: Callable[[Tensor, Tensor], Tensor], x: Float[Tensor, "*b q d"]
    ) -> Float[Tensor, "*c"]:
        """An expectation over f at the points of ``x``, as a formula of their mean and covariance."""
        return formula(*self.joint(x))

    def duels(self, x: Float[Tensor, "*b q d"]) -> tuple[Float[Tensor, "*c q q"], Float[Tensor, "*c q q"]]:
        """Variance of the difference of f, and epistemic variance of the outcome, of all pairs of points."""
        var, *upper = pair_moments(*self.joint(x))
        return var, symmetric(epistemic_variance(*upper), x.shape[-2])

    def in_noise(
        self, x: Float[Tensor, "*b q d"], other: Float[Tensor, "*c q d"] | None = None
    ) -> tuple[Float[Tensor, "*e q"], Float[Tensor, "*e q"]]:
        """Mean and variance of f, or of its difference to ``other``, in units of the noise of an answer."""
        mean, var = self.moments(x) if other is None else self.difference(x, other)
        if self.slopes is None:
            return mean, var
        noise = noise_variance(self.slopes, x)
        noise = noise if other is None else (noise + noise_variance(self.slopes, other)) / 2
        return mean / noise.sqrt(), var / noise

    def _folded(self, x: Tensor) -> Tensor:
        """Points [*s, *lane, q, d] as [*lane, s * q, d]: one matrix product per lane instead of per group."""
        extra = self._extra(x)
        return x.movedim(tuple(range(extra)), tuple(range(-2 - extra, -2))).flatten(-2 - extra, -2)

    def _unfolded(self, values: Tensor, x: Tensor) -> Tensor:
        """Values [.., s * q] of folded points as [*s, .., q]."""
        extra = self._extra(x)
        split = values.unflatten(-1, (*x.shape[:extra], x.shape[-2]))
        return split.movedim(tuple(range(-1 - extra, -1)), tuple(range(extra)))

    def _extra(self, x: Tensor) -> int:
        return max(0, x.ndim - self.data.points.ndim)


def pair_moments(
    mean: Float[Tensor, "*b q"], cov: Float[Tensor, "*b q q"]
) -> tuple[Float[Tensor, "*b q q"], Float[Tensor, "*b u"], Float[Tensor, "*b u"]]:
    """Variance of the difference of all pairs of points; mean and variance of those above the diagonal."""
    alone, q = cov.diagonal(dim1=-2, dim2=-1), mean.shape[-1]
    var = (alone[..., :, None] + alone[..., None, :] - cov - cov.mT).clamp_min(0)
    one, other = torch.triu_indices(q, q, 1, device=mean.device)
    apart = mean.index_select(-1, one) - mean.index_select(-1, other)
    return var, apart, var.flatten(-2).index_select(-1, one * q + other)


def symmetric(upper: Float[Tensor, "*b u"], q: int) -> Float[Tensor, "*b q q"]:
    """The matrix that is zero on the diagonal and has these values above it: half the work of all pairs."""
    one, other = torch.triu_indices(q, q, 1, device=upper.device)
    index = torch.zeros(q, q, dtype=torch.long, device=upper.device)
    index[one, other] = index[other, one] = torch.arange(1, len(one) + 1, device=upper.device)
    return pad(upper, (1, 0)).index_select(-1, index.flatten()).unflatten(-1, (q, q))
