"""Cholesky factors and roots of nearly singular matrices."""

import pytest
import torch

from askwise.numerics.linalg import cholesky, inverse_factor_, root


def lower_rank(n, rank, seed=0):
    half = torch.randn(n, rank, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return half @ half.mT


def test_a_definite_matrix_needs_no_jitter():
    matrix = lower_rank(6, 6) + torch.eye(6, dtype=torch.float64)
    factor, jitter = cholesky(matrix)
    assert jitter == 0
    torch.testing.assert_close(factor @ factor.mT, matrix)
    torch.testing.assert_close(factor, factor.tril())


def test_the_added_jitter_is_reported():
    matrix = lower_rank(6, 2) - 1e-9 * torch.eye(6, dtype=torch.float64)
    factor, jitter = cholesky(matrix)
    assert 1e-9 <= jitter < 1e-6
    lifted = matrix + jitter * torch.eye(6, dtype=torch.float64)
    torch.testing.assert_close(factor @ factor.mT, lifted, rtol=0, atol=1e-12)


def test_other_matrices_of_the_batch_do_not_change_a_factor():
    good = lower_rank(6, 6) + torch.eye(6, dtype=torch.float64)
    bad = lower_rank(6, 2) - 1e-9 * torch.eye(6, dtype=torch.float64)
    factors, jitters = cholesky(torch.stack([good, bad]))
    for matrix, factor, jitter in zip((good, bad), factors, jitters, strict=True):
        torch.testing.assert_close((factor, jitter), cholesky(matrix), rtol=0, atol=0)


def test_a_matrix_far_from_definite_is_refused():
    with pytest.raises(ValueError, match="matrix must be positive definite up to rounding"):
        cholesky(-torch.eye(3, dtype=torch.float64))


@pytest.mark.parametrize("rank", [0, 1, 3, 6])
def test_a_root_squares_to_its_matrix_however_singular(rank):
    matrix = torch.stack([lower_rank(6, rank), 1e6 * lower_rank(6, rank, 1)])
    found = root(matrix)
    torch.testing.assert_close(found @ found.mT, matrix, rtol=1e-12, atol=1e-8)


def test_eigenvalues_below_zero_count_as_zero():
    found = root(torch.diag(torch.tensor([4.0, -1e-12], dtype=torch.float64)))
    assert found.isfinite().all()
    torch.testing.assert_close(found @ found.mT, torch.diag(torch.tensor([4.0, 0.0], dtype=torch.float64)))


def test_empty_matrices_have_empty_factors():
    empty = torch.zeros(2, 0, 0, dtype=torch.float64)
    assert cholesky(empty)[0].shape == root(empty).shape == empty.shape


@pytest.mark.parametrize("n", [1, 6, 159, 160, 240])
def test_an_inverse_factor_and_its_pivots_are_those_of_the_cholesky_factor(n):
    matrices = torch.stack([lower_rank(n, n, seed) + torch.eye(n, dtype=torch.float64) for seed in range(2)])
    lower = torch.linalg.cholesky(matrices)
    inverse, pivots = inverse_factor_(matrices.clone())
    torch.testing.assert_close(inverse @ lower, torch.eye(n, dtype=torch.float64).expand_as(lower))
    torch.testing.assert_close(inverse, inverse.tril(), rtol=0, atol=0)
    torch.testing.assert_close(pivots, lower.diagonal(dim1=-2, dim2=-1))


@pytest.mark.parametrize("n", [6, 200])
def test_of_a_matrix_that_needs_jitter_the_inverse_factor_has_the_same(n):
    good = lower_rank(n, n) + torch.eye(n, dtype=torch.float64)
    bad = lower_rank(n, 2) - 1e-9 * torch.eye(n, dtype=torch.float64)
    both = torch.stack([good, bad])
    inverse, pivots = inverse_factor_(both.clone())
    lower, jitter = cholesky(both)
    assert jitter.tolist() == [0, jitter[1]]
    assert jitter[1] > 0
    torch.testing.assert_close(pivots, lower.diagonal(dim1=-2, dim2=-1))
    torch.testing.assert_close(
        inverse, torch.linalg.solve_triangular(lower, torch.eye(n).double(), upper=False)
    )
