"""Commands that show what is known: status, best, plot, replay."""

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from askwise.cli.app import main, print_json
from askwise.cli.options import DEFAULT_FILE, AsJson, Context, StudyFile

__all__ = ["Kind"]


class Kind(StrEnum):
    """What to draw."""

    slices = "slices"
    maps = "maps"
    uncertainty = "uncertainty"
    score = "score"
    progress = "progress"
    all = "all"


@main.command()
def status(context: Context = None, study: StudyFile = DEFAULT_FILE, as_json: AsJson = False) -> None:
    """Show how far the study has come, and whether to go on."""
    from askwise.cli.screen import console, facts, readable
    from askwise.cli.session import opened, read_context

    with opened(study) as session:
        found = session.study.status(read_context(context, session.study.space))
    if as_json:
        print_json({"name": session.config.name, **asdict(found)})
        return
    shown: dict[str, object] = {}
    shown |= {name: n for name, n in asdict(found).items() if isinstance(n, int) and (n or name == "answers")}
    if found.gain is not None and found.shortfall is not None:
        shown["expected of the next answer"] = f"{readable(found.gain)} (in noises of one answer)"
        shown["expected of all further answers"] = f"{readable(found.shortfall)} (in noises of one answer)"
    out = console()
    out.print(f"{session.config.name}: {session.config.question}\n")
    out.print(facts(shown))
    out.print(f"\n{found.hint}")


@main.command()
def best(
    reference: Annotated[
        list[str] | None,
        typer.Option(
            "--reference", "-r", metavar="NAME=VALUE", help="A setting to compare with; once a parameter."
        ),
    ] = None,
    context: Context = None,
    study: StudyFile = DEFAULT_FILE,
    as_json: AsJson = False,
) -> None:
    """Show the recommended setting, and how sure that is."""
    from askwise.cli.screen import console
    from askwise.cli.session import answers_of, opened, read_context, read_setting
    from askwise.cli.verdict import print_best

    with opened(study) as session:
        space = session.study.space
        rival = read_setting(reference, space, "--reference")
        found = session.study.best(read_context(context, space), rival)
        count = answers_of(session.study)
        if as_json:
            print_json({**asdict(found), "reference": rival, "answers": count})
        else:
            print_best(console(), session, found, rival is not None)


@main.command()
def plot(
    kind: Annotated[Kind, typer.Option(help="What to draw.")] = Kind.all,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where to put the pictures.")] = Path("plots"),
    context: Context = None,
    study: StudyFile = DEFAULT_FILE,
    as_json: AsJson = False,
) -> None:
    """Draw what is known of the study, as PNG."""
    from askwise.cli.pictures import saved_pictures
    from askwise.cli.session import opened, read_context

    kinds = [each.value for each in Kind if each is not Kind.all] if kind is Kind.all else [kind.value]
    with opened(study) as session:
        needed = kinds != [Kind.progress.value]  # which is of the last context, unless one is given
        given = read_context(context, session.study.space, needed=needed)
        paths = saved_pictures(session.study, kinds, given, out)
    if as_json:
        print_json({"files": {name: str(path) for name, path in paths.items()}})
        return
    for path in paths.values():
        typer.echo(path)


@main.command()
def replay(study: StudyFile = DEFAULT_FILE, as_json: AsJson = False) -> None:
    """Check that every question follows from the record.

    Each is derived again from what was known when it was asked.
    """
    from askwise.cli.screen import console, question_table
    from askwise.cli.session import opened

    with opened(study) as session:
        replayed = session.study.replay()
    different = [one for one in replayed if not one.equal]
    if as_json:
        print_json({"questions": len(replayed), "different": [asdict(one) for one in different]})
    elif not different:
        typer.echo(f"all {len(replayed)} questions derived again, bit for bit")
    else:
        out = console()
        out.print(f"{len(different)} of {len(replayed)} questions come out different.")
        for one in different:
            out.print(f"Question {one.id} as it was asked, and as it is derived again:\n")
            out.print(question_table(one.asked, session.study.space))
            out.print()
            out.print(question_table(one.again, session.study.space))
    if different:
        raise typer.Exit(1)
