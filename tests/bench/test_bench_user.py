"""The simulated user."""

import math
import re

import pytest
import torch
from scipy.stats import binom, norm

from askwise.bench.user import UNDECIDED, User
from tensors import f64, seeded, uniform

HOUSE = re.compile(r"^[^;\n]+ must [^;\n]+; got [^\n]+\. [^\n]+$")
MANY = 40_000


def shares(user: User, values: list[float], count: int = MANY) -> list[float]:
    """The fraction of answers that are yes, or prefer the first."""
    pairs = max(1, len(values) * (len(values) - 1) // 2)
    found = user.answers(f64(values).expand(count, -1), uniform(count, pairs))
    assert found.shape == (count, pairs)
    assert found.dtype == torch.int8
    return found.double().mean(0).tolist()


def plausible(share: float, probability: float, count: int = MANY) -> bool:
    """Whether this fraction is plausible: the binomial interval misses once in a million times."""
    low, high = binom.interval(1 - 1e-6, count, probability)
    return bool(low <= share * count <= high)


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


@pytest.mark.parametrize("margin", [0.3, 1.0])
@pytest.mark.parametrize("lapses", [0.0, 0.2])
def test_who_feels_less_than_the_margin_cannot_decide(margin, lapses):
    value, noise = 0.8, 0.5
    told = User(noise, lapses, margin).answers(f64([value, 0.0]).expand(MANY, -1), uniform(MANY, 1))
    felt = norm.cdf(value / noise - margin), norm.cdf(-value / noise - margin)
    for answer, attentive in ((1, felt[0]), (0, felt[1])):
        share = float((told == answer).double().mean())
        assert plausible(share, lapses / 2 + (1 - lapses) * attentive)
    assert plausible(float((told == UNDECIDED).double().mean()), (1 - lapses) * (1 - sum(felt)))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"margin": -0.1}, "margin must be zero or more, and finite; got -0.1"),
        ({"margin": math.inf}, "margin must be zero or more, and finite; got inf"),
        ({"people": 0}, "people must be 1 or more; got 0"),
        ({"own": 1.0}, "own must be a share from 0 to below 1; got 1"),
    ],
)
def test_impossible_people_are_refused(given, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}") as caught:
        User(**given)
    assert HOUSE.match(str(caught.value))
