"""Rules: their scores against definitions and stored numbers, and what their docstrings say.

Tests parametrised by ``EVERY`` run for each registered rule, including those added later; so does the
contract, in ``test_contract.py``.
"""

import functools
import itertools
import json
import math
import re
import typing
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import pytest
import scipy.integrate
import scipy.special
import scipy.stats
import torch
from botorch.acquisition.preference import AnalyticExpectedUtilityOfBestOption
from torch import Tensor

import askwise as aw
from askwise.interop.botorch import BeliefModel
from askwise.loop import next_query
from askwise.model.belief import Belief
from askwise.model.gibbs import hallucinated
from askwise.model.uncertainty import decompose
from askwise.numerics.seeds import generator
from askwise.rules import RULES, Asks, Rule, parse
from askwise.search.batches import Pairs
from askwise.search.search import Search
from tensors import f64, seeded, uniform

SIZE = {Asks.BINARY: 1, Asks.DUEL: 2, Asks.BATCH: 3}
CASES = [(rule(), SIZE[kind]) for _, rule in sorted(RULES.items()) for kind in sorted(rule.asks)]
LONG = [("muc", SIZE[Asks.BATCH]), ("muc_joint", SIZE[Asks.BATCH])]
EVERY = [
    pytest.param(rule, m, id=f"{rule}-{m}", marks=[pytest.mark.slow] * ((rule.key, m) in LONG))
    for rule, m in CASES
]
DUELISTS = [rule for rule, m in CASES if m == 2]
HOUSE = r"^[^;]+ must [^;]+; got .+\. .+"
PROBLEMS = json.loads((Path(__file__).parents[1] / "data" / "acquisition.json").read_text())


def said(rule: Rule) -> str:
    """The rule's docstring, on one line."""
    return " ".join((type(rule).__doc__ or "").split())


def height(x: Tensor) -> Tensor:
    return 1 - 6 * (x - 0.6).square().sum(-1)


def yes_no(lanes: tuple[int, ...] = (), d: int = 2, n: int = 5, seed: int = 1) -> aw.Data:
    X = uniform(*lanes, n, d, seed=seed)
    return aw.Data.binary(X, (height(X) > 0).long())


def duels(lanes: tuple[int, ...] = (), d: int = 2, n: int = 5, seed: int = 2) -> aw.Data:
    X = uniform(*lanes, n, 2, d, seed=seed)
    return aw.Data.duels(X, (height(X[..., 0, :]) > height(X[..., 1, :])).long())


def mixed(lanes: tuple[int, ...] = (), d: int = 2, n: int = 5, seed: int = 1) -> aw.Data:
    return yes_no(lanes, d, n, seed) + duels(lanes, d, n, seed + 1)


def inferred(data: aw.Data, lengthscale: float | Tensor = 0.4, name: str = "matern52") -> Belief:
    return aw.infer(data, aw.kernel(name, lengthscale, 2.0))


def asked(rule: Rule, m: int, data: aw.Data, seed: int = 0) -> Tensor:
    return next_query(data, rule, aw.kernel("se", 0.4, 2.0), m, generator(seed)).points


def assert_query(points: Tensor, lanes: tuple[int, ...], m: int, d: int) -> None:
    assert points.shape == (*lanes, m, d)
    assert points.dtype == torch.float64
    assert not points.requires_grad
    assert ((points >= 0) & (points <= 1)).all()


# scores against an independent implementation


@pytest.fixture(params=sorted(PROBLEMS))
def problem(request):
    return PROBLEMS[request.param]


def of_kind(kind: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "problem", [name for name in sorted(PROBLEMS) if PROBLEMS[name]["feedback"] == kind], indirect=True
    )


def solved(problem: dict) -> tuple[Belief, Tensor, dict[str, Tensor]]:
    """Belief, points and the stored scores of the rules there."""
    make = aw.Data.binary if problem["feedback"] == "binary" else aw.Data.duels
    belief = aw.infer(make(problem["X"], problem["c"]), aw.kernel(**problem["kernel"]), tolerance=1e-10)
    values = {name: f64(value) for name, value in problem["acquisition"].items()}
    return belief, f64(problem["test_points"]), values


def assert_stored(got: Tensor, want: Tensor) -> None:
    torch.testing.assert_close(got, want, rtol=1e-6, atol=1e-6)


@of_kind("binary")
def test_rules_for_yes_and_no_have_the_stored_values(problem):
    belief, x, stored = solved(problem)
    moments = belief.moments(x)
    assert_stored(parse("ucb_phi").score(*moments), stored["UCB_Phi"])
    assert_stored(parse("ucb_f").score(*moments), stored["UCB_f"])
    bar = f64(scipy.stats.norm.ppf(stored["binary_EI_mu_c_best"]))
    log_improvement = parse("binary_ei").log_score(*moments, bar)
    assert_stored(log_improvement.exp(), stored["binary_EI_textbook"])
    assert_stored(log_improvement, stored["binary_EI_textbook"].log())


