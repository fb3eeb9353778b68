"""Whether what several clients saw could have happened one call after the other.

The record gives the order of effects.  So it remains to find an order of the calls that respects time, gives
each caller the result it was told, and passes through the states of the record.  With this witness the search
takes seconds for histories for which, without it, no computer would have the memory.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple


@dataclass(frozen=True)
class Call:
    """What a client did, what it was told, and when; ``end`` is infinite if it was never told."""

    client: str
    kind: str
    question: int
    answer: int
    begin: float
    end: float = math.inf
    result: int | str | None = None

    @property
    def is_lost(self) -> bool:
        """Whether nobody knows if it happened."""
        return self.end == math.inf


State = tuple[tuple[str, str | None, int | None], ...]
"""Status, participant and answer of each question."""


def after(state: State, call: Call) -> tuple[State, int | str]:
    """What one program alone would do: the next state, and what the caller is told."""
    if call.kind == "ask":
        for number, (status, owner, _) in enumerate(state):
            if status == "open" and owner == call.client:
                return state, number
        for number, (status, _, answer) in enumerate(state):
            if status == "expired":
                return _with(state, number, ("open", call.client, answer)), number
        return (*state, ("open", call.client, None)), len(state)
    if call.question >= len(state):
        return state, "unknown question"
    status, owner, answer = state[call.question]
    wanted = {"tell": "answered", "amend": "answered", "void": "voided", "expire": "expired"}[call.kind]
    given = call.answer if wanted == "answered" else answer
    if status == wanted and given == answer:
        return state, "ok"
    allowed = {"tell": ("open", "expired"), "amend": ("answered", "voided"), "expire": ("open",)}
    if status not in allowed.get(call.kind, (status,)):
        return state, "conflict"
    return _with(state, call.question, (wanted, owner, given)), "ok"


def _with(state: State, number: int, question: tuple[str, str | None, int | None]) -> State:
    return (*state[:number], question, *state[number + 1 :])


class Point(NamedTuple):
    """How far a history may have come."""

    effects: int
    """Number of effects so far."""
    happened: frozenset[int]
    """Calls that have happened and not yet returned."""
    spent: frozenset[int]
    """Lost calls that have happened."""


def contradiction(calls: Iterable[Call], states: list[State]) -> str | None:
    """What no order of the calls explains; None if one does.

    ``states``: before the first effect and after each.  A call happens at a moment between its begin and its
    end; a lost one at any time after its begin, or never.  We follow the clock, and keep all points that may
    be reached; whoever returns must have happened (Lowe, "Testing for linearizability", 2017).
    """
    search = _Search(sorted(calls, key=lambda call: call.begin), states)
    begins = [(call.begin, False, number) for number, call in enumerate(search.calls)]
    ends = [(call.end, True, number) for number, call in enumerate(search.calls) if not call.is_lost]
    begun, points = set[int](), {Point(0, frozenset(), frozenset())}
    for _, returns, number in sorted(begins + ends):
        if not returns:
            begun.add(number)
            continue
        reached = search.reachable(points, begun)
        points = {
            point._replace(happened=point.happened - {number})
            for point in reached
            if number in point.happened
        }
        points = _best(points)
        begun.remove(number)
        if not points:
            return f"{search.calls[number]} fits nowhere up to effect {max(reached).effects}"
    last = max(search.reachable(points, begun)).effects
    return None if last == len(states) - 1 else f"effect {last + 1} is not that of any call"


def _best(points: set[Point]) -> set[Point]:
    """Without points that differ from another only in that more lost calls are spent.

    Without this, each lost call that may have written what another call wrote doubles the number of points.
    """
    best = dict[tuple[int, frozenset[int]], list[Point]]()
    for point in sorted(points, key=lambda point: len(point.spent)):
        rivals = best.setdefault(point[:2], [])
        if not any(rival.spent <= point.spent for rival in rivals):
            rivals.append(point)
    return {point for rivals in best.values() for point in rivals}


class _Search:
    """What may happen next."""

    def __init__(self, calls: list[Call], states: list[State]) -> None:
        self.calls, self.states = calls, states
        self._known: dict[tuple[int, int], int | None] = {}

    def reachable(self, points: set[Point], begun: set[int]) -> set[Point]:
        """These points, and those after some of the calls that have begun."""
        found, waiting = set(points), list(points)
        while waiting:
            point = waiting.pop()
            for number in self._different(begun - point.happened - point.spent):
                then = self._after(point, number)
                if then is not None and then not in found:
                    found.add(then)
                    waiting.append(then)
        return found

    def _different(self, numbers: set[int]) -> Iterable[int]:
        """Of lost calls that are equal but for their begin, the first: once begun, each would do."""
        first = {
            replace(self.calls[k], begin=0): k for k in sorted(numbers, reverse=True) if self.calls[k].is_lost
        }
        return [*first.values(), *(k for k in numbers if not self.calls[k].is_lost)]

    def _after(self, point: Point, number: int) -> Point | None:
        """The point after this call; None if it cannot happen now."""
        key = point.effects, number
        if key not in self._known:
            self._known[key] = self._effects_after(*key)
        effects, (_, happened, spent) = self._known[key], point
        if effects is None:
            return None
        if self.calls[number].is_lost:
            return Point(effects, happened, spent | {number})
        return Point(effects, happened | {number}, spent)

    def _effects_after(self, effects: int, number: int) -> int | None:
        call, state = self.calls[number], self.states[effects]
        then, result = after(state, call)
        if not call.is_lost and call.result != result:
            return None
        if then == state:
            return None if call.is_lost else effects  # lost, and without effect: as if it had not happened
        return effects + 1 if self.states[effects + 1 : effects + 2] == [then] else None
