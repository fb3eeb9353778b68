"""Settings whose numbers satisfy their constraints exactly, as whoever gets them can check.

The search works to a tolerance.  What is handed out must not need one: a comparison is evaluated in float64
as its text says, from left to right, and once more in rational numbers, without rounding.  Where it fails,
continuous values are moved by as little as helps.  A comparison of values on grids and contexts, which cannot
be moved, is judged by their decimal digits instead: 0.1 + 0.2 <= 0.3 holds.
"""

import ast
import itertools
import math
import operator
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from askwise.space.parameters.base import Parameter, Setting, Value

_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
_MARGINS = (0, 1, 4, 16, 64, 256, 4096, 65536)  # in units in the last place of the terms
_ROUNDS = 20  # projections onto all comparisons
_ACTIVE = 1e-6  # of the terms: comparisons that a setting is near to
_NO_WIDTH = Fraction(64, 2**53)  # of the terms: two comparisons closer than this leave no room for a margin
_BITS = range(48, 18, -3)  # of the terms: finer and coarser grids on which sums are exact
_SHIFTS = sorted(range(-12, 13), key=abs)
_DIGITS = 15  # decimal digits that survive the way to the unit cube and back


@dataclass(frozen=True)
class Comparison:
    """``less <= more`` as it is written, and as exact weights whose sum is at most ``bound``."""

    less: ast.expr
    more: ast.expr
    weights: Mapping[str, Fraction]
    bound: Fraction
    moves: bool
    """Whether it is about a continuous parameter to be chosen."""

    def holds(self, setting: Setting) -> bool:
        """Whether a setting satisfies it without any tolerance."""
        if not self.moves:
            return self._compared(setting, lambda number: Fraction(repr(number)))
        return self._compared(setting, lambda number: number) and self.over(setting) <= 0

    def over(self, setting: Setting) -> Fraction:
        """By how much the sum exceeds the bound."""
        return sum((w * Fraction(setting[name]) for name, w in self.weights.items()), -self.bound)

    def size(self, setting: Setting) -> Fraction:
        """The sum of the sizes of its terms."""
        return sum((abs(w * Fraction(setting[name])) for name, w in self.weights.items()), abs(self.bound))

    def _compared(self, setting: Setting, read: Callable[[Any], Any]) -> bool:
        numbers = {
            unicodedata.normalize("NFKC", name): read(value)
            for name, value in setting.items()
            if not isinstance(value, str | bool)
        }
        try:
            return bool(_value(self.less, numbers, read) <= _value(self.more, numbers, read))
        except OverflowError:  # a whole number beyond float64
            return False


def comparisons(texts: Sequence[str], parameters: Mapping[str, Parameter]) -> list[Comparison]:
    """The comparisons of constraints that :func:`askwise.space.constraints.parsed` accepts."""
    fixed = {name: p.natural([]) for name, p in parameters.items() if p.numeric and not p.width}
    names = {unicodedata.normalize("NFKC", name): name for name, p in parameters.items() if p.numeric}
    found = []
    for text in texts:
        tree = ast.parse(text.strip(), mode="eval").body
        assert isinstance(tree, ast.Compare)
        for op, *sides in zip(tree.ops, (tree.left, *tree.comparators), tree.comparators, strict=False):
            less, more = sides if isinstance(op, ast.LtE) else reversed(sides)
            weights, constant = _sum(less, names, fixed), _sum(more, names, fixed)
            for name, weight in constant.items():
                weights[name] = weights.get(name, Fraction(0)) - weight
            bound = -weights.pop("", Fraction(0))
            weights = {name: weight for name, weight in weights.items() if weight}
            moves = any(parameters[name].continuous for name in weights)
            found.append(Comparison(less, more, weights, bound, moves))
    return found


