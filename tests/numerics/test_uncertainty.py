"""Uncertainty and its parts against 60-digit definitions, draws, scipy and stored numbers."""

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import scipy.special
import scipy.stats
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import MPContext
from torch import Tensor

import askwise as aw
from askwise.model.belief import Belief
from askwise.model.uncertainty import decompose
from askwise.numerics.improvement import log_expected_improvement
from askwise.numerics.normal import (
    binary_entropy,
    ndtr,
    owens_t,
    standardised,
    success_probability,
    utility_deviation,
    utility_mean,
)
from askwise.numerics.uncertainty import (
    aleatoric_entropy,
    aleatoric_variance,
    epistemic_deviation,
    epistemic_variance,
    houlsby_information,
    log_epistemic_variance,
    mutual_information,
)
from tensors import seeded, uniform

mp = MPContext()  # our own context: the global precision stays unchanged
mp.dps = 60

NAN, INF = math.nan, math.inf
FEW = settings(max_examples=20)
CUSTOM = [
    epistemic_variance,
    log_epistemic_variance,
    aleatoric_variance,
    mutual_information,
    aleatoric_entropy,
]
ALL = [*CUSTOM, houlsby_information]

Point = tuple[float, float]


def f64(values: Any) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def at(f: Callable[[Tensor, Tensor], Tensor], points: Sequence[Point]) -> Tensor:
    return f(*f64(points).T)


def assert_relative(got: Tensor, want: Sequence[Any], tolerance: float, where: Sequence[Any]) -> None:
    for value, exact, point in zip(got.tolist(), want, where, strict=True):
        error = abs(mp.mpf(value) - exact) / abs(exact)
        report = f"at {point}: got {value!r}, want {mp.nstr(exact, 20)}, relative error {mp.nstr(error, 3)}"
        assert error < tolerance, report


# the definitions: law of total variance and chain rule of entropy, with an expectation over f


def Phi(z: Any) -> Any:
    return mp.erfc(-z / mp.sqrt(2)) / 2


def bernoulli_variance(z: Any) -> Any:
    rare = Phi(-abs(z))
    return rare * (1 - rare)


def bernoulli_entropy(z: Any) -> Any:
    rare = Phi(-abs(z))
    return -rare * mp.log(rare) - (1 - rare) * mp.log1p(-rare)


def expected(of: Callable[[Any], Any], mean: Any, var: Any) -> Any:
    """E[of(f)] by the trapezoidal rule, whose error falls faster than any power of the step.

    Variance and entropy fall off as e^(-f^2/2), so the integrand is close to a normal density with the
    mean and variance below.  Cutting at 16 sigma leaves 1e-56; a step of sigma / 3 gives 1e-25 for the
    entropy (the logarithm has branch points 2.8 off the real line) and 1e-50 for the variance.
    """
    centre, width = mean / (1 + var), mp.sqrt(var / (1 + var))
    total = mp.mpf(0)
    for k in range(-48, 49):
        f = centre + width * k / 3
        total += mp.exp(-((f - mean) ** 2) / (2 * var)) * of(f)
    return total * width / (3 * mp.sqrt(2 * mp.pi * var))


@functools.cache
def parts(of: Callable[[Any], Any], mean: Any, var: Any) -> tuple[Any, Any, Any]:
    """Total, epistemic and aleatoric part; the epistemic one loses up to 30 of the 60 digits."""
    mean, var = mp.mpf(mean), mp.mpf(var)
    total = of(mean / mp.sqrt(1 + var))
    aleatoric = expected(of, mean, var)
    return total, total - aleatoric, aleatoric


@functools.cache
def log_variance(mean: Any, var: Any) -> Any:
    """log V[Phi(f)] by the integral over u, the peak scaled to one; it works where V underflows."""
    with mp.workdps(50):
        mean, var = mp.mpf(mean), mp.mpf(var)
        h2, a = mean**2 / (1 + var), 1 / mp.sqrt(1 + 2 * var)
        width = 2 * var / ((1 + 2 * var) * (1 + a))
        falls = [2 * k / h2 for k in (1, 5, 20, 100)] if h2 else []
        cuts = [fall / (mp.sqrt(a**2 + fall) + a) for fall in falls]  # there the exponential is e^-k
        top = min([width, *cuts[-1:]])
        cuts = [mp.mpf(0), *(c for c in cuts if c < top), top]

        def height(s: Any) -> Any:
            u = s * top
            return mp.exp(-h2 * u * (a + u / 2)) / (1 + (a + u) ** 2)

        bulk = mp.quad(height, [c / top for c in cuts]) * top
    with mp.workdps(260):  # mean^2 may be 1e200
        return mp.log(bulk / mp.pi) - mp.mpf(mean) ** 2 / (1 + 2 * mp.mpf(var))


