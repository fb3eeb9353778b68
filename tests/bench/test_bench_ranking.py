"""The ranking against its definition, written out slowly, and what must not change it."""

import math
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import mannwhitneyu

import askwise as aw
from askwise.bench.published import ALPHA, PAPER, PUBLISHED
from askwise.bench.ranking import (
    Row,
    Table,
    enough_replicates,
    measures,
    rank,
    ranks_at,
    smallest_p,
    spreads_at,
)

HOUSE = r"(?s)^.+ must .+; got .+\. .+"


# the definition, without numpy and scipy


def slow_p(x, y):
    """One-sided Mann-Whitney: normal approximation, variance corrected for ties, continuity of one half."""
    n, m = len(x), len(y)
    u = sum((a > b) + (a == b) / 2 for a in x for b in y)
    pool = [*x, *y]
    ties = sum(pool.count(v) ** 3 - pool.count(v) for v in set(pool))
    var = n * m / 12 * (n + m + 1 - ties / ((n + m) * (n + m - 1)))
    if var <= 1e-9:
        return 1.0
    return math.erfc((u - n * m / 2 - 0.5) / math.sqrt(2 * var)) / 2


def competition_ranks(wins):
    return {rule: 1 + sum(other > count for other in wins.values()) for rule, count in wins.items()}


def borda_of(wins):
    ranks = competition_ranks(wins)
    return {rule: sum(other > ranks[rule] for other in ranks.values()) for rule in wins}


def slow_borda(final, auc, alpha):
    """Of one function; final and auc: {rule: list of one number for each replicate}."""

    def wins_among(values, members):
        return {i: sum(slow_p(values[i], values[j]) <= alpha for j in members if j != i) for i in members}

    wins = wins_among(final, list(final))
    borda = borda_of(wins)
    for count in set(wins.values()):
        group = [rule for rule in wins if wins[rule] == count]
        for rule, more in borda_of(wins_among(auc, group)).items():
            borda[rule] += more
    return borda


def slow_rows(scores, alpha):
    total = dict.fromkeys(scores, 0)
    for f in range(len(next(iter(scores.values())))):
        final = {rule: [run[-1] for run in values[f].tolist()] for rule, values in scores.items()}
        auc = {rule: [sum(run) / len(run) for run in values[f].tolist()] for rule, values in scores.items()}
        for rule, more in slow_borda(final, auc, alpha).items():
            total[rule] += more
    return {Row(rule, competition_ranks(total)[rule], total[rule]) for rule in scores}


# scores to try it on: few small integers, hence many ties, and means over four iterations that are exact


@st.composite
def random_scores(draw, iterations=4):
    functions = draw(st.integers(1, 3))
    sizes = draw(st.lists(st.integers(1, 7), min_size=2, max_size=5))
    lifts = draw(st.lists(st.integers(0, 3), min_size=len(sizes), max_size=len(sizes)))
    return {
        f"rule {i}": draw(arrays(float, (functions, n, iterations), elements=st.integers(0, 3))) + lift
        for i, (n, lift) in enumerate(zip(sizes, lifts, strict=True))
    }


few = settings(max_examples=15)  # an example takes up to 100 ms
alphas = st.sampled_from([5e-4, 0.0123, 0.0456, 0.123, 0.234])


def normal_scores(rules=4, functions=3, replicates=12, iterations=5, seed=0):
    draw = np.random.default_rng(seed).normal(size=(rules, functions, replicates, iterations))
    return {f"rule {i}": draw[i] + 0.4 * i for i in range(rules)}


def cells(table: Table):
    """All that a table says, whatever the order of its rules."""
    by_rule = {row.rule: (row.rank, row.borda) for row in table.rows}
    pairs = {
        (a, b): (table.wins_final[i, j], table.wins_auc[i, j])
        for i, a in enumerate(table.rules)
        for j, b in enumerate(table.rules)
    }
    return by_rule, pairs


@few
@given(random_scores(), alphas)
def test_the_rows_are_those_of_the_definition(scores, alpha):
    assert set(rank(scores, alpha).rows) == slow_rows(scores, alpha)


