"""Ask, tell, best: an experiment, in memory or in a database."""

import copy
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpytorch.kernels import Kernel

from askwise.errors import Conflict, NotFound, Refused
from askwise.model import Belief
from askwise.rules import Rule
from askwise.space import Setting, Space
from askwise.storage import open_record
from askwise.study.answers import UNGIVEN, Answer, Tie, whole
from askwise.study.ledger import Ledger
from askwise.study.plan import Plan
from askwise.study.prefetch import Prefetch
from askwise.study.questions import Model, Situation, next_question
from askwise.study.recommendation import Best, best, hint, outlook
from askwise.study.replay import Replayed, replayed
from askwise.study.state import Entry, EntryStatus, State, as_text
from askwise.study.validation import (
    check_participant,
    checked_context,
    checked_options,
    checked_reason,
    checked_reference,
    checked_time,
)

Given = bool | int | Answer | None
"""An answer as it is given; None is "can't decide"."""


@dataclass(frozen=True)
class Question:
    """What to show: one setting for a yes/no question, several to compare."""

    id: int
    options: list[dict[str, Any]]
    """Settings in natural units, in the order in which to show them: sides are drawn at random."""
    order: tuple[int, ...]
    """Which member of the rule's query each option is; for most rules 0 is the champion."""
    participant: str | None = None
    context: dict[str, Any] | None = None


@dataclass(frozen=True)
class Status:
    """How far a study has come."""

    answers: int
    """Answers that count, "can't decide" included."""
    undecided: int
    skipped: int
    voided: int
    open: int
    expired: int
    gain: float | None
    """Expected gain: by how much the next answer is expected to improve the recommended setting, in units of
    the noise of one answer; None until there is a model."""
    regret: float | None
    """Expected regret: by how much the best of 1,024 settings all over the space is expected to be better."""
    hint: str


