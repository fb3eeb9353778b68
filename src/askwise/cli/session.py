"""The study that a file describes, opened for a command."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from askwise.errors import Refused
from askwise.space import Space, Value
from askwise.storage import StudyNotFound, names, shown
from askwise.study import Config, Entry, Study
from askwise.study.answer_tables import read_value
from askwise.study.files import agrees, check_agreement, read_config, recorded_study


@dataclass(frozen=True)
class Session:
    """A study and its configuration, opened for a command."""

    config: Config
    study: Study
    recorded: bool
    """Whether the study has a record; without one it is in memory and empty."""


@contextmanager
def opened(
    file: Path,
    *,
    writes: bool = False,
    new: bool = False,
    prefetch: bool = False,
    changing: bool = False,
    model: bool = True,
) -> Iterator[Session]:
    """The study of this file; its record is created only by a command that writes to it.

    ``new``: also beside other studies, where a name that is not there may be a mistake.  ``changing``: the
    file may differ from the record in what a study can change.  ``model``: whether anything is computed; a
    command that only reads or writes the record need not wait for torch.
    """
    if model:
        import torch

        torch.set_num_threads(1)  # more are slower here, and the last bits would depend on the machine
    config = read_config(file, known=True)
    with ExitStack() as stack:
        study = recorded_study(config, prefetch)
        recorded = study is not None
        if study is not None:
            stack.enter_context(closing(study))
        if study is None or not agrees(config, study.plan):
            config = read_config(file)
        if writes and config.storage is None:
            advice = 'Add storage = "study.db" to [study].'
            raise Refused("storage", f"be given in {file} to record anything", "none", advice)
        if study is None:
            study = stack.enter_context(closing(_begun(config, writes, new, prefetch)))
        else:
            check_agreement(file, config, study.plan, changing)
        yield Session(config, study, recorded=recorded or writes)


def _begun(config: Config, writes: bool, new: bool, prefetch: bool) -> Study:
    """A study without a record yet; in memory, unless something is to be written."""
    place = config.storage if writes else None
    if place is not None and not new:
        _check_first(place, config.name)
    return Study.of(config.plan(), place, config.name, prefetch=prefetch)


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


@dataclass(frozen=True)
class Case:
    """Whose result is shown, and in which context."""

    participant: str | None
    context: dict[str, Any] | None = None

    def answers(self, study: Study) -> int:
        """How many answers were given in this case."""
        answered = [entry for entry in study.history() if entry.status == "answered"]
        if study.plan.people.participants == "separate":
            answered = [entry for entry in answered if entry.participant == study.whose(self.participant)]
        return sum(self.context in (None, _context_of(entry, study.space)) for entry in answered)


def each_case(study: Study, participant: str | None, context: dict[str, Any] | None) -> list[Case]:
    """The cases that have a result each, if none of them is named; empty if there is one result.

    Everybody, in a study of separate people, and each context in which there are answers, the last ones last.
    """
    people, contexts = each_person(study, participant), [context]
    if study.space.contexts and context is None:
        answered = [entry for entry in study.history() if entry.status == "answered"]
        seen = [_context_of(entry, study.space) for entry in answered]
        contexts = [one for number, one in enumerate(seen) if one not in seen[:number]]
    elif not people:
        return []
    return [Case(who, one) for who in people or [participant] for one in contexts]


def _context_of(entry: Entry, space: Space) -> dict[str, Any]:
    """The values of the context parameters, also of answers that were recorded from elsewhere."""
    return {name: entry.options[0][name] for name in space.contexts}


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