@few
@given(random_scores(), alphas)
def test_the_matrices_are_fractions_of_functions_won(scores, alpha):
    table = rank(scores, alpha)
    for matrix, measure in ((table.wins_final, lambda s: s[..., -1]), (table.wins_auc, lambda s: s.mean(-1))):
        expected = [
            [
                np.mean([slow_p(x.tolist(), y.tolist()) <= alpha for x, y in zip(mine, yours, strict=True)])
                for yours in (measure(scores[b]) for b in table.rules)
            ]
            for mine in (measure(scores[a]) for a in table.rules)
        ]
        np.testing.assert_array_equal(matrix, expected)


def test_a_level_decides_exactly_as_scipy_tests_one_by_one():
    scores = normal_scores(rules=3, functions=2, replicates=8)  # so few that exact p-values would be usual
    final, auc = measures(scores)
    for values, wins in ((final, "wins_final"), (auc, "wins_auc")):
        for i, j in ((0, 1), (1, 0), (2, 0), (1, 2)):
            p = sorted(
                mannwhitneyu(x, y, alternative="greater", method="asymptotic", use_continuity=True).pvalue
                for x, y in zip(values[i], values[j], strict=True)
            )
            for count, level in enumerate(p, 1):  # p equal to alpha is a win, the least below it is none

                def won(alpha, i=i, j=j, wins=wins):
                    table = rank(scores, float(alpha))
                    a, b = table.rules.index(f"rule {i}"), table.rules.index(f"rule {j}")
                    return getattr(table, wins)[a, b] * 2

                assert won(level) == count
                assert won(np.nextafter(level, 0)) == count - 1


def test_the_slow_p_value_is_scipys():
    source = np.random.default_rng(3)
    for n, m in ((1, 1), (2, 5), (20, 20), (7, 40)):
        x, y = source.integers(0, 6, n) + 1.0, source.integers(0, 6, m) + 0.0
        expected = mannwhitneyu(x, y, alternative="greater", method="asymptotic").pvalue
        assert slow_p(x.tolist(), y.tolist()) == pytest.approx(expected, rel=1e-12)


# a worked example: on function 0 the last scores leave "steady" and "late" equal (each beats "poor" alone),
# and "steady" has the larger mean; on function 1 nobody wins anything


def worked_example():
    spread = np.linspace(0, 0.1, 20)[:, None]
    flat = np.zeros((20, 4)) + spread
    late, steady = flat + np.array([0, 0, 0, 5]), flat + np.array([0, 5, 5, 5])
    best = flat + np.array([0, 0, 0, 9])  # beats all by its last score, though its mean is below steady's
    return {
        rule: np.stack([values, flat])
        for rule, values in {"poor": flat, "late": late, "steady": steady, "best": best}.items()
    }


def test_a_tie_on_last_scores_is_broken_by_the_area_under_the_curve():
    table = rank(worked_example())
    assert table.rows == (Row("best", 1, 3), Row("steady", 2, 2), Row("late", 3, 1), Row("poor", 4, 0))
    assert table.borda_by_function.tolist() == [[3, 2, 1, 0], [0, 0, 0, 0]]
    # of two functions
    assert (2 * table.wins_final).tolist() == [[0, 1, 1, 1], [0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0]]
    assert (2 * table.wins_auc).tolist() == [[0, 0, 1, 1], [1, 0, 1, 1], [0, 0, 0, 1], [0, 0, 0, 0]]


def test_areas_count_against_members_of_the_tied_group_only():
    spread = np.linspace(0, 1, 20)[:, None]
    shapes = {"winner": (0.0, 0.0, 2.0), "second": (1.45, 1.45, 0.0), "first": (1.9, 1.9, 0.0)}
    scores = {rule: (spread + np.array(shape))[None] for rule, shape in shapes.items()}
    table = rank(scores)
    # by area "first" beats "winner", which is of another group, but not "second", which is of its own
    assert table.rows == (Row("winner", 1, 2), Row("second", 2, 0), Row("first", 2, 0))
    assert table.wins_auc.tolist() == [[0, 0, 0], [0, 0, 0], [1, 0, 0]]


