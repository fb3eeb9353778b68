"""What all figures have: the name, the values of the recommended setting, colours, keys; and all pairs."""

import functools
import io
import itertools

import pytest
import torch
from matplotlib import colormaps
from matplotlib.figure import Figure

import askwise as aw
from askwise import plots
from askwise.plots.scales import Scale
from askwise.plots.style import ASKED, GOOD, UNSURE

GAIN, CUTOFF = aw.Real(0, 40, unit="dB"), aw.Real(100, 10_000, log=True, unit="Hz")
PROGRAMS = aw.Choice(["slow attack with gentle release", "broadband compression", "no compression at all"])
WINES = {"name": [f"wine {k}" for k in range(30)], "sugar": [k / 3 for k in range(30)]}
SPACES = {
    "filter": aw.Space(gain=GAIN, cutoff=CUTOFF),
    "programs": aw.Space(gain=GAIN, cutoff=CUTOFF, program=PROGRAMS),
    "four": aw.Space(gain=GAIN, cutoff=CUTOFF, bands=aw.Integer(1, 8), mode=aw.Choice(["soft", "hard"])),
    "wines": aw.Space(wine=aw.Items(WINES, features=["sugar"], id="name"), warmth=aw.Real(8, 18, unit="°C")),
    "wine": aw.Space(wine=aw.Items(WINES, features=["sugar"], id="name")),
}
LONG = (
    "A name that is far too long for one line above a small figure, second round, spring and summer, 2nd site"
)


@functools.cache
def studied(space: str = "filter", feedback: str = "duel", count: int = 12, name: str = "hall") -> aw.Study:
    study = aw.Study(SPACES[space], feedback, kernel=aw.kernel("se", 0.3, 4.0), initial=5, name=name)
    source = torch.Generator().manual_seed(7)
    for number in range(count):
        points = torch.rand(study.size, study.space.d, generator=source, dtype=torch.float64)
        if (domain := study.space.domain()) is not None:
            points = domain.snapped(points)
        better = int((points[:, 0] - 0.6).abs().argmin())
        answer = bool(number % 3) if feedback == "binary" else better
        study.record([study.space.natural(point) for point in points], answer)
    return study


def panels(figure: Figure) -> list:
    return [axis for axis in figure.axes if axis.get_label() != "<colorbar>"]


def values_in(figure: Figure) -> list[str]:
    """What is written beside the stars."""
    return [text.get_text() for axis in panels(figure) for text in axis.texts]


# the recommended setting


@pytest.mark.parametrize("feedback", ["binary", "duel"])
def test_the_values_of_the_recommended_setting_are_beside_the_star(feedback):
    study = studied(feedback=feedback)
    best, space = study.best().params, study.space.parameters
    texts = [space[name].text(best[name]) for name in ("gain", "cutoff")]
    assert all(text.endswith(unit) for text, unit in zip(texts, (" dB", " Hz"), strict=True))
    assert values_in(plots.study_slices(study)) == texts
    assert values_in(plots.study_maps(study, pairs=[("gain", "cutoff")])) == ["\n".join(texts)] * 2


@pytest.mark.parametrize(
    ("space", "count", "kind"),
    [
        ("programs", 12, "slices"),
        ("filter", 60, "maps"),
        pytest.param("filter", 12, "maps", marks=pytest.mark.slow),
        pytest.param("filter", 60, "slices", marks=pytest.mark.slow),
        pytest.param("programs", 12, "maps", marks=pytest.mark.slow),
    ],
)
def test_a_value_hides_neither_the_star_nor_the_edge_and_few_marks(space, count, kind):
    figure = getattr(plots, f"study_{kind}")(studied(space, count=count))
    figure.draw_without_rendering()
    for axis in panels(figure):
        (text,) = axis.texts
        box, panel = text.get_window_extent(), axis.get_window_extent()
        assert min(box.x0 - panel.x0, panel.x1 - box.x1, box.y0 - panel.y0, panel.y1 - box.y1) >= -1
        (star,) = (line for line in axis.lines if line.get_label() == "recommended setting")
        middle = axis.transData.transform((star.get_xdata()[0], star.get_ydata()[0]))
        assert not box.padded(2).contains(*middle)
        marks = [axis.transData.transform(part.get_offsets()) for part in axis.collections[1:]]
        hidden = sum(box.contains(*mark) for part in marks for mark in part)
        assert hidden <= (0 if kind == "slices" else 4)


