"""Questions that a command answers by succeeding or not."""

import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from askwise.cli.asking import Asking, Done, asked_in_a_row, told_unless_taken
from askwise.cli.screen import readable
from askwise.cli.session import answers_of
from askwise.study import Question

__all__ = ["Outcome", "filled", "outcome", "template_words", "trials"]

_PLACE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")
_CANNOT_RUN = (126, 127)  # by the custom of shells: not executable, not found
_QUOTED = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.""", re.DOTALL)
_OF_SHELLS = re.compile(r"\|\|?|&&?|\d?>>?|\d?>&\d|<|.*;")


class Outcome(NamedTuple):
    """Whether a command succeeded, and why not if it could not say so itself."""

    yes: bool
    reason: str = ""

    def __str__(self) -> str:
        """As it is shown."""
        return "yes" if self.yes else f"no ({self.reason})" if self.reason else "no"


def trials(asking: Asking, command: str, timeout: float | None) -> Done:
    """Run a command for each question until there are enough answers; 0 is yes, anything else no."""
    study, out = asking.study, asking.console
    if study.feedback != "binary":
        raise ValueError(
            f"--command must go with a yes/no study; got a {study.feedback} study. "
            "A command succeeds or fails, it does not compare: leave it out, or use ask and tell in a script."
        )
    words = template_words(command, study.space.parameters)

    def answered(question: Question) -> bool:
        (setting,) = question.options
        began = time.monotonic()
        found = outcome(filled(words, setting), timeout)
        seconds = round(time.monotonic() - began, 3)
        if not told_unless_taken(asking, question, lambda: study.tell(question, found.yes, seconds=seconds)):
            return True
        shown = ", ".join(f"{name} {readable(value)}" for name, value in setting.items())
        count = answers_of(study)
        of = f"/{asking.target}" if asking.target and count <= asking.target else ""
        out.print(f"{count}{of}  {found!s:3}  {shown}")
        return True

    return asked_in_a_row(asking, answered)


def template_words(command: str, names: Mapping[str, object]) -> list[str]:
    """The words of a command, in which only parameters are left to be filled in."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ValueError(f"--command must have its quotes closed; got {command!r}. {error}.") from None
    if not words:
        raise ValueError("--command must name a program; got nothing. Write './gait.sh {gain}', say.")
    _check_no_shell(command)
    for word in words:
        for match in _PLACE.finditer(word):
            if match[1] is not None and match[1] not in names:
                raise ValueError(
                    f"--command must name parameters in braces ({', '.join(names)}); got {match[0]}. "
                    "Write {{ and }} for braces of your own."
                )
    return words


def _check_no_shell(command: str) -> None:
    for word in _QUOTED.sub("_", command).split():
        if _OF_SHELLS.fullmatch(word):
            raise ValueError(
                f"--command must be one program and its words, for no shell reads it; got {word!r}. "
                "Wrap it in sh -c '...', or in quotes if the program wants it."
            )


def filled(words: Sequence[str], setting: Mapping[str, Any]) -> list[str]:
    """The words with values in the place of names; a value never becomes two words."""

    def value(match: re.Match[str]) -> str:
        return match[0][0] if match[1] is None else str(setting[match[1]])

    return [_PLACE.sub(value, word) for word in words]


def outcome(words: Sequence[str], timeout: float | None) -> Outcome:
    """Whether a command succeeds in time."""
    try:
        # its output goes to where messages go, for ours is meant to be read by programs
        process = subprocess.Popen(words, stdout=2, start_new_session=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ValueError(f"--command must be a program; got {words[0]!r}: {reason}. {_LEFT_OPEN}") from None
    try:
        code = process.wait(timeout)
    except subprocess.TimeoutExpired:
        _end(process)
        return Outcome(False, f"timed out after {timeout:g} s")
    except BaseException:  # Ctrl-C among them
        _end(process)
        raise
    if code in _CANNOT_RUN:
        raise ValueError(
            f"--command must be able to run; got exit code {code} from {shlex.join(words)}. {_LEFT_OPEN}"
        )
    return Outcome(code == 0, f"killed by signal {-code}" if code < 0 else "")


_LEFT_OPEN = "Try it by hand; the question stays open."


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command and all that it started."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, how)
            process.wait(2)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue
        break
    process.wait()
