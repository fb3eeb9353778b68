"""axe-core, which finds what keeps people with disabilities out; fetched by npm, never part of askwise."""

import subprocess
import tarfile
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

VERSION = "4.14.0"
_CACHE = Path.home() / ".cache" / "askwise" / f"axe-core-{VERSION}.js"


@cache
def source() -> str:
    """The script; tests are skipped where npm cannot fetch it."""
    if not _CACHE.exists():
        with tempfile.TemporaryDirectory() as folder:
            command = ["npm", "pack", "--silent", f"axe-core@{VERSION}"]
            try:
                subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=120)
            except (OSError, subprocess.SubprocessError):
                pytest.skip("npm cannot fetch axe-core")
            with tarfile.open(next(Path(folder).glob("*.tgz"))) as packed:
                script = packed.extractfile("package/axe.min.js")
                assert script is not None
                _CACHE.parent.mkdir(parents=True, exist_ok=True)
                _CACHE.write_bytes(script.read())
    return _CACHE.read_text(encoding="utf-8")


def violations(page: Any) -> list[str]:
    """What it finds on a page, in words."""
    page.evaluate(source())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']}: {one['help']} {[node['html'] for node in one['nodes']]}" for one in found["violations"]
    ]
