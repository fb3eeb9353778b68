"""Files that are never overwritten, whatever a command is told: records, which nobody can write again."""

from pathlib import Path

from askwise.errors import Refused

_SQLITE = b"SQLite format 3\0"  # the first bytes of every such file
_BESIDE = ("-wal", "-shm", "-journal")  # what SQLite keeps next to it


def overwritable(path: Path) -> Path:
    """The path, if what is there may be overwritten; a SQLite file and the files beside it are refused."""
    owners = [path, *(Path(str(path).removesuffix(end)) for end in _BESIDE if path.name.endswith(end))]
    for file in owners:
        if file.is_file():
            with file.open("rb") as opened:
                if opened.read(len(_SQLITE)) == _SQLITE:
                    got, advice = f"{path}, which is part of one", "Choose another name."
                    raise Refused("file", "not be the record of a study", got, advice)
    return path
