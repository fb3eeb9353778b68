"""Every block of code in the documentation runs, or is at least read by what it is written for."""

import json
import re
import shlex
import sys
import tomllib
from pathlib import Path

import pytest
import torch
from typer.main import get_command

from askwise.bench.functions import FUNCTIONS
from askwise.cli import main
from askwise.cli.app import _without_imports
from askwise.rules import RULES
from askwise.study import load
from askwise.web.app import create
from askwise.web.settings import Settings
from pages import DOCS, PAGES, ROOT, blocks
from served import DUEL, in_thread

OWN = {"README.md", "CONTRIBUTING.md", "interop.md", "tutorial-python.md"}
"""Pages whose Python is run by tests of their own; a rule to be filled in is none."""
SLOW = {"figures.md"}
SERVED = "http-api.md"


@pytest.fixture
def as_before():
    """Rules and functions that a page defines are known until its end only."""
    before = [(known, set(known)) for known in (RULES, FUNCTIONS)]
    yield
    for known, names in before:
        for name in set(known) - names:
            del known[name]
    for module in ("my_rules", "my_functions"):
        sys.modules.pop(module, None)


def of(*languages):
    return [page for page in PAGES if any(block.runs for block in blocks(page, *languages))]


def name_of(page):
    return page.name


def as_parameter(page):
    return pytest.param(page, marks=pytest.mark.slow if page.name in SLOW else (), id=page.name)


RUN = [as_parameter(page) for page in of("python") if page.name not in {*OWN, SERVED}]


# of Optuna-dashboard, whose preferential studies are experimental
@pytest.mark.filterwarnings("ignore::UserWarning:optuna_dashboard")
@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.parametrize("page", RUN)
def test_the_python_of_every_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch, as_before):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    torch.manual_seed(0)
    names: dict[str, object] = {}
    for block in blocks(page, "python", "csv", "toml"):
        if block.name:
            Path(block.name).write_text(block.code)
        elif block.language == "python" and block.runs:
            exec(compile(block.code, page.name, "exec"), names)


def test_the_client_of_the_http_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hall.toml").write_text(DUEL)
    (block,) = blocks(DOCS / SERVED, "python")
    settings = Settings(storage=str(tmp_path / "askwise.db"), files=(str(tmp_path / "hall.toml"),))
    with in_thread(settings) as link:
        code = block.code.replace("http://127.0.0.1:8000/?token=...", link)
        assert code != block.code
        names: dict[str, object] = {}
        exec(compile(code, SERVED, "exec"), names)
    assert names["question"].participant == "P1"


def test_the_routes_of_the_http_page_exist(tmp_path):
    described = create(Settings(storage=str(tmp_path / "askwise.db"))).openapi()["paths"]
    (block,) = blocks(DOCS / SERVED, "bash")
    called = re.findall(r"\$ADDRESS(/api/v1/\S*?)(?:\s|$)", block.code)
    assert len(called) == 5
    assert {re.sub(r"/studies/\w+", "/studies/{study}", path) for path in called} <= set(described)


def commands(page):
    """Every command line of a page, as words."""
    for block in blocks(page, "", "sh", "bash", "console"):
        for line in block.code.replace("\\\n", " ").splitlines():
            text = line.strip()
            if block.language == "console":
                if not text.startswith("$ "):
                    continue
                text = text.removeprefix("$ ")
            if re.match(r"(askwise|make|pip|docker|python) ", text):
                yield shlex.split(text, comments=True)


COMMANDS = [(page, words) for page in PAGES for words in commands(page)]


def lines_of(program):
    found = [(page, words) for page, words in COMMANDS if words[0] == program]
    return [pytest.param(words, id=f"{page.name}: {shlex.join(words)}") for page, words in found]


def test_there_are_commands_to_check():
    assert len(COMMANDS) > 60


@pytest.mark.parametrize("words", lines_of("askwise"))
def test_every_command_on_a_page_can_be_read(words):
    rest, _ = _without_imports(words[1:])
    command = get_command(main)
    while hasattr(command, "commands"):
        assert rest, words
        name, *rest = rest
        if name.startswith("-"):
            return  # an option of the program itself
        command = command.commands[name]
    command.make_context(name, rest)  # raises where an option is not known


@pytest.mark.parametrize("words", lines_of("make"))
def test_every_target_of_make_on_a_page_exists(words):
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert words[1] in targets


def test_extras_that_are_to_be_installed_exist():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    known = set(project["optional-dependencies"])
    named = {
        extra.strip()
        for page in PAGES
        for listed in re.findall(r"askwise\[([\w, ]+)\]", page.read_text(encoding="utf-8"))
        for extra in listed.split(",")
    }
    assert {"web", "cli"} <= named <= known


STUDY = '[study]\nname = "hall"\n'
NAMES = ("gain", "mode", "cutoff", "price", "minutes", "radius", "age", "smile", "butter", "sugar", "flour")
SPACE = "".join(f'[space.{name}]\ntype = "real"\nlow = 0\nhigh = 1\n' for name in NAMES)
OTHER = '[space.another_one]\ntype = "real"\nlow = 0\nhigh = 1\n'


@pytest.mark.parametrize(
    ("page", "block"),
    [
        pytest.param(page, block, id=f"{page.name}: {block.code.splitlines()[0]}")
        for page in PAGES
        for block in blocks(page, "toml")
    ],
)
def test_every_study_file_on_a_page_is_read(page, block, tmp_path):
    read = tomllib.loads(block.code)
    if "project" in read or "import" in read.get("study", {}):
        return  # of a package; or names a module that the reader has written
    for other in blocks(page, "csv"):
        (tmp_path / other.name).write_text(other.code)
    (tmp_path / "my_pictures.py").write_text("def draw(setting): return '<svg/>'")
    text = block.code if "study" in read else STUDY + block.code
    (tmp_path / "study.toml").write_text(text + (OTHER if "space" in read else SPACE))
    config = load(tmp_path / "study.toml")
    assert (config.stimulus is not None) == ("stimulus" in read)


def test_json_on_pages_is_json():
    found = [json.loads(block.code) for page in PAGES for block in blocks(page, "json")]
    assert found


def test_programs_on_the_page_for_r_are_those_that_the_tests_run():
    shown = blocks(DOCS / "tutorial-r.md", "r")
    assert len(shown) == 2
    for block in shown:
        assert block.code == (ROOT / block.name).read_text()
    (study,) = blocks(DOCS / "tutorial-r.md", "toml")
    assert study.code == (ROOT / "examples/shell/askwise.toml").read_text()


def test_links_between_files_lead_somewhere():
    for page in PAGES:
        text = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in re.findall(r"(?:\]\(|<img src=\")([^)#\"\s]+)[)#\"]", text):
            if not re.match(r"[a-z]+:", target):
                assert (page.parent / target).exists(), f"{page.name}: {target}"