def corrected(
    setting: Setting, all_of: Sequence[Comparison], parameters: Mapping[str, Parameter]
) -> dict[str, Value] | None:
    """The setting itself if it satisfies all comparisons, or else one next to it; None if none is found.

    Only continuous values move, by a few units in the last place; where comparisons leave no width, to values
    whose sums are exact in binary, within a millionth of the terms.
    """
    for start in (dict(setting), _in_digits(setting, parameters)):
        if all(one.holds(start) for one in all_of):
            return start
        ends = {name: _ends(p) for name, p in parameters.items() if p.numeric and p.width and p.continuous}
        near = [one for one in all_of if one.over(start) >= -_ACTIVE * one.size(start)]
        rows = _equalities(start, near, ends)
        margins = (0,) if rows else _MARGINS
        tried = itertools.chain(_pushed(start, near, ends, margins), _exact_sums(start, rows, ends))
        for found in tried:
            if all(one.holds(found) for one in all_of):
                return found
    return None


def _in_digits(setting: Setting, parameters: Mapping[str, Parameter]) -> dict[str, Value]:
    """The context as it was probably written: 0.3 instead of 0.30000000000000004."""
    rounded = {}
    for name, parameter in parameters.items():
        value = setting[name]
        if parameter.context and parameter.numeric and isinstance(value, float):
            low, high = _ends(parameter)
            rounded[name] = min(max(float(f"{value:.{_DIGITS}g}"), low), high)
    return {**setting, **rounded}


def _ends(parameter: Parameter) -> tuple[float, float]:
    (one,) = parameter.coordinates
    return float(one.low), float(one.high)


Ends = Mapping[str, tuple[float, float]]
"""Lowest and highest value of each parameter that may move."""


def _pushed(
    setting: Setting, near: Sequence[Comparison], ends: Ends, margins: Sequence[int]
) -> Iterator[dict[str, Value]]:
    """The setting projected onto the comparisons, with each of these margins."""
    for margin in margins:
        found = dict(setting)
        for _ in range(_ROUNDS):
            before = dict(found)
            for one in near:
                over = one.over(found) + margin * one.size(found) / 2**53
                moving = {name: w for name, w in one.weights.items() if name in ends}
                # the steepest way in parts of the ranges
                pull = {name: w * Fraction(ends[name][1] - ends[name][0]) for name, w in moving.items()}
                length = sum((pull[name] ** 2 for name in pull), Fraction(0))
                if over <= 0 or not length:
                    continue
                for name, weight in pull.items():
                    low, high = ends[name]
                    way = over * weight * Fraction(high - low) / length
                    found[name] = min(max(float(Fraction(found[name]) - way), low), high)
            if found == before:
                break
        yield found


Row = tuple[Comparison, Fraction]
"""Weights of parameters, and what their sum must be."""


def _exact_sums(setting: Setting, rows: Sequence[Row], ends: Ends) -> Iterator[dict[str, Value]]:
    """Settings nearby on grids of powers of two, the rest solved for: where there is no width."""
    if not rows:
        return
    names = sorted({name for one, _ in rows for name in one.weights if name in ends})
    scale = math.frexp(float(max(one.size(setting) for one, _ in rows)))[1]
    for bits, turn in itertools.product(_BITS, range(len(names))):
        turned = names[turn:] + names[:turn]
        grid = Fraction(2) ** (scale - bits)
        rounded = {name: round(Fraction(setting[name]) / grid) * grid for name in names}
        pivots = _pivots([one for one, _ in rows], turned)
        others = [name for name in names if name not in pivots]
        shifted = [(None, 0)] if not others else list(itertools.product(others, _SHIFTS))
        for name, shift in shifted:
            place = rounded if name is None else {**rounded, name: rounded[name] + shift * grid}
            found = _solved(rows, pivots, setting, place)
            if found is not None and _within(found, ends):
                yield found


def _within(setting: Setting, ends: Ends) -> bool:
    return all(low <= setting[name] <= high for name, (low, high) in ends.items())


def _equalities(setting: Setting, near: Sequence[Comparison], ends: Ends) -> list[Row]:
    """Comparisons with opposite ones so close that they leave no width."""
    found: list[Row] = []
    for one, other in itertools.combinations(near, 2):
        name = next((name for name in one.weights if name in ends), None)
        if name is None or name not in other.weights:
            continue
        ratio = -other.weights[name] / one.weights[name]
        opposite = {name: -ratio * weight for name, weight in one.weights.items()}
        if ratio <= 0 or opposite != other.weights:
            continue
        least = -other.bound / ratio
        if 0 <= one.bound - least <= _NO_WIDTH * one.size(setting):
            found.append((one, one.bound))
    return found


