"""What is handed out satisfies its constraints without any tolerance."""

import re
from fractions import Fraction

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import askwise as aw
from askwise.space import Choice, Fixed, Integer, Parameter, Real, Space
from tensors import uniform


def broken(texts: list[str] | tuple[str, ...], setting: dict) -> list[str]:
    """The constraints that do not hold in float64 as they are written, or not in rationals."""
    exact = {name: Fraction(v) for name, v in setting.items() if not isinstance(v, str | bool)}
    return [
        text for text in texts if not (eval(text, {}, setting) and eval(_rational(text), globals(), exact))
    ]


def _rational(text: str) -> str:
    """The same with its numbers as fractions."""
    return re.sub(r"(?<![\w.])\d[\d.]*(e[+-]?\d+)?", lambda number: f"Fraction({number[0]})", text)


def broken_in_digits(texts: list[str], setting: dict) -> list[str]:
    """The same for sums of ones, in the decimal digits."""
    digits = {name: Fraction(repr(v)) for name, v in setting.items()}
    return [text for text in texts if not eval(text.replace("0.3", "Fraction('0.3')"), globals(), digits)]


EXACTLY = {
    "found": (Space(a=Real(0, 10), b=Real(0, 3)), ("a + 3 * b <= 7",)),
    "slab": (Space(a=Real(0, 10), b=Real(0, 3)), ("1 <= a + b <= 1.0000001",)),
    "thin": (Space(a=Real(0, 1), b=Real(0, 1), c=Real(0, 1)), ("0.3 <= a + b + c <= 0.30000000000000004",)),
    "equal": (Space(a=Real(0, 10), b=Real(0, 3)), ("1 <= a + b <= 1",)),
    "thirds": (Space(a=Real(0, 9), b=Real(0, 3), c=Real(0, 1)),
               ("1 <= 3 * a + 7 * b - c / 3 <= 1", "a <= b + c")),
    "two": (Space(a=Real(0, 1), b=Real(0, 1), c=Real(0, 1)),
            ("1 <= a + b + c <= 1", "0.5 <= a + 2 * b <= 0.5")),
    "log": (Space(a=Real(1, 1e10, log=True), b=Real(1, 1e10, log=True)), ("20 <= a + b <= 20",)),
    "steps": (Space(a=Real(0, 1), s=Real(0, 1, step=0.1), n=Integer(0, 3)),
              ("a + s + 0.1 * n <= 0.7", "a >= 0.3 * s")),
    "fixed": (Space(a=Real(0, 1), b=Real(0, 1), f=Fixed(0.1)), ("a + f + b <= 0.3", "a - b / 3 >= -f")),
}  # fmt: skip


@pytest.mark.parametrize("name", EXACTLY)
def test_every_setting_holds_exactly_and_is_where_it_was(name):
    free, texts = EXACTLY[name]
    space = free.where(*texts)
    points = space.domain().snapped(uniform(60, space.d, seed=1))
    missed = 0
    for point in points:
        before, after = space.values(point), space.natural(point)
        assert not broken(texts, after)
        if not broken(texts, before):
            assert after == before  # to the bit
        missed += bool(broken(texts, before))
        assert all(after[key] == pytest.approx(before[key], rel=1e-6, abs=1e-6) for key in before)
        space.unit(after)  # which refuses what is no setting
    assert missed or name in ("steps", "fixed")


def test_questions_and_recommendations_hold_exactly():
    space = Space(a=Real(0, 10), b=Real(0, 3)).where("a + 3 * b <= 7")
    study, asked = aw.Study(space, "duel", initial=2, seed=3), []
    for _ in range(7):
        question = study.ask()
        asked += question.options
        study.tell(question, int(sum(question.options[1].values()) > sum(question.options[0].values())))
    assert not any(broken(space.constraints, option) for option in [*asked, study.best().params])
    assert all(one.equal for one in study.replay())


numbers = st.sampled_from([0.1, 0.3, 1, 3, 7, 1 / 3, 2.5, 1e-3, 12345.678])
kinds = st.one_of(
    st.builds(lambda low, width: Real(low, low + width), numbers, numbers),
    st.builds(lambda low, width: Real(low, low + width, log=True), numbers, numbers),
    st.builds(lambda low, step, count: Real(low, low + count * step, step=step),
              st.sampled_from([0, 1, 5]), st.sampled_from([0.5, 0.1, 0.01]), st.integers(2, 9)),
    st.builds(lambda low, count, log: Integer(low, low + count, log),
              st.integers(1, 5), st.integers(1, 9), st.booleans()),
    st.just(Choice(["x", "y"])),
)  # fmt: skip
rows = st.lists(st.tuples(st.lists(numbers, min_size=5, max_size=5),
                          st.sampled_from([0, 1e-9, 0.1, 5]), st.booleans()),
                min_size=1, max_size=3)  # fmt: skip


