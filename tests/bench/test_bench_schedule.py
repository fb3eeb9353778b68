"""What is computed together, and in which order."""

from dataclasses import replace

import pytest

from askwise.bench.experiments import Arm, Experiment
from askwise.bench.functions import FUNCTIONS
from askwise.bench.lanes import RunId, group_of
from askwise.bench.published import PAPER
from askwise.bench.schedule import SlowestFirst, run_ids, tasks_of

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


def test_chunks_hold_every_run_once_and_only_what_runs_together():
    experiment = replace(TINY, functions=PAPER, replicates=5)
    tasks = tasks_of(experiment, (), "cpu", 16)
    ids = [run_id for task in tasks for run_id in task.ids]
    assert sorted(ids) == sorted(run_ids(experiment))
    assert max(len(task.ids) for task in tasks) <= 16
    for task in tasks:
        assert len({(run_id.arm, FUNCTIONS[run_id.function].dim) for run_id in task.ids}) == 1


def test_chunks_of_a_group_have_similar_sizes():
    tasks = tasks_of(replace(TINY, arms=TINY.arms[:1], replicates=35), (), "cpu", 64)
    assert [len(task.ids) for task in tasks] == [35, 35]


@pytest.mark.parametrize("lost", [(0,), (1,), (0, 2), (3,)])
def test_chunks_left_of_a_killed_campaign_are_cut_as_they_were(lost):
    experiment = replace(TINY, arms=TINY.arms[:1], replicates=7)
    tasks = tasks_of(experiment, (), "cpu", 4)
    assert len(tasks) == 4
    done = {run_id for number, task in enumerate(tasks) if number not in lost for run_id in task.ids}
    assert tasks_of(experiment, done, "cpu", 4) == [tasks[number] for number in lost]


def test_the_slowest_tasks_come_first_once_it_is_known_which_they_are():
    experiment = replace(TINY, arms=(Arm("random", 1), Arm("ucb_phi", 1), Arm("thompson", 1)), replicates=6)
    queue = SlowestFirst(tasks_of(experiment, (), "cpu", 4))
    tried = [next(queue) for _ in range(3)]
    assert {task.ids[0].arm for task in tried} == {"random", "ucb_phi", "thompson"}
    for task in tried:
        queue.learn(task.ids, {"random": 1.0, "ucb_phi": 5.0, "thompson": 90.0}[task.ids[0].arm])
    assert [task.ids[0].arm for task in queue] == ["thompson"] * 2 + ["ucb_phi"] * 2 + ["random"] * 2


def test_of_one_rule_the_largest_tasks_come_first():
    names = ("forrester", "hartmann6", "trid")
    experiment = replace(TINY, arms=TINY.arms[:1], functions=names)
    known = [((RunId("tiny", "trid", "random", 9),), 1.0)]
    queue = SlowestFirst(tasks_of(experiment, (), "cpu", 64), known)
    assert [task.ids[0].function for task in queue] == ["hartmann6", "trid", "forrester"]


@pytest.mark.parametrize(
    ("names", "prior", "alike"),
    [
        (("forrester", "gramacy_lee"), "likelihood", True),
        (("forrester", "sphere"), "likelihood", False),  # dimensions
        (("sphere", "griewank"), "likelihood", False),  # kernel families
        (("sphere", "griewank"), "learned", True),
        (("sphere", "griewank"), "averaged", True),
    ],
)
def test_a_group_has_one_arm_dimension_and_kernel_family(names, prior, alike):
    experiment = replace(TINY, functions=names, scale="standardised", prior=prior)
    one, other = (group_of(experiment, RunId("tiny", name, "random", 0)) for name in names)
    assert (one == other) == alike
    assert one == group_of(experiment, RunId("tiny", names[0], "random", 2))
    assert one != group_of(experiment, RunId("tiny", names[0], "ucb_phi", 0))


def test_tasks_carry_the_modules_that_workers_must_import():
    assert {task.imports for task in tasks_of(TINY, (), "cpu", 2)} == {()}
    assert {task.imports for task in tasks_of(TINY, (), "cpu", 2, ("mine",))} == {("mine",)}
