"""Ask, tell, best: an experiment, in memory or in a database."""

import copy
import functools
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from askwise.errors import Conflict, NotFound, Refused
from askwise.model import Belief, Data
from askwise.rules import Rule
from askwise.space import Items, Setting, Space
from askwise.storage import Draft, Event, backup, open_record
from askwise.study import validation
from askwise.study.answers import UNGIVEN, Answer, Tie, whole
from askwise.study.checks import Check, checks
from askwise.study.ledger import Ledger
from askwise.study.model import Model
from askwise.study.people import SHARED
from askwise.study.plan import Plan
from askwise.study.predictions import Comparison, Prediction, comparison, importance, predictions
from askwise.study.prefetch import Prefetch
from askwise.study.question import Question, Status
from askwise.study.questions import Replayed, Situation, next_question, replayed
from askwise.study.raters import Estimate, Raters
from askwise.study.recommendation import Best, best, hint, outlook
from askwise.study.shelf import Shelf
from askwise.study.state import Answered, Entry, EntryStatus, State, as_text
from askwise.study.views import as_html, dataframe

Given = bool | int | Answer | None
"""An answer as it is given; None is "can't decide"."""
_PART = 4096  # items whose means are computed at once
Place = str | os.PathLike[str] | None
"""A database or file; None for memory."""


