"""The tutorial for the terminal, run command by command, so that it cannot rot.

Numbers may differ from those on the page, for the model may change; words and their order may not.
Run this file to write what the commands print now into the page.
"""

import math
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from askwise.cli import conversation, main
from askwise.storage import open_record
from askwise.study.state import State

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tutorial-terminal.md"
HOME = "/home/you/headphones"
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass
class Step:
    """A file to write, or a command and what it prints on the page."""

    file: str = ""
    command: str = ""
    lines: list[str] = field(default_factory=list)


def steps(page: str) -> Iterator[Step]:
    for kind, name, body in BLOCK.findall(page):
        if name:
            yield Step(file=name, lines=body.splitlines())
        elif kind == "console":
            for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
                command, *lines = part.splitlines()
                yield Step(command=command, lines=lines)


def taste(option: Mapping[str, Any]) -> float:
    """What the user of the tutorial likes: 24 dB above 1500 Hz, softly."""
    loud = (option["gain"] - 24) / 10
    bright = math.log10(option["cutoff"] / 1500) / 0.4
    return -loud * loud - bright * bright + (0.8 if option["mode"] == "soft" else 0.0)


def printed(command: str, folder: Path) -> str:
    """What a command prints, as on the page."""
    words = shlex.split(command)
    assert words.pop(0) == "askwise", command
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, f"{command}: {result.output} {result.exception!r}"
    text = result.stdout.replace(str(folder), HOME)
    return "\n".join(line.rstrip() for line in text.splitlines())


class Typing:
    """Somebody who sits at the terminal and answers by taste."""

    def readline(self) -> str:
        with closing(open_record("study.db", "headphones", None)) as record:
            (entry,) = State.after(record.events()).having("open")
        first, second = (taste(option) for option in entry.options)
        said = "a\n" if first > second else "b\n"
        sys.stdout.write(said)  # as a terminal shows what is typed
        return said


class Clock:
    """Two seconds for each answer, as a person may need who has to choose."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        self.now += 2.0
        return self.now


def prepared(folder: Path) -> None:
    os.chdir(folder)
    shutil.copy(ROOT / "examples" / "gait.sh", folder)


def masked(line: str) -> str:
    """A line without its numbers, choices, and the spaces and strokes that depend on them."""
    line = re.sub(r"\b(soft|hard|trot|walk|yes|no)\b", "?", line)
    line = re.sub(r"-?\d+(\.\d+)?(e[-+]\d+)?", "#", line)
    line = re.sub(r"[█░─]+", "=", line)
    return " ".join(re.sub(r"^> [ab]$", ">", line).split())


def test_every_command_of_the_tutorial_can_be_read():
    group = get_command(main)
    commands = [shlex.split(step.command) for step in steps(PAGE.read_text(encoding="utf-8")) if step.command]
    assert len(commands) > 12
    for program, name, *words in commands:
        assert program == "askwise"
        group.commands[name].make_context(name, words)  # raises where an option is not known


@pytest.mark.slow
def test_every_command_of_the_tutorial_prints_what_the_page_says(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(conversation, "sys", SimpleNamespace(stdin=Typing()))
    monkeypatch.setattr(conversation, "time", Clock())
    prepared(tmp_path)
    for step in steps(PAGE.read_text(encoding="utf-8")):
        if step.file:
            Path(step.file).write_text("\n".join(step.lines) + "\n")
            continue
        quick = ""
        if " simulate" in step.command:
            quick = " --users 2" + (" --minutes 0.8" if "--minutes" in step.command else " --answers 20")
        lines = {masked(line) for line in printed(step.command + quick, tmp_path).splitlines()} | {"..."}
        for line in step.lines:
            assert masked(line) in lines, f"{step.command} no longer prints {line!r}; run {__file__}"


def test_the_tutorial_finds_what_its_user_likes():
    shown = PAGE.read_text(encoding="utf-8")
    best = next(step for step in steps(shown) if step.command == "askwise best")
    text = "\n".join(best.lines)
    gain = float(re.search(r"gain +([\d.]+) dB", text)[1])
    cutoff = float(re.search(r"cutoff +([\d.]+) Hz", text)[1])
    assert taste({"gain": gain, "cutoff": cutoff, "mode": "soft" if "soft" in text else "hard"}) > 0.2


def rewritten(page: str) -> str:
    """The page with what its commands print now; where lines are left out, as many as before."""
    folder = Path(tempfile.mkdtemp()).resolve()
    prepared(folder)
    conversation.sys = SimpleNamespace(stdin=Typing())  # type: ignore[assignment]
    conversation.time = Clock()  # type: ignore[assignment]

    def block(match: re.Match[str]) -> str:
        kind, name, body = match.groups()
        if name:
            Path(name).write_text(body)
        if name or kind != "console":
            return match[0]
        parts = []
        for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
            command, *before = part.splitlines()
            now = printed(command, folder).splitlines()
            if "..." in before:
                cut = before.index("...")
                now = [*now[:cut], "...", *now[len(now) - (len(before) - cut - 1) :]]
            parts.append("\n".join([f"$ {command}", *now]))
        return "```console\n" + "\n".join(parts) + "\n```"

    return BLOCK.sub(block, page)


if __name__ == "__main__":
    PAGE.write_text(rewritten(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
