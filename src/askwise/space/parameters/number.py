"""The base class of numeric parameters."""

import math
import re
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from askwise.errors import Refused, WrongType
from askwise.space.parameters.base import FEW, Axis, Parameter, Value, check_flags, plain, readable

_ALL = 41  # maximum number of values in a figure
_WHOLE = re.compile(r"[+-]?\d+\.0*")  # as some programs write whole numbers


@dataclass(frozen=True, repr=False)
class Number(Parameter):
    """A number from ``low`` to ``high``, on a logarithmic scale if ``log``."""

    low: float | int
    high: float | int
    log: bool = False
    context: bool = False
    unit: str = ""

    numeric = True
    changeable: ClassVar[tuple[str, ...]] = ("low", "high", "unit")
    whole: ClassVar[bool] = False
    """Whether only whole numbers are allowed."""
    largest: ClassVar[float]
    """Bounds are at most this far from zero."""

    def __post_init__(self) -> None:
        """Convert the bounds to plain numbers; refuse an empty range."""
        for name in ("low", "high"):
            value = plain(name, getattr(self, name), self.largest)
            if isinstance(value, bool | str):
                raise WrongType(name, "be a number", repr(value), "Give one.")
            object.__setattr__(self, name, value)
        check_flags(self, "log", "context")
        if not float(self.low) < float(self.high):  # large whole numbers may be equal in float64
            got, advice = f"{self.low} and {self.high}", "Give the smaller one first, or use Fixed."
            raise Refused("low", "be below high", got, advice)
        if self.log and self.low <= 0:
            advice = "Raise it, or drop log."
            raise Refused("low", "be positive for a logarithmic parameter", self.low, advice)

    @property
    def range_text(self) -> str:
        """The lowest and the highest value."""
        return f"{readable(self.low)} to {readable(self.high)}"

    def axis(self, count: int, cells: bool) -> Axis:
        """All values on the grid, or some if there are too many to show."""
        (one,) = self.coordinates
        steps = round((one.high - one.low) / one.step)
        if steps < _ALL:
            values = [self.natural(self.places(one.low + k * one.step)) for k in range(steps + 1)]
        else:
            last = min(count, _ALL) - 1
            values = sorted({self.natural([k / last]) for k in range(last + 1)})
        at = [float(value) for value in values]
        inner = [(left + right) / 2 for left, right in pairwise(at)]
        edges = [at[0] - one.step / 2, *inner, at[-1] + one.step / 2]
        return Axis(values, at, edges, (edges[0], edges[-1]), one.log, self.whole, len(at) <= FEW)

    def read(self, text: str) -> float | int:
        """A number with a decimal point and without a unit."""
        try:
            if self.whole:
                return int(text.partition(".")[0] if _WHOLE.fullmatch(text) else text)
            return float(text)
        except ValueError:
            expected = f"be a {'whole ' * self.whole}number"
            advice = (
                "Write it without a unit." if self.whole else "Write it with a decimal point and no unit."
            )
            raise Refused("value", expected, repr(text), advice) from None

    def extended_places(self, value: Value) -> list[float]:
        """The place of a number, beyond 0 or 1 on the same scale if it is out of the range; on no grid."""
        try:
            return self.places(value)
        except Refused:
            number = plain("value", value)
            if isinstance(number, str | bool):
                raise
        low, high, place = (
            math.log(one) if self.log else float(one) for one in (self.low, self.high, number)
        )
        return [(place - low) / (high - low)]

    def _within(self, value: object) -> float | int:
        """The value as a plain number; refuses values outside the bounds."""
        number = plain("value", value)
        if isinstance(number, str | bool):
            raise WrongType("value", "be a number", repr(value), "Give one.")
        if not float(self.low) <= number <= float(self.high):
            raise Refused("value", f"lie between {self.low} and {self.high}", value, "Choose one inside.")
        return number
