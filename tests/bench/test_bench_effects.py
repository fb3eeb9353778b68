"""Effect sizes against their definitions, and their intervals against simulated truth."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import mannwhitneyu

from askwise.bench.effects import averages, superiority
from askwise.bench.estimates import Interval

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
    np.testing.assert_allclose(found.mean, expected, rtol=0, atol=1e-14)


def test_it_is_the_statistic_of_mann_and_whitney_over_the_number_of_pairs():
    source = np.random.default_rng(0)
    x, y = source.integers(0, 9, (1, 30, 1)) + 1.0, source.integers(0, 9, (1, 17, 1)) + 0.0
    u = mannwhitneyu(x[0, :, 0], y[0, :, 0]).statistic
    assert superiority({"x": x, "y": y}, bootstraps=1).mean[0, 1] == u / (30 * 17)


def test_normal_runs_are_superior_as_often_as_theory_says():
    source = np.random.default_rng(0)
    shift, n = 0.7, 1000
    scores = {"x": source.normal(shift, 1, (1, n, 1)), "y": source.normal(0, 1, (1, n, 1))}
    expected = math.erfc(-shift / 2) / 2  # Phi(shift / sqrt 2)
    assert superiority(scores, bootstraps=1).mean[0, 1] == pytest.approx(expected, abs=0.04)


@settings(max_examples=30)
@given(random_scores())
def test_what_one_gains_the_other_loses(scores):
    found = superiority(scores, bootstraps=20)
    np.testing.assert_allclose(found.mean + found.mean.T, 1, rtol=0, atol=1e-14)
    several = min(values.shape[1] for values in scores.values()) > 1, len(scores["rule 0"]) > 1
    assert tuple(np.isfinite(part).all() for part in (found.fixed, found.drawn)) == several
    for low, high in (part for part in (found.fixed, found.drawn) if np.isfinite(part).all()):
        np.testing.assert_allclose(low + high.T, 1, rtol=0, atol=1e-12)
        for matrix in (found.mean, low, high):
            np.testing.assert_allclose(matrix.diagonal(), 0.5, rtol=0, atol=1e-12)
            assert ((matrix >= -1e-12) & (matrix <= 1 + 1e-12)).all()
        assert (low <= high).all()


def test_rules_that_never_overlap_have_an_interval_of_no_width():
    scores = {"best": np.full((3, 5, 1), 2.0), "worst": np.zeros((3, 8, 1)), "also": np.zeros((3, 8, 1))}
    found = superiority(scores, bootstraps=50)
    expected = [[0.5, 1, 1], [0, 0.5, 0.5], [0, 0.5, 0.5]]
    for matrix in (found.mean, *found.fixed, *found.drawn):
        np.testing.assert_allclose(matrix, expected, rtol=0, atol=1e-12)


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
    np.testing.assert_allclose(found.fixed[:, 0, 1], expected, rtol=0, atol=0.012)
    assert found.fixed[0, 0, 1] < found.mean[0, 1] < found.fixed[1, 0, 1]
    one = found.of("x", "y")
    assert one.fixed == Interval(found.mean[0, 1], *found.fixed[:, 0, 1])
    assert one.drawn == Interval(found.mean[0, 1], *found.drawn[:, 0, 1])


def test_intervals_have_their_nominal_coverage():
    source = np.random.default_rng(11)
    shifts = np.array([-0.3, 0.5, 1.5])[:, None, None]
    truth = np.mean([math.erfc(-shift / 2) / 2 for shift in shifts.ravel()])
    trials, held, below = 250, 0, 0
    for trial in range(trials):
        scores = {"x": source.normal(shifts, 1, (3, 25, 1)), "y": source.normal(0, 1, (3, 25, 1))}
        low, high = superiority(scores, bootstraps=300, seed=trial).fixed[:, 0, 1]
        held += low <= truth <= high
        below += truth < low
    assert 0.905 <= held / trials <= 0.985  # three standard errors of 0.95
    assert below / trials <= 0.06  # on both sides


def test_functions_are_resampled_in_one_of_the_intervals_only():
    # runs that never vary: the number of wins on four functions drawn again is binomial
    x = np.array([0.0, 0.0, 2.0, 2.0])[:, None, None] * np.ones((4, 6, 1))
    found = superiority({"x": x, "y": np.ones((4, 6, 1))}, bootstraps=1000).of("x", "y")
    assert found.fixed == Interval(0.5, 0.5, 0.5)
    assert found.drawn == Interval(0.5, 0.0, 1.0)  # none or all of the four in one of 16 draws each


def test_rules_keep_their_functions_together():
    # very different functions, on each of which x is ahead by the same
    level = np.array([0.0, 10.0, 20.0, 30.0])[:, None]
    found = averages({"x": level + np.ones((4, 6)), "y": level + np.zeros((4, 6))})
    assert found.differences.of("x", "y").drawn == Interval(1.0, 1.0, 1.0)
    assert found.each["x"].drawn.high - found.each["x"].drawn.low > 10


def brute_drawn_interval(x, y, statistic, bootstraps, seed):
    """Functions drawn one by one, then the replicates of each."""
    source = np.random.default_rng(seed)
    drawn = []
    for _ in range(bootstraps):
        chosen = source.integers(len(x), size=len(x))
        drawn.append(
            np.mean(
                [
                    statistic(source.choice(x[f], x.shape[1])) - statistic(source.choice(y[f], y.shape[1]))
                    for f in chosen
                ]
            )
        )
    return np.quantile(drawn, (0.025, 0.975))


@pytest.mark.parametrize("statistic", [np.mean, np.median])
def test_differences_have_the_intervals_of_resampling_one_by_one(statistic):
    source = np.random.default_rng(7)
    x, y = source.normal(0, 1, (5, 9)) + np.arange(5)[:, None], source.exponential(2, (5, 12))
    found = averages({"x": x, "y": y}, statistic, bootstraps=4000)
    expected = np.mean([statistic(mine) - statistic(yours) for mine, yours in zip(x, y, strict=True)])
    one = found.differences.of("x", "y")
    assert one.fixed.mean == pytest.approx(expected)
    assert found.each["x"].fixed.mean - found.each["y"].fixed.mean == pytest.approx(expected)
    drawn = brute_drawn_interval(x, y, statistic, 3000, seed=1)
    np.testing.assert_allclose((one.drawn.low, one.drawn.high), drawn, rtol=0, atol=0.15)
    assert one.drawn.low < one.fixed.low < one.fixed.high < one.drawn.high
    assert found.differences.of("y", "x").fixed.high == pytest.approx(-one.fixed.low)


def test_intervals_for_functions_like_these_hold_in_95_of_100_simulations_or_more():
    source = np.random.default_rng(3)
    trials, held = 300, 0
    for trial in range(trials):
        of_functions = source.normal(0.5, 1, (30, 1))
        scores = {"x": of_functions + source.normal(0, 1, (30, 10)), "y": source.normal(0, 1, (30, 10))}
        found = averages(scores, bootstraps=300, seed=trial).differences.of("x", "y").drawn
        held += found.low <= 0.5 <= found.high
    assert 0.91 <= held / trials <= 0.99


def test_intervals_of_a_mean_over_these_functions_hold_it_in_95_of_100_simulations():
    source = np.random.default_rng(1)
    deviations = np.array([[0.1], [1.0], [3.0]])
    trials, held = 400, 0
    for trial in range(trials):
        runs = 1 + deviations * source.standard_normal((3, 40))
        found = averages({"x": runs}, bootstraps=300, seed=trial).each["x"].fixed
        held += found.low <= 1 <= found.high
    assert 0.91 <= held / trials <= 0.98


def test_one_replicate_or_one_function_has_a_mean_but_no_interval():
    one_replicate = averages({"x": np.array([[1.0], [3.0]])}).each["x"]
    assert one_replicate.fixed == Interval(2.0, -math.inf, math.inf)
    assert one_replicate.drawn == Interval(2.0, 1.0, 3.0)
    one_function = averages({"x": np.array([[1.0, 3.0]])}).each["x"]
    assert one_function.drawn == Interval(2.0, -math.inf, math.inf)
    assert one_function.fixed == Interval(2.0, 1.0, 3.0)


def test_a_seed_gives_the_same_intervals_and_another_seed_others():
    source = np.random.default_rng(2)
    scores = {rule: source.normal(size=(2, 11, 3)) for rule in "ab"}
    one, again, other = (superiority(scores, bootstraps=99, seed=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one.fixed, again.fixed)
    np.testing.assert_array_equal(one.drawn, again.drawn)
    assert (one.fixed != other.fixed).any()
    np.testing.assert_array_equal(one.mean, other.mean)


def test_areas_and_last_scores_may_disagree():
    late, early = np.tile([0.0, 0.0, 2.0], (1, 4, 1)), np.tile([1.0, 1.0, 1.0], (1, 4, 1))
    scores = {"late": late, "early": early}
    assert superiority(scores, bootstraps=1).mean[0, 1] == 1
    assert superiority(scores, bootstraps=1, of="auc").mean[0, 1] == 0


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
