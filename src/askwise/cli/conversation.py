"""Many questions in a row, put to a person in the terminal or answered by a command."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.text import Text

from askwise.cli.screen import counted, print_best, progress_line, question_table
from askwise.cli.session import Session
from askwise.cli.telling import Telling
from askwise.errors import Conflict, Refused
from askwise.study import Question, Study, labels

_SHORT = {"t": "tie", "s": "skip", "u": "undo", "q": "quit"}


@dataclass(frozen=True)
class Interview:
    """Whom to ask, until when, and where to show it."""

    session: Session
    target: int | None
    """How many answers the study shall have; None for no end."""
    participant: str | None
    context: dict[str, Any] | None
    console: Console

    @property
    def study(self) -> Study:
        """The study that asks."""
        return self.session.study

    @property
    def enough(self) -> bool:
        """Whether the study has its answers, whoever gave them."""
        return self.target is not None and self.study.count() >= self.target


@dataclass(frozen=True)
class Done:
    """What came of an interview."""

    answers: int
    """How many the study has."""
    given: int
    """How many of them were added now."""
    interrupted: bool


def asked_in_a_row(interview: Interview, answered: Callable[[Question], bool], intro: str = "") -> Done:
    """Ask until there are enough answers, ``answered`` returns False, or somebody presses Ctrl-C."""
    study, out = interview.study, interview.console
    before, interrupted = study.count(), False
    if interview.target is not None and before >= interview.target:
        expected, advice = f"be more than the study has, {before}", "It counts all answers of the study."
        raise Refused("--answers", expected, interview.target, advice)
    if intro:
        out.print(Text(intro, style="dim"))
    try:
        while not interview.enough:
            question = study.ask(interview.participant, interview.context)
            # others may have answered while it was chosen
            if interview.enough or not answered(question):
                break
    except KeyboardInterrupt:
        interrupted = True
    count = study.count()
    if interrupted:
        has = f"the record has {counted(count, 'answer')}"
        out.print(f"\nStopped. Nothing is lost: {has}. The same command goes on.")
    elif count:
        out.print()
        if not study.space.contexts or interview.context:
            print_best(out, interview.session, study.best(interview.context))
    return Done(count, count - before, interrupted)


def told_unless_taken(interview: Interview, question: Question, tell: Callable[[], None]) -> bool:
    """Tell an answer; if somebody else has given one meanwhile, say so, and theirs stays."""
    taken = interview.study.entry(question.id).status not in ("open", "expired")
    if not taken:
        try:
            tell()
        except Conflict:
            taken = True
    if taken:
        say = f"Somebody else answered question {question.id} meanwhile; their answer stays."
        interview.console.print(say)
    return not taken


def conversation(interview: Interview) -> Done:
    """Ask a person until there are enough answers or they have had enough."""
    person = _Person(interview)
    return asked_in_a_row(interview, person.answered, f"Keys, each followed by Enter: {person.keys}.")


@dataclass
class _Person:
    interview: Interview
    last: Question | None = None
    """What was answered last, as long as that can be undone."""

    @property
    def keys(self) -> str:
        names = labels(self.interview.study.size)
        short = ", ".join(f"{key} {word}" for key, word in _SHORT.items() if key.upper() not in names)
        return f"{self.interview.study.plan.kind.keys(names)}, {short}"

    def answered(self, question: Question) -> bool:
        """Show a question and record the reply; False if that was the last."""
        out = self.interview.console
        out.print()
        out.print(progress_line(self.interview.study.count(), self.interview.target))
        self._show(question)
        began = time.monotonic()
        while True:
            word = self._heard()
            if word == "quit":
                return False
            if word == "undo":
                return self._undone()
            told = self._told(word)
            if told is not None:
                break
        seconds = round(time.monotonic() - began, 3)
        record = lambda: told.record(self.interview.study, question.id, seconds=seconds)  # noqa: E731
        if told_unless_taken(self.interview, question, record):
            self.last = question
        return True

    def _undone(self) -> bool:
        """Take the last answer back, and ask for another one."""
        out, study, question = self.interview.console, self.interview.study, self.last
        if question is None:
            out.print("There is nothing to undo: no answer was given since the start.")
            return True
        study.void(question, "undone in the terminal")
        self.last = None
        out.print("The last answer is taken back. Answer again, or s to leave it out.")
        self._show(question)
        while True:
            word = self._heard()
            if word == "quit":
                return False
            told = None if word == "undo" else self._told(word)
            if told is not None:
                break
        if told.answer is not None:
            study.amend(question, told.answer, reason="undone in the terminal")
            self.last = question
        return True

    def _show(self, question: Question) -> None:
        out, session = self.interview.console, self.interview.session
        out.print(Text(f"Question {question.id}: {session.config.question}", style="bold"))
        out.print()
        out.print(question_table(question.options, session.config.space))
        out.print()

    def _heard(self) -> str:
        """What was typed, in full; "quit" at the end of the input."""
        self.interview.console.print("> ", end="")
        line = sys.stdin.readline()
        if not line:
            return "quit"
        names = labels(self.interview.study.size)
        short = {key: full for key, full in _SHORT.items() if key.upper() not in names or len(names) == 1}
        return short.get(line.strip().lower(), line.strip())

    def _told(self, word: str) -> Telling | None:
        try:
            return Telling.of(self.interview.study, word)
        except Refused:
            self.interview.console.print(f"{word!r} is no answer here. Keys: {self.keys}.")
            return None
