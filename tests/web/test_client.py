"""The client has the methods of a study, gets the same from a server, and survives lost connections."""

import inspect
import threading
import time

import pytest

import askwise as aw
from askwise.errors import Unreachable
from askwise.study import load
from served import DUEL, Process, in_thread

SAME = ["ask", "tell", "skip", "amend", "void", "expire", "history", "entry", "best", "status", "checks"]
SAME += ["predict", "compare", "top", "undo", "change", "changes"]
SAME += ["level_set", "classified", "importance", "raters", "answers_by_participant", "participants"]


@pytest.mark.parametrize("name", SAME)
def test_methods_take_what_those_of_a_study_take(name):
    def parameters(kind):
        found = inspect.signature(getattr(kind, name)).parameters.values()
        return [(one.name, one.kind, one.default) for one in found]

    assert parameters(aw.Client) == parameters(aw.Study)


def test_a_client_gets_what_a_study_gives(settings):
    study = aw.Study.of(load(DUEL).plan())
    with in_thread(settings) as link:
        client = aw.Client(link, "hall")
        for number in range(6):
            question, there = study.ask(), client.ask()
            assert there == question
            answer = None if number == 4 else number % 2
            study.tell(question, answer, seconds=1)
            client.tell(there, answer, seconds=1)
        for one in (study, client):
            one.record([{"gain": 1.0, "mode": "soft"}, {"gain": 2.0, "mode": "hard"}], 1, participant="Ann")
            one.skip(one.ask(), reason="phone")
            one.amend(0, 1)
            one.void(1)
        for name in ("best", "status", "checks", "top", "importance", "participants", "raters"):
            assert getattr(client, name)() == getattr(study, name)()
        first, second = {"gain": 3.0, "mode": "soft"}, {"gain": 30.0, "mode": "hard"}
        assert client.best(reference=first) == study.best(reference=first)
        assert client.predict([first, second]) == study.predict([first, second])
        assert client.compare(first, second) == study.compare(first, second)
        assert [one.answered.identity for one in client.history() if one.status == "answered"] == [
            one.answered.identity for one in study.history() if one.status == "answered"
        ]
        with pytest.raises(aw.Conflict, match="question 2 must be open to be answered"):
            client.tell(2, 1)
        with pytest.raises(aw.NotFound, match="question must be one that was asked"):
            client.tell(99, 1)
        with pytest.raises(aw.Refused, match="answer must be 0 or 1"):
            client.amend(0, 7)
        with pytest.raises(aw.Refused, match="study must be named"):
            aw.Client(link).ask()
        made = client.create(DUEL.replace("hall", "new hall"))
        assert made.ask().options == aw.Study.of(load(DUEL).plan()).ask().options
        assert [one["name"] for one in client.studies()] == ["hall", "new hall"]


def test_answers_are_taken_back_as_a_study_does_it_and_once_with_a_key(settings):
    study = aw.Study.of(load(DUEL).plan())
    with in_thread(settings) as link:
        client = aw.Client(link, "hall")
        for one in (study, client):
            for number in range(4):
                one.tell(one.ask("Ann" if number == 2 else None), 1)
            one.record([{"gain": 1.0, "mode": "soft"}, {"gain": 2.0, "mode": "hard"}], 1, participant="Bob")
        for arguments in ({}, {"n": 2, "participant": None, "key": "k"}, {"participant": "Ann"}):
            assert client.undo(**arguments) == study.undo(**arguments)
        for one in (study, client):
            again = one.undo(2, None, key="k")  # whose answer was lost
            assert [question.id for question in again] == [1, 3]
            assert [entry.status for entry in one.history()] == ["answered", *["open"] * 3, "voided"]
            with pytest.raises(aw.Conflict, match="key must be new, or come with the same request; got 'k'"):
                one.undo(1, key="k")
            with pytest.raises(aw.Conflict, match="key must be new"):
                one.undo(2, "Ann", key="k")
            with pytest.raises(aw.Refused, match="n must be at most 1, the number of answers and skips;"):
                one.undo(2)
            with pytest.raises(aw.Refused, match=r"n must be at most 0, the number of .* of Bob; got 1"):
                one.undo(participant="Bob")
        assert client.ask() == study.ask()


