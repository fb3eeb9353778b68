"""Which program wrote to a record: the versions on which the last bits of a question depend."""

import functools
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

Program = dict[str, Any]


def program(engine: str) -> Program:
    """Versions of askwise, its numerics, its libraries and the machine; ``engine`` keeps the record."""
    return {**_here(), "engine": engine}


def differences(then: Program | None) -> str:
    """How a program that wrote to a record differs from this one in what questions depend on, in words."""
    if then is None:
        return "versions that were not noted"
    names = [name for name, value in _here().items() if then.get(name) != value]
    return ", ".join(f"{name} {then.get(name, 'unknown')} (now {_here()[name]})" for name in names)


@functools.cache
def _here() -> Program:
    import torch

    from askwise.numerics import VERSION

    libraries = {name: _version(name) for name in ("askwise", "torch", "gpytorch", "numpy")}
    libraries["torch"] = str(torch.__version__)  # with the build, such as +cpu
    capability = torch.backends.cpu.get_cpu_capability()  # the instructions that torch uses
    machine = f"{platform.system()} {platform.machine()} {capability}, {_processor()}"
    return {"numerics": VERSION, **libraries, "python": platform.python_version(), "cpu": machine}


def _processor() -> str:
    """Its model: libraries of linear algebra have code of its own for each, which rounds differently."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:  # only Linux has it
        return platform.processor()
    parts = [line.partition(":") for line in reversed(lines)]
    fields = {name.strip(): value.strip() for name, _, value in parts}  # of the first processor
    named = [fields[name] for name in ("model name", "cpu family", "model") if name in fields]
    return " ".join(named) or platform.processor()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # run from its source
        return "unknown"
