"""The results of a campaign: read from its directory, and packed to be kept beside code.

A packed campaign is two files that numpy and the standard library read: ``about.json``, and
``scores.npz`` (compressed by LZMA) with float32 scores [arm, function, replicate, iteration], and of each
first replicate questions, answers and believed optima in float64.
"""

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from jaxtyping import Bool, Float, Shaped

from askwise.bench.chunks import Folder, Unusable, written_whole
from askwise.bench.experiments import Experiment
from askwise.bench.functions import FUNCTIONS
from askwise.bench.provenance import command, experiment_of, written
from askwise.bench.schedule import cells_of

__all__ = ["Results", "Trace", "load", "pack"]

_NO_ANSWER = -1  # beyond the pairs that an arm's questions have


@dataclass(frozen=True, eq=False)
class Trace:
    """One run in full."""

    questions: Float[np.ndarray, "t m d"]
    answers: Bool[np.ndarray, "t k"]
    optima: Float[np.ndarray, "t d"]


@dataclass(frozen=True, eq=False)
class Results:
    """All scores of an experiment, and what is known of how they came about."""

    experiment: Experiment
    scores: dict[str, Float[np.ndarray, "function replicate iteration"]]
    """Of each arm, by its label."""
    about: dict[str, Any]
    """What ``about.json`` says: when, how and on what the runs were computed."""
    converged: dict[str, Bool[np.ndarray, "function replicate iteration"]] = field(default_factory=dict)
    """Whether the belief was computed to its tolerance."""
    firsts: dict[tuple[str, str], Trace] = field(default_factory=dict)
    """The first replicate of each arm and function, in full."""
    seconds: dict[str, Float[np.ndarray, " iteration"]] = field(default_factory=dict)
    """Computing time of each question of an arm, mean over its runs; those computed together shared it."""

    @property
    def functions(self) -> tuple[str, ...]:
        """The functions, in the order of the scores."""
        return self.experiment.functions


def load(directory: Path | str, partial: bool = False) -> Results:
    """The results in a directory, as a campaign or :func:`pack` left them.

    Args:
        directory: where they are.
        partial: leave out functions that some arm has not finished, in place of refusing.
    """
    folder = Folder(Path(directory))
    about = folder.read_about()
    experiment = experiment_of(about["experiment"])
    if folder.packed.exists():
        return _read_packed(folder.packed, experiment, about)
    return _Gathered(experiment, folder).results(about, partial)


class _Gathered:
    """Runs put in their places from all chunks."""

    def __init__(self, experiment: Experiment, folder: Folder) -> None:
        self.experiment, self.folder = experiment, folder
        labels = [arm.label for arm in experiment.arms]
        shape = (len(experiment.functions), experiment.replicates, experiment.iterations)
        self.scores = {label: np.full(shape, np.nan) for label in labels}
        self.converged = {label: np.zeros(shape, bool) for label in labels}
        self.done = {label: np.zeros(shape[:2], bool) for label in labels}
        self.seconds = {label: np.zeros(experiment.iterations) for label in labels}
        self.lanes = dict.fromkeys(labels, 0)
        self.firsts: dict[tuple[str, str], Trace] = {}
        self.unusable = 0
        self._read()

    def _read(self) -> None:
        rows = {name: row for row, name in enumerate(self.experiment.functions)}
        wanted = set(cells_of(self.experiment))
        for chunk in self.folder.read(self.experiment):
            if isinstance(chunk, Unusable):
                self.unusable += 1
                continue
            if chunk.cells[0] in wanted:
                self.seconds[chunk.cells[0].arm] += chunk.seconds
                self.lanes[chunk.cells[0].arm] += len(chunk.cells)
            for lane, cell in enumerate(chunk.cells):
                if cell not in wanted:
                    continue
                wanted.remove(cell)
                place = rows[cell.function], cell.replicate
                self.scores[cell.arm][place] = chunk.scores[lane]
                self.converged[cell.arm][place] = chunk.converged[lane]
                self.done[cell.arm][place] = True
                if cell.replicate == 0:
                    trace = Trace(chunk.questions[lane], chunk.answers[lane], chunk.optima[lane])
                    self.firsts[cell.arm, cell.function] = trace

    def results(self, about: dict[str, Any], partial: bool) -> Results:
        done = np.stack(list(self.done.values()))
        complete = done.all(axis=(0, 2))
        if not complete.all() and not (partial and complete.any()):
            self._refuse(done)
        functions = tuple(np.array(self.experiment.functions)[complete].tolist())
        return Results(
            replace(self.experiment, functions=functions),
            {label: scores[complete] for label, scores in self.scores.items()},
            about,
            {label: converged[complete] for label, converged in self.converged.items()},
            {key: trace for key, trace in self.firsts.items() if key[1] in functions},
            {label: spent / self.lanes[label] for label, spent in self.seconds.items()},
        )

    def _refuse(self, done: Bool[np.ndarray, "arm function replicate"]) -> None:
        unusable = f"; files that cannot be used: {self.unusable}" if self.unusable else ""
        raise ValueError(
            f"{self.folder.path} must hold all {done.size} runs of the experiment; "
            f"got {done.sum()} ({(~done).sum()} missing{unusable}). "
            f"Finish it with `{command(self.experiment, self.folder.path)}`."
        )


