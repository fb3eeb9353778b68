r"""Posterior draws of f, as functions that can be evaluated and maximised anywhere.

Both methods of the supplement, section 4.  ``weight_space`` draws the values of the rows, then the weights of
the features given those; with more rows than features it is overconfident away from the data ("variance
starvation").  ``decoupled`` draws the prior from the features and adds the exact update (Matheron's rule),
which avoids that.
"""

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import pad

from askwise.errors import Refused
from askwise.model.belief import Belief
from askwise.model.features import features, lane_groups
from askwise.model.features.base import Derivatives, Features
from askwise.model.kernels import (
    DECAY,
    Covariance,
    Stationary,
    decayed_by_square,
    distance,
    dual,
    raised,
    tiny,
)
from askwise.model.mixture import Mixture
from askwise.model.predictive import Predictive, Score
from askwise.numerics import (
    Generators,
    check_one_a_lane,
    cholesky,
    generator,
    of_lanes,
    plain_precision,
    randn,
    root,
)

_CHUNK_ENTRIES = {"cpu": 2**24, "cuda": 2**26}  # feature values that fit the memory
_LANE_ENTRIES = {"cpu": 2**24, "cuda": 2**27}  # feature values of lanes at points of their own
_MOST_FEATURES = 4096  # of a lane


@dataclass(frozen=True)
class Path:
    """``count`` draws of f for each lane; call it with points to get [count, *lane, q].

    Points [q, d] or [lane, q, d] are the same for all draws; [count, lane, q, d] (or [count, q, d] without
    lanes) are points for each draw.
    """

    features: Features
    weights: Float[Tensor, "count *lane m"]
    prior: Covariance
    points: Float[Tensor, "*lane p d"]
    update: Float[Tensor, "count *lane p"]
    in_closed_form = curved = True

    def __call__(self, x: Float[Tensor, "*b q d"]) -> Float[Tensor, "count *lane q"]:
        """Values of all draws at ``x``."""
        if (shared := _shared_points(x)) is not None:
            update = self.prior.cross(shared, self.points) @ self.update.movedim(0, -1)
            return self.features.at_shared_points(shared, self.weights) + update.movedim(-1, 0)
        cross = self.prior.cross(x, self.points)
        if x.ndim > self.weights.ndim:  # each draw has its own points
            drawn = self.features.weighted_sum(x, self.weights[..., None])
            return (drawn + cross @ self.update[..., None])[..., 0]
        drawn = self.features.weighted_sum(x, self.weights.movedim(0, -1))
        return (drawn + cross @ self.update.movedim(0, -1)).movedim(-1, 0)

    def with_gradient(
        self, x: Float[Tensor, "count *lane q d"]
    ) -> tuple[Float[Tensor, "count *lane q"], Float[Tensor, "count *lane q d"]]:
        """Values and gradients of the draws, each at its own points."""
        return self._sum.with_gradient(x)

    def with_curvature(
        self, x: Float[Tensor, "count *lane q d"]
    ) -> tuple[
        Float[Tensor, "count *lane q"], Float[Tensor, "count *lane q d"], Float[Tensor, "count *lane q d d"]
    ]:
        """Values, gradients and Hessians of the draws, each at its own points."""
        return self._sum.with_curvature(x)

    def select(self, draws: Int[Tensor, " k"]) -> "_Sum":
        """Some of the draws [count * lane], to be evaluated with gradients."""
        return self._sum.select(draws)

    @plain_precision()
    def roughly(self, x: Float[Tensor, "*b q d"]) -> Float[Tensor, "count *lane q"]:
        """Values in single precision, which are enough to rank points and take a fifth of the time."""
        if (shared := _shared_points(x)) is not None:
            x = shared
        elif x.ndim > self.weights.ndim and x.stride(0) == 0:
            x = x[0]  # draws of a lane share its points
        return self._rough(x.float()).to(x.dtype)

    @functools.cached_property
    def _rough(self) -> "_Rough":
        prior = self.prior
        assert isinstance(prior, Stationary)
        exact = tiny(prior.lengthscale, torch.float32)
        per_length = (DECAY[prior.name] / prior.lengthscale)[..., None, :].float()
        points = (self.points.float() - 0.5) * per_length  # rounded like the points of a search
        update = (prior.outputscale[..., None] * self.update).float()
        places = points if exact else dual(points)
        return _Rough(
            prior.name, exact, self.features.single(), self.weights.float(), per_length, places, update
        )

    @functools.cached_property
    def _sum(self) -> "_Sum":
        update = Predictive(self.prior, self.points, self.update[..., None])
        return _Sum(update, self.features.as_function(self.weights), self.features.count)


