"""Campaigns: nothing is computed twice, and a killed campaign ends with the same results."""

import io
import json
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from askwise import plugins
from askwise.bench import campaign as module
from askwise.bench.campaign import Campaign, check_device, computed, run_together
from askwise.bench.chunks import Chunk, Folder
from askwise.bench.executors import DaskCluster, Processes
from askwise.bench.experiments import Arm, Experiment
from askwise.bench.functions import FUNCTIONS
from askwise.bench.lanes import RunId, run
from askwise.bench.results import Results, load
from askwise.bench.schedule import Task, run_ids
from askwise.bench.user import User
from askwise.errors import Refused

HOUSE = re.compile(r"^[^;\n]+ must [^;\n]+; got [^\n]+\. [^\n]+$")
TINY = Experiment(
    name="tiny",
    title="A tiny one",
    about="For tests.",
    arms=(Arm("random", 1), Arm("ucb_phi", 1)),
    replicates=3,
    iterations=4,
    initial=2,
    scale="raw",
    prior="recovered",
    functions=("forrester", "gramacy_lee"),
)
LONG = replace(TINY, arms=(Arm("random", 1),), replicates=4, iterations=2)
KILLED = """
from test_bench_campaign import LONG, Campaign
import sys

if __name__ == "__main__":
    Campaign(LONG, sys.argv[1], lanes=1).run()
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """An uninterrupted campaign."""
    directory = tmp_path_factory.mktemp("whole")
    summary = Campaign(TINY, directory, lanes=2).run()
    assert (summary.runs, summary.computed, summary.missing) == (12, 12, 0)
    return directory


def files(directory: Path) -> dict[str, int]:
    """Every file of runs and its modification time."""
    return {path.name: path.stat().st_mtime_ns for path in directory.glob("chunks/*.npz")}


def refused(experiment: Experiment, directory: Path) -> str:
    """The refusal of a directory, which must stay unchanged."""
    before = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    with pytest.raises(ValueError, match="must") as caught:
        Campaign(experiment, directory).run()
    assert {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()} == before
    assert HOUSE.match(str(caught.value))
    return str(caught.value)


def close(one: Results, other: Results) -> None:
    """Equal up to rounding, which depends on the other lanes, and which searches magnify."""
    assert list(one.scores) == list(other.scores)
    for label, scores in one.scores.items():
        np.testing.assert_allclose(scores, other.scores[label], rtol=0, atol=1e-7)


def equal(one: Results, other: Results) -> None:
    """Equal to the last bit."""
    assert one.experiment == other.experiment
    for label, scores in one.scores.items():
        np.testing.assert_array_equal(scores, other.scores[label])
    for key, first in one.firsts.items():
        np.testing.assert_array_equal(first.questions, other.firsts[key].questions)
        np.testing.assert_array_equal(first.optima, other.firsts[key].optima)


# what is computed


def test_a_campaign_holds_what_its_lanes_give(whole):
    results = load(whole)
    ids = [RunId("tiny", "gramacy_lee", "ucb_phi", replicate) for replicate in range(3)]
    runs = run(TINY, ids)
    np.testing.assert_allclose(results.scores["ucb_phi"][1], runs.scores, rtol=0, atol=1e-9)
    first = results.firsts["ucb_phi", "gramacy_lee"]
    np.testing.assert_allclose(first.questions, runs.questions[0], rtol=0, atol=1e-6)
    np.testing.assert_array_equal(first.answers, runs.answers[0])


def test_runs_are_computed_on_one_thread(monkeypatch):
    threads = []
    monkeypatch.setattr(module, "run", lambda *words: threads.append(torch.get_num_threads()) or run(*words))
    torch.set_num_threads(2)
    computed(Task(TINY, tuple(run_ids(TINY)[:1]), "cpu"))
    assert (threads, torch.get_num_threads()) == ([1], 2)


def test_chunks_of_any_size_give_the_same_scores(whole, tmp_path):
    Campaign(TINY, tmp_path).run()
    assert len(files(whole)) == 6
    assert len(files(tmp_path)) == 2  # both functions have one dimension and one kernel
    close(load(whole), load(tmp_path))


def test_finished_runs_are_not_computed_again_whatever_the_size_of_chunks(whole, tmp_path, monkeypatch):
    Campaign(TINY.reduced(functions=("forrester",)), tmp_path, lanes=2).run()
    before, asked = files(tmp_path), []
    monkeypatch.setattr(module, "computed", lambda task: asked.extend(task.ids) or computed(task))
    summary = Campaign(TINY, tmp_path, lanes=64).run()
    assert {run_id.function for run_id in asked} == {"gramacy_lee"}
    assert (summary.runs, summary.computed) == (12, 6)
    assert before.items() <= files(tmp_path).items()
    close(load(tmp_path), load(whole))
    asked.clear()
    assert Campaign(TINY, tmp_path).run().computed == 0
    assert not asked


def test_a_directory_grows_by_rules_functions_and_replicates(whole, tmp_path):
    smaller = TINY.reduced(functions=("gramacy_lee",), rules=("ucb_phi",), replicates=1)
    Campaign(smaller, tmp_path, lanes=2).run()
    assert load(tmp_path).scores["ucb_phi"].shape == (1, 1, 4)
    Campaign(TINY, tmp_path, lanes=2).run()
    grown = load(tmp_path)
    assert set(grown.functions) == {"forrester", "gramacy_lee"}
    order = [grown.functions.index(name) for name in TINY.functions]
    for label, scores in load(whole).scores.items():
        np.testing.assert_allclose(grown.scores[label][order], scores, rtol=0, atol=1e-9)


def test_a_smaller_campaign_in_a_larger_directory_changes_nothing(whole):
    before, about = files(whole), (whole / "about.json").read_text()
    summary = Campaign(TINY.reduced(rules=("random",), replicates=1), whole).run()
    assert (summary.runs, summary.computed, summary.missing) == (2, 0, 0)
    assert files(whole) == before
    assert (whole / "about.json").read_text() == about


def test_the_summary_counts_missing_runs_of_a_larger_experiment(tmp_path):
    Campaign(TINY.reduced(rules=("random",), replicates=2), tmp_path).run()
    less = TINY.reduced(rules=("ucb_phi",), replicates=1, functions=("forrester",))
    summary = Campaign(less, tmp_path).run()
    assert (summary.runs, summary.computed) == (1, 1)
    assert summary.missing == 2 * 2 * 2 - (4 + 1)
    with pytest.raises(ValueError, match=r"must hold all 8 runs of the experiment; got 5 \(3 missing\)"):
        load(tmp_path)


def test_device_versions_and_costs_are_recorded(whole):
    about = json.loads((whole / "about.json").read_text())
    assert about["experiment"]["iterations"] == 4
    assert about["seed"].startswith("hash of the cell's name")
    assert about["torch"] == [torch.__version__]
    assert about["device"] == ["cpu"]
    assert about["workers"] == [1]
    assert about["lanes"] == [2]
    assert about["runs"] == 12
    assert len(about["hardware"]) == 1
    assert 0 < about["computing_seconds"] <= about["seconds"]
    assert about["lane_iterations_per_second"] == pytest.approx(12 * 4 / about["seconds"])


# what goes wrong


def test_a_killed_campaign_resumes_and_ends_with_the_same_bits(tmp_path):
    program, there = tmp_path / "killed.py", tmp_path / "there"
    program.write_text(KILLED)
    paths = [*map(str, Path(__file__).parents[:2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    with subprocess.Popen([sys.executable, program, there], env=environment) as process:
        until = time.monotonic() + 60
        while len(files(there)) < 2 and time.monotonic() < until:
            time.sleep(0.002)
        process.kill()
    before = files(there)
    assert 2 <= len(before) < 8
    (there / "chunks" / "half.npz.1.tmp").write_bytes(b"half")
    summary = Campaign(LONG, there, lanes=1).run()
    assert summary.computed == 8 - len(before)
    assert before.items() <= files(there).items()
    assert not list(there.rglob("*.tmp"))
    Campaign(LONG, tmp_path / "whole", lanes=1).run()
    equal(load(there), load(tmp_path / "whole"))


def test_a_truncated_file_is_set_aside_and_its_runs_computed_again(whole, tmp_path):
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    path = sorted(tmp_path.glob("chunks/*.npz"))[2]
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    before, screen = files(tmp_path), io.StringIO()
    assert Campaign(TINY, tmp_path, lanes=2).run(stream=screen).computed == 2
    assert f"{path} must hold runs of this experiment; got a damaged file" in screen.getvalue()
    after = files(tmp_path)
    assert {name: when for name, when in before.items() if name != path.name}.items() <= after.items()
    assert path.with_name(f"{path.name}.unusable").exists()
    equal(load(tmp_path), load(whole))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (replace(TINY, iterations=5), "iterations must be that of the runs in .*, 4; got 5"),
        (replace(TINY, name="other"), "experiment must be that of the runs in .*, tiny; got other"),
        (replace(TINY, scale="rescaled"), "scale must be that of the runs in .*, raw; got rescaled"),
        (replace(TINY, user=User(noise=2.0)), "user must be that of the runs"),
        (replace(TINY, arms=(Arm("thompson", 1, "random"),)), "arm random must be that of the runs"),
    ],
)
def test_the_directory_of_another_experiment_is_refused(whole, other, message):
    assert re.search(message, refused(other, whole))


def test_a_directory_with_other_things_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("important")
    assert "holds other things" in refused(TINY, tmp_path)


def test_a_rule_that_cannot_ask_such_questions_is_refused_at_once(tmp_path):
    with pytest.raises(ValueError, match="rule muc must be used for what it asks"):
        Campaign(replace(TINY, arms=(*TINY.arms, Arm("muc", 1))), tmp_path)


def test_a_campaign_that_fails_at_once_leaves_no_files(tmp_path, monkeypatch):
    def fails(task: Task) -> Chunk:
        raise ValueError("nothing must work; got this. Try another time.")

    monkeypatch.setattr(module, "computed", fails)
    with pytest.raises(ValueError, match="nothing must work"):
        Campaign(TINY, tmp_path).run()
    assert not list(tmp_path.iterdir())


def test_runs_finished_before_an_error_are_kept(tmp_path, monkeypatch):
    tasks = []

    def fails_later(task: Task) -> Chunk:
        tasks.append(task)
        if len(tasks) == 3:
            raise KeyboardInterrupt
        return computed(task)

    monkeypatch.setattr(module, "computed", fails_later)
    with pytest.raises(KeyboardInterrupt):
        Campaign(TINY, tmp_path, lanes=2).run()
    assert len(files(tmp_path)) == 2
    assert json.loads((tmp_path / "about.json").read_text())["runs"] == 4


def test_a_campaign_interrupted_after_its_first_file_can_be_resumed(tmp_path, monkeypatch):
    write = Folder.write

    def ends(folder: Folder, chunk: Chunk) -> None:
        write(folder, chunk)
        raise KeyboardInterrupt

    monkeypatch.setattr(Folder, "write", ends)
    with pytest.raises(KeyboardInterrupt):
        Campaign(TINY, tmp_path, lanes=6).run()
    monkeypatch.undo()
    assert Campaign(TINY, tmp_path, lanes=6).run().computed == 6


def test_two_campaigns_in_one_directory_at_once_are_refused(tmp_path):
    with Folder(tmp_path).locked():
        assert "which another process writes to" in refused(TINY, tmp_path)
    Campaign(TINY.reduced(rules=("random",), replicates=1), tmp_path).run()


def test_a_missing_device_is_refused(tmp_path):
    with pytest.raises(ValueError, match="device must be cpu or cuda; got 'abacus'") as caught:
        Campaign(TINY, tmp_path, device="abacus").run()
    assert HOUSE.match(str(caught.value))
    with pytest.raises(ValueError, match=r"device must be one of the \d+ GPUs that torch sees") as caught:
        check_device("cuda:99")
    assert HOUSE.match(str(caught.value))
    check_device("cpu")


def test_lanes_that_do_not_fit_into_memory_are_refused(monkeypatch):
    def fails(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(module, "run", fails)
    with pytest.raises(ValueError, match="lanes must fit into the memory of the device; got 12") as caught:
        computed(Task(TINY, tuple(run_ids(TINY)), "cpu"))
    assert HOUSE.match(str(caught.value))


# modules of others

PARABOLA = """
from askwise.bench.functions import register_function

