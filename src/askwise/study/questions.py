"""The next query of a study, as a function of everything it depends on.

So an interrupted study continues as if nothing had happened, a query can be computed before the previous
answer arrives, and a record can be checked question by question.
"""

import functools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float
from torch import Tensor

from askwise.loop import ask, next_query
from askwise.model import (
    Belief,
    Data,
    away_from_pending,
    fit,
    infer,
    kernel,
    refit_count,
    with_fitted_margin,
)
from askwise.numerics import generator, one_thread
from askwise.rules import parse
from askwise.space import Domain, Setting
from askwise.storage import Event
from askwise.study.plan import Plan, no_answers
from askwise.study.repeats import is_repeat, repeatable, surest
from askwise.study.state import Answered, State, as_text

# number of answers that a pending query counts as; raised until the next query differs from it
_WEIGHTS = (1.0, 4.0, 16.0, 64.0)
_SAME = 1e-3  # queries closer than this in every coordinate are the same
_BLOCKS = 64  # blocks of Sobol points in which to look for feasible ones
_SPARE = 64  # further settings, to replace duplicates


@dataclass(frozen=True)
class Situation:
    """Everything that a query depends on, apart from the plan of the study; hashable."""

    number: int
    answers: tuple[Answered, ...]
    pending: tuple[str, ...] = ()
    """Members of each pending question, as JSON."""
    context: str = "null"

    @classmethod
    def of(cls, state: State, context: Setting | None = None) -> "Situation":
        """The situation in which the next question is asked."""
        answers = tuple(entry.answered for entry in state.having("answered"))
        pending = tuple(as_text(entry.members) for entry in state.having("open"))
        return cls(len(state.entries), answers, pending, as_text(context))


class Model:
    """The posterior given answers: a pure function of these and of the plan, with a cache.

    The kernel is learned from the first answers only, as many as the refit schedule says: so most queries
    do not wait for a refit, and no query depends on what this process computed before.
    """

    def __init__(self, plan: Plan) -> None:
        """A model of the answers to a study with this plan."""
        self.plan = plan
        self.data = functools.lru_cache(maxsize=8)(self._data)
        self.belief = functools.lru_cache(maxsize=4)(self._belief)
        self._learned = functools.lru_cache(maxsize=16)(self._learn)
        self._shown = functools.lru_cache(maxsize=4096)(lambda answered: self.points(answered.options))

    def prepared(self, answers: tuple[Answered, ...]) -> tuple[Data, Kernel]:
        """The answers as rows, and the prior for them."""
        prior, margin = self._learned(answers[: refit_count(len(answers))])
        data = self.data(answers)
        return data.with_margin(margin) if data.has_ties and margin > 0 else data, prior

    def is_ready(self, answers: tuple[Answered, ...]) -> bool:
        """Whether the answers suffice for a model: yes/no answers must have both outcomes."""
        return bool(answers) and self.plan.kind.has_both_outcomes(self.data(answers))

    def points(self, settings: Sequence[Setting]) -> Float[Tensor, "m d"]:
        """Settings as points of the unit cube."""
        return torch.stack([self.plan.space.unit(setting) for setting in settings])

    def _data(self, answers: tuple[Answered, ...]) -> Data:
        """The answers as rows; consecutive ones of the same kind together, since adding data is slow."""
        data = no_answers(self.plan.space.d)
        for _, run in groupby(
            answers, key=lambda one: (type(one.answer), len(one.options), one.answer.shape)
        ):
            together = list(run)
            given = [one.answer for one in together]
            data = data + given[0].rows(torch.stack([self._shown(one) for one in together]), given)
        return data

    @one_thread()
    def _learn(self, answers: tuple[Answered, ...]) -> tuple[Kernel, float]:
        given = self.plan.kernel
        prior = given if isinstance(given, Kernel) else self.plan.expected_kernel()
        data = with_fitted_margin(self.data(answers), prior)
        margin = data.margin.item()
        return (given if isinstance(given, Kernel) else fit(data, prior).kernel), margin

    @one_thread()
    def _belief(self, answers: tuple[Answered, ...]) -> Belief:
        return infer(*self.prepared(answers))


@one_thread()
def next_question(model: Model, situation: Situation) -> tuple[list[dict[str, Any]], list[int]]:
    """Options in the order in which to show them, and which member of the rule's query each is."""
    plan = model.plan
    members = _repeated(model, situation)
    if members is None:
        members = [plan.space.natural(point) for point in _query(model, situation)]
    shuffle = generator("askwise study", plan.seed, situation.number, "order")
    order = torch.randperm(len(members), generator=shuffle).tolist()
    return [members[member] for member in order], order


@dataclass(frozen=True)
class Replayed:
    """A question of the record beside the one that follows from the record."""

    id: int
    asked: list[dict[str, Any]]
    again: list[dict[str, Any]]
    equal: bool
    """Bit for bit."""
    distance: float
    """How far an option is from the one in its place, at most: in a parameter, as a share of its range."""
    program: dict[str, Any] | None
    """Versions of the program that asked it, if they were noted."""


