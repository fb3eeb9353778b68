"""Features against the kernels they approximate, lane by lane, and their gradients."""

import math

import gpytorch
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor

from askwise.model.features import Features, FourierFeatures, HilbertFeatures, features, lane_groups
from askwise.model.kernels import Stationary, covariance, kernel
from tensors import f64, seeded, uniform

NAMES = ("se", "matern32", "matern52")
each_name = pytest.mark.parametrize("name", NAMES)


def prior(name: str = "se", lengthscale: object = 0.3, outputscale: object = 1.0) -> Stationary:
    return covariance(kernel(name, lengthscale, outputscale))


def dense(d: int) -> Tensor:
    """A grid with the corners, edges, faces and centre of the cube, and random points, some on faces."""
    steps = torch.linspace(0, 1, {1: 201, 2: 17, 3: 7}.get(d, 3), dtype=torch.float64)
    inside, face = uniform(60, d, seed=1), uniform(60, d, seed=2)
    face[:, 0] = face[:, 0].round()
    return torch.cat([torch.cartesian_prod(*[steps] * d).reshape(-1, d), inside, face])


def largest_error(basis: Features, of: Stationary, x: Tensor) -> float:
    """Largest kernel error relative to the prior variance, over all pairs and lanes."""
    phi = basis(x)
    relative = (phi @ phi.mT - of.cross(x, x)) / of.outputscale[..., None, None]
    return relative.abs().max().item()


def stated(basis: Features) -> float:
    """The largest stated error of a lane."""
    return basis.error.max().item()


def small_basis(kind: str, of: Stationary, d: int) -> Features:
    if kind == "hilbert":
        return features(of, d, tolerance=0.01)
    return FourierFeatures(of.spectral_draws(20, d, seeded()), of.outputscale)


each_kind = pytest.mark.parametrize("kind", ["hilbert", "fourier"])


@each_name
@pytest.mark.parametrize("lengthscale", [0.05, 0.3, 1.0, 10.0, 1e3])
@pytest.mark.parametrize("tolerance", [1e-2, 1e-3, 1e-5])
def test_hilbert_features_on_a_line_are_within_their_stated_error(name, lengthscale, tolerance):
    of = prior(name, lengthscale, 3.0)
    basis = features(of, 1, tolerance)
    assert isinstance(basis, HilbertFeatures)
    assert stated(basis) == tolerance
    assert largest_error(basis, of, dense(1)) < tolerance


@pytest.mark.parametrize(
    ("name", "d", "lengthscale"),
    [
        *((name, 2, lengthscale) for name in NAMES for lengthscale in (0.2, 1.0, 1e3)),
        ("se", 2, 0.05),
        ("matern52", 2, 0.05),
        ("se", 3, 0.2),
        ("matern52", 3, 0.5),
        *((name, 3, lengthscale) for name in ("se", "matern52") for lengthscale in (10.0, 1e3)),
    ],
)
def test_hilbert_features_on_squares_and_cubes_are_within_their_stated_error(name, d, lengthscale):
    of = prior(name, lengthscale, 0.2)
    basis = features(of, d)
    assert isinstance(basis, HilbertFeatures)
    assert largest_error(basis, of, dense(d)) < stated(basis)


@pytest.mark.parametrize(
    ("name", "lengthscale"),
    [
        *((name, lengthscale) for name in NAMES for lengthscale in ([0.05, 1e3], [0.2, 2.0])),
        *(
            (name, lengthscale)
            for name in ("se", "matern52")
            for lengthscale in ([1e3, 0.5, 30.0], [0.3, 100.0, 3.0])
        ),
    ],
)
def test_each_dimension_may_have_its_own_lengthscale(name, lengthscale):
    of, d = prior(name, lengthscale), len(lengthscale)
    basis = features(of, d)
    assert isinstance(basis, HilbertFeatures)
    assert largest_error(basis, of, dense(d)) < stated(basis)


