"""One of several values without an order."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from askwise.space.parameters.base import Coordinate, Value, check_flags
from askwise.space.parameters.listed import Listed


@dataclass(frozen=True, eq=False, repr=False)
class Choice(Listed):
    """One of several values without an order, with a one-hot encoding.

    So all values are equally far from each other.  ``True`` and ``1`` are two values.
    """

    values: Sequence[Any]
    context: bool = False

    kind = "choice"
    one_hot = True

    def __post_init__(self) -> None:
        """Refuse values that are no list, and flags that are none."""
        super().__post_init__()
        check_flags(self, "context")

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """One coordinate for each value."""
        return (Coordinate(),) * len(self.values)

    def natural(self, places: Sequence[float | int]) -> Value:
        """The value whose coordinate is largest."""
        return self.values[max(range(self.width), key=lambda index: places[index])]

    def places(self, value: Value) -> list[float]:
        """A one for this value and zeros for the others."""
        chosen = self._index(value)
        return [float(index == chosen) for index in range(len(self.values))]
