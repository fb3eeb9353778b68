"""Ask, tell, best: an experiment, in memory or in a database."""

import copy
import os
import threading
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from askwise.errors import Conflict, NotFound, Refused
from askwise.space import Items, Setting, Space
from askwise.storage import Draft, Event, backup, open_record
from askwise.study import validation
from askwise.study.answer_tables import content_key, is_table, read_answers
from askwise.study.answers import UNGIVEN, Answer, whole
from askwise.study.asking import Asking
from askwise.study.changes import Change, Course, check_changeable, check_same, difference, told
from askwise.study.ledger import Ledger
from askwise.study.plan import Plan
from askwise.study.question import Question, Status
from askwise.study.state import Entry, EntryStatus, State
from askwise.study.views import as_html, dataframe

if TYPE_CHECKING:
    from gpytorch.kernels import Kernel

    from askwise.model import Belief
    from askwise.rules import Rule
    from askwise.study.checks import Check
    from askwise.study.level_sets import Classified, LevelSet
    from askwise.study.model import Model
    from askwise.study.predictions import Comparison, Prediction
    from askwise.study.questions import Replayed, Situation
    from askwise.study.raters import Estimate, Raters
    from askwise.study.recommendation import Best
    from askwise.study.snapshot import Choosing, Chosen, Snapshot
else:  # who only reads or writes the record needs no model, and no torch, which takes seconds to import
    Kernel = Belief = Rule = Check = Classified = LevelSet = Model = Choosing = Chosen = Snapshot = Any
    Comparison = Prediction = Replayed = Situation = Estimate = Raters = Best = Any

Given = bool | int | Answer | None
"""An answer as it is given; None is "can't decide"."""
Place = str | os.PathLike[str] | None
"""A database or file; None for memory."""
T = TypeVar("T")


