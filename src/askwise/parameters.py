"""Kinds of parameters: their natural values, and their places in the unit cube."""

import math
import numbers
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import torch

from askwise.domain import placed, rounded

__all__ = ["Choice", "Fixed", "Integer", "Parameter", "Real", "Value", "from_dict", "to_dict"]

Value = str | int | float | bool
"""What a parameter may be set to."""

_LARGEST = sys.float_info.max / 4
_LARGEST_WHOLE = 10**12  # whole numbers are then found again from their logarithms in float64


@dataclass(frozen=True)
class Real:
    """A real parameter between ``low`` and ``high``; with ``log`` its ratios count, not its differences.

    ``context``: given from outside with each question, not chosen.  ``unit``: shown beside the value.
    """

    low: float | int
    high: float | int
    log: bool = False
    context: bool = False
    unit: str = ""

    width: ClassVar[int] = 1

    def __post_init__(self) -> None:
        """Refuse bounds between which there is nothing, or more than numbers can tell."""
        _check_bounds(self, _LARGEST)
        if self.log and math.log(self.low) == math.log(self.high):
            raise ValueError(
                f"low and high must differ in their logarithms; got {self.low} and {self.high}. "
                "Widen the range, or drop log."
            )

    def natural(self, places: Sequence[float | int]) -> float:
        """The value at this place between 0 and 1, both ends included."""
        (place,) = places
        low, high = float(self.low), float(self.high)
        if place <= 0 or place >= 1:
            return low if place <= 0 else high
        if self.log:
            value = math.exp(math.log(low) + place * (math.log(high) - math.log(low)))
        else:
            value = low + place * (high - low)
        return min(max(value, low), high)

    def places(self, value: Value) -> list[float]:
        """The place between 0 and 1 of this value."""
        value, low, high = _checked_number(self, value), float(self.low), float(self.high)
        if self.log:
            return [(math.log(value) - math.log(low)) / (math.log(high) - math.log(low))]
        return [(value - low) / (high - low)]

    def __repr__(self) -> str:
        """As it is written."""
        return _spelled(self)


@dataclass(frozen=True)
class Integer:
    """A whole number from ``low`` to ``high``; with ``log`` its ratios count, not its differences.

    All whole numbers have equal shares of the unit interval; with ``log``, the places from which they
    are the nearest by value.
    """

    low: int
    high: int
    log: bool = False
    context: bool = False
    unit: str = ""

    width: ClassVar[int] = 1

    def __post_init__(self) -> None:
        """Refuse bounds between which there is nothing to choose, or that are not whole."""
        _check_bounds(self, _LARGEST_WHOLE)
        for name in ("low", "high"):
            value = getattr(self, name)
            if value != int(value):
                raise ValueError(f"{name} must be a whole number; got {value}. Round it, or use Real.")
            object.__setattr__(self, name, int(value))

    def natural(self, places: Sequence[float | int]) -> int:
        """The whole number to which this place between 0 and 1 belongs."""
        (place,) = places
        return int(rounded(_f64(place), _f64(self.low), _f64(self.high), torch.tensor(self.log)))

    def places(self, value: Value) -> list[float]:
        """The place between 0 and 1 of this value."""
        value = _checked_number(self, value)
        if value != int(value):
            raise ValueError(f"value must be a whole number; got {value!r}. Round it.")
        place = placed(_f64(int(value)), _f64(self.low), _f64(self.high), torch.tensor(self.log))
        return [float(place)]

    def __repr__(self) -> str:
        """As it is written."""
        return _spelled(self)


@dataclass(frozen=True, eq=False)
class Choice:
    """One of several values without an order: each has a coordinate that is one where it is chosen.

    So all of them are equally far from each other.  ``True`` and ``1`` are two values.
    """

    values: Sequence[Any]
    context: bool = False

    def __post_init__(self) -> None:
        """Refuse values that are too few, the same, or not to be written down."""
        if isinstance(self.values, str) or not isinstance(self.values, Sequence):
            raise TypeError(f"values must be a list; got {self.values!r}. Write ['a', 'b'], say.")
        values = tuple(_plain("values", value) for value in self.values)
        if len(values) < 2:
            raise ValueError(f"values must be at least two; got {list(values)}. Add one, or use Fixed.")
        for number, value in enumerate(values):
            if any(_same(value, other) for other in values[:number]):
                raise ValueError(f"values must all differ; got {value!r} twice. Leave one out.")
        object.__setattr__(self, "values", values)

    @property
    def width(self) -> int:
        """How many coordinates of the unit cube it takes."""
        return len(self.values)

    def natural(self, places: Sequence[float | int]) -> Value:
        """The value whose coordinate is largest."""
        return self.values[max(range(self.width), key=lambda index: places[index])]

    def places(self, value: Value) -> list[float]:
        """One for this value, zero for the others."""
        found = [float(_same(value, known)) for known in self.values]
        if not any(found):
            known = ", ".join(map(repr, self.values))
            raise ValueError(f"value must be one of {known}; got {value!r}. Choose one of them.")
        return found

    def __eq__(self, other: object) -> bool:
        """The same values, of the same types."""
        return isinstance(other, Choice) and repr(self) == repr(other)

    def __hash__(self) -> int:
        """Equal choices have equal hashes."""
        return hash(repr(self))

    def __repr__(self) -> str:
        """As it is written."""
        return f"Choice({list(self.values)!r}{', context=True' if self.context else ''})"