@settings(max_examples=40)
@given(
    st.lists(kinds, min_size=1, max_size=3), rows, st.sampled_from([None, 0.1, 0.37, 1]), st.integers(0, 999)
)
def test_random_constraints_hold_exactly(parameters: list[Parameter], rows, context, seed):
    """With steps, whole numbers, logarithms and contexts; each is about the continuous ``r``, too."""
    named = dict(zip("abc", parameters, strict=False)) | {"r": Real(0, 10)}
    named |= {"t": Real(0, 1, context=True)} if context is not None else {}
    free = Space(**named)
    inside, texts = free.natural(uniform(free.d, seed=seed)), []
    inside |= {"t": context} if context is not None else {}
    numeric = [name for name in named if named[name].numeric]
    for weights, slack, upper in rows:
        terms = [*zip(weights, [name for name in numeric if name != "r"], strict=False), (weights[-1], "r")]
        text = " + ".join(f"{weight!r} * {name}" for weight, name in terms)
        total = sum(weight * inside[name] for weight, name in terms)
        texts.append(f"{text} <= {total + slack!r}" if upper else f"{total - slack!r} <= {text}")
    try:
        space = free.where(*texts)
        domain = space.domain(None if context is None else {"t": context})
    except aw.Refused as error:
        assert "leave at least one setting" in str(error)  # noqa: PT017
        assume(False)
    for point in domain.snapped(uniform(8, space.d, seed=seed + 1)):
        setting = space.natural(point)
        assert not broken(texts, setting)
        if not broken(texts, space.values(point)):
            assert setting == space.values(point)


def test_values_on_grids_are_compared_in_their_digits():
    """As people read them: 0.1 + 0.2 <= 0.3, though not in float64."""
    steps = {name: Real(0, 1, step=0.1) for name in "ab"}
    space = Space(**steps).where("0.3 <= a + b <= 0.3")
    found = {tuple(space.natural(point).values()) for point in space.domain().settings(1000)}
    assert found == {(0.0, 0.3), (0.1, 0.2), (0.2, 0.1), (0.3, 0.0)}
    assert not any(
        broken_in_digits(["0.3 <= a + b <= 0.3"], dict(zip("ab", pair, strict=True))) for pair in found
    )


def test_a_context_that_is_written_in_digits_counts_as_written():
    """On its way to the unit cube and back 0.3 may become 0.30000000000000004."""
    space = Space(a=Real(0, 1), t=Real(-0.7, 7.1, context=True))
    for value in [k / 10 for k in range(-6, 71)]:
        narrow = space.where(f"a + t <= {value}", f"t <= {value}")
        domain = narrow.domain({"t": value})
        setting = narrow.natural(domain.snapped(uniform(2, seed=1)))
        assert eval(f"a + t <= {value}", {}, setting), setting
        assert setting["t"] <= value


@pytest.mark.parametrize(
    ("space", "text"),
    [
        (Space(a=Real(0, 1), f=Fixed(0.1), g=Fixed(0.2)), "a + f + g <= 0.3"),  # 0.30000000000000004
        (Space(a=Real(0, 10), b=Real(0, 3)), "1 <= 0.1 * a + 0.3 * b <= 1"),
        (Space(a=Real(0, 1)), "0.1 <= a / 3 <= 0.1"),
    ],
)
def test_what_no_float_satisfies_is_refused_unless_it_was_stored(space, text):
    with pytest.raises(
        ValueError, match=r"^constraints must leave at least one setting that satisfies them exactly"
    ):
        space.where(text)
    stored = Space.from_dict({**space.to_dict(), "constraints": [text]})  # as it could be created before
    assert stored.natural(stored.domain().anchor).keys() == space.parameters.keys()


def test_a_point_outside_has_the_values_of_its_coordinates():
    space = Space(a=Real(0, 1), b=Real(0, 1)).where("a + b <= 1")
    assert space.natural(torch.tensor([0.75, 0.5]).double()) == {"a": 0.75, "b": 0.5}


def test_what_was_asked_elsewhere_is_recorded_as_it_was():
    space = Space(a=Real(0, 1), b=Real(0, 1)).where("a + b <= 0.3")
    study = aw.Study(space, "binary")
    assert study.record([{"a": 0.1, "b": 0.2}], True).options == [{"a": 0.1, "b": 0.2}]
