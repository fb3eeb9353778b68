"""What a rule maximised on its way to a question."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace

import torch
from jaxtyping import Float
from torch import Tensor

from askwise.belief import Belief
from askwise.loop import check_size
from askwise.rules import Rule
from askwise.search import Search
from askwise.seeds import generator

__all__ = ["Step", "Trace", "asked", "grid", "overheard"]

_GRID = 501


@dataclass(frozen=True)
class Step:
    """One search of a rule: the score it maximised, and where."""

    score: Callable[[Tensor], Tensor]
    found: Tensor
    draws: int | None


@dataclass(frozen=True)
class _Watched(Search):
    """A search that remembers what it was asked to maximise, other than the mean of f."""

    steps: list[Step] = field(default_factory=list)

    @classmethod
    def like(cls, search: Search, steps: list[Step]) -> "_Watched":
        """The same search, which notes its steps."""
        return cls(
            **{part.name: getattr(search, part.name) for part in fields(Search) if part.init}, steps=steps
        )

    def champion(self, belief: Belief) -> Tensor:
        """The point of highest posterior mean."""
        return Search.champion(replace(self, steps=[]), belief)

    def argmax(
        self,
        score: Callable[[Tensor], Tensor],
        q: int = 1,
        *,
        draws: int | None = None,
        extra: Tensor | None = None,
    ) -> Tensor:
        """The same points as ever."""
        found = super().argmax(score, q, draws=draws, extra=extra)
        self.steps.append(Step(score, found, draws))
        return found


@dataclass(frozen=True)
class Trace:
    """A question and the searches that led to it."""

    points: Float[Tensor, "m d"]
    steps: Sequence[Step]

    def drawn(self, x: Float[Tensor, "q d"]) -> dict[int, Float[Tensor, " q"]]:
        """The draws of f whose maxima are asked about, by member of the question."""
        found: dict[int, Tensor] = {}
        for step in self.steps:
            for draw in range(step.draws or 0):
                for member, point in enumerate(self.points):
                    if torch.equal(step.found[draw, 0], point):
                        found[member] = step.score(x)[draw]
        return found

    @property
    def chosen(self) -> range:
        """Members that the last score chose; none if the rule has no score."""
        step = self._last
        count = len(self.points)
        return range(count, count) if step is None else range(count - len(step.found), count)

    def score(self, member: int, x: Float[Tensor, "q d"]) -> Float[Tensor, " q"]:
        """The last score that was maximised, with one of the members it chose moved to these points."""
        step = self._last
        assert step is not None  # else no member was chosen by a score
        found = self.points[self.chosen.start :]  # in the order asked, which a group's score does not heed
        if len(found) == 1:
            values = step.score(x)
            return values.exp() if getattr(step.score, "logarithmic", False) else values
        groups = found.repeat(len(x), 1, 1)
        groups[:, member - self.chosen.start] = x
        return step.score(groups)

    @property
    def _last(self) -> Step | None:
        """Of a batch, the step that chose all its members."""
        steps = [step for step in self.steps if step.draws is None]
        return max(reversed(steps), key=lambda step: len(step.found), default=None)


def asked(belief: Belief, rule: Rule, m: int, seed: int) -> Trace:
    """What :func:`askwise.next_query` would ask, and how it came to that."""
    check_size(rule, m)
    steps: list[Step] = []
    search = _Watched.like(Search.around(belief, generator("question", seed)), steps)
    with torch.no_grad():
        return Trace(rule.ask(belief, m, search), steps)


def overheard(rule: Rule) -> tuple[Rule, list[Step]]:
    """A rule that asks the same, and the steps that it will have taken to its last question."""
    steps: list[Step] = []

    def ask(belief: Belief, m: int, search: Search) -> Tensor:
        steps.clear()
        return rule.ask(belief, m, _Watched.like(search, steps))

    watched = copy.copy(rule)
    object.__setattr__(watched, "ask", ask)  # a class of its own would be listed among the rules
    return watched, steps


def grid(belief: Belief) -> Float[Tensor, "q 1"]:
    """Points of the unit interval, for a belief about one study in one dimension."""
    points = belief.data.points
    if belief.data.lanes or points.shape[-1] != 1:
        raise ValueError(
            "belief to draw must be of one study in one dimension; got "
            f"{tuple(belief.data.lanes)} lanes, d = {points.shape[-1]}. Select a lane of a 1-D study."
        )
    return torch.linspace(0, 1, _GRID, dtype=torch.float64)[:, None]
