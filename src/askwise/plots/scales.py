"""Parameters as axes: natural units, logarithms, whole numbers, names of choices."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter, FixedLocator, LogLocator, MaxNLocator, NullFormatter, NullLocator
from torch import Tensor

from askwise.plots.names import Names, fitted
from askwise.plots.ticks import ROOM, STEPS, log_ticks, numbers
from askwise.space import Axis, Parameter, Space, Value

_TICKS, _ALL = 6, 10  # stretches between ticks, and whole numbers up to which each has one
_LARGE = 1e4  # from here on, 20k instead of 20000
_MINOR = 3.5  # powers of ten up to which a logarithmic axis has ticks between the labels
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
        numbered = self.parameter.pool is not None and not self.axis.names
        unit = "row of the table, from 0" if numbered else escaped(self.parameter.unit)
        return f"{escaped(self.name)} ({unit})" if unit else escaped(self.name)

    @property
    def ordered(self) -> bool:
        """Whether values beside each other are expected to be similar, so that a curve makes sense."""
        return not self.axis.discrete and not self.parameter.one_hot and self.parameter.pool is None

    def scattered(self, values: Sequence[Value], which: Side = "x") -> list[float]:
        """Positions of values, a little apart where many would overlap."""
        apart = _SCATTER * (self.axis.discrete and not self.axis.log)
        positions, turn = map(self.parameter.position, values), _TURNS[which]
        return [position + apart * ((k * turn) % 1 - 0.5) for k, position in enumerate(positions)]

    def key(self, which: Side = "x", room: int = ROOM) -> str:
        """What the numbers on the axis stand for, where names are too long or too many; else nothing."""
        names = self.names(which, room)
        if names is None or not names.key:
            return ""
        whole = [entry.replace(" ", "\N{NO-BREAK SPACE}") for entry in names.key]
        return escaped(f"{self.name}: {'; '.join(whole)}")

    def names(self, which: Side = "x", room: int = ROOM) -> Names | None:
        """How the names of the values are written on the axis, if they have any."""
        return fitted(self.axis.names, room if which == "x" else 0) if self.axis.names else None

    def dress(self, axes: Axes, which: Side = "x", room: int = ROOM) -> None:
        """Give an axis the name, the limits and the ticks of the parameter.

        ``room``: letters of tick labels that fit below the panel.
        """
        axis: Any = getattr(axes, f"{which}axis")
        if self.axis.log:
            axes.set(**{f"{which}scale": "log"})
        axes.set(**{f"{which}lim": self.axis.limits, f"{which}label": self.label})
        axis.set_minor_locator(NullLocator())
        axis.set_minor_formatter(NullFormatter())
        if names := self.names(which, room):
            turned: dict[str, Any] = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"}
            labels = [escaped(label) for label in names.labels]
            at = [self.axis.at[place] for place in names.places]
            axis.set_ticks(at, labels, **(turned if names.slanted else {}))
        elif self.axis.log:
            (one,) = self.parameter.coordinates
            ticks = log_ticks(one.low, one.high, self.axis.whole, room if which == "x" else 0)
            axis.set_ticks(ticks, numbers(ticks))
            if one.high < one.low * 10**_MINOR:
                axis.set_minor_locator(LogLocator(subs=range(2, 10)))
        else:
            few = self.axis.whole and len(self.axis.values) <= min(_ALL, room // 2)
            ends = self.axis.at[0], self.axis.at[-1]
            letters = 2 + max(len(f"{end:.4g}") for end in ends)
            count = min(_TICKS, max(2, room // letters)) if which == "x" else _TICKS
            locator = MaxNLocator(count, steps=STEPS, integer=self.axis.whole)
            axis.set_major_locator(FixedLocator(self.axis.at) if few else locator)
            if max(map(abs, ends)) >= _LARGE:
                axis.set_major_formatter(EngFormatter(sep=""))


def shown(space: Space, settings: dict[str, Any]) -> str:
    """Names, values and units of a setting, as text."""
    texts = {name: space.parameters[name].text(value) for name, value in settings.items()}
    return ", ".join(f"{escaped(name)} = {escaped(text)}" for name, text in texts.items())


def escaped(text: str) -> str:
    """Text in which a dollar sign does not begin a formula."""
    return text.replace("$", r"\$")


def _f64(values: object) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)
