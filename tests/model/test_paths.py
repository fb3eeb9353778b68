"""Posterior draws against the belief's moments, for both methods, all kernels and lanes."""

import functools
import inspect
import math

import gpytorch
import pytest
import torch
from torch import Tensor

import askwise as aw
from askwise.model import Extended
from askwise.model.belief import Belief
from askwise.model.features import Features, FourierFeatures, HilbertFeatures, features
from askwise.model.kernels import Stationary
from askwise.model.paths import Path, draw, draw_at
from tensors import f64, seeded, uniform

DRAWS = 20_000
VARIANCE = 2.0
each_method = pytest.mark.parametrize("method", ["decoupled", "weight_space"])
each_kind = pytest.mark.parametrize("kind", ["yes_no", "duel", "mixed"])


def height(x: Tensor) -> Tensor:
    return 2 * torch.sin(9 * x).sum(-1)


def yes_no(lanes: tuple[int, ...] = (), n: int = 7, d: int = 1) -> aw.Data:
    """Answers about the lower left of the cube; the upper right stays uncertain."""
    X = uniform(*lanes, n, d, seed=1) / 2
    return aw.Data.binary(X, (height(X) > 1).long())


def duels(lanes: tuple[int, ...] = (), n: int = 7, d: int = 1) -> aw.Data:
    X = uniform(*lanes, n, 2, d, seed=2) / 2
    return aw.Data.duels(X, (height(X[..., 0, :]) > height(X[..., 1, :])).long())


def answers(kind: str, lanes: tuple[int, ...] = (), d: int = 1) -> aw.Data:
    if kind == "mixed":
        return yes_no(lanes, 4, d) + duels(lanes, 4, d)
    return yes_no(lanes, d=d) if kind == "yes_no" else duels(lanes, d=d)


def believed(data: aw.Data, name: str = "se", lengthscale: object = 0.2, method: str = "ep") -> Belief:
    options = {"generators": seeded(3), "max_sweeps": 60} if method == "gibbs" else {}
    return aw.infer(data, aw.kernel(name, lengthscale, VARIANCE), method=method, **options)


def probes(about: Belief) -> Tensor:
    """Points at, next to, between and far from the data: [*lane, 8, d]."""
    at, d = about.data.points[..., :3, :], about.data.points.shape[-1]
    elsewhere = torch.cat([uniform(2, d, seed=4) / 2, f64([[0.75] * d, [1.0] * d])])
    beside = at[..., :1, :] + 0.02
    return torch.cat([at, beside, elsewhere.expand(*at.shape[:-2], 4, d)], -2)


def basis_for(about: Belief, method: str) -> Features:
    """The default, or for weight space one whose error does not hide the method's own."""
    d = about.data.points.shape[-1]
    return features(about.prior, d, tolerance=1e-3 if method == "decoupled" else 2e-6)


def feature_error(about: Belief, basis: Features, rows: Tensor, x: Tensor, method: str) -> Tensor:
    r"""Bound on the error that the features cause in the covariance of ``rows @ f(x)``.

    A decoupled draw is :math:`f_0(x) - c(x)^\top f_0(P)` plus exact terms, with
    :math:`c(x) = F F^\top k(P, x)`, and :math:`f_0` has the covariance of the features: so its error is at
    most theirs times the squared sum of the absolute weights.  Draws in weight space regress with noise of
    the size of the error; we allow them its square root, which is not a proven bound.
    """
    error = basis.error.max().item() * (5 if isinstance(basis, FourierFeatures) else 1)
    scale = error * VARIANCE
    if method == "weight_space":
        return x.new_full((*x.shape[:-2], len(rows), len(rows)), math.sqrt(error) * VARIANCE)
    pull = about.prior.cross(x, about.data.points) @ about.factor @ about.factor.mT
    weight = rows.abs().sum(-1) + (rows @ pull).abs().sum(-1)
    return scale * weight[..., :, None] * weight[..., None, :]