EXACT = {
    epistemic_variance: lambda m, v: parts(bernoulli_variance, m, v)[1],
    aleatoric_variance: lambda m, v: parts(bernoulli_variance, m, v)[2],
    mutual_information: lambda m, v: parts(bernoulli_entropy, m, v)[1],
    aleatoric_entropy: lambda m, v: parts(bernoulli_entropy, m, v)[2],
    log_epistemic_variance: log_variance,
}

VARS = [1e-16, 3e-9, 1e-3, 0.17, 2.9, 30.0, 1e8]
NEAR = [(m, v) for m in (0.0, -1e-5, 0.8, -3.1, -8.0) for v in VARS]
FAR = [(m, v) for m in (-14.0, 30.0) for v in VARS]
EXTREME = [
    (1e100, 1e8),
    (-1e100, 1.0),
    (1e100, 1e-300),
    (3e40, 0.2),
    (-1e6, 7e5),
    (1e6, 1e-16),
    (4e4, 1e8),
    (300.0, 2.0),
    (38.0, 1e-300),
    (-50.0, 40.0),
    (1e100, 1e-150),
    (7e49, 1e-100),
]


def test_the_reference_for_the_logarithm_is_the_definition():
    for mean, var in [(8.0, 1e-16), (0.0, 0.3), (-3.0, 1e8), (5.0, 2.0)]:
        exact = mp.log(parts(bernoulli_variance, mean, var)[1])
        assert abs(log_variance(mean, var) - exact) < 1e-20


# accuracy


def test_epistemic_variance_keeps_twelve_digits():
    exact = [EXACT[epistemic_variance](*point) for point in NEAR]
    assert_relative(at(epistemic_variance, NEAR), exact, 1e-12, NEAR)
    assert_relative(at(epistemic_variance, NEAR), exact, 2e-14, NEAR)  # "measured: 1e-14"


def test_points_in_several_chunks_have_the_variance_of_each_alone(monkeypatch):
    mean, var = 3 * torch.randn(3, 5, generator=seeded(), dtype=torch.float64), 9 * uniform(3, 5)
    want = epistemic_variance(mean, var), log_epistemic_variance(mean, var)
    monkeypatch.setattr("askwise.numerics.uncertainty._CHUNK", 4)
    torch.testing.assert_close((epistemic_variance(mean, var), log_epistemic_variance(mean, var)), want)
    assert torch.autograd.gradcheck(epistemic_variance, (mean.requires_grad_(), var.requires_grad_()))


def test_log_epistemic_variance_is_absolutely_accurate_near_zero():
    points = [*NEAR, *((m, v) for m in (0.0, 1e-200, -3.3, 8.0) for v in (1e-300, 1e-200, 1e-100, 1e-30))]
    for point, got in zip(points, at(log_epistemic_variance, points).tolist(), strict=True):
        exact = log_variance(*point)
        assert abs(got - exact) < 1e-12, f"at {point}: got {got!r}, want {exact}"


def test_log_epistemic_variance_keeps_twelve_digits_far_out():
    points = [*NEAR, *FAR, *EXTREME]
    assert_relative(
        at(log_epistemic_variance, points), [log_variance(*point) for point in points], 1e-12, points
    )


def test_log_epistemic_variance_is_minus_infinity_without_variance():
    assert at(log_epistemic_variance, [(0.0, 0.0), (3.0, 0.0), (-1e100, 0.0)]).tolist() == [-INF] * 3


def test_aleatoric_variance_is_as_accurate_as_owens_t():
    for point, got in zip(NEAR, at(aleatoric_variance, NEAR).tolist(), strict=True):
        exact = EXACT[aleatoric_variance](*point)
        assert abs(got - exact) < 1e-14, f"at {point}: got {got!r}, want {exact}"


