"""Ask, tell, best: an experiment, in memory or in a database."""

import copy
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpytorch.kernels import Kernel

from askwise.advice import Best, best, hint, outlook
from askwise.ahead import Ahead
from askwise.answers import UNGIVEN, Answer, read_answer, whole
from askwise.belief import Belief
from askwise.feedback import Feedback
from askwise.given import (
    check_participant,
    checked_context,
    checked_options,
    checked_reason,
    checked_reference,
    checked_time,
)
from askwise.kernels import Name
from askwise.ledger import Ledger
from askwise.plan import Plan
from askwise.questions import Model, Setting, Situation, as_text, next_question
from askwise.replay import Replayed, replayed
from askwise.rules import Rule
from askwise.space import Space
from askwise.state import Entry, State
from askwise.storage import open_record

__all__ = ["Best", "Question", "Replayed", "Status", "Study"]

_MOST_AHEAD = 6  # answers to a batch for which the next question is computed ahead


@dataclass(frozen=True)
class Question:
    """What to show: one setting for a yes/no question, several to compare."""

    id: int
    options: list[dict[str, Any]]
    """Settings in natural units, in the order in which to show them: sides are drawn at random."""
    order: tuple[int, ...]
    """Which member of the rule's question each option is; for most rules 0 is the likely best."""
    participant: str | None = None
    context: dict[str, Any] | None = None


@dataclass(frozen=True)
class Status:
    """How far a study has come."""

    answers: int
    """Answers that count, "can't decide" among them."""
    undecided: int
    skipped: int
    voided: int
    open: int
    expired: int
    gain: float | None
    """By how much the recommended setting is expected to get better by the next answer, in units of the
    noise of one answer; None until there is a model."""
    shortfall: float | None
    """By how much the best of 1,024 settings all over the space is expected to be better."""
    hint: str


