"""The folder of a campaign: its description, and a file for each finished chunk of runs.

Writes are atomic: a file is written under a temporary name, synced to disk and renamed.
"""

import fcntl
import hashlib
import json
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from jaxtyping import Bool, Float, Int8

from askwise.bench.experiments import Experiment
from askwise.bench.lanes import RunId, Runs
from askwise.errors import Failed, Refused
from askwise.storage import overwritable

_BY_LANE = ("questions", "answers", "optima", "scores", "converged")
_NAMES = ("function", "arm", "replicate")
_TEMPORARY = ".tmp"


class Unusable(Refused):
    """A file of runs that is damaged, or belongs to another experiment."""

    @classmethod
    def of(cls, path: Path, got: str) -> "Unusable":
        """The refusal of this file."""
        return cls(path, "hold runs of this experiment", got, "Run the campaign again: it recomputes them.")

    @property
    def path(self) -> Path:
        """The file."""
        return Path(self.what)


@dataclass(frozen=True, eq=False)
class Chunk:
    """Runs that were computed together."""

    ids: tuple[RunId, ...]
    questions: Float[np.ndarray, "lane t m d"]
    answers: Bool[np.ndarray, "lane t k"] | Int8[np.ndarray, "lane t k"]  # the former before there were ties
    optima: Float[np.ndarray, "lane t d"]
    scores: Float[np.ndarray, "lane t"]
    converged: Bool[np.ndarray, "lane t"]
    seconds: Float[np.ndarray, " t"]  # time of each step, all lanes together
    hardware: str

    @classmethod
    def of(cls, ids: tuple[RunId, ...], runs: Runs, hardware: str) -> "Chunk":
        """These runs under these names."""
        arrays = {name: getattr(runs, name).cpu().numpy() for name in (*_BY_LANE, "seconds")}
        return cls(ids, **arrays, hardware=hardware)

    def by_experiment(self) -> "list[Chunk]":
        """The runs of each experiment, with their share of the time."""
        names = np.array([run_id.experiment for run_id in self.ids])
        found = []
        for name in dict.fromkeys(names.tolist()):
            lanes = np.flatnonzero(names == name)
            arrays = {part: getattr(self, part)[lanes] for part in _BY_LANE}
            seconds = self.seconds * len(lanes) / len(names)
            ids = tuple(self.ids[lane] for lane in lanes)
            found.append(Chunk(ids, **arrays, seconds=seconds, hardware=self.hardware))
        return found

    @property
    def total_seconds(self) -> float:
        """Time of all steps."""
        return float(self.seconds.sum())

    @property
    def name(self) -> str:
        """A hash of the names of its runs."""
        names = [astuple(run_id) for run_id in self.ids]
        return hashlib.blake2b(json.dumps(names).encode(), digest_size=12).hexdigest()

    def write(self, out: BinaryIO) -> None:
        """Write it in numpy's format, which has a checksum for each array."""
        held: dict[str, Any] = {name: getattr(self, name) for name in (*_BY_LANE, "seconds", "hardware")}
        held |= {name: [getattr(run_id, name) for run_id in self.ids] for name in _NAMES}
        np.savez(out, experiment=np.array(self.ids[0].experiment), **held)

    @classmethod
    def read(cls, path: Path) -> "Chunk":
        """What :meth:`write` wrote, with its checksums verified."""
        try:
            with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
                held = {name: file[name] for name in file.files}
            columns = (held[name].tolist() for name in _NAMES)
            ids = tuple(RunId(str(held["experiment"]), *names) for names in zip(*columns, strict=True))
            arrays = {name: held[name] for name in _BY_LANE}
            if any(len(array) != len(ids) for array in arrays.values()):
                raise ValueError("arrays of unequal length")
            return cls(ids, **arrays, seconds=held["seconds"], hardware=str(held["hardware"]))
        except (zipfile.BadZipFile, EOFError, KeyError, TypeError, ValueError) as error:
            raise Unusable.of(path, f"a damaged file ({error})") from error


@dataclass(frozen=True)
class Folder:
    """Where a campaign stores its runs."""

    path: Path

    @property
    def about(self) -> Path:
        """The file that describes the campaign."""
        return self.path / "about.json"

    @property
    def chunks(self) -> Path:
        """The folder of chunks."""
        return self.path / "chunks"

    @property
    def packed(self) -> Path:
        """The file that replaces the chunks of a packed campaign."""
        return self.path / "scores.npz"

    def read_about(self) -> dict[str, Any]:
        """The description of the campaign."""
        try:
            about = json.loads(self.about.read_text(encoding="utf-8"))
        except FileNotFoundError:
            advice = "Check its name, or start with `askwise bench run`."
            got = f"{self.path}, which has no about.json"
            raise Refused("directory", "hold a campaign", got, advice) from None
        except ValueError as error:
            raise Refused(self.about, "be JSON", error, "Repair it, or start over elsewhere.") from None
        if not isinstance(about, dict) or "experiment" not in about:
            raise Refused(self.about, "describe a campaign", "no experiment", "Check the directory's name.")
        return about

    def write_about(self, about: Mapping[str, Any]) -> None:
        """Replace the description."""
        text = json.dumps(about, indent=2, ensure_ascii=False) + "\n"
        write_atomically(self.about, lambda out: out.write(text.encode()))

    def write(self, chunk: Chunk) -> Path:
        """Store a chunk; when this returns it is on disk."""
        self.chunks.mkdir(exist_ok=True)
        return write_atomically(self.chunks / f"{chunk.name}.npz", chunk.write)

    def read(self, experiment: Experiment) -> Iterator[Chunk | Unusable]:
        """Every chunk, or why it is unusable, in the order of file names."""
        for path in sorted(self.chunks.glob("*.npz")):
            try:
                chunk = Chunk.read(path)
            except Unusable as error:
                yield error
                continue
            name, iterations = chunk.ids[0].experiment, chunk.scores.shape[1]
            fits = (name, iterations) == (experiment.name, experiment.iterations)
            yield chunk if fits else Unusable.of(path, f"{iterations} iterations of {name}")

    def sweep(self) -> None:
        """Remove unfinished files."""
        for path in (*self.path.glob(f"*{_TEMPORARY}"), *self.chunks.glob(f"*{_TEMPORARY}")):
            path.unlink(missing_ok=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Exclude other writers; the lock ends with the process, however that ends."""
        self.path.mkdir(parents=True, exist_ok=True)
        handle = os.open(self.path, os.O_RDONLY)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                got = f"{self.path}, which another process writes to"
                advice = "Wait for it, or choose another directory."
                raise Refused("directory", "belong to one campaign at a time", got, advice) from None
            yield
        finally:
            os.close(handle)


def write_atomically(path: Path, write: Callable[[BinaryIO], object]) -> Path:
    """Write a file that is complete or absent, even after a power failure."""
    overwritable(path)
    temporary = path.with_name(f"{path.name}.{os.getpid()}{_TEMPORARY}")
    try:
        with temporary.open("wb") as out:
            write(out)
            out.flush()
            os.fsync(out.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        reason = (error.strerror or str(error)).lower()
        advice = "Free some space and rerun the command: finished runs are kept."
        raise Failed(path, "be written", reason, advice) from error
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # makes the new name durable as well
    finally:
        os.close(folder)
    return path