def test_mutual_information_keeps_eight_digits():
    points = [*NEAR, *FAR]
    exact = [EXACT[mutual_information](*point) for point in points]
    assert_relative(at(mutual_information, points), exact, 1e-8, points)


def test_aleatoric_entropy_keeps_eight_digits():
    exact = [EXACT[aleatoric_entropy](*point) for point in NEAR]
    assert_relative(at(aleatoric_entropy, NEAR), exact, 1e-8, NEAR)


def test_houlsby_information_is_within_its_stated_error():
    mean, var = torch.cartesian_prod(torch.linspace(0, 8, 81).double(), torch.logspace(-6, 6, 61).double()).T
    error = houlsby_information(mean, var) - mutual_information(mean, var)
    assert error.abs().max() < 0.002


def test_houlsby_information_can_be_slightly_negative():
    assert -0.002 < houlsby_information(f64(2.1), f64(1e-9)) < -0.001


# definitions by draws


@pytest.fixture
def rates(generator):
    mean, var = f64([0.3, -2.0, 1.0]), f64([0.5, 4.0, 0.1])
    z = torch.randn(200_000, 3, generator=generator, dtype=torch.float64)
    return mean, var, mean + var.sqrt() * z


def test_variances_are_those_of_the_success_rate(rates):
    mean, var, f = rates
    torch.testing.assert_close(epistemic_variance(mean, var), ndtr(f).var(0), rtol=1e-2, atol=0)
    torch.testing.assert_close(log_epistemic_variance(mean, var), ndtr(f).var(0).log(), rtol=1e-2, atol=0)
    torch.testing.assert_close(aleatoric_variance(mean, var), (ndtr(f) * ndtr(-f)).mean(0), rtol=1e-2, atol=0)


def test_information_is_the_expected_divergence_of_the_success_rates(rates):
    mean, var, f = rates
    rate, p = ndtr(f), success_probability(mean, var)
    divergence = rate * (rate / p).log() + (1 - rate) * ((1 - rate) / (1 - p)).log()
    torch.testing.assert_close(mutual_information(mean, var), divergence.mean(0), rtol=1e-2, atol=0)
    torch.testing.assert_close(aleatoric_entropy(mean, var), binary_entropy(f).mean(0), rtol=1e-2, atol=0)


# cross-checks


def test_the_first_form_cancels_where_the_integral_does_not():
    points = [(m, v) for m in (0.0, 0.4, -1.7, 3.0, 8.0) for v in (1e-16, 1e-12, 1e-8)]
    exact = [EXACT[epistemic_variance](*point) for point in points]
    mean, var = f64(points).T
    h, a = mean / (1 + var).sqrt(), (1 + 2 * var).rsqrt()
    scipys = f64(scipy.special.owens_t(h.numpy(), a.numpy()))
    for owen in (owens_t(h, a), scipys):
        naive = ndtr(h) * ndtr(-h) - 2 * owen
        error = [abs(got - true) / true for got, true in zip(naive.tolist(), exact, strict=True)]
        assert (naive < 0).any()
        assert sum(e > 0.5 for e in error) > 5, "no correct digit"
    assert_relative(epistemic_variance(mean, var), exact, 1e-12, points)


@pytest.mark.parametrize(("mean", "var"), [(0.3, 0.5), (-1.2, 3.0), (2.0, 0.2), (0.0, 50.0)])
def test_epistemic_variance_agrees_with_the_bivariate_normal_of_scipy(mean, var):
    h, correlation = mean / math.sqrt(1 + var), var / (1 + var)
    both = scipy.stats.multivariate_normal(cov=[[1, correlation], [correlation, 1]]).cdf([h, h])
    expected = both - scipy.stats.norm.cdf(h) ** 2
    assert epistemic_variance(f64(mean), f64(var)).item() == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize(
    ("mean", "var", "rate_variance", "information"),
    [
        (-1.0168147897252093, 0.7320146906141658, 0.04232358477700904, 0.12322983533664655),
        (-0.30230423560452263, 0.7433513697576523, 0.06712164362666492, 0.15547932053941438),
        (1.547668785300933, 1.1766801566445668, 0.03813561745689935, 0.13439762763611318),
        (0.1184665680746417, 0.009215033052961077, 0.0014332679220228073, 0.0028993110054226223),
        (-0.8308115064455617, 1.5155195338816274, 0.08320092275852095, 0.21847945496468957),
        (0.022412893530808393, 0.05277689451025841, 0.007978247323481097, 0.016209394992469983),
        (2.3012672704156136, 0.6234033105603982, 0.004123065216025849, 0.035466472905779825),
    ],
)
def test_values_agree_with_an_independent_implementation(mean, var, rate_variance, information):
    assert epistemic_variance(f64(mean), f64(var)).item() == pytest.approx(rate_variance, rel=1e-10)
    assert houlsby_information(f64(mean), f64(var)).item() == pytest.approx(information, rel=1e-10)