@dataclass(frozen=True)
class _Sum:
    """A prior draw and its update, whose sum is the draw, with derivatives."""

    update: Predictive
    drawn: Derivatives
    features: int
    """Their number, which tells how many points fit the memory."""

    def __call__(self, x: Float[Tensor, "*c q d"]) -> Float[Tensor, "*c q"]:
        return self.with_gradient(x)[0]

    def with_gradient(self, x: Float[Tensor, "*c q d"]) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            value, grad = (
                one + more for one, more in zip(self._drawn(x, 1), self._score.with_gradient(x), strict=True)
            )
            return value, grad

    def with_curvature(self, x: Float[Tensor, "*c q d"]) -> tuple[Tensor, Tensor, Tensor]:
        with torch.no_grad():
            parts = zip(self._drawn(x, 2), self._score.with_curvature(x), strict=True)
            value, grad, hessian = (one + more for one, more in parts)
            return value, grad, hessian

    def select(self, index: Int[Tensor, " k"]) -> "_Sum":
        """Some of the draws."""
        update = self.update
        lanes = update.points.shape[:-2]
        lane = index % lanes.numel()
        points = update.points.flatten(0, -3)[lane] if lanes else update.points
        prior = update.prior
        if prior.lanes:
            prior = prior.select(lane)
        chosen = Predictive(prior, points, update.weights.flatten(0, -3)[index])
        return _Sum(chosen, self.drawn.select(index), self.features)

    @functools.cached_property
    def _score(self) -> Score:
        return self.update.score()

    def _drawn(self, x: Tensor, order: int) -> tuple[Tensor, ...]:
        """The prior draw and its derivatives."""
        each = max(1, math.prod(x.shape[:-2]) * self.features)
        chunk = max(1, _CHUNK_ENTRIES[x.device.type] // each)
        parts = [self.drawn(part, order) for part in x.split(chunk, -2)]
        if len(parts) == 1:
            return parts[0]
        dims = range(-1, -2 - order, -1)
        return tuple(torch.cat(part, dim) for part, dim in zip(zip(*parts, strict=True), dims, strict=True))


@dataclass(frozen=True)
class _Rough:
    """Draws of f in single precision."""

    kernel: str
    exact: bool
    """Whether distances need the differences of points, which are then not the dual ones."""
    features: Features
    weights: Float[Tensor, "count *lane m"]
    per_length: Float[Tensor, "*lane 1 d"]
    points: Float[Tensor, "*lane p e"]
    update: Float[Tensor, "count *lane p"]

    def __call__(self, x: Float[Tensor, "*b q d"]) -> Float[Tensor, "count *lane q"]:
        """Values at points of all draws [q, d], of each lane or of each draw."""
        at = (x - 0.5) * self.per_length
        if self.exact:
            square = distance(self.points, at).square_()
        else:
            square = (self.points @ raised(at).mT).clamp_min_(0)
        correlation = decayed_by_square(self.kernel, square)
        if x.ndim > self.weights.ndim:  # each draw has its own points
            drawn = self.features.weighted_sum(x, self.weights[..., None])[..., 0]
            return drawn + (self.update[..., None, :] @ correlation)[..., 0, :]
        if x.ndim == 2:
            drawn = self.features.at_shared_points(x, self.weights)
        else:
            drawn = self.features.weighted_sum(x, self.weights.movedim(0, -1)).movedim(-1, 0)
        return drawn + (self.update.movedim(0, -2) @ correlation).movedim(-2, 0)


@dataclass(frozen=True)
class PathOfEach:
    """Draws of f that have different kernels; to be called like :class:`Path`."""

    count: int
    lanes: torch.Size
    groups: tuple[tuple[Tensor, Path], ...]
    """Which of the draws [count * lane], and a path that has these as its lanes."""
    in_closed_form = curved = True

    def __call__(self, x: Float[Tensor, "*b q d"]) -> Float[Tensor, "count *lane q"]:
        """Values of all draws at ``x``."""
        shared = _shared_points(x)
        found = x.new_empty(self.count * self.lanes.numel(), x.shape[-2])
        for index, path in self.groups:
            found[index] = path(self._flat(x)[index] if shared is None else shared)[0]
        return found.unflatten(0, (self.count, *self.lanes))

    def roughly(self, x: Float[Tensor, "*b q d"]) -> Float[Tensor, "count *lane q"]:
        """Values in single precision."""
        shared = _shared_points(x)
        found = x.new_empty(self.count * self.lanes.numel(), x.shape[-2])
        for index, path in self.groups:
            found[index] = path.roughly(self._flat(x)[index] if shared is None else shared)[0]
        return found.unflatten(0, (self.count, *self.lanes))

    def with_gradient(
        self, x: Float[Tensor, "count *lane q d"]
    ) -> tuple[Float[Tensor, "count *lane q"], Float[Tensor, "count *lane q d"]]:
        """Values and gradients of the draws, each at its own points."""
        value, grad = self._derivatives(x, lambda path, at: path.with_gradient(at))
        return value, grad

    def with_curvature(
        self, x: Float[Tensor, "count *lane q d"]
    ) -> tuple[
        Float[Tensor, "count *lane q"], Float[Tensor, "count *lane q d"], Float[Tensor, "count *lane q d d"]
    ]:
        """Values, gradients and Hessians of the draws, each at its own points."""
        value, grad, hessian = self._derivatives(x, lambda path, at: path.with_curvature(at))
        return value, grad, hessian

    def _derivatives(
        self, x: Tensor, of_path: Callable[[Path, Tensor], tuple[Tensor, ...]]
    ) -> Iterator[Tensor]:
        flat = self._flat(x)
        each = [of_path(path, flat[index][None]) for index, path in self.groups]
        order = torch.cat([index for index, _ in self.groups]).argsort()
        lead = (self.count, *self.lanes)
        return (torch.cat(part, 1)[0, order].unflatten(0, lead) for part in zip(*each, strict=True))

    def _flat(self, x: Tensor) -> Tensor:
        return x.expand(self.count, *self.lanes, *x.shape[-2:]).flatten(0, -3)


def _shared_points(x: Tensor) -> Float[Tensor, "q d"] | None:
    """The points, if they are the same for all draws and lanes (expanded, not copied)."""
    batches = zip(x.shape[:-2], x.stride(), strict=False)
    if x.requires_grad or any(size > 1 and step > 0 for size, step in batches):
        return None
    return x[(0,) * (x.ndim - 2)]


def draw(
    belief: Belief,
    count: int,
    generators: Generators,
    method: Literal["decoupled", "weight_space"] = "decoupled",
    basis: Features | None = None,
) -> Path | PathOfEach:
    """Draw ``count`` functions for each lane; ``basis``: features of this prior, if known.

    Of several kernels, one is drawn for each function by its weight.
    """
    if method not in ("decoupled", "weight_space"):
        raise Refused("method", "be 'decoupled' or 'weight_space'", repr(method), "Choose one of the two.")
    if isinstance(belief, Mixture):
        return _of_mixture(belief, count, generators, method)
    return _of_one_kernel(belief, count, generators, method, basis)


def _of_mixture(
    belief: Mixture, count: int, generators: Generators, method: Literal["decoupled", "weight_space"]
) -> PathOfEach:
    """Draws of f, each under a kernel of its own."""
    drawn, lanes = belief.drawn_kernels(count, generators), belief.data.lanes
    each, found = [generators] if isinstance(generators, torch.Generator) else generators, []
    for some in lane_groups(drawn.prior, drawn.data.points.shape[-1]):
        sources = [each[draw % len(each)] for draw in some.tolist()]  # a draw needs what its kernel needs
        found.append((some, _of_one_kernel(drawn.select(some), 1, sources, method)))
    return PathOfEach(count, lanes, tuple(found))


def _of_one_kernel(
    belief: Belief,
    count: int,
    generators: Generators,
    method: Literal["decoupled", "weight_space"],
    basis: Features | None = None,
) -> Path:
    """Draws of f in lanes with one kernel each."""
    data = belief.data
    with torch.no_grad():
        if basis is None:  # all lanes have the same frequencies, so that those with one kernel share features
            source, d = generator("frequencies of draws"), data.points.shape[-1]
            half = _box(data.points)
            basis = features(belief.prior, d, generators=source, lanes=torch.Size(), half=half)
        if belief.about is not None:
            weights, before = _of_people(belief, basis, count, generators)
            update = _decoupled_update(belief, before, generators) * belief.about.coupling[..., None]
            return _path(belief, basis, weights, update)
        weights = _prior_weights(basis, count, generators, belief)
        if method == "decoupled":
            before = basis.weighted_sum(data.points, weights)
            update = _decoupled_update(belief, before, generators)
        else:
            weights = _fitted_weights(belief, basis, weights, generators)
            update = torch.zeros_like(belief.alpha)[..., None].expand(*belief.alpha.shape, count)
        return _path(belief, basis, weights, update)


def _path(belief: Belief, basis: Features, weights: Tensor, update: Float[Tensor, "*lane p count"]) -> Path:
    """The draw with these weights, of which only those of landmarks may differ from zero."""
    points = belief.data.points
    if belief.is_thin:
        points, update = points[..., belief.support, :], update[..., belief.support, :]
    return Path(basis, weights.movedim(-1, 0), belief.prior, points, update.movedim(-1, 0))


def _box(points: Float[Tensor, "*lane p d"]) -> tuple[float, ...] | None:
    """Half the width of a box in whose middle all points are; None if it is the cube."""
    apart = (points.reshape(-1, points.shape[-1]) - 0.5).abs()
    if not apart.numel() or apart.max() <= 0.5:
        return None
    return tuple(apart.amax(0).clamp_min(0.5).tolist())


def draw_at(
    x: Float[Tensor, "*b q d"],
    belief: Belief,
    count: int,
    generators: Generators,
    *,
    roughly: bool = False,
) -> Float[Tensor, "count *lane q"]:
    """Values of ``count`` draws at some points, under any kernel: jointly where it has no features.

    Points [q, d] are the same for all lanes; a lane gets the values that it would get alone.  ``roughly``: in
    single precision, which takes half the time.
    """
    lanes = belief.data.lanes
    if isinstance(belief, Mixture) and not lanes:
        return _of_mixture_at(x, belief, count, generators, roughly)
    if isinstance(belief, Mixture) and len(lanes) == 1 and not isinstance(generators, torch.Generator):
        own = x.expand(*lanes, *x.shape[-2:])
        each = zip(own, generators, strict=True)
        values = [
            _of_mixture_at(at, belief.select(k), count, source, roughly)
            for k, (at, source) in enumerate(each)
        ]
        return torch.stack(values, 1)
    if isinstance(belief.prior, Stationary):
        return _of_lanes_at(x, belief, count, generators, roughly)
    mean, cov = belief.joint(x)
    normals = randn(generators, lanes, x.shape[-2], count, like=mean)
    return mean + (root(cov) @ normals).movedim(-1, 0)


def _of_lanes_at(
    x: Float[Tensor, "*b q d"], belief: Belief, count: int, generators: Generators, roughly: bool
) -> Float[Tensor, "count *lane q"]:
    """Values of draws at points; those of each lane in chunks of lanes with features of one kind."""
    lanes = belief.data.lanes
    if not lanes or isinstance(belief, Mixture) or isinstance(generators, torch.Generator):
        path = draw(belief, count, generators)
        return path.roughly(x) if roughly else path(x)
    own = x.expand(*lanes, *x.shape[-2:])
    found = x.new_empty(count, *lanes, x.shape[-2])
    every = torch.arange(len(own), device=x.device)
    room = max(1, _LANE_ENTRIES[x.device.type] // max(1, x.shape[-2] * _MOST_FEATURES))
    for group in lane_groups(belief.prior, x.shape[-1]) or [every]:
        for some in group.split(room):
            path = draw(belief.select(some), count, of_lanes(generators, some))
            at = own[some] if x.ndim > 2 else x
            found[:, some] = path.roughly(at) if roughly else path(at)
    return found


def _of_mixture_at(
    x: Float[Tensor, "q d"], belief: Mixture, count: int, generators: Generators, roughly: bool
) -> Float[Tensor, "count q"]:
    """Values of draws under several kernels, those under the same one together."""
    chosen = belief.drawn_indices(count, generators)
    found = x.new_empty(count, len(x))
    for kernel in chosen.unique().tolist():
        draws = (chosen == kernel).nonzero()[:, 0]
        path = _of_one_kernel(belief.parts.select(kernel), len(draws), generators, "decoupled")
        found[draws] = path.roughly(x) if roughly else path(x)
    return found


def _prior_weights(basis: Features, count: int, generators: Generators, belief: Belief) -> Tensor:
    """Standard normals [*lane, m, count]; a lane with its own generator draws only what it needs."""
    lanes, like = belief.data.lanes, belief.alpha
    if isinstance(generators, torch.Generator):
        return randn(generators, lanes, basis.count, count, like=like)
    check_one_a_lane(generators, lanes)
    counts = basis.counts.expand(lanes).reshape(-1).tolist()
    each = zip(generators, counts, strict=True)
    drawn = (randn(source, torch.Size(), needed, count, like=like) for source, needed in each)
    padded = [pad(part, (0, 0, 0, basis.count - len(part))) for part in drawn]
    return torch.stack(padded).reshape(*lanes, basis.count, count)


def _of_people(
    belief: Belief, basis: Features, count: int, generators: Generators
) -> tuple[Tensor, Float[Tensor, "*lane p count"]]:
    r"""Weights of the prior draws, and the draws at the points of the data as their raters see them.

    A person's weights are :math:`\sqrt{1 - \rho}\, w_0 + \sqrt\rho\, w_p`, those of what all have in common
    :math:`w_0`.
    """
    about, data = belief.about, belief.data
    assert about is not None
    share = data.share[..., None, None]
    common = _prior_weights(basis, count, generators, belief)
    people = max(int(data.rater.max()) if data.rater.numel() else 0, about.rater or 0) + 1
    own = [_prior_weights(basis, count, generators, belief) for _ in range(people)]
    each = [(1 - share).sqrt() * common + share.sqrt() * one for one in own]
    features = basis(data.points) / about.variance.sqrt()[..., None, None]
    before = features.new_zeros(*data.points.shape[:-1], count)
    for rater, weights in enumerate(each):
        before = torch.where((data.rater == rater)[..., None], features @ weights, before)
    return common if about.rater is None else each[about.rater], before


def _decoupled_update(
    belief: Belief, before: Float[Tensor, "*lane p count"], generators: Generators
) -> Tensor:
    r"""Weights of :math:`k(\cdot, P)` that turn a prior draw into a posterior draw.

    Matheron's rule with the sites as noisy observations, in a form that never inverts K:
    :math:`\alpha - F F^\top f_0(P) - (I - F F^\top K) u`, where :math:`u = A^\top S \varepsilon` is the noise
    of the sites, one normal per row.  For a belief without sites (exact moments), or with landmarks, noise of
    covariance :math:`I - F^\top K F` replaces :math:`F^\top (f_0 - f)`.
    """
    data, factor, count = belief.data, belief.factor, before.shape[-1]
    if belief.is_thin:
        kept, update = belief.support, torch.zeros_like(before)
        factor = factor[..., kept, :]
        within = factor.mT @ belief.covariance_among(kept) @ factor
        normals = randn(generators, data.lanes, factor.shape[-1], count, like=before)
        update[..., kept, :] = _without_sites(factor, within, before[..., kept, :], normals)
        return belief.alpha[..., None] - update
    K, sites = belief.data_covariance, bool(belief.tau.any())
    normals = randn(generators, data.lanes, data.n if sites else factor.shape[-1], count, like=before)
    if data.point_noise.any():  # the sites observe the noisy copy of a point, not f
        noise = randn(generators, data.lanes, data.point_noise.shape[-1], count, like=before)
        before = before + data.point_noise.sqrt()[..., None] * noise
    if sites:
        noise = data.rmatvec(belief.tau.sqrt()[..., None] * normals)
        update = noise + factor @ (factor.mT @ (before - K @ noise))
    else:
        update = _without_sites(factor, factor.mT @ K @ factor, before, normals)
    return belief.alpha[..., None] - update


def _without_sites(factor: Tensor, within: Tensor, before: Tensor, normals: Tensor) -> Tensor:
    """What is subtracted from the weights, where noise has the covariance that is left ``within`` them."""
    left = torch.eye(within.shape[-1], dtype=within.dtype, device=within.device) - within
    return factor @ (factor.mT @ before + cholesky(left)[0] @ normals)


def _fitted_weights(belief: Belief, basis: Features, weights: Tensor, generators: Generators) -> Tensor:
    """Weights of the features given a draw of the values of the rows, by regression with noise.

    The noise stands for the error of the features: fitting rough values of close points more tightly than the
    features can follow would inflate the weights.  The values get the same noise that the regression assumes
    (hence twice), otherwise the draws would vary too little.
    """
    data, lanes, count = belief.data, belief.data.lanes, weights.shape[-1]
    if data.n == 0:
        return weights
    values = data.matvec(belief.mean(data.points)[..., None])
    spread = root(data.row_covariance(belief.cov(data.points)))
    values = values + spread @ randn(generators, lanes, data.n, count, like=weights)
    rows = data.matvec(basis(data.points))
    noise = (basis.error * rows.square().sum(-1).amax(-1))[..., None, None]
    error = randn(generators, lanes, data.n, count, like=weights) * (2 * noise).sqrt()
    lower, _ = cholesky(rows @ rows.mT + noise * torch.eye(data.n, dtype=rows.dtype, device=rows.device))
    return weights + rows.mT @ torch.cholesky_solve(values - rows @ weights - error, lower)
