"""Questions asked at a terminal, one after another."""

import functools
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from rich.console import Console
from rich.text import Text

from askwise.cli.app import counted
from askwise.cli.present import AGAIN, Presenter
from askwise.cli.reports import print_best
from askwise.cli.screen import progress_line, question_table
from askwise.cli.session import Session
from askwise.cli.telling import Telling, undone_sentence
from askwise.errors import Conflict, Refused, printable
from askwise.study import Question, Study, labels

_SHORT = {"t": "tie", "s": "skip", "u": "undo", "q": "quit"}


def unnamed(study: Study, participant: str | None) -> str:
    """A note for those who forget to say who answers, where that matters."""
    if participant is not None or not study.plan.people.differ:
        return ""
    return "These answers are of one person without a name; --participant NAME says who answers."


@dataclass(frozen=True)
class Interview:
    """Who is asked, until when, and where questions are shown."""

    session: Session
    target: int | None
    """Number of answers at which to stop; None to go on until somebody quits."""
    participant: str | None
    context: dict[str, Any] | None
    console: Console

    @property
    def count(self) -> int:
        """Number of answers: of the study, whoever gave them, or of the participant where people differ."""
        study = self.session.study
        if not study.plan.people.differ:
            return study.count()
        return study.answers_by_participant().get(self.participant, 0)

    @property
    def enough(self) -> bool:
        """Whether there are enough answers."""
        return self.target is not None and self.count >= self.target


Done = dict[Literal["answers", "given", "interrupted"], int]
"""How many answers the study has, how many of them are new, and whether Ctrl-C ended it."""


def interviewed(interview: Interview, talk: Callable[[], None], intro: str = "") -> Done:
    """Let ``talk`` ask until it returns or somebody presses Ctrl-C; then show what is recommended."""
    study, out = interview.session.study, interview.console
    before, interrupted, differ = interview.count, False, study.plan.people.differ
    if interview.enough:
        whose = " of this participant" if differ else ""
        out.print(f"Done: there are {counted(before, 'answer')}{whose}, and {interview.target} were wanted.")
    else:
        for line in (intro, unnamed(study, interview.participant)):
            if line:
                out.print(Text(line, style="dim"))
        try:
            talk()
        except KeyboardInterrupt:
            interrupted = True
    count = interview.count
    if interrupted:
        kept = counted(count, "answer")
        out.print(f"\nStopped. Nothing is lost: the record has {kept}. The same command resumes.")
    elif count:
        out.print()
        if not study.space.contexts or interview.context:
            who = interview.participant if differ else None
            found = study.best(interview.context, participant=who)
            print_best(out, interview.session, found, participant=who)
    return {"answers": count, "given": count - before, "interrupted": interrupted}


def record_unless_answered(interview: Interview, question: Question, record: Callable[[], None]) -> bool:
    """Record an answer, unless somebody else has answered in the meantime; then say so."""
    if interview.session.study.entry(question.id).status in ("open", "expired"):
        with suppress(Conflict):
            record()
            return True
    interview.console.print(f"Somebody else answered question {question.id} meanwhile; their answer stays.")
    return False


def conversation(interview: Interview, presenter: Presenter | None = None) -> Done:
    """Ask a person until there are enough answers or they quit; options may be presented on a device."""
    person = _Person(interview, presenter)
    if hasattr(sys.stdin, "reconfigure"):
        sys.stdin.reconfigure(errors="backslashreplace")  # bytes that are no text are no answer
    return interviewed(interview, person.talk, f"Keys, each followed by Enter: {person.keys}.")


@dataclass
class _Person:
    interview: Interview
    presenter: Presenter | None = None

    @property
    def keys(self) -> str:
        study = self.interview.session.study
        names = labels(study.size)
        short = ", ".join(f"{key} {word}" for key, word in _SHORT.items() if key.upper() not in names)
        again = "" if self.presenter is None else f", {AGAIN} to have it presented again"
        if again and len(names) > 1:
            again = f", {AGAIN} or {AGAIN} {names[0].lower()} to have options presented again"
        return f"{study.plan.kind.keys(names)}, {short}{again}"

    def talk(self) -> None:
        """Ask until there are enough answers or the person quits."""
        study = self.interview.session.study
        while not self.interview.enough:
            question = study.ask(self.interview.participant, self.interview.context)
            # others may have answered while it was chosen
            if self.interview.enough or not self.answered(question):
                return

    def answered(self, question: Question) -> bool:
        """Show a question and record the reply; False if the person quits."""
        study, out = self.interview.session.study, self.interview.console
        out.print()
        out.print(progress_line(self.interview.count, self.interview.target))
        self._show(question)
        began = time.monotonic()
        reply = self._reply(question)
        if reply == "undo":
            self._undo()
            return True
        if not isinstance(reply, Telling):
            return False
        seconds = round(time.monotonic() - began, 3)
        record = functools.partial(reply.record, study, question.id, seconds=seconds)
        record_unless_answered(self.interview, question, record)
        return True

    def _undo(self) -> None:
        """Take back the last reply of this participant; its question is asked next."""
        study, out = self.interview.session.study, self.interview.console
        try:
            (question,) = study.undo(1, self.interview.participant)
        except Refused:
            out.print("There is nothing to undo.")
            return
        out.print(undone_sentence(study, [question]))

    def _show(self, question: Question) -> None:
        out, session = self.interview.console, self.interview.session
        out.print(Text(printable(f"Question {question.id}: {session.config.question}"), style="bold"))
        out.print()
        out.print(question_table(question.options, session.config.space))
        out.print()
        if self.presenter is not None:
            self.presenter.present(question)

    def _reply(self, question: Question) -> Telling | str:
        """What was typed: an answer, "undo" or, also at the end of the input, "quit"."""
        study, out = self.interview.session.study, self.interview.console
        names = labels(study.size)
        short = {key: full for key, full in _SHORT.items() if key.upper() not in names or len(names) == 1}
        unconfirmed: Telling | None = None
        while True:
            out.print("> ", end="")
            line = sys.stdin.readline()
            word = short.get(line.strip().lower(), line.strip()) if line else "quit"
            if unconfirmed is not None and not word:
                return unconfirmed
            if word == "quit" or (word == "undo" and unconfirmed is None):
                return word
            unconfirmed = None
            if self.presenter is not None and word.lower().split()[:1] == [AGAIN]:
                self.presenter.present(question, word.split()[1:])
                continue
            if word == "undo":
                out.print("Not recorded. Answer again.")
                continue
            try:
                reply = Telling.of(study, word)
            except Refused:
                out.print(f"{word!r} is not an answer here. Keys: {self.keys}.")
                continue
            if reply.answer is None or not (reply.answer.compound and sys.stdin.isatty()):
                if reply.read_back:
                    out.print(Text(reply.read_back, style="dim"))
                return reply
            out.print(f"{reply.read_back}. Enter records it; or type another answer.")
            unconfirmed = reply
