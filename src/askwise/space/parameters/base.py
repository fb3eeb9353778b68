"""The base class of parameters, and what their kinds share."""

import math
import numbers
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from askwise import plugins
from askwise.errors import NotFound, Refused, WrongType

if TYPE_CHECKING:
    from torch import Tensor

    from askwise.space.domain import Scale
else:  # only coordinates need torch, which takes seconds to import
    Scale = Tensor = Any

Value = str | int | float | bool
"""What a parameter may be set to."""
Setting = Mapping[str, Any]
"""Values of parameters by name, in natural units."""

KINDS: "dict[str, type[Parameter]]" = {}
"""Every kind of parameter by its name in TOML and JSON."""
FEW = 20
"""Number of values up to which a figure shows them one by one."""
_DIGITS = 4
_ONE_HOT_LENGTH = 1.2  # lengthscale at which two values of a choice share about half of their variance


@dataclass(frozen=True)
class Coordinate:
    """One coordinate of the unit cube in natural units: its range, its scale, and its step (0: none)."""

    low: float | int = 0.0
    high: float | int = 1.0
    log: bool = False
    step: float = 0.0

    def rounded(self, place: float | int) -> float:
        """The value on the grid at a place."""
        return float(self.scale.on_grid(_f64(place)))

    def placed(self, value: float | int) -> float:
        """The place of a value."""
        return float(self.scale.placed(_f64(value)))

    @property
    def scale(self) -> Scale:
        """The range, scale and step as tensors."""
        import torch

        from askwise.space.domain import Scale

        return Scale(_f64(self.low), _f64(self.high), torch.tensor(self.log), _f64(self.step))


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
    """Whether only whole numbers get ticks."""
    discrete: bool = False
    """Whether each value is drawn by itself, not as part of a curve."""
    names: Sequence[str] = ()
    """Labels of the values, if these are not numbers on the axis."""