# properties

means, variances = st.floats(-8, 8), st.floats(0, 1e8) | st.floats(-16, 8).map(lambda e: 10**e)
anything, any_variance = st.floats(-1e100, 1e100), st.floats(0, 1e8) | st.floats(-300, 8).map(lambda e: 10**e)


@given(anything | st.floats(-40, 40), any_variance)
@settings(max_examples=60)
def test_no_part_is_negative(mean, var):
    for part in (epistemic_variance, aleatoric_variance, mutual_information, aleatoric_entropy):
        assert part(f64(mean), f64(var)) >= 0
    assert log_epistemic_variance(f64(mean), f64(var)) < math.log(0.25) + 1e-12


@given(means, st.floats(-16, 8).map(lambda e: 10**e))
@FEW
def test_every_part_is_positive(mean, var):
    for part in (epistemic_variance, aleatoric_variance, mutual_information, aleatoric_entropy):
        assert part(f64(mean), f64(var)) > 0


@given(means, variances)
@FEW
def test_swapping_success_and_failure_changes_nothing(mean, var):
    for part in ALL:
        mirrored = part(f64(-mean), f64(var))
        torch.testing.assert_close(part(f64(mean), f64(var)), mirrored, rtol=1e-13, atol=0)
    assert epistemic_variance(f64(mean), f64(var)) == epistemic_variance(f64(-mean), f64(var))


@given(means, variances, variances)
@FEW
def test_more_variance_of_f_is_more_epistemic_uncertainty(mean, one, two):
    var = f64(sorted([one, two]))
    for part, tolerance in ((epistemic_variance, 1e-12), (mutual_information, 1e-8)):
        low, high = part(f64([mean, mean]), var).tolist()
        assert low <= high * (1 + tolerance)


@given(means, variances)
@FEW
def test_variances_add_up_and_respect_their_bounds(mean, var):
    mean, var = f64(mean), f64(var)
    total = success_probability(mean, var) * success_probability(-mean, var)
    epistemic, aleatoric = epistemic_variance(mean, var), aleatoric_variance(mean, var)
    torch.testing.assert_close(epistemic + aleatoric, total, rtol=1e-12, atol=0)
    assert epistemic <= total * (1 + 1e-12)
    assert aleatoric <= total * (1 + 1e-12)
    assert total <= 0.25
    assert epistemic <= var / (2 * math.pi) * (1 + 1e-12)  # the derivative of Phi is at most 1/sqrt(2 pi)


@given(means, variances)
@FEW
def test_entropies_add_up_and_respect_their_bounds(mean, var):
    mean, var = f64(mean), f64(var)
    total = binary_entropy(mean / (1 + var).sqrt())
    epistemic, aleatoric = mutual_information(mean, var), aleatoric_entropy(mean, var)
    torch.testing.assert_close(epistemic + aleatoric, total, rtol=1e-8, atol=0)
    assert epistemic <= total * (1 + 1e-8)
    assert aleatoric <= total * (1 + 1e-8)


@given(means, variances)
@FEW
def test_information_lies_between_its_bounds_by_the_variance(mean, var):
    mean, var = f64(mean), f64(var)
    spread = epistemic_variance(mean, var)
    coin = success_probability(mean, var) * success_probability(-mean, var)
    information = mutual_information(mean, var)
    assert 2 * spread <= information * (1 + 1e-8)  # Pinsker
    assert information <= spread / coin * (1 + 1e-8)  # divergence is at most chi-squared


@given(means, st.floats(-16, 8).map(lambda e: 10**e))
@FEW
def test_the_logarithm_is_that_of_the_variance(mean, var):
    mean, var = f64(mean), f64(var)
    torch.testing.assert_close(
        log_epistemic_variance(mean, var).exp(), epistemic_variance(mean, var), rtol=1e-12, atol=0
    )


