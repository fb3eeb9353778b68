"""One answer given on the command line."""

from dataclasses import dataclass

from askwise.errors import Refused
from askwise.study import Answer, Study, labels
from askwise.study.answers import Pairs


@dataclass(frozen=True)
class Telling:
    """What was typed: an answer, or ``skip`` or ``void``."""

    answer: Answer | None
    word: str = ""

    @classmethod
    def of(cls, study: Study, text: str, pairs: str | None = None, index: bool = False) -> "Telling":
        """What a text stands for; ``index``: options are counted from 0 instead of lettered."""
        kind, word = study.plan.kind, text.strip().lower()
        names = [str(number) for number in range(study.size)] if index else labels(study.size)
        if pairs is not None:
            if "pairs" not in kind.takes:
                got = f"a {study.feedback} study"
                raise Refused("--pairs", "go with a batch", got, "Give one answer instead.")
            return cls(Pairs.typed(pairs, names))
        if word in ("skip", "void"):
            return cls(None, word)
        return cls(kind.typed(text, names, index))

    def record(
        self,
        study: Study,
        question: int,
        amend: bool = False,
        reason: str | None = None,
        seconds: float | None = None,
    ) -> None:
        """Record it."""
        if reason is not None and not amend and self.word != "void":
            raise Refused("--reason", "go with --amend or void", "neither", "Leave it out.")
        if self.word == "void":
            study.void(question, reason)
        elif amend and self.word == "skip":
            advice = "Write void to withdraw the old answer."
            raise Refused("answer", "be one to amend with", "skip", advice)
        elif amend:
            study.amend(question, self.answer, reason=reason)
        elif self.word == "skip":
            study.skip(question, seconds)
        else:
            study.tell(question, self.answer, seconds=seconds)


def split_words(words: list[str], has_pairs: bool) -> tuple[int | None, str]:
    """The number of the question, if given, and the text of the answer."""
    rest = list(words)
    number = rest.pop(0) if len(rest) == (1 if has_pairs else 2) else None
    if len(rest) != (0 if has_pairs else 1):
        got = " ".join(words) or "nothing"
        raise Refused(
            "tell", "have an answer, perhaps after the question's id", got, "Write `tell 3 A`, say."
        )
    if number is not None and not (number.isascii() and number.isdecimal()):
        raise Refused("id", "be the number of a question", repr(number), "`askwise ask` shows it.")
    return None if number is None else int(number), rest[0] if rest else ""


def open_question(study: Study) -> int:
    """The only question that waits for an answer."""
    waiting = [entry.id for entry in study.history() if entry.status == "open"]
    if len(waiting) != 1:
        got = f"{len(waiting)} ({', '.join(map(str, waiting))})" if waiting else "none"
        advice = "Say which, as in `tell 3 A`." if waiting else "Run `askwise ask` first."
        raise Refused("open questions", "be one, or the id be given", got, advice)
    return waiting[0]
