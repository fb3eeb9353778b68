"""Studies that average over kernels: asked, stored, replayed, recommended and predicted."""

import pytest

import askwise as aw
from askwise.model import Mixture
from askwise.study import YesNo
from askwise.study import model as models
from askwise.study.plan import Plan
from askwise.study.shelf import Shelf

SPACE = aw.Space(a=aw.Real(0, 1), b=aw.Real(0, 1))


def liking(option):
    return -8 * ((option["a"] - 0.7) ** 2 + (option["b"] - 0.3) ** 2)


def answer(study, count):
    for _ in range(count):
        question = study.ask()
        values = [liking(option) for option in question.options]
        study.tell(question, YesNo(values[0] > -1) if len(values) == 1 else values.index(max(values)))
    return study


@pytest.fixture(scope="module")
def study():
    return answer(aw.Study(SPACE, kernel="averaged", lapses=0.0), 10)


def test_a_study_averages_over_kernels_and_replays_every_question(study):
    assert isinstance(study.belief(), Mixture)
    assert all(one.equal for one in study.replay())


def test_equal_answers_give_equal_questions_in_another_program(study):
    again = answer(aw.Study(SPACE, kernel="averaged", lapses=0.0), 10)
    assert [one.options for one in again.history()] == [one.options for one in study.history()]


def test_a_stored_study_goes_on_with_it(tmp_path):
    where = str(tmp_path / "averaged.db")
    with aw.Study(SPACE, kernel="averaged", lapses=0.0, storage=where, name="s") as first:
        answer(first, 9)
        asked = first.ask().options
    with aw.Study.open(where, "s") as later:
        assert later.plan.averages
        assert later.ask().options == asked
        assert all(one.equal for one in later.replay())


def test_what_is_kept_for_other_programs_is_read_to_the_last_bit(study):
    plan, answers = study.plan, tuple(entry.answered for entry in study.history())
    learned = models.Model(plan).learned(answers[:8])
    shelf = Shelf(plan)
    shelf.put(answers[:8], learned.to_keep())
    read = models.Learned.kept(shelf.get(answers[:8]), plan.expected_kernel())
    one, other = (models.Learned.to_keep(each) for each in (learned, read))
    assert one == other
    assert read.kernels is not None


def test_recommendations_and_predictions_are_those_of_the_mixture(study):
    belief, best = study.belief(), study.best()
    point = study.space.unit(best.params)[None]
    assert best.mean == pytest.approx(float(belief.mean(point)), rel=1e-9)
    assert best.std == pytest.approx(float(belief.variance(point).sqrt()), rel=1e-9)
    other = {"a": 0.2, "b": 0.8}
    there = study.space.unit(other)[None]
    (found,) = study.predict(other)
    assert found.probability == pytest.approx(float(belief.success_probability(there, point)), rel=1e-6)
    compared = study.compare(best.params, other)
    assert compared.better == pytest.approx(float(belief.probability_of_better(point, there)), rel=1e-6)
    status = study.status()
    assert status.gain >= 0
    assert status.regret > 0
    assert set(study.importance()) == {"a", "b"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("feedback", "settings"),
    [
        ("binary", {}),
        ("batch", {}),
        ("duel", {"lapses": "learned"}),
        ("duel", {"participants": "population"}),
        ("duel", {"noise": "setting"}),
    ],
)
def test_every_kind_of_study_can_average(feedback, settings):
    study = aw.Study(SPACE, feedback, kernel="averaged", initial=4, **settings)
    answer(study, 7)
    study.ask()
    answer(study, 1)  # beside the open one
    assert isinstance(study.belief(), Mixture)
    assert all(one.equal for one in study.replay())
    assert study.status().answers == 8
    study.best()


def test_a_study_may_change_to_averaging():
    study = answer(aw.Study(SPACE, lapses=0.0, kernel="matern52"), 6)
    study.change(kernel="averaged")
    assert "kernel: matern52, learned becomes averaged" in study.changes()[0].words
    answer(study, 1)
    assert isinstance(study.belief(), Mixture)
    assert all(one.equal for one in study.replay())


def test_the_plan_says_so_in_json():
    plan = Plan.checked(SPACE, kernel="averaged")
    assert plan.to_dict()["kernel"] == "averaged"
    assert Plan.from_dict(plan.to_dict()).averages
    with pytest.raises(aw.Refused, match=r"'matern52', or 'averaged'; got 'averged'\. Choose one of them\."):
        aw.Study(SPACE, kernel="averged")
    with pytest.raises(aw.Refused, match="kernel must have a name of its own"):
        aw.model.register_kernel("averaged")(lambda **options: None)
