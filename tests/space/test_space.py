"""Natural units and the unit cube: there and back, constraints, and what is refused."""

import inspect
import itertools
import json
import math
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import askwise as aw
from askwise.space import Choice, Fixed, Integer, Real, Space
from tensors import f64, uniform

HOUSE = r"^[^;]+ must [^;]+; got .+\. .+"
LARGEST, LARGEST_WHOLE = sys.float_info.max / 4, 10**12
KINDS = {"Space": Space, "Real": Real, "Integer": Integer, "Choice": Choice, "Fixed": Fixed}
places = st.floats(0, 1)
lows, widths, ratios = st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.floats(1.01, 1e12)
linear = st.builds(lambda low, width: Real(low, low + width), lows, widths)
logarithmic = st.builds(lambda low, ratio: Real(low, low * ratio, log=True), st.floats(1e-9, 1e9), ratios)
reals = linear | logarithmic
integers = st.builds(
    lambda low, width: Integer(low, low + width),
    st.integers(-(10**6), 10**6),
    st.integers(1, 50) | st.integers(1, 10**9),
) | st.builds(
    lambda low, width: Integer(low, low + width, log=True), st.integers(1, 99), st.integers(1, 10**9)
)
values = st.text() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans()


def distinct(values: list[object]) -> bool:
    return len({(isinstance(value, bool), value) for value in values}) == len(values)


choices = st.lists(values, min_size=2, max_size=5).filter(distinct).map(Choice)
in_context = st.builds(
    lambda parameter, unit: type(parameter)(parameter.low, parameter.high, parameter.log, True, unit),
    reals | integers,
    st.text(),
)
free = reals | integers | choices
names = st.text(min_size=1, max_size=6)
spaces = st.dictionaries(names, free | in_context | st.builds(Fixed, values), min_size=1, max_size=5).map(
    lambda parameters: Space(**{**parameters, "x": Real(0, 1)})
)


# reals


@given(reals, places)
def test_a_place_is_recovered_from_its_value(real, place):
    value = real.natural([place])
    size = math.log(real.high / real.low) if real.log else (real.high - real.low)
    digits = 1 if real.log else max(abs(real.low), abs(real.high))
    assert isinstance(value, float)
    assert real.places(value) == pytest.approx([place], abs=1e-14 * (1 + 30 * digits / size))


@given(reals, places)
def test_a_value_is_recovered_up_to_rounding_from_its_place(real, share):
    value = min(real.high, real.low + share * (real.high - real.low))
    assert real.natural(real.places(value)) == pytest.approx(value, rel=1e-12, abs=1e-15 * abs(real.low))


@given(reals | integers, places)
def test_values_lie_within_bounds_and_places_within_the_cube(parameter, place):
    value = parameter.natural([place])
    assert parameter.low <= value <= parameter.high
    assert 0 <= parameter.places(value)[0] <= 1


@given(reals | integers, places, places)
def test_higher_places_have_higher_values(parameter, one, other):
    low, high = sorted((one, other))
    assert parameter.natural([low]) <= parameter.natural([high])


@given(reals | integers)
def test_the_ends_are_exactly_zero_and_one(parameter):
    assert parameter.places(parameter.low) == [0]
    assert parameter.places(parameter.high) == [1]
    assert (parameter.natural([0.0]), parameter.natural([1.0])) == (parameter.low, parameter.high)


@pytest.mark.parametrize(
    ("real", "middle"), [(Real(-LARGEST, LARGEST), 0.0), (Real(1e-300, 1e300, log=True), 1.0)], ids=str
)
def test_bounds_may_be_as_far_apart_as_numbers_can_tell(real, middle):
    assert (real.natural([0.0]), real.natural([1.0])) == (real.low, real.high)
    assert real.natural([0.5]) == pytest.approx(middle)
    assert real.places(middle) == pytest.approx([0.5])


