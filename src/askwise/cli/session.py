"""A study as its file describes it, opened for a command."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from askwise.config import Config, load
from askwise.parameters import Choice, Fixed, Integer, Parameter, Value
from askwise.plan import Plan
from askwise.space import Space
from askwise.storage import StudyNotFound, open_record
from askwise.study import Study

__all__ = [
    "Session",
    "answers_of",
    "compute_alike",
    "opened",
    "read_config",
    "read_context",
    "read_setting",
    "read_value",
    "stored_settings",
    "without_password",
]


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
    compute_alike()
    config = read_config(file)
    if writes and config.storage is None:
        raise ValueError(
            f"storage must be given in {file} to record anything; got none. "
            'Add storage = "study.db" to [study].'
        )
    stored = stored_settings(config)
    recorded = stored is not None or writes
    if stored is None:
        study = _begun(config, writes, prefetch)
    else:
        _check_unchanged(file, config, stored)
        study = Study.open(str(config.storage), config.name, prefetch=prefetch)
    try:
        yield Session(config, study, recorded)
    finally:
        study.close()


def compute_alike() -> None:
    """Compute with one thread: more are slower here, and then the last bits depend on the machine."""
    torch.set_num_threads(1)


def _begun(config: Config, writes: bool, prefetch: bool) -> Study:
    return Study(
        config.space,
        config.feedback,
        config.rule,
        storage=config.storage if writes else None,
        name=config.name,
        seed=config.seed,
        size=config.size,
        kernel=config.kernel,
        initial=config.initial,
        expires=config.expires,
        prefetch=prefetch,
    )


def read_config(file: Path) -> Config:
    """What the file says; the place of the record is seen from the folder of the file."""
    try:
        config = load(file)
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None
    return replace(config, storage=_placed(config.storage, file.absolute().parent))


def _placed(storage: str | None, folder: Path) -> str | None:
    if storage is None:
        return None
    name = storage.removeprefix("sqlite:///")
    if not name or "://" in name or "?" in name or name == ":memory:":
        return storage  # no file, or none that there could be
    return str(folder / Path(name).expanduser())


def without_password(storage: str | None) -> str | None:
    """Where the record is, to be shown to anyone."""
    from sqlalchemy import make_url

    if storage is None or "://" not in storage:
        return storage
    return make_url(storage).set(query={}).render_as_string(hide_password=True)  # one may be in the query too


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
    """Refuse a file that was changed after the first question, for the answers would mean something else."""
    given = {name: getattr(config, name) for name in _PLANNED}
    # what the file leaves open is as it was, even if another askwise had other defaults
    given |= {name: stored[name] for name in _OPEN if given[name] is None}
    now, then = _listed(Plan.checked(**given).to_dict()), _listed(stored)
    for name, value in now.items():
        if value != then.get(name):
            raise ValueError(
                f"{file}: {name} must stay as {_THEY.get(name, 'it was')} at the first question"
                f"{_changed(then.get(name), value)}. "
                "Change it back, or give the study another name to begin anew."
            )


def _changed(then: Any, now: Any) -> str:
    """What was, and what is."""
    if isinstance(now, dict):
        keys = [key for key in {**then, **now} if then.get(key) != now.get(key)]
        parts = [f"{key} was {_spelled(then.get(key))}, is {_spelled(now.get(key))}" for key in keys]
        return f"; got a change, {' and '.join(parts)}"
    return f", {_spelled(then)}; got {_spelled(now)}"


def _spelled(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return "not given" if value is None else str(value)


_THEY = dict.fromkeys(("parameters", "constraints"), "they were")
_OPEN = ("rule", "size", "initial")
_PLANNED = ("space", "feedback", "seed", "kernel", "expires", *_OPEN)


def _listed(plan: Mapping[str, Any]) -> dict[str, Any]:
    """A plan with an entry for each parameter; units are left out, for nothing depends on them."""
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


def answers_of(study: Study) -> int:
    """How many answers count."""
    return sum(entry.status == "answered" for entry in study.history())


def read_context(
    pairs: Sequence[str] | None, space: Space, *, needed: bool = True
) -> dict[str, Value] | None:
    """The values of the parameters that are given, not chosen; None for none."""
    known = space.contexts
    if pairs and not known:
        raise ValueError(
            f"--context must go with a parameter that has context = true; got {pairs[0]!r}, and there is "
            "no such parameter. Leave it out."
        )
    given = _read_pairs(pairs or (), space, known, "--context")
    missing = [name for name in known if name not in given]
    if missing and (needed or given):
        raise ValueError(
            f"context must set {', '.join(known)}; got no {missing[0]}. Add --context {missing[0]}=..."
        )
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
            raise ValueError(
                f"{option} must be NAME=VALUE, each of {', '.join(names)} once at most; got {pair!r}. "
                f"Write {option} {names[0]}=..., say."
            )
        setting[name] = read_value(name, space.parameters[name], text.strip())
    return setting


def read_value(name: str, parameter: Parameter, text: str) -> Value:
    """The value that a text stands for, by the kind of the parameter; whether it is allowed is seen later."""
    if isinstance(parameter, Choice | Fixed):
        values = parameter.values if isinstance(parameter, Choice) else [parameter.value]
        found = [value for value in values if _written(value) == _written(text)]
        if len(found) != 1:
            known = ", ".join(str(value) for value in values)
            raise ValueError(f"{name} must be one of {known}; got {text!r}. Write it as it stands there.")
        return found[0]
    kind, convert = ("a whole number", int) if isinstance(parameter, Integer) else ("a number", float)
    try:
        return convert(text)
    except ValueError:
        raise ValueError(
            f"{name} must be {kind}; got {text!r}. Write it with a decimal point and without a unit."
        ) from None


def _written(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) or str(value) in ("True", "False") else str(value)
