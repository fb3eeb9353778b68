"""Expected improvements against their definitions in 50-digit arithmetic, scipy and draws."""

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.special
import scipy.stats
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import MPContext
from torch import Tensor

from askwise.numerics.improvement import expected_best, log_expected_improvement, log_rate_improvement
from askwise.numerics.normal import success_probability
from tensors import f64, seeded

mp = MPContext()  # our own context: the global precision stays unchanged
mp.dps = 50

RATE_ERROR = 1e-9
FEW = settings(max_examples=20)
HAND_WRITTEN = [log_expected_improvement, log_rate_improvement]
ALL = [*HAND_WRITTEN, expected_best]


def Phi(z: Any) -> Any:
    return mp.erfc(-z / mp.sqrt(2)) / 2


def log_improvement(mean: Any, var: Any) -> Any:
    """log E[f_+]; about 4 log10 |z| digits cancel."""
    z = mp.mpf(mean) / mp.sqrt(mp.mpf(var))
    with mp.workdps(50 + int(4 * mp.log10(1 + abs(z)))):
        mean, sd = mp.mpf(mean), mp.sqrt(mp.mpf(var))
        return mp.log(mean * Phi(mean / sd) + sd * mp.npdf(mean / sd))


def best(first: Any, second: Any, var: Any) -> Any:
    return mp.mpf(second) + mp.exp(log_improvement(mp.mpf(first) - mp.mpf(second), var))


@functools.cache
def panel() -> list[tuple[Any, Any]]:
    """Gauss-Legendre nodes and weights on [0, 1], in full precision."""
    rule = []
    for near in np.polynomial.legendre.leggauss(16)[0].tolist():
        x = mp.findroot(lambda x: mp.legendre(16, x), (near, near + 1e-12))
        slope = 16 * (x * mp.legendre(16, x) - mp.legendre(15, x)) / (x**2 - 1)
        rule.append(((1 + x) / 2, 1 / ((1 - x**2) * slope**2)))
    return rule


def bisected(holds: Callable[[Any], bool], low: Any, high: Any) -> Any:
    """The end of the range between ``low`` and ``high`` in which ``holds`` is true, by bisection."""
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return high


@functools.cache
def log_rate(mean: Any, var: Any, bar: Any) -> Any:
    """log E[(Phi(f) - Phi(bar))_+], an integral over f > bar of a log-concave function.

    Cut at e^-50 of its peak, in panels at most 2 wide where Phi bends.
    """
    mean, var, bar = mp.mpf(mean), mp.mpf(var), mp.mpf(bar)

    def gain(f: Any) -> Any:
        return Phi(f) - Phi(bar) if bar < 0 else Phi(-bar) - Phi(-f)

    def log_height(f: Any) -> Any:
        return mp.log(gain(f)) - (f - mean) ** 2 / (2 * var)

    def rises(f: Any) -> bool:
        return mp.npdf(f) / gain(f) > (f - mean) / var

    step = mp.sqrt(var)
    start = max(bar, mean) + step * mp.mpf(10) ** -20
    while rises(start + step):
        step *= 2
    peak = bisected(rises, start, start + step)
    top = log_height(peak)

    def seen(f: Any) -> bool:
        return f > bar and log_height(f) > top - 50

    width = mp.sqrt(var)
    while seen(peak + width) or seen(peak - width):
        width *= 2
    right, left = bisected(seen, peak, peak + width), max(bar, bisected(seen, peak, peak - width))
    even = {left + (right - left) * k / 12 for k in range(13)}
    cuts = sorted(even | {mp.mpf(k) for k in range(-16, 17, 2) if left < k < right})
    total = sum(
        w * (end - begin) * mp.exp(log_height(begin + (end - begin) * x) - top)
        for begin, end in itertools.pairwise(cuts)
        for x, w in panel()
    )
    return mp.log(total) + top - mp.log(2 * mp.pi * var) / 2