class Parameter(ABC):
    """A kind of parameter: a frozen dataclass whose fields define the parameter."""

    kind: ClassVar[str]
    """Its name in TOML and JSON; a class without one is a base of several kinds."""
    one_hot: ClassVar[bool] = False
    """Whether its coordinates are indicators of values, of which one is set."""
    context: bool = False
    """Whether it is given from outside with each question, not chosen."""
    unit: str = ""
    """Shown beside the value."""
    numeric: bool = False
    """Whether linear constraints may name it."""
    changeable: ClassVar[tuple[str, ...]] = ()
    """Fields that may change in a study that has begun; :meth:`change_to` says how."""

    def __init_subclass__(cls) -> None:
        """Register the kind."""
        if not hasattr(cls, "kind"):
            return
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
        """The places of a value between 0 and 1; refuses what is not a value of this parameter."""

    def extended_places(self, value: Value) -> list[float]:
        """The places of a value that was allowed once; outside 0 to 1 if it is not in the range any more."""
        return self.places(value)

    @abstractmethod
    def axis(self, count: int, cells: bool) -> Axis:
        """About ``count`` values: if continuous, from end to end or (``cells``) the centres of cells."""

    @property
    @abstractmethod
    def range_text(self) -> str:
        """The values it may take, as text."""

    @abstractmethod
    def read(self, text: str) -> Value:
        """The value in a text; :meth:`places` checks whether it is allowed."""

    @property
    def width(self) -> int:
        """Number of coordinates."""
        return len(self.coordinates)

    @property
    def dimensions(self) -> int:
        """As how many parameters it counts where lengthscales are expected to grow with their number."""
        return 1

    @property
    def pool(self) -> Tensor | None:
        """Its possible coordinates [n, width], if they are rows of a table."""
        return None

    @property
    def expected_length(self) -> float | None:
        """Expected lengthscale of its coordinates, where it is not that of a range."""
        return _ONE_HOT_LENGTH if self.one_hot else None

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of what :meth:`row` says."""
        return ()

    def row(self, value: Value) -> dict[str, Value]:
        """What else is known of a value, by name."""
        return {}

    def changes(self, other: "Parameter") -> str:
        """What is different in the table of another parameter, in words; empty if nothing is."""
        return ""

    def change_to(self, after: "Parameter") -> str:
        """What changes in a study that goes on with another parameter, in words; "" if nothing does.

        Refused if answers about this one would say nothing of the other.
        """
        before, now = self.to_dict(), after.to_dict()
        for name in dict.fromkeys([*before, *now]):
            if before.get(name) != now.get(name) and name not in self.changeable:
                expected = f"stay as it was at the first question, {before.get(name, 'not given')}"
                advice = "Answers about the one would say nothing of the other: begin another study."
                raise Refused(name, expected, now.get(name, "not given"), advice)
        if before == now:
            return ""
        units = [f" {self.unit}".rstrip() if self.unit != after.unit else "", f" {after.unit}".rstrip()]
        return f"{self.range_text}{units[0]} becomes {after.range_text}{units[1]}"

    def like(self, stored: "Parameter") -> "Parameter":
        """The same parameter, with what nobody chose as it is in a stored study."""
        return self

    @classmethod
    def in_folder(cls, settings: Setting, folder: Path) -> dict[str, Any]:
        """The settings in a study file, with the files that they name as seen from its folder."""
        return dict(settings)

    @property
    def count(self) -> float | int:
        """Number of values, perhaps infinite."""
        if self.one_hot:
            return self.width
        each = [
            round((one.high - one.low) / one.step) + 1 if one.step else math.inf for one in self.coordinates
        ]
        return math.prod(each)

    @property
    def continuous(self) -> bool:
        """Whether every place is a value that may be chosen."""
        return not self.context and not self.one_hot and all(not one.step for one in self.coordinates)

    @property
    def kind_text(self) -> str:
        """The kind as text."""
        log = any(one.log for one in self.coordinates)
        return self.kind + ", log" * log + ", context" * self.context

    def position(self, value: Value) -> float:
        """Where a value is on the axis."""
        return float(value)

    def text(self, value: Value) -> str:
        """A value as people write it, with its unit."""
        return f"{readable(value)} {self.unit}".rstrip()

    def to_dict(self) -> dict[str, Any]:
        """The parameter as JSON: the kind, and all fields that differ from their defaults."""
        found: dict[str, Any] = {"type": self.kind}
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if value != field.default:
                found[field.name] = list(value) if isinstance(value, tuple) else value
        return found

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
            raise NotFound("type", f"be one of {', '.join(KINDS)}", repr(name), "Choose one of them.")
        return KINDS[name]

    def __repr__(self) -> str:
        """The Python expression that creates it."""
        required = [field.name for field in fields(self) if field.default is MISSING]  # type: ignore[arg-type]
        _, *given = self.to_dict().items()
        words = [repr(value) if name in required else f"{name}={value!r}" for name, value in given]
        return f"{type(self).__name__}({', '.join(words)})"

    def __eq__(self, other: object) -> bool:
        """The same kind with the same fields, of the same types."""
        return type(other) is type(self) and repr(self) == repr(other)

    def __hash__(self) -> int:
        """Equal parameters have equal hashes."""
        return hash(repr(self))


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
    """Text, a boolean or a finite number, as a built-in type."""
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
    """Whether two values are equal; a boolean is not a number, but 1 is 1.0, as in JSON."""
    if not isinstance(one, str | numbers.Real):  # an array would be compared element by element
        return False
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def check_flags(parameter: Parameter, *names: str) -> None:
    """Refuse flags that are not true or false, and a unit that is not text."""
    for name in names:
        value = getattr(parameter, name)
        if not isinstance(value, bool):
            raise WrongType(name, "be true or false", repr(value), "Write True, or leave it out.")
    if not isinstance(parameter.unit, str):
        raise WrongType("unit", "be text", repr(parameter.unit), "Write 'dB', say.")


def _f64(number: float | int) -> Tensor:
    import torch

    return torch.tensor(number, dtype=torch.float64)
