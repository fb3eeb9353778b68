"""The base class of parameters with a list of values."""

from collections.abc import Sequence
from typing import Any, ClassVar

from askwise.errors import Refused, WrongType
from askwise.space.parameters.base import FEW, Axis, Parameter, Value, is_same, plain


class Listed(Parameter):
    """One of several values; ``True`` and ``1`` are different values."""

    values: Sequence[Any]
    changeable: ClassVar[tuple[str, ...]] = ("values", "unit")

    def __post_init__(self) -> None:
        """Refuse fewer than two values, duplicates, and other types than text, booleans and numbers."""
        if isinstance(self.values, str) or not isinstance(self.values, Sequence):
            raise WrongType("values", "be a list", repr(self.values), "Write ['a', 'b'], say.")
        found = tuple(plain("values", value) for value in self.values)
        if len(found) < 2:
            raise Refused("values", "be at least two", list(found), "Add one, or use Fixed.")
        for number, value in enumerate(found):
            if any(is_same(value, other) for other in found[:number]):
                raise Refused("values", "all differ", f"{value!r} twice", "Leave one out.")
        object.__setattr__(self, "values", found)

    def axis(self, count: int, cells: bool) -> Axis:
        """The values side by side, by name."""
        edges = [index - 0.5 for index in range(len(self.values) + 1)]
        at = [float(index) for index in range(len(self.values))]
        names, discrete = [str(value) for value in self.values], len(self.values) <= FEW
        return Axis(self.values, at, edges, (edges[0], edges[-1]), discrete=discrete, names=names)

    def position(self, value: Value) -> float:
        """Its index among the values."""
        return float(self._index(value))

    @property
    def range_text(self) -> str:
        """All values."""
        return ", ".join(map(str, self.values))

    def read(self, text: str) -> Value:
        """The value with this text; booleans may be in lower case."""
        found = [value for value in self.values if _written(value) == _written(text)]
        if len(found) != 1:
            known = ", ".join(map(str, self.values))
            raise Refused("value", f"be one of {known}", repr(text), "Write it as listed.")
        return found[0]

    def change_to(self, after: Parameter) -> str:
        """Values may be added; those that are there stay, since there are answers about them."""
        values = after.values if isinstance(after, Listed) else self.values
        for value in self.values if self.changeable else ():
            if not any(is_same(value, other) for other in values):
                advice = "Answers about it would have no place in the model: keep it."
                raise Refused("values", "keep those that are there", f"none that is {value!r}", advice)
        return super().change_to(after)

    def _index(self, value: object) -> int:
        found = [index for index, known in enumerate(self.values) if is_same(value, known)]
        if not found:
            known = ", ".join(map(repr, self.values))
            raise Refused("value", f"be one of {known}", repr(value), "Choose one of them.")
        return found[0]


def _written(value: object) -> str:
    return str(value).lower() if str(value) in ("True", "False") else str(value)