@of_kind("duel")
def test_rules_that_challenge_a_champion_have_the_stored_values(problem):
    """EIIG is stored with the sign of the paper."""
    belief, x, stored = solved(problem)
    moments = belief.predictive.against(f64(problem["champion"])[None]).moments(x)
    for rule, name in [("muc", "MUC"), ("dueling_ucb", "Dueling_UCB"), ("eiig(k=0.5, sign=-1)", "EIIG")]:
        assert_stored(parse(rule).score(*moments), stored[name])
    assert_stored(parse("muc").log_score(*moments), stored["MUC"].log())


@of_kind("duel")
def test_expected_improvements_have_the_stored_values(problem):
    """The stored EI is that of f relative to its value at the origin, with that difference's moments.

    The rule itself uses f, which has another variance and misses the stored values by up to 0.3; so the
    formula is tested with the moments of the difference.
    """
    belief, x, stored = solved(problem)
    top, origin = stored["x_starstar_best_training_point"][None], f64([[0.0] * x.shape[-1]])
    mean, var = belief.predictive.against(origin).moments(x)
    bar = belief.difference(top, origin)[0]
    assert_stored(bar[0], stored["EI_incumbent_mean"])
    assert_stored(parse("ei").log_score(mean - bar, var).exp(), stored["EI"])
    both = belief.predictive.against(top).moments(x)
    assert_stored(parse("bivariate_ei").log_score(*both).exp(), stored["bivariate_EI"])
    for rule in ("ei", "bivariate_ei"):
        first = next_query(belief.data, parse(rule), aw.kernel(**problem["kernel"]), 2, generator(0)).points[
            0
        ]
        assert_stored(first, top[0])


# scores against definitions

MOMENTS = [(-2.0, 0.5), (0.0, 0.01), (0.7, 3.0), (3.0, 0.2), (-0.4, 20.0), (1.5, 1.0)]


def Phi(f: float) -> float:
    return float(scipy.special.ndtr(f))


def expected(of: Callable[[float], float], mean: float, var: float, cuts: tuple[float, ...] = ()) -> float:
    """E[of(f)] by quadrature over twelve deviations."""
    sd = math.sqrt(var)
    edges = sorted({mean - 12 * sd, mean + 12 * sd, *(c for c in cuts if abs(c - mean) < 12 * sd)})

    def weighted(f: float) -> float:
        return of(f) * math.exp(-((f - mean) ** 2) / (2 * var)) / math.sqrt(2 * math.pi * var)

    options = {"epsabs": 1e-13, "epsrel": 1e-11, "limit": 200}
    return sum(scipy.integrate.quad(weighted, *part, **options)[0] for part in itertools.pairwise(edges))


def variance_of_rate(mean: float, var: float) -> float:
    rate = expected(Phi, mean, var)
    return expected(lambda f: (Phi(f) - rate) ** 2, mean, var)


def entropy(p: float) -> float:
    return float(scipy.special.entr(p) + scipy.special.entr(1 - p))


def information(mean: float, var: float) -> float:
    return entropy(expected(Phi, mean, var)) - expected(lambda f: entropy(Phi(f)), mean, var)


def houlsby(mean: float, var: float) -> float:
    """With the approximate entropy 2^(-f^2 / (pi ln 2 / 2) / (2 ln 2)) of the source."""
    squared = math.pi * math.log(2) / 2
    return entropy(Phi(mean / math.sqrt(1 + var))) - expected(
        lambda f: math.log(2) * math.exp(-(f**2) / (2 * squared)), mean, var
    )


DEFINITIONS: dict[str, Callable[[float, float], float]] = {
    "ucb_f": lambda m, v: m + math.sqrt(v),
    "ucb_f(beta=2.5)": lambda m, v: m + 2.5 * math.sqrt(v),
    "ucb_phi": lambda m, v: (
        expected(Phi, m, v) + scipy.stats.norm.ppf(0.99) * math.sqrt(variance_of_rate(m, v))
    ),
    "ucb_phi(beta=0.5)": lambda m, v: expected(Phi, m, v) + 0.5 * math.sqrt(variance_of_rate(m, v)),
    "dueling_ucb": lambda m, v: m + scipy.stats.norm.ppf(0.975) * math.sqrt(v),
    "dueling_ucb_phi": lambda m, v: (
        expected(Phi, m, v) + scipy.stats.norm.ppf(0.975) * math.sqrt(variance_of_rate(m, v))
    ),
    "straddle": lambda m, v: 1.96 * math.sqrt(v) - abs(m - scipy.stats.norm.ppf(0.95)),
    "straddle(level=0.2, beta=3)": lambda m, v: 3 * math.sqrt(v) - abs(m - scipy.stats.norm.ppf(0.2)),
    "straddle_phi": lambda m, v: 1.96 * math.sqrt(variance_of_rate(m, v)) - abs(expected(Phi, m, v) - 0.95),
    "straddle_phi(level=0.5, beta=1)": lambda m, v: (
        math.sqrt(variance_of_rate(m, v)) - abs(expected(Phi, m, v) - 0.5)
    ),
    "eiig": lambda m, v: 0.1 * math.log(expected(Phi, m, v)) + houlsby(m, v),
    "eiig(k=2.0, sign=-1)": lambda m, v: 2 * math.log(expected(Phi, m, v)) - houlsby(m, v),
    "muc": variance_of_rate,
    "max_entropy_challenge": information,
}
LOG_DEFINITIONS: dict[str, Callable[[float, float], float]] = {
    "ei": lambda m, v: expected(lambda f: max(f, 0.0), m, v, (0.0,)),
    "bivariate_ei": lambda m, v: expected(lambda f: max(f, 0.0), m, v, (0.0,)),
    "muc": variance_of_rate,
    "duel_thompson": variance_of_rate,
    "max_entropy_challenge": information,
}


