"""Machines that answer: what exit codes and output mean, that failures lose nothing, many at once."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from test_cli import (  # noqa: F401
    HOUSE,
    SPACE,
    answers,
    document,
    folder,
    history,
    recorded,
    refused,
    somebody_else_answers,
    statuses,
    told,
    written,
)
from typer.testing import CliRunner

import askwise as aw
from askwise.cli import main
from askwise.cli.codes import Codes
from askwise.commands import Machine, filled, template_words, variables

EXCEPTION = "import sys; sys.exit(__import__('nowhere'))"


def ended(*words: str) -> str:
    """The last line on stderr of a run that ends with a refusal."""
    result = CliRunner().invoke(main, ["run", *words])
    assert result.exit_code == 1, result.output
    line = result.stderr.strip().split("\n")[-1]
    assert HOUSE.match(line), line
    return line


def skipped_for() -> list[str | None]:
    """The reasons of skipped questions, each as in the record."""
    return [event.body.get("reason") for event in recorded() if event.kind == "skipped"]


def meanwhile(monkeypatch: pytest.MonkeyPatch, *happens: object) -> None:
    """Let something happen while each command runs."""
    coming, run = iter(happens), Machine.run

    def slow(machine: Machine, *given: object) -> object:
        next(coming)()
        return run(machine, *given)

    monkeypatch.setattr(Machine, "run", slow)


def test_a_command_goes_on_after_somebody_else_has_answered_and_stops_at_the_wanted_number(monkeypatch):
    written("binary")
    other = [lambda: somebody_else_answers(False), lambda: None, lambda: somebody_else_answers(True)]
    meanwhile(monkeypatch, *other)
    shown = told("run", "-n", "3", "--command", "true")
    assert shown.count("Somebody else answered") == 2
    assert re.findall(r"^(\d/\d)  ", shown, re.MULTILINE) == ["2/3"]
    assert answers() == [{"yes": False}, {"yes": True}, {"yes": True}]


def test_no_more_is_asked_when_others_gave_the_last_answer_meanwhile(monkeypatch):
    written("binary")
    ask = aw.Study.ask

    def slow(study: aw.Study, *given: object, **more: object) -> aw.Question:
        if len(study.history()) == 1:
            study.tell(ask(study, "ann"), True)
        return ask(study, *given, **more)

    monkeypatch.setattr(aw.Study, "ask", slow)
    shown = told("run", "-n", "2", "--command", "true")
    assert "1/2" in shown
    assert "3/2" not in shown
    assert statuses() == ["answered", "answered", "open"]


def script(text: str) -> Path:
    file = Path("gait.sh").absolute()
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return file


def test_run_lets_a_command_answer():
    written("binary")
    script('echo "$@" >> seen; awk -v g="$1" \'BEGIN { exit !(g > 20) }\'')
    shown = told("run", "-n", "6", "--command", "./gait.sh {gain} '{mode} at {cutoff}' {{x}}")
    entries = history()
    assert [entry.answer.yes for entry in entries] == [entry.options[0]["gain"] > 20 for entry in entries]
    (option,) = entries[0].options
    first = Path("seen").read_text().split("\n")[0]
    assert first == f"{option['gain']} {option['mode']} at {option['cutoff']} {{x}}"
    assert shown.count("yes  gain") + shown.count("no   gain") == 6
    assert "1/6" in shown


def test_run_by_a_command_refuses_before_anything_is_asked():
    written("binary")
    assert "got {gian}" in refused("run", "--command", "./gait.sh {gian}")
    assert "quotes closed" in refused("run", "--command", "./gait.sh '{gain}")
    assert "name a program" in refused("run", "--command", "  ")
    assert "--timeout must be positive" in refused("run", "--timeout", "3")
    for option, value in {"--retries": "1", "--jobs": "2", "--no-codes": "2", "--skip-codes": "3"}.items():
        assert f"{option} must be used with --command" in refused("run", option, value)
    for codes in ("0", "256", "7-3", "a", "", "2,,3", "-1"):
        assert "must be exit codes from 1 to 255" in refused("run", "--command", "true", "--no-codes", codes)
    both = ("--no-codes", "2-4", "--tie-codes", "3")
    assert "--tie-codes must have codes of its own; got 3 in --no-codes" in refused(
        "run", "--command", "true", *both
    )
    assert recorded() == []


def test_a_command_that_cannot_run_ends_at_once_and_leaves_the_question_open():
    written("binary")
    script("echo >> tried; exit 127")
    for command in ("./nowhere {gain}", "./gait.sh", "./askwise.toml"):
        assert "the question stays open" in ended("--command", command)
        assert statuses() == ["open"]
    assert len(Path("tried").read_text()) == 1


@pytest.mark.parametrize(
    ("program", "how"),
    [
        ("exit 42", "exit code 42 from ./gait.sh"),
        ("kill -9 $$", "signal 9 from ./gait.sh"),
        ("sleep 60 & wait", "time-out after 0.2 s from ./gait.sh"),
        (f'exec {sys.executable} -Sc "{EXCEPTION}"', "exit code 1 from ./gait.sh, with a Python traceback"),
    ],
)
def test_a_failure_is_retried_and_then_skipped_with_its_reason_once_another_question_is_answered(
    program, how
):
    written("binary")
    script(f"echo $ASKWISE_QUESTION >> tried; [ $ASKWISE_QUESTION = 1 ] || exit 0; echo shaky >&2; {program}")
    began = time.monotonic()
    shown = told("run", "-n", "3", "--command", "./gait.sh", "--timeout", "0.2", "--retries", "1")
    assert time.monotonic() - began < 10
    assert Path("tried").read_text().split() == ["0", "1", "1", "2", "3"]
    assert statuses() == ["answered", "skipped", "answered", "answered"]
    (reason,) = skipped_for()
    assert reason.startswith(how)
    assert "(2 attempts)\nshaky" in reason
    assert f"Question 1 failed: {how}" in shown
    assert "Skipped question 1; the record says why." in shown
    with aw.Study.open("study.db", "hall") as study:
        assert study.entry(1).reason == reason
        assert all(one.equal for one in study.replay())


def test_a_retry_that_works_is_an_answer_like_others():
    written("binary")
    script("[ -e broken ] || { touch broken; exit 3; }; exit 1")
    told("run", "-n", "2", "--command", "./gait.sh")
    assert answers() == [{"yes": False}, {"yes": False}]


def test_a_broken_program_ends_the_run_and_every_question_stays_open():
    written("binary")
    script("echo $ASKWISE_QUESTION >> tried; exit 42")
    line = ended("-n", "9", "--command", "./gait.sh", "--retries", "0")
    assert "must answer one of 5 questions in a row; got exit code 42 from ./gait.sh" in line
    assert "questions 0, 1, 2, 3, 4 stay open" in line
    assert statuses() == ["open"] * 5
    script("echo $ASKWISE_QUESTION >> tried; exit 0")
    told("run", "-n", "6", "--command", "./gait.sh")  # repaired: the same questions
    assert Path("tried").read_text().split() == [*"01234", *"012345"]
    assert statuses() == ["answered"] * 6


def test_failures_with_answers_in_between_do_not_end_a_run():
    written("binary")
    script("[ $((ASKWISE_QUESTION % 2)) = 0 ] || exit 7")
    told("run", "-n", "8", "--command", "./gait.sh", "--retries", "0")
    assert statuses() == ["answered", "skipped"] * 7 + ["answered"]


def test_an_endless_row_of_skips_ends(monkeypatch):
    written("binary")
    monkeypatch.setattr("askwise.cli.trials._MOST_SKIPS", 3)
    assert "must answer one of 3 questions in a row; got 3 skips" in ended(
        "--command", "false", "--skip-codes", "1"
    )
    assert statuses() == ["skipped"] * 3


def test_a_region_that_is_always_skipped_is_left():
    written("binary", more="initial = 3\nkernel = 'se'\n")
    script('awk -v g="$1" -v c="$2" \'BEGIN { exit g > 25 ? 75 : !(g > 15 && c > 500) }\'')
    told("run", "-n", "12", "--command", "./gait.sh {gain} {cutoff}", "--skip-codes", "75")
    assert statuses().count("answered") == 12
    assert statuses().count("skipped") > 1
    with aw.Study.open("study.db", "hall") as study:
        assert all(one.equal for one in study.replay())


def test_codes_say_otherwise():
    written("binary")
    script("exit $(echo 2 64 70 9 1 0 | cut -d ' ' -f $((ASKWISE_QUESTION + 1)))")
    codes = ("--no-codes", "2,3", "--tie-codes", "64", "--skip-codes", "65-78")
    told("run", "-n", "3", "--retries", "0", "--command", "./gait.sh", *codes)
    assert answers() == [{"yes": False}, {"undecided": True}, None, None, None, {"yes": True}]
    assert statuses()[2:5] == ["skipped"] * 3  # 1 is a failure now
    assert [reason.partition(" from")[0] for reason in skipped_for()] == [
        f"exit code {n}" for n in (70, 9, 1)
    ]


def test_signals_time_outs_and_tracebacks_have_codes_too():
    codes = Codes.read("1,124", None, "137")
    assert [codes.meaning(code) for code in (0, 1, 124, -9, 137, -11, 2)] == [
        *("yes", "no", "no", "skip", "skip", "failure", "failure"),
    ]
    written("binary")
    script("[ $ASKWISE_QUESTION = 0 ] && exec sleep 60; " + f'exec {sys.executable} -Sc "{EXCEPTION}"')
    told("run", "-n", "2", "--command", "./gait.sh", "--timeout", "0.5", "--no-codes", "1,124")
    assert answers() == [{"yes": False}, {"yes": False}]


def test_a_no_of_a_program_that_reports_on_a_caught_exception_is_a_no():
    written("binary")
    script(
        "printf 'Traceback (most recent call last):\\n  x\\nError: a\\n\\nFAILED (failures=1)\\n' >&2; exit 1"
    )
    told("run", "-n", "1", "--command", "./gait.sh")
    assert answers() == [{"yes": False}]


def test_nothing_has_worked_yet():
    written("binary")
    shown = told("run", "-n", "1", "--command", "false")
    assert "1/1  no   gain" in shown
    assert "Nothing has worked yet, so this is a guess.\nRecommended setting" in shown


# duels and batches


def test_a_command_compares_two_options():
    written("duel")
    script(
        'echo thinking; awk -v a="$1" -v b="$ASKWISE_B_GAIN" \'BEGIN { print (a > b ? "A" : "b") }\'; echo'
    )
    shown = told("run", "-n", "4", "--command", "./gait.sh {A.gain}")
    for entry in history():
        first, second = (option["gain"] for option in entry.options)
        assert entry.answer.to_json() == {"prefers": int(second > first)}
    assert re.search(r"^1/4  [AB] preferred  A: gain .*; B: gain ", shown, re.MULTILINE)


def test_a_command_ranks_a_batch_from_its_options_as_json():
    written("batch")
    file = Path("rank.py")
    file.write_text(
        "import json, os\n"
        "gains = [option['gain'] for option in json.loads(os.environ['ASKWISE_OPTIONS'])]\n"
        "print('>'.join('ABC'[k] for k in sorted(range(3), key=lambda k: -gains[k])))\n"
    )
    told("run", "-n", "3", "--command", f"{sys.executable} -S rank.py")
    for entry in history():
        gains = [option["gain"] for option in entry.options]
        assert entry.answer.to_json() == {"ranking": sorted(range(3), key=lambda k: -gains[k])[:2]}


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("echo maybe", "the last line 'maybe', which is no answer, with exit code 0"),
        ("true", "nothing printed, which is no answer, with exit code 0"),
        ("echo void", "the last line 'void', which is no answer"),
        ("echo A; exit 1", "exit code 1 from ./gait.sh"),
        ("echo A >&2", "nothing printed, which is no answer"),
    ],
)
def test_what_is_no_comparison_is_a_failure(program, reason):
    written("duel")
    script(f"[ $ASKWISE_QUESTION = 0 ] || {{ echo tie; exit 0; }}; {program}")
    told("run", "-n", "1", "--command", "./gait.sh", "--retries", "0")
    assert skipped_for()[0].startswith(reason)
    assert answers() == [None, {"undecided": True}]


def test_comparisons_take_codes_for_ties_and_skips_and_refuse_wrong_places():
    written("duel")
    assert "got a duel study" in refused("run", "--command", "true", "--no-codes", "2")
    line = refused("run", "--command", "./gait.sh {gain}")
    assert (
        "name parameters in braces (A.gain, A.cutoff, A.mode, B.gain, B.cutoff, B.mode); got {gain}" in line
    )
    assert '"$ASKWISE_B_GAIN" instead' in refused("run", "--command", "sh -c 'echo {B.gain}'")
    script("[ $ASKWISE_QUESTION = 1 ] && exit 3; [ $ASKWISE_QUESTION = 2 ] && exit 4; echo skip")
    told("run", "-n", "1", "--command", "./gait.sh", "--tie-codes", "4", "--skip-codes", "3")
    assert statuses() == ["skipped", "skipped", "answered"]


# several at once


def test_jobs_run_at_once_and_each_has_a_question_of_its_own():
    written("binary")
    # each waits for the other two: one after the other would end in a time-out
    script("touch job$ASKWISE_JOB; while ! [ -e job1 -a -e job2 -a -e job3 ]; do sleep 0.01; done")
    told("run", "-n", "7", "--jobs", "3", "--command", "./gait.sh", "--timeout", "20", "-p", "robot")
    entries = history()
    assert len({json.dumps(entry.options) for entry in entries}) == len(entries) == 7
    assert statuses() == ["answered"] * 7
    assert {entry.participant for entry in entries} == {"robot"}
    with aw.Study.open("study.db", "hall") as study:
        assert study.participants() == ["robot"]
        assert all(one.equal for one in study.replay())


def test_a_modelled_question_beside_open_ones_differs_and_replays():
    written("binary", more="initial = 3\nkernel = 'se'\n")
    script("awk -v g=\"$1\" 'BEGIN { exit !(g > 20) }'")
    told("run", "-n", "4", "--command", "./gait.sh {gain}")
    with aw.Study.open("study.db", "hall") as study:
        first = study.ask()
        second = study.ask(beside=[first.id])
        assert study.ask().id == first.id
        assert study.ask(beside=[first.id]).id == second.id
        assert first.options != second.options
        assert all(one.equal for one in study.replay())


def running(*words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "askwise", "run", *words]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, **pipes, text=True)


def awaited(count: int, pattern: str) -> list[Path]:
    for _ in range(1200):
        if len(found := sorted(Path().glob(pattern))) >= count:
            return found
        time.sleep(0.05)
    raise AssertionError(f"no {pattern}")


@pytest.mark.slow
def test_two_terminals_never_work_on_the_same_question():
    written("binary")
    told("ask")  # left open by somebody: one of them takes it
    script("echo $ASKWISE_QUESTION >> seen; sleep 0.3")
    both = [running("-n", "12", "--jobs", "2", "--command", "./gait.sh") for _ in range(2)]
    for process in both:
        shown, complaints = process.communicate(timeout=60)
        assert process.returncode == 0, complaints
        assert "Somebody else" not in shown
    seen = Path("seen").read_text().split()
    assert len(seen) == len(set(seen))
    assert "0" in seen
    entries = history()
    assert len({json.dumps(entry.options) for entry in entries}) == len(entries)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("jobs", "how"), [(1, signal.SIGINT), (3, signal.SIGINT), (1, signal.SIGTERM), (3, signal.SIGHUP)]
)
def test_ctrl_c_and_the_like_end_every_command_and_the_same_questions_are_asked_again(jobs, how):
    written("binary")
    script("echo $$ > begun$ASKWISE_QUESTION; trap '' TERM; while true; do sleep 0.1; done")
    process = running("--command", "./gait.sh", "--jobs", str(jobs))
    files = awaited(jobs, "begun*")
    time.sleep(0.2)
    process.send_signal(how)
    shown, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "The same command resumes" in shown
    for file in files:
        with pytest.raises(ProcessLookupError):
            os.kill(int(file.read_text()), 0)
    assert statuses() == ["open"] * jobs
    told("run", "-n", str(jobs), "--command", "true", "--jobs", str(jobs))
    assert statuses() == ["answered"] * jobs


@pytest.mark.slow
def test_questions_of_a_killed_run_are_free_again():
    written("binary")
    script("touch begun$ASKWISE_QUESTION; exec sleep 5")
    process = running("--command", "./gait.sh")
    awaited(1, "begun*")
    shown = told("run", "-n", "1", "--command", "true")  # beside it
    assert "1/1" in shown
    assert statuses() == ["open", "answered"]
    process.kill()
    process.communicate()
    told("run", "-n", "2", "--command", "true")
    assert statuses() == ["answered", "answered"]


# options presented to a person


def test_options_are_presented_in_order_and_again_on_request():
    written("duel")
    script('echo "$ASKWISE_LABEL $1 $ASKWISE_MODE" >> seen; cat >> typed')
    shown = told("run", "-n", "2", "--present", "./gait.sh {gain}", typed="play b\nplay\nplay c\nb\na\n")
    lines = [
        [
            f"{label} {option['gain']} {option['mode']}"
            for label, option in zip("AB", entry.options, strict=True)
        ]
        for entry in history()
    ]
    assert Path("seen").read_text().splitlines() == [*lines[0], lines[0][1], *lines[0], *lines[1]]
    assert answers() == [{"prefers": 1}, {"prefers": 0}]
    assert Path("typed").read_text() == ""  # answers are not for the device
    assert "There is no option 'c'; type play, or play B, say." in shown
    assert "play or play a to have options presented again" in shown


def test_a_device_that_fails_is_shown_and_the_question_stays():
    written("binary")
    script("exit 3")
    shown = told("run", "--present", "./gait.sh", typed="play\nq\n")
    assert shown.count("It was not presented: exit code 3 from ./gait.sh. The question stays open.") == 2
    assert "must be a program; got './nowhere': no such file" in told(
        "run", "-n", "1", "--present", "./nowhere", typed="y\n"
    )
    script("sleep 60")
    late = told("run", "-n", "2", "--present", "./gait.sh", "--timeout", "0.2", typed="n\n")
    assert "It was not presented: time-out after 0.2 s from ./gait.sh." in late
    assert answers() == [{"yes": True}, {"yes": False}]


def test_presenting_is_refused_before_anything_is_asked():
    written("duel")
    assert "--present must be used without --command" in refused("run", "--present", "a", "--command", "b")
    assert "--present must name parameters in braces" in refused("run", "--present", "a {A.gain}")
    assert "would run them; got {gain}" in refused("run", "--present", "sh -c 'play {gain}'")
    assert recorded() == []


# the words of a command


EVIL = SPACE.replace("soft", "$(touch pwned)").replace("hard", "`touch pwned`; touch pwned")


def test_a_shell_finds_the_values_in_its_environment_and_runs_none_of_them():
    written("binary", space=EVIL.replace("cutoff", "'cut off'"))
    program = """sh -c 'printf "%s\\n" "$ASKWISE_MODE" "$ASKWISE_CUT_OFF" >> seen; echo "$ASKWISE_MODE"'"""
    told("run", "-n", "3", "--command", program)
    options = [entry.options[0] for entry in history()]
    want = [str(option[name]) for option in options for name in ("mode", "cut off")]
    assert Path("seen").read_text().split("\n")[:-1] == want
    assert not Path("pwned").exists()


@pytest.mark.parametrize(
    "command",
    [
        "sh -c 'echo {gain}'",
        "bash -ec 'echo {gain}'",
        "/bin/zsh -c -- 'echo {gain}'",
        "env A=1 dash -o errexit -c '{gain}'",
        "bash -c -o pipefail 'echo {gain}'",
        "fish --command='echo {gain}'",
        "busybox sh -c 'echo {gain}'",
    ],
)
def test_a_value_inside_the_program_of_a_shell_is_refused(command):
    with pytest.raises(ValueError, match=r'would run them; got \{gain\}\. Write "\$ASKWISE_GAIN" instead'):
        template_words(command, {"gain": None})
    template_words("sh -c 'echo \"$1\"' _ {gain}", {"gain": None})  # a word of its own is none


def test_parameters_that_would_share_a_variable_have_none():
    setting = {"cut-off": 1, "cut off": 2, "Gain": 2.5, "größe": "x"}
    assert variables(setting) == {"ASKWISE_GAIN": "2.5", "ASKWISE_GR_SSE": "x"}


@pytest.mark.parametrize(
    "command",
    ["a {gain}; b", "a ;", "a | b", "a || b", "a & b", "a &", "a && b", "a > x", "a >> x", "a 2>&1"],
)
def test_shell_syntax_is_refused(command):
    with pytest.raises(ValueError, match=r"no shell interprets it; got .* Wrap it in sh -c .*ASKWISE_"):
        template_words(command, {"gain": None})


@pytest.mark.parametrize("command", ["sh -c 'a; b | c > d'", 'find . ";"', r"find . \;", "get x?a=1&b=2"])
def test_shell_syntax_in_quotes_or_within_a_word_is_passed_to_the_program(command):
    assert template_words(command, {}) == shlex.split(command)


def test_values_are_filled_in_without_a_shell():
    words = template_words("run --mode={mode} '{mode}' {{mode}}", {"mode": None})
    assert words == ["run", "--mode={mode}", "{mode}", "{{mode}}"]
    nasty = "a b; rm -rf {mode} $(x) 'y'"
    assert filled(words, {"mode": nasty}) == ["run", f"--mode={nasty}", nasty, "{mode}"]
