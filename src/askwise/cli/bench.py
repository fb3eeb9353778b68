"""Commands that compare rules on functions with known maxima: bench list, run, rank, report, pack."""

import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from askwise.cli.app import AsJson, main, print_json, show
from askwise.errors import Refused

if TYPE_CHECKING:
    from askwise.bench.executors import Executor
    from askwise.bench.experiments import Arm, Experiment

bench = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Compare rules on functions with known maxima.",
    epilog="Start with `askwise bench list`.",
)
main.add_typer(bench, name="bench")

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="Output of `askwise bench run` or `pack`.")]
_DASK = "Address of a Dask scheduler whose workers compute; local: start --workers of them here."


@bench.command("list")
def list_(as_json: AsJson = False) -> None:
    """List the experiments."""
    from askwise.bench import experiments
    from askwise.cli.screen import console, table

    every = experiments.EXPERIMENTS.values()
    if as_json:
        keys = ("name", "title", "about", "functions", "replicates", "iterations", "lane_iterations")
        labels = [{"rules": [arm.label for arm in each.arms]} for each in every]
        facts = [{key: getattr(each, key) for key in keys} for each in every]
        print_json([one | rules for one, rules in zip(facts, labels, strict=True)])
        return
    columns, rows = ("experiment", "what", "rules", "functions", "runs of each", "queries"), []
    for each in every:
        runs, queries = f"{each.replicates} x {each.iterations}", f"{each.lane_iterations:,}"
        rows.append((each.name, each.title, len(each.arms), len(each.functions), runs, queries))
    out = console()
    out.print(table(columns, rows, right=[2, 3, 4, 5]))
    out.print("\nRuns of each: replicates of each rule on each function, x queries per run.")
    first = "askwise bench run pbo --functions forrester --replicates 2"
    out.print(f"To try one that takes a minute: `{first}`.")