@pytest.mark.parametrize("mean", [0.0, -3.0, 8.0])
def test_without_variance_all_uncertainty_is_aleatoric(mean):
    mean, none = f64(mean), f64(0.0)
    assert epistemic_variance(mean, none) == 0
    assert mutual_information(mean, none) == 0
    torch.testing.assert_close(aleatoric_variance(mean, none), ndtr(mean) * ndtr(-mean), rtol=1e-13, atol=0)
    torch.testing.assert_close(aleatoric_entropy(mean, none), binary_entropy(mean), rtol=1e-8, atol=0)


# gradients


def gradient(f: Callable[[Tensor, Tensor], Tensor], mean: float, var: float) -> Tensor:
    inputs = f64(mean).requires_grad_(), f64(var).requires_grad_()
    return torch.stack(torch.autograd.grad(f(*inputs), inputs))


@pytest.mark.parametrize("f", ALL)
def test_gradients_agree_with_differences(f):
    mean = f64([-3.0, -0.4, 0.0, 0.9, 2.0, 5.0]).requires_grad_()
    var = f64([0.5, 0.02, 1.0, 3.0, 40.0, 2.0]).requires_grad_()
    assert torch.autograd.gradcheck(f, (mean, var))


@pytest.mark.parametrize(
    ("f", "tolerance", "points"),
    [
        (epistemic_variance, 1e-12, [(8.0, 1e-16), (-8.0, 0.3), (1e-5, 1.0), (8.0, 1e8)]),
        (aleatoric_variance, 1e-12, [(8.0, 1e-16), (-8.0, 0.3), (1e-5, 1.0), (8.0, 1e8)]),
        (mutual_information, 1e-8, [(30.0, 1e-16), (-30.0, 1.0), (1e-5, 1.0), (30.0, 1e8)]),
        (aleatoric_entropy, 1e-8, [(8.0, 1e-16), (-8.0, 0.3), (1e-5, 1.0), (8.0, 1e8)]),
        (log_epistemic_variance, 1e-12, [(8.0, 1e-16), (0.1, 1e-300), (-1e4, 1e8), (1e3, 1e-3), (40.0, 1.0)]),
    ],
)
def test_gradients_are_right_at_the_edges(f, tolerance, points):
    for mean, var in points:
        step = mp.mpf(10) ** -12  # relative: the curvature then adds an error of 1e-24, or 1e-16 at 1e4
        exact = []
        for index in (0, 1):
            up, down = [mp.mpf(mean), mp.mpf(var)], [mp.mpf(mean), mp.mpf(var)]
            up[index] *= 1 + step
            down[index] *= 1 - step
            exact.append((EXACT[f](*up) - EXACT[f](*down)) / (up[index] - down[index]))
        assert_relative(gradient(f, mean, var), exact, tolerance, [(mean, var)] * 2)


@pytest.mark.parametrize("mean", [0.0, -0.3, 3.0, 8.0, -18.0])
def test_gradients_without_variance_are_finite_and_right(mean):
    density, coin = mp.npdf(mean) ** 2, bernoulli_variance(mp.mpf(mean))
    by_mean, by_var = gradient(epistemic_variance, mean, 0.0)
    assert by_mean == 0
    assert_relative(by_var[None], [density], 1e-12, [mean])
    by_mean, by_var = gradient(mutual_information, mean, 0.0)
    assert by_mean == 0
    assert_relative(by_var[None], [density / (2 * coin)], 1e-8, [mean])


@pytest.mark.parametrize(("mean", "var"), [(1e100, 1e8), (-1e100, 1.0), (1e100, 1e-16), (-1e40, 0.1)])
def test_the_logarithm_has_a_gradient_where_the_variance_underflows(mean, var):
    m, v = mp.mpf(mean), mp.mpf(var)
    assert epistemic_variance(f64(mean), f64(var)) == 0
    exact = [-2 * m / (1 + 2 * v), 2 * (m / (1 + 2 * v)) ** 2]  # the rest is smaller by mean^2
    assert_relative(gradient(log_epistemic_variance, mean, var), exact, 1e-12, [(mean, var)] * 2)


