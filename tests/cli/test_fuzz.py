"""Whatever is typed or imported: no traceback, no hang, and after an error nothing is changed."""

import json
import random
import re
import sqlite3
import traceback
from contextlib import closing, suppress
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from askwise.cli import main
from processes import within

FEW_CALLS, CALLS = 100, 20_000
FEW_FILES, FILES = 60, 5_000
LONGEST = 60  # seconds for a call
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\ud800-\udfff]")
STUDY = """[study]
name = "hall"
feedback = "{feedback}"
storage = "study.db"
initial = 10000
[space.gain]
type = "real"
low = -5
high = 40
[space.bands]
type = "integer"
low = 1
high = 8
[space.mode]
type = "choice"
values = ["soft", "-hard", "=1+1"]
"""
COMMANDS = [
    *("ask", "tell", "tell", "tell", "run", "status", "best", "replay", "export", "import", "check", "init"),
    *("undo", "expire", "history", "predict", "compare", "shell", "change"),
    *("bench list", "nothing", "--version", "--import"),
]
OPTIONS = [
    *("--json", "-p", "--participant", "-c", "--context", "-s", "--study", "--pairs", "--index", "--seconds"),
    *(
        "--amend",
        "--reason",
        "-n",
        "--answers",
        "--command",
        "--timeout",
        "-r",
        "--reference",
        "--format",
        "-f",
    ),
    *(
        "--out",
        "--again",
        "--yes",
        "--force",
        "--feedback",
        "--help",
        "--import",
        "--",
        "-",
        "--nothing",
        "--=",
    ),
]
TEXTS = [
    *("", " ", "0", "1", "-1", "A", "B", "yes", "no", "tie", "skip", "void", "C>A", "A>B;B>A", ";", "nan"),
    *("inf", "1e999"),
    *("gain=3", "gain=", "=", "gain=nan", "mode=soft", "bands=1.5", "gain=3=4", "9" * 5000, "x" * 100_000),
    *("\u0663", "\uff59\uff45\uff53"),
    *("\x1b[31m",
      "\x07", "\x9b31m", "\u202eyes", "\udcff", "a\nb", "askwise.toml",
      "study.db", "in.csv", "/"),
    *("nowhere/x", "true", "false",
      "sh -c 'echo {gain}'", "false {gain}", "{", "{}", "{{", "'", '"', "\\", "a | b"),
    *("csv", "json", "."),
    *("duel", "binary", "batch", "1e400", "--", "[bold]x[/bold]", ":smile:", "%s%n", "{gain}"),
    *("os", "nothing.at.all"),
]  # fmt: skip


def recorded() -> list:
    """All events; none of a file without tables, or one that was overwritten by `init --force study.db`."""
    if not Path("study.db").exists():
        return []
    with closing(sqlite3.connect("study.db")) as database, suppress(sqlite3.DatabaseError):
        return database.execute("SELECT number, kind, question, body FROM events").fetchall()
    return []


def check(words: list[str], typed: bytes, changes: bool = False) -> int:
    """Run a command; the exit code, after everything that must hold was checked."""
    before = recorded()
    with within(LONGEST):
        result = CliRunner().invoke(main, words, input=typed)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        trace = "".join(traceback.format_exception(result.exception))
        pytest.fail(f"{words!r:.2000} {typed!r:.200}\n{trace}")
    assert not CONTROL.search(result.stderr), words
    if "export" not in words:  # which gives the values as they are, unless to a terminal
        assert not CONTROL.search(result.stdout), words
    assert len(result.stderr) < 10_000, words
    if result.exit_code not in (0, 130) and not changes:
        assert recorded() == before, words
    return result.exit_code


def begun(feedback: str) -> None:
    for name in ("study.db", "study.db-wal", "study.db-shm"):
        Path(name).unlink(missing_ok=True)
    Path("askwise.toml").write_text(STUDY.format(feedback=feedback))


