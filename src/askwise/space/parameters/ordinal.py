"""One of several values in order."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from askwise.space.domain import placed, rounded
from askwise.space.parameters import base
from askwise.space.parameters.base import Axis, Coordinate, Parameter, Value


@dataclass(frozen=True, eq=False, repr=False)
class Ordinal(Parameter):
    """One of several values in order, such as ``[250, 500, 1000, 2000]`` or ``["off", "low", "high"]``.

    The model knows the order: neighbours are taken to be alike, and each step to be as long as any other.

    >>> Ordinal(["off", "low", "high"]).natural([0.5])
    'low'
    """

    values: Sequence[Any]
    context: bool = False
    unit: str = ""

    kind = "ordinal"

    def __post_init__(self) -> None:
        """Refuse values that are too few, the same, or not to be written down."""
        object.__setattr__(self, "values", base.distinct_values(self.values))
        base.check_flags(self, "context")

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """One: the number of the value, in steps of one."""
        return (Coordinate(0.0, len(self.values) - 1.0, step=1.0),)

    def natural(self, places: Sequence[float | int]) -> Value:
        """The value to which a place belongs; all have equal shares."""
        return self.values[int(rounded(*base.tensors(places[0], self.coordinates[0])))]

    def places(self, value: Value) -> list[float]:
        """The place of a value."""
        return [float(placed(*base.tensors(base.index_of(value, self.values), self.coordinates[0])[:4]))]

    def axis(self, count: int, cells: bool) -> Axis:
        """The values side by side."""
        return base.category_axis(self.values)

    def position(self, value: Value) -> float:
        """Its number among the values."""
        return float(base.index_of(value, self.values))

    @property
    def range_text(self) -> str:
        """All values in order."""
        return " < ".join(str(value) for value in self.values)

    def read(self, text: str) -> Value:
        """One of the values."""
        return base.read_one_of(text, self.values)

    def __eq__(self, other: object) -> bool:
        """The same values in the same order, of the same types."""
        return type(other) is type(self) and repr(self) == repr(other)

    def __hash__(self) -> int:
        """Equal parameters have equal hashes."""
        return hash(repr(self))
