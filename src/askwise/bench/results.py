"""The results of a campaign: loaded from its directory, or packed into two small files.

A packed campaign is ``about.json`` and ``scores.npz`` (LZMA, readable by numpy alone): scores [arm, function,
replicate, iteration] in float32, and questions, answers and estimated optima of each first replicate in
float64.
"""

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from jaxtyping import Bool, Float, Shaped

from askwise.bench.chunks import Folder, Unusable, write_atomically
from askwise.bench.experiments import Experiment
from askwise.bench.functions import named
from askwise.bench.provenance import command, experiment_in, written
from askwise.bench.schedule import run_ids
from askwise.errors import Refused

_NO_ANSWER = -1  # padding of arms with fewer pairs


@dataclass(frozen=True, eq=False)
class Transcript:
    """The queries, answers and estimated optima of one run."""

    questions: Float[np.ndarray, "t m d"]
    answers: Bool[np.ndarray, "t k"]
    optima: Float[np.ndarray, "t d"]


@dataclass(frozen=True, eq=False)
class Results:
    """All scores of an experiment, and how they were computed."""

    experiment: Experiment
    scores: dict[str, Float[np.ndarray, "function replicate iteration"]]
    """By arm label."""
    about: dict[str, Any]
    """The content of ``about.json``: when, how and on what the runs were computed."""
    converged: dict[str, Bool[np.ndarray, "function replicate iteration"]] = field(default_factory=dict)
    """Whether inference converged."""
    firsts: dict[tuple[str, str], Transcript] = field(default_factory=dict)
    """The first replicate of each arm and function."""
    seconds: dict[str, Float[np.ndarray, " iteration"]] = field(default_factory=dict)
    """Computing time per query and run of each arm."""

    @property
    def functions(self) -> tuple[str, ...]:
        """The functions, in the order of the scores."""
        return self.experiment.functions


def load(directory: Path | str, partial: bool = False) -> Results:
    """The results in the directory of a campaign, or of a packed one.

    ``partial``: leave out functions that some arm has not finished, instead of refusing.
    """
    folder = Folder(Path(directory))
    about = folder.read_about()
    experiment = experiment_in(about, folder.path)
    if folder.packed.exists():
        return _read_packed(folder.packed, experiment, about)
    return _Gathered(experiment, folder, about).results(partial)


class _Gathered:
    """The runs of all chunks, sorted into arrays."""

    def __init__(self, experiment: Experiment, folder: Folder, about: dict[str, Any]) -> None:
        self.experiment, self.folder, self.about = experiment, folder, about
        labels = [arm.label for arm in experiment.arms]
        shape = (len(experiment.functions), experiment.replicates, experiment.iterations)
        self.scores = {label: np.full(shape, np.nan) for label in labels}
        self.converged = {label: np.zeros(shape, bool) for label in labels}
        self.done = {label: np.zeros(shape[:2], bool) for label in labels}
        self.seconds = {label: np.zeros(experiment.iterations) for label in labels}
        self.lanes = dict.fromkeys(labels, 0)
        self.firsts: dict[tuple[str, str], Transcript] = {}
        self.unusable = 0
        self._read()

    def _read(self) -> None:
        rows = {name: row for row, name in enumerate(self.experiment.functions)}
        wanted = set(run_ids(self.experiment))
        for chunk in self.folder.read(self.experiment):
            if isinstance(chunk, Unusable):
                self.unusable += 1
                continue
            if chunk.ids[0] in wanted:
                self.seconds[chunk.ids[0].arm] += chunk.seconds
                self.lanes[chunk.ids[0].arm] += len(chunk.ids)
            for lane, run_id in enumerate(chunk.ids):
                if run_id not in wanted:
                    continue
                wanted.remove(run_id)
                place = rows[run_id.function], run_id.replicate
                self.scores[run_id.arm][place] = chunk.scores[lane]
                self.converged[run_id.arm][place] = chunk.converged[lane]
                self.done[run_id.arm][place] = True
                if run_id.replicate == 0:
                    first = Transcript(chunk.questions[lane], chunk.answers[lane], chunk.optima[lane])
                    self.firsts[run_id.arm, run_id.function] = first

    def results(self, partial: bool) -> Results:
        done = np.stack(list(self.done.values()))
        complete = done.all(axis=(0, 2))
        if not complete.all() and not (partial and complete.any()):
            self._refuse(done)
        functions = tuple(np.array(self.experiment.functions)[complete].tolist())
        return Results(
            replace(self.experiment, functions=functions),
            {label: scores[complete] for label, scores in self.scores.items()},
            self.about,
            {label: converged[complete] for label, converged in self.converged.items()},
            {key: first for key, first in self.firsts.items() if key[1] in functions},
            {label: spent / self.lanes[label] for label, spent in self.seconds.items()},
        )

    def _refuse(self, done: Bool[np.ndarray, "arm function replicate"]) -> None:
        unusable = f"; unusable files: {self.unusable}" if self.unusable else ""
        finish = command(self.experiment, self.folder.path, self.about.get("imports", ()))
        raise Refused(
            self.folder.path,
            f"hold all {done.size} runs of the experiment",
            f"{done.sum()} ({(~done).sum()} missing{unusable})",
            f"Finish it with `{finish}`.",
        )


