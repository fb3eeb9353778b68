"""Commands to start with: init, check, doctor."""

from pathlib import Path
from typing import Annotated

import typer

from askwise.cli.app import DEFAULT_FILE, AsJson, StudyFile, main, print_json, show
from askwise.errors import Refused, printable
from askwise.rules.asks import Asks

_FEEDBACK = "binary: did it work? duel: which of two is better? batch: compare several."


@main.command()
def init(
    file: Annotated[
        Path | None, typer.Argument(help="Where to write it.", show_default="askwise.toml")
    ] = None,
    feedback: Annotated[Asks, typer.Option(help=_FEEDBACK)] = Asks.DUEL,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    study: StudyFile = DEFAULT_FILE,
    as_json: AsJson = False,
) -> None:
    """Write a study file to fill in."""
    from askwise.storage import overwrite
    from askwise.study.config import template

    path = study if file is None else file
    if path.exists() and not force:
        advice = "Choose another name, or replace it with --force."
        raise Refused("file", "be new", f"{path}, which exists", advice)
    overwrite(path, template(feedback.value))
    option = "" if path == DEFAULT_FILE else f" -s {path}"
    sentence = f"Wrote {path}. Fill in your parameters, then look at it with `askwise check{option}`."
    show(as_json, {"file": str(path), "feedback": feedback.value}, sentence)


@main.command()
def check(study: StudyFile = DEFAULT_FILE, as_json: AsJson = False) -> None:
    """Check the study file and show what it says."""
    from askwise.cli.app import counted
    from askwise.cli.screen import console, table
    from askwise.cli.session import opened
    from askwise.storage import shown as shown_address

    with opened(study, model=False) as session:
        config, plan = session.config, session.study.plan
        questions, answers = len(session.study.history()), session.study.count()
    settings = plan.to_dict()
    storage = None if config.storage is None else shown_address(config.storage)
    if as_json:
        record = {"recorded": session.recorded, "questions": questions, "answers": answers}
        head = {"file": str(study), "name": config.name, "question": config.question, "storage": storage}
        print_json({**head, **settings, **record})
        return
    out = console()
    out.print(f"{study} is in order.\n")
    columns, parameters = ("parameter", "kind", "values", "unit"), config.space.parameters.items()
    out.print(table(columns, [(name, p.kind_text, p.range_text, p.unit) for name, p in parameters]))
    for constraint in plan.space.constraints:
        out.print(f"\nwhere {constraint}")
    shown = {name: settings[name] for name in ("feedback", "size", "rule", "kernel", "initial", "seed")}
    if plan.expires is not None:
        shown["expires"] = f"after {plan.expires:g} s"
    if plan.level is not None:
        shown["level"] = (
            f"{plan.level:g}: all settings that work at least {100 * plan.level:.4g}% of the time"
        )
    if plan.repeats:
        shown["repeats"] = f"{plan.repeats:.2g} of the questions are asked twice"
    shown |= {name: value for name, value in plan.people.to_dict().items() if name != "threshold"}
    out.print()
    out.print(table(["", ""], [("name", config.name), ("question", config.question), *shown.items()]))
    out.print()
    if session.recorded:
        out.print(f"{counted(answers, 'answer')} to {counted(questions, 'question')} in {storage}.")
    elif config.storage is None:
        out.print('There is no storage, so nothing can be recorded: add storage = "study.db" under [study].')
    else:
        out.print(f"No answers yet; they will be kept in {storage}.")


@main.command()
def doctor(
    deep: Annotated[bool, typer.Option("--deep", help="Read every event of every study there.")] = False,
    study: StudyFile = DEFAULT_FILE,
    as_json: AsJson = False,
) -> None:
    """Check that everything works here.

    Looks at packages, numerics, storage and record, and says how to fix each problem.
    """
    from askwise.cli.checkup import findings

    found = []
    for finding in findings(study, needed=study != DEFAULT_FILE, deep=deep):
        found.append(finding)
        if not as_json:
            mark = "ok     " if finding.ok else "PROBLEM"
            typer.echo(printable(f"{mark}  {finding.what}: {finding.detail} {finding.advice}".rstrip()))
    well = all(finding.ok for finding in found)
    if as_json:
        print_json({"ok": well, "findings": [vars(finding) for finding in found]})
    if not well:
        raise typer.Exit(1)
