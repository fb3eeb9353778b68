"""Commands that compute nothing start at once: they import neither torch nor what it comes with."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from test_cli import NOISE, SPACE, document, folder, told, written  # noqa: F401

from askwise.model.kernels import SMOOTHNESS
from askwise.study.plan import _BUILT_IN, AVERAGED

HEAVY = ["pydantic", "torch", "gpytorch", "scipy", "numpy", "matplotlib"]
LIGHT = [
    *("--help", "--version", "check", "tell 0 B --amend", "tell 3 skip", "history", "export", "undo"),
    *("expire --all", "tell 1 void", "export --format json", "init other.toml"),
]
CODE = f"""
import json, sys
from typer.testing import CliRunner
from askwise.cli import main
for command in {LIGHT}:
    result = CliRunner().invoke(main, command.split())
    assert result.exit_code == 0, (command, result.output)
    heavy = [name for name in {HEAVY} if name in sys.modules]
    assert heavy == [], (command, heavy)
"""
BANDS = "[space.bands]\ntype = 'integer'\nlow = 1\nhigh = 8\n"
WINE = "[space.wine]\ntype = 'items'\ntable = {name = ['a', 'b']}\nid = 'name'\n"
PLANS = {
    "as it comes": ("", ""),
    "of its own": ('rule = "eubo"\nkernel = "se"\nparticipants = "separate"\n', ""),
    "constrained": ('constraints = ["gain + bands <= 30"]\n', BANDS),
    "items": ("", WINE),
    "in contexts": ("", NOISE),
}


def environment(compiled: Path) -> dict[str, str]:
    """With compiled files, as in an installation."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": str(compiled)}


@pytest.mark.parametrize("plan", PLANS)
def test_commands_that_need_no_model_do_not_import_torch(plan):
    more, space = PLANS[plan]
    written(more=more, space=SPACE + space)
    words = ["-c", "noise=loud"] if plan == "in contexts" else []
    for number in range(3):
        assert document("ask", *words)["id"] == number
        told("tell", str(number), "A")
    told("ask", *words)
    subprocess.run([sys.executable, "-c", CODE], check=True, timeout=120)


def test_the_kernels_that_are_known_without_torch_are_those_that_are_built_in():
    assert set(_BUILT_IN) == {*SMOOTHNESS, AVERAGED}


def test_they_take_a_fraction_of_a_second(tmp_path):
    written()
    told("run", "-n", "2", typed="a\nb\n")
    compiled = environment(tmp_path / "compiled")
    times = []
    for _ in range(3):
        began = resource.getrusage(resource.RUSAGE_CHILDREN)
        words = [sys.executable, "-m", "askwise", "tell", "0", "B", "--amend"]
        subprocess.run(words, env=compiled, check=True, capture_output=True, timeout=60)
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime)
    assert min(times) < 0.9  # generous, for machines that others use, too; with torch it would be 2
