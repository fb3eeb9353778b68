"""Tests of weighted runs against scipy, which repeats a run instead of weighting it."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu

from askwise.bench.mannwhitney import p_values, statistics


@st.composite
def weighted_runs(draw):
    """Few small integers, hence many ties; every rule keeps at least one run."""
    sizes = draw(st.lists(st.integers(1, 6), min_size=2, max_size=4))
    values = draw(st.lists(st.integers(0, 4), min_size=sum(sizes), max_size=sum(sizes)))
    source = np.random.default_rng(draw(st.integers(0, 99)))
    weights = np.concatenate([source.multinomial(n, np.full(n, 1 / n), 3) for n in sizes], axis=1)
    return np.array(values, float), sizes, weights


def by_scipy(values, sizes, weights):
    """U and p of each pair of rules, from runs repeated as often as their weights say."""
    edges = np.cumsum([0, *sizes])
    rules = [np.repeat(values[a:b], weights[a:b].astype(int)) for a, b in pairwise(edges)]
    tests = [[mannwhitneyu(x, y, alternative="greater", method="asymptotic") for y in rules] for x in rules]
    return tuple(
        np.array([[getattr(one, name) for one in row] for row in tests]) for name in ("statistic", "pvalue")
    )


@settings(max_examples=30)
@given(weighted_runs())
def test_weighted_runs_are_repeated_runs_to_the_last_bit(given_runs):
    values, sizes, weights = given_runs
    u, p = statistics(values, sizes, weights), p_values(values, sizes, weights)
    off_diagonal = ~np.eye(len(sizes), dtype=bool)
    for row, u_row, p_row in zip(weights, u, p, strict=True):
        expected_u, expected_p = by_scipy(values, sizes, row)
        np.testing.assert_array_equal(u_row, expected_u)
        expected_p = np.where(np.isnan(expected_p), 1, expected_p)
        np.testing.assert_array_equal(p_row[off_diagonal], expected_p[off_diagonal])


def test_different_scores_have_the_p_values_of_scipy():
    values, sizes = np.random.default_rng(0).normal(size=60), (20, 40)
    (_, p), (q, _) = p_values(values, sizes, np.ones(60))
    assert p == mannwhitneyu(values[:20], values[20:], alternative="greater", method="asymptotic").pvalue
    assert q == mannwhitneyu(values[20:], values[:20], alternative="greater", method="asymptotic").pvalue


@pytest.mark.filterwarnings("error")
def test_equal_scores_and_a_rule_against_itself_have_p_one():
    assert (p_values(np.zeros(7), (3, 4), np.ones(7)) == 1).all()
    assert (np.diag(p_values(np.arange(7.0), (3, 4), np.ones(7))) == 1).all()
