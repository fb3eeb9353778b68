"""Figures hold what they say: the numbers of the library, and the points that the rules ask."""

import functools
import io
import math
import re
from pathlib import Path

import pytest
import torch
from matplotlib.figure import Figure

import askwise as aw
from askwise import plots
from askwise.numerics.seeds import generator
from askwise.plots.decomposition import _ventiles
from askwise.rules import RULES, Asks, parse
from askwise.search.search import Search
from tensors import f64, uniform

SIZES = {Asks.BINARY: 1, Asks.DUEL: 2, Asks.BATCH: 3}
CASES = [
    pytest.param(key, kind, marks=pytest.mark.slow if kind == Asks.BATCH and key != "muc" else ())
    for key, rule in sorted(RULES.items())
    for kind in sorted(rule.asks)
]
GRID = torch.linspace(0, 1, 501, dtype=torch.float64)


@functools.cache
def belief(kind: Asks = Asks.DUEL) -> aw.Belief:
    kernel = aw.kernel("se", 0.2, 2.0)
    if kind == Asks.BINARY:
        x = uniform(9, 1, seed=1)
        return aw.infer(aw.Data.binary(x, (x[:, 0] - 0.6).abs() < 0.2), kernel)
    x = uniform(8, 2, 1, seed=1)
    return aw.infer(aw.Data.duels(x, (x[:, 0, 0] - 0.6).abs() < (x[:, 1, 0] - 0.6).abs()), kernel)


@functools.cache
def maps() -> Figure:
    return plots.decomposition_maps()


def drawn(figure) -> None:
    figure.set_layout_engine("none")  # which takes most of the time
    figure.savefig(io.BytesIO(), dpi=30)


def labelled(axis, start: str) -> list[tuple[float, float]]:
    """Places of the single marks whose label begins with this."""
    lines = [line for line in axis.lines if str(line.get_label()).startswith(start)]
    return [(float(line.get_xdata()[0]), float(line.get_ydata()[0])) for line in lines]


def what_the_rule_asks(known: aw.Belief, key: str, m: int) -> torch.Tensor:
    return parse(key).ask(known, m, Search.around(known, generator("question", 0)))


def test_the_maps_are_the_library_s_decomposition():
    drawn(maps())
    axes = [axis for axis in maps().axes if axis.images]
    shown = [axis.images[0].get_array() for axis in axes]
    i, j = torch.tensor([0, 3, 50, 100, 77]), torch.tensor([64, 0, 90, 128, 51])
    mean, var = -8 + j.double() / 8, i.double() / 10
    total = aw.numerics.success_probability(mean, var) * aw.numerics.success_probability(-mean, var)
    expected = [
        total,
        aw.numerics.epistemic_variance(mean, var),
        aw.numerics.aleatoric_variance(mean, var),
        aw.numerics.binary_entropy(mean / (1 + var).sqrt()),
        aw.numerics.mutual_information(mean, var),
        aw.numerics.aleatoric_entropy(mean, var),
    ]
    assert len(shown) == 6
    for axis, values, wanted in zip(axes, shown, expected, strict=True):
        torch.testing.assert_close(f64(values[i, j].data), wanted, rtol=1e-12, atol=1e-15)
        assert (axis.get_xlim(), axis.get_ylim()) == ((-8, 8), (0, 10))
    tops = [axis.images[0].get_clim() for axis in axes]
    assert tops == [(0, 0.25)] * 3 + [(0, math.log(2))] * 3


def test_a_cell_of_a_map_lies_where_its_mean_and_variance_are():
    image = maps().axes[0].images[0]
    left, right, bottom, top = image.get_extent()
    rows, columns = image.get_array().shape
    wide, high = (right - left) / columns, (top - bottom) / rows
    centres = (left + wide / 2, right - wide / 2, bottom + high / 2, top - high / 2)
    assert centres == pytest.approx((-8, 8, 0, 10))


def test_the_two_bounds_are_drawn_with_what_they_choose():
    known = belief(Asks.BINARY)
    figure = plots.bounds_compared(known)
    drawn(figure)
    rates, values, *bounds = figure.axes
    assert [axis.get_title(loc="left")[5] for axis in figure.axes] == list("ABCD")
    assert len(rates.collections) == 9  # bands between twenty parts
    for axis, key, name in zip(bounds, ("ucb_f", "ucb_phi"), (r"UCB$_f$", r"UCB$_\Phi$"), strict=True):
        choice = what_the_rule_asks(known, key, 1)
        curve, dashed = axis.lines
        assert dashed.get_xdata()[0] == choice.item()
        best = int(f64(curve.get_ydata()).argmax())
        assert abs(GRID[best] - choice.item()) <= 1 / 500
        assert labelled(rates, name) == [(choice.item(), known.success_probability(choice).item())]
    answers = [line for line in values.lines if "answered" in str(line.get_label())]
    assert sum(len(line.get_xdata()) for line in answers) == 9


