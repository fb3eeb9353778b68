"""The file of a study beside its record: where answers are kept, and whether both say the same."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askwise.errors import Refused
from askwise.storage import StudyNotFound, check_address
from askwise.study.changes import refusal
from askwise.study.config import Config, load
from askwise.study.plan import CHANGEABLE, Plan
from askwise.study.study import Study

if TYPE_CHECKING:
    from askwise.study.snapshot import Choosing
else:  # which needs torch
    Choosing = Any

_ANOTHER = "Change it back, or give the study another name to start over."
_OPEN = ("rule", "size", "initial")  # settings that a file may leave to the defaults


def read_config(file: Path, known: bool = False) -> Config:
    """The configuration in a file; a relative path of the record is relative to the folder of the file.

    ``known``: it is recorded as the file says, see :func:`askwise.study.load`.
    """
    try:
        config = load(file, known=known)
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


def recorded_study(config: Config, prefetch: bool | Choosing = False) -> Study | None:
    """The study, if it has a record."""
    if config.storage is None:
        return None
    try:
        return Study.open(config.storage, config.name, prefetch=prefetch)
    except StudyNotFound:
        return None


def plan_of(config: Config, recorded: Plan) -> Plan:
    """The plan of a file; settings that it leaves out keep their recorded values."""
    # even if the defaults have changed since
    rule = None if recorded.has_usual_rule else recorded.spelled_rule  # the usual one follows the level
    left_open = {"rule": rule, "size": recorded.size, "initial": recorded.initial}
    return config.plan(**{name: left_open[name] for name in _OPEN if getattr(config, name) is None})


def check_agreement(file: Path, config: Config, recorded: Plan, changing: bool = False) -> None:
    """Refuse a file that differs from the record: its answers would mean something else.

    ``changing``: only where it differs in what must stay.
    """
    if config.feedback != recorded.feedback:  # first: the recorded rule need not fit the other
        raise refusal("feedback", recorded.feedback, config.feedback, str(file))
    stored = recorded.to_dict()
    before, now = _listed(stored), _listed(_settings(config, stored))
    for name in {**now, **before}:
        value: Any = now.get(name)
        old: Any = before.get(name)
        if value == old:
            continue
        can_change = name in ("constraints", *CHANGEABLE) or name.startswith("parameter ")
        if can_change and changing:
            continue
        if not can_change and name != "parameters":
            raise refusal(name, _spelled(old), _spelled(value), str(file))
        were, was, got = "it is in the record", f", {_spelled(old)}", _spelled(value)
        if isinstance(value, list):
            were = "they are in the record" if can_change else "they were at the first question"
        elif isinstance(value, dict):
            keys = [key for key in {**old, **value} if old.get(key) != value.get(key)]
            parts = [f"{key} was {_spelled(old.get(key))}, is {_spelled(value.get(key))}" for key in keys]
            was, got = "", f"a change, {' and '.join(parts)}"
        advice = "Run `askwise change` to go on so, or change it back." if can_change else _ANOTHER
        raise Refused(name, f"stay as {were}{was}", got, advice, str(file))


def agrees(config: Config, recorded: Plan) -> bool:
    """Whether the file says what the record says; not so if it cannot be understood."""
    stored = recorded.to_dict()
    try:
        return _listed(_settings(config, stored)) == _listed(stored)
    except Refused:
        return False


def _settings(config: Config, stored: dict[str, Any]) -> dict[str, Any]:
    """The settings in a file, as they would be recorded.

    Those that it leaves out keep their recorded values, even if the defaults have changed since.  Rule and
    kernel are not read again if they are as recorded.
    """
    left_open = {name: stored[name] for name in _OPEN if getattr(config, name) is None}
    given = {"rule": config.rule or stored["rule"], "kernel": config.kernel}
    same = {name: stored[name] for name, text in given.items() if text == stored[name]}
    usual = {"rule": None, "kernel": Config.kernel}
    plan = config.plan(**left_open | {name: usual[name] for name in same}, enough=False)
    return plan.written_like(stored) | same


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