def test_a_long_name_beside_a_star_is_in_lines_and_cut():
    space = aw.Space(prompt=aw.Choice(["word " * 40, "x" * 100]))
    study = aw.Study(space, "duel", kernel=aw.kernel("se", 1.0, 4.0), initial=1)
    study.record([{"prompt": value} for value in space.parameters["prompt"].values], 1)
    (text,) = values_in(plots.study_slices(study))
    assert text.replace("\n", "") == "x" * 43 + "…"
    assert max(map(len, text.split("\n"))) <= 21


# the name


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["slices", "maps", "uncertainty", "score", "importance", "progress"])
def test_the_name_of_the_study_is_in_each_figure(kind):
    assert getattr(plots, f"study_{kind}")(studied("filter")).get_suptitle().startswith("hall")


@pytest.mark.parametrize("kind", ["importance", pytest.param("uncertainty", marks=pytest.mark.slow)])
def test_a_long_name_is_in_lines_that_fit(kind):
    figure = getattr(plots, f"study_{kind}")(studied(name=LONG))
    figure.draw_without_rendering()
    assert " ".join(figure.get_suptitle().split()).startswith(LONG)
    assert figure._suptitle.get_window_extent().x1 <= figure.bbox.x1
    top = max(axis.get_tightbbox().y1 for axis in figure.axes)
    assert figure._suptitle.get_window_extent().y0 >= top - 1


def test_a_dollar_sign_in_the_name_does_not_start_a_formula():
    figure = plots.study_importance(studied(name="cost in $ and US$"))
    figure.savefig(io.BytesIO(), dpi=30)
    assert figure.get_suptitle().startswith(r"cost in \$ and US\$")


# colours


def colours(figure: Figure) -> list[str]:
    return [axis.collections[0].get_cmap().name for axis in panels(figure)]


def test_good_and_unsure_have_colours_of_their_own_in_all_figures():
    study = studied()
    assert len({GOOD, UNSURE, ASKED}) == 3
    assert colours(plots.study_maps(study)) == [GOOD, UNSURE]
    assert colours(plots.study_uncertainty(study)) == [UNSURE, UNSURE]
    assert colours(plots.study_score(study)) == [ASKED]
    images = [axis.images[0].get_cmap().name for axis in panels(plots.decomposition_maps())]
    assert images == [UNSURE] * 6


@pytest.mark.parametrize("name", [GOOD, UNSURE, ASKED])
def test_lightness_alone_tells_the_colours_apart(name):
    """So they can be read by the colour-blind, and in print."""
    red, green, blue, _ = colormaps[name](torch.linspace(0, 1, 64).numpy()).T
    light = 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2  # relative luminance
    steps = [after - before for before, after in itertools.pairwise(light)]
    assert all(step > -1e-3 for step in steps) or all(step < 1e-3 for step in steps)
    assert abs(light[-1] - light[0]) > 0.6


# names that are too long


@pytest.mark.parametrize(
    "kind",
    ["slices", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("maps", "uncertainty", "score"))],
)
def test_numbered_names_are_explained_below(kind):
    study = studied("programs")
    options = {"maps": {"pairs": [("program", "gain")]}}.get(kind, {})
    options |= {"pair": ("program", "gain")} if kind in ("uncertainty", "score") else {}
    figure = getattr(plots, f"study_{kind}")(study, **options)
    figure.draw_without_rendering()
    (legend,) = figure.legends
    said = legend.get_title().get_text().replace("\N{NO-BREAK SPACE}", " ").replace("\n", " ")
    numbered = "; ".join(f"{k + 1} = {name}" for k, name in enumerate(PROGRAMS.values))
    assert said == f"program: {numbered}"
    box = legend.get_window_extent()
    assert min(box.x0, figure.bbox.x1 - box.x1) >= 0


# pairs


def test_a_named_pair_is_drawn_in_the_order_given():
    study = studied("four")
    for kind, options in (
        ("uncertainty", {"pair": ["mode", "cutoff"]}),
        ("score", {"pair": ["mode", "cutoff"]}),
    ):
        axis = panels(getattr(plots, f"study_{kind}")(study, **options))[0]
        assert (axis.get_xlabel(), axis.get_ylabel()) == ("mode", "cutoff (Hz)")
    axes = panels(plots.study_maps(study, pairs=[("gain", "cutoff"), ("bands", "mode")]))
    assert [axis.get_xlabel() for axis in axes] == ["gain (dB)"] * 2 + ["bands"] * 2


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        ([("gain", "level")], "pair must name two of gain, cutoff, bands, mode; got 'level'. Choose two"),
        (
            [("gain", "gain")],
            r"pair must be the names of two parameters; got \('gain', 'gain'\). Choose two of",
        ),
        ([("gain",)], "pair must be the names of two parameters"),
        (["gain,cutoff"], "pair must be the names of two parameters; got 'gain,cutoff'"),
        ("some", "pairs must be 'all' or a list of pairs of parameters; got 'some'"),
        ([], r"pairs must be 'all' or a list of pairs of parameters; got \[\]"),
    ],
)
def test_what_is_no_pair_is_refused(pairs, words):
    with pytest.raises(aw.Refused, match=words):
        plots.study_maps(studied("four"), pairs=pairs)


