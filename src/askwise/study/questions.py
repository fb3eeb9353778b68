"""The next query of a study, as a function of everything it depends on.

So an interrupted study continues as if nothing had happened, a query can be computed before the previous
answer arrives, and a record can be checked question by question.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from askwise.loop import ask, ask_by, next_query
from askwise.model import (
    Data,
    Extended,
    away_from_pending,
    kernel,
    with_rater_column,
)
from askwise.numerics import generator, one_thread
from askwise.rules import parse
from askwise.space import Domain, Setting
from askwise.storage import Event
from askwise.study.changes import Course
from askwise.study.model import Model, applied
from askwise.study.people import SHARED, People
from askwise.study.plan import Plan, no_answers
from askwise.study.repeats import is_repeat, repeatable, surest
from askwise.study.state import Answered, Entry, State, as_text

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
    participant: str | None = None
    """Who is asked, where people differ."""
    asked: tuple[str | None, ...] = ()
    """Who was asked each pending question, in a population study."""

    @classmethod
    def of(
        cls,
        state: State,
        context: Setting | None = None,
        people: People = SHARED,
        participant: str | None = None,
        supposed: Entry | None = None,
    ) -> "Situation":
        """The situation in which the next question is asked.

        ``supposed``: a question of this state as it would be if it were answered.
        """
        separate = people.participants == "separate"
        entries = state.of(participant) if separate else [one for _, one in sorted(state.entries.items())]
        if supposed is not None:
            entries = [supposed if entry.id == supposed.id else entry for entry in entries]
        answers = tuple(entry.answered for entry in entries if entry.status == "answered")
        opened = [entry for entry in entries if entry.status == "open"]
        pending = tuple(as_text(entry.members) for entry in opened)
        asked = tuple(entry.participant for entry in opened) if people.participants == "population" else ()
        who = participant if people.differ else None
        return cls(len(entries), answers, pending, as_text(context), who, asked)


@one_thread()
def next_question(model: Model, situation: Situation) -> tuple[list[dict[str, Any]], list[int]]:
    """Options in the order in which to show them, and which member of the rule's query each is."""
    plan = model.plan
    members = _repeated(model, situation)
    if members is None:
        members = [plan.space.natural(point) for point in _query(model, situation)]
    order = shown_order(plan, situation, len(members))
    return [members[member] for member in order], order


def shown_order(plan: Plan, situation: Situation, members: int) -> list[int]:
    """Which member of the query is shown in each place: sides are drawn at random."""
    shuffle = generator("askwise study", plan.seed, situation.number, "order", *_who(plan, situation))
    return torch.randperm(members, generator=shuffle).tolist()


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
    """Every question that the study chose, by number, derived again from what was known when it was asked.

    ``plan``: that with which the study began.
    """
    course, found, then = Course(plan), [], State()
    chosen = [event for event in events if event.kind == "asked" and event.body["seen"] is not None]
    for event in sorted(chosen, key=lambda event: event.body["seen"]):
        for earlier in events[then.last : event.body["seen"]]:
            then.take(earlier)
        asked, order = event.body["options"], event.body["order"]
        model = course.model_after(then.changes)
        situation = Situation.of(then, event.body["context"], plan.people, event.body["participant"])
        again, order_again = next_question(model, situation)
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
    if plan.people.differ:  # what others were asked says nothing of this person
        answers = tuple(one for one in answers if one.participant == situation.participant)
    asked = repeatable(answers, json.loads(situation.context), situation.pending)
    asked = [options for options in asked if all(map(plan.space.allows, options))]
    if not asked:
        return None
    queries = torch.stack([model.points(options) for options in asked])
    belief = model.belief(situation.answers, situation.participant)
    return [dict(option) for option in asked[surest(belief, queries)]]


def _has_begun(model: Model, situation: Situation) -> bool:
    """Whether the first questions, which fill the space, are over."""
    count = len(situation.answers) + len(situation.pending)
    return count >= model.plan.initial and model.is_ready(situation.answers)


