"""What a command has answered, from how it ended and what it printed."""

import re
from dataclasses import dataclass

from askwise.cli.codes import CANNOT_RUN, Codes
from askwise.cli.telling import Telling
from askwise.commands import LEFT_OPEN, Ended
from askwise.errors import Refused, shortened
from askwise.study import Study

_TRACEBACK = re.compile(
    r"^Traceback \(most recent call last\):\n(?:[ \t].*\n)+[A-Za-z_][\w.]*(?::.*|)(?:\n.*\S.*)*\s*\Z",
    re.MULTILINE,
)
_LONGEST = 60  # characters of a line that is quoted


@dataclass(frozen=True)
class Outcome:
    """An answer, a skip that the command asked for, or a failure."""

    telling: Telling | None
    """The answer or the skip; None if the command failed."""
    reason: str
    """Why there is no answer."""
    seconds: float


def outcome(study: Study, codes: Codes, ended: Ended) -> Outcome:
    """What a command has answered: by its exit code or, if it compares, by the last line it printed."""
    meaning = codes.meaning(ended.code)
    if meaning == "failure" and ended.code in CANNOT_RUN:
        raise Refused("--command", "be able to run", ended.how, LEFT_OPEN)
    if meaning == "failure" or (meaning == "no" and study.plan.kind.compares):
        return Outcome(None, ended.how, ended.seconds)
    if meaning == "no" and ended.code not in codes.listed and _TRACEBACK.search(ended.complained):
        # Python ends with 1 if a module is missing, say, which is no answer of a machine
        why = f"{ended.how}, with a Python traceback (if that is a no, add --no-codes 1)"
        return Outcome(None, why, ended.seconds)
    if meaning != "yes" or not study.plan.kind.compares:
        telling = Telling.of(study, meaning)
        return Outcome(telling, "" if telling.answer else ended.how, ended.seconds)
    line = next((line for line in reversed(ended.printed.splitlines()) if line.strip()), "")
    try:
        telling = Telling.of(study, line)
    except Refused as error:
        telling, advice = Telling(None), f" ({error.advice})"
    else:
        advice = ""
    if telling.answer is None and telling.word != "skip":
        said = f"the last line {shortened(line.strip(), _LONGEST)!r}" if line else "nothing printed"
        return Outcome(None, f"{said}, which is no answer, with {ended.how}{advice}", ended.seconds)
    return Outcome(telling, "" if telling.answer else ended.how, ended.seconds)