def pack(directory: Path | str, out: Path | str) -> Path:
    """Write a finished campaign in a form small enough to be kept beside code; returns its directory."""
    results, folder = load(directory), Folder(Path(out))
    if folder.chunks.exists():
        raise ValueError(
            f"directory of a packed campaign must not hold chunks; got {folder.path}. Choose another."
        )
    folder.path.mkdir(parents=True, exist_ok=True)
    arrays = _packed(results)
    written_whole(folder.packed, lambda file: _write_lzma(file, arrays))
    folder.write_about({**results.about, "experiment": written(results.experiment)})
    return folder.path


def _packed(results: Results) -> dict[str, Shaped[np.ndarray, "..."]]:
    """All arrays of a packed campaign; traces are padded to the most points and dimensions of any."""
    labels = list(results.scores)
    heads = {"arms": np.array(labels), "functions": np.array(results.functions)}
    every = [[results.firsts[label, name] for name in results.functions] for label in labels]
    return {
        **heads,
        "scores": np.stack(list(results.scores.values())).astype(np.float32),
        "converged": np.stack(list(results.converged.values())),
        "seconds": np.stack(list(results.seconds.values())),
        "questions": _padded([[one.questions for one in row] for row in every], np.nan),
        "answers": _padded([[one.answers.astype(np.int8) for one in row] for row in every], _NO_ANSWER),
        "optima": _padded([[one.optima for one in row] for row in every], np.nan),
    }


def _padded(rows: list[list[np.ndarray]], filling: float | int) -> Shaped[np.ndarray, "arm function t ..."]:
    """Arrays [t, ...] of several widths in one."""
    shapes = np.array([one.shape for row in rows for one in row])
    full = np.full((len(rows), len(rows[0]), *shapes.max(0)), filling, rows[0][0].dtype)
    for i, row in enumerate(rows):
        for j, one in enumerate(row):
            full[i, j][tuple(slice(size) for size in one.shape)] = one
    return full


def _write_lzma(out: BinaryIO, arrays: Mapping[str, np.ndarray]) -> None:
    """As numpy's ``savez``, which knows only a weaker compression; ``numpy.load`` reads both."""
    with zipfile.ZipFile(out, "w", zipfile.ZIP_LZMA) as file:
        for name, array in arrays.items():
            # a fixed date: equal results make equal files
            with file.open(_entry(name), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(f"{name}.npy")
    entry.compress_type = zipfile.ZIP_LZMA
    return entry


def _read_packed(path: Path, experiment: Experiment, about: dict[str, Any]) -> Results:
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            held = {name: file[name] for name in file.files}
    except (zipfile.BadZipFile, EOFError, ValueError) as error:
        raise ValueError(
            f"{path} must be a packed campaign; got a damaged file ({error}). Pack it again."
        ) from error
    labels, functions = held["arms"].tolist(), held["functions"].tolist()
    return Results(
        experiment,
        dict(zip(labels, held["scores"].astype(float), strict=True)),
        about,
        dict(zip(labels, held["converged"], strict=True)),
        {
            (label, name): _trace(held, (i, j), experiment.arm(label).m, FUNCTIONS[name].dim)
            for i, label in enumerate(labels)
            for j, name in enumerate(functions)
        },
        dict(zip(labels, held["seconds"], strict=True)),
    )


def _trace(held: Mapping[str, np.ndarray], place: tuple[int, int], m: int, d: int) -> Trace:
    pairs = max(1, m * (m - 1) // 2)
    return Trace(
        held["questions"][place][:, :m, :d],
        held["answers"][place][:, :pairs].astype(bool),
        held["optima"][place][:, :d],
    )
