"""Options that a program makes: it is run for each, and writes a file."""

import re
import tempfile
from pathlib import Path
from typing import ClassVar

from askwise.commands import Machine, filled, template_words, variables
from askwise.errors import Failed, Refused
from askwise.stimuli.base import Setting, Stimulus
from askwise.stimuli.content import SUFFIXES, Content

OUT = "out"
"""What stands in braces for the file that the command is to write; ``{out.png}`` says what it is."""
_OUT = re.compile(r"\{(out(?:\.[a-z0-9]+)?)\}")


class Kind(Stimulus):
    """A command with values in it, run without a shell."""

    key: ClassVar[str] = "command"
    example: ClassVar[str] = '"./render.sh {gain} {cutoff} {out.wav}"'
    reaches: ClassVar[bool] = True

    def check(self) -> None:
        """Refuse a command that is not one program with its arguments, or writes no file."""
        command, names = self.settings.value, self.settings.names
        outs = list(dict.fromkeys(match[1] for match in _OUT.finditer(command)))
        known = [OUT, *(f"{OUT}{suffix}" for suffix in SUFFIXES)]
        self._words = template_words(command, [*names, *known], self.key)
        if len(outs) != 1 or outs[0] in names:
            got = repr(command) if outs else f"no {{{OUT}}} in {command!r}"
            advice = f"Write {self.example}, say: the program writes what is shown to that file."
            raise Refused(self.key, f"name one file to write, {{{OUT}}} or {{{OUT}.png}}", got, advice)
        self._out = outs[0]
        self._machine = Machine(self.key, self.settings.timeout, reads=False, folder=self.settings.folder)

    def close(self) -> None:
        """End all commands, and start no more."""
        self._machine.stop()

    def of(self, setting: Setting) -> Content:
        """What the program wrote."""
        with tempfile.TemporaryDirectory(prefix="askwise-") as folder:
            path = Path(folder) / self._out
            given = {**variables(setting), "ASKWISE_OUT": str(path)}
            words = filled(self._words, {**setting, self._out: str(path)})
            ended = self._machine.run(words, given)
            if ended is None:
                raise Failed(self.key, "run", "a server that ends", "Start it again.")
            if ended.code:
                raise Failed(self.key, "end with exit code 0", ended.how, "Try it by hand.")
            if not path.is_file():
                raise Failed(self.key, f"write {{{self._out}}}", "nothing", "Try it by hand.")
            return Content.of_file(path)
