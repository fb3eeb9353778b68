"""The next query of a study, as a function of everything it depends on.

So an interrupted study continues as if nothing had happened, a query can be computed before the previous
answer arrives, and a record can be checked question by question.
"""

import functools
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float
from torch import Tensor

from askwise.errors import Refused
from askwise.loop import ask, next_query
from askwise.model import (
    EXPECTED_SHARE,
    Belief,
    Data,
    Learnable,
    Observer,
    away_from_pending,
    fit,
    infer,
    kernel,
    margin_interval,
    refit_count,
    with_fitted_margin,
    with_parameters,
    with_rater_column,
)
from askwise.numerics import generator, one_thread
from askwise.rules import parse
from askwise.space import Domain, Setting
from askwise.storage import Event
from askwise.study.answers import Answer
from askwise.study.people import SHARED, People
from askwise.study.plan import Plan, no_answers
from askwise.study.raters import Estimate, Raters, raters
from askwise.study.repeats import is_repeat, repeatable, surest
from askwise.study.shelf import Kept, Shelf
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
    ) -> "Situation":
        """The situation in which the next question is asked."""
        if people.participants == "separate":
            state = state.of_participant(participant)
        answers = tuple(entry.answered for entry in state.having("answered"))
        opened = state.having("open")
        pending = tuple(as_text(entry.members) for entry in opened)
        asked = tuple(entry.participant for entry in opened) if people.participants == "population" else ()
        who = participant if people.differ else None
        return cls(len(state.entries), answers, pending, as_text(context), who, asked)