def _query(model: Model, situation: Situation) -> Float[Tensor, "m d"]:
    plan, answers = model.plan, situation.answers
    domain = plan.space.domain(json.loads(situation.context))
    pending = [model.points(json.loads(text)) for text in situation.pending]
    if not _has_begun(model, situation):
        return _space_filling(plan, situation, domain, pending)

    def source() -> torch.Generator:
        return generator("askwise study", plan.seed, situation.number, *_who(plan, situation))

    who = None if plan.people.aim == "population" else situation.participant
    belief, search = model.searched(answers, who, json.loads(situation.context))
    if not pending:
        return ask_by(search.beside(source()), belief, plan.rule, plan.size)
    return away_from_pending(
        belief,
        _pending_rows(model, situation, pending),
        lambda belief: ask(belief, plan.rule, plan.size, source(), domain),
        lambda points: not any(_is_same(points, other) for other in pending),
        _WEIGHTS,
    )[0]


def _who(plan: Plan, situation: Situation) -> tuple[str, ...]:
    """Names by which separate people get random numbers of their own."""
    separate = plan.people.participants == "separate" and situation.participant is not None
    return (f"participant {situation.participant}",) if separate else ()


def _pending_rows(model: Model, situation: Situation, queries: Sequence[Float[Tensor, "m d"]]) -> Data:
    """Rows of the answers to pending queries: each setting, or the first against each of the others."""
    if situation.asked:
        known = (one.participant for one in situation.answers)
        # newcomers are several people; who is asked is the first of them, as in `Model.rater`
        people = list(dict.fromkeys([*known, situation.participant, *situation.asked]))
        each = zip(queries, map(people.index, situation.asked), strict=True)
        queries = [with_rater_column(query, rater) for query, rater in each]
    if len(queries[0]) == 1:
        rows: Data = Extended.binary(torch.cat(list(queries)), torch.ones(len(queries)))
    else:
        duels = [torch.stack([points[0], other]) for points in queries for other in points[1:]]
        rows = Extended.duels(torch.stack(duels), torch.ones(len(duels)))
    return applied(model.observer(situation.answers), rows.with_raters() if situation.asked else rows)


def _space_filling(
    plan: Plan, situation: Situation, domain: Domain | None, pending: Sequence[Tensor]
) -> Float[Tensor, "m d"]:
    """The next settings of a scrambled Sobol sequence, which finds a small region that works sooner than
    independent draws do; in a small space without repetitions, as long as there are other settings."""
    number, who = situation.number, _who(plan, situation)
    settings = _sequence(plan, (number + 1) * plan.size + _SPARE, domain, who)
    first = number * plan.size
    if len(settings) < first + plan.size:  # hardly anything is feasible
        source, rule = generator("askwise study", plan.seed, number, *who), parse("random")
        nothing, prior = no_answers(plan.space.d), kernel("matern52")
        return next_query(nothing, rule, prior, plan.size, source, domain=domain).points
    for start in range(first, len(settings) - plan.size + 1):
        query = _different(settings[start:], plan.size)
        if len(query) == plan.size and not any(_is_same(query, other) for other in pending):
            return query
    query = _different(settings[first:], plan.size)
    return query if len(query) == plan.size else settings[first : first + plan.size]


def _sequence(
    plan: Plan, count: int, domain: Domain | None, who: tuple[str, ...] = ()
) -> Float[Tensor, "k d"]:
    """The first ``count`` feasible settings of the Sobol sequence; fewer if hardly any is feasible."""
    seed = generator("askwise study", plan.seed, "start", *who).initial_seed() % 2**31
    sobol = torch.quasirandom.SobolEngine(plan.space.d, scramble=True, seed=seed)
    sobol.fast_forward(1)  # the first point, and only that, depends on torch's default dtype
    found = torch.empty(0, plan.space.d, dtype=torch.float64)
    for _ in range(_BLOCKS):
        points = sobol.draw(max(64, count), dtype=torch.float64)
        if domain is not None:
            points = domain.rounded(domain.dealt(points))
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
