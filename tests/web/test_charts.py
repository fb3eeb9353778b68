"""The numbers of the experimenter's charts are those of the study."""

import json

import pytest

import askwise as aw
from askwise.plots.scene import NothingToDraw
from askwise.web import charts
from askwise.web.lens import Lens


@pytest.fixture(scope="module")
def study() -> aw.Study:
    space = aw.Space(
        gain=aw.Real(0, 40, unit="dB"),
        cutoff=aw.Real(100, 10_000, log=True),
        mode=aw.Choice(["soft", "hard"]),
    )
    study = aw.Study(space, feedback="duel", seed=2, initial=3)
    for _ in range(9):
        question = study.ask()
        study.tell(question, int(question.options[1]["gain"] > question.options[0]["gain"]))
    return study


def test_slices_are_what_the_study_predicts(study):
    found = charts.slices(study, Lens())
    best = study.best().params
    assert [curve["axis"]["name"] for curve in found["curves"]] == ["gain", "cutoff", "mode"]
    for curve in found["curves"]:
        name = curve["axis"]["name"]
        values = study.space.parameters[name].axis(charts.POINTS, False).values
        places = [0, len(values) // 2, len(values) - 1]
        predicted = study.predict([best | {name: values[k]} for k in places])
        for k, one in zip(places, predicted, strict=True):
            assert curve["expected"][k] == pytest.approx(one.probability, rel=1e-4)
            ends = curve["low"][k], curve["high"][k]
            assert ends == pytest.approx(one.probability_interval, rel=2e-3, abs=1e-6)  # 1.96 and all digits
            assert curve["axis"]["texts"][k] == study.space.parameters[name].text(values[k])


def test_maps_are_what_the_study_predicts_and_both_parts_add_up(study):
    found = charts.map_of(study, Lens(), ["gain", "cutoff"])
    best = study.best().params
    axes = [study.space.parameters[name].axis(charts.CELLS, True).values for name in ("gain", "cutoff")]
    for i, j in ((0, 0), (10, 40), (47, 3)):
        (one,) = study.predict(best | {"gain": axes[0][i], "cutoff": axes[1][j]})
        assert found["values"]["mean"][j][i] == pytest.approx(one.mean, rel=1e-4, abs=1e-9)
        assert found["values"]["spread"][j][i] == pytest.approx(one.std, rel=1e-4)
        parts = found["values"]["epistemic"][j][i] + found["values"]["aleatoric"][j][i]
        assert parts == pytest.approx(one.probability * (1 - one.probability), rel=1e-3)
    assert len(found["asked"]) == 18
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_what_is_not_allowed_has_no_value():
    space = aw.Space(a=aw.Real(0, 1), b=aw.Real(0, 1)).where("a + b <= 1")
    study = aw.Study(space, feedback="duel", seed=1)
    study.tell(study.ask(), 0)
    values = charts.map_of(study, Lens(), ["a", "b"])["values"]["mean"]
    assert values[-1][-1] is None
    assert values[0][0] is not None


def test_a_pair_must_be_of_the_study_and_an_empty_study_has_nothing_to_draw(study):
    with pytest.raises(aw.Refused, match="parameters of a map must be two of gain, cutoff, mode; got gain"):
        charts.map_of(study, Lens(), ["gain", "gain"])
    with pytest.raises(NothingToDraw):
        charts.slices(aw.Study(study.space), Lens())
