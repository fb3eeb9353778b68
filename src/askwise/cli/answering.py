"""Commands that ask, take answers and take them back: ask, tell, run, undo, expire."""

from typing import Annotated

import typer

from askwise.cli.app import DEFAULT_FILE, AsJson, Context, New, Participant, StudyFile, main, print_json, show
from askwise.errors import Refused

_ANSWER = (
    "The number of the question (optional if only one is open) and the answer: yes, no; A, B, ...; for "
    "batches also rankings, best first (C,A,B or, in quotes, 'C>A'), worst C, pairs (in quotes, 'pairs C>A, "
    "B>D'); tie (can't decide), skip, void."
)
_COMMAND = (
    "The command to run for each question, such as './gait.sh {gain} {cutoff}'; the values are also in "
    "$ASKWISE_GAIN, ... Exit code 0 means yes, 1 no, anything else is a failure. In studies that compare: "
    "'./judge.sh {A.gain} {B.gain}' ($ASKWISE_A_GAIN, ...; all options as JSON in $ASKWISE_OPTIONS), which "
    "prints the answer, such as A, tie or C>A, on its last line and ends with 0."
)
_RETRIES = (
    "How often to repeat a command that failed (default 2). Then its question is left open, and skipped once "
    "another one has an answer; after 5 failed questions in a row the run ends."
)
_TIMEOUT = "Seconds after which a command is killed; that is a failure, with code 124."
_PRESENT = (
    "A command that presents one option on a device, such as './play.sh {gain} {cutoff}': it runs for A, "
    "then B, ..., and a person answers here; typing play or play A repeats it."
)
_TARGET = "End when the study has this many answers or, where people differ, this participant has."


@main.command()
def ask(
    participant: Participant = None,
    context: Context = None,
    new: New = False,
    study: StudyFile = DEFAULT_FILE,
    as_json: AsJson = False,
) -> None:
    """Show the next question.

    A question that is still open is shown again.
    """
    from askwise.cli.conversation import unnamed
    from askwise.cli.documents import asked_json
    from askwise.cli.screen import console, question_table
    from askwise.cli.session import opened, read_context
    from askwise.study import labels

    with opened(study, writes=True, new=new) as session:
        given = read_context(context, session.study.space)
        question = session.study.ask(participant, given)
    names = labels(len(question.options))
    if as_json:
        print_json(asked_json(session, question))
        return
    out = console()
    out.print(f"Question {question.id}: {session.config.question}\n")
    out.print(question_table(question.options, session.config.space))
    ways = session.study.plan.kind.examples(names)
    out.print(f"\nAnswer with `askwise tell {question.id} ANSWER`: {ways}.")
    if note := unnamed(session.study, participant):
        out.print(note)


@main.command()
def tell(  # noqa: PLR0913 - one for each option
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[ID] ANSWER", help=_ANSWER, show_default=False)
    ] = None,
    pairs: Annotated[
        str | None, typer.Option(metavar="'A>B, C>B'", help="For batches: pairs of options, better first.")
    ] = None,
    index: Annotated[
        bool, typer.Option("--index", help="Options are numbered (0, 1, ...), not lettered.")
    ] = False,
    seconds: Annotated[float | None, typer.Option(metavar="S", help="How long the answer took.")] = None,
    amend: Annotated[bool, typer.Option("--amend", help="Replace an earlier answer.")] = False,
    reason: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Why there is no answer or another one.")
    ] = None,
    study: StudyFile = DEFAULT_FILE,
    as_json: AsJson = False,
) -> None:
    """Record an answer."""
    from askwise.cli.app import counted
    from askwise.cli.documents import told_json
    from askwise.cli.session import opened
    from askwise.cli.telling import Telling, open_question, split_words

    number, text = split_words(words or [], pairs is not None)
    with opened(study, writes=True, model=False) as session:
        reply = Telling.of(session.study, text, pairs, index)
        chosen = open_question(session.study) if number is None else number
        reply.record(session.study, chosen, amend, reason, seconds)
        document = told_json(session, chosen, reply.read_back)
    done = f"recorded: {reply.read_back}" if reply.read_back else f"is {document['status']}"
    show(as_json, document, f"Question {chosen} {done}. {counted(document['answers'], 'answer')} so far.")


