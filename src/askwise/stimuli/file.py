"""Options as files that lie beside the study file."""

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from askwise.errors import Failed, Refused
from askwise.space import readable
from askwise.stimuli.base import Setting, Stimulus, escaped, with_values
from askwise.stimuli.content import SUFFIXES, Content

_FILLED: dict[str, Callable[[object], str]] = {".txt": readable, ".html": escaped, ".svg": escaped}
"""Files in which values take the place of their names, and how they are written there."""


class Kind(Stimulus):
    """A file whose name, and text if it is text, may have values in it."""

    key: ClassVar[str] = "file"
    example: ClassVar[str] = '"stimuli/{gain}-{mode}.wav"'
    reaches: ClassVar[bool] = True

    def check(self) -> None:
        """Refuse files elsewhere, and those that browsers do not show."""
        name = self.settings.value
        self.check_places(name)
        if Path(name).is_absolute() or ".." in Path(name).parts:
            advice = "Put it beside the study file."
            raise Refused(self.key, "be inside the folder of the study file", repr(name), advice)
        if Path(name).suffix.lower() not in SUFFIXES:
            raise Refused(self.key, f"end with one of {' '.join(SUFFIXES)}", repr(name), "Convert it first.")
        if "{" not in name:
            self._text(self._path({}))

    def of(self, setting: Setting) -> Content:
        """The content of the file."""
        path = self._path(setting)
        suffix = path.suffix.lower()
        if suffix in _FILLED:
            return Content(with_values(self._text(path), setting, _FILLED[suffix]).encode(), suffix)
        return Content(path.read_bytes(), suffix)

    def _path(self, setting: Setting) -> Path:
        folder = self.settings.folder.resolve()
        path = (folder / with_values(self.settings.value, setting)).resolve()
        if not path.is_relative_to(folder):  # a value with dots and slashes in it, or a link that leads out
            advice = "Move it there."
            raise Refused(self.key, "be inside the folder of the study file", repr(str(path)), advice)
        if not path.is_file():
            raise Failed(self.key, "exist for every option", f"no {path}", "Create it.")
        return path

    def _text(self, path: Path) -> str:
        """The text of a file in which only parameters are in braces; nothing of other files."""
        if path.suffix.lower() not in _FILLED:
            return ""
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise Refused(self.key, "be text in UTF-8", str(path), "Save it as UTF-8.") from None
        self.check_places(text)
        return text