@pytest.mark.parametrize("count", [FEW_CALLS, pytest.param(CALLS, marks=pytest.mark.slow)])
def test_any_words(count, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(torch, "set_num_threads", lambda _: None)
    source, codes = random.Random(count), []
    for number in range(count):
        if number % 100 == 0:  # long records are slow to read
            begun(source.choice(["duel", "binary", "batch"]))
        words = source.choice(COMMANDS).split()
        for _ in range(source.choice([0, 1, 1, 2, 3, 5])):
            words += [source.choice(OPTIONS)] if source.random() < 0.4 else []
            words += [source.choice(TEXTS)] if source.random() < 0.8 else []
        words = [word for word in words if word != "nowhere/x" or "init" not in words]
        typed = bytes(source.choices(b"abyntsuq10\n\n\n\xff\x1b", k=source.choice([0, 3, 20]))) + b"\nq\n"
        # `run` records what was answered before it failed; `init` and --out write where they are told
        codes.append(check(words, typed, changes="run" in words or "--out" in words or "init" in words))
        if not Path("askwise.toml").is_file() or "[space.gain]" not in Path("askwise.toml").read_text():
            begun("duel")
    assert {0, 1, 2} <= set(codes)


def contents(source: random.Random) -> bytes:
    """Something like an exported file, damaged."""
    form = source.random()
    if form < 0.5:
        head = source.choice(
            ["gain,bands,mode,answer", "gain_a,gain_b,bands_a,bands_b,mode_a,mode_b,answer", ""]
        )
        head = head or "question,option,gain,bands,mode,status,outcome,participant,seconds,asked"
        cells = [
            "0",
            "1",
            "A",
            "B",
            "3",
            "soft",
            "'-hard",
            "'=1+1",
            "yes",
            "no",
            "answered",
            "better",
            "worse",
            *TEXTS,
        ]
        lines = [",".join(source.choice(cells) for _ in head.split(",")) for _ in range(source.randint(0, 4))]
        text = "\n".join([head, *lines])
    elif form < 0.9:
        odd = [
            None,
            1,
            "A",
            [],
            {},
            "x",
            -1,
            1e308,
            True,
            {"yes": True},
            {"preferred": 1},
            {"ranking": [0, 1]},
            {"worst": 1},
        ]
        question = {
            "status": source.choice(["answered", *odd]),
            "options": source.choice([[{"gain": 1, "bands": 2, "mode": "soft"}], *odd]),
            "answer": source.choice(odd),
            "participant": source.choice(odd),
            "seconds": source.choice(odd),
        }
        for key in source.sample(sorted(question), source.choice([0, 0, 1, 2])):
            del question[key]
        text = json.dumps({"questions": source.choice([[question], question, odd, None])})
    else:
        text = source.choice(
            ['{"questions": ' + "[" * 100_000, '{"a":' * 50_000, "{" + "9" * 5000, "", "{}", "{]", '"' * 9]
        )
    content = bytearray(text.encode(source.choice(["utf-8", "utf-8", "utf-16", "utf-8-sig"]), "replace"))
    for _ in range(source.choice([0, 0, 1, 5])):
        if content:
            content[source.randrange(len(content))] = source.choice(b'\x00\xff\n\r",;{}[]:\x1b9')
    return bytes(content[: source.choice([len(content), len(content), len(content) // 2])])


@pytest.mark.parametrize("count", [FEW_FILES, pytest.param(FILES, marks=pytest.mark.slow)])
def test_any_file(count, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(torch, "set_num_threads", lambda _: None)
    source, codes = random.Random(count), []
    for number in range(count):
        if number % 100 == 0:
            begun(source.choice(["binary", "duel"]))
        Path("in.csv").write_bytes(contents(source))
        codes.append(check(["import", "in.csv", "--again"], b""))
        if source.random() < 0.1:  # and the study file
            Path("askwise.toml").write_bytes(contents(source))
            codes.append(check(["check"], b""))
            begun(source.choice(["binary", "duel"]))
    assert {0, 1} <= set(codes)
