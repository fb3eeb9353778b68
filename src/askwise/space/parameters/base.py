"""What every kind of parameter can do."""

import math
import numbers
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from itertools import pairwise
from typing import Any, ClassVar

import torch
from torch import Tensor

from askwise import plugins
from askwise.errors import Refused, WrongType

Value = str | int | float | bool
"""What a parameter may be set to."""
Setting = Mapping[str, Any]
"""Values of parameters by name, in natural units."""

KINDS: "dict[str, type[Parameter]]" = {}
"""Every kind of parameter by its name in TOML and JSON."""
_DIGITS = 4
_FEW, _ALL = 20, 41  # values that are drawn one by one, and that are drawn at all


@dataclass(frozen=True)
class Coordinate:
    """One coordinate of the unit cube in natural units: its range, its scale, and its steps (0: none)."""

    low: float | int = 0.0
    high: float | int = 1.0
    log: bool = False
    step: float = 0.0


@dataclass(frozen=True)
class Axis:
    """A parameter as the axis of a figure."""

    values: Sequence[Any]
    at: Sequence[float]
    """Position of each value."""
    edges: Sequence[float]
    """Where the cells around the values begin and end."""
    limits: tuple[float, float]
    log: bool = False
    whole: bool = False
    """Whether only whole numbers are worth a tick."""
    discrete: bool = False
    """Whether each value is drawn by itself, not as part of a curve."""
    names: Sequence[str] = ()
    """Labels of the values, where these are not positions themselves."""


class Parameter(ABC):
    """A kind of parameter: a frozen dataclass whose fields are what it is defined by."""

    kind: ClassVar[str]
    """Its name in TOML and JSON."""
    one_hot: ClassVar[bool] = False
    """Whether its coordinates are indicators of values, of which one is set."""
    context: bool = False
    """Whether it is given from outside with each question, not chosen."""
    unit: str = ""
    """Shown beside the value."""
    numeric: bool = False
    """Whether linear constraints may name it."""

    def __init_subclass__(cls) -> None:
        """Register the kind."""
        if cls.kind in KINDS:
            raise Refused("kind of parameter", "have a name of its own", f"{cls.kind!r} twice", "Rename one.")
        KINDS[cls.kind] = cls

    @property
    @abstractmethod
    def coordinates(self) -> tuple[Coordinate, ...]:
        """Its coordinates of the unit cube; none for a parameter that cannot vary."""

    @abstractmethod
    def natural(self, places: Sequence[float | int]) -> Value:
        """The value at these places between 0 and 1."""

    @abstractmethod
    def places(self, value: Value) -> list[float]:
        """The places between 0 and 1 of a value, which is refused if it is none."""

    @abstractmethod
    def axis(self, count: int, cells: bool) -> Axis:
        """About so many values along it; of a continuous one from end to end, or the middles of ``cells``."""

    @property
    @abstractmethod
    def range_text(self) -> str:
        """The values that it may take, in words."""

    @abstractmethod
    def read(self, text: str) -> Value:
        """The value that a text stands for; whether it is allowed, :meth:`places` says."""

    @property
    def width(self) -> int:
        """Number of coordinates."""
        return len(self.coordinates)

    @property
    def continuous(self) -> bool:
        """Whether every place is a value that may be chosen."""
        return not self.context and not self.one_hot and all(not one.step for one in self.coordinates)

    @property
    def kind_text(self) -> str:
        """The kind in words."""
        log = any(one.log for one in self.coordinates)
        return self.kind + ", log" * log + ", context" * self.context

    def position(self, value: Value) -> float:
        """Where a value is on the axis."""
        return float(value)

    def text(self, value: Value) -> str:
        """A value as people write it, with its unit."""
        return f"{readable(value)} {self.unit}".rstrip()

    def to_dict(self) -> dict[str, Any]:
        """As JSON: the kind, and all fields that are not the default."""
        return {"type": self.kind, **self._changed()}

    @staticmethod
    def from_dict(settings: Setting) -> "Parameter":
        """The parameter that :meth:`to_dict` wrote; a field that its kind does not have is refused."""
        given = dict(settings)
        kind = Parameter.of_kind(given.pop("type", None))
        known = fields(kind)  # type: ignore[arg-type]
        names = [field.name for field in known]
        for name in given:
            if name not in names:
                raise Refused(name, f"be one of {', '.join(names)}", "another key", "Leave it out.")
        for field in known:
            if field.default is MISSING and field.name not in given:
                raise Refused(field.name, f"be given for a parameter of type {kind.kind}", "none", "Add it.")
        return kind(**given)

    @staticmethod
    def of_kind(name: object) -> "type[Parameter]":
        """The kind of this name."""
        plugins.load("parameters")
        if not isinstance(name, str) or name not in KINDS:
            raise Refused("type", f"be one of {', '.join(KINDS)}", repr(name), "Choose one of them.")
        return KINDS[name]

    def _changed(self) -> dict[str, Any]:
        """Fields that are not the default, in order."""
        found = {}
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if value is not field.default and value != field.default:
                found[field.name] = list(value) if isinstance(value, tuple) else value
        return found

    def __repr__(self) -> str:
        """As it is written in Python."""
        required = [field.name for field in fields(self) if field.default is MISSING]  # type: ignore[arg-type]
        words = [
            repr(value) if name in required else f"{name}={value!r}"
            for name, value in self._changed().items()
        ]
        return f"{type(self).__name__}({', '.join(words)})"


