"""A study as its file describes it, opened for a command."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
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
    """The study of this file; its record is made only by a command that writes to it."""
    use_one_thread()
    config = read_config(file)
    if writes and config.storage is None:
        raise Refused(
            "storage",
            f"be given in {file} to record anything",
            "none",
            'Add storage = "study.db" to [study].',
        )
    stored = stored_settings(config)
    recorded = stored is not None or writes
    if stored is None:
        place = config.storage if writes else None
        study = Study.of(config.plan(), place, config.name, prefetch=prefetch)
    else:
        _check_unchanged(file, config, stored)
        study = Study.open(str(config.storage), config.name, prefetch=prefetch)
    try:
        yield Session(config, study, recorded)
    finally:
        study.close()


def use_one_thread() -> None:
    """Compute with one thread: more are slower here, and the last bits would depend on the machine."""
    torch.set_num_threads(1)


def read_config(file: Path) -> Config:
    """What the file says; a relative path of the record starts at the folder of the file."""
    try:
        config = load(file)
    except Refused as error:
        if not error.place:  # it names the file itself
            raise
        raise error.at(str(file)) from None
    return replace(config, storage=_placed(config.storage, file.absolute().parent))


def _placed(storage: str | None, folder: Path) -> str | None:
    if storage is None:
        return None
    name = storage.removeprefix("sqlite:///")
    if not name or "://" in name or "?" in name or name == ":memory:":
        return storage  # no file, or none that could exist
    return str(folder / Path(name).expanduser())


def stored_settings(config: Config) -> dict[str, Any] | None:
    """What the study was begun with; None if it has not been."""
    if config.storage is None:
        return None
    try:
        record = open_record(config.storage, config.name, None)
    except StudyNotFound:
        return None
    record.close()
    return record.settings


def _check_unchanged(file: Path, config: Config, stored: dict[str, Any]) -> None:
    """Refuse a file that was changed after the first question: its answers would mean something else."""
    # what the file leaves open is as it was, even if another askwise had other defaults
    left_open = {name: stored[name] for name in _OPEN if getattr(config, name) is None}
    now, then = _listed(config.plan(**left_open).to_dict()), _listed(stored)
    for name, value in now.items():
        if value != then.get(name):
            were = "they were" if name in ("parameters", "constraints") else "it was"
            was, got = _difference(then.get(name), value)
            advice = "Change it back, or give the study another name to begin anew."
            raise Refused(name, f"stay as {were} at the first question{was}", got, advice, str(file))


def _difference(then: Any, now: Any) -> tuple[str, str]:
    """What was, to end a sentence, and what is."""
    if isinstance(now, dict):
        keys = [key for key in {**then, **now} if then.get(key) != now.get(key)]
        parts = [f"{key} was {_spelled(then.get(key))}, is {_spelled(now.get(key))}" for key in keys]
        return "", f"a change, {' and '.join(parts)}"
    return f", {_spelled(then)}", _spelled(now)


def _spelled(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return "not given" if value is None else str(value)


def _listed(plan: Mapping[str, Any]) -> dict[str, Any]:
    """A plan with an entry for each parameter; without units, on which nothing depends."""
    space = plan["space"]
    return {
        "parameters": [name for name, _ in space["parameters"]],
        **{
            f"parameter {name}": {key: value for key, value in spelled.items() if key != "unit"}
            for name, spelled in space["parameters"]
        },
        "constraints": space.get("constraints", []),
        **{name: value for name, value in plan.items() if name != "space"},
    }


def read_context(
    pairs: Sequence[str] | None, space: Space, *, needed: bool = True
) -> dict[str, Value] | None:
    """The values of the context parameters; None for none."""
    known = space.contexts
    if pairs and not known:
        raise Refused(
            "--context",
            "go with a parameter that has context = true",
            f"{pairs[0]!r}, and there is no such parameter",
            "Leave it out.",
        )
    given = _read_pairs(pairs or (), space, known, "--context")
    missing = [name for name in known if name not in given]
    if missing and (needed or given):
        expected, advice = f"set {', '.join(known)}", f"Add --context {missing[0]}=..."
        raise Refused("context", expected, f"no {missing[0]}", advice)
    return given or None


def read_setting(pairs: Sequence[str] | None, space: Space, option: str) -> dict[str, Value] | None:
    """Parameters from texts like ``gain=3``; None for none."""
    return _read_pairs(pairs or (), space, tuple(space.parameters), option) or None


def _read_pairs(pairs: Sequence[str], space: Space, names: Sequence[str], option: str) -> dict[str, Value]:
    setting: dict[str, Value] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        name = name.strip()
        if not equals or name not in names or name in setting:
            expected = f"be NAME=VALUE, each of {', '.join(names)} once at most"
            raise Refused(option, expected, repr(pair), f"Write {option} {names[0]}=..., say.")
        setting[name] = read_value(name, space.parameters[name], text.strip())
    return setting


def read_value(name: str, parameter: Parameter, text: str) -> Value:
    """The value that a text stands for; whether it is allowed is checked later."""
    try:
        return parameter.read(text)
    except Refused as error:
        raise error.about(name) from None
