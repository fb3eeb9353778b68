"""Predictive moments, scores and gradients against dense formulas, finite differences and GPyTorch."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
import torch
from gpytorch.kernels import Kernel, LinearKernel, PeriodicKernel, RBFKernel, ScaleKernel
from torch import Tensor

import askwise as aw
from askwise.model.belief import Belief
from askwise.model.kernels import (
    Stationary,
    covariance,
    decayed_by_square,
    distance,
    dual,
    grad_in_first,
    squares,
    steepness,
)
from askwise.model.mixture import Kernels
from askwise.model.predictive import Predictive
from askwise.numerics import log_epistemic_variance, mixed_log_variance, standardised, utility_deviation
from askwise.rules import RULES, parse
from askwise.search.search import Search
from tensors import assert_same_slopes, f64, seeded, uniform

NAMES = ("se", "matern32", "matern52")
each_name = pytest.mark.parametrize("name", NAMES)
LENGTHS, SCALES = f64([[0.3, 0.6], [0.2, 0.9], [1.5, 0.4]]), f64([1.0, 2.5, 0.4])
Prior = Callable[[Tensor, Tensor], Tensor]


def close(got: Tensor, want: Tensor, atol: float = 1e-11) -> None:
    torch.testing.assert_close(got, want, rtol=1e-9, atol=atol)


def stationary(name: str, length: Tensor, scale: Tensor) -> Prior:
    """The formulas of the three named kernels, [q, d] and [p, d] to [q, p]."""

    def k(x: Tensor, y: Tensor) -> Tensor:
        r = ((x[:, None] - y[None]) / length).norm(dim=-1)
        if name == "se":
            return scale * (-r.square() / 2).exp()
        a = math.sqrt(3 if name == "matern32" else 5) * r
        return scale * (1 + a + (0 if name == "matern32" else a.square() / 3)) * (-a).exp()

    return k


def sloping() -> tuple[Kernel, Prior]:
    """A straight line plus a squared exponential, whose variance grows with x."""
    kernel = ScaleKernel(LinearKernel() + RBFKernel()).double()
    line, bump = kernel.base_kernel.kernels
    kernel.outputscale, line.variance, bump.lengthscale = f64([1.7, 0.8, 0.35])
    length, scale = f64([0.35, 0.35]), f64(1.7)
    return kernel, lambda x, y: 1.7 * 0.8 * x @ y.mT + stationary("se", length, scale)(x, y)


def periodic() -> tuple[Kernel, Prior]:
    kernel = ScaleKernel(PeriodicKernel()).double()
    wave = kernel.base_kernel
    kernel.outputscale, wave.lengthscale, wave.period_length = f64([1.3, 2.0, 0.7])

    def k(x: Tensor, y: Tensor) -> Tensor:
        turn = (math.pi * (x[:, None] - y[None]) / 0.7).sin().square().sum(-1)
        return 1.3 * (-2 * turn / 2.0).exp()

    return kernel, k


def answers(lanes: tuple[int, ...] = (), n: int = 5) -> aw.Data:
    """Yes/no answers and duels, with points that repeat."""
    X = uniform(*lanes, n, 2, seed=1)
    pairs = torch.stack([X, uniform(*lanes, n, 2, seed=2)], -2)
    yes, won = (uniform(*lanes, n, seed=seed) > 0.4 for seed in (3, 4))
    return aw.Data.binary(X, yes) + aw.Data.duels(pairs, won)


@dataclass(frozen=True)
class Case:
    """A belief, and the prior of each lane as a formula."""

    belief: Belief
    priors: list[Prior]

    @property
    def lanes(self) -> torch.Size:
        return self.belief.data.lanes

    def alone(self) -> list[tuple[Belief, Prior]]:
        if not self.lanes:
            return [(self.belief, self.priors[0])]
        return [(self.belief.select(k), prior) for k, prior in enumerate(self.priors)]


def named(name: str, which: str) -> Case:
    if which == "own":
        priors = [stationary(name, length, scale) for length, scale in zip(LENGTHS, SCALES, strict=True)]
        return Case(aw.infer(answers((3,)), aw.kernel(name, LENGTHS, SCALES)), priors)
    lanes, prior = (3,) if which == "shared" else (), stationary(name, LENGTHS[0], SCALES[1])
    kernel = aw.kernel(name, LENGTHS[0], SCALES[1])
    return Case(aw.infer(answers(lanes), kernel), [prior] * max(1, math.prod(lanes)))


def other(which: str, lanes: tuple[int, ...]) -> Case:
    kernel, prior = {"sloping": sloping, "periodic": periodic}[which]()
    return Case(aw.infer(answers(lanes), kernel), [prior] * max(1, math.prod(lanes)))


CASES: dict[str, Callable[[], Case]] = {
    f"{name} {which}": lambda name=name, which=which: named(name, which)
    for name, which in itertools.product(NAMES, ("none", "shared", "own"))
} | {
    f"{which} {lanes}": lambda which=which, lanes=lanes: other(which, lanes)
    for which, lanes in itertools.product(("sloping", "periodic"), ((), (3,)))
}


@pytest.fixture(scope="module", params=CASES)
def case(request) -> Case:
    return CASES[request.param]()


def exact_moments(belief: Belief, prior: Prior, x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean [q] and covariance [q, q] of one lane, by the formulas of Belief."""
    cross, F = prior(x, belief.data.points), belief.factor
    return cross @ belief.alpha, prior(x, x) - cross @ F @ F.mT @ cross.mT


