"""The file of a study beside its record: where answers are kept, and whether the file was changed since."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from askwise.errors import Refused
from askwise.storage import StudyNotFound, check_address, open_record
from askwise.study.config import Config, load

_OPEN = ("rule", "size", "initial")  # settings that a file may leave to the defaults


def read_config(file: Path) -> Config:
    """The configuration in a file; a relative path of the record is relative to the folder of the file."""
    try:
        config = load(file)
    except Refused as error:
        if not error.place:  # it names the file itself
            raise
        raise error.at(str(file)) from None
    if config.storage is not None:
        try:
            check_address(config.storage)
        except Refused as error:
            raise error.at(str(file)) from None
    name, mark, query = (config.storage or "").removeprefix("sqlite:///").partition("?")
    if not name or "://" in name or name == ":memory:":
        return config  # not the path of a file
    path = file.absolute().parent / Path(name).expanduser()
    return replace(config, storage=f"sqlite:///{path}{mark}{query}" if mark else str(path))


def stored_settings(config: Config) -> dict[str, Any] | None:
    """The settings with which the study was created; None if it has no record yet."""
    if config.storage is None:
        return None
    try:
        with closing(open_record(config.storage, config.name, None)) as record:
            return record.settings
    except StudyNotFound:
        return None


def check_unchanged(file: Path, config: Config, stored: dict[str, Any]) -> None:
    """Refuse a file that was changed after the first question: its answers would mean something else."""
    # settings that the file leaves out keep their recorded values, even if the defaults have changed since
    left_open = {name: stored[name] for name in _OPEN if getattr(config, name) is None}
    before, now = _listed(stored), _listed(config.plan(**left_open).written_like(stored))
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
        advice = "Change it back, or give the study another name to start over."
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
