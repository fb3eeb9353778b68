"""A parameter that does not vary."""

from collections.abc import Sequence
from dataclasses import dataclass

from askwise.errors import Refused
from askwise.space.parameters.base import Coordinate, Value, is_same, plain
from askwise.space.parameters.listed import Listed


@dataclass(frozen=True, eq=False, repr=False)
class Fixed(Listed):
    """A parameter with a constant value and no coordinates."""

    value: Value

    kind = "fixed"
    changeable = ()

    def __post_init__(self) -> None:
        """Refuse a value that is not text, a boolean or a finite number."""
        object.__setattr__(self, "value", plain("value", self.value))
        object.__setattr__(self, "values", [self.value])
        object.__setattr__(self, "numeric", not isinstance(self.value, str | bool))

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """No coordinates, since the value does not vary."""
        return ()

    def natural(self, places: Sequence[float | int]) -> Value:
        """The fixed value."""
        return self.value

    def places(self, value: Value) -> list[float]:
        """An empty list; refuses any other value."""
        if not is_same(value, self.value):
            raise Refused("value", f"be {self.value!r}, which is fixed", repr(value), "Leave it out.")
        return []
