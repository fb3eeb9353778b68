"""The package in examples/plugin, installed; and the same from a script."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import askwise as aw

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "plugin"
STUDY = """
[study]
name = "hall"
rule = "variance_challenge"
initial = 7
storage = "{storage}"
[space.window]
type = "power_of_two"
low = 64
high = 1024
[space.gain]
type = "real"
low = 0
high = 1
"""
CREATE = """
import sys
import askwise as aw
from askwise.study import load
for storage, kernel in zip(sys.argv[1:], ("matern52", "rational_quadratic"), strict=True):
    study = aw.Study.of(load("askwise.toml").plan(kernel=kernel), storage, "hall")
    for _ in range(9):  # a kernel is learned from 8 answers
        question = study.ask()
        assert all(option["window"] in (64, 128, 256, 512, 1024) for option in question.options)
        study.tell(question, 0)
    assert 0 <= study.best().params["gain"] <= 1
    assert study.status().regret >= 0
    assert all(again.equal for again in study.replay())
    study.close()
"""
COMMANDS = """
import sys
from typer.testing import CliRunner
from askwise.cli import main
for words in sys.argv[1:]:
    result = CliRunner().invoke(main, words.split())
    sys.stdout.write(result.stdout + result.stderr)
    assert result.exit_code == 0, repr(result.exception)
"""
SCRIPT = """
from askwise.rules import RULES
class Mine(RULES["random"]):
    "Ask at random."
    key, title, source, cost = __name__, "Mine", "a test", "none"
"""


def in_process(*words: str, folder: Path, path: Path | None = None, code: int = 0) -> str:
    """What Python prints; with a package if it is installed in ``path``."""
    environment = dict(os.environ)
    if path is not None:
        environment["PYTHONPATH"] = os.pathsep.join([str(path), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=400
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """Where the example is installed, beside the packages of this Python."""
    folder = tmp_path_factory.mktemp("plugin")
    source, site = folder / "source", folder / "site"
    shutil.copytree(EXAMPLE, source)  # a build leaves files behind
    pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps"]
    in_process(*pip, "--no-build-isolation", "--target", str(site), str(source), folder=folder)
    return site


def test_one_of_each_works_everywhere_once_its_package_is_installed(site, tmp_path):
    (tmp_path / "askwise.toml").write_text(STUDY.format(storage=f"jsonl://{tmp_path}"))
    (tmp_path / "mine.py").write_text(SCRIPT)
    in_process("-c", CREATE, f"jsonl://{tmp_path}", "study.db", folder=tmp_path, path=site)
    assert len((tmp_path / "hall.jsonl").read_text().splitlines()) == 19  # settings, questions, answers
    run = "bench run pbo-learned --functions booth --rules variance_challenge,mine --workers 2"
    words = ["status", "replay", "ask", f"{run} --replicates 1 --iterations 3 --out here --import mine"]
    words.append("bench rank here")
    shown = in_process("-c", COMMANDS, *words, folder=tmp_path, path=site)
    assert re.search(r"answers +9", shown)
    assert "all 9 questions reproduced bit for bit" in shown
    assert re.search(r"window +\d+ +\d+", shown)
    assert "2 runs are in here, all of them new." in shown
    assert re.search(r"\d +variance_challenge +\d", shown)
    # without the package, here
    homes = r"askwise_example\.kernel, askwise_example\.parameter, askwise_example\.rule"
    with pytest.raises(aw.NotFound, match=rf"; got 'power_of_two'\. It comes from {homes}: install that"):
        aw.Study.open(str(tmp_path / "study.db"), "hall")
    with pytest.raises(aw.Refused, match=r"^storage must .*jsonl"):
        aw.Study.open(f"jsonl://{tmp_path}", "hall")


@pytest.mark.slow
def test_the_contracts_of_the_example_hold(site, tmp_path):
    tests = shutil.copytree(EXAMPLE / "tests", tmp_path / "tests")
    shown = in_process("-m", "pytest", "-q", "-p", "no:cacheprovider", str(tests), folder=tmp_path, path=site)
    assert re.search(r"\d+ passed", shown)


def test_a_study_may_import_a_script_beside_its_file_or_by_an_option(tmp_path):
    (tmp_path / "folder").mkdir()
    for module, place, line in (("mine", "folder", 'import = ["mine"]\n'), ("other", ".", "")):
        text = f'[study]\nname = "hall"\nrule = "{module}"\nstorage = "study.db"\n{line}'
        text += '[space.u]\ntype = "real"\nlow = 0\nhigh = 1\n'
        (tmp_path / place / "askwise.toml").write_text(text)
        (tmp_path / place / f"{module}.py").write_text(SCRIPT)
    words = [f"{command} -s folder/askwise.toml" for command in ("ask", "tell 0 A", "replay")]
    words += ["ask --import other", "--import=other tell 0 B"]
    shown = in_process("-c", COMMANDS, *words, folder=tmp_path)
    assert "all 1 questions reproduced" in shown
    assert "Question 0 recorded: B preferred." in shown
    for module, place in (("mine", "folder"), ("other", ".")):
        with pytest.raises(aw.NotFound, match=rf"from {module}: install that, or add --import {module}\.$"):
            aw.Study.open(str(tmp_path / place / "study.db"), "hall")


@pytest.mark.parametrize("module", ["nowhere", "nowhere.rules", "mine.py", "./mine", ".mine", ""])
def test_a_missing_module_is_refused_with_a_message(module, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    with pytest.raises(aw.NotFound, match=r"^import must name a module that is installed or in .*; got "):
        aw.plugins.use(module, tmp_path)


def test_an_import_error_inside_a_module_is_reported_as_by_python(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "lacking.py").write_text("import nowhere_to_be_found")
    with pytest.raises(ModuleNotFoundError, match="nowhere_to_be_found"):
        aw.plugins.use("lacking", tmp_path)
