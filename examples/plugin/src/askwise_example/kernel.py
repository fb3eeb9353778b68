"""A kernel family, learned from the answers like the built-in ones."""

from gpytorch.kernels import RQKernel

from askwise.model import register_kernel


@register_kernel("rational_quadratic")
def rational_quadratic(**options):
    """A mixture of squared exponentials of many lengthscales."""
    kernel = RQKernel(**options)
    kernel.raw_alpha.requires_grad_(False)
    return kernel
