"""Options that a Python function makes."""

import importlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from askwise import plugins
from askwise.errors import Failed, Refused
from askwise.stimuli.base import Setting, Stimulus
from askwise.stimuli.content import Content

NAME = "render"
"""The function that is called, unless another one is named."""


class Kind(Stimulus):
    """A function of the values that returns text, SVG, HTML, bytes, or the path of a file."""

    key: ClassVar[str] = "render"
    example: ClassVar[str] = '"my_pictures:draw"'
    reaches: ClassVar[bool] = True

    def check(self) -> None:
        """Import the module, and refuse one without the function."""
        module, _, name = self.settings.value.partition(":")
        plugins.use(module, self.settings.folder)
        found = getattr(importlib.import_module(module), name or NAME, None)
        if not callable(found):
            expected = f"name a function, {NAME} unless another one is named after a colon"
            raise Refused(self.key, expected, repr(self.settings.value), f"Write {self.example}, say.")
        self._function: Callable[[dict[str, Any]], object] = found

    def of(self, setting: Setting) -> Content:
        """What the function returns."""
        try:
            made = self._function(dict(setting))
        except Exception as error:  # whatever it is, it is not ours
            raise Failed(self.key, "return what is shown", repr(error), "Correct the function.") from error
        match made:
            case str():
                return Content.of_text(made)
            case bytes() | bytearray():
                return Content.of_bytes(bytes(made))
            case os.PathLike():
                return Content.of_file(Path(made))
        expected = "return text, SVG, HTML, bytes, or the path of a file"
        raise Failed(self.key, expected, repr(made), "Correct the function.")
