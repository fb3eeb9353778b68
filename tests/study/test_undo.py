"""Answers taken back: what the record says, what is asked next, and who else is concerned."""

import pytest

import askwise as aw
from askwise.study import Preference

SPACE = aw.Space(gain=aw.Real(0, 10))


def study(place=None, **settings) -> aw.Study:
    return aw.Study(SPACE, feedback="duel", storage=place, initial=99, **settings)


def answered(asked: aw.Study, count: int, participant: str | None = None, answer: int = 0) -> list[int]:
    numbers = []
    for _ in range(count):
        question = asked.ask(participant)
        asked.tell(question, answer)
        numbers.append(question.id)
    return numbers


def statuses(asked: aw.Study) -> list[str]:
    return [entry.status for entry in asked.history()]


def test_what_was_undone_is_asked_again_in_its_order_and_before_what_is_open():
    asked = study()
    answered(asked, 4)
    before = {entry.id: list(entry.options) for entry in asked.history()}
    waiting = asked.ask()
    assert [question.id for question in asked.undo(3)] == [1, 2, 3]
    assert statuses(asked) == ["answered", "open", "open", "open", "open"]
    assert asked.count() == 1
    for number in (1, 2, 3):
        again = asked.ask()
        assert (again.id, again.options) == (number, before[number])
        asked.tell(again, 1, seconds=2.0)
    assert asked.ask() == waiting
    assert [entry.answer for entry in asked.history()[:4]] == [Preference(0), *[Preference(1)] * 3]
    assert asked.entry(1).seconds == 2.0
    assert all(one.equal for one in asked.replay())


def test_the_record_keeps_what_was_taken_back_and_survives_a_restart(tmp_path):
    file = tmp_path / "study.db"
    with study(file) as asked:
        answered(asked, 3)
    with aw.Study.open(file) as asked:
        asked.undo()
        asked.undo()  # one before the last
        assert statuses(asked) == ["answered", "open", "open"]
    with aw.Study.open(file) as asked:
        question = asked.ask()
        asked.tell(question, None)
        asked.undo()
        asked.tell(asked.ask(), 1)
        asked.skip(asked.ask(), reason="tired")
        assert (asked.entry(2).status, asked.entry(2).reason) == ("skipped", "tired")
        events = [(event.kind, event.question) for event in asked._ledger.record.events()]
    assert question.id == 1
    kinds = ["answered", "undone", "amended", "undone", "amended"]
    assert [kind for kind, number in events if number == 1] == ["asked", *kinds]
    assert [kind for kind, number in events if number == 2] == ["asked", "answered", "undone", "amended"]
    with aw.Study.open(file) as again:
        assert statuses(again) == ["answered", "answered", "skipped"]
        assert all(one.equal for one in again.replay())


def test_the_answers_given_last_are_taken_back_whatever_their_numbers():
    asked = study()
    one, two = asked.ask("anna"), asked.ask("bob")
    asked.tell(two, 1)
    asked.tell(one, 0)
    assert [question.id for question in asked.undo()] == [one.id]
    asked.amend(two, 0)
    asked.tell(asked.ask("anna"), 0)
    asked.amend(two, 1)
    assert [question.id for question in asked.undo()] == [two.id]


def test_a_skip_is_taken_back_too():
    asked = study()
    answered(asked, 1)
    asked.skip(asked.ask())
    assert [question.id for question in asked.undo()] == [1]
    assert asked.ask().id == 1


@pytest.mark.parametrize("participants", ["shared", "separate", "population"])
def test_a_participant_takes_back_their_own_and_is_asked_again(participants):
    asked = study(participants=participants)
    anna = answered(asked, 2, "anna")
    bob = answered(asked, 2, "bob")
    assert [question.id for question in asked.undo(2, "anna")] == anna
    assert asked.ask("bob").id not in (*anna, *bob)
    assert asked.ask("anna").id == anna[0]
    with pytest.raises(aw.Refused, match="n must be at most 0, the number of answers and skips of anna"):
        asked.undo(1, "anna")
    with pytest.raises(aw.Refused, match="skips of the one without a name; got 1"):
        asked.undo(1, None)


def test_what_was_recorded_from_elsewhere_is_taken_out_and_not_asked():
    asked = study()
    answered(asked, 1)
    asked.record([{"gain": 1}, {"gain": 2}], 1)
    assert [question.id for question in asked.undo(2)] == [0, 1]
    assert statuses(asked) == ["open", "voided"]
    assert asked.ask().id == 0


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("n", [0, -1, True, 1.0, "1"])
def test_anything_but_a_number_of_answers_is_refused(n):
    asked = study()
    answered(asked, 1)
    with pytest.raises(aw.Refused, match="n must be a whole number, 1 or more"):
        asked.undo(n)
    with pytest.raises(aw.Refused, match="n must be at most 1, the number of answers and skips; got 2"):
        asked.undo(2)
    assert asked.count() == 1


def test_another_process_answers_and_takes_back_at_the_same_time(tmp_path):
    file = tmp_path / "study.db"
    one = study(file)
    other = aw.Study.open(file)
    question = one.ask()
    other.tell(question, 0)
    assert [taken.id for taken in one.undo()] == [question.id]  # of which it did not know yet
    other.tell(question, 0)  # which did not know that it was taken back
    assert one.entry(question).answer == Preference(0)
    one.undo()
    with pytest.raises(aw.Conflict, match="must have an answer to amend"):
        other.amend(question, 1)
    other.skip(question)
    assert statuses(one) == ["skipped"]


def test_a_question_that_was_undone_has_time_again_before_it_expires(monkeypatch):
    clock = 1000.0
    monkeypatch.setattr("time.time", lambda: clock)
    asked = study(expires=60)
    answered(asked, 1)
    clock += 600
    asked.undo()
    assert asked.ask("bob").id == 1  # not that of somebody else
    assert statuses(asked) == ["open", "open"]


def test_with_a_key_answers_are_taken_back_once_also_after_a_restart(tmp_path):
    file = tmp_path / "study.db"
    with study(file) as asked:
        answered(asked, 4)
        first = asked.undo(2, key="k")
        asked.tell(2, 1)
    with aw.Study.open(file) as asked:
        assert asked.undo(2, key="k") == first
        assert statuses(asked) == ["answered", "answered", "answered", "open"]
        assert [question.id for question in asked.undo(key="another")] == [2]
        with pytest.raises(aw.Conflict, match="key must be new, or come with the same request; got 'k'"):
            asked.undo(key="k")
        with pytest.raises(aw.Refused, match="key must be a text"):
            asked.undo(key="")
