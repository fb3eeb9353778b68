"""The page on the HTTP API: its commands and programs are run."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from served import in_thread

PAGE = (Path(__file__).parents[2] / "docs" / "http-api.md").read_text()


def block(language: str) -> str:
    [found] = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return found


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_the_commands_of_the_page_work(settings, tmp_path):
    with in_thread(settings) as link:
        address, token = link.split("/?token=")
        script = (
            block("bash").replace("http://127.0.0.1:8000", address).replace("TOKEN=...", f"TOKEN={token}")
        )
        command = ["bash", "-e", "-c", script.replace("curl ", "curl --silent --show-error --fail -w '\\n' ")]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    studies, asked, told, best = map(json.loads, filter(None, done.stdout.splitlines()))
    assert (studies[0]["id"], asked["participant"]) == ("hall", "P1")
    assert (told["status"], told["next"]["id"]) == ("answered", 1)
    assert {*best["params"]} == {"gain", "mode"}
    assert (tmp_path / "hall.csv").read_text().startswith("question,option,gain,mode")


def test_the_program_of_the_page_works(settings, capsys):
    with in_thread(settings) as link:
        exec(block("python").replace("http://127.0.0.1:8000/?token=...", link), {})
    assert capsys.readouterr().out.startswith("Best(params=")
