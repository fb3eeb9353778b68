"""A study needs settings to choose from."""

import pytest

import askwise as aw
from askwise.study.plan import Plan

WHOLE = {name: aw.Integer(0, 100_000) for name in "abc"}
FEW = r"^space must have {} settings or more.*; got {}.*\. \w+"


@pytest.mark.parametrize(
    ("space", "feedback", "size", "needed", "found"),
    [
        (aw.Space(a=aw.Choice(["x", "y"])), "batch", 3, 3, 2),
        (aw.Space(a=aw.Choice(["x", "y"]), t=aw.Choice([1, 2, 3], context=True)), "batch", 3, 3, 2),
        (aw.Space(a=aw.Integer(0, 3), b=aw.Ordinal([1, 2])), "batch", 9, 9, 8),
        (aw.Space(a=aw.Integer(0, 3)).where("a <= 0"), "binary", None, 2, 1),
        (aw.Space(a=aw.Integer(0, 3), b=aw.Choice([1, 2])).where("a <= 1"), "batch", 5, 5, 4),
        (aw.Space(a=aw.Real(0, 3)).where("a <= 0"), "duel", None, 2, 1),
        (aw.Space(**WHOLE).where("1000003 <= 7 * a + 11 * b + 13 * c <= 1000003"), "duel", None, 2, 0),
    ],
)
def test_too_few_settings_are_refused(space, feedback, size, needed, found):
    with pytest.raises(ValueError, match=FEW.format(needed, found)):
        aw.Study(space, feedback, size=size)


def test_as_many_settings_as_a_question_shows_are_enough():
    for size, space in (
        (2, aw.Space(a=aw.Choice(["x", "y"]))),
        (4, aw.Space(a=aw.Integer(0, 9)).where("a <= 3")),
    ):
        study = aw.Study(space, "batch" if size > 2 else "duel", size=size)
        assert len({tuple(option.values()) for option in study.ask().options}) == size


def test_a_study_that_was_begun_with_too_few_settings_is_still_read():
    plan = Plan.checked(aw.Space(a=aw.Choice(["x", "y"])), "duel").to_dict()
    plan["space"]["constraints"] = []
    assert Plan.from_dict({**plan, "feedback": "batch", "size": 3, "rule": "kss"}).size == 3


def test_a_context_that_leaves_too_few_settings_is_refused_and_nothing_is_asked():
    space = aw.Space(a=aw.Integer(0, 5), t=aw.Integer(0, 5, context=True)).where("a <= t")
    study = aw.Study(space, "duel")
    assert study.ask(context={"t": 1}).options
    with pytest.raises(ValueError, match=FEW.format(2, 1)):
        study.ask(context={"t": 0})
    assert len(study.history()) == 1


def test_an_equality_of_whole_numbers_is_searched():
    space = aw.Space(**{name: aw.Integer(0, 1000) for name in "abc"})
    study, asked = aw.Study(space.where("103 <= 7 * a + 11 * b + 13 * c <= 103"), "duel", rule="random"), []
    for _ in range(12):
        question = study.ask()
        asked += [tuple(option.values()) for option in question.options]
        assert len({tuple(option.values()) for option in question.options}) == 2
        study.tell(question, 0)
    every = [
        (a, b, c) for a in range(15) for b in range(10) for c in range(8) if 7 * a + 11 * b + 13 * c == 103
    ]
    assert set(asked) <= set(every)
    assert len(set(asked)) == len(every)