def replayed(plan: Plan, events: Sequence[Event], step: Callable[[], None] = lambda: None) -> list[Replayed]:
    """Every question that the study chose, by number, derived again from what was known when it was asked."""
    model, found, then = Model(plan), [], State()
    chosen = [event for event in events if event.kind == "asked" and event.body["seen"] is not None]
    for event in sorted(chosen, key=lambda event: event.body["seen"]):
        for earlier in events[then.last : event.body["seen"]]:
            then.take(earlier)
        asked, order = event.body["options"], event.body["order"]
        again, order_again = next_question(model, Situation.of(then, event.body["context"]))
        apart = (model.points(asked) - model.points(again)).abs().max()
        equal = (again, order_again) == (asked, order)
        found.append((event, Replayed(event.question, asked, again, equal, float(apart), None)))
        step()
    last = State.after(events)
    told = [replace(one, program=last.program_of(event.number)) for event, one in found]
    return sorted(told, key=lambda one: one.id)


def _repeated(model: Model, situation: Situation) -> list[dict[str, Any]] | None:
    """The settings of an earlier question that is to be asked again; None if it is time for a new one."""
    plan, answers = model.plan, situation.answers
    if not is_repeat(plan, situation.number) or not _has_begun(model, situation):
        return None
    asked = repeatable(answers, json.loads(situation.context), situation.pending)
    if not asked:
        return None
    queries = torch.stack([model.points(options) for options in asked])
    return [dict(option) for option in asked[surest(model.belief(answers), queries)]]


def _has_begun(model: Model, situation: Situation) -> bool:
    """Whether the first questions, which fill the space, are over."""
    count = len(situation.answers) + len(situation.pending)
    return count >= model.plan.initial and model.is_ready(situation.answers)


def _query(model: Model, situation: Situation) -> Float[Tensor, "m d"]:
    plan, answers = model.plan, situation.answers
    domain = plan.space.domain(json.loads(situation.context))
    pending = [model.points(json.loads(text)) for text in situation.pending]
    if not _has_begun(model, situation):
        return _space_filling(plan, situation.number, domain, pending)
    data, prior = model.prepared(answers)

    def source() -> torch.Generator:
        return generator("askwise study", plan.seed, situation.number)

    if not pending:
        return next_query(data, plan.rule, prior, plan.size, source(), domain=domain).points
    return away_from_pending(
        infer(data, prior),
        _pending_rows(pending),
        lambda belief: ask(belief, plan.rule, plan.size, source(), domain),
        lambda points: not any(_is_same(points, other) for other in pending),
        _WEIGHTS,
    )[0]


def _pending_rows(queries: Sequence[Float[Tensor, "m d"]]) -> Data:
    """Rows of the answers to pending queries: each setting, or the first against each of the others."""
    if len(queries[0]) == 1:
        return Data.binary(torch.cat(list(queries)), torch.ones(len(queries)))
    duels = [torch.stack([points[0], other]) for points in queries for other in points[1:]]
    return Data.duels(torch.stack(duels), torch.ones(len(duels)))


def _space_filling(
    plan: Plan, number: int, domain: Domain | None, pending: Sequence[Tensor]
) -> Float[Tensor, "m d"]:
    """The next settings of a scrambled Sobol sequence, which finds a small region that works sooner than
    independent draws do; in a small space without repetitions, as long as there are other settings."""
    settings = _sequence(plan, (number + 1) * plan.size + _SPARE, domain)
    first = number * plan.size
    if len(settings) < first + plan.size:  # hardly anything is feasible
        source, rule = generator("askwise study", plan.seed, number), parse("random")
        nothing, prior = no_answers(plan.space.d), kernel("matern52")
        return next_query(nothing, rule, prior, plan.size, source, domain=domain).points
    for start in range(first, len(settings) - plan.size + 1):
        query = _different(settings[start:], plan.size)
        if len(query) == plan.size and not any(_is_same(query, other) for other in pending):
            return query
    query = _different(settings[first:], plan.size)
    return query if len(query) == plan.size else settings[first : first + plan.size]


def _sequence(plan: Plan, count: int, domain: Domain | None) -> Float[Tensor, "k d"]:
    """The first ``count`` feasible settings of the Sobol sequence; fewer if hardly any is feasible."""
    seed = generator("askwise study", plan.seed, "start").initial_seed() % 2**31
    sobol = torch.quasirandom.SobolEngine(plan.space.d, scramble=True, seed=seed)
    sobol.fast_forward(1)  # the first point, and only that, depends on torch's default dtype
    found = torch.empty(0, plan.space.d, dtype=torch.float64)
    for _ in range(_BLOCKS):
        points = sobol.draw(max(64, count), dtype=torch.float64)
        if domain is not None:
            points = domain.rounded(points)
            points = points[domain.feasible(points)]
        found = torch.cat([found, points])
        if len(found) >= count:
            break
    return found[:count]


def _different(settings: Float[Tensor, "k d"], count: int) -> Float[Tensor, "m d"]:
    """The first settings that differ from those before them, at most ``count``."""
    chosen = settings[:1]
    for setting in settings[1:]:
        if len(chosen) == count:
            break
        if ((chosen - setting).abs() >= _SAME).any(-1).all():
            chosen = torch.cat([chosen, setting[None]])
    return chosen


def _is_same(points: Float[Tensor, "m d"], other: Float[Tensor, "m d"]) -> bool:
    """Whether two queries are about the same settings, in whatever order."""
    apart = (points[:, None, :] - other[None, :, :]).abs().amax(-1)
    return bool((apart.amin(0) < _SAME).all() and (apart.amin(1) < _SAME).all())
