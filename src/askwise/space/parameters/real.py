"""Real numbers, continuous or in steps."""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from askwise.errors import Refused
from askwise.space.parameters.base import Axis, Coordinate, Value, plain, readable
from askwise.space.parameters.number import Number

_NEARLY = 1e-9  # of a step: values and ranges that miss the grid by less are on it


@dataclass(frozen=True, repr=False)
class Real(Number):
    """A real parameter between ``low`` and ``high``, on a logarithmic scale if ``log``.

    ``context``: given from outside with each question, not chosen.  ``unit``: shown beside the value.
    ``step``: values are ``low``, ``low + step``, .. ``high``, for devices that take no others.

    >>> Real(100, 10_000, log=True, step=10).natural([0.5])
    1000.0
    """

    step: float | int | None = None

    kind = "real"
    changeable = (*Number.changeable, "step")
    largest = sys.float_info.max / 4

    def __post_init__(self) -> None:
        """Refuse an empty range, and a step that does not divide it."""
        super().__post_init__()
        if self.log and math.log(self.low) == math.log(self.high):
            got, advice = f"{self.low} and {self.high}", "Widen the range, or drop log."
            raise Refused("low", "differ from high in its logarithm", got, advice)
        if self.step is not None:
            step = plain("step", self.step, self.largest)
            if isinstance(step, bool | str) or not 0 < step <= (self.high - self.low) * (1 + _NEARLY):
                raise Refused("step", "be a number between 0 and high - low", repr(step), "Leave it out.")
            object.__setattr__(self, "step", step)
            steps, on_grid = self._steps(self.high)
            if not on_grid:
                advice = f"Make high {self._value(math.floor(steps)):g} or {self._value(math.ceil(steps)):g}."
                raise Refused("step", f"divide the range from {self.low} to {self.high}", step, advice)

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """One coordinate, continuous or in steps."""
        return (Coordinate(self.low, self.high, self.log, float(self.step or 0)),)

    def natural(self, places: Sequence[float | int]) -> float:
        """The value at this place, both ends included; the nearest one on the grid if there are steps."""
        (place,) = places
        low, high = float(self.low), float(self.high)
        if place <= 0 or place >= 1:
            return low if place <= 0 else high
        if self.step is not None:
            steps, _ = self._steps(self.coordinates[0].rounded(place))
            return min(max(self._value(round(steps)), low), high)
        if self.log:
            value = math.exp(math.log(low) + place * (math.log(high) - math.log(low)))
        else:
            value = low + place * (high - low)
        return min(max(value, low), high)

    def places(self, value: Value) -> list[float]:
        """The place of this value; with steps it must be on the grid."""
        number, low, high = self._within(value), float(self.low), float(self.high)
        if self.step is not None:
            steps, on_grid = self._steps(number)
            nearest = self._value(round(steps))
            if not on_grid:
                expected = f"be {self.low} plus a whole number of steps of {self.step}"
                raise Refused("value", expected, repr(value), f"The nearest is {nearest:g}.")
            return [self.coordinates[0].placed(nearest)]
        if self.log:
            return [(math.log(number) - math.log(low)) / (math.log(high) - math.log(low))]
        return [(number - low) / (high - low)]

    def axis(self, count: int, cells: bool) -> Axis:
        """Values from end to end, or at the centres of cells; with few steps, each by itself."""
        if self.step is not None:
            return super().axis(count, cells)
        edges = [self.natural([k / count]) for k in range(count + 1)]
        places = [(k + 0.5) / count if cells else k / (count - 1) for k in range(count)]
        values = [self.natural([place]) for place in places]
        return Axis(values, values, edges, (float(self.low), float(self.high)), log=self.log)

    @property
    def range_text(self) -> str:
        """The lowest and the highest value, and the step."""
        steps = "" if self.step is None else f" in steps of {readable(self.step)}"
        return super().range_text + steps

    def text(self, value: Value) -> str:
        """The value with all digits if it is on a grid, otherwise with four."""
        return super().text(value) if self.step is None else f"{value:.12g} {self.unit}".rstrip()

    def _steps(self, value: float | int) -> tuple[float, bool]:
        """Number of steps above the lowest value, and whether the value is on the grid."""
        assert self.step is not None
        steps = (float(value) - float(self.low)) / float(self.step)
        return steps, abs(steps - round(steps)) <= _NEARLY * max(1.0, steps)

    def _value(self, steps: int) -> float:
        """The value ``steps`` above the lowest, with the digits that people write: 0.3, not 3 * 0.1."""
        return float(Decimal(repr(self.low)) + steps * Decimal(repr(self.step)))
