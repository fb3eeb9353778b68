"""Benchmark functions as they are felt, and the simulated user who feels them."""

import math
import re
from dataclasses import replace

import pytest
import torch
from scipy.stats import binom, norm

from askwise.bench.functions import FUNCTIONS
from askwise.bench.hyperparameters import likelihood, recovered
from askwise.bench.problems import Problem
from askwise.bench.user import User
from tensors import f64, seeded, uniform

HOUSE = re.compile(r"^[^;\n]+ must [^;\n]+; got [^\n]+\. [^\n]+$")
MANY = 40_000


def shares(user: User, values: list[float], count: int = MANY) -> list[float]:
    """How often each answer of many is yes, or a win of the first."""
    pairs = max(1, len(values) * (len(values) - 1) // 2)
    told = user.answers(f64(values).expand(count, -1), uniform(count, pairs))
    assert told.shape == (count, pairs)
    assert told.dtype == torch.bool
    return told.double().mean(0).tolist()


def plausible(share: float, probability: float, count: int = MANY) -> bool:
    """Whether so many answers may come out so: all but once in a million times."""
    low, high = binom.interval(1 - 1e-6, count, probability)
    return bool(low <= share * count <= high)


# the user


@pytest.mark.parametrize("value", [-2.5, -1.0, 0.0, 0.3, 1.7])
@pytest.mark.parametrize("noise", [0.4, 1.0, 3.0])
def test_a_yes_is_as_likely_as_the_normal_distribution_says(value, noise):
    (share,) = shares(User(noise), [value])
    assert plausible(share, norm.cdf(value / noise))


@pytest.mark.parametrize("lapses", [0.0, 0.1, 0.6, 1.0])
def test_some_answers_are_given_at_random(lapses):
    for value in (-1.5, 2.0):
        (share,) = shares(User(0.5, lapses), [value])
        assert plausible(share, lapses / 2 + (1 - lapses) * norm.cdf(value / 0.5))


def test_of_all_pairs_in_their_order_the_first_wins_as_often_as_it_is_better():
    values = [0.0, 1.2, -0.7]
    found = shares(User(), values)
    for share, (i, j) in zip(found, [(0, 1), (0, 2), (1, 2)], strict=True):
        assert plausible(share, norm.cdf(values[i] - values[j]))


def test_pairs_of_four_come_in_the_order_of_the_data():
    told = User(noise=1e-9).answers(f64([3.0, 1.0, 4.0, 2.0]), f64([0.5] * 6))
    # (0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)
    assert told.tolist() == [True, False, True, False, False, True]


def test_comparisons_of_one_batch_are_independent():
    told = User().answers(f64([0.0, 0.0, 0.0]).expand(MANY, -1), uniform(MANY, 3)).double()
    # of noisy utilities that all pairs share, (0, 1) and (0, 2) would agree in two cases of three
    assert plausible(float((told[:, 0] == told[:, 1]).double().mean()), 0.5)


def test_an_answer_follows_from_its_chance():
    user, values = User(noise=2.0, lapses=0.2), f64([[0.7], [0.7], [0.7]])
    edge = 0.1 + 0.8 * norm.cdf(0.35)
    told = user.answers(values, f64([[edge - 1e-9], [edge + 1e-9], [0.0]]))
    assert told[:, 0].tolist() == [True, False, True]


@pytest.mark.parametrize("lanes", [(), (5,), (2, 5)])
def test_each_lane_has_answers_of_its_own(lanes):
    values, chance = 3 * torch.randn(*lanes, 3, generator=seeded()).double(), uniform(*lanes, 3)
    told = User().answers(values, chance)
    assert told.shape == (*lanes, 3)
    one = User().answers(values.reshape(-1, 3)[-1], chance.reshape(-1, 3)[-1])
    assert torch.equal(told.reshape(-1, 3)[-1], one)


def test_infinite_values_are_certain_and_as_good_as_each_other():
    up, down = math.inf, -math.inf
    for values, share in (([up], 1.0), ([down], 0.0), ([up, 5.0], 1.0), ([5.0, up], 0.0), ([up, down], 1.0)):
        assert shares(User(), values, 1000) == [share]
    for values in ([up, up], [down, down]):
        (share,) = shares(User(), values)
        assert plausible(share, 0.5)


@pytest.mark.parametrize("noise", [0.0, -1.0, math.inf, math.nan])
def test_noise_must_be_positive(noise):
    with pytest.raises(ValueError, match=f"^noise must be positive and finite; got {noise:g}") as caught:
        User(noise)
    assert HOUSE.match(str(caught.value))


@pytest.mark.parametrize("lapses", [-0.01, 1.01, math.nan])
def test_lapses_must_be_a_share(lapses):
    with pytest.raises(ValueError, match=f"^lapses must be a share .*; got {lapses:g}") as caught:
        User(lapses=lapses)
    assert HOUSE.match(str(caught.value))


# problems


def six_hump_camel(x: float, y: float) -> float:
    """To be maximised, on [-3, 3] x [-2, 2]."""
    return -((4 - 2.1 * x**2 + x**4 / 3) * x**2 + x * y + (4 * y**2 - 4) * y**2)


def sum_squares(x: float, y: float) -> float:
    """To be maximised, on [-10, 10] squared."""
    return -(x**2 + 2 * y**2)


UNIT = [(0.25, 0.75), (0.9, 0.1), (0.0, 1.0)]


def test_raw_values_are_those_of_the_function_on_its_box():
    found = Problem.of("six_hump_camel", "raw").value(f64(UNIT))
    want = [six_hump_camel(6 * u - 3, 4 * v - 2) for u, v in UNIT]
    torch.testing.assert_close(found, f64(want))


def test_rescaled_values_follow_the_published_constants():
    found = Problem.of("six_hump_camel", "rescaled").value(f64(UNIT))
    raw = f64([six_hump_camel(6 * u - 3, 4 * v - 2) for u, v in UNIT])
    torch.testing.assert_close(found, (raw + 20.30997977) / math.sqrt(699.191725))


def test_rescaled_values_of_some_functions_are_logarithms():
    found = Problem.of("sum_squares", "rescaled").value(f64(UNIT))
    want = [
        -(math.log(-sum_squares(20 * u - 10, 20 * v - 10)) - 4.25653788) / math.sqrt(1.096098071)
        for u, v in UNIT
    ]
    torch.testing.assert_close(found, f64(want))


def test_standardised_values_have_mean_0_and_variance_1_and_no_logarithm():
    # of f = x^2 + 2 y^2 on [-10, 10]^2 the mean is 100 and the variance 5 (100^2 / 5 - 100^2 / 9)
    found = Problem.of("sum_squares", "standardised").value(f64(UNIT))
    raw = f64([sum_squares(20 * u - 10, 20 * v - 10) for u, v in UNIT])
    exact = (raw + 100) / math.sqrt(5 * (1e4 / 5 - 1e4 / 9))
    torch.testing.assert_close(found, exact, rtol=0, atol=0.05)  # the table has them from a sample
    slope = (found[0] - found[1]) / (raw[0] - raw[1])
    torch.testing.assert_close(found, found[0] + slope * (raw - raw[0]))


@pytest.mark.parametrize("scale", ["raw", "rescaled", "standardised"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_nothing_is_better_than_the_best(name, scale):
    problem = Problem.of(name, scale)
    at = problem.function.normalised(f64(problem.function.argmax))
    near = (at + 10.0 ** -uniform(200, 1, seed=1).mul(20) * (uniform(200, len(at)) - 0.5)).clamp(0, 1)
    found = problem.value(torch.cat([at[None], near, uniform(300, len(at), seed=2)]))
    assert not found.isnan().any()
    if math.isinf(problem.best):
        assert problem.best > 0
        assert found[0] > found[-300:].max()
        return
    size = 1 + abs(problem.best)
    assert found.max() <= problem.best + 1e-9 * size
    assert found[0] >= problem.best - 1e-6 * size


def test_the_best_is_infinite_where_the_logarithm_of_zero_is_taken():
    infinite = {name for name in FUNCTIONS if math.isinf(Problem.of(name, "rescaled").best)}
    assert {"beale", "levy", "sphere", "griewank"} <= infinite
    assert not infinite & {"six_hump_camel", "hartmann6", "schwefel", "goldstein_price"}
    for scale in ("raw", "standardised"):
        assert all(math.isfinite(Problem.of(name, scale).best) for name in FUNCTIONS)


def test_the_best_of_goldstein_price_is_the_logarithm_of_three():
    want = (8.709023035 - math.log(3)) / math.sqrt(5.916930194)
    assert Problem.of("goldstein_price", "rescaled").best == pytest.approx(want, rel=1e-12)


def test_scores_are_values_or_the_probability_of_a_yes():
    problem, x = Problem.of("trid", "rescaled"), uniform(4, 3, 2)
    value = problem.value(x)
    assert torch.equal(problem.score(x, "value"), value)
    torch.testing.assert_close(problem.score(x, "probability"), f64(norm.cdf(value)))
    middle = f64([[0.5, 0.5]])  # where the sphere has its maximum, whose logarithm is infinite
    assert Problem.of("sphere", "rescaled").score(middle, "probability").item() == 1.0


def test_priors_are_those_of_the_tables_in_the_units_of_the_problem():
    raw, rescaled, standardised = (Problem.of("levy", scale) for scale in ("raw", "rescaled", "standardised"))
    assert raw.hyperparameters("recovered") == recovered("levy", "raw")
    assert rescaled.hyperparameters("recovered") == recovered("levy", "rescaled")
    assert standardised.hyperparameters("likelihood") == likelihood("levy")
    assert raw.hyperparameters("recovered") != rescaled.hyperparameters("recovered")
    assert {each.hyperparameters("learned") for each in (raw, rescaled, standardised)} == {None}


def test_priors_for_other_units_are_refused():
    for scale, prior in (("standardised", "recovered"), ("raw", "likelihood"), ("rescaled", "likelihood")):
        with pytest.raises(ValueError, match=f"^scale must be one of .*; got {scale!r}") as caught:
            Problem.of("levy", scale).hyperparameters(prior)
        assert HOUSE.match(str(caught.value))


def test_unknown_functions_are_refused():
    with pytest.raises(ValueError, match=r"^function must be one of ackley, .*; got 'parabola'\. ") as caught:
        Problem.of("parabola", "raw")
    assert HOUSE.match(str(caught.value))


def test_equal_problems_are_one_and_others_are_not():
    one = Problem.of("trid", "raw")
    assert (
        len({one, Problem.of("trid", "raw"), replace(one, scale="rescaled"), Problem.of("levy", "raw")}) == 3
    )
