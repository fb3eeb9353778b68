"""Studies whose processes die, and many processes on one study: no answer is lost, and it goes on."""

import os
import random
import select
import signal
import time
from pathlib import Path

import pytest

import askwise as aw
from askwise.study import Preference, Study
from processes import finish, forked
from processes import place as place  # a fixture

SPACE = aw.Space(u=aw.Real(0, 1), k=aw.Integer(1, 5))
KERNEL = aw.kernel("se", 0.3, 4.0)
PEOPLE = 5


def create(place: str, rule: str) -> None:
    aw.Study(SPACE, "duel", rule, storage=place, kernel=KERNEL, seed=5, initial=3).close()


def answered(option: dict[str, float], other: dict[str, float]) -> int:
    return int(other["u"] > option["u"])


@pytest.mark.parametrize("rule", ["random", pytest.param("muc", marks=pytest.mark.slow)])
def test_many_processes_ask_and_tell_on_one_study(place, rule, tmp_path):
    create(place, rule)
    rounds = 2

    def work(person: str) -> None:
        study = Study.open(place)
        for _ in range(rounds):
            question = study.ask(person)
            assert question.participant == person
            study.tell(question, answered(*question.options))
        study.close()

    log = tmp_path / "log"
    finish([forked(lambda k=k: work(f"person {k}"), log) for k in range(PEOPLE)], log)
    study = Study.open(place)
    history = study.history()
    assert [entry.status for entry in history] == ["answered"] * (PEOPLE * rounds)
    assert all(entry.answer == Preference(answered(*entry.options)) for entry in history)
    assert all(question.equal for question in study.replay())
    study.close()


def killed_at_random(place: str, draw: random.Random, log: Path) -> set[int]:
    """Questions whose answers a process had been told are recorded, when it was killed."""
    reader, writer = os.pipe()

    def work() -> None:
        study = Study.open(place)
        while True:
            question = study.ask()
            study.tell(question, answered(*question.options))
            os.write(writer, f"{question.id}\n".encode())

    child = forked(work, log)
    os.close(writer)
    select.select([reader], [], [], 60)  # it has begun
    time.sleep(draw.uniform(0, 0.03))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(reader) as told:
        return {int(line) for line in told.read().split("\n") if line}


@pytest.mark.parametrize("rounds", [6, pytest.param(200, marks=pytest.mark.slow)])
def test_told_answers_survive_a_killed_process(rounds, tmp_path):
    place, draw = str(tmp_path / "study.db"), random.Random(1)
    create(place, "random")
    told: set[int] = set()
    for _ in range(rounds):
        now = killed_at_random(place, draw, tmp_path / "log")
        assert now
        assert not now & told
        told |= now
        study = Study.open(place)
        done = {entry.id for entry in study.history() if entry.status == "answered"}
        assert told <= done
        study.close()
    study = Study.open(place)
    numbers = [entry.id for entry in study.history()]
    assert numbers == list(range(len(numbers)))
    study.tell(study.ask(), 1)
    study.close()
    assert not (tmp_path / "log").exists() or not (tmp_path / "log").read_text()