@pytest.mark.parametrize("text", DEFINITIONS)
def test_a_score_agrees_with_its_definition(text):
    rule = parse(text)
    want = [DEFINITIONS[text](*point) for point in MOMENTS]
    torch.testing.assert_close(rule.score(*f64(MOMENTS).T), f64(want), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("text", LOG_DEFINITIONS)
def test_the_logarithm_of_a_score_agrees_with_its_definition(text):
    want = [math.log(LOG_DEFINITIONS[text](*point)) for point in MOMENTS]
    torch.testing.assert_close(parse(text).log_score(*f64(MOMENTS).T), f64(want), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("bar", [-1.0, 0.0, 0.8])
def test_binary_ei_agrees_with_its_definition(bar):
    want = [
        math.log(expected(lambda f: max(Phi(f) - Phi(bar), 0.0), mean, var, (bar,))) for mean, var in MOMENTS
    ]
    got = parse("binary_ei").log_score(*f64(MOMENTS).T, f64(bar))
    torch.testing.assert_close(got, f64(want), rtol=0, atol=1e-7)


def test_the_dueling_bound_of_the_champion_with_itself_is_one_half():
    assert parse("dueling_ucb_phi").score(f64(0.0), f64(0.0)) == 0.5


def test_eubo_is_the_mean_of_the_better_of_two_draws():
    belief, x = inferred(mixed()), uniform(3, 2, 2, seed=5)
    got = parse("eubo").score(belief, x)
    for pair, value in zip(x, got, strict=True):
        mean, cov = belief.joint(pair)
        normals = torch.randn(200_000, 2, generator=seeded(), dtype=torch.float64)
        better = (mean + normals @ torch.linalg.cholesky(cov).mT).amax(-1)
        assert (better.mean() - value).abs() < 5 * better.std() / math.sqrt(len(better)) < 0.02


@pytest.mark.parametrize("lanes", [(), (3,)])
def test_eubo_agrees_with_botorch(lanes):
    belief, x = inferred(mixed(lanes)), uniform(7, *lanes, 2, 2, seed=5)
    theirs = AnalyticExpectedUtilityOfBestOption(BeliefModel(belief))
    torch.testing.assert_close(parse("eubo").score(belief, x), theirs(x), rtol=1e-9, atol=1e-9)


def every_pair(belief: Belief, x: Tensor) -> tuple[Tensor, Tensor]:
    """Means and covariance of the differences of f for all pairs i < j of the points."""
    mean, cov = belief.joint(x)
    rows = torch.zeros(math.comb(len(x), 2), len(x), dtype=torch.float64)
    for row, (i, j) in zip(rows, itertools.combinations(range(len(x)), 2), strict=True):
        row[i], row[j] = 1.0, -1.0
    return rows @ mean, rows @ cov @ rows.mT


def variances_of_rates(mean: Tensor, cov: Tensor) -> Tensor:
    moments = zip(mean.tolist(), cov.diagonal().tolist(), strict=True)
    return f64([variance_of_rate(*point) for point in moments])


def information_of_batch(belief: Belief, x: Tensor) -> Tensor:
    """Half the log determinant of I + 100 (m - 1) C, with C over the duels of the first with the others."""
    mean, cov = every_pair(belief, x)
    count = len(x) - 1
    mean, cov = mean[:count], cov[:count, :count]
    scale = (variances_of_rates(mean, cov) / cov.diagonal()).sqrt()
    inner = torch.eye(count, dtype=torch.float64) + 100 * count * scale[:, None] * cov * scale
    return torch.linalg.eigvalsh(inner).log().sum() / 2


@pytest.mark.parametrize("m", [2, 3, 5])
def test_the_total_of_muc_is_the_sum_over_pairs(m):
    belief, x = inferred(mixed()), uniform(m, 2, seed=m)
    want = variances_of_rates(*every_pair(belief, x)).sum()
    torch.testing.assert_close(parse("muc").total(Pairs.of(belief, x)), want, rtol=1e-8, atol=0)


@pytest.mark.parametrize("m", [2, 3, 5])
def test_the_total_of_muc_joint_is_the_determinant_over_the_duels_with_the_first(m):
    belief, x = inferred(mixed()), uniform(m, 2, seed=m)
    got = parse("muc_joint").total(Pairs.of(belief, x))
    torch.testing.assert_close(got, information_of_batch(belief, x), rtol=1e-8, atol=1e-10)


def test_the_epistemic_variance_of_pairs_is_that_of_their_duels_in_either_order():
    belief, x = inferred(mixed((2,))), uniform(3, 2, 4, 2, seed=8)
    pairs = Pairs.of(belief, x)
    for i, j in itertools.product(range(4), repeat=2):
        duel = decompose(belief, x[..., i, None, :], x[..., j, None, :])
        torch.testing.assert_close(pairs.epistemic[..., i, j], duel.epistemic[..., 0], rtol=1e-8, atol=1e-14)


def test_the_total_of_muc_joint_is_to_first_order_the_sum_over_the_duels_of_the_first():
    faint = aw.infer(mixed(), aw.kernel("matern52", 0.4, 1e-9))
    pairs = Pairs.of(faint, uniform(4, 2, seed=3))
    ratio = parse("muc_joint").total(pairs) / pairs.epistemic[0].sum()
    assert ratio.item() == pytest.approx(150, rel=1e-4)


def test_totals_of_many_batches_equal_those_of_each():
    belief, x = inferred(mixed((2,))), uniform(4, 2, 3, 2, seed=6)
    for rule in (parse("muc"), parse("muc_joint")):
        together = rule.total(Pairs.of(belief, x))
        assert together.shape == (4, 2)
        for k, lane in itertools.product(range(4), range(2)):
            alone = rule.total(Pairs.of(belief.select(lane), x[k, lane]))
            torch.testing.assert_close(together[k, lane], alone, rtol=1e-9, atol=1e-12)


def test_the_total_of_muc_joint_is_finite_where_members_coincide():
    x = uniform(3, 2, seed=4)
    twice = torch.stack([x[0], x[1], x[1]])
    belief = inferred(mixed())
    joint, plain = parse("muc_joint"), parse("muc")
    both, once = (joint.total(Pairs.of(belief, points)) for points in (twice, x[:2]))
    assert once < both < 2 * once
    doubled, single = (plain.total(Pairs.of(belief, points)) for points in (twice, x[:2]))
    torch.testing.assert_close(doubled, 2 * single, rtol=1e-6, atol=0)


# queries maximise their definition

GRIDS = {1: 2001, 2: 61}
SCORED = [*dict.fromkeys([*DEFINITIONS, *LOG_DEFINITIONS, "binary_ei", "dueling_ucb(of='value')"])]


def grid(d: int) -> Tensor:
    axis = torch.linspace(0, 1, GRIDS[d], dtype=torch.float64)
    return axis[:, None] if d == 1 else torch.cartesian_prod(axis, axis)


def least(rule: Rule) -> int:
    return min(SIZE[kind] for kind in rule.asks)


def asked_of(belief: Belief, rule: Rule, seed: int = 0, m: int | None = None) -> Tensor:
    return rule.ask(belief, least(rule) if m is None else m, Search.around(belief, generator(seed)))


def score_of(text: str, belief: Belief, query: Tensor) -> Callable[[Tensor], Tensor]:
    """The score that the last point of a query maximises."""
    rule, first = parse(text), query[:1]
    if text == "binary_ei":
        rates = belief.success_probability(torch.cat([grid(query.shape[-1]), query]))
        bar = f64(scipy.stats.norm.ppf(rates.max()))
        return lambda x: rule.log_score(*belief.moments(x), bar)
    if len(query) == 1 or "value" in text:
        return lambda x: rule.score(*belief.moments(x))
    if text == "ei":
        return lambda x: rule.log_score(belief.mean(x) - belief.mean(first), belief.variance(x))
    score = getattr(rule, "log_score", None) or rule.score
    return lambda x: score(*belief.difference(x, first.expand_as(x)))


@pytest.mark.parametrize(
    ("text", "d"),
    [
        pytest.param(text, d, marks=[pytest.mark.slow] * (d == 2 and text not in ("ucb_phi", "muc")))
        for text, d in itertools.product(SCORED, GRIDS)
    ],
)
def test_no_point_of_a_grid_is_better_than_the_query(text, d):
    for seed in (1, 7) if d == 1 else (1,):
        belief = inferred(mixed(d=d, seed=seed), 0.3)
        query = asked_of(belief, parse(text), seed)
        score = score_of(text, belief, query)
        assert score(query[-1:]) >= score(grid(d)).max() - 1e-6


@pytest.mark.parametrize(
    "rule", [rule for rule in DUELISTS if r"x_1 = \arg\max_x \mu_f(x)" in said(rule)], ids=str
)
def test_a_rule_documented_to_query_the_champion_does_so(rule):
    belief = inferred(mixed())
    assert belief.mean(asked_of(belief, rule)[:1]) >= belief.mean(grid(2)).max() - 1e-8


@pytest.mark.parametrize("rule", [rule for rule in DUELISTS if r"x \in \mathcal X_t" in said(rule)], ids=str)
def test_a_rule_documented_to_query_the_incumbent_does_so(rule):
    belief = inferred(mixed())
    means = belief.mean(belief.data.points)
    assert torch.equal(asked_of(belief, rule)[0], belief.data.points[means.argmax()])


def test_no_pair_of_a_grid_is_better_than_that_of_eubo():
    rule, belief = parse("eubo"), inferred(mixed(d=1), 0.3)
    axis = torch.linspace(0, 1, 101, dtype=torch.float64)
    pairs = torch.cartesian_prod(axis, axis)[..., None]
    assert rule.score(belief, asked_of(belief, rule)) >= rule.score(belief, pairs).max() - 1e-6


@pytest.mark.parametrize("text", ["muc", "muc_joint"])
def test_no_batch_of_a_grid_is_better_than_the_query(text):
    rule, belief = parse(text), inferred(mixed(d=1), 0.3)
    query = asked_of(belief, rule, m=3)
    axis = torch.linspace(0, 1, 61, dtype=torch.float64)
    others = torch.cartesian_prod(axis, axis)[..., None]
    batches = torch.cat([query[:1].expand(len(others), 1, 1), others], -2)
    best = rule.total(Pairs.of(belief, batches)).max()
    assert rule.total(Pairs.of(belief, query)) >= best - 1e-6


def test_muc_joint_asks_the_duels_of_muc():
    belief = inferred(mixed((4,)))
    one, other = (asked_of(belief, parse(text), m=2) for text in ("muc", "muc_joint"))
    torch.testing.assert_close(one, other, rtol=0, atol=1e-3)


def test_muc_joint_has_no_duplicates_in_large_batches():
    points = asked_of(inferred(mixed(d=1), 0.3), parse("muc_joint"), m=5)[:, 0].sort().values
    assert points.diff().min() > 1e-3


# draws

DRAWERS = ["thompson", "kss", "dueling_thompson", "duel_thompson"]
LANES = 300


def same_lanes(X: Tensor, c: list[int], lanes: int = LANES) -> aw.Data:
    return aw.Data.binary(X.expand(lanes, *X.shape), torch.tensor(c).expand(lanes, -1))


def optima(belief: Belief, count: int = 5_000) -> Tensor:
    """Maxima of exact joint draws on a fine grid, without lanes."""
    x = torch.linspace(0, 1, 201, dtype=torch.float64)[:, None]
    mean, cov = belief.joint(x)
    values, vectors = torch.linalg.eigh(cov)
    normals = torch.randn(len(x), count, generator=seeded(3), dtype=torch.float64)
    return x[(mean[:, None] + vectors @ (values.clamp_min(0).sqrt()[:, None] * normals)).argmax(0), 0]


OPEN = (torch.linspace(0, 1, 11).double()[:, None], [0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 1])
INNER = (f64([[0.0], [0.0], [0.2], [0.5], [0.8], [1.0], [1.0]]), [0, 0, 0, 1, 0, 0, 0])


@functools.cache
def open_and_inner() -> dict[str, tuple[Belief, Tensor]]:
    """Beliefs of many identical lanes, and optima of exact draws."""
    beliefs = {
        name: aw.infer(same_lanes(*answers), aw.kernel("se", 0.2, 20.0))
        for name, answers in {"open": OPEN, "inner": INNER}.items()
    }
    return {name: (belief, optima(belief.select(0))) for name, belief in beliefs.items()}


@pytest.mark.parametrize("text", DRAWERS)
def test_optima_of_draws_are_distributed_as_those_of_exact_draws(text):
    """For each rule, the point that is the optimum of a draw and is never redrawn as a duplicate."""
    belief, exact = open_and_inner()["open"]
    found = asked_of(belief, parse(text), m=2)[:, 1 if text == "dueling_thompson" else 0, 0]
    assert scipy.stats.ks_2samp(found.numpy(), exact.numpy(), method="asymp").pvalue > 0.01
    assert len(found.unique()) > LANES / 2


def test_both_points_of_kss_are_optima_of_independent_draws():
    belief, exact = open_and_inner()["inner"]
    query = asked_of(belief, parse("kss"), m=2)[..., 0]
    assert scipy.stats.ks_2samp(query[:, 1].numpy(), exact.numpy(), method="asymp").pvalue > 0.01
    assert abs(scipy.stats.spearmanr(*query.T.numpy()).statistic) < 4 / math.sqrt(LANES)


@pytest.fixture(scope="module")
def certain() -> tuple[Belief, float, float]:
    """A belief certain of a corner, and how often draws have their optimum in either corner."""
    X = torch.stack([torch.linspace(0.0, 0.5, 5), torch.linspace(0.5, 1.0, 5)], -1)[..., None].double()
    belief = inferred(aw.Data.duels(X.expand(100, 5, 2, 1), torch.zeros(100, 5)), 1.5, "se")
    exact = optima(belief.select(0))
    return belief, (exact == 1).double().mean().item(), (exact == 0).double().mean().item()


def assert_frequency(events: Tensor, probability: float) -> None:
    sd = math.sqrt(probability * (1 - probability) / len(events))
    assert abs(events.double().mean().item() - probability) < 4 * sd + 0.01


def test_duplicates_are_redrawn_five_times_and_then_kept(certain):
    belief, high, low = certain
    assert 0.7 < high < 0.95
    kss = asked_of(belief, parse("kss"), m=2)[..., 0]
    assert_frequency(kss[:, 0] == 1, high)
    assert_frequency((kss.diff().abs() < 1e-6)[:, 0], high**7 + low**7)
    dueling = asked_of(belief, parse("dueling_thompson"))[..., 0]
    assert (dueling[:, 0] == 1).all()
    assert_frequency(dueling[:, 1] == 1, high**6)


def test_duplicates_are_asked_if_the_belief_is_certain():
    X = torch.stack([torch.linspace(0.0, 0.5, 20), torch.linspace(0.5, 1.0, 20)], -1)[..., None].double()
    belief = aw.infer(aw.Data.duels(X, torch.zeros(20)), aw.kernel("se", 20.0, 1e4))
    assert asked_of(belief, parse("kss"), m=3).tolist() == [[1.0], [1.0], [1.0]]
    assert asked_of(belief, parse("dueling_thompson")).tolist() == [[1.0], [1.0]]


# hallucinations


def weighted_moments(data: aw.Data, kernel: object, x: Tensor) -> tuple[Tensor, Tensor, float]:
    """Exact posterior mean and covariance at ``x`` by weighted prior draws, and their effective number."""
    prior = aw.infer(aw.Data.binary(f64([]).reshape(0, x.shape[-1]), torch.zeros(0)), kernel)
    every = torch.cat([data.points, x])
    lower = torch.linalg.cholesky(prior.cov(every) + 1e-9 * torch.eye(len(every), dtype=torch.float64))
    f = torch.randn(200_000, len(every), generator=seeded(1), dtype=torch.float64) @ lower.mT
    rows = data.matvec(f[:, : len(data.points)].mT).mT
    weight = torch.special.log_ndtr(data.signs * rows).sum(-1).softmax(0)
    f = f[:, len(data.points) :]
    mean = weight @ f
    return mean, (f - mean).mT @ (weight[:, None] * (f - mean)), 1 / weight.square().sum().item()


@pytest.fixture(
    scope="module",
    params=[pytest.param(20, id="swept"), pytest.param(0, id="picked", marks=pytest.mark.slow)],
)
def imagined(request) -> tuple[aw.Data, Belief, Tensor]:
    """Data, many hallucinations of them (with Gibbs sweeps, or the picked draw alone), and points."""
    X, P = f64([[0.2], [0.25], [0.7]]), f64([[[0.3], [0.6]], [[0.6], [0.9]], [[0.2], [0.6]]])
    data = aw.Data.binary(X, [0, 0, 1]) + aw.Data.duels(P, [0, 1, 1])
    copies = data.unsqueezed().select(torch.zeros(2000, dtype=torch.long))
    belief = aw.infer(copies, aw.kernel("se", 0.3, 3.0))
    return data, hallucinated(belief, seeded(4), request.param), f64([[0.1], [0.45], [0.65], [1.0]])


def test_hallucinations_average_to_the_exact_posterior(imagined):
    """By the laws of total expectation and covariance."""
    data, belief, x = imagined
    mean, cov, left = weighted_moments(data, aw.kernel("se", 0.3, 3.0), x)
    means, covs = belief.mean(x), belief.cov(x)
    error = 5 * (cov.diagonal() * (1 / left + 1 / len(means))).sqrt()
    assert error.max() < 0.2
    assert ((means.mean(0) - mean).abs() < error).all()
    total = covs.mean(0) + means.mT.cov(correction=0)
    size = cov.diagonal().sqrt()
    assert ((total - cov).abs() < error.max() * size[:, None] * size).all()


def test_hallucinations_average_to_the_moments_of_gibbs_sampling(imagined):
    data, belief, x = imagined
    exact = aw.infer(data, aw.kernel("se", 0.3, 3.0), "gibbs", generators=seeded(5))
    means = belief.mean(x)
    assert ((means.mean(0) - exact.mean(x)).abs() < 5 * means.std(0) / math.sqrt(len(means)) + 0.01).all()
    total = belief.variance(x).mean(0) + means.var(0)
    torch.testing.assert_close(total, exact.variance(x), rtol=0.1, atol=0.01)


def test_a_hallucination_has_less_variance_than_the_belief_and_its_shape():
    for lanes in [(), (3,)]:
        belief = inferred(mixed(lanes))
        one = hallucinated(belief, seeded())
        x = uniform(4, 2, seed=9)
        assert one.mean(x).shape == (*lanes, 4)
        assert (one.variance(x) < belief.variance(x)).all()


@pytest.mark.parametrize("text", ["hallucination_believer", "hallucination_believer(of='ucb', beta=1.0)"])
def test_the_believer_improves_on_the_last_winner_given_the_hallucination(text):
    rule, belief = parse(text), inferred(yes_no(d=1) + duels(d=1), 0.2)
    winner = belief.data.first[-1] if belief.data.signs[-1] > 0 else belief.data.second[-1]
    for seed in range(2):
        search = Search.around(belief, generator(seed))
        drawn = hallucinated(belief, search.source.clone_state())
        query = rule.ask(belief, 2, search)
        assert torch.equal(query[0], belief.data.points[winner])
        (mean, var), (mean_there, var_there) = drawn.moments(query[1:]), drawn.moments(grid(1))
        bar = drawn.mean(query[:1])
        if rule.of == "ucb":
            assert mean + rule.beta * var.sqrt() >= (mean_there + rule.beta * var_there.sqrt()).max() - 1e-6
        else:
            score = parse("ei").log_score
            assert score(mean - bar, var) >= score(mean_there - bar, var_there).max() - 1e-6


@pytest.mark.parametrize(
    "last", [yes_no(), aw.Data.rankings(uniform(1, 3, 2, seed=7), [[0, 1]])], ids=["yes/no", "ranking"]
)
def test_the_believer_starts_from_the_incumbent_if_the_last_answer_was_not_a_duel(last):
    belief = inferred(duels() + last)
    best = belief.data.points[belief.mean(belief.data.points).argmax()]
    assert torch.equal(asked_of(belief, parse("hallucination_believer"))[0], best)


# every rule


@pytest.mark.parametrize(
    "key", [pytest.param(key, marks=[pytest.mark.slow] * (key != "muc")) for key in sorted(RULES)]
)
def test_queries_are_valid_in_six_dimensions(key):
    rule = RULES[key]()
    assert_query(asked(rule, least(rule), mixed(d=6)), (), least(rule), 6)


@pytest.mark.parametrize(("rule", "m"), EVERY)
def test_only_rules_documented_to_start_from_a_queried_point_refuse_without_answers(rule, m):
    nothing = aw.Data.binary(torch.zeros(0, 2), torch.zeros(0))
    if "queried point" not in said(rule):
        assert_query(asked(rule, m, nothing), (), m, 2)
        return
    with pytest.raises(ValueError, match=HOUSE) as refused:
        asked(rule, m, nothing)
    assert "must have answers to start from; got none. Ask at random first" in str(refused.value)


@pytest.mark.parametrize(("rule", "m"), EVERY)
def test_only_rules_that_draw_depend_on_the_state_of_the_source(rule, m):
    belief = inferred(mixed(d=1))
    search = Search.around(belief, generator(0))
    once = rule.ask(belief, m, replace(search, source=generator("once")))
    again = rule.ask(belief, m, replace(search, source=(other := generator("again"))))
    draws = not torch.equal(other.get_state(), generator("again").get_state())
    assert torch.equal(once, again) != draws


def assert_same_members(one: Tensor, other: Tensor) -> None:
    """The same points, in any order: some scores do not distinguish challengers."""
    orders = itertools.permutations(range(one.shape[-2]))
    assert min((one[list(order)] - other).abs().max().item() for order in orders) < 1e-5


def often_and_seldom() -> tuple[aw.Data, list[aw.Data]]:
    """Two lanes together and alone, of which one repeats the same duel."""
    X = torch.stack([f64([[0.2], [0.4]]).repeat(4, 1, 1), uniform(4, 2, 1, seed=2)])
    c = torch.tensor([[1, 1, 1, 0], [1, 0, 0, 1]])
    return aw.Data.duels(X, c), [aw.Data.duels(X[k], c[k]) for k in range(2)]


@pytest.mark.parametrize("text", ["random", "thompson", "kss"])
def test_a_lane_that_repeats_a_duel_gets_the_query_it_gets_alone(text):
    data, each = often_and_seldom()
    rule, kernel = parse(text), aw.kernel("se", 0.3)
    m = least(rule)
    together = next_query(data, rule, kernel, m, [generator("lane", k) for k in range(2)]).points
    for k in range(2):
        alone = next_query(each[k], rule, kernel, m, generator("lane", k)).points
        assert_same_members(together[k], alone)


# queries without information


@pytest.mark.parametrize("rule", [rule for rule in DUELISTS if "never" in said(rule)], ids=str)
@pytest.mark.parametrize("data", [mixed((15,)), duels((20,), d=1, n=1)], ids=["mixed", "one duel"])
def test_a_rule_documented_never_to_repeat_a_point_does_not(rule, data):
    belief = inferred(data, 0.3 * 7 ** uniform(*data.lanes, 1, seed=8), "se")
    query = asked_of(belief, rule)
    assert query.diff(dim=-2).abs().amax(-1).min() > 1e-4


def test_the_sign_of_the_paper_makes_the_champion_of_eiig_duel_with_itself():
    belief = inferred(mixed((20,)))
    apart = [
        asked_of(belief, parse(text)).diff(dim=-2).abs().amax((-1, -2))
        for text in ("eiig(k=0.5, sign=-1)", "eiig")
    ]
    assert (apart[0] < 1e-3).double().mean() > 0.5
    assert (apart[1] > 1e-2).all()


# names


def variants() -> list[Rule]:
    """Every rule, and every rule with each of its settings changed."""
    found: list[Rule] = []
    for kind in RULES.values():
        hints = typing.get_type_hints(kind)
        found.append(kind())
        for field in fields(kind):
            others = [option for option in typing.get_args(hints[field.name]) if option != field.default]
            if field.name == "level":  # a rate
                others = [0.5, 1e-7]
            found += [kind(**{field.name: value}) for value in others or [field.default + 0.5, 1e-7, -3.0]]
    return found


@pytest.mark.parametrize("rule", variants(), ids=str)
def test_parse_inverts_str(rule):
    assert parse(str(rule)) == rule
    assert parse(f"  {rule} ") == rule
    assert (str(rule) == rule.key) == (rule == type(rule)() and not rule.former)


def test_a_record_means_the_defaults_of_its_time():
    assert parse("eiig") == parse("eiig(k=0.1)")
    assert parse("eiig", recorded=True) == parse("eiig(k=0.5)")
    assert parse("eiig(k=0.1, sign=-1)", recorded=True) == parse("eiig(sign=-1)")
    assert str(parse("eiig")) == "eiig(k=0.1)"  # so that no later default changes what it means


def test_settings_may_be_whole_numbers():
    assert parse("ucb_phi(beta=2)") == parse("ucb_phi(beta=2.0)")
    assert isinstance(parse("ucb_phi(beta=2)").beta, float)


@pytest.mark.parametrize("rule", [rule for rule, _ in CASES], ids=str)
def test_a_rule_documents_itself(rule):
    assert type(rule).__module__ == f"askwise.rules.{rule.key}"
    assert ".. math::" in (type(rule).__doc__ or "")
    assert all(text.strip() == text != "" for text in (rule.title, rule.source, rule.cost))
    assert rule.asks
    assert rule.asks <= set(Asks)


def test_titles_are_unique():
    titles = [rule.title for rule in RULES.values()]
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "rule must be a name, or a name with settings such as 'ucb_phi(beta=2)'; got ''. Choose one of"),
        ("muc(", "rule must be a name, .*; got 'muc\\('. Choose one of"),
        ("muc + 1", "rule must be a name, "),
        ("a.b", "rule must be a name, "),
        ("7", "rule must be a name, "),
        ("ucb_phi(2)", "rule must be a name, "),
        ("ucb_phi(beta=x)", "rule must be a name, "),
        ("\0", "rule must be a name, "),
        ("mucc", "rule must be one of binary_ei, .*; got 'mucc'. Choose one of them."),
        ("muc(beta=1)", "setting of muc must be nothing; got 'beta'. Leave it out"),
        ("eiig(beta=1)", "setting of eiig must be k, sign; got 'beta'. Leave it out"),
        ("ucb_phi(**{'beta': 1})", "setting of ucb_phi must be beta; got 'None'. Leave it out"),
        ("ucb_phi(beta='2')", "beta of ucb_phi must be a finite number; got '2'. Give one."),
        ("ucb_phi(beta=True)", "beta of ucb_phi must be a finite number; got True. Give one."),
        ("ucb_phi(beta=1e999)", "beta of ucb_phi must be a finite number; got inf. Give one."),
        ("ucb_phi(beta=1j)", "beta of ucb_phi must be a finite number; got 1j. Give one."),
    ],
)
def test_a_text_that_is_not_a_rule_is_refused(text, message):
    with pytest.raises(ValueError, match=HOUSE) as refused:
        parse(text)
    assert re.search(message.replace("(beta=2)", r"\(beta=2\)"), str(refused.value))


