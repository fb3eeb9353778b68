"""Natural units and the unit cube: there and back, and what is refused."""

import inspect
import math
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import askwise as aw
from askwise.space import Real, Space
from tensors import f64, uniform

HOUSE = r"^[^;]+ must [^;]+; got .+\. .+"
units = st.floats(0, 1)
lows, widths, ratios = st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.floats(1.01, 1e12)
linear = st.builds(lambda low, width: Real(low, low + width), lows, widths)
logarithmic = st.builds(lambda low, ratio: Real(low, low * ratio, log=True), st.floats(1e-9, 1e9), ratios)
reals = linear | logarithmic
spaces = st.dictionaries(st.from_regex(r"[a-z]{1,6}", fullmatch=True), reals, min_size=1, max_size=4).map(
    lambda parameters: Space(**parameters)
)


@given(reals, units)
def test_there_and_back_is_the_same_place(real, unit):
    value = real.natural(unit)
    size = math.log(real.high / real.low) if real.log else (real.high - real.low)
    digits = 1 if real.log else max(abs(real.low), abs(real.high))
    assert isinstance(value, float)
    assert real.unit(value) == pytest.approx(unit, abs=1e-14 * (1 + 30 * digits / size))


@given(reals, units)
def test_back_and_there_is_the_same_value(real, share):
    value = min(real.high, real.low + share * (real.high - real.low))
    assert real.natural(real.unit(value)) == pytest.approx(value, rel=1e-12, abs=1e-15 * abs(real.low))


@given(reals, units)
def test_values_lie_within_bounds_and_places_within_the_cube(real, unit):
    value = real.natural(unit)
    assert real.low <= value <= real.high
    assert 0 <= real.unit(value) <= 1


@given(reals, units, units)
def test_higher_places_have_higher_values(real, one, other):
    low, high = sorted((one, other))
    assert real.natural(low) <= real.natural(high)


@given(reals)
def test_the_places_of_the_bounds_are_zero_and_one(real):
    assert real.unit(real.low) == 0
    assert real.unit(real.high) == 1


@pytest.mark.parametrize(
    "real",
    [
        Real(0, 10),
        Real(-2.5, 7.5),
        Real(0.1, 0.3),
        Real(-1.0, 1e-20),
        *(Real(low, high, log=True) for low, high in ((20, 20_000), (1e-4, 1e-1), (0.1, 0.7), (3, 7))),
    ],
    ids=str,
)
def test_bounds_are_met_exactly_at_zero_and_one(real):
    assert (real.natural(0.0), real.natural(1.0)) == (real.low, real.high)


@given(reals)
def test_all_bounds_are_met_exactly_at_zero_and_one(real):
    assert (real.natural(0.0), real.natural(1.0)) == (real.low, real.high)


LARGEST = sys.float_info.max / 4


@pytest.mark.parametrize(
    ("real", "middle"), [(Real(-LARGEST, LARGEST), 0.0), (Real(1e-300, 1e300, log=True), 1.0)], ids=str
)
def test_bounds_may_be_as_far_apart_as_numbers_can_tell(real, middle):
    assert (real.natural(0.0), real.natural(1.0)) == (real.low, real.high)
    assert (real.unit(real.low), real.unit(real.high)) == (0, 1)
    assert real.natural(0.5) == pytest.approx(middle)
    assert real.unit(middle) == pytest.approx(0.5)


def test_equal_steps_are_equal_differences_or_equal_ratios():
    plain, log = Real(10, 30), Real(10, 1000, log=True)
    assert [plain.natural(k / 4) for k in range(5)] == pytest.approx([10, 15, 20, 25, 30])
    assert [log.natural(k / 4) for k in range(5)] == pytest.approx([10, 10**1.5, 100, 10**2.5, 1000])
    assert log.unit(100) == pytest.approx(0.5)
    assert plain.unit(20) == 0.5


