"""Figures of studies: natural units on the axes, the numbers of the belief in the panels."""

import functools
import io
import itertools
import math
import re

import matplotlib
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.text import Text

import askwise as aw
from askwise import plots
from askwise.model import uncertainty
from askwise.numerics.normal import ndtr
from askwise.plots import scores
from askwise.plots.planes import Plane, pairs
from askwise.plots.scales import Scale, shown
from askwise.plots.scene import Scene
from askwise.plots.trace import Watched
from askwise.rules import RULES, parse
from askwise.search.search import Search
from askwise.study import expectations, recommendation
from askwise.study.questions import Situation
from askwise.study.searching import search_about
from askwise.study.state import State
from askwise.study.study import Study
from tensors import f64

FIGURES = ("slices", "maps", "uncertainty", "score", "importance", "progress")
each_figure = pytest.mark.parametrize("kind", FIGURES)
REACH = 1.959963984540054

GAIN, CUTOFF = aw.Real(0, 10, unit="dB"), aw.Real(20, 20_000, log=True, unit="Hz")
BANDS, MODE = aw.Integer(1, 8), aw.Choice(["soft", "hard", "off"])
SPACES = {
    "line": aw.Space(gain=GAIN),
    "log": aw.Space(gain=GAIN, cutoff=CUTOFF),
    "mixed": aw.Space(gain=GAIN, cutoff=CUTOFF, bands=BANDS, mode=MODE, rate=aw.Fixed(48)),
    "whole": aw.Space(bands=BANDS, taps=aw.Integer(16, 1024, log=True)),
    "choice": aw.Space(mode=MODE),
    "choices": aw.Space(mode=MODE, loud=aw.Choice([True, False])),
    "context": aw.Space(gain=GAIN, mode=MODE, noise=aw.Real(40, 80, context=True, unit="dB")),
    "where": aw.Space(gain=GAIN, release=aw.Real(10, 500)).where("gain + release / 50 <= 12"),
    "five": aw.Space(a=aw.Real(0, 1), b=aw.Real(0, 1), c=aw.Real(0, 1), d=aw.Real(0, 1), e=aw.Real(0, 1)),
}
CASES = [
    ("line", "binary"),
    ("line", "duel"),
    ("log", "batch"),
    ("mixed", "binary"),
    ("mixed", "duel"),
    ("whole", "duel"),
    ("choice", "duel"),
    ("choices", "binary"),
    ("context", "duel"),
    ("where", "duel"),
]
QUICK = {("line", "binary"): FIGURES, ("mixed", "duel"): ("slices", "score")}
some_cases = pytest.mark.parametrize(
    ("name", "feedback"),
    [pytest.param(*case, marks=() if case in QUICK else pytest.mark.slow) for case in CASES],
)
GIVEN = {"context": {"noise": 55.0}}
SIZE = {"binary": 1, "duel": 2, "batch": 3}


def fresh(name: str = "log", feedback: str = "duel", count: int = 8, **options: object) -> Study:
    """A study with this number of answers to random questions."""
    space = SPACES[name]
    early = {"binary": 3, "duel": 5, "batch": 2}[feedback]
    settings = {"kernel": aw.kernel("matern52", 0.4, 4.0), "initial": early} | options
    study = Study(space, feedback, **settings)
    source = torch.Generator().manual_seed(3)
    domain = None if space.contexts else space.domain()
    for number in range(count):
        points = torch.rand(study.size, space.d, generator=source, dtype=torch.float64)
        points = points if domain is None else domain.snapped(points)
        shown = [space.natural(point) for point in points]
        better = (points[:, 0] - 0.6).abs().argsort().tolist()
        if feedback == "binary":
            study.record(shown, bool(number % 3))
        elif feedback == "duel":
            study.record(shown, better[0])
        else:
            study.record(shown, ranking=better)
    return study


@functools.cache
def studied(name: str = "log", feedback: str = "duel") -> Study:
    """The same, for tests that do not change it."""
    return fresh(name, feedback)


def figure_of(kind: str, study: Study, name: str = "") -> Figure:
    return getattr(plots, f"study_{kind}")(study, context=GIVEN.get(name))


def panels(figure: Figure) -> list:
    return [axis for axis in figure.axes if axis.get_label() != "<colorbar>"]


def star(axis) -> tuple[float, float]:
    (mark,) = (line for line in axis.lines if line.get_label() == "recommended setting")
    return float(mark.get_xdata()[0]), float(mark.get_ydata()[0])


def curve(axis, label: str):
    (line,) = (line for line in axis.lines if line.get_label() == label)
    return line.get_xdata(), line.get_ydata()


def mesh(axis) -> torch.Tensor:
    return f64(axis.collections[0].get_array().filled(math.nan))


