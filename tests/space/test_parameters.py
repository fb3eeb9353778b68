"""Every kind of parameter keeps one contract; reals with steps and ordinals are what users expect of them."""

import math
from decimal import Decimal

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given

import askwise as aw
from askwise.errors import Refused
from askwise.numerics import generator
from askwise.rules import parse
from askwise.search import Search
from askwise.space import KINDS, Choice, Fixed, Integer, Items, Ordinal, Parameter, Real, Space

EXAMPLES: list[Parameter] = [
    Real(-2, 3),
    Real(100, 10_000, log=True, unit="Hz"),
    Real(100, 10_000, log=True, step=10, unit="Hz"),
    Real(0, 1, step=0.1),
    Real(-0.3, 0.6, step=0.3, context=True),
    Real(5, 45, step=10),
    Integer(1, 8),
    Integer(1, 1000, log=True),
    Integer(0, 10**6),
    Ordinal([250, 500, 1000, 2000], unit="Hz"),
    Ordinal(["off", "low", "high"]),
    Ordinal([True, 1, "1"]),
    Choice(["soft", "hard", "off"]),
    Choice([1, True, 2.5]),
    Fixed(48_000),
    Fixed("hall"),
    Items({"name": ["Chablis", "Rioja", "Port"], "sugar": [1.2, 2.5, 90.0]}, features=["sugar"], id="name"),
    Items(["Chablis", "Rioja", "Port"], id="name"),
    Items([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]),
]


@pytest.fixture(params=EXAMPLES, ids=repr)
def parameter(request) -> Parameter:
    return request.param


def test_every_kind_has_an_example():
    assert {example.kind for example in EXAMPLES} == set(KINDS)


def values_of(parameter: Parameter) -> list:
    """Values at places all over the unit interval, the ends included."""
    grid = [k / 40 for k in range(41)]
    if parameter.one_hot:
        return list(parameter.values)
    return [parameter.natural([place] * parameter.width) for place in grid]


def test_a_value_is_recovered_from_its_place(parameter):
    for value in values_of(parameter):
        places = parameter.places(value)
        assert len(places) == parameter.width
        assert all(0 <= place <= 1 for place in places)
        found = parameter.natural(places)
        assert type(found) is type(value)
        assert found == (pytest.approx(value) if parameter.continuous else value)


def test_a_parameter_is_read_back_from_json_and_from_what_it_prints(parameter):
    assert Parameter.from_dict(parameter.to_dict()) == parameter
    assert eval(repr(parameter), {"Real": Real, **{k.__name__: k for k in KINDS.values()}}) == parameter
    assert hash(Parameter.from_dict(parameter.to_dict())) == hash(parameter)


def test_a_value_is_read_as_it_is_written(parameter):
    values = values_of(parameter)
    if len({str(value) for value in values}) == len({repr(value) for value in values}):  # "1" looks like 1
        assert [parameter.read(str(value)) for value in values] == values


def test_an_axis_has_its_values_in_order_within_its_edges(parameter):
    if not parameter.width:
        return
    for count, cells in ((12, True), (201, False)):
        axis = parameter.axis(count, cells)
        assert [parameter.position(value) for value in axis.values] == list(axis.at)
        assert sorted(axis.at) == list(axis.at)
        assert len(axis.edges) == len(axis.values) + 1
        assert axis.limits[0] <= axis.at[0]
        assert axis.at[-1] <= axis.limits[1]
        assert not axis.names or len(axis.names) == len(axis.values)
        for value in axis.values:
            parameter.places(value)  # each of them may be asked about