def readable(value: object) -> str:
    """A value as people write it: four digits of a real number, all of a whole one."""
    if not isinstance(value, float) or not math.isfinite(value):
        return str(value)
    size = abs(value)
    if size != 0 and not 1e-4 <= size < 1e7:
        return f"{value:.{_DIGITS - 1}e}"
    before = 1 if size < 1e-4 else math.floor(math.log10(size)) + 1
    text = f"{value:.{max(0, _DIGITS - before)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def plain(name: str, value: object, largest: float | int = sys.float_info.max) -> Value:
    """Text, a truth value or a finite number, as Python's own type."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value)
    if not isinstance(value, numbers.Real):
        raise WrongType(name, "be text, a number, true or false", repr(value), "Choose another.")
    number = int(value) if isinstance(value, numbers.Integral) else float(value)
    if not abs(number) <= largest:
        raise Refused(name, f"be finite and at most {largest:.2g} in size", value, "Give a smaller one.")
    return number


def is_same(one: object, other: Value) -> bool:
    """Equal, where a truth value is not a number; a number may be written as whole or not, as in JSON."""
    if not isinstance(one, str | numbers.Real):  # an array would be compared element by element
        return False
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def distinct_values(values: object) -> tuple[Any, ...]:
    """At least two different values that can be written down."""
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise WrongType("values", "be a list", repr(values), "Write ['a', 'b'], say.")
    found = tuple(plain("values", value) for value in values)
    if len(found) < 2:
        raise Refused("values", "be at least two", list(found), "Add one, or use Fixed.")
    for number, value in enumerate(found):
        if any(is_same(value, other) for other in found[:number]):
            raise Refused("values", "all differ", f"{value!r} twice", "Leave one out.")
    return found


def index_of(value: object, values: Sequence[Any]) -> int:
    """Which of the values it is."""
    found = [index for index, known in enumerate(values) if is_same(value, known)]
    if not found:
        known = ", ".join(map(repr, values))
        raise Refused("value", f"be one of {known}", repr(value), "Choose one of them.")
    return found[0]


def read_one_of(text: str, values: Sequence[Any]) -> Value:
    """The value that is written so; truth values in any case."""
    found = [value for value in values if _written(value) == _written(text)]
    if len(found) != 1:
        known = ", ".join(str(value) for value in values)
        raise Refused("value", f"be one of {known}", repr(text), "Write it as it stands there.")
    return found[0]


def read_number(text: str, convert: type[int] | type[float], what: str) -> float | int:
    """A number with a decimal point and without a unit."""
    try:
        return convert(text)
    except ValueError:
        advice = "Write it with a decimal point and without a unit."
        raise Refused("value", f"be {what}", repr(text), advice) from None


def check_flags(parameter: Parameter, *names: str) -> None:
    """Refuse flags that are not true or false, and a unit that is no text."""
    for name in names:
        value = getattr(parameter, name)
        if not isinstance(value, bool):
            raise WrongType(name, "be true or false", repr(value), "Write True, or leave it out.")
    if not isinstance(parameter.unit, str):
        raise WrongType("unit", "be text", repr(parameter.unit), "Write 'dB', say.")


def check_bounds(parameter: Any, largest: float | int) -> None:
    """Make bounds plain numbers; refuse those between which there is nothing to choose."""
    for name in ("low", "high"):
        value = plain(name, getattr(parameter, name), largest)
        if isinstance(value, bool | str):
            raise WrongType(name, "be a number", repr(value), "Give one.")
        object.__setattr__(parameter, name, value)
    check_flags(parameter, "log", "context")
    low, high = parameter.low, parameter.high
    if not float(low) < float(high):  # the next whole number may be the same one in float64
        raise Refused(
            "low", "be below high", f"{low} and {high}", "Give the smaller one first, or use Fixed."
        )
    if parameter.log and low <= 0:
        raise Refused("low", "be positive for a logarithmic parameter", low, "Raise it, or drop log.")


def number_between(low: float | int, high: float | int, value: object) -> float | int:
    """The value as a plain number within the bounds."""
    number = plain("value", value)
    if isinstance(number, str | bool):
        raise WrongType("value", "be a number", repr(value), "Give one.")
    if not float(low) <= number <= float(high):
        raise Refused("value", f"lie between {low} and {high}", value, "Choose one inside.")
    return number


def stepped_axis(parameter: Parameter, most: int) -> Axis:
    """All values of a parameter with steps, unless they are very many."""
    (one,) = parameter.coordinates
    count = round((one.high - one.low) / one.step) + 1
    if count <= _ALL:
        values = [parameter.natural(parameter.places(one.low + k * one.step)) for k in range(count)]
    else:
        last = min(most, _ALL) - 1
        values = sorted({parameter.natural([k / last]) for k in range(last + 1)})
    at = [float(value) for value in values]
    inner = [(left + right) / 2 for left, right in pairwise(at)]
    edges = [at[0] - one.step / 2, *inner, at[-1] + one.step / 2]
    return Axis(values, at, edges, (edges[0], edges[-1]), log=one.log, discrete=len(at) <= _FEW)


def category_axis(values: Sequence[Any]) -> Axis:
    """Values side by side, by name."""
    edges = [index - 0.5 for index in range(len(values) + 1)]
    at = [float(index) for index in range(len(values))]
    names = [str(value) for value in values]
    return Axis(values, at, edges, (edges[0], edges[-1]), discrete=len(values) <= _FEW, names=names)


def tensors(number: float | int, one: Coordinate) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """A place or value beside low, high, log and step of its coordinate, as the domain takes them."""
    low, high, step = (torch.tensor(part, dtype=torch.float64) for part in (one.low, one.high, one.step))
    return torch.tensor(number, dtype=torch.float64), low, high, torch.tensor(one.log), step


def _written(value: object) -> str:
    text = str(value)
    return text.lower() if text in ("True", "False") or isinstance(value, bool) else text
