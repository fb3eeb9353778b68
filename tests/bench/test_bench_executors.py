"""Executors: every task is done, even if workers are killed."""

import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from askwise.bench import executors
from askwise.bench.executors import DaskCluster, Executor, Processes, ThisProcess

HOUSE = re.compile(r"^[^;\n]+ must [^;\n]+; got [^\n]+\. [^\n]+$")


def squared(number: int) -> int:
    return number**2


def deadly(task: tuple[Path, int]) -> int:
    """The number of tries; the first ``deaths`` of them kill the process; with -1 the first one raises."""
    marks, deaths = task
    tries = len(list(marks.parent.glob(f"{marks.name}*"))) + 1
    marks.with_name(f"{marks.name}{tries}").touch()
    if deaths == -1 and tries == 1:
        raise OSError("a passing trouble")
    if tries <= deaths:
        os.kill(os.getpid(), signal.SIGKILL)
    return tries


def circumstances(_: int) -> tuple[str, int, bool]:
    blocked = signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    return os.environ["OMP_NUM_THREADS"], os.getpid(), blocked


def wrong(number: int) -> int:
    raise ValueError(f"number must be another; got {number}. Try again.")


class Odd(Exception):
    def __init__(self, one: int, two: int) -> None:
        super().__init__("cannot be made from its one argument")


def odd(number: int) -> int:
    raise Odd(number, number)