def test_the_domain_of_a_parameter_holds_its_values_and_no_others(parameter):
    if not parameter.width or parameter.context:
        return
    space = Space(this=parameter, other=Real(0, 1))
    domain = space.domain()
    points = torch.rand(25, space.d, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for point in points if domain is None else domain.snapped(points):
        setting = space.natural(point)
        assert torch.allclose(space.unit(setting), point, atol=1e-12)
    if domain is not None and not parameter.continuous:
        assert torch.equal(domain.snapped(domain.snapped(points)), domain.snapped(points))


@pytest.mark.parametrize("rule", ["random", pytest.param("muc", marks=pytest.mark.slow)])
def test_rules_ask_about_values_of_the_parameter(parameter, rule):
    if not parameter.width or parameter.context:
        return
    study = aw.Study(Space(this=parameter, other=Real(0, 1)), "duel", rule, initial=2, kernel=aw.kernel("se"))
    for _ in range(3):
        question = study.ask()
        for option in question.options:
            parameter.places(option["this"])  # refused if it is none
        study.tell(question, 0)
    if rule == "muc":
        parameter.places(study.best().params["this"])


@pytest.mark.parametrize("parameter", [EXAMPLES[2], EXAMPLES[10], EXAMPLES[12]], ids=repr, indirect=True)
def test_muc_asks_about_values_of_discrete_parameters(parameter):
    test_rules_ask_about_values_of_the_parameter(parameter, "muc")


# reals with steps


def steps(low: Decimal, step: Decimal, count: int, log: bool) -> Real:
    return Real(float(low), float(low + count * step), log=log, step=float(step))


GRIDS = st.builds(
    steps,
    st.integers(1, 2000).map(lambda k: Decimal(k) / 100),
    st.sampled_from(["0.01", "0.1", "0.25", "0.3", "1", "7", "10"]).map(Decimal),
    st.integers(1, 300),
    st.booleans(),
)


@given(GRIDS, st.floats(0, 1))
def test_a_value_with_steps_is_what_one_would_write(parameter, place):
    value = parameter.natural([place])
    written = Decimal(repr(value)) - Decimal(repr(float(parameter.low)))
    assert written % Decimal(repr(float(parameter.step))) == 0
    assert parameter.low <= value <= parameter.high
    assert parameter.natural(parameter.places(value)) == value


@given(GRIDS)
def test_all_values_have_equal_shares_or_with_log_the_places_nearest_by_value(parameter):
    places = torch.linspace(0, 1, 997, dtype=torch.float64)
    found = parameter.coordinates[0].scale.on_grid(places)
    assert bool((found.diff() >= 0).all())
    if parameter.log:
        exact = parameter.low * (parameter.high / parameter.low) ** places
        assert bool(((found - exact).abs() <= parameter.step / 2 * (1 + 1e-6)).all())
    else:
        count = round((parameter.high - parameter.low) / parameter.step) + 1
        share = (places * count).clamp(1e-6, count - 1e-6)
        off_edge = (share - share.round()).abs() > 1e-6
        expected = parameter.low + share.floor() * parameter.step
        assert (found - expected)[off_edge].abs().max() < 1e-9


def test_values_with_steps_are_shown_with_all_digits():
    cutoff = Real(100, 10_000, log=True, step=10, unit="Hz")
    assert cutoff.text(cutoff.natural([0.87])) == "5500 Hz"
    assert Real(0, 1, step=0.1).natural([0.31]) == 0.3
    assert Real(0, 1, step=0.1).text(0.3) == "0.3"
    assert cutoff.range_text == "100 to 10000 in steps of 10"


def test_a_fine_grid_keeps_its_values_far_from_zero():
    """Where a float misses the grid by far more than 1e-9 of a step."""
    parameter = Real(0, 1e8, step=0.1)
    assert 10_000_000.1 / 0.1 != 100_000_001
    assert parameter.natural(parameter.places(10_000_000.1)) == 10_000_000.1


def test_a_figure_shows_41_values_at_most():
    assert list(Integer(0, 40).axis(100, False).values) == list(range(41))
    assert len(Integer(0, 41).axis(100, False).values) <= 41


def test_a_real_with_steps_as_large_as_its_distance_is_an_integer():
    stepped, whole = Real(1, 8, step=1), Integer(1, 8)
    for place in torch.linspace(0, 1, 101).tolist():
        assert stepped.natural([place]) == whole.natural([place])
    assert stepped.places(3) == whole.places(3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Real(0, 1, step=0.3),
            r"step must divide the range from 0 to 1; got 0.3\. Make",
        ),
        (lambda: Real(0, 1, step=0), r"step must be a number between 0 and high - low; got 0"),
        (lambda: Real(0, 1, step=2), r"step must be a number between 0 and high - low; got 2"),
        (lambda: Real(0, 1, step=math.nan), r"step must be finite"),
        (lambda: Real(0, 1, step="a"), r"step must be a number between 0 and high - low; got 'a'"),
        (lambda: Real(0, 1, step=True), r"step must be a number between 0 and high - low; got True"),
        (lambda: Real(0, 1, step=0.1).places(0.25), r"value must be 0 plus a whole number of steps of 0.1"),
        (lambda: Ordinal(["a"]), r"values must be at least two"),
        (lambda: Ordinal(["a", "a"]), r"values must all differ"),
        (lambda: Ordinal("ab"), r"values must be a list"),
        (lambda: Ordinal([1, 2], context=1), r"context must be true or false"),
        (lambda: Ordinal([1, 2]).places(3), r"value must be one of 1, 2; got 3"),
        (lambda: Space(a=Ordinal([1, 2]), b=Real(0, 1)).where("a + b <= 2"), r"constraint must name numeric"),
    ],
)
def test_what_makes_no_sense_is_refused(make, message, unchecked):
    with pytest.raises(Refused, match=rf"^{message}"):
        make()