def test_equal_steps_are_equal_differences_or_equal_ratios():
    plain, log = Real(10, 30), Real(10, 1000, log=True)
    assert [plain.natural([k / 4]) for k in range(5)] == pytest.approx([10, 15, 20, 25, 30])
    assert [log.natural([k / 4]) for k in range(5)] == pytest.approx([10, 10**1.5, 100, 10**2.5, 1000])
    assert log.places(100) == pytest.approx([0.5])
    assert plain.places(20) == [0.5]


@given(reals | integers, st.sampled_from([-1.0, -1e-9, 1 + 1e-9, 3.0]))
def test_places_outside_the_cube_are_moved_to_its_edge(parameter, place):
    """A search may end a rounding error outside."""
    assert parameter.natural([place]) == (parameter.low if place < 0 else parameter.high)


BAD_ORDER = [(2, 1), (1, 1), (0.0, -0.0)]
TOO_LARGE = [
    (0, math.inf),
    (-math.inf, 0),
    (math.nan, 1),
    (0, math.nan),
    (-1e308, 1e308),
    (1, math.nextafter(LARGEST, math.inf)),
    (1, 10**400),
    (-(10**400), 1),
]


@pytest.mark.parametrize(("low", "high"), BAD_ORDER + TOO_LARGE)
@pytest.mark.parametrize("log", [False, True])
def test_bounds_between_which_there_is_nothing_or_too_much_are_refused(low, high, log):
    with pytest.raises(ValueError, match=HOUSE) as refused:
        Real(low, high, log)
    order = "low must be below high; got "
    assert str(refused.value).startswith(order) == ((low, high) in BAD_ORDER)


@pytest.mark.parametrize("low", [0, -1, -0.0])
def test_a_logarithmic_parameter_must_be_positive(low):
    with pytest.raises(
        ValueError, match=r"^low must be positive for a logarithmic parameter; got .*\. Raise it"
    ):
        Real(low, 2, log=True)
    assert Real(low, 2).natural([0.0]) == low


@pytest.mark.parametrize("value", [-0.1, 10.1])
@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("kind", [Real, Integer])
def test_values_outside_are_refused(value, log, kind):
    with pytest.raises(ValueError, match=r"^value must lie between 1 and 10; got .*\. Choose one inside\."):
        kind(1, 10, log).places(value)


# whole numbers


@settings(max_examples=30)
@given(integers, st.data())
def test_a_whole_number_is_recovered_exactly(integer, data):
    value = data.draw(st.integers(integer.low, integer.high))
    back = integer.natural(integer.places(value))
    assert back == value
    assert type(back) is int


@pytest.mark.parametrize("integer", [Integer(0, 1), Integer(-3, 3), Integer(1, 97)], ids=str)
def test_all_whole_numbers_have_equal_cells(integer):
    count = integer.high - integer.low + 1
    middles = [(k + share) / count for k in range(count) for share in (0.01, 0.5, 0.99)]
    found = [integer.natural([place]) for place in middles]
    assert found == [value for value in range(integer.low, integer.high + 1) for _ in range(3)]


def test_a_whole_number_has_the_place_of_its_share_of_the_range():
    assert [Integer(2, 6).places(k)[0] for k in range(2, 7)] == [0, 0.25, 0.5, 0.75, 1]


def test_a_logarithmic_whole_number_is_the_nearest_by_value():
    integer, real = Integer(1, 300, log=True), Real(1, 300, log=True)
    for place in torch.linspace(0, 1, 1001).tolist():
        assert abs(integer.natural([place]) - real.natural([place])) <= 0.5 + 1e-9
    for value in (1, 2, 17, 299, 300):
        assert integer.places(value) == pytest.approx(real.places(value), abs=1e-15)


def test_whole_numbers_may_be_large_but_not_too_large():
    for log in (False, True):
        integer = Integer(1, LARGEST_WHOLE, log)
        for value in (1, 2, 10**6 + 1, LARGEST_WHOLE - 1, LARGEST_WHOLE):
            assert integer.natural(integer.places(value)) == value
    with pytest.raises(ValueError, match=r"^high must be finite and at most 1e\+12 in size; got"):
        Integer(0, LARGEST_WHOLE + 1)


