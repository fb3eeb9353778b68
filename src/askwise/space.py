"""Named parameters in natural units, and their place in the unit cube."""

import functools
import keyword
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from askwise.constraints import HalfSpace, inner_setting, parsed
from askwise.domain import Domain, placed
from askwise.parameters import Choice as Choice
from askwise.parameters import Fixed as Fixed
from askwise.parameters import Integer as Integer
from askwise.parameters import Parameter, Value, from_dict, to_dict
from askwise.parameters import Real as Real

__all__ = ["Choice", "Fixed", "Integer", "Real", "Space"]

_TRIED = 4096  # Sobol points among which a setting that satisfies the constraints is first looked for
_REMEMBERED = 32  # contexts
_NEARLY = 1e-8  # how far a setting that is told may violate a constraint, in parts of its terms


class Space:
    """The parameters of a study by name, and constraints between them.

    >>> space = Space(gain=Real(0, 10), bands=Integer(1, 8), mode=Choice(["soft", "hard"]), rate=Fixed(48))
    >>> space.natural(torch.tensor([0.5, 1.0, 0.0, 1.0]).double())
    {'gain': 5.0, 'bands': 8, 'mode': 'hard', 'rate': 48}
    >>> space.where("gain + bands <= 12").constraints
    ('gain + bands <= 12',)
    """

    def __init__(self, /, **parameters: Parameter) -> None:
        """Take parameters as keywords."""
        for name, parameter in parameters.items():
            if not isinstance(parameter, Parameter):
                raise TypeError(
                    f"parameter {name} must be a Real, Integer, Choice or Fixed; got {parameter!r}. "
                    f"Write {name}=Real(low, high)."
                )
        if all(parameter.context or not parameter.width for parameter in parameters.values()):
            raise ValueError(
                f"space must have at least one parameter to choose; got {', '.join(parameters) or 'none'}. "
                "Add one, e.g. gain=Real(0, 10)."
            )
        self.parameters: Mapping[str, Parameter] = dict(parameters)
        self.constraints: tuple[str, ...] = ()
        self._half_spaces: list[HalfSpace] = []
        self._domains: dict[object, Domain] = {}

    def where(self, *constraints: str) -> "Space":
        """The same space with linear constraints in natural units, e.g. ``"attack + 2 * release <= 10"``."""
        known = {
            name: parameter.value if isinstance(parameter, Fixed) else None
            for name, parameter in self.parameters.items()
            if not isinstance(parameter, Choice)
            and not (isinstance(parameter, Fixed) and isinstance(parameter.value, str | bool))
        }
        for text in constraints:
            if not isinstance(text, str):
                raise TypeError(f"constraint must be a text; got {text!r}. Write 'gain + bands <= 12', say.")
        narrowed = Space(**self.parameters)
        narrowed.constraints = (*self.constraints, *(text.strip() for text in constraints))
        more = [half for text in constraints for half in parsed(text, known)]  # type: ignore[arg-type]
        narrowed._half_spaces = [*self._half_spaces, *more]
        if narrowed._half_spaces and narrowed._anchored({}) is None:
            raise ValueError(
                "constraints must leave at least one setting; got "
                f"{' and '.join(map(repr, narrowed.constraints))}. Loosen one of them."
            )
        return narrowed

    @property
    def d(self) -> int:
        """Number of coordinates: one for each number, one for each value of a choice."""
        return len(self.owners)

    @functools.cached_property
    def owners(self) -> tuple[str, ...]:
        """The name of the parameter of each coordinate."""
        return tuple(name for name, parameter in self.parameters.items() for _ in range(parameter.width))

    @property
    def contexts(self) -> tuple[str, ...]:
        """Names of the parameters that are given from outside with each question."""
        return tuple(name for name, parameter in self.parameters.items() if parameter.context)

    def natural(self, point: Float[Tensor, " d"]) -> dict[str, Value]:
        """The parameters at a point of the unit cube, in order of definition."""
        if point.shape != (self.d,):
            raise ValueError(
                f"point must have {self.d} coordinates; got shape {tuple(point.shape)}. "
                "Give one for each number and each value of a choice."
            )
        places = iter(point.tolist())
        return {
            name: parameter.natural([next(places) for _ in range(parameter.width)])
            for name, parameter in self.parameters.items()
        }

    def unit(self, params: Mapping[str, Value]) -> Float[Tensor, " d"]:
        """The point of the unit cube for these parameters; those that are fixed may be left out."""
        fixed = {name: p.value for name, p in self.parameters.items() if isinstance(p, Fixed)}
        filled = {**fixed, **params}
        if set(filled) != set(self.parameters):
            raise ValueError(
                f"params must be {', '.join(self.parameters)}; got {', '.join(map(str, params)) or 'none'}. "
                "Name each of them once."
            )
        places = [place for name in self.parameters for place in self._places(name, filled[name])]
        point = torch.tensor(places, dtype=torch.float64)
        if self._half_spaces and not self._free_domain.satisfied(self._values(filled), _NEARLY):
            raise ValueError(
                f"params must satisfy {' and '.join(map(repr, self.constraints))}; got {dict(params)}. "
                "Change one of them."
            )
        return point

    def domain(self, context: Mapping[str, Value] | None = None) -> Domain | None:
        """The settings among the points of the cube in this context; None if every point is one."""
        given = dict(context or {})
        for name in self.contexts:
            if name not in given:
                raise ValueError(
                    f"context must set {', '.join(self.contexts)}; got no {name}. Add {name} to the context."
                )
        for name in given:
            if name not in self.contexts:
                raise ValueError(
                    f"context must set {', '.join(self.contexts) or 'nothing'}; got {name!r}. Leave it out, "
                    "or define it with context=True."
                )
        if not self._half_spaces and all(
            isinstance(parameter, Fixed) or (isinstance(parameter, Real) and not parameter.context)
            for parameter in self.parameters.values()
        ):
            return None
        places = {name: tuple(self._places(name, given[name])) for name in self.contexts}
        key = tuple(places.items())
        if key not in self._domains:
            if len(self._domains) >= _REMEMBERED:
                self._domains.clear()
            found = self._anchored(places)
            if found is None:
                raise ValueError(
                    f"context must leave at least one setting that satisfies the constraints; got {given}. "
                    "Loosen a constraint, or refuse this context."
                )
            self._domains[key] = found
        return self._domains[key]

    def to_dict(self) -> dict[str, Any]:
        """The space as JSON, which :meth:`from_dict` reads back."""
        parameters = {name: to_dict(parameter) for name, parameter in self.parameters.items()}
        return {"parameters": [[name, spelled] for name, spelled in parameters.items()]} | (
            {"constraints": list(self.constraints)} if self.constraints else {}
        )

    @classmethod
    def from_dict(cls, written: Mapping[str, Any]) -> "Space":
        """The space that was written so."""
        space = cls(**{name: from_dict(spelled) for name, spelled in written["parameters"]})
        return space.where(*written.get("constraints", ())) if written.get("constraints") else space

    def __eq__(self, other: object) -> bool:
        """The same parameters in the same order, and the same constraints."""
        return isinstance(other, Space) and (self._written, self.constraints) == (
            other._written,
            other.constraints,
        )

    def __hash__(self) -> int:
        """Equal spaces have equal hashes."""
        return hash((self._written, self.constraints))

    def __repr__(self) -> str:
        """As it is written."""
        items = self.parameters.items()
        if all(name.isidentifier() and not keyword.iskeyword(name) for name in self.parameters):
            inner = ", ".join(f"{name}={parameter!r}" for name, parameter in items)
        else:
            inner = f"**{{{', '.join(f'{name!r}: {parameter!r}' for name, parameter in items)}}}"
        where = f".where({', '.join(map(repr, self.constraints))})" if self.constraints else ""
        return f"Space({inner}){where}"

    @property
    def _written(self) -> tuple[tuple[str, Parameter], ...]:
        return tuple(self.parameters.items())

    def _places(self, name: str, value: Value) -> list[float]:
        try:
            return self.parameters[name].places(value)
        except (ValueError, TypeError) as error:
            raise type(error)(str(error).replace("value", f"parameter {name}", 1)) from None

    def _values(self, params: Mapping[str, Value]) -> Float[Tensor, " d"]:
        """Numbers as they are, each at its coordinate; nothing for choices, which no constraint names."""
        named = [(params[name], isinstance(self.parameters[name], Choice)) for name in self.owners]
        return _f64([0.0 if chosen else float(value) for value, chosen in named])

    @functools.cached_property
    def _free_domain(self) -> Domain:
        """The settings in all contexts."""
        found = self._anchored({})
        assert found is not None  # else the constraints had been refused
        return found

    def _anchored(self, context: Mapping[str, tuple[float, ...]]) -> Domain | None:
        """The settings with these places of context parameters; None if there are none."""
        numbers = [p for p in self.parameters.values() for _ in range(p.width)]
        places = [
            place for name, p in self.parameters.items() for place in context.get(name, [math.nan] * p.width)
        ]
        starts = [place for place, name in enumerate(self.owners) if name not in self.owners[:place]]
        domain = Domain(
            low=_f64([0 if isinstance(p, Choice) else p.low for p in numbers]),  # type: ignore[union-attr]
            high=_f64([1 if isinstance(p, Choice) else p.high for p in numbers]),  # type: ignore[union-attr]
            log=torch.tensor([isinstance(p, Real | Integer) and p.log for p in numbers]),
            whole=torch.tensor([isinstance(p, Integer) for p in numbers]),
            choices=[(k, k + numbers[k].width) for k in starts if isinstance(numbers[k], Choice)],
            given=_f64(places),
            weights=torch.empty(0, self.d, dtype=torch.float64),
            limits=torch.empty(0, dtype=torch.float64),
            anchor=torch.full((self.d,), 0.5, dtype=torch.float64),
        )
        domain = replace(domain, anchor=domain.snapped(domain.anchor))
        if not self._half_spaces:
            return domain
        weights = [[half.weights.get(name, 0.0) for name in self.owners] for half in self._half_spaces]
        return _narrowed(domain, _f64(weights), _f64([half.bound for half in self._half_spaces]))


