r"""How people turn utilities into answers: how often they lapse, how noisy they are, how much they differ.

Priors, as densities of what is learned, logits and logarithms: a lapse rate has the shape of Beta(1, 49) with
the mode at 2%, the share of variance of one's own that of Beta(1, 1).  The logarithm of a person's noise has
N(0, 0.7^2), each slope of the logarithm of the noise over the cube N(0, 1).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from askwise.model.data import Data
from askwise.model.predictive import noise_variance

Learnable = Literal["lapse", "noise", "share", "slopes"]
"""What can be learned of people, beside the margin."""
LAPSE = 0.02
"""The lapse rate that is expected."""
EXPECTED_SHARE = 0.3
"""The share of the prior variance that is expected to be one's own."""
_NOISE_DEVIATION, _SLOPE_DEVIATION = 0.7, 1.0
_LEAST_LAPSE = 1e-4
_BOUNDS = {"lapse": (-9.2, 4.0), "noise": (-2.3, 3.0), "share": (-6.0, 4.6), "slopes": (-4.0, 4.0)}
"""Of the free parameters: logits and logarithms."""


@dataclass(frozen=True, eq=False)
class Observer:
    """The parameters of answers, one of each for every rater or for all."""

    lapse: Float[Tensor, "*lane raters"]
    noise: Float[Tensor, "*lane raters"]
    """Standard deviation of the noise in each rater's answers; 1 is that of the model."""
    share: Float[Tensor, "*lane"]
    """Share of the prior variance that is each rater's own."""
    slopes: Float[Tensor, "*lane d"]
    """Slopes of the logarithm of the noise's deviation over the cube; it is 1 in the middle."""
    guess: Float[Tensor, "*lane"]

    @classmethod
    def expected(
        cls, data: Data, raters: int, *, lapse: float = 0.0, guess: float = 0.0, share: float = 0.0
    ) -> "Observer":
        """People as they are expected."""
        each, one = data.signs.new_ones(*data.lanes, raters), data.signs.new_ones(data.lanes)
        slopes = data.signs.new_zeros(*data.lanes, data.points.shape[-1])
        return cls(lapse * each, each, share * one, slopes, guess * one)

    @classmethod
    def start(cls, data: Data, raters: int, learn: Sequence[Learnable], guess: float = 0.0) -> "Observer":
        """Where learning starts."""
        lapse, share = LAPSE if "lapse" in learn else 0.0, EXPECTED_SHARE if "share" in learn else 0.0
        return cls.expected(data, raters, lapse=lapse, guess=guess, share=share)

    def applied(self, data: Data) -> Data:
        """The data as answered by such people; to data that does not say yet by whom."""
        rater = data.rater.clamp_max(self.lapse.shape[-1] - 1)
        changed = replace(data, share=self.share, guess=self.guess)
        lapse = self.lapse.gather(-1, rater.gather(-1, data.first))
        changed = replace(changed, lapse=lapse)
        if bool((self.noise == 1).all() and (self.slopes == 0).all()) and not self._has_learned_noise:
            return changed
        var = noise_variance(self.slopes, data.points) * self.noise.gather(-1, rater).square()
        # each member of a comparison brings half of its noise, on its point if other rows share it
        alone = torch.where(data.point_noise == 0, var, 0.0)
        one, other = alone.gather(-1, data.first), alone.gather(-1, data.second.clamp_min(0))
        row_noise = torch.where(data.second < 0, one, (one + other) / 2)
        return replace(changed, point_noise=data.point_noise * var, row_noise=row_noise)

    @property
    def _has_learned_noise(self) -> bool:
        return self.noise.requires_grad or self.slopes.requires_grad

    def free(self, learn: Sequence[Learnable]) -> Float[Tensor, "*lane k"]:
        """What is to be learned, as unconstrained numbers."""
        parts = {
            "lapse": lambda: self.lapse.clamp_min(_LEAST_LAPSE).logit(),
            "noise": lambda: self.noise.log(),
            "share": lambda: self.share[..., None].logit(),
            "slopes": lambda: self.slopes,
        }
        return torch.cat([parts[name]() for name in learn], -1)

    def with_free(self, learn: Sequence[Learnable], values: Float[Tensor, "*lane k"]) -> "Observer":
        """These people with other values of what is learned."""
        split = zip(learn, values.split(self.sizes(learn), -1), strict=True)
        read: dict[str, Callable[[Tensor], Tensor]] = {
            "lapse": torch.sigmoid,
            "noise": torch.exp,
            "share": lambda value: value.sigmoid()[..., 0],
            "slopes": lambda value: value,
        }
        return replace(self, **{name: read[name](value) for name, value in split})

    def sizes(self, learn: Sequence[Learnable]) -> list[int]:
        """How many numbers each is."""
        count = {"lapse": self.lapse.shape[-1], "noise": self.noise.shape[-1], "share": 1}
        return [count.get(name, self.slopes.shape[-1]) for name in learn]

    def bounds(self, learn: Sequence[Learnable]) -> tuple[list[float], list[float]]:
        """Lowest and highest values of what is learned."""
        low, high = ([_BOUNDS[name][side] for name in learn] for side in (0, 1))
        if "lapse" in learn and (guess := float(self.guess.max())):  # lapses and guesses are below one
            most = (1 - guess) / (1 + math.exp(-_BOUNDS["lapse"][1]))
            high[list(learn).index("lapse")] = math.log(most / (1 - most))
        sizes = self.sizes(learn)
        spread = [
            [value for value, size in zip(side, sizes, strict=True) for _ in range(size)]
            for side in (low, high)
        ]
        return spread[0], spread[1]

    def log_prior(self, learn: Sequence[Learnable]) -> Float[Tensor, "*lane"]:
        """Log density of what is learned, up to a constant."""
        terms = {
            "lapse": lambda: (self.lapse.log() + 49 * torch.log1p(-self.lapse)).sum(-1),
            "noise": lambda: -(self.noise.log() / _NOISE_DEVIATION).square().sum(-1) / 2,
            "share": lambda: self.share.log() + torch.log1p(-self.share),
            "slopes": lambda: -(self.slopes / _SLOPE_DEVIATION).square().sum(-1) / 2,
        }
        total = torch.zeros_like(self.share)
        for name in learn:
            total = total + terms[name]()
        return total

    def with_newcomer(self) -> "Observer":
        """With one more rater of whom nothing is known yet, for all that come later."""
        typical = self.lapse.mean(-1, keepdim=True)
        lapse, noise = (
            torch.cat([self.lapse, typical], -1),
            torch.cat([self.noise, torch.ones_like(typical)], -1),
        )
        return replace(self, lapse=lapse, noise=noise)

    def detached(self) -> "Observer":
        """A copy without gradients."""
        return Observer(*(getattr(self, name).detach() for name in self.__dataclass_fields__))


LEARNABLE: tuple[Learnable, ...] = get_args(Learnable)
