"""Every kind of answer: given, typed, kept, tabled and shown is one and the same."""

import json

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given, settings

from askwise.errors import Refused
from askwise.model import Data
from askwise.study import FEEDBACKS, Answer, labels
from askwise.study.answers import Pairs, Preference, Ranking, Tie, YesNo
from askwise.study.answers.base import KINDS

SIZES = {"binary": 1, "duel": 2, "batch": 4}
YES_NO, DUELS = st.booleans().map(YesNo), st.integers(0, 1).map(Preference)
RANKINGS = st.permutations(range(4)).flatmap(
    lambda order: st.integers(1, 3).map(lambda count: Ranking(tuple(order[:count])))
)
PAIRS = st.lists(
    st.permutations(range(4)).map(lambda order: tuple(order[:2])),
    min_size=1,
    max_size=5,
    unique_by=lambda pair: frozenset(pair),
).map(lambda pairs: Pairs(tuple(sorted(pairs))))
ANSWERED = st.one_of(
    st.tuples(st.just("binary"), YES_NO | st.just(Tie())),
    st.tuples(st.just("duel"), DUELS | st.just(Tie())),
    st.tuples(st.just("batch"), RANKINGS | PAIRS | st.just(Tie())),
)


@settings(max_examples=40)
@given(ANSWERED)
def test_an_answer_survives_the_record_a_table_and_a_terminal(answered):
    feedback, answer = answered
    size, kind = SIZES[feedback], FEEDBACKS[feedback]
    names = labels(size)
    assert Answer.from_json(json.loads(json.dumps(answer.to_json()))) == answer
    found = [one for one in KINDS.values() if one.from_outcomes(answer.outcomes(names)) is not None]
    assert [one.from_outcomes(answer.outcomes(names)) for one in found] == [answer]
    typed = answer.text(names)
    assert (Pairs.typed(typed, names) if isinstance(answer, Pairs) else kind.typed(typed, names)) == answer
    assert kind.read(size, answer) == answer
    assert hash(answer) == hash(Answer.from_json(answer.to_json()))


@settings(max_examples=40)
@given(ANSWERED)
def test_an_answer_has_a_verdict_for_each_option(answered):
    feedback, answer = answered
    verdicts = answer.verdicts(SIZES[feedback])
    assert len(verdicts) == len(answer.outcomes(labels(SIZES[feedback]))) == SIZES[feedback]
    if isinstance(answer, Preference | Ranking):
        assert verdicts.count("good") == 1


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"yes": True}, ["good"]),
        ({"yes": False}, ["bad"]),
        ({"prefers": 1}, ["bad", "good"]),
        ({"ranking": [2, 0]}, ["bad", "bad", "good"]),
        ({"pairs": [[0, 1]]}, ["good", "bad", "undecided"]),
        ({"pairs": [[0, 1], [1, 0]]}, ["bad", "bad"]),
        ({"undecided": True}, ["undecided", "undecided"]),
    ],
)
def test_the_verdicts_of_each_kind_of_answer(answer, expected):
    assert Answer.from_json(answer).verdicts(len(expected)) == expected


def test_the_format_of_recorded_answers_has_not_changed():
    kept = [YesNo(True), Preference(1), Ranking((2, 0)), Pairs(((0, 1), (2, 1))), Tie()]
    assert [answer.to_json() for answer in kept] == [
        {"yes": True},
        {"prefers": 1},
        {"ranking": [2, 0]},
        {"pairs": [[0, 1], [2, 1]]},
        {"undecided": True},
    ]


def same(one: Data, other: Data) -> bool:
    parts = ("points", "first", "second", "signs", "point_noise", "row_noise", "margin")
    return all(torch.equal(getattr(one, part), getattr(other, part)) for part in parts)


def test_rows_are_those_of_the_definitions(generator):
    x = torch.rand(2, 4, 3, dtype=torch.float64, generator=generator)
    assert same(YesNo.rows(x[:, :1], [YesNo(True), YesNo(False)]), Data.binary(x[:, 0], [1, 0]))
    assert same(Preference.rows(x[:, :2], [Preference(0), Preference(1)]), Data.duels(x[:, :2], [1, 0]))
    orders = [Ranking((2, 0)), Ranking((1, 3))]
    assert same(Ranking.rows(x, orders), Data.rankings(x, [[2, 0], [1, 3]]))
    both = [Pairs(((2, 0), (3, 1))), Pairs(((0, 1),))]
    duels = torch.stack([x[0, [2, 0]], x[0, [3, 1]], x[1, [0, 1]]])
    assert same(Pairs.rows(x, both), Data.duels(duels, [1, 1, 1]))
    assert same(Tie.rows(x, [Tie(), Tie()]), Data.ties(x))


def test_a_full_ranking_does_not_name_the_last_option():
    read = FEEDBACKS["batch"].read
    assert read(3, ranking=[2, 0, 1]) == read(3, ranking=[2, 0]) == Ranking((2, 0))
    assert read(3, winner=1) == read(3, 1) == read(3, ranking=[1]) == Ranking((1,))


def test_pairs_have_no_order_among_themselves():
    read = FEEDBACKS["batch"].read
    assert read(3, pairs=[(2, 1), (0, 1)]) == read(3, pairs=np.array([[0, 1], [2, 1]]))


@pytest.mark.parametrize(
    ("text", "answer"),
    [("yes", True), ("Y", True), ("true", True), ("no", False), ("n", False), ("FALSE", False)],
)
def test_yes_and_no_in_all_spellings(text, answer):
    kind = FEEDBACKS["binary"]
    assert kind.typed(text, ["A"]) == YesNo(answer)
    for other in ("1", "0", "A", "", "yes no"):
        with pytest.raises(Refused, match=r"^answer must be yes or no; got .* Write yes, no, tie"):
            kind.typed(other, ["A"])


@pytest.mark.parametrize("text", ["tie", "Can't decide", "can\u2019t-decide", "cant-decide"])
@pytest.mark.parametrize("feedback", SIZES)
def test_a_tie_in_all_spellings(text, feedback):
    assert FEEDBACKS[feedback].typed(f" {text} ", labels(SIZES[feedback])) == Tie()


@pytest.mark.parametrize("text", ["E", "A,E", "A>A", "A;B", "0", "", "A B"])
def test_anything_but_a_ranking_is_refused(text):
    with pytest.raises(Refused):
        FEEDBACKS["batch"].typed(text, labels(4))


def test_an_answer_to_another_kind_of_question_is_refused():
    with pytest.raises(Refused, match=r"^answer must be 0 or 1"):
        FEEDBACKS["duel"].read(2, Ranking((0,)))
    with pytest.raises(Refused, match=r"^ranking must name options of 0 to 1"):
        FEEDBACKS["batch"].read(2, Ranking((3,)))


def test_an_answer_that_this_version_does_not_know_is_refused_with_a_message():
    with pytest.raises(Refused, match=r"^answer must be one of .*; got \{'stars': 3\}\. Update askwise"):
        Answer.from_json({"stars": 3})


def test_letters_go_on_after_z():
    assert labels(3) == ["A", "B", "C"]
    assert labels(53)[25:28] == ["Z", "AA", "AB"]
    assert labels(53)[-1] == "BA"
    assert len(set(labels(800))) == 800
