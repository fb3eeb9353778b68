"""Every refusal of askwise, as data: what must hold, what it was instead, and what to do about it.

All of them are :class:`Refused`; a subclass exists only where a caller acts differently.  Each reads
``<what> must <expected>; got <got>. <advice>``, after the place in a file if there is one.
"""

import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_LONGEST, _LONGEST_GOT = 2000, 200  # characters of a part of a message


def shortened(text: str, longest: int) -> str:
    """The beginning of a text that is too long to be shown, and how long it is.

    >>> shortened("a" * 10_000_000, 40)
    'aaaaaaaaaaaaaaa... (10,000,000 characters)'
    """
    if len(text) <= longest:
        return text
    end = f"... ({len(text):,} characters)"
    return text[: max(15, longest - len(end))] + end


def printable(text: str) -> str:
    """The text with everything escaped that could command a terminal; lines stay lines.

    Control and escape characters, marks that change the direction of writing, and halves of characters.

    >>> printable("\x1b[31mred\x07")
    '\\\\x1b[31mred\\\\x07'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if char == "\n" or not _commands(char) else _escaped(char) for char in text)


def _commands(char: str) -> bool:
    return unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


class Refused(ValueError):
    """Input, a file or a state that askwise does not go on with; nothing was changed.

    >>> error = Refused("size", "be 2 or more", "1", "Leave it out.")
    >>> str(error.at("line 3"))
    'line 3: size must be 2 or more; got 1. Leave it out.'
    """

    def __init__(self, what: object, expected: str, got: object, advice: str, place: str = "") -> None:
        """``place``: where in a file, such as ``line 3``."""
        self.what, self.expected = shortened(str(what), _LONGEST), shortened(expected, _LONGEST)
        self.got = shortened(str(got), _LONGEST_GOT)
        self.advice, self.place = shortened(advice, _LONGEST), shortened(place, _LONGEST)
        super().__init__(self.what, self.expected, self.got, self.advice, self.place)

    def __str__(self) -> str:
        """One sentence and the advice."""
        place = f"{self.place}: " if self.place else ""
        return f"{place}{self.what} must {self.expected}; got {self.got}. {self.advice}"

    def __reduce__(self) -> tuple[Any, ...]:
        """Unpickled from its parts, in Dask's workers as well; notes travel with it."""
        return type(self), (self.what, self.expected, self.got, self.advice, self.place), self.__dict__

    def at(self, place: str) -> "Refused":
        """The same refusal, found in this place: a file, a line, a row."""
        whole = f"{place}: {self.place}" if self.place else place
        return type(self)(self.what, self.expected, self.got, self.advice, whole)

    def about(self, what: str) -> "Refused":
        """The same refusal of something that the caller knows by another name."""
        return type(self)(what, self.expected, self.got, self.advice, self.place)


class WrongType(Refused, TypeError):
    """A value of a type that cannot mean anything here."""


class NotFound(Refused):
    """Something with this name does not exist: create it, or correct the name."""


class Conflict(Refused):
    """Somebody else was faster; nothing was written.  Read again and decide again."""


class Unavailable(Refused, ImportError):
    """An optional package is not installed."""


class Failed(Refused, OSError):
    """A file, a disk, a server or a process failed."""


class Damaged(Failed):
    """A record is not as it was written."""


class Busy(Failed, TimeoutError):
    """Another program holds the storage; try again later."""


class Unreachable(Failed, ConnectionError):
    """The server does not answer; whether the last event was written is unknown until it does."""


@contextmanager
def extra(name: str, what: str) -> Iterator[None]:
    """Imports in here need this extra; without it, refuse in words."""
    try:
        yield
    except ImportError as error:
        if isinstance(error, Refused):
            raise
        advice = f"Run `pip install askwise[{name}]`."
        raise Unavailable(what, f"have the packages of askwise[{name}]", error, advice) from error
