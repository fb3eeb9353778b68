"""Servers that freeze or start up, and programs that wait for each other."""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from sqlalchemy.exc import DBAPIError

import askwise as aw
import postgres
from askwise.storage import open_record, turns
from askwise.storage.database import Database


def test_a_frozen_server_is_given_up_and_the_same_answer_again_is_safe():
    with postgres.fresh_schema() as place:
        study = aw.Study(aw.Space(u=aw.Real(0, 1)), storage=f"{place}&timeout=1.5")
        question = study.ask()
        database = study._ledger.record._database
        server = database.read(lambda c: c.exec_driver_sql("SELECT pg_backend_pid()").scalar())
        try:
            os.kill(server, signal.SIGSTOP)
        except PermissionError:
            pytest.skip("the server belongs to somebody else")
        began = time.monotonic()
        try:
            with pytest.raises(
                ConnectionError, match=r"storage must be reachable; got .* the same call again is safe"
            ):
                study.tell(question, 1)
            assert time.monotonic() - began < 10
        finally:
            os.kill(server, signal.SIGCONT)
        study.tell(question, 1)
        study.tell(question, 1)
        assert [event.kind for event in study._ledger.record.events()] == ["asked", "answered"]
        study.close()


@pytest.mark.parametrize("text", ["0", "-1", "soon", "inf"])
def test_a_time_out_must_be_a_number(text):
    with pytest.raises(aw.Refused, match=r"^timeout must be a positive number of seconds; got"):
        aw.Study.open(f"postgresql://nobody@localhost/nowhere?timeout={text}")


def test_a_server_that_is_starting_up_is_waited_for(tmp_path, monkeypatch):
    record = open_record(str(tmp_path / "a.db"), "coffee", {})
    tried, once = [], Database._once

    def starting(self, work, begin):
        tried.append(begin)
        if len(tried) < 4:
            raise DBAPIError("", {}, SimpleNamespace(sqlstate="57P03"))
        return once(self, work, begin)

    monkeypatch.setattr(Database, "_once", starting)
    assert record.events() == []
    assert len(tried) == 4
    record.close()


def test_turns_are_taken_one_at_a_time_and_not_for_ever(monkeypatch):
    order = []

    def asks(number: int) -> None:
        with turns.turn("a study") as waited:
            order.append((number, waited))
            time.sleep(0.1)
            order.append((number, "done"))

    with ThreadPoolExecutor(3) as pool:
        for number in range(3):
            pool.submit(asks, number)
            time.sleep(0.03)
    assert order == [part for n in range(3) for part in ((n, n > 0), (n, "done"))]
    monkeypatch.setattr(turns, "PATIENCE", 0.1)
    with turns.turn("a study"), turns.turn("another") as other, turns.turn("a study") as same:
        assert (other, same) == (False, True)
    time.sleep(0.2)  # until the system has told the one who gave up
    with turns.turn("a study") as waited:
        assert not waited


def test_one_who_waits_is_patient_as_long_as_others_get_on(monkeypatch):
    monkeypatch.setattr(turns, "PATIENCE", 0.05)
    asked = iter([True, True, False])
    with turns.turn("a study"), turns.turn("a study", lambda: next(asked)) as waited:
        assert waited
    assert next(asked, None) is None
    monkeypatch.setattr(turns, "LONGEST", 0.2)
    began = time.monotonic()
    with turns.turn("b study"), turns.turn("b study", lambda: True):
        assert 0.2 <= time.monotonic() - began < 2


def test_a_wait_that_fails_leaves_the_queue(monkeypatch):
    monkeypatch.setattr(turns, "PATIENCE", 0.05)

    def fails() -> bool:
        raise OSError

    with turns.turn("a study"), pytest.raises(OSError), turns.turn("a study", fails):  # noqa: PT011
        pass
    time.sleep(0.2)
    with turns.turn("a study") as waited:
        assert not waited


def test_a_server_is_waited_for_as_long_as_others_get_on():
    with postgres.fresh_schema() as place:
        one, other = (Database(place) for _ in range(2))
        asked = iter([True, True, False])
        with (
            one.advisory_lock("x", 0.05, 5, bool),
            other.advisory_lock("x", 0.05, 5, lambda: next(asked)) as waited,
        ):
            assert waited
        assert next(asked, None) is None
        one.close()
        other.close()
