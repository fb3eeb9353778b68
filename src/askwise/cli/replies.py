"""Answers as people type them."""

import re
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["Reply", "labels", "read_pairs", "read_reply", "spoken", "told_again"]

_YES, _NO = ("yes", "y", "true"), ("no", "n", "false")
_UNDECIDED = ("tie", "can't-decide", "can't decide", "cant-decide")


@dataclass(frozen=True)
class Reply:
    """What was typed: an answer, or that there is none."""

    kind: Literal["answer", "skip", "void"]
    told: dict[str, Any]
    """What to call `Study.tell` with, beside the question."""


def labels(size: int) -> list[str]:
    """The letters of so many options: A, B, ... Z, AA, AB, ..."""
    return [_label(number) for number in range(size)]


def _label(number: int) -> str:
    letters = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


def read_reply(text: str, feedback: str, size: int, *, index: bool = False) -> Reply:
    """The answer that a text stands for; with ``index`` options are counted from 0 instead of lettered."""
    word = text.strip().lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    if word in ("skip", "void"):
        return Reply("skip" if word == "skip" else "void", {})
    if word in _UNDECIDED:
        return Reply("answer", {"answer": None})
    if feedback == "binary":
        if word not in _YES + _NO or index:
            raise ValueError(f"answer must be yes or no; got {text!r}. {_ways(feedback, size, index)}")
        return Reply("answer", {"answer": word in _YES})
    parts = [part.strip() for part in re.split("[>,]", text)]
    names = _names(size, index)
    if not all(part.upper() in names for part in parts) or (feedback == "duel" and len(parts) > 1):
        expected = "letters of options" if feedback == "batch" else "the letter of the preferred option"
        expected = "indices of options, counted from 0" if index else expected
        raise ValueError(f"answer must be {expected}; got {text!r}. {_ways(feedback, size, index)}")
    places = [names.index(part.upper()) for part in parts]
    if len(set(places)) < len(places):
        raise ValueError(f"answer must name each option once at most; got {text!r}. Leave one out.")
    if feedback == "duel":
        return Reply("answer", {"answer": places[0]})
    return Reply("answer", {"winner": places[0]} if len(places) == 1 else {"ranking": places})


def read_pairs(text: str, size: int, *, index: bool = False) -> Reply:
    """Comparisons of two, better first: ``A>B;C>B``."""
    names = _names(size, index)
    pairs = []
    for part in text.split(";"):
        sides = [side.strip().upper() for side in part.split(">")]
        if len(sides) != 2 or not all(side in names for side in sides):
            raise ValueError(
                f"pairs must be like {names[0]}>{names[1]}, better first, with semicolons between; "
                f"got {part.strip()!r}. Options are {names[0]} to {names[-1]}."
            )
        pairs.append((names.index(sides[0]), names.index(sides[1])))
    return Reply("answer", {"pairs": pairs})


def _names(size: int, index: bool) -> list[str]:
    return [str(number) for number in range(size)] if index else labels(size)


def _ways(feedback: str, size: int, index: bool) -> str:
    if feedback == "binary":
        return "Write yes, no, tie, skip or void."
    names = _names(size, index)
    if feedback == "duel":
        more = "" if index else "; to count options from 0, add --index"
        return f"Write {names[0]} or {names[1]}, or tie, skip, void{more}."
    example = f"{names[1]},{names[0]}"
    more = "" if index else "; to count options from 0, add --index"
    return f"Write the best one ({names[1]}), a ranking ({example}), or tie, skip, void{more}."


def spoken(answer: dict[str, Any], size: int) -> str:
    """An answer of the record in words that :func:`read_reply` or :func:`read_pairs` would take."""
    ((kind, value),) = answer.items()
    names = labels(size)
    if kind == "yes":
        return "yes" if value else "no"
    if kind == "prefers":
        return names[value]
    if kind == "ranking":
        return ">".join(names[place] for place in value)
    if kind == "pairs":
        return ";".join(f"{names[better]}>{names[worse]}" for better, worse in value)
    return "tie"


def told_again(answer: dict[str, Any]) -> dict[str, Any]:
    """What to call `Study.tell` or `Study.record` with, to get this answer into a record."""
    ((kind, value),) = answer.items()
    if kind == "undecided":
        return {"answer": None}
    if kind == "pairs":
        value = [(better, worse) for better, worse in value]
    return {kind if kind in ("ranking", "pairs") else "answer": value}
