"""The standard normal against 50-digit arithmetic, its defining integrals, and scipy."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import scipy.special
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import MPContext
from torch import Tensor

from askwise.numerics.normal import (
    binary_entropy,
    gauss_legendre,
    hazard,
    log_ndtr,
    ndtr,
    owens_t,
    success_probability,
    truncated_moments,
)

mp = MPContext()  # our own context: the global precision stays unchanged
mp.dps = 60

INF = math.inf
FEW = settings(max_examples=20)


def f64(values: Any) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def assert_relative(got: Tensor, want: Sequence[Any], tolerance: float, at: Sequence[Any]) -> None:
    for value, exact, where in zip(got.tolist(), want, at, strict=True):
        error = abs(mp.mpf(value) - exact) / abs(exact)
        report = f"at {where}: got {value!r}, want {mp.nstr(exact, 20)}, relative error {mp.nstr(error, 3)}"
        assert error < tolerance, report


def slope(f: Callable[[Tensor], Tensor], z: Sequence[float]) -> Tensor:
    x = f64(z).requires_grad_()
    return torch.autograd.grad(f(x).sum(), x)[0]


# 60 digits, and more where the closed form cancels


def phi(z: Any) -> Any:
    return mp.exp(-(z**2) / 2) / mp.sqrt(2 * mp.pi)


def Phi(z: Any) -> Any:
    return mp.erfc(-z / mp.sqrt(2)) / 2


def log_Phi(z: Any) -> Any:
    return mp.log(Phi(z)) if z < 0 else mp.log1p(-Phi(-z))


def entropy(z: Any) -> Any:
    return -Phi(z) * log_Phi(z) - Phi(-z) * log_Phi(-z)


def moments(z: float) -> tuple[Any, Any, Any]:
    """Hazard, depth and variance from the closed forms, which lose up to 6 log10(z) digits."""
    with mp.workdps(70 + 6 * max(0, int(math.log10(abs(z) + 1)))):
        rate = phi(mp.mpf(z)) / Phi(mp.mpf(z))
        depth = z + rate
        return rate, depth, 1 - rate * depth


def moments_by_quadrature(z: float) -> tuple[Any, Any]:
    """Depth and variance of s = z - t, whose density over s > 0 is e^(z s - s^2/2); nothing cancels."""
    with mp.workdps(50):
        unit = 1 / max(mp.mpf(1), -mp.mpf(z))
        peak = max(mp.mpf(z), mp.mpf(0)) / unit

        def integral(g: Callable[[Any], Any]) -> Any:
            cuts = sorted({mp.mpf(0), *(max(mp.mpf(0), peak + k) for k in (-14, -4, 0, 4, 16, 110))})
            top = peak * unit * z - (peak * unit) ** 2 / 2
            return mp.quad(lambda y: g(y * unit) * mp.exp(y * unit * z - (y * unit) ** 2 / 2 - top), cuts)

        mass = integral(lambda s: mp.mpf(1))
        depth = integral(lambda s: s / unit) / mass * unit
        return depth, integral(lambda s: ((s - depth) / unit) ** 2) / mass * unit**2


def owen(h: float, a: float) -> Any:
    """The defining integral in the angle arctan(t), the peak scaled to one, cut at 20 sigma."""
    with mp.workdps(50):
        size, side = abs(mp.mpf(h)), mp.sign(a)
        if size == INF or side == 0:
            return mp.mpf(0)
        top = mp.atan(abs(mp.mpf(a)))
        cuts = [mp.atan(k / size) for k in (1, 4, 10, 20)] if size else [top]
        top = min(top, cuts[-1])
        cuts = [mp.mpf(0), *(c for c in cuts if c < top), top]
        bulk = mp.quad(lambda s: mp.exp(-((size * mp.tan(s * top)) ** 2) / 2), [c / top for c in cuts])
        return side * mp.exp(-(size**2) / 2) * top * bulk / (2 * mp.pi)


# points: a grid, random ones, the ends of each stated domain, and where branches change

_random = np.random.default_rng(0)
BELOW = sorted([*_random.uniform(-37, 0, 150).tolist(), *np.linspace(-37, 0, 75).tolist()])
ABOVE = [-z for z in BELOW]
FAR_BELOW = [-1e154, -1.3e100, -1e100, -3.7e30, -1e8, -123456.7, -1e3, -101.3, -50.1]
AROUND_EIGHT = np.linspace(-12, -4, 81).tolist()


def test_gauss_legendre_integrates_polynomials_exactly():
    for count in (1, 2, 7, 20):
        nodes, weights = gauss_legendre(count, f64(0.0))
        assert nodes.shape == weights.shape == (count,)
        assert ((nodes > 0) & (nodes < 1)).all()
        assert (weights > 0).all()
        for degree in range(2 * count):
            assert (nodes**degree @ weights).item() == pytest.approx(1 / (degree + 1), rel=1e-13)


def test_gauss_legendre_has_the_dtype_of_like():
    assert all(part.dtype == torch.float32 for part in gauss_legendre(3, torch.zeros(2, dtype=torch.float32)))


# ndtr, log_ndtr, hazard


@pytest.mark.parametrize(("low", "high"), [(-37, -23), (-23, 0)])
def test_ndtr_keeps_thirteen_digits_in_the_lower_tail(low, high):
    z = [x for x in BELOW if low <= x <= high]
    assert_relative(ndtr(f64(z)), [Phi(mp.mpf(x)) for x in z], 3e-13, z)


def test_ndtr_keeps_thirteen_digits_in_the_upper_tail():
    z = [*ABOVE, 1e-300, 1e10, 1.7e308]
    assert_relative(ndtr(f64(z)), [Phi(mp.mpf(x)) for x in z], 3e-13, z)
    assert ndtr(f64([-INF, INF])).tolist() == [0, 1]


def test_ndtr_of_torch_has_no_correct_digit_at_minus_nine():
    z, exact = f64(-9.0), Phi(mp.mpf(-9))
    assert abs(torch.special.ndtr(z).item() - exact) / exact > 0.5
    assert abs(ndtr(z).item() - exact) / exact < 3e-13


def test_log_ndtr_keeps_thirteen_digits_in_the_lower_tail():
    z = [*BELOW, *AROUND_EIGHT, *FAR_BELOW, -1.3e154, -1e-300]
    assert_relative(log_ndtr(f64(z)), [log_Phi(mp.mpf(x)) for x in z], 3e-13, z)


@pytest.mark.parametrize(("low", "high"), [(0, 23), (23, 37)])
def test_log_ndtr_keeps_thirteen_digits_in_the_upper_tail(low, high):
    z = [x for x in ABOVE if low <= x <= high]
    assert_relative(log_ndtr(f64(z)), [log_Phi(mp.mpf(x)) for x in z], 3e-13, z)


@pytest.mark.parametrize("z", [37.1, 37.9, 40.0, 1e154])
def test_log_ndtr_is_nearly_zero_above_37(z):
    assert -1e-296 < log_ndtr(f64(z)) <= 0


def test_hazard_keeps_thirteen_digits_in_the_lower_tail():
    z = [*BELOW, *AROUND_EIGHT, *FAR_BELOW, -1e300]
    assert_relative(hazard(f64(z)), [moments(x)[0] if x > -1e200 else -mp.mpf(x) for x in z], 3e-13, z)


@pytest.mark.parametrize(("low", "high"), [(0, 23), (23, 37)])
def test_hazard_keeps_thirteen_digits_in_the_upper_tail(low, high):
    z = [x for x in ABOVE if low <= x <= high]
    assert_relative(hazard(f64(z)), [phi(mp.mpf(x)) / Phi(mp.mpf(x)) for x in z], 3e-13, z)


def test_hazard_is_below_1e_296_above_37():
    z = f64([math.nextafter(37, 38), 37.5, 38.0, 40.0, 1e154, 1e300, INF])
    assert ((hazard(z) >= 0) & (hazard(z) < 1e-296)).all()


# truncated_moments


@pytest.mark.parametrize("part", [0, 1, 2], ids=["hazard", "depth", "variance"])
@pytest.mark.parametrize(
    "z",
    [[z for z in FAR_BELOW if z >= -1e100], AROUND_EIGHT, BELOW, ABOVE],
    ids=["far below", "around -8", "below", "above"],
)
def test_truncated_moments_keep_twelve_digits(z, part):
    assert_relative(truncated_moments(f64(z))[part], [moments(x)[part] for x in z], 1e-12, z)


@pytest.mark.parametrize("z", [-1e100, -1e4, -30.0, -8.1, -7.9, -3.0, 0.0, 2.0, 20.0])
def test_truncated_moments_are_those_of_a_normal_below_z(z):
    _, depth, var = truncated_moments(f64([z]))
    exact_depth, exact_var = moments_by_quadrature(z)
    assert_relative(depth, [exact_depth], 1e-12, [z])
    assert_relative(var, [exact_var], 1e-12, [z])


def test_truncated_moments_agree_with_draws(generator):
    t = torch.randn(400_000, generator=generator, dtype=torch.float64)
    for z in (-1.0, 0.3, 2.0):
        below = t[t < z]
        _, depth, var = truncated_moments(f64(z))
        torch.testing.assert_close(z - below.mean(), depth, rtol=1e-2, atol=0)
        torch.testing.assert_close(below.var(), var, rtol=2e-2, atol=0)


# success_probability, binary_entropy


@pytest.mark.parametrize(("low", "high"), [(-37, -23), (-23, 9)])
def test_success_probability_is_as_accurate_as_ndtr(low, high):
    random = np.random.default_rng(1)
    var = 10 ** random.uniform(-16, 8, 150)
    mean = random.uniform(low, high, 150) * np.sqrt(1 + var) * (1 - 1e-12)
    points = list(zip(mean.tolist(), var.tolist(), strict=True))
    exact = [Phi(m / mp.sqrt(1 + mp.mpf(v))) for m, v in points]
    assert_relative(success_probability(f64(mean), f64(var)), exact, 1e-12, points)


@pytest.mark.parametrize(("mean", "var"), [(0.7, 0.5), (-4.0, 3.0), (-8.0, 1e-3), (2.0, 20.0)])
def test_success_probability_is_the_expected_success_rate(mean, var):
    step = mp.mpf(1) / 10  # the trapezoidal rule: its error falls faster than any power of the step
    width = mp.sqrt(mp.mpf(var))
    rate = step * sum(phi(k * step) * Phi(mean + width * k * step) for k in range(-280, 140))
    assert abs(success_probability(f64(mean), f64(var)).item() - rate) / rate < 1e-12


def test_success_probability_is_the_mean_over_draws(generator):
    mean, var = f64([0.3, -2.0]), f64([0.5, 4.0])
    f = mean + var.sqrt() * torch.randn(400_000, 2, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(success_probability(mean, var), ndtr(f).mean(0), rtol=1e-2, atol=0)


def test_binary_entropy_keeps_twelve_digits():
    z = [*BELOW, *ABOVE]
    assert_relative(binary_entropy(f64(z)), [entropy(mp.mpf(x)) for x in z], 1e-12, z)


# owens_t

H = [0.0, 5e-324, 1e-8, 0.3, 2.5, 6.0, 9.5, 1e200, INF]
A = [0.0, 5e-324, 1e-8, 0.3, 0.9, 1.0, 1.1, 40.0, 1e200, INF]
PLANE = [(h, a) for h in H for a in A]


def test_owens_t_is_its_defining_integral():
    h, a = f64(PLANE).T
    exact = [owen(*point) for point in PLANE]
    for sign_h, sign_a in [(1, 1), (1, -1), (-1, 1), (-1, -1)]:
        got = owens_t(sign_h * h, sign_a * a)
        for point, value, want in zip(PLANE, got.tolist(), exact, strict=True):
            error = abs(value - sign_a * want)
            assert error < 1e-14, f"T at {point}, signs {sign_h}, {sign_a}: got {value!r}, want {want}"
            assert error < 2e-16, "the docstring states a measured 1e-16"


@pytest.mark.parametrize(("h", "a"), [(5.0, 1.0001), (12.0, 1.5), (20.0, 1.01), (3.0, 40.0), (30.0, 1e6)])
def test_owens_t_does_not_cancel_for_large_a(h, a):
    assert_relative(owens_t(f64([h]), f64([a])), [owen(h, a)], 1e-12, [(h, a)])


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
@settings(max_examples=80)
def test_owens_t_agrees_with_scipy_on_all_floats(h, a):
    assert abs(owens_t(f64(h), f64(a)).item() - scipy.special.owens_t(h, a)) < 1e-14


def test_owens_t_agrees_with_scipy_where_it_is_not_nearly_zero():
    random = np.random.default_rng(2)
    h, a = random.uniform(-5, 5, 20_000), random.choice([-1, 1], 20_000) * 10 ** random.uniform(-3, 3, 20_000)
    assert np.abs(owens_t(f64(h), f64(a)).numpy() - scipy.special.owens_t(h, a)).max() < 1e-14


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
@FEW
def test_owens_t_is_even_in_h_and_odd_in_a(h, a):
    t = owens_t(f64(h), f64(a))
    assert t == owens_t(f64(-h), f64(a))
    assert t == -owens_t(f64(h), f64(-a))


@given(st.floats(-40, 40))
@FEW
def test_owens_t_at_a_equal_one_is_half_the_bernoulli_variance(h):
    torch.testing.assert_close(
        owens_t(f64(h), f64(1.0)), ndtr(f64(h)) * ndtr(f64(-h)) / 2, rtol=1e-12, atol=0
    )


@given(st.floats(-1e6, 1e6))
@FEW
def test_owens_t_has_its_closed_forms_at_the_edges(x):
    assert owens_t(f64(x), f64(0.0)) == 0
    assert owens_t(f64(INF), f64(x)) == 0
    torch.testing.assert_close(
        owens_t(f64(0.0), f64(x)), torch.atan(f64(x)) / (2 * math.pi), rtol=0, atol=1e-15
    )
    torch.testing.assert_close(owens_t(f64(x), f64(INF)), ndtr(-f64(x).abs()) / 2, rtol=0, atol=1e-15)


@given(st.floats(-40, 40), st.floats(0, 1e6), st.floats(0, 1e6))
@FEW
def test_owens_t_grows_with_a_and_stays_below_a_quarter(h, a, b):
    low, high = owens_t(f64([h, h]), f64(sorted([a, b]))).tolist()
    assert 0 <= low <= high + 1e-16
    assert high <= 0.25


def test_owens_t_is_the_probability_of_a_wedge(generator):
    x, y = torch.randn(2, 400_000, generator=generator, dtype=torch.float64)
    for h, a in [(0.5, 0.7), (0.2, 3.0), (1.0, 1.0)]:
        share = ((x > h) & (y > 0) & (y < a * x)).double().mean()
        torch.testing.assert_close(owens_t(f64(h), f64(a)), share, rtol=3e-2, atol=0)


# properties of the one-argument functions

reals = st.floats(-36, 36)


@given(reals)
@FEW
def test_probabilities_of_both_sides_add_up_to_one(z):
    assert (ndtr(f64(z)) + ndtr(f64(-z))).item() == pytest.approx(1, abs=1e-15)


@given(reals)
@FEW
def test_log_ndtr_is_the_logarithm_of_ndtr(z):
    torch.testing.assert_close(log_ndtr(f64(z)), ndtr(f64(z)).log(), rtol=1e-12, atol=1e-15)


@given(reals, reals)
@FEW
def test_probability_grows_and_hazard_falls(a, b):
    z = f64(sorted([a, b]))
    assert ndtr(z).diff() >= 0
    assert log_ndtr(z).diff() >= 0
    low, high = hazard(z).tolist()
    assert high <= low * (1 + 1e-12)


@given(st.floats(-1e100, 37))
@FEW
def test_truncated_moments_respect_their_bounds(z):
    rate, depth, var = truncated_moments(f64(z))
    assert rate > 0
    assert depth > 0
    assert 0 < var <= 1
    assert var <= depth.square() * (1 + 1e-9)  # log-concave: at least as concentrated as an exponential


@given(reals)
@FEW
def test_binary_entropy_is_symmetric_and_at_most_one_bit(z):
    assert binary_entropy(f64(z)) == binary_entropy(f64(-z))
    assert 0 < binary_entropy(f64(z)) <= math.log(2) * (1 + 1e-15)


@given(st.floats(-8, 8), st.floats(0, 1e8))
@FEW
def test_more_variance_moves_the_success_probability_towards_a_half(mean, var):
    known = ndtr(f64(mean)).item() - 0.5
    uncertain = success_probability(f64(mean), f64(var)).item() - 0.5
    assert abs(uncertain) <= abs(known)
    assert known * uncertain >= 0


# gradients

DEPTHS = [-1e8, -1e5, -1e3, -30.0, -9.0, -8.1, -7.9, -5.0, -1.0, 0.5, 5.0, 20.0, 26.0]
SINGLE = {
    "ndtr": ndtr,
    "log_ndtr": log_ndtr,
    "hazard": hazard,
    "depth": lambda z: truncated_moments(z)[1],
    "variance": lambda z: truncated_moments(z)[2],
    "binary_entropy": binary_entropy,
}


@pytest.mark.parametrize("f", SINGLE.values(), ids=SINGLE)
def test_gradients_agree_with_differences(f):
    z = f64([-12.3, -7.1, -2.0, -0.1, 0.4, 1.7, 4.0]).requires_grad_()
    assert torch.autograd.gradcheck(f, z)


@pytest.mark.parametrize(("f", "at"), [(success_probability, 0.6), (owens_t, 0.6), (owens_t, -2.5)])
def test_gradients_in_two_arguments_agree_with_differences(f, at):
    first = f64([-3.0, -0.2, 0.0, 1.1, 2.0]).requires_grad_()
    second = torch.full_like(first, at).requires_grad_()
    assert torch.autograd.gradcheck(f, (first, second))


@pytest.mark.parametrize("z", DEPTHS)
def test_the_gradient_of_log_ndtr_is_the_hazard(z):
    assert_relative(slope(log_ndtr, [z]), [moments(z)[0]], 1e-12, [z])


@pytest.mark.parametrize("z", [*DEPTHS, 36.0])
def test_the_gradient_of_hazard_is_right_in_both_tails(z):
    rate, depth, _ = moments(z)
    assert_relative(slope(hazard, [z]), [-rate * depth], 1e-12, [z])
    assert_relative(slope(lambda x: truncated_moments(x)[0], [z]), [-rate * depth], 1e-12, [z])


@pytest.mark.parametrize("z", DEPTHS)
def test_the_gradients_of_truncated_moments_are_right_in_both_tails(z):
    with mp.workdps(150):  # the variance is the derivative of the depth; its own is that of -rate * depth
        rate = phi(mp.mpf(z)) / Phi(mp.mpf(z))
        depth = z + rate
        var = 1 - rate * depth
        by_z = rate * (depth**2 - var)
    assert_relative(slope(lambda x: truncated_moments(x)[1], [z]), [var], 1e-10, [z])
    assert_relative(slope(lambda x: truncated_moments(x)[2], [z]), [by_z], 1e-10, [z])


@pytest.mark.parametrize("z", [-36.0, -20.0, -3.0, 0.5, 8.0, 20.0, 36.0])
def test_gradients_of_probability_and_entropy_are_right_in_both_tails(z):
    density = phi(mp.mpf(z))
    assert_relative(slope(ndtr, [z]), [density], 1e-12, [z])
    assert_relative(
        slope(binary_entropy, [z]), [density * (log_Phi(-mp.mpf(z)) - log_Phi(mp.mpf(z)))], 1e-12, [z]
    )


def gradient(f: Callable[..., Tensor], *at: float) -> list[float]:
    inputs = [f64(x).requires_grad_() for x in at]
    return [g.item() for g in torch.autograd.grad(f(*inputs), inputs)]


@pytest.mark.parametrize(
    ("h", "a"), [(0.3, 0.5), (-2.0, 0.9), (1.5, -1.7), (8.0, 1.2), (-6.0, 1e-8), (1e-8, 1e6), (30.0, 0.1)]
)
def test_gradients_of_owens_t_are_those_of_its_integral(h, a):
    d = mp.mpf(10) ** -12
    by_h, by_a = (
        (owen(h + d * abs(h), a) - owen(h - d * abs(h), a)) / (2 * d * abs(h)),
        (owen(h, a + d * abs(a)) - owen(h, a - d * abs(a))) / (2 * d * abs(a)),
    )
    assert_relative(f64(gradient(owens_t, h, a)), [by_h, by_a], 1e-12, [(h, a)] * 2)


@pytest.mark.parametrize("a", [0.0, -0.0, 0.5, -3.0, INF, -INF])
def test_gradients_of_owens_t_vanish_at_infinite_h(a):
    assert gradient(owens_t, INF, a) == [0, 0]
    assert gradient(owens_t, -INF, a) == [0, 0]


@pytest.mark.parametrize("h", [0.0, 1e-8, -0.4, 2.0, 40.0])
def test_gradients_of_owens_t_at_infinite_a_are_those_of_the_tail(h):
    by_h, by_a = gradient(owens_t, h, INF)
    assert by_a == 0
    assert by_h == pytest.approx(-np.sign(h) * math.exp(-(h**2) / 2) / math.sqrt(8 * math.pi), rel=1e-12)


@pytest.mark.parametrize("through", [lambda x: x, torch.square], ids=["plain", "computed"])
def test_owens_t_and_the_tails_can_be_differentiated_twice(through):
    h, a = f64([0.3, -2.0]).requires_grad_(), f64([0.7, 1.5]).requires_grad_()
    assert torch.autograd.gradgradcheck(lambda h, a: owens_t(through(h), through(a)), (h, a))
    for f in (log_ndtr, hazard):
        assert torch.autograd.gradgradcheck(
            lambda z, f=f: f(through(z)), (f64([-7.0, 0.4]).requires_grad_(),)
        )


# shapes and missing values

NAN = math.nan


@pytest.mark.parametrize("f", [*SINGLE.values(), lambda z: truncated_moments(z)[0]])
def test_nan_stays_nan(f):
    assert f(f64([NAN, 0.0, NAN])).isnan().tolist() == [True, False, True]


@pytest.mark.parametrize("f", [owens_t, success_probability])
def test_nan_in_either_argument_stays_nan(f):
    assert f(f64([NAN, 0.5, NAN, 0.5]), f64([0.5, NAN, NAN, 0.5])).isnan().tolist() == [
        True,
        True,
        True,
        False,
    ]


@pytest.mark.parametrize("f", [owens_t, success_probability])
def test_arguments_broadcast(f):
    first, second = f64([[0.1], [0.2], [3.0]]), f64([0.5, 2.0])
    together = f(first, second)
    assert together.shape == (3, 2)
    torch.testing.assert_close(together, f(first.expand(3, 2), second.expand(3, 2)), rtol=0, atol=0)


@pytest.mark.parametrize("f", SINGLE.values(), ids=SINGLE)
def test_shapes_are_kept(f):
    for shape in [(), (0,), (2, 1, 3)]:
        assert f(torch.zeros(shape, dtype=torch.float64)).shape == shape