def test_a_value_of_a_whole_number_must_be_whole():
    assert Integer(0, 5).places(3.0) == Integer(0, 5).places(3)
    with pytest.raises(ValueError, match=r"^value must be a whole number; got 2\.5\. Round it"):
        Integer(0, 5).places(2.5)


def test_whole_bounds_that_are_not_floats_are_rounded_to_the_nearest():
    real = Real(0, 2**53 + 3)
    assert real.natural([1.0]) == 2.0**53 + 4
    assert real.places(real.natural([1.0])) == [1]
    with pytest.raises(ValueError, match=r"^low must be below high; got"):
        Real(2**53, 2**53 + 1)


# choices and fixed parameters


@settings(max_examples=30)
@given(choices)
def test_each_value_of_a_choice_has_a_coordinate_of_its_own(choice):
    for index, value in enumerate(choice.values):
        found = choice.places(value)
        assert found == [float(place == index) for place in range(len(choice.values))]
        back = choice.natural(found)
        assert type(back) is type(value)
        assert back == value


def test_booleans_are_not_numbers():
    choice = Choice([True, 1, "1", 0.5])
    assert [choice.places(value) for value in (True, 1, "1")] == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]
    assert Choice([True, 2]) != Choice([1, 2])
    assert Choice([1.0, 2]) != Choice([1, 2])
    assert Fixed(True) != Fixed(1)
    assert len({Choice([True, 2]), Choice([1, 2]), Choice([1, 2])}) == 2
    with pytest.raises(ValueError, match=r"^value must be one of False, 2; got 0\. Choose one of them\."):
        Choice([False, 2]).places(0)


@pytest.mark.parametrize("value", [np.array(["a", "b"]), torch.tensor([1, 2]), {"x": 1}, None], ids=str)
def test_an_invalid_value_is_refused(value):
    for parameter in (Choice(["a", "b"]), Choice([1, 2]), Fixed("a")):
        with pytest.raises(ValueError, match=r"(?s)^value must be .+; got .+\. .+"):
            inspect.unwrap(type(parameter).places)(parameter, value)


def test_values_of_a_choice_in_an_array_are_refused():
    with pytest.raises(TypeError, match=HOUSE):
        inspect.unwrap(Choice.__init__)(Choice.__new__(Choice), np.array(["a", "b"]))


def test_a_number_of_a_choice_may_be_written_without_a_decimal_point():
    assert Choice([1.0, 2.5]).places(1) == [1, 0]


@pytest.mark.parametrize(
    ("given_values", "problem"),
    [
        (["a"], "values must be at least two; got"),
        ([], "values must be at least two; got"),
        (["a", "b", "a"], "values must all differ; got 'a' twice"),
        ([1, 1.0], "values must all differ; got 1.0 twice"),
        ([1, math.nan], "values must be finite"),
        ("ab", "values must be a list; got 'ab'"),
    ],
)
def test_values_that_do_not_make_a_choice_are_refused(given_values, problem):
    with pytest.raises((ValueError, TypeError), match=HOUSE) as refused:
        Choice(given_values)
    assert str(refused.value).startswith(problem)


def test_numbers_of_numpy_become_numbers_of_python():
    real = inspect.unwrap(Real.__init__)
    parameter = Real.__new__(Real)
    real(parameter, np.int64(0), np.float64(2))
    assert (type(parameter.low), type(parameter.high)) == (int, float)
    assert repr(parameter) == "Real(0, 2.0)"


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (Real, ("0", 1)),
        (Real, (0, True)),
        (Real, (None, 1)),
        (Real, (0, 1, "yes")),
        (Real, (0, 1, False, 1)),
        (Real, (0, 1, False, False, 3)),
        (Integer, (0.5, 3)),
        (Choice, ([None, 1],)),
        (Choice, (3,)),
        (Choice, ([1, 2], 1)),
        (Fixed, ([1],)),
    ],
)
def test_settings_of_the_wrong_type_are_refused(kind, wrong):
    with pytest.raises((ValueError, TypeError), match=HOUSE):
        inspect.unwrap(kind.__init__)(kind.__new__(kind), *wrong)