def test_a_study_is_changed_as_a_study_here_is(settings):
    study = aw.Study.of(load(DUEL).plan())
    wider = study.space.replaced(gain=aw.Real(0, 60))
    changes = [
        {"space": wider.where("gain <= 50"), "rule": "muc_joint", "reason": "too quiet"},
        {"kernel": aw.kernel("se", lengthscale=[0.3, 0.4, 0.4]), "expires": 3600, "repeats": 0.1},
        {"space": wider, "rule": None, "kernel": "se", "expires": None},
        {"repeats": 0.1},
    ]
    wrong = [
        ({"seed": 4}, "seed must stay as it was at the first question, 3, since"),
        ({"selfish": 4}, "setting must be one of space, rule"),
        ({"space": aw.Space(gain=aw.Real(0, 60))}, "parameters must stay gain, mode, in this order"),
        ({"space": wider.replaced(mode=aw.Choice(["soft", "mild"]))}, "values of mode must "),
        ({"rule": "no_rule"}, "rule must "),
        ({"repeats": 0.9}, "repeats must be a share of questions"),
        ({"expires": -1}, "expires must be a positive number"),
    ]
    with in_thread(settings) as link:
        client = aw.Client(link, "hall")
        for one in (study, client):
            for _ in range(3):
                one.tell(one.ask(), 1)
        for given in changes:
            assert client.change(**given) == study.change(**given)
            assert client.change(**given) == []
            assert client.ask() == study.ask()
            for one in (study, client):
                one.tell(one.ask(), 0)
        assert [(one.words, one.reason) for one in client.changes()] == [
            (one.words, one.reason) for one in study.changes()
        ]
        assert len(client.changes()) == 3
        for given, message in wrong:
            refused = []
            for one in (study, client):
                with pytest.raises(aw.Refused, match=message) as error:
                    one.change(**given)
                refused.append(str(error.value))
            assert refused[0] == refused[1]
        assert len(client.changes()) == 3
        assert client._get(f"{client._path}")["settings"] == study.plan.to_dict()


@pytest.mark.slow
def test_a_client_waits_for_a_server_that_comes_back_and_nothing_is_doubled(tmp_path):
    (tmp_path / "hall.toml").write_text(DUEL)
    server = Process(tmp_path, "hall.toml")
    port = server.port
    client, told = aw.Client(server.link, "hall", patience=60), []

    def answer() -> None:
        for _ in range(12):
            question = client.ask()
            client.tell(question, question.id % 2)
            client.record(question.options, 0, participant="recorded")
            told.append(question.id)

    answering = threading.Thread(target=answer)
    answering.start()
    try:
        for _ in range(2):
            before = len(told)
            while len(told) < before + 3:  # in the middle of answers
                time.sleep(0.01)
            server.kill()
            assert answering.is_alive()
            server = Process(tmp_path, "hall.toml", "--port", port)
        answering.join(120)
        history = client.history()
    finally:
        server.kill()
    assert len(told) == 12
    asked = [one for one in history if one.participant is None]
    assert [one.id for one in asked] == told
    assert [one.answer.prefers for one in asked] == [one.id % 2 for one in asked]
    assert sum(one.participant == "recorded" for one in history) == 12
    with aw.Study.open(tmp_path / "askwise.db", "hall") as study:
        assert all(one.equal for one in study.replay())


def test_without_a_server_it_says_so():
    with pytest.raises(Unreachable, match="server must be reachable"):
        aw.Client("http://127.0.0.1:9", "hall", "token", patience=0.3).ask()
    with pytest.raises(aw.Refused, match="address must begin with http"):
        aw.Client("localhost:8000")
