"""The benchmark functions against stored values, the textbook, BoTorch, and a search for higher values."""

import importlib
import json
import math
from pathlib import Path

import pytest
import scipy.optimize
import torch
from torch import Tensor

from askwise import plugins
from askwise.bench.functions import FUNCTIONS, Function, named, register_function
from askwise.bench.published import PAPER
from tensors import f64, uniform

VECTORS = json.loads((Path(__file__).parents[1] / "data" / "functions.json").read_text())
each_function = pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
pi, sin, cos = math.pi, torch.sin, torch.cos


def points(function, n: int, seed: int = 0) -> Tensor:
    return function.natural(uniform(n, function.dim, seed=seed))


def test_there_are_the_34_of_the_paper_in_their_order_and_branin():
    assert list(PAPER) == list(VECTORS)
    assert list(FUNCTIONS) == [*PAPER, "branin"]
    assert all(function.name == name for name, function in FUNCTIONS.items())
    assert len({function.title for function in FUNCTIONS.values()}) == 35


def test_kernels_are_those_of_the_published_table():
    names = list(PAPER)
    matern32 = {name for name in names if FUNCTIONS[name].kernel == "matern32"}
    matern52 = {name for name in names if FUNCTIONS[name].kernel == "matern52"}
    assert matern32 == {
        *("ackley", "drop_wave", "langermann", "rotated_hyper_ellipsoid", "schaffer4", "shubert"),
    }
    assert matern52 == {"three_hump_camel", "colville", "cross_in_tray", "dixon_price", "levy13"}
    assert all(function.kernel in ("se", "matern32", "matern52") for function in FUNCTIONS.values())


@pytest.mark.parametrize("name", PAPER)
def test_values_are_the_stored_ones(name):
    function, stored = FUNCTIONS[name], VECTORS[name]
    assert [list(side) for side in function.box] == stored["box"]
    assert function.dim == len(stored["box"])
    torch.testing.assert_close(function(f64(stored["x"])), f64(stored["value"]), rtol=1e-13, atol=0)


def perm_sum(x: Tensor, term) -> Tensor:
    """Sum over powers of the squared sum over dimensions of a term in (j, i, x_j)."""
    return sum(sum(term(j, i, x[..., j - 1]) for j in (1, 2)) ** 2 for i in (1, 2))


