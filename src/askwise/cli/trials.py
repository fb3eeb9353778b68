"""Yes/no questions answered by the exit code of a command."""

import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Any

from askwise.cli.conversation import Done, Interview, ask_repeatedly, record_unless_answered
from askwise.errors import Refused
from askwise.space import readable
from askwise.study import Question

_PLACE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")
_CANNOT_RUN = (126, 127)  # by shell convention: not executable, not found
_QUOTED = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.""", re.DOTALL)
_OF_SHELLS = re.compile(r"\|\|?|&&?|\d?>>?|\d?>&\d|<|.*;")
_LEFT_OPEN = "Try it by hand; the question stays open."


def trials(interview: Interview, command: str, timeout: float | None) -> Done:
    """Run a command for each question until there are enough answers; 0 is yes, anything else no."""
    study, out = interview.session.study, interview.console
    if study.plan.kind.compares:
        advice = "A command succeeds or fails, it does not compare: leave it out, or script ask and tell."
        raise Refused("--command", "be used with a yes/no study", f"a {study.feedback} study", advice)
    words = template_words(command, study.space.parameters)

    def answered(question: Question) -> bool:
        (setting,) = question.options
        began = time.monotonic()
        yes, reason = outcome(filled(words, setting), timeout)
        seconds = round(time.monotonic() - began, 3)
        record = lambda: study.tell(question, yes, seconds=seconds)  # noqa: E731
        if record_unless_answered(interview, question, record):
            shown = ", ".join(f"{name} {readable(value)}" for name, value in setting.items())
            count, word = study.count(), "yes" if yes else f"no{reason}"
            of = f"/{interview.target}" if interview.target and count <= interview.target else ""
            out.print(f"{count}{of}  {word:3}  {shown}")
        return True

    return ask_repeatedly(interview, answered)


def template_words(command: str, names: Mapping[str, object]) -> list[str]:
    """The words of a command; parameters are in braces, to be filled in."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise Refused("--command", "have its quotes closed", repr(command), f"{error}.") from None
    if not words:
        raise Refused("--command", "name a program", "nothing", "Write './gait.sh {gain}', say.")
    for word in _QUOTED.sub("_", command).split():
        if _OF_SHELLS.fullmatch(word):
            expected = "be one program and its arguments, since no shell interprets it"
            advice = "Wrap it in sh -c '...', or quote it if it is meant for the program."
            raise Refused("--command", expected, repr(word), advice)
    for match in (match for word in words for match in _PLACE.finditer(word)):
        if match[1] is not None and match[1] not in names:
            expected = f"name parameters in braces ({', '.join(names)})"
            raise Refused("--command", expected, match[0], "Write {{ and }} for braces of your own.")
    return words


def filled(words: Sequence[str], setting: Mapping[str, Any]) -> list[str]:
    """The words with values filled in; a value never becomes two words."""

    def value(match: re.Match[str]) -> str:
        return match[0][0] if match[1] is None else str(setting[match[1]])

    return [_PLACE.sub(value, word) for word in words]


def outcome(words: Sequence[str], timeout: float | None) -> tuple[bool, str]:
    """Whether a command succeeds in time and, if it was killed, why."""
    try:
        # its output goes to standard error, since programs read our standard output
        process = subprocess.Popen(words, stdout=2, start_new_session=True)
    except OSError as error:
        got = f"{words[0]!r}: {str(error.strerror).lower()}"
        raise Refused("--command", "be a program", got, _LEFT_OPEN) from None
    try:
        code = process.wait(timeout)
    except subprocess.TimeoutExpired:
        _end(process)
        return False, f" (timed out after {timeout:g} s)"
    except BaseException:  # Ctrl-C included
        _end(process)
        raise
    if code in _CANNOT_RUN:
        raise Refused("--command", "be able to run", f"exit code {code} from {shlex.join(words)}", _LEFT_OPEN)
    return code == 0, f" (killed by signal {-code})" if code < 0 else ""


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a command and all processes that it started."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, how)
            process.wait(2)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue
        break
    process.wait()
