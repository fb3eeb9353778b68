"""A study goes on with the defaults that its rule had when the study was begun."""

import pytest

import askwise as aw
from askwise.storage import open_record
from askwise.study.plan import Plan

SPACE = aw.Space(gain=aw.Real(0, 40))


def stored_before(place: str, rule: str = "eiig") -> None:
    """A study whose record says ``eiig``, which meant a weight of 0.5."""
    settings = Plan.checked(SPACE, rule="eiig").to_dict() | {"rule": rule}
    open_record(place, "old", settings).close()


def test_what_is_recorded_without_a_setting_means_its_former_default(tmp_path):
    place = str(tmp_path / "study.db")
    stored_before(place)
    with aw.Study.open(place, "old") as study:
        assert study.rule == aw.rules.parse("eiig(k=0.5)")


@pytest.mark.parametrize("rule", ["eiig", "eiig(k=0.5)", aw.rules.parse("eiig(k=0.5)")])
def test_a_script_opens_such_a_study_again(tmp_path, rule):
    place = str(tmp_path / "study.db")
    stored_before(place)
    with aw.Study(SPACE, rule=rule, storage=place, name="old") as study:
        assert study.rule.k == 0.5


def test_another_weight_is_refused(tmp_path):
    place = str(tmp_path / "study.db")
    stored_before(place)
    with pytest.raises(aw.Refused, match="rule must be as study 'old' was created with, 'eiig'; got"):
        aw.Study(SPACE, rule="eiig(k=0.2)", storage=place, name="old")


def test_a_new_study_records_the_weight(tmp_path):
    place = str(tmp_path / "study.db")
    with aw.Study(SPACE, rule="eiig", storage=place, name="new") as study:
        assert study.plan.to_dict()["rule"] == "eiig(k=0.1)"
    with aw.Study(SPACE, rule="eiig", storage=place, name="new") as study:
        assert study.rule.k == 0.1


def test_a_change_to_the_rule_that_was_recorded_before_means_its_former_default(tmp_path):
    plan = Plan.checked(SPACE)
    assert plan.changed_by({"rule": "eiig"}).rule.k == 0.5
    assert plan.changed(rule="eiig").rule.k == 0.1


# duels averaged over no kernels before


def begun_before(place: str, kernel: str = "matern52") -> None:
    """A study of duels as it was begun when one kernel was the default."""
    settings = Plan.checked(SPACE, kernel=kernel).to_dict()
    open_record(place, "old", settings).close()


def test_duels_average_over_kernels_in_a_new_study(tmp_path):
    place = str(tmp_path / "study.db")
    with aw.Study(SPACE, storage=place, name="new") as study:
        assert study.plan.to_dict()["kernel"] == "averaged"
    with aw.Study(SPACE, "binary", storage=place, name="others") as study:
        assert study.plan.to_dict()["kernel"] == "matern52"


@pytest.mark.parametrize("kernel", ["matern52", "se"])
def test_a_study_goes_on_with_the_kernel_that_it_was_begun_with(tmp_path, kernel):
    place = str(tmp_path / "study.db")
    begun_before(place, kernel)
    with aw.Study(SPACE, storage=place, name="old") as study:
        assert study.plan.kernel == kernel
        assert not study.plan.averages


def test_a_kernel_that_somebody_asks_for_must_be_that_of_the_study(tmp_path):
    place = str(tmp_path / "study.db")
    begun_before(place)
    with pytest.raises(aw.Refused, match="kernel must be as study 'old' was created with, 'matern52'; got"):
        aw.Study(SPACE, kernel="averaged", storage=place, name="old")
