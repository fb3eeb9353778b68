"""One answer given on the command line."""

from dataclasses import dataclass

from askwise.cli.replies import Reply
from askwise.study import Study

__all__ = ["Telling", "open_question", "parted", "tell"]


@dataclass(frozen=True)
class Telling:
    """An answer and what was said about it."""

    reply: Reply
    amend: bool = False
    reason: str | None = None
    seconds: float | None = None


def parted(words: list[str], has_pairs: bool) -> tuple[int | None, str]:
    """The number of the question, if given, and the text of the answer."""
    rest = list(words)
    number = rest.pop(0) if len(rest) == (1 if has_pairs else 2) else None
    if len(rest) != (0 if has_pairs else 1):
        got = " ".join(words) or "nothing"
        raise ValueError(
            f"tell must have an answer, perhaps after the question's id; got {got}. Write `tell 3 A`, say."
        )
    if number is not None and not (number.isascii() and number.isdecimal()):
        raise ValueError(f"id must be the number of a question; got {number!r}. `askwise ask` shows it.")
    return None if number is None else int(number), rest[0] if rest else ""


def open_question(study: Study) -> int:
    """The only question that waits for an answer."""
    waiting = [entry.id for entry in study.history() if entry.status == "open"]
    if len(waiting) != 1:
        got = f"{len(waiting)} ({', '.join(map(str, waiting))})" if waiting else "none"
        advice = "Say which, as in `tell 3 A`." if waiting else "Run `askwise ask` first."
        raise ValueError(f"open questions must be one, or the id be given; got {got}. {advice}")
    return waiting[0]


def tell(study: Study, number: int, telling: Telling) -> None:
    """Record it."""
    reply = telling.reply
    if telling.reason is not None and not telling.amend and reply.kind != "void":
        raise ValueError("--reason must go with --amend or void; got neither. Leave it out.")
    if reply.kind == "void":
        study.void(number, telling.reason)
    elif telling.amend and reply.kind == "skip":
        raise ValueError("answer must be one to amend with; got skip. Write void to withdraw the old answer.")
    elif telling.amend:
        study.amend(number, **reply.told, reason=telling.reason)
    elif reply.kind == "skip":
        study.skip(number, telling.seconds)
    else:
        study.tell(number, **reply.told, seconds=telling.seconds)
