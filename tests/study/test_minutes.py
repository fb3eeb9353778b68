"""Kinds of question compared in minutes of simulated users."""

import math
from itertools import permutations

import numpy as np
import pytest
import scipy.stats

import askwise as aw
from askwise.errors import Refused
from askwise.study import KINDS, Contest, Course, Mark, Pace, Plan, Worst, compared, interval, lead
from askwise.study.answers import Preference, Ranking

HOUSE = r"(?s)^.+ must .+; got .+\. .+"


def plan(feedback: str = "duel", **settings: object) -> Plan:
    return Plan.checked(aw.Space(gain=aw.Real(0, 1), tone=aw.Real(0, 1)), feedback, **settings)


def sorting_steps(order: tuple[int, ...], size: int) -> int:
    """Comparisons of a binary insertion sort."""
    done: list[int] = []
    steps = 0
    for item in order[:size]:
        low, high = 0, len(done)
        while low < high:
            middle, steps = (low + high) // 2, steps + 1
            low, high = (middle + 1, high) if item > done[middle] else (low, middle)
        done.insert(low, item)
    return steps


@pytest.mark.parametrize("size", [2, 3, 4])
def test_a_ranking_takes_the_comparisons_of_the_slowest_sort(size):
    slowest = max(sorting_steps(order, size) for order in permutations(range(size)))
    assert KINDS["ranking"].comparisons(size) == slowest


def test_seconds_are_the_sum_of_turn_looks_and_comparisons():
    pace = Pace(turn=1, look=10, compare=100)
    assert [pace.seconds(KINDS[key], KINDS[key].size(4)) for key in ("duel", "best", "worst", "ranking")] == [
        *(121, 341, 341, 541)
    ]


def test_users_say_what_they_are_asked_of_the_order_they_see():
    seen = Ranking((2, 0, 3))  # 1 is last
    assert KINDS["best"].said(seen) == Ranking((2,))
    assert KINDS["worst"].said(seen) == Worst(1)
    assert KINDS["ranking"].said(seen) == seen
    assert KINDS["duel"].said(Preference(1)) == Preference(1)


def test_a_study_keeps_its_own_plan_for_its_own_kind_and_size():
    own = plan("batch", size=4, rule="random")
    assert KINDS["best"].plan(own, 4) is own
    assert KINDS["best"].plan(own, 5).size == 5
    duels = KINDS["duel"].plan(own, 4)
    assert (duels.feedback, duels.size, str(duels.spelled_rule)) == ("duel", 2, "muc")
    assert (duels.people, duels.space, duels.seed) == (own.people, own.space, own.seed)


def test_every_kind_is_asked_for_the_same_time():
    wanted = Contest(plan(rule="random"), 0.6, 2, 0, pace=Pace(1, 1, 1))
    steps: list[None] = []
    courses = compared(wanted, lambda: steps.append(None))
    assert [one.kind for one in courses] == list(KINDS)
    for one in courses:
        assert [mark.minutes for mark in one.after] == pytest.approx([0.15, 0.3, 0.6])
        assert [mark.answers for mark in one.after] == [
            max(1, math.floor(part * 36 / one.seconds)) for part in (0.25, 0.5, 1)
        ]
        assert all(len(mark.share) == 2 for mark in one.after)
        assert all(share <= 1 for mark in one.after for share in mark.share)
    assert len(steps) == wanted.total == 2 * sum(one.after[-1].answers for one in courses)
    assert compared(wanted) == courses


def test_known_seconds_replace_those_of_the_pace():
    wanted = Contest(plan(), 1, 1, 0, seconds={"duel": 3.0})
    assert wanted.seconds_of(KINDS["duel"]) == 3
    assert wanted.answers(KINDS["duel"], 1) == 20
    assert wanted.seconds_of(KINDS["best"]) == Pace().seconds(KINDS["best"], 4)


@pytest.mark.parametrize(
    "settings",
    [
        {"minutes": 0.0},
        {"minutes": math.nan},
        {"minutes": 0.05},
        {"seconds": {"tie": 3.0}},
        {"seconds": {"duel": 0.0}},
    ],
)
def test_what_cannot_be_compared_is_refused(settings):
    with pytest.raises(Refused, match=HOUSE):
        Contest(**({"plan": plan(), "minutes": 10.0, "users": 1, "seed": 0} | settings))


def test_yes_no_studies_and_negative_times_are_refused():
    with pytest.raises(Refused, match="study must compare settings"):
        Contest(plan("binary"), 10, 1, 0)
    with pytest.raises(Refused, match="look must be a number of seconds"):
        Pace(look=-1)


def test_a_space_with_too_few_settings_is_refused_before_anybody_answers():
    few = Plan.checked(aw.Space(mode=aw.Choice(["a", "b", "c"])))
    Contest(few, 10, 1, 0, size=3)
    with pytest.raises(Refused, match="space must have 4 settings or more"):
        Contest(few, 10, 1, 0)


def test_the_interval_is_that_of_students_t():
    values = [0.2, 0.5, 0.9, 0.4]
    want = scipy.stats.t.interval(0.95, 3, np.mean(values), scipy.stats.sem(values))
    assert interval(values) == pytest.approx(want)
    assert interval([0.5]) is None


def test_the_lead_is_over_the_same_users():
    def course(kind: str, share: list[float]) -> Course:
        return Course(kind, kind, 1.0, [Mark(1.0, 1, share)])

    ahead, behind = lead([course("duel", [0.1, 0.5, 0.9]), course("best", [0.2, 0.6, 1.0])])
    assert ahead.kind == "best"
    assert behind["duel"] == pytest.approx((0.1, 0.1))  # however much users differ
