"""The Dockerfile, as far as it can be tried without Docker: its commands are run, its files exist."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from askwise.cli import main
from served import DUEL, serving

ROOT = Path(__file__).parents[2]
LINTER = Path(sys.executable).with_name("hadolint")
DOCKERFILE = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")


def words_of(instruction: str) -> list[str]:
    """The words of an instruction in JSON form."""
    [found] = re.findall(rf"^{instruction}[^\[]*(\[.*\])$", DOCKERFILE, re.MULTILINE)
    return json.loads(found)


def test_what_is_copied_exists_and_is_not_ignored():
    kept = (ROOT / ".dockerignore").read_text().split()
    for line in re.findall(r"^COPY (?!--from)(.*)$", DOCKERFILE, re.MULTILINE):
        for name in line.split()[:-1]:
            assert (ROOT / name).exists()
            assert f"!{name}" in kept
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(re.findall(r"\.\[(\w+)\]", DOCKERFILE)) <= set(extras)


def test_the_image_is_pinned_and_does_not_run_as_root():
    images = re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    assert all(re.fullmatch(r"python:3\.\d+\.\d+-slim-\w+", image) for image in images)
    assert DOCKERFILE.index("USER 1000") < DOCKERFILE.index("ENTRYPOINT")


@pytest.mark.skipif(not LINTER.exists(), reason="hadolint is installed on Linux only")
def test_hadolint_finds_nothing():
    done = subprocess.run([LINTER, ROOT / "Dockerfile"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_options_of_the_image_and_of_the_page_on_deployment_are_known():
    known = CliRunner().invoke(main, ["serve", "--help"]).stdout
    page = (ROOT / "docs" / "deploy.md").read_text()
    used = {*re.findall(r"--[a-z-]+", " ".join([*words_of("ENTRYPOINT"), *words_of("CMD")]))}
    used |= {*re.findall(r"`(--[a-z-]+)", page)}
    assert len(used) > 8
    assert all(option in known for option in used)


@pytest.mark.slow
def test_the_command_of_the_image_serves_and_its_health_check_finds_it(tmp_path):
    (tmp_path / "hall.toml").write_text(DUEL)
    words = [*words_of("ENTRYPOINT")[2:], "hall.toml", *words_of("CMD")]
    words[words.index("8000")] = "0"
    check = words_of("HEALTHCHECK")
    with serving(tmp_path, *words) as server:
        command = [sys.executable, "-c", check[2].replace("8000", server.port)]
        assert subprocess.run(command, timeout=60).returncode == 0
    assert subprocess.run(command, timeout=60, stderr=subprocess.DEVNULL).returncode != 0
