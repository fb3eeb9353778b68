"""A campaign: all runs of an experiment, computed in chunks, kept as they come, resumed where they were.

Done means written.  A campaign that was killed loses the chunks it was at; started again with as many lanes,
it computes those and the rest, and ends with the same bits as if nothing had happened.
"""

from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from askwise.bench import provenance
from askwise.bench.chunks import Chunk, Folder, Unusable
from askwise.bench.executors import Executor, ThisProcess
from askwise.bench.experiments import Experiment
from askwise.bench.lanes import Cell, Runs, run
from askwise.bench.progress import Progress, Stream, shown
from askwise.bench.schedule import SlowestFirst, Task, cells_of, tasks_of
from askwise.loop import check_size
from askwise.rules import parse
from askwise.threads import one_thread

__all__ = ["Campaign", "Summary", "check_device", "computed"]

_LANES = {"cpu": 64, "cuda": 1024}
_NOTED_EVERY = 30.0  # seconds
_NOTHING_YET = dict.fromkeys(("runs", "seconds", "computing_seconds", "lane_iterations_per_second"), 0.0)


@dataclass(frozen=True)
class Summary:
    """What came of a campaign."""

    runs: int
    """How many the experiment has; all of them are there now."""
    computed: int
    """How many of them were not there before."""
    missing: int
    """How many others are still missing in the directory, which may have been begun for more."""
    seconds: float
    lane_iterations_per_second: float


def check_device(device: str) -> None:
    """Refuse a device that is not here."""
    try:
        kind = torch.device(device)
    except RuntimeError:
        kind = None
    if kind is None or kind.type not in _LANES:
        raise ValueError(f"device must be cpu or cuda; got {device!r}. Choose one of them.")
    count = torch.cuda.device_count()
    if kind.type == "cuda" and (kind.index or 0) >= count:
        raise ValueError(
            f"device must be a GPU that torch sees, which are {count}; got {device!r}. "
            "Compute on the cpu, or install torch for your GPU."
        )


def computed(task: Task) -> Chunk:
    """The runs of a task."""
    check_device(task.device)
    try:
        with one_thread():  # more would change the last bits
            runs = _fitting(task.experiment, task.cells, task.device)
    except torch.OutOfMemoryError:
        raise ValueError(
            f"lanes must fit into the memory of the device; got {len(task.cells)}. "
            "Give fewer at once (--lanes), or fewer --workers."
        ) from None
    return Chunk.of(task.cells, runs, provenance.hardware(task.device))


def _fitting(experiment: Experiment, cells: tuple[Cell, ...], device: str) -> Runs:
    """The runs of these cells, in halves where all at once do not fit into the memory."""
    try:
        return run(experiment, cells, device)
    except torch.OutOfMemoryError:
        if len(cells) == 1:
            raise
    torch.cuda.empty_cache()
    half = len(cells) // 2
    return Runs.joined([_fitting(experiment, part, device) for part in (cells[:half], cells[half:])])


