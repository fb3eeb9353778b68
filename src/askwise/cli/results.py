"""Commands about results: status, best, plot, simulate."""

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from askwise.cli.app import DEFAULT_FILE, AsJson, Context, StudyFile, main, print_json, show
from askwise.errors import extra

Figures = StrEnum("Figures", ["slices", "maps", "uncertainty", "score", "progress", "all"])


@main.command()
def status(context: Context = None, study: StudyFile = DEFAULT_FILE, as_json: AsJson = False) -> None:
    """Show how far the study has come, and whether to go on."""
    from askwise.cli.screen import console, table
    from askwise.cli.session import opened, read_context
    from askwise.space import readable

    with opened(study) as session:
        found = session.study.status(read_context(context, session.study.space))
    if as_json:
        print_json({"name": session.config.name, **asdict(found)})
        return
    counts = {name: n for name, n in asdict(found).items() if isinstance(n, int) and (n or name == "answers")}
    out = console()
    out.print(f"{session.config.name}: {session.config.question}\n")
    out.print(table(["", ""], counts.items()))
    if found.gain is not None and found.regret is not None:
        out.print(
            f"\nOne more answer is expected to improve the setting by {readable(found.gain)}, all further "
            f"ones together by {readable(found.regret)} ({session.study.plan.kind.unit})."
        )
    out.print(f"\n{found.hint}")


@main.command()
def best(
    reference: Annotated[
        list[str] | None,
        typer.Option("--reference", "-r", metavar="NAME=VALUE", help="Setting to compare with."),
    ] = None,
    context: Context = None,
    study: StudyFile = DEFAULT_FILE,
    as_json: AsJson = False,
) -> None:
    """Show the recommended setting, and how likely it is to be preferred or to work."""
    from askwise.cli.screen import console, print_best
    from askwise.cli.session import opened, read_context, read_setting

    with opened(study) as session:
        space = session.study.space
        rival = read_setting(reference, space, "--reference") or None
        found = session.study.best(read_context(context, space), rival)
        if as_json:
            checks = [asdict(check) for check in session.study.checks()]
            counts = {"answers": session.study.count(), "checks": checks}
            print_json({**asdict(found), "reference": rival, **counts})
        else:
            print_best(console(), session, found, rival is not None)


@main.command()
def plot(
    kind: Annotated[Figures, typer.Option(help="What to draw.")] = Figures.all,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where to write the figures.")] = Path("plots"),
    context: Context = None,
    study: StudyFile = DEFAULT_FILE,
    as_json: AsJson = False,
) -> None:
    """Draw figures of the study, as PNG files."""
    from askwise.cli.session import opened, read_context
    from askwise.storage import overwritable

    kinds = [each for each in Figures if each is not Figures.all] if kind is Figures.all else [kind]
    with opened(study) as session:
        needed = kinds != [Figures.progress]  # which is about the last context, unless one is given
        given = read_context(context, session.study.space, needed=needed)
        with extra("plots", "plot"):
            from askwise import plots
        out.mkdir(parents=True, exist_ok=True)
        paths = {each.value: str(overwritable(out / f"{each.value}.png")) for each in kinds}
        for name, path in paths.items():
            getattr(plots, f"study_{name}")(session.study, context=given).savefig(path, dpi=150)
    show(as_json, {"files": paths}, "\n".join(paths.values()))


@main.command()
def simulate(
    answers: Annotated[
        int | None,
        typer.Option("--answers", "-n", min=1, metavar="N", help="Answers per user; 40, or 20 to batches."),
    ] = None,
    users: Annotated[int, typer.Option("--users", "-k", min=1, metavar="K", help="Number of users.")] = 10,
    seed: Annotated[int, typer.Option(help="Different seeds give different users.")] = 0,
    context: Context = None,
    study: StudyFile = DEFAULT_FILE,
    as_json: AsJson = False,
) -> None:
    """Let simulated users answer: how many answers will it take?

    This takes about a minute.  Each user has a utility of their own, drawn from the
    prior of the study, and answers with noise, as people do.  Nothing is recorded.
    """
    from askwise.cli.screen import print_simulation, progress
    from askwise.cli.session import opened, read_context
    from askwise.study import Simulation, simulated

    with opened(study) as session:
        given = read_context(context, session.study.space)
        plan = session.study.plan
    wanted = Simulation(plan, answers or plan.kind.simulated_answers, users, seed, given)
    with progress("answers", wanted.users * wanted.answers, shown=not as_json) as step:
        results = simulated(wanted, step)
    if as_json:
        head = {"answers": wanted.answers, "users": users, "seed": seed}
        print_json({**head, "after": [vars(row) for row in results]})
    else:
        print_simulation(wanted, results)
