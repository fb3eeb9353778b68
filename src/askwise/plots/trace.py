"""The searches of a rule on its way to a query."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace

import torch
from jaxtyping import Float
from torch import Tensor

from askwise.errors import Refused
from askwise.model import Belief, Score
from askwise.numerics import generator
from askwise.rules import Asks, Rule, check_size
from askwise.search import Search

_GRID = 501
_Scored = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Step:
    """One search of a rule: the score it maximised, and where."""

    score: _Scored
    found: Tensor
    draws: int | None


@dataclass(frozen=True)
class _WatchedSearch(Search):
    """A search that records what it maximises, other than the mean of f."""

    steps: list[Step] = field(default_factory=list)

    def champion(self, belief: Belief) -> Tensor:
        """The point of highest posterior mean."""
        return Search.champion(replace(self, steps=[]), belief)

    def argmax(
        self, score: _Scored, q: int = 1, *, draws: int | None = None, extra: Tensor | None = None
    ) -> Tensor:
        """The same points, recorded."""
        found = super().argmax(score, q, draws=draws, extra=extra)
        self.steps.append(Step(score, found, draws))
        return found

    def local_maximum(self, score: _Scored, groups: Tensor, scale: Tensor) -> Tensor:
        """The same group, recorded."""
        found = super().local_maximum(score, groups, scale)
        self.steps.append(Step(score, found, None))
        return found


@dataclass(frozen=True)
class Trace:
    """A query and the searches that led to it."""

    points: Float[Tensor, "m d"]
    steps: Sequence[Step]

    def drawn(self, x: Float[Tensor, "q d"]) -> dict[int, Float[Tensor, " q"]]:
        """The draws of f whose maxima are queried, by member."""
        found: dict[int, Tensor] = {}
        for step in self.steps:
            for draw in range(step.draws or 0):
                for member, point in enumerate(self.points):
                    if torch.equal(step.found[draw, 0], point):
                        found[member] = step.score(x)[draw]
        return found

    @property
    def chosen(self) -> range:
        """Members chosen by the last score; none if the rule has no score."""
        count = len(self.points)
        return range(count - (len(self._last.found) if self._last else 0), count)

    def score(self, member: int, x: Float[Tensor, "q d"]) -> Float[Tensor, " q"]:
        """The last score maximised, as one of the members it chose moves to these points."""
        step = self._last
        assert step is not None  # else no member was chosen by a score
        found = self.points[self.chosen.start :]
        if len(found) == 1:
            values = step.score(x)
            return values.exp() if isinstance(step.score, Score) and step.score.logarithmic else values
        groups = found.repeat(len(x), 1, 1)  # the score of a group does not depend on the order
        groups[:, member - self.chosen.start] = x
        return step.score(groups)

    @property
    def _last(self) -> Step | None:
        """The last search without draws; of a batch, the one that chose all its members."""
        steps = [step for step in self.steps if step.draws is None]
        return max(reversed(steps), key=lambda step: len(step.found), default=None)


@dataclass(frozen=True)
class Watched(Rule, register=False):
    """A rule that asks the same as another, and records the searches of its last query."""

    rule: Rule
    steps: list[Step] = field(default_factory=list)

    key = title = "watched"
    asks = frozenset(Asks)

    def ask(self, belief: Belief, m: int, search: Search) -> Tensor:
        """What the rule asks."""
        self.steps.clear()
        given = {part.name: getattr(search, part.name) for part in fields(Search) if part.init}
        return self.rule.ask(belief, m, _WatchedSearch(**given, steps=self.steps))


def asked(belief: Belief, rule: Rule, m: int, seed: int) -> Trace:
    """What :func:`askwise.next_query` would ask, and how it got there."""
    check_size(rule, m)
    watched = Watched(rule)
    with torch.no_grad():
        points = watched.ask(belief, m, Search.around(belief, generator("question", seed)))
    return Trace(points, watched.steps)


def grid(belief: Belief) -> Float[Tensor, "q 1"]:
    """Points of the unit interval, for a belief about one study in one dimension."""
    points = belief.data.points
    if belief.data.lanes or points.shape[-1] != 1:
        got = f"{tuple(belief.data.lanes)} lanes, d = {points.shape[-1]}"
        raise Refused("belief to draw", "be of one study in one dimension", got, "Select a lane of one.")
    return torch.linspace(0, 1, _GRID, dtype=torch.float64)[:, None]
