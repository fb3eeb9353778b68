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
from askwise.errors import Failed, Refused
from askwise.space import readable
from askwise.study import Question

_PLACE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")
_CANNOT_RUN = (126, 127)  # by shell convention: not executable, not found
_SHELL = re.compile(r"(ba|z|da|a|k|mk|pdk|fi|c|tc)?sh|busybox")
_PROGRAM = re.compile(r"-[A-Za-z]*c|--command")  # options after which a shell is given its program
_QUOTED = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.""", re.DOTALL)
_OF_SHELLS = re.compile(r"\|\|?|&&?|\d?>>?|\d?>&\d|<|.*;")
_LEFT_OPEN = "Try it by hand; the question stays open."


def trials(interview: Interview, command: str, timeout: float | None) -> Done:
    """Run a command for each question until there are enough answers; 0 is yes, 1 no, others end it."""
    study, out = interview.session.study, interview.console
    if study.plan.kind.compares:
        advice = "A command succeeds or fails, it does not compare: leave it out, or script ask and tell."
        raise Refused("--command", "be used with a yes/no study", f"a {study.feedback} study", advice)
    words = template_words(command, study.space.parameters)

    def answered(question: Question) -> bool:
        (setting,) = question.options
        began = time.monotonic()
        yes = outcome(filled(words, setting), timeout, variables(setting))
        seconds = round(time.monotonic() - began, 3)
        record = lambda: study.tell(question, yes, seconds=seconds)  # noqa: E731
        if record_unless_answered(interview, question, record):
            shown = ", ".join(f"{name} {readable(value)}" for name, value in setting.items())
            count, word = interview.count, "yes" if yes else "no"
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
            advice = "Wrap it in sh -c '...', which finds the values in $ASKWISE_..., or quote it."
            raise Refused("--command", expected, repr(word), advice)
    for match in (match for word in words for match in _PLACE.finditer(word)):
        if match[1] is not None and match[1] not in names:
            expected = f"name parameters in braces ({', '.join(names)})"
            raise Refused("--command", expected, match[0], "Write {{ and }} for braces of your own.")
    program = _shell_program(words)
    for match in _PLACE.finditer(program):
        if match[1] is not None:
            expected = "have no values inside the program of a shell, which would run them"
            advice = f'Write "${variable(match[1])}" instead, which holds the value.'
            raise Refused("--command", expected, match[0], advice)
    return words


def _shell_program(words: Sequence[str]) -> str:
    """The words that a shell reads as its program, after ``-c``; empty if there is none."""
    shells = [place for place, word in enumerate(words) if _SHELL.fullmatch(os.path.basename(word))]
    rest = list(words[shells[0] + 1 :]) if shells else []
    while rest and not _PROGRAM.match(rest[0]):
        rest.pop(0)
    read = rest[:1]
    for word in rest[1:]:
        read.append(word)
        if not word.startswith(("-", "+")) and read[-2] not in ("-o", "+o", "-O", "+O"):
            break
    return " ".join(read)


def variable(name: str) -> str:
    """The environment variable that holds the value of a parameter.

    Capital letters; whatever cannot be in such a name becomes an underscore.

    >>> variable("cut-off")
    'ASKWISE_CUT_OFF'
    """
    return f"ASKWISE_{re.sub('[^A-Z0-9_]', '_', name.upper())}"


def variables(setting: Mapping[str, Any]) -> dict[str, str]:
    """The values by their environment variables; parameters that would share one have none."""
    names = [variable(name) for name in setting]
    shared = {name for name in names if names.count(name) > 1}
    pairs = zip(names, setting.values(), strict=True)
    return {name: str(value) for name, value in pairs if name not in shared}


def filled(words: Sequence[str], setting: Mapping[str, Any]) -> list[str]:
    """The words with values filled in; a value never becomes two words."""

    def value(match: re.Match[str]) -> str:
        return match[0][0] if match[1] is None else str(setting[match[1]])

    return [_PLACE.sub(value, word) for word in words]


def outcome(words: Sequence[str], timeout: float | None, given: Mapping[str, str] | None = None) -> bool:
    """Whether a command says yes (exit code 0) or no (1); anything else is a failure."""
    try:
        # its output goes to standard error, since programs read our standard output
        process = subprocess.Popen(
            words, stdout=2, start_new_session=True, env={**os.environ, **(given or {})}
        )
    except OSError as error:
        got = f"{words[0]!r}: {str(error.strerror).lower()}"
        raise Refused("--command", "be a program", got, _LEFT_OPEN) from None
    except ValueError as error:  # a zero in a word
        raise Refused("--command", "be made of words without zeros", error, _LEFT_OPEN) from None
    try:
        code = process.wait(timeout)
    except subprocess.TimeoutExpired:
        _end(process)
        got, advice = f"nothing from {shlex.join(words)}", "Allow more time; the question stays open."
        raise Failed("--command", f"end within {timeout:g} s", got, advice) from None
    except BaseException:  # Ctrl-C included
        _end(process)
        raise
    if code in _CANNOT_RUN:
        raise Refused("--command", "be able to run", f"exit code {code} from {shlex.join(words)}", _LEFT_OPEN)
    if code not in (0, 1):
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        expected = "end with exit code 0 (yes) or 1 (no)"
        raise Failed("--command", expected, f"{how} from {shlex.join(words)}", _LEFT_OPEN)
    return code == 0


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
