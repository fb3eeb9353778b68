"""The state folded from events."""

import pytest

from askwise.errors import Refused
from askwise.storage import Event
from askwise.study import Preference, State

BODY = {"options": [{"u": 1}, {"u": 2}, {"u": 0}], "order": [1, 2, 0]}
ASKED = Event(1, "asked", 0, 5.0, {**BODY, "participant": "ada", "context": None, "seen": 0})


def test_members_are_in_the_order_of_the_query():
    entry = State.after([ASKED]).entries[0]
    assert [option["u"] for option in entry.options] == [1, 2, 0]
    assert [option["u"] for option in entry.members] == [0, 1, 2]


def test_an_answer_keeps_who_was_asked_and_when():
    answer = Event(2, "answered", 0, 9.0, {"answer": {"prefers": 1}, "seconds": 4.0})
    state = State.after([ASKED, answer])
    entry = state.entries[0]
    assert (entry.participant, entry.asked, entry.seconds, entry.status) == ("ada", 5.0, 4.0, "answered")
    assert (entry.answer, state.last) == (Preference(1), 2)


def test_a_record_with_a_gap_or_about_nothing_is_refused():
    late = Event(3, "voided", 0, 9.0, {"reason": None})
    with pytest.raises(Refused, match=r"^event must be number 2; got 3\. The record has a gap"):
        State.after([ASKED, late])
    with pytest.raises(Refused, match=r"^event must be number 2; got 1\."):
        State.after([ASKED, ASKED])
    with pytest.raises(
        Refused, match=r"^event must be about a question that was asked; got one that was not"
    ):
        State.after([ASKED, Event(2, "voided", 1, 9.0, {"reason": None})])
