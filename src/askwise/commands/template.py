"""The words of a command, with values of parameters filled in."""

import os
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from askwise.errors import Refused

_PLACE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")
_SHELL = re.compile(r"(ba|z|da|a|k|mk|pdk|fi|c|tc)?sh|busybox")
_PROGRAM = re.compile(r"-[A-Za-z]*c|--command")  # options after which a shell is given its program
_QUOTED = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.""", re.DOTALL)
_MOST_NAMED = 12
_OF_SHELLS = re.compile(r"\|\|?|&&?|\d?>>?|\d?>&\d|<|.*;")


def template_words(command: str, names: Collection[str], option: str = "--command") -> list[str]:
    """The words of a command, given by this option; parameters are in braces, to be filled in."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise Refused(option, "have its quotes closed", repr(command), f"{error}.") from None
    if not words:
        raise Refused(option, "name a program", "nothing", "Write './gait.sh {gain}', say.")
    for word in _QUOTED.sub("_", command).split():
        if _OF_SHELLS.fullmatch(word):
            expected = "be one program and its arguments, since no shell interprets it"
            advice = "Wrap it in sh -c '...', which finds the values in $ASKWISE_..., or quote it."
            raise Refused(option, expected, repr(word), advice)
    for match in (match for word in words for match in _PLACE.finditer(word)):
        if match[1] is not None and match[1] not in names:
            expected = f"name parameters in braces ({_some(names)})"
            raise Refused(option, expected, match[0], "Write {{ and }} for braces of your own.")
    program = _shell_program(words)
    for match in _PLACE.finditer(program):
        if match[1] is not None:
            expected = "have no values inside the program of a shell, which would run them"
            advice = f'Write "${variable(match[1])}" instead, which holds the value.'
            raise Refused(option, expected, match[0], advice)
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


def _some(names: Collection[str]) -> str:
    """The first names, for a message."""
    listed = list(names)
    return ", ".join(listed if len(listed) <= _MOST_NAMED else [*listed[:_MOST_NAMED], "..."])
