"""`askwise shell`: requests in JSON, one a line, from any language."""

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest
from test_cli import NOISE, SPACE, answers, folder, history, recorded, statuses, written  # noqa: F401
from typer.testing import CliRunner

from askwise.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples" / "shell"


def replies(*requests: object, code: int = 0) -> list[dict]:
    """What the shell answers to these requests, or lines."""
    lines = [one if isinstance(one, str) else json.dumps(one) for one in requests]
    result = CliRunner().invoke(main, ["shell", "--json"], input="\n".join(lines) + "\n")
    assert result.exit_code == code, result.output
    assert result.stderr == ""
    return [json.loads(line) for line in result.stdout.splitlines()]


def errors(*requests: object) -> list[str]:
    """The errors, one for each request, after which the record must be as it was."""
    replies()
    before = recorded()
    found = [reply.get("error", "") for reply in replies(*requests)]
    assert len(found) == len(requests)
    assert recorded() == before
    return found


def test_a_study_is_run_by_requests():
    written()
    asked, told, again, undone, _, listed, best, status = replies(
        {"do": "ask", "participant": "anna"},
        {"do": "tell", "question": 0, "answer": 1, "seconds": 1.5},
        {"do": "tell", "question": 0, "answer": "b"},
        {"do": "undo", "participant": "anna"},
        {"do": "tell", "answer": None},
        {"do": "history", "last": 1},
        {"do": "best"},
        {"do": "status"},
    )
    assert (asked["id"], asked["labels"], asked["participant"]) == (0, ["A", "B"], "anna")
    assert told == {
        "id": 0,
        "status": "answered",
        "answer": {"prefers": 1},
        "words": "B preferred",
        "answers": 1,
    }
    assert again == told
    assert undone == {"undone": [0], "answers": 0}
    assert listed["questions"][0]["answer"] == {"undecided": True}
    assert best["params"].keys() == {"gain", "cutoff", "mode"}
    assert (status["answers"], status["undecided"]) == (1, 1)


@pytest.mark.usefixtures("unchecked")
def test_everything_else_that_can_be_done():
    written("batch", "size = 3\n")
    one, two = {"gain": 1, "cutoff": 200, "mode": "soft"}, {"gain": 30, "cutoff": 200, "mode": "hard"}
    found = replies(
        {"do": "ask"}, {"do": "tell", "ranking": [2.0, 0]}, {"do": "amend", "question": 0, "worst": 1},
        {"do": "ask"}, {"do": "tell", "pairs": [[0, 1]]}, {"do": "void", "question": 1.0, "reason": "x"},
        {"do": "ask"}, {"do": "expire"}, {"do": "skip", "question": 2, "seconds": 2},
        {"do": "predict", "settings": [one, two]}, {"do": "compare", "first": one, "second": two},
        {"do": "history", "participant": "anna"}, {"do": "undo", "n": 2.0},
    )  # fmt: skip
    assert [reply["error"] for reply in found if "error" in reply] == []
    assert [reply["status"] for reply in found if "status" in reply] == [
        *("answered", "answered", "answered", "voided", "expired", "skipped")
    ]
    assert (found[2]["answer"], found[5]["words"]) == ({"worst": 1}, "")
    assert [len(reply["predictions"]) for reply in found if "predictions" in reply] == [2]
    assert 0 <= found[10]["better"] <= 1
    assert found[11] == {"questions": [], "all": 0}
    assert found[12]["undone"] == [0, 2]
    assert statuses() == ["open", "voided", "open"]


def test_it_ends_with_quit_and_a_restart_goes_on():
    written()
    assert len(replies({"do": "ask"}, "", {"do": "quit"}, {"do": "ask"})) == 1
    assert replies({"do": "ask"})[0]["id"] == 0


def test_contexts_are_objects():
    written(space=SPACE + NOISE)
    asked, best = replies(
        {"do": "ask", "context": {"noise": "loud"}}, {"do": "best", "context": {"noise": "quiet"}}
    )
    assert asked["context"] == {"noise": "loud"}
    assert best["params"]["noise"] == "quiet"


