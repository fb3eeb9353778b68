"""The next question of a study that several people and programs may use: chosen in turn, or ahead of time."""

import functools
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from askwise.space import Setting
from askwise.study.answers import Answer
from askwise.study.ledger import Ledger
from askwise.study.plan import Plan
from askwise.study.prefetch import Prefetch
from askwise.study.state import Entry, as_text

if TYPE_CHECKING:
    from askwise.study.model import Model
    from askwise.study.questions import Situation
    from askwise.study.snapshot import Choosing, Chosen
else:  # torch, which takes seconds to import, is needed only once a question is chosen
    Model = Situation = Choosing = Chosen = Any


class Asking:
    """Finds the question that waits for somebody, or chooses one and records it."""

    def __init__(
        self,
        ledger: Ledger,
        lock: threading.RLock,
        plan: Callable[[], Plan],
        model: Callable[[], Model],
        prefetch: bool | Choosing,
    ) -> None:
        """``plan`` and ``model``: as they are now; ``prefetch``: as in :class:`askwise.Study`."""
        self._ledger, self._lock, self._plan, self._model = ledger, lock, plan, model
        self._choosing: dict[str | None, threading.Lock] = {None: threading.Lock()}
        self.prefetch: Prefetch[tuple[Model, Situation], Chosen] | None = None
        if prefetch:
            ahead = (lambda key: prefetch(*key)) if callable(prefetch) else None
            self.prefetch = Prefetch(lambda key: _next_question(*key), ahead)
        self.choose: Choosing = _next_question if self.prefetch is None else self._chosen_ahead

    def next(self, participant: str | None, context: Setting | None, beside: Collection[int]) -> Entry:
        """The next question for this participant; see :meth:`askwise.Study.ask`."""
        waiting = functools.partial(self._waiting, participant, context, beside)
        with self._lock:
            self._expire_old()
            entry = waiting()
        if entry is None:
            entry = self._asked_anew(participant, context, waiting)
        with self._lock:
            self._look_ahead(entry)
        return entry

    def known_after(self, entry: Entry, patience: float) -> list[list[dict[str, Any]]]:
        """Options of questions that may follow this one, as far as they are computed within ``patience``."""
        if self.prefetch is None or entry.status != "open":
            return []
        with self._lock:
            model, coming = self._model(), self._situations_after(entry)
        found = (self.prefetch.known((model, one), patience) for one in coming)
        return [chosen[0] for chosen in found if chosen is not None]

    def close(self) -> None:
        """Stop computing ahead."""
        if self.prefetch is not None:
            self.prefetch.close()

    def _waiting(
        self, participant: str | None, context: Setting | None, beside: Collection[int]
    ) -> Entry | None:
        """The open question of this participant, or one that expired, asked again; none of ``beside``."""
        state, plan = self._ledger.state, self._plan()
        for entry in state.having("open"):
            if entry.id in beside:
                continue
            if entry.participant == participant and as_text(entry.context) == as_text(context):
                return entry
        separate = plan.people.participants == "separate"  # others have questions of their own
        for entry in state.having("expired"):
            if entry.id in beside or (separate and entry.participant != participant):
                continue
            if as_text(entry.context) == as_text(context) and all(map(plan.space.allows, entry.options)):
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
        if context is not None and self._plan().space.constraints:
            self._plan().check_enough(context)
        with self._alone(participant):
            entry = None
            while entry is None:
                entry = self._if_alone(participant, context, waiting)
            return entry

    @contextmanager
    def _alone(self, participant: str | None) -> Iterator[None]:
        """Alone among those who choose a question by the same model."""
        if self._plan().people.participants == "separate":
            with self._lock:
                choosing = self._choosing.setdefault(participant, threading.Lock())
            with choosing:
                yield
        else:
            with self._choosing[None], self._ledger.turn(self._catch_up):
                yield

    def _if_alone(
        self, participant: str | None, context: Setting | None, waiting: Callable[[], Entry | None]
    ) -> Entry | None:
        """A new question; None if it might repeat one of the same model meanwhile, or the study was changed.

        It is chosen without the lock, so that others can be answered meanwhile.
        """
        with self._lock:
            if entry := waiting():
                return entry
            asked, seen, model = self._count_asked(participant), self._ledger.state.last, self._model()
            situation = self._situation(model.plan, context, participant)
        options, order = self.choose(model, situation)
        body = {"options": options, "order": order, "participant": participant}
        body |= {"context": context, "seen": seen}
        with self._lock:
            while self._count_asked(participant) == asked and model is self._model():
                number = len(self._ledger.state.entries)
                if self._ledger.add("asked", number, body):
                    return self._ledger.state.entries[number]
                if entry := waiting():  # one expired while we chose
                    return entry
        return None

    def _count_asked(self, participant: str | None) -> int:
        """Number of questions that the same model has asked."""
        state = self._ledger.state
        separate = self._plan().people.participants == "separate"
        return state.count_of(participant) if separate else len(state.entries)

    def _catch_up(self) -> bool:
        with self._lock:
            return self._ledger.catch_up()

    def _expire_old(self) -> None:
        """Give up questions that wait for longer than the plan says."""
        expires = self._plan().expires
        if expires is None:
            return
        latest = time.time() - expires

        def is_late(entry: Entry) -> bool:
            return entry.status == "open" and entry.asked < latest

        for entry in filter(is_late, self._ledger.state.having("open")):
            self._ledger.change("expired", entry.id, {}, is_late)

    def _chosen_ahead(self, model: Model, situation: Situation) -> Chosen:
        assert self.prefetch is not None
        return self.prefetch.get((model, situation))

    def _look_ahead(self, entry: Entry) -> None:
        if self.prefetch is None:
            return
        # in one model of all, what others answer makes every query obsolete but the last one's
        group = entry.participant if self._plan().people.participants == "separate" else None
        model = self._model()
        self.prefetch.expect([(model, one) for one in self._situations_after(entry)], group)

    def _situations_after(self, entry: Entry) -> list[Situation]:
        """One for each likely answer to an open question."""
        plan, context, who = self._plan(), entry.context, entry.participant
        likely = plan.kind.likely_answers(plan.size, self._last_answer)
        coming = (replace(entry, status="answered", answer=answer) for answer in likely)
        return [self._situation(plan, context, who, supposed) for supposed in coming]

    @property
    def _last_answer(self) -> Answer | None:
        """The answer to the last question that has one."""
        latest_first = reversed(self._ledger.state.entries.values())
        return next((entry.answer for entry in latest_first if entry.status == "answered"), None)

    def _situation(
        self, plan: Plan, context: Setting | None, participant: str | None, supposed: Entry | None = None
    ) -> Situation:
        """All that the next question depends on beside the plan, now or if a question were answered so."""
        from askwise.study.questions import Situation

        return Situation.of(self._ledger.state, context, plan.people, participant, supposed)


def _next_question(model: Model, situation: Situation) -> Chosen:
    from askwise.study.questions import next_question

    return model.recent.get(("next", situation), lambda: next_question(model, situation))
