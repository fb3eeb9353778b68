"""Checks that everything works here, one finding after the other."""

import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from askwise import storage
from askwise.cli.app import message_of
from askwise.cli.session import opened, read_config, use_one_thread
from askwise.model import Data, infer, kernel
from askwise.space import Real, Space
from askwise.storage import Finding
from askwise.study import Config, Study

_SLOW = 2.0  # seconds for a question
_PACKAGES = ("torch", "gpytorch", "numpy", "scipy", "sqlalchemy", "alembic", "typer", "rich")
_OPTIONAL = ("matplotlib", "psycopg")


def findings(file: Path, *, needed: bool) -> Iterator[Finding]:
    """All findings, as they come in; without a study file only those about the installation."""
    use_one_thread()
    for what, look in (("versions", _versions), ("threads", _threads), ("inference", _inference)):
        yield _found(what, look)
    if not needed and not file.exists():
        yield Finding("study", True, f"no {file} here; `askwise init` writes one")
        yield _found("time of a question", _time_of_a_question)
        return
    read = _found("study", lambda: _read(file))
    yield read
    if not read.ok:
        return
    intact = True
    for finding in _of_storage(read_config(file)):
        intact = intact and finding.ok
        yield finding
    if intact:  # the rest is about its contents
        yield _found("record", lambda: _record(file))
        yield _found("time of a question", lambda: _time_of_a_question(file))


def _of_storage(config: Config) -> Iterator[Finding]:
    if config.storage is None:
        yield Finding("storage", True, "in memory")
        return
    try:
        yield from storage.findings(config.storage)
    except Exception as error:  # whatever is broken, the other checks go on
        yield _problem("storage", error)


def _found(what: str, look: Callable[[], Finding | str]) -> Finding:
    """The result of a check: a text if all is well; an error is a finding, too."""
    try:
        found = look()
    except Exception as error:  # whatever is broken, the other checks go on
        return _problem(what, error)
    return Finding(what, True, found) if isinstance(found, str) else found


def _problem(what: str, error: Exception) -> Finding:
    said = message_of(error)
    if said is not None:
        return Finding(what, False, said)
    return Finding(what, False, f"{error!r}.", "This should not happen: please report it.")


def _versions() -> Finding | str:
    there, missing = [f"askwise {version('askwise')}, Python {sys.version.split()[0]}"], []
    for package in _PACKAGES + _OPTIONAL:
        try:
            there.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            if package in _PACKAGES:
                missing.append(package)
    if missing:
        return Finding("versions", False, f"no {', '.join(missing)}.", "Run `pip install askwise[storage]`.")
    return ", ".join(there)


def _threads() -> str:
    return f"torch computes with {torch.get_num_threads()} of {os.cpu_count()} cores"


def _inference() -> Finding | str:
    """One yes about a point of prior variance 4: EP must find the mean, which is known exactly."""
    belief = infer(Data.binary([[0.5]], [1]), kernel("se", [0.3], 4.0))
    found = float(belief.mean(torch.tensor([[0.5]], dtype=torch.float64)))
    exact = 4.0 / math.sqrt(5.0) * math.sqrt(2 / math.pi)  # variance / sqrt(1 + variance) * phi(0) / Phi(0)
    if not abs(found - exact) < 1e-6:
        detail = f"expectation propagation gives {found:.6f} in place of {exact:.6f}."
        return Finding("inference", False, detail, "Install torch again; its linear algebra is wrong here.")
    return f"expectation propagation finds {exact:.6f}, as it must"


def _read(file: Path) -> str:
    config = read_config(file)
    return f"{config.name}, {config.feedback}, {len(config.space.parameters)} parameters, from {file}"


def _record(file: Path) -> str:
    with opened(file) as session:
        history = session.study.history()
        converged = bool(session.study.belief().converged.all())
    answers = sum(entry.status == "answered" for entry in history)
    what = "converges" if converged else "does not quite converge; go on, later answers help"
    return f"{len(history)} questions, {answers} answers; the model of them {what}"


def _time_of_a_question(file: Path | None = None) -> Finding | str:
    """The time of the next question, in a copy of the study in memory."""
    study = Study(Space(gain=Real(0, 1), cutoff=Real(0, 1)), initial=0)
    if file is not None:
        with opened(file) as session:
            plan, history = session.study.plan, session.study.history()
        if plan.space.contexts:
            return "not measured, for it depends on the context"
        study = Study.of(plan)
        for entry in history:
            if entry.status == "answered" and entry.answer is not None:
                study.record([dict(option) for option in entry.options], entry.answer)
    began = time.perf_counter()
    study.ask()
    took = time.perf_counter() - began
    if took > _SLOW:
        return Finding(
            "time of a question", False, f"{took:.1f} s.", "Close other programs, or choose a faster rule."
        )
    return f"{took:.2f} s"