@given(reals, st.sampled_from([-1.0, -1e-9, 1 + 1e-9, 3.0]))
def test_places_outside_the_cube_are_moved_to_its_edge(real, unit):
    """A search may end a rounding error outside."""
    assert real.natural(unit) == (real.low if unit < 0 else real.high)


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (2, 1),
        (1, 1),
        (0.0, -0.0),
        (math.nan, 1),
        (0, math.nan),
        (0, math.inf),
        (-math.inf, 0),
        (math.inf, -math.inf),
        (-1e308, 1e308),
        (1, math.nextafter(LARGEST, math.inf)),
        (-math.nextafter(LARGEST, math.inf), 1),
        (1, 10**400),
        (-(10**400), 1),
    ],
)
@pytest.mark.parametrize("log", [False, True])
def test_bounds_between_which_there_is_nothing_or_too_much_are_refused(low, high, log):
    with pytest.raises(ValueError, match=HOUSE) as refused:
        Real(low, high, log)
    assert "low and high must be in order and below 4.5e+307 in size; got" in str(refused.value)


@pytest.mark.parametrize("low", [0, -1, -0.0])
def test_a_logarithmic_parameter_must_be_positive(low):
    with pytest.raises(
        ValueError, match=r"low must be positive for a logarithmic parameter; got .*\. Raise it"
    ):
        Real(low, 2, log=True)
    assert Real(low, 2).natural(0.0) == low


@pytest.mark.parametrize("value", [-0.1, 10.1, math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("log", [False, True])
def test_values_outside_are_refused(value, log):
    with pytest.raises(ValueError, match=r"^value must lie between 1 and 10; got .*\. Choose one inside\."):
        Real(1, 10, log).unit(value)


# spaces


@given(spaces, st.integers(0, 1000))
def test_a_point_of_a_space_is_found_again(space, seed):
    point = uniform(space.d, seed=seed)
    params = space.natural(point)
    assert list(params) == list(space.parameters)
    back = space.unit(params)
    assert back.dtype == torch.float64
    for real, got, want in zip(space.parameters.values(), back.tolist(), point.tolist(), strict=True):
        assert got == pytest.approx(real.unit(real.natural(want)), abs=1e-15)


def example() -> Space:
    return Space(gain=Real(0, 10), cutoff=Real(20, 20_000, log=True))


def test_parameters_may_be_given_in_any_order():
    one = example().unit({"gain": 2.5, "cutoff": 200})
    other = example().unit({"cutoff": 200, "gain": 2.5})
    assert torch.equal(one, other)
    torch.testing.assert_close(one, f64([0.25, 1 / 3]))


def test_a_space_is_read_back_from_what_it_prints():
    again = eval(repr(example()), {"Space": Space, "Real": Real})
    assert again.parameters == example().parameters
    assert repr(again) == repr(example())
    assert repr(example()).startswith("Space(gain=Real(low=0, high=10, log=False), cutoff=")


def test_a_space_counts_its_parameters():
    assert (example().d, Space(x=Real(0, 1)).d) == (2, 1)
    assert (aw.Space, aw.Real) == (Space, Real)


def test_a_space_does_not_follow_the_dictionary_it_came_from():
    parameters = {"x": Real(0, 1)}
    space = Space(**parameters)
    parameters["y"] = Real(0, 1)
    assert space.d == 1


def test_a_space_without_parameters_is_refused():
    with pytest.raises(ValueError, match=r"^space must have at least one parameter; got none\. Add one"):
        Space()


@pytest.mark.parametrize("bad", [(0, 1), 3.0, None, "Real(0, 1)", Real], ids=str)
def test_a_parameter_that_is_no_real_is_refused(bad):
    with pytest.raises(
        TypeError, match=r"^parameter gain must be a Real; got .*\. Write gain=Real\(low, high\)"
    ):
        inspect.unwrap(Space.__init__)(Space.__new__(Space), gain=bad)


@pytest.mark.parametrize(
    "params", [{}, {"gain": 1}, {"gain": 1, "cutoff": 30, "more": 1}, {"Gain": 1, "cutoff": 30}], ids=str
)
def test_parameters_that_do_not_match_are_refused(params):
    with pytest.raises(ValueError, match=r"^params must be gain, cutoff; got .*\. Name each of them once\."):
        example().unit(params)


def test_a_value_outside_its_parameter_is_refused():
    with pytest.raises(ValueError, match="value must lie between 20 and 20000; got 10"):
        example().unit({"gain": 1, "cutoff": 10})


def test_a_parameter_may_have_any_name():
    assert Space(self=Real(0, 1)).d == 1
