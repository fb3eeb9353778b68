"""Cholesky factors and roots of nearly singular matrices."""

import pytest
import torch

from askwise.numerics.linalg import cholesky, leading_rows, root, scaled_inverse, triangle_gram


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


@pytest.mark.parametrize("n", [0, 1, 6, 95, 96, 97, 192, 240])
def test_a_scaled_inverse_times_its_triangle_is_the_scale(n):
    matrices = torch.stack([lower_rank(n, n, seed) + torch.eye(n, dtype=torch.float64) for seed in range(2)])
    lower, scale = torch.linalg.cholesky(matrices), torch.linspace(0, 3, 2 * n).double().reshape(2, n)
    inverse = scaled_inverse(lower.clone(), scale)
    torch.testing.assert_close(lower @ inverse, torch.diag_embed(scale))
    torch.testing.assert_close(inverse, inverse.tril(), rtol=0, atol=0)


@pytest.mark.parametrize("n", [0, 1, 95, 192, 193, 300])
def test_the_gram_of_a_triangle_is_its_product(n):
    lower = torch.stack([lower_rank(n, n, seed).tril() for seed in range(2)])
    torch.testing.assert_close(triangle_gram(lower), lower.mT @ lower)


def test_the_leading_rows_of_a_covariance_explain_the_others():
    x = torch.linspace(0, 1, 40, dtype=torch.float64)
    matrix = torch.exp(-8 * (x[:, None] - x).square())
    rows = leading_rows(matrix, 1e-3)
    half = torch.linalg.solve_triangular(
        torch.linalg.cholesky(matrix[rows][:, rows]), matrix[rows], upper=False
    )
    left = (matrix - half.mT @ half).diagonal()
    assert left.max() <= 1e-3 + 1e-12
    fewer = rows[:-1]
    half = torch.linalg.solve_triangular(
        torch.linalg.cholesky(matrix[fewer][:, fewer]), matrix[fewer], upper=False
    )
    assert (matrix - half.mT @ half).diagonal().max() > 1e-3
