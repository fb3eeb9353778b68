"""Simulated users: how many answers will it take, and to which kind of question?"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from askwise.cli.app import DEFAULT_FILE, AsJson, Context, StudyFile, counted, main, print_json
from askwise.errors import Refused

if TYPE_CHECKING:
    from rich.console import Console

    from askwise.study import Checkpoint, Contest, Course, Plan, Simulation


@main.command()
def simulate(  # noqa: PLR0913 - one for each option
    answers: Annotated[
        int | None,
        typer.Option("--answers", "-n", min=1, metavar="N", help="Answers per user; 40, or 20 to batches."),
    ] = None,
    users: Annotated[int, typer.Option("--users", "-k", min=1, metavar="K", help="Number of users.")] = 10,
    minutes: Annotated[
        float | None,
        typer.Option(metavar="M", help="Compare kinds of question instead, in minutes of a user's time."),
    ] = None,
    size: Annotated[
        int | None,
        typer.Option(min=3, metavar="N", help="With --minutes: options, where there are several; 4."),
    ] = None,
    look: Annotated[
        float | None,
        typer.Option(min=0, metavar="S", help="With --minutes: seconds to look at one option; 2."),
    ] = None,
    seconds: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND=S", help="With --minutes: seconds per question (duel=6); repeatable."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Different seeds give different users.")] = 0,
    context: Context = None,
    study: StudyFile = DEFAULT_FILE,
    as_json: AsJson = False,
) -> None:
    """Let simulated users answer: how many answers will it take?

    This takes about a minute.  Each user has a utility of their own, drawn from the
    prior of the study, and answers with noise, as people do.  Nothing is recorded.

    With --minutes: which kind of question brings most in that time?  The same users
    answer duels, name the best or the worst of several, and rank them.  Two minutes of
    five users take a minute to compute.
    """
    from askwise.cli.screen import progress
    from askwise.cli.session import opened, read_context
    from askwise.study import SIZE, Contest, Pace, Simulation, compared, simulated

    with opened(study) as session:
        given = read_context(context, session.study.space)
        plan = session.study.plan
    if minutes is None:
        for name, value in (("--size", size), ("--look", look), ("--seconds", seconds)):
            if value is not None:
                raise Refused(name, "be given with --minutes", "none", "Add --minutes 10.")
        wanted = Simulation(plan, answers or plan.kind.simulated_answers, users, seed, given)
        with progress("answers", wanted.users * wanted.answers, shown=not as_json) as step:
            results = simulated(wanted, step)
        if as_json:
            head = {"answers": wanted.answers, "users": users, "seed": seed}
            print_json({**head, "after": [vars(row) for row in results]})
        else:
            _print_simulation(wanted, results)
        return
    if answers is not None:
        raise Refused("--answers", "be left out with --minutes", answers, "The minutes say how many.")
    several = size or (plan.size if plan.size > 2 else SIZE)
    pace = Pace() if look is None else Pace(look=look)
    contest = Contest(plan, minutes, users, seed, several, given, pace, _read_seconds(seconds))
    with progress("answers", contest.total, shown=not as_json) as step:
        courses = compared(contest, step)
    if as_json:
        print_json(_document(contest, courses))
    else:
        _print_contest(contest, courses)


def _read_seconds(pairs: Sequence[str] | None) -> dict[str, float]:
    """The seconds in texts like ``duel=6``."""
    found = dict[str, float]()
    for pair in pairs or ():
        key, _, text = (part.strip() for part in pair.partition("="))
        try:
            found[key] = float(text)
        except ValueError:
            raise Refused(
                "--seconds", "be KIND=SECONDS", repr(pair), "Write --seconds duel=6, say."
            ) from None
    return found


def _print_simulation(wanted: "Simulation", results: "Sequence[Checkpoint]") -> None:
    from askwise.cli.screen import console, table
    from askwise.study import conclusion

    out, compares = console(), wanted.plan.kind.compares
    out.print(f"{counted(wanted.users, 'simulated user')}; medians, with quartiles in brackets:\n")
    last = "true best preferred" if compares else "works"
    level = [] if wanted.plan.level is None else ["wrong side"]
    rows = [
        (row.answers, *map(_quartiles, (row.share, row.chance, row.misclassified)[: 2 + len(level)]))
        for row in results
    ]
    out.print(table(["answers", "way to the best", last, *level], rows, right=range(4)))
    out.print("\nWay to the best: 0% is an average setting, 100% the user's best.")
    if level:
        out.print("Wrong side: share of the space that the model puts on the wrong side of the level.")
    if compares:
        out.print("True best preferred: 50% is no better than the recommended setting.")
    _print_alone(out, wanted.plan)
    out.print(f"\n{conclusion(results[-1])}")


def _print_alone(out: "Console", plan: "Plan") -> None:
    if plan.people.participants == "population":
        out.print("Each user answers alone; in the study, what others answer helps as well.")


def _quartiles(values: list[float]) -> str:
    import torch

    low, middle, high = torch.tensor(values).quantile(torch.tensor([0.25, 0.5, 0.75])).tolist()
    return f"{middle:.0%} ({low:.0%} to {high:.0%})"


def _print_contest(wanted: "Contest", courses: "Sequence[Course]") -> None:
    from askwise.cli.screen import console, table
    from askwise.space import readable
    from askwise.study import lead

    out = console()
    users = counted(wanted.users, "simulated user")
    out.print(f"{users}; mean way to the best, with 95% intervals in brackets:\n")
    marks = [f"{readable(mark.minutes)} min" for mark in courses[0].after]
    rows = [
        (one.title, readable(one.seconds), one.after[-1].answers, *(_mean(mark.share) for mark in one.after))
        for one in courses
    ]
    out.print(table(["question", "seconds", "answers", *marks], rows, right=range(1, 6)))
    out.print("\nWay to the best: 0% is an average setting, 100% the user's best.")
    pace = wanted.pace
    out.print(
        f"Seconds: {readable(pace.turn)} for a question, {readable(pace.look)} to look at each option, "
        f"{readable(pace.compare)} for each comparison of two; --look and --seconds change that."
    )
    _print_alone(out, wanted.plan)
    ahead, behind = lead(courses)
    out.print(f"\nAfter {readable(wanted.minutes)} minutes {ahead.title} is ahead.")
    for title, gap in behind.items():
        out.print(f"{title.capitalize()}: {_gap(gap)}.")


def _mean(share: Sequence[float]) -> str:
    from askwise.study import interval

    mean, found = sum(share) / len(share), interval(share)
    return f"{mean:.0%}" if found is None else f"{mean:.0%} ({found[0]:.0%} to {found[1]:.0%})"


def _gap(found: tuple[float, float] | None) -> str:
    if found is None:
        return "one user is not enough to tell"
    low, high = found
    if low > 0:
        return f"{low:.0%} to {high:.0%} behind it"
    return f"cannot be told apart from it, from {-low:.0%} better to {high:.0%} worse; more --users might"


def _document(wanted: "Contest", courses: "Sequence[Course]") -> dict[str, object]:
    from askwise.study import interval, lead

    ahead, behind = lead(courses)
    kinds = [
        {**vars(one), "after": [{**vars(mark), "interval": interval(mark.share)} for mark in one.after]}
        for one in courses
    ]
    head = {"minutes": wanted.minutes, "users": wanted.users, "seed": wanted.seed, "size": wanted.size}
    return {**head, "pace": vars(wanted.pace), "kinds": kinds, "ahead": ahead.kind, "behind": behind}
