"""Predictions, comparisons, importance and tables of a study, in natural units."""

import math

import pytest
import torch

import askwise as aw
from askwise.numerics import ndtr
from askwise.study.predictions import importance
from tensors import f64


def worth(option: dict[str, object]) -> float:
    return -0.3 * (option["x"] - 7) ** 2 + 1.5 * (option["mode"] == "b")  # type: ignore[operator]


@pytest.fixture(scope="module")
def study() -> aw.Study:
    space = aw.Space({"x": aw.Real(0, 10), "mode": aw.Choice(["a", "b"])})
    study, source = aw.Study(space, seed=1, name="demo", kernel="matern52"), torch.Generator().manual_seed(0)
    for _ in range(16):
        question = study.ask()
        first, second = map(worth, question.options)
        study.tell(question, int(second - first + torch.randn((), generator=source).item() > 0), seconds=1.5)
    return study


def test_a_prediction_is_the_posterior_at_the_setting(study):
    settings = [{"x": 7.0, "mode": "b"}, {"x": 1.0, "mode": "a"}]
    points = torch.stack([study.space.unit(setting) for setting in settings])
    belief, best = study.belief(), study.space.unit(study.best().params)[None]
    mean, var = belief.moments(points)
    chance = belief.success_probability(points, best.expand_as(points))
    for k, found in enumerate(study.predict(settings)):
        assert found.params == settings[k]
        assert (found.mean, found.std) == pytest.approx((float(mean[k]), float(var[k].sqrt())))
        assert found.interval == pytest.approx((found.mean - 1.96 * found.std, found.mean + 1.96 * found.std))
        assert found.probability == pytest.approx(float(chance[k]))
        assert found.probability_interval[0] <= found.probability <= found.probability_interval[1]
    assert study.predict(settings[0]) == study.predict(settings)[:1]


def test_a_comparison_is_the_posterior_of_the_difference(study):
    one, other = {"x": 7.0, "mode": "b"}, {"x": 2.0, "mode": "a"}
    found, reverse = study.compare(one, other), study.compare(other, one)
    points = [study.space.unit(setting)[None] for setting in (one, other)]
    mean, var = (float(part) for part in study.belief().difference(*points))
    assert found.difference == pytest.approx(mean)
    assert found.better == pytest.approx(float(ndtr(f64([mean / math.sqrt(var)]))))
    assert found.probability == pytest.approx(float(ndtr(f64([mean / math.sqrt(1 + var)]))))
    assert 0.5 < found.probability < found.better
    assert found.better + reverse.better == pytest.approx(1)
    assert study.compare(one, one).better == 0.5


def test_the_top_settings_are_the_best_by_mean_and_begin_with_the_recommended_one(study):
    top = study.top(4)
    assert [one.mean for one in top] == sorted((one.mean for one in top), reverse=True)
    assert top[0].params == study.best().params
    assert len({str(one.params) for one in top}) == 4


def test_a_parameter_on_which_nothing_depends_is_of_no_importance():
    space, kernel = aw.Space(u=aw.Real(0, 1), v=aw.Real(0, 1)), aw.kernel("se", [0.2, 1e3], 4.0)
    found = importance(aw.infer(aw.Data.duels([[[0.1, 0.5], [0.6, 0.5]]], [0]), kernel), space, 0, None)
    assert list(found) == ["u", "v"]
    assert found["u"].value > 0.9
    assert found["v"].value < 0.01
    assert found["u"].interval[0] <= found["u"].value <= found["u"].interval[1]


def test_importance_is_the_share_of_variance_of_an_additive_function():
    """f = a u + b v with the variances of a and b as 1 to 4, of which the shares are known."""
    space = aw.Space(u=aw.Real(0, 1), v=aw.Real(0, 1))
    x = torch.rand(60, 2, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    lead = (x[:, 0] - x[:, 1]) @ f64([10.0, 20.0])
    belief = aw.infer(aw.Data.duels(x, (lead > 0).double()), aw.kernel("se", 2.0, 400.0))
    found = importance(belief, space, 0, None)
    assert found["v"].value == pytest.approx(0.8, abs=0.1)
    assert found["u"].value == pytest.approx(0.2, abs=0.1)


def test_every_question_is_a_row_of_the_table(study):
    pandas = pytest.importorskip("pandas")
    table = study.to_dataframe()
    assert isinstance(table, pandas.DataFrame)
    assert list(table.columns[:5]) == ["question", "x_a", "mode_a", "x_b", "mode_b"]
    assert table["answer"].tolist() == [entry.answer.text(["A", "B"]) for entry in study.history()]
    assert set(table["seconds"]) == {1.5}
    options = table[["x_a", "mode_a"]].rename(columns={"x_a": "x", "mode_a": "mode"})
    assert len(study.predict(options)) == 16


def test_a_study_shows_itself(study):
    assert repr(study).startswith("Study('demo', duel, muc, Space(")
    assert "16 answers" in repr(study)
    page = study._repr_html_()
    assert "preferred" in page
    assert page.count("<tr>") == 6
    hostile = aw.Study(aw.Space(x=aw.Choice(["<script>", "b", "c"])), name="<b>")
    hostile.tell(hostile.ask(), 0)
    assert "<script>" not in hostile._repr_html_()
    assert "<b>" not in hostile._repr_html_()


def test_a_study_is_closed_at_the_end_of_its_block(tmp_path):
    place = str(tmp_path / "a.db")
    with aw.Study(aw.Space(x=aw.Real(0, 1)), storage=place) as study:
        study.tell(study.ask(), 1)
    assert not (tmp_path / "a.db-wal").exists()
    assert aw.Study.open(place).count() == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda study: study.predict([]), r"settings must be a setting or a list of settings; got \[\]"),
        (lambda study: study.predict([1]), "settings must be a setting or a list of settings"),
        (lambda study: study.predict({"x": 1.0}), "params must be x, mode; got x"),
        (lambda study: study.compare({"x": 1.0, "mode": "a"}, 3), "settings must be"),
        (lambda study: study.top(0), "k must be a whole number, 1 or more; got 0"),
    ],
)
def test_what_cannot_be_predicted_is_refused(study, unchecked, call, message):
    with pytest.raises(aw.Refused, match=message):
        call(study)


def test_a_space_may_have_names_that_are_no_identifiers():
    space = aw.Space({"low cut": aw.Real(20, 200)}, gain=aw.Real(0, 1))
    assert list(space.parameters) == ["low cut", "gain"]
