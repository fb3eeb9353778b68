"""File systems on which SQLite cannot keep a record safely."""

from pathlib import Path

_MOUNTS = Path("/proc/self/mounts")  # of Linux; elsewhere nothing is recognised
_NETWORK = {
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "afs",
    "9p",
    "ncpfs",
    "davfs",
    "ceph",
    "lustre",
    "glusterfs",
}
_NETWORK |= {
    f"fuse.{name}" for name in ("sshfs", "rclone", "s3fs", "davfs2", "glusterfs", "gcsfuse", "goofys")
}


def network_file_system(path: Path) -> str | None:
    """The kind of the network file system on which a path lies, if it is one.

    On such a one locks and shared memory may not work: in a test four processes lost 14 of 71 answers.
    """
    try:
        mounts = [line.split()[1:3] for line in _MOUNTS.read_text(encoding="utf-8").splitlines()]
    except OSError:
        return None
    resolved = path.absolute().resolve()
    around = [(place, kind) for place, kind in mounts if resolved.is_relative_to(_unescaped(place))]
    _, kind = max(around, key=lambda mount: len(mount[0]), default=("", ""))
    return kind if kind in _NETWORK else None


def _unescaped(place: str) -> str:
    """A mount point as it is named; the kernel writes blanks as octal numbers."""
    for code, character in (("040", " "), ("011", "\t"), ("012", "\n"), ("134", "\\")):
        place = place.replace(f"\\{code}", character)
    return place
