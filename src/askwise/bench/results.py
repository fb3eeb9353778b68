"""The results of a campaign: loaded from its directory, or packed into two small files.

A packed campaign is ``about.json`` and ``scores.npz`` (LZMA, readable by numpy alone): scores [arm, function,
replicate, iteration] with 16 bits of mantissa, an error of 8e-6 of each, below that of inference and search;
and questions, answers and estimated optima of each first replicate, in float32.
"""

import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from jaxtyping import Bool, Float, Int8, Shaped

from askwise.bench.chunks import Chunk, Folder, write_atomically
from askwise.bench.experiments import EXPERIMENTS, Experiment
from askwise.bench.functions import named
from askwise.bench.lanes import RunId
from askwise.bench.provenance import command, experiment_in, grown, joined
from askwise.bench.schedule import run_ids
from askwise.errors import Refused

_NO_ANSWER = -1  # padding of arms with fewer pairs
_LOST_BITS = 7  # of the 23 of a float32; they would be a quarter of the file


@dataclass(frozen=True, eq=False)
class Transcript:
    """The queries, answers and estimated optima of one run."""

    questions: Float[np.ndarray, "t m d"]
    answers: Int8[np.ndarray, "t k"]
    optima: Float[np.ndarray, "t d"]


@dataclass(frozen=True, eq=False)
class Results:
    """All scores of an experiment, and how they were computed."""

    experiment: Experiment
    scores: dict[str, Float[np.ndarray, "function replicate iteration"]]  # by arm label
    about: dict[str, Any]  # about.json: when, how and on what the runs were computed
    converged: dict[str, Bool[np.ndarray, "function replicate iteration"]] = field(default_factory=dict)
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
    return _gathered(folder, experiment, about, partial)


def _gathered(folder: Folder, whole: Experiment, about: dict[str, Any], partial: bool) -> Results:
    """The runs of all chunks, sorted into arrays."""
    read, ids = list(folder.read(whole)), run_ids(whole)
    usable = [chunk for chunk in read if isinstance(chunk, Chunk)]
    place: dict[RunId, tuple[Chunk, int]] = {}  # of each run: its chunk and its lane
    for chunk in usable:
        for lane, run_id in enumerate(chunk.ids):
            place.setdefault(run_id, (chunk, lane))
    there = np.reshape([run_id in place for run_id in ids], (-1, len(whole.functions), whole.replicates))
    complete = there.all(axis=(0, 2))
    if not complete.all() and not (partial and complete.any()):
        unusable = f"; unusable files: {len(read) - len(usable)}" if len(read) > len(usable) else ""
        expected = f"hold all {there.size} runs of the experiment"
        got = f"{there.sum()} ({(~there).sum()} missing{unusable})"
        finish = command(whole, folder.path, about.get("imports", ()))
        raise Refused(folder.path, expected, got, f"Finish it with `{finish}`.")
    experiment = replace(whole, functions=tuple(np.array(whole.functions)[complete].tolist()))
    shape = (len(experiment.functions), experiment.replicates, experiment.iterations)
    scores, converged, firsts, seconds = {}, {}, {}, {}
    for label in (arm.label for arm in experiment.arms):
        of_arm = [place[run_id] for run_id in run_ids(experiment) if run_id.arm == label]
        scores[label] = np.stack([chunk.scores[lane] for chunk, lane in of_arm]).reshape(shape)
        converged[label] = np.stack([chunk.converged[lane] for chunk, lane in of_arm]).reshape(shape)
        for name, (chunk, lane) in zip(experiment.functions, of_arm[:: experiment.replicates], strict=True):
            answers = chunk.answers[lane].astype(np.int8)
            firsts[label, name] = Transcript(chunk.questions[lane], answers, chunk.optima[lane])
        timed = [each for each in usable if each.ids[0].arm == label and place[each.ids[0]][0] is each]
        runs = sum(len(chunk.ids) for chunk in timed)
        seconds[label] = np.sum([chunk.seconds for chunk in timed], axis=0) / runs
    return Results(experiment, scores, about, converged, firsts, seconds)


