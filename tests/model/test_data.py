"""Answers as signed rows: content, order, and refused input."""

import functools
import inspect
import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import askwise as aw
from tensors import f64


def dense(data):
    """The matrix A, [lane, n, p], from the indices alone."""
    laned = data.unsqueezed()
    A = torch.zeros(*laned.first.shape, laned.points.shape[-2], dtype=torch.float64)
    for lane, row in itertools.product(*map(range, laned.first.shape)):
        A[lane, row, laned.first[lane, row]] += 1
        if laned.second[lane, row] >= 0:
            A[lane, row, laned.second[lane, row]] -= 1
    return A if data.lanes else A[0]


def rows_of(data):
    """The two points of each row (the second None for a yes/no answer) and its sign."""
    return [
        (tuple(data.points[i].tolist()), tuple(data.points[j].tolist()) if j >= 0 else None, s)
        for i, j, s in zip(data.first.tolist(), data.second.tolist(), data.signs.tolist(), strict=True)
    ]


def mixed(lanes=(), seed=0):
    generator = torch.Generator().manual_seed(seed)
    X = torch.randint(3, (*lanes, 4, 2), generator=generator) / 2
    pairs = torch.randint(3, (*lanes, 5, 2, 2), generator=generator) / 2
    coins = torch.randint(2, (*lanes, 9), generator=generator)
    return aw.Data.binary(X, coins[..., :4]) + aw.Data.duels(pairs, coins[..., 4:])


def test_yes_no_answers_keep_their_points_and_signs():
    data = aw.Data.binary(f64([[0.7], [0.2]]), torch.tensor([1, 0]))
    assert rows_of(data) == [((0.7,), None, 1.0), ((0.2,), None, -1.0)]


def test_a_duel_subtracts_the_second_point():
    data = aw.Data.duels(f64([[[0.7], [0.2]], [[0.2], [0.9]]]), torch.tensor([1, 0]))
    assert rows_of(data) == [((0.7,), (0.2,), 1.0), ((0.2,), (0.9,), -1.0)]


def test_batches_are_all_pairs_in_the_stated_order():
    batch = f64([[[0.1], [0.2], [0.3], [0.4]], [[0.5], [0.6], [0.7], [0.8]]])
    data = aw.Data.batches(batch, torch.tensor([[1, 0, 1, 0, 1, 0], [0, 0, 0, 1, 1, 1]]))
    order = list(itertools.combinations(range(4), 2))
    pairs = [(batch[b, i].tolist(), batch[b, j].tolist()) for b in (0, 1) for i, j in order]
    assert [(list(first), list(second)) for first, second, _ in rows_of(data)] == pairs
    assert data.signs.tolist() == [1, -1, 1, -1, 1, -1, -1, -1, -1, 1, 1, 1]


def test_a_batch_of_two_is_a_duel():
    X, c = f64([[[0.1], [0.2]], [[0.5], [0.1]]]), torch.tensor([1, 0])
    assert rows_of(aw.Data.batches(X, c[:, None])) == rows_of(aw.Data.duels(X, c))


def test_distinct_points_are_kept_once():
    data = aw.Data.binary(f64([[0.2, 0.1], [0.2, 0.3], [0.2, 0.1]]), [1, 0, 1])
    data = data + aw.Data.duels(f64([[[0.2, 0.3], [0.2, 0.1]]]), [1])
    assert sorted(data.points.tolist()) == [[0.2, 0.1], [0.2, 0.3]]


def test_points_that_differ_in_the_last_bit_are_distinct():
    assert aw.Data.binary(f64([[0.5], [0.5 + 2**-53]]), [1, 0]).points.shape == (2, 1)


def test_lists_are_read_in_float64():
    data = aw.Data.binary([[0.2]], [1])
    assert data.points.item() == 0.2
    assert (data + aw.Data.binary(f64([[0.2]]), [1])).points.shape == (1, 1)


