"""Scores of a mixture of normals against sampling kernels and functions."""

import math

import pytest
import torch
from tests.tensors import f64

from askwise import numerics as num

MEANS, VARS, WEIGHTS = f64([0.4, -1.0, 1.5]), f64([0.3, 1.2, 0.05]), f64([0.5, 0.2, 0.3])
DRAWS = 400_000


def columns(*rows):
    return [row[:, None] for row in rows]


def sampled_rates(means=MEANS, variances=VARS, weights=WEIGHTS):
    source = num.generator("mixtures")
    kernel = torch.multinomial(weights, DRAWS, replacement=True, generator=source)
    normal = torch.randn(DRAWS, generator=source, dtype=torch.float64)
    f = means[kernel] + variances[kernel].sqrt() * normal
    return kernel, f, num.ndtr(f)


def entropy(p):
    return -(torch.xlogy(p, p) + torch.xlogy(1 - p, 1 - p))


def test_moments_and_rate_are_those_of_draws_of_kernels_and_functions():
    _, f, rate = sampled_rates()
    mean, var = num.mixed_moments(*columns(MEANS, VARS, WEIGHTS))
    assert mean.item() == pytest.approx(f.mean().item(), abs=4 * f.std().item() / math.sqrt(DRAWS))
    assert var.item() == pytest.approx(f.var().item(), rel=0.01)
    assert num.mixed_rate(*columns(MEANS, VARS, WEIGHTS)).item() == pytest.approx(
        rate.mean().item(), abs=2e-3
    )


def test_epistemic_variance_is_that_of_the_rate_over_kernels_and_functions():
    _, _, rate = sampled_rates()
    found = num.mixed_log_variance(*columns(MEANS, VARS, WEIGHTS)).exp()
    assert found.item() == pytest.approx(rate.var().item(), rel=0.01)
    assert num.mixed_deviation(*columns(MEANS, VARS, WEIGHTS)).item() == pytest.approx(
        rate.std().item(), rel=0.01
    )
    known = num.epistemic_variance(MEANS, VARS)
    assert found > (WEIGHTS * known).sum()  # which kernel it is counts as well


def test_information_is_that_of_the_outcome_about_function_and_kernel():
    kernel, _, rate = sampled_rates()
    total = entropy(rate.mean())
    found = num.mixed_information(*columns(MEANS, VARS, WEIGHTS))
    assert found.item() == pytest.approx((total - entropy(rate).mean()).item(), abs=1e-3)
    by_kernel = sum(WEIGHTS[k] * entropy(rate[kernel == k].mean()) for k in range(3))
    about_kernel = num.kernel_information(*columns(MEANS, VARS, WEIGHTS))
    assert about_kernel.item() == pytest.approx((total - by_kernel).item(), abs=1e-3)
    assert num.mixed_entropy(*columns(MEANS, VARS, WEIGHTS)).item() == pytest.approx(total.item(), abs=1e-3)


def test_log_odds_order_rates_that_are_rounded_to_one():
    means = f64([[9.0, 12.0], [10.0, 13.0]])
    found = num.mixed_logit(means, torch.zeros_like(means), f64([[0.5], [0.5]]))
    assert found[1] > found[0] > 30
    small = columns(MEANS, VARS, WEIGHTS)
    assert num.mixed_logit(*small).sigmoid().item() == pytest.approx(num.mixed_rate(*small).item(), rel=1e-12)


def test_an_expectation_is_averaged_over_kernels():
    _, f, _ = sampled_rates()
    found = num.mixed_expectation(num.log_expected_improvement)(*columns(MEANS, VARS, WEIGHTS)).exp()
    assert found.item() == pytest.approx(f.clamp_min(0).mean().item(), rel=0.01)


@pytest.mark.parametrize("mean", [0.0, 0.7, -6.0, 25.0])
def test_of_one_kernel_they_are_those_of_a_normal(mean):
    means, variances, weights = f64([[mean]]), f64([[0.8]]), f64([[1.0]])
    one = means[0], variances[0]
    close = {"rtol": 1e-12, "atol": 0.0}
    torch.testing.assert_close(num.mixed_moments(means, variances, weights), one, **close)
    same = {
        num.mixed_rate: num.success_probability,
        num.mixed_log_variance: num.log_epistemic_variance,
        num.mixed_deviation: num.epistemic_deviation,
        num.mixed_information: num.mutual_information,
    }
    for mixed, plain in same.items():
        torch.testing.assert_close(mixed(means, variances, weights), plain(*one), **close)


def test_gradients_are_right_and_finite_where_nothing_is_uncertain():
    functions = [
        num.mixed_log_variance,
        num.mixed_information,
        num.mixed_logit,
        num.mixed_rate,
        num.mixed_deviation,
    ]
    for function in functions:
        inputs = [part.clone().requires_grad_() for part in columns(MEANS, VARS)]
        assert torch.autograd.gradcheck(lambda *at, of=function: of(*at, WEIGHTS[:, None]), inputs)
        zero = [torch.zeros(3, 1, dtype=torch.float64, requires_grad=True) for _ in range(2)]
        function(*zero, WEIGHTS[:, None]).sum().backward()
        assert all(part.grad.isfinite().all() for part in zero)


SLOPED = [
    num.mixed_rate,
    num.mixed_log_variance,
    num.mixed_deviation,
    num.by_moments(num.log_epistemic_variance),
    num.mixed_expectation(num.log_expected_improvement),
    num.mixed_rate.plus(num.mixed_deviation, 0.7),
]


@pytest.mark.parametrize("function", SLOPED)
def test_slopes_in_closed_form_are_those_of_autograd_also_in_the_tails(function):
    mean = torch.tensor([[-25.0, -2.0, 0.3, 30.0], [-30.0, 0.5, 0.2, 2.0], [-28.0, 1.0, 0.0, 9.0]]).double()
    var = torch.tensor([[1.0, 0.2, 3.0, 0.5], [2.0, 1e-6, 3.0, 40.0], [0.1, 9.0, 1e-3, 2.0]]).double()
    weights = WEIGHTS[:, None]
    value, *slopes = function.with_slopes(mean, var, weights)
    inputs = mean.clone().requires_grad_(), var.clone().requires_grad_()
    again = function(*inputs, weights)
    torch.testing.assert_close(value, again.detach(), rtol=1e-11, atol=0)
    for got, want in zip(slopes, torch.autograd.grad(again.sum(), inputs), strict=True):
        torch.testing.assert_close(got, want, rtol=1e-8, atol=1e-12)


def test_a_formula_without_slopes_stays_without():
    plain = num.by_moments(lambda mean, var: mean * var)
    assert not isinstance(plain, num.Sloped)
    assert not isinstance(num.mixed_expectation(lambda mean, var: mean * var), num.Sloped)
