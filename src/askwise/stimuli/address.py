"""Options that another server has."""

import re
from pathlib import PurePosixPath
from typing import ClassVar, get_args
from urllib.parse import SplitResult, quote, urlsplit

from askwise.errors import Refused
from askwise.stimuli.base import Setting, Stimulus, with_values, written
from askwise.stimuli.content import SUFFIXES, Link, Shown

_SHOWN = ("image", "audio", "video")
_HOST = re.compile(r"[A-Za-z0-9.-]+(:\d+)?")  # nothing that could end a Content-Security-Policy


def _split(text: str) -> SplitResult:
    try:
        return urlsplit(text)
    except ValueError:  # such as a bracket that is not closed
        return urlsplit("")


class Kind(Stimulus):
    """An address with values in it, from which browsers load a picture, a sound or a film."""

    key: ClassVar[str] = "url"
    example: ClassVar[str] = '"https://lab.example.org/faces/{age}-{smile}.png"'

    def check(self) -> None:
        """Refuse what is not an address of the web, or has a value in the name of the server."""
        text = self.settings.value
        self.check_places(text)
        parts = _split(text)
        if parts.scheme not in ("http", "https") or not _HOST.fullmatch(parts.netloc):
            expected = "be an address such as https://lab.example.org/{age}.png"
            raise Refused(self.key, expected, repr(text), "Use file for files beside the study file.")
        self._shown()

    def of(self, setting: Setting) -> Link:
        """The address."""
        url = with_values(self.settings.value, setting, lambda value: quote(written(value), safe=""))
        return Link(url, self._shown())

    @property
    def origins(self) -> tuple[str, ...]:
        """The server in the address."""
        parts = _split(self.settings.value)
        return (f"{parts.scheme}://{parts.netloc}",)

    def _shown(self) -> Shown:
        suffix = PurePosixPath(_split(self.settings.value).path).suffix.lower()
        found = self.settings.shown or SUFFIXES.get(suffix, (None,))[0]
        if found not in _SHOWN:
            expected = f"be of a known kind, one of {', '.join(_SHOWN)}"
            raise Refused(self.key, expected, repr(self.settings.value), 'Add shown = "image", say.')
        return next(shown for shown in get_args(Shown) if shown == found)