class Study:
    """Questions and answers about a space.

    ``feedback``: ``"binary"`` (did it work?), ``"duel"`` (which of two?) or ``"batch"`` (compare ``size``).
    ``storage``: None for memory, the path of a SQLite file, or a URL (``sqlite:///..``, ``postgresql://..``);
    a study of this ``name`` that is there already goes on where it was.
    ``kernel``: fixed, or the name of one whose parameters are learned from the answers.
    ``initial``: so many questions are asked at random at first, and yes/no questions until both answers
    have been heard.  ``expires``: seconds after which an unanswered question may be asked again.
    ``prefetch``: while an answer is awaited, compute the next question for each that may come.
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
        feedback: Feedback = "duel",
        rule: str | Rule | None = None,
        *,
        storage: str | os.PathLike[str] | None = None,
        name: str = "study",
        seed: int = 0,
        size: int | None = None,
        kernel: Kernel | Name = "matern52",
        initial: int | None = None,
        expires: float | int | None = None,
        prefetch: bool = False,
    ) -> None:
        """Start, or go on with what is stored."""
        plan = Plan.checked(space, feedback, rule, size, seed, kernel, initial, expires)
        self._begin(plan, storage, name, prefetch)

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
        self._ahead = Ahead(self._compute) if prefetch else None

    def ask(self, participant: str | None = None, context: Setting | None = None) -> Question:
        """The next question for this participant; the one before it if that is still open.

        ``context``: values of the parameters that are given, not chosen.  Questions that others are
        thinking about are taken into account, so that two people are not asked the same; one that
        has expired is asked again first.
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
        answer: bool | int | None = UNGIVEN,
        *,
        ranking: Sequence[int] | None = None,
        winner: int | None = None,
        pairs: Sequence[tuple[int, int]] | None = None,
        seconds: float | int | None = None,
    ) -> None:
        """Record an answer.

        Yes/no: True or False.  Duel: the index of the preferred option.  Batch: ``winner``, ``ranking``
        (best first; the first few are enough) or ``pairs`` (better first).  None: "can't decide", which
        is told to the model as well.  ``seconds``: how long it took.  The same answer again changes
        nothing; another one is refused, see :meth:`amend`.
        """
        read = self._read(answer, ranking, winner, pairs)
        body = {"answer": read, "seconds": checked_time(seconds)}

        def open_for_it(entry: Entry) -> bool:
            if entry.status == "answered" and entry.answer == read:
                return False
            _must(entry, ("open", "expired"), "be open to be answered", "Use amend to change an answer.")
            return True

        self._change("answered", question, body, open_for_it)

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
        answer: bool | int | None = UNGIVEN,
        *,
        ranking: Sequence[int] | None = None,
        winner: int | None = None,
        pairs: Sequence[tuple[int, int]] | None = None,
        reason: str | None = None,
    ) -> None:
        """Replace an answer, a skip or a void; what was there before stays in the record."""
        read = self._read(answer, ranking, winner, pairs)

        def has_another(entry: Entry) -> bool:
            if entry.status == "answered" and entry.answer == read:
                return False
            _must(
                entry, ("answered", "skipped", "voided"), "have an answer to amend", "Use tell to answer it."
            )
            return True

        self._change("amended", question, {"answer": read, "reason": checked_reason(reason)}, has_another)

    def void(self, question: Question | int, reason: str | None = None) -> None:
        """Take a question and its answer out of the model; both stay in the record."""
        self._change(
            "voided", question, {"reason": checked_reason(reason)}, lambda entry: entry.status != "voided"
        )

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
        answer: bool | int | None = UNGIVEN,
        *,
        ranking: Sequence[int] | None = None,
        winner: int | None = None,
        pairs: Sequence[tuple[int, int]] | None = None,
        participant: str | None = None,
        seconds: float | int | None = None,
    ) -> Question:
        """Add what was asked and answered elsewhere: settings in natural units, as they were shown."""
        read = {"answer": self._read(answer, ranking, winner, pairs), "seconds": checked_time(seconds)}
        check_participant(participant)
        shown = checked_options(self.space, self.size, options)
        body = _asked_body(shown, list(range(self.size)), participant, None, None) | read
        with self._lock:
            self._ledger.catch_up()
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
        entries = state.answered()
        look = None
        if len(entries) >= max(1, self.plan.initial) and self.model.heard_both(
            self.model.data(situation.answers)
        ):
            question = self.model.points(self._options(situation)[0])
            _, prior = self.model.prepared(situation.answers)
            belief = self.model.belief(situation.answers)
            look = outlook(belief, self.plan, prior, self.space.domain(given), question)
        return Status(
            len(entries),
            sum(entry.answer == {"undecided": True} for entry in entries),
            state.count("skipped"),
            state.count("voided"),
            state.count("open"),
            state.count("expired"),
            None if look is None else look.gain,
            None if look is None else look.shortfall,
            hint(self.plan, len(entries), look),
        )

    def belief(self) -> Belief:
        """What all answers tell of f, over the unit cube (``space.unit`` leads there)."""
        with self._lock:
            self._ledger.catch_up()
            answers = Situation.of(self._ledger.state).answers
        return self.model.belief(answers)

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
        """Let go of the storage; what was told is there."""
        if self._ahead is not None:
            self._ahead.close()
        self._ledger.record.close()

    # the record

    def _change(
        self, kind: str, question: Question | int, body: dict[str, Any], wanted: Callable[[Entry], bool]
    ) -> None:
        with self._lock:
            self._ledger.catch_up()
            self._ledger.change(kind, self._number(question), body, wanted)

    def _number(self, question: Question | int) -> int:
        number = whole(question.id if isinstance(question, Question) else question)
        entry = None if number is None else self._ledger.state.entries.get(number)
        if entry is None:
            raise ValueError(
                f"question must be one that was asked, or its id; got {question!r}. "
                f"Asked so far: {len(self._ledger.state.entries)}."
            )
        if isinstance(question, Question) and question.options != list(entry.options):
            raise ValueError(
                f"question must be of this study; got {question!r}. Tell the study that asked it."
            )
        return entry.id

    def _waiting(self, participant: str | None, context: Setting | None) -> Entry | None:
        """The open question of this participant, or one that expired, asked again."""
        for entry in self._ledger.state.open():
            if entry.participant == participant and as_text(entry.context) == as_text(context):
                return entry
        for number, entry in sorted(self._ledger.state.entries.items()):
            if entry.status == "expired" and as_text(entry.context) == as_text(context):
                taken = self._ledger.add("again", number, {"participant": participant})
                return self._ledger.state.entries[number] if taken else self._waiting(participant, context)
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
        for entry in self._ledger.state.open():
            if entry.asked < latest:
                self._change("expired", entry.id, {}, lambda now: now.status == "open" and now.asked < latest)

    # questions

    def _compute(self, situation: Situation) -> tuple[list[dict[str, Any]], list[int]]:
        return next_question(self.model, situation)

    def _options(self, situation: Situation) -> tuple[list[dict[str, Any]], list[int]]:
        return self._compute(situation) if self._ahead is None else self._ahead.get(situation)

    def _look_ahead(self, entry: Entry) -> None:
        if self._ahead is None:
            return
        coming = [self._ledger.state.if_answered(entry.id, answer) for answer in self._answers_to_expect()]
        self._ahead.expect(Situation.of(state, entry.context) for state in coming)

    def _answers_to_expect(self) -> list[Answer]:
        if self.feedback == "binary":
            return [{"yes": True}, {"yes": False}]
        if self.feedback == "duel":
            return [{"prefers": 0}, {"prefers": 1}]
        return [{"ranking": [k]} for k in range(self.size)] if self.size <= _MOST_AHEAD else []

    # what was given

    def _read(self, answer: object, ranking: object, winner: object, pairs: object) -> Answer:
        return read_answer(self.feedback, self.size, answer, ranking=ranking, winner=winner, pairs=pairs)


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
    """What is stored of a plan; nothing of one in memory with a kernel that cannot be."""
    try:
        return plan.to_dict()
    except ValueError:
        if storage is not None:
            raise
        return {}


def _must(entry: Entry, statuses: tuple[str, ...], expectation: str, advice: str) -> None:
    if entry.status not in statuses:
        has = f"{entry.status}: {entry.answer}" if entry.status == "answered" else entry.status
        raise ValueError(f"question {entry.id} must {expectation}; got one that is {has}. {advice}")


def _other_plan(name: str, given: Mapping[str, Any], stored: Mapping[str, Any]) -> ValueError:
    different = [key for key in given if given[key] != stored.get(key)]
    first = different[0]
    return ValueError(
        f"{first} must be as study {name!r} was created with, {stored.get(first)!r}; got {given[first]!r}. "
        "Open it by Study.open, or choose another name."
    )