class Campaign:
    """The runs of an experiment that a directory is to hold.

    A directory may grow: with more functions, rules or replicates of the experiment, only those are computed.
    """

    def __init__(
        self, experiment: Experiment, directory: Path | str, device: str = "cpu", lanes: int | None = None
    ) -> None:
        """``lanes``: how many runs to compute together at most; by default 64, on a GPU 1024."""
        if lanes is not None and lanes < 1:
            raise ValueError(f"lanes must be 1 or more; got {lanes}. 64 suit a CPU, 1024 a GPU.")
        for arm in experiment.arms:
            check_size(parse(arm.rule), arm.m)
        self.experiment, self.folder, self.device = experiment, Folder(Path(directory)), device
        self.lanes = lanes or _LANES.get(device.partition(":")[0], 1)

    def run(self, executor: Executor | None = None, stream: Stream | None = None) -> Summary:
        """Compute what is not there yet.

        Args:
            executor: who computes; this process, unless told otherwise.
            stream: where to tell how far it is; nowhere, unless told otherwise.
        """
        executor = ThisProcess() if executor is None else executor
        if executor.is_here:
            check_device(self.device)
        with self.folder.locked():
            about = self._about()
            self.folder.sweep()
            there = self._there(stream)
            done = {cell for cells, _ in there for cell in cells}
            tasks = tasks_of(self.experiment, done, self.device, self.lanes)
            cells = cells_of(self.experiment)
            progress = Progress(len(cells), len(done.intersection(cells)), self.experiment.iterations)
            if tasks:
                with shown(progress, stream) if stream else nullcontext():
                    self._compute(executor, SlowestFirst(tasks, there), about, progress)
            whole = cells_of(provenance.experiment_of(about["experiment"]))
            missing = len(set(whole) - done - set(cells))
            return Summary(len(cells), progress.new, missing, progress.seconds, progress.rate)

    def _compute(
        self, executor: Executor, queue: SlowestFirst, about: dict[str, Any], progress: Progress
    ) -> None:
        """Compute and keep chunk by chunk, and note how."""
        means = {"device": self.device, "lanes": self.lanes, "executor": executor.name}
        about |= provenance.joined(about, {**provenance.circumstances(), **means})
        account = _Account(self.folder, about, progress)
        try:
            with closing(executor.results(computed, queue)) as results:
                for _, chunk in results:
                    account.begin()
                    self.folder.write(chunk)
                    queue.learn(chunk.cells, chunk.total_seconds)
                    progress.add(len(chunk.cells))
                    account.add(chunk, executor.workers)
        finally:
            if progress.new:
                account.write()

    def _about(self) -> dict[str, Any]:
        """What the directory is about, from now on; refuses one that is about something else."""
        path = self.folder.path
        if self.folder.packed.exists():
            raise ValueError(
                f"directory must not be that of a packed campaign; got {path}. Choose another (--out)."
            )
        if self.folder.about.exists():
            about = self.folder.read_about()
            whole = provenance.grown(provenance.experiment_of(about["experiment"]), self.experiment, path)
            return {**_NOTHING_YET, **about, "experiment": provenance.written(whole)}
        if any(not name.name.endswith(".tmp") for name in path.iterdir()):
            raise ValueError(
                f"directory must be new or that of a campaign; got {path}, which holds other things. "
                "Choose another (--out)."
            )
        return {
            "experiment": provenance.written(self.experiment),
            "seed": provenance.SEED_RULE,
            **_NOTHING_YET,
        }

    def _there(self, stream: Stream | None) -> list[tuple[tuple[Cell, ...], float]]:
        """Cells that are done, chunk by chunk, and the seconds they took; puts aside what cannot be used."""
        found = []
        for chunk in self.folder.read(self.experiment):
            if isinstance(chunk, Unusable):
                aside = self.folder.set_aside(chunk.path)
                if stream is not None:
                    stream.write(f"{chunk} It is {aside.name} now.\n")
            else:
                found.append((chunk.cells, chunk.total_seconds))
        return found


class _Account:
    """What all sessions of a campaign took together, kept on the disk now and then."""

    def __init__(self, folder: Folder, about: dict[str, Any], progress: Progress) -> None:
        self.folder, self.about, self.progress = folder, about, progress
        self.runs, self.seconds = int(about["runs"]), about["seconds"]
        self.written: float | None = None

    def begin(self) -> None:
        """Before anything else is written, but not before there is something: what fails leaves no trace."""
        if self.written is None:
            self.write()

    def add(self, chunk: Chunk, workers: int) -> None:
        """Note who computed this, and for how long."""
        self.about["computing_seconds"] += chunk.total_seconds
        self.about |= provenance.joined(self.about, {"hardware": chunk.hardware, "workers": workers})
        if self.progress.clock() - (self.written or 0.0) > _NOTED_EVERY:
            self.write()

    def write(self) -> None:
        """Bring it to the disk."""
        self.about["runs"] = self.runs + self.progress.new
        self.about["seconds"] = self.seconds + self.progress.seconds
        asked = self.about["runs"] * self.progress.iterations
        self.about["lane_iterations_per_second"] = asked / max(self.about["seconds"], 1e-9)
        self.folder.write_about(self.about)
        self.written = self.progress.clock()