class Model:
    """The posterior given answers: a pure function of these and of the plan, with a cache.

    The kernel is learned from the first answers only, as many as the refit schedule says: so most queries
    do not wait for a refit, and no query depends on what this process computed before.
    """

    def __init__(self, plan: Plan, shelf: Shelf | None = None) -> None:
        """A model of the answers to a study with this plan; kernels on the shelf are not learned again."""
        self.plan, self._shelf = plan, shelf if isinstance(plan.kernel, str) else None
        self.data = functools.lru_cache(maxsize=8)(self._data)
        self.learned = functools.lru_cache(maxsize=1024)(self._learn)  # of hundreds of people, perhaps
        self._inferred = functools.lru_cache(maxsize=4)(self._infer)
        self._shown = functools.lru_cache(maxsize=4096)(lambda answered: self.points(answered.options))

    def prepared(self, answers: tuple[Answered, ...]) -> tuple[Data, Kernel]:
        """The answers as rows, and the prior for them."""
        learned = self.learned(answers[: refit_count(len(answers))])
        data, margin = self.data(answers), learned.margin
        data = data.with_margin(margin) if data.has_ties and margin > 0 else data
        return data if learned.observer is None else learned.observer.applied(data), learned.kernel

    def belief(self, answers: tuple[Answered, ...], participant: str | None = None) -> Belief:
        """The posterior, of a population study about one of the people; None for what all have in common."""
        belief = self._inferred(answers)
        if self.plan.people.participants != "population" or participant is None:
            return belief
        observer, rater = self.observer(answers), self.rater(answers, participant)
        assert observer is not None
        return belief.of_rater(rater, observer.noise[min(rater, len(observer.noise) - 1)])

    def observer(self, answers: tuple[Answered, ...]) -> Observer | None:
        """What is known of how people answer, if anything is assumed."""
        return self.learned(answers[: refit_count(len(answers))]).observer

    def rater(self, answers: tuple[Answered, ...], participant: str | None) -> int:
        """The number of a participant, in the order of their first answers; the next one for a newcomer."""
        raters = list(dict.fromkeys(one.participant for one in answers))
        return raters.index(participant) if participant in raters else len(raters)

    def answered(
        self, answers: tuple[Answered, ...], points: Float[Tensor, "m d"], answer: Answer, who: str | None
    ) -> Data:
        """The rows of one more answer, by this participant."""
        if self.plan.people.participants == "population":
            points = with_rater_column(points, self.rater(answers, who))
        rows = answer.rows(points[None], [answer], self.plan.people.threshold)
        if self.plan.people.participants == "population":
            rows = rows.with_raters()
        observer = self.observer(answers)
        return rows if observer is None else observer.applied(rows)

    def is_ready(self, answers: tuple[Answered, ...]) -> bool:
        """Whether the answers suffice for a model: yes/no answers must have both outcomes."""
        return bool(answers) and self.plan.kind.has_both_outcomes(self.data(answers))

    def points(self, settings: Sequence[Setting]) -> Float[Tensor, "m d"]:
        """Settings as points of the unit cube."""
        return torch.stack([self.plan.space.unit(setting) for setting in settings])

    def _data(self, answers: tuple[Answered, ...]) -> Data:
        """The answers as rows; consecutive ones of the same kind together, since adding data is slow."""
        together = self.plan.people.participants == "population"
        data, threshold = no_answers(self.plan.space.d + together), self.plan.people.threshold
        raters = {who: number for number, who in enumerate(dict.fromkeys(one.participant for one in answers))}
        for _, run in groupby(
            answers, key=lambda one: (type(one.answer), len(one.options), one.answer.shape)
        ):
            alike = list(run)
            given = [one.answer for one in alike]
            points = [self._shown(one) for one in alike]
            if together:
                each = zip(points, alike, strict=True)
                points = [with_rater_column(point, raters[one.participant]) for point, one in each]
            data = data + given[0].rows(torch.stack(points), given, threshold)
        return data.with_raters() if together else data

    @one_thread()
    def _learn(self, answers: tuple[Answered, ...]) -> "Learned":
        given = self.plan.kernel
        prior = given if isinstance(given, Kernel) else self.plan.expected_kernel()
        if self._shelf is not None and (kept := self._shelf.get(answers)) is not None:
            return Learned.kept(kept, prior)
        data = self.data(answers)
        observer, learn = self._expected_people(data)
        data = data.with_margin(with_fitted_margin(_applied(observer, data), prior).margin)
        margin, fixed = data.margin.item(), isinstance(given, Kernel)
        if fixed and not learn:
            return Learned(prior, margin, observer)
        fitted = fit(data, prior, observer=observer, learn=learn, fixed=fixed)
        found = fitted.observer
        learned = Learned(fitted.kernel, margin, None if found is None else found.with_newcomer())
        if self._shelf is not None:
            self._shelf.put(answers, learned.to_keep())
        return learned

    @one_thread()
    def by_rater(self, answers: tuple[Answered, ...]) -> Belief:
        """The belief of a study with one taste, with points of different people kept apart."""
        apart = Model(replace(self.plan, people=replace(self.plan.people, participants="population")))
        learned = self.learned(answers[: refit_count(len(answers))])
        data = apart.data(answers)
        data = data.with_margin(learned.margin) if data.has_ties and learned.margin > 0 else data
        return infer(_applied(learned.observer, data), learned.kernel)

    @one_thread()
    def raters(self, answers: tuple[Answered, ...]) -> Raters:
        """What is learned of the people, from the answers of the last refit."""
        known = answers[: refit_count(len(answers))]
        if not known:
            raise Refused("study", "have answers to learn from", "none", "Answer some questions first.")
        data = self.data(known).with_margin(self.learned(known).margin)
        observer, learn = self._expected_people(data)
        if observer is None:
            advice = "Give the study lapses='learned', or participants='population'."
            raise Refused("study", "learn something of the people", "one that does not", advice)
        fixed = isinstance(self.plan.kernel, Kernel)
        fitted = fit(
            data,
            self.learned(known).kernel if fixed else self.plan.expected_kernel(),
            observer=observer,
            learn=learn,
            fixed=fixed,
            deviations=bool(learn),
        )
        apart = self.plan.people.participants == "population"
        counts = Counter(one.participant if apart else None for one in answers)
        people = list(dict.fromkeys(one.participant if apart else None for one in known))
        margin = None
        if data.has_ties:
            prior = self.plan.kernel if isinstance(self.plan.kernel, Kernel) else self.plan.expected_kernel()
            interval = margin_interval(_applied(observer, data), prior)
            margin = Estimate(self.learned(known).margin, interval)
        return raters(people, [counts[who] for who in people], fitted, learn, margin)

    def _expected_people(self, data: Data) -> tuple[Observer | None, tuple[Learnable, ...]]:
        """The people as they are expected, and what is to be learned of them."""
        people = self.plan.people
        population = people.participants == "population"
        raters = int(data.rater.max()) + 1 if population and data.n else 1
        learn: list[Learnable] = []
        if people.lapses == "learned" and data.n:
            learn.append("lapse")
        if population and raters > 1:
            learn += ["noise", "share"]
        if people.noise == "setting" and data.n:
            learn.append("slopes")
        if not (learn or people.lapses or people.guess or population):
            return None, ()
        expected = Observer.start(data, raters, learn, people.guess)
        if isinstance(people.lapses, int | float):
            expected = replace(expected, lapse=torch.full_like(expected.lapse, people.lapses))
        if population and raters == 1:
            expected = replace(expected, share=torch.full_like(expected.share, EXPECTED_SHARE))
        return expected, tuple(learn)

    @one_thread()
    def _infer(self, answers: tuple[Answered, ...]) -> Belief:
        observer, belief = self.observer(answers), infer(*self.prepared(answers))
        slopes = self.plan.people.noise == "setting" and observer is not None
        return belief.with_noise_slopes(observer.slopes) if slopes and observer is not None else belief


