"""Processes that die at any moment, and many that write at once: nothing is lost, nothing happens twice."""

import contextlib
import os
import random
import select
import signal
import sqlite3
import struct
import threading
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from askwise.errors import Conflict
from askwise.storage import Event, Record, database, migrations, names, open_record
from processes import LONGEST, PROCESSES, at_once, forked
from processes import place as place  # a fixture


def following(last: Event | None) -> tuple[str, int]:
    """What one person does next: answer the open question, or ask another."""
    if last is None:
        return "asked", 0
    return ("answered", last.question) if last.kind == "asked" else ("asked", last.question + 1)


def write_until_killed(place: str, acknowledge: int) -> None:
    record = open_record(place, "coffee", {"seed": 1})
    last = (record.events() or [None])[-1]
    os.write(acknowledge, struct.pack("<i", 0))  # at work
    while True:
        kind, question = following(last)
        last = record.append(kind, question, {"points": [[0.1, 0.2]]}, expected=last.number if last else 0)
        os.write(acknowledge, struct.pack("<i", last.number))


def acknowledged_before_death(place: str, log: Path, delay: float, signs: int = 0) -> list[int]:
    """Numbers of the events that a child wrote before it was killed, ``delay`` s after ``signs`` messages."""
    reading, writing = os.pipe()
    child = forked(lambda: write_until_killed(place, writing), log)
    os.close(writing)
    with open(reading, "rb", buffering=0) as pipe:
        signals = b""
        while len(signals) < 4 * signs and select.select([pipe], [], [], LONGEST)[0]:
            signals += pipe.read(4) or b"stop"  # the child is gone
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        signals += pipe.read()
    assert os.WTERMSIG(status) == signal.SIGKILL, log.read_text()  # it did not end by itself
    return [number for (number,) in struct.iter_unpack("<i", signals)][1:]


def assert_whole(events: list[Event]) -> None:
    """One person's record: numbers without gaps, each question asked and then answered once."""
    assert [event.number for event in events] == list(range(1, len(events) + 1))
    before = [None, *events][: len(events)]
    assert [(event.kind, event.question) for event in events] == [following(event) for event in before]