@pytest.mark.parametrize("lanes", [(), (3,)])
def test_matvec_and_rmatvec_multiply_by_the_matrix_and_its_transpose(lanes):
    data, generator = mixed(lanes), torch.Generator().manual_seed(1)
    A = dense(data)
    at_points = torch.rand(*lanes, A.shape[-1], 3, dtype=torch.float64, generator=generator)
    at_rows = torch.rand(*lanes, A.shape[-2], 3, dtype=torch.float64, generator=generator)
    torch.testing.assert_close(data.matvec(at_points), A @ at_points)
    torch.testing.assert_close(data.rmatvec(at_rows), A.mT @ at_rows)


def test_a_point_against_itself_is_a_row_of_zeros():
    data = aw.Data.duels(f64([[[0.3], [0.3]]]), [1])
    assert data.matvec(f64([[5.0]])).item() == 0
    assert data.rmatvec(f64([[5.0]])).item() == 0


def test_adding_keeps_the_order_of_the_answers():
    one, other = mixed(seed=1), mixed(seed=2)
    assert rows_of(one + other) == rows_of(one) + rows_of(other)
    assert (one + other).n == one.n + other.n == 18


def test_each_lane_has_the_rows_it_has_alone():
    data = mixed((3,))
    for lane in range(3):
        alone = aw.Data(data.points[lane], data.first[lane], data.second[lane], data.signs[lane])
        generator = torch.Generator().manual_seed(0)
        X = torch.randint(3, (3, 4, 2), generator=generator) / 2
        pairs = torch.randint(3, (3, 5, 2, 2), generator=generator) / 2
        c = torch.randint(2, (3, 9), generator=generator)
        assert rows_of(alone) == rows_of(
            aw.Data.binary(X[lane], c[lane, :4]) + aw.Data.duels(pairs[lane], c[lane, 4:])
        )


def test_a_lane_with_fewer_points_is_padded_with_copies_that_no_row_refers_to():
    data = aw.Data.binary(f64([[[0.1], [0.1]], [[0.2], [0.3]]]), torch.tensor([[1, 0], [1, 0]]))
    assert data.points.shape == (2, 2, 1)
    assert data.points[0].tolist() == [[0.1], [0.1]]
    assert data.first[0].tolist() == [0, 0]


def test_a_lane_dimension_is_added_only_where_there_is_none():
    assert mixed().unsqueezed().lanes == (1,)
    laned = mixed((3,))
    assert laned.unsqueezed() is laned


def test_data_without_answers_can_be_added_to():
    none = aw.Data.duels(torch.zeros(0, 2, 2, dtype=torch.float64), torch.zeros(0))
    assert none.n == 0
    assert rows_of(none + mixed()) == rows_of(mixed()) == rows_of(mixed() + none)


@pytest.mark.parametrize(
    ("make", "X", "c", "message"),
    [
        (
            aw.Data.binary,
            torch.zeros(2),
            torch.zeros(2),
            r"X must have shape \[n, d\] or \[lane, n, d\]; got \(2,\)",
        ),
        (
            aw.Data.duels,
            torch.zeros(2, 1),
            torch.zeros(2),
            r"shape \[n, 2, d\] or \[lane, n, 2, d\]; got \(2, 1\)",
        ),
        (
            aw.Data.batches,
            torch.zeros(2, 1),
            torch.zeros(2),
            r"shape \[n, m, d\] or \[lane, n, m, d\]; got \(2, 1\)",
        ),
        (aw.Data.duels, torch.zeros(2, 3, 1), torch.zeros(2), r"two points a duel; got 3\. Use Data.batches"),
        (
            aw.Data.binary,
            torch.zeros(2, 1),
            torch.zeros(3),
            r"one outcome for each answer, shape \(2,\); got \(3,\)",
        ),
        (aw.Data.batches, torch.zeros(2, 3, 1), torch.zeros(2, 2), r"answer, shape \(2, 3\); got \(2, 2\)"),
        (aw.Data.binary, torch.zeros(2, 0), torch.zeros(2), "X must have at least one dimension; got d = 0"),
        (
            aw.Data.binary,
            torch.full((1, 1), 1.5),
            torch.zeros(1),
            r"lie in the unit cube; got 1\.5\. Scale each",
        ),
        (aw.Data.binary, torch.full((1, 1), -0.5), torch.zeros(1), r"lie in the unit cube; got -0\.5"),
        (aw.Data.binary, torch.full((1, 1), torch.nan), torch.zeros(1), "lie in the unit cube; got nan"),
        (
            aw.Data.binary,
            torch.zeros(1, 1),
            torch.full((1,), -1),
            r"c must be 0 or 1; got -1\. Use 1 for a yes",
        ),
        (aw.Data.duels, torch.zeros(1, 2, 1), torch.full((1,), torch.nan), "c must be 0, 1 or 0.5; got nan"),
    ],
)
def test_invalid_data_are_refused(make, X, c, message):
    with pytest.raises(ValueError, match=message):
        make(X, c)