class Study:
    """Questions and answers about a space.

    ``feedback``: ``"binary"`` (did it work?), ``"duel"`` (which of two?) or ``"batch"`` (compare ``size``).
    ``storage``: None for memory, the path of a SQLite file, or a URL (``sqlite:///..``, ``postgresql://..``);
    a study of this ``name`` that exists there goes on where it was.
    ``kernel``: fixed, or the name of one whose parameters are learned from the answers.
    ``initial``: number of space-filling questions before the first model; yes/no studies ask more of them
    until there are a yes and a no.  ``expires``: seconds after which a pending question may be asked again.
    ``repeats``: share of questions that are earlier ones asked again, to see whether the answers agree.
    ``participants``: ``"shared"`` (one taste of all), ``"separate"`` (each has a model of their own) or
    ``"population"`` (each has a taste that has something in common with all).  ``aim``: whose best setting
    the questions of a population study look for, ``"person"`` or ``"population"``.
    ``lapses``: share of answers that are given without looking; ``"learned"`` by default, 0 for none.
    ``guess``: share of yes answers where nothing is perceived, 1/m in a task with m alternatives.
    ``noise``: ``"constant"``, or ``"setting"`` if answers are noisier at some settings than at others.
    ``prefetch``: while an answer is awaited, compute the next query for each likely answer.
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
        kernel: Kernel | str = "matern52",
        initial: int | None = None,
        expires: float | int | None = None,
        repeats: float = 0.0,
        participants: str | None = None,
        aim: str | None = None,
        lapses: float | str | None = None,
        guess: float = 0.0,
        noise: str | None = None,
        prefetch: bool = False,
    ) -> None:
        """Start, or go on with what is stored."""
        people = {"participants": participants, "aim": aim, "lapses": lapses, "guess": guess, "noise": noise}
        plan = Plan.checked(space, feedback, rule, size, seed, kernel, initial, expires, repeats, **people)
        self._begin(plan, storage, name, prefetch)

    @classmethod
    def of(cls, plan: Plan, storage: Place = None, name: str = "study", *, prefetch: bool = False) -> "Study":
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

    def _begin(self, plan: Plan | None, place: Place, name: str, prefetch: bool) -> None:
        storage = os.fspath(place) if isinstance(place, os.PathLike) else place
        settings = None if plan is None else _settings(plan, storage)
        record = open_record(storage, name, settings)
        if plan is not None and settings and record.settings != settings:
            settings = plan.written_like(record.settings)
        if settings is not None and record.settings != settings:
            record.close()
            # what is not written has the default
            stored, given = ({"repeats": 0.0, **asdict(SHARED), **one} for one in (record.settings, settings))
            first = next(key for key in {**record.settings, **settings} if given.get(key) != stored.get(key))
            if first == "space":
                Space.from_dict(stored[first]).check_same_items(Space.from_dict(given[first]), name)
            expected = f"be as study {name!r} was created with, {stored.get(first)!r}"
            advice = "Open it by Study.open, or choose another name."
            raise Refused(first, expected, repr(given.get(first)), advice)
        # always from what is stored: a study that goes on has nothing else
        self.plan = plan if plan is not None and not settings else Plan.from_dict(record.settings)
        self.space, self.feedback, self.rule = self.plan.space, self.plan.feedback, self.plan.rule
        self.size, self.seed, self.name = self.plan.size, self.plan.seed, name
        shelf = Shelf(self.plan) if hasattr(record, "turn") else None  # others may share it
        self.model, self._ledger = Model(self.plan, shelf), Ledger(record)
        self._lock = threading.RLock()
        self._asking: dict[str | None, threading.Lock] = {None: threading.Lock()}
        compute = functools.partial(next_question, self.model)
        self._prefetch = Prefetch(compute) if prefetch else None
        self._options = compute if self._prefetch is None else self._prefetch.get

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
        given = validation.checked_context(self.space, context)
        waiting = functools.partial(self._waiting, participant, given, beside)
        with self._lock:
            self._ledger.catch_up()
            self._expire_old()
            entry = waiting()
        if entry is None:
            entry = self._asked_anew(participant, given, waiting)
        with self._lock:
            self._look_ahead(entry)
        return Question.of(entry, self.space)

    def ahead(self, question: Question | int, patience: float = 0.0) -> list[list[dict[str, Any]]]:
        """The options of questions that may come next, as far as they have been computed ahead.

        So that what is shown of them can be made and loaded while somebody thinks; ``patience``: seconds to
        wait for each.  Which of them is asked, if any, depends on the answer.
        """
        with self._lock:
            entry = self._ledger.state.entries[self._number(question)]
            coming = self._situations_after(entry) if entry.status == "open" and self._prefetch else []
        found = [self._prefetch.known(one, patience) for one in coming] if self._prefetch else []
        return [[self.space.described(option) for option in one[0]] for one in found if one is not None]

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
        self._change("answered", question, body, read)

    def skip(
        self, question: Question | int, seconds: float | int | None = None, *, reason: str | None = None
    ) -> None:
        """Record that there will be no answer; the model learns nothing from it."""
        why = {} if reason is None else {"reason": validation.checked_reason(reason)}
        self._change("skipped", question, {"seconds": validation.checked_time(seconds), **why})

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
        self._change("amended", question, body, read)

    def void(self, question: Question | int, reason: str | None = None) -> None:
        """Take a question and its answer out of the model; both stay in the record."""
        self._change("voided", question, {"reason": validation.checked_reason(reason)})

    def expire(self, question: Question | int) -> None:
        """Give up waiting for an answer, so that the question may be asked again."""
        self._change("expired", question, {})

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
        return self.record_all([given | told], key)[0]

    def record_all(self, answers: Sequence[Mapping[str, Any]], key: str | None = None) -> list[Question]:
        """Add several such questions, or none if one of them is refused.

        Each is a dictionary of what :meth:`record` takes, such as ``{"options": [...], "answer": 1}``.
        """
        validation.check_key(key)
        bodies = [validation.recorded(self.plan, **given) for given in answers]
        keys = [key if index == 0 else f"{key} {index}" for index in range(len(bodies) if key else 0)]
        for body, name in zip(bodies, keys, strict=False):
            body["key"] = name
        with self._lock:
            entries, known = self._ledger.state.entries, self._ledger.state.keys
            if keys:
                self._ledger.catch_up()
            while bodies and key not in known:
                drafts = [Draft("asked", number, body) for number, body in enumerate(bodies, len(entries))]
                if self._ledger.add_all(drafts):
                    return [Question.of(entries[draft.question], self.space) for draft in drafts]
            there = [entries[known[name]] for name in keys if name in known]
            if [list(entry.options) for entry in there] != [body["options"] for body in bodies]:
                got = f"{key!r}, by which other answers were recorded"
                raise Conflict("key", "be new, or come with the same options", got, "Choose another key.")
            return [Question.of(entry, self.space) for entry in there]

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
        given = validation.checked_context(self.space, context)
        rival = None if reference is None else validation.checked_reference(self.space, reference, given)
        return best(self.belief(participant), self.plan, self.space.domain(given), rival)

    def status(self, context: Setting | None = None, participant: str | None = None) -> Status:
        """The number of answers, the expected gain of one more, and whether to go on.

        ``participant``: of whom, where people differ.
        """
        given = validation.checked_context(self.space, context)
        with self._lock:
            self._ledger.catch_up()
            state = State(dict(self._ledger.state.entries), self._ledger.state.last)
        participant = self.whose(participant)
        if self.plan.people.participants == "separate":
            state = state.of_participant(participant)
        counts = {status: state.count(status) for status in ("skipped", "voided", "open", "expired")}
        situation = Situation.of(state, given, self.plan.people, participant)
        answers, belief, look = situation.answers, self._belief(situation.answers, participant), None
        if belief is not None:
            query, (_, prior) = self.model.points(self._options(situation)[0]), self.model.prepared(answers)

            def answered(points: Tensor, answer: Answer) -> Data:
                return self.model.answered(answers, points, answer, participant)

            look = outlook(belief, self.plan, prior, self.space.domain(given), query, answered)
        found = self._checks(state.having("answered"), belief)
        return Status(
            answers=len(answers),
            undecided=sum(isinstance(one.answer, Tie) for one in answers),
            **counts,
            gain=None if look is None else look.gain,
            regret=None if look is None else look.regret,
            hint=hint(self.plan, len(answers), look, found),
            checks=found,
        )

    def checks(self, participant: str | None = None) -> list[Check]:
        """Whether the answers look as if somebody had looked at the questions.

        ``participant``: of whom, in a study of separate people; by default of all together.

        While one of them is flagged, no probability is to be trusted: a model explains the answers of a coin
        as well.  Only checks that apply are listed: ``sides`` (an option is chosen for its place), ``model``
        (coin flips explain the answers better), ``repeats`` (the same question gets another answer) and
        ``speed`` (answers come faster than anybody can choose).
        """
        with self._lock:
            self._ledger.catch_up()
            state = self._ledger.state
            answered = state.having("answered")
        people = self.participants() if self.plan.people.participants == "separate" else []
        if participant is None and len(people) > 1:
            each = (state.of_participant(who).having("answered") for who in people)
            return checks(self.plan, [entry for theirs in each for entry in theirs], None)
        if people:
            answered = state.of_participant(self.whose(participant)).having("answered")
        return self._checks(answered, self._belief(tuple(entry.answered for entry in answered)))

    def _checks(self, answered: Sequence[Entry], belief: Belief | None) -> list[Check]:
        several = len({entry.participant for entry in answered}) > 1 and not self.plan.people.differ
        answers = tuple(entry.answered for entry in answered)
        by_rater = self.model.by_rater(answers) if several and belief is not None else None
        return checks(self.plan, answered, belief, by_rater)

    def belief(self, participant: str | None = None) -> Belief:
        """Posterior of f given all answers, over the unit cube (``space.unit`` maps settings to it).

        ``participant``: about whose utility, where people differ; of a population study, by default about
        what all have in common.
        """
        validation.check_participant(participant)
        with self._lock:
            self._ledger.catch_up()
            participant = self.whose(participant)
            answers = Situation.of(self._ledger.state, None, self.plan.people, participant).answers
        return self.model.belief(answers, participant)

    def predict(
        self,
        settings: Setting | Sequence[Setting],
        context: Setting | None = None,
        participant: str | None = None,
    ) -> list[Prediction]:
        """What the model says of settings in natural units, with intervals of 95%."""
        given = validation.checked_context(self.space, context)
        each = validation.checked_settings(settings, given)
        points = torch.stack([self.space.unit(setting) for setting in each])
        best = self.space.unit(self.best(context, participant=participant).params)[None]
        return predictions(self.belief(participant), self.plan, points, each, best)

    def compare(
        self, first: Setting, second: Setting, context: Setting | None = None, participant: str | None = None
    ) -> Comparison:
        """Which of two settings is better, and how sure that is."""
        given = validation.checked_context(self.space, context)
        one, other = (
            self.space.unit(each)[None] for each in validation.checked_settings([first, second], given)
        )
        return comparison(self.belief(participant), one, other)

    def top(
        self, k: int = 5, context: Setting | None = None, participant: str | None = None
    ) -> list[Prediction]:
        """The best of the settings that were asked about and of the recommended one, or of all items.

        Best first.
        """
        given = validation.checked_context(self.space, context) or {}
        best = self.best(context, participant=participant).params
        asked = [dict(option) for entry in self.history() for option in entry.options]
        asked += self._best_items(validation.checked_count("k", k), given, participant)
        here = [one for one in [best, *asked] if all(one[name] == value for name, value in given.items())]
        distinct = list({as_text(one): one for one in here}.values())
        found = self.predict(distinct, context, participant)
        return sorted(found, key=lambda one: -one.mean)[:k]

    def _best_items(self, k: int, context: Setting, participant: str | None) -> list[dict[str, Any]]:
        """The items of highest mean, asked about or not; none where there are no items to choose from."""
        domain = self.space.domain(context)
        if domain is None or not domain.free_pools or domain.listed is None:
            return []
        points, belief = domain.listed, self.belief(participant)
        with torch.no_grad():
            means = torch.cat([belief.mean(part) for part in points.split(_PART)])
        best = means.topk(min(k, len(points))).indices
        return [self.space.natural(point) for point in points[best]]

    def importance(
        self, context: Setting | None = None, participant: str | None = None
    ) -> dict[str, Estimate]:
        """Which parameters matter: the share of the variance of f that each takes part in, most first."""
        given = validation.checked_context(self.space, context)
        return importance(self.belief(participant), self.space, self.seed, given)

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
            return dict(Counter(entry.participant for entry in self._ledger.state.having("answered")))

    def raters(self, participant: str | None = None) -> Raters:
        """What is learned of the people: lapses, noise, and how much they differ, with intervals of 95%."""
        with self._lock:
            self._ledger.catch_up()
            participant = self.whose(participant)
            answers = Situation.of(self._ledger.state, None, self.plan.people, participant).answers
        return self.model.raters(answers)

    def whose(self, participant: str | None = None) -> str | None:
        """Whose utility is modelled for this participant; None if it is that of all.

        In a study of separate people the only one need not be named, one of several must be; as in
        :meth:`ask`, None is a person, if somebody without a name has answered.
        """
        if self.plan.people.participants != "separate":
            return participant if self.plan.people.differ else None
        known = self.participants()
        if participant is not None or not known or None in known:
            return participant
        if len(known) > 1:
            names = ", ".join(map(repr, known))
            expected = "be named in a study of separate people"
            raise Refused("participant", expected, "none", f"Choose one of {names}.")
        return known[0]

    def count(self, status: EntryStatus = "answered") -> int:
        """Number of questions of this status; does not read the record, as every other method does."""
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
        with self._lock:
            events = self._ledger.record.events()
        return replayed(self.plan, events, step)

    def programs(self) -> dict[int, dict[str, Any]]:
        """Versions of the programs that wrote to the record, by the first event that each wrote."""
        with self._lock:
            self._ledger.catch_up()
            return copy.deepcopy(self._ledger.state.programs)

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Write a copy of the record to a new SQLite file, and check it; others may go on writing."""
        backup(self._ledger.record, path)

    def close(self) -> None:
        """Release the storage; every answer is already recorded."""
        if self._prefetch is not None:
            self._prefetch.close()
        self._ledger.record.close()

    # the record

    def _change(
        self, kind: str, question: Question | int, body: dict[str, Any], answer: Answer | None = None
    ) -> None:
        with self._lock:
            number = self._number(question)
            self._ledger.change(kind, number, body, lambda entry: entry.allows(kind, answer))

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

    def _waiting(
        self, participant: str | None, context: Setting | None, beside: Collection[int]
    ) -> Entry | None:
        """The open question of this participant, or one that expired, asked again; none of ``beside``."""
        state = self._ledger.state
        for entry in state.having("open"):
            if entry.id in beside:
                continue
            if entry.participant == participant and as_text(entry.context) == as_text(context):
                return entry
        separate = self.plan.people.participants == "separate"  # others have questions of their own
        for entry in state.having("expired"):
            if entry.id in beside or (separate and entry.participant != participant):
                continue
            if as_text(entry.context) == as_text(context):
                taken = self._ledger.add("again", entry.id, {"participant": participant})
                return state.entries[entry.id] if taken else self._waiting(participant, context, beside)
        return None

    def _asked_anew(
        self, participant: str | None, context: Setting | None, waiting: Callable[[], Entry | None]
    ) -> Entry:
        """A new question, or one that is ``waiting`` by the time it is chosen.

        Nobody waits for a question of another person who has a model of their own.  Of one model, questions
        are chosen one after the other, since each depends on the one before.
        """
        if context is not None and self.space.constraints:
            self.plan.check_enough(context)
        with self._asking_of(participant):
            entry = None
            while entry is None:
                entry = self._if_alone(participant, context, waiting)
            return entry

    @contextmanager
    def _asking_of(self, participant: str | None) -> Iterator[None]:
        """Alone among those who choose a question by the same model."""
        if self.plan.people.participants == "separate":
            with self._lock:
                asking = self._asking.setdefault(participant, threading.Lock())
            with asking:
                yield
        else:
            with self._asking[None], self._ledger.turn(self._catch_up):
                yield

    def _if_alone(
        self, participant: str | None, context: Setting | None, waiting: Callable[[], Entry | None]
    ) -> Entry | None:
        """A new question; None if another was asked by the same model meanwhile, which it might repeat.

        It is chosen without the lock, so that others can be answered meanwhile.
        """
        with self._lock:
            if entry := waiting():
                return entry
            asked, seen = self._count_asked(participant), self._ledger.state.last
            situation = Situation.of(self._ledger.state, context, self.plan.people, participant)
        options, order = self._options(situation)
        body = {"options": options, "order": order, "participant": participant}
        body |= {"context": context, "seen": seen}
        with self._lock:
            while self._count_asked(participant) == asked:
                number = len(self._ledger.state.entries)
                if self._ledger.add("asked", number, body):
                    return self._ledger.state.entries[number]
                if entry := waiting():  # one expired while we chose
                    return entry
        return None

    def _count_asked(self, participant: str | None) -> int:
        """Number of questions that the same model has asked."""
        entries = self._ledger.state.entries
        if self.plan.people.participants != "separate":
            return len(entries)
        return sum(entry.participant == participant for entry in entries.values())

    def _catch_up(self) -> bool:
        with self._lock:
            return self._ledger.catch_up()

    def _expire_old(self) -> None:
        if self.plan.expires is None:
            return
        latest = time.time() - self.plan.expires

        def is_late(entry: Entry) -> bool:
            return entry.status == "open" and entry.asked < latest

        for entry in filter(is_late, self._ledger.state.having("open")):
            self._ledger.change("expired", entry.id, {}, is_late)

    # queries

    def _belief(self, answers: tuple[Answered, ...], participant: str | None = None) -> Belief | None:
        """The posterior once there is a model; None before."""
        ready = len(answers) >= self.plan.initial and self.model.is_ready(answers)
        return self.model.belief(answers, participant) if ready else None

    def _look_ahead(self, entry: Entry) -> None:
        if self._prefetch is None:
            return
        # in one model of all, what others answer makes every query obsolete but the last one's
        group = entry.participant if self.plan.people.participants == "separate" else None
        self._prefetch.expect(self._situations_after(entry), group)

    def _situations_after(self, entry: Entry) -> list[Situation]:
        """One for each likely answer to an open question."""
        before = self._ledger.state.having("answered")
        likely = self.plan.kind.likely_answers(self.size, before[-1].answer if before else None)
        coming = [self._ledger.state.if_answered(entry.id, answer) for answer in likely]
        return [Situation.of(state, entry.context, self.plan.people, entry.participant) for state in coming]


def _settings(plan: Plan, storage: str | None) -> dict[str, Any]:
    """What is stored of a plan; nothing of one in memory whose kernel cannot be stored."""
    try:
        return plan.to_dict()
    except Refused:
        if storage is not None:
            raise
        return {}