@main.command()
def run(  # noqa: PLR0913 - one for each option
    answers: Annotated[
        int | None,
        typer.Option("--answers", "-n", min=1, metavar="N", help=_TARGET),
    ] = None,
    command: Annotated[str | None, typer.Option(metavar="TEXT", help=_COMMAND)] = None,
    present: Annotated[str | None, typer.Option(metavar="TEXT", help=_PRESENT)] = None,
    timeout: Annotated[float | None, typer.Option(metavar="S", help=_TIMEOUT)] = None,
    retries: Annotated[int | None, typer.Option(min=0, metavar="N", help=_RETRIES)] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Commands to run at once, for different questions.")
    ] = None,
    no_codes: Annotated[
        str | None,
        typer.Option(metavar="CODES", help="Exit codes that mean no, instead of 1: 2,3 or 64-78, say."),
    ] = None,
    tie_codes: Annotated[
        str | None, typer.Option(metavar="CODES", help="Exit codes that mean: can't decide.")
    ] = None,
    skip_codes: Annotated[
        str | None, typer.Option(metavar="CODES", help="Exit codes that mean: skip this question.")
    ] = None,
    participant: Participant = None,
    context: Context = None,
    new: New = False,
    study: StudyFile = DEFAULT_FILE,
    as_json: AsJson = False,
) -> None:
    """Ask one question after another.

    Either here in the terminal, or by running a command for each question.  Ctrl-C
    loses nothing: `askwise run` resumes where it stopped.
    """
    from askwise.cli.codes import Codes
    from askwise.cli.conversation import Interview, conversation
    from askwise.cli.present import Presenter
    from askwise.cli.screen import console
    from askwise.cli.session import opened, read_context
    from askwise.cli.trials import Command, trials

    if present is not None and command is not None:
        raise Refused(
            "--present", "be used without --command", repr(present), "A person answers, or a command."
        )
    if timeout is not None and not (timeout > 0 and (command or present)):
        expected = "be positive and be used with --command or --present"
        raise Refused("--timeout", expected, timeout, "Leave it out.")
    numbers = {"retries": retries, "jobs": jobs}
    lists = {"no-codes": no_codes, "tie-codes": tie_codes, "skip-codes": skip_codes}
    for option, value in {**numbers, **lists}.items():
        if value is not None and command is None:
            raise Refused(f"--{option}", "be used with --command", repr(value), "Leave it out.")
    codes = Codes.read(*lists.values())
    with opened(study, writes=True, new=new, prefetch=command is None) as session:
        given = read_context(context, session.study.space)
        out = console(stderr=as_json)
        interview = Interview(session, answers, participant, given, out)
        if command is not None:
            limits = {name: number for name, number in numbers.items() if number is not None}
            done = trials(interview, Command(command, codes, timeout, **limits))
        else:
            shown = None if present is None else Presenter.of(present, session.study, timeout, out)
            done = conversation(interview, shown)
    if as_json:
        print_json(done)
    if done["interrupted"]:
        raise typer.Exit(130)


@main.command()
def undo(
    count: Annotated[int, typer.Argument(min=1, metavar="[N]", help="How many.", show_default="1")] = 1,
    participant: Participant = None,
    study: StudyFile = DEFAULT_FILE,
    as_json: AsJson = False,
) -> None:
    """Take back the last N answers and skips.

    Of everybody, or of --participant.  Their questions are asked again, in their order;
    the record keeps what was answered.
    """
    from askwise.cli.app import counted
    from askwise.cli.session import opened
    from askwise.cli.telling import undone_sentence
    from askwise.study.answers import UNGIVEN

    with opened(study, writes=True, model=False) as session:
        taken = session.study.undo(count, UNGIVEN if participant is None else participant)
        sentence, left = undone_sentence(session.study, taken), session.study.count()
    document = {"undone": [question.id for question in taken], "answers": left}
    show(as_json, document, f"{sentence} {counted(left, 'answer')} left.")


@main.command()
def expire(
    number: Annotated[int | None, typer.Argument(metavar="[ID]", help="The number of the question.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All open questions.")] = False,
    study: StudyFile = DEFAULT_FILE,
    as_json: AsJson = False,
) -> None:
    """Give up waiting for an answer: the question is asked again, of whoever comes next."""
    from askwise.cli.app import counted
    from askwise.cli.session import opened
    from askwise.cli.telling import open_question

    if every and number is not None:
        raise Refused("--all", "be used without a number", number, "Leave one of them out.")
    with opened(study, writes=True, model=False) as session:
        waiting = [entry.id for entry in session.study.history() if entry.status == "open"]
        numbers = waiting if every else [open_question(session.study) if number is None else number]
        for each in numbers:
            session.study.expire(each)
    sentence = f"{counted(len(numbers), 'question')} expired{': ' * bool(numbers)}"
    show(as_json, {"expired": numbers}, f"{sentence}{', '.join(map(str, numbers))}.")
