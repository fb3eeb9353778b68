"""One step of the loop: a pure function, for every inference method."""

import copy
import itertools

import numpy as np
import pytest
import torch
from gpytorch.kernels import Kernel, RQKernel, ScaleKernel
from torch import Tensor

import askwise as aw
from askwise.loop import Query, next_query
from askwise.model.belief import Belief
from askwise.numerics.seeds import Generators, generator
from askwise.rules import Rule, parse
from askwise.search.search import Search
from tensors import f64, uniform

METHODS = ("ep", "laplace", "gibbs")
SLOW_JOINT = pytest.param("muc_joint", 3, marks=pytest.mark.slow)
RULES = [
    ("ucb_phi", 1),
    ("thompson", 1),
    ("muc", 2),
    ("kss", 2),
    ("eubo", 2),
    ("kss", 3),
    SLOW_JOINT,
    ("random", 4),
]
each_rule = pytest.mark.parametrize(("text", "m"), RULES)
each_method = pytest.mark.parametrize("method", [*METHODS[:2], pytest.param("gibbs", marks=pytest.mark.slow)])


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Nine lanes are then three chunks."""
    monkeypatch.setattr("askwise.loop._CHUNK_LANES", 4)


def height(x: Tensor) -> Tensor:
    return 2 - 8 * (x - 0.6).square().sum(-1)


def answers(n: int = 6, lanes: tuple[int, ...] = (), d: int = 2, seed: int = 1) -> aw.Data:
    """Yes/no answers and duels about a hill."""
    X, pairs = uniform(*lanes, n, d, seed=seed), uniform(*lanes, n, 2, d, seed=seed + 1)
    won = height(pairs[..., 0, :]) > height(pairs[..., 1, :])
    return aw.Data.binary(X, height(X) > 0) + aw.Data.duels(pairs, won)


def asked(
    data: aw.Data,
    text: str,
    m: int,
    kernel: Kernel | None = None,
    source: Generators | None = None,
    **options: object,
) -> Query:
    kernel = aw.kernel("matern52", 0.4, 2.0) if kernel is None else kernel
    return next_query(data, parse(text), kernel, m, generator(0) if source is None else source, **options)


def tensors(part: aw.Data | Belief) -> dict[str, Tensor]:
    return {name: value for name, value in vars(part).items() if isinstance(value, Tensor)}


@each_rule
def test_a_step_changes_none_of_its_inputs(text, m):
    data, kernel, rule = answers(), aw.kernel("matern52", [0.3, 0.5], 2.0), parse(text)
    warm = aw.infer(data, kernel)
    held = [tensors(data), kernel.state_dict(), tensors(warm)]
    kept = copy.deepcopy(held)
    next_query(data, rule, kernel, m, generator(0), warm=warm)
    for before, after in zip(kept, held, strict=True):
        assert before.keys() == after.keys()
        assert all(torch.equal(before[name], after[name]) for name in before)
    assert rule == parse(text)


@each_rule
def test_the_same_step_gives_the_same_query(text, m):
    once, again = (asked(answers(), text, m) for _ in range(2))
    assert torch.equal(once.points, again.points)
    assert once.points.shape == (m, 2)
    assert not once.points.requires_grad


@each_rule
def test_a_step_neither_uses_nor_changes_global_generators(text, m):
    found = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        state, numbers = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
        found.append(asked(answers(), text, m).points)
        assert torch.equal(state, torch.get_rng_state())
        assert (numbers == np.random.get_state()[1]).all()  # noqa: NPY002
    assert torch.equal(*found)


@pytest.mark.parametrize(("text", "m"), [("thompson", 1), ("kss", 2), ("random", 4)])
def test_another_seed_gives_another_query(text, m):
    once, again = (asked(answers(), text, m, source=generator(seed)).points for seed in (0, 1))
    assert (once - again).abs().max() > 1e-3


@each_method
def test_the_belief_of_a_query_is_given_all_answers(method):
    data, kernel = answers(), aw.kernel("matern52", 0.4, 2.0)
    query = asked(data, "muc", 2, kernel, method=method)
    expected = aw.infer(data, kernel, method, generators=generator(0) if method == "gibbs" else None)
    x = uniform(20, 2, seed=9)
    assert query.belief.data is data
    assert query.belief.converged.all()
    torch.testing.assert_close(query.belief.mean(x), expected.mean(x), rtol=0, atol=1e-4)
    torch.testing.assert_close(query.belief.variance(x), expected.variance(x), rtol=0, atol=1e-4)


def top_of_grid(belief: Belief) -> Tensor:
    axis = torch.linspace(0, 1, 201, dtype=torch.float64)
    x = torch.cartesian_prod(axis, axis)
    return x[belief.mean(x).argmax()]


@each_method
def test_the_champion_accounts_for_the_latest_answer(method):
    kernel, before = aw.kernel("se", 0.3, 2.0), answers(4)
    first = asked(before, "muc", 2, kernel, method=method)
    lost = aw.Data.duels([first.points.flip(0).tolist()] * 3, [1, 1, 1])
    after = asked(before + lost, "muc", 2, kernel, method=method)
    top = top_of_grid(after.belief)
    assert (top - first.points[0]).abs().max() > 0.05
    torch.testing.assert_close(after.points[0], top, rtol=0, atol=0.006)
    assert after.belief.mean(after.points[:1]) >= after.belief.mean(top[None]) - 1e-6


@pytest.mark.parametrize("method", ["laplace", pytest.param("gibbs", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("text", "m"), [("ucb_phi", 1), ("kss", 2), ("kss", 3), SLOW_JOINT])
def test_all_methods_serve_all_kinds_of_queries_repeatably(method, text, m):
    once, again = (asked(answers(4), text, m, method=method).points for _ in range(2))
    assert torch.equal(once, again)
    assert ((once >= 0) & (once <= 1)).all()


@pytest.mark.slow
def test_all_methods_have_about_the_same_champion_of_clear_answers():
    data, kernel = answers(20), aw.kernel("se", 0.4, 4.0)
    tops = torch.stack([asked(data, "muc", 2, kernel, method=method).points[0] for method in METHODS])
    assert (tops - 0.6).abs().max() < 0.15
    assert (tops - tops[0]).abs().max() < 0.1


WARM = [("ucb_phi", 1), ("muc", 2), ("eubo", 2), ("ei", 2), SLOW_JOINT]


@pytest.mark.parametrize(("text", "m"), WARM)
def test_a_warm_start_hardly_changes_a_query(text, m):
    kernel, n = aw.kernel("matern52", 0.3, 3.0), 15
    for seed in range(2):
        duels = aw.Data.duels(uniform(n + 1, 2, 2, seed=seed), uniform(n + 1, seed=seed + 50) > 0.5)
        before = aw.Data(duels.points, duels.first[:-1], duels.second[:-1], duels.signs[:-1])
        earlier = asked(before, text, m, kernel).belief
        cold, warm = (asked(duels, text, m, kernel, warm=start).points for start in (None, earlier))
        torch.testing.assert_close(warm, cold, rtol=0, atol=1e-4)


def test_a_warm_start_from_the_same_answers_saves_sweeps():
    data = answers(10)
    cold = asked(data, "muc", 2)
    warm = asked(data, "muc", 2, warm=cold.belief)
    assert warm.belief.sweeps < cold.belief.sweeps
    torch.testing.assert_close(warm.points, cold.points, rtol=0, atol=1e-4)


OWN = aw.kernel("matern52", f64([[0.2, 0.5], [0.9, 0.3]]), f64([1.0, 4.0]))


@each_rule
def test_lanes_with_their_own_kernels_get_the_queries_they_get_alone(text, m):
    data = answers(5, (2,))
    together = asked(data, text, m, OWN, [generator("lane", k) for k in range(2)])
    assert together.points.shape == (2, m, 2)
    for k in range(2):
        alone = asked(data.select(k), text, m, OWN[k], generator("lane", k))
        torch.testing.assert_close(together.points[k], alone.points, rtol=0, atol=1e-5)


@pytest.mark.parametrize("method", ["laplace", pytest.param("gibbs", marks=pytest.mark.slow)])
def test_lanes_get_the_queries_they_get_alone_by_other_methods(method):
    data, kernel = answers(4, (2,)), aw.kernel("se", 0.4)
    together = asked(data, "muc", 2, kernel, [generator("lane", k) for k in range(2)], method=method)
    for k in range(2):
        alone = asked(data.select(k), "muc", 2, kernel, generator("lane", k), method=method)
        torch.testing.assert_close(together.points[k], alone.points, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("text", "m"), [("ucb_phi", 1), ("kss", 2)])
def test_lanes_in_several_chunks_get_the_queries_they_get_alone(text, m):
    data, kernel, lanes = answers(3, (10,)), aw.kernel("se", 0.2 + uniform(10, 2)), range(10)
    together = asked(data, text, m, kernel, [generator("lane", k) for k in lanes]).points
    assert together.shape == (10, m, 2)
    for k in (0, 7, 8, 9):
        alone = asked(data.select(k), text, m, kernel[k], generator("lane", k)).points
        torch.testing.assert_close(together[k], alone, rtol=0, atol=1e-5)


def test_lanes_may_share_one_generator():
    data = answers(3, (9,))
    once, again = (asked(data, "kss", 2, source=generator(0)).points for _ in range(2))
    assert torch.equal(once, again)
    assert len(once.flatten(-2).unique(dim=0)) == 9


@pytest.mark.parametrize("lanes", [3, 10])
@pytest.mark.parametrize("more", [-1, 1])
def test_there_must_be_one_generator_per_lane(lanes, more):
    sources = [generator(k) for k in range(lanes + more)]
    with pytest.raises(
        ValueError, match=rf"generators must be one, or one for each of the {lanes} lanes; got"
    ):
        asked(answers(2, (lanes,)), "kss", 2, source=sources)


def test_lanes_without_answers_get_the_query_of_one():
    nothing = aw.Data.binary(torch.zeros(2, 0, 2), torch.zeros(2, 0))
    together = asked(nothing, "muc", 2).points
    torch.testing.assert_close(together[1], asked(nothing.select(1), "muc", 2).points, rtol=0, atol=1e-5)


def test_any_gpytorch_kernel_may_be_used_even_a_trainable_one():
    kernel = ScaleKernel(RQKernel()).double()
    assert all(part.requires_grad for part in kernel.parameters())
    for text, m in (("ucb_phi", 1), ("muc", 2), ("muc_joint", 3)):
        points = asked(answers(), text, m, kernel).points
        assert not points.requires_grad
        assert ((points >= 0) & (points <= 1)).all()


SIZES = {"ucb_phi": {1}, "muc": {2, 3, 5}, "random": {1, 2, 3, 5}, "eubo": {2}}


@pytest.mark.parametrize(("text", "m"), [*itertools.product(SIZES, [-2, 0, 1, 2, 3])])
def test_a_rule_is_used_only_for_its_query_sizes(text, m):
    if m in SIZES[text]:
        assert asked(answers(2), text, m).points.shape == (m, 2)
        return
    with pytest.raises(
        ValueError, match=rf"^rule {text} must be used for what it asks \(.*\); got m = {m}\. One "
    ):
        asked(answers(2), text, m)


def test_a_rule_is_given_the_belief_and_a_search_around_it(monkeypatch):
    rule, source, seen = parse("random"), generator(0), []

    def ask(self: Rule, belief: Belief, m: int, search: Search) -> Tensor:
        seen.append((belief, m, search))
        return torch.zeros(m, 2).double()

    monkeypatch.setattr(type(rule), "ask", ask)
    query = next_query(answers(), rule, aw.kernel("se"), 2, source)
    ((belief, m, search),) = seen
    assert (query.belief, m) == (belief, 2)
    assert search.source is source
    assert search.lanes == ()
    assert torch.equal(query.points, torch.zeros(2, 2).double())


def test_a_rule_with_other_settings_gives_another_query():
    bold, shy = (asked(answers(), f"ucb_phi(beta={beta})", 1).points for beta in (5.0, 0.0))
    assert isinstance(parse("ucb_phi(beta=5)"), Rule)
    assert (bold - shy).abs().max() > 0.01


# the estimated optimum

IDENTIFIED = [("ucb_phi", 1), ("random", 1), ("muc", 2), ("kss", 2), ("random", 2), ("random", 3)]


def assert_best(belief: Belief, optimum: Tensor, m: int) -> None:
    """No point of a grid and no queried point is better, in mean or in success probability."""
    axis = torch.linspace(0, 1, 101, dtype=torch.float64)
    x = torch.cat([torch.cartesian_prod(axis, axis), belief.data.points])
    value = belief.success_probability if m == 1 else belief.mean
    assert value(optimum).item() >= value(x).max() - 1e-6


@pytest.mark.parametrize(("text", "m"), IDENTIFIED)
def test_the_optimum_is_found_and_the_query_stays_the_same(text, m):
    data = answers(8)
    plain, identified = (asked(data, text, m, identify=identify) for identify in (False, True))
    assert plain.optimum is None
    assert identified.optimum.shape == (1, 2)
    assert torch.equal(plain.points, identified.points)
    assert_best(identified.belief, identified.optimum, m)


def test_the_points_of_highest_mean_and_of_highest_success_probability_differ():
    # more answers on the left, more uncertainty on the right
    data = aw.Data.binary([[0.1], [0.12], [0.14], [0.9], [0.95]], [1, 1, 0, 1, 0])
    kernel = aw.kernel("se", 0.2, 9.0)
    yes_no, duel = (asked(data, "random", m, kernel, identify=True) for m in (1, 2))
    x = torch.linspace(0, 1, 2001, dtype=torch.float64)[:, None]
    mean, var = yes_no.belief.moments(x)
    likeliest, highest = x[(mean / (1 + var).sqrt()).argmax()], x[mean.argmax()]
    assert (likeliest - highest).abs() > 0.01
    torch.testing.assert_close(yes_no.optimum[0], likeliest, rtol=0, atol=1e-3)
    torch.testing.assert_close(duel.optimum[0], highest, rtol=0, atol=1e-3)


@pytest.mark.parametrize(("text", "m"), [("ucb_phi", 1), ("muc", 2), ("random", 3)])
@pytest.mark.parametrize("lanes", [3, 6])
def test_each_lane_has_the_optimum_that_it_has_alone(text, m, lanes):
    data, kernel = answers(3, (lanes,)), aw.kernel("se", 0.2 + uniform(lanes, 2))
    sources = [generator("lane", k) for k in range(lanes)]
    together = asked(data, text, m, kernel, sources, identify=True)
    assert together.optimum.shape == (lanes, 1, 2)
    sources = [generator("lane", k) for k in range(lanes)]
    assert torch.equal(together.points, asked(data, text, m, kernel, sources).points)
    for k in {0, lanes - 2, lanes - 1}:
        alone = asked(data.select(k), text, m, kernel[k], generator("lane", k), identify=True)
        torch.testing.assert_close(together.optimum[k], alone.optimum, rtol=0, atol=1e-5)
        assert_best(alone.belief, alone.optimum, m)


def test_cached_optima_are_not_mistaken_for_those_of_another_belief():
    data = aw.Data.binary([[0.1], [0.12], [0.14], [0.9], [0.95]], [1, 1, 0, 1, 0])
    one, other = (aw.infer(data, aw.kernel("se", 0.2, variance)) for variance in (9.0, 1.0))
    search = Search.around(one, generator(0))
    found = [look(belief) for belief in (one, other) for look in (search.champion, search.likeliest)]
    anew = [Search.around(one, generator(0)) for _ in range(4)]
    fresh = [anew[0].champion(one), anew[1].likeliest(one), anew[2].champion(other), anew[3].likeliest(other)]
    assert all(torch.equal(*pair) for pair in zip(found, fresh, strict=True))
    assert len(torch.cat(found).unique(dim=0)) == 4


def test_an_optimum_that_the_rule_queries_is_searched_once(monkeypatch):
    searches, argmax = [], Search.argmax

    def counted(self: Search, *given: object, **options: object) -> Tensor:
        searches.append(given)
        return argmax(self, *given, **options)

    monkeypatch.setattr(Search, "argmax", counted)
    query = asked(answers(), "muc", 2, identify=True)
    assert len(searches) == 2  # the champion and its challenger
    assert torch.equal(query.optimum[0], query.points[0])


def test_there_is_an_optimum_without_answers_too():
    nothing = aw.Data.binary(torch.zeros(0, 2), torch.zeros(0))
    query = asked(nothing, "random", 2, identify=True)
    assert query.optimum.shape == (1, 2)
    assert ((query.optimum >= 0) & (query.optimum <= 1)).all()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"rule": "muc"}, r"rule must be a rule; got 'muc'"),
        ({"kernel": "se"}, r"kernel must be one with parameters; got 'se'"),
        ({"source": 0}, r"generator must be .*; got 0"),
    ],
)
def test_a_name_or_a_seed_in_place_of_what_it_names_is_refused(wrong, words):
    given = {"rule": parse("muc"), "kernel": aw.kernel("se", 0.3), "m": 2, "source": generator(0)} | wrong
    with pytest.raises(aw.errors.Refused, match=words):
        next_query(aw.Data.duels([[[0.2], [0.6]]], [0]), **given)


@pytest.mark.parametrize("tolerance", [-1.0, float("nan")])
def test_a_tolerance_that_nothing_meets_is_refused(tolerance):
    with pytest.raises(aw.errors.Refused, match="tolerance must be zero or positive"):
        aw.infer(aw.Data.duels([[[0.2], [0.6]]], [0]), aw.kernel("se", 0.3), tolerance=tolerance)
