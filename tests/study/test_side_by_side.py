"""People with models of their own are asked side by side, and their next questions are computed ahead."""

import threading

import askwise as aw
from askwise.study.prefetch import _PEOPLE, Prefetch

SPACE = aw.Space(gain=aw.Real(0, 10), tone=aw.Real(0, 1))


def test_nobody_waits_for_a_question_of_somebody_else(monkeypatch):
    study = aw.Study(SPACE, participants="separate", seed=1)
    compute, slow, go_on = study._asking.choose, threading.Event(), threading.Event()

    def choose(model, situation):
        if situation.participant == "Ann":
            slow.set()
            assert go_on.wait(30)
        return compute(model, situation)

    monkeypatch.setattr(study._asking, "choose", choose)
    found = []
    ann = threading.Thread(target=lambda: found.append(study.ask("Ann")))
    ann.start()
    assert slow.wait(30)
    for _ in range(3):  # while Ann's question is being chosen
        question = study.ask("Ben")
        study.tell(question, 1)
    assert not found
    go_on.set()
    ann.join(30)
    assert [one.participant for one in study.history()] == ["Ben", "Ben", "Ben", "Ann"]
    alone = aw.Study(SPACE, participants="separate", seed=1)
    assert found[0].options == alone.ask("Ann").options
    assert all(one.equal for one in study.replay())


def test_many_threads_get_the_questions_of_their_own_studies(tmp_path):
    people = [f"person {number}" for number in range(4)]

    def answered(study, who):
        asked = []
        for number in range(5):
            question = study.ask(who)
            asked.append(question.options)
            study.tell(question, (number + len(who)) % 2)
        return asked

    def shared(who):
        together[who] = answered(study, who)

    plan = {"participants": "separate", "seed": 2, "initial": 3}
    alone = {who: answered(aw.Study(SPACE, **plan), who) for who in people[:2]}
    together: dict[str, list] = {}
    with aw.Study(SPACE, storage=tmp_path / "study.db", prefetch=True, **plan) as study:
        threads = [threading.Thread(target=shared, args=(who,)) for who in people]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert {who: together[who] for who in alone} == alone
        assert all(one.equal for one in study.replay())
    assert len(together) == len(people)


def test_threads_on_one_model_are_asked_different_questions_that_replay(tmp_path):
    found = []

    def answer(who):
        for number in range(4):
            question = study.ask(who)
            found.append(question)
            study.tell(question, number % 2)

    with aw.Study(SPACE, storage=tmp_path / "study.db", seed=2, initial=3, prefetch=True) as study:
        threads = [threading.Thread(target=answer, args=(f"person {number}",)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert sorted(one.id for one in found) == [*range(16)]
        assert len({str(one.options) for one in found}) == 16
        assert all(one.equal for one in study.replay())


def test_what_is_computed_ahead_for_one_does_not_depend_on_others():
    computed, free = [], threading.Event()

    def compute(key):
        free.wait(30)
        computed.append(key)
        return key

    prefetch = Prefetch(compute)
    prefetch.expect([1], "first")  # which the background thread is busy with
    prefetch.expect([2, 3], "Ann")
    prefetch.expect([4], "Ben")
    prefetch.expect([3, 5], "Ann")  # 2 is needed no longer
    free.set()
    prefetch._pool.submit(int).result()
    assert computed == [1, 4, 3, 5]
    assert [prefetch.get(key) for key in (1, 3, 4, 5)] == [1, 3, 4, 5]
    assert computed == [1, 4, 3, 5]
    for person in range(2 * _PEOPLE):
        prefetch.expect([10 + person], person)
    assert len(prefetch._found) <= _PEOPLE
    prefetch.close()
    prefetch.expect([7], "Ann")
    assert 7 not in prefetch._found
