"""Many questions in a row, whoever answers them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.text import Text

from askwise.cli.screen import counted
from askwise.cli.session import Session, answers_of
from askwise.cli.verdict import print_best
from askwise.study import Question, Study

__all__ = ["Asking", "Done", "asked_in_a_row", "told_unless_taken"]


@dataclass(frozen=True)
class Asking:
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
        return self.target is not None and answers_of(self.study) >= self.target


@dataclass(frozen=True)
class Done:
    """What came of it."""

    answers: int
    """How many the study has."""
    given: int
    """How many of them were added now."""
    interrupted: bool


def asked_in_a_row(asking: Asking, answered: Callable[[Question], bool], intro: str = "") -> Done:
    """Ask until there are enough answers, ``answered`` returns False, or somebody presses Ctrl-C."""
    study, out = asking.study, asking.console
    before, interrupted = answers_of(study), False
    if asking.target is not None and before >= asking.target:
        raise ValueError(
            f"--answers must be more than the study has, {before}; got {asking.target}. "
            "It counts all answers of the study."
        )
    if intro:
        out.print(Text(intro, style="dim"))
    try:
        while not asking.enough:
            question = study.ask(asking.participant, asking.context)
            # others may have answered while it was chosen
            if asking.enough or not answered(question):
                break
    except KeyboardInterrupt:
        interrupted = True
    count = answers_of(study)
    if interrupted:
        has = f"the record has {counted(count, 'answer')}"
        out.print(f"\nStopped. Nothing is lost: {has}. The same command goes on.")
    elif count:
        out.print()
        if not study.space.contexts or asking.context:
            print_best(out, asking.session, study.best(asking.context))
    return Done(count, count - before, interrupted)


def told_unless_taken(asking: Asking, question: Question, tell: Callable[[], None]) -> bool:
    """Tell an answer; if somebody else has given one meanwhile, say so, and theirs stays."""
    if not _taken(asking.study, question):
        try:
            tell()
            return True
        except ValueError:
            if not _taken(asking.study, question):
                raise
    asking.console.print(f"Somebody else answered question {question.id} meanwhile; their answer stays.")
    return False


def _taken(study: Study, question: Question) -> bool:
    return study.history()[question.id].status not in ("open", "expired")