# as the textbook prints them, with no care for digits, to be minimised
TEXTBOOK = {
    "bohachevsky": lambda x, y: x**2 + 2 * y**2 - 0.3 * cos(3 * pi * x) - 0.4 * cos(4 * pi * y) + 0.7,
    "colville": lambda a, b, c, d: (
        100 * (a**2 - b) ** 2
        + (a - 1) ** 2
        + (c - 1) ** 2
        + 90 * (c**2 - d) ** 2
        + 10.1 * ((b - 1) ** 2 + (d - 1) ** 2)
        + 19.8 * (b - 1) * (d - 1)
    ),
    "cross_in_tray": lambda x, y: (
        -0.0001 * (abs(sin(x) * sin(y) * torch.exp(abs(100 - (x**2 + y**2) ** 0.5 / pi))) + 1) ** 0.1
    ),
    "forrester": lambda x: (6 * x - 2) ** 2 * sin(12 * x - 4),
    "gramacy_lee": lambda x: sin(10 * pi * x) / (2 * x) + (x - 1) ** 4,
    "goldstein_price": lambda x, y: (
        (1 + (x + y + 1) ** 2 * (19 - 14 * x + 3 * x**2 - 14 * y + 6 * x * y + 3 * y**2))
        * (30 + (2 * x - 3 * y) ** 2 * (18 - 32 * x + 12 * x**2 + 48 * y - 36 * x * y + 27 * y**2))
    ),
    "langermann": lambda x, y: sum(
        c * torch.exp(-((x - a) ** 2 + (y - b) ** 2) / pi) * cos(pi * ((x - a) ** 2 + (y - b) ** 2))
        for c, a, b in ((1, 3, 5), (2, 5, 2), (5, 2, 1), (2, 1, 4), (3, 7, 9))
    ),
    "levy13": lambda x, y: (
        sin(3 * pi * x) ** 2
        + (x - 1) ** 2 * (1 + sin(3 * pi * y) ** 2)
        + (y - 1) ** 2 * (1 + sin(2 * pi * y) ** 2)
    ),
    "perm0": lambda *x: perm_sum(torch.stack(x, -1), lambda j, i, v: (j + 10) * (v**i - 1 / j**i)),
    "perm": lambda *x: perm_sum(torch.stack(x, -1), lambda j, i, v: (j**i + 0.5) * ((v / j) ** i - 1)),
    "rotated_hyper_ellipsoid": lambda x, y: x**2 + (x**2 + y**2),
    "schaffer4": lambda x, y: (
        0.5 + (cos(sin(abs(x**2 - y**2))) ** 2 - 0.5) / (1 + 0.001 * (x**2 + y**2)) ** 2
    ),
    "schwefel": lambda x, y: 418.9829 * 2 - x * sin(abs(x) ** 0.5) - y * sin(abs(y) ** 0.5),
    "shubert": lambda x, y: (
        sum(i * cos((i + 1) * x + i) for i in range(1, 6))
        * sum(i * cos((i + 1) * y + i) for i in range(1, 6))
    ),
    "sphere": lambda x, y: x**2 + y**2,
    "sum_squares": lambda x, y: x**2 + 2 * y**2,
    "trid": lambda x, y: (x - 1) ** 2 + (y - 1) ** 2 - x * y,
    "ursem_waves": lambda x, y: (
        -((0.3 * x) ** 3)
        + (y**2 - 4.5 * y**2) * x * y
        + 4.7 * cos(3 * x - y**2 * (2 + x)) * sin(2.5 * pi * x)
    ),
}
# BoTorch's class, its options, and what ours is of its value
BOTORCH = {
    "ackley": ("Ackley", {"dim": 2}, None),
    "beale": ("Beale", {}, None),
    "branin": ("Branin", {}, None),
    "three_hump_camel": ("ThreeHumpCamel", {}, None),
    "six_hump_camel": ("SixHumpCamel", {}, None),
    "dixon_price": ("DixonPrice", {"dim": 2}, None),
    "drop_wave": ("DropWave", {}, None),
    "eggholder": ("EggHolder", {}, None),
    "griewank": ("Griewank", {"dim": 2}, None),
    "hartmann3": ("Hartmann", {"dim": 3}, None),
    "hartmann4": ("Hartmann", {"dim": 4}, None),
    "hartmann6": ("Hartmann", {"dim": 6}, lambda plain: (plain - 2.58) / 1.94),
    "holder_table": ("HolderTable", {}, None),
    "levy": ("Levy", {"dim": 2}, None),
    "powell": ("Powell", {"dim": 4}, None),
    "rosenbrock": ("Rosenbrock", {"dim": 2}, None),
    "shekel": ("Shekel", {"m": 10}, None),
}


def test_every_function_has_an_independent_definition():
    assert {*TEXTBOOK, *BOTORCH} == set(FUNCTIONS)