class Study:
    """Questions and answers about a space.

    ``feedback``: ``"binary"`` (did it work?), ``"duel"`` (which of two?) or ``"batch"`` (compare ``size``).
    ``storage``: None for memory, the path of a SQLite file, or a URL (``sqlite:///..``, ``postgresql://..``);
    a study of this ``name`` that exists there goes on where it was.
    ``kernel``: fixed, or the name of one whose parameters are learned from the answers.
    ``initial``: number of space-filling questions before the first model; yes/no questions go on so until
    there are a yes and a no.  ``expires``: seconds after which an unanswered question may be asked again.
    ``prefetch``: while an answer is awaited, compute the next query for each that may come.
    Equal seeds and answers give equal questions, in one process or in many.

    >>> import askwise as aw
    >>> study = aw.Study(aw.Space(gain=aw.Real(0, 10)), feedback="duel", seed=1)
    >>> question = study.ask()
    >>> study.tell(question, int(question.options[1]["gain"] > question.options[0]["gain"]))
    >>> 0 <= study.best().params["gain"] <= 10
    True
    """

    def __init__(  # noqa: PLR0913 - one for each setting
        self,
        space: Space,
        feedback: str = "duel",
        rule: str | Rule | None = None,
        *,
        storage: str | os.PathLike[str] | None = None,
        name: str = "study",
        seed: int = 0,
        size: int | None = None,
        kernel: Kernel | str = "matern52",
        initial: int | None = None,
        expires: float | int | None = None,
        prefetch: bool = False,
    ) -> None:
        """Start, or go on with what is stored."""
        plan = Plan.checked(space, feedback, rule, size, seed, kernel, initial, expires)
        self._begin(plan, storage, name, prefetch)

    @classmethod
    def of(
        cls,
        plan: Plan,
        storage: str | os.PathLike[str] | None = None,
        name: str = "study",
        *,
        prefetch: bool = False,
    ) -> "Study":
        """Start a study with this plan, or go on with what is stored."""
        study = cls.__new__(cls)
        study._begin(plan, storage, name, prefetch)
        return study

    @classmethod
    def open(cls, storage: str | os.PathLike[str], name: str = "study", *, prefetch: bool = False) -> "Study":
        """Go on with a stored study as it was created."""
        study = cls.__new__(cls)
        study._begin(None, storage, name, prefetch)
        return study

    def _begin(
        self, plan: Plan | None, place: str | os.PathLike[str] | None, name: str, prefetch: bool
    ) -> None:
        storage = os.fspath(place) if isinstance(place, os.PathLike) else place
        settings = None if plan is None else _settings(plan, storage)
        record = open_record(storage, name, settings)
        if settings is not None and record.settings != settings:
            record.close()
            raise _other_plan(name, settings, record.settings)
        # always from what is stored: a study that goes on has nothing else
        self.plan = plan if plan is not None and not settings else Plan.from_dict(record.settings)
        self.space, self.feedback, self.rule = self.plan.space, self.plan.feedback, self.plan.rule
        self.size, self.seed, self.name = self.plan.size, self.plan.seed, name
        self.model, self._ledger = Model(self.plan), Ledger(record)
        self._lock = threading.RLock()
        self._prefetch = Prefetch(self._compute) if prefetch else None

    def ask(self, participant: str | None = None, context: Setting | None = None) -> Question:
        """The next question for this participant; the one before it if that is still open.

        ``context``: values of the context parameters.  Pending questions of others are taken into account,
        so that two people are not asked the same; one that has expired is asked again first.
        """
        check_participant(participant)
        given = checked_context(self.space, context)
        with self._lock:
            self._ledger.catch_up()
            self._expire_old()
            while True:
                entry = self._waiting(participant, given) or self._asked_anew(participant, given)
                if entry is not None:
                    break
            self._look_ahead(entry)
        return _shown(entry)

    def tell(
        self,
        question: Question | int,
        answer: Given = UNGIVEN,
        *,
        ranking: Sequence[int] | None = None,
        winner: int | None = None,
        pairs: Sequence[tuple[int, int]] | None = None,
        seconds: float | int | None = None,
    ) -> None:
        """Record an answer.

        Yes/no: True or False.  Duel: the index of the preferred option.  Batch: ``winner``, ``ranking``
        (best first; the first few are enough) or ``pairs`` (better first).  None: "can't decide", which
        informs the model as well.  ``seconds``: response time.  The same answer again changes nothing;
        another one is refused, see :meth:`amend`.
        """
        read = self._read(answer, ranking=ranking, winner=winner, pairs=pairs)
        body = {"answer": read.to_json(), "seconds": checked_time(seconds)}

        def unanswered(entry: Entry) -> bool:
            if entry.status == "answered" and entry.answer == read:
                return False
            _must(entry, ("open", "expired"), "be open to be answered", "Use amend to change an answer.")
            return True

        self._change("answered", question, body, unanswered)

    def skip(self, question: Question | int, seconds: float | int | None = None) -> None:
        """Record that there will be no answer, which tells the model nothing."""

        def unanswered(entry: Entry) -> bool:
            if entry.status == "skipped":
                return False
            _must(entry, ("open", "expired"), "be open to be skipped", "Use void to withdraw an answer.")
            return True

        self._change("skipped", question, {"seconds": checked_time(seconds)}, unanswered)

    def amend(
        self,
        question: Question | int,
        answer: Given = UNGIVEN,
        *,
        ranking: Sequence[int] | None = None,
        winner: int | None = None,
        pairs: Sequence[tuple[int, int]] | None = None,
        reason: str | None = None,
    ) -> None:
        """Replace an answer, a skip or a void; what was there before stays in the record."""
        read = self._read(answer, ranking=ranking, winner=winner, pairs=pairs)

        def has_another(entry: Entry) -> bool:
            if entry.status == "answered" and entry.answer == read:
                return False
            done: tuple[EntryStatus, ...] = ("answered", "skipped", "voided")
            _must(entry, done, "have an answer to amend", "Use tell to answer it.")
            return True

        body = {"answer": read.to_json(), "reason": checked_reason(reason)}
        self._change("amended", question, body, has_another)

    def void(self, question: Question | int, reason: str | None = None) -> None:
        """Take a question and its answer out of the model; both stay in the record."""
        body = {"reason": checked_reason(reason)}
        self._change("voided", question, body, lambda entry: entry.status != "voided")

    def expire(self, question: Question | int) -> None:
        """Give up waiting for an answer, so that the question may be asked again."""

        def unanswered(entry: Entry) -> bool:
            if entry.status == "expired":
                return False
            _must(entry, ("open",), "be open to expire", "Only what has no answer can.")
            return True

        self._change("expired", question, {}, unanswered)

    def record(
        self,
        options: Sequence[Setting],
        answer: Given = UNGIVEN,
        *,
        ranking: Sequence[int] | None = None,
        winner: int | None = None,
        pairs: Sequence[tuple[int, int]] | None = None,
        participant: str | None = None,
        seconds: float | int | None = None,
    ) -> Question:
        """Add what was asked and answered elsewhere: settings in natural units, as they were shown."""
        read = {
            "answer": self._read(answer, ranking=ranking, winner=winner, pairs=pairs).to_json(),
            "seconds": checked_time(seconds),
        }
        check_participant(participant)
        shown = checked_options(self.space, self.size, options)
        body = _asked_body(shown, list(range(self.size)), participant, None, None) | read
        with self._lock:
            entries = self._ledger.state.entries
            while not self._ledger.add("asked", len(entries), body):
                pass
            return _shown(entries[len(entries) - 1])

    def best(self, context: Setting | None = None, reference: Setting | None = None) -> Best:
        """The setting most likely to be best, given all answers, and how likely it beats a reference."""
        given = checked_context(self.space, context)
        rival = None if reference is None else checked_reference(self.space, reference, given)
        return best(self.belief(), self.plan, self.space.domain(given), rival)

    def status(self, context: Setting | None = None) -> Status:
        """What has been answered, what another answer would bring, and whether to go on."""
        given = checked_context(self.space, context)
        with self._lock:
            self._ledger.catch_up()
            state = State(dict(self._ledger.state.entries), self._ledger.state.last)
        situation = Situation.of(state, given)
        answers, look = situation.answers, None
        if len(answers) >= self.plan.initial and self.model.is_ready(answers):
            query = self.model.points(self._options(situation)[0])
            belief, (_, prior) = self.model.belief(answers), self.model.prepared(answers)
            look = outlook(belief, self.plan, prior, self.space.domain(given), query)
        return Status(
            answers=len(answers),
            undecided=sum(isinstance(one.answer, Tie) for one in answers),
            skipped=state.count("skipped"),
            voided=state.count("voided"),
            open=state.count("open"),
            expired=state.count("expired"),
            gain=None if look is None else look.gain,
            regret=None if look is None else look.regret,
            hint=hint(self.plan, len(answers), look),
        )

    def belief(self) -> Belief:
        """Posterior of f given all answers, over the unit cube (``space.unit`` leads there)."""
        with self._lock:
            self._ledger.catch_up()
            answers = Situation.of(self._ledger.state).answers
        return self.model.belief(answers)

    def count(self, status: EntryStatus = "answered") -> int:
        """Number of questions of this status when the record was last read, as every other method does."""
        with self._lock:
            return self._ledger.state.count(status)

    def entry(self, question: Question | int) -> Entry:
        """A question and what became of it."""
        with self._lock:
            self._ledger.catch_up()
            return copy.deepcopy(self._ledger.state.entries[self._number(question)])

    def history(self) -> list[Entry]:
        """Every question, by number, and what became of it."""
        with self._lock:
            self._ledger.catch_up()
            return [copy.deepcopy(entry) for _, entry in sorted(self._ledger.state.entries.items())]

    def replay(self) -> list[Replayed]:
        """Derive every question again from the record, as it was when the question was asked."""
        with self._lock:
            events = self._ledger.record.events()
        return replayed(self.plan, events)

    def close(self) -> None:
        """Release the storage; what was told is there."""
        if self._prefetch is not None:
            self._prefetch.close()
        self._ledger.record.close()

    # the record

    def _change(
        self, kind: str, question: Question | int, body: dict[str, Any], wanted: Callable[[Entry], bool]
    ) -> None:
        with self._lock:
            self._ledger.change(kind, self._number(question), body, wanted)

    def _number(self, question: Question | int) -> int:
        entries = self._ledger.state.entries
        number = whole(question.id if isinstance(question, Question) else question)
        if number not in entries:
            self._ledger.catch_up()
        entry = None if number is None else entries.get(number)
        if entry is None:
            advice = f"Asked so far: {len(entries)}."
            raise NotFound("question", "be one that was asked, or its id", repr(question), advice)
        if isinstance(question, Question) and question.options != list(entry.options):
            raise Refused("question", "be of this study", repr(question), "Tell the study that asked it.")
        return entry.id

    def _waiting(self, participant: str | None, context: Setting | None) -> Entry | None:
        """The open question of this participant, or one that expired, asked again."""
        state = self._ledger.state
        for entry in state.having("open"):
            if entry.participant == participant and as_text(entry.context) == as_text(context):
                return entry
        for entry in state.having("expired"):
            if as_text(entry.context) == as_text(context):
                taken = self._ledger.add("again", entry.id, {"participant": participant})
                return state.entries[entry.id] if taken else self._waiting(participant, context)
        return None

    def _asked_anew(self, participant: str | None, context: Setting | None) -> Entry | None:
        """A new question; None if somebody else was asked one meanwhile, which it must not repeat."""
        number, seen = len(self._ledger.state.entries), self._ledger.state.last
        options, order = self._options(Situation.of(self._ledger.state, context))
        body = _asked_body(options, order, participant, context, seen)
        while number == len(self._ledger.state.entries):
            if self._ledger.add("asked", number, body):
                return self._ledger.state.entries[number]
        return None

    def _expire_old(self) -> None:
        if self.plan.expires is None:
            return
        latest = time.time() - self.plan.expires
        for entry in self._ledger.state.having("open"):
            if entry.asked < latest:
                self._change("expired", entry.id, {}, lambda now: now.status == "open" and now.asked < latest)

    # queries

    def _compute(self, situation: Situation) -> tuple[list[dict[str, Any]], list[int]]:
        return next_question(self.model, situation)

    def _options(self, situation: Situation) -> tuple[list[dict[str, Any]], list[int]]:
        return self._compute(situation) if self._prefetch is None else self._prefetch.get(situation)

    def _look_ahead(self, entry: Entry) -> None:
        if self._prefetch is None:
            return
        likely = self.plan.kind.likely_answers(self.size)
        coming = [self._ledger.state.if_answered(entry.id, answer) for answer in likely]
        self._prefetch.expect(Situation.of(state, entry.context) for state in coming)

    def _read(self, answer: object, **batch: object) -> Answer:
        return self.plan.kind.read(self.size, answer, **batch)


