"""Cholesky factors and roots of matrices that may be singular to working precision.

Batched LU (``solve``, ``inv``, ``logdet``) is wrong in torch 2.13.0+cpu with several threads from
n = 160 on (pytorch issue 142815), so nothing here or above uses it.
"""

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["cholesky", "root"]

_JITTERS = (0.0, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6)


def cholesky(
    matrix: Float[Tensor, "*b n n"],
) -> tuple[Float[Tensor, "*b n n"], Float[Tensor, "*b"]]:
    """Lower factor, and what had to be added to the diagonal of each matrix to find it.

    The jitter is tried from zero upwards in multiples of the largest diagonal entry, for each
    matrix of the batch alone, so that its neighbours do not change its factor.
    """
    size = matrix.diagonal(dim1=-2, dim2=-1).abs().amax(-1)
    jitter = torch.zeros_like(size)
    factor, info = torch.linalg.cholesky_ex(matrix)
    for relative in _JITTERS[1:]:
        failed = info > 0
        if not failed.any():
            return factor, jitter
        jitter = torch.where(failed, relative * size, jitter)
        lifted = matrix.clone()
        lifted.diagonal(dim1=-2, dim2=-1).add_(jitter[..., None])
        factor, info = torch.linalg.cholesky_ex(lifted)
    if (info > 0).any():
        raise ValueError(
            "matrix must be positive definite up to rounding; got one that a jitter of "
            f"{_JITTERS[-1]:g} of its diagonal does not mend. Check the kernel and its parameters."
        )
    return factor, jitter


def root(matrix: Float[Tensor, "*b n n"]) -> Float[Tensor, "*b n n"]:
    """A matrix R with ``R R^T`` equal to this positive semidefinite one, however singular it is.

    Eigenvalues that rounding turned negative count as zero.
    """
    values, vectors = torch.linalg.eigh(matrix)
    return vectors * values.clamp_min(0).sqrt()[..., None, :]