def exact_difference(belief: Belief, prior: Prior, x: Tensor, reference: Tensor) -> tuple[Tensor, Tensor]:
    mean, cov = exact_moments(belief, prior, torch.cat([x, reference]))
    var = cov.diagonal()
    return mean[:-1] - mean[-1], var[:-1] + var[-1] - 2 * cov[:-1, -1]


def per_lane(case: Case, exact: Callable[..., tuple[Tensor, Tensor]], *points: Tensor) -> list[Tensor]:
    parts = [
        exact(belief, prior, *(p[k] if case.lanes else p for p in points))
        for k, (belief, prior) in enumerate(case.alone())
    ]
    return [torch.stack(part).reshape(*case.lanes, *part[0].shape) for part in zip(*parts, strict=True)]


def somewhere(case: Case, q: int = 6) -> Tensor:
    """Random points, points on a bound, and points of the data."""
    inside = uniform(*case.lanes, q, 2, seed=7)
    inside[..., 0, 0], inside[..., 1, :] = 0.0, 1.0
    return torch.cat([inside, case.belief.data.points[..., :3, :]], -2)


def references(case: Case) -> dict[str, Tensor]:
    return {"anywhere": uniform(*case.lanes, 1, 2, seed=8), "data": case.belief.data.points[..., 1:2, :]}


def test_moments_agree_with_the_formulas(case):
    x = somewhere(case)
    mean, cov = per_lane(case, exact_moments, x)
    var = cov.diagonal(dim1=-2, dim2=-1)
    for got in (case.belief.predictive.moments(x), case.belief.moments(x)):
        close(got[0], mean)
        close(got[1], var)
    close(case.belief.cov(x), cov)
    close(case.belief.predictive.mean_only().moments(x)[0], mean)


def test_the_mean_alone_keeps_the_prior_variance(case):
    x = somewhere(case)
    _, var = case.belief.predictive.mean_only().moments(x)
    close(var, case.belief.prior.diagonal(x).expand_as(var))


@pytest.mark.parametrize("where", ["anywhere", "data"])
def test_differences_to_a_reference_agree_with_the_formulas(case, where):
    reference = references(case)[where]
    x = torch.cat([somewhere(case), reference], -2)
    mean, var = per_lane(case, exact_difference, x, reference)
    for got in (
        case.belief.predictive.against(reference).moments(x),
        case.belief.difference(x, reference.expand_as(x)),
    ):
        close(got[0], mean)
        close(got[1], var.clamp_min(0))


