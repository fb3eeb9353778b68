"""The folder of a campaign: what it is about, and a file for each chunk of runs that is done.

A file is there whole or not at all: it is written under another name, and renamed when it is on the disk.
"""

import fcntl
import hashlib
import json
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from jaxtyping import Bool, Float

from askwise.bench.experiments import Experiment
from askwise.bench.lanes import Cell, Runs

__all__ = ["Chunk", "Folder", "Unusable", "written_whole"]

_BY_LANE = ("questions", "answers", "optima", "scores", "converged")
_TEMPORARY = ".tmp"
_ASIDE = ".unusable"


class Unusable(ValueError):
    """A file of runs was cut short, or its bytes have changed, or it is of another experiment."""

    def __init__(self, path: Path, reason: str) -> None:
        """The file, and what was found in the place of runs."""
        super().__init__(
            f"{path} must hold runs of this experiment; got {reason}. "
            "Run the campaign again: it computes them anew."
        )
        self.path = path


@dataclass(frozen=True, eq=False)
class Chunk:
    """Runs that were computed together, and where."""

    cells: tuple[Cell, ...]
    questions: Float[np.ndarray, "lane t m d"]
    answers: Bool[np.ndarray, "lane t k"]
    optima: Float[np.ndarray, "lane t d"]
    scores: Float[np.ndarray, "lane t"]
    converged: Bool[np.ndarray, "lane t"]
    seconds: Float[np.ndarray, " t"]
    """Time that each question took, of all lanes together."""
    hardware: str

    @classmethod
    def of(cls, cells: tuple[Cell, ...], runs: Runs, hardware: str) -> "Chunk":
        """These runs of these cells."""
        arrays = {name: getattr(runs, name).cpu().numpy() for name in (*_BY_LANE, "seconds")}
        return cls(cells, **arrays, hardware=hardware)

    @property
    def total_seconds(self) -> float:
        """Time that all questions took."""
        return float(self.seconds.sum())

    @property
    def name(self) -> str:
        """A hash of its cells' names."""
        names = [(cell.experiment, cell.function, cell.arm, cell.replicate) for cell in self.cells]
        return hashlib.blake2b(json.dumps(names).encode(), digest_size=12).hexdigest()

    def write(self, out: BinaryIO) -> None:
        """Write it in numpy's format, which has a checksum for each array."""
        np.savez(
            out,
            experiment=np.array(self.cells[0].experiment),
            function=np.array([cell.function for cell in self.cells]),
            arm=np.array([cell.arm for cell in self.cells]),
            replicate=np.array([cell.replicate for cell in self.cells]),
            seconds=self.seconds,
            hardware=np.array(self.hardware),
            **{name: getattr(self, name) for name in _BY_LANE},
        )

    @classmethod
    def read(cls, path: Path) -> "Chunk":
        """What :meth:`write` wrote, checked in full."""
        try:
            with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
                held = {name: file[name] for name in file.files}
            columns = (held[name].tolist() for name in ("function", "arm", "replicate"))
            cells = tuple(Cell(str(held["experiment"]), *names) for names in zip(*columns, strict=True))
            arrays = {name: held[name] for name in _BY_LANE}
            if any(len(array) != len(cells) for array in arrays.values()):
                raise ValueError("arrays of unequal length")
            return cls(cells, **arrays, seconds=held["seconds"], hardware=str(held["hardware"]))
        except (zipfile.BadZipFile, EOFError, KeyError, TypeError, ValueError) as error:
            raise Unusable(path, f"a damaged file ({error})") from error


@dataclass(frozen=True)
class Folder:
    """Where a campaign keeps what it has computed."""

    path: Path

    @property
    def about(self) -> Path:
        """The file that says what the campaign is about."""
        return self.path / "about.json"

    @property
    def chunks(self) -> Path:
        """The folder of the files of runs."""
        return self.path / "chunks"

    @property
    def packed(self) -> Path:
        """The file that a packed campaign has in the place of chunks."""
        return self.path / "scores.npz"

    def read_about(self) -> dict[str, Any]:
        """What the campaign is about."""
        try:
            about = json.loads(self.about.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise ValueError(
                f"directory must hold a campaign; got {self.path}, which has no about.json. "
                "Check its name, or begin with `askwise bench run`."
            ) from None
        except ValueError as error:
            raise ValueError(
                f"{self.about} must be JSON; got {error}. Mend it, or begin anew elsewhere."
            ) from None
        if not isinstance(about, dict) or "experiment" not in about:
            raise ValueError(
                f"{self.about} must be that of a campaign; got none. Check the directory's name."
            )
        return about

    def write_about(self, about: Mapping[str, Any]) -> None:
        """Replace what it is about."""
        text = json.dumps(about, indent=2, ensure_ascii=False) + "\n"
        written_whole(self.about, lambda out: _write_all(out, text.encode()))

    def write(self, chunk: Chunk) -> Path:
        """Keep these runs; when this returns they are on the disk."""
        self.chunks.mkdir(exist_ok=True)
        return written_whole(self.chunks / f"{chunk.name}.npz", chunk.write)

    def read(self, experiment: Experiment) -> Iterator[Chunk | Unusable]:
        """Every file of runs, or what is wrong with it, in the order of their names."""
        for path in sorted(self.chunks.glob("*.npz")):
            try:
                chunk = Chunk.read(path)
            except Unusable as error:
                yield error
                continue
            if (
                chunk.cells[0].experiment == experiment.name
                and chunk.scores.shape[1] == experiment.iterations
            ):
                yield chunk
            else:
                yield Unusable(path, f"{chunk.scores.shape[1]} iterations of {chunk.cells[0].experiment}")

    def sweep(self) -> None:
        """Remove what was left half written."""
        for path in (*self.path.glob(f"*{_TEMPORARY}"), *self.chunks.glob(f"*{_TEMPORARY}")):
            path.unlink(missing_ok=True)

    def set_aside(self, path: Path) -> Path:
        """Keep a file that cannot be used, under a name that is not read; returns that."""
        return path.rename(path.with_name(path.name + _ASIDE))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Be the only one who writes here; the lock goes with the process, however it ends."""
        self.path.mkdir(parents=True, exist_ok=True)
        handle = os.open(self.path, os.O_RDONLY)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ValueError(
                    f"directory must belong to one campaign at a time; got {self.path}, "
                    "which another process writes to. Wait for it, or choose another directory."
                ) from None
            yield
        finally:
            os.close(handle)


def written_whole(path: Path, write: Callable[[BinaryIO], None]) -> Path:
    """Write a file so that it is there whole or not at all, whenever the power fails."""
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
        raise OSError(
            f"{path} must be written; got {reason}. Make room, and run the same again: what is done is kept."
        ) from error
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the new name, too, must outlast a failure
    finally:
        os.close(folder)
    return path


def _write_all(out: BinaryIO, content: bytes) -> None:
    out.write(content)