def of_people(
    participants: str = "population", people=("anna", "ben"), feedback: str = "duel", **options
) -> Study:
    """A study in which everybody likes another gain."""
    settings = {"kernel": aw.kernel("matern52", 0.4, 4.0), "initial": 5, "participants": participants}
    study = Study(SPACES["mixed"], feedback, **settings | options)
    source = torch.Generator().manual_seed(4)
    for _ in range(10):
        for place, who in enumerate(people):
            points = torch.rand(study.size, study.space.d, generator=source, dtype=torch.float64)
            points = study.space.domain().snapped(points)
            far = (points[:, 0] - (place + 0.5) / len(people)).abs()
            answer = bool(far < 0.25) if feedback == "binary" else int(far.argmin())
            study.record([study.space.natural(point) for point in points], answer, participant=who)
    return study


# every space


@some_cases
def test_every_figure_of_every_kind_of_study_can_be_drawn(name, feedback):
    study = studied(name, feedback)
    for kind in QUICK.get((name, feedback), FIGURES):
        figure = figure_of(kind, study, name)
        figure.savefig(io.BytesIO(), dpi=30)
        small = [text for text in figure.findobj(Text) if text.get_text() and text.get_fontsize() < 9]
        assert small == []
        width = figure.bbox.x1
        legends = [legend.get_window_extent() for legend in figure.findobj(Legend)]
        assert all(box.x0 >= 0 and box.x1 <= width for box in legends)
        assert figure.get_suptitle().split(":")[0] == "study"
        if kind not in ("progress", "importance"):
            free = Scene.of(study, GIVEN.get(name)).free
            labels = {label for axis in panels(figure) for label in (axis.get_xlabel(), axis.get_ylabel())}
            named = {each for each in free if Scale.of(study.space, each, 5).label in labels}
            assert named if kind != "slices" and len(free) > 2 else named == set(free)


@each_figure
def test_figures_leave_the_study_and_the_user_s_style_alone(kind):
    study = studied("line", "duel")
    asked, style = study.history(), dict(matplotlib.rcParams)
    figure_of(kind, study)
    assert study.history() == asked
    assert dict(matplotlib.rcParams) == style


@each_figure
def test_a_study_without_answers_is_refused(kind):
    with pytest.raises(ValueError, match=r"^study must have answers to be drawn; got none\. Ask and tell"):
        figure_of(kind, Study(SPACES["line"]))


def test_a_study_with_only_yes_answers_is_refused():
    study = Study(SPACES["line"], "binary")
    for gain in (1.0, 2.0):
        study.record([{"gain": gain}], True)
    study.record([{"gain": 3.0}], None)
    for kind in FIGURES[:5]:
        with pytest.raises(ValueError, match=r"^study must have a yes and a no; got 2 yes and 0 no\. Ask"):
            figure_of(kind, study)


@pytest.mark.parametrize("kind", FIGURES[:5])
def test_a_context_is_required(kind):
    with pytest.raises(ValueError, match="context must set noise; got no noise"):
        figure_of(kind, studied("context", "duel"))


# slices