def test_equal_rules_share_the_best_rank_in_the_order_given():
    flat = np.zeros((1, 20, 1))
    table = rank({"z": flat, "good b": flat + 1, "good a": flat + 1, "y": flat})
    expected = (Row("good b", 1, 2), Row("good a", 1, 2), Row("z", 3, 0), Row("y", 3, 0))
    assert table.rows == expected
    assert table.rules == ("good b", "good a", "z", "y")


def test_constant_scores_are_no_win_however_large_alpha():
    table = rank({rule: np.full((2, n, 3), 0.1) for rule, n in (("a", 1), ("b", 20), ("c", 7))}, 0.999)
    assert [row.rank for row in table.rows] == [1, 1, 1]
    assert not table.wins_final.any()
    assert not table.wins_auc.any()


def test_equal_trajectories_tie_whatever_their_layout_in_memory():
    values = np.random.default_rng(1).normal(size=(2, 30, 97))
    final, auc = measures({"c": values, "fortran": np.asfortranarray(values)})
    np.testing.assert_array_equal(auc[0], auc[1])
    np.testing.assert_array_equal(final[0], values[..., -1])


@few
@given(random_scores(), alphas, st.randoms(use_true_random=False))
def test_the_order_of_rules_functions_and_replicates_does_not_matter(scores, alpha, chance):
    rules = list(scores)
    chance.shuffle(rules)
    functions = chance.sample(range(len(scores[rules[0]])), len(scores[rules[0]]))
    shuffled = {rule: scores[rule][functions][:, ::-1] for rule in rules}
    assert cells(rank(shuffled, alpha)) == cells(rank(scores, alpha))


@few
@given(random_scores(iterations=1), alphas)
def test_last_scores_count_by_their_order_alone(scores, alpha):
    bent = {rule: np.exp(3 * values) - 7 for rule, values in scores.items()}
    assert cells(rank(bent, alpha)) == cells(rank(scores, alpha))


@few
@given(random_scores(), alphas)
def test_the_unit_of_scores_does_not_matter(scores, alpha):
    other_unit = {rule: 8 * values - 64 for rule, values in scores.items()}
    assert cells(rank(other_unit, alpha)) == cells(rank(scores, alpha))


@few
@given(random_scores(), alphas)
def test_borda_scores_are_whole_and_add_up_over_functions(scores, alpha):
    table = rank(scores, alpha)
    assert table.borda_by_function.sum(0).tolist() == [row.borda for row in table.rows]
    assert table.borda_by_function.max() <= len(scores) - 1
    # nobody wins both ways, nor against itself
    for matrix in (table.wins_final, table.wins_auc):
        assert (matrix + matrix.T <= 1).all()
        assert not matrix.diagonal().any()


@few
@given(random_scores())
def test_a_rule_that_wins_at_a_level_wins_at_a_looser_one(scores):
    tables = ranks_at(scores, (5e-4, 0.005, 0.05))
    for (_, strict), (_, loose) in combinations(tables.items(), 2):
        at = cells(loose)[1]
        assert all(at[pair] >= won for pair, won in cells(strict)[1].items())


def test_rankings_at_several_levels_are_those_at_each():
    scores = normal_scores()
    found = ranks_at(scores, iter([5e-4, 0.05]))
    assert list(found) == [5e-4, 0.05]
    for alpha, table in found.items():
        assert cells(table) == cells(rank(scores, alpha))
    assert cells(found[5e-4]) != cells(found[0.05])


def test_scores_stay_as_they_were():
    scores = normal_scores()
    before = {rule: values.copy() for rule, values in scores.items()}
    rank(scores)
    for rule, values in scores.items():
        np.testing.assert_array_equal(values, before[rule])


def test_whole_numbers_are_scores_too():
    scores = {"a": np.arange(40).reshape(1, 20, 2), "b": np.zeros((1, 20, 2), dtype=int)}
    assert rank(scores).rows == (Row("a", 1, 1), Row("b", 2, 0))