def assert_draws_have_moments(
    values: Tensor, mean: Tensor, cov: Tensor, error_bound: Tensor, exact_mean: bool
) -> None:
    """``values`` [count, *lane, q] agree within five standard errors plus the error of the features."""
    count = len(values)
    var = (cov + error_bound).diagonal(dim1=-2, dim2=-1)
    apart = values - mean
    tolerance = 0.0 if exact_mean else error_bound.diagonal(dim1=-2, dim2=-1)
    assert (apart.mean(0).abs() <= 5 * (var / count).sqrt() + tolerance).all()
    found = torch.einsum("s...i,s...j->...ij", apart, apart) / count
    error = ((var[..., :, None] * var[..., None, :] + cov.square()) / count).sqrt()
    excess = (found - cov).abs() - 5 * error - error_bound
    assert (excess <= 0).all(), f"covariance off by {(found - cov).abs().max():.3g}"


def assert_draws_follow(about: Belief, method: str, basis: Features | None = None, x: Tensor | None = None):
    """Joint values of many draws, and their differences, have the moments of the belief."""
    basis = basis_for(about, method) if basis is None else basis
    x = probes(about) if x is None else x
    values = draw(about, DRAWS, seeded(5), method, basis)(x)
    assert values.shape == (DRAWS, *about.data.lanes, x.shape[-2])
    exact, every = method == "decoupled", torch.eye(x.shape[-2], dtype=x.dtype)
    error_bound = feature_error(about, basis, every, x, method)
    assert_draws_have_moments(values, about.mean(x), about.cov(x), error_bound, exact)
    # differences of successive points, of the last and the first, and of two close points
    rows = torch.cat([every - every.roll(1, 1), every[3:4] - every[:1]])
    assert_draws_have_moments(
        values @ rows.mT,
        about.mean(x) @ rows.mT,
        rows @ about.cov(x) @ rows.mT,
        feature_error(about, basis, rows, x, method),
        exact,
    )


@each_method
@each_kind
@pytest.mark.parametrize("lanes", [(), (2,)])
def test_draws_have_the_mean_and_the_covariance_of_the_posterior(method, kind, lanes):
    assert_draws_follow(believed(answers(kind, lanes)), method)


@each_method
@pytest.mark.parametrize("name", ["se", "matern32", "matern52"])
def test_draws_follow_each_kernel_with_its_own_lengthscales(method, name):
    about = believed(answers("mixed", d=2), name, [0.3, 0.6])
    assert_draws_follow(about, method, features(about.prior, 2, limit=400))


@each_method
def test_draws_follow_lanes_with_their_own_kernels(method):
    assert_draws_follow(believed(answers("mixed", (3,)), "matern52", f64([[0.2], [0.5], [5.0]])), method)


@each_method
@pytest.mark.parametrize("inference", ["laplace", "gibbs"])
def test_draws_follow_beliefs_from_other_inference(method, inference):
    assert_draws_follow(believed(answers("mixed", (2,)), method=inference), method)


@each_method
@pytest.mark.parametrize("inference", ["ep", "gibbs"])
def test_draws_follow_rankings_and_ties_whose_noise_is_shared(method, inference):
    x = f64([[[0.1], [0.35], [0.6], [0.9]], [[0.2], [0.5], [0.7], [1.0]]])
    data = aw.Data.rankings(x, torch.tensor([[2, 1], [1, 3]])) + aw.Data.ties(x[:1, :3])
    assert_draws_follow(believed(data, method=inference), method)


@each_method
@pytest.mark.parametrize(
    "data",
    [aw.Data.binary([[0.3]], [1]), aw.Data.duels([[[0.3], [0.4]]], [0])],
    ids=["yes_no", "duel"],
)
def test_draws_follow_one_answer(method, data):
    x = torch.cat([data.points[:1], f64([[0.31], [0.7], [0.32], [1.0]])])
    assert_draws_follow(believed(data), method, x=x)