def slope_of(exact: Callable[..., Any], point: tuple[float, ...], index: int, step: float = 1e-10) -> Any:
    """Derivative in one argument, by a high-precision finite difference."""
    up, down = [mp.mpf(value) for value in point], [mp.mpf(value) for value in point]
    size = max(abs(up[index]), mp.mpf(10) ** -3) * step
    up[index] += size
    down[index] -= size
    return (exact(*up) - exact(*down)) / (2 * size)


def gradient(f: Callable[..., Tensor], *point: float) -> list[float]:
    """Gradient in mean and variance; the bar has none."""
    inputs = [f64(value).requires_grad_() for value in point]
    if f is log_rate_improvement:
        inputs[2].requires_grad_(False)
    wanted = [value for value in inputs if value.requires_grad]
    return [slope.item() for slope in torch.autograd.grad(f(*inputs), wanted)]


# the logarithm of the expected improvement

DEVIATIONS = [-37.0, -30.2, -12.0, -5.001, -4.999, -2.0, -0.3, 0.0, 1e-8, 0.7, 3.0, 8.5, 36.9, 40.0, 1e3, 1e8]
SIZES = [1e-5, 1e-2, 1.0, 7.3, 1e3]
WIDE = [
    (mean, var)
    for mean in (-8.0, -3.1, -0.2, -1e-9, 0.0, 1e-9, 0.6, 4.0, 8.0)
    for var in (1e-10, 1e-5, 0.03, 1.0, 26.0, 1e6)
]


@pytest.mark.parametrize("deviations", DEVIATIONS)
def test_log_improvement_is_absolutely_accurate_down_to_minus_37_deviations(deviations):
    for size in SIZES:
        mean, var = deviations * size, size**2
        got = log_expected_improvement(f64(mean), f64(var)).item()
        assert abs(got - log_improvement(mean, var)) < 1e-12, (mean, var)


@pytest.mark.parametrize("deviations", [-37.1, -50.0, -303.0, -1e4, -8e5, -1e12, -1e30])
def test_log_improvement_is_relatively_accurate_beyond(deviations):
    for size in SIZES:
        mean, var = deviations * size, size**2
        exact = log_improvement(mean, var)
        got = log_expected_improvement(f64(mean), f64(var)).item()
        assert abs(got - exact) < 1e-12 * abs(exact), (mean, var)


def test_log_improvement_is_accurate_where_the_improvement_underflows():
    """At z = -30 the improvement is 1e-200; at z = -50 it underflows."""
    got = log_expected_improvement(f64([-30.0, -50.0]), f64([1.0, 1.0]))
    assert got[0].exp() == pytest.approx(1.6331e-200, rel=1e-4)
    assert got[1].exp() == 0
    assert got[1].item() == pytest.approx(float(log_improvement(-50, 1)), rel=1e-14)


@pytest.mark.parametrize(("mean", "var"), WIDE)
def test_log_improvement_is_accurate_over_the_wide_grid(mean, var):
    exact = log_improvement(mean, var)
    error = abs(log_expected_improvement(f64(mean), f64(var)).item() - exact)
    assert error < 1e-12 * max(1, abs(exact) if mean < -37 * math.sqrt(var) else 1)


@pytest.mark.parametrize(("mean", "var"), [(0.3, 0.5), (-1.2, 3.0), (2.0, 0.2), (-4.0, 1.0)])
def test_log_improvement_is_the_integral_of_the_definition(mean, var):
    density = scipy.stats.norm(mean, math.sqrt(var)).pdf
    integral, _ = scipy.integrate.quad(lambda f: f * density(f), 0, 20, epsabs=0, epsrel=1e-11)
    assert log_expected_improvement(f64(mean), f64(var)).exp().item() == pytest.approx(integral, rel=1e-9)


