"""What an option looks or sounds like: made from its values by a text, a file, an address, a command or code.

A study file says which in its table ``[stimulus]``.  Each kind is one file here; `content` says what may come
out.  Nothing here depends on how it is shown.
"""

from askwise.stimuli import address, command, file, html, render, text
from askwise.stimuli.base import KINDS as KINDS
from askwise.stimuli.base import Settings as Settings
from askwise.stimuli.base import Stimulus as Stimulus
from askwise.stimuli.content import SUFFIXES as SUFFIXES
from askwise.stimuli.content import Content as Content
from askwise.stimuli.content import Link as Link
from askwise.stimuli.content import Shown as Shown

__all__ = ["KINDS", "SUFFIXES", "Content", "Link", "Settings", "Shown", "Stimulus"]

for _kind in (text, html, file, address, command, render):
    KINDS[_kind.Kind.key] = _kind.Kind