@pytest.mark.parametrize("name", ["line", "mixed"])
def test_slices_of_yes_no_studies_are_chances_of_a_yes(name):
    study = studied(name, "binary")
    belief, best = study.belief(), study.best().params
    axes = plots.study_slices(study).axes
    assert axes[0].get_ylabel() == "chance of a yes"
    names = [each for each in best if each != "rate"]
    assert len(axes) == len(names)
    for axis, each in zip(axes, names, strict=True):
        x, y = curve(axis, "expected")
        for k in (0, len(x) // 3, len(x) - 1):
            value = x[k].item()
            if isinstance(study.space.parameters[each], aw.Choice):
                value = MODE.values[int(value)]
            elif each == "bands":
                value = int(value)
            point = study.space.unit({**best, each: value})[None]
            assert y[k].item() == pytest.approx(belief.success_probability(point).item(), abs=1e-9)


def test_slices_of_duels_are_preferences_to_the_recommended_setting():
    study = studied("log", "duel")
    belief, best = study.belief(), study.best().params
    first, axis = plots.study_slices(study).axes
    assert first.get_ylabel() == "chance of being preferred\nto the recommended setting"
    assert axis.get_xscale() == "log"
    assert axis.get_xlim() == (20, 20_000)
    assert axis.get_xlabel() == "cutoff (Hz)"
    x, y = curve(axis, "expected")
    band = axis.collections[0].get_paths()[0].vertices
    for k in (0, 70, 200):
        point = study.space.unit({**best, "cutoff": x[k].item()})[None]
        mean, var = belief.difference(point, study.space.unit(best)[None])
        assert y[k].item() == pytest.approx(ndtr(mean / (1 + var).sqrt()).item(), abs=1e-9)
        edges = sorted({round(v, 9) for u, v in band.tolist() if u == x[k].item()})
        expected = ndtr(torch.cat([mean - REACH * var.sqrt(), mean + REACH * var.sqrt()]))
        assert edges[0] == pytest.approx(expected[0].item(), abs=1e-8)
        assert edges[-1] == pytest.approx(expected[1].item(), abs=1e-8)
    assert any(line.get_ydata()[0] == 0.5 for line in axis.lines if line.get_linestyle() != "None")


@some_cases
def test_the_star_is_at_the_best_setting(name, feedback):
    study = studied(name, feedback)
    best = study.best(GIVEN.get(name)).params
    scene = Scene.of(study, GIVEN.get(name))
    for each, axis in zip(scene.free, figure_of("slices", study, name).axes, strict=True):
        value = best[each]
        parameter = study.space.parameters[each]
        expected = parameter.values.index(value) if isinstance(parameter, aw.Choice) else value
        height = study.best(GIVEN.get(name)).probability if feedback == "binary" else 0.5
        assert star(axis) == (expected, pytest.approx(height, abs=1e-6))
    if len(scene.free) > 1:
        axis = panels(figure_of("maps", study, name))[0]
        assert star(axis) == Plane.of(scene, pairs(scene)[0]).positions(best, 0.0)


def test_queried_settings_are_marked_above_or_below_and_fade_with_distance():
    study = Study(SPACES["log"], "binary", kernel=aw.kernel("se", 0.3, 4.0))
    study.record([{"gain": 3.0, "cutoff": 500.0}], True)
    study.record([{"gain": 9.0, "cutoff": 500.0}], False)
    study.record([{"gain": 8.0, "cutoff": 20.0}], False)
    study.record([{"gain": 5.0, "cutoff": 500.0}], None)
    gain = plots.study_slices(study).axes[0]
    yes, no, tie = (c for c in gain.collections[1:])
    assert yes.get_offsets()[:, 0].tolist() == [3]
    assert no.get_offsets()[:, 0].tolist() == [9, 8]
    assert tie.get_offsets()[:, 0].tolist() == [5]
    assert yes.get_offsets()[0, 1] > 1
    assert all(height < 0 for height in no.get_offsets()[:, 1])
    near, far = no.get_alpha()
    assert near > far > 0
    best = study.space.unit(study.best().params)
    away = study.space.unit({"gain": 8.0, "cutoff": 20.0})[1] - best[1]
    assert far == pytest.approx(0.15 + 0.85 * math.exp(-(away.item() ** 2) / 2 / 0.09), abs=1e-6)
    assert [line.get_label() for line in gain.lines if str(line.get_label()).startswith("asked")] == [
        "asked: yes",
        "asked: no",
        "asked: can't decide",
    ]
    assert "fainter: farther from this slice" in legend_words(gain)


def test_the_legend_explains_fainter_marks_only_where_there_are_some():
    study = Study(aw.Space(gain=aw.Real(0, 9)), "binary", kernel=aw.kernel("se", 0.3, 4.0))
    study.record([{"gain": 3.0}], True)
    study.record([{"gain": 9.0}], False)
    figure = plots.study_slices(study)
    assert "fainter: farther from this slice" not in legend_words(figure.axes[0])
    assert plots.study_maps(study).axes[0].get_title(loc="left") == ""


def legend_words(axis: Axes) -> list[str]:
    return axis.get_legend_handles_labels()[1]


def test_titles_give_the_values_of_the_other_parameters():
    space = aw.Space(a=aw.Real(0, 1, unit="m"), b=aw.Real(0, 1), gait=aw.Choice(["trot", "walk"]))
    study = Study(space, "duel", kernel=aw.kernel("se", 0.3, 4.0), initial=1)
    study.record([{"a": 0.2, "b": 0.4, "gait": "trot"}, {"a": 0.8, "b": 0.6, "gait": "walk"}], 1)
    gait = study.best().params["gait"]
    assert panels(plots.study_maps(study))[0].get_title(loc="left") == f"at gait = {gait}"
    assert plots.study_uncertainty(study).get_suptitle() == (
        f"study: uncertainty about a duel with the recommended setting, at gait = {gait}"
    )
    title = panels(plots.study_score(study))[0].get_title(loc="left")
    assert re.fullmatch(r"as \$x_\{2\}\$ moves, at gait = (trot|walk)", title)


def test_the_part_of_a_slice_that_violates_a_constraint_is_hatched_and_left_out():
    study = Study(SPACES["where"], "binary", kernel=aw.kernel("se", 0.2, 4.0))
    study.record([{"gain": 4.0, "release": 300.0}], True)
    for gain, release in ((1.0, 300.0), (4.0, 100.0), (8.0, 100.0)):
        study.record([{"gain": gain, "release": release}], False)
    best = study.best().params
    axis = plots.study_slices(study).axes[0]
    x, y = curve(axis, "expected")
    limit = 12 - best["release"] / 50
    assert torch.equal(f64(y).isnan(), f64(x) > limit)
    assert f64(y).isnan().any()
    (span,) = (patch for patch in axis.patches if patch.get_hatch())
    assert span.get_x() == pytest.approx(limit, abs=0.06)
    assert span.get_x() + span.get_width() == pytest.approx(10)


# maps


@pytest.mark.parametrize(("name", "feedback"), [("log", "duel"), ("context", "duel")])
def test_maps_are_mean_and_deviation_of_the_belief(name, feedback):
    study = studied(name, feedback)
    belief, best = study.belief(), study.best(GIVEN.get(name)).params
    scene = Scene.of(study, GIVEN.get(name))
    axes = panels(plots.study_maps(study, context=GIVEN.get(name)))
    across, up = Plane.of(scene, pairs(scene)[0]).scales
    means, deviations = mesh(axes[0]), mesh(axes[1])
    assert means.shape == (len(up.axis.values), len(across.axis.values))
    for i, j in ((0, 0), (-1, 2), (len(up.axis.values) // 2, -1)):
        setting = {**best, across.name: across.axis.values[j], up.name: up.axis.values[i]}
        mean, var = belief.moments(study.space.unit(setting)[None])
        assert means[i, j].item() == pytest.approx(mean.item(), abs=1e-9)
        assert deviations[i, j].item() == pytest.approx(var.sqrt().item(), abs=1e-9)
    assert (axes[0].get_xlabel(), axes[0].get_ylabel()) == (across.label, up.label)


def test_a_cell_of_a_map_is_around_its_setting():
    for each, cells in (("gain", 80), ("cutoff", 80), ("bands", 8), ("mode", 3)):
        one = Scale.of(SPACES["mixed"], each, 80, cells=True)
        assert len(one.edges) == cells + 1
        assert ((one.edges[:-1] < one.at) & (one.at < one.edges[1:])).all()
    wide = Scale.of(SPACES["whole"], "taps", 80, cells=True)
    assert wide.axis.values[0] == 16
    assert wide.axis.values[-1] == 1024
    assert ((wide.edges[:-1] < wide.at) & (wide.at < wide.edges[1:])).all()


def test_constraints_are_masked_in_maps():
    study = studied("where", "duel")
    axis = panels(plots.study_maps(study))[0]
    across, up = Plane.of(Scene.of(study, None), ("gain", "release")).scales
    outside = across.at + up.at[:, None] / 50 > 12
    assert torch.equal(mesh(axis).isnan(), outside)
    assert axis.patch.get_hatch()


def test_at_most_three_pairs_are_drawn_and_the_most_important_first():
    source = torch.Generator().manual_seed(0)
    study = Study(SPACES["five"], "duel", kernel=aw.kernel("se", [0.2, 9.0, 0.3, 9.0, 9.0], 4.0))
    for _ in range(12):
        points = torch.rand(2, 5, generator=source, dtype=torch.float64)
        score = points[:, 0] + points[:, 2]
        study.record([study.space.natural(point) for point in points], int(score.argmax()))
    axes = panels(plots.study_maps(study))
    assert len(axes) == 6
    assert {axes[0].get_xlabel(), axes[0].get_ylabel()} == {"a", "c"}
    shown = [{axis.get_xlabel(), axis.get_ylabel()} for axis in axes[::2]]
    assert all({"a", "c"} & pair for pair in shown)


def test_choices_are_axes_only_where_there_are_too_few_numbers():
    mixed = pairs(Scene.of(studied("mixed", "binary"), None))
    assert mixed[0][0] in ("gain", "cutoff", "bands")
    assert len(mixed) == 3
    assert pairs(Scene.of(studied("context", "duel"), GIVEN["context"])) == [("gain", "mode")]
    assert pairs(Scene.of(studied("choice", "duel"), None)) == [("mode",)]


def test_a_map_is_of_its_context_and_names_it():
    study = studied("context", "duel")
    figure = plots.study_maps(study, context={"noise": 70.0})
    assert figure.get_suptitle() == "study: for noise = 70 dB"
    other = mesh(panels(plots.study_maps(study, context={"noise": 41.0}))[0])
    assert not torch.allclose(mesh(panels(figure)[0]), other)


# uncertainty


@pytest.mark.parametrize("feedback", ["binary", "duel"])
def test_the_two_kinds_of_uncertainty_are_the_library_s(feedback):
    study = studied("log", feedback)
    scene = Scene.of(study, None)
    axes = panels(plots.study_uncertainty(study))
    points = Plane.of(scene, pairs(scene)[0]).points.flatten(0, 1)
    other = scene.best.expand_as(points) if feedback == "duel" else None
    both = uncertainty.decompose(study.belief(), points, other)
    torch.testing.assert_close(mesh(axes[0]).flatten(), both.epistemic, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(mesh(axes[1]).flatten(), both.aleatoric, rtol=1e-9, atol=1e-12)
    assert axes[0].get_title(loc="left").startswith("epistemic")


@pytest.mark.parametrize(("name", "feedback"), [("line", "duel"), ("choice", "duel")])
def test_along_one_parameter_the_kinds_of_uncertainty_add_up(name, feedback):
    study = studied(name, feedback)
    scene = Scene.of(study, None)
    (axis,) = plots.study_uncertainty(study).axes
    x, total = curve(axis, "total")
    points = Plane.of(scene, scene.free).points
    rate = study.belief().success_probability(points, scene.best.expand_as(points))
    torch.testing.assert_close(f64(total), rate * (1 - rate), rtol=1e-9, atol=1e-12)
    if name == "choice":
        heights = [bar.get_height() for bar in axis.patches if bar.get_height() > 0]
        assert sum(heights) == pytest.approx(float(f64(total).sum()))
    assert len(x) == len(points)


# score


def marked(axis) -> list[tuple[float, float]]:
    lines = [line for line in axis.lines if str(line.get_label()).startswith("next question")]
    return [(float(line.get_xdata()[0]), float(line.get_ydata()[0])) for line in lines]


@pytest.mark.parametrize(
    ("feedback", "waiting"),
    [
        ("binary", False),
        ("duel", True),
        pytest.param("duel", False, marks=pytest.mark.slow),
        pytest.param("batch", False, marks=pytest.mark.slow),
    ],
)
def test_the_question_marked_is_the_one_that_is_asked(feedback, waiting):
    study = fresh("log", feedback)
    if waiting:
        study.ask()
    figure = plots.study_score(study)
    question = study.ask()
    assert len(study.history()) == 9
    members = [question.options[question.order.index(k)] for k in range(SIZE[feedback])]
    scene = Scene.of(study, None)
    names = pairs(scene)[0]
    axes = panels(figure)
    assert len(axes) == {"binary": 1, "duel": 1, "batch": 2}[feedback]
    expected = [tuple(member[name] for name in names) for member in members]
    assert marked(axes[0]) == [pytest.approx(place, rel=1e-6) for place in expected]
    across, up = Plane.of(scene, names).scales
    for axis, place in zip(axes, expected[-len(axes) :], strict=True):
        i, j = divmod(int(mesh(axis).argmax()), len(across.axis.values))
        assert across.edges[max(j - 1, 0)] <= place[0] <= across.edges[min(j + 2, 80)], (j, place)
        assert up.edges[max(i - 1, 0)] <= place[1] <= up.edges[min(i + 2, 80)], (i, place)


def test_each_challenger_of_a_batch_has_a_panel_with_its_score():
    study = fresh("line", "batch", 4)
    axes = panels(plots.study_score(study))
    question = study.ask()
    gains = [question.options[question.order.index(k)]["gain"] for k in range(3)]
    assert len(axes) == 2
    for axis, gain in zip(axes, gains[1:], strict=True):
        assert [x for x, _ in marked(axis)] == pytest.approx(gains, rel=1e-6)
        x, y = axis.lines[0].get_xdata(), axis.lines[0].get_ydata()
        assert abs(x[int(f64(y).argmax())] - gain) <= 10 / 200


def test_the_score_of_muc_is_the_uncertainty_about_its_duel():
    study = studied("line", "duel")
    (axis,) = plots.study_score(study).axes
    line = axis.lines[0]
    (first, _), _ = marked(axis)
    x = f64(line.get_xdata())[:, None] / 10
    expected = aw.numerics.epistemic_variance(*study.belief().difference(x, f64([[first / 10]]).expand_as(x)))
    torch.testing.assert_close(f64(line.get_ydata()), expected, rtol=1e-3, atol=1e-6)
    assert axis.get_ylabel() == "score"


@pytest.mark.parametrize(
    ("rule", "count", "words"),
    [
        ("random", 8, "the model\ndid not choose"),
        ("kss", 8, "draws of f are highest"),
        ("muc", 2, "did not choose"),
    ],
)
def test_a_question_without_a_score_says_so(rule, count, words):
    study = fresh("log", "duel", count, rule=rule)
    figure = plots.study_score(study)
    figure.savefig(io.BytesIO(), dpi=30)
    (axis,) = figure.axes
    assert words in axis.texts[0].get_text()
    assert len(marked(axis)) == 2
    assert ("Maximally" in figure.get_suptitle()) is False
    assert axis.get_xlabel() == "gain (dB)"


def test_members_off_the_plane_are_hollow():
    study = studied("mixed", "binary")
    assert all(line.get_markerfacecolor() != "white" for line in panels(plots.study_score(study))[0].lines)
    duel = fresh("mixed", "duel")
    axis = panels(plots.study_score(duel))[0]
    question = duel.ask()
    one, two = (question.options[question.order.index(k)] for k in range(2))
    drawn = pairs(Scene.of(duel, None))[0]
    apart = any(one[name] != two[name] for name in ("gain", "cutoff", "bands", "mode") if name not in drawn)
    (first,) = (line for line in axis.lines if "x_{1}" in str(line.get_label()))
    assert ("off this plane" in first.get_label()) is apart
    assert (first.get_markerfacecolor() == "white") is apart


def test_a_watched_rule_asks_the_same_and_is_not_registered():
    before, rule = dict(RULES), parse("muc")
    watched = Watched(rule)
    belief = studied("line", "duel").belief()
    for _ in range(2):
        search = Search.around(belief, torch.Generator().manual_seed(1))
        asked = watched.ask(belief, 2, search)
    assert len(watched.steps) == 1  # those of the last question
    assert torch.equal(watched.steps[0].found, asked[1:])
    assert torch.equal(rule.ask(belief, 2, Search.around(belief, torch.Generator().manual_seed(1))), asked)
    assert before == RULES


# progress


def test_progress_is_what_was_recommended_at_the_time():
    study = fresh("log", "duel", 7)
    axes = plots.study_progress(study).axes
    model, domain = study.model, study.space.domain()
    answers = Situation.of(State({entry.id: entry for entry in study.history()})).answers
    assert axes[0].lines[0].get_xdata().tolist() == [4, 6]
    belief = model.belief(answers[:5])
    search = search_about(belief, study.plan, domain)
    best = study.space.unit(recommendation.best(belief, study.plan, search).params)[None]
    asked = model.points([option for entry in study.history() for option in entry.options]).unique(dim=0)
    source = expectations.source(study.seed, "best of them")
    chances = expectations.probability_of_best(belief, torch.cat([best, asked]), source)
    near = torch.cat([torch.tensor([True]), (asked - best).abs().amax(-1) < 0.02])
    assert axes[0].lines[0].get_ydata()[0] == pytest.approx(chances[near].sum().item())
    question = model.points(study.history()[5].members)
    rows = functools.partial(model.answered, answers[:5], who=None)
    look = recommendation.outlook(belief, study.plan, study.plan.kernel, search, question, rows)
    short, gain = axes[1].lines
    assert short.get_ydata()[0] == pytest.approx(look.regret)
    assert gain.get_ydata()[0] == pytest.approx(look.gain)
    now = study.status()
    assert (short.get_ydata()[-1], gain.get_ydata()[-1]) == pytest.approx((now.regret, now.gain))


def test_settings_equal_to_the_recommended_one_add_to_its_probability(monkeypatch):
    monkeypatch.setattr(
        "askwise.plots.progress.outlook", lambda *_: recommendation.Outlook(0.1, 0.2, 0.5, 0.9)
    )
    monkeypatch.setattr(expectations, "probability_of_best", lambda _, x, __: f64([1 / len(x)] * len(x)))
    figure = plots.study_progress(studied("choice", "duel"))
    # all three modes were asked about; the recommended one is one of them, and is there a fourth time
    assert figure.axes[0].lines[0].get_ydata().tolist() == pytest.approx([0.5, 0.5])


def test_progress_has_a_row_for_every_status_of_a_question():
    study = Study(SPACES["line"], "duel", initial=9)
    for number in range(6):
        question = study.ask()
        if number < 2:
            study.tell(question, number, seconds=[0.5, 40][number])
        elif number == 2:
            study.tell(question, None)
        elif number == 3:
            study.skip(question, seconds=2)
        elif number == 4:
            study.tell(question, 1)
            study.void(question)
    figure = plots.study_progress(study)
    figure.savefig(io.BytesIO(), dpi=30)
    sure, left, answers, times = figure.axes
    assert [axis.texts[0].get_text() for axis in (sure, left)] == ["no model yet: it takes 9 answers"] * 2
    rows = ["option A", "option B", "can't decide", "skipped", "voided", "open"]
    assert [tick.get_text() for tick in answers.get_yticklabels()] == rows
    assert [line.get_xdata().tolist() for line in answers.lines] == [[0], [1], [2], [3], [4], [5]]
    assert times.lines[0].get_xydata().tolist() == [[0, 0.5], [1, 40], [3, 2]]
    assert times.get_yscale() == "log"
    assert times.get_xlabel() == "question"


def test_progress_shows_answers_that_name_only_the_worst():
    study = Study(SPACES["line"], "batch", initial=9)
    for said in ({"winner": 1}, {"worst": 0}, {"answer": None}):
        study.tell(study.ask(), **said)
    answers = plots.study_progress(study).axes[2]
    rows = ["option A", "option B", "option C", "only the worst", "can't decide"]
    assert [tick.get_text() for tick in answers.get_yticklabels()] == rows
    assert [line.get_xdata().tolist() for line in answers.lines] == [[], [0], [], [1], [2]]


def test_progress_with_only_yes_answers_shows_them():
    study = Study(SPACES["line"], "binary")
    study.record([{"gain": 1.0}], True)
    sure, _, answers = plots.study_progress(study).axes
    assert sure.texts[0].get_text() == "no model yet: it takes a yes and a no"
    assert [line.get_xdata().tolist() for line in answers.lines] == [[0], []]


def test_progress_takes_the_last_context_unless_another_is_given(monkeypatch):
    study = studied("context", "duel")
    last = study.history()[-1].options[0]["noise"]
    monkeypatch.setattr(
        "askwise.plots.progress.outlook", lambda *_: recommendation.Outlook(0.1, 0.2, 0.5, 0.9)
    )
    monkeypatch.setattr(expectations, "probability_of_best", lambda belief, x, _: belief.mean(x))
    default, same = plots.study_progress(study), plots.study_progress(study, context={"noise": last})
    assert default.get_suptitle() == same.get_suptitle() == f"study: for noise = {last:.4g} dB"
    other = plots.study_progress(study, context={"noise": 40.0 + (last < 60) * 40})
    heights = [figure.axes[0].lines[0].get_ydata().tolist() for figure in (default, same, other)]
    assert heights[0] == heights[1] != heights[2]


def test_progress_has_few_checkpoints_however_many_answers(monkeypatch):
    monkeypatch.setattr(
        "askwise.plots.progress.outlook", lambda *_: recommendation.Outlook(0.1, 0.2, 0.5, 0.9)
    )
    monkeypatch.setattr(expectations, "probability_of_best", lambda _, x, __: f64([1.0] * len(x)))
    study = fresh("line", "duel", 43)
    assert plots.study_progress(study).axes[0].lines[0].get_xdata().tolist() == [9, 19, 29, 39, 42]


# words and ticks


def test_axes_of_discrete_parameters_have_their_values_as_ticks():
    axes = plots.study_slices(studied("mixed", "binary")).axes
    assert axes[2].get_xticks().tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [tick.get_text() for tick in axes[3].get_xticklabels()] == ["soft", "hard", "off"]
    assert axes[3].get_xlim() == (-0.5, 2.5)


def test_a_dollar_sign_does_not_start_a_formula():
    space = aw.Space(**{"price $": aw.Real(0, 9, unit="US$"), "kind": aw.Choice(["$a", "b"])})
    study = Study(space, "duel", kernel=aw.kernel("se", 0.3))
    study.record([{"price $": 1.0, "kind": "$a"}, {"price $": 7.0, "kind": "b"}], 1)
    figure = plots.study_slices(study)
    figure.savefig(io.BytesIO(), dpi=30)
    assert figure.axes[0].get_xlabel() == r"price \$ (US\$)"
    assert shown(space, {"price $": 2.0, "kind": "$a"}) == r"price \$ = 2 US\$, kind = \$a"


# people


@each_figure
@pytest.mark.parametrize("participants", ["separate", "population"])
def test_a_figure_can_be_of_one_person(kind, participants):
    study = of_people(participants)
    draw = getattr(plots, f"study_{kind}")
    figure = draw(study, participant="ben")
    assert "for ben" in " ".join(figure.get_suptitle().split())
    if participants == "separate":
        with pytest.raises(aw.Refused, match="participant must be named in a study of separate people"):
            draw(study)
    else:
        assert "ben" not in draw(study).get_suptitle()


def test_the_belief_that_is_drawn_is_that_of_the_person():
    study = of_people()
    for who in ("anna", "ben", None):
        scene = Scene.of(study, None, who)
        assert scene.params == study.best(participant=who).params
        assert len(scene.asked) == (40 if who is None else 20)
    figure = plots.study_slices(study, participant="ben")
    assert star(figure.axes[0])[0] == pytest.approx(study.best(participant="ben").params["gain"])


def test_a_question_that_somebody_thinks_about_is_drawn_for_them_alone():
    study = of_people("separate")
    open_to_ben = study.ask("ben")
    members = [open_to_ben.options[open_to_ben.order.index(k)] for k in range(2)]
    trace = scores._trace(Scene.of(study, None, "ben"))
    assert torch.allclose(trace.points, study.model.points(members))
    other = scores._trace(Scene.of(study, None, "anna"))
    assert not torch.allclose(other.points, trace.points)


def test_progress_of_a_person_has_their_questions_only_and_says_what_is_wrong():
    study = of_people("separate", people=("anna", "ben"))
    study.record(study.history()[0].options, 0, participant="ben")
    for _ in range(25):
        study.tell(study.ask("ben"), 0, seconds=0.1)
    careless, fine = (plots.study_progress(study, participant=who) for who in ("ben", "anna"))
    assert "took less than 0.3 s" in careless.axes[0].get_title(loc="left")
    assert fine.axes[0].get_title(loc="left") == ""
    assert sum(len(line.get_xdata()) for line in fine.axes[2].lines) == 10
    careless.draw_without_rendering()
    heading = careless.axes[0]._left_title.get_window_extent()
    assert heading.x1 <= careless.bbox.x1


def labels_of(figure: Figure) -> list[str]:
    return [label.get_text() for label in figure.axes[0].get_yticklabels()]


def test_people_are_drawn_beside_each_other_with_what_is_best_for_all():
    study = of_people()
    figure = plots.study_raters(study)
    assert labels_of(figure) == ["all (20)", "anna (10)", "ben (10)"]
    assert [axis.get_xlabel() for axis in figure.axes] == [
        *("gain (dB)", "cutoff (Hz)", "bands", "mode"),
        *("answers given\nwithout looking", "noise of answers\n(1 is typical)"),
    ]
    gains = figure.axes[0]
    marks = [line for line in gains.lines if line.get_marker() in ("*", "o")]
    best = [study.best(participant=who).params["gain"] for who in (None, "anna", "ben")]
    assert [float(line.get_xdata()[0]) for line in marks] == pytest.approx(best)
    share = study.raters().share
    assert f"{share.value:.0%} ({share.interval[0]:.0%} to" in figure.get_suptitle()
    noises = [float(line.get_xdata()[0]) for line in figure.axes[5].lines if line.get_marker() == "o"]
    assert noises == pytest.approx([rater.noise.value for rater in study.raters().each])


def test_intervals_hold_the_settings_that_may_be_best():
    study = of_people()
    belief = study.belief("ben")
    search = search_about(belief, study.plan, study.space.domain())
    drawn = recommendation.likely_bests(belief, study.plan, search)
    assert drawn.shape == (256, study.space.d)
    values = f64([study.space.natural(point)["gain"] for point in drawn])
    low, high = values.quantile(f64([0.025, 0.975])).tolist()
    gains = plots.study_raters(study).axes[0]
    thin = [line.get_xdata().tolist() for line in gains.lines if line.get_linewidth() == 1.2]
    assert any(ends == pytest.approx([low, high]) for ends in thin)
    assert belief.mean(drawn).mean() > belief.mean(belief.data.points).mean()  # they are good ones


def test_separate_people_have_no_row_for_all_and_one_taste_has_its_verdict_above():
    separate = plots.study_raters(of_people("separate"))
    assert labels_of(separate) == ["anna (10)", "ben (10)"]
    assert separate.get_suptitle() == "study: each person from their own answers alone"
    shared = of_people("shared")
    words = " ".join(plots.study_raters(shared).get_suptitle().split())
    (check,) = (check for check in shared.checks() if check.name == "raters")
    assert words == f"study: {check.detail} Drawn as if each had a taste of their own"
    fixed = of_people("separate", lapses=0)
    assert len(plots.study_raters(fixed).axes) == 4


def test_many_people_with_long_names_are_readable():
    study = of_people(
        people=[None, "$x$", *(f"patient number {k} of the clinic" for k in range(10))], lapses=0
    )
    figure = plots.study_raters(study)
    figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in figure.axes[0].get_yticklabels()]
    assert all(box.x0 >= 0 for box in boxes)
    assert all(one.y0 >= other.y1 for one, other in itertools.pairwise(boxes))
    assert labels_of(figure)[1:4] == ["(no name) (10)", r"\$x\$ (10)", "patient number 0 of t… (10)"]
    legend = figure.legends[0].get_window_extent()
    assert legend.x0 >= 0
    assert legend.x1 <= figure.bbox.x1


@pytest.mark.parametrize("people", [(), ("anna",)])
def test_a_figure_of_people_is_refused_for_fewer_than_two(people):
    with pytest.raises(aw.Refused, match="study must have answers of two people or more"):
        plots.study_raters(of_people(people=people))


def test_slices_know_that_noise_depends_on_the_setting():
    study = of_people("shared", noise="setting", lapses=0)
    x, y = curve(plots.study_slices(study).axes[0], "expected")
    best = study.best().params
    points = study.model.points([{**best, "gain": gain} for gain in x])
    assert study.belief().slopes.abs().max() > 0.1
    rates = study.belief().success_probability(points, study.space.unit(best).expand_as(points))
    assert f64(y) == pytest.approx(rates, abs=1e-9)


def test_people_who_say_yes_or_no_are_drawn():
    figure = plots.study_raters(of_people(feedback="binary", guess=0.25))
    assert labels_of(figure) == ["all (20)", "anna (10)", "ben (10)"]
