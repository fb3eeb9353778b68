"""The list of components (SBOM, CycloneDX) of askwise with the extras that people install.

Versions are those of this environment, which are the tested ones; what only developers need is left out.
"""

import json
import re
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
CHARTS = ROOT / "src/askwise/web/static/vendor/uPlot.js"
EXTRAS = ("web", "cli", "storage", "plots", "pandas", "botorch", "optuna", "testing", "bench")


def components(path: Path, epoch: int) -> None:
    """Write the list, dated by this time in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        pinned = Path(folder) / "requirements.txt"
        needed = sorted(closure("askwise", EXTRAS) - {"askwise"})
        pinned.write_text("".join(f"{name}=={distribution(name).version}\n" for name in needed))
        command = ["cyclonedx_py", "requirements", str(pinned), "--output-reproducible", "--of", "JSON"]
        made = subprocess.run([sys.executable, "-m", *command], check=True, capture_output=True, text=True)
    document = json.loads(made.stdout)
    document["metadata"]["timestamp"] = datetime.fromtimestamp(epoch, UTC).isoformat()
    version = distribution("askwise").version
    document["metadata"]["component"] = {
        "type": "application",
        "bom-ref": "askwise",
        "name": "askwise",
        "version": version,
        "licenses": [{"license": {"id": "MIT"}}],
    }
    for component in document["components"]:  # where the temporary file was says nothing
        component.pop("description", None)
    document["components"].append(charts())
    path.write_text(json.dumps(document, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def charts() -> dict[str, Any]:
    """The one library that comes in the package itself."""
    (version,) = re.findall(r"uPlot \(v([\d.]+)\)", CHARTS.read_text(encoding="utf-8")[:200])
    return {
        "type": "library",
        "bom-ref": "uPlot",
        "name": "uPlot",
        "version": version,
        "purl": f"pkg:npm/uplot@{version}",
        "licenses": [{"license": {"id": "MIT"}}],
    }


def closure(name: str, extras: tuple[str, ...] = ()) -> set[str]:
    """The names of all packages that a package needs with these extras, itself included."""
    found: set[str] = set()
    pending = [(canonicalize_name(name), extras)]
    seen = set()
    while pending:
        here, wanted = pending.pop()
        if (here, wanted) in seen:
            continue
        seen.add((here, wanted))
        try:
            required = distribution(here).requires or []
        except PackageNotFoundError:  # not for this system
            continue
        found.add(str(here))
        for text in required:
            one = Requirement(text)
            marker = one.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *wanted)):
                pending.append((canonicalize_name(one.name), tuple(sorted(one.extras))))
    return found
