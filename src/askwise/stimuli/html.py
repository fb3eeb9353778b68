"""Options as a piece of HTML, or an SVG picture."""

from typing import ClassVar

from askwise.stimuli.base import Setting, Stimulus, escaped, with_values
from askwise.stimuli.content import Content


class Kind(Stimulus):
    """HTML or SVG with values in it."""

    key: ClassVar[str] = "html"
    example: ClassVar[str] = '"<svg ...><circle r={radius} ... /></svg>"'

    def check(self) -> None:
        """Refuse names that are not parameters."""
        self.check_places(self.settings.value)

    def of(self, setting: Setting) -> Content:
        """The picture or the page; values are escaped."""
        text = with_values(self.settings.value, setting, escaped)
        found = Content.of_text(text)
        return found if found.suffix == ".svg" else Content(text.encode(), ".html")
