"""The study that a file describes, opened for a command."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from askwise.errors import Refused
from askwise.space import Parameter, Space, Value
from askwise.storage import StudyNotFound, names, shown
from askwise.study import Config, Study
from askwise.study.files import check_unchanged, read_config, stored_settings


@dataclass(frozen=True)
class Session:
    """A study and its configuration, opened for a command."""

    config: Config
    study: Study
    recorded: bool
    """Whether the study has a record; without one it is in memory and empty."""


@contextmanager
def opened(
    file: Path, *, writes: bool = False, new: bool = False, prefetch: bool = False
) -> Iterator[Session]:
    """The study of this file; its record is created only by a command that writes to it.

    ``new``: also beside other studies, where a name that is not there may be a mistake.
    """
    torch.set_num_threads(1)  # more are slower here, and the last bits would depend on the machine
    config = read_config(file)
    if writes and config.storage is None:
        advice = 'Add storage = "study.db" to [study].'
        raise Refused("storage", f"be given in {file} to record anything", "none", advice)
    stored = stored_settings(config)
    if stored is None:
        place = config.storage if writes else None
        if place is not None and not new:
            _check_first(place, config.name)
        study = Study.of(config.plan(), place, config.name, prefetch=prefetch)
    else:
        check_unchanged(file, config, stored)
        study = Study.open(str(config.storage), config.name, prefetch=prefetch)
    with closing(study):
        yield Session(config, study, recorded=stored is not None or writes)


def _check_first(storage: str, name: str) -> None:
    there = names(storage)
    if there:
        expected = f"be one of the studies in {shown(storage)}, {', '.join(map(repr, there))}"
        raise StudyNotFound("name", expected, repr(name), "Correct it, or add --new to begin another study.")


def read_context(pairs: Sequence[str] | None, space: Space, needed: bool = True) -> dict[str, Value] | None:
    """The values of the context parameters; None if there are none."""
    known = space.contexts
    if pairs and not known:
        got = f"{pairs[0]!r}, and there is no such parameter"
        raise Refused("--context", "set a parameter that has context = true", got, "Leave it out.")
    given = read_setting(pairs, space, "--context", known)
    missing = [name for name in known if name not in given]
    if missing and (needed or given):
        expected, advice = f"set {', '.join(known)}", f"Add --context {missing[0]}=..."
        raise Refused("context", expected, f"no {missing[0]}", advice)
    return given or None


def read_participant(name: str | None, study: Study) -> str | None:
    """The participant that is named, who must have answered where people differ."""
    if name is None or not (known := study.participants()):
        return name
    if not study.plan.people.differ:
        advice = 'Leave it out; for a taste of each, begin a study with participants = "population".'
        raise Refused("--participant", "be left out where all share one taste", repr(name), advice)
    if name not in known:
        names = ", ".join(repr(one) for one in known if one is not None) or "nobody with a name"
        raise Refused("--participant", f"have answered ({names})", repr(name), "Correct the name.")
    return name


def each_person(study: Study, participant: str | None) -> list[str | None]:
    """The people who have a result each, if none of them is named; empty if there is one result."""
    separate = study.plan.people.participants == "separate" and participant is None
    return known if separate and len(known := study.participants()) > 1 else []


def read_setting(
    pairs: Sequence[str] | None, space: Space, option: str, names: Sequence[str] | None = None
) -> dict[str, Value]:
    """The values in texts like ``gain=3``; ``names``: parameters that may be set, by default all."""
    known, setting = tuple(space.parameters) if names is None else names, dict[str, Value]()
    for pair in pairs or ():
        name, equals, text = (part.strip() for part in pair.partition("="))
        if not equals or name not in known or name in setting:
            expected = f"be NAME=VALUE, each of {', '.join(known)} once at most"
            raise Refused(option, expected, repr(pair), f"Write {option} {known[0]}=..., say.")
        setting[name] = read_value(name, space.parameters[name], text)
    return setting


def read_value(name: str, parameter: Parameter, text: str) -> Value:
    """The value in a text; whether it is allowed is checked later."""
    try:
        return parameter.read(text)
    except Refused as error:
        raise error.about(name) from None
