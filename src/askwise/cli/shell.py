"""The command that keeps a study open for another program: shell."""

import json
import sys

import typer

from askwise.cli.app import DEFAULT_FILE, AsJson, New, StudyFile, main, message_of


@main.command()
def shell(new: New = False, study: StudyFile = DEFAULT_FILE, as_json: AsJson = True) -> None:
    """Answer requests in JSON, one a line, until the input ends.

    For programs in R, Octave and other languages: the study stays open, so a request
    takes milliseconds.  {"do": "ask"} is answered by a question, {"do": "tell",
    "question": 0, "answer": 1} records an answer, {"do": "quit"} ends it; what is wrong
    is answered by {"error": "..."}.  It always speaks JSON, with or without --json.
    """
    from askwise.cli.requests import Requests
    from askwise.cli.session import opened

    if hasattr(sys.stdin, "reconfigure"):
        sys.stdin.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        with opened(study, writes=True, new=new) as session:
            requests = Requests(session)
            for line in iter(sys.stdin.readline, ""):
                if _is_quit(line):
                    break
                if line.strip():
                    _write(requests.reply(line))
    except BrokenPipeError:  # nobody reads any more
        sys.stderr.close()
    except Exception as error:
        if (message := message_of(error)) is None:
            raise
        _write({"error": message})
        raise typer.Exit(1) from None


def _is_quit(line: str) -> bool:
    try:
        return bool(json.loads(line) == {"do": "quit"})
    except (ValueError, RecursionError):
        return False


def _write(document: object) -> None:
    """One line of JSON in ASCII, at once."""
    typer.echo(json.dumps(document))
    sys.stdout.flush()
