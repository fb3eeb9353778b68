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

__all__ = ["Asking", "Done", "asked_in_a_row"]


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
        while asking.target is None or answers_of(study) < asking.target:
            if not answered(study.ask(asking.participant, asking.context)):
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
            print_best(out, study, study.best(asking.context))
    return Done(count, count - before, interrupted)
