"""Checks of everybody's own answers, and how likely each answer was."""

import pytest

import askwise as aw
from askwise.study import by_participant, foretold


def told(answers: dict[str, list[int]]) -> aw.Study:
    """A study in which everybody gives these answers, by place."""
    study = aw.Study(aw.Space(gain=aw.Real(0, 10)), seed=1, initial=3)
    for who, theirs in answers.items():
        for place in theirs:
            study.tell(study.ask(who), place, seconds=2.0)
    return study


def test_everybody_is_flagged_where_the_whole_check_names_them():
    study = told({"Ann": [0, 1] * 5, "Bo": [0] * 15})
    each = by_participant(study.plan, study.history())
    flagged = {who: {one.name: one.flagged for one in found} for who, found in each.items()}
    assert flagged == {"Ann": {"sides": False, "speed": False}, "Bo": {"sides": True, "speed": False}}
    (whole,) = (check for check in study.checks() if check.name == "sides")
    assert whole.flagged
    assert whole.detail.startswith("Participant Bo:")


def test_the_limit_is_that_of_all_who_are_checked():
    # eleven answers alike have a ratio of 2^11 / 12 = 171: over 100 of one person, below 300 of two
    alone = by_participant((study := told({"Bo": [0] * 11})).plan, study.history())
    assert alone["Bo"][0].flagged
    both = by_participant((study := told({"Ann": [0, 1], "Bo": [0] * 11})).plan, study.history())
    assert not both["Bo"][0].flagged


def test_an_answer_that_contradicts_all_others_is_unlikely_and_a_tie_has_no_chance():
    study = aw.Study(aw.Space(gain=aw.Real(0, 10)), seed=1)
    for k in range(12):
        study.record([{"gain": 1.0 + 0.1 * k}, {"gain": 8.0}], 1)
    study.record([{"gain": 2.0}, {"gain": 8.0}], 0)
    study.record([{"gain": 2.0}, {"gain": 8.0}], None)
    entries = study.history()
    *likely, against, tied = foretold(study.plan, entries, study.belief())
    assert min(likely) > 0.6
    assert against < 0.1
    assert tied is None
    without = aw.Study(study.space, seed=1)
    for entry in entries[:-2]:
        without.record(list(entry.options), entry.answer)
    again = without.compare({"gain": 2.0}, {"gain": 8.0}).probability
    assert against == pytest.approx(again, abs=0.1)  # its own answer was left out
