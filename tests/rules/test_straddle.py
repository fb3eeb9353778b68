"""Rules that look for a level: what they ask, at which level, and on several kernels."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import askwise as aw
from askwise.loop import next_query
from askwise.numerics import generator, ndtr
from askwise.rules import checked_level, latent_level, parse
from tensors import f64

RULES = ["straddle", "straddle_phi"]
MEANS, VARIANCES = st.floats(-6, 6), st.floats(1e-6, 50)
LEVELS = st.floats(0.01, 0.99)


def step(border: float, n: int = 40) -> aw.Data:
    """Answers that turn from no to yes at this place."""
    x = torch.linspace(0, 1, n, dtype=torch.float64)[:, None]
    return aw.Data.binary(x, (x[:, 0] > border).long())


@pytest.mark.parametrize("text", RULES)
@pytest.mark.parametrize("border", [0.3, 0.7])
def test_they_ask_at_the_border(text, border):
    rule = parse(text).at_level(0.5)
    query = next_query(step(border), rule, aw.kernel("matern52", 0.3, 25.0), 1, generator(0)).points
    assert abs(query.item() - border) < 0.1


@given(MEANS, VARIANCES, LEVELS)
def test_straddle_is_the_shorter_reach_of_the_interval_beyond_the_level(mean, var, level):
    border, reach = latent_level(level), 1.96 * var**0.5
    want = min(mean + reach - border, border - (mean - reach))
    got = parse("straddle").at_level(level).score(f64(mean), f64(var))
    assert got.item() == pytest.approx(want, abs=1e-9)


@pytest.mark.parametrize("text", RULES)
@given(mean=MEANS, var=VARIANCES, level=LEVELS)
def test_success_and_failure_are_alike(text, mean, var, level):
    one, other = (
        parse(text).at_level(rate).score(f64(sign * mean), f64(var)).item()
        for sign, rate in ((1, level), (-1, 1 - level))
    )
    assert one == pytest.approx(other, abs=1e-9)


@pytest.mark.parametrize("text", RULES)
@given(mean=MEANS, level=LEVELS)
def test_what_is_known_scores_minus_its_distance_from_the_level(text, mean, level):
    got = parse(text).at_level(level).score(f64(mean), f64(0.0)).item()
    distance = mean - latent_level(level) if text == "straddle" else ndtr(f64(mean)).item() - level
    assert got == pytest.approx(-abs(distance), abs=1e-9)


@given(st.lists(st.tuples(MEANS, VARIANCES, st.floats(0.05, 1)), min_size=2, max_size=4), LEVELS)
def test_on_several_kernels_the_rate_is_that_of_their_mixture(kernels, level):
    mean, var, weights = f64(kernels).T[..., None]
    weights = weights / weights.sum()
    rule = parse("straddle_phi").at_level(level)
    # by quadrature over each kernel's f
    nodes, by = torch.linspace(-9, 9, 4001, dtype=torch.float64), 18 / 4000
    density = torch.exp(-nodes.square() / 2) * by / (2 * torch.pi) ** 0.5
    rates = ndtr(mean + var.sqrt() * nodes)
    middle = (weights * (rates * density).sum(-1, keepdim=True)).sum()
    spread = (weights * ((rates - middle).square() * density).sum(-1, keepdim=True)).sum().sqrt()
    want = 1.96 * spread - (middle - level).abs()
    assert rule.mixed(mean, var, weights).item() == pytest.approx(want.item(), abs=1e-6)
    same = rule.mixed(mean[:1].expand(3, 1), var[:1].expand(3, 1), f64([[0.2], [0.3], [0.5]]))
    assert same.item() == pytest.approx(rule.score(mean[0], var[0]).item(), abs=1e-9)


def test_a_study_sets_the_level_of_a_rule_that_has_one():
    assert str(parse("straddle").at_level(0.8)) == "straddle(level=0.8)"
    assert str(parse("straddle(level=0.8, beta=1)").at_level(None)) == "straddle(beta=1.0)"
    assert parse("ucb_phi").at_level(0.8) == parse("ucb_phi")


@pytest.mark.parametrize("value", [0, 1, 1.5, -0.1, float("nan"), True, "0.9", None])
def test_a_level_is_a_rate_between_0_and_1(value):
    with pytest.raises(aw.Refused, match=r"^level must be a success rate between 0 and 1; got .* Write 0.95"):
        checked_level(value)


@pytest.mark.parametrize("text", ["straddle(level=1)", "straddle_phi(level=0)"])
def test_a_rule_refuses_another_level(text):
    with pytest.raises(aw.Refused, match=r"^level must be a success rate between 0 and 1; got [01].0\."):
        parse(text)