@pytest.mark.parametrize(
    "text", [f"ucb_phi(beta={10**400})", "ucb_phi(beta=1, beta=2)"], ids=["huge", "twice"]
)
def test_a_setting_that_is_too_large_or_given_twice_is_refused(text):
    with pytest.raises(ValueError, match=HOUSE):
        parse(text)


def choices() -> list[tuple[type[Rule], str]]:
    """All settings of rules that are one of several values."""
    hints = {kind: typing.get_type_hints(kind) for kind in RULES.values()}
    return [(kind, f.name) for kind in hints for f in fields(kind) if typing.get_args(hints[kind][f.name])]


@pytest.mark.parametrize(("kind", "name"), choices())
def test_an_unknown_value_of_a_setting_is_refused(kind, name):
    """Past the type checks of the tests."""
    strange = kind()
    object.__setattr__(strange, name, "strange")
    with pytest.raises(ValueError, match=rf"^{name} must .+; got 'strange'\. .+"):
        strange.__post_init__()


@pytest.mark.parametrize("rule", [rule() for rule in RULES.values()], ids=str)
@pytest.mark.parametrize("m", [-1, 0, 1, 2, 3])
def test_a_rule_is_refused_for_queries_of_another_size(rule, m):
    if m > 0 and m in {SIZE[kind] for kind in rule.asks}:
        return
    with pytest.raises(ValueError, match=HOUSE) as refused:
        asked(rule, m, mixed())
    assert f"must be used for what it asks ({', '.join(sorted(rule.asks))}); got m = {m}." in str(
        refused.value
    )


def test_a_key_is_unique():
    with pytest.raises(TypeError, match=r"rule key must be unique; got 'muc' twice\. Choose another key\."):
        type("Again", (Rule,), {"key": "muc"})
    assert parse("muc").title == "Maximally Uncertain Challenge"
