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

from askwise.space import Axis, Parameter, Space, Value

_TICKS, _ALL = 6, 10  # ticks per axis, and whole numbers up to which each has one
_LONG = 24  # letters that the names of all choices may have together to fit below a panel
_LETTER = 0.036  # width of a letter of a tick label, as a share of a narrow panel
_SCATTER = 0.42  # share of a cell over which marks are scattered
_TURNS = {"x": 0.7548776662466927, "y": 0.5698402909980532}  # steps that fill a square evenly

Side = Literal["x", "y"]
SIDES: tuple[Side, Side] = ("x", "y")


@dataclass(frozen=True)
class Scale:
    """A parameter as an axis of a figure, with the values to draw."""

    name: str
    parameter: Parameter
    columns: Sequence[int]
    """Its coordinates in the unit cube."""
    axis: Axis

    @classmethod
    def of(cls, space: Space, name: str, count: int, cells: bool = False) -> "Scale":
        """A parameter of a space as an axis with about this many values.

        Continuous values run from end to end, or through the middles of equal ``cells``; discrete ones are
        all there, unless there are very many.
        """
        parameter = space.parameters[name]
        columns = [column for column, owner in enumerate(space.owners) if owner == name]
        return cls(name, parameter, columns, parameter.axis(count, cells))

    @property
    def at(self) -> Float[Tensor, " k"]:
        """Positions of the values."""
        return _f64(self.axis.at)

    @property
    def edges(self) -> Float[Tensor, " e"]:
        """Where the cells around the values begin and end."""
        return _f64(self.axis.edges)

    @property
    def places(self) -> Float[Tensor, "k w"]:
        """The values as coordinates of the unit cube."""
        return _f64([self.parameter.places(value) for value in self.axis.values])

    @property
    def label(self) -> str:
        """Name and unit."""
        unit = f" ({escaped(self.parameter.unit)})" if self.parameter.unit else ""
        return f"{escaped(self.name)}{unit}"

    def scattered(self, values: Sequence[Value], which: Side = "x") -> list[float]:
        """Positions of values, a little apart where many would overlap."""
        apart = _SCATTER * (self.axis.discrete and not self.axis.log)
        positions, turn = map(self.parameter.position, values), _TURNS[which]
        return [position + apart * ((k * turn) % 1 - 0.5) for k, position in enumerate(positions)]

    def dress(self, axes: Axes, which: Side = "x") -> None:
        """Give an axis the name, the limits and the ticks of the parameter."""
        axis: Any = getattr(axes, f"{which}axis")
        if self.axis.log:
            axes.set(**{f"{which}scale": "log"})
        axes.set(**{f"{which}lim": self.axis.limits, f"{which}label": self.label})
        axis.set_minor_locator(NullLocator())
        axis.set_minor_formatter(NullFormatter())
        if self.axis.names:
            names = [escaped(name) for name in self.axis.names]
            slanted = which == "x" and sum(map(len, names)) > _LONG
            turned: dict[str, Any] = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"}
            axis.set_ticks(self.axis.at, names, **(turned if slanted else {}))
        elif self.axis.log:
            (one,) = self.parameter.coordinates
            ticks = _log_ticks(one.low, one.high, self.axis.whole)
            axis.set_ticks(ticks, [_number(tick) for tick in ticks])
        else:
            few = self.axis.whole and len(self.axis.values) <= _ALL
            locator = MaxNLocator(_TICKS - 1, integer=self.axis.whole)
            axis.set_major_locator(FixedLocator(self.axis.at) if few else locator)


def shown(space: Space, settings: dict[str, Any]) -> str:
    """Names, values and units of a setting, as text."""
    texts = {name: space.parameters[name].text(value) for name, value in settings.items()}
    return ", ".join(f"{escaped(name)} = {escaped(text)}" for name, text in texts.items())


def escaped(text: str) -> str:
    """Text in which a dollar sign does not begin a formula."""
    return text.replace("$", r"\$")


def _log_ticks(low: float | int, high: float | int, whole: bool) -> list[float]:
    """Round numbers: 1, 2 and 5 times powers of ten; else powers of ten; else every second, third, .. one."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
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
    """Whether neighbouring tick labels would touch on an axis with this range of logarithms."""
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