def pack(directory: Path | str, out: Path | str) -> Path:
    """Write a finished campaign in compact form, small enough for a repository; returns its directory."""
    results, folder = load(directory), Folder(Path(out))
    if folder.chunks.exists():
        raise Refused("directory of a packed campaign", "not hold chunks", folder.path, "Choose another.")
    folder.path.mkdir(parents=True, exist_ok=True)
    arrays = _packed(results)
    write_atomically(folder.packed, lambda file: _write_lzma(file, arrays))
    folder.write_about({**results.about, "experiment": written(results.experiment)})
    return folder.path


def _packed(results: Results) -> dict[str, Shaped[np.ndarray, "..."]]:
    """All arrays of a packed campaign; transcripts are padded to the same number of points and dimensions."""
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
    """Arrays [t, ...] of several widths, padded into one."""
    shapes = np.array([one.shape for row in rows for one in row])
    full = np.full((len(rows), len(rows[0]), *shapes.max(0)), filling, rows[0][0].dtype)
    for i, row in enumerate(rows):
        for j, one in enumerate(row):
            full[i, j][tuple(slice(size) for size in one.shape)] = one
    return full


def _write_lzma(out: BinaryIO, arrays: Mapping[str, np.ndarray]) -> None:
    """Like numpy's ``savez`` but with stronger compression; ``numpy.load`` reads both."""
    with zipfile.ZipFile(out, "w", zipfile.ZIP_LZMA) as file:
        for name, array in arrays.items():
            # with a fixed date, equal results make equal files
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
        raise Refused(path, "be a packed campaign", f"a damaged file ({error})", "Pack it again.") from error
    labels, functions = held["arms"].tolist(), held["functions"].tolist()
    return Results(
        experiment,
        dict(zip(labels, held["scores"].astype(float), strict=True)),
        about,
        dict(zip(labels, held["converged"], strict=True)),
        {
            (label, name): _transcript(held, (i, j), experiment.arm(label).m, named(name).dim)
            for i, label in enumerate(labels)
            for j, name in enumerate(functions)
        },
        dict(zip(labels, held["seconds"], strict=True)),
    )


def _transcript(held: Mapping[str, np.ndarray], place: tuple[int, int], m: int, d: int) -> Transcript:
    pairs = max(1, m * (m - 1) // 2)
    return Transcript(
        held["questions"][place][:, :m, :d],
        held["answers"][place][:, :pairs].astype(bool),
        held["optima"][place][:, :d],
    )
