"""An answer that was typed: what it means, which question it is about, and that it is taken back."""

from collections.abc import Sequence
from dataclasses import dataclass

from askwise.errors import NotFound, Refused
from askwise.study import Answer, Question, Study, labels
from askwise.study.answers import Pairs
from askwise.study.answers.base import listed

_ID_DIGITS = 18  # more are no question of any study, and thousands are no number to Python


@dataclass(frozen=True)
class Telling:
    """What was typed: an answer, or ``skip`` or ``void``."""

    answer: Answer | None
    word: str = ""
    names: Sequence[str] = ()
    """What the options were called."""

    @classmethod
    def of(cls, study: Study, text: str, pairs: str | None = None, index: bool = False) -> "Telling":
        """The meaning of a text; ``index``: options are numbered from 0 instead of lettered."""
        kind, word = study.plan.kind, text.strip().lower()
        names = [str(number) for number in range(study.size)] if index else labels(study.size)
        if pairs is not None:
            if "pairs" not in kind.takes:
                got = f"a {study.feedback} study"
                raise Refused("--pairs", "be used with a batch", got, "Give one answer instead.")
            return cls(Pairs.listed(pairs, names), names=names)
        if word in ("skip", "void"):
            return cls(None, word)
        return cls(kind.typed(text, names, index), names=names)

    @property
    def read_back(self) -> str:
        """What the answer says, in words; nothing of a skip or void."""
        return "" if self.answer is None else self.answer.in_words(self.names)

    def record(
        self,
        study: Study,
        question: int,
        amend: bool = False,
        reason: str | None = None,
        seconds: float | None = None,
    ) -> None:
        """Record it in the study."""
        if reason is not None and not amend and self.answer is not None:
            raise Refused("--reason", "be used with --amend, skip or void", "neither", "Leave it out.")
        if self.word == "void":
            study.void(question, reason)
        elif amend and self.word == "skip":
            advice = "Write void to withdraw the old answer."
            raise Refused("answer", "replace the old one", "skip", advice)
        elif amend:
            study.amend(question, self.answer, reason=reason)
        elif self.word == "skip":
            study.skip(question, seconds, reason=reason)
        else:
            study.tell(question, self.answer, seconds=seconds)


def split_words(words: list[str], has_pairs: bool) -> tuple[int | None, str]:
    """The number of the question, if given, and the text of the answer, which may be several words."""
    rest = [*words, ""] if has_pairs else words
    first = rest[0] if len(rest) > 1 and rest[0].isascii() and rest[0].isdecimal() else ""
    text = " ".join(rest[1:] if first else rest)
    if has_pairs == bool(text.strip()):
        expected, got = "be given an answer, optionally after the question's id", " ".join(words) or "nothing"
        raise Refused("tell", expected, got, "Write `tell 3 A`, say.")
    if len(first) > _ID_DIGITS:
        raise NotFound("id", "be the number of a question", first, "`askwise ask` shows it.")
    return int(first) if first else None, text


def open_question(study: Study) -> int:
    """The id of the only open question."""
    waiting = [entry.id for entry in study.history() if entry.status == "open"]
    if len(waiting) != 1:
        got = f"{len(waiting)} ({', '.join(map(str, waiting))})" if waiting else "none"
        advice = "Say which, as in `tell 3 A`." if waiting else "Run `askwise ask` first."
        raise Refused("open questions", "be exactly one if no id is given", got, advice)
    return waiting[0]


def undone_sentence(study: Study, questions: Sequence[Question]) -> str:
    """Which replies were taken back, and what becomes of their questions."""
    dropped = [one.id for one in questions if study.entry(one).status == "voided"]
    again = [one.id for one in questions if one.id not in dropped]
    told = [f"Took back {_replies(again)}, to be asked again."] if again else []
    if dropped:
        told.append(f"Took out {_replies(dropped)}, recorded from elsewhere.")
    return " ".join(told)


def _replies(questions: Sequence[int]) -> str:
    several = len(questions) > 1
    numbers = listed(map(str, questions))
    return f"the {'replies' if several else 'reply'} to question{'s' * several} {numbers}"