@each_method
@pytest.mark.parametrize("wins", [20, 13])
def test_draws_follow_a_repeated_duel(method, wins):
    pairs, c = f64([[[0.2], [0.35]]]).expand(20, 2, 1), (torch.arange(20) < wins).long()
    about = believed(aw.Data.duels(pairs, c) + aw.Data.duels(f64([[[0.35], [0.5]]]), [1]))
    assert about.data.points.shape[-2] == 3
    assert_draws_follow(about, method)


@each_method
def test_draws_follow_lanes_of_which_one_repeats_a_duel(method):
    often, seldom = f64([[0.2], [0.4]]).repeat(4, 1, 1), uniform(4, 2, 1, seed=2)
    data = aw.Data.duels(torch.stack([often, seldom]), torch.tensor([[1, 1, 1, 0], [1, 0, 0, 1]]))
    assert_draws_follow(believed(data), method)


@each_method
def test_without_answers_draws_follow_the_prior(method):
    nothing = believed(aw.Data.binary(f64([]).reshape(0, 1), torch.zeros(0)))
    assert_draws_follow(nothing, method, x=f64([[0.0], [0.3], [0.7], [0.32], [1.0]]))


def test_decoupled_draws_follow_with_random_features():
    about = believed(answers("mixed", d=6), "matern32", 0.7)
    basis = features(about.prior, 6, limit=500, generators=seeded(6))
    assert isinstance(basis, FourierFeatures)
    assert_draws_follow(about, "decoupled", basis)


def test_many_answers_starve_weight_space_draws_of_variance_but_not_decoupled_ones():
    X = uniform(300, 2) * f64([0.7, 1.0])
    about = aw.infer(aw.Data.binary(X, (height(X) > 0).long()), aw.kernel("se", 0.05))
    basis = features(about.prior, 2, limit=16, generators=seeded())
    far = f64([[0.9, 0.1], [0.95, 0.5], [1.0, 1.0]])
    assert about.variance(far).min() > 0.99
    starved, fed = (
        draw(about, 4000, seeded(1), method, basis)(far).var(0) for method in ("weight_space", "decoupled")
    )
    assert (starved < 0.2).all()
    # 16 random features have exactly the prior's variance at a point
    assert (fed - about.variance(far)).abs().max() < 5 * math.sqrt(2 / 4000)


@each_method
def test_weight_space_is_not_starved_while_features_outnumber_answers(method):
    about = believed(yes_no(n=8))
    far = f64([[0.9], [1.0]])
    values = draw(about, 4000, seeded(1), method)(far)
    assert (values.var(0) / about.variance(far) - 1).abs().max() < 5 * math.sqrt(2 / 4000)


