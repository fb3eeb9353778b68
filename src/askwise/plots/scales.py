"""Parameters as axes: natural units, logarithms, whole numbers, names of choices."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, MaxNLocator, NullFormatter, NullLocator
from torch import Tensor

from askwise.parameters import Choice, Integer, Parameter, Real, Value
from askwise.space import Space

__all__ = ["SIDES", "Scale", "Side", "escaped", "scale", "shown"]

_FEW = 20  # whole numbers that are drawn one by one
_WHOLE = 41  # whole numbers that are drawn at all
_TICKS, _ALL = 6, 10  # so many ticks, and so many whole numbers that each have one
_LONG = 24  # letters of all names of a choice that fit below a panel side by side
_LETTER = 0.036  # width of a letter of a tick, in shares of a narrow panel
_SCATTER = 0.42  # share of a cell over which marks are scattered
_TURNS = {"x": 0.7548776662466927, "y": 0.5698402909980532}  # steps that fill a square evenly


Side = Literal["x", "y"]
SIDES: tuple[Side, Side] = ("x", "y")


@dataclass(frozen=True)
class Scale:
    """Settings along one parameter, and where they are on an axis."""

    name: str
    parameter: Real | Integer | Choice
    columns: Sequence[int]
    """Its coordinates in the unit cube."""
    values: Sequence[Value]
    at: Float[Tensor, " k"]
    """Where the values are: as they are, or 0, 1, .. for a choice."""
    edges: Float[Tensor, " e"]
    """Where the cells around them begin and end."""

    @property
    def discrete(self) -> bool:
        """Whether each value is drawn by itself."""
        return not isinstance(self.parameter, Real) and len(self.values) <= _FEW

    @property
    def logarithmic(self) -> bool:
        """Whether ratios count."""
        return not isinstance(self.parameter, Choice) and self.parameter.log

    @property
    def places(self) -> Float[Tensor, "k w"]:
        """The values as coordinates of the unit cube."""
        return _f64([self.parameter.places(value) for value in self.values])

    @property
    def label(self) -> str:
        """Name and unit."""
        return _label(self.name, self.parameter)

    def position(self, value: Value) -> float:
        """Where a value is on the axis."""
        if isinstance(self.parameter, Choice):
            return float(self.parameter.places(value).index(1.0))
        return float(value)

    def scattered(self, values: Sequence[Value], which: Side = "x") -> list[float]:
        """Positions, a little apart where many values would be one above the other."""
        apart = _SCATTER * (self.discrete and not self.logarithmic)
        turn = _TURNS[which]
        return [self.position(value) + apart * ((k * turn) % 1 - 0.5) for k, value in enumerate(values)]

    def dress(self, axes: Axes, which: Side = "x") -> None:
        """Give an axis the name, the limits and the ticks of the parameter."""
        axis: Any = getattr(axes, f"{which}axis")
        if self.logarithmic:
            getattr(axes, f"set_{which}scale")("log")
        getattr(axes, f"set_{which}lim")(*self._limits())
        getattr(axes, f"set_{which}label")(self.label)
        axis.set_minor_locator(NullLocator())
        axis.set_minor_formatter(NullFormatter())
        if isinstance(self.parameter, Choice):
            names = [escaped(str(value)) for value in self.values]
            slanted = which == "x" and sum(map(len, names)) > _LONG
            turned: dict[str, Any] = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"}
            axis.set_ticks(self.at.tolist(), names, **(turned if slanted else {}))
        elif self.logarithmic:
            ticks = _log_ticks(self.parameter)
            axis.set_major_locator(FixedLocator(ticks))
            axis.set_ticklabels([_number(tick) for tick in ticks])
        else:
            whole = isinstance(self.parameter, Integer)
            few = whole and len(self.values) <= _ALL
            axis.set_major_locator(
                FixedLocator(self.at.tolist()) if few else MaxNLocator(_TICKS - 1, integer=whole)
            )

    def _limits(self) -> tuple[float, float]:
        if isinstance(self.parameter, Real):
            return float(self.parameter.low), float(self.parameter.high)
        return float(self.edges[0]), float(self.edges[-1])


def scale(space: Space, name: str, count: int, cells: bool = False) -> Scale:
    """A parameter of a space as an axis with about so many values.

    Real values run from end to end, or through the middles of equal ``cells``; of whole numbers and
    choices all are taken, unless they are very many.
    """
    parameter = space.parameters[name]
    columns = [column for column, owner in enumerate(space.owners) if owner == name]
    if isinstance(parameter, Choice):
        at = torch.arange(parameter.width, dtype=torch.float64)
        return Scale(name, parameter, columns, parameter.values, at, torch.cat([at - 0.5, at[-1:] + 0.5]))
    assert isinstance(parameter, Real | Integer)  # what is fixed has no axis
    if isinstance(parameter, Integer):
        numbers = _whole_numbers(parameter, min(count, _WHOLE))
        at = _f64(numbers)
        inner = (at[1:] + at[:-1]) / 2
        return Scale(name, parameter, columns, numbers, at, torch.cat([at[:1] - 0.5, inner, at[-1:] + 0.5]))
    rim = [parameter.natural([k / count]) for k in range(count + 1)]
    places = [(k + 0.5) / count if cells else k / (count - 1) for k in range(count)]
    values = [parameter.natural([place]) for place in places]
    return Scale(name, parameter, columns, values, _f64(values), _f64(rim))


def shown(space: Space, settings: dict[str, Any]) -> str:
    """Settings in words: names, values, units."""
    units = {name: _unit(space.parameters[name]) for name in settings}
    return ", ".join(f"{escaped(name)} = {_short(value)}{units[name]}" for name, value in settings.items())


def escaped(text: str) -> str:
    """Text in which a dollar is a dollar."""
    return text.replace("$", r"\$")


def _label(name: str, parameter: Parameter) -> str:
    unit = _unit(parameter).strip()
    return f"{escaped(name)} ({unit})" if unit else escaped(name)


def _unit(parameter: Parameter) -> str:
    unit = getattr(parameter, "unit", "")
    return f" {escaped(unit)}" if unit else ""


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else escaped(str(value))


def _whole_numbers(parameter: Integer, most: int) -> list[int]:
    if parameter.high - parameter.low < _WHOLE:
        return list(range(parameter.low, parameter.high + 1))
    return sorted({parameter.natural([k / (most - 1)]) for k in range(most)})


def _log_ticks(parameter: Real | Integer) -> list[float]:
    """Round numbers: 1, 2 and 5 times powers of ten, or powers of ten alone, or every other of these."""
    low, high = float(parameter.low), float(parameter.high)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    whole = isinstance(parameter, Integer)
    for step, parts in ((1, (1, 2, 5)), (1, (1,)), *((step, (1,)) for step in range(2, len(powers) + 2))):
        ticks = [part * 10.0**power for power in powers if power % step == 0 for part in parts]
        ticks = [tick for tick in ticks if low <= tick <= high and not (whole and tick % 1)]
        wordy = len(parts) > 1 and len(powers) > 2 and any("$" in _number(tick) for tick in ticks)
        crowded = len(parts) > 1 and _crowded(ticks, math.log(high / low))
        if len(ticks) <= _TICKS + (len(parts) > 1) and not wordy and not crowded:
            break
    if len(ticks) >= 2:
        return ticks
    spread = MaxNLocator(_TICKS - 2, integer=whole).tick_values(low, high)
    return [float(tick) for tick in spread if low <= tick <= high] or [low, high]


def _crowded(ticks: Sequence[float], length: float) -> bool:
    """Whether the numbers of neighbours would touch, on an axis of this length in logarithms."""
    return any(
        math.log(right / left) / length < _LETTER * (1 + (len(_number(left)) + len(_number(right))) / 2)
        for left, right in itertools.pairwise(ticks)
    )


def _number(value: float) -> str:
    if 1e-3 <= value < 1e5:
        return f"{value:g}"
    mantissa, power = f"{value:e}".split("e")
    front = f"{float(mantissa):g}"
    times = "" if front == "1" else rf"{front} \times "
    return rf"${times}10^{{{int(power)}}}$"


def _f64(values: object) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)
