"""One of a finite pool of items, described by features or by nothing but their names."""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askwise.errors import Refused, WrongType
from askwise.space.parameters.base import FEW, Axis, Coordinate, Parameter, Setting, Value, check_flags, plain
from askwise.space.tables import NAME, columns_of

if TYPE_CHECKING:
    from torch import Tensor
else:  # only rows need torch, which takes seconds to import
    Tensor = Any

MOST = 100_000
"""Items of a pool, at most."""
_MARGIN = 0.05  # of the unit interval on either side, for items that are added later
_BASE = 512  # without features the two digits of an item's number are its coordinates
_APART = 1e-3 / _BASE  # a lengthscale so short that the correlation between items is zero to the last bit
_DRAWN = 200  # items that a figure shows


@dataclass(frozen=True, eq=False, repr=False)
class Items(Parameter):
    """One of a finite pool of items: wines, prompts, images with embeddings, candidate molecules.

    ``table``: a CSV file, a DataFrame, a dictionary of columns, a list of dictionaries, a list of names or an
    array of features.  ``features``: the columns with numbers by which similar items are known.  Without any,
    each item has a worth of its own that says nothing about the others: Thurstone's model.  ``id``: the
    column with the name of an item; without it, those of a list have their names, others are numbered from 0.
    ``label``: the column with the text that people are shown, by default the id.  ``scale``: the range of
    each feature, by default that in the table; it stays when items are added.

    >>> wines = Items({"name": ["Chablis", "Rioja"], "sugar": [1.2, 2.5]}, features=["sugar"], id="name")
    >>> [round(place, 2) for place in wines.places("Rioja")]
    [0.95]
    >>> wines.row("Rioja")
    {'sugar': 2.5}
    """

    table: Any
    features: Sequence[Any] = ()
    id: str = ""
    label: str = ""
    scale: Sequence[Sequence[float]] = ()
    context: bool = False

    kind = "items"
    changeable = ("table",)

    def __post_init__(self) -> None:
        """Read the table, and keep the columns that are used."""
        check_flags(self, "context")
        columns, features = columns_of(self.table, self.id, self.features)
        object.__setattr__(self, "features", features)
        if not self.id and list(columns) == [NAME]:  # a list of names
            object.__setattr__(self, "id", NAME)
        used = dict.fromkeys(name for name in (self.id, self.label, *features) if name)
        for name in used:
            if name not in columns:
                known = ", ".join(map(str, columns)) or "none"
                raise Refused("table", f"have a column {name!r}", known, "Correct the name.")
        if not used or used.keys() == {self.label}:
            raise Refused("items", "have features or an id", "neither", "Write features=[...], or id='name'.")
        numbers = {name: _numbers(name, columns[name]) for name in features}
        texts = {
            name: tuple(plain(name, one) for one in columns[name]) for name in used if name not in numbers
        }
        object.__setattr__(self, "table", {name: {**texts, **numbers}[name] for name in used})
        ranges = [(min(column), max(column)) for column in numbers.values() if column]
        object.__setattr__(self, "scale", _checked_scale(self.scale or ranges, features))
        self._check_items()

    def _check_items(self) -> None:
        count = len(self.ids)
        if not 2 <= count <= MOST:
            raise Refused("items", f"be from 2 to {MOST:,}", count, "Add some, or leave some out.")
        if len(self._numbers) < count:
            twice = next(one for k, one in enumerate(self.ids) if self._numbers[one] != k)
            raise Refused(self.id or "id", "be different for each item", f"{twice!r} twice", "Rename one.")
        if not self.features:
            return
        seen: dict[tuple[float, ...], Value] = {}
        for one, place in zip(self.ids, map(tuple, self.rows.tolist()), strict=True):
            if place in seen:
                got = f"{seen[place]!r} and {one!r}, which do not"
                raise Refused("items", "differ in a feature", got, "Add a feature, or leave one of them out.")
            seen[place] = one

    @functools.cached_property
    def ids(self) -> tuple[Value, ...]:
        """The names of the items."""
        if self.id:
            return self.table[self.id]
        return tuple(range(len(next(iter(self.table.values())))))

    @functools.cached_property
    def rows(self) -> Tensor:
        """The coordinates of each item.

        A feature is linear between the ends of its scale; values beyond, of items that were added later, are
        squeezed into the margins.
        """
        import torch

        if not self.features:
            number = torch.arange(len(self.ids), dtype=torch.float64)
            return torch.stack([(number / _BASE).floor() / _BASE, number.remainder(_BASE) / _BASE], -1)
        values = torch.tensor([self.table[name] for name in self.features], dtype=torch.float64).mT
        low, high = torch.tensor(self.scale, dtype=torch.float64).mT
        place = _MARGIN + (1 - 2 * _MARGIN) * (values - low) / (high - low)
        # with slope 1 at the ends; hyperbolas, because exponentials would make one place of far items
        below = _MARGIN**2 / (_MARGIN + (_MARGIN - place).clamp_min(0))
        above = 1 - _MARGIN**2 / (_MARGIN + (place - 1 + _MARGIN).clamp_min(0))
        return torch.where(place < _MARGIN, below, torch.where(place > 1 - _MARGIN, above, place))

    def with_rows(self, table: Any) -> "Items":
        """The same pool with more items; the coordinates of those that are there do not move."""
        more, _ = columns_of(table, self.id, self.features)
        for name in self.table:
            if name not in more:
                raise Refused("table", f"have a column {name!r}", ", ".join(map(str, more)), "Add it.")
        return replace(self, table={name: [*known, *more[name]] for name, known in self.table.items()})

    def row(self, value: Value) -> dict[str, Value]:
        """The label and the features of an item, by column."""
        number = self._number(value)
        return {name: column[number] for name, column in self.table.items() if name != self.id}

    def changes(self, other: Parameter) -> str:
        """How another pool differs in its items or their features, in words."""
        if not isinstance(other, Items) or other.columns != self.columns:
            return ""
        more, fewer = (
            other._numbers.keys() - self._numbers.keys(),
            self._numbers.keys() - other._numbers.keys(),
        )
        if more or fewer:
            parts = [f"{len(more):,} more ({min(map(str, more))!r}, say)"] if more else []
            parts += [f"{len(fewer):,} fewer ({min(map(str, fewer))!r}, say)"] if fewer else []
            return f"a table with {' and '.join(parts)}"
        if self.ids != other.ids:
            return "the same items in another order"
        for one in self.ids:
            for column, value in self.row(one).items():
                if other.row(one)[column] != value:
                    return f"{column} = {other.row(one)[column]!r} instead of {value!r} for {one!r}"
        return ""

    def change_to(self, after: Parameter) -> str:
        """Items may be added at the end of the table; those that are there keep their rows."""
        if isinstance(after, Items) and after.columns == self.columns and not after._continues(self):
            if after.ids[: len(self.ids)] != self.ids and set(self.ids) <= set(after.ids):
                got = "new items among those that are there, or these in another order"
            else:
                got = self.changes(replace(after, table=after._first(len(self.ids))))
            advice = "Put them back, and new items at the end of the table."
            raise Refused("table", "keep the items that are there, as they are", got, advice)
        if not super().change_to(after):
            return ""
        assert isinstance(after, Items)
        added = after.ids[len(self.ids) :]
        named = ", ".join(map(after.text, added[:3]))
        return f"{len(added):,} more item{'s' * (len(added) > 1)}, {named}{', ...' if len(added) > 3 else ''}"

    def like(self, stored: Parameter) -> "Items":
        """With the scale of a stored pool, unless another was chosen: so coordinates do not move."""
        if not isinstance(stored, Items) or not self._continues(stored) or self.scale == stored.scale:
            return self
        own = tuple((min(self.table[name]), max(self.table[name])) for name in self.features)
        return replace(self, scale=stored.scale) if self.scale == own else self

    def _continues(self, before: "Items") -> bool:
        """Whether the table begins with all rows of another one."""
        count = len(before.ids)
        return self.table.keys() == before.table.keys() and self._first(count) == before.table

    def _first(self, count: int) -> dict[str, Any]:
        return {name: column[:count] for name, column in self.table.items()}

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of :meth:`row`."""
        return tuple(name for name in self.table if name != self.id)

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """One coordinate for each feature."""
        return (Coordinate(),) * (len(self.features) or 2)

    @property
    def dimensions(self) -> int:
        """Number of features."""
        return len(self.features) or 1

    @property
    def pool(self) -> Tensor:
        """The coordinates of each item."""
        return self.rows

    @property
    def expected_length(self) -> float | None:
        """Without features, so short a lengthscale that items are independent."""
        return None if self.features else _APART

    @property
    def count(self) -> int:
        """Number of items."""
        return len(self.ids)

    @property
    def continuous(self) -> bool:
        """Never: there is nothing between two items."""
        return False

    def natural(self, places: Sequence[float | int]) -> Value:
        """The item whose coordinates are nearest."""
        apart = (self.rows - self.rows.new_tensor(places)).square().sum(-1)
        return self.ids[int(apart.argmin())]

    def places(self, value: Value) -> list[float]:
        """The coordinates of an item."""
        return self.rows[self._number(value)].tolist()

    def axis(self, count: int, cells: bool) -> Axis:
        """The items side by side in the order of the table, by name if they are few."""
        step = math.ceil(self.count / _DRAWN)
        at = [float(number) for number in range(0, self.count, step)]
        edges = [place - step / 2 for place in [*at, at[-1] + step]]
        shown = self.ids[::step]
        names = [self.text(one) for one in shown] if self.count <= FEW else ()
        return Axis(shown, at, edges, (edges[0], edges[-1]), whole=True, discrete=bool(names), names=names)

    def position(self, value: Value) -> float:
        """Its number in the table."""
        return float(self._number(value))

    def text(self, value: Value) -> str:
        """The label of an item."""
        return str(self.table[self.label][self._number(value)] if self.label else value)

    @property
    def range_text(self) -> str:
        """The number of items, and the first of them."""
        first = ", ".join(map(self.text, self.ids[:3]))
        return f"{self.count:,} items: {first}{', ...' if self.count > 3 else ''}"

    def read(self, text: str) -> Value:
        """The item with this id or, if only one has it, this label."""
        found = [one for one in self.ids if str(one) == text] or [
            one for one in self.ids if self.text(one) == text
        ]
        if len(found) != 1:
            raise Refused("item", f"be the id of one of the {self.count:,} items", repr(text), "Look it up.")
        return found[0]

    def to_dict(self) -> dict[str, Any]:
        """The parameter as JSON: everything that is used of the table, so that the file is not needed."""
        given: dict[str, Any] = {"features": list(self.features), "id": self.id, "label": self.label}
        scale = [list(ends) for ends in self.scale]
        given |= {"scale": scale, "context": self.context}
        table = {name: list(column) for name, column in self.table.items()}
        return {"type": self.kind, "table": table} | {name: value for name, value in given.items() if value}

    @classmethod
    def in_folder(cls, settings: Setting, folder: Path) -> dict[str, Any]:
        """The table of a study file is looked for next to it."""
        table = settings.get("table")
        return {**settings, "table": str(folder / table)} if isinstance(table, str) else dict(settings)

    def __repr__(self) -> str:
        """The Python expression that creates a small pool; a large one in a few words."""
        if self.count <= FEW:
            return super().__repr__()
        words = [f"<{self.count:,} items>"]
        words += [f"features={list(self.features)}"] * bool(self.features)
        words += [
            f"{name}={getattr(self, name)!r}" for name in ("id", "label", "context") if getattr(self, name)
        ]
        return f"Items({', '.join(words)})"

    def __eq__(self, other: object) -> bool:
        """The same items with the same features on the same scale."""
        return isinstance(other, Items) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        """Equal pools have equal hashes."""
        return hash((self.ids, self.features, self.id, self.label))

    @functools.cached_property
    def _numbers(self) -> dict[Value, int]:
        return {one: number for number, one in enumerate(self.ids)}

    def _number(self, value: object) -> int:
        known = (
            isinstance(value, str | int | float) and not isinstance(value, bool) and value in self._numbers
        )
        if not known:
            advice = f"The first is {self.ids[0]!r}."
            raise Refused("value", f"be one of the {self.count:,} items", repr(value), advice)
        return self._numbers[value]  # type: ignore[index]


def _numbers(name: str, column: Sequence[Any]) -> tuple[float, ...]:
    found = []
    for row, value in enumerate(column):
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not math.isfinite(number):
            advice = "Fill it in or leave the row out; make columns of 0 and 1 of categories."
            raise Refused(f"feature {name}", "be a finite number", f"{value!r} in row {row + 1}", advice)
        found.append(number)
    return tuple(found)


def _checked_scale(scale: Any, features: Sequence[str]) -> tuple[tuple[float, float], ...]:
    if not isinstance(scale, Sequence) or len(scale) != len(features):
        expected = f"be a pair of numbers for each of {len(features)} features"
        raise WrongType("scale", expected, repr(scale), "Leave it out.")
    for name, ends in zip(features, scale, strict=True):
        pair = isinstance(ends, Sequence) and not isinstance(ends, str) and len(ends) == 2
        if not (pair and all(isinstance(end, int | float) for end in ends)):
            raise WrongType(f"scale of {name}", "be a pair of numbers", repr(ends), "Leave it out.")
        if not ends[0] < ends[1]:
            raise Refused(f"feature {name}", "have different values", f"all {ends[0]}", "Leave it out.")
    return tuple((float(low), float(high)) for low, high in scale)
