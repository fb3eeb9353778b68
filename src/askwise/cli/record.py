"""Commands about the record: history, replay, export, import, backup, salvage."""

import sys
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from askwise.cli.app import DEFAULT_FILE, AsJson, New, Participant, StudyFile, main, print_json, show
from askwise.errors import Refused, printable

Format = StrEnum("Format", ["csv", "json"])

_VISIBLE = 1e-3  # of a parameter's range: questions that differ by more are shown side by side
_IMPORTED = (
    "A file from `askwise export`, or a CSV with a row for each question: columns for the parameters and "
    "`answer` (yes/no), or gain_a, gain_b, ... and `answer` (A, B, ...)."
)


@main.command()
def history(
    last: Annotated[
        int | None, typer.Option("--last", "-n", min=1, metavar="N", help="Only the last N questions.")
    ] = None,
    participant: Participant = None,
    study: StudyFile = DEFAULT_FILE,
    as_json: AsJson = False,
) -> None:
    """Show the questions and what was answered, newest last."""
    from askwise.cli.documents import entry_json
    from askwise.cli.listing import history_table
    from askwise.cli.screen import console
    from askwise.cli.session import opened

    with opened(study, model=False) as session:
        found, space = session.study.history(), session.study.space
    if participant is not None:
        found = [entry for entry in found if entry.participant == participant]
    shown = found if last is None else found[-last:]
    if as_json:
        print_json({"questions": [entry_json(entry) for entry in shown], "all": len(found)})
        return
    whose = "" if participant is None else f" of {participant}"
    console().print(history_table(shown, space) if shown else f"No questions{whose} yet.")


@main.command()
def replay(study: StudyFile = DEFAULT_FILE, as_json: AsJson = False) -> None:
    """Check that every question follows from the record.

    Each is derived again from the events before it; other versions of the libraries
    may change the last digits.
    """
    from askwise.cli.reports import other_programs
    from askwise.cli.screen import console, progress, question_table
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
    from askwise.cli.app import counted
    from askwise.cli.session import opened
    from askwise.storage import overwrite
    from askwise.study.export import csv_text, json_text

    if as_json and out is None:
        form = Format.json
    with opened(study, model=False) as session:
        asked, words = session.study, session.config.question
        text = csv_text(asked) if form is Format.csv else json_text(asked, words)
        questions = len(session.study.history())
    if out is None:
        typer.echo(printable(text) if sys.stdout.isatty() else text, nl=False)
        return
    overwrite(out, text, study)
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
    from askwise.cli.app import counted
    from askwise.cli.files import check_new, import_key
    from askwise.cli.session import opened
    from askwise.study.answer_tables import read_answers

    with opened(study) as session:  # so that nothing is created if the file is wrong
        rows, left_out = read_answers(file, session.study.plan)
        key = import_key(rows, session.study, again)
        known = session.study.is_recorded(key)
        if not (again or known):
            check_new(file, rows, session.study)
    with opened(study, writes=True, new=new) as session:
        session.study.record_many([vars(row) for row in rows], key)
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

    with opened(study, model=False) as session:
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
    from askwise.cli.app import counted
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
