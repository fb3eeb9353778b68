"""What the experimenter's pages compute is kept, and waits for participants."""

import threading
import time

import askwise as aw
from askwise.web import desk
from askwise.web.desk import Desk, key_of


def test_the_same_answers_are_computed_once_even_by_several_at_once():
    at, calls = Desk(), []

    def slow() -> int:
        calls.append(1)
        time.sleep(0.02)
        return 7

    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(at.get("key", slow))) for _ in range(5)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert found == [7] * 5
    assert len(calls) == 1
    assert at.get("other", lambda: 8) == 8


def test_participants_go_first():
    at, order = Desk(), []
    with at.participant():
        thread = threading.Thread(target=lambda: at.get("key", lambda: order.append("experimenter")))
        thread.start()
        time.sleep(0.05)
        order.append("participant")
    thread.join()
    assert order == ["participant", "experimenter"]


def test_the_experimenter_does_not_wait_for_ever(monkeypatch):
    monkeypatch.setattr(desk, "_PATIENCE", 0.01)
    at = Desk()
    with at.participant():
        assert at.get("key", lambda: 1) == 1


def test_old_results_are_forgotten(monkeypatch):
    monkeypatch.setattr(desk, "_KEPT", 2)
    at = Desk()
    for number in range(3):
        at.get(number, lambda: "first")
    assert at.get(0, lambda: "again") == "again"
    assert at.get(2, lambda: "again") == "first"


def test_answers_have_the_same_name_whatever_is_open():
    study = aw.Study(aw.Space(gain=aw.Real(0, 1)))
    study.tell(study.ask(), 0)
    before = key_of(study)
    question = study.ask()
    assert key_of(study) == before
    study.tell(question, 1)
    after = key_of(study)
    study.amend(question, 0)
    assert len({before, after, key_of(study)}) == 3
    study.void(question)
    assert key_of(study) == before
