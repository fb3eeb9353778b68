"""Commands that take a study out and bring answers in: export, import."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from askwise.cli.app import DEFAULT_FILE, AsJson, StudyFile, main, print_json


class Format(StrEnum):
    """How a study is written."""

    csv = "csv"
    json = "json"


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
        typer.echo(text, nl=False)
        return
    out.write_text(text, encoding="utf-8", newline="")
    if as_json:
        print_json({"file": str(out), "format": form.value, "questions": questions})
    else:
        typer.echo(f"Wrote {counted(questions, 'question')} to {out}.")


@main.command("import")
def import_(
    file: Annotated[
        Path,
        typer.Argument(
            help="What `askwise export` wrote; or a CSV with a row for each question, its columns the "
            "parameters and `answer` (yes/no), or gain_a, gain_b, ... and `answer` (A, B, ...)."
        ),
    ],
    again: Annotated[
        bool, typer.Option("--again", help="Record them even if the study has them all.")
    ] = False,
    study: StudyFile = DEFAULT_FILE,
    as_json: AsJson = False,
) -> None:
    """Record answers that were given elsewhere.

    All of them or, if one is wrong, none.
    """
    from askwise.cli.files import check_new, read_rows
    from askwise.cli.screen import counted
    from askwise.cli.session import opened

    with opened(study) as session:  # so that nothing is made if the file is wrong
        rows, left_out = read_rows(file, session.study)
        if not again:
            check_new(file, rows, session.study)
    with opened(study, writes=True) as session:
        for row in rows:
            session.study.record(row.options, row.answer, participant=row.participant, seconds=row.seconds)
        count = session.study.count()
    if as_json:
        print_json({"file": str(file), "imported": len(rows), "left_out": left_out, "answers": count})
        return
    without = f" ({left_out} without an answer left out)" if left_out else ""
    typer.echo(f"Recorded {counted(len(rows), 'answer')} from {file}{without}; the study has {count} now.")
