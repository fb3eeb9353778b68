"""What every kind of answer can do."""

import operator
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from askwise.errors import Refused

if TYPE_CHECKING:  # answers are read without torch; rows of them need it
    import torch

    import askwise.model

KINDS: "dict[str, type[Answer]]" = {}
"""Every kind of answer by its key in the record."""
UNGIVEN: Any = type("Ungiven", (), {"__repr__": lambda _: "no answer"})()
"""Stands for an answer that was left out, since None is one: "can't decide"."""
Verdict = Literal["good", "bad", "undecided"]
"""What an answer says of an option: better than all it was compared with, not so, or nothing."""


@dataclass(frozen=True)
class Answer(ABC):
    """An answer to a question; its only field has the name and the value that the record keeps.

    >>> Answer.from_json({"ranking": [2, 0]}).text(["A", "B", "C"])
    'C>A'
    """

    key: ClassVar[str]

    def __init_subclass__(cls) -> None:
        """Register the kind by its key in the record."""
        KINDS[cls.key] = cls

    @classmethod
    @abstractmethod
    def given(cls, value: object, size: int, how: str) -> "Answer":
        """The answer as it was given in Python; ``how`` ends the refusal of anything else."""

    @classmethod
    @abstractmethod
    def typed(cls, text: str, names: Sequence[str]) -> "Answer | None":
        """The answer that a text stands for, if it is of this kind; ``names`` are those of the options."""

    @classmethod
    @abstractmethod
    def rows(cls, points: "torch.Tensor", answers: "Sequence[Any]") -> "askwise.model.Data":
        """Rows for inference, of answers of one :attr:`shape` to questions about ``points`` [n, m, d]."""

    @abstractmethod
    def text(self, names: Sequence[str]) -> str:
        """As it is typed."""

    @abstractmethod
    def outcomes(self, names: Sequence[str]) -> list[str]:
        """What it says of each option, for a table."""

    @classmethod
    @abstractmethod
    def from_outcomes(cls, outcomes: Sequence[str]) -> "Answer | None":
        """The answer that was written as one outcome for each option, if it is one of this kind."""

    @abstractmethod
    def verdicts(self, size: int) -> list[Verdict]:
        """What it says of each option, for a figure."""

    @property
    def shape(self) -> object:
        """Answers of equal shape become rows together."""
        return ()

    def to_json(self) -> dict[str, Any]:
        """As the record keeps it."""
        return {name: _listed(value) for name, value in asdict(self).items()}

    @staticmethod
    def from_json(written: Mapping[str, Any]) -> "Answer":
        """The answer that the record keeps so."""
        if len(written) == 1:
            ((key, value),) = written.items()
            if key in KINDS:
                return KINDS[key](**{fields(KINDS[key])[0].name: _fixed(value)})
        raise Refused("answer", f"be one of {', '.join(KINDS)}", repr(written), "Update askwise.")


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


def whole(value: object) -> int | None:
    """A whole number of any library as an int; None for anything else, truth values included."""
    try:
        return None if is_truth(value) else operator.index(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def is_truth(value: object) -> bool:
    """Whether it is a single truth value of any library."""
    array_type = str(getattr(value, "dtype", ""))
    return isinstance(value, bool) or (
        array_type in ("bool", "torch.bool") and getattr(value, "ndim", 1) == 0
    )


def indices(value: object) -> list[int] | None:
    """A sequence of whole numbers as a list; None for anything else."""
    listed = isinstance(value, Sequence) and not isinstance(value, str | bytes)
    if not (listed or hasattr(value, "__array__")) or getattr(value, "ndim", 1) == 0:
        return None
    read = [whole(part) for part in value]  # type: ignore[attr-defined]
    return None if None in read else [part for part in read if part is not None]


def _listed(value: Any) -> Any:
    return [_listed(part) for part in value] if isinstance(value, tuple) else value


def _fixed(value: Any) -> Any:
    return tuple(_fixed(part) for part in value) if isinstance(value, list | tuple) else value