# spaces


@settings(max_examples=25)
@given(spaces, st.integers(0, 1000))
def test_a_point_of_a_space_is_recovered_from_its_setting(space, seed):
    params = space.natural(uniform(space.d, seed=seed))
    assert list(params) == list(space.parameters)
    point = space.unit(params)
    assert point.dtype == torch.float64
    again = space.natural(point)
    for name, parameter in space.parameters.items():
        if isinstance(parameter, Real):
            assert again[name] == pytest.approx(params[name], rel=1e-12, abs=1e-9)
        else:
            assert again[name] == params[name]
            assert type(again[name]) is type(params[name])


@settings(max_examples=25)
@given(spaces)
def test_a_space_is_read_back_from_json_and_from_what_it_prints(space):
    again = Space.from_dict(json.loads(json.dumps(space.to_dict(), sort_keys=True)))
    assert again == space
    assert repr(again) == repr(space)
    assert hash(again) == hash(space)
    assert eval(repr(space), KINDS) == space


@settings(max_examples=25)
@given(spaces)
def test_each_coordinate_has_an_owner(space):
    assert len(space.owners) == space.d
    assert list(dict.fromkeys(space.owners)) == [n for n, p in space.parameters.items() if p.width]


def example() -> Space:
    return Space(
        gain=Real(0, 10, unit="dB"),
        cutoff=Real(20, 20_000, log=True),
        bands=Integer(1, 8),
        mode=Choice(["soft", "hard", True]),
        rate=Fixed(48),
    )


def test_a_space_says_what_it_is():
    space = example()
    assert space.owners == ("gain", "cutoff", "bands", "mode", "mode", "mode")
    assert (space.d, space.contexts, space.constraints) == (6, (), ())
    assert repr(space) == (
        "Space(gain=Real(0, 10, unit='dB'), cutoff=Real(20, 20000, log=True), bands=Integer(1, 8), "
        "mode=Choice(['soft', 'hard', True]), rate=Fixed(48))"
    )
    assert (aw.Space, aw.Real, aw.Integer, aw.Choice, aw.Fixed) == (Space, Real, Integer, Choice, Fixed)


def test_parameters_may_be_given_in_any_order_and_without_fixed_ones():
    params = {"gain": 2.5, "cutoff": 200, "bands": 8, "mode": "hard"}
    point = example().unit(params)
    torch.testing.assert_close(point, f64([0.25, 1 / 3, 1, 0, 1, 0]))
    assert torch.equal(point, example().unit({"rate": 48, **dict(reversed(params.items()))}))
    assert example().natural(point) == {**params, "cutoff": pytest.approx(200), "rate": 48}


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"cutoff": 10}, r"parameter cutoff must lie between 20 and 20000; got 10\."),
        ({"cutoff": math.nan}, r"parameter cutoff must be finite"),
        ({"gain": "3"}, r"parameter gain must be a number; got '3'\."),
        ({"gain": True}, r"parameter gain must be a number; got True\."),
        ({"bands": 2.5}, r"parameter bands must be a whole number; got 2\.5\."),
        ({"mode": 1}, r"parameter mode must be one of 'soft', 'hard', True; got 1\."),
        ({"rate": 44}, r"parameter rate must be 48, which is fixed; got 44\."),
        (
            {"more": 1},
            r"params must be gain, cutoff, bands, mode, rate; got .*more\. Name each of them once\.",
        ),
    ],
)
def test_settings_that_do_not_fit_are_refused_by_name(changed, problem):
    with pytest.raises((ValueError, TypeError), match=f"^{problem}"):
        example().unit({"gain": 1, "cutoff": 30, "bands": 1, "mode": "soft", **changed})


def test_a_missing_parameter_is_refused():
    with pytest.raises(ValueError, match=r"^params must be gain, .*; got gain\. Name each of them once\."):
        example().unit({"gain": 1})


