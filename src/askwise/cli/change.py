"""Command to change a study that has begun: change."""

from typing import Annotated

import typer

from askwise.cli.app import DEFAULT_FILE, AsJson, StudyFile, main, print_json
from askwise.errors import Refused, printable


@main.command()
def change(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    reason: Annotated[str | None, typer.Option(metavar="TEXT", help="Why, for the record.")] = None,
    study: StudyFile = DEFAULT_FILE,
    as_json: AsJson = False,
) -> None:
    """Go on with the study file as it is now.

    Applies what was edited in it since: ranges, values, items, constraints, rule, kernel, expires,
    repeats.  All answers stay.  With --json nothing is changed unless --yes is given, too.
    """
    from askwise.cli.session import opened
    from askwise.study.changes import difference
    from askwise.study.files import plan_of
    from askwise.study.plan import CHANGEABLE

    with opened(study, changing=True) as session:
        if not session.recorded:
            advice = "Edit the file as you like; nothing is recorded yet."
            raise Refused("study", "have a record to change", "none", advice)
        now = session.study.plan
        wanted = now.changed(**{name: getattr(plan_of(session.config, now), name) for name in CHANGEABLE})
        _, words = difference(now, wanted)
        if not as_json:
            typer.echo(printable("\n".join(words) or f"{study} says what is recorded: nothing to change."))
        sure = yes or (bool(words) and not as_json and typer.confirm("Change the study so?"))
        if words and sure:
            settings = {name: getattr(wanted, name) for name in CHANGEABLE}
            words = session.study.change(**settings, reason=reason)
    done = bool(words) and sure
    if as_json:
        print_json({"changes": words, "changed": done})
    elif words:
        typer.echo("Changed; questions from here on follow the file." if done else "Nothing was changed.")