def _shown(entry: Entry) -> Question:
    context = None if entry.context is None else dict(entry.context)
    return Question(
        entry.id, [dict(option) for option in entry.options], entry.order, entry.participant, context
    )


def _asked_body(
    options: list[dict[str, Any]],
    order: list[int],
    participant: str | None,
    context: Setting | None,
    seen: int | None,
) -> dict[str, Any]:
    given = None if context is None else dict(context)
    return {"options": options, "order": order, "participant": participant, "context": given, "seen": seen}


def _settings(plan: Plan, storage: str | None) -> dict[str, Any]:
    """What is stored of a plan; nothing of one in memory whose kernel cannot be stored."""
    try:
        return plan.to_dict()
    except Refused:
        if storage is not None:
            raise
        return {}


def _must(entry: Entry, statuses: tuple[EntryStatus, ...], expectation: str, advice: str) -> None:
    if entry.status not in statuses:
        answered = entry.status == "answered" and entry.answer is not None
        has = f"{entry.status}: {entry.answer.to_json()}" if answered and entry.answer else entry.status
        raise Conflict(f"question {entry.id}", expectation, f"one that is {has}", advice)


def _other_plan(name: str, given: Mapping[str, Any], stored: Mapping[str, Any]) -> Refused:
    first = next(key for key in {**stored, **given} if given.get(key) != stored.get(key))
    return Refused(
        first,
        f"be as study {name!r} was created with, {stored.get(first)!r}",
        repr(given.get(first)),
        "Open it by Study.open, or choose another name.",
    )
