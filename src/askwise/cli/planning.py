"""A command to plan with: simulate."""

from typing import Annotated

import typer

from askwise.cli.app import main, print_json
from askwise.cli.options import DEFAULT_FILE, AsJson, Context, StudyFile

__all__: list[str] = []


@main.command()
def simulate(
    answers: Annotated[
        int | None,
        typer.Option(
            "--answers",
            "-n",
            min=1,
            metavar="N",
            help="How many answers each user gives.",
            show_default="40, or 20 to batches",
        ),
    ] = None,
    users: Annotated[int, typer.Option("--users", "-k", min=1, metavar="K", help="How many users.")] = 10,
    seed: Annotated[int, typer.Option(help="Another seed, other users.")] = 0,
    context: Context = None,
    study: StudyFile = DEFAULT_FILE,
    as_json: AsJson = False,
) -> None:
    """Let made-up users answer: how many answers will it take?

    This takes about a minute.  Each user has a taste of their own, drawn from what
    the study expects, and answers as noisily as people do.  Nothing is recorded.
    """
    from askwise.cli.session import opened, read_context
    from askwise.cli.simulation import Simulation, print_simulation, simulated

    with opened(study) as session:
        given = read_context(context, session.study.space)
        plan = session.study.plan
    count = answers or (
        20 if plan.feedback == "batch" else 40
    )  # rankings say more, and take longer to choose
    wanted = Simulation(plan, count, users, seed, given)
    results = simulated(wanted, shows_progress=not as_json)
    if as_json:
        print_json({"answers": count, "users": users, "seed": seed, "after": [vars(row) for row in results]})
    else:
        print_simulation(wanted, results)
