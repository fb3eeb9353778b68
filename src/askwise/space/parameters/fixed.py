"""A parameter that does not vary."""

from collections.abc import Sequence
from dataclasses import dataclass

from askwise.errors import Refused
from askwise.space.parameters import base
from askwise.space.parameters.base import Axis, Coordinate, Parameter, Value


@dataclass(frozen=True, eq=False, repr=False)
class Fixed(Parameter):
    """A parameter that is always the same, and takes no coordinate."""

    value: Value

    kind = "fixed"

    def __post_init__(self) -> None:
        """Refuse a value that cannot be written down."""
        object.__setattr__(self, "value", base.plain("value", self.value))
        object.__setattr__(self, "numeric", not isinstance(self.value, str | bool))

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """None."""
        return ()

    def natural(self, places: Sequence[float | int]) -> Value:
        """The value."""
        return self.value

    def places(self, value: Value) -> list[float]:
        """Nothing, if it is the value."""
        if not base.is_same(value, self.value):
            raise Refused("value", f"be {self.value!r}, which is fixed", repr(value), "Leave it out.")
        return []

    def axis(self, count: int, cells: bool) -> Axis:
        """A single value."""
        return base.category_axis([self.value])

    @property
    def range_text(self) -> str:
        """The value."""
        return str(self.value)

    def read(self, text: str) -> Value:
        """The value."""
        return base.read_one_of(text, [self.value])

    def __eq__(self, other: object) -> bool:
        """The same value, of the same type."""
        return isinstance(other, Fixed) and repr(self) == repr(other)

    def __hash__(self) -> int:
        """Equal values have equal hashes."""
        return hash(repr(self))
