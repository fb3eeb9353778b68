r"""The probability of answers, and the Gaussian sites that match its moments.

A row alone has the outcome +1, -1 or 0 (a tie) of a normal response with a margin.  The rows of an answer
hold together unless it is a lapse or a guess:

.. math:: P(\text{answer}) = \text{floor} + \text{sight} \prod_i P_i

EP treats the lapse as one more unknown, independent of f: with the probability :math:`\omega` that the answer
is none, the tilted distribution of each of its rows is the mixture
:math:`\omega \, \text{truncated} + (1 - \omega) \, \text{cavity}`.  For answers of one row that is exact.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from askwise.model.data import Data
from askwise.numerics import interval_moments, log_ndtr, truncated_moments

_LEAST_PRECISION = 1e-9  # of the site of an answer that is probably a lapse
_MIN_ROW_NOISE = 1e-12  # keeps the site of a row without noise of its own finite


@dataclass(frozen=True)
class Likelihood:
    """Observed outcome of each row: above its margin, below it, or within."""

    signs: Float[Tensor, "lane n"]
    row_noise: Float[Tensor, "lane n"]
    margin: Float[Tensor, "lane #n"]
    plain: bool
    joint: "_Joint | None" = None
    """How rows make answers; None if each row is an answer of its own, and none is a lapse."""

    @classmethod
    def of(cls, data: Data) -> "Likelihood":
        """The likelihood of data with lanes."""
        margin = data.margin[..., None]
        if not data.has_margin.all():
            margin = torch.where(data.has_margin, margin, 0.0)
        row_noise = data.row_noise.clamp_min(_MIN_ROW_NOISE)
        plain = data.plain and not row_noise.requires_grad
        return cls(data.signs, row_noise, margin, plain, _Joint.of(data))

    @property
    def requires_grad(self) -> bool:
        """Whether it has parameters that are being learned."""
        parts = [self.row_noise, self.margin]
        if self.joint is not None:
            parts += [self.joint.floor, self.joint.sight]
        return any(part.requires_grad for part in parts)

    def select(self, lanes: Tensor) -> "Likelihood":
        """The likelihood of some of the lanes."""
        joint = None if self.joint is None else self.joint.select(lanes)
        return Likelihood(self.signs[lanes], self.row_noise[lanes], self.margin[lanes], self.plain, joint)

    def with_outcome(self, sign: float) -> "Likelihood":
        """The same rows, each an answer of its own with the outcome ``sign``: a tie only with a margin."""
        joint = None if self.joint is None else self.joint.alone(sign)
        return replace(self, signs=torch.full_like(self.signs, sign), joint=joint)

    def sites(self, mean: Tensor, var: Tensor) -> Float[Tensor, "lane 2 n"]:
        r"""Sites that match the moments of the cavity times the likelihood (GPML, eq. 3.58).

        With :math:`z = (y m - t) / s`, :math:`s^2 = \sigma^2 + v` for a row noise :math:`\sigma^2`, and the
        moments of a normal below z (hazard :math:`\lambda`, depth e, variance r):
        :math:`\tau = \lambda e / (\sigma^2 + v r)` and
        :math:`\nu = y [s (e - z r) + t \lambda e] / (\sigma^2 + v r)`, where
        :math:`e - z r = \lambda + z \lambda e`.

        For a tie, r is the variance of a standard normal within t/s of :math:`-m/s`, and o the offset of its
        mean from there: :math:`\tau = (1 - r) / (\sigma^2 + v r)` and
        :math:`\nu = (s o - m r) / (\sigma^2 + v r)`.
        """
        s, weight, push, r = self._moments(mean, var)
        if self.joint is not None:
            return self._mixed_sites(mean, var, s, weight, push, r)
        row_noise = 1 if self.plain else self.row_noise
        return torch.stack([weight, push], -2) / (row_noise + var * r)[:, None]

    def _moments(self, mean: Tensor, var: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        r"""s and the numerators of both sites, and r.

        With the slope :math:`a = \partial \log P / \partial m` and the curvature
        :math:`\kappa = -\partial^2 \log P / \partial m^2` they are :math:`s^2 \kappa` and
        :math:`s^2 (a + m \kappa)`.
        """
        s, z = self._standardised(mean, var)
        rate, depth, r = truncated_moments(z)
        weight = rate * depth
        pull = torch.where(z > 0, torch.addcmul(rate, z, weight), torch.addcmul(depth, z, r, value=-1))
        push = self.signs * s * pull
        if not self.plain:
            push = push + self.signs * self.margin * weight
        if not self.plain and (ties := self.signs == 0).any():
            _, offset, left = interval_moments((-mean / s)[ties], (self.margin / s)[ties])
            tied = ((1 - left).clamp_min(0), s[ties] * offset - mean[ties] * left, left)
            both = zip((weight, push, r), tied, strict=True)
            weight, push, r = (one.masked_scatter(ties, other) for one, other in both)
        return s, weight, push, r

    def _mixed_sites(
        self, mean: Tensor, var: Tensor, s: Tensor, weight: Tensor, push: Tensor, r: Tensor
    ) -> Tensor:
        r"""Sites that match the moments of a mixture with the cavity.

        With the slope :math:`a`, the curvature :math:`\kappa` and the probability :math:`\omega` that the row
        holds, the mixture has the slope :math:`\omega a` and the curvature
        :math:`\kappa_\omega = \omega \kappa - \omega (1 - \omega) a^2`, and

        .. math:: 1 - v \kappa_\omega = (1 - \omega) + \omega \frac{\sigma^2 + v r}{s^2}
            + v\, \omega (1 - \omega) a^2

        has no cancellation.  A negative curvature is replaced by zero; the mean is matched all the same.
        """
        assert self.joint is not None
        held = self.joint.held(self._row_log_probability(mean, var))
        square = s.square()
        slope = self._slope(mean, s, push, weight)
        spread = held * (1 - held) * slope.square()
        kappa = held * weight / square - spread
        left = (1 - held) + held * (self.row_noise + var * r) / square + var * spread
        tau, nu = kappa / left, (held * push / square - mean * spread) / left
        shift = held * slope
        flat = shift + _LEAST_PRECISION * (mean + var * shift)
        return torch.stack(
            [tau.clamp_min(_LEAST_PRECISION), torch.where(tau > _LEAST_PRECISION, nu, flat)], -2
        )

    def _slope(self, mean: Tensor, s: Tensor, push: Tensor, weight: Tensor) -> Tensor:
        """Derivative of the log probability in the mean."""
        _, z = self._standardised(mean, s.square() - self.row_noise)
        slope = self.signs * truncated_moments(z)[0] / s
        if (ties := self.signs == 0).any():
            slope = torch.where(ties, (push - mean * weight) / s.square(), slope)
        return slope

    def log_probability(self, mean: Tensor, var: Tensor) -> Float[Tensor, "lane n"]:
        """Log probability of each outcome if its row has this mean and variance.

        For an answer of several rows that may be a lapse it is that of the whole answer, at its first row,
        and zero at the others.
        """
        value = self._row_log_probability(mean, var)
        return value if self.joint is None else self.joint.log_probability(value)

    def _row_log_probability(self, mean: Tensor, var: Tensor) -> Float[Tensor, "lane n"]:
        s, z = self._standardised(mean, var)
        value = log_ndtr(z)
        if self.plain or not (ties := self.signs == 0).any():
            return value
        return value.masked_scatter(ties, interval_moments((-mean / s)[ties], (self.margin / s)[ties])[0])

    def _standardised(self, mean: Tensor, var: Tensor) -> tuple[Tensor, Tensor]:
        """s and z, as in :meth:`sites`."""
        if self.plain:
            return (s := (1 + var).sqrt()), self.signs * mean / s
        return (s := (self.row_noise + var).sqrt()), (self.signs * mean - self.margin) / s


@dataclass(frozen=True)
class _Joint:
    """How rows make answers that may be lapses."""

    floor: Float[Tensor, "lane n"]
    """Probability of the row's answer as a lapse or a guess."""
    sight: Float[Tensor, "lane n"]
    """Probability that the answer is neither."""
    answer: Int[Tensor, "lane n"] | None
    """The answer of each row; None if each row is one."""
    lapse: Float[Tensor, "lane n"]
    guess: Float[Tensor, "lane 1"]
    is_binary: Bool[Tensor, "lane n"]

    @classmethod
    def of(cls, data: Data) -> "_Joint | None":
        if not data.has_lapses:
            return None  # rows of an answer are then as good as answers of their own
        counts = torch.zeros_like(data.signs).scatter_add(-1, data.answer, torch.ones_like(data.signs))
        parts = data.lapse, data.guess[..., None], data.second < 0
        floor, sight = _floor_and_sight(data.signs, data.chance, *parts)
        return cls(floor, sight, data.answer if (counts > 1).any() else None, *parts)

    def alone(self, sign: float) -> "_Joint":
        """For rows that are answers of their own, all with this outcome."""
        signs = torch.full_like(self.floor, sign)
        parts = self.lapse, self.guess, self.is_binary
        return _Joint(*_floor_and_sight(signs, 0.5 * signs.abs(), *parts), None, *parts)

    def select(self, lanes: Tensor) -> "_Joint":
        answer = None if self.answer is None else self.answer[lanes]
        others = (part[lanes] for part in (self.lapse, self.guess, self.is_binary))
        return _Joint(self.floor[lanes], self.sight[lanes], answer, *others)

    def held(self, value: Tensor) -> Float[Tensor, "lane n"]:
        """Probability that each row holds, given the log probability of each alone."""
        seen = self.sight.log() + self._sums(value)
        return torch.sigmoid(seen - self.floor.log())

    def log_probability(self, value: Tensor) -> Float[Tensor, "lane n"]:
        """Log probability of each answer at its first row, zero at its other rows."""
        seen = self.sight.log() + self._sums(value)
        # a tie is never a lapse, and the logarithm of zero has no gradient
        blind = self.floor > 0
        whole = torch.logaddexp(torch.where(blind, self.floor, 1.0).log(), seen)
        whole = torch.where(blind, whole, seen)
        if self.answer is not None:
            index = torch.arange(value.shape[-1], device=value.device).expand_as(self.answer)
            first = torch.full_like(index, value.shape[-1]).scatter_reduce(-1, self.answer, index, "amin")
            whole = torch.where(first.gather(-1, self.answer) == index, whole, 0.0)
        return whole

    def _sums(self, value: Tensor) -> Tensor:
        """Sum over the rows of the same answer."""
        if self.answer is None:
            return value
        return torch.zeros_like(value).scatter_add(-1, self.answer, value).gather(-1, self.answer)


def _floor_and_sight(
    signs: Tensor, chance: Tensor, lapse: Tensor, guess: Tensor, is_binary: Tensor
) -> tuple[Tensor, Tensor]:
    """Probability of each answer without looking, and of looking; a guess rate is that of a yes."""
    floor, sight = lapse * chance, 1 - lapse
    if not guess.any():
        return floor, sight
    guessed = torch.where(signs > 0, guess, lapse) * (signs != 0)
    return torch.where(is_binary, guessed, floor), torch.where(is_binary, sight - guess, sight)
