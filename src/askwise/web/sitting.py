"""A participant's sitting: one question after the other, up to the planned number, then thanks and a code."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from askwise.errors import Conflict, NotFound
from askwise.study import Entry, Question, labels
from askwise.study.page import Page
from askwise.web.completion import completion_code
from askwise.web.presenting import Look, Presenting
from askwise.web.studies import Served, Studies

_PATIENCE = 20.0  # seconds to wait for a question that is being computed ahead
_WHY = "by the participant"


@dataclass(frozen=True)
class Shown:
    """A question as a participant sees it: nothing tells which option is whose."""

    id: int
    labels: list[str]
    looks: list[Look]
    again: bool = False
    """Whether it was answered, and another answer replaces that one."""


@dataclass(frozen=True)
class Moment:
    """Where a participant is."""

    answered: int
    planned: int | None
    shown: Shown | None = None
    """The question to answer; None at the end, or in a pause."""
    pause: bool = False
    """Whether to offer a break first."""
    paused: bool = False
    """Whether the study asks nothing for now."""
    noted: bool = True
    """Whether the last answer was taken; not if the question has another one, or is no longer theirs."""
    code: str | None = None
    """At the end, the completion code."""
    reveal: list[Look] = field(default_factory=list)
    """At the end, the recommended option, if participants are to see it."""


class Sitting:
    """What a participant does in one study; everything is in its record, nothing here."""

    def __init__(self, studies: Studies, presenting: Presenting, served: Served, who: str | None) -> None:
        """``who``: the participant."""
        self._studies, self._presenting, self._served, self._who = studies, presenting, served, who
        self._study, self._page = served.study, served.config.page

    @property
    def page(self) -> Page:
        """The page of the study."""
        return self._page

    def now(self, noted: bool = True) -> Moment:
        """The next question, the same one until it is answered; or the end."""
        answered, planned = self._answered(), self._page.answers
        if planned is not None and answered >= planned:
            return self.end(noted)
        if self._studies.is_paused(self._served):
            return Moment(answered, planned, paused=True, noted=noted)
        question = self._studies.ask(self._served, self._who, self._page.context)
        pause = self._page.pauses_after(answered)
        return Moment(answered, planned, self._shown(question), pause, noted=noted)

    def answer(self, question: int, told: Mapping[str, Any], seconds: float | None, again: bool) -> Moment:
        """Record an answer, or replace the last one; then the next question.

        The same answer sent again changes nothing.  An answer to a question that has another one by now, or
        is somebody else's, is not noted.
        """
        try:
            self._served.check_asked(question, self._who)
            if again:
                self._check_last(question)
                self._study.amend(question, reason=_WHY, **told)
            else:
                self._study.tell(question, seconds=seconds, **told)
        except (NotFound, Conflict):
            return self.now(noted=False)
        self._studies.tell_others(self._served)
        return self.now()

    def back(self) -> Moment:
        """The last question that this participant has answered, to be answered again."""
        last = self._last()
        if last is None:
            return self.now()
        question = Question.of(last, self._study.space)
        return Moment(self._answered(), self._page.answers, self._shown(question, again=True))

    def end(self, noted: bool = True) -> Moment:
        """Thanks, with the completion code."""
        answered = self._answered()
        secret = self._studies.file.kept.secret
        code = self._page.code or completion_code(secret, self._served.name, self._who)
        reveal = self._reveal() if answered else []
        return Moment(answered, self._page.answers, noted=noted, code=code, reveal=reveal)

    def ahead(self, question: int) -> list[Look]:
        """Make what is shown of the questions that may come next; what browsers may load in advance."""
        self._served.check_asked(question, self._who)
        if self._presenting.stimulus(self._served) is None:
            return []
        coming = self._study.ahead(question, _PATIENCE)
        return self._presenting.looks(self._served, [option for options in coming for option in options])

    def _answered(self) -> int:
        return self._study.answers_by_participant().get(self._who, 0)

    def _shown(self, question: Question, again: bool = False) -> Shown:
        looks = self._presenting.looks(self._served, question.options)
        return Shown(question.id, labels(len(looks)), looks, again)

    def _last(self) -> Entry | None:
        mine = [one for one in self._study.history() if one.participant == self._who]
        return next(
            (one for one in reversed(mine) if one.status == "answered" and one.seen is not None), None
        )

    def _check_last(self, question: int) -> None:
        last = self._last()
        if last is None or last.id != question:
            raise Conflict(
                "question", "be the last that was answered", repr(question), "Answer the next one."
            )

    def _reveal(self) -> list[Look]:
        if not self._page.reveal:
            return []
        whose = self._who if self._study.plan.people.differ else None
        best = self._study.best(self._page.context, participant=whose).params
        return self._presenting.looks(self._served, [self._study.space.described(best)])
