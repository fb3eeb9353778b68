"""The small campaign of `make bench-smoke`, from beginning to end, as it is in the Makefile."""

import shlex
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def recipe(target: str) -> list[list[str]]:
    """The commands of a target, each as words."""
    lines = (ROOT / "Makefile").read_text().splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(f"{target}:"))
    commands = []
    for line in lines[start + 1 :]:
        if not line.startswith("\t"):
            break
        commands.append(shlex.split(line))
    return commands


def test_a_small_campaign_runs_is_ranked_and_reported_within_two_minutes(tmp_path):
    began = time.monotonic()
    outputs = []
    for words in recipe("bench-smoke"):
        assert words[0] == "$(VENV)/bin/askwise"
        command = [sys.executable, "-m", "askwise", *words[1:]]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout)
    assert len(outputs) == 3
    assert time.monotonic() - began < 120
    assert [rule in outputs[1] for rule in ("muc", "dueling_ucb", "random")] == [True] * 3
    page = (tmp_path / "out" / "bench-smoke" / "report" / "report.md").read_text()
    assert "`ursem_waves`" in page
    assert (tmp_path / "out" / "bench-smoke" / "report" / "figures" / "runs-pbo.png").stat().st_size > 10_000