@pytest.mark.parametrize("point", [math.nan, [0.5] * 6, None, "here"])
def test_what_is_no_point_is_refused(point):
    with pytest.raises(
        TypeError, match=r"^point must be a tensor of 6 coordinates; got .*\. Make it by space\.unit"
    ):
        inspect.unwrap(Space.values)(example(), point)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_point_that_is_nowhere_is_refused(value):
    with pytest.raises(
        ValueError, match=r"^point must have finite coordinates; got \[.*\]\. Keep them between"
    ):
        example().natural(torch.full((6,), value, dtype=torch.float64))


@pytest.mark.parametrize("shape", [(2,), (1, 6)])
def test_a_point_of_another_shape_is_refused(shape):
    with pytest.raises(ValueError, match=r"^point must have 6 coordinates; got shape .*\. Give one for each"):
        inspect.unwrap(Space.natural)(example(), torch.zeros(shape))


@pytest.mark.parametrize(
    "parameters", [{}, {"a": Fixed(1)}, {"a": Real(0, 1, context=True), "b": Fixed(1)}], ids=str
)
def test_a_space_without_anything_to_choose_is_refused(parameters):
    with pytest.raises(
        ValueError, match=r"^space must have at least one parameter to choose; got .*\. Add one"
    ):
        Space(**parameters)


@pytest.mark.parametrize("bad", [(0, 1), 3.0, None, "Real(0, 1)", Real], ids=str)
def test_anything_but_a_parameter_is_refused(bad):
    with pytest.raises(
        TypeError, match=r"^parameter gain must be a Choice, Fixed, Integer, Items, Ordinal or Real; got"
    ):
        inspect.unwrap(Space.__init__)(Space.__new__(Space), gain=bad)


def test_a_space_does_not_follow_the_dictionary_it_came_from():
    parameters = {"x": Real(0, 1)}
    space = Space(**parameters)
    parameters["y"] = Real(0, 1)
    assert space.d == 1


def test_order_kinds_and_constraints_tell_spaces_apart():
    a, b = Real(0, 1), Integer(0, 1)
    assert Space(a=a, b=b) == Space(a=a, b=b) != Space(b=b, a=a)
    assert Space(a=a, b=b) != Space(a=a, b=b).where("a <= 0.5")
    assert Space(a=a) != "Space(a=Real(0, 1))"


def test_a_parameter_may_have_any_name():
    space = Space(**{"self": Real(0, 1), "class": Real(0, 1), "my gain": Real(0, 1), "µ": Real(0, 1)})
    assert space.d == 4
    assert eval(repr(space), KINDS) == space
    assert space.where("µ <= 0.5").unit({"self": 0, "class": 0, "my gain": 1, "µ": 0.4}).shape == (4,)


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        (
            {"type": "reel", "low": 0, "high": 1},
            "type must be one of choice, fixed, integer, items, ordinal, real; got 'reel'",
        ),
        ({"type": "real", "low": 0}, "high must be given for a parameter of type real; got none"),
        ({"type": "fixed", "value": 0, "log": True}, "log must be one of value; got another key"),
        ({}, "type must be one of"),
    ],
)
def test_what_was_not_written_by_a_space_is_refused(written, problem):
    with pytest.raises(ValueError, match=f"^{problem}"):
        Space.from_dict({"parameters": [["x", written]]})


# constraints

NUMBERS = Space(
    a=Real(-5, 5), b=Integer(0, 9), c=Real(1, 100, log=True), f=Fixed(2), t=Real(0, 1, context=True)
)


@pytest.mark.parametrize(
    "text",
    [
        "a + 2*b <= 10",
        "-a + b/2 - (c - 3) * 0.1 >= -f + 1",
        "a <= b",
        "f * a >= c / f - 30",
        "-3 <= a + t <= 3",
        "2 * (a + b) >= 1 + +t * 3e0",
        "10 >= b >= 2",
    ],
)
def test_a_constraint_means_what_it_says(text):
    space, free = NUMBERS.where(text), NUMBERS
    accepted = []
    for seed in range(40):
        params = free.natural(uniform(free.d, seed=seed))
        try:
            space.unit(params)
            accepted.append(True)
        except ValueError as error:
            assert str(error).startswith("params must satisfy")  # noqa: PT017
            accepted.append(False)
        assert accepted[-1] == eval(text, {}, params)
    assert {True, False} == set(accepted)