@pytest.mark.parametrize(
    ("mean", "var"), [*WIDE, (-37.0, 1.0), (-50.0, 1.0), (-5.001, 1.0), (-4.999, 1.0), (1e3, 1e-4)]
)
def test_gradients_of_the_log_improvement_are_right(mean, var):
    with mp.workdps(120):
        m, sd = mp.mpf(mean), mp.sqrt(mp.mpf(var))
        value = m * Phi(m / sd) + sd * mp.npdf(m / sd)
        exact = [Phi(m / sd) / value, mp.npdf(m / sd) / (2 * sd * value)]
    for got, want in zip(gradient(log_expected_improvement, mean, var), exact, strict=True):
        assert abs(got - want) <= 1e-12 * want + 1e-290


def test_without_variance_the_log_improvement_is_that_of_the_mean():
    got = log_expected_improvement(f64([2.5, 1e-9]), f64([0.0, 0.0]))
    torch.testing.assert_close(got, f64([2.5, 1e-9]).log(), rtol=1e-14, atol=0)
    for mean in (-3.0, 0.0, 3.0):
        assert all(math.isfinite(slope) for slope in gradient(log_expected_improvement, mean, 0.0))


# the expected maximum of two

PAIRS = [(0.3, -0.2), (-8.0, 8.0), (8.0, -8.0), (1.0, 1.0), (0.0, 1e-9), (-5.0, -5.5)]


@pytest.mark.parametrize(("first", "second"), PAIRS)
@pytest.mark.parametrize("var", [1e-10, 1e-3, 0.4, 3.0, 1e6])
def test_expected_best_is_the_formula_of_clark(first, second, var):
    exact = best(first, second, var)
    got = expected_best(f64(first), f64(second), f64(var)).item()
    assert abs(got - exact) < 1e-14 * (8 + math.sqrt(var))


def test_expected_best_is_the_mean_of_the_larger_draw():
    lower = f64([[1.2, 0.0], [0.5, 0.9]])
    mean, cov = f64([0.4, -0.1]), lower @ lower.mT
    draws = mean + torch.randn(400_000, 2, generator=seeded(), dtype=torch.float64) @ lower.mT
    larger = draws.amax(-1)
    var = cov[0, 0] + cov[1, 1] - 2 * cov[0, 1]
    error = 5 * larger.std() / math.sqrt(len(draws))
    assert (expected_best(mean[0], mean[1], var) - larger.mean()).abs() < error < 0.01


@pytest.mark.parametrize(("first", "second"), PAIRS)
@pytest.mark.parametrize("var", [1e-3, 0.4, 3.0, 1e6])
def test_gradients_of_expected_best_are_right(first, second, var):
    point = (first, second, var)
    exact = [slope_of(best, point, index) for index in range(3)]
    for got, want in zip(gradient(expected_best, *point), exact, strict=True):
        assert abs(got - want) < 1e-12


def test_expected_best_of_points_that_coincide_is_their_mean_and_has_gradients():
    """The variance of their difference may be zero, or negative by rounding."""
    for var in (0.0, -1e-17):
        assert expected_best(f64(0.7), f64(0.7), f64(var)) == 0.7
        assert all(math.isfinite(slope) for slope in gradient(expected_best, 0.7, 0.7, var))


# the logarithm of the expected improvement of a rate

LEVELS = (-8.0, -2.3, 0.0, 1.1, 8.0)
TAILS = [(-8.0, 0.56, 8.0), (-8.0, 1.0, 8.0), (0.0, 0.0442, 6.4), (-5.0, 0.05, 2.0), (7.9997, 1e-10, 8.0)]
FAR_ABOVE = [(8.0, 1e-10, -8.0), (8.0, 0.3, -8.0), (6.0, 1e-4, -3.0), (-5.0, 1e-6, -8.0), (8.0, 1e6, -8.0)]
CORNERS = [(0.0, 1.0, -8.0), (-1.0, 0.63, -8.0), (8.0, 0.43, 8.0), (-8.0, 40.0, -8.0), (8.0, 1e-10, 7.9999)]
LOW = [(-8.0, 0.43, -8.0), (-12.0, 0.43, -12.0), (-20.0, 0.43, -20.0)]
INSIDE = [(mean, var, bar) for mean in LEVELS for bar in LEVELS for var in (1e-10, 3e-3, 0.1, 2.9, 1e6)]


