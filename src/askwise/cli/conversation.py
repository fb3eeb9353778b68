"""Questions put to a person in the terminal."""

import sys
import time
from dataclasses import dataclass

from rich.text import Text

from askwise.cli.asking import Asking, Done, asked_in_a_row, told_unless_taken
from askwise.cli.replies import Reply, labels, read_reply
from askwise.cli.screen import progress_line, question_table
from askwise.cli.session import answers_of
from askwise.study import Question

__all__ = ["conversation"]

_SHORT = {"t": "tie", "s": "skip", "u": "undo", "q": "quit"}


def conversation(asking: Asking) -> Done:
    """Ask a person until there are enough answers or they have had enough."""
    person = _Person(asking)
    intro = f"Keys, each followed by Enter: {person.keys}."
    return asked_in_a_row(asking, person.answered, intro)


@dataclass
class _Person:
    asking: Asking
    last: Question | None = None
    """What was answered last, as long as that can be undone."""

    @property
    def keys(self) -> str:
        study = self.asking.study
        names = [name.lower() for name in labels(study.size)]
        own = {"binary": "y yes, n no", "duel": "a or b, the better one"}
        batch = f"the best one ({names[1 % study.size]}) or a ranking ({names[1 % study.size]}>{names[0]})"
        short = ", ".join(f"{key} {word}" for key, word in _SHORT.items() if key not in names)
        return f"{own.get(study.feedback, batch)}, {short}"

    def answered(self, question: Question) -> bool:
        """Show a question and record the reply; False if that was the last."""
        out = self.asking.console
        out.print()
        out.print(progress_line(answers_of(self.asking.study), self.asking.target))
        self._show(question)
        began = time.monotonic()
        while True:
            word = self._heard()
            if word == "quit":
                return False
            if word == "undo":
                return self._undone()
            reply = self._reply(word)
            if reply is not None:
                break
        seconds = round(time.monotonic() - began, 3)
        if told_unless_taken(self.asking, question, lambda: self._record(question, reply, seconds)):
            self.last = question
        return True

    def _record(self, question: Question, reply: Reply, seconds: float) -> None:
        study = self.asking.study
        if reply.kind == "skip":
            study.skip(question, seconds)
        elif reply.kind == "void":
            study.void(question)
        else:
            study.tell(question, **reply.told, seconds=seconds)

    def _undone(self) -> bool:
        """Take the last answer back, and ask for another one."""
        out, study, question = self.asking.console, self.asking.study, self.last
        if question is None:
            out.print("There is nothing to undo: no answer was given since the start.")
            return True
        study.void(question, "undone in the terminal")
        self.last = None
        out.print("The last answer is taken back. Answer again, or s to leave it out.")
        self._show(question)
        while True:
            word = self._heard()
            reply = None if word in ("quit", "undo") else self._reply(word)
            if word == "quit":
                return False
            if reply is not None:
                break
        if reply.kind == "answer":
            study.amend(question, **reply.told, reason="undone in the terminal")
            self.last = question
        return True

    def _show(self, question: Question) -> None:
        out, session = self.asking.console, self.asking.session
        out.print(Text(f"Question {question.id}: {session.config.question}", style="bold"))
        out.print()
        out.print(question_table(question.options, session.config.space))
        out.print()

    def _heard(self) -> str:
        """What was typed, in full; "quit" at the end of the input."""
        self.asking.console.print("> ", end="")
        line = sys.stdin.readline()
        names = [name.lower() for name in labels(self.asking.study.size)]
        word = line.strip().lower()
        if not line:
            return "quit"
        short = {key: full for key, full in _SHORT.items() if key not in names or len(names) == 1}
        return short.get(word, line.strip())

    def _reply(self, word: str) -> Reply | None:
        study = self.asking.study
        try:
            return read_reply(word, study.feedback, study.size)
        except ValueError:
            self.asking.console.print(f"{word!r} is no answer here. Keys: {self.keys}.")
            return None