@each_method
@pytest.mark.parametrize("lanes", [(), (3,)])
def test_a_draw_is_one_fixed_function(method, lanes):
    path, x = draw(believed(answers("mixed", lanes)), 5, seeded(), method), uniform(6, 1)
    once = path(x)
    torch.manual_seed(12)
    assert torch.equal(path(x), once)
    apart = torch.cat([path(point[None]) for point in x], -1)
    torch.testing.assert_close(apart, once, rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(path(x.flip(0)).flip(-1), once, rtol=1e-11, atol=1e-11)


@each_method
@pytest.mark.parametrize("name", ["se", "matern32", "matern52"])
def test_draws_are_differentiable_even_at_the_data(method, name):
    about = believed(answers("mixed", d=2), name, [0.5, 0.8])
    path = draw(about, 2, seeded(), method, features(about.prior, 2, limit=150))
    x = torch.cat([about.data.points[:2], uniform(2, 2), f64([[0.0, 1.0]])]).requires_grad_()
    # a Matern 3/2 has a third derivative that jumps at the data, which finite differences notice
    assert torch.autograd.gradcheck(path, x, eps=1e-5, atol=1e-3 if name == "matern32" else 1e-5)


@each_method
@pytest.mark.parametrize("own_kernels", [False, True])
@pytest.mark.parametrize("count", [1, 3, 4])
def test_values_have_the_shape_count_lane_q(method, own_kernels, count):
    lengthscale = f64([[0.1], [0.2], [0.4]]) if own_kernels else 0.2
    path = draw(believed(answers("mixed", (3,)), lengthscale=lengthscale), count, seeded(), method)
    x = uniform(count, 3, 5, 1)
    each = path(x)
    assert each.shape == (count, 3, 5)
    for i in range(count):
        lanes = path(x[i])
        assert lanes.shape == (count, 3, 5)
        torch.testing.assert_close(lanes[i], each[i])
        for lane in range(3):
            shared = path(x[i, lane])
            assert shared.shape == (count, 3, 5)
            torch.testing.assert_close(shared[:, lane], lanes[:, lane])


@each_method
@pytest.mark.parametrize("count", [1, 4])
def test_without_lanes_values_have_the_shape_count_q(method, count):
    path, x = draw(believed(answers("duel", d=2)), count, seeded(), method), uniform(count, 5, 2)
    each = path(x)
    assert each.shape == (count, 5)
    for i in range(count):
        assert path(x[i]).shape == (count, 5)
        torch.testing.assert_close(path(x[i])[i], each[i])


@each_method
def test_draws_and_lanes_are_independent(method):
    pair = yes_no()
    twice = aw.Data.binary(pair.points[pair.first].repeat(2, 1, 1), ((pair.signs + 1) / 2).repeat(2, 1))
    values = draw(believed(twice), 10_000, seeded(), method)(f64([[0.2], [0.9]]))
    standard = (values - values.mean(0)) / values.std(0)
    bound = 5 / math.sqrt(5000)
    assert (standard[:, 0] * standard[:, 1]).mean(0).abs().max() < bound
    assert (standard[::2] * standard[1::2]).mean(0).abs().max() < bound


@each_method
@pytest.mark.parametrize("d", [1, 6])
def test_equal_generators_give_equal_draws(method, d):
    about, x = believed(answers("mixed", d=d)), uniform(4, d)
    once, again, other = (draw(about, 3, seeded(seed), method)(x) for seed in (1, 1, 2))
    assert torch.equal(once, again)
    assert (once - other).abs().min() > 1e-6


@each_method
def test_given_features_lead_to_the_same_draws(method):
    about, x = believed(answers("mixed", d=2)), uniform(4, 2)
    basis = features(about.prior, 2)
    given = draw(about, 3, seeded(), method, basis)
    assert given.features is basis
    assert torch.equal(given(x), draw(about, 3, seeded(), method)(x))


def lane_of(data: aw.Data, lane: int) -> aw.Data:
    """The answers of one lane, as new data."""
    first, second = data.first[lane], data.second[lane]
    points, c = data.points[lane], ((data.signs[lane] + 1) / 2).long()
    told = [
        aw.Data.binary(points[i][None], [int(won)])
        if j < 0
        else aw.Data.duels(torch.stack([points[i], points[j]])[None], [int(won)])
        for i, j, won in zip(first, second, c, strict=True)
    ]
    return functools.reduce(lambda one, other: one + other, told)


def assert_lanes_are_as_alone(data: aw.Data, lengthscale: Tensor | float, method: str, name: str = "se"):
    lanes, d = data.lanes[0], data.points.shape[-1]
    own = [seeded(10 + lane) for lane in range(lanes)]
    x = uniform(5, d)
    together = draw(believed(data, name, lengthscale), 3, own, method)(x)
    for lane in range(lanes):
        mine = lengthscale[lane] if isinstance(lengthscale, Tensor) else lengthscale
        alone = draw(believed(lane_of(data, lane), name, mine), 3, seeded(10 + lane), method)(x)
        torch.testing.assert_close(together[:, lane], alone, rtol=1e-6, atol=1e-6)


@each_method
@each_kind
def test_with_one_generator_per_lane_draws_are_those_of_the_lane_alone(method, kind):
    assert_lanes_are_as_alone(answers(kind, (3,), d=2), 0.3, method)


@each_method
def test_with_one_generator_per_lane_draws_are_those_of_the_lane_alone_if_kernels_differ(method):
    assert_lanes_are_as_alone(answers("mixed", (3,)), f64([[0.2], [0.5], [3.0]]), method)


@each_method
def test_with_one_generator_per_lane_draws_are_those_of_the_lane_alone_if_one_repeats_itself(method):
    often, seldom = f64([[0.2], [0.4]]).repeat(4, 1, 1), uniform(4, 2, 1, seed=2)
    data = aw.Data.duels(torch.stack([often, seldom]), torch.tensor([[1, 1, 1, 0], [1, 0, 0, 1]]))
    assert_lanes_are_as_alone(data, 0.3, method)


@each_method
@pytest.mark.parametrize("lengthscale", [0.3, torch.full((2, 1), 0.3, dtype=torch.float64)])
def test_with_one_generator_per_lane_draws_are_those_of_the_lane_alone_if_features_are_random(
    method, lengthscale
):
    assert_lanes_are_as_alone(answers("mixed", (2,), d=6), lengthscale, method, "matern32")


def test_a_draw_exposes_its_parts():
    about = believed(answers("mixed"))
    path = draw(about, 4, seeded())
    assert isinstance(path, Path)
    assert isinstance(path.features, HilbertFeatures)
    assert isinstance(path.prior, Stationary)
    assert path.weights.shape == (4, path.features.count)
    assert path.update.shape == (4, about.data.points.shape[-2])
    assert not path.weights.requires_grad
    assert not path.update.requires_grad


def test_an_unknown_method_is_refused():
    unchecked = inspect.unwrap(draw)  # past the type checks of the tests
    with pytest.raises(
        ValueError, match=r"method must be 'decoupled' or 'weight_space'; got 'exact'\. Choose"
    ):
        unchecked(believed(yes_no()), 3, seeded(), "exact")


@each_method
def test_a_kernel_without_features_is_refused(method):
    about = aw.infer(yes_no(), gpytorch.kernels.RQKernel().double().requires_grad_(False))
    with pytest.raises(ValueError, match="kernel must be a squared exponential or Matern 3/2 or 5/2"):
        draw(about, 3, seeded(), method)


def test_values_at_some_points_can_be_drawn_under_any_kernel():
    about = aw.infer(yes_no(), gpytorch.kernels.RQKernel().double().requires_grad_(False))
    x = probes(about)
    values, mean, cov = draw_at(x, about, DRAWS, seeded(5)), *about.joint(x)
    assert_draws_have_moments(values, mean, cov, torch.zeros_like(cov), exact_mean=True)
    known = believed(yes_no())
    torch.testing.assert_close(draw_at(x, known, 3, seeded()), draw(known, 3, seeded())(x), rtol=0, atol=0)


@pytest.mark.parametrize("shared", [False, True])
def test_a_lane_draws_at_points_what_it_would_draw_alone(shared, monkeypatch):
    monkeypatch.setattr("askwise.model.paths._LANE_ENTRIES", {"cpu": 2**16})  # two lanes at a time
    lengths = f64([[0.3] * 2, [0.01] * 2, [0.4] * 2, [0.5] * 2, [0.02] * 2])  # short: random features
    about = believed(duels((5,), d=2), "matern32", lengths)
    kinds = {type(features(about.prior.select(lane), 2, generators=seeded())) for lane in range(5)}
    assert kinds == {HilbertFeatures, FourierFeatures}
    x = uniform(3, 2, seed=8) if shared else probes(about)
    together = draw_at(x, about, 6, [seeded(lane) for lane in range(5)])
    alone = [draw_at(x if shared else x[k], about.select(k), 6, seeded(k)) for k in range(5)]
    torch.testing.assert_close(together, torch.stack(alone, 1), rtol=0, atol=1e-9)


@each_method
def test_a_wrong_number_of_generators_is_refused(method):
    with pytest.raises(ValueError, match="generators must be one, or one for each of the 3 lanes; got 2"):
        draw(believed(yes_no((3,))), 3, [seeded(), seeded()], method)


@pytest.mark.parametrize("lanes", [(), (3,)])
@pytest.mark.parametrize(("d", "kind"), [(1, HilbertFeatures), (2, HilbertFeatures), (6, FourierFeatures)])
def test_gradients_of_draws_agree_with_autograd(d, kind, lanes):
    X = uniform(*lanes, 12, 2, d, seed=d)
    belief = aw.infer(aw.Data.duels(X, X[..., 0, 0] > X[..., 1, 0]), aw.kernel("matern52", 0.4, 3.0))
    path = aw.paths.draw(belief, 2, seeded(5))
    assert isinstance(path.features, kind)
    x = uniform(2, *lanes, 7, d, seed=9).requires_grad_()
    value, grad = path.with_gradient(x)
    torch.testing.assert_close(value, path(x), rtol=1e-12, atol=1e-12)
    want = torch.autograd.grad(path(x).sum(), x)[0]
    torch.testing.assert_close(grad, want, rtol=1e-9, atol=1e-11)
    assert not value.requires_grad
    assert not grad.requires_grad


PRIORS = {
    "one kernel": (0.3, 2),
    "lengthscales of their own": (f64([[0.3, 0.6], [0.3, 0.6], [0.9, 0.2]]), 2),
    "random features": (0.3, 6),
    "random features of their own": (f64([[0.3], [0.3], [0.5]]).expand(3, 6), 6),
}
each_prior = pytest.mark.parametrize(("lengthscale", "d"), PRIORS.values(), ids=list(PRIORS))


def by_differences(path: Path, x: Tensor, step: float = 1e-5) -> Tensor:
    """Hessians of the draws."""
    moves = step * torch.eye(x.shape[-1], dtype=x.dtype)
    each = [path.with_gradient(x + move)[1] - path.with_gradient(x - move)[1] for move in moves]
    return torch.stack(each, -2) / (2 * step)


@pytest.mark.parametrize("name", ["se", "matern32", "matern52"])
@pytest.mark.parametrize("own", [False, True], ids=["one kernel", "kernels of lanes"])
@pytest.mark.parametrize(("d", "kind"), [(1, HilbertFeatures), (2, HilbertFeatures), (6, FourierFeatures)])
def test_hessians_of_draws_agree_with_differences_of_gradients(d, kind, name, own):
    lengthscale = f64([[0.4], [0.5], [0.4]]).expand(3, d) if own else 0.4
    path = draw(believed(duels((3,), d=d), name, lengthscale), 2, seeded(5))
    assert isinstance(path, Path)
    assert isinstance(path.features, kind) or name == "matern32"
    x = uniform(2, 3, 4, d, seed=9)
    value, grad, hessian = path.with_curvature(x)
    for got, want in zip((value, grad), path.with_gradient(x), strict=True):
        torch.testing.assert_close(got, want, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(hessian, by_differences(path, x), rtol=1e-4, atol=1e-4)


@each_prior
def test_selected_draws_have_the_gradients_that_they_have_among_all(lengthscale, d):
    path = draw(believed(answers("mixed", (3,), d=d), "matern32", lengthscale), 2, seeded())
    assert isinstance(path, Path)
    x, some = uniform(2, 3, 4, d), torch.tensor([4, 0, 5])
    chosen = path.select(some).select(torch.tensor([2, 0]))
    for got, every in zip(chosen.with_gradient(x.flatten(0, 1)[[5, 4]]), path.with_gradient(x), strict=True):
        torch.testing.assert_close(got, every.flatten(0, 1)[[5, 4]], rtol=1e-9, atol=1e-9)


@each_method
@each_prior
@pytest.mark.parametrize("count", [1, 6])
def test_points_expanded_over_draws_and_lanes_have_the_values_of_copied_ones(method, lengthscale, d, count):
    path = draw(believed(answers("mixed", (3,), d=d), "matern32", lengthscale), count, seeded(), method)
    x = uniform(5, d)
    expanded = x.expand(count, 3, 5, d)
    want = path(expanded.clone())  # points for each draw, which happen to be equal
    for same in (x, x.expand(3, 5, d), expanded):
        torch.testing.assert_close(path(same), want, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(path(x.expand(3, 5, d).clone()), want, rtol=1e-9, atol=1e-9)


def test_points_expanded_over_draws_alone_are_not_shared_by_lanes():
    path, x = draw(believed(answers("mixed", (3,))), 4, seeded()), uniform(3, 5, 1)
    want = path(x.expand(4, 3, 5, 1).clone())
    torch.testing.assert_close(path(x.expand(4, 3, 5, 1)), want, rtol=1e-9, atol=1e-9)
    assert (want[:, 0] - want[:, 1]).abs().min() > 1e-6


def test_without_lanes_expanded_points_have_the_values_of_copied_ones():
    path, x = draw(believed(answers("mixed", d=2)), 6, seeded()), uniform(5, 2)
    copied = path(x.expand(6, 5, 2).clone())
    torch.testing.assert_close(path(x.expand(6, 5, 2)), copied, rtol=1e-9, atol=1e-9)


def test_shared_points_can_be_differentiated():
    path = draw(believed(answers("mixed", (3,))), 4, seeded())
    x = uniform(5, 1).requires_grad_()
    assert torch.autograd.gradcheck(path, x)
    grad = torch.autograd.grad(path(x.expand(3, 5, 1)).sum(), x)[0]
    each = path.with_gradient(x.detach().expand(4, 3, 5, 1))[1]
    torch.testing.assert_close(grad, each.sum((0, 1)))
    expanded = x.detach().expand(4, 3, 5, 1).requires_grad_()  # each copy has a gradient of its own
    torch.testing.assert_close(torch.autograd.grad(path(expanded).sum(), expanded)[0], each)


def test_all_draws_have_the_same_frequencies_and_different_weights():
    about = believed(answers("mixed", (2,), d=6), "matern32")
    one, other = (draw(about, 1, [seeded(seed), seeded(seed + 1)]) for seed in (1, 5))
    assert isinstance(one.features, FourierFeatures)
    assert isinstance(other.features, FourierFeatures)
    assert torch.equal(one.features.frequencies, other.features.frequencies)
    assert (one.weights - other.weights).abs().min() > 0
    assert (one.weights[:, 0] - one.weights[:, 1]).abs().min() > 0


def test_draws_follow_the_posterior_of_answers_outside_the_cube():
    """Answers about settings of a range that is narrower now: their coordinates are outside."""
    points = torch.tensor([[[-1.5], [0.2]], [[2.5], [0.9]], [[-1.5], [2.5]], [[-0.2], [0.5]]]).double()
    with pytest.raises(aw.Refused, match="lie in the unit cube"):
        aw.Data.duels(points, [1, 0, 1, 1])
    about = aw.infer(Extended.duels(points, [1, 0, 1, 1]), aw.kernel("se", 0.4, 2.0))
    x = torch.linspace(0, 1, 6).double()[:, None]
    drawn = draw(about, 20_000, seeded())(x)
    mean, cov = about.joint(x)
    torch.testing.assert_close(drawn.mean(0), mean, rtol=0, atol=0.05)
    torch.testing.assert_close(drawn.T.cov(), cov, rtol=0, atol=0.08)


@pytest.mark.parametrize("lengthscale", [0.2, 0.02], ids=["Hilbert features", "random features"])
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("points", ["of all", "of lanes", "of draws"])
def test_rough_values_are_those_of_single_precision(lengthscale, count, points):
    one = believed(duels((4,), d=3), "matern52", lengthscale)
    path = draw(one, count, seeded())
    assert isinstance(path, Path)
    x = {"of all": uniform(9, 3), "of lanes": uniform(4, 9, 3), "of draws": uniform(count, 4, 9, 3)}[points]
    x = x.expand(count, 4, 9, 3)
    rough, exact = path.roughly(x), path(x)
    assert rough.dtype == torch.float64
    torch.testing.assert_close(rough, exact, rtol=0, atol=2e-3)
    assert not torch.equal(rough, exact)