GOOD = np.zeros((2, 3, 4))
HOLE = np.where(np.arange(24).reshape(2, 3, 4) == 17, np.nan, 0.0)
BAD = {
    "no rules": ({}, "two rules or more"),
    "one rule": ({"muc": GOOD}, r"two rules or more; got \['muc'\]"),
    "no dictionary": (GOOD, "two rules or more; got ndarray"),
    "fewer functions": ({"a": GOOD, "b": GOOD[:1]}, "the same functions and iterations for every rule"),
    "fewer iterations": ({"a": GOOD, "b": GOOD[..., :1]}, "the same functions and iterations for every rule"),
    "no iterations": ({"a": GOOD, "b": GOOD[0]}, r"scores of b must be an array .* got shape \(3, 4\)"),
    "no replicates": ({"a": GOOD, "b": GOOD[:, :0]}, r"scores of b must be an array"),
    "no number": ({"a": GOOD, "b": HOLE}, r"scores of b must be finite; got nan at \(1, 1, 1\)"),
    "infinite": ({"a": GOOD - np.inf, "b": GOOD}, r"scores of a must be finite; got -inf at \(0, 0, 0\)"),
}


@pytest.mark.parametrize("case", BAD)
def test_scores_that_cannot_be_compared_are_refused(case, unchecked):
    scores, message = BAD[case]
    with pytest.raises(ValueError, match=HOUSE) as error:
        rank(scores)
    assert error.match(message)


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, 5.0, math.nan, math.inf])
def test_a_level_lies_between_zero_and_one(alpha):
    with pytest.raises(ValueError, match=HOUSE) as error:
        rank({"a": GOOD, "b": GOOD}, alpha)
    assert error.match(r"alpha must lie between 0 and 1; got")


# what was published


@pytest.mark.parametrize("experiment", PUBLISHED)
def test_published_rules_are_ours(experiment):
    published = PUBLISHED[experiment]
    asks = {"bbo": "binary", "pbo": "duel", "batch": "batch"}[experiment]
    for rule in published.rules:
        assert asks in aw.rules.parse(rule).asks
        assert str(aw.rules.parse(rule)) == rule
    assert tuple(published.names.values()) == published.rules
    assert f"table{published.table}_" in published.source
    if experiment != "batch":
        assert f"{published.replicates}x{published.iterations}" in published.source


@pytest.mark.parametrize("experiment", PUBLISHED)
def test_published_matrices_are_fractions_of_34_functions(experiment):
    published = PUBLISHED[experiment]
    assert list(published.borda.values()) == sorted(published.borda.values(), reverse=True)
    for matrix in (published.wins_final, published.wins_auc):
        found = np.array(matrix)
        assert found.shape == (len(published.rules),) * 2
        assert not found.diagonal().any()
        np.testing.assert_array_equal(np.round(np.round(found * len(PAPER)) / len(PAPER), 2), found)
    assert ALPHA == 5e-4


def test_the_benchmark_modules_are_found_from_the_top():
    assert aw.bench.ranking.rank is rank
    assert aw.bench.published.PUBLISHED is PUBLISHED
    assert {"effects", "functions", "published", "ranking"} <= set(dir(aw.bench))
    with pytest.raises(AttributeError, match="no attribute 'rankings'"):
        _ = aw.bench.rankings


# too few replicates


@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 4), (2, 2), (3, 2), (3, 3)])
def test_the_smallest_p_value_is_that_of_all_possible_scores(n, m):
    # only the order of the scores counts, and n + m of them have at most n + m different values
    every = product(range(n + m), repeat=n + m)
    assert smallest_p(n, m) == pytest.approx(min(slow_p(scores[:n], scores[n:]) for scores in every))


@given(st.integers(1, 8), st.integers(1, 8), st.data())
def test_no_scores_have_a_smaller_p_value(n, m, data):
    x, y = (data.draw(st.lists(st.integers(0, 5), min_size=size, max_size=size)) for size in (n, m))
    assert slow_p(x, y) >= smallest_p(n, m) * (1 - 1e-9)


def clear(*counts: int) -> dict:
    """Scores of rules of which each is better than the one before."""
    return {f"rule {k}": 100.0 * k + np.arange(n).reshape(1, n, 1) for k, n in enumerate(counts)}