def test_all_pairs_are_a_matrix_of_means_below_and_deviations_above():
    study = studied("four")
    figure = plots.study_maps(study, pairs="all")
    axes, count, names = panels(figure), 4, ["gain", "cutoff", "bands", "mode"]
    assert len(axes) == count * count
    best, belief = study.best().params, study.belief()
    limits = {}
    for (row, column), axis in zip(itertools.product(range(count), repeat=2), axes, strict=True):
        if row == column:
            assert [text.get_text() for text in axis.texts] == [
                study.space.parameters[names[row]].text(best[names[row]])
            ]
            continue
        mesh = axis.collections[0]
        assert mesh.get_cmap().name == (GOOD if row > column else UNSURE)
        limits.setdefault(row > column, set()).add(mesh.get_clim())
        scales = [Scale.of(study.space, names[k], 40, cells=True) for k in (column, row)]
        setting = {**best} | {scale.name: scale.axis.values[-1] for scale in scales}
        mean, var = belief.moments(study.space.unit(setting)[None])
        expected = float(mean if row > column else var.sqrt())
        assert mesh.get_array()[-1, -1] == pytest.approx(expected, abs=1e-9)
    assert {len(found) for found in limits.values()} == {1}  # one scale for all
    assert [axes[12 + k].get_xlabel() for k in range(4)] == ["gain (dB)", "cutoff (Hz)", "bands", "mode"]
    assert [axes[4 * k].get_ylabel() for k in range(1, 4)] == ["cutoff (Hz)", "bands", "mode"]
    assert axes[3].get_ylabel() == "gain (dB)"


def test_all_pairs_of_two_parameters_are_one_map_and_of_seven_are_refused():
    assert len(panels(plots.study_maps(studied(), pairs="all"))) == 2
    many = aw.Study(
        aw.Space({name: aw.Real(0, 1) for name in "abcdefg"}), kernel=aw.kernel("se", 1.0), initial=1
    )
    many.record([dict.fromkeys("abcdefg", 0.2), dict.fromkeys("abcdefg", 0.7)], 1)
    expected = "study must have at most 6 parameters to draw all pairs; got 7 parameters. Name a pair"
    with pytest.raises(aw.Refused, match=expected):
        plots.study_maps(many, pairs="all")


# importance


def test_importance_has_a_bar_with_an_interval_for_each_parameter_most_first():
    study = studied("four")
    found = study.importance()
    (axis,) = plots.study_importance(study).axes
    assert [label.get_text() for label in axis.get_yticklabels()] == list(found)
    assert [bar.get_width() for bar in axis.patches] == [share.value for share in found.values()]
    intervals = [tuple(line.get_xdata()) for line in axis.lines if line.get_linestyle() == "-"]
    assert intervals == [share.interval for share in found.values()]
    assert [text.get_text() for text in axis.texts] == [f"{share.value:.0%}" for share in found.values()]


# items


def test_items_are_drawn_one_by_one_and_named_beside_the_star():
    study = studied("wine")
    (axis,) = plots.study_slices(study).axes
    (line,) = (line for line in axis.lines if line.get_label() == "expected")
    assert line.get_linestyle() == "None"  # nothing is between two items
    assert len(line.get_xdata()) == 30
    assert axis.get_xlabel() == "wine (row of the table, from 0)"
    assert axis.texts[0].get_text() == study.best().params["wine"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["maps", "uncertainty", "score", "importance", "progress"])
def test_all_figures_of_items_can_be_drawn(kind):
    getattr(plots, f"study_{kind}")(studied("wine")).savefig(io.BytesIO(), dpi=30)


def test_maps_over_items_and_a_number_have_a_row_for_each_item():
    study = studied("wines")
    axis = panels(plots.study_maps(study))[0]
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("warmth (°C)", "wine (row of the table, from 0)")
    assert axis.collections[0].get_array().shape[0] == 30
