"""A study as its file describes it, opened for a command."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from askwise.errors import Refused
from askwise.space import Parameter, Space, Value
from askwise.storage import StudyNotFound, open_record
from askwise.study import Config, Study, load

_OPEN = ("rule", "size", "initial")  # settings that a file may leave to the defaults


@dataclass(frozen=True)
class Session:
    """What a command works with."""

    config: Config
    study: Study
    recorded: bool
    """Whether there is a record; a study without one is in memory, and empty."""


@contextmanager
def opened(file: Path, *, writes: bool = False, prefetch: bool = False) -> Iterator[Session]:
    """The study of this file; its record is created only by a command that writes to it."""
    torch.set_num_threads(1)  # more are slower here, and the last bits would depend on the machine
    config = read_config(file)
    if writes and config.storage is None:
        advice = 'Add storage = "study.db" to [study].'
        raise Refused("storage", f"be given in {file} to record anything", "none", advice)
    stored = stored_settings(config)
    if stored is None:
        place = config.storage if writes else None
        study = Study.of(config.plan(), place, config.name, prefetch=prefetch)
    else:
        _check_unchanged(file, config, stored)
        study = Study.open(str(config.storage), config.name, prefetch=prefetch)
    with closing(study):
        yield Session(config, study, recorded=stored is not None or writes)


def read_config(file: Path) -> Config:
    """What the file says; a relative path of the record starts at the folder of the file."""
    try:
        config = load(file)
    except Refused as error:
        if not error.place:  # it names the file itself
            raise
        raise error.at(str(file)) from None
    name = (config.storage or "").removeprefix("sqlite:///")
    if not name or "://" in name or "?" in name or name == ":memory:":
        return config  # no file, or none that could exist
    return replace(config, storage=str(file.absolute().parent / Path(name).expanduser()))


def stored_settings(config: Config) -> dict[str, Any] | None:
    """What the study was begun with; None if it has not been."""
    if config.storage is None:
        return None
    try:
        with closing(open_record(config.storage, config.name, None)) as record:
            return record.settings
    except StudyNotFound:
        return None


def _check_unchanged(file: Path, config: Config, stored: dict[str, Any]) -> None:
    """Refuse a file that was changed after the first question: its answers would mean something else."""
    # what the file leaves open is as it was, even if another askwise had other defaults
    left_open = {name: stored[name] for name in _OPEN if getattr(config, name) is None}
    before, now = _listed(stored), _listed(config.plan(**left_open).to_dict())
    for name in {**now, **before}:
        value: Any = now.get(name)
        old: Any = before.get(name)
        if value == old:
            continue
        were, was, got = "it was", f", {_spelled(old)}", _spelled(value)
        if isinstance(value, list):
            were = "they were"
        elif isinstance(value, dict):
            keys = [key for key in {**old, **value} if old.get(key) != value.get(key)]
            parts = [f"{key} was {_spelled(old.get(key))}, is {_spelled(value.get(key))}" for key in keys]
            was, got = "", f"a change, {' and '.join(parts)}"
        advice = "Change it back, or give the study another name to begin anew."
        raise Refused(name, f"stay as {were} at the first question{was}", got, advice, str(file))


def _spelled(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return "not given" if value is None else str(value)


def _listed(plan: Mapping[str, Any]) -> dict[str, Any]:
    """A plan with an entry for each parameter; without units and modules, on which no question depends."""
    listed: dict[str, Any] = {"parameters": [name for name, _ in plan["space"]["parameters"]]}
    for name, settings in plan["space"]["parameters"]:
        listed[f"parameter {name}"] = {key: value for key, value in settings.items() if key != "unit"}
    listed["constraints"] = plan["space"].get("constraints", [])
    return listed | {name: value for name, value in plan.items() if name not in ("space", "imports")}


def read_context(pairs: Sequence[str] | None, space: Space, needed: bool = True) -> dict[str, Value] | None:
    """The values of the context parameters; None for none."""
    known = space.contexts
    if pairs and not known:
        got = f"{pairs[0]!r}, and there is no such parameter"
        raise Refused("--context", "go with a parameter that has context = true", got, "Leave it out.")
    given = read_setting(pairs, space, "--context", known)
    missing = [name for name in known if name not in given]
    if missing and (needed or given):
        expected, advice = f"set {', '.join(known)}", f"Add --context {missing[0]}=..."
        raise Refused("context", expected, f"no {missing[0]}", advice)
    return given or None


def read_setting(
    pairs: Sequence[str] | None, space: Space, option: str, names: Sequence[str] | None = None
) -> dict[str, Value]:
    """Parameters (all, or those of these names) from texts like ``gain=3``."""
    known, setting = tuple(space.parameters) if names is None else names, dict[str, Value]()
    for pair in pairs or ():
        name, equals, text = (part.strip() for part in pair.partition("="))
        if not equals or name not in known or name in setting:
            expected = f"be NAME=VALUE, each of {', '.join(known)} once at most"
            raise Refused(option, expected, repr(pair), f"Write {option} {known[0]}=..., say.")
        setting[name] = read_value(name, space.parameters[name], text)
    return setting


def read_value(name: str, parameter: Parameter, text: str) -> Value:
    """The value that a text stands for; whether it is allowed is checked later."""
    try:
        return parameter.read(text)
    except Refused as error:
        raise error.about(name) from None
