"""What all kinds of stimuli have in common, and where values stand in their texts."""

import html
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from askwise.errors import Refused
from askwise.stimuli.content import Content, Link

Setting = Mapping[str, Any]
_PLACE = re.compile(r"\{([\w.-]+)\}")  # not the braces of a style sheet, which have spaces or colons in them
TIMEOUT = 60.0
"""Seconds that a command may take."""


@dataclass(frozen=True)
class Settings:
    """What ``[stimulus]`` says, and where its file is."""

    value: str
    """The text of the key that names the kind."""
    names: tuple[str, ...]
    """Names of parameters, which may stand in braces."""
    folder: Path
    """Where files and programs are looked for: the folder of the study file."""
    timeout: float = TIMEOUT
    shown: str | None = None
    """How an address is presented, where its end does not tell."""


class Stimulus(ABC):
    """Makes what is shown of an option; one class for each key of ``[stimulus]``."""

    key: ClassVar[str]
    example: ClassVar[str]
    """What may be written in a study file."""
    reaches: ClassVar[bool] = False
    """Whether it reads files or runs programs, which a study that came by a request must not."""

    def __init__(self, settings: Settings) -> None:
        """Refuse what cannot work; nothing is run."""
        self.settings = settings
        self.check()

    def __eq__(self, other: object) -> bool:
        """The same kind with the same settings."""
        return type(other) is type(self) and isinstance(other, Stimulus) and other.settings == self.settings

    def __hash__(self) -> int:
        """Equal stimuli have equal hashes."""
        return hash(self.settings)

    @abstractmethod
    def check(self) -> None:
        """Refuse a text that cannot work."""

    @abstractmethod
    def of(self, setting: Setting) -> Content | Link:
        """What is shown of an option with these values; a refusal says what went wrong."""

    @property
    def origins(self) -> tuple[str, ...]:
        """Servers elsewhere from which browsers load it."""
        return ()

    def close(self) -> None:  # noqa: B027 - most kinds run nothing
        """End what is running."""

    def check_places(self, text: str) -> None:
        """Refuse braces around a word that is not a parameter."""
        for match in _PLACE.finditer(text):
            if match[1] not in self.settings.names:
                expected = f"have parameters in braces ({', '.join(self.settings.names)})"
                advice = "Correct the name, or put spaces inside the braces."
                raise Refused(self.key, expected, match[0], advice)


KINDS: dict[str, type[Stimulus]] = {}
"""Kinds of stimuli by their keys."""


def written(value: object) -> str:
    """A value as it is written in names of files: a number without needless digits."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def with_values(text: str, setting: Setting, write: Callable[[object], str] = written) -> str:
    """A text with the values of an option in the place of their names.

    >>> with_values("{gain}-{mode}.wav", {"gain": 10.0, "mode": "soft"})
    '10-soft.wav'
    """
    return _PLACE.sub(lambda match: write(setting[match[1]]), text)


def escaped(value: object) -> str:
    """A value as it is written in HTML."""
    return html.escape(written(value))