def above_underflow(points: list[tuple[float, float, float]]) -> list[tuple[float, float, float]]:
    """The points whose improvement is above 1e-290, by its bound at 38 deviations."""
    return [p for p in points if p[0] - p[2] > -36 * math.sqrt(p[1])]


def assert_rates_are_right(points: list[tuple[float, float, float]]) -> None:
    points = above_underflow(points)
    got = log_rate_improvement(*f64(points).T).tolist()
    for point, value in zip(points, got, strict=True):
        exact = log_rate(*point)
        assert abs(value - exact) < RATE_ERROR, f"at {point}: got {value!r}, want {mp.nstr(exact, 20)}"


def test_the_reference_for_rates_is_a_bivariate_normal_probability():
    r"""A rate of :math:`\Phi(f)` is beaten by t when t < f, so the improvement is P(bar < t < f)."""
    for mean, var, bar in [(0.3, 0.5, 0.1), (-1.0, 2.0, 0.4), (2.0, 0.1, -1.0)]:
        cov = -1 / math.sqrt(1 + var)
        both = scipy.stats.multivariate_normal(cov=[[1, cov], [cov, 1]])
        want = both.cdf([-bar, mean / math.sqrt(1 + var)])
        assert float(mp.exp(log_rate(mean, var, bar))) == pytest.approx(want, abs=1e-8)


@pytest.mark.parametrize("points", [TAILS, FAR_ABOVE, CORNERS], ids=["tails", "far_above", "corners"])
def test_log_rate_improvement_is_as_accurate_as_stated(points):
    assert_rates_are_right(points)


@pytest.mark.parametrize("point", LOW)
def test_log_rate_improvement_is_accurate_where_the_density_rises_beyond_the_mean(point):
    assert_rates_are_right([point])


@pytest.mark.parametrize(
    "mean", [pytest.param(mean, marks=[pytest.mark.slow] * (mean in (-2.3, 0.0, 8.0))) for mean in LEVELS]
)
def test_log_rate_improvement_is_as_accurate_as_stated_over_the_grid(mean):
    assert_rates_are_right([point for point in INSIDE if point[0] == mean])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_log_rate_improvement_is_as_accurate_as_stated_at_random(seed):
    draw = torch.rand(3, 150, generator=seeded(seed), dtype=torch.float64)
    mean, bar, var = 16 * draw[0] - 8, 16 * draw[1] - 8, 10 ** (16 * draw[2] - 10)
    if seed % 2:
        bar = (mean + 36 * (2 * draw[1] - 1) * var.sqrt()).clamp(-8, 8)
    assert_rates_are_right(list(zip(mean.tolist(), var.tolist(), bar.tolist(), strict=True)))


def test_the_tail_points_are_close_to_underflow():
    smallest = min(float(log_rate(*point)) for point in above_underflow(TAILS)) / math.log(10)
    assert -290 < smallest < -200


def test_the_improvement_of_a_rate_agrees_with_draws():
    mean, var, bar = f64([0.3, -2.0, 1.0]), f64([0.5, 4.0, 0.1]), f64([0.1, -1.0, 1.5])
    f = mean + var.sqrt() * torch.randn(400_000, 3, generator=seeded(), dtype=torch.float64)
    gain = f64(scipy.special.ndtr(f.numpy()) - scipy.special.ndtr(bar.numpy())).clamp_min(0)
    error = 5 * gain.std(0) / math.sqrt(len(f))
    assert ((log_rate_improvement(mean, var, bar).exp() - gain.mean(0)).abs() < error).all()


GRADIENT_POINTS = [
    (0.3, 0.5, 0.1),
    (-1.0, 2.0, 0.4),
    (2.0, 0.1, -1.0),
    (8.0, 1e-4, -8.0),
    (-8.0, 1.0, 8.0),
    (7.9, 1e-6, 7.91),
    (-6.0, 0.43, -6.0),
    (0.0, 1e6, 3.0),
    (0.0, 1.0, 0.0),
]