@pytest.mark.parametrize("name", TEXTBOOK)
def test_values_are_the_textbooks(name):
    x = points(FUNCTIONS[name], 500)
    wanted = -TEXTBOOK[name](*x.unbind(-1))
    torch.testing.assert_close(FUNCTIONS[name](x), wanted, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", BOTORCH)
def test_values_are_botorchs(name):
    pytest.importorskip("botorch")
    theirs, options, transform = BOTORCH[name]
    synthetic = importlib.import_module("botorch.test_functions.synthetic")
    x = points(FUNCTIONS[name], 500)
    plain = getattr(synthetic, theirs)(**options).evaluate_true(x)
    wanted = transform(plain) if transform else plain
    rounded = 1e-6 if "hartmann" in name or name == "shekel" else 1e-11  # their tables are float32
    torch.testing.assert_close(-FUNCTIONS[name](x), wanted, rtol=rounded, atol=rounded / 10)


@each_function
def test_the_maximum_is_reached_where_it_is_said_to_be(function):
    low, high = f64(function.box).unbind(-1)
    at = f64(function.argmax)
    assert ((low <= at) & (at <= high)).all()
    assert function(at).item() == pytest.approx(function.max, rel=1e-14, abs=1e-12 if function.max else 1e-30)


@each_function
def test_nothing_in_the_box_beats_the_maximum(function):
    """The best of many points climb; the starts near the maximum must come back to it."""
    x = torch.quasirandom.SobolEngine(function.dim, scramble=True, seed=1).draw(2**14, dtype=torch.float64)
    values = function.unit(x)
    scale = values.std().item()
    beside = function.normalised(f64(function.argmax)) + 1e-3 * (uniform(1, function.dim) - 0.5)
    starts = torch.cat([x[values.topk(4).indices], beside.clamp(0, 1)])
    reached = []
    for start in starts.numpy():
        found = scipy.optimize.minimize(
            lambda z: value_and_slope(function, z, scale), start, jac=True, bounds=[(0, 1)] * function.dim
        )
        reached.append(-found.fun * scale)
    assert max(reached) <= function.max + 1e-12 * max(scale, abs(function.max))
    assert max(reached) == pytest.approx(function.max, rel=1e-6, abs=1e-6 * scale)


def value_and_slope(function, z, scale: float):
    z = torch.tensor(z, dtype=torch.float64, requires_grad=True)
    value = -function.unit(z) / scale
    (slope,) = torch.autograd.grad(value, z)
    return value.item(), slope.numpy()


@each_function
def test_values_of_a_batch_are_those_of_its_points(function):
    x = uniform(2, 3, function.dim)
    together = function.unit(x)
    assert together.shape == (2, 3)
    alone = torch.stack([function.unit(point) for point in x.reshape(-1, function.dim)])
    torch.testing.assert_close(together, alone.reshape(2, 3), rtol=1e-13, atol=1e-13)
    assert function.unit(x[:0]).shape == (0, 3)


@each_function
def test_unit_points_are_stretched_to_the_box_and_clamped(function):
    low, high = f64(function.box).unbind(-1)
    half = torch.full((function.dim,), 0.5, dtype=torch.float64)
    torch.testing.assert_close(function.natural(half), (low + high) / 2)
    assert torch.equal(function.natural(0 * half), low)
    assert torch.equal(function.natural(2 * half), high)
    assert torch.equal(function.natural(4 * half), high)
    assert torch.equal(function.natural(-half), low)
    x = uniform(5, function.dim)
    torch.testing.assert_close(function.normalised(function.natural(x)), x)
    assert torch.equal(function.unit(x), function(function.natural(x)))


@each_function
def test_slopes_are_finite_even_at_the_maximum(function):
    at = f64(function.argmax).requires_grad_()
    (slope,) = torch.autograd.grad(function(at), at)
    assert slope.isfinite().all()


@each_function
def test_functions_can_be_differentiated_after_use_without_gradients(function):
    with torch.inference_mode():
        function.unit(uniform(3, function.dim).to(torch.float32))
    x = uniform(3, function.dim).to(torch.float32).requires_grad_()
    assert torch.autograd.grad(function.unit(x).sum(), x)[0].shape == x.shape


MIRRORS = {  # equal up to the order or the sign of the coordinates
    **dict.fromkeys(("ackley", "drop_wave", "sphere", "cross_in_tray", "schaffer4"), "both"),
    **dict.fromkeys(("griewank", "bohachevsky", "holder_table", "sum_squares"), "sign"),
    **dict.fromkeys(("shubert", "trid"), "order"),
}


@pytest.mark.parametrize("name", MIRRORS)
def test_symmetries_hold(name):
    function, x = FUNCTIONS[name], points(FUNCTIONS[name], 50)
    if MIRRORS[name] != "order":
        torch.testing.assert_close(function(x * f64([1.0, -1.0])), function(x), rtol=1e-10, atol=1e-12)
    if MIRRORS[name] != "sign":
        torch.testing.assert_close(function(x.flip(-1)), function(x), rtol=1e-10, atol=1e-12)


def test_equal_maxima_are_known():
    for name, at in (
        ("branin", (3 * pi, 2.475)),
        ("branin", (-pi, 12.275)),
        ("perm0", (11 / 23, 45 / 46)),
        ("six_hump_camel", (-0.08984201310031806, 0.7126564030207396)),
        ("shubert", (5.482864206707613, 4.858056878859825)),
        ("schaffer4", (1.2531318314637332, 0.0)),
    ):
        assert FUNCTIONS[name](f64(at)).item() == pytest.approx(FUNCTIONS[name].max, rel=1e-13, abs=1e-25)


def test_no_digit_is_lost_near_a_maximum_of_zero():
    """The leading term of each expansion, at a step whose square the textbook's form would round away."""
    step = 1e-9
    for name, curvature in (
        ("bohachevsky", 1 + 0.6 * (1.5 * pi) ** 2),
        ("griewank", 1 / 4000 + 1 / 2),
        ("levy", (pi**2 + 1 + 10 * math.sin(1) ** 2) / 16),
        ("levy13", 9 * pi**2 + 1),
    ):
        at = f64(FUNCTIONS[name].argmax)
        moved = at + f64([step, 0.0])
        exact_step = (moved - at)[0].item()
        assert FUNCTIONS[name](moved).item() == pytest.approx(-curvature * exact_step**2, rel=1e-7)
    ackley = FUNCTIONS["ackley"](f64([step, 0.0])).item()
    assert ackley == pytest.approx(-4 * step / math.sqrt(2), rel=1e-7)


@pytest.mark.parametrize("shape", [(), (3,), (2, 1)])
@pytest.mark.usefixtures("unchecked")
def test_points_of_another_dimension_are_refused(shape):
    function = FUNCTIONS["ackley"]
    message = (
        r"points of ackley must have 2 as their last dimension; got shape .*\. Give a tensor \[\.\.\., 2\]"
    )
    for refusing in (function, function.unit, function.natural, function.normalised):
        with pytest.raises(ValueError, match=message):
            refusing(torch.zeros(shape))


# functions of others


@pytest.fixture
def forgotten():
    """Functions registered in the test are gone after it."""
    before = dict(FUNCTIONS)
    yield
    FUNCTIONS.clear()
    FUNCTIONS.update(before)


@pytest.mark.usefixtures("forgotten")
def test_one_decorated_formula_is_a_function():
    @register_function("Parabola", box=((-1.0, 3.0),), kernel="se", argmax=(1.0,), max=2.0)
    def parabola(x: Tensor) -> Tensor:
        return (x[..., 0] - 1).square() - 2

    assert isinstance(parabola, Function)
    assert named("parabola") is parabola is FUNCTIONS["parabola"]
    assert (parabola.name, parabola.title, parabola.dim) == ("parabola", "Parabola", 1)
    assert parabola(f64([[1.0], [3.0]])).tolist() == [2.0, -2.0]
    assert parabola.unit(f64([0.5])).item() == 2.0


@pytest.mark.usefixtures("forgotten")
def test_two_functions_of_one_name_are_refused():
    with pytest.raises(ValueError, match=r"^function must have a name of its own; got 'trid' twice\. Rename"):

        @register_function("Another", box=((0.0, 1.0),), kernel="se", argmax=(0.0,), max=0.0)
        def trid(x: Tensor) -> Tensor:
            return x[..., 0]

    assert FUNCTIONS["trid"].title == "Trid"


@pytest.mark.parametrize("argmax", [(0.5,), (0.5, 1.5), (-0.1, 0.5), (0.5, 0.5, 0.5)])
def test_a_maximiser_outside_the_box_is_refused(argmax):
    with pytest.raises(ValueError, match=r"argmax of off must lie in the box .*; got .*\. Correct it"):
        Function("off", "Off", torch.Tensor.sum, ((0.0, 1.0), (0.0, 1.0)), "se", argmax, 0.0)


@pytest.mark.usefixtures("forgotten")
def test_an_unknown_name_loads_the_functions_of_installed_packages(tmp_path, monkeypatch):
    """An entry point of the group askwise.functions names a module; importing it registers."""
    (tmp_path / "other_functions.py").write_text(
        "from askwise.bench.functions import register_function\n"
        "@register_function('Line', box=((0.0, 1.0),), kernel='se', argmax=(1.0,), max=1.0)\n"
        "def line(x):\n"
        "    return -x[..., 0]\n"
    )
    package = tmp_path / "other-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[askwise.functions]\nlines = other_functions\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(plugins, "_loaded", set())
    assert "line" not in FUNCTIONS
    assert named("line").title == "Line"
    with pytest.raises(ValueError, match=r"^function must be one of ackley, .*, line; got 'parabola'"):
        named("parabola")
