"""One of several values without an order."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from askwise.space.parameters import base
from askwise.space.parameters.base import Axis, Coordinate, Parameter, Value


@dataclass(frozen=True, eq=False, repr=False)
class Choice(Parameter):
    """One of several values without an order: each has a coordinate that is one where it is chosen.

    So all of them are equally far from each other.  ``True`` and ``1`` are two values.
    """

    values: Sequence[Any]
    context: bool = False

    kind = "choice"
    one_hot = True

    def __post_init__(self) -> None:
        """Refuse values that are too few, the same, or not to be written down."""
        object.__setattr__(self, "values", base.distinct_values(self.values))

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """One for each value."""
        return (Coordinate(),) * len(self.values)

    def natural(self, places: Sequence[float | int]) -> Value:
        """The value whose coordinate is largest."""
        return self.values[max(range(self.width), key=lambda index: places[index])]

    def places(self, value: Value) -> list[float]:
        """One for this value, zero for the others."""
        chosen = base.index_of(value, self.values)
        return [float(index == chosen) for index in range(len(self.values))]

    def axis(self, count: int, cells: bool) -> Axis:
        """The values side by side."""
        return base.category_axis(self.values)

    def position(self, value: Value) -> float:
        """Its number among the values."""
        return float(base.index_of(value, self.values))

    @property
    def range_text(self) -> str:
        """All values."""
        return ", ".join(str(value) for value in self.values)

    def read(self, text: str) -> Value:
        """One of the values."""
        return base.read_one_of(text, self.values)

    def __eq__(self, other: object) -> bool:
        """The same values, of the same types."""
        return type(other) is type(self) and repr(self) == repr(other)

    def __hash__(self) -> int:
        """Equal choices have equal hashes."""
        return hash(repr(self))
