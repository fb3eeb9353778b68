"""Every kind of answer: given, typed, kept, tabled and shown is one and the same."""

import json
import re

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given, settings

from askwise.errors import Refused
from askwise.model import Data
from askwise.study import FEEDBACKS, Answer, labels
from askwise.study.answers import Pairs, Preference, Ranking, Tie, Worst, YesNo
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
WORSTS = st.integers(0, 3).map(Worst)
ANSWERED = st.one_of(
    st.tuples(st.just("binary"), YES_NO | st.just(Tie())),
    st.tuples(st.just("duel"), DUELS | st.just(Tie())),
    st.tuples(st.just("batch"), RANKINGS | PAIRS | WORSTS | st.just(Tie())),
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
    for typed in (answer.text(names), answer.text(names).lower()):
        assert kind.typed(typed, names) == answer
    numbers = [str(number) for number in range(size)]
    assert kind.typed(answer.text(numbers), numbers, index=True) == answer
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
    if isinstance(answer, Worst):
        assert sorted(verdicts) == ["bad", "undecided", "undecided", "undecided"]


@settings(max_examples=40)
@given(ANSWERED)
def test_an_answer_in_words_names_every_option_and_no_two_answers_sound_alike(answered):
    feedback, answer = answered
    names = labels(SIZES[feedback])
    words = answer.in_words(names)
    if not isinstance(answer, Pairs | Preference) and len(names) > 1:
        assert sorted(re.findall(r"\b[A-D]\b", words)) == names
    others = [Worst(0), Ranking((0,)), Ranking((0, 1)), Pairs(((0, 1),)), Pairs(((0, 1), (0, 2))), Tie()]
    for other in others if feedback == "batch" else ():
        assert (other.in_words(names) == words) == (other == answer)


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("b", "B best; A, C and D below it"),
        ("b>a", "B best, then A; C and D below both"),
        ("b,a", "B best, then A; C and D below both"),
        ("b>a>d", "B best, then A, then D; C last"),
        ("b>a>d>c", "B best, then A, then D; C last"),
        ("pairs b>a", "B better than A; nothing else said"),
        ("pairs a>b, c>d", "A better than B, C better than D; nothing else said"),
        ("a>b;c>d", "A better than B, C better than D; nothing else said"),
        ("worst c", "C worst; nothing said of A, B and D"),
        ("-c", "C worst; nothing said of A, B and D"),
        ("tie", "can't decide between A, B, C and D"),
    ],
)
def test_what_is_typed_is_read_back_in_words(typed, words):
    read = FEEDBACKS["batch"].typed(typed, labels(4))
    assert read.in_words(labels(4)) == words
    assert read.compound == (typed not in ("b", "tie"))  # one key, or a word for one key


def test_duels_and_yes_no_answers_in_words():
    assert [Preference(k).in_words(["A", "B"]) for k in (0, 1)] == ["A preferred", "B preferred"]
    assert [YesNo(said).in_words(["A"]) for said in (True, False)] == ["yes", "no"]
    assert Tie().in_words(["A"]) == "can't decide"
    assert Tie().in_words(["A", "B"]) == "can't decide between A and B"
    assert Ranking((1,)).in_words(["A", "B"]) == "B best; A last"
    assert Ranking((4, 0, 1)).in_words(labels(6)) == "E best, then A, then B; C, D and F below these"


@pytest.mark.parametrize("text", ["b>a,c>d", "b>a, c", "a,b>c"])
def test_a_ranking_with_both_signs_is_refused_since_it_might_be_pairs(text):
    with pytest.raises(Refused, match=r"^ranking must have either > or commas .* or `pairs "):
        FEEDBACKS["batch"].typed(text, labels(4))


def test_b_over_a_is_the_same_ranking_wherever_it_is_typed():
    for size in (2, 3, 4):
        assert FEEDBACKS["batch"].typed("B>A", labels(size)) == Ranking((1, 0)[: size - 1])


def test_the_worst_of_two_is_refused_with_advice():
    advice = r"^worst must be one of 3 options or more; got 2 options\. Name the better one instead"
    with pytest.raises(Refused, match=advice):
        FEEDBACKS["batch"].read(2, worst=0)
    with pytest.raises(Refused, match=advice):
        FEEDBACKS["batch"].typed("worst a", labels(2))
    for told in ({"worst": 1}, {"answer": Worst(1)}):
        with pytest.raises(Refused, match=r"^answer must be 0 or 1.*; got worst=1\. Name the better one"):
            FEEDBACKS["duel"].read(2, **told)
        with pytest.raises(Refused, match=r"^answer must be True or False; got worst=1"):
            FEEDBACKS["binary"].read(1, **told)
    with pytest.raises(Refused, match=r"^answer must be the letter of the preferred option; got 'worst A'"):
        FEEDBACKS["duel"].typed("worst A", labels(2))


@pytest.mark.parametrize("value", [4, -1, 1.5, True, "C", [2]])
def test_a_worst_that_is_no_option_is_refused(value):
    with pytest.raises(Refused, match=r"^worst must be one of the options 0 to 3; got "):
        FEEDBACKS["batch"].read(4, worst=value)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"yes": True}, ["good"]),
        ({"yes": False}, ["bad"]),
        ({"prefers": 1}, ["bad", "good"]),
        ({"ranking": [2, 0]}, ["bad", "bad", "good"]),
        ({"pairs": [[0, 1]]}, ["good", "bad", "undecided"]),
        ({"pairs": [[0, 1], [1, 0]]}, ["bad", "bad"]),
        ({"worst": 1}, ["undecided", "bad", "undecided"]),
        ({"undecided": True}, ["undecided", "undecided"]),
    ],
)
def test_the_verdicts_of_each_kind_of_answer(answer, expected):
    assert Answer.from_json(answer).verdicts(len(expected)) == expected


def test_the_format_of_recorded_answers_has_not_changed():
    kept = [YesNo(True), Preference(1), Ranking((2, 0)), Pairs(((0, 1), (2, 1))), Worst(2), Tie()]
    assert [answer.to_json() for answer in kept] == [
        {"yes": True},
        {"prefers": 1},
        {"ranking": [2, 0]},
        {"pairs": [[0, 1], [2, 1]]},
        {"worst": 2},
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
    assert same(Worst.rows(x, [Worst(3), Worst(1)]), Data.worst(x, [3, 1]))
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


@pytest.mark.parametrize(
    "text",
    [
        *("E", "A,E", "A>A", "A;B", "A>B;", "0", "", "A B", "A-B", "-E", "-1", "--A", "worst", "worstA"),
        *("worst E", "worst A B", "-A,B", "pairs", "pairs A", "pairs A>B>C", "pairsA>B", "pairs A>B, A>B"),
    ],
)
def test_anything_else_is_refused(text):
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
