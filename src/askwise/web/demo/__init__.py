"""The demonstration of `askwise serve --demo`: which of two flowers is nicer?"""

from pathlib import Path

from askwise.study import load
from askwise.web.access import Gate
from askwise.web.serverfile import ServerFile
from askwise.web.settings import Settings

FILE = Path(__file__).with_name("flowers.toml")
"""Its study file."""


def participants_path(settings: Settings) -> str:
    """The address of the participants' page on a server with these settings, for anybody."""
    file = ServerFile(settings.keeps)
    link = file.add_link(load(FILE).name, None)
    return f"{settings.root_path}/p/{Gate(file, secure=False).pass_of(link)}"