@each_name
def test_very_different_lanes_are_within_their_stated_error(name):
    lengthscale = [[0.1, 1.0], [0.7, 0.2], [1e3, 1e3], [0.5, 0.5]]
    of = prior(name, f64(lengthscale), f64([0.01, 1.0, 50.0, 1e6]))
    basis = features(of, 2)
    assert basis(dense(2)).shape == (4, len(dense(2)), basis.count)
    assert largest_error(basis, of, dense(2)) < stated(basis)


def test_one_lengthscale_may_serve_lanes_of_different_variance():
    of = prior("se", 0.3, f64([0.5, 2.0]))
    assert largest_error(features(of, 2), of, dense(2)) < 1e-3


def test_a_trainable_gpytorch_kernel_has_features():
    trained = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=2)).double()
    assert trained.raw_outputscale.requires_grad
    of = covariance(trained)
    assert largest_error(features(of, 2), of, dense(2)) < 1e-3


@settings(max_examples=25)
@given(
    st.sampled_from(NAMES),
    st.lists(st.floats(-1.3, 3.0), min_size=1, max_size=3),
    st.floats(-5.0, -1.9),
)
def test_any_lengthscales_and_tolerance_are_within_the_stated_error(name, powers, digits):
    of, d = prior(name, [10**power for power in powers]), len(powers)
    basis = features(of, d, 10**digits, generators=seeded())
    assume(isinstance(basis, HilbertFeatures))
    assert basis.count <= 4096
    assert largest_error(basis, of, dense(d)[::3]) < stated(basis)


@pytest.mark.parametrize(
    ("d", "tolerance", "limit"), [(3, 0.09, 64), (5, 0.11, 64), (6, 1e-3, 4096), (6, 1e-3, 256)]
)
def test_few_features_of_a_long_lengthscale_are_within_their_stated_error(d, tolerance, limit):
    of = prior("se", 300.0)
    basis = features(of, d, tolerance, limit)
    assert isinstance(basis, HilbertFeatures)
    assert largest_error(basis, of, dense(d)) < stated(basis)


@pytest.mark.parametrize(("d", "tolerance", "limit"), [(5, 0.48, 4), (6, 0.4, 5)])
def test_there_is_at_least_one_feature_however_high_the_tolerance(d, tolerance, limit):
    basis = features(prior("se", 300.0), d, tolerance, limit)
    assert 1 <= basis.count <= limit
    assert basis(uniform(3, d)).shape == (3, basis.count)


