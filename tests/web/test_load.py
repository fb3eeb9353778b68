"""The server under load, and killed under load: no error, and every acknowledged answer once."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "web.py"


def found(*words: str) -> list[dict]:
    """What the benchmark prints, for each kind of storage that there is."""
    command = [sys.executable, BENCHMARK, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.slow
def test_a_dozen_people_answer_without_errors():
    for one in found("load", "--people", "12", "--before", "10", "--think", "1", "--seconds", "20"):
        assert one["problems"] == []
        assert one["answers"] > 0


@pytest.mark.slow
def test_a_server_that_is_killed_under_load_has_every_acknowledged_answer_once():
    for one in found("kills", "--people", "12", "--before", "5", "--think", "0.5", "--kills", "4"):
        assert one["problems"] == []
        assert one["acknowledged"] >= 12
