"""Commands about settings of your own: predict, compare."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from askwise.cli.app import DEFAULT_FILE, AsJson, Context, StudyFile, Whose, main, print_json, show
from askwise.errors import Refused

if TYPE_CHECKING:
    from askwise.space import Space

_SETTINGS = "The values of a setting, as NAME=VALUE; a name that comes again begins the next setting."
_TWO = "The values of one setting and then of the other, as NAME=VALUE."


@main.command()
def predict(
    words: Annotated[list[str] | None, typer.Argument(metavar="NAME=VALUE ...", help=_SETTINGS)] = None,
    file: Annotated[
        Path | None, typer.Option(metavar="CSV", help="A table with a row for each setting.")
    ] = None,
    participant: Whose = None,
    context: Context = None,
    study: StudyFile = DEFAULT_FILE,
    as_json: AsJson = False,
) -> None:
    """Show what the model says of settings that you choose."""
    from askwise.cli.listing import prediction_notes, prediction_table
    from askwise.cli.screen import console
    from askwise.cli.session import opened, read_context, read_participant

    if (file is None) == (not words):
        got = "both" if words else "neither"
        raise Refused("predict", "be given settings or --file", got, "Write NAME=VALUE, for each parameter.")
    with opened(study) as session:
        asked = session.study
        given, who = read_context(context, asked.space), read_participant(participant, asked)
        settings = _written(words or [], asked.space) if file is None else _listed(file, asked.space)
        found = asked.predict(settings, given, who)
        if as_json:
            print_json({"participant": who, "predictions": [asdict(one) for one in found]})
            return
        out = console()
        out.print(prediction_table(found, asked))
        out.print(f"\n{prediction_notes(asked)}")


@main.command()
def compare(
    words: Annotated[list[str] | None, typer.Argument(metavar="NAME=VALUE ...", help=_TWO)] = None,
    participant: Whose = None,
    context: Context = None,
    study: StudyFile = DEFAULT_FILE,
    as_json: AsJson = False,
) -> None:
    """Show which of two settings is better, and how sure that is."""
    from askwise.cli.listing import comparison_sentences
    from askwise.cli.session import opened, read_context, read_participant

    with opened(study) as session:
        asked = session.study
        given, who = read_context(context, asked.space), read_participant(participant, asked)
        settings = _written(words or [], asked.space)
        if len(settings) != 2:
            advice = "Write the values of one setting, then those of the other."
            raise Refused("compare", "be given two settings", len(settings), advice)
        first, second = settings
        found = asked.compare(first, second, given, who)
        document = {"participant": who, "first": first, "second": second, **asdict(found)}
        show(as_json, document, comparison_sentences(found, asked))


def _written(words: list[str], space: "Space") -> list[dict[str, Any]]:
    """Settings in words like ``gain=3``: each begins where a name comes again."""
    from askwise.cli.session import read_setting

    groups: list[list[str]] = []
    for word in words:
        name = word.partition("=")[0].strip()
        if not groups or any(other.partition("=")[0].strip() == name for other in groups[-1]):
            groups.append([])
        groups[-1].append(word)
    return [read_setting(group, space, "setting") for group in groups]


def _listed(file: Path, space: "Space") -> list[dict[str, Any]]:
    """The settings in the rows of a file; columns that are no parameters are refused."""
    from askwise.study.answer_tables import read_value
    from askwise.study.sheets import Sheet

    sheet = Sheet.read(file).with_decimal_points(space.parameters)
    unknown = [name for name in sheet.columns if name not in space.parameters]
    if unknown or not sheet.rows:
        expected = f"have columns {', '.join(space.parameters)} and a row for each setting"
        raise Refused("file", expected, repr(unknown[0]) if unknown else "no row", "Correct it.", str(file))
    found = []
    for line, cells in sheet.rows:
        try:
            found.append({name: read_value(name, space.parameters[name], cells[name]) for name in cells})
        except Refused as error:
            raise error.at(f"row {line}") from None
    return found
