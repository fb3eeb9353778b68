"""Commands that compare rules on functions with known maxima: bench list, run, rank, report, pack."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from askwise.cli.app import AsJson, main, print_json

bench = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Compare rules on functions with known maxima.",
    epilog="Begin with `askwise bench list`.",
)
main.add_typer(bench, name="bench")

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="Output of `askwise bench run` or `pack`.")]


@bench.command("list")
def list_(as_json: AsJson = False) -> None:
    """List the experiments."""
    from askwise.bench import experiments
    from askwise.cli.benchmarks import print_experiments

    if not as_json:
        print_experiments()
        return
    print_json(
        [
            {
                "name": each.name,
                "title": each.title,
                "about": each.about,
                "rules": [arm.label for arm in each.arms],
                "functions": list(each.functions),
                "replicates": each.replicates,
                "iterations": each.iterations,
                "lane_iterations": each.lane_iterations,
            }
            for each in experiments.EXPERIMENTS.values()
        ]
    )


@bench.command()
def run(  # noqa: PLR0913 - one for each option
    experiment: Annotated[str, typer.Argument(help="Its name, from `askwise bench list`.")],
    functions: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Some of its functions only, or others.", show_default="all"),
    ] = None,
    rules: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help="Some of its rules only, or others: 'muc,ucb_phi(beta=2)'.",
            show_default="all",
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
    dask: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Compute on the workers of this Dask scheduler; local: start --workers of them here.",
        ),
    ] = None,
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
    """Run an experiment, or what is missing of it.

    Ctrl-C or a crash loses only the chunks in progress: the same command resumes.
    With more functions, rules or replicates, only the new runs are computed.
    """
    from askwise.cli.benchmarks import Wanted, campaign_of, executor_of

    wanted = Wanted(experiment, functions, rules, replicates, iterations)
    campaign = campaign_of(wanted, out, device, lanes)
    directory, executor = campaign.folder.path, executor_of(workers, dask)
    try:
        summary = campaign.run(executor, typer.get_text_stream("stderr"))
    except KeyboardInterrupt:
        if as_json:
            print_json({"directory": str(directory), "interrupted": True})
        else:
            typer.echo(f"Stopped. Finished runs are in {directory}; the same command resumes.", err=True)
        raise typer.Exit(130) from None
    if as_json:
        print_json({"directory": str(directory), **asdict(summary), "interrupted": False})
        return
    new = {0: "none", summary.runs: "all"}.get(summary.computed, str(summary.computed))
    typer.echo(f"{summary.runs} runs are in {directory}, {new} of them new.")
    if summary.missing:
        typer.echo(f"{summary.missing} others of the experiment in that directory are missing.")
    typer.echo(f"Compare the rules with `askwise bench rank {directory}`.")


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
    the number of rules below it, summed over functions.
    """
    from askwise.bench import ranking, results
    from askwise.cli.benchmarks import print_ranking

    found = results.load(directory, partial=partial)
    table = ranking.rank(found.scores, alpha)
    if not as_json:
        print_ranking(found, table, alpha)
        return
    settings = {"directory": str(directory), "experiment": found.experiment.name, "alpha": alpha}
    runs = {"replicates": found.experiment.replicates, "iterations": found.experiment.iterations}
    wins = {"wins_final": table.wins_final.tolist(), "wins_auc": table.wins_auc.tolist()}
    rows = [asdict(row) for row in table.rows]
    print_json({**settings, "functions": list(found.functions), **runs, "rows": rows, **wins})


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
    from askwise.cli.benchmarks import written_report

    page = written_report(directories, out, findings)
    if as_json:
        print_json({"file": str(page)})
    else:
        typer.echo(f"Wrote {page}.")


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
    if as_json:
        print_json({"directory": str(folder), "bytes": size})
    else:
        typer.echo(f"Wrote {folder} ({size / 1000:.0f} kB).")
