"""The command line of benchmarks: what a newcomer types, what is refused, and what Ctrl-C leaves."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from askwise.bench import campaign as module
from askwise.bench.executors import DaskCluster, Processes, ThisProcess
from askwise.bench.experiments import EXPERIMENTS
from askwise.bench.ranking import rank, spreads_at
from askwise.bench.results import load
from askwise.cli import main
from askwise.cli.bench import executor_of, reduced, split

HOUSE = re.compile(r"^[^;\n]+ must [^;\n]+; got [^\n]+\. [^\n]+$")
SMALL = ("--functions", "forrester,gramacy_lee", "--rules", "ucb_phi,random", "--replicates", "2")
RUN = ("run", "bbo-as-run", *SMALL, "--iterations", "4")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(*words: str, code: int = 0) -> str:
    """What a command prints; it must end with this code."""
    result = CliRunner().invoke(main, ["bench", *words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result.stdout


def document(*words: str) -> dict:
    return json.loads(told(*words, "--json"))


def refused(*words: str) -> str:
    """The one line on stderr, after which nothing must have changed."""
    before = sorted(Path().rglob("*"))
    result = CliRunner().invoke(main, ["bench", *words])
    assert result.exit_code == 1, result.output
    assert result.stdout == ""
    line = result.stderr.removesuffix("\n")
    assert HOUSE.match(line), line
    assert sorted(Path().rglob("*")) == before
    return line


def test_help_of_every_command_does_not_import_torch():
    code = (
        "import sys\n"
        "from typer.testing import CliRunner\n"
        "from askwise.cli import main\n"
        "for command in ([], ['list'], ['run'], ['rank'], ['report'], ['pack']):\n"
        "    assert CliRunner().invoke(main, ['bench', *command, '--help']).exit_code == 0, command\n"
        "heavy = ('torch', 'numpy', 'distributed', 'rich.table', 'askwise.bench')\n"
        "print([name for name in heavy if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_newcomer_lists_runs_ranks_and_packs():
    listed = told("list")
    for name, experiment in EXPERIMENTS.items():
        assert re.search(rf"^ {name} .*{experiment.lane_iterations:,} $", listed, re.MULTILINE)
    ran = CliRunner().invoke(main, ["bench", *RUN])
    assert ran.exit_code == 0
    assert ran.stdout == (
        "8 runs are in out/bench/bbo-as-run, all of them new.\n"
        "Compare the rules with `askwise bench rank out/bench/bbo-as-run`.\n"
    )
    assert re.search(r"^8 of 8 runs, [\d.e+]+ iterations/s, 0:00:\d\d in all$", ran.stderr, re.MULTILINE)
    assert "none of them new" in told(*RUN)
    ranked = told("rank", "out/bench/bbo-as-run", "--alpha", "0.3")
    assert "2 functions, 2 runs of 4 queries each, tests at level 0.3" in ranked
    rows = re.findall(r"^ +(\d) +(\w+) +(\d+) +(\d+) *$", ranked, re.MULTILINE)
    scores = load("out/bench/bbo-as-run").scores
    expected, spread = rank(scores, 0.3).rows, spreads_at(scores, (0.3,))[0.3]
    errors = [spread.error(row.rule) for row in expected]
    assert rows == [
        (str(row.rank), row.rule, str(row.borda), f"{error:.0f}")
        for row, error in zip(expected, errors, strict=True)
    ]
    assert "±: standard error of the score, from 200 resamples of the runs." in ranked
    assert re.search(r"^Wrote kept \(\d+ kB\)\.$", told("pack", "out/bench/bbo-as-run", "kept"), re.MULTILINE)
    assert document("rank", "kept", "--alpha", "0.3")["rows"] == [
        {**vars(row), "error": error} for row, error in zip(expected, errors, strict=True)
    ]


def test_every_command_has_json_for_programs():
    (first, *_) = json.loads(told("list", "--json"))
    assert first["rules"] == [arm.label for arm in EXPERIMENTS[first["name"]].arms]
    assert first["lane_iterations"] == EXPERIMENTS[first["name"]].lane_iterations
    ran = document(*RUN, "--out", "here", "--lanes", "3")
    assert ran["directory"] == "here"
    assert (ran["runs"], ran["computed"], ran["missing"], ran["interrupted"]) == (8, 8, 0, False)
    assert ran["lane_iterations_per_second"] > 0
    ranked = document("rank", "here")
    assert ranked["smallest_p"] == pytest.approx(0.09696542614120535)
    assert ranked["warning"].startswith("No rule can beat another with so few replicates")
    assert ranked["warning"] in " ".join(told("rank", "here").split())
    assert document("rank", "here", "--alpha", "0.1")["warning"] is None
    assert "No rule" not in told("rank", "here", "--alpha", "0.1")
    assert {row["rule"] for row in ranked["rows"]} == {"ucb_phi", "random"}
    assert np.shape(ranked["wins_final"]) == (2, 2)
    assert ranked["functions"] == ["forrester", "gramacy_lee"]
    packed = document("pack", "here", "there")
    assert packed["bytes"] == sum(file.stat().st_size for file in Path("there").iterdir())
    error = CliRunner().invoke(main, ["bench", "rank", "nowhere", "--json"])
    assert HOUSE.match(json.loads(error.stdout)["error"])


def test_missing_runs_are_reported_and_may_be_left_out_of_the_ranking():
    told(*RUN, "--out", "here")
    more = (*RUN[:2], "--functions", "forrester,gramacy_lee,trid", "--rules", "ucb_phi", *RUN[6:])
    assert (
        "6 runs are in here, 2 of them new.\n2 other runs of the experiment in that directory are missing.\n"
        in told(*more, "--out", "here")
    )
    refusal = refused("rank", "here")
    assert "got 10 (2 missing). Finish it with `askwise bench run bbo-as-run" in refusal
    assert ": 2 functions, 2 runs of 4 queries" in told("rank", "here", "--partial")
    told(*shlex.split(re.search("`askwise bench (.*)`", refusal)[1]))
    assert ": 3 functions, 2 runs of 4 queries" in told("rank", "here")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", "nope"), "experiment must be one of .*; got 'nope'"),
        (("run", "pbo-as-run", "--functions", "ackley,nope"), "function must be one of .*; got 'nope'"),
        (("run", "pbo-as-run", "--functions", "branin"), "the authors' constants are known; got 'branin'"),
        (("run", "bbo-as-run", "--functions", "branin"), "the authors' constants are known; got 'branin'"),
        (("run", "pbo-as-run", "--functions", "ackley,,"), "--functions must be names separated by commas"),
        (("run", "pbo-as-run", "--rules", "nope"), "rule must be one of .*; got 'nope'"),
        (("run", "pbo-as-run", "--rules", "ucb_phi"), "rule ucb_phi must be used for what it asks"),
        (("run", "batch-sizes", "--rules", "muc"), "rule must be one of muc m=3, .*; got 'muc'"),
        (("run", "pbo-as-run", "--device", "abacus"), "device must be cpu or cuda"),
        (("run", "pbo-as-run", "--device", "cuda:99"), "device must be one of the"),
        (("run", "pbo-as-run", "--dask", "tcp://x:1", "--workers", "2"), "--workers must be left out"),
        (("rank", "nowhere"), "directory must hold a campaign; got nowhere"),
        (("report", "nowhere"), "directory must hold a campaign; got nowhere"),
        (("pack", "nowhere", "there"), "directory must hold a campaign; got nowhere"),
    ],
)
def test_what_cannot_be_done_is_reported_in_one_line_and_leaves_no_files(words, message):
    assert re.search(message, refused(*words))


def test_another_experiment_in_the_same_directory_is_refused():
    told(*RUN, "--out", "here")
    assert "iterations must be that of the runs in here, 4; got 8" in refused(*RUN[:-1], "8", "--out", "here")
    assert "experiment must be that of the runs in here" in refused("run", "pbo-as-run", "--out", "here")


def test_rules_are_split_at_commas_outside_of_parentheses():
    assert split("ucb_phi(beta=1,x=2) , muc,muc", "--rules") == ("ucb_phi(beta=1,x=2)", "muc")
    assert split("muc m=3,random m=3", "--rules") == ("muc m=3", "random m=3")


def test_rules_may_be_those_of_the_experiment_or_others_that_ask_the_same():
    def arms(name: str, rules: str) -> list[tuple[str, str, int]]:
        experiment = reduced(name, None, rules, None, None)
        return [(arm.label, arm.rule, arm.m) for arm in experiment.arms]

    assert arms("beta", "ucb_phi(beta=5),ucb_f(beta=0.5)") == [
        ("ucb_phi(beta=5.0)", "ucb_phi(beta=5.0)", 1),
        ("ucb_f(beta=0.5)", "ucb_f(beta=0.5)", 1),
    ]
    assert arms("batch-sizes", "muc m=5") == [("muc m=5", "muc", 5)]
    assert arms("pbo", "muc,eubo") == [("muc", "muc", 2), ("eubo", "eubo", 2)]


def test_a_function_outside_the_paper_takes_part_where_its_kernel_is_known():
    words = ("--functions", "branin", "--rules", "random", "--replicates", "1", "--iterations", "2")
    assert "1 runs are in out/bench/pbo" in told("run", "pbo", *words)
    assert "1 runs are in out/bench/pbo-learned" in told("run", "pbo-learned", *words)
    assert load("out/bench/pbo").functions == ("branin",)


MINE = """
import torch
from dataclasses import dataclass
from askwise.bench.functions import register_function
from askwise.rules import RULES, Rule

