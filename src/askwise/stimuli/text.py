"""Options as a sentence."""

from typing import ClassVar

from askwise.space import readable
from askwise.stimuli.base import Setting, Stimulus, with_values
from askwise.stimuli.content import Content


class Kind(Stimulus):
    """A text with values in it, as people write them: four digits of a real number."""

    key: ClassVar[str] = "text"
    example: ClassVar[str] = '"A meal for {price} euros, ready in {minutes} minutes"'

    def check(self) -> None:
        """Refuse names that are not parameters."""
        self.check_places(self.settings.value)

    def of(self, setting: Setting) -> Content:
        """The text."""
        return Content(with_values(self.settings.value, setting, readable).encode(), ".txt")