@pytest.mark.parametrize("alpha", [0.05, 5e-4, 1e-6])
def test_enough_replicates_can_be_significant_and_fewer_cannot(alpha):
    count = enough_replicates(alpha)
    assert rank(clear(count, count), alpha).rows[0].borda == 1
    assert rank(clear(count - 1, count - 1), alpha).rows[0].borda == 0


def test_ranks_without_a_chance_of_significance_say_so():
    few = rank(clear(3, 3), 5e-4)
    assert few.undecidable == (
        "No rule can beat another with so few replicates: whatever the scores, p is at least 0.023, above "
        "the level 0.0005. These ranks say nothing. Run 8 replicates of each rule, or take a higher level."
    )
    assert few.smallest_p > 5e-4
    assert rank(clear(3, 3), 0.05).undecidable == ""
    assert rank(clear(8, 8), 5e-4).undecidable == ""
    assert rank(clear(3, 30, 30), 5e-4).undecidable == ""  # two of them can


# how far chance moves the scores


def totals(scores, alpha=0.05):
    found = {row.rule: row.borda for row in rank(scores, alpha).rows}
    return np.array([found[rule] for rule in scores])


def resampled(scores, source):
    """The replicates of each rule and function, drawn with replacement."""
    return {
        rule: np.stack([runs[source.integers(len(runs), size=len(runs))] for runs in values])
        for rule, values in scores.items()
    }


def test_the_error_is_that_of_resampling_run_by_run():
    scores, source = normal_scores(), np.random.default_rng(4)
    spread = spreads_at(scores, (0.05,), bootstraps=600)[0.05]
    slow = np.array([totals(resampled(scores, source)) for _ in range(400)])
    fast = [spread.error(rule) for rule in scores]
    np.testing.assert_allclose(fast, slow.std(0, ddof=1), rtol=0, atol=0.15)
    np.testing.assert_allclose(spread.fixed.mean(0), slow.mean(0), rtol=0, atol=0.3)
    between = (slow[:, 3] - slow[:, 0]).std(ddof=1)
    assert spread.errors_between("rule 3", "rule 0")[0] == pytest.approx(between, rel=0.2)


def test_the_error_is_near_the_deviation_between_campaigns():
    campaigns = [normal_scores(functions=10, seed=seed) for seed in range(120)]
    true = np.array([totals(scores) for scores in campaigns]).std(0, ddof=1)
    spreads = [spreads_at(scores, (0.05,), bootstraps=50)[0.05] for scores in campaigns[:20]]
    said = np.mean([[spread.error(rule) for rule in spread.rules] for spread in spreads], axis=0)
    # a rule that never wins does so in some resamples: its error is too large
    assert 2 * true[0] < said[0] < 1
    np.testing.assert_allclose(said[1:], true[1:], rtol=0.25)


def test_functions_that_disagree_widen_the_error_for_functions_like_these():
    better, worse = np.ones((1, 20, 1)), np.zeros((1, 20, 1))
    scores = {"a": np.concatenate([better, worse] * 8), "b": np.concatenate([worse, better] * 8)}
    spread = spreads_at(scores, (5e-4,), bootstraps=2000)[5e-4]
    assert spread.error("a") == 0  # on these functions there is no doubt
    fixed, drawn = spread.errors_between("a", "b")
    assert fixed == 0
    assert drawn == pytest.approx(4, rel=0.1)  # each of 16 is won or lost: sqrt(16)
    assert spread.drawn.mean(0) == pytest.approx([8, 8], abs=0.3)


def test_a_seed_gives_the_same_spread():
    scores = normal_scores(functions=2)
    one, again, other = (spreads_at(scores, (0.05,), 30, seed)[0.05].fixed for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()


def test_a_spread_of_nothing_is_refused(unchecked):
    with pytest.raises(ValueError, match="bootstraps must be a whole number from 1; got 0"):
        spreads_at(normal_scores(), (0.05,), 0)
    with pytest.raises(ValueError, match="alpha must lie between 0 and 1; got 2"):
        spreads_at(normal_scores(), (2,))