@pytest.mark.parametrize("point", GRADIENT_POINTS)
def test_gradients_of_the_log_rate_improvement_are_right(point):
    exact = [slope_of(log_rate, point, index) for index in range(2)]
    got = gradient(log_rate_improvement, *point)
    scale = abs(exact[0]) / math.sqrt(1 + point[1])  # the size of what cancels in the derivative by variance
    assert abs(got[0] - exact[0]) < 1e-8 * abs(exact[0])
    assert abs(got[1] - exact[1]) < 1e-8 * (abs(exact[1]) + scale)


def test_the_rate_has_gradients_where_it_underflows():
    by_mean, by_var = gradient(log_rate_improvement, -8.0, 0.01, 8.0)
    assert log_rate_improvement(f64(-8.0), f64(0.01), f64(8.0)) < -10_000
    assert by_mean == pytest.approx(16 / 0.01, rel=0.02)  # as for a normal tail
    assert by_var == pytest.approx(16**2 / 0.01**2 / 2, rel=0.02)


def test_gradients_of_the_rate_are_finite_without_variance():
    for mean, bar in [(-1.0, 1.0), (0.5, 0.5), (1.0, -1.0)]:
        assert all(math.isfinite(slope) for slope in gradient(log_rate_improvement, mean, 0.0, bar))


# properties

means, bars = st.floats(-8, 8), st.floats(-8, 8)
variances = st.floats(-10, 6).map(lambda e: 10**e)
MARGIN = 2 * RATE_ERROR


@given(st.floats(-1e3, 1e3), variances)
@FEW
def test_an_improvement_is_at_least_zero_and_at_least_the_mean(mean, var):
    value = log_expected_improvement(f64(mean), f64(var)).exp()
    assert value >= max(0.0, mean) * (1 - 1e-12)


@given(means, means, variances)
@FEW
def test_an_improvement_grows_with_the_mean(one, two, var):
    low, high = log_expected_improvement(f64(sorted([one, two])), f64([var, var])).tolist()
    assert low <= high + 1e-12 * max(1, abs(high))


@given(means, variances, variances)
@FEW
def test_an_improvement_grows_with_the_variance(mean, one, two):
    low, high = log_expected_improvement(f64([mean, mean]), f64(sorted([one, two]))).tolist()
    assert low <= high + 1e-12 * max(1, abs(high))


@given(means, variances)
@FEW
def test_improvement_and_loss_differ_by_the_mean(mean, var):
    up, down = log_expected_improvement(f64([mean, -mean]), f64([var, var])).exp()
    torch.testing.assert_close(up - down, f64(mean), rtol=1e-11, atol=1e-11 * math.sqrt(var))


@given(means, means, variances)
@FEW
def test_expected_best_does_not_depend_on_the_order(first, second, var):
    one, other = expected_best(f64([first, second]), f64([second, first]), f64([var, var])).tolist()
    assert one == pytest.approx(other, rel=1e-14, abs=1e-14)


@given(means, means, variances | st.just(0.0))
@FEW
def test_expected_best_is_at_least_each_mean(first, second, var):
    assert expected_best(f64(first), f64(second), f64(var)) >= max(first, second) - 1e-14


@given(means, means, means, variances, variances)
@FEW
def test_expected_best_grows_with_means_and_variance(first, second, more, one, two):
    low, high = sorted([one, two])
    value = expected_best(f64(first), f64(second), f64(low))
    assert expected_best(f64(first), f64(second), f64(high)) >= value - 1e-13
    assert expected_best(f64(first + abs(more)), f64(second), f64(low)) >= value - 1e-13


@given(means, means, variances)
@FEW
def test_expected_best_is_the_second_mean_and_the_improvement_on_it(first, second, var):
    improvement = log_expected_improvement(f64(first - second), f64(var)).exp()
    got = expected_best(f64(first), f64(second), f64(var))
    torch.testing.assert_close(got, second + improvement, rtol=1e-13, atol=1e-13)