def test_constraints_hold_for_values_with_steps():
    space = Space(a=Real(0, 10, step=0.5), b=Real(1, 100, log=True, step=1), c=Real(0, 1)).where(
        "a + b <= 12", "b - 4 * a >= -3"
    )
    search = Search(torch.Size(), generator("steps"), torch.full((1, 3), 0.5).double(), space.domain())
    for point in [*search.random(60), *search.space_filling(60)]:
        setting = space.natural(point)
        assert setting["a"] + setting["b"] <= 12 + 1e-9
        assert setting["b"] - 4 * setting["a"] >= -3 - 1e-9
        assert setting["a"] * 2 == round(setting["a"] * 2)
    assert search.domain.neighbours(space.unit({"a": 2.5, "b": 7.0, "c": 0.5})).shape == (4, 3)


# ordinals


def test_the_model_knows_the_order_of_an_ordinal():
    """After duels that prefer more, the untried middle lies between; a choice says nothing of it."""
    values = [1, 2, 3, 4, 5]
    ordered, unordered = (
        aw.Study(Space(v=kind(values)), "duel", kernel="matern52") for kind in (Ordinal, Choice)
    )
    for study in (ordered, unordered):
        for _ in range(6):
            study.record([{"v": 1}, {"v": 5}], 1)
    means = {}
    for name, study in (("ordered", ordered), ("unordered", unordered)):
        points = torch.stack([study.space.unit({"v": value}) for value in values])
        means[name] = study.belief().mean(points)
    assert bool((means["ordered"].diff() > 0.05).all())
    assert means["unordered"][1:4].abs().max() < 1e-9


def test_an_ordinal_is_one_coordinate_with_equal_steps():
    parameter = Ordinal(["off", "low", "mid", "high"])
    assert parameter.width == 1
    assert [parameter.places(value)[0] for value in parameter.values] == pytest.approx([0, 1 / 3, 2 / 3, 1])
    shares = [parameter.natural([k / 200]) for k in range(201)]
    assert [shares.count(value) for value in parameter.values] == pytest.approx([50] * 4, abs=1)


def test_an_ordinal_of_few_values_is_searched_whole():
    space = Space(a=Ordinal([1, 2, 3]), b=Integer(0, 4))
    assert space.domain().settings(100).shape == (15, 2)
    study = aw.Study(space, "binary", "ucb_phi", initial=2, kernel=aw.kernel("matern52", 0.5, 4.0))
    for _ in range(8):
        question = study.ask()
        study.tell(question, question.options[0] == {"a": 3, "b": 4} or question.options[0]["b"] > 2)
    assert study.best().params["b"] > 2


def test_a_new_kind_of_parameter_needs_only_its_class():
    class Angle(Real):
        """A kind that somebody adds: degrees that print with a sign."""

        kind = "angle"

        def text(self, value) -> str:
            return f"{value:+.0f} deg"

    try:
        space = Space.from_dict({"parameters": [["turn", {"type": "angle", "low": -90, "high": 90}]]})
        assert isinstance(space.parameters["turn"], Angle)
        assert space.parameters["turn"].text(30.0) == "+30 deg"
        with pytest.raises(Refused, match="have a name of its own; got 'angle' twice"):

            class Other(Real):
                kind = "angle"
    finally:
        del KINDS["angle"]


def test_rules_may_be_used_with_steps_in_many_lanes():
    domain = Space(a=Real(0, 1, step=0.25), b=Real(0, 1)).domain()
    x = torch.rand(3, 6, 2, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    data = aw.Data.duels(x, torch.ones(3, 6))
    sources = [generator("lane", lane) for lane in range(3)]
    query = aw.next_query(data, parse("muc"), aw.kernel("se", 0.3), 2, sources, domain=domain)
    assert torch.equal(query.points[..., 0] * 4, (query.points[..., 0] * 4).round())