def test_the_ventiles_hold_their_share():
    mean, var = f64([0.7]).expand(2), f64([2.3]).expand(2)
    axis = Figure().subplots()
    _ventiles(axis, f64([0.0, 1.0]), mean, var)
    draws = aw.numerics.ndtr(0.7 + math.sqrt(2.3) * torch.special.ndtri((torch.arange(4000) + 0.5) / 4000))
    for k, band in enumerate(axis.collections, 1):
        heights = band.get_paths()[0].vertices[:, 1]
        inside = (draws > heights.min()) & (draws < heights.max())
        assert inside.double().mean().item() == pytest.approx(1 - k / 10, abs=2e-3)


@pytest.mark.parametrize(("key", "kind"), CASES)
def test_a_question_marks_what_the_rule_asks(key, kind, monkeypatch):
    monkeypatch.setattr("askwise.plots.questions._OTHERS", 2)
    known, m = belief(kind), SIZES[kind]
    values, _, reason = plots.question(known, parse(key), m).axes
    asked = what_the_rule_asks(known, key, m)
    marked = labelled(values, "asks")
    assert [place for place, _ in marked] == asked[:, 0].tolist()
    assert values.get_xlim() == reason.get_xlim() == (0, 1)
    for line in values.lines:
        if str(line.get_label()).startswith("draw for "):
            ((_, height),) = labelled(values, str(line.get_label()).replace("draw for", "asks"))
            assert height == pytest.approx(line.get_ydata().max(), abs=1e-3)
    curves = [line for line in reason.lines if len(line.get_xdata()) == len(GRID)]
    marks = [line for line in reason.lines if len(line.get_xdata()) == 1]
    for curve in curves:
        (mark,) = (mark for mark in marks if mark.get_color() == curve.get_color())
        best = GRID[int(f64(curve.get_ydata()).argmax())]
        assert abs(float(mark.get_xdata()[0]) - best) <= 1 / 500
    assert curves or reason.get_ylabel().startswith("with other")


def test_the_score_of_muc_is_the_epistemic_variance_of_its_duel():
    known = belief()
    reason = plots.question(known, parse("muc"), 2).axes[2]
    champion = what_the_rule_asks(known, "muc", 2)[:1]
    expected = aw.numerics.epistemic_variance(*known.difference(GRID[:, None], champion.expand(len(GRID), 1)))
    torch.testing.assert_close(f64(reason.lines[0].get_ydata()), expected, rtol=1e-8, atol=1e-10)


def test_answers_are_rows_with_winners_filled():
    data = aw.Data.duels([[[0.2], [0.6]], [[0.9], [0.4]]], [0, 1]) + aw.Data.binary([[0.3], [0.7]], [1, 0])
    known = aw.infer(data, aw.kernel("se", 0.2))
    figure = plots.question(known, parse("random"), 2)
    axis = figure.axes[1]
    filled, hollow = (line for line in axis.lines if len(line.get_xdata()) > 2)
    assert list(filled.get_xydata().ravel()) == [0.6, 1, 0.9, 2, 0.3, 3]
    assert list(hollow.get_xydata().ravel()) == [0.2, 1, 0.4, 2, 0.7, 4]


@pytest.mark.parametrize("shape", [(3, 2, 2), (4, 3, 2, 1)])
def test_anything_but_one_study_in_one_dimension_is_refused(shape):
    data = aw.Data.duels(uniform(*shape), torch.ones(shape[:-2]))
    known = aw.infer(data, aw.kernel("se", 0.3))
    with pytest.raises(ValueError, match="belief to draw must be of one study in one dimension"):
        plots.question(known, parse("muc"), 2)


def test_a_drawing_leaves_the_user_s_style_alone():
    import matplotlib

    before = dict(matplotlib.rcParams)
    plots.question(belief(), parse("muc"), 2)
    assert dict(matplotlib.rcParams) == before


def test_no_other_module_needs_the_figures():
    figures = Path(plots.__file__).parent
    report = figures.parent / "bench" / "report"
    drawing = {*figures.rglob("*.py"), report / "figures.py", report / "looks.py"}
    drawing |= {*(figures.parent / "web").rglob("*.py")}  # its extra has them
    others = set(figures.parent.rglob("*.py")) - drawing
    assert all(path.exists() for path in drawing)
    assert len(others) > 30
    # the command line may, once it is asked for a figure
    needy = re.compile(r"^(from|import) askwise(\.plots| import .*\bplots\b)", re.MULTILINE)
    assert [path for path in others if needy.search(path.read_text())] == []