@register_function("Parabola", box=((0.0, 1.0),), kernel="se", argmax=(0.5,), max=0.0)
def parabola(x):
    return (x[..., 0] - 0.5).square()
"""


@pytest.fixture
def parabola(tmp_path, monkeypatch):
    """A module in the present folder that defines a function; forgotten after the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(plugins, "_used", [])
    (tmp_path / "my_parabola.py").write_text(PARABOLA)
    yield "my_parabola"
    FUNCTIONS.pop("parabola", None)
    sys.modules.pop("my_parabola", None)


LEARNED = replace(
    TINY, functions=("parabola",), scale="standardised", prior="learned", replicates=1, iterations=2
)


def test_a_task_imports_its_modules_before_it_is_computed(parabola):
    task = Task(LEARNED, (RunId("tiny", "parabola", "random", 0),), "cpu", (parabola,))
    with pytest.raises(ValueError, match=r"function must be one of .*; got 'parabola'"):
        computed(replace(task, imports=()))
    chunk = computed(task)
    assert chunk.scores.shape == (1, 2)
    assert np.isfinite(chunk.scores).all()
    with pytest.raises(ValueError, match="import must name a module"):
        computed(replace(task, imports=("my_nothing",)))


def test_imported_modules_are_kept_with_the_results(parabola):
    plugins.use(parabola)
    Campaign(LEARNED, "there").run()
    about = json.loads(Path("there/about.json").read_text())
    assert about["imports"] == [parabola]
    Campaign(replace(LEARNED, replicates=2), "there").run()
    assert load("there").about["imports"] == [parabola]


