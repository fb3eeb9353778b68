"""Files that are never overwritten, whatever a command is told: records, which nobody can write again."""

import tempfile
from pathlib import Path

from askwise.errors import Refused

_SQLITE = b"SQLite format 3\0"  # the first bytes of every such file
_BESIDE = ("-wal", "-shm", "-journal")  # what SQLite keeps next to it


def overwritable(path: Path, *kept: Path) -> Path:
    """The path, if what is there may be overwritten; a SQLite file and the files beside it are refused.

    ``kept``: other files that are refused, such as the study file itself.
    """
    if any(one.exists() and path.exists() and path.samefile(one) for one in kept):
        raise Refused("file", "be another than the study file", path, "Choose another name.")
    owners = [path, *(Path(str(path).removesuffix(end)) for end in _BESIDE if path.name.endswith(end))]
    for file in owners:
        if file.is_file():
            with file.open("rb") as opened:
                if opened.read(len(_SQLITE)) == _SQLITE:
                    got, advice = f"{path}, which is part of one", "Choose another name."
                    raise Refused("file", "not be the record of a study", got, advice)
    return path


def overwrite(path: Path, text: str, *kept: Path) -> None:
    """Write a text in place of what is there, whole or not at all; ``kept`` as for :func:`overwritable`."""
    content = text.encode("utf-8", "backslashreplace")  # halves of characters come from terminals
    if not overwritable(path, *kept).is_file():
        if not path.exists():
            path.touch()  # a name that cannot be is refused as such
            path.unlink()
        else:  # a pipe or a device
            path.write_bytes(content)
            return
    target = path.resolve()  # not the link that leads to it
    try:
        beside = tempfile.TemporaryDirectory(prefix=f"{target.name}.", dir=target.parent)
    except PermissionError:  # of the folder; the file may be ours
        path.write_bytes(content)
        return
    with beside as folder:
        part = Path(folder, target.name)
        part.write_bytes(content)
        if target.exists():
            part.chmod(target.stat().st_mode)
        part.replace(target)
