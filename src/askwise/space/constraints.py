"""Linear constraints: parsed from text, and solved for a feasible setting."""

import ast
import math
import sys
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from askwise.errors import Refused

if TYPE_CHECKING:
    from torch import Tensor

    from askwise.space.domain import Domain
else:  # only solving them needs torch, which takes seconds to import
    Domain = Tensor = Any

NEARLY = 1e-8
"""Relative violation of a constraint that is allowed in settings from users."""
_FORM = "Write 'attack + 2 * release <= 10', say."
_ROUNDING = 4 * sys.float_info.epsilon
_TRIED = 4096  # Sobol points tried before linear programming looks for a feasible setting
_THIN = 1e-7  # what the solver treats as zero


HalfSpace = tuple[dict[str, float], float]
"""Weights by parameter and a bound: the weighted sum in natural units is at most the bound."""
_Sum = dict[str, float]  # weights by name; the constant has no name


def parsed(text: str, known: Mapping[str, float | int | None]) -> list[HalfSpace]:
    """The half-spaces of a constraint such as ``"attack + 2 * release <= 10"``.

    ``known``: the parameters that may be named; a number for one that is fixed.  Comparisons may be chained,
    as in ``"1 <= attack + release <= 10"``.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise Refused("constraint", "be a comparison", repr(text), _FORM) from None
    if not isinstance(tree, ast.Compare) or not all(isinstance(op, ast.LtE | ast.GtE) for op in tree.ops):
        raise Refused("constraint", "compare by <= or >=", repr(text), _FORM)
    infinite = Refused("constraint", "have finite numbers", repr(text), "Give smaller ones.")
    try:
        sides = [_Reader(text, known).sum_of(side) for side in (tree.left, *tree.comparators)]
    except OverflowError:
        raise infinite from None
    found = []
    for op, left, right in zip(tree.ops, sides, sides[1:], strict=False):
        less, more = (left, right) if isinstance(op, ast.LtE) else (right, left)
        difference = _added(less, more, -1.0)
        bound = -difference.pop("", 0.0)
        weights = {name: weight for name, weight in difference.items() if weight != 0}
        if not all(math.isfinite(number) for number in (bound, *weights.values())):
            raise infinite
        found.append((weights, bound))
    return found


@dataclass(frozen=True)
class _Reader:
    text: str
    known: Mapping[str, float | int | None]

    def sum_of(self, node: ast.expr) -> _Sum:
        """The weights of an expression."""
        match node:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                return {"": float(value)}
            case ast.Name(id=name):
                return self._parameter(name)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() as op, operand=operand):
                return _added({}, self.sum_of(operand), -1.0 if isinstance(op, ast.USub) else 1.0)
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
                return _added(self.sum_of(left), self.sum_of(right), -1.0 if isinstance(op, ast.Sub) else 1.0)
            case ast.BinOp(left=left, op=ast.Mult() | ast.Div() as op, right=right):
                return self._product(self.sum_of(left), self.sum_of(right), isinstance(op, ast.Div))
        raise self._refused(ast.unparse(node))

    def _product(self, left: _Sum, right: _Sum, divided: bool) -> _Sum:
        if not divided and set(right) - {""}:
            left, right = right, left
        factor = right.get("", 0.0)
        if set(right) - {""}:
            raise self._refused("a product or quotient of parameters")
        if divided and factor == 0:
            raise self._refused("a division by zero")
        return {name: weight / factor if divided else weight * factor for name, weight in left.items()}

    def _parameter(self, read: str) -> _Sum:
        for name, value in self.known.items():
            if unicodedata.normalize("NFKC", name) == read:  # as Python reads it
                return {name: 1.0} if value is None else {"": float(value)}
        known, got = ", ".join(self.known) or "none", f"{read!r} in {self.text!r}"
        raise Refused("constraint", f"name numeric parameters ({known})", got, "Choose one of them.")

    def _refused(self, part: str) -> Refused:
        got = f"{part} in {self.text!r}"
        return Refused("constraint", "be a sum of parameters times numbers", got, _FORM)


def _added(one: _Sum, other: _Sum, factor: float) -> _Sum:
    return {name: _total(one.get(name, 0.0), factor * other.get(name, 0.0)) for name in {**one, **other}}


def _total(one: float, other: float) -> float:
    """The sum, with rounding residue set to zero: 0.3 - (0.1 + 0.2) is 0."""
    total = one + other
    return 0.0 if abs(total) < _ROUNDING * (abs(one) + abs(other)) else total


def narrowed(domain: Domain, weights: Tensor, limits: Tensor) -> Domain | None:
    """The domain with constraints on weighted sums of natural values; None if it is empty."""
    import torch

    always = (torch.where(domain.given.isnan(), weights, 0.0) == 0).all(-1)  # on the context alone
    context = replace(domain, weights=weights[always], limits=limits[always])
    if not context.feasible(domain.given.nan_to_num(0.0), NEARLY):
        return None
    domain = replace(domain, weights=weights[~always], limits=limits[~always])
    if not domain.constrained:
        return domain
    points = torch.quasirandom.SobolEngine(domain.d, scramble=True, seed=0).draw(_TRIED, dtype=torch.float64)
    points[:1] = points[:1].float().double()  # which alone depends on torch's default dtype, usually this
    points = domain.rounded(points)
    depth = torch.where(domain.feasible(points), -domain.violations(points).amax(-1), 0.0)
    return replace(domain, anchor=points[depth.argmax()]) if depth.max() > 0 else _solved(domain)


def _solved(domain: Domain) -> Domain | None:
    """The domain with an anchor found by linear programming; None if nothing is feasible."""
    import numpy as np
    import torch
    from scipy.optimize import Bounds, LinearConstraint, milp

    width = domain.high - domain.low
    # for the solver: whole numbers of steps; other coordinates as shares of their range
    whole, step = domain.stepped, torch.where(domain.stepped, domain.step, 1.0)
    start = torch.where(whole, (domain.low / step).round(), 0.0)
    scale = torch.where(whole, (width / step).round(), 1.0)
    rows = domain.rows / scale
    low, high = (start + scale * domain.shares(domain.given.nan_to_num(end)) for end in (0.0, 1.0))
    bounds = domain.bounds + rows @ start
    # the solver treats tiny weights as zero: with very many steps they must not be normalised
    for unit in (torch.ones_like(bounds), rows.abs().amax(-1)):
        # the last variable is the distance to the nearest constraint, for rows of unit length
        deeper = torch.cat([rows / unit[:, None], torch.ones_like(unit)[:, None]], -1)
        found = milp(
            c=np.append(np.zeros(domain.d), -1.0),
            integrality=np.append(whole.numpy().astype(int), 0),
            bounds=Bounds(np.append(low.numpy(), -_THIN), np.append(high.numpy(), 1.0)),
            constraints=LinearConstraint(deeper.numpy(), -np.inf, (bounds / unit).numpy()),
        )
        if found.x is None:
            continue
        solved = torch.from_numpy(found.x[:-1])
        solved = torch.where(whole, solved.round(), solved).clamp(low, high)
        value = domain.low + (solved - start) / scale * width
        # the solver is not exact; any value of a choice will do, since it is not constrained
        anchor = domain.projected(domain.rounded(domain.placed(value))[None])[0]
        if domain.feasible(anchor):
            return replace(domain, anchor=anchor)
    return None
