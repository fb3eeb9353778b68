"""Where results come from: the experiment as it was, and what it was computed with."""

import platform
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from askwise.bench.experiments import EXPERIMENTS, Arm, Experiment
from askwise.bench.user import User

__all__ = ["SEED_RULE", "circumstances", "command", "experiment_of", "grown", "hardware", "joined", "written"]

SEED_RULE = "hash of the cell's name: experiment, function, rule, replicate"
_PLACES = frozenset({"--out", "--work", "--packed"})  # options that say where files go, not what they hold
_MAY_DIFFER = frozenset({"title", "about", "arms", "functions", "replicates"})  # in one directory


def written(experiment: Experiment) -> dict[str, Any]:
    """An experiment in words and numbers, as JSON has them."""
    return asdict(experiment)


def experiment_of(document: Mapping[str, Any]) -> Experiment:
    """The experiment that :func:`written` wrote."""
    try:
        parts = {
            **document,
            "arms": tuple(Arm(**arm) for arm in document["arms"]),
            "functions": tuple(document["functions"]),
            "user": User(**document["user"]),
        }
        return Experiment(**parts)
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"experiment must be written as this version writes it; got {error}. "
            "Read it with the version of askwise that made it."
        ) from None


def grown(old: Experiment, new: Experiment, directory: Path) -> Experiment:
    """Both in one: the arms and functions of either, and the larger number of replicates."""
    elsewhere = "Choose another directory (--out), or remove this one."
    for name in (field.name for field in fields(Experiment) if field.name not in _MAY_DIFFER):
        before, now = getattr(old, name), getattr(new, name)
        if before != now:
            what = "experiment" if name == "name" else name
            raise ValueError(
                f"{what} must be that of the runs in {directory}, {before}; got {now}. {elsewhere}"
            )
    arms = {arm.label: arm for arm in old.arms}
    for arm in new.arms:
        if arms.setdefault(arm.label, arm) != arm:
            raise ValueError(
                f"arm {arm.label} must be that of the runs in {directory}, {arms[arm.label]}; got {arm}. "
                f"{elsewhere}"
            )
    return replace(
        new,
        arms=tuple(arms.values()),
        functions=tuple(dict.fromkeys((*old.functions, *new.functions))),
        replicates=max(old.replicates, new.replicates),
    )


def command(experiment: Experiment, directory: Path) -> str:
    """What to type to run this experiment."""
    words = ["askwise", "bench", "run", experiment.name]
    whole = EXPERIMENTS.get(experiment.name)
    lists = {
        "functions": experiment.functions,
        "rules": tuple(arm.label for arm in experiment.arms),
        "replicates": (str(experiment.replicates),),
        "iterations": (str(experiment.iterations),),
    }
    for option, values in lists.items():
        if whole is None or values != _of(whole, option):
            words += [f"--{option}", ",".join(values)]
    return shlex.join([*words, "--out", str(directory)])


def _of(experiment: Experiment, option: str) -> tuple[str, ...]:
    if option == "rules":
        return tuple(arm.label for arm in experiment.arms)
    value = getattr(experiment, option)
    return value if isinstance(value, tuple) else (str(value),)


def circumstances() -> dict[str, Any]:
    """When and how a session began, and the versions it computes with."""
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": shlex.join([Path(sys.argv[0]).name, *_without_places(sys.argv[1:])]),
        "askwise": _version(),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def _without_places(words: Sequence[str]) -> list[str]:
    """A command's options without the folders of whoever typed it.

    >>> _without_places(["pbo", "--out", "pbo", "--lanes", "64", "--work=there"])
    ['pbo', '--lanes', '64']
    """
    kept, follows = [], False  # whether this word is the folder that the one before asked for
    for word in words:
        if not follows and word.partition("=")[0] not in _PLACES:
            kept.append(word)
        follows = not follows and word in _PLACES
    return kept


def _version() -> str:
    try:
        return version("askwise")
    except PackageNotFoundError:
        return "from source, not installed"


def joined(about: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, list[Any]]:
    """What was noted of earlier sessions under these names, and what is new.

    >>> joined({"device": ["cpu"]}, {"device": "cuda", "lanes": 64})
    {'device': ['cpu', 'cuda'], 'lanes': [64]}
    """
    before = {name: about.get(name, []) for name in more}
    return {name: old if more[name] in old else [*old, more[name]] for name, old in before.items()}


def hardware(device: torch.device | str) -> str:
    """What computes there: the model of the GPU, or that of the processor.

    >>> hardware("cpu") == hardware(torch.device("cpu"))
    True
    """
    if torch.device(device).type == "cuda":
        return torch.cuda.get_device_name(device)
    return _processor()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()