def _pivots(rows: Sequence[Comparison], names: Sequence[str]) -> list[str]:
    """As many parameters as there are independent rows, to solve for: the first that will do."""
    chosen: list[str] = []
    for name in names:
        matrix = [[one.weights.get(other, Fraction(0)) for other in [*chosen, name]] for one in rows]
        if _reduced(matrix) > len(chosen):
            chosen.append(name)
    return chosen


def _reduced(matrix: list[list[Fraction]]) -> int:
    """Bring a matrix into reduced row echelon form; its rank."""
    rank = 0
    for column in range(len(matrix[0])):
        row = next((row for row in range(rank, len(matrix)) if matrix[row][column]), None)
        if row is None:
            continue
        matrix[rank], matrix[row] = matrix[row], matrix[rank]
        matrix[rank] = [cell / matrix[rank][column] for cell in matrix[rank]]
        for other in range(len(matrix)):
            if other != rank and (factor := matrix[other][column]):
                matrix[other] = [x - factor * y for x, y in zip(matrix[other], matrix[rank], strict=True)]
        rank += 1
    return rank


def _solved(
    rows: Sequence[Row], pivots: Sequence[str], setting: Setting, place: Mapping[str, Fraction]
) -> dict[str, Value] | None:
    """The setting with the others at this place and the pivots solved for; None unless all are float64."""
    numbers = {name: Fraction(v) for name, v in setting.items() if not isinstance(v, str | bool)} | dict(
        place
    )
    matrix = []
    for one, total in rows:
        rest = sum((w * numbers[name] for name, w in one.weights.items() if name not in pivots), Fraction(0))
        matrix.append([one.weights.get(name, Fraction(0)) for name in pivots] + [total - rest])
    if _reduced(matrix) > len(pivots):
        return None
    exact = {**place, **{name: row[-1] for name, row in zip(pivots, matrix, strict=False)}}
    found = {name: float(number) for name, number in exact.items()}
    if any(Fraction(found[name]) != number for name, number in exact.items()):
        return None
    return {**setting, **found}


def _value(node: ast.AST, numbers: Mapping[str, Any], read: Callable[[Any], Any]) -> Any:
    """What an expression is worth."""
    match node:
        case ast.Constant(value=value):
            return read(value)
        case ast.Name(id=name):
            return numbers[name]
        case ast.UnaryOp(op=op, operand=operand):
            return _OPERATORS[type(op)](_value(operand, numbers, read))
        case ast.BinOp(left=left, op=op, right=right):
            return _OPERATORS[type(op)](_value(left, numbers, read), _value(right, numbers, read))
    raise AssertionError(ast.dump(node))  # parsed() refuses everything else


def _sum(node: ast.AST, names: Mapping[str, str], fixed: Mapping[str, Value]) -> dict[str, Fraction]:
    """The exact weights of an expression; the constant has no name."""
    match node:
        case ast.Constant(value=value):
            return {"": Fraction(value)}  # type: ignore[arg-type]
        case ast.Name(id=read):
            name = names[read]
            return {"": Fraction(fixed[name])} if name in fixed else {name: Fraction(1)}
        case ast.UnaryOp(op=op, operand=operand):
            sign = -1 if isinstance(op, ast.USub) else 1
            return {name: sign * weight for name, weight in _sum(operand, names, fixed).items()}
        case ast.BinOp(left=left, op=op, right=right):
            one, other = _sum(left, names, fixed), _sum(right, names, fixed)
            if isinstance(op, ast.Add | ast.Sub):
                sign = -1 if isinstance(op, ast.Sub) else 1
                return {
                    k: one.get(k, Fraction(0)) + sign * other.get(k, Fraction(0)) for k in {**one, **other}
                }
            if set(other) - {""}:
                one, other = other, one
            factor = other.get("", Fraction(0))
            return {k: w / factor if isinstance(op, ast.Div) else w * factor for k, w in one.items()}
    raise AssertionError(ast.dump(node))
