"""What the words of `askwise bench` mean, and how its results look."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from askwise.bench.campaign import Campaign
from askwise.bench.executors import DaskCluster, Executor, Processes, ThisProcess
from askwise.bench.experiments import EXPERIMENTS, Arm, Experiment
from askwise.bench.ranking import Table
from askwise.bench.results import Results
from askwise.cli.screen import console, counted, table
from askwise.rules import parse

__all__ = [
    "Wanted",
    "campaign_of",
    "executor_of",
    "print_experiments",
    "print_ranking",
    "split",
    "written_report",
]


@dataclass(frozen=True)
class Wanted:
    """An experiment as it was asked for."""

    name: str
    functions: str | None
    rules: str | None
    replicates: int | None
    iterations: int | None

    def experiment(self) -> Experiment:
        """The experiment, reduced to what was asked for."""
        if self.name not in EXPERIMENTS:
            raise ValueError(
                f"experiment must be one of {', '.join(EXPERIMENTS)}; got {self.name!r}. "
                "See `askwise bench list`."
            )
        whole = EXPERIMENTS[self.name]
        functions = None if self.functions is None else split(self.functions, "--functions")
        smaller = whole.reduced(functions, None, self.replicates, self.iterations)
        if self.rules is None:
            return smaller
        return replace(smaller, arms=tuple(_arm(whole, rule) for rule in split(self.rules, "--rules")))


def split(text: str, option: str) -> tuple[str, ...]:
    """The parts between commas, but not those within parentheses, each of them once.

    >>> split("muc, ucb_phi(beta=2, x=1),random", "--rules")
    ('muc', 'ucb_phi(beta=2, x=1)', 'random')
    """
    parts = [part.strip() for part in re.split(r",(?![^()]*\))", text)]
    if not all(parts):
        raise ValueError(f"{option} must be names with commas between them; got {text!r}. Write a,b, say.")
    return tuple(dict.fromkeys(parts))


def _arm(experiment: Experiment, text: str) -> Arm:
    """An arm of the experiment by its label, or another rule in the place of one of them."""
    for arm in experiment.arms:
        if text == arm.label:
            return arm
    rule, sizes = str(parse(text)), {arm.m for arm in experiment.arms}
    if len(sizes) > 1:
        return experiment.arm(rule)
    labels = {arm.label: arm for arm in experiment.arms}
    return labels.get(rule, Arm(rule, sizes.pop()))


def campaign_of(wanted: Wanted, out: Path | None, device: str, lanes: int | None) -> Campaign:
    """The campaign that computes it."""
    directory = Path("out", "bench", wanted.name) if out is None else out
    return Campaign(wanted.experiment(), directory, device, lanes)


def executor_of(workers: int | None, dask: str | None) -> Executor:
    """Who computes."""
    if dask is not None:
        if workers is not None and dask != "local":
            raise ValueError(
                f"--workers must be left out with the address of a Dask scheduler; got {workers}. "
                "Its own workers compute."
            )
        return DaskCluster(dask, workers or 1)
    return ThisProcess() if workers in (None, 1) else Processes(workers)


def print_experiments(experiments: Iterable[Experiment]) -> None:
    """Show experiments and how large they are."""
    out = console()
    shown = table("experiment", "what", "rules", "functions", "runs of each", "questions", right=[2, 3, 4, 5])
    for each in experiments:
        runs = f"{each.replicates} x {each.iterations}"
        counts = (str(len(each.arms)), str(len(each.functions)), runs, f"{each.iterations_of_lanes:,}")
        shown.add_row(each.name, each.title, *counts)
    out.print(shown)
    out.print("\nRuns of each rule on each function: how many, and of how many questions.")
    out.print("Try one in a minute: `askwise bench run pbo --functions forrester --replicates 2`.")


def print_ranking(results: Results, ranking: Table, alpha: float) -> None:
    """Show rules, best first."""
    out, experiment = console(), results.experiment
    out.print(
        f"{experiment.title}: {counted(len(results.functions), 'function')}, "
        f"{counted(experiment.replicates, 'run')} of {counted(experiment.iterations, 'question')} each, "
        f"tests at level {alpha:g}\n"
    )
    shown = table("rank", "rule", "Borda", right=[0, 2])
    for row in ranking.rows:
        shown.add_row(str(row.rank), row.rule, str(row.borda))
    out.print(shown)


def written_report(directories: Sequence[Path], out: Path, findings: Path | None) -> Path:
    """The page that was written about results."""
    try:
        from askwise.bench import report
    except ImportError as error:
        raise ImportError(
            f"report must have matplotlib; got none ({error}). Run `pip install askwise[plots]`."
        ) from error
    report.write(directories, out, findings)
    return out / "report.md"
