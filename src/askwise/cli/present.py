"""Options shown on a device, by a command for each, while a person answers at the terminal."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.console import Console
from rich.text import Text

from askwise.cli.places import environment
from askwise.commands import Machine, filled, template_words
from askwise.errors import Refused
from askwise.study import Question, Study, labels

AGAIN = "play"
"""What to type to have options presented again; letters of options may follow."""


@dataclass(frozen=True)
class Presenter:
    """A command that presents one option."""

    words: Sequence[str]
    machine: Machine
    console: Console

    @classmethod
    def of(cls, command: str, study: Study, timeout: float | None, console: Console) -> "Presenter":
        """Check the command before anything is asked."""
        words = template_words(command, study.space.parameters, "--present")
        # what is typed meanwhile is for us
        return cls(words, Machine("--present", timeout, reads=False), console)

    def present(self, question: Question, wanted: Sequence[str] = ()) -> None:
        """Present options one after the other, all of them or those with these letters; say what failed."""
        names = labels(len(question.options))
        if unknown := [name for name in wanted if name.upper() not in names]:
            self.console.print(
                f"There is no option {unknown[0]!r}; type {AGAIN}, or {AGAIN} {names[-1]}, say."
            )
            return
        for name in [name.upper() for name in wanted] or names:
            if len(names) > 1:
                self.console.print(Text(f"Presenting {name} ...", style="dim"))
            if problem := self._problem(question, names.index(name), name):
                self.console.print(f"{name if len(names) > 1 else 'It'} was not presented: {problem}")

    def _problem(self, question: Question, place: int, name: str) -> str:
        """Why an option could not be presented; nothing if it was."""
        (option,) = options = [question.options[place]]
        given = environment(replace(question, options=options), {"label": name})
        try:
            ended = self.machine.run(filled(self.words, option), given)
        except Refused as error:
            return str(error)
        return f"{ended.how}. The question stays open." if ended is not None and ended.code else ""