def _narrowed(domain: Domain, weights: Float[Tensor, "c d"], limits: Float[Tensor, " c"]) -> Domain | None:
    """The part of a domain where weighted sums of natural values are within limits; None if it is empty."""
    always = (torch.where(domain.given.isnan(), weights, 0.0) == 0).all(-1)  # a matter of the context alone
    context = replace(domain, weights=weights[always], limits=limits[always])
    if not context.feasible(domain.given.nan_to_num(0.0), _NEARLY):
        return None
    domain = replace(domain, weights=weights[~always], limits=limits[~always])
    if not domain.constrained:
        return domain
    points = torch.quasirandom.SobolEngine(domain.d, scramble=True, seed=0).draw(_TRIED, dtype=torch.float64)
    points = domain.rounded(points)
    depth = torch.where(domain.feasible(points), domain.depth(points), 0.0)
    if depth.max() > 0:
        return replace(domain, anchor=points[depth.argmax()])
    return _solved(domain)


def _solved(domain: Domain) -> Domain | None:
    """The domain with an anchor found by linear programming; None if no setting satisfies the constraints."""
    width = domain.high - domain.low
    # the solver wants whole numbers as they are; the others as shares of their range
    start, scale = torch.where(domain.whole, domain.low, 0.0), torch.where(domain.whole, width, 1.0)
    rows = domain.rows / scale
    ends = [domain.shares(domain.given.nan_to_num(end)) for end in (0.0, 1.0)]
    ends = [start + scale * end for end in ends]
    bounds = domain.bounds + rows @ start
    # the solver takes tiny weights for zero: of very many whole numbers they must be as they are
    for unit in (torch.ones_like(bounds), rows.abs().amax(-1)):
        parts = (rows / unit[:, None], bounds / unit, *ends, domain.whole)
        found = inner_setting(*(part.numpy() for part in parts))
        if found is None:
            continue
        value = domain.low + (torch.from_numpy(found) - start) / scale * width
        anchor = placed(value, domain.low, domain.high, domain.log)
        # the solver is not exact; a choice is not constrained: any of its values will do
        anchor = domain.projected(domain.rounded(anchor)[None])[0]
        if domain.feasible(anchor):
            return replace(domain, anchor=anchor)
    return None


def _f64(values: object) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)