def assert_intact(place: str) -> None:
    if not place.startswith("postgresql"):
        with closing(sqlite3.connect(place)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def kill_again_and_again(place: str, log: Path, rounds: int) -> None:
    chance = random.Random(rounds)
    acknowledged, events = 0, []
    for turn in range(rounds):
        numbers = acknowledged_before_death(place, log, chance.uniform(0, 0.03), signs=turn % 5)
        with closing(open_record(place, "coffee", {"seed": 1})) as record:
            new = record.events(after=len(events))
        # all that was acknowledged is there, and at most one that was written but not yet acknowledged
        assert numbers == [event.number for event in new[: len(numbers)]]
        assert len(new) - len(numbers) in (0, 1)
        assert_intact(place)
        acknowledged += len(numbers)
        events += new
    assert acknowledged >= 6 * (rounds // 5)  # the first sign is of life
    assert_whole(events)
    with closing(open_record(place, "coffee", None)) as record:
        assert record.events() == events
    assert log.read_text() == ""


def test_what_was_acknowledged_survives_kill_9(place, tmp_path):
    kill_again_and_again(place, tmp_path / "log", rounds=15)


@pytest.mark.slow
def test_what_was_acknowledged_survives_kill_9_two_hundred_times(place, tmp_path):
    kill_again_and_again(place, tmp_path / "log", rounds=200)


def test_a_killed_creation_is_finished_by_the_next_process(tmp_path):
    chance = random.Random(0)
    for number in range(8):
        place = str(tmp_path / f"{number}.db")
        acknowledged_before_death(place, tmp_path / "log", chance.uniform(0, 0.1))
        with closing(open_record(place, "coffee", {"seed": 1})) as record:
            assert_whole(record.events())
        assert_intact(place)


def make_older(place: str) -> None:
    """A database as an older askwise left it."""
    with closing(database.Database(place)) as base:
        base.write(lambda connection: migrations.upgrade(connection, "0001"))
    with closing(sqlite3.connect(place)) as connection, connection:
        connection.execute("INSERT INTO studies VALUES (1, 'coffee', '{\"seed\":1}', 0.0)")
        connection.execute("INSERT INTO events VALUES (1, 1, 'asked', 0, 0.0, '{}')")


def backups(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if ".backup-0001-" in path.name]


def test_a_killed_upgrade_is_finished_by_the_next_process(tmp_path):
    chance = random.Random(0)
    for number in range(6):
        folder = tmp_path / str(number)
        folder.mkdir()
        place = str(folder / "studies.db")
        make_older(place)
        acknowledged_before_death(place, tmp_path / "log", chance.uniform(0, 0.1))
        with closing(open_record(place, "coffee", None)) as record:
            assert_whole(record.events())
        assert_intact(place)
        assert not list(folder.glob("*.part*"))
        assert backups(folder)
        for backup in backups(folder):
            assert_intact(str(backup))
            with closing(sqlite3.connect(backup)) as connection:
                assert connection.execute("SELECT version_num FROM askwise_version").fetchall() == [("0001",)]
                assert connection.execute("SELECT number FROM events").fetchall() == [(1,)]


# ---- many at once


def asked(record: Record, worker: int) -> int:
    """The number of a question that nobody else has asked."""
    last = question = 0
    while True:
        for event in record.events(after=last):
            last, question = event.number, question + (event.kind == "asked")
        with contextlib.suppress(Conflict):
            return record.append("asked", question, {"by": worker}, expected=last).question


def tell(record: Record, question: int, worker: int) -> None:
    last = 0
    while True:
        last += len(record.events(after=last))
        with contextlib.suppress(Conflict):
            record.append("answered", question, {"by": worker}, expected=last)
            return


def test_many_processes_ask_and_tell_at_once(place, tmp_path):
    times = 4

    def work(worker: int) -> None:
        with closing(open_record(place, "coffee", {"seed": 1})) as record:
            for _ in range(times):
                tell(record, asked(record, worker), worker)

    at_once(work, tmp_path / "log")
    with closing(open_record(place, "coffee", None)) as record:
        events = record.events()
    total = PROCESSES * times
    assert [event.number for event in events] == list(range(1, 2 * total + 1))
    by_question = {
        kind: {e.question: e.body["by"] for e in events if e.kind == kind} for kind in ("asked", "answered")
    }
    assert sorted(by_question["asked"]) == list(range(total))
    assert by_question["asked"] == by_question["answered"]
    assert Counter(by_question["asked"].values()) == dict.fromkeys(range(PROCESSES), times)
    assert_intact(place)


def test_one_answer_wins_when_many_answer_the_same_question(place, tmp_path):
    questions = 8
    reading, writing = os.pipe()

    def work(worker: int) -> None:
        with closing(open_record(place, "coffee", None)) as record:
            for question in range(questions):
                with contextlib.suppress(ValueError):  # somebody was faster
                    tell(record, question, worker)
                    os.write(writing, bytes([question, worker]))

    with closing(open_record(place, "coffee", {})) as record:
        for question in range(questions):
            record.append("asked", question, {}, expected=question)
        at_once(work, tmp_path / "log")
        os.close(writing)
        with open(reading, "rb") as pipe:
            winners = dict(struct.iter_unpack("BB", pipe.read()))
        answers = record.events(after=questions)
    assert len(answers) == questions
    assert {event.question: event.body["by"] for event in answers} == winners


def test_many_processes_create_the_same_database_at_once(place, tmp_path):
    def work(worker: int) -> None:
        with closing(open_record(place, "coffee", {"by": worker})) as record:
            assert 0 <= record.settings["by"] < PROCESSES
            asked(record, worker)
        open_record(place, f"study {worker}", {}).close()

    at_once(work, tmp_path / "log")
    assert names(place) == ["coffee", *(f"study {worker}" for worker in range(PROCESSES))]
    with closing(open_record(place, "coffee", None)) as record:
        assert sorted(event.body["by"] for event in record.events()) == list(range(PROCESSES))


def test_many_processes_create_new_files_at_once(tmp_path):
    def work(worker: int) -> None:
        for number in range(3):
            with closing(open_record(str(tmp_path / f"{number}.db"), "coffee", {})) as record:
                asked(record, worker)

    at_once(work, tmp_path / "log")
    for number in range(3):
        with closing(open_record(str(tmp_path / f"{number}.db"), "coffee", None)) as record:
            assert len(record.events()) == PROCESSES


def test_one_of_many_processes_upgrades(tmp_path):
    place = str(tmp_path / "studies.db")
    make_older(place)
    at_once(lambda worker: open_record(place, "coffee", None).close(), tmp_path / "log")
    assert len(backups(tmp_path)) == 1
    with closing(open_record(place, "coffee", None)) as record:
        assert [event.number for event in record.events()] == [1]


# ---- forks


def test_parent_and_child_may_use_the_same_record(place, tmp_path):
    with closing(open_record(place, "coffee", {})) as record:
        record.append("asked", 0, {}, expected=0)
        at_once(lambda worker: asked(record, worker), tmp_path / "log")
        question = asked(record, -1)
        assert question == PROCESSES + 1
        assert [event.number for event in record.events()] == list(range(1, PROCESSES + 3))
    assert_intact(place)


def test_a_process_may_fork_while_its_threads_write(place, tmp_path):
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            asked(record, -1)

    with closing(open_record(place, "coffee", {})) as record:
        thread = threading.Thread(target=write)
        thread.start()
        try:
            for _ in range(4):
                at_once(lambda worker: asked(record, worker), tmp_path / "log", processes=2)
        finally:
            stop.set()
            thread.join(timeout=60)
        assert not thread.is_alive()
        by = Counter(event.body["by"] for event in record.events())
        assert (by[0], by[1]) == (4, 4)
        assert [event.number for event in record.events()] == list(range(1, by.total() + 1))