class Study:
    """Questions and answers about a space.

    ``feedback``: ``"binary"`` (did it work?), ``"duel"`` (which of two?) or ``"batch"`` (compare ``size``).
    ``storage``: None for memory, the path of a SQLite file, or a URL (``sqlite:///..``, ``postgresql://..``);
    a study of this ``name`` that exists there goes on where it was.
    ``kernel``: fixed; the name of one whose parameters are learned from the answers (``"matern52"``, the
    default for yes/no and batches); or ``"averaged"``, the default for duels: over eight of that family,
    drawn from the posterior of their parameters.
    ``initial``: number of space-filling questions before the first model; yes/no studies ask more of them
    until there are a yes and a no.  ``expires``: seconds after which a pending question may be asked again.
    ``repeats``: share of questions that are earlier ones asked again, to see whether the answers agree.
    ``level``: of a yes/no study, to find all settings that work at least this often (0.95, say) instead of
    the best one; see :meth:`level_set`.
    ``participants``: ``"shared"`` (one taste of all), ``"separate"`` (each has a model of their own) or
    ``"population"`` (each has a taste that has something in common with all).  ``aim``: whose best setting
    the questions of a population study look for, ``"person"`` or ``"population"``.
    ``lapses``: share of answers that are given without looking; ``"learned"`` by default, 0 for none.
    ``guess``: share of yes answers where nothing is perceived, 1/m in a task with m alternatives.
    ``noise``: ``"constant"``, or ``"setting"`` if answers are noisier at some settings than at others.
    ``prefetch``: while an answer is awaited, compute the next query for each likely answer; True in a
    thread, or by a function such as :class:`askwise.study.ahead.Ahead`.
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
        space: Space | Items,
        feedback: str = "duel",
        rule: str | Rule | None = None,
        *,
        storage: Place = None,
        name: str = "study",
        seed: int = 0,
        size: int | None = None,
        kernel: Kernel | str | None = None,
        initial: int | None = None,
        expires: float | int | None = None,
        repeats: float = 0.0,
        level: float | None = None,
        participants: str | None = None,
        aim: str | None = None,
        lapses: float | str | None = None,
        guess: float = 0.0,
        noise: str | None = None,
        prefetch: bool | Choosing = False,
    ) -> None:
        """Start, or go on with what is stored."""
        more: dict[str, Any] = {
            "kernel": kernel,
            "initial": initial,
            "expires": expires,
            "repeats": repeats,
            "level": level,
            "participants": participants,
            "aim": aim,
            "lapses": lapses,
            "guess": guess,
            "noise": noise,
        }
        plan = Plan.checked(space, feedback, rule, size, seed, **more)
        self._begin(plan, storage, name, prefetch)

    @classmethod
    def of(
        cls, plan: Plan, storage: Place = None, name: str = "study", *, prefetch: bool | Choosing = False
    ) -> "Study":
        """Start a study with this plan, or go on with what is stored."""
        study = cls.__new__(cls)
        study._begin(plan, storage, name, prefetch)
        return study

    @classmethod
    def open(
        cls, storage: str | os.PathLike[str], name: str = "study", *, prefetch: bool | Choosing = False
    ) -> "Study":
        """Go on with a stored study as it is now."""
        study = cls.__new__(cls)
        study._begin(None, storage, name, prefetch)
        return study

    def _begin(self, plan: Plan | None, place: Place, name: str, prefetch: bool | Choosing) -> None:
        storage = os.fspath(place) if isinstance(place, os.PathLike) else place
        settings = None if plan is None else _settings(plan, storage)
        record = open_record(storage, name, settings)
        try:
            self._ledger = Ledger(record)
            changes = self._ledger.state.changes.values()
            if plan is not None and settings:
                check_same(plan, record.settings, [event.body for event in changes], name)
            # always from what is stored: a study that goes on has nothing else
            self._first = plan if plan is not None and not settings else Plan.from_dict(record.settings)
            self._course = Course(self._first, shared=hasattr(record, "turn"))
            self._course.plan_after(self._ledger.state.changes)
        except BaseException:
            record.close()
            raise
        self.feedback, self.size, self.seed = self._first.feedback, self._first.size, self._first.seed
        self.name, self._lock = name, threading.RLock()
        self._asking = Asking(self._ledger, self._lock, lambda: self.plan, lambda: self.model, prefetch)

    @property
    def model(self) -> Model:
        """The model by the present plan; made when it is first needed."""
        with self._lock:
            return self._course.model_after(self._ledger.state.changes)

    @property
    def plan(self) -> Plan:
        """The settings as of the last event that is known here."""
        with self._lock:
            return self._course.plan_after(self._ledger.state.changes)

    @property
    def space(self) -> Space:
        """The present space."""
        return self.plan.space

    @property
    def rule(self) -> Rule:
        """The present rule."""
        return self.plan.rule

    def ask(
        self,
        participant: str | None = None,
        context: Setting | None = None,
        *,
        beside: Collection[int] = (),
    ) -> Question:
        """The next question for this participant; the previous one if it is still open.

        ``context``: values of the context parameters.  Pending questions of others are taken into account,
        so that two people are not asked the same; a question that has expired is asked again first.
        ``beside``: numbers of questions that are being answered, so that another one is asked.
        """
        validation.check_participant(participant)
        with self._lock:
            self._ledger.catch_up()
            given = validation.checked_context(self.space, context)
        return Question.of(self._asking.next(participant, given, beside), self.space)

    def ahead(self, question: Question | int, patience: float = 0.0) -> list[list[dict[str, Any]]]:
        """The options of questions that may come next, as far as they have been computed ahead.

        So that what is shown of them can be made and loaded while somebody thinks; ``patience``: seconds to
        wait for each.  Which of them is asked, if any, depends on the answer.
        """
        with self._lock:
            entry = self._ledger.state.entries[self._number(question)]
        found = self._asking.known_after(entry, patience)
        return [[self.space.described(option) for option in options] for options in found]

    def tell(
        self,
        question: Question | int,
        answer: Given = UNGIVEN,
        *,
        ranking: Sequence[int] | None = None,
        winner: int | None = None,
        pairs: Sequence[tuple[int, int]] | None = None,
        worst: int | None = None,
        seconds: float | int | None = None,
    ) -> None:
        """Record an answer.

        Yes/no: True or False.  Duel: the index of the preferred option.  Batch: ``winner``, ``ranking``
        (best first; the first few are enough), ``pairs`` (better first) or, of three or more, ``worst``.
        None: "can't decide", which informs the model as well.  ``seconds``: response time.  The same answer
        again changes nothing; another one is refused, see :meth:`amend`.
        """
        told = {"ranking": ranking, "winner": winner, "pairs": pairs, "worst": worst}
        read = self.plan.kind.read(self.size, answer, **told)
        body = {"answer": read.to_json(), "seconds": validation.checked_time(seconds)}
        self._add("answered", question, body, read)

    def skip(
        self, question: Question | int, seconds: float | int | None = None, *, reason: str | None = None
    ) -> None:
        """Record that there will be no answer; the model learns nothing from it."""
        why = {} if reason is None else {"reason": validation.checked_reason(reason)}
        self._add("skipped", question, {"seconds": validation.checked_time(seconds), **why})

    def amend(
        self,
        question: Question | int,
        answer: Given = UNGIVEN,
        *,
        ranking: Sequence[int] | None = None,
        winner: int | None = None,
        pairs: Sequence[tuple[int, int]] | None = None,
        worst: int | None = None,
        reason: str | None = None,
    ) -> None:
        """Replace an answer, a skip or a void; what was there before stays in the record."""
        told = {"ranking": ranking, "winner": winner, "pairs": pairs, "worst": worst}
        read = self.plan.kind.read(self.size, answer, **told)
        body = {"answer": read.to_json(), "reason": validation.checked_reason(reason)}
        self._add("amended", question, body, read)

    def void(self, question: Question | int, reason: str | None = None) -> None:
        """Take a question and its answer out of the model; both stay in the record."""
        self._add("voided", question, {"reason": validation.checked_reason(reason)})

    def undo(self, n: int = 1, participant: Any = UNGIVEN, *, key: str | None = None) -> list[Question]:
        """Take back the last ``n`` answers and skips; returns their questions, which are asked again.

        They are open again and asked first, in their order.  What was recorded from elsewhere is taken out,
        as by :meth:`void`, since nobody asked it here.  All stays in the record.  ``participant``: of this
        person, None of the one without a name; by default of whoever answered last.  ``key``: with the same
        key they are taken back once, so after an error that leaves it open the same call again is safe.
        """
        validation.checked_count("n", n)
        validation.check_key(key)
        if participant is not UNGIVEN:
            validation.check_participant(participant)
        with self._lock:
            while True:
                self._ledger.catch_up()
                state = self._ledger.state
                known = state.taken_back(key, n, participant)
                taken = known or state.last_replies(n, participant)
                if known or self._ledger.add_all([_undoing(entry, key) for entry in taken]):
                    return [Question.of(entry, self.space) for entry in taken]

    def expire(self, question: Question | int) -> None:
        """Give up waiting for an answer, so that the question may be asked again."""
        self._add("expired", question, {})

    def record(  # noqa: PLR0913 - one for each way to answer
        self,
        options: Sequence[Setting],
        answer: Given = UNGIVEN,
        *,
        ranking: Sequence[int] | None = None,
        winner: int | None = None,
        pairs: Sequence[tuple[int, int]] | None = None,
        worst: int | None = None,
        participant: str | None = None,
        seconds: float | int | None = None,
        key: str | None = None,
    ) -> Question:
        """Add a question that was asked and answered elsewhere; options in natural units, in order shown.

        ``key``: with the same key it is recorded once, however often this is called.  So after an error that
        leaves open whether it was recorded, the same call again is safe.
        """
        told = {"answer": answer, "ranking": ranking, "winner": winner, "pairs": pairs, "worst": worst}
        given = {"options": options, "participant": participant, "seconds": seconds}
        return self.record_many([given | told], key)[0]

    def record_many(self, answers: Any, key: str | None = None) -> list[Question]:
        """Add several such questions, or none if one of them is refused: a warm start.

        ``answers``: a list of dictionaries of what :meth:`record` takes, such as ``{"options": [...],
        "answer": 1}``; or a table, as a DataFrame, the path of a CSV or JSON file or a list of rows, with the
        columns of ``askwise export`` or with a row for each question (gain_a, gain_b, answer).
        ``key``: as for :meth:`record`; that of a table is by default its content, so it is recorded once.
        """
        validation.check_key(key)
        if is_table(answers):
            given, key = self._of_table(answers, key)
        else:
            given = validation.checked_answers(answers)
        with self._lock:
            entries, known = self._ledger.state.entries, self._ledger.state.keys
            if key is not None:
                self._ledger.catch_up()
            while True:
                bodies = self._known_or_refused(lambda: validation.recorded_many(self.plan, given, key))
                if not bodies or key in known:
                    break
                drafts = [Draft("asked", number, body) for number, body in enumerate(bodies, len(entries))]
                if self._ledger.add_all(drafts):
                    return [Question.of(entries[draft.question], self.space) for draft in drafts]
            there = [entries[known[body["key"]]] for body in bodies if body.get("key") in known]
            if [list(entry.options) for entry in there] != [body["options"] for body in bodies]:
                got = f"{key!r}, by which other answers were recorded"
                raise Conflict("key", "be new, or come with the same options", got, "Choose another key.")
            return [Question.of(entry, self.space) for entry in there]

    def change(
        self,
        *,
        space: Space | Items = UNGIVEN,
        rule: str | Rule | None = UNGIVEN,
        kernel: Kernel | str = UNGIVEN,
        expires: float | int | None = UNGIVEN,
        repeats: float = UNGIVEN,
        level: float | None = UNGIVEN,
        reason: str | None = None,
        **others: object,
    ) -> list[str]:
        """Go on with other settings from here; what changes, in words, or nothing if nothing does.

        ``space``: ranges may be wider or narrower, steps and constraints others; a ``Choice`` or ``Ordinal``
        may get more values, ``Items`` more rows: see :meth:`Space.replaced`, :meth:`Items.with_rows`.  All
        answers stay in the model; questions and recommendations lie in the new space.  A pending question
        that does not is given up, though it may still be answered.  The record keeps the change as an event,
        by which other programs go on as well, and from which :meth:`replay` derives the questions before and
        after.  Other settings are refused.

        >>> import askwise as aw
        >>> study = aw.Study(aw.Space(gain=aw.Real(0, 40, unit="dB")))
        >>> study.change(space=study.space.replaced(gain=aw.Real(0, 60, unit="dB")), rule="muc_joint")
        ['gain: 0 to 40 becomes 0 to 60 dB', 'rule: muc becomes muc_joint']
        """
        settings = {"space": space, "rule": rule, "level": level, "kernel": kernel}
        settings |= {"expires": expires, "repeats": repeats}
        given = {name: value for name, value in settings.items() if value is not UNGIVEN}
        why = {} if reason is None else {"reason": validation.checked_reason(reason)}
        with self._lock:
            while True:
                self._ledger.catch_up()
                check_changeable(self.plan, others)
                usual = {"rule": None} if level is not UNGIVEN and self.plan.has_usual_rule else {}
                after = self.plan.changed(**(usual | given))
                written, words = difference(self.plan, after)
                if not written:
                    return []
                after.check_enough_anywhere()
                pending = self._ledger.state.having("open")
                gone = [one.id for one in pending if not all(map(after.space.allows, one.options))]
                drafts = [Draft("changed", 0, written | why), *(Draft("expired", n, {}) for n in gone)]
                if self._ledger.add_all(drafts):
                    return words

    def changes(self) -> list[Change]:
        """Every change of the study, in order."""
        with self._lock:
            self._ledger.catch_up()
            return told(self._first, self._ledger.state.changes.values())

    def is_recorded(self, key: str) -> bool:
        """Whether something was recorded with this key."""
        with self._lock:
            self._ledger.catch_up()
            return key in self._ledger.state.keys

    def best(
        self,
        context: Setting | None = None,
        reference: Setting | None = None,
        participant: str | None = None,
    ) -> Best:
        """The setting most likely to be best, given all answers, and how likely it beats a reference.

        ``participant``: for whom, where people differ; of a population study, by default for all.
        """
        return self._now().best(context, reference, participant)

    def status(self, context: Setting | None = None, participant: str | None = None) -> Status:
        """The number of answers, the expected gain of one more, and whether to go on.

        ``participant``: of whom, where people differ.
        """
        return self._now().status(context, participant)

    def level_set(
        self,
        level: float | None = None,
        confidence: float = 0.95,
        context: Setting | None = None,
        participant: str | None = None,
        *,
        safest: int = 5,
    ) -> LevelSet:
        """Which settings of a yes/no study work at least so often: shares of the space, and the safest.

        ``level``: a success rate, by default that of the study.  ``confidence``: probability from which a
        setting is believed to be inside, where that rate is reached, or outside.  ``safest``: how many of the
        settings that reach it most probably.  :meth:`predict` says it of settings of your own.
        """
        return self._now().level_set(level, confidence, context, participant, safest)

    def classified(
        self,
        count: int = 1024,
        level: float | None = None,
        confidence: float = 0.95,
        context: Setting | None = None,
        participant: str | None = None,
    ) -> list[Classified]:
        """Settings spread over the space, each with the probability to reach the level, and its side.

        All settings, if there are no more than ``count``.  Arguments as of :meth:`level_set`.
        """
        return self._now().classified(count, level, confidence, context, participant)

    def checks(self, participant: str | None = None) -> list[Check]:
        """Whether the answers look as if somebody had looked at the questions.

        ``participant``: of whom, in a study of separate people; by default of all together.

        While one of them is flagged, no probability is to be trusted: a model explains the answers of a coin
        as well.  Only checks that apply are listed: ``sides`` (an option is chosen for its place), ``model``
        (coin flips explain the answers better), ``repeats`` (the same question gets another answer) and
        ``speed`` (answers come faster than anybody can choose).
        """
        return self._now().checks(participant)

    def belief(self, participant: str | None = None) -> Belief:
        """Posterior of f given all answers, over the unit cube (``space.unit`` maps settings to it).

        ``participant``: about whose utility, where people differ; of a population study, by default about
        what all have in common.
        """
        return self._now().belief(participant)

    def predict(
        self,
        settings: Setting | Sequence[Setting],
        context: Setting | None = None,
        participant: str | None = None,
    ) -> list[Prediction]:
        """What the model says of settings in natural units, with intervals of 95%."""
        return self._now().predict(settings, context, participant)

    def compare(
        self, first: Setting, second: Setting, context: Setting | None = None, participant: str | None = None
    ) -> Comparison:
        """Which of two settings is better, and how sure that is."""
        return self._now().compare(first, second, context, participant)

    def top(
        self, k: int = 5, context: Setting | None = None, participant: str | None = None
    ) -> list[Prediction]:
        """The best of the settings that were asked about and of the recommended one, or of all items.

        Best first; without settings that a change has put out of the space.
        """
        return self._now().top(k, context, participant)

    def importance(
        self, context: Setting | None = None, participant: str | None = None
    ) -> dict[str, Estimate]:
        """Which parameters matter: the share of the variance of f that each takes part in, most first."""
        return self._now().importance(context, participant)

    def to_dataframe(self) -> Any:
        """Every question as a row of a pandas DataFrame: the options side by side, the answer, who, when."""
        return dataframe(self.history())

    def __repr__(self) -> str:
        """Its name, what it asks, and how far it is."""
        kind = f"{self.feedback}, {self.rule}"
        return f"Study({self.name!r}, {kind}, {self.space}, {self.count()} answers)"

    def _repr_html_(self) -> str:
        """How far it is, as a table for notebooks; nothing is computed for it."""
        head = f"{self.name}: {self.feedback} by {self.rule}, {self.count()} answers"
        return as_html(head, self.size, self._ledger.state.having("answered"))

    def __enter__(self) -> "Study":
        """The study, to be closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Release the storage."""
        self.close()

    def participants(self) -> list[str | None]:
        """Everybody who has answered, in the order of their first answers."""
        return list(self.answers_by_participant())

    def answers_by_participant(self) -> dict[str | None, int]:
        """How many answers everybody has given, in the order of their first answers."""
        with self._lock:
            self._ledger.catch_up()
            return self._ledger.state.answers_by_participant()

    def raters(self, participant: str | None = None) -> Raters:
        """What is learned of the people: lapses, noise, and how much they differ, with intervals of 95%."""
        return self._now().raters(participant)

    def whose(self, participant: str | None = None) -> str | None:
        """Whose utility is modelled for this participant; None if it is that of all.

        In a study of separate people the only one need not be named, one of several must be; as in
        :meth:`ask`, None is a person, if somebody without a name has answered.
        """
        with self._lock:
            self._ledger.catch_up()
            return self._ledger.state.whose(self.plan.people, participant)

    def count(self, status: EntryStatus = "answered", participant: Any = UNGIVEN) -> int:
        """Number of questions of this status; does not read the record, as every other method does.

        ``participant``: of this person, None of the one without a name; by default of all.
        """
        with self._lock:
            state = self._ledger.state
            return state.count(status) if participant is UNGIVEN else state.count_of(participant, status)

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

    def events(self, after: int = 0) -> list[Event]:
        """Everything that was recorded after the event of this number, in order."""
        with self._lock:
            return self._ledger.record.events(after)

    def last_event(self) -> int:
        """Number of the last event, by which others can see whether anything has changed."""
        with self._lock:
            self._ledger.catch_up()
            return self._ledger.state.last

    def replay(self, step: Callable[[], None] = lambda: None) -> list[Replayed]:
        """Derive every question again from the record, as it was when the question was asked.

        ``step`` is called after each.
        """
        from askwise.study.questions import replayed

        with self._lock:
            events = self._ledger.record.events()
        return replayed(self._first, events, step)

    def programs(self) -> dict[int, dict[str, Any]]:
        """Versions of the programs that asked, by the first event that says so."""
        with self._lock:
            self._ledger.catch_up()
            return copy.deepcopy(self._ledger.state.programs)

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Write a copy of the record to a new SQLite file, and check it; others may go on writing."""
        backup(self._ledger.record, path)

    def close(self) -> None:
        """Release the storage; every answer is already recorded."""
        self._asking.close()
        self._ledger.record.close()

    # the record

    def _add(
        self, kind: str, question: Question | int, body: dict[str, Any], answer: Answer | None = None
    ) -> None:
        with self._lock:
            number = self._number(question)
            self._ledger.change(kind, number, body, lambda entry: entry.allows(kind, answer))

    def _of_table(self, table: Any, key: str | None) -> tuple[list[dict[str, Any]], str]:
        with self._lock:
            rows, _ = self._known_or_refused(lambda: read_answers(table, self.plan))
        return [vars(row) for row in rows], key or content_key(rows)

    def _known_or_refused(self, check: Callable[[], T]) -> T:
        """What is checked against the plan; before anything is refused, the record is read."""
        try:
            return check()
        except Refused:
            if not self._ledger.catch_up():
                raise
            return check()

    def _number(self, question: Question | int) -> int:
        entries = self._ledger.state.entries
        number = whole(question.id if isinstance(question, Question) else question)
        if number not in entries:
            self._ledger.catch_up()
        entry = None if number is None else entries.get(number)
        if entry is None:
            advice = f"Asked so far: {len(entries)}."
            raise NotFound("question", "be one that was asked, or its id", repr(question), advice)
        if isinstance(question, Question) and question.options != Question.of(entry, self.space).options:
            raise Refused("question", "be of this study", repr(question), "Tell the study that asked it.")
        return entry.id

    # queries

    def _now(self) -> Snapshot:
        """The study with all that is recorded."""
        from askwise.study.snapshot import Snapshot

        with self._lock:
            self._ledger.catch_up()
            state = State(dict(self._ledger.state.entries), self._ledger.state.last)
            return Snapshot(self.model, state, self._asking.choose)


def _undoing(entry: Entry, key: str | None) -> Draft:
    """The event by which a reply is taken back; nobody asks again what was recorded from elsewhere."""
    by = {} if key is None else {"undo": key}
    if entry.seen is None:
        return Draft("voided", entry.id, {"reason": "undone", **by})
    return Draft("undone", entry.id, by)


def _settings(plan: Plan, storage: str | None) -> dict[str, Any]:
    """What is stored of a plan; nothing of one in memory whose kernel cannot be stored."""
    try:
        return plan.to_dict()
    except Refused:
        if storage is not None:
            raise
        return {}
