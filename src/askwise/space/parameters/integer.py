"""Whole numbers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from askwise.errors import Refused
from askwise.space.domain import placed, rounded
from askwise.space.parameters import base
from askwise.space.parameters.base import Axis, Coordinate, Parameter, Value

_LARGEST = 10**12  # whole numbers up to it are found again from their logarithms in float64


@dataclass(frozen=True, repr=False)
class Integer(Parameter):
    """A whole number from ``low`` to ``high``; with ``log`` its ratios count, not its differences.

    All whole numbers have equal shares of the unit interval; with ``log``, the places from which they
    are the nearest by value.
    """

    low: int
    high: int
    log: bool = False
    context: bool = False
    unit: str = ""

    kind = "integer"
    numeric = True

    def __post_init__(self) -> None:
        """Refuse bounds between which there is nothing to choose, or that are not whole."""
        base.check_bounds(self, _LARGEST)
        for name in ("low", "high"):
            value = getattr(self, name)
            if value != int(value):
                raise Refused(name, "be a whole number", value, "Round it, or use Real.")
            object.__setattr__(self, name, int(value))

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """One, in steps of one."""
        return (Coordinate(self.low, self.high, self.log, 1.0),)

    def natural(self, places: Sequence[float | int]) -> int:
        """The whole number to which a place belongs."""
        return int(rounded(*base.tensors(places[0], self.coordinates[0])))

    def places(self, value: Value) -> list[float]:
        """The place of a whole number."""
        number = base.number_between(self.low, self.high, value)
        if number != int(number):
            raise Refused("value", "be a whole number", repr(number), "Round it.")
        return [float(placed(*base.tensors(int(number), self.coordinates[0])[:4]))]

    def axis(self, count: int, cells: bool) -> Axis:
        """All whole numbers, unless they are very many."""
        return replace(base.stepped_axis(self, count), whole=True)

    @property
    def range_text(self) -> str:
        """From the lowest to the highest."""
        return f"{self.low} to {self.high}"

    def read(self, text: str) -> Value:
        """A whole number."""
        return base.read_number(text, int, "a whole number")
