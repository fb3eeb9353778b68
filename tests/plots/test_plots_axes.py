"""Axes of figures: enough round numbers that do not touch, and names that fit."""

import io
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

import askwise as aw
from askwise.plots.names import fitted
from askwise.plots.scales import Scale
from askwise.plots.ticks import log_ticks, numbers


@pytest.mark.parametrize(
    ("parameter", "labels"),
    [
        (aw.Real(100, 10_000, log=True), "100 200 500 1k 2k 5k 10k"),
        (aw.Real(20, 20_000, log=True), "30 100 300 1k 3k 10k"),
        (aw.Real(1, 100, log=True), "1 2 5 10 20 50 100"),
        (aw.Integer(1, 50, log=True), "1 2 5 10 20 50"),
        (aw.Real(200, 800, log=True), "200 300 400 600 800"),
        (aw.Real(300, 900, log=True), "300 400 600 800"),
        (aw.Real(3, 4, log=True), "3 3.2 3.4 3.6 3.8 4"),
        (aw.Integer(6, 9, log=True), "6 7 8 9"),
        (aw.Real(0.002, 0.2, log=True), "0.003 0.01 0.03 0.1"),
        (aw.Real(1e3, 1e7, log=True), "1k 10k 100k 1M 10M"),
        (aw.Real(1e-12, 1e12, log=True), "$10^{-12}$ $10^{-8}$ $10^{-4}$ 1 $10^{4}$ $10^{8}$ $10^{12}$"),
    ],
)
def test_ticks_of_a_logarithmic_axis_are_round_and_enough(parameter, labels):
    ticks = log_ticks(parameter.low, parameter.high, isinstance(parameter, aw.Integer))
    assert " ".join(numbers(ticks)) == labels


@given(st.floats(-6, 6), st.floats(0.01, 12), st.sampled_from([0, 18, 20, 28]))
def test_any_logarithmic_axis_has_two_ticks_or_more_within_it(low, length, room):
    first, last = 10.0**low, 10.0 ** (low + length)
    ticks = log_ticks(first, last, False, room)
    assert 2 <= len(ticks) <= 10
    assert all(first <= tick <= last * (1 + 1e-12) for tick in ticks)
    assert ticks == sorted(set(ticks))
    assert len(set(numbers(ticks))) == len(ticks) or len(ticks) == 2


@pytest.mark.parametrize(
    "ends", [(100, 10_000), (20, 20_000), (300, 900), (3, 4), (0.002, 0.2), (1e-9, 1e-7), (1, 1e6), (40, 70)]
)
@pytest.mark.parametrize("side", ["x", "y"])
def test_labels_of_a_logarithmic_axis_do_not_touch(ends, side):
    figure = Figure(figsize=(2.9, 2.9), layout="constrained")
    axes = figure.subplots()
    Scale.of(aw.Space(x=aw.Real(*ends, log=True)), "x", 5).dress(axes, side)
    figure.draw_without_rendering()
    labels = [one for one in getattr(axes, f"get_{side}ticklabels")() if one.get_text()]
    boxes = [label.get_window_extent() for label in labels]
    assert len(boxes) >= 3
    assert all(not one.overlaps(other) for one, other in itertools.pairwise(boxes))


@pytest.mark.parametrize(
    ("parameter", "labels"),
    [
        (aw.Integer(86, 96), "86 88 90 92 94 96"),
        (aw.Real(0, 40), "0 10 20 30 40"),
        (aw.Real(10, 500), "100 200 300 400 500"),
        (aw.Real(1000, 90_000), "20k 40k 60k 80k"),
        (aw.Items([f"item {k}" for k in range(400)], id="x"), "0 100 200 300"),
    ],
)
def test_ticks_of_a_linear_axis_are_round_and_do_not_touch(parameter, labels):
    for width, room in ((2.9, 28), (1.9, 18)):
        figure = Figure(figsize=(width, 2.9), layout="constrained")
        axes = figure.subplots()
        Scale.of(aw.Space(x=parameter), "x", 5).dress(axes, room=room)
        figure.draw_without_rendering()
        low, high = axes.get_xlim()
        inside = [one for one in axes.get_xticklabels() if low <= one.get_position()[0] <= high]
        boxes = [label.get_window_extent() for label in inside]
        assert all(not one.overlaps(other) for one, other in itertools.pairwise(boxes))
        assert len(boxes) >= 2
        if room == 28:
            assert " ".join(label.get_text() for label in inside) == labels


def test_numbers_on_axes_are_short_and_alike():
    assert numbers([0.5, 20.0, 20_000.0, 1e6]) == ["0.5", "20", "20k", "1M"]
    assert numbers([1000, 1500, 2000]) == ["1k", "1.5k", "2k"]
    assert numbers([1001, 1002.5]) == ["1001", "1002.5"]
    assert numbers([2e-9, 1e-3, 20_000.0]) == [r"$2 \times 10^{-9}$", "0.001", r"$2 \times 10^{4}$"]


# names

LONG = ["slow attack with gentle release", "fast attack", "broadband compression", "none at all"]


def test_short_names_are_side_by_side_and_longer_ones_in_lines():
    assert fitted(["soft", "hard", "off"], 28).labels == ["soft", "hard", "off"]
    assert fitted(["soft", "very hard indeed", "off"], 28).labels == ["soft", "very\nhard\nindeed", "off"]
    assert fitted(LONG, 0).labels[0] == "slow attack with\ngentle release"
    assert fitted([f"voice {k}" for k in range(4)], 28).labels[3] == "voice\n3"
    assert fitted([f"voice {k}" for k in range(6)], 28).slanted is True


@pytest.mark.parametrize("names", [LONG, [f"voice {k}" for k in range(14)], ["x" * 80, "y"]])
def test_names_that_are_too_long_or_too_many_are_numbered_with_a_key(names):
    found = fitted(names, 28)
    assert found.labels[0] == "1"
    assert [entry.split(" = ")[0] for entry in found.key] == [str(k + 1) for k in range(len(names))]
    assert all(entry.split(" = ")[1][:5] == name[:5] for entry, name in zip(found.key, names, strict=True))
    assert max(map(len, found.key)) <= 53


def test_of_very_many_names_the_key_has_those_with_a_tick():
    found = fitted([f"name {k}" for k in range(100)], 28)
    assert len(found.labels) == len(found.key) <= 10
    assert [f"{label} = name {int(label) - 1}" for label in found.labels] == found.key


@given(st.lists(st.text(st.characters(codec="ascii", categories=["L", "Zs"]), min_size=1), min_size=2))
def test_there_is_room_for_any_names(names):
    for room in (0, 18, 28):
        found = fitted(names, room)
        assert found.labels
        if room and not found.slanted:
            widest = [max(map(len, label.split("\n"))) for label in found.labels]
            assert sum(widest) <= room


def test_names_of_choices_do_not_overlap_below_a_panel():
    for values in (LONG, [f"voice {k}" for k in range(14)], ["soft", "rather hard", "off"]):
        figure = Figure(figsize=(2.9, 2.9), layout="constrained")
        axes = figure.subplots()
        Scale.of(aw.Space(x=aw.Choice(values), y=aw.Real(0, 1)), "x", 5).dress(axes)
        figure.savefig(io.BytesIO(), dpi=30)
        boxes = [label.get_window_extent() for label in axes.get_xticklabels()]
        assert all(not one.overlaps(other) for one, other in itertools.pairwise(boxes))
