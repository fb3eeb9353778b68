"""What every kind of answer can do."""

import json
import operator
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import count, islice, product
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

from askwise.errors import Refused

if TYPE_CHECKING:
    from torch import Tensor as Tensor

    from askwise.model import Data as Data
    from askwise.model import Threshold as Threshold
else:  # only rows need torch, which takes seconds to import
    Data = Tensor = Threshold = Any

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
    def rows(cls, points: Tensor, answers: Sequence[Any], threshold: Threshold = "best") -> Data:
        """Rows for inference, of answers of one :attr:`shape` to questions about ``points`` [n, m, d]."""
        from askwise.model import Extended

        return cls._rows(Extended, points, answers, threshold)

    @staticmethod
    @abstractmethod
    def _rows(data: type[Data], points: Tensor, answers: Sequence[Any], threshold: Threshold) -> Data: ...

    @abstractmethod
    def text(self, names: Sequence[str]) -> str:
        """As it is typed."""

    @abstractmethod
    def in_words(self, names: Sequence[str]) -> str:
        """What it says, and of which options it says nothing, to be read back to the person."""

    @property
    def compound(self) -> bool:
        """Whether it takes more than one key, so that it may not say what the person meant."""
        return False

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
        return json.loads(json.dumps(asdict(self)))  # lists in place of tuples

    @staticmethod
    def from_json(written: Mapping[str, Any]) -> "Answer":
        """The answer that the record keeps so."""
        if len(written) == 1:
            ((key, value),) = written.items()
            if key in KINDS:
                kind: Any = KINDS[key]
                return kind(_immutable(value))
        raise Refused("answer", f"be one of {', '.join(KINDS)}", repr(written), "Update askwise.")


def labels(size: int) -> list[str]:
    """The letters of options: A, B, ... Z, AA, AB, ..."""
    names = ("".join(letters) for length in count(1) for letters in product(ascii_uppercase, repeat=length))
    return list(islice(names, size))


def listed(names: Iterable[str]) -> str:
    """Names in a sentence.

    >>> listed(["A", "B", "D"])
    'A, B and D'
    """
    *some, last = names
    return f"{', '.join(some)} and {last}" if some else last


def whole(value: object) -> int | None:
    """A whole number of any library as an int; None for anything else, truth values included."""
    try:
        return None if is_truth(value) else operator.index(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def is_truth(value: object) -> bool:
    """Whether it is a single truth value of any library."""
    boolean = str(getattr(value, "dtype", "")) in ("bool", "torch.bool")
    return isinstance(value, bool) or (boolean and getattr(value, "ndim", 1) == 0)


def indices(value: object) -> list[int] | None:
    """A sequence of whole numbers as a list; None for anything else."""
    listed = isinstance(value, Sequence) and not isinstance(value, str | bytes)
    if not (listed or hasattr(value, "__array__")) or getattr(value, "ndim", 1) == 0:
        return None
    read = [whole(part) for part in value]  # type: ignore[attr-defined]
    return None if None in read else cast(list[int], read)


def _immutable(value: Any) -> Any:
    return tuple(_immutable(part) for part in value) if isinstance(value, list) else value
