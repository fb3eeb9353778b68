"""Named parameters in natural units, mapped to the unit cube."""

import functools
import keyword
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from askwise.errors import Refused, WrongType
from askwise.space.constraints import NEARLY, HalfSpace, narrowed, parsed
from askwise.space.exact import Comparison, comparisons, corrected
from askwise.space.parameters.base import KINDS, Coordinate, Parameter, Setting, Value

if TYPE_CHECKING:
    from torch import Tensor

    from askwise.space.domain import Domain
else:  # only points need torch, which takes seconds to import
    Domain = Tensor = Any

_CACHED = 32  # contexts
_TRIED = 8  # settings that may have an exact one next to them
_TOWARDS = [1 - 2.0**-k for k in (40, 30, 20, 12, 8, 5, 3, 2, 1)]  # shares of the way from the anchor


class Space:
    """The parameters of a study by name, and constraints between them.

    >>> import torch
    >>> from askwise.space import Choice, Fixed, Integer, Real
    >>> space = Space(gain=Real(0, 10), bands=Integer(1, 8), mode=Choice(["soft", "hard"]), rate=Fixed(48))
    >>> space.natural(torch.tensor([0.5, 1.0, 0.0, 1.0]).double())
    {'gain': 5.0, 'bands': 8, 'mode': 'hard', 'rate': 48}
    >>> space.where("gain + bands <= 12").constraints
    ('gain + bands <= 12',)
    """

    def __init__(self, by_name: Mapping[str, Parameter] | None = None, /, **more: Parameter) -> None:
        """Take parameters as keywords, or as a dictionary where names are not identifiers."""
        parameters = {**(by_name or {}), **more}
        for name, parameter in parameters.items():
            if not isinstance(parameter, Parameter):
                *others, last = (kind.__name__ for kind in KINDS.values())
                what, expected = f"parameter {name}", f"be a {', '.join(others)} or {last}"
                raise WrongType(what, expected, repr(parameter), f"Write {name}=Real(low, high).")
        if all(parameter.context or not parameter.width for parameter in parameters.values()):
            got, advice = ", ".join(parameters) or "none", "Add one, e.g. gain=Real(0, 10)."
            raise Refused("space", "have at least one parameter to choose", got, advice)
        names = [*parameters, *(column for parameter in parameters.values() for column in parameter.columns)]
        for name in names:
            if names.count(name) > 1:
                advice = "Rename one, or a column of the items."
                raise Refused("names of parameters and columns", "all differ", f"{name!r} twice", advice)
        self.parameters: Mapping[str, Parameter] = dict(parameters)
        self.constraints: tuple[str, ...] = ()
        self._half_spaces: list[HalfSpace] = []
        self._domains: dict[object, Domain] = {}
        self._comparisons: list[Comparison] = []
        self._refuges: dict[Domain, dict[str, Value] | None] = {}

    def where(self, *constraints: str) -> "Space":
        """The same space with linear constraints in natural units, e.g. ``"attack + 2 * release <= 10"``."""
        narrow = self._narrowed(constraints)
        if narrow._free_domain is not None and narrow._exact_setting(narrow._free_domain) is None:
            expected = "leave at least one setting that satisfies them exactly, in float64"
            got = " and ".join(map(repr, narrow.constraints))
            raise Refused("constraints", expected, got, "Loosen one of them a little.")
        return narrow

    def _narrowed(self, constraints: Sequence[str]) -> "Space":
        """The same space with constraints, which perhaps no setting satisfies to the last digit."""
        for text in constraints:
            if not isinstance(text, str):
                raise WrongType("constraint", "be text", repr(text), "Write 'gain + bands <= 12', say.")
        numbers = {name: parameter for name, parameter in self.parameters.items() if parameter.numeric}
        known = {name: None if kind.width else kind.natural([]) for name, kind in numbers.items()}
        narrow = Space(**self.parameters)
        narrow.constraints = (*self.constraints, *(text.strip() for text in constraints))
        more = [half for text in constraints for half in parsed(text, known)]  # type: ignore[arg-type]
        narrow._half_spaces = [*self._half_spaces, *more]
        narrow._comparisons = comparisons(narrow.constraints, self.parameters)
        return narrow

    @functools.cached_property
    def _free_domain(self) -> Domain | None:
        """Which points are settings, whatever the context; None where there are no constraints."""
        if not self._half_spaces:
            return None
        found = self._anchored({})
        if found is None:
            got = " and ".join(map(repr, self.constraints))
            raise Refused("constraints", "leave at least one setting", got, "Loosen one of them.")
        return found

    @property
    def d(self) -> int:
        """Number of coordinates: one per number, one per value of a choice."""
        return len(self.owners)

    @functools.cached_property
    def owners(self) -> tuple[str, ...]:
        """The parameter that each coordinate belongs to."""
        return tuple(name for name, parameter in self.parameters.items() for _ in range(parameter.width))

    @property
    def contexts(self) -> tuple[str, ...]:
        """Names of the context parameters, which are given with each question."""
        return tuple(name for name, parameter in self.parameters.items() if parameter.context)

    def natural(self, point: Tensor) -> dict[str, Value]:
        """The setting at a point of the unit cube; it satisfies the constraints exactly.

        A comparison with a continuous parameter holds in float64, evaluated as it is written, and in rational
        numbers; one of values on grids and contexts holds in their decimal digits.  A point outside the
        constraints has the values of its coordinates.
        """
        setting = self.values(point)
        if all(one.holds(setting) for one in self._comparisons) or not self._is_near(setting):
            return setting
        return self._next_to(point, setting) or setting

    def values(self, point: Tensor) -> dict[str, Value]:
        """The value of each parameter at a point, which may miss the constraints by a rounding error."""
        from torch import Tensor

        if not isinstance(point, Tensor):
            advice = "Make it by space.unit, or by torch.tensor."
            raise WrongType("point", f"be a tensor of {self.d} coordinates", repr(point), advice)
        if point.shape != (self.d,):
            advice = "Give one for each number and each value of a choice."
            raise Refused("point", f"have {self.d} coordinates", f"shape {tuple(point.shape)}", advice)
        if not point.isfinite().all():
            raise Refused("point", "have finite coordinates", point.tolist(), "Keep them between 0 and 1.")
        places, items = iter(point.tolist()), self.parameters.items()
        return {name: kind.natural([next(places) for _ in range(kind.width)]) for name, kind in items}

    def unit(self, params: Mapping[str, Value]) -> Tensor:
        """The point [d] of a setting; fixed parameters and columns of items may be left out."""
        fixed = {name: p.natural([]) for name, p in self.parameters.items() if not p.width}
        filled = {**fixed, **params}
        for name, parameter in self.parameters.items():
            for column in parameter.columns:
                if column in filled and filled.pop(column) != (there := parameter.row(filled[name])[column]):
                    got, advice = repr(params[column]), f"Leave it out, or choose another {name}."
                    raise Refused(column, f"be {there!r}, as for this {name}", got, advice)
        if set(filled) != set(self.parameters):
            got = ", ".join(map(str, params)) or "none"
            raise Refused("params", f"be {', '.join(self.parameters)}", got, "Name each of them once.")
        places = [place for name in self.parameters for place in self._places(name, filled[name])]
        if not self._is_near(filled):
            expected = f"satisfy {' and '.join(map(repr, self.constraints))}"
            raise Refused("params", expected, dict(params), "Change one of them.")
        return _f64(places)

    def extended_unit(self, params: Mapping[str, Value]) -> Tensor:
        """The point of a setting that was allowed once; outside the unit cube if a range is narrower now."""
        items = self.parameters.items()
        return _f64([x for name, kind in items if kind.width for x in kind.extended_places(params[name])])

    def allows(self, params: Mapping[str, Value]) -> bool:
        """Whether this is a setting: in all ranges, on all grids, satisfying the constraints."""
        try:
            self.unit(params)
        except Refused:
            return False
        return True

    def replaced(self, **parameters: Parameter) -> "Space":
        """The same space with some of its parameters defined anew; constraints stay.

        >>> from askwise.space import Real
        >>> Space(gain=Real(0, 40), mix=Real(0, 1)).replaced(gain=Real(0, 60))
        Space(gain=Real(0, 60), mix=Real(0, 1))
        """
        for name in parameters:
            if name not in self.parameters:
                known = ", ".join(self.parameters)
                raise Refused("parameter", f"be one of {known}", repr(name), "Correct its name.")
        return Space({**self.parameters, **parameters}).where(*self.constraints)

    def change_to(self, after: "Space") -> list[str]:
        """What changes in a study that goes on in another space, in words; refused if answers lose sense."""
        if list(after.parameters) != list(self.parameters):
            expected = f"stay {', '.join(self.parameters)}, in this order"
            advice = "Answers without one of them have no place in the model: begin another study."
            raise Refused("parameters", expected, ", ".join(after.parameters), advice)
        said = []
        for name, parameter in self.parameters.items():
            try:
                if words := parameter.change_to(after.parameters[name]):
                    said.append(f"{name}: {words}")
            except Refused as error:
                raise error.about(f"{error.what} of {name}") from None
        if self.constraints != after.constraints:
            before, now = (" and ".join(one.constraints) or "none" for one in (self, after))
            said.append(f"constraints: {before} becomes {now}")
        return said

    def like(self, stored: "Space") -> "Space":
        """The same space, with what nobody chose as it is in a stored study."""
        known = {name: one for name, one in self.parameters.items() if name in stored.parameters}
        kept = {name: one.like(stored.parameters[name]) for name, one in known.items()}
        changed = any(kept[name] is not one for name, one in known.items())
        return Space({**self.parameters, **kept})._narrowed(self.constraints) if changed else self

    def described(self, setting: Setting) -> dict[str, Any]:
        """A setting with the features and labels of its items."""
        known = {name: self.parameters[name] for name in setting if name in self.parameters}
        more = [parameter.row(setting[name]) for name, parameter in known.items() if parameter.columns]
        return {**setting, **{column: value for row in more for column, value in row.items()}}

    def check_same_items(self, given: "Space", study: str, advice: str) -> None:
        """Refuse a space whose items are others than those that this one was stored with, saying which."""
        for name, parameter in self.parameters.items():
            if name in given.parameters and (changed := parameter.changes(given.parameters[name])):
                expected = f"be as study {study!r} has it"
                raise Refused(f"table of {name}", expected, changed, advice)

    def domain(self, context: Mapping[str, Value] | None = None) -> Domain | None:
        """Which points are settings in this context; None if all are."""
        given = dict(context or {})
        wanted = ", ".join(self.contexts)
        for name in self.contexts:
            if name not in given:
                raise Refused("context", f"set {wanted}", f"no {name}", f"Add {name} to the context.")
        for name in given:
            if name not in self.contexts:
                advice = "Leave it out, or define it with context=True."
                raise Refused("context", f"set {wanted or 'nothing'}", repr(name), advice)
        if not self._half_spaces and all(parameter.continuous for parameter in self.parameters.values()):
            return None
        places = {name: tuple(self._places(name, given[name])) for name in self.contexts}
        key = tuple(places.items())
        if key not in self._domains:
            if len(self._domains) >= _CACHED:
                self._domains.clear()
                self._refuges.clear()
            found = self._anchored(places)
            if found is None or (self.contexts and self._comparisons and self._exact_setting(found) is None):
                expected = "leave at least one setting that satisfies the constraints"
                raise Refused("context", expected, given, "Loosen a constraint, or refuse this context.")
            self._domains[key] = found
        return self._domains[key]

    def count(self, context: Mapping[str, Value] | None = None) -> float | int:
        """How many settings there are in a context.

        With constraints, counted one by one among at most 100,000 combinations of discrete values; of more,
        or with continuous parameters, among the settings nearest to 512 points.
        """
        if self._comparisons:
            domain = self.domain(context)
            assert domain is not None
            return domain.distinct()
        return math.prod(kind.count for kind in self.parameters.values() if not kind.context)

    def to_dict(self) -> dict[str, Any]:
        """The space as JSON, which :meth:`from_dict` reads back."""
        parameters = [[name, parameter.to_dict()] for name, parameter in self.parameters.items()]
        constraints = {"constraints": list(self.constraints)} if self.constraints else {}
        return {"parameters": parameters, **constraints}

    @classmethod
    def from_dict(cls, written: Mapping[str, Any]) -> "Space":
        """The space that :meth:`to_dict` wrote."""
        space = cls(**{name: Parameter.from_dict(spelled) for name, spelled in written["parameters"]})
        # not refused for want of an exact setting: it may be of a study that was begun before that counted
        return space._narrowed(written["constraints"]) if written.get("constraints") else space

    def __eq__(self, other: object) -> bool:
        """The same parameters in the same order, and the same constraints."""
        return isinstance(other, Space) and self._key == other._key

    def __hash__(self) -> int:
        """Equal spaces have equal hashes."""
        return hash(self._key)

    def __repr__(self) -> str:
        """The Python expression that creates it."""
        items = self.parameters.items()
        if all(name.isidentifier() and not keyword.iskeyword(name) for name in self.parameters):
            inner = ", ".join(f"{name}={parameter!r}" for name, parameter in items)
        else:
            inner = f"**{{{', '.join(f'{name!r}: {parameter!r}' for name, parameter in items)}}}"
        where = f".where({', '.join(map(repr, self.constraints))})" if self.constraints else ""
        return f"Space({inner}){where}"

    @property
    def _key(self) -> tuple[object, ...]:
        return tuple(self.parameters.items()), self.constraints

    def _places(self, name: str, value: Value) -> list[float]:
        try:
            return self.parameters[name].places(value)
        except Refused as error:
            raise error.about(f"parameter {name}") from None

    def _is_near(self, setting: Mapping[str, Value]) -> bool:
        """Whether a setting satisfies the constraints up to rounding."""
        # numbers at their coordinates; zero for parameters that constraints cannot name
        values = [float(setting[name]) if self.parameters[name].numeric else 0.0 for name in self.owners]
        return self._free_domain is None or bool(self._free_domain.satisfied(_f64(values), NEARLY))

    def _next_to(self, point: Tensor, setting: Mapping[str, Value]) -> dict[str, Value] | None:
        """The exact setting that is nearest to a point: next to it, or on the way to the anchor."""
        found = corrected(setting, self._comparisons, self.parameters)
        if found is not None:
            return found
        import torch

        domain = self.domain({name: setting[name] for name in self.contexts})
        assert domain is not None
        anchor = torch.where(domain.one_hot, point, domain.anchor)
        for share in _TOWARDS:
            between = self.values(domain.rounded(anchor + share * (point - anchor)))
            found = corrected(between, self._comparisons, self.parameters) if self._is_near(between) else None
            if found is not None:
                return found
        refuge = self._exact_setting(domain)
        kept = {name: setting[name] for name, kind in self.parameters.items() if not kind.numeric}
        return None if refuge is None else {**refuge, **kept}

    def _exact_setting(self, domain: Domain) -> dict[str, Value] | None:
        """A setting that satisfies the constraints exactly, the anchor if possible; None if none is found."""
        import torch

        if domain not in self._refuges:
            engine = torch.quasirandom.SobolEngine(domain.d, scramble=True, seed=0)
            points = [domain.anchor, *domain.snapped(engine.draw(_TRIED, dtype=torch.float64))]
            settings = (corrected(self.values(x), self._comparisons, self.parameters) for x in points)
            self._refuges[domain] = next((found for found in settings if found is not None), None)
        return self._refuges[domain]

    def _anchored(self, context: Mapping[str, tuple[float, ...]]) -> Domain | None:
        """The domain with the context at these places; None if it is empty."""
        import torch

        from askwise.space.domain import Domain
        from askwise.space.pool import Pool

        axes, given, choices, pools = list[Coordinate](), list[float](), [], []
        for name, parameter in self.parameters.items():
            if parameter.one_hot:
                choices.append((len(axes), len(axes) + parameter.width))
            if parameter.pool is not None:
                pools.append(Pool(len(axes), len(axes) + parameter.width, parameter.pool))
            axes += parameter.coordinates
            given += context.get(name, [math.nan] * parameter.width)
        domain = Domain(
            low=_f64([one.low for one in axes]),
            high=_f64([one.high for one in axes]),
            log=torch.tensor([one.log for one in axes]),
            step=_f64([one.step for one in axes]),
            choices=choices,
            given=_f64(given),
            weights=torch.empty(0, self.d, dtype=torch.float64),
            limits=torch.empty(0, dtype=torch.float64),
            anchor=torch.full((self.d,), 0.5, dtype=torch.float64),
            pools=pools,
        )
        domain = replace(domain, anchor=domain.snapped(domain.anchor))
        if not self._half_spaces:
            return domain
        rows = [[weights.get(name, 0.0) for name in self.owners] for weights, _ in self._half_spaces]
        return narrowed(domain, _f64(rows), _f64([bound for _, bound in self._half_spaces]))


def _f64(values: object) -> Tensor:
    import torch

    return torch.tensor(values, dtype=torch.float64)
