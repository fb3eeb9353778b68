"""Commands about results: status, best, level, plot."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from askwise.cli.app import DEFAULT_FILE, AsJson, Context, StudyFile, Whose, main, print_json, show
from askwise.errors import Refused, extra

Figures = StrEnum(
    "Figures", ["slices", "maps", "level", "importance", "uncertainty", "score", "progress", "raters", "all"]
)
_NO_CONTEXT = "No answers yet, in any context; `askwise ask --context NAME=VALUE` asks in one."


@main.command()
def status(
    participant: Whose = None,
    context: Context = None,
    study: StudyFile = DEFAULT_FILE,
    as_json: AsJson = False,
) -> None:
    """Show how far the study has come, and whether to go on.

    Also what the answers say of the people.  In a study of separate people each has a
    row, --participant shows one of them; so does each context with answers, --context
    shows one.
    """
    from askwise.cli.people import raters_of
    from askwise.cli.reports import print_status, print_statuses
    from askwise.cli.screen import console
    from askwise.cli.session import Case, each_case, opened, read_context, read_participant

    with opened(study) as session:
        asked, out = session.study, console()
        given, who = read_context(context, asked.space, needed=False), read_participant(participant, asked)
        cases = each_case(asked, who, given)
        head = {"name": session.config.name}
        if not cases and asked.space.contexts and given is None:
            show(as_json, {**head, "contexts": []}, _NO_CONTEXT)
            return
        found = [(one, asked.status(one.context, one.participant)) for one in cases or [Case(who, given)]]
        raters = None if cases else raters_of(asked, who)
        if cases and as_json:
            print_json({**head, **_rows(found)})
        elif cases:
            print_statuses(out, session, found)
        elif as_json:
            last = {"raters": raters and asdict(raters)}
            print_json({**head, "participant": who, **asdict(found[0][1]), **last})
        else:
            print_status(out, session, found[0][1], raters, who)


def _rows(
    found: Sequence[tuple[Any, Any]], more: Callable[[Any], dict[str, Any]] = lambda _: {}
) -> dict[str, Any]:
    """The results of several cases, as JSON."""
    rows = [{**asdict(case), **asdict(its), **more(case)} for case, its in found]
    if any(case.context for case, _ in found):
        return {"contexts": rows}
    return {"people": [{name: value for name, value in row.items() if name != "context"} for row in rows]}


@main.command()
def best(
    reference: Annotated[
        list[str] | None,
        typer.Option("--reference", "-r", metavar="NAME=VALUE", help="Setting to compare with."),
    ] = None,
    participant: Whose = None,
    context: Context = None,
    study: StudyFile = DEFAULT_FILE,
    as_json: AsJson = False,
) -> None:
    """Show the recommended setting, and how likely it is to be preferred or to work.

    In a study of separate people each has a row; --participant shows one of them.  In a
    study of a population it is the setting for all; --participant shows one person's.
    Each context with answers has a row; --context shows one.
    """
    from askwise.cli.reports import print_best, print_bests
    from askwise.cli.screen import console
    from askwise.cli.session import Case, each_case, opened, read_context, read_participant, read_setting

    with opened(study) as session:
        asked, space = session.study, session.study.space
        rival = read_setting(reference, space, "--reference") or None
        given, who = read_context(context, space, needed=False), read_participant(participant, asked)
        cases = each_case(asked, who, given)
        if not cases and space.contexts and given is None:
            show(as_json, {"contexts": [], "reference": rival}, _NO_CONTEXT)
            return
        found = [
            (one, asked.best(one.context, rival, one.participant)) for one in cases or [Case(who, given)]
        ]

        def more(case: Case) -> dict[str, Any]:
            return {
                "answers": case.answers(asked),
                "checks": [asdict(check) for check in asked.checks(case.participant)],
            }

        if as_json and cases:
            print_json({**_rows(found, more), "reference": rival})
        elif as_json:
            document = {"participant": who, **asdict(found[0][1]), **more(Case(who)), "reference": rival}
            print_json(document)
        elif cases:
            print_bests(console(), session, found, rival is not None)
        else:
            print_best(console(), session, found[0][1], rival is not None, who)


@main.command()
def level(  # noqa: PLR0913
    rate: Annotated[
        float | None,
        typer.Option("--level", metavar="RATE", help="A success rate, 0.9 say.", show_default="the study's"),
    ] = None,
    confidence: Annotated[
        float, typer.Option(metavar="P", help="Probability from which a setting is inside or outside.")
    ] = 0.95,
    out: Annotated[
        Path | None,
        typer.Option(metavar="CSV", help="Write settings spread over the space, each with its side."),
    ] = None,
    count: Annotated[int, typer.Option(min=1, metavar="N", help="How many of them.")] = 1024,
    participant: Whose = None,
    context: Context = None,
    study: StudyFile = DEFAULT_FILE,
    as_json: AsJson = False,
) -> None:
    """Show which settings work at least so often: those believed to, those not, and the safest.

    For yes/no studies, with a level or any other.  A setting is inside if it works at least so
    often with a probability of --confidence, outside if it does not with that probability, else
    unclear.
    """
    from askwise.cli.app import counted
    from askwise.cli.reports import print_level
    from askwise.cli.screen import console
    from askwise.cli.session import opened, read_context, read_participant
    from askwise.storage import overwrite
    from askwise.study.export import level_csv

    with opened(study) as session:
        asked = session.study
        given, who = read_context(context, asked.space), read_participant(participant, asked)
        found = asked.level_set(rate, confidence, given, who)
        rows = [] if out is None else asked.classified(count, rate, confidence, given, who)
        if out is not None:
            overwrite(out, level_csv(rows), study)
        if as_json:
            written = {"file": None if out is None else str(out), "written": len(rows)}
            print_json({"participant": who, **asdict(found), **written})
            return
        print_level(console(), session, found, who)
        if out is not None:
            typer.echo(f"\nWrote {counted(len(rows), 'setting')} to {out}.")


@main.command()
def plot(
    kind: Annotated[Figures, typer.Option(help="What to draw.")] = Figures.all,
    pairs: Annotated[
        str | None,
        typer.Option(
            "--pairs",
            "--pair",
            metavar="A,B|all",
            help="Two parameters to draw over, or in maps all pairs.",
            show_default="those that matter most",
        ),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where to write the figures.")] = Path("plots"),
    participant: Whose = None,
    context: Context = None,
    study: StudyFile = DEFAULT_FILE,
    as_json: AsJson = False,
) -> None:
    """Draw figures of the study, as PNG files."""
    from askwise.cli.session import opened, read_context, read_participant
    from askwise.storage import overwritable

    with opened(study) as session:
        several = len(session.study.participants()) > 1
        kinds = [each for each in Figures if each is not Figures.all] if kind is Figures.all else [kind]
        if kind is Figures.all and not several:
            kinds.remove(Figures.raters)
        if kind is Figures.all and session.study.plan.level is None:
            kinds.remove(Figures.level)
        needed = kinds != [Figures.progress]  # which is about the last context, unless one is given
        given = read_context(context, session.study.space, needed=needed)
        over = _over(pairs, [each.value for each in kinds])
        whose = {"participant": read_participant(participant, session.study)}
        with extra("plots", "plot"):
            from askwise import plots
        figures = {}
        for name in (each.value for each in kinds):  # all are drawn before one is written
            options = {} if name == "raters" else whose | over.get(name, {})
            figures[name] = getattr(plots, f"study_{name}")(session.study, context=given, **options)
        out.mkdir(parents=True, exist_ok=True)
        paths = {name: str(overwritable(out / f"{name}.png")) for name in figures}
        for name, figure in figures.items():
            figure.savefig(paths[name], dpi=150)
    show(as_json, {"files": paths}, "\n".join(paths.values()))


def _over(pairs: str | None, kinds: list[str]) -> dict[str, dict[str, object]]:
    """Arguments of the figures that are drawn over pairs of parameters."""
    if pairs is None:
        return {}
    over: dict[str, dict[str, object]] = {"maps": {"pairs": "all"}}
    if pairs != "all":
        names = [name.strip() for name in pairs.split(",")]
        over |= {name: {"pair": names} for name in ("level", "uncertainty", "score")}
        over["maps"] = {"pairs": [names]}
    if not over.keys() & set(kinds):
        expected = f"be given for figures over pairs of parameters: {', '.join(over)}"
        raise Refused("--pairs", expected, kinds[0], "Leave it out.")
    return over
