"""A campaign: all runs of an experiment, computed in chunks, each stored as soon as it is finished.

A killed campaign loses only the chunks in progress.  Restarted with the same number of lanes, it computes
those and the rest, and ends with the same bits as an uninterrupted one.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from askwise import plugins
from askwise.bench import provenance
from askwise.bench.chunks import Chunk, Folder, Unusable
from askwise.bench.executors import Executor, ThisProcess
from askwise.bench.experiments import Experiment
from askwise.bench.lanes import RunId, Runs, alike, run
from askwise.bench.problems import Problem
from askwise.bench.progress import Progress, Stream, shown
from askwise.bench.schedule import SlowestFirst, Task, run_ids, tasks_of
from askwise.errors import Refused
from askwise.numerics import one_thread
from askwise.rules import check_size, parse

_LANES = {"cpu": 64, "cuda": 1024}
_RECORDED_EVERY = 30.0  # seconds
_NOTHING_YET = dict.fromkeys(("runs", "seconds", "computing_seconds", "lane_iterations_per_second"), 0.0)


@dataclass(frozen=True)
class Summary:
    """What a campaign did."""

    runs: int  # of the experiment, all finished now
    computed: int  # those of them that were new
    missing: int  # unfinished runs of a larger experiment that the directory was started for
    seconds: float
    lane_iterations_per_second: float


def check_device(device: str) -> None:
    """Refuse a device that does not exist here."""
    try:
        kind = torch.device(device)
    except RuntimeError:
        kind = None
    if kind is None or kind.type not in _LANES:
        raise Refused("device", "be cpu or cuda", repr(device), "Choose one of them.")
    count = torch.cuda.device_count()
    if kind.type == "cuda" and (kind.index or 0) >= count:
        seen, advice = (
            f"be one of the {count} GPUs that torch sees",
            "Use the cpu, or install torch for your GPU.",
        )
        raise Refused("device", seen, repr(device), advice)


def computed(task: Task) -> Chunk:
    """The runs of a task, computed in the current process."""
    for module in task.imports:
        plugins.use(module)
    check_device(task.device)
    try:
        with one_thread():  # more would change the last bits
            runs = _fitting(task, task.ids)
    except torch.OutOfMemoryError:
        advice = "Use fewer --lanes, or fewer --workers."
        raise Refused("lanes", "fit into the memory of the device", len(task.ids), advice) from None
    return Chunk.of(task.ids, runs, provenance.hardware(task.device))


def _fitting(task: Task, ids: tuple[RunId, ...]) -> Runs:
    """These runs of a task, halved until they fit into memory."""
    try:
        return run(task.experiment, ids, task.device, task.others)
    except torch.OutOfMemoryError:
        if len(ids) == 1:
            raise
    torch.cuda.empty_cache()
    half = len(ids) // 2
    return Runs.joined([_fitting(task, part) for part in (ids[:half], ids[half:])])


class Campaign:
    """The runs of an experiment, stored in a directory.

    A directory can grow: given more functions, rules or replicates, only the new runs are computed.
    """

    def __init__(
        self, experiment: Experiment, directory: Path | str, device: str = "cpu", lanes: int | None = None
    ) -> None:
        """``lanes``: maximum number of runs computed together; by default 64, on a GPU 1024."""
        if lanes is not None and lanes < 1:
            raise Refused("lanes", "be 1 or more", lanes, "64 suits a CPU, 1024 a GPU.")
        for arm in experiment.arms:
            check_size(parse(arm.rule), arm.m)
        for name in experiment.functions:  # refuse unknown ones, and those without constants
            Problem.of(name, experiment.scale).hyperparameters(experiment.prior)
        self.experiment, self.folder, self.device = experiment, Folder(Path(directory)), device
        self.lanes = lanes or _LANES.get(device.partition(":")[0], 1)

    def run(self, executor: Executor | None = None, stream: Stream | None = None) -> Summary:
        """Compute the missing runs, by default in this process; progress is shown on the stream."""
        return run_together([self], executor, stream)[0]

    def _about(self) -> dict[str, Any]:
        """The description of the directory from now on; refuses a directory that holds something else."""
        path = self.folder.path
        if self.folder.packed.exists():
            raise Refused("directory", "not be that of a packed campaign", path, "Choose another (--out).")
        if self.folder.about.exists():
            about = self.folder.read_about()
            whole = provenance.grown(provenance.experiment_in(about, path), self.experiment, path)
            return {**_NOTHING_YET, **about, "experiment": asdict(whole)}
        if any(not name.name.endswith(".tmp") for name in path.iterdir()):
            got = f"{path}, which holds other things"
            raise Refused("directory", "be new or that of a campaign", got, "Choose another (--out).")
        return {"experiment": asdict(self.experiment), "seed": provenance.SEED_RULE, **_NOTHING_YET}

    def _finished(self, stream: Stream | None) -> list[tuple[tuple[RunId, ...], float]]:
        """The finished runs of each chunk and the seconds they took; sets unusable files aside."""
        found = []
        for chunk in self.folder.read(self.experiment):
            if isinstance(chunk, Unusable):
                aside = chunk.path.rename(chunk.path.with_name(f"{chunk.path.name}.unusable"))
                if stream is not None:
                    stream.write(f"{chunk} Renamed it to {aside.name}.\n")
            else:
                found.append((chunk.ids, chunk.total_seconds))
        return found


class _Session:
    """What this process adds to the directory of a campaign."""

    def __init__(self, campaign: Campaign, stream: Stream | None) -> None:
        self.campaign, self.new = campaign, 0
        self.about = campaign._about()
        campaign.folder.sweep()
        self.timed = campaign._finished(stream)
        self.done = {run_id for ids, _ in self.timed for run_id in ids}
        self.ids = run_ids(campaign.experiment)
        self.before = int(self.about["runs"]), self.about["seconds"]

    def begin(self, executor: Executor) -> None:
        """Note how runs are going to be computed."""
        means = {"device": self.campaign.device, "lanes": self.campaign.lanes, "executor": executor.name}
        self.about |= provenance.joined(self.about, {**provenance.circumstances(), **means})
        for module in plugins.used():
            self.about |= provenance.joined(self.about, {"imports": module})

    def keep(self, chunk: Chunk, workers: int) -> None:
        """Store a chunk."""
        self.campaign.folder.write(chunk)
        self.new += len(chunk.ids)
        self.about["computing_seconds"] += chunk.total_seconds
        self.about |= provenance.joined(self.about, {"hardware": chunk.hardware, "workers": workers})

    def record(self, seconds: float) -> None:
        """Write what all sessions cost."""
        runs, earlier = self.before
        iterations = self.campaign.experiment.iterations
        self.about["runs"], self.about["seconds"] = runs + self.new, earlier + seconds
        rate = self.about["runs"] * iterations / max(self.about["seconds"], 1e-9)
        self.campaign.folder.write_about({**self.about, "lane_iterations_per_second": rate})

    def summary(self, seconds: float) -> Summary:
        """What was done."""
        whole = run_ids(provenance.experiment_of(self.about["experiment"]))
        missing = len(set(whole) - self.done - set(self.ids))
        rate = self.new * self.campaign.experiment.iterations / max(seconds, 1e-9)
        return Summary(len(self.ids), self.new, missing, seconds, rate)


def run_together(
    campaigns: Sequence[Campaign], executor: Executor | None = None, stream: Stream | None = None
) -> list[Summary]:
    """Compute the missing runs of campaigns whose experiments are alike, in the same lanes.

    On a GPU a step of three times as many lanes takes hardly longer.  The time is divided by the runs.
    """
    first, *others = campaigns
    for other in others:
        if not alike(first.experiment, other.experiment):
            expected = f"differ from {first.experiment.name} in the noise of answers only"
            raise Refused("experiments", expected, other.experiment.name, "Run it by itself.")
    executor = ThisProcess() if executor is None else executor
    if executor.is_here:
        check_device(first.device)
    with ExitStack() as locks:
        for campaign in campaigns:
            locks.enter_context(campaign.folder.locked())
        sessions = {campaign.experiment.name: _Session(campaign, stream) for campaign in campaigns}
        ids = {run_id for session in sessions.values() for run_id in session.ids}
        done = {run_id for session in sessions.values() for run_id in session.done}
        progress = Progress(len(ids), len(ids & done), first.experiment.iterations)
        more = tuple(other.experiment for other in others)
        tasks = tasks_of(first.experiment, done, first.device, first.lanes, plugins.used(), more)
        if tasks:
            timed = [chunk for session in sessions.values() for chunk in session.timed]
            with shown(progress, stream) if stream else nullcontext():
                _compute(sessions, executor, SlowestFirst(tasks, timed), progress)
        share = progress.seconds / max(1, progress.new)
        return [
            session.summary(share * session.new if others else progress.seconds)
            for session in sessions.values()
        ]


def _compute(
    sessions: Mapping[str, _Session], executor: Executor, queue: SlowestFirst, progress: Progress
) -> None:
    """Compute and store chunk by chunk, and record how."""
    for session in sessions.values():
        session.begin(executor)
    recorded: float | None = None

    def record() -> float:
        """Write the cost of all sessions so far; returns the time."""
        for session in sessions.values():
            share = session.new / progress.new if progress.new else 1 / len(sessions)
            session.record(share * progress.seconds)
        return progress.clock()

    try:
        with closing(executor.results(computed, queue)) as results:
            for _, chunk in results:
                if recorded is None:  # not earlier: a campaign that fails at once leaves no trace
                    recorded = record()
                for part in chunk.by_experiment():
                    sessions[part.ids[0].experiment].keep(part, executor.workers)
                queue.learn(chunk.ids, chunk.total_seconds)
                progress.done += len(chunk.ids)
                if progress.clock() - recorded > _RECORDED_EVERY:
                    recorded = record()
    finally:
        if progress.new:
            record()
