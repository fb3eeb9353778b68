"""The answers of a study as the experimenter sees, corrects and withdraws them."""

from dataclasses import dataclass
from typing import Any

from askwise.errors import Conflict
from askwise.space import Space
from askwise.study import FEEDBACKS, Entry, Study, labels
from askwise.web.overview import texts

PAGE = 50
"""Questions on one page."""


@dataclass(frozen=True)
class Shown:
    """A question as a row of a table."""

    entry: Entry
    options: list[tuple[str, str]]
    """The letter of each option, and what it is."""
    answer: str
    seen: str
    """What the row shows, by which a change notices that it has changed meanwhile."""


def shown(space: Space, entry: Entry) -> Shown:
    """A question as it is shown."""
    names = labels(len(entry.options))
    options = [
        (name, ", ".join(f"{one['name']} {one['text']}" for one in texts(space, option)))
        for name, option in zip(names, entry.options, strict=True)
    ]
    answer = entry.answer.in_words(names) if entry.status == "answered" and entry.answer else ""
    return Shown(entry, options, answer, seen_of(entry))


def seen_of(entry: Entry) -> str:
    """What somebody has seen who looks at this question."""
    return f"{entry.status} {entry.answer.to_json() if entry.answer else ''}".strip()


def choices(study: Study) -> list[tuple[str, str]]:
    """Answers to choose from, as typed and in words; none where they are too many and must be typed."""
    kind, names = study.plan.kind, labels(study.size)
    either = [(one.text(names), one.in_words(names)) for one in kind.either]
    return [*either, ("tie", "can't decide")] if either else []


def selected(entries: list[Entry], participant: str, status: str) -> list[Entry]:
    """The questions of one participant or one status, newest first; empty texts for all."""
    return [
        entry
        for entry in reversed(entries)
        if participant in ("", entry.participant or "(no name)") and status in ("", entry.status)
    ]


def amend(study: Study, question: int, answer: str, reason: str, seen: str) -> None:
    """Replace an answer, unless it is no longer what was seen."""
    _check_seen(study, question, seen)
    read = FEEDBACKS[study.feedback].typed(answer, labels(study.size))
    study.amend(question, read, reason=reason or None)


def void(study: Study, question: int, reason: str, seen: str) -> None:
    """Take a question out of the model, unless it is no longer what was seen."""
    _check_seen(study, question, seen)
    study.void(question, reason or None)


def _check_seen(study: Study, question: int, seen: str) -> None:
    entry = study.entry(question)
    if seen_of(entry) != seen:
        now = shown(study.space, entry)
        got = f"a change to {now.answer or entry.status} meanwhile"
        raise Conflict(f"question {question}", "be as you saw it", got, "Look at it again, then decide.")


def page_of(entries: list[Entry], number: int) -> tuple[list[Entry], dict[str, Any]]:
    """The entries of a page, and which pages there are beside it."""
    last = max(1, -(-len(entries) // PAGE))
    here = min(max(1, number), last)
    return entries[(here - 1) * PAGE : here * PAGE], {"here": here, "last": last, "total": len(entries)}
