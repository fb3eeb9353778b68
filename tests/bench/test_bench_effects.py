"""The probability of superiority against its definition, and its intervals against simulated truth."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import mannwhitneyu

from askwise.bench.effects import superiority

HOUSE = r"(?s)^.+ must .+; got .+\. .+"


@st.composite
def random_scores(draw):
    functions = draw(st.integers(1, 3))
    sizes = draw(st.lists(st.integers(1, 6), min_size=2, max_size=4))
    return {
        f"rule {i}": draw(arrays(float, (functions, n, 2), elements=st.integers(0, 3)))
        for i, n in enumerate(sizes)
    }


def brute(x, y):
    """Over functions, the mean share of pairs of runs in which the first is better; ties count half."""
    shares = [
        np.mean([1.0 if a > b else 0.5 if a == b else 0.0 for a in mine for b in yours])
        for mine, yours in zip(x, y, strict=True)
    ]
    return np.mean(shares)


@settings(max_examples=30)
@given(random_scores(), st.sampled_from(["final", "auc"]))
def test_the_matrix_is_that_of_the_definition(scores, of):
    found = superiority(scores, bootstraps=1, of=of)
    values = {rule: s[..., -1] if of == "final" else s.mean(-1) for rule, s in scores.items()}
    assert found.rules == tuple(scores)
    expected = [[brute(values[a], values[b]) for b in found.rules] for a in found.rules]
    np.testing.assert_allclose(found.matrix, expected, rtol=0, atol=1e-14)


def test_it_is_the_statistic_of_mann_and_whitney_over_the_number_of_pairs():
    source = np.random.default_rng(0)
    x, y = source.integers(0, 9, (1, 30, 1)) + 1.0, source.integers(0, 9, (1, 17, 1)) + 0.0
    u = mannwhitneyu(x[0, :, 0], y[0, :, 0]).statistic
    assert superiority({"x": x, "y": y}, bootstraps=1).matrix[0, 1] == u / (30 * 17)


def test_normal_runs_are_superior_as_often_as_theory_says():
    source = np.random.default_rng(0)
    shift, n = 0.7, 1000
    scores = {"x": source.normal(shift, 1, (1, n, 1)), "y": source.normal(0, 1, (1, n, 1))}
    expected = math.erfc(-shift / 2) / 2  # Phi(shift / sqrt 2)
    assert superiority(scores, bootstraps=1).matrix[0, 1] == pytest.approx(expected, abs=0.04)


@settings(max_examples=30)
@given(random_scores())
def test_what_one_gains_the_other_loses(scores):
    found = superiority(scores, bootstraps=20)
    np.testing.assert_allclose(found.matrix + found.matrix.T, 1, rtol=0, atol=1e-14)
    np.testing.assert_allclose(found.low + found.high.T, 1, rtol=0, atol=1e-12)
    for matrix in (found.matrix, found.low, found.high):
        assert (matrix.diagonal() == 0.5).all()
        assert ((matrix >= 0) & (matrix <= 1)).all()
    assert (found.low <= found.high).all()


def test_rules_that_never_overlap_have_an_interval_of_no_width():
    scores = {"best": np.full((3, 5, 1), 2.0), "worst": np.zeros((3, 8, 1)), "also": np.zeros((3, 8, 1))}
    found = superiority(scores, bootstraps=50)
    expected = [[0.5, 1, 1], [0, 0.5, 0.5], [0, 0.5, 0.5]]
    for matrix in (found.matrix, found.low, found.high):
        assert matrix.tolist() == expected


def brute_interval(x, y, bootstraps, seed):
    """By drawing runs one by one; x, y: [function, replicate]."""
    source = np.random.default_rng(seed)
    drawn = []
    for _ in range(bootstraps):
        shares = []
        for mine, yours in zip(x, y, strict=True):
            a, b = source.choice(mine, len(mine)), source.choice(yours, len(yours))
            shares.append(((a[:, None] > b) + 0.5 * (a[:, None] == b)).mean())
        drawn.append(np.mean(shares))
    return np.quantile(drawn, (0.025, 0.975))


def test_the_interval_is_that_of_resampling_run_by_run():
    source = np.random.default_rng(5)
    x, y = source.normal(0.5, 1, (2, 9, 1)).round(1), source.normal(0, 2, (2, 14, 1)).round(1)
    found = superiority({"x": x, "y": y}, bootstraps=8000, seed=1)
    expected = brute_interval(x[..., 0], y[..., 0], 8000, seed=2)
    # the standard error of these percentiles is below 0.005
    np.testing.assert_allclose((found.low[0, 1], found.high[0, 1]), expected, rtol=0, atol=0.012)
    assert found.low[0, 1] < found.matrix[0, 1] < found.high[0, 1]


def test_intervals_have_their_nominal_coverage():
    source = np.random.default_rng(11)
    shifts = np.array([-0.3, 0.5, 1.5])[:, None, None]
    truth = np.mean([math.erfc(-shift / 2) / 2 for shift in shifts.ravel()])
    trials, held, below = 250, 0, 0
    for trial in range(trials):
        scores = {"x": source.normal(shifts, 1, (3, 25, 1)), "y": source.normal(0, 1, (3, 25, 1))}
        found = superiority(scores, bootstraps=300, seed=trial)
        held += found.low[0, 1] <= truth <= found.high[0, 1]
        below += truth < found.low[0, 1]
    assert 0.905 <= held / trials <= 0.985  # three standard errors of 0.95
    assert below / trials <= 0.06  # on both sides


def test_the_functions_are_not_resampled():
    # runs that never vary: drawing functions again would spread from 0 to 1
    x = np.array([0.0, 0.0, 2.0, 2.0])[:, None, None] * np.ones((4, 6, 1))
    found = superiority({"x": x, "y": np.ones((4, 6, 1))}, bootstraps=100)
    assert found.low[0, 1] == found.matrix[0, 1] == found.high[0, 1] == 0.5


def test_a_seed_gives_the_same_intervals_and_another_seed_others():
    source = np.random.default_rng(2)
    scores = {rule: source.normal(size=(2, 11, 3)) for rule in "ab"}
    one, again, other = (superiority(scores, bootstraps=99, seed=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one.low, again.low)
    np.testing.assert_array_equal(one.high, again.high)
    assert (one.low != other.low).any()
    np.testing.assert_array_equal(one.matrix, other.matrix)


def test_areas_and_last_scores_may_disagree():
    late, early = np.tile([0.0, 0.0, 2.0], (1, 4, 1)), np.tile([1.0, 1.0, 1.0], (1, 4, 1))
    scores = {"late": late, "early": early}
    assert superiority(scores, bootstraps=1).matrix[0, 1] == 1
    assert superiority(scores, bootstraps=1, of="auc").matrix[0, 1] == 0


GOOD = {"a": np.zeros((1, 2, 1)), "b": np.zeros((1, 2, 1))}
BAD = {
    "another measure": (dict(scores=GOOD, of="best"), "of must be 'final' or 'auc'; got 'best'"),
    "no bootstraps": (dict(scores=GOOD, bootstraps=0), "bootstraps must be a whole number from 1; got 0"),
    "a fraction": (dict(scores=GOOD, bootstraps=1.5), "bootstraps must be a whole number from 1; got 1.5"),
    "a truth value": (dict(scores=GOOD, bootstraps=True), "bootstraps must be a whole number"),
    "one rule": (dict(scores={"a": GOOD["a"]}), "two rules or more"),
    "no numbers": (dict(scores={**GOOD, "b": np.full((1, 2, 1), np.nan)}), "scores of b must be finite"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused(case, unchecked):
    arguments, message = BAD[case]
    with pytest.raises(ValueError, match=HOUSE) as error:
        superiority(**arguments)
    assert error.match(message)
