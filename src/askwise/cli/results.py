"""Commands about results: status, best, plot, replay, simulate, export, import."""

import sys
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from askwise.cli.app import DEFAULT_FILE, AsJson, Context, New, StudyFile, main, print_json, show
from askwise.errors import Refused, extra, printable

Figures = StrEnum("Figures", ["slices", "maps", "uncertainty", "score", "progress", "all"])
Format = StrEnum("Format", ["csv", "json"])

_VISIBLE = 1e-3  # of a parameter's range: questions that differ by more are shown side by side

_IMPORTED = (
    "A file from `askwise export`, or a CSV with a row for each question: columns for the parameters and "
    "`answer` (yes/no), or gain_a, gain_b, ... and `answer` (A, B, ...)."
)


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

    kinds = [each for each in Figures if each is not Figures.all] if kind is Figures.all else [kind]
    with opened(study) as session:
        needed = kinds != [Figures.progress]  # which is about the last context, unless one is given
        given = read_context(context, session.study.space, needed=needed)
        with extra("plots", "plot"):
            from askwise import plots
        out.mkdir(parents=True, exist_ok=True)
        paths = {each.value: str(out / f"{each.value}.png") for each in kinds}
        for name, path in paths.items():
            getattr(plots, f"study_{name}")(session.study, context=given).savefig(path, dpi=150)
    show(as_json, {"files": paths}, "\n".join(paths.values()))


@main.command()
def replay(study: StudyFile = DEFAULT_FILE, as_json: AsJson = False) -> None:
    """Check that every question follows from the record.

    Each is derived again from the events before it; other versions of the libraries
    may change the last digits.
    """
    from askwise.cli.screen import console, other_programs, progress, question_table
    from askwise.cli.session import opened

    with opened(study) as session:
        chosen = sum(entry.seen is not None for entry in session.study.history())
        with progress("questions", chosen, shown=not as_json) as step:
            replayed = session.study.replay(step)
    different = [one for one in replayed if not one.equal]
    causes = other_programs(replayed)
    if as_json or not different:
        document = {"questions": len(replayed), "different": [asdict(one) for one in different]}
        document["other_programs"] = causes
        show(as_json, document, f"all {len(replayed)} questions reproduced bit for bit")
    else:
        out = console()
        furthest = max(one.distance for one in different)
        out.print(
            f"{len(different)} of {len(replayed)} questions come out differently, "
            f"by at most {furthest:.1g} of a parameter's range."
        )
        for cause in causes:
            out.print(cause)
        for one in different if furthest > _VISIBLE else []:
            out.print(f"Question {one.id} as it was asked, and as it is derived again:\n")
            out.print(question_table(one.asked, session.study.space))
            out.print()
            out.print(question_table(one.again, session.study.space))
    if different:
        raise typer.Exit(1)


@main.command()
def backup(
    file: Annotated[Path, typer.Argument(help="The new file.")],
    study: StudyFile = DEFAULT_FILE,
    as_json: AsJson = False,
) -> None:
    """Copy the record to a new file, and check the copy.

    Others may go on answering meanwhile.  The copy is a SQLite file, wherever the record is.
    """
    from askwise.cli.session import opened

    with opened(study) as session:
        if not session.recorded:
            raise Refused("study", "have a record to copy", "none yet", "Ask a question first.")
        session.study.backup(file)
        questions = len(session.study.history())
    document = {"file": str(file), "questions": questions}
    show(as_json, document, f"Copied the record to {file} and checked the copy.")


@main.command()
def salvage(
    file: Annotated[Path, typer.Argument(help="The damaged SQLite file, which is only read.")],
    out: Annotated[
        Path | None, typer.Option(metavar="NEW", help="The new file.", show_default="FILE.salvaged")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write what is intact of a damaged record to a new file."""
    from askwise.cli.screen import counted
    from askwise.storage.copies import salvage as save

    target = file.with_name(f"{file.name}.salvaged") if out is None else out
    saved = save(file, target)
    if as_json:
        print_json({"file": str(target), "studies": [asdict(one) for one in saved]})
        return
    for one in saved:
        lost = f"; {one.lost} are lost" if one.lost else ", all there are"
        typer.echo(f"{one.name}: {counted(one.events, 'event')} saved{lost}.")
    typer.echo(f"Wrote {target}. Look at it with `askwise replay` after putting it in place of the record.")


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


@main.command()
def export(
    form: Annotated[
        Format, typer.Option("--format", "-f", help="csv: a row for each option. json: the whole record.")
    ] = Format.csv,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write it.", show_default="the terminal")
    ] = None,
    study: StudyFile = DEFAULT_FILE,
    as_json: AsJson = False,
) -> None:
    """Write every question and answer, in natural units."""
    from askwise.cli.files import csv_text, json_text
    from askwise.cli.screen import counted
    from askwise.cli.session import opened

    if as_json and out is None:
        form = Format.json
    with opened(study) as session:
        text = csv_text(session.study) if form is Format.csv else json_text(session)
        questions = len(session.study.history())
    if out is None:
        typer.echo(printable(text) if sys.stdout.isatty() else text, nl=False)
        return
    out.write_text(text, encoding="utf-8", newline="")
    document = {"file": str(out), "format": form.value, "questions": questions}
    show(as_json, document, f"Wrote {counted(questions, 'question')} to {out}.")


@main.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help=_IMPORTED)],
    again: Annotated[
        bool, typer.Option("--again", help="Record them even if the study already has them all.")
    ] = False,
    new: New = False,
    study: StudyFile = DEFAULT_FILE,
    as_json: AsJson = False,
) -> None:
    """Record answers that were given elsewhere.

    All of them, or none if one is invalid; a file that was imported before is not
    imported again, so a command that was interrupted may simply be repeated.
    """
    from askwise.cli.files import check_new, import_key, read_rows
    from askwise.cli.screen import counted
    from askwise.cli.session import opened

    with opened(study) as session:  # so that nothing is created if the file is wrong
        rows, left_out = read_rows(file, session.study)
        key = import_key(rows, session.study, again)
        known = session.study.is_recorded(key)
        if not (again or known):
            check_new(file, rows, session.study)
    with opened(study, writes=True, new=new) as session:
        session.study.record_all([vars(row) for row in rows], key)
        count = session.study.count()
    document = {"file": str(file), "imported": len(rows), "left_out": left_out, "answers": count}
    if known:
        sentence = (
            f"{file} was imported before: nothing to do. Add --again if its answers were given once more."
        )
        show(as_json, document | {"imported": 0}, sentence)
        return
    without = f" ({counted(left_out, 'question')} without an answer left out)" if left_out else ""
    sentence = f"Recorded {counted(len(rows), 'answer')} from {file}{without}; the study now has {count}."
    show(as_json, document, sentence)
