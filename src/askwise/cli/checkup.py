"""Whether everything works here, one finding after the other."""

import math
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from askwise.cli.app import message_of
from askwise.cli.replies import told_again
from askwise.cli.session import compute_alike, opened, read_config, stored_settings
from askwise.config import Config
from askwise.data import Data
from askwise.inference import infer
from askwise.kernels import kernel
from askwise.parameters import Real
from askwise.space import Space
from askwise.storage import names
from askwise.study import Study

__all__ = ["Finding", "findings"]

_LITTLE = 100 * 2**20  # bytes of free disk
_SLOW = 2.0  # seconds for a question
_PACKAGES = ("torch", "gpytorch", "numpy", "scipy", "sqlalchemy", "alembic", "typer", "rich")
_OPTIONAL = ("matplotlib", "psycopg")


@dataclass(frozen=True)
class Finding:
    """What was looked at, and whether it is well."""

    what: str
    ok: bool
    detail: str
    advice: str = ""


def findings(file: Path, *, needed: bool) -> Iterator[Finding]:
    """All findings, each as soon as it is there; without a study file only those about the installation."""
    compute_alike()
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
    config = read_config(file)
    storage = _found("storage", lambda: _storage(config))
    yield storage
    if not storage.ok:
        return  # all else is about what is in there
    looks: dict[str, Callable[[], Finding | str]] = {
        "write permission": lambda: _writable(config),
        "free disk": lambda: _free_disk(config),
        "integrity": lambda: _integrity(config),
        "record": lambda: _record(file),
        "time of a question": lambda: _time_of_a_question(file),
    }
    for what, look in looks.items():
        yield _found(what, look)


def _found(what: str, look: Callable[[], Finding | str]) -> Finding:
    """What a look finds: a text if all is well; an error is a finding too."""
    try:
        found = look()
    except Exception as error:  # whatever is broken, the other looks go on
        said = message_of(error)
        if said is not None:
            return Finding(what, False, said)
        return Finding(what, False, f"{error!r}.", "This should not happen: please report it.")
    return Finding(what, True, found) if isinstance(found, str) else found


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
    """One yes about a point of prior variance 4: its mean is known exactly, and EP must find it."""
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


def _storage(config: Config) -> str:
    from askwise.storage.database import Database
    from askwise.storage.migrations import HEAD

    if config.storage is None:
        return "in memory"
    with closing(Database(config.storage)) as database:
        place = database.place
        if not database.exists():
            return f"nothing yet at {place}; the first question makes it"
    studies = names(config.storage)
    return f"{place}, revision {HEAD}, with {', '.join(map(repr, studies)) or 'no study'}"


def _writable(config: Config) -> Finding | str:
    from askwise.storage.database import Database

    if config.storage is None:
        return "not needed"
    with closing(Database(config.storage)) as database:
        file = database.file
        if file is not None and not os.access(file.parent, os.W_OK):
            return Finding(
                "write permission", False, f"none for {file.parent}.", "Allow it, or move the record."
            )
        if database.exists():
            database.write(lambda connection: None)
        return f"granted for {database.place}"


def _free_disk(config: Config) -> Finding | str:
    from askwise.storage.database import Database

    if config.storage is None:
        return "not needed"
    with closing(Database(config.storage)) as database:
        if database.file is None:
            return "a matter of the server"
        folder = database.file.parent
    free = shutil.disk_usage(folder).free
    if free < _LITTLE:
        return Finding("free disk", False, f"only {free / 2**20:.0f} MiB in {folder}.", "Make room.")
    return f"{free / 2**30:.1f} GiB in {folder}"


def _integrity(config: Config) -> Finding | str:
    from askwise.storage.database import Database

    if config.storage is None or stored_settings(config) is None:
        return "nothing recorded yet"
    with closing(Database(config.storage)) as database:
        if not database.sqlite:
            return "a matter of the server"
        said = database.read(lambda connection: connection.exec_driver_sql("PRAGMA integrity_check").scalar())
    if said != "ok":
        return Finding("integrity", False, f"{said}.", "Restore the record from a backup.")
    return "the database file is whole"


def _record(file: Path) -> str:
    with opened(file) as session:
        history = session.study.history()
        converged = bool(session.study.belief().converged.all())
    answers = sum(entry.status == "answered" for entry in history)
    what = "converges" if converged else "does not quite converge; go on, later answers help"
    return f"{len(history)} questions, {answers} answers; the model of them {what}"


def _time_of_a_question(file: Path | None = None) -> Finding | str:
    """The time of the next question, in a copy of the study in memory: nothing is recorded."""
    study = Study(Space(gain=Real(0, 1), cutoff=Real(0, 1)), initial=0)
    if file is not None:
        with opened(file) as session:
            plan, history = session.study.plan, session.study.history()
        if plan.space.contexts:
            return "not measured, for it depends on the context"
        study = Study(
            plan.space, plan.feedback, plan.rule, size=plan.size, kernel=plan.kernel, initial=plan.initial
        )
        for entry in history:
            if entry.status == "answered" and entry.answer is not None:
                study.record([dict(option) for option in entry.options], **told_again(entry.answer))
    began = time.perf_counter()
    study.ask()
    took = time.perf_counter() - began
    if took > _SLOW:
        return Finding(
            "time of a question", False, f"{took:.1f} s.", "Close other programs, or choose a faster rule."
        )
    return f"{took:.2f} s"
