"""Named parameters in natural units, mapped to the unit cube."""

import functools
import keyword
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from askwise.errors import Refused, WrongType
from askwise.space.constraints import HalfSpace, inner_setting, parsed
from askwise.space.domain import Domain, placed
from askwise.space.parameters import KINDS, Parameter, Value

_TRIED = 4096  # Sobol points tried before linear programming looks for a feasible setting
_CACHED = 32  # contexts
_NEARLY = 1e-8  # relative violation of a constraint that is allowed in settings from users


class Space:
    """The parameters of a study by name, and constraints between them.

    >>> from askwise.space import Choice, Fixed, Integer, Real
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
                *others, last = (kind.__name__ for kind in KINDS.values())
                raise WrongType(
                    f"parameter {name}",
                    f"be a {', '.join(others)} or {last}",
                    repr(parameter),
                    f"Write {name}=Real(low, high).",
                )
        if all(parameter.context or not parameter.width for parameter in parameters.values()):
            raise Refused(
                "space",
                "have at least one parameter to choose",
                ", ".join(parameters) or "none",
                "Add one, e.g. gain=Real(0, 10).",
            )
        self.parameters: Mapping[str, Parameter] = dict(parameters)
        self.constraints: tuple[str, ...] = ()
        self._half_spaces: list[HalfSpace] = []
        self._domains: dict[object, Domain] = {}

    def where(self, *constraints: str) -> "Space":
        """The same space with linear constraints in natural units, e.g. ``"attack + 2 * release <= 10"``."""
        known = {
            name: None if parameter.width else parameter.natural([])
            for name, parameter in self.parameters.items()
            if parameter.numeric
        }
        for text in constraints:
            if not isinstance(text, str):
                raise WrongType("constraint", "be a text", repr(text), "Write 'gain + bands <= 12', say.")
        narrowed = Space(**self.parameters)
        narrowed.constraints = (*self.constraints, *(text.strip() for text in constraints))
        more = [half for text in constraints for half in parsed(text, known)]  # type: ignore[arg-type]
        narrowed._half_spaces = [*self._half_spaces, *more]
        if narrowed._half_spaces and narrowed._anchored({}) is None:
            raise Refused(
                "constraints",
                "leave at least one setting",
                " and ".join(map(repr, narrowed.constraints)),
                "Loosen one of them.",
            )
        return narrowed

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

    def natural(self, point: Float[Tensor, " d"]) -> dict[str, Value]:
        """The setting at a point of the unit cube."""
        if point.shape != (self.d,):
            raise Refused(
                "point",
                f"have {self.d} coordinates",
                f"shape {tuple(point.shape)}",
                "Give one for each number and each value of a choice.",
            )
        places = iter(point.tolist())
        return {
            name: parameter.natural([next(places) for _ in range(parameter.width)])
            for name, parameter in self.parameters.items()
        }

    def unit(self, params: Mapping[str, Value]) -> Float[Tensor, " d"]:
        """The point of the unit cube for a setting; fixed parameters may be left out."""
        fixed = {name: p.natural([]) for name, p in self.parameters.items() if not p.width}
        filled = {**fixed, **params}
        if set(filled) != set(self.parameters):
            raise Refused(
                "params",
                f"be {', '.join(self.parameters)}",
                ", ".join(map(str, params)) or "none",
                "Name each of them once.",
            )
        places = [place for name in self.parameters for place in self._places(name, filled[name])]
        point = torch.tensor(places, dtype=torch.float64)
        if self._half_spaces and not self._free_domain.satisfied(self._values(filled), _NEARLY):
            raise Refused(
                "params",
                f"satisfy {' and '.join(map(repr, self.constraints))}",
                dict(params),
                "Change one of them.",
            )
        return point

    def domain(self, context: Mapping[str, Value] | None = None) -> Domain | None:
        """Which points are settings in this context; None if all are."""
        given = dict(context or {})
        for name in self.contexts:
            if name not in given:
                raise Refused(
                    "context", f"set {', '.join(self.contexts)}", f"no {name}", f"Add {name} to the context."
                )
        for name in given:
            if name not in self.contexts:
                raise Refused(
                    "context",
                    f"set {', '.join(self.contexts) or 'nothing'}",
                    repr(name),
                    "Leave it out, or define it with context=True.",
                )
        if not self._half_spaces and all(parameter.continuous for parameter in self.parameters.values()):
            return None
        places = {name: tuple(self._places(name, given[name])) for name in self.contexts}
        key = tuple(places.items())
        if key not in self._domains:
            if len(self._domains) >= _CACHED:
                self._domains.clear()
            found = self._anchored(places)
            if found is None:
                raise Refused(
                    "context",
                    "leave at least one setting that satisfies the constraints",
                    given,
                    "Loosen a constraint, or refuse this context.",
                )
            self._domains[key] = found
        return self._domains[key]

    def to_dict(self) -> dict[str, Any]:
        """The space as JSON, which :meth:`from_dict` reads back."""
        parameters = {name: parameter.to_dict() for name, parameter in self.parameters.items()}
        return {"parameters": [[name, spelled] for name, spelled in parameters.items()]} | (
            {"constraints": list(self.constraints)} if self.constraints else {}
        )

    @classmethod
    def from_dict(cls, written: Mapping[str, Any]) -> "Space":
        """The space that :meth:`to_dict` wrote."""
        space = cls(**{name: Parameter.from_dict(spelled) for name, spelled in written["parameters"]})
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
        """As it is written in Python."""
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
        except Refused as error:
            raise error.about(f"parameter {name}") from None

    def _values(self, params: Mapping[str, Value]) -> Float[Tensor, " d"]:
        """Numbers at their coordinates; zero for parameters that constraints cannot name."""
        return _f64([float(params[name]) if self.parameters[name].numeric else 0.0 for name in self.owners])

    @functools.cached_property
    def _free_domain(self) -> Domain:
        """The domain without a context."""
        found = self._anchored({})
        assert found is not None  # else the constraints had been refused
        return found

    def _anchored(self, context: Mapping[str, tuple[float, ...]]) -> Domain | None:
        """The domain with the context at these places; None if it is empty."""
        axes = [one for p in self.parameters.values() for one in p.coordinates]
        places = [
            place for name, p in self.parameters.items() for place in context.get(name, [math.nan] * p.width)
        ]
        starts = {name: self.owners.index(name) for name, p in self.parameters.items() if p.one_hot}
        domain = Domain(
            low=_f64([one.low for one in axes]),
            high=_f64([one.high for one in axes]),
            log=torch.tensor([one.log for one in axes]),
            step=_f64([one.step for one in axes]),
            choices=[(first, first + self.parameters[name].width) for name, first in starts.items()],
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
    """The domain with constraints on weighted sums of natural values; None if it is empty."""
    always = (torch.where(domain.given.isnan(), weights, 0.0) == 0).all(-1)  # on the context alone
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
    """The domain with an anchor found by linear programming; None if nothing is feasible."""
    width = domain.high - domain.low
    # the solver wants whole numbers of steps; the others as shares of their range
    whole, step = domain.stepped, torch.where(domain.stepped, domain.step, 1.0)
    start = torch.where(whole, (domain.low / step).round(), 0.0)
    scale = torch.where(whole, (width / step).round(), 1.0)
    rows = domain.rows / scale
    ends = [domain.shares(domain.given.nan_to_num(end)) for end in (0.0, 1.0)]
    ends = [start + scale * end for end in ends]
    bounds = domain.bounds + rows @ start
    # the solver treats tiny weights as zero: with very many steps they must not be normalised
    for unit in (torch.ones_like(bounds), rows.abs().amax(-1)):
        parts = (rows / unit[:, None], bounds / unit, *ends, whole)
        found = inner_setting(*(part.numpy() for part in parts))
        if found is None:
            continue
        value = domain.low + (torch.from_numpy(found) - start) / scale * width
        anchor = placed(value, domain.low, domain.high, domain.log)
        # the solver is not exact; any value of a choice will do, since it is not constrained
        anchor = domain.projected(domain.rounded(anchor)[None])[0]
        if domain.feasible(anchor):
            return replace(domain, anchor=anchor)
    return None


def _f64(values: object) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)
