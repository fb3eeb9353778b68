"""Whole numbers."""

from collections.abc import Sequence
from dataclasses import dataclass

from askwise.errors import Refused
from askwise.space.parameters.base import Coordinate, Value
from askwise.space.parameters.number import Number


@dataclass(frozen=True, repr=False)
class Integer(Number):
    """A whole number from ``low`` to ``high``, on a logarithmic scale if ``log``.

    All whole numbers have equal shares of the unit interval; with ``log``, each has the places whose value
    is nearest to it.
    """

    low: int
    high: int

    kind = "integer"
    whole = True
    largest = 10**12  # up to this, whole numbers are recovered from their logarithms in float64

    def __post_init__(self) -> None:
        """Refuse bounds that are not whole."""
        super().__post_init__()
        for name in ("low", "high"):
            value = getattr(self, name)
            if value != int(value):
                raise Refused(name, "be a whole number", value, "Round it, or use Real.")
            object.__setattr__(self, name, int(value))

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """One coordinate, in steps of one."""
        return (Coordinate(self.low, self.high, self.log, 1.0),)

    def natural(self, places: Sequence[float | int]) -> int:
        """The whole number at a place."""
        return int(self.coordinates[0].rounded(places[0]))

    def places(self, value: Value) -> list[float]:
        """The place of a whole number."""
        number = self._within(value)
        if number != int(number):
            raise Refused("value", "be a whole number", repr(number), "Round it.")
        return [self.coordinates[0].placed(int(number))]
