"""Builds what is released: a wheel, a source distribution, and a list of components, in dist/.

The same commit gives the same bytes: files are taken from git, not from the folder, and have the time of the
commit.  The README is that for an index.  Run with ``make dist``.
"""

import gzip
import io
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

from readme import for_index
from sbom import components

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
UNWANTED = ("tests/", "results/", "docs/", "benchmarks/", "examples/")


def main() -> None:
    """Build, check, and say what there is."""
    files = build(DIST)
    for file in files:
        check_content(file)
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *map(str, files)], check=True)
    listed = DIST / "askwise.cdx.json"
    components(listed, epoch())
    for file in [*files, listed]:
        print(f"{file.relative_to(ROOT)}  {file.stat().st_size / 1e6:.2f} MB")


def build(folder: Path) -> list[Path]:
    """The wheel and the source distribution of the last commit."""
    folder.mkdir(exist_ok=True)
    for old in folder.glob("askwise-*"):
        old.unlink()
    with tempfile.TemporaryDirectory() as place:
        source = Path(place) / "source"
        export(source)
        tested = str(ROOT / "constraints.txt")  # setuptools writes its version into the wheel
        environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch()), "PIP_CONSTRAINT": tested}
        command = [sys.executable, "-m", "build", "--outdir", str(folder.absolute()), str(source)]
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL, umask=0o022)
    (archive,) = folder.glob("askwise-*.tar.gz")
    normalise(archive)
    return sorted(folder.glob("askwise-*"))


def export(folder: Path) -> None:
    """The files of the last commit, with its time, and the README for an index."""
    command = ["git", "-C", str(ROOT), "-c", "tar.umask=0022", "archive", "--format=tar", "HEAD"]
    packed = subprocess.run(command, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    shown = folder / "README.md"
    shown.write_text(for_index(shown.read_text(encoding="utf-8")), encoding="utf-8")


def epoch() -> int:
    """The time of the last commit, in seconds."""
    command = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def normalise(path: Path) -> None:
    """Pack an archive again: files in order, with the time of the commit, nobody's names and usual rights."""
    with tarfile.open(path) as archive:
        members = [(member, archive.extractfile(member)) for member in archive.getmembers()]
        content = {member.name: (member, file.read() if file else b"") for member, file in members}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(content):
            member, data = content[name]
            plain = tarfile.TarInfo(name)
            plain.type, plain.size, plain.mtime = member.type, len(data), epoch()
            plain.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            archive.addfile(plain, io.BytesIO(data))
    path.write_bytes(gzip.compress(packed.getvalue(), mtime=0))


def check_content(path: Path) -> None:
    """Refuse a package with anything but the program."""
    found = [name for name in _names(path) if name.partition("/")[2].startswith(UNWANTED)]
    found += [name for name in _names(path) if name.startswith(UNWANTED)]
    if found:
        raise SystemExit(f"{path.name} must have the program alone; got {found[0]}. Mend MANIFEST.in.")


def _names(path: Path) -> Iterable[str]:
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()
    with tarfile.open(path) as archive:
        return archive.getnames()


if __name__ == "__main__":
    main()