@each_name
def test_fourier_features_are_unbiased_and_have_about_their_stated_error(name):
    replicates, limit, d = 2000, 64, 3
    one, lanes = prior(name, 0.1, 2.5), prior(name, 0.1, torch.full((replicates,), 2.5, dtype=torch.float64))
    drawn = features(one, d, limit=limit, generators=seeded())
    assert isinstance(drawn, FourierFeatures)
    assert (drawn.count, stated(drawn)) == (limit, 1 / math.sqrt(limit))
    basis = FourierFeatures(lanes.spectral_draws(limit // 2, d, seeded()), lanes.outputscale)
    x = torch.cat([f64([[0.0] * d, [0.05] * d, [1.0] * d]), uniform(3, d)])
    phi = basis(x)
    error = (phi @ phi.mT - one.cross(x, x)) / 2.5
    sd = error.square().mean(0).sqrt()
    assert (error.mean(0).abs() <= 5 * sd / math.sqrt(replicates) + 1e-12).all()
    # a mean of m / 2 cosines of variance (1 + k(2 r)) / 2 - k(r)^2 each: nearly 1/2 at large distances
    r = one.cross(x, x) / 2.5
    theory = ((1 + one.cross(2 * x, 2 * x) / 2.5 - 2 * r.square()) / limit).clamp_min(0).sqrt()
    assert (sd - theory).abs().max() <= 5 * stated(basis) / math.sqrt(2 * replicates)
    assert sd.max() == pytest.approx(stated(basis), rel=0.1)


def test_fourier_features_have_the_variance_of_the_prior_everywhere():
    of = prior("matern32", [0.2, 0.7], 3.0)
    x = uniform(9, 2)
    torch.testing.assert_close(small_basis("fourier", of, 2)(x).square().sum(-1), of.diagonal(x))


@each_name
def test_the_frequencies_of_each_dimension_follow_its_own_lengthscale(name):
    lengthscale = f64([0.01, 0.02, 0.04, 0.16])
    frequencies = features(prior(name, lengthscale), 4, limit=2000, generators=seeded()).frequencies
    assert frequencies.shape == (1000, 4)
    # |omega| l has the median of the absolute value of a normal, or of Student's t with 3 or 5 degrees
    median = {"se": 0.6745, "matern32": 0.7649, "matern52": 0.7267}[name]
    below = (frequencies.abs() * lengthscale < median).double().mean(0)
    assert (below - 0.5).abs().max() < 5 * math.sqrt(0.25 / 1000)


def test_a_tolerance_that_few_features_reach_is_not_relaxed():
    basis = features(prior("se", 0.3), 2, tolerance=1e-4)
    assert isinstance(basis, HilbertFeatures)
    assert stated(basis) == 1e-4
    assert basis.count < 200


@each_name
def test_a_limit_one_too_low_doubles_the_tolerance(name):
    of = prior(name, 0.4)
    enough = features(of, 1)
    exactly, fewer = features(of, 1, limit=enough.count), features(of, 1, limit=enough.count - 1)
    assert (exactly.count, stated(exactly)) == (enough.count, 1e-3)
    assert fewer.count < enough.count
    assert stated(fewer) == 2e-3


@pytest.mark.parametrize("limit", [50, 200, 1000])
def test_the_tolerance_is_doubled_until_the_limit_suffices(limit):
    of = prior("matern52", 0.5)
    basis = features(of, 2, tolerance=1e-5, limit=limit)
    doublings = math.log2(stated(basis) / 1e-5)
    assert doublings == round(doublings) > 0
    assert basis.count <= limit
    assert stated(basis) < 1 / math.sqrt(limit)
    assert features(of, 2, stated(basis) / 2, 4 * limit).count > limit


@pytest.mark.parametrize(("lengthscale", "d", "limit"), [(0.1, 6, 101), (0.1, 3, 64), (0.01, 1, 8)])
def test_features_are_random_where_hilbert_features_are_no_better(lengthscale, d, limit):
    basis = features(prior("matern32", lengthscale), d, limit=limit, generators=seeded())
    assert isinstance(basis, FourierFeatures)
    assert stated(basis) == 1 / math.sqrt(basis.count)
    assert limit - 1 <= basis.count <= limit
    assert basis(uniform(4, d)).shape == (4, basis.count)


def test_hilbert_features_do_not_use_the_generator(generator):
    before = generator.get_state()
    features(prior("se", 0.3), 2, generators=generator)
    assert torch.equal(generator.get_state(), before)


@pytest.mark.parametrize(
    ("name", "d", "tolerance"),
    [("se", 1, 0.02), ("matern32", 1, 0.1), ("matern52", 2, 0.5), ("matern32", 3, 0.05)],
)
def test_a_high_tolerance_gives_few_hilbert_features(name, d, tolerance):
    of = prior(name, 1.0)
    basis = features(of, d, tolerance)
    assert isinstance(basis, HilbertFeatures)
    assert basis.count < 2000
    assert largest_error(basis, of, dense(d)) < stated(basis) == tolerance


def test_equal_generators_give_equal_frequencies():
    of = prior("se", 0.1)
    once, again, other = (features(of, 6, limit=16, generators=seeded(s)).frequencies for s in (3, 3, 4))
    assert torch.equal(once, again)
    assert not torch.isclose(once, other).any()


@each_kind
@each_name
def test_duel_features_are_antisymmetric_and_give_the_kernel_of_duels(kind, name):
    of = prior(name, 0.4, 2.0)
    basis = small_basis(kind, of, 2)
    x, y = uniform(30, 2), uniform(30, 2, seed=1)
    phi = basis.duel(x, y)
    assert torch.equal(basis.duel(y, x), -phi)
    assert (basis.duel(x, x) == 0).all()
    if kind == "hilbert":
        duels = of.cross(x, x) - of.cross(x, y) - of.cross(y, x) + of.cross(y, y)
        assert (phi @ phi.mT - duels).abs().max() < 4 * stated(basis) * 2.0


def test_random_duel_features_are_unbiased():
    replicates, x, y = 2000, uniform(5, 3), uniform(5, 3, seed=1)
    one, lanes = prior("matern52", 0.3), prior("matern52", 0.3, torch.ones(replicates, dtype=torch.float64))
    basis = FourierFeatures(lanes.spectral_draws(8, 3, seeded()), lanes.outputscale)
    phi = basis.duel(x, y)
    error = phi @ phi.mT - (one.cross(x, x) - one.cross(x, y) - one.cross(y, x) + one.cross(y, y))
    assert (error.mean(0).abs() <= 5 * error.std(0) / math.sqrt(replicates)).all()


@each_kind
@pytest.mark.parametrize("shape", [(5, 2), (3, 5, 2), (4, 3, 5, 2), (4, 1, 5, 2)])
def test_points_broadcast_with_the_lanes(kind, shape):
    of = prior("se", f64([[0.3, 0.5], [0.8, 0.2], [1.0, 1.0]]), f64([1.0, 2.0, 3.0]))
    basis, x = small_basis(kind, of, 2), uniform(*shape)
    phi = basis(x)
    full = x.expand(*torch.broadcast_shapes(shape[:-2], (3,)), 5, 2)
    assert phi.shape == (*full.shape[:-1], basis.count)
    for lane in range(3):
        own = full[..., lane, :, :]
        torch.testing.assert_close(phi[..., lane, :, :], basis(own[..., None, :, :])[..., lane, :, :])


@each_kind
def test_features_without_lanes_accept_points_with_lanes(kind):
    basis, x = small_basis(kind, prior("matern52", [0.4, 0.9]), 2), uniform(4, 3, 5, 2)
    torch.testing.assert_close(basis(x)[1, 2], basis(x[1, 2]), rtol=1e-12, atol=1e-12)


@each_kind
@pytest.mark.parametrize("lanes", [False, True])
def test_features_are_differentiable_in_the_points(kind, lanes):
    basis = small_basis(kind, prior("se", f64([[0.5, 2.0], [3.0, 0.8]]) if lanes else [0.5, 2.0]), 2)
    corner = torch.cat([uniform(2, 2), f64([[0.0, 1.0]])]).requires_grad_()
    assert torch.autograd.gradcheck(basis, corner)
    assert torch.autograd.gradcheck(lambda x: basis.duel(x, uniform(3, 2, seed=5)), corner)


def lane_of(of: Stationary, lane: int) -> Stationary:
    return Stationary(of.name, of.lengthscale[lane], of.outputscale[lane])


@each_name
@pytest.mark.parametrize(
    "lengthscale",
    [[[0.3, 0.5]] * 3, [[0.3, 0.5], [1.0, 0.4], [20.0, 20.0]]],
    ids=["equal_lengthscales", "different_lengthscales"],
)
def test_lanes_have_the_hilbert_features_they_would_have_alone(name, lengthscale):
    of, x = prior(name, f64(lengthscale), f64([1.0, 2.0, 30.0])), dense(2)[::3]
    together = features(of, 2, tolerance=0.01)(x)
    for lane in range(3):
        alone = features(lane_of(of, lane), 2, tolerance=0.01)(x)
        torch.testing.assert_close(together[lane] @ together[lane].mT, alone @ alone.mT, rtol=1e-9, atol=1e-9)


@each_name
def test_with_one_generator_per_lane_random_features_are_those_of_the_lane_alone(name):
    of, x = prior(name, f64([[0.1], [0.2], [0.4]]), f64([1.0, 2.0, 3.0])), uniform(5, 6)
    together = features(of, 6, limit=50, generators=[seeded(s) for s in (7, 8, 9)])
    assert isinstance(together, FourierFeatures)
    for lane in range(3):
        alone = features(lane_of(of, lane), 6, limit=50, generators=seeded(7 + lane))
        torch.testing.assert_close(together(x)[lane], alone(x))


def test_one_generator_for_all_lanes_gives_each_its_own_frequencies():
    basis = features(
        prior("se", torch.full((2, 1), 0.1, dtype=torch.float64)), 4, limit=50, generators=seeded()
    )
    assert not torch.isclose(basis.frequencies[0], basis.frequencies[1]).any()


@pytest.mark.parametrize(
    "other",
    [
        gpytorch.kernels.RQKernel().double(),
        gpytorch.kernels.MaternKernel(nu=0.5).double(),
        kernel("se") + kernel("matern32"),
    ],
    ids=["rational_quadratic", "matern12", "sum"],
)
def test_a_kernel_without_known_features_is_refused(other):
    message = r"kernel must be a squared exponential or Matern 3/2 or 5/2 .* got .*\. Use one of the three"
    with pytest.raises(ValueError, match=rf"(?s){message}"):
        features(covariance(other), 2, generators=seeded())


def test_random_features_without_a_generator_are_refused():
    message = (
        r"generators must be given where 64 Hilbert features err by more than 0\.125; got none\. "
        r"Give a torch\.Generator or a larger limit\."
    )
    with pytest.raises(ValueError, match=message):
        features(prior("matern32", 0.1), 3, limit=64)


def test_a_wrong_number_of_generators_is_refused():
    of = prior("matern32", torch.full((3, 1), 0.1, dtype=torch.float64))
    with pytest.raises(ValueError, match="generators must be one, or one for each of the 3 lanes; got 2"):
        features(of, 3, limit=64, generators=[seeded(0), seeded(1)])


# functions at shared points, and gradients

LANES = {
    "no lanes": ([0.4, 0.9], 2.0),
    "one kernel": ([[0.4, 0.9]] * 4, [2.0] * 4),
    "one lengthscale, other variances": ([[0.4, 0.9]] * 4, [2.0, 0.1, 2.0, 30.0]),
    "other lengthscales, one variance": ([[0.4, 0.9], [0.9, 0.4], [0.4, 0.9], [3.0, 3.0]], [2.0] * 4),
    "all different": ([[0.4, 0.9], [0.3, 0.3], [5.0, 0.5], [1.0, 1.0]], [1.0, 2.0, 3.0, 4.0]),
}
each_lanes = pytest.mark.parametrize(("lengthscale", "variance"), LANES.values(), ids=list(LANES))


def shared_basis(kind: str, of: Stationary, d: int) -> Features:
    """Features as used by draws: all lanes have the same frequencies, up to the lengthscale."""
    if kind == "hilbert":
        return features(of, d, tolerance=0.01)
    return FourierFeatures(of.spectral_draws(20, d, seeded(), torch.Size()), of.outputscale)


@each_kind
@each_name
@each_lanes
@pytest.mark.parametrize("count", [1, 9])
def test_functions_at_shared_points_agree_with_the_features_of_each_lane(
    kind, name, lengthscale, variance, count
):
    of = prior(name, f64(lengthscale), f64(variance))
    basis, x = shared_basis(kind, of, 2), dense(2)[::5]
    weights = torch.randn(count, *of.lanes, basis.count, generator=seeded(3), dtype=torch.float64)
    found = basis.at_shared_points(x, weights)
    assert found.shape == (count, *of.lanes, len(x))
    phi = basis(x).expand(*of.lanes, len(x), basis.count)
    want = torch.einsum("...qm,s...m->s...q", phi, weights)
    torch.testing.assert_close(found, want, rtol=1e-10, atol=1e-10)


@each_kind
@pytest.mark.parametrize("d", [1, 3, 4])
@pytest.mark.parametrize("count", [2, 5])
def test_few_and_many_functions_at_shared_points_are_sums_of_features_in_any_dimension(kind, d, count):
    basis, x = shared_basis(kind, prior("se", 0.9), d), dense(d)[:40]
    weights = torch.randn(count, basis.count, generator=seeded(), dtype=torch.float64)
    torch.testing.assert_close(
        basis.at_shared_points(x, weights), weights @ basis(x).mT, rtol=1e-10, atol=1e-10
    )


@each_kind
@each_lanes
@pytest.mark.parametrize("count", [1, 9])
@pytest.mark.parametrize("own", [False, True], ids=["points of all lanes", "points of each lane"])
def test_few_and_many_functions_are_sums_of_features(kind, lengthscale, variance, count, own):
    of = prior("se", f64(lengthscale), f64(variance))
    basis, x = shared_basis(kind, of, 2), uniform(*of.lanes, 7, 2) if own else uniform(7, 2)
    weights = torch.randn(*of.lanes, basis.count, count, generator=seeded(), dtype=torch.float64)
    torch.testing.assert_close(basis.weighted_sum(x, weights), basis(x) @ weights, rtol=1e-10, atol=1e-10)


@each_kind
def test_shared_points_may_be_split_into_chunks(kind, monkeypatch):
    basis, x = shared_basis(kind, prior("se", 0.9), 2), dense(2)
    weights = torch.randn(9, basis.count, generator=seeded(), dtype=torch.float64)
    for entries in (1, 10 * basis.count):
        monkeypatch.setattr("askwise.model.features.base._CHUNK_ENTRIES", entries)
        torch.testing.assert_close(
            basis.at_shared_points(x, weights), weights @ basis(x).mT, rtol=1e-10, atol=1e-10
        )


@each_kind
def test_lanes_are_grouped_by_equal_features(kind):
    lengthscale, variance = [[0.4], [0.4], [0.4], [0.5], [0.4]], [1.0, 2.0, 1.0, 1.0, 2.0]
    of = prior("se", f64(lengthscale), f64(variance))
    groups = [group.tolist() for group in shared_basis(kind, of, 1).groups]
    assert sorted(groups) == [[0, 2], [1, 4], [3]]


def test_lanes_with_their_own_frequencies_are_not_grouped():
    of = prior("se", torch.full((3, 1), 0.1, dtype=torch.float64))
    assert len(small_basis("fourier", of, 2).groups) == 3
    assert len(shared_basis("fourier", of, 2).groups) == 1


def gradient_by_autograd(basis: Features, weights: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    x = x.detach().requires_grad_()
    value = (basis(x) @ weights[..., None])[..., 0]
    return value.detach(), torch.autograd.grad(value.sum(), x)[0]


@each_kind
@each_name
@pytest.mark.parametrize("d", [1, 2, 3, 4])
@pytest.mark.parametrize("lanes", [False, True])
def test_gradients_of_functions_agree_with_autograd(kind, name, d, lanes):
    lengthscale = f64([[1.0, 2.0, 3.0, 4.0], [2.0, 1.5, 1.0, 6.0]])[:, :d]
    of = prior(name, lengthscale, f64([2.0, 0.5])) if lanes else prior(name, lengthscale[0], 2.0)
    basis = shared_basis(kind, of, d) if kind == "fourier" else features(of, d, 0.2, generators=seeded())
    assert isinstance(basis, HilbertFeatures if kind == "hilbert" else FourierFeatures)
    weights = torch.randn(3, *of.lanes, basis.count, generator=seeded(), dtype=torch.float64)
    x = torch.cat([uniform(3, *of.lanes, 4, d), f64(1).expand(3, *of.lanes, 1, d)], -2)
    before = x.clone(), weights.clone()
    value, grad = basis.as_function(weights)(x)
    want = gradient_by_autograd(basis, weights, x)
    torch.testing.assert_close(value, want[0], rtol=1e-10, atol=1e-11)
    torch.testing.assert_close(grad, want[1], rtol=1e-9, atol=1e-10)
    assert torch.equal(before[0], x)
    assert torch.equal(before[1], weights)


def test_lanes_form_one_group_if_all_or_none_have_hilbert_features():
    short, long = [0.004, 0.004], [0.5, 0.5]
    mixed = prior("matern32", f64([long, short, long, short]), f64([1.0, 2.0, 3.0, 4.0]))
    assert [group.tolist() for group in lane_groups(mixed, 2)] == [[0, 2], [1, 3]]
    for lengthscale in (short, long):
        of = prior("matern32", f64([lengthscale] * 3))
        assert [group.tolist() for group in lane_groups(of, 2)] == [[0, 1, 2]]
        kind = FourierFeatures if lengthscale == short else HilbertFeatures
        assert isinstance(features(of, 2, generators=seeded()), kind)


def test_without_lanes_there_are_no_groups():
    assert lane_groups(prior("se", [0.004, 0.004]), 2) == []
    assert lane_groups(covariance(gpytorch.kernels.RQKernel().double()), 2) == []


def test_the_groups_of_lanes_depend_on_the_limit():
    of = prior("se", f64([[0.1], [3.0]]))
    assert len(lane_groups(of, 2)) == 1
    assert len(lane_groups(of, 2, limit=50)) == 2


@each_name
def test_cached_features_are_not_mistaken_for_those_of_another_variance_or_kernel(name):
    x = dense(1)[::4]
    for variance in (1.0, 25.0, 0.01, 25.0):
        for lengthscale in (0.37, 0.38):
            of = prior(name, lengthscale, variance)
            assert largest_error(features(of, 1), of, x) < 1e-3
    together = prior(name, f64([[0.37], [0.37], [0.38]]), f64([25.0, 0.01, 1.0]))
    assert largest_error(features(together, 1), together, x) < 1e-3


def test_cached_features_are_not_mistaken_for_another_dimension_tolerance_or_limit():
    of = prior("se", 0.37)
    assert features(of, 1).index.shape[-1] == 1
    assert features(of, 2).index.shape[-1] == 2
    assert stated(features(of, 2, tolerance=1e-2)) == 1e-2
    assert stated(features(of, 2, tolerance=1e-4)) == 1e-4
    assert features(of, 2, limit=40).count <= 40 < features(of, 2).count


def test_features_created_in_inference_mode_can_be_differentiated_later():
    of = prior("se", 0.371)
    with torch.inference_mode():
        features(of, 1)
    x = f64([[0.2], [0.7]]).requires_grad_()
    assert torch.autograd.gradcheck(features(of, 1), x)


@pytest.mark.parametrize("name", ["se", "matern52"])
def test_points_outside_the_cube_have_features_of_their_box(name):
    """Without it the functions would be mirrored at the boundary, with the opposite sign."""
    of, x = prior(name, [0.3, 0.5]), dense(2) * torch.tensor([4.0, 1.0]).double() - torch.tensor([3.0, 0.0])
    half = (3.5, 0.5)
    assert largest_error(features(of, 2, half=half), of, x) < 1e-3
    assert largest_error(features(of, 2), of, x) > 0.1
    assert torch.equal(features(of, 2, half=(0.5, 0.5))(x), features(of, 2)(x))