BAD = [
    ("what", "line must be a JSON object; got Expecting value"),
    ("[" * 100_000, "line must be a JSON object"),
    ("9" * 5000, "line must be a JSON object"),
    ("\\xff\x00", "line must be a JSON object"),
    ("[1]", 'line must be an object with "do"; got [1]'),
    ({"do": 3}, 'line must be an object with "do"'),
    ({"ask": 1}, 'line must be an object with "do"'),
    ({"do": "dance"}, "do must be one of amend, ask, best, compare, expire, history, level, predict"),
    ({"do": "reply", "line": "{}"}, "do must be one of"),
    ({"do": "_number"}, "do must be one of"),
    ({"do": "quit", "now": True}, "do must be one of"),
    ({"do": "ask", "who": "anna"}, "keys of ask must be participant, context; got 'who'"),
    ({"do": "ask", "participant": 3}, "participant must be a name; got 3"),
    ({"do": "ask", "context": [1]}, "context must be a dictionary"),
    ({"do": "tell", "question": 99, "answer": 1}, "question must be one that was asked"),
    ({"do": "tell", "question": "0", "answer": 1}, "question must be one that was asked"),
    ({"do": "tell", "answer": 1}, "open questions must be exactly one if no id is given; got none"),
    ({"do": "amend", "answer": 1}, "question must be given to amend; got none"),
    ({"do": "undo", "n": -1}, "n must be a whole number, 1 or more"),
    ({"do": "undo", "n": 5}, "n must be at most 0"),
    ({"do": "history", "last": "all"}, "last must be a whole number"),
    ({"do": "predict"}, "settings must be given to predict"),
    ({"do": "predict", "settings": 3}, "settings must be a setting or a list of settings"),
    ({"do": "predict", "settings": {"gain": "loud"}}, "params must be gain, cutoff, mode"),
    ({"do": "compare", "first": {}, "second": 3}, "settings must be"),
    ({"do": "best", "reference": 3}, "reference must be a dictionary"),
]  # fmt: skip


@pytest.mark.usefixtures("unchecked")
def test_whatever_is_wrong_is_an_error_and_changes_nothing():
    written()
    for (_, message), error in zip(BAD, errors(*(line for line, _ in BAD)), strict=True):
        assert message in error


@pytest.mark.usefixtures("unchecked")
def test_answers_that_do_not_fit_are_errors():
    written()
    replies({"do": "ask"})
    wrong = [{"answer": 2}, {"answer": "C"}, {"answer": 0.5}, {}, {"winner": 1}, {"answer": [1]}]
    wrong += [{"answer": 1, "seconds": -1}, {"answer": {"a": 1}}, {"answer": 1, "worst": 1}]
    assert all(errors(*({"do": "tell", "question": 0, **one} for one in wrong)))


def test_a_study_that_cannot_be_opened_is_one_error_and_an_exit_code():
    (error,) = replies(code=1)
    assert "study file must exist" in error["error"]


def started(**options) -> subprocess.Popen:
    words = [sys.executable, "-m", "askwise", "shell", "--json"]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)


def exchanged(process: subprocess.Popen, request: dict) -> dict:
    """The reply, which must come while the program waits for the next request."""
    process.stdin.write(json.dumps(request) + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def test_each_reply_comes_before_the_next_request_and_nobody_need_listen():
    written()
    with started() as process:
        for number in range(3):
            assert exchanged(process, {"do": "ask"})["id"] == number
            assert exchanged(process, {"do": "tell", "answer": 1})["answers"] == number + 1
        process.stdout.close()
        process.stdin.write('{"do": "ask"}\n')
        process.stdin.close()
        process.wait(60)
    assert statuses()[:3] == ["answered"] * 3


@pytest.mark.slow
def test_a_question_after_eighty_answers_takes_60_ms():
    written(
        "duel",
        "initial = 10\n",
        "[space.x]\ntype='real'\nlow=0\nhigh=1\n[space.y]\ntype='real'\nlow=0\nhigh=1\n",
    )
    times = []
    with started(env={**os.environ, "OMP_NUM_THREADS": "1"}) as process:
        clock = ~process.pid << 3 | 2  # the CPU time of that process
        for _ in range(90):
            began = time.clock_gettime(clock)
            asked = exchanged(process, {"do": "ask"})
            better = int(asked["options"][1]["x"] > asked["options"][0]["x"])
            exchanged(process, {"do": "tell", "question": asked["id"], "answer": better})
            times.append(time.clock_gettime(clock) - began)
        process.stdin.close()
    assert statistics.median(times[70:]) < 0.060
    assert max(times[70:]) < 0.5  # no refit among them


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "script"), [("Rscript", "study.R"), ("octave-cli", "study.m")], ids=["R", "Octave"]
)
def test_the_examples_run(program, script, tmp_path):
    if shutil.which(program) is None:
        pytest.skip(f"needs {program}")
    for file in EXAMPLES.iterdir():
        shutil.copy(file, tmp_path)
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    command = bin_folder / "askwise"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m askwise "$@"\n')
    command.chmod(0o755)
    path = {**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}"}
    done = subprocess.run(
        [program, script], cwd=tmp_path, env=path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "Recommended gain:" in done.stdout
    assert 15 < float(done.stdout.split("Recommended gain:")[1].split()[0]) < 35