@dataclass(frozen=True)
class Learned:
    """What was learned from answers: the kernel, the margin of ties, and how people answer."""

    kernel: Kernel
    margin: float
    observer: Observer | None = None

    @classmethod
    def kept(cls, found: Kept, prior: Kernel) -> "Learned":
        """What another program has learned, to the last bit."""
        people = found.observer
        if people is not None:
            people = {name: torch.tensor(value, dtype=torch.float64) for name, value in people.items()}
        observer = None if people is None else Observer(**people)
        return cls(with_parameters(prior, found.parameters), found.margin, observer)

    def to_keep(self) -> Kept:
        """As plain numbers."""
        raw = {name: part.tolist() for name, part in self.kernel.named_parameters()}
        people = None if self.observer is None else vars(self.observer)
        numbers = None if people is None else {name: part.tolist() for name, part in people.items()}
        return Kept(self.margin, raw, numbers)


def _applied(observer: Observer | None, data: Data) -> Data:
    return data if observer is None else observer.applied(data)


@one_thread()
def next_question(model: Model, situation: Situation) -> tuple[list[dict[str, Any]], list[int]]:
    """Options in the order in which to show them, and which member of the rule's query each is."""
    plan = model.plan
    members = _repeated(model, situation)
    if members is None:
        members = [plan.space.natural(point) for point in _query(model, situation)]
    shuffle = generator("askwise study", plan.seed, situation.number, "order", *_who(plan, situation))
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

    if plan.people == SHARED and not pending:
        data, prior = model.prepared(answers)
        return next_query(data, plan.rule, prior, plan.size, source(), domain=domain).points
    belief = model.belief(answers, None if plan.people.aim == "population" else situation.participant)
    if not pending:
        return ask(belief, plan.rule, plan.size, source(), domain)
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
        rows = Data.binary(torch.cat(list(queries)), torch.ones(len(queries)))
    else:
        duels = [torch.stack([points[0], other]) for points in queries for other in points[1:]]
        rows = Data.duels(torch.stack(duels), torch.ones(len(duels)))
    return _applied(model.observer(situation.answers), rows.with_raters() if situation.asked else rows)


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