def test_without_imported_modules_nothing_is_kept_of_them(whole):
    assert "imports" not in json.loads((whole / "about.json").read_text())


def test_results_with_unknown_functions_name_the_modules_they_want(parabola):
    plugins.use(parabola)
    Campaign(LEARNED, "there").run()
    Campaign(replace(LEARNED, arms=(Arm("random", 1),), replicates=2), "part", lanes=1).run()
    next(Path("part/chunks").iterdir()).unlink()
    with pytest.raises(ValueError, match=r"`askwise bench run tiny .* --import my_parabola --out part`"):
        load("part")
    del FUNCTIONS["parabola"]
    for refusing in (load, lambda directory: Campaign(TINY, directory).run()):
        with pytest.raises(ValueError, match="function of there must be known; got 'parabola'") as caught:
            refusing("there")
        assert HOUSE.match(str(caught.value))
        assert str(caught.value).endswith("Add --import my_parabola.")


def test_results_with_unknown_functions_and_without_modules_say_what_is_unknown(whole, tmp_path):
    about = json.loads((whole / "about.json").read_text())
    about["experiment"]["functions"][0] = "parabola"
    (tmp_path / "about.json").write_text(json.dumps(about))
    with pytest.raises(ValueError, match=f"^{tmp_path}: function must be one of .*; got 'parabola'"):
        load(tmp_path)