@dataclass(frozen=True, eq=False)
class Fixed:
    """A parameter that is always the same, and takes no coordinate."""

    value: Value

    context: ClassVar[bool] = False
    width: ClassVar[int] = 0

    def __post_init__(self) -> None:
        """Refuse a value that cannot be written down."""
        object.__setattr__(self, "value", _plain("value", self.value))

    def natural(self, places: Sequence[float | int]) -> Value:
        """The value."""
        return self.value

    def places(self, value: Value) -> list[float]:
        """Nothing, if it is the value."""
        if not _same(value, self.value):
            raise ValueError(f"value must be {self.value!r}, which is fixed; got {value!r}. Leave it out.")
        return []

    def __eq__(self, other: object) -> bool:
        """The same value, of the same type."""
        return isinstance(other, Fixed) and repr(self) == repr(other)

    def __hash__(self) -> int:
        """Equal values have equal hashes."""
        return hash(repr(self))

    def __repr__(self) -> str:
        """As it is written."""
        return f"Fixed({self.value!r})"


Parameter = Real | Integer | Choice | Fixed
_KINDS: dict[str, type[Parameter]] = {"real": Real, "integer": Integer, "choice": Choice, "fixed": Fixed}


def to_dict(parameter: Parameter) -> dict[str, Any]:
    """The parameter as JSON: its type, and what is not the default."""
    (kind,) = (name for name, cls in _KINDS.items() if type(parameter) is cls)
    return {"type": kind, **_changed(parameter)}


def from_dict(settings: Mapping[str, Any]) -> Parameter:
    """The parameter that was written so; a setting it does not have is refused by name."""
    given = dict(settings)
    kind = given.pop("type", None)
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ValueError(f"type must be one of {', '.join(_KINDS)}; got {kind!r}. Choose one of them.")
    known = {field.name: field for field in fields(_KINDS[kind])}
    for name in given:
        if name not in known:
            raise ValueError(f"{name} must be one of {', '.join(known)}; got another key. Leave it out.")
    for name in list(known)[: 1 if kind in ("choice", "fixed") else 2]:
        if name not in given:
            raise ValueError(f"{name} must be given for a parameter of type {kind}; got none. Add it.")
    return _KINDS[kind](**given)


def _changed(parameter: Parameter) -> dict[str, Any]:
    """Settings that are not the default, in order."""
    settings = {field.name: getattr(parameter, field.name) for field in fields(parameter)}
    default = {field.name: field.default for field in fields(parameter)}
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in settings.items()
        if value is not default[name] and value != default[name]
    }


def _spelled(parameter: Real | Integer) -> str:
    more = [
        f", {name}={value!r}" for name, value in _changed(parameter).items() if name not in ("low", "high")
    ]
    return f"{type(parameter).__name__}({parameter.low!r}, {parameter.high!r}{''.join(more)})"


def _check_bounds(parameter: Real | Integer, largest: float | int) -> None:
    for name in ("low", "high"):
        value = _plain(name, getattr(parameter, name), largest)
        if isinstance(value, bool | str):
            raise TypeError(f"{name} must be a number; got {value!r}. Give one.")
        object.__setattr__(parameter, name, value)
    for name in ("log", "context"):
        value = getattr(parameter, name)
        if not isinstance(value, bool):
            raise TypeError(f"{name} must be true or false; got {value!r}. Write True, or leave it out.")
    if not isinstance(parameter.unit, str):
        raise TypeError(f"unit must be text; got {parameter.unit!r}. Write 'dB', say.")
    low, high = parameter.low, parameter.high
    if not float(low) < float(high):  # the next whole number may be the same one for a computer
        raise ValueError(
            f"low must be below high; got {low} and {high}. Give the smaller one first, or use Fixed."
        )
    if parameter.log and low <= 0:
        raise ValueError(
            f"low must be positive for a logarithmic parameter; got {low}. Raise it, or drop log."
        )


def _checked_number(parameter: Real | Integer, value: Value) -> float | int:
    number = _plain("value", value)
    if isinstance(number, str | bool):
        raise TypeError(f"value must be a number; got {value!r}. Give one.")
    if not float(parameter.low) <= number <= float(parameter.high):
        raise ValueError(
            f"value must lie between {parameter.low} and {parameter.high}; got {value}. Choose one inside."
        )
    return number


def _plain(name: str, value: object, largest: float | int = sys.float_info.max) -> Value:
    """Text, truth or a finite number, as Python's own type."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value)
    if not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be text, a number, true or false; got {value!r}. Choose another.")
    number = int(value) if isinstance(value, numbers.Integral) else float(value)
    if not abs(number) <= largest:
        raise ValueError(
            f"{name} must be finite and at most {largest:.2g} in size; got {value}. Give a smaller one."
        )
    return number


def _same(one: object, other: Value) -> bool:
    """Equal, where truth is not taken for a number; a number may be whole or not, as in JSON."""
    if not isinstance(one, str | numbers.Real):  # an array would be compared number by number
        return False
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def _f64(value: float | int) -> torch.Tensor:
    return torch.tensor(value, dtype=torch.float64)
