"""The participants' page as a study file describes it, in ``[page]``."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from askwise.errors import Refused
from askwise.study.feedback import Feedback
from askwise.study.toml import Tables
from askwise.study.values import COUNT, FLAG, TEXT, Check, must_be, of, one_of
from askwise.study.words import WORDS, with_words

if TYPE_CHECKING:
    from askwise.space import Space

Way = Literal["winner", "ranking", "worst"]
_LANGUAGE = re.compile(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*")
_RIGHT_TO_LEFT = ("ar", "dv", "fa", "he", "ku", "ps", "sd", "ug", "ur", "yi")


@dataclass(frozen=True)
class Page:
    """What participants read, and how many questions they answer."""

    title: str = ""
    """By default the question."""
    instructions: str = ""
    """Paragraphs are separated by empty lines; by default a sentence about the kind of question."""
    consent: str = ""
    """What participants agree to before the first question is asked."""
    thanks: str = ""
    """Below the thanks at the end."""
    language: str = "en"
    answers: int | None = None
    """Planned number of answers of each participant; None for as many as they like."""
    pause: int | None = None
    """A break is offered after so many answers; ``break`` in the file."""
    undecided: bool = True
    """Whether "can't decide" is offered."""
    answer: Way = "winner"
    """How a batch is answered."""
    code: str = ""
    """The same completion code for all; by default one for each participant."""
    reveal: bool = False
    """Whether the recommended option is shown at the end."""
    context: Mapping[str, Any] | None = None
    """Values of the context parameters in which questions are asked here."""
    words: Mapping[str, str] = field(default_factory=lambda: dict(WORDS))

    @property
    def direction(self) -> str:
        """In which direction its language is written."""
        return "rtl" if self.language.partition("-")[0].lower() in _RIGHT_TO_LEFT else "ltr"

    def pauses_after(self, answers: int) -> bool:
        """Whether a break is due after so many answers."""
        return self.pause is not None and answers > 0 and answers % self.pause == 0


_KEYS: dict[str, Check] = {
    **dict.fromkeys(("title", "instructions", "consent", "thanks", "code"), TEXT),
    "language": must_be(
        "the code of a language", '"en"', lambda value: of(str)(value) and bool(_LANGUAGE.fullmatch(value))
    ),
    **dict.fromkeys(("answers", "break"), COUNT),
    **dict.fromkeys(("undecided", "reveal"), FLAG),
    "answer": must_be("'winner', 'ranking' or 'worst'", '"ranking"', one_of("winner", "ranking", "worst")),
    "context": must_be("a table of values", '{room = "large"}', of(dict)),
    "words": must_be("a table of texts", '{yes = "Ja"}', of(dict)),
}


def read_page(file: Tables, kind: Feedback, size: object, space: "Space") -> Page:
    """The table ``[page]`` of a study file; the default page without one."""
    if "page" not in file.content:
        return Page()
    given = file.table("page")
    for key, value in given.items():
        file.check_known(("page",), key, [*_KEYS])
        _KEYS[key](file.at("page", key), key, value)
    words = given.get("words", {})
    for key, value in words.items():
        file.check_known(("page", "words"), key, [*WORDS])
        TEXT(file.at("page", "words", key), key, value)
    with file.placing("page", "words"):
        given["words"] = with_words(words)
    with file.placing("page"):
        _check_answer(kind, size, given.get("answer"))
    if "context" in given:
        from askwise.study.validation import checked_context

        with file.placing("page", "context"):
            given["context"] = checked_context(space, given["context"])
    if "break" in given:
        given["pause"] = given.pop("break")
    return Page(**given)


def _check_answer(kind: Feedback, size: object, way: str | None) -> None:
    if way is None:
        return
    if len(kind.sizes) == 1:
        raise Refused("answer", "be left out unless a batch is compared", repr(way), "Leave it out.")
    if way == "worst" and kind.check_size(size) < 3:
        advice = 'Write answer = "winner".'
        raise Refused("answer", "be 'winner' or 'ranking' where two are compared", repr(way), advice)