def test_the_difference_is_zero_at_the_reference(case):
    for reference in references(case).values():
        mean, var = case.belief.predictive.against(reference).moments(reference)
        assert mean.abs().max() < 1e-13
        assert ((var >= 0) & (var < 1e-13)).all()


def test_all_lanes_may_share_a_reference(case):
    reference = uniform(1, 2, seed=8)
    x = somewhere(case)
    shared = case.belief.predictive.against(reference).moments(x)
    each = case.belief.predictive.against(reference.expand(*case.lanes, 1, 2)).moments(x)
    for one, other in zip(shared, each, strict=True):
        close(one, other)


FORMULAS = {
    "mean": lambda mean, var: mean,
    "variance": lambda mean, var: var,
    "bound": lambda mean, var: mean + 2 * (var + 1e-3).sqrt(),
    "ucb_phi": parse("ucb_phi").score,
    "muc": parse("muc").score,
}


def by_autograd(score: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    x = x.detach().requires_grad_()
    return torch.autograd.grad(score(x).sum(), x)[0]


def by_differences(score: Callable[[Tensor], Tensor], x: Tensor, step: float = 1e-5) -> Tensor:
    moves = step * torch.eye(x.shape[-1], dtype=x.dtype)
    return torch.stack([(score(x + move) - score(x - move)) / (2 * step) for move in moves], -1)


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("against", [False, True])
def test_gradients_agree_with_autograd_and_finite_differences(case, formula, against):
    predictive, x = case.belief.predictive, somewhere(case)
    if against:
        predictive = predictive.against(0.8 * references(case)["data"])
    score = predictive.score(FORMULAS[formula])
    value, grad = score.with_gradient(x)
    close(value, score(x))
    close(grad, by_autograd(score, x), atol=1e-10)
    close(grad, by_differences(score, x), atol=3e-5 if "matern32" in str(case.belief.prior) else 1e-6)


def test_the_score_without_a_formula_is_the_mean(case):
    predictive, x = case.belief.predictive, somewhere(case)
    value, grad = predictive.score().with_gradient(x)
    close(value, predictive.moments(x)[0])
    close(grad, predictive.score(FORMULAS["mean"]).with_gradient(x)[1])
    close(predictive.mean_only().score().with_gradient(x)[1], grad)


def test_the_score_without_a_formula_is_the_mean_also_against_a_reference():
    case = named("se", "shared")
    predictive, x = case.belief.predictive.against(references(case)["anywhere"]), somewhere(case)
    close(predictive.score().with_gradient(x)[0], predictive.score()(x))


def test_the_mean_alone_may_have_a_reference():
    case = named("se", "shared")
    reference, x = references(case)["anywhere"], somewhere(case)
    mean, var = case.belief.predictive.against(reference).mean_only().moments(x)
    prior = case.belief.prior
    close(mean, case.belief.difference(x, reference.expand_as(x))[0])
    close(var, prior.diagonal(x) + prior.diagonal(reference) - 2 * prior.cross(x, reference)[..., 0])


def test_gradients_at_the_reference_are_zero_for_the_variance_and_unchanged_for_the_mean(case):
    for reference in references(case).values():
        predictive = case.belief.predictive.against(reference)
        _, grad = predictive.score(FORMULAS["variance"]).with_gradient(reference)
        assert grad.abs().max() < 1e-11
        _, grad = predictive.score(FORMULAS["mean"]).with_gradient(reference)
        close(grad, case.belief.predictive.score().with_gradient(reference)[1])


def test_the_log_epistemic_variance_has_a_gradient_next_to_the_reference(case):
    reference = references(case)["anywhere"]
    score = case.belief.predictive.against(reference).score(parse("muc").log_score)
    value, grad = score.with_gradient(reference + 1e-3)
    assert value.isfinite().all()
    assert grad.isfinite().all()
    assert (grad.sum(-1) > 0).all()  # away from the reference


def test_gradients_at_data_points_agree_with_finite_differences(case):
    x = case.belief.data.points
    score = case.belief.predictive.score(FORMULAS["bound"])
    got, want = score.with_gradient(x)[1], by_differences(score, x, 1e-6)
    close(got, want, atol=1e-5 if "matern32" in str(case.belief.prior) else 1e-7)


def overexplained(case: Case) -> Predictive:
    """A predictive distribution that explains more than the prior variance, as rounding may."""
    weights = case.belief.predictive.weights.clone()
    weights[..., 1:] *= 3
    return replace(case.belief.predictive, weights=weights)


def test_a_negative_variance_is_clamped_to_zero_with_zero_gradient(case):
    predictive, x = overexplained(case), somewhere(case)
    score = predictive.score(FORMULAS["variance"])
    value, grad = score.with_gradient(x)
    low = value == 0
    assert low.any()
    assert (value >= 0).all()
    assert (grad[low] == 0).all()
    close(grad, by_autograd(score, x), atol=1e-10)


def test_gradients_leave_points_weights_and_graph_unchanged(case):
    x, predictive = somewhere(case), case.belief.predictive
    kept = [part.clone() for part in (x, predictive.points, predictive.weights)]
    value, grad = predictive.score(FORMULAS["muc"]).with_gradient(x)
    assert not value.requires_grad
    assert not grad.requires_grad
    assert not x.requires_grad
    assert all(
        torch.equal(*pair) for pair in zip(kept, (x, predictive.points, predictive.weights), strict=True)
    )


def test_gradients_are_available_under_no_grad(case):
    x, score = somewhere(case), case.belief.predictive.score(FORMULAS["ucb_phi"])
    with torch.no_grad():
        value, grad = score.with_gradient(x)
    want = score.with_gradient(x)
    close(value, want[0])
    close(grad, want[1])


def test_scores_have_no_second_derivative():
    score = named("matern52", "none").belief.predictive.score(FORMULAS["bound"])
    x = uniform(3, 2).requires_grad_()
    (grad,) = torch.autograd.grad(score(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="must be of first order; got a request for the second"):
        grad.sum().backward()


# folding


GROUPS = {
    (): [(4, 2), (3, 4, 2), (2, 3, 4, 2), (3, 1, 2)],
    (3,): [(4, 2), (3, 4, 2), (1, 4, 2), (2, 3, 4, 2), (2, 1, 4, 2), (2, 2, 3, 4, 2)],
}
SEVERAL = ("se own", "matern32 none", "matern52 shared", "sloping (3,)", "periodic ()")


def looped(belief: Belief, ask: Callable[..., tuple[Tensor, ...]], *points: Tensor) -> list[Tensor]:
    """The output of the belief for every group and lane, evaluated one at a time."""
    lanes = belief.data.lanes
    shape = torch.broadcast_shapes(*(p.shape[:-2] for p in points), lanes)
    expanded = [p.expand(*shape, *p.shape[-2:]) for p in points]
    found = [
        ask(belief.select(index[-1]) if lanes else belief, *(p[index] for p in expanded))
        for index in itertools.product(*map(range, shape))
    ]
    return [torch.stack(part).reshape(*shape, *part[0].shape) for part in zip(*found, strict=True)]


OUTPUTS: dict[str, Callable[..., tuple[Tensor, ...]]] = {
    "mean": lambda belief, x: (belief.mean(x),),
    "variance": lambda belief, x: (belief.variance(x),),
    "moments": Belief.moments,
    "joint": Belief.joint,
    "cov": lambda belief, x: (belief.cov(x),),
    "probability": lambda belief, x: (belief.success_probability(x),),
}


@pytest.mark.parametrize(
    "which",
    ["se own", "periodic ()", *(pytest.param(which, marks=pytest.mark.slow) for which in SEVERAL[1:4])],
)
def test_groups_of_points_are_evaluated_as_each_alone(which):
    belief = CASES[which]().belief
    for shape in GROUPS[tuple(belief.data.lanes)]:
        x = uniform(*shape)
        for ask in OUTPUTS.values():
            for got, want in zip(ask(belief, x), looped(belief, ask, x), strict=True):
                close(got, want, atol=1e-12)


@pytest.mark.parametrize("which", ["se own", "matern32 none", "periodic ()"])
def test_differences_of_groups_equal_those_of_each_alone(which):
    belief = CASES[which]().belief
    shapes = GROUPS[tuple(belief.data.lanes)]
    for shape, against in itertools.product(shapes, shapes):
        if shape[-2] != against[-2]:
            continue
        x, other = uniform(*shape), uniform(*against, seed=1)
        got = belief.difference(x, other)
        for part, want in zip(got, looped(belief, Belief.difference, x, other), strict=True):
            close(part, want, atol=1e-12)


def test_gradients_of_groups_equal_those_of_each_alone():
    belief, x = named("matern52", "own").belief, uniform(4, 3, 5, 2)
    together = by_autograd(lambda x: belief.joint(x)[1].sum() + belief.moments(x)[0].sum(), x)
    for s, lane in itertools.product(range(4), range(3)):
        alone = belief.select(lane)
        want = by_autograd(lambda x, b=alone: b.joint(x)[1].sum() + b.moments(x)[0].sum(), x[s, lane])
        close(together[s, lane], want)


# gradients of kernels


def called_by_gpytorch(kernel: Kernel, x: Tensor, y: Tensor) -> Tensor:
    return kernel(x, y).to_dense()


@each_name
@pytest.mark.parametrize(
    "shapes", [((4, 2), (5, 2)), ((3, 4, 2), (5, 2)), ((4, 2), (3, 5, 2)), ((3, 4, 2), (3, 5, 2))]
)
def test_gradients_of_a_kernel_with_lanes_agree_with_gpytorch_in_points_and_parameters(name, shapes):
    kernel = aw.kernel(name, LENGTHS, SCALES).requires_grad_(True)
    x, y = (uniform(*shape, seed=seed).requires_grad_() for seed, shape in enumerate(shapes))
    inputs = [x, y, *kernel.parameters()]
    ours, theirs = covariance(kernel).cross(x, y), called_by_gpytorch(kernel, x, y)
    close(ours, theirs, atol=1e-9)
    assert_same_slopes(ours, theirs, inputs, rtol=1e-8, atol=1e-9)


@each_name
def test_paired_gradients_are_the_diagonal_of_gpytorchs(name):
    kernel = aw.kernel(name, LENGTHS[0], SCALES[1]).requires_grad_(True)
    x, y = uniform(5, 2).requires_grad_(), uniform(5, 2, seed=1).requires_grad_()
    inputs = [x, y, *kernel.parameters()]
    ours, theirs = covariance(kernel).paired(x, y), called_by_gpytorch(kernel, x, y).diagonal()
    assert_same_slopes(ours, theirs, inputs, rtol=1e-8, atol=1e-9)


@each_name
def test_gradients_are_finite_and_right_where_points_coincide(name):
    kernel = aw.kernel(name, LENGTHS[0], SCALES[1]).requires_grad_(True)
    y = uniform(5, 2)
    x = torch.cat([y[:2], uniform(2, 2, seed=1)]).requires_grad_()
    got = torch.autograd.grad(covariance(kernel).cross(x, y).sum(), [x, *kernel.parameters()])
    assert all(part.isfinite().all() for part in got)
    fixed = covariance(aw.kernel(name, LENGTHS[0], SCALES[1]))
    want = by_differences(lambda x: fixed.cross(x, y).sum(-1), x.detach())
    close(got[0], want, atol=1e-4 if name == "matern32" else 1e-7)


@each_name
def test_a_kernel_has_zero_gradient_at_distance_zero_and_decreases_from_there(name):
    prior, x = covariance(aw.kernel(name, LENGTHS[0])), f64([[0.3, 0.4]])
    for gap in (0.0, 1e-12, 1e-6, 1e-3):
        grad = by_autograd(lambda y: prior.cross(y, x), x + f64([gap, 0.0]))
        curvature = {"se": 1, "matern32": 3, "matern52": 5 / 3}[name] / LENGTHS[0, 0] ** 2
        moved = (x + f64([gap, 0.0]) - x)[0, 0]
        assert grad[0, 0].item() == pytest.approx(-(curvature * moved).item(), rel=2e-2, abs=1e-13)


@each_name
def test_the_steepness_is_the_derivative_over_the_distance(name):
    r = f64([1e-4, 0.1, 0.7, 2.0, 9.0]).requires_grad_()
    k = stationary(name, f64([1.0]), f64(1.0))
    (derivative,) = torch.autograd.grad(k(r[:, None], f64([[0.0]])).sum(), r)
    close(steepness(name, r.detach()), derivative / r.detach(), atol=1e-9)
    at_zero = {"se": -1, "matern32": -3, "matern52": -5 / 3}[name]
    close(steepness(name, f64([0.0])), f64([at_zero]))


def test_gradients_in_the_first_argument_sum_over_the_second():
    x, y, pull = uniform(3, 4, 2), uniform(5, 2, seed=1), uniform(3, 4, 5, seed=2)
    want = (pull[..., None] * (x[..., :, None, :] - y)).sum(-2)
    close(grad_in_first(x, y, pull), want, atol=1e-14)
    close(distance(x, y), (x[..., :, None, :] - y).norm(dim=-1), atol=1e-15)


@each_name
def test_in_many_dimensions_scores_and_gradients_are_those_of_the_definition(name):
    """Also at the points of the data, and close to them."""
    d = 20
    data = aw.Data.duels(uniform(15, 2, d), uniform(15, seed=1) > 0.5)
    belief = aw.infer(data, aw.kernel(name, [1.8] * d, 4.0))
    at = data.points[:3]
    x = torch.cat([uniform(4, d, seed=2), at, at + 1e-5])
    score = belief.predictive.score(utility_deviation)
    value, grad = score.with_gradient(x)
    close(value, belief.moments(x)[1].sqrt(), atol=1e-10)
    close(score(x), value, atol=1e-12)
    moved = x.clone().requires_grad_()
    (slope,) = torch.autograd.grad(belief.moments(moved)[1].sqrt().sum(), moved)
    close(grad, slope, atol=1e-7)


@each_name
def test_kernels_have_no_second_derivative(name):
    prior = covariance(aw.kernel(name, 0.3))
    assert isinstance(prior, Stationary)
    for ask in (prior.cross, prior.paired):
        x = uniform(3, 2).requires_grad_()
        (grad,) = torch.autograd.grad(ask(x, uniform(3, 2, seed=1)).sum(), x, create_graph=True)
        with pytest.raises(RuntimeError, match="must be of first order"):
            grad.sum().backward()


@pytest.mark.parametrize("text", sorted(RULES))
def test_a_rule_with_a_log_score_searches_a_logarithm(text):
    """Also the improvement of the believer, and the first step of eubo."""
    belief, seen = aw.infer(aw.Data.duels([[[0.2], [0.6]]], [1]), aw.kernel("se", 0.3)), []

    class Watched(Search):
        def argmax(self, score, q=1, **options):
            seen.append(getattr(score, "logarithmic", False))
            return super().argmax(score, q, **options)

    rule = parse(text)
    m = 1 if "binary" in rule.asks else 2
    around = Search.around(belief, seeded())
    rule.ask(belief, m, Watched(around.lanes, around.source, around.warm))
    assert any(seen) == (hasattr(rule, "log_score") or text in ("eubo", "hallucination_believer"))


def test_squared_distances_are_those_of_the_differences():
    x, y = uniform(3, 4, 2), uniform(3, 5, 2, seed=1)
    close(squares(x, dual(y)), distance(x, y).square(), atol=1e-14)
    assert (squares(x, dual(x)) >= 0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_correlations_of_a_search_are_never_subnormal_numbers_which_are_slow(dtype):
    r = torch.linspace(0, 60, 1000, dtype=dtype)
    found, want = decayed_by_square("se", r.square()), torch.exp(-0.5 * r.double() ** 2)
    assert (found >= torch.finfo(dtype).tiny).all()
    torch.testing.assert_close(found, want.to(dtype), rtol=1e-4, atol=1e-25)


@pytest.mark.parametrize("name", ["matern32", "matern52"])
def test_nor_are_those_that_rank_points(name):
    r = torch.linspace(0, 1e4, 1000)
    found = decayed_by_square(name, r.square())
    assert (found >= torch.finfo(found.dtype).tiny).all()
    assert len(found[r > 60].unique()) == 1  # nothing far away is told apart
    exact = decayed_by_square(name, r.double().square()).float()
    torch.testing.assert_close(found, exact, rtol=1e-4, atol=1e-22)


@pytest.mark.parametrize("rule", ["mean", "standardised", "muc"])
@pytest.mark.parametrize("length", [1e-6, 1e-3, 0.2, 3.0])
@pytest.mark.parametrize("kernels", [1, 3])
def test_points_are_ranked_as_by_their_scores(rule, length, kernels):
    X = uniform(60, 2, 2)
    data = aw.Data.duels(X, (X[:, 0].sum(-1) > X[:, 1].sum(-1)).long())
    lengths = length * (1 + 0.1 * torch.arange(kernels, dtype=torch.float64))
    prior = Stationary(
        "matern52", lengths[:, None].expand(-1, 2), torch.full((kernels,), 4.0, dtype=torch.float64)
    )
    belief = aw.infer(data, prior.select(0) if kernels == 1 else Kernels.equally_likely(prior))
    predictive, x = belief.predictive, uniform(200, 2, seed=1)
    if rule == "mean":
        score = predictive.score()
    elif rule == "muc":
        score = predictive.against(X[0, :1]).score(log_epistemic_variance, mixed=mixed_log_variance)
    else:
        score = predictive.score(standardised)
    exact, rough = score(x), score.from_correlation(x, score.correlation(x, torch.float32))
    assert rough.dtype == exact.dtype
    assert length < 0.1 or not torch.equal(rough, exact)
    torch.testing.assert_close(rough, exact, rtol=1e-4, atol=1e-5)


def test_very_short_lengthscales_separate_points_and_know_equal_ones():
    """Such as those of items, of which each is its own kind."""
    X = uniform(6, 1)
    one = aw.infer(aw.Data.binary(X, [0, 1, 1, 0, 1, 1]), aw.kernel("se", 1e-6))
    torch.testing.assert_close(one.predictive.score()(X), one.mean(X), rtol=0, atol=1e-12)
    path = aw.paths.draw(one, 2, torch.Generator().manual_seed(0))
    update = replace(path, weights=torch.zeros_like(path.weights))  # whose waves are as short
    torch.testing.assert_close(update.roughly(X), update(X), rtol=0, atol=1e-5)


def test_the_mean_has_the_hessian_of_its_gradient(case):
    score, x = case.belief.predictive.score(), somewhere(case)
    if not score.curved:
        return
    value, grad, hessian = score.with_curvature(x)
    for got, want in zip((value, grad), score.with_gradient(x), strict=True):
        close(got, want)
    moves = 1e-5 * torch.eye(x.shape[-1], dtype=x.dtype)
    each = [score.with_gradient(x + move)[1] - score.with_gradient(x - move)[1] for move in moves]
    # at a point of the data the second derivative of a Matern 3/2 has a kink
    close(hessian, torch.stack(each, -2) / 2e-5, atol=0.05 if "matern32" in str(case.belief.prior) else 1e-4)
