"""How `askwise bench` reads its options and prints its results."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from askwise.bench import campaign, executors, experiments, ranking, results
from askwise.cli.screen import console, counted, table
from askwise.errors import Refused
from askwise.rules import parse


@dataclass(frozen=True)
class Wanted:
    """The options that choose and reduce an experiment."""

    name: str
    functions: str | None
    rules: str | None
    replicates: int | None
    iterations: int | None

    def experiment(self) -> experiments.Experiment:
        """The experiment that was asked for."""
        if self.name not in experiments.EXPERIMENTS:
            raise Refused(
                "experiment",
                f"be one of {', '.join(experiments.EXPERIMENTS)}",
                repr(self.name),
                "See `askwise bench list`.",
            )
        whole = experiments.EXPERIMENTS[self.name]
        functions = None if self.functions is None else split(self.functions, "--functions")
        smaller = whole.reduced(functions, None, self.replicates, self.iterations)
        if self.rules is None:
            return smaller
        return replace(smaller, arms=tuple(_arm(whole, rule) for rule in split(self.rules, "--rules")))


def split(text: str, option: str) -> tuple[str, ...]:
    """The parts of a list, split at commas outside parentheses, without repetitions.

    >>> split("muc, ucb_phi(beta=2, x=1),random", "--rules")
    ('muc', 'ucb_phi(beta=2, x=1)', 'random')
    """
    parts = [part.strip() for part in re.split(r",(?![^()]*\))", text)]
    if not all(parts):
        raise Refused(option, "be names separated by commas", repr(text), "Write a,b, say.")
    return tuple(dict.fromkeys(parts))


def _arm(experiment: experiments.Experiment, text: str) -> experiments.Arm:
    """The arm with this label, or another rule with queries of the same size."""
    for arm in experiment.arms:
        if text == arm.label:
            return arm
    rule, sizes = str(parse(text)), {arm.m for arm in experiment.arms}
    if len(sizes) > 1:
        return experiment.arm(rule)
    labels = {arm.label: arm for arm in experiment.arms}
    return labels.get(rule, experiments.Arm(rule, sizes.pop()))


def campaign_of(wanted: Wanted, out: Path | None, device: str, lanes: int | None) -> campaign.Campaign:
    """The campaign for this experiment."""
    directory = Path("out", "bench", wanted.name) if out is None else out
    return campaign.Campaign(wanted.experiment(), directory, device, lanes)


def executor_of(workers: int | None, dask: str | None) -> executors.Executor:
    """The executor that these options name."""
    if dask is not None:
        if workers is not None and dask != "local":
            raise Refused(
                "--workers",
                "be left out with the address of a Dask scheduler",
                workers,
                "The scheduler has its own workers.",
            )
        return executors.DaskCluster(dask, workers or 1)
    return executors.ThisProcess() if workers in (None, 1) else executors.Processes(workers)


def print_experiments() -> None:
    """Print experiments and their sizes."""
    out = console()
    shown = table("experiment", "what", "rules", "functions", "runs of each", "queries", right=[2, 3, 4, 5])
    for each in experiments.EXPERIMENTS.values():
        runs = f"{each.replicates} x {each.iterations}"
        counts = (str(len(each.arms)), str(len(each.functions)), runs, f"{each.lane_iterations:,}")
        shown.add_row(each.name, each.title, *counts)
    out.print(shown)
    out.print("\nRuns of each: replicates of each rule on each function, x queries per run.")
    out.print(
        "A first one, which takes a minute: `askwise bench run pbo --functions forrester --replicates 2`."
    )


def print_ranking(found: results.Results, ranked: ranking.Table, alpha: float) -> None:
    """Print rules, best first."""
    out, experiment = console(), found.experiment
    queries = "1 query" if experiment.iterations == 1 else f"{experiment.iterations} queries"
    out.print(
        f"{experiment.title}: {counted(len(found.functions), 'function')}, "
        f"{counted(experiment.replicates, 'run')} of {queries} each, "
        f"tests at level {alpha:g}\n"
    )
    shown = table("rank", "rule", "Borda", right=[0, 2])
    for row in ranked.rows:
        shown.add_row(str(row.rank), row.rule, str(row.borda))
    out.print(shown)


def written_report(directories: Sequence[Path], out: Path, findings: Path | None) -> Path:
    """Write the page about these results; returns its path."""
    from askwise.bench import report  # not at the top: it needs matplotlib

    report.write(directories, out, findings)
    return out / "report.md"
