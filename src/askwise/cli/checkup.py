"""What `askwise doctor` checks."""

import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from askwise import storage
from askwise.cli.app import message_of
from askwise.cli.session import opened
from askwise.model import Data, infer, kernel
from askwise.space import Real, Space
from askwise.storage import Finding
from askwise.study import Study
from askwise.study.files import read_config

_SLOW = 2.0  # seconds for a question
_PACKAGES = ("torch", "gpytorch", "numpy", "scipy", "sqlalchemy", "alembic", "typer", "rich")
_OPTIONAL = ("matplotlib", "psycopg")

Found = str | Iterable[Finding]
"""The result of a check: a text if all is well, otherwise findings."""


def findings(file: Path, *, needed: bool, deep: bool = False) -> Iterator[Finding]:
    """All findings, in order; without a study file only those about the installation."""
    torch.set_num_threads(1)
    yield from _checked("versions", _versions)
    yield Finding("threads", True, f"torch computes with {torch.get_num_threads()} of {os.cpu_count()} cores")
    yield from _checked("inference", _inference)
    if not needed and not file.exists():
        yield Finding("study", True, f"no {file} here; `askwise init` writes one")
        yield from _checked("time per question", _time_per_question)
        return
    for what, about in (("study", _study), ("storage", _storage)):
        found = list(_checked(what, partial(about, file)))
        yield from found
        if not all(finding.ok for finding in found):
            return  # the rest is about its contents
    if deep:
        yield from _checked("events", partial(_events, file))
    yield from _checked("record", partial(_record, file))
    yield from _checked("time per question", partial(_time_per_question, file))


def _checked(what: str, look: Callable[[], Found]) -> Iterator[Finding]:
    """The findings of a check; an exception is reported as a finding."""
    try:
        found = look()
        yield from [Finding(what, True, found)] if isinstance(found, str) else found
    except Exception as error:  # whatever is broken, the other checks go on
        said = message_of(error)
        unexpected = (f"{error!r}.", "This should not happen: please report it.")
        yield Finding(what, False, *(unexpected if said is None else (said,)))


def _versions() -> Found:
    known = {}
    for package in _PACKAGES + _OPTIONAL:
        with suppress(PackageNotFoundError):
            known[package] = version(package)
    missing = [package for package in _PACKAGES if package not in known]
    if missing:
        advice = "Run `pip install askwise[storage]`."
        return [Finding("versions", False, f"{', '.join(missing)} missing.", advice)]
    packages = ", ".join(f"{package} {number}" for package, number in known.items())
    return f"askwise {version('askwise')}, Python {sys.version.split()[0]}, {packages}"


def _inference() -> Found:
    """One yes about a point of prior variance 4: EP must find the mean, which is known exactly."""
    belief = infer(Data.binary([[0.5]], [1]), kernel("se", [0.3], 4.0))
    found = float(belief.mean(torch.tensor([[0.5]], dtype=torch.float64)))
    exact = 4.0 / math.sqrt(5.0) * math.sqrt(2 / math.pi)  # variance / sqrt(1 + variance) * phi(0) / Phi(0)
    if not abs(found - exact) < 1e-6:
        detail = f"expectation propagation gives {found:.6f} instead of {exact:.6f}."
        advice = "Reinstall torch; its linear algebra is wrong here."
        return [Finding("inference", False, detail, advice)]
    return f"expectation propagation gives {exact:.6f}, the exact value"


def _study(file: Path) -> Found:
    config = read_config(file)
    return f"{config.name}, {config.feedback}, {len(config.space.parameters)} parameters, from {file}"


def _storage(file: Path) -> Found:
    address = read_config(file).storage
    return "in memory" if address is None else storage.findings(address)


def _events(file: Path) -> Found:
    """Every event of every study is as it was written, or reading them is refused."""
    address = read_config(file).storage
    if address is None:
        return "in memory"
    count = 0
    for name in storage.names(address):
        with closing(storage.open_record(address, name, None)) as record:
            count += len(record.events())
    return f"all {count} as they were written"


def _record(file: Path) -> Found:
    with opened(file) as session:
        study, history = session.study, session.study.history()
        separate = study.plan.people.participants == "separate"
        people = study.participants() if separate else []
        converged = all(bool(study.belief(who).converged.all()) for who in people or [None])
    answers = sum(entry.status == "answered" for entry in history)
    what = "converges" if converged else "does not quite converge; go on, later answers help"
    return f"{len(history)} questions, {answers} answers; inference {what}"


def _time_per_question(file: Path | None = None) -> Found:
    """Time to choose the next question, measured on a copy of the study in memory."""
    study, last = Study(Space(gain=Real(0, 1), cutoff=Real(0, 1)), initial=0), None
    if file is not None:
        with opened(file) as session:
            plan, history = session.study.plan, session.study.history()
        if plan.space.contexts:
            return "not measured, since it depends on the context"
        study = Study.of(plan)
        for entry in history:
            if entry.status == "answered" and entry.answer is not None:
                given = [dict(option) for option in entry.options]
                study.record(given, entry.answer, participant=entry.participant)
                last = entry.participant
    began = time.perf_counter()
    study.ask(last)
    took = time.perf_counter() - began
    if took > _SLOW:
        advice = "Close other programs, or choose a faster rule."
        return [Finding("time per question", False, f"{took:.1f} s.", advice)]
    return f"{took:.2f} s"