def test_constraints_add_up():
    space = NUMBERS.where("a <= 1").where("b <= 3", "a >= 0")
    assert space.constraints == ("a <= 1", "b <= 3", "a >= 0")
    assert repr(space).endswith(".where('a <= 1', 'b <= 3', 'a >= 0')")
    assert eval(repr(space), KINDS) == space == Space.from_dict(json.loads(json.dumps(space.to_dict())))
    assert NUMBERS.constraints == ()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a + b", r"constraint must compare by <= or >=; got 'a \+ b'"),
        ("a < 3", "constraint must compare by <= or >=; got"),
        ("a == 3", "constraint must compare by <= or >=; got"),
        ("a <=", "constraint must be a comparison; got"),
        ("x <= 3", r"constraint must name numeric parameters \(a, b, c, f, t\); got 'x' in 'x <= 3'"),
        ("m <= 3", r"constraint must name numeric parameters \(a, b, c, f, t\); got 'm'"),
        ("s <= 3", r"constraint must name numeric parameters \(a, b, c, f, t\); got 's'"),
        ("a * b <= 3", "constraint must be a sum of parameters times numbers; got a product"),
        ("3 / a <= 3", "constraint must be a sum of parameters times numbers; got a product or quotient"),
        ("a / 0 <= 3", "constraint must be a sum of parameters times numbers; got a division by zero"),
        ("a ** 2 <= 3", "constraint must be a sum of parameters times numbers; got a \\*\\* 2"),
        ("abs(a) <= 3", "constraint must be a sum of parameters times numbers; got abs"),
        ("True <= a", "constraint must be a sum of parameters times numbers; got True"),
        ("a <= 1e999", "constraint must have finite numbers; got"),
        (f"a <= {10**400}", "constraint must have finite numbers; got"),
        ("a >= 6", "constraints must leave at least one setting; got 'a >= 6'"),
        ("f >= 3", "constraints must leave at least one setting; got 'f >= 3'"),
    ],
)
def test_constraints_that_mean_nothing_are_refused(text, problem):
    space = Space(**NUMBERS.parameters, m=Choice([1, 2]), s=Fixed("3"))
    with pytest.raises(ValueError, match=f"^{problem}") as refused:
        space.where(text)
    assert "; got " in str(refused.value)


@settings(max_examples=15)
@given(
    st.lists(st.tuples(*[st.integers(-3, 3)] * 3, st.integers(-6, 6)), min_size=1, max_size=4),
    st.booleans(),
)
def test_constraints_are_refused_exactly_if_no_setting_satisfies_them(rows, log):
    """Against enumeration; the third parameter's whole numbers may be on a scale of ratios."""
    space = Space(a=Integer(0, 3), b=Integer(-2, 1), c=Integer(1, 4, log=log))
    texts = [f"{x} * a + {y} * b + {z} * c <= {bound}" for x, y, z, bound in rows]
    every = itertools.product(range(4), range(-2, 2), range(1, 5))
    left = [s for s in every if all(x * s[0] + y * s[1] + z * s[2] <= bound for x, y, z, bound in rows)]
    if left:
        domain = space.where(*texts).domain()
        found = {tuple(space.natural(point).values()) for point in domain.settings(1000)}
        assert found == set(left)
        assert tuple(space.natural(domain.anchor).values()) in found
    else:
        with pytest.raises(ValueError, match=r"^constraints must leave at least one setting"):
            space.where(*texts)


