r"""What is expected of kernels before there are answers.

Where nothing is known of the space, the priors are those of BoTorch's models: lengthscales
:math:`\ell \sim \mathrm{LogNormal}(\sqrt2 + \tfrac12 \log d, \sqrt3)`, which grow with the dimension
so that distances in lengthscales do not (Hvarfner et al. 2024, ICML).  The prior variance has
:math:`\mathrm{LogNormal}(2, \sqrt2)`: mode 1, median 7.4, so that a priori answers are neither pure noise nor
certain.  The density is that of the parameters themselves, not of their logarithms.
"""

import math
from collections.abc import Sequence

import torch
from gpytorch.kernels import Kernel
from gpytorch.priors import LogNormalPrior
from torch import Tensor
from torch.distributions import LogNormal

from askwise.model.data import Data
from askwise.model.kernels import Stationary, covariance
from askwise.model.kernels import kernel as named_kernel

OUTPUTSCALE_PRIOR = LogNormal(torch.tensor(2.0, dtype=torch.float64), math.sqrt(2))
_EXPECTED_LENGTHSCALE, _EXPECTED_VARIANCE = 0.2, 4.0
_NAMES = ["raw_outputscale", "base_kernel.raw_lengthscale"]


def lengthscale_prior(d: int) -> LogNormal:
    """That of each lengthscale in d dimensions."""
    return LogNormal(torch.tensor(math.sqrt(2) + math.log(d) / 2, dtype=torch.float64), math.sqrt(3))


def expected_length(parameters: int) -> float:
    """Expected lengthscale in the unit cube, for this number of parameters."""
    return _EXPECTED_LENGTHSCALE * math.sqrt(parameters)


def expected_kernel(name: str, lengths: Sequence[float], *, averaged: bool = False) -> Kernel:
    r"""A kernel with informative priors for a search space that someone chose to study.

    Each parameter is expected to matter over its whole range: lengthscales of about a quarter of it, longer
    in more dimensions, where distances grow.  Good settings clearly beat bad ones: a standard deviation of
    two.  With wide priors a fit to few answers is often featureless, and only corners are worth querying.
    ``averaged``: for averages over kernels, in which a featureless one is only one of several, lengthscales
    are less certain, and by a quarter longer.

    These are medians of log-normal priors.  A fit maximises their density in natural units, whose mode is
    lower: without answers, learned lengthscales are 0.78 of the expected ones (0.61 if
    ``averaged``), and the deviation is 1.57.

    .. math:: \ell \, e^{-0.5^2} = 0.78 \, \ell, \qquad \sqrt{4 \, e^{-0.7^2}} = 1.57
    """
    stretch, spread_of_lengths = (1.25, 0.7) if averaged else (1.0, 0.5)
    lengths = [stretch * length for length in lengths]
    expected = named_kernel(name, lengths, _EXPECTED_VARIANCE)
    log_lengths = torch.tensor(lengths, dtype=torch.float64).log()
    prior = LogNormalPrior(log_lengths, spread_of_lengths)
    expected.base_kernel.register_prior("length", prior, "lengthscale")
    # float32, as torch makes numbers by default: so it stays for those who set another default
    spread = torch.tensor([math.log(_EXPECTED_VARIANCE), 0.7], dtype=torch.float32)
    expected.register_prior("variance", LogNormalPrior(spread[0], spread[1]), "outputscale")
    return expected.double()


def log_normals(kernel: Kernel, data: Data) -> tuple[Tensor, Tensor] | None:
    """Means and deviations of the prior of the logarithms of the variance and of the lengthscales.

    None for kernels that were not named, and for other priors than those of this file.
    """
    prior, names = covariance(kernel), [name for name, _ in kernel.named_parameters()]
    d = data.points.shape[-1]
    if not isinstance(prior, Stationary) or prior.lanes != data.lanes or names != _NAMES:
        return None
    constraints = [kernel.constraint_for_parameter_name(name) for name in names]
    if any(one is None or one.lower_bound.any() or one.upper_bound.isfinite().any() for one in constraints):
        return None
    priors = {name.rpartition(".")[-1]: one for name, _, one, *_ in kernel.named_priors()}
    default = {"variance": OUTPUTSCALE_PRIOR, "length": lengthscale_prior(d)}
    pair = [(priors or default).get(name) for name in default]
    sizes = [1, kernel.base_kernel.lengthscale.shape[-1]]
    if (
        len(priors) not in (0, 2)
        or not all(isinstance(one, LogNormal) for one in pair)
        or sizes[1] not in (1, d)
    ):
        return None
    middle, spread = (
        torch.cat([getattr(one, part).double().expand(size) for one, size in zip(pair, sizes, strict=True)])
        for part in ("loc", "scale")
    )
    return middle.to(data.points), spread.to(data.points)
