"""One of several values in order."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from askwise.errors import Refused
from askwise.space.parameters.base import Coordinate, Parameter, Value, check_flags
from askwise.space.parameters.listed import Listed


@dataclass(frozen=True, eq=False, repr=False)
class Ordinal(Listed):
    """One of several values in order, such as ``[250, 500, 1000, 2000]`` or ``["off", "low", "high"]``.

    The model knows the order: neighbouring values are expected to be similar, and all steps are equally long.

    >>> Ordinal(["off", "low", "high"]).natural([0.5])
    'low'
    """

    values: Sequence[Any]
    context: bool = False
    unit: str = ""

    kind = "ordinal"

    def __post_init__(self) -> None:
        """Refuse invalid lists of values, and flags that are not true or false."""
        super().__post_init__()
        check_flags(self, "context")

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """One coordinate: the index of the value, in steps of one."""
        return (Coordinate(0.0, len(self.values) - 1.0, step=1.0),)

    def natural(self, places: Sequence[float | int]) -> Value:
        """The value at a place; all values have equal shares."""
        return self.values[int(self.coordinates[0].rounded(places[0]))]

    def places(self, value: Value) -> list[float]:
        """The place of a value."""
        return [self.coordinates[0].placed(self._index(value))]

    def change_to(self, after: Parameter) -> str:
        """Values may be added anywhere in the order, which stays."""
        said = super().change_to(after)
        assert isinstance(after, Ordinal)
        places = [after._index(value) for value in self.values]
        if places != sorted(places):
            got, advice = ", ".join(map(str, after.values)), "Put them back, and new ones in between."
            raise Refused("values", f"stay in their order, {self.range_text}", got, advice)
        return said

    @property
    def range_text(self) -> str:
        """All values in order."""
        return " < ".join(map(str, self.values))
