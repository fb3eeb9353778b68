"""Named parameters in natural units, and their place in the unit cube."""

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["Real", "Space"]


@dataclass(frozen=True)
class Real:
    """A real parameter between ``low`` and ``high``; with ``log`` its ratios count, not its differences."""

    low: float | int
    high: float | int
    log: bool = False

    def __post_init__(self) -> None:
        """Refuse bounds between which there is nothing, or more than numbers can tell."""
        largest = sys.float_info.max / 4
        if not -largest <= self.low < self.high <= largest:
            raise ValueError(
                f"low and high must be in order and below {largest:.2g} in size; got {self.low} and "
                f"{self.high}. Give the smallest value first."
            )
        if self.log and self.low <= 0:
            raise ValueError(
                f"low must be positive for a logarithmic parameter; got {self.low}. Raise it, or drop log."
            )
        if self.log and math.log(self.low) == math.log(self.high):
            raise ValueError(
                f"low and high must differ in their logarithms; got {self.low} and {self.high}. "
                "Widen the range, or drop log."
            )

    def natural(self, unit: float | int) -> float:
        """The value at this place between 0 and 1, both ends included."""
        if unit <= 0 or unit >= 1:
            return float(self.low if unit <= 0 else self.high)
        if self.log:
            value = math.exp(math.log(self.low) + unit * (math.log(self.high) - math.log(self.low)))
        else:
            value = self.low + unit * (self.high - self.low)
        return float(min(max(value, self.low), self.high))

    def unit(self, value: float | int) -> float:
        """The place between 0 and 1 of this value."""
        if not self.low <= value <= self.high:
            raise ValueError(
                f"value must lie between {self.low} and {self.high}; got {value}. Choose one inside."
            )
        if self.log:
            return (math.log(value) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        return (value - self.low) / (self.high - self.low)


class Space:
    """The parameters of a study by name.

    >>> space = Space(gain=Real(0, 10), cutoff=Real(20, 20_000, log=True))
    >>> space.natural(torch.tensor([0.5, 0.25]).double())["gain"]
    5.0
    """

    def __init__(self, /, **parameters: Real) -> None:
        """Take parameters as keywords."""
        if not parameters:
            raise ValueError(
                "space must have at least one parameter; got none. Add one, e.g. gain=Real(0, 10)."
            )
        for name, parameter in parameters.items():
            if not isinstance(parameter, Real):
                raise TypeError(
                    f"parameter {name} must be a Real; got {parameter!r}. Write {name}=Real(low, high)."
                )
        self.parameters: Mapping[str, Real] = dict(parameters)

    @property
    def d(self) -> int:
        """Number of parameters."""
        return len(self.parameters)

    def natural(self, point: Float[Tensor, " d"]) -> dict[str, float]:
        """The parameters at a point of the unit cube."""
        if point.shape != (self.d,):
            raise ValueError(
                f"point must have {self.d} coordinates; got shape {tuple(point.shape)}. "
                "Give one for each parameter."
            )
        places = point.tolist()
        return {
            name: p.natural(unit) for (name, p), unit in zip(self.parameters.items(), places, strict=True)
        }

    def unit(self, params: Mapping[str, float | int]) -> Float[Tensor, " d"]:
        """The point of the unit cube for these parameters."""
        if set(params) != set(self.parameters):
            raise ValueError(
                f"params must be {', '.join(self.parameters)}; got {', '.join(params) or 'none'}. "
                "Name each of them once."
            )
        places = [parameter.unit(params[name]) for name, parameter in self.parameters.items()]
        return torch.tensor(places, dtype=torch.float64)

    def __repr__(self) -> str:
        """As it is written."""
        return f"Space({', '.join(f'{name}={parameter!r}' for name, parameter in self.parameters.items())})"
