"""Cholesky factors and roots of matrices that may be singular to working precision.

Batched LU (``solve``, ``inv``, ``logdet``) is wrong in torch 2.13.0+cpu with several threads from
n = 160 on (pytorch issue 142815), so askwise does not use it.
"""

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from askwise.errors import Refused

_COLUMNS = 96  # of a block
_JITTERS = (1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6)


def cholesky(matrix: Float[Tensor, "*b n n"]) -> tuple[Float[Tensor, "*b n n"], Float[Tensor, "*b"]]:
    """Lower factor, and the jitter added to the diagonal of each matrix.

    The jitter grows from zero, relative to the largest diagonal entry, for each matrix of a batch separately.
    """
    factor, info = torch.linalg.cholesky_ex(matrix)
    jitter = matrix.new_zeros(matrix.shape[:-2])
    if not info.any():
        return factor, jitter
    size = matrix.diagonal(dim1=-2, dim2=-1).abs().amax(-1)
    for relative in _JITTERS:
        jitter = torch.where(info > 0, relative * size, jitter)
        lifted = matrix.clone()
        lifted.diagonal(dim1=-2, dim2=-1).add_(jitter[..., None])
        factor, info = torch.linalg.cholesky_ex(lifted)
        if not info.any():
            return factor, jitter
    got = f"one that is not, even with a jitter of {_JITTERS[-1]:g} of its diagonal"
    advice = "Check the kernel and its parameters."
    raise Refused("matrix", "be positive definite up to rounding", got, advice)


def scaled_inverse(lower: Float[Tensor, "*b n n"], scale: Float[Tensor, "*b n"]) -> Float[Tensor, "*b n n"]:
    r""":math:`L^{-1} \operatorname{diag}(s)` of a lower triangle, in blocks of columns that begin with zeros.

    9 ms for n = 1000, where solving for all columns at once takes 22.  A large triangle is overwritten, since
    new memory would take 2 ms more.
    """
    n = lower.shape[-1]
    if n <= _COLUMNS:
        return _solved_diagonal(lower, scale)
    for start in range(0, n, _COLUMNS):  # solving needs no columns before these
        end = start + _COLUMNS
        lower[..., start:, start:end] = _solved_diagonal(lower[..., start:, start:], scale[..., start:end])
    return lower


def _solved_diagonal(lower: Float[Tensor, "*b n n"], scale: Float[Tensor, "*b k"]) -> Float[Tensor, "*b n k"]:
    """The first columns of a scaled inverse, solved for in place: the copies would take a third of it."""
    columns = lower.new_zeros(*scale.shape, lower.shape[-1])
    columns.diagonal(dim1=-2, dim2=-1).copy_(scale)
    return torch.linalg.solve_triangular(lower, columns.mT, upper=False, out=columns.mT)


def triangle_gram(lower: Float[Tensor, "*b n n"]) -> Float[Tensor, "*b n n"]:
    r""":math:`L^\top L` of a lower triangle, in blocks that leave out its zeros.

    8 ms for n = 1000, where the product takes 24.
    """
    n = lower.shape[-1]
    if n <= 2 * _COLUMNS:
        return lower.mT @ lower
    found = torch.empty_like(lower)
    for start in range(0, n, _COLUMNS):
        end = min(start + _COLUMNS, n)
        rows = lower[..., start:, start:end].mT @ lower[..., start:, :end]
        found[..., start:end, :end] = rows
        found[..., :start, start:end] = rows[..., :start].mT
    return found


def root(matrix: Float[Tensor, "*b n n"]) -> Float[Tensor, "*b n n"]:
    """Symmetric square root of a positive semidefinite matrix, however singular.

    It is unique, so draws made with it do not depend on the signs of eigenvectors.  Eigenvalues that
    rounding made negative count as zero.
    """
    values, vectors = torch.linalg.eigh(matrix)
    return (vectors * values.clamp_min(0).sqrt()[..., None, :]) @ vectors.mT


def thin_root(matrix: Float[Tensor, "*b n n"]) -> Float[Tensor, "*b n r"]:
    """Low-rank root by pivoted Cholesky, with one column per rank to working precision (batch maximum).

    One matrix at a time: 8 ms where :func:`root` takes 190 (rank 199 of 1000).  On a GPU it is :func:`root`.
    """
    if matrix.is_cuda or matrix.numel() == 0:
        return root(matrix)
    columns = [_pivoted(one) for one in matrix.flatten(0, -3).numpy()]
    rank = max(part.shape[-1] for part in columns)
    padded = [np.pad(part, ((0, 0), (0, rank - part.shape[-1]))) for part in columns]
    return torch.from_numpy(np.stack(padded)).reshape(*matrix.shape[:-1], rank)


def leading_rows(matrix: Float[Tensor, "n n"], least: float) -> Int[Tensor, " r"]:
    """The rows that explain most of a covariance: pivots of its Cholesky factor that exceed ``least``."""
    _, pivots, rank = _factored(matrix.cpu().numpy(), least)
    return torch.from_numpy(pivots[:rank].astype(np.int64)).to(matrix.device)


def _pivoted(matrix: np.ndarray) -> np.ndarray:
    factor, pivots, rank = _factored(matrix, 4 * np.finfo(matrix.dtype).eps * matrix.diagonal().max())
    unpivoted = np.empty((len(matrix), rank))
    unpivoted[pivots] = np.tril(factor)[:, :rank]
    return unpivoted


def _factored(matrix: np.ndarray, least: float) -> tuple[np.ndarray, np.ndarray, int]:
    """Cholesky factor, pivots and rank."""
    from scipy.linalg.lapack import dpstrf  # a tenth of a second, which a first question need not wait for

    factor, pivots, rank, _ = dpstrf(matrix, tol=least, lower=1)
    return factor, pivots - 1, rank