@given(means, means, variances, bars)
@FEW
def test_a_rate_improves_more_where_the_mean_is_higher(one, two, var, bar):
    low, high = log_rate_improvement(f64(sorted([one, two])), f64([var] * 2), f64([bar] * 2)).tolist()
    assert low <= high + MARGIN * max(1, abs(high) * 1e-3)


@given(means, variances, bars, bars)
@FEW
def test_a_rate_improves_less_on_a_higher_bar(mean, var, one, two):
    high, low = log_rate_improvement(f64([mean] * 2), f64([var] * 2), f64(sorted([one, two]))).tolist()
    assert low <= high + MARGIN * max(1, abs(high) * 1e-3)


@given(st.floats(-8, 0), variances, variances, bars)
@FEW
def test_a_rate_of_negative_mean_improves_more_with_variance(mean, one, two, bar):
    low, high = log_rate_improvement(f64([mean] * 2), f64(sorted([one, two])), f64([bar] * 2)).tolist()
    assert low <= high + MARGIN * max(1, abs(high) * 1e-3)


def test_a_high_rate_improves_less_with_variance():
    low, high = log_rate_improvement(f64([2.0, 2.0]), f64([3.0, 0.1]), f64([-3.0, -3.0])).tolist()
    assert low < high - 0.01


@given(means, variances, bars)
@FEW
def test_the_improvement_of_a_rate_respects_its_bounds(mean, var, bar):
    value = log_rate_improvement(f64(mean), f64(var), f64(bar)).exp().item()
    rate, reached = success_probability(f64(mean), f64(var)).item(), scipy.special.ndtr(bar)
    assert max(0.0, rate - reached) <= value * (1 + MARGIN) + 1e-15
    assert value <= min(rate, scipy.special.ndtr(-bar)) * (1 + MARGIN)


# second derivatives, shapes and missing values


def arguments(f: Callable[..., Tensor], *shape: int) -> list[Tensor]:
    """Some mean, variance and bar (or two means and a variance)."""
    values = {log_expected_improvement: (0.3, 0.7), log_rate_improvement: (0.3, 0.7, 0.2)}
    return [torch.full(shape, value, dtype=torch.float64) for value in values.get(f, (0.3, -0.2, 0.7))]


@pytest.mark.parametrize("f", HAND_WRITTEN)
@pytest.mark.parametrize("through", [lambda x: x, torch.square], ids=["plain", "computed"])
def test_second_derivatives_are_refused_rather_than_wrong(f, through):
    mean, var, *bar = arguments(f)
    mean.requires_grad_()
    var.requires_grad_()
    first = torch.autograd.grad(f(through(mean), through(var), *bar), (mean, var), create_graph=True)
    with pytest.raises(RuntimeError, match="derivative of this function must be of first order; got a"):
        torch.autograd.grad(sum(first), (mean, var), allow_unused=True)


def test_expected_best_has_a_second_derivative():
    inputs = [value.requires_grad_() for value in arguments(expected_best, 3)]
    assert torch.autograd.gradgradcheck(expected_best, inputs)


@pytest.mark.parametrize("f", ALL)
def test_gradients_agree_with_differences(f):
    inputs = [value.requires_grad_() for value in arguments(f, 3)]
    if f is log_rate_improvement:
        inputs[2].requires_grad_(False)
    assert torch.autograd.gradcheck(f, inputs)


@pytest.mark.parametrize("f", ALL)
def test_arguments_broadcast_and_shapes_are_kept(f):
    for shape in [(), (0,), (2, 1, 3)]:
        assert f(*arguments(f, *shape)).shape == shape
    first, *rest = arguments(f)
    together = f(first.expand(3, 1), *[value.expand(2) for value in rest])
    assert together.shape == (3, 2)
    torch.testing.assert_close(together, f(first, *rest).expand(3, 2), rtol=1e-15, atol=0)


@pytest.mark.parametrize("f", ALL)
def test_nan_stays_nan(f):
    given = arguments(f, 4)
    for k, value in enumerate(given):
        value[k] = math.nan
    assert f(*given).isnan().tolist() == [k < len(given) for k in range(4)]