def slow(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def all_of(executor: Executor, work, tasks) -> list:
    with closing(executor.results(work, tasks)) as results:
        return sorted(results)


def gone(pids: list[int], patience: float = 10.0) -> bool:
    until = time.monotonic() + patience
    while time.monotonic() < until:
        if not any(Path(f"/proc/{pid}").exists() for pid in pids):
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("executor", [ThisProcess(), Processes(4)], ids=["here", "processes"])
def test_every_task_is_done_once(executor):
    assert all_of(executor, squared, range(3)) == [(0, 0), (1, 1), (2, 4)]
    assert all_of(executor, squared, []) == []


@pytest.mark.parametrize("executor", [ThisProcess(), Processes(2)], ids=["here", "processes"])
def test_tasks_are_taken_only_when_a_worker_is_free(executor):
    taken = []
    tasks = (taken.append(number) or number for number in range(8))
    with closing(executor.results(squared, tasks)) as results:
        next(results)
        assert len(taken) <= executor.workers


def test_an_error_of_the_work_comes_back_with_its_traceback():
    with pytest.raises(ValueError, match="number must be another") as caught:
        all_of(Processes(1), wrong, [3])
    assert str(caught.value) == "number must be another; got 3. Try again."
    assert "in wrong" in caught.value.__notes__[0]
    assert not multiprocessing.active_children()


def test_an_error_that_cannot_be_pickled_comes_back_as_text():
    with pytest.raises(RuntimeError, match="cannot be made from its one argument"):
        all_of(Processes(1), odd, [3])


def test_a_worker_that_is_killed_is_replaced_and_its_task_tried_again(tmp_path):
    tasks = [(tmp_path / "fatal", 2), (tmp_path / "calm", 0), (tmp_path / "still", 0)]
    assert sorted(tries for _, tries in all_of(Processes(2), deadly, tasks)) == [1, 1, 3]


def test_a_task_that_kills_three_workers_is_given_up(tmp_path):
    with pytest.raises(OSError, match="got 3 that ended by signal 9") as caught:
        all_of(Processes(1), deadly, [(tmp_path / "fatal", 3)])
    assert HOUSE.match(str(caught.value))
    assert len(list(tmp_path.iterdir())) == 3


def test_a_worker_killed_while_it_has_nothing_to_do_is_replaced():
    with closing(Processes(1).results(squared, iter([2, 3]))) as results:
        assert next(results) == (2, 4)
        (worker,) = multiprocessing.active_children()
        os.kill(worker.pid, signal.SIGKILL)
        worker.join()
        assert next(results) == (3, 9)


def test_workers_have_one_thread_each_and_ignore_ctrl_c(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    ((_, (threads, pid, blocked)),) = all_of(Processes(1), circumstances, [0])
    assert threads == "1"
    assert blocked
    assert pid != os.getpid()
    assert "OMP_NUM_THREADS" not in os.environ
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_workers_end_when_results_are_closed():
    results = Processes(2).results(slow, iter([0.0, 60.0, 60.0]))
    next(results)
    pids = [worker.pid for worker in multiprocessing.active_children()]
    assert len(pids) == 2
    results.close()
    assert gone(pids)


PARENT = """
import multiprocessing, threading, time
from test_bench_executors import slow
from askwise.bench.executors import Processes

def told():
    while len(children := multiprocessing.active_children()) < 2:
        time.sleep(0.01)
    time.sleep(0.5)  # until they are at it
    print(*[child.pid for child in children], flush=True)

if __name__ == "__main__":
    threading.Thread(target=told, daemon=True).start()
    list(Processes(2).results(slow, [600.0, 600.0]))
"""


def test_workers_end_when_their_parent_is_killed(tmp_path):
    program = tmp_path / "parent.py"
    program.write_text(PARENT)
    paths = [*map(str, Path(__file__).parents[:2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    with subprocess.Popen([sys.executable, program], env=environment, stdout=subprocess.PIPE) as parent:
        pids = [int(word) for word in parent.stdout.readline().split()]
        assert len(pids) == 2
        parent.kill()
    assert gone(pids)


@pytest.mark.parametrize("make", [Processes, lambda workers: DaskCluster("local", workers)])
def test_there_must_be_workers(make):
    with pytest.raises(ValueError, match="workers must be 1 or more; got 0"):
        make(0)


# Dask


def test_dask_computes_and_outlives_a_killed_worker_and_a_passing_error(tmp_path):
    calm = [(tmp_path / f"calm-{number}-", 0) for number in range(5)]
    tasks = [(tmp_path / "fatal", 1), (tmp_path / "troubled", -1), *calm]
    executor = DaskCluster("local", 2)
    assert dict(all_of(executor, deadly, tasks)) == {tasks[0]: 2, tasks[1]: 2, **dict.fromkeys(calm, 1)}
    assert executor.workers == 2
    assert executor.is_here


def test_dask_without_its_package_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"Run `pip install askwise\[bench\]`\.$") as caught:
        all_of(DaskCluster("local"), squared, [1])
    assert HOUSE.match(str(caught.value))


def test_dask_says_if_there_is_no_scheduler(monkeypatch):
    monkeypatch.setattr(executors, "_PATIENCE", 0.5)
    with pytest.raises(OSError, match="--dask must be the address of a scheduler") as caught:
        all_of(DaskCluster("tcp://127.0.0.1:9"), squared, [1])
    assert HOUSE.match(str(caught.value))


@pytest.mark.slow
def test_a_cluster_elsewhere_outlives_the_loss_of_a_worker(tmp_path):
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50
    ) as cluster:
        executor = DaskCluster(cluster.scheduler_address)
        assert not executor.is_here
        victim = cluster.workers[0].pid
        threading.Timer(1.0, os.kill, (victim, signal.SIGKILL)).start()
        waits = [0.3 + number / 1000 for number in range(12)]
        assert all_of(executor, slow, waits) == [(wait, wait) for wait in waits]
        assert gone([victim])


@pytest.mark.slow
def test_dask_gives_up_a_task_that_kills_all_its_workers(tmp_path):
    with pytest.raises(OSError, match="workers must survive") as caught:
        all_of(DaskCluster("local", 1), deadly, [(tmp_path / "fatal", 99)])
    assert HOUSE.match(str(caught.value))


@pytest.mark.slow
def test_dask_raises_what_the_work_raises():
    with pytest.raises(ValueError, match=r"^number must be another; got 3\. Try again\.$"):
        all_of(DaskCluster("local", 1), wrong, [3])