def second_derivative(f: Callable[[Tensor, Tensor], Tensor], through: Callable[[Tensor], Tensor]) -> None:
    mean, var = f64(0.3).requires_grad_(), f64(0.7).requires_grad_()
    first = torch.autograd.grad(f(through(mean), through(var)), (mean, var), create_graph=True)
    torch.autograd.grad(sum(first), (mean, var), allow_unused=True)


@pytest.mark.parametrize("f", [f for f in CUSTOM if f is not aleatoric_variance])
@pytest.mark.parametrize("through", [lambda x: x, torch.square], ids=["plain", "computed"])
def test_second_derivatives_are_refused_rather_than_wrong(f, through):
    with pytest.raises(RuntimeError):
        second_derivative(f, through)


def test_the_aleatoric_variance_has_a_second_derivative():
    mean, var = f64([0.3, -2.0]).requires_grad_(), f64([0.7, 3.0]).requires_grad_()
    assert torch.autograd.gradgradcheck(aleatoric_variance, (mean, var))


# shapes and missing values


@pytest.mark.parametrize("f", ALL)
def test_nan_stays_nan(f):
    got = f(f64([NAN, 0.5, NAN, 0.5]), f64([0.5, NAN, NAN, 0.5]))
    assert got.isnan().tolist() == [True, True, True, False]


@pytest.mark.parametrize("f", ALL)
def test_arguments_broadcast(f):
    mean, var = f64([[0.1], [0.2], [3.0]]), f64([0.5, 2.0])
    together = f(mean, var)
    assert together.shape == (3, 2)
    torch.testing.assert_close(together, f(mean.expand(3, 2), var.expand(3, 2)), rtol=1e-15, atol=0)


@pytest.mark.parametrize("f", ALL)
def test_shapes_are_kept(f):
    for shape in [(), (0,), (2, 1, 3)]:
        assert (
            f(torch.zeros(shape, dtype=torch.float64), torch.ones(shape, dtype=torch.float64)).shape == shape
        )


# decompose


@pytest.fixture
def belief() -> Belief:
    answers = aw.Data.binary([[0.1, 0.2], [0.8, 0.7], [0.4, 0.9]], [0, 1, 1])
    duels = aw.Data.duels([[[0.5, 0.5], [0.1, 0.2]]], [1])
    return aw.infer(answers + duels, aw.kernel("se", [0.3, 0.4], 2.0))


X = [[0.5, 0.5], [0.05, 0.15], [0.9, 0.1], [0.8, 0.7]]
Y = [[0.1, 0.9], [0.7, 0.7], [0.3, 0.3], [0.8, 0.6]]


@pytest.mark.parametrize("other", [None, Y], ids=["points", "duels"])
@pytest.mark.parametrize("measure", ["variance", "entropy"])
def test_uncertainty_is_the_sum_of_its_parts(belief, other, measure):
    other = None if other is None else f64(other)
    found = decompose(belief, f64(X), other, measure)
    assert found.total.shape == found.epistemic.shape == found.aleatoric.shape == (4,)
    assert (found.epistemic > 0).all()
    assert (found.aleatoric > 0).all()
    torch.testing.assert_close(found.total, found.epistemic + found.aleatoric, rtol=1e-8, atol=0)


@pytest.mark.parametrize("other", [None, Y], ids=["points", "duels"])
def test_uncertainty_follows_from_the_moments_of_the_belief(belief, other):
    x, other = f64(X), None if other is None else f64(other)
    mean, var = belief.moments(x) if other is None else belief.difference(x, other)
    p = belief.success_probability(x, other)
    by_variance, by_entropy = decompose(belief, x, other), decompose(belief, x, other, "entropy")
    for got, want in [
        (by_variance.total, p * (1 - p)),
        (by_variance.epistemic, epistemic_variance(mean, var)),
        (by_variance.aleatoric, aleatoric_variance(mean, var)),
        (by_entropy.total, -p * p.log() - (1 - p) * (1 - p).log()),
        (by_entropy.epistemic, mutual_information(mean, var)),
        (by_entropy.aleatoric, aleatoric_entropy(mean, var)),
    ]:
        torch.testing.assert_close(got, want, rtol=1e-12, atol=0)


