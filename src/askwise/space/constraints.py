"""Linear constraints: parsed from text, and solved for a feasible setting."""

import ast
import math
import sys
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from askwise.errors import Refused

_FORM = "Write 'attack + 2 * release <= 10', say."
_ROUNDING = 4 * sys.float_info.epsilon
_THIN = 1e-7  # what the solver treats as zero


@dataclass(frozen=True)
class HalfSpace:
    """A weighted sum of parameters in natural units is at most ``bound``."""

    weights: Mapping[str, float]
    bound: float


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
    names = {unicodedata.normalize("NFKC", name): name for name in known}  # as Python reads them
    reader = _Reader(text, names, known)
    sides = [reader.sum_of(side) for side in (tree.left, *tree.comparators)]
    found = []
    for op, left, right in zip(tree.ops, sides, sides[1:], strict=False):
        less, more = (left, right) if isinstance(op, ast.LtE) else (right, left)
        difference = _added(less, more, -1.0)
        bound = -difference.pop("", 0.0)
        weights = {name: weight for name, weight in difference.items() if weight != 0}
        if not all(math.isfinite(number) for number in (bound, *weights.values())):
            raise Refused("constraint", "have finite numbers", repr(text), "Give smaller ones.")
        found.append(HalfSpace(weights, bound))
    return found


_Sum = dict[str, float]  # weights by name; the constant has no name


@dataclass(frozen=True)
class _Reader:
    text: str
    names: Mapping[str, str]
    known: Mapping[str, float | int | None]

    def sum_of(self, node: ast.expr) -> _Sum:
        """The weights of an expression."""
        match node:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                return {"": self._number(value)}
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

    def _parameter(self, name: str) -> _Sum:
        if name not in self.names:
            known = ", ".join(self.known) or "none"
            raise Refused(
                "constraint",
                f"name numeric parameters ({known})",
                f"{name!r} in {self.text!r}",
                "Choose one of them.",
            )
        value = self.known[self.names[name]]
        return {self.names[name]: 1.0} if value is None else {"": self._number(value)}

    def _number(self, value: float | int) -> float:
        try:
            return float(value)
        except OverflowError:
            raise Refused(
                "constraint", "have finite numbers", repr(self.text), "Give smaller ones."
            ) from None

    def _refused(self, part: str) -> ValueError:
        return Refused(
            "constraint", "be a sum of parameters times numbers", f"{part} in {self.text!r}", _FORM
        )


def _added(one: _Sum, other: _Sum, factor: float) -> _Sum:
    return {name: _total(one.get(name, 0.0), factor * other.get(name, 0.0)) for name in {**one, **other}}


def _total(one: float, other: float) -> float:
    """The sum, with rounding residue set to zero: 0.3 - (0.1 + 0.2) is 0."""
    total = one + other
    return 0.0 if abs(total) < _ROUNDING * (abs(one) + abs(other)) else total


def inner_setting(
    rows: np.ndarray, bounds: np.ndarray, low: np.ndarray, high: np.ndarray, whole: np.ndarray
) -> np.ndarray | None:
    """A point deep inside ``rows @ x <= bounds``, whole where ``whole`` says; None if nothing is inside.

    Exact up to the solver's tolerance.  ``low`` and ``high`` bound the variables.
    """
    count = len(low)
    # the last variable is the distance to the nearest constraint, for rows of unit length
    deeper = np.hstack([rows, np.ones((len(rows), 1))])
    found = milp(
        c=np.append(np.zeros(count), -1.0),
        integrality=np.append(whole.astype(int), 0),
        bounds=Bounds(np.append(low, -_THIN), np.append(high, 1.0)),
        constraints=LinearConstraint(deeper, -np.inf, bounds),
    )
    if found.x is None:
        return None
    inside: np.ndarray = np.clip(np.where(whole, np.round(found.x[:count]), found.x[:count]), low, high)
    return inside