@pytest.mark.parametrize("name", ["parabola", "branin"])
def test_functions_without_a_kernel_are_refused_before_anything_is_written(parabola, tmp_path, name):
    plugins.use(parabola)
    with pytest.raises(ValueError, match=f"the authors' constants are known; got '{name}'") as caught:
        Campaign(replace(TINY, functions=("forrester", name)), tmp_path / "there")
    assert HOUSE.match(str(caught.value))
    assert not (tmp_path / "there").exists()


@pytest.mark.parametrize("lanes", [0, -3])
def test_there_must_be_lanes(tmp_path, lanes):
    with pytest.raises(ValueError, match=f"lanes must be 1 or more; got {lanes}"):
        Campaign(TINY, tmp_path, lanes=lanes)


@pytest.mark.slow
def test_processes_give_the_same_bits_though_one_is_killed(tmp_path):
    Campaign(LONG, tmp_path / "here", lanes=1).run()

    def kill() -> None:
        while not files(tmp_path / "killed"):
            time.sleep(0.005)
        os.kill(multiprocessing.active_children()[0].pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    summary = Campaign(LONG, tmp_path / "killed", lanes=1).run(Processes(2))
    killer.join()
    assert summary.computed == 8
    equal(load(tmp_path / "killed"), load(tmp_path / "here"))


@pytest.mark.slow
def test_dask_gives_the_same_bits_though_a_worker_is_killed(tmp_path):
    from distributed import LocalCluster

    Campaign(LONG, tmp_path / "here", lanes=1).run()
    with LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50
    ) as cluster:

        def kill() -> None:
            while not files(tmp_path / "killed"):
                time.sleep(0.005)
            os.kill(cluster.workers[0].pid, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        summary = Campaign(LONG, tmp_path / "killed", lanes=1).run(DaskCluster(cluster.scheduler_address))
        killer.join()
    assert summary.computed == 8
    equal(load(tmp_path / "killed"), load(tmp_path / "here"))
    assert load(tmp_path / "killed").about["workers"] == [2]


# together

NOISIER = tuple(
    replace(
        TINY, name=f"noise-{noise:g}", arms=(Arm("muc", 2),), replicates=2, iterations=7, user=User(noise)
    )
    for noise in (1.0, 0.2, 5.0)
)


def test_campaigns_that_differ_in_noise_share_lanes_and_end_as_they_would_alone(tmp_path, monkeypatch):
    sizes: list[int] = []
    monkeypatch.setattr(module, "computed", lambda task: sizes.append(len(task.ids)) or computed(task))
    together = [Campaign(each, tmp_path / "together" / each.name) for each in NOISIER]
    summaries = run_together(together)
    assert [summary.computed for summary in summaries] == [4, 4, 4]
    assert sizes == [12]  # two functions, two replicates, three levels of noise
    for each in NOISIER:
        Campaign(each, tmp_path / "alone" / each.name).run()
        here, there = (load(tmp_path / place / each.name) for place in ("together", "alone"))
        np.testing.assert_allclose(here.scores["muc"], there.scores["muc"], rtol=1e-6, atol=1e-9)
        for cell, first in there.firsts.items():
            np.testing.assert_array_equal(here.firsts[cell].answers, first.answers)
    assert not np.allclose(here.scores["muc"], load(tmp_path / "together" / "noise-1").scores["muc"])


def test_the_time_of_shared_lanes_is_divided_by_the_runs(tmp_path):
    summaries = run_together([Campaign(each, tmp_path / each.name) for each in NOISIER])
    abouts = [Folder(tmp_path / each.name).read_about() for each in NOISIER]
    assert [about["seconds"] for about in abouts] == pytest.approx([abouts[0]["seconds"]] * 3, rel=0.2)
    assert len({about["computing_seconds"] for about in abouts}) == 1
    assert sum(about["computing_seconds"] for about in abouts) <= 3 * summaries[0].seconds * 1.01
    assert all(about["runs"] == 4 for about in abouts)
    again = run_together([Campaign(each, tmp_path / each.name) for each in NOISIER])
    assert [summary.computed for summary in again] == [0, 0, 0]


def test_a_campaign_of_which_some_runs_are_there_takes_part_with_the_others(tmp_path):
    campaigns = [Campaign(each, tmp_path / each.name) for each in NOISIER[:2]]
    campaigns[0].run()
    assert [summary.computed for summary in run_together(campaigns)] == [0, 4]


@pytest.mark.parametrize(
    "change", [{"iterations": 6}, {"initial": 3}, {"prior": "learned"}, {"user": User(lapses=0.1)}]
)
def test_campaigns_that_differ_otherwise_do_not_share_lanes(tmp_path, change):
    other = replace(NOISIER[1], **change)
    with pytest.raises(Refused, match=HOUSE) as caught:
        run_together([Campaign(each, tmp_path / each.name) for each in (NOISIER[0], other)])
    assert "differ from noise-1 in the noise of answers only" in str(caught.value)
