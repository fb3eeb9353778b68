"""Pictures, sounds and films as they were shown, kept in a folder under the hash of their bytes."""

import hashlib
import os
import re
import secrets
from pathlib import Path

from askwise.stimuli import SUFFIXES, Content

_NAME = re.compile(r"[0-9a-f]{40}(\.[a-z0-9]+)")


class Store:
    """A folder whose files never change; all workers share it."""

    def __init__(self, folder: Path) -> None:
        """The folder is made when something is put there."""
        self._folder = folder

    def put(self, content: Content) -> str:
        """Keep it; its name, which nobody can guess who has not got it."""
        name = hashlib.sha256(content.data).hexdigest()[:40] + content.suffix
        path = self._folder / name
        if not path.exists():
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            part = self._folder / f"part-{secrets.token_hex(8)}"
            part.write_bytes(content.data)
            os.replace(part, path)
        return name

    def find(self, name: str) -> tuple[Path, str] | None:
        """Where something of this name is, and its media type; None if there is no such thing."""
        match = _NAME.fullmatch(name)
        path = self._folder / name
        if match is None or match[1] not in SUFFIXES or not path.is_file():
            return None
        return path, SUFFIXES[match[1]][1]