def pack(directory: Path | str, out: Path | str) -> Path:
    """Write a finished campaign in compact form, small enough for a repository; returns its directory.

    If the same experiment with other rules is packed there, these are kept beside the new ones.
    """
    results, folder = load(directory), Folder(Path(out))
    if folder.chunks.exists():
        raise Refused("directory of a packed campaign", "not hold chunks", folder.path, "Choose another.")
    folder.path.mkdir(parents=True, exist_ok=True)
    if folder.packed.exists():
        results = with_more(load(out), results, folder.path)
    arrays = _packed(results)
    write_atomically(folder.packed, lambda file: _write_lzma(file, arrays))
    folder.write_about({**results.about, "experiment": asdict(results.experiment)})
    return folder.path


def with_more(old: Results, new: Results, path: Path) -> Results:
    """Old results with new ones, which replace those of the same rules; in the order of the experiment."""
    if (old.functions, old.experiment.replicates) != (new.functions, new.experiment.replicates):
        expected = f"have the functions and replicates of those in {path}"
        raise Refused("results", expected, "others", "Pack them in another directory.")
    experiment = grown(old.experiment, new.experiment, path)
    known = [arm.label for arm in EXPERIMENTS[experiment.name].arms] if experiment.name in EXPERIMENTS else []
    arms = sorted(
        experiment.arms, key=lambda arm: known.index(arm.label) if arm.label in known else len(known)
    )
    labels = [arm.label for arm in arms]
    about = dict(old.about)
    for name, value in new.about.items():
        if isinstance(value, list):
            for one in value:
                about |= joined(about, {name: one})
        elif name in ("runs", "seconds", "computing_seconds"):
            about[name] = about.get(name, 0) + value
    joined_parts = {
        name: {label: (getattr(old, name) | getattr(new, name))[label] for label in labels}
        for name in ("scores", "converged", "seconds")
    }
    firsts = {**old.firsts, **new.firsts}
    return Results(replace(experiment, arms=tuple(arms)), about=about, firsts=firsts, **joined_parts)


def _packed(results: Results) -> dict[str, Shaped[np.ndarray, "..."]]:
    """All arrays of a packed campaign; transcripts are padded to the same number of points and dimensions."""
    every = [[results.firsts[label, name] for name in results.functions] for label in results.scores]
    return {
        "arms": np.array(list(results.scores)),
        "functions": np.array(results.functions),
        "scores": _shortened(np.stack(list(results.scores.values()))),
        "converged": np.stack(list(results.converged.values())),
        "seconds": np.stack(list(results.seconds.values())),
        "questions": _padded([[one.questions for one in row] for row in every], np.nan).astype(np.float32),
        "answers": _padded([[one.answers for one in row] for row in every], _NO_ANSWER),
        "optima": _padded([[one.optima for one in row] for row in every], np.nan).astype(np.float32),
    }


def _shortened(scores: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """In float32, rounded to fewer bits, which compress."""
    bits = scores.astype(np.float32).view(np.uint32)
    half = np.uint32(1 << (_LOST_BITS - 1))
    mask = np.uint32(0xFFFFFFFF << _LOST_BITS & 0xFFFFFFFF)
    return np.where(np.isfinite(scores), (bits + half) & mask, bits).astype(np.uint32).view(np.float32)


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
            entry = zipfile.ZipInfo(f"{name}.npy")  # has a fixed date: equal results make equal files
            entry.compress_type = zipfile.ZIP_LZMA
            with file.open(entry, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def _read_packed(path: Path, experiment: Experiment, about: dict[str, Any]) -> Results:
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            held = {name: file[name] for name in file.files}
    except (zipfile.BadZipFile, EOFError, ValueError) as error:
        raise Refused(path, "be a packed campaign", f"a damaged file ({error})", "Pack it again.") from error
    labels, functions = held["arms"].tolist(), held["functions"].tolist()
    scores, converged, seconds = (
        dict(zip(labels, held[name], strict=True)) for name in ("scores", "converged", "seconds")
    )
    firsts = {
        (label, name): Transcript(
            held["questions"][i, j][:, : arm.m, : named(name).dim].astype(float),
            held["answers"][i, j][:, : arm.pairs],
            held["optima"][i, j][:, : named(name).dim].astype(float),
        )
        for i, (label, arm) in enumerate((label, experiment.arm(label)) for label in labels)
        for j, name in enumerate(functions)
    }
    scores = {label: values.astype(float) for label, values in scores.items()}
    return Results(experiment, scores, about, converged, firsts, seconds)