@register_function("Booth", box=((-10.0, 10.0),) * 2, kernel="se", argmax=(1.0, 3.0), max=0.0)
def booth(x):
    a, b = x.unbind(-1)
    return (a + 2 * b - 7) ** 2 + (2 * a + b - 5) ** 2

@dataclass(frozen=True)
class Middle(Rule):
    "Ask about the middle and a random point."
    key, title, source, cost = "middle", "Middle", "a test", "none"
    asks = RULES["random"].asks

    def ask(self, belief, m, search):
        x = RULES["random"]().ask(belief, m, search)
        return torch.cat([torch.full_like(x[..., :1, :], 0.5), x[..., 1:, :]], -2)
"""


def in_a_process(*words: str) -> str:
    """What the program prints; nothing it imports stays here."""
    program = [sys.executable, "-m", "askwise", "bench", *words, "--import", "mine"]
    done = subprocess.run(program, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow  # its fast sibling: tests/docs/test_plugin.py
@pytest.mark.parametrize("how", [("--workers", "2"), ("--dask", "local")], ids=" ".join)
def test_rules_and_functions_of_an_imported_module_reach_the_workers_and_must_be_imported_again(how):
    Path("mine.py").write_text(MINE)
    small = ("--rules", "middle,random", "--replicates", "2", "--iterations", "6", "--out", "here")
    run = ("run", "pbo-learned", "--functions", "booth,forrester", *small, *how)
    assert "8 runs are in here, all of them new." in in_a_process(*run)
    assert json.loads(Path("here/about.json").read_text())["imports"] == ["mine"]
    for words in (run, ("rank", "here"), ("report", "here"), ("pack", "here", "there")):
        assert re.search(r"(rule|function) .*; got '(middle|booth)'\.", refusal := refused(*words)), refusal
        assert words == run or refusal.endswith("Add --import mine.")
    ranked = json.loads(in_a_process("rank", "here", "--json"))
    assert {row["rule"] for row in ranked["rows"]} == {"middle", "random"}
    assert ranked["functions"] == ["booth", "forrester"]


def test_the_executor_follows_from_workers_and_dask():
    assert isinstance(executor_of(None, None), ThisProcess)
    assert isinstance(executor_of(1, None), ThisProcess)
    several = executor_of(3, None)
    assert isinstance(several, Processes)
    assert several.workers == 3
    local, far = executor_of(2, "local"), executor_of(None, "tcp://far:8786")
    assert isinstance(local, DaskCluster)
    assert (local.workers, local.is_here) == (2, True)
    assert not far.is_here


def test_a_report_is_written(monkeypatch):
    wanted = []
    monkeypatch.setattr("askwise.bench.report.write", lambda *words: wanted.append(words))
    assert told("report", "one", "two", "--out", "page") == "Wrote page/report.md.\n"
    assert wanted[0][:2] == ([Path("one"), Path("two")], Path("page"))


def test_ctrl_c_in_this_process_keeps_what_is_written(monkeypatch):
    tasks, computed = [], module.computed

    def interrupted(task):
        tasks.append(task)
        if len(tasks) == 3:
            raise KeyboardInterrupt
        return computed(task)

    monkeypatch.setattr(module, "computed", interrupted)
    words = (*RUN, "--lanes", "1", "--out", "here")
    result = CliRunner().invoke(main, ["bench", *words])
    assert result.exit_code == 130
    assert result.stderr.endswith("Stopped. Finished runs are in here; the same command resumes.\n")
    assert len(list(Path("here/chunks").iterdir())) == 2
    assert document(*words)["computed"] == 6


@pytest.mark.slow
@pytest.mark.parametrize("more", [("--workers", "2"), ("--workers", "2", "--dask", "local")])
def test_ctrl_c_in_a_terminal_reaches_the_main_process_only(more):
    words = ["bench", "run", "pbo-as-run", *SMALL[:2], "--lanes", "1", "--out", "here", *more]
    program = [sys.executable, "-m", "askwise", *words]
    # a terminal sends the signal to the whole group
    with subprocess.Popen(program, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        while not list(Path().glob("here/chunks/*.npz")):
            assert process.poll() is None
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in said
    assert said.endswith("Stopped. Finished runs are in here; the same command resumes.\n")
    assert not list(Path("here").rglob("*.tmp"))
