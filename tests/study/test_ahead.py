"""Questions that another process computes ahead are those that this one would have computed."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from gpytorch.kernels import RBFKernel, ScaleKernel

import askwise as aw
from askwise.study import ahead, shelf
from askwise.study.ahead import Ahead
from askwise.study.prefetch import Prefetch

SPACE = aw.Space(x=aw.Real(0, 1))
PLAN = {"participants": "separate", "seed": 2, "initial": 2}


@pytest.fixture
def helper():
    one = Ahead()
    one.start()
    one.start()  # once
    deadline = time.monotonic() + 60
    while not one._ready and time.monotonic() < deadline:
        time.sleep(0.02)
    assert one._ready
    yield one
    one.close()


def asked(study: aw.Study, count: int, who: str = "Ann") -> list[list[dict]]:
    found = []
    for number in range(count):
        question = study.ask(who)
        found.append(question.options)
        study.tell(question, number % 2)
        for future in list(study._asking.prefetch._found.values()) if study._asking.prefetch else ():
            future.exception(60)
    return found


@pytest.mark.slow
def test_the_questions_are_the_same_bit_for_bit_and_kernels_are_shared(helper, tmp_path, monkeypatch):
    computed, learned = [], []
    here, fit = ahead.next_question, shelf.Shelf.put
    monkeypatch.setattr(ahead, "next_question", lambda *key: computed.append(key) or here(*key))
    monkeypatch.setattr(shelf.Shelf, "put", lambda *kept: learned.append(kept) or fit(*kept))
    alone = asked(aw.Study(SPACE, **PLAN), 10)
    with aw.Study(SPACE, storage=tmp_path / "a.db", prefetch=helper, **PLAN) as study:
        assert asked(study, 10) == alone
        assert computed == []  # all of them there
        before = len(learned)
        study.best(participant="Ann")
        assert len(learned) == before  # by the kernel that was learned there
        helper._process.kill()
        assert asked(study, 2) == asked(aw.Study(SPACE, **PLAN), 12)[10:]
        assert len(computed) > 0
        assert all(one.equal for one in study.replay())


@pytest.mark.slow
def test_it_ends_with_the_program_that_started_it(tmp_path):
    script = "import time; from askwise.study.ahead import Ahead; a = Ahead(); a.start(); "
    script += "print(a._process.pid, flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as program:
        number = int(program.stdout.readline())
        assert Path(f"/proc/{number}").exists()
        program.kill()
    deadline = time.monotonic() + 60
    while Path(f"/proc/{number}/cmdline").exists() and time.monotonic() < deadline:
        if not Path(f"/proc/{number}/cmdline").read_bytes():
            break  # nobody waits for it here
        time.sleep(0.05)
    else:
        assert not Path(f"/proc/{number}/cmdline").exists()


def test_until_it_is_ready_questions_are_computed_here():
    helper = Ahead()
    with aw.Study(SPACE, prefetch=helper, **PLAN) as study:
        assert asked(study, 4) == asked(aw.Study(SPACE, **PLAN), 4)
    helper.close()


def test_a_plan_that_the_other_process_cannot_know_is_computed_here():
    fixed = aw.Study(SPACE, kernel=aw.kernel("se", lengthscale=[0.3]))
    assert ahead._written(fixed.plan) is not None
    scaled = ScaleKernel(RBFKernel() + RBFKernel())  # which cannot be written
    assert ahead._written(aw.Study(SPACE, kernel=scaled).plan) is None


def test_the_likeliest_answers_of_all_come_first():
    computed, free = [], threading.Event()
    prefetch = Prefetch(str, lambda key: free.wait(30) and computed.append(key))
    prefetch.expect([0], "first")  # which the background thread is busy with
    prefetch.expect([1, 2, 3], "Ann")
    prefetch.expect([4, 5], "Ben")
    free.set()
    prefetch._pool.submit(int).result()
    assert computed == [0, 1, 4, 2, 5, 3]
    prefetch.close()


def test_separate_people_have_kernels_of_their_own_on_the_shelf(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with aw.Study(SPACE, storage=tmp_path / "a.db", **PLAN) as study:
        for who in ("Ann", "Ben"):
            asked(study, 3, who)
            study.best(participant=who)
    assert len(list(tmp_path.glob("*.learned"))) == 2
    learned = []
    put = shelf.Shelf.put
    monkeypatch.setattr(shelf.Shelf, "put", lambda *kept: learned.append(kept) or put(*kept))
    with aw.Study.open(tmp_path / "a.db") as study:
        for who in ("Ann", "Ben"):
            study.best(participant=who)
    assert learned == []
