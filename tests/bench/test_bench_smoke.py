"""The commands of `make bench-smoke`, from beginning to end."""

import shlex
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest
from typer.testing import CliRunner

from askwise.cli import main

ROOT = Path(__file__).resolve().parents[2]
RULES = ("muc", "dueling_ucb", "random")


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


def test_a_smaller_campaign_is_run_and_ranked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    smaller, outputs = {"--replicates": "2", "--iterations": "6", "--workers": "1"}, []
    for words in recipe("bench-smoke")[:2]:
        reduced = [smaller.get(before, word) for before, word in pairwise(words)]
        done = CliRunner().invoke(main, reduced)
        assert done.exit_code == 0, done.output
        outputs.append(done.output)
    assert all(rule in outputs[1] for rule in RULES)


@pytest.mark.slow
def test_the_commands_of_make_bench_smoke_take_less_than_two_minutes(tmp_path):
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
    assert all(rule in outputs[1] for rule in RULES)
    report = tmp_path / "out" / "bench-smoke" / "report"
    assert "`ursem_waves`" in (report / "report.md").read_text()
    assert (report / "figures" / "runs-pbo.png").stat().st_size > 10_000
