"""How results were computed: the experiment, the software, the hardware and the command."""

import platform
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from askwise.bench.experiments import EXPERIMENTS, Arm, Experiment
from askwise.bench.functions import named
from askwise.bench.user import User
from askwise.errors import NotFound, Refused

SEED_RULE = "hash of the cell's name: experiment, function, rule, replicate"
_PLACES = frozenset({"--out", "--work", "--packed"})  # options that name folders
_MAY_DIFFER = frozenset({"title", "about", "arms", "functions", "replicates"})  # in one directory


def experiment_of(document: Mapping[str, Any]) -> Experiment:
    """The experiment in an ``about.json``; refuses rules and functions that are not registered."""
    try:
        for name in document["functions"]:
            named(name)
        arms, user = tuple(Arm(**arm) for arm in document["arms"]), User(**document["user"])
        functions = tuple(document["functions"])
        return Experiment(**{**document, "arms": arms, "functions": functions, "user": user})
    except (KeyError, TypeError) as error:
        advice = "Read it with the version of askwise that wrote it."
        raise Refused("experiment", "be written as this version writes it", error, advice) from None


def experiment_in(about: Mapping[str, Any], directory: Path) -> Experiment:
    """The experiment of a directory, with the title and purpose that it has now.

    A refusal names the directory and the modules to import.
    """
    try:
        held = experiment_of(about["experiment"])
        known = EXPERIMENTS.get(held.name, held)
        return replace(held, title=known.title, about=known.about)
    except NotFound as error:
        imports = _import_options(about.get("imports", ()))
        if not imports:
            raise error.at(str(directory)) from None
        what, advice = f"{error.what} of {directory}", f"Add {' '.join(imports)}."
        raise NotFound(what, "be known", error.got, advice) from None


def grown(old: Experiment, new: Experiment, directory: Path) -> Experiment:
    """Both experiments merged: all arms and functions, and the larger number of replicates."""
    arms = {arm.label: arm for arm in (*old.arms, *new.arms)}
    fixed = [field.name for field in fields(Experiment) if field.name not in _MAY_DIFFER]
    must_agree = {name: (getattr(old, name), getattr(new, name)) for name in fixed}
    must_agree |= {f"arm {arm.label}": (arm, arms[arm.label]) for arm in old.arms}
    for what, (before, now) in must_agree.items():
        if before != now:
            what = "experiment" if what == "name" else what
            expected = f"be that of the runs in {directory}, {before}"
            raise Refused(what, expected, now, "Choose another directory (--out), or remove this one.")
    functions = tuple(dict.fromkeys((*old.functions, *new.functions)))
    replicates = max(old.replicates, new.replicates)
    return replace(new, arms=tuple(arms.values()), functions=functions, replicates=replicates)


def command(experiment: Experiment, directory: Path | None = None, imports: Sequence[str] = ()) -> str:
    """The command that runs this experiment."""
    words = ["askwise", "bench", "run", experiment.name]
    whole = EXPERIMENTS.get(experiment.name)
    for option, values in _options(experiment).items():
        if whole is None or values != _options(whole)[option]:
            words += [option, values]
    words += _import_options(imports)
    return shlex.join(words if directory is None else [*words, "--out", str(directory)])


def _options(experiment: Experiment) -> dict[str, str]:
    return {
        "--functions": ",".join(experiment.functions),
        "--rules": ",".join(arm.label for arm in experiment.arms),
        "--replicates": str(experiment.replicates),
        "--iterations": str(experiment.iterations),
    }


def _import_options(modules: Sequence[str]) -> list[str]:
    return [word for module in modules for word in ("--import", module)]


def circumstances() -> dict[str, Any]:
    """Start, command and versions of this session."""
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": shlex.join([Path(sys.argv[0]).name, *_without_places(sys.argv[1:])]),
        "askwise": _version(),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def _without_places(words: Sequence[str]) -> list[str]:
    """A command's options without personal folders.

    >>> _without_places(["pbo", "--out", "pbo", "--lanes", "64", "--work=there"])
    ['pbo', '--lanes', '64']
    """
    kept, follows = [], False  # whether this word is the value of a folder option
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
    """The values that earlier sessions recorded under these names, with the new ones appended.

    >>> joined({"device": ["cpu"]}, {"device": "cuda", "lanes": 64})
    {'device': ['cpu', 'cuda'], 'lanes': [64]}
    """
    before = {name: about.get(name, []) for name in more}
    return {name: old if more[name] in old else [*old, more[name]] for name, old in before.items()}


def hardware(device: torch.device | str) -> str:
    """The model of the GPU, or of the processor.

    >>> hardware("cpu") == hardware(torch.device("cpu"))
    True
    """
    if torch.device(device).type == "cuda":
        return torch.cuda.get_device_name(device)
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()
