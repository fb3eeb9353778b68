r"""Scores of a mixture of normals: f is normal given a kernel, and the kernel is unknown.

Kernel k has the probability :math:`w_k`, and f given it the mean :math:`\mu_k` and the variance
:math:`\sigma_k^2`.  Kernels are the first dimension of all arguments.  What more answers reduce is then the
uncertainty about f and that about the kernel.  Each part is a sum of terms that are not negative.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from askwise.numerics.autograd import Sloped, sloped
from askwise.numerics.normal import binary_entropy, log_ndtr, ndtr, rate_with_slopes, standardised
from askwise.numerics.uncertainty import epistemic_variance, mutual_information

Mixed = Callable[[Tensor, Tensor, Tensor], Tensor]
"""A score as a function of the means and variances of all kernels, and of their weights."""
_TINY = 1e-300


def mixed_moments(
    mean: Float[Tensor, "k *#b"], var: Float[Tensor, "k *#b"], weights: Float[Tensor, "k *#b"]
) -> tuple[Float[Tensor, "*#b"], Float[Tensor, "*#b"]]:
    r"""Mean and variance of f: :math:`\bar\mu = \sum_k w_k \mu_k` and
    :math:`\sum_k w_k (\sigma_k^2 + (\mu_k - \bar\mu)^2)`."""
    middle = (weights * mean).sum(0)
    return middle, (weights * (var + (mean - middle).square())).sum(0)


@sloped(lambda mean, var, weights: _rate_with_slopes(mean, var, weights))
def mixed_rate(
    mean: Float[Tensor, "k *#b"], var: Float[Tensor, "k *#b"], weights: Float[Tensor, "k *#b"]
) -> Float[Tensor, "*#b"]:
    r"""Success probability, :math:`\bar p = \sum_k w_k p_k` with :math:`p_k = \Phi(h_k)`."""
    return (weights * ndtr(standardised(mean, var))).sum(0)


def _rate_with_slopes(mean: Tensor, var: Tensor, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    rate, by_mean, by_var = rate_with_slopes(mean, var)
    return (weights * rate).sum(0), weights * by_mean, weights * by_var


def mixed_logit(
    mean: Float[Tensor, "k *#b"], var: Float[Tensor, "k *#b"], weights: Float[Tensor, "k *#b"]
) -> Float[Tensor, "*#b"]:
    """Log odds of success, which still rise where the probability has been rounded to one."""
    h, log_weights = standardised(mean, var), weights.clamp_min(_TINY).log()
    return (log_weights + log_ndtr(h)).logsumexp(0) - (log_weights + log_ndtr(-h)).logsumexp(0)


@sloped(lambda mean, var, weights: _log_variance_with_slopes(mean, var, weights))
def mixed_log_variance(
    mean: Float[Tensor, "k *#b"], var: Float[Tensor, "k *#b"], weights: Float[Tensor, "k *#b"]
) -> Float[Tensor, "*#b"]:
    r"""Logarithm of the variance of the success rate, the epistemic part of the outcome's variance.

    .. math:: \mathbb V[\Phi(f)] = \sum_k w_k \mathbb V[\Phi(f) \mid k] + \sum_k w_k (p_k - \bar p)^2

    By the law of total variance: what is unknown of f given the kernel, and of the kernel.  Accuracy: that of
    :func:`~askwise.numerics.uncertainty.epistemic_variance` above 1e-300; below, it stays there.
    """
    within, h = epistemic_variance(mean, var), standardised(mean, var)
    # of the less likely outcome, whose probabilities do not cancel
    rate = ndtr(torch.where((weights * h).sum(0) > 0, -h, h))
    apart = rate - (weights * rate).sum(0)
    return (weights * (within + apart.square())).sum(0).clamp_min(_TINY).log()


def _log_variance_with_slopes(mean: Tensor, var: Tensor, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    within, by_mean, by_var = epistemic_variance.with_slopes(mean, var)
    # of the less likely outcome, as above; the slopes of the averaged rate cancel
    side = 1 - 2 * ((weights * standardised(mean, var)).sum(0) > 0).to(mean)
    rate, rate_by_mean, rate_by_var = rate_with_slopes(side * mean, var)
    apart = rate - (weights * rate).sum(0)
    total = (weights * (within + apart.square())).sum(0)
    share = weights * torch.where(total > _TINY, 1 / total, 0.0)
    by_mean = torch.addcmul(by_mean, 2 * side * apart, rate_by_mean)
    by_var = torch.addcmul(by_var, 2 * apart, rate_by_var)
    return total.clamp_min(_TINY).log(), share * by_mean, share * by_var


@sloped(lambda mean, var, weights: _deviation_with_slopes(mean, var, weights))
def mixed_deviation(
    mean: Float[Tensor, "k *#b"], var: Float[Tensor, "k *#b"], weights: Float[Tensor, "k *#b"]
) -> Float[Tensor, "*#b"]:
    """Standard deviation of the success rate, with a finite gradient where all variances are zero."""
    return (0.5 * mixed_log_variance(mean, var, weights)).exp()


def _deviation_with_slopes(mean: Tensor, var: Tensor, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    log, by_mean, by_var = _log_variance_with_slopes(mean, var, weights)
    value = (0.5 * log).exp()
    return value, 0.5 * value * by_mean, 0.5 * value * by_var


def mixed_information(
    mean: Float[Tensor, "k *#b"], var: Float[Tensor, "k *#b"], weights: Float[Tensor, "k *#b"]
) -> Float[Tensor, "*#b"]:
    r"""Mutual information in nats of the outcome and (f, kernel), the epistemic part by entropy.

    .. math:: I(c, (f, k)) = H(\bar p) - \sum_k w_k \mathbb E[H(\Phi(f)) \mid k]
        = \sum_k w_k I(c, f \mid k) + \Big(H(\bar p) - \sum_k w_k H(p_k)\Big)

    By the chain rule; what is in brackets is the information about the kernel alone.
    """
    return (weights * mutual_information(mean, var)).sum(0) + kernel_information(mean, var, weights)


def kernel_information(
    mean: Float[Tensor, "k *#b"], var: Float[Tensor, "k *#b"], weights: Float[Tensor, "k *#b"]
) -> Float[Tensor, "*#b"]:
    r"""Mutual information in nats of the outcome and the kernel, :math:`H(\bar p) - \sum_k w_k H(p_k)`.

    As a sum of divergences from the averaged rate, :math:`\sum_k w_k D(p_k \,\|\, \bar p)`, which does not
    cancel between large entropies.
    """
    h, log_weights = standardised(mean, var), weights.clamp_min(_TINY).log()
    total: Tensor | float = 0.0
    for side in (1, -1):
        log_rate = log_ndtr(side * h)
        total = total + weights * log_rate.exp() * (log_rate - (log_weights + log_rate).logsumexp(0))
    assert isinstance(total, Tensor)
    return total.sum(0).clamp_min(0)


def mixed_expectation(log_formula: Callable[[Tensor, Tensor], Tensor]) -> Mixed:
    """The logarithm of an expectation over f, given that for a normal: its average over the kernels."""

    def averaged(mean: Tensor, var: Tensor, weights: Tensor) -> Tensor:
        return (weights.clamp_min(_TINY).log() + log_formula(mean, var)).logsumexp(0)

    def with_slopes(mean: Tensor, var: Tensor, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        assert isinstance(log_formula, Sloped)
        each, by_mean, by_var = log_formula.with_slopes(mean, var)
        each = weights.clamp_min(_TINY).log() + each
        value = each.logsumexp(0)
        share = (each - value).exp()
        return value, share * by_mean, share * by_var

    return Sloped(averaged, with_slopes) if isinstance(log_formula, Sloped) else averaged


def by_moments(formula: Callable[[Tensor, Tensor], Tensor]) -> Mixed:
    """A formula of mean and variance at those of the mixture."""

    def at_moments(mean: Tensor, var: Tensor, weights: Tensor) -> Tensor:
        return formula(*mixed_moments(mean, var, weights))

    def with_slopes(mean: Tensor, var: Tensor, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        assert isinstance(formula, Sloped)
        middle, total = mixed_moments(mean, var, weights)
        value, by_mean, by_var = formula.with_slopes(middle, total)
        # the slope of the middle in each squared distance from it cancels
        return value, weights * (by_mean + 2 * by_var * (mean - middle)), weights * by_var

    return Sloped(at_moments, with_slopes) if isinstance(formula, Sloped) else at_moments


def mixed_entropy(
    mean: Float[Tensor, "k *#b"], var: Float[Tensor, "k *#b"], weights: Float[Tensor, "k *#b"]
) -> Float[Tensor, "*#b"]:
    r"""Entropy of the outcome in nats, :math:`\sum_k w_k H(p_k)` and the information about the kernel."""
    each = (weights * binary_entropy(standardised(mean, var))).sum(0)
    return each + kernel_information(mean, var, weights)