@pytest.mark.parametrize("measure", ["variance", "entropy"])
def test_uncertainty_about_a_duel_does_not_depend_on_the_order(belief, measure):
    one, two = (decompose(belief, *pair, measure) for pair in [(f64(X), f64(Y)), (f64(Y), f64(X))])
    torch.testing.assert_close(one.epistemic, two.epistemic, rtol=1e-10, atol=0)
    torch.testing.assert_close(one.total, two.total, rtol=1e-10, atol=0)


@pytest.mark.parametrize(("measure", "coin"), [("variance", 0.25), ("entropy", math.log(2))])
def test_a_duel_of_a_point_with_itself_has_no_epistemic_uncertainty(belief, measure, coin):
    found = decompose(belief, f64(X), f64(X), measure)
    assert (found.epistemic == 0).all()
    torch.testing.assert_close(found.aleatoric, torch.full_like(found.aleatoric, coin), rtol=1e-8, atol=0)


def test_uncertainty_is_by_variance_by_default(belief):
    assert decompose(belief, f64(X)).total.equal(decompose(belief, f64(X), measure="variance").total)


def test_uncertainty_agrees_with_draws_of_the_duel(belief, generator):
    mean, var = belief.difference(f64(X), f64(Y))
    won = ndtr(mean + var.sqrt() * torch.randn(200_000, 4, generator=generator, dtype=torch.float64))
    found = decompose(belief, f64(X), f64(Y))
    torch.testing.assert_close(found.epistemic, won.var(0), rtol=2e-2, atol=0)
    torch.testing.assert_close(found.total, won.mean(0) * (1 - won.mean(0)), rtol=1e-2, atol=0)


@pytest.mark.parametrize("measure", ["variance", "entropy"])
def test_one_champion_meets_many_challengers(belief, measure):
    many, champion = f64([X, Y]), f64(X[2:3]).expand(4, 2)
    together = decompose(belief, many, champion, measure)
    assert together.total.shape == (2, 4)
    alone = decompose(belief, f64(Y), champion, measure)
    torch.testing.assert_close(together.epistemic[1], alone.epistemic, rtol=1e-12, atol=0)


@pytest.mark.parametrize("measure", ["variance", "entropy"])
def test_uncertainty_is_differentiable_in_the_points(belief, measure):
    x, y = f64(X).requires_grad_(), f64(Y).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: decompose(belief, x, None, measure).epistemic, x)
    assert torch.autograd.gradcheck(lambda x, y: decompose(belief, x, y, measure).epistemic, (x, y))


def test_an_unknown_measure_is_refused(belief):
    unchecked = inspect.unwrap(decompose)  # past the type checks of the tests
    with pytest.raises(
        ValueError, match=r"^measure must be 'variance' or 'entropy'; got 'bits'\. Choose one of the two\.$"
    ):
        unchecked(belief, f64(X), measure="bits")


SLOPED = [
    epistemic_variance,
    log_epistemic_variance,
    epistemic_deviation,
    standardised,
    success_probability,
    log_expected_improvement,
    utility_mean,
    utility_deviation,
    success_probability.plus(epistemic_deviation, 1.7),
    utility_mean.plus(utility_deviation, -0.4),
]


@pytest.mark.parametrize("f", SLOPED)
def test_slopes_in_closed_form_are_those_of_autograd_and_of_differences_also_in_the_tails(f):
    mean = f64([-300.0, -20.0, -3.0, -0.4, 0.0, 0.9, 5.0, 30.0, 8.0, -6.0])
    var = f64([9.0, 1e4, 0.5, 0.02, 1.0, 3.0, 1e-12, 2.0, 1e8, 0.3])
    value, *slopes = f.with_slopes(mean.clone(), var.clone())
    torch.testing.assert_close(value, f(mean, var), rtol=1e-12, atol=0)
    inputs = mean.clone().requires_grad_(), var.clone().requires_grad_()
    each = torch.autograd.grad(f(*inputs).sum(), inputs, materialize_grads=True)
    for got, want in zip(slopes, each, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-10, atol=1e-300)
    near = torch.tensor([2, 3, 4, 5])  # where differences keep enough digits
    for index, step in ((0, f64([1e-6, 0.0])), (1, f64([0.0, 1e-6]))):
        up, down = (f(mean[near] + sign * step[0], var[near] + sign * step[1]) for sign in (1, -1))
        torch.testing.assert_close(slopes[index][near], (up - down) / 2e-6, rtol=1e-5, atol=1e-9)