def test_data_of_another_dimension_or_other_lanes_cannot_be_added():
    message = "data to add must have the same lanes and dimension"
    with pytest.raises(ValueError, match=message + r"; got \(\) and \(\) lanes, d = 2 and 1"):
        mixed() + aw.Data.binary(f64([[0.1]]), [1])
    with pytest.raises(ValueError, match=message + r"; got \(3,\) and \(\) lanes"):
        mixed((3,)) + mixed()


answers = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.booleans()), min_size=2, max_size=8)


def duels(triples):
    X = f64([[[i / 4], [j / 4]] for i, j, _ in triples])
    return aw.Data.duels(X, torch.tensor([won for _, _, won in triples]).long())


@settings(max_examples=12)
@given(answers, st.randoms(use_true_random=False))
def test_the_order_of_the_answers_does_not_change_the_posterior(triples, random):
    shuffled = random.sample(triples, len(triples))
    x, kernel = f64([[0.1], [0.6]]), aw.kernel("matern52", 0.3, 2.0)
    one, other = aw.infer(duels(triples), kernel), aw.infer(duels(shuffled), kernel)
    torch.testing.assert_close(one.mean(x), other.mean(x), rtol=1e-7, atol=1e-7)
    torch.testing.assert_close(one.cov(x), other.cov(x), rtol=1e-7, atol=1e-7)
    torch.testing.assert_close(one.log_evidence, other.log_evidence, rtol=1e-9, atol=1e-9)


@settings(max_examples=30)
@given(answers, answers, answers)
def test_adding_is_associative_and_keeps_distinct_points(a, b, c):
    a, b, c = map(duels, (a, b, c))
    left, right = (a + b) + c, a + (b + c)
    assert rows_of(left) == rows_of(right)
    assert len({tuple(p) for p in left.points.tolist()}) == left.points.shape[-2]


@settings(max_examples=12)
@given(answers)
def test_swapping_the_points_and_the_winner_leaves_the_posterior(triples):
    x, kernel = f64([[0.1], [0.6]]), aw.kernel("se", 0.3, 2.0)
    swapped = [(j, i, not won) for i, j, won in triples]
    one, other = aw.infer(duels(triples), kernel), aw.infer(duels(swapped), kernel)
    torch.testing.assert_close(one.mean(x), other.mean(x), rtol=1e-7, atol=1e-7)
    torch.testing.assert_close(one.log_evidence, other.log_evidence, rtol=1e-9, atol=1e-9)


def unchecked(name: str):
    """A constructor as it is without the type checks of the tests."""
    return functools.partial(inspect.unwrap(vars(aw.Data)[name].__func__), aw.Data)


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: unchecked("binary")([["a"]], [1]), "X"),
        (lambda: unchecked("binary")(None, [1]), "X"),
        (lambda: unchecked("binary")([[0.1], [0.2, 0.3]], [1, 0]), "X"),
        (lambda: unchecked("binary")(torch.tensor([[0.1j]]), [1]), "X"),
        (lambda: unchecked("binary")([[10**400]], [1]), "X"),
        (lambda: unchecked("binary")([[0.1]], [None]), "c"),
        (lambda: unchecked("duels")(object(), [1]), "X"),
        (lambda: unchecked("batches")([[[0.1], [0.2], ["c"]]], [[1, 1, 1]]), "X"),
        (lambda: unchecked("rankings")([[[0.1], [0.2]]], [["x"]]), "best"),
    ],
)
def test_what_has_no_numbers_is_refused(make, what):
    with pytest.raises(TypeError, match=rf"^{what} must be real numbers; got .+\. Give nested lists"):
        make()