@pytest.mark.parametrize(
    "texts", [("a >= 10",), ("a + b <= 0",), ("a + b >= 5", "a + b <= 5"), ("a >= 9.9999",)]
)
def test_constraints_that_leave_very_little_are_accepted(texts):
    space = Space(a=Real(0, 10), b=Real(0, 10)).where(*texts)
    domain = space.domain()
    assert domain.feasible(domain.anchor)
    for point in domain.snapped(uniform(50, 2)):
        space.unit(space.natural(point))


@pytest.mark.parametrize(
    ("space", "texts"),
    [
        (Space(a=Integer(0, 10), b=Real(0, 10)), ("a + b <= 7", "a + b >= 7")),
        (Space(a=Integer(0, 10), b=Real(0, 10)), ("5 <= a + b <= 5.000001",)),
        (Space(a=Real(1, 1e10, log=True), b=Real(1, 1e10, log=True)), ("a + b <= 20", "a + b >= 20")),
        (Space(a=Real(0, 1), f=Fixed(0.25), g=Fixed(0.5)), ("a + f + g <= 0.75",)),
        (Space(a=Integer(0, 10**12), b=Integer(0, 10**12)), ("a + b <= 7", "a + b >= 7")),
    ],
    ids=str,
)
def test_equalities_are_accepted_and_kept(space, texts):
    narrowed = space.where(*texts)
    for point in narrowed.domain().snapped(uniform(50, space.d)):
        narrowed.unit(narrowed.natural(point))


def test_values_from_users_are_checked_before_rounding():
    """A place between such bounds is known to a few thousandths only."""
    space = Space(a=Real(-1e12, 1e13), b=Real(0, 1)).where("a <= 3")
    space.unit({"a": 3, "b": 0})
    with pytest.raises(ValueError, match=r"^params must satisfy"):
        space.unit({"a": 3.000001, "b": 0})


# contexts


def test_a_space_of_reals_alone_has_no_domain():
    assert Space(a=Real(0, 1), b=Real(1, 9, log=True), c=Fixed(3)).domain() is None
    for other in (Integer(0, 3), Choice([1, 2])):
        assert Space(a=Real(0, 1), b=other).domain() is not None
    assert Space(a=Real(0, 1)).where("a <= 0.5").domain() is not None


def test_a_context_must_be_complete_and_no_more():
    space = Space(a=Real(0, 1), t=Real(0, 1, context=True), u=Choice([1, 2], context=True))
    assert space.contexts == ("t", "u")
    domain = space.domain({"t": 0.25, "u": 2})
    assert torch.equal(domain.snapped(f64([0.5, 0.9, 1, 0])), f64([0.5, 0.25, 0, 1]))
    with pytest.raises(ValueError, match=r"^context must set t, u; got no u\. Add u to the context\."):
        space.domain({"t": 0.25})
    with pytest.raises(ValueError, match=r"^context must set t, u; got no t\."):
        space.domain()
    with pytest.raises(ValueError, match=r"^context must set t, u; got 'a'\. Leave it out"):
        space.domain({"t": 0.25, "u": 2, "a": 1})
    with pytest.raises(ValueError, match=r"^parameter t must lie between 0 and 1; got 2\."):
        space.domain({"t": 2, "u": 2})


def test_a_context_without_any_setting_is_refused():
    space = Space(a=Real(0, 1), t=Real(0, 1, context=True)).where("a >= 2 * t")
    assert space.domain({"t": 0.5}).anchor[0] == pytest.approx(1)
    with pytest.raises(ValueError, match=r"^context must leave at least one setting .*; got \{'t': 0\.6\}\."):
        space.domain({"t": 0.6})
    alone = Space(a=Real(0, 1), t=Real(0, 1, context=True)).where("t <= 0.5")
    assert alone.domain({"t": 0.5}) is not None
    with pytest.raises(ValueError, match=r"^context must leave at least one setting"):
        alone.domain({"t": 0.51})


def test_the_domain_of_a_context_is_made_once():
    space = Space(a=Real(0, 1), t=Real(0, 1, context=True))
    assert space.domain({"t": 0.5}) is space.domain({"t": 0.5})
    for k in range(40):
        assert space.domain({"t": k / 40}).given[1] == k / 40
