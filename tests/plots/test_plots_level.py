"""The figure of a level: sides and probabilities are those of the belief."""

import pytest
import torch
from matplotlib.collections import QuadMesh
from matplotlib.colors import to_rgb

import askwise as aw
from askwise import plots
from askwise.plots.level import _SIDES, _coded
from askwise.rules import latent_level
from askwise.study import Study
from tensors import f64

PLANE = aw.Space(force=aw.Real(0, 10, unit="N"), speed=aw.Real(1, 100, log=True))
KERNEL = aw.kernel("se", 0.3, 9.0)


def answered(space: aw.Space, level: float | None = 0.8, feedback: str = "binary") -> Study:
    """It works in the middle of the first parameter."""
    kernel = aw.kernel("se", [0.3] * space.d, 9.0)
    study = Study(space, feedback, level=level, kernel=kernel, lapses=0, name="grasp")
    for number, point in enumerate(
        torch.rand(30, space.d, generator=torch.manual_seed(1), dtype=torch.float64)
    ):
        setting = space.natural(point)
        if space.allows(setting):
            study.record([setting], abs(float(point[0]) - 0.5) < 0.3 and number % 11 != 5)
    return study


def labels(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_over_two_parameters_it_shows_sides_and_probabilities():
    study = answered(PLANE)
    figure = plots.study_level(study)
    left, right = figure.axes[:2]
    above = next(part for part in right.collections if isinstance(part, QuadMesh)).get_array()
    values = f64(above.data.tolist()).reshape(80, 80)
    x = f64([(0.5 + 40) / 80, (0.5 + 10) / 80])[None]  # the middle of a cell
    assert values[10, 40].item() == pytest.approx(
        study.belief().probability_above(x, latent_level(0.8)).item(), abs=1e-9
    )
    coded = f64(next(p for p in left.collections if isinstance(p, QuadMesh)).get_array().data.tolist())
    assert torch.equal(coded.reshape(80, 80), _coded(values, 0.95))
    assert len(set(coded.flatten().tolist())) > 1
    assert {"inside", "outside", "unclear", "the level, by the model"} <= {*labels(figure)}
    assert left.get_xlabel() == "force (N)"
    assert left.get_yscale() == "log"
    assert figure.get_suptitle() == "grasp: works at least 80% of the time"


def test_another_level_and_confidence_can_be_drawn():
    figure = plots.study_level(answered(PLANE, level=None), level=0.6, confidence=0.7)
    assert figure.get_suptitle() == "grasp: works at least 60% of the time"
    assert figure.axes[0].get_title(loc="left") == "inside, outside: with 70% confidence"


def test_along_one_parameter_the_sides_are_behind_the_rate():
    figure = plots.study_level(answered(aw.Space(force=aw.Real(0, 10))))
    assert {"the level, 80%", "chance of a yes", "inside", "95% credible band"} <= {*labels(figure)}
    (axis,) = figure.axes
    drawn = {part.get_facecolor()[:3] for part in axis.patches}
    assert drawn == {to_rgb(colour) for colour in _SIDES.values()}


@pytest.mark.parametrize(
    "space",
    [
        aw.Space(force=aw.Real(0, 10), mode=aw.Choice(["soft", "hard"])),
        aw.Space(bands=aw.Integer(1, 8), taps=aw.Integer(1, 6)),
        aw.Space(mode=aw.Choice(["soft", "hard", "off"])),
        aw.Space(a=aw.Real(0, 1), b=aw.Real(0, 1), c=aw.Real(0, 1)).where("a + b <= 1.5"),
    ],
    ids=["choice", "whole", "only choices", "constraint"],
)
def test_any_space_can_be_drawn(space):
    plots.study_level(answered(space)).canvas.draw()


def test_infeasible_settings_have_no_side():
    coded = _coded(f64([0.99, 0.5, 0.01, float("nan")]), 0.95)
    assert coded[:3].tolist() == [2, 1, 0]
    assert coded[3].isnan()


def test_a_level_that_nothing_or_everything_reaches_has_no_line():
    study = answered(PLANE)
    for rate in (1e-9, 1 - 1e-9):
        assert "the level, by the model" not in labels(plots.study_level(study, level=rate))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, r"^level must be given, of a yes/no study; got none\."),
        ({"level": 2}, r"^level must be a success rate between 0 and 1; got 2\."),
        ({"level": 0.9, "confidence": 0.1}, r"^confidence must be a probability above 0.5"),
        ({"level": 0.9, "pair": ["force"]}, r"^pair must be the names of two parameters"),
    ],
)
def test_what_cannot_be_drawn_is_refused(given, message):
    with pytest.raises(aw.Refused, match=message):
        plots.study_level(answered(PLANE, level=None), **given)


def test_duels_are_refused():
    with pytest.raises(aw.Refused, match=r"^level must be given, of a yes/no study; got a duel study\."):
        plots.study_level(Study(PLANE), level=0.9)


def test_progress_shows_the_sides_and_what_is_misclassified():
    study = answered(PLANE)
    sides, wrong, _ = plots.study_progress(study).axes
    found = study.level_set()
    assert {line.get_label() for line in sides.lines} == {"inside", "outside"}
    assert [line.get_ydata()[-1] for line in sides.lines] == [found.inside.value, found.outside.value]
    assert wrong.lines[0].get_ydata()[-1] == found.misclassified
    early = Study(PLANE, "binary", level=0.9)
    early.record([{"force": 5.0, "speed": 5.0}], True)
    plots.study_progress(early).canvas.draw()