@bench.command()
def run(  # noqa: PLR0913 - one for each option
    experiment: Annotated[str, typer.Argument(help="A name from `askwise bench list`.")],
    functions: Annotated[
        str | None, typer.Option(metavar="A,B", help="Functions, its own or others.", show_default="all")
    ] = None,
    rules: Annotated[
        str | None,
        typer.Option(
            metavar="A,B", help="Rules, its own or others: 'muc,ucb_phi(beta=2)'.", show_default="all"
        ),
    ] = None,
    replicates: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Runs of each rule on each function.")
    ] = None,
    iterations: Annotated[int | None, typer.Option(min=1, metavar="N", help="Queries of each run.")] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Worker processes.", show_default="this one")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu or cuda; workers may share a GPU.")] = "cpu",
    dask: Annotated[str | None, typer.Option(metavar="ADDRESS", help=_DASK)] = None,
    lanes: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Runs computed together.", show_default="64, on a GPU 1024"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where to store results.", show_default="out/bench/EXPERIMENT"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run an experiment, or those of its runs that are missing.

    Ctrl-C or a crash loses only the chunks in progress: the same command resumes.
    With more functions, rules or replicates, only the new runs are computed.
    """
    from askwise.bench import campaign

    directory = Path("out", "bench", experiment) if out is None else out
    wanted = reduced(experiment, functions, rules, replicates, iterations)
    planned, executor = campaign.Campaign(wanted, directory, device, lanes), executor_of(workers, dask)
    try:
        summary = planned.run(executor, typer.get_text_stream("stderr"))
    except KeyboardInterrupt:
        if as_json:
            print_json({"directory": str(directory), "interrupted": True})
        else:
            typer.echo(f"Stopped. Finished runs are in {directory}; the same command resumes.", err=True)
        raise typer.Exit(130) from None
    new = {0: "none", summary.runs: "all"}.get(summary.computed, str(summary.computed))
    others = f"{summary.missing} other runs of the experiment in that directory are missing.\n"
    show(
        as_json,
        {"directory": str(directory), **asdict(summary), "interrupted": False},
        f"{summary.runs} runs are in {directory}, {new} of them new.\n{others if summary.missing else ''}"
        f"Compare the rules with `askwise bench rank {directory}`.",
    )


def reduced(
    name: str, functions: str | None, rules: str | None, replicates: int | None, iterations: int | None
) -> "Experiment":
    """The experiment with these functions and rules (comma-separated), replicates and queries per run."""
    from askwise.bench.experiments import EXPERIMENTS

    if name not in EXPERIMENTS:
        expected = f"be one of {', '.join(EXPERIMENTS)}"
        raise Refused("experiment", expected, repr(name), "See `askwise bench list`.")
    whole = EXPERIMENTS[name]
    chosen = None if functions is None else split(functions, "--functions")
    smaller = whole.reduced(chosen, None, replicates, iterations)
    if rules is None:
        return smaller
    return replace(smaller, arms=tuple(_arm(whole, rule) for rule in split(rules, "--rules")))


def split(text: str, option: str) -> tuple[str, ...]:
    """The parts of a list, split at commas outside parentheses, without repetitions.

    >>> split("muc, ucb_phi(beta=2, x=1),random", "--rules")
    ('muc', 'ucb_phi(beta=2, x=1)', 'random')
    """
    parts = [part.strip() for part in re.split(r",(?![^()]*\))", text)]
    if not all(parts):
        raise Refused(option, "be names separated by commas", repr(text), "Write muc,kss, say.")
    return tuple(dict.fromkeys(parts))


def _arm(experiment: "Experiment", text: str) -> "Arm":
    """The arm with this label, or another rule with queries of the same size."""
    from askwise.bench.experiments import Arm
    from askwise.rules import parse

    labels, sizes = {arm.label for arm in experiment.arms}, {arm.m for arm in experiment.arms}
    rule = text if text in labels else str(parse(text))
    if rule in labels or len(sizes) > 1:
        return experiment.arm(rule)
    return Arm(rule, sizes.pop())


def executor_of(workers: int | None, dask: str | None) -> "Executor":
    """The executor that these options name."""
    from askwise.bench import executors

    if dask is None:
        return executors.ThisProcess() if workers in (None, 1) else executors.Processes(workers)
    if workers is not None and dask != "local":
        expected = "be left out with the address of a Dask scheduler"
        raise Refused("--workers", expected, workers, "The scheduler has its own workers.")
    return executors.DaskCluster(dask, workers or 1)


@bench.command()
def rank(
    directory: Directory,
    alpha: Annotated[float, typer.Option(metavar="P", help="Significance level of each test.")] = 5e-4,
    partial: Annotated[bool, typer.Option("--partial", help="Leave out unfinished functions.")] = False,
    as_json: AsJson = False,
) -> None:
    """Rank the rules by significant wins.

    A rule beats another on a function if a Mann-Whitney test finds its final scores
    higher; ties are broken by the mean over all queries. The Borda score of a rule is
    the number of rules below it, summed over functions; ± is its standard error, from
    resampled runs.
    """
    from askwise.bench import ranking, results
    from askwise.cli.app import counted
    from askwise.cli.screen import console, table

    found = results.load(directory, partial=partial)
    ranked, experiment = ranking.rank(found.scores, alpha), found.experiment
    spread = ranking.spreads_at(found.scores, (alpha,))[alpha]
    errors = [spread.error(row.rule) for row in ranked.rows]
    if as_json:
        settings = {"directory": str(directory), "experiment": experiment.name, "alpha": alpha}
        runs = {"replicates": experiment.replicates, "iterations": experiment.iterations}
        wins = {"wins_final": ranked.wins_final.tolist(), "wins_auc": ranked.wins_auc.tolist()}
        rows = [{**asdict(row), "error": error} for row, error in zip(ranked.rows, errors, strict=True)]
        chance = {"smallest_p": ranked.smallest_p, "warning": ranked.undecidable or None}
        print_json({**settings, "functions": list(found.functions), **runs, "rows": rows, **wins, **chance})
        return
    queries = "1 query" if experiment.iterations == 1 else f"{experiment.iterations} queries"
    functions, runs_each = counted(len(found.functions), "function"), counted(experiment.replicates, "run")
    each = zip(ranked.rows, errors, strict=True)
    out, shown = console(), [(row.rank, row.rule, row.borda, f"{error:.0f}") for row, error in each]
    out.print(f"{experiment.title}: {functions}, {runs_each} of {queries} each, tests at level {alpha:g}\n")
    out.print(table(["rank", "rule", "Borda", "±"], shown, right=[0, 2, 3]))
    out.print(f"\n±: standard error of the score, from {ranking.BOOTSTRAPS} resamples of the runs.")
    if ranked.undecidable:
        out.print(f"\n{ranked.undecidable}")


@bench.command()
def report(
    directories: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="Results, one experiment each.")
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where to write it.")] = Path("out/bench/report"),
    findings: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Markdown to insert after the introduction.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a page with tables and figures about results."""
    from askwise.bench import report as pages

    pages.write(directories, out, findings)
    show(as_json, {"file": str(out / "report.md")}, f"Wrote {out / 'report.md'}.")


@bench.command()
def pack(
    directory: Directory,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Where to write about.json and scores.npz.")],
    as_json: AsJson = False,
) -> None:
    """Write results in a compact form, small enough for a repository."""
    from askwise.bench import results

    folder = results.pack(directory, out)
    size = sum(file.stat().st_size for file in folder.iterdir())
    show(as_json, {"directory": str(folder), "bytes": size}, f"Wrote {folder} ({size / 1000:.0f} kB).")
