"""Ties, margins and rankings: every likelihood against draws, quadrature and 60-digit arithmetic."""

import itertools
import math
from dataclasses import fields, replace

import numpy as np
import pytest
import scipy.integrate
import scipy.special
import scipy.stats
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import MPContext

import askwise as aw
from askwise.model import fitting, margin_interval, with_fitted_margin
from askwise.model.gibbs import gibbs, hallucinated, truncated_normal
from askwise.model.likelihood import Likelihood
from askwise.model.pending import away_from_pending, given_pending
from askwise.numerics.normal import interval_moments
from askwise.numerics.seeds import generator as stream
from askwise.rules.hallucination_believer import HallucinationBeliever
from askwise.search.search import Search
from tensors import f64, seeded, uniform

FEW = settings(max_examples=10)
KERNEL = aw.kernel("matern52", 0.4, 4.0)
PLACES = f64([[0.1], [0.45], [0.8], [0.95]])


def normals(*shape, seed=0):
    return torch.randn(*shape, generator=seeded(seed), dtype=torch.float64)


def rankings(*orders, m=None, seed=0, d=2):
    """One ranking of random points per order."""
    m = len(orders[0]) if m is None else m
    return aw.Data.rankings(uniform(len(orders), m, d, seed=seed), torch.tensor(orders))


def random_mix(seed, lanes=(), margin=0.6):
    """A few answers of every kind about a noisy function of the points."""

    def utilities(n, m):
        x = uniform(*lanes, n, m, 2, seed=seed + m)
        return x, 3 * torch.sin(5 * x.sum(-1)) + math.sqrt(0.5) * normals(*lanes, n, m, seed=seed + m)

    x1, u1 = utilities(3, 1)
    x2, u2 = utilities(3, 2)
    x4, u4 = utilities(2, 4)
    data = aw.Data.binary(x1[..., 0, :], u1[..., 0] > 0) + aw.Data.duels(x2, u2[..., 0] > u2[..., 1])
    data = data + aw.Data.rankings(x4, u4.argsort(-1, descending=True)[..., :2])
    return data + aw.Data.ties(x2, margin) + aw.Data.ties(x4[..., :1, :3, :], margin, threshold="all")


def stacked(*parts):
    """The parts as lanes; all have the same number of points and rows."""
    names = [field.name for field in fields(aw.Data)]
    return aw.Data(*(torch.stack([getattr(part, name) for part in parts]) for name in names))


def assert_same(one, other, x, tolerance):
    for name in ("mean", "cov"):
        got, want = getattr(one, name)(x), getattr(other, name)(x)
        torch.testing.assert_close(got, want, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(one.log_evidence, other.log_evidence, rtol=tolerance, atol=tolerance)


# --- a normal within an interval


def exact_interval(centre, half):
    mp = MPContext()
    mp.dps = 60 + int(-4 * min(0, math.log10(half))) + int(4 * math.log10(abs(centre) + 1))
    c, h = mp.mpf(abs(centre)), mp.mpf(half)
    a, b = c - h, c + h
    mass = (mp.erfc(a / mp.sqrt(2)) - mp.erfc(b / mp.sqrt(2))) / 2
    low, high = (mp.exp(-end * end / 2) / mp.sqrt(2 * mp.pi) / mass for end in (a, b))
    mean = low - high
    return mp.log(mass), (mean - c) * (1 if centre >= 0 else -1), 1 + a * low - b * high - mean**2


CENTRES = [0.0, 1e-8, 1e-3, -0.1, 0.5, 0.99, 1.01, -2.0, 5.0, 8.9, -20.0, 37.0, 100.0, 1e3]
HALVES = [1e-9, 1e-4, 0.02, 0.5, 0.999, 1.001, 3.0, 8.0, 10.0, 40.0, 999.0]


@pytest.mark.parametrize("centre", CENTRES)
def test_moments_within_an_interval_agree_with_60_digits(centre):
    got = interval_moments(f64([centre] * len(HALVES)), f64(HALVES))
    for half, *values in zip(HALVES, *(part.tolist() for part in got), strict=True):
        log_probability, offset, var = exact_interval(centre, half)
        assert abs(values[0] - log_probability) < 1e-12 * max(1, abs(log_probability)), half
        assert abs(values[1] - offset) < 1e-12 * half, half
        assert abs(values[2] / var - 1) < 1e-12, half


@given(st.floats(-1e100, 1e100), st.floats(-100, 100).map(lambda power: 10.0**power))
def test_moments_within_any_interval_are_finite_and_inside(centre, half):
    log_probability, offset, var = interval_moments(f64(centre), f64(half))
    assert log_probability <= 1e-15
    assert log_probability.isfinite()
    assert abs(offset) <= half
    assert 0 <= var <= min(1.0, half**2 / 3 * (1 + 1e-12))


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        (-1.0, 0.5),
        (0.2, 0.3),
        (-9.0, -8.0),
        (5.0, 50.0),
        (-math.inf, -3.0),
        (-math.inf, math.inf),
        (35.0, 35.1),
    ],
)
def test_normals_within_an_interval_have_the_stated_distribution(lower, upper):
    u = uniform(20_000)
    drawn = truncated_normal(torch.full_like(u, lower), u, torch.full_like(u, upper))
    assert ((drawn >= lower) & (drawn <= upper)).all()
    exact = scipy.stats.truncnorm(lower, upper)
    assert scipy.stats.kstest(drawn.numpy(), exact.cdf).pvalue > 1e-3


@given(st.floats(-1e4, 1e4), st.floats(0, 1e3), st.floats(2.0**-53, 1 - 2.0**-53))
def test_a_normal_within_any_interval_is_inside(lower, width, u):
    drawn = truncated_normal(f64(lower), f64(u), f64(lower + width))
    assert lower <= drawn <= lower + width


# --- one row: expectation propagation is exact


def one_row(sign, row_noise, margin):
    return Likelihood(f64([[sign]]), f64([[row_noise]]), f64([[margin]]), plain=False)


def by_quadrature(sign, row_noise, margin, mean, var):
    """Probability of the outcome, and mean and variance of the row given it."""
    sd, noise = math.sqrt(var), math.sqrt(row_noise)

    def likelihood(g):
        if sign != 0:
            return scipy.special.ndtr((sign * g - margin) / noise)
        return scipy.special.ndtr((margin - g) / noise) - scipy.special.ndtr((-margin - g) / noise)

    def moment(power):
        def integrand(g):
            density = math.exp(-(((g - mean) / sd) ** 2) / 2) / (sd * math.sqrt(2 * math.pi))
            return g**power * likelihood(g) * density

        ends = (mean - 12 * sd, mean + 12 * sd)
        jumps = [place for place in (-margin, margin) if ends[0] < place < ends[1]]
        return scipy.integrate.quad(integrand, *ends, points=jumps, epsabs=1e-13, epsrel=1e-11, limit=500)[0]

    mass, first, second = (moment(power) for power in range(3))
    return mass, first / mass, second / mass - (first / mass) ** 2


ROWS = list(
    itertools.product(
        (1.0, -1.0, 0.0), (1.0, 0.5, 0.01), (0.05, 0.5, 2.0), ((0.3, 2.0), (-2.0, 0.4), (4, 1.0))
    )
)


@pytest.mark.parametrize(("sign", "row_noise", "margin", "cavity"), ROWS)
def test_a_site_matches_the_moments_given_the_outcome(sign, row_noise, margin, cavity):
    mean, var = (f64([[part]]) for part in cavity)
    row = one_row(sign, row_noise, margin)
    tau, nu = row.sites(mean, var).unbind(-2)
    mass, want_mean, want_var = by_quadrature(sign, row_noise, margin, *cavity)
    assert row.log_probability(mean, var).item() == pytest.approx(math.log(mass), abs=1e-9)
    got_var = 1 / (1 / var + tau)
    assert got_var.item() == pytest.approx(want_var, rel=1e-6)
    assert (got_var * (mean / var + nu)).item() == pytest.approx(want_mean, rel=1e-6, abs=1e-8)


@settings(max_examples=40)
@given(
    st.floats(-50, 50),
    st.floats(-12, 6).map(lambda power: 10.0**power),
    st.sampled_from([1e-12, 0.5, 1.0]),
    st.floats(-6, 2).map(lambda power: 10.0**power),
)
def test_the_probabilities_of_all_outcomes_add_up_and_their_sites_are_proper(mean, var, row_noise, margin):
    rows = [one_row(sign, row_noise, margin) for sign in (1.0, 0.0, -1.0)]
    m, v = f64([[mean]]), f64([[var]])
    chances = [row.log_probability(m, v).exp().item() for row in rows]
    assert sum(chances) == pytest.approx(1, abs=1e-12)
    for row in rows:
        sites = row.sites(m, v)
        assert sites.isfinite().all()
        assert sites[0, 0].item() >= 0
    mirrored = rows[2].sites(-m, v) * f64([[1.0], [-1.0]])
    torch.testing.assert_close(mirrored, rows[0].sites(m, v), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_without_a_margin_the_general_likelihood_is_the_plain_one(sign):
    mean, var = normals(1, 50) * 5, uniform(1, 50, seed=1) * 9
    signs, ones = torch.full_like(mean, sign), torch.ones_like(mean)
    plain, general = (Likelihood(signs, ones, f64([[0.0]]), plain=flag) for flag in (True, False))
    assert torch.equal(plain.sites(mean, var), general.sites(mean, var))
    assert torch.equal(plain.log_probability(mean, var), general.log_probability(mean, var))


@pytest.mark.parametrize("m", [1, 2])
def test_ep_is_exact_for_one_tie(m):
    x = PLACES[None, :m]
    belief = aw.infer(aw.Data.ties(x, 0.7), KERNEL)
    prior = KERNEL(x[0]).to_dense().detach()
    var = prior[0, 0].item() if m == 1 else (prior[0, 0] + prior[1, 1] - 2 * prior[0, 1]).item()
    mass, _, want = by_quadrature(0.0, 1.0, 0.7, 0.0, var)
    got = belief.variance(x[0])[0] if m == 1 else belief.difference(x[0, :1], x[0, 1:])[1][0]
    assert belief.log_evidence.item() == pytest.approx(math.log(mass), abs=1e-9)
    assert got.item() == pytest.approx(want, rel=1e-6)
    assert belief.mean(x[0]).abs().max() < 1e-12


def test_ep_is_close_to_quadrature_in_two_dimensions():
    """A yes at one point and its tie with another, by a grid over the values at both."""
    margin, x = 0.4, PLACES[:2]
    data = (aw.Data.binary(x[:1], [1]) + aw.Data.ties(x[None], margin)).with_margin(margin)
    lower = torch.linalg.cholesky(KERNEL(x).to_dense().detach())
    nodes = torch.linspace(-8, 8, 801, dtype=torch.float64)
    z = torch.cartesian_prod(nodes, nodes)
    f = z @ lower.mT
    apart, ndtr = f[:, 0] - f[:, 1], torch.special.ndtr
    weight = ndtr(f[:, 0] - margin) * (ndtr(margin - apart) - ndtr(-margin - apart))
    weight = weight * torch.exp(-z.square().sum(-1) / 2)
    evidence = (weight.sum() * (nodes[1] - nodes[0]) ** 2 / (2 * math.pi)).log()
    weight = weight / weight.sum()
    mean = weight @ f
    cov = (weight[:, None] * (f - mean)).mT @ (f - mean)
    belief = aw.infer(data, KERNEL)
    torch.testing.assert_close(belief.mean(x), mean, rtol=0, atol=5e-3)
    torch.testing.assert_close(belief.cov(x), cov, rtol=0, atol=2e-2)
    assert belief.log_evidence.item() == pytest.approx(evidence.item(), abs=2e-3)


# --- answers of every kind against draws of utilities with the same answer


def drawn_utilities(count=400_000):
    f = normals(count, 4, seed=1) @ torch.linalg.cholesky(KERNEL(PLACES).to_dense().detach()).mT
    return f, f + math.sqrt(0.5) * normals(count, 4, seed=2), f[:, 0] + normals(count, seed=3)


def spread_of(u):
    return u.amax(-1) - u.amin(-1)


def lead_of(u):
    """By how much the highest is ahead of the next."""
    first, second = u.topk(2).values.unbind(-1)
    return first - second


CASES = {
    "winner of 3": (aw.Data.rankings(PLACES[None, :3], [[1]]), lambda u, r: u[:, :3].argmax(-1) == 1),
    "winner of 3 by a margin": (
        aw.Data.rankings(PLACES[None, :3], [[1]]).with_margin(0.8),
        lambda u, r: u[:, 1] > torch.maximum(u[:, 0], u[:, 2]) + 0.8,
    ),
    "worst of 3": (aw.Data.worst(PLACES[None, :3], [1]), lambda u, r: u[:, :3].argmin(-1) == 1),
    "worst of 4": (aw.Data.worst(PLACES[None], [2]), lambda u, r: u.argmin(-1) == 2),
    "worst of 3, with a margin between the best": (
        aw.Data.worst(PLACES[None, :3], [1]).with_margin(0.8),
        lambda u, r: u[:, :3].argmin(-1) == 1,
    ),
    "two best of 4": (
        aw.Data.rankings(PLACES[None], [[3, 0]]),
        lambda u, r: (u.topk(2).indices == torch.tensor([3, 0])).all(-1),
    ),
    "ranking of 3": (
        aw.Data.rankings(PLACES[None, :3], [[2, 0, 1]]),
        lambda u, r: (u[:, 2] > u[:, 0]) & (u[:, 0] > u[:, 1]),
    ),
    "ranking of 4": (
        aw.Data.rankings(PLACES[None], [[2, 3, 0, 1]]),
        lambda u, r: (u[:, 2] > u[:, 3]) & (u[:, 3] > u[:, 0]) & (u[:, 0] > u[:, 1]),
    ),
    "neither yes nor no": (aw.Data.ties(PLACES[None, :1], 0.7), lambda u, r: r.abs() <= 0.7),
    "a clear yes": (aw.Data.binary(PLACES[:1], [1]).with_margin(0.7), lambda u, r: r > 0.7),
    "a clear no": (aw.Data.binary(PLACES[:1], [0]).with_margin(0.7), lambda u, r: r < -0.7),
    "tie of a duel": (aw.Data.ties(PLACES[None, :2], 0.7), lambda u, r: spread_of(u[:, :2]) <= 0.7),
    "tie of 3": (aw.Data.ties(PLACES[None, :3], 0.7), lambda u, r: lead_of(u[:, :3]) <= 0.7),
    "tie of 4": (aw.Data.ties(PLACES[None], 1.2), lambda u, r: lead_of(u) <= 1.2),
    "all 3 within the margin": (
        aw.Data.ties(PLACES[None, :3], 0.7, threshold="all"),
        lambda u, r: spread_of(u[:, :3]) <= 0.7,
    ),
    "all 4 within the margin": (
        aw.Data.ties(PLACES[None], 1.2, threshold="all"),
        lambda u, r: spread_of(u) <= 1.2,
    ),
    "ranking of 4 by a margin": (
        aw.Data.rankings(PLACES[None], [[2, 3, 0]]).with_margin(0.8),
        lambda u, r: (u[:, 2] > u[:, 3] + 0.8) & (u[:, 3] > u[:, 0]) & (u[:, 0] > u[:, 1]),
    ),
    "each of 3 ahead of the next by the margin": (
        aw.Data.rankings(PLACES[None, :3], [[2, 0]], threshold="all").with_margin(0.4),
        lambda u, r: (u[:, 2] > u[:, 0] + 0.4) & (u[:, 0] > u[:, 1] + 0.4),
    ),
    "a duel lost by a margin": (
        aw.Data.duels(PLACES[None, :2], [0]).with_margin(1.5),
        lambda u, r: u[:, 0] < u[:, 1] - 1.5,
    ),
}


@pytest.fixture(scope="module")
def utilities():
    return drawn_utilities()


SAMPLED = (
    "winner of 3",
    "worst of 4",
    "two best of 4",
    "neither yes nor no",
    "tie of 3",
    "all 3 within the margin",
    "a duel lost by a margin",
)
OTHERS = (pytest.param(case, "gibbs", marks=pytest.mark.slow) for case in CASES if case not in SAMPLED)


@pytest.mark.parametrize(
    ("case", "method"),
    [*itertools.product(CASES, ["ep"]), *itertools.product(SAMPLED, ["gibbs"]), *OTHERS],
)
def test_the_posterior_agrees_with_draws_that_give_the_same_answer(case, method, utilities):
    data, gives_it = CASES[case]
    f, u, response = utilities
    matching = gives_it(u, response)
    kept = f[matching]
    sd, noise = kept.std(0), 5 / math.sqrt(len(kept))
    chance, tolerance = matching.double().mean().log(), 5e-3  # error of the approximation
    belief = aw.infer(data, KERNEL)
    assert (belief.log_evidence - chance).abs() < noise + 0.015
    if method == "gibbs":
        tolerance = 0.01  # Monte Carlo error of the chains
        belief = gibbs(data, KERNEL, max_sweeps=2500 if data.undecided.any() else 250, chains=128)
        evidence = gibbs(data, KERNEL, max_sweeps=1, chains=8192).log_evidence
        assert (evidence - chance).abs() < noise + 0.05
    assert belief.converged
    assert ((belief.mean(PLACES) - kept.mean(0)).abs() / sd).max() < noise + tolerance
    assert (
        (belief.cov(PLACES) - kept.mT.cov()).abs() / (sd[:, None] * sd)
    ).max() < 1.5 * noise + 2 * tolerance


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 8))])
def test_ep_is_as_close_to_gibbs_as_stated_for_mixed_answers(seed):
    """The mean within 0.03 deviations, and the deviation within 2 percent."""
    data, x = random_mix(seed), uniform(20, 2, seed=9)
    quick, exact = aw.infer(data, KERNEL), gibbs(data, KERNEL, chains=64, max_sweeps=200)
    assert quick.converged
    assert exact.converged
    sd = exact.variance(x).sqrt()
    assert ((quick.mean(x) - exact.mean(x)) / sd).abs().max() < 0.03
    assert (quick.variance(x).sqrt() / sd - 1).abs().max() < 0.02
    evidence = gibbs(data, KERNEL, chains=4096, max_sweeps=1).log_evidence
    assert (quick.log_evidence - evidence).abs() < 0.15


def test_the_evidence_of_a_tie_is_right_where_values_follow_from_others():
    """On a line under a smooth prior, the last differences are expected far outside the margin."""
    x, kernel = torch.linspace(0, 1, 4, dtype=torch.float64)[:, None], aw.kernel("se", 1.0, 25.0)
    cov = kernel(x).to_dense().detach() + 0.5 * torch.eye(4, dtype=torch.float64)
    utilities = normals(200_000, 4) @ torch.linalg.cholesky(cov).mT
    within = (spread_of(utilities) <= 1.2).double()
    evidence = gibbs(
        aw.Data.ties(x[None], 1.2, threshold="all"), kernel, chains=8192, max_sweeps=1
    ).log_evidence
    assert (evidence - within.mean().log()).abs() < 5 / math.sqrt(within.sum()) + 0.05


@pytest.mark.parametrize("sweeps", [0, 20])
def test_hallucinations_have_the_posterior_on_average(sweeps):
    data, x = CASES["all 3 within the margin"][0] + CASES["two best of 4"][0], PLACES
    lanes = 200
    belief = aw.infer(stacked(*[data] * lanes), KERNEL)
    exact = gibbs(data, KERNEL, chains=64, max_sweeps=200)
    imagined = hallucinated(belief, stream("test", "reactions"), sweeps)
    mean, cov = imagined.mean(x), imagined.cov(x)
    noise = mean.std(0) / math.sqrt(lanes)
    assert ((mean.mean(0) - exact.mean(x)).abs() < 4.5 * noise + 0.01).all()
    total = cov.mean(0) + mean.mT.cov()
    torch.testing.assert_close(total, exact.cov(x), rtol=0.2, atol=0.1)


# --- probabilities of all answers, and equivalent answers


@pytest.mark.parametrize("m", [2, 3, 5])
def test_the_probabilities_of_all_winners_add_up_to_one(m):
    x = uniform(1, m, 2, seed=m)
    chances = [aw.infer(aw.Data.rankings(x, [[i]]), KERNEL).log_evidence.exp() for i in range(m)]
    assert sum(chances).item() == pytest.approx(1, abs=1e-9 if m == 2 else 0.02)


@pytest.mark.parametrize("m", [2, 3, 5])
def test_the_probabilities_of_all_worsts_add_up_to_one(m):
    x = uniform(1, m, 2, seed=m)
    chances = [aw.infer(aw.Data.worst(x, [i]), KERNEL).log_evidence.exp() for i in range(m)]
    assert sum(chances).item() == pytest.approx(1, abs=1e-9 if m == 2 else 0.02)


def test_of_two_the_worst_is_the_loser_of_a_duel():
    x, at = uniform(6, 2, 2), uniform(5, 2, seed=1)
    lost = [0, 1, 1, 0, 1, 0]
    assert_same(aw.infer(aw.Data.worst(x, lost), KERNEL), aw.infer(aw.Data.duels(x, lost), KERNEL), at, 1e-6)


def test_of_three_the_two_best_in_either_order_leave_the_worst():
    x = uniform(1, 3, 2, seed=4)
    orders = [aw.infer(aw.Data.rankings(x, [order]), KERNEL).log_evidence.exp() for order in ([0, 2], [2, 0])]
    worst = aw.infer(aw.Data.worst(x, [1]), KERNEL).log_evidence.exp()
    assert worst.item() == pytest.approx(sum(orders).item(), rel=0.01)


def test_turned_upside_down_the_worst_is_the_winner():
    x, at = uniform(3, 4, 2), uniform(5, 2, seed=1)
    worst, winner = (
        aw.infer(data, KERNEL) for data in (aw.Data.worst(x, [2, 0, 3]), rankings([2], [0], [3], m=4))
    )
    torch.testing.assert_close(worst.mean(at), -winner.mean(at))
    torch.testing.assert_close(worst.cov(at), winner.cov(at))
    torch.testing.assert_close(worst.log_evidence, winner.log_evidence)


def test_lanes_of_worsts_run_together_as_alone():
    x, at = uniform(3, 2, 4, 2), uniform(5, 2, seed=1)
    named = torch.tensor([[0, 1], [3, 2], [1, 1]])
    together = aw.infer(aw.Data.worst(x, named), KERNEL)
    for lane in range(3):
        alone = aw.infer(aw.Data.worst(x[lane], named[lane]), KERNEL)
        torch.testing.assert_close(together.mean(at)[lane], alone.mean(at))


def test_the_probabilities_of_all_rankings_of_four_add_up_to_one():
    orders = [list(order) for order in itertools.permutations(range(4))]
    data = stacked(*(aw.Data.rankings(uniform(1, 4, 2), [order]) for order in orders))
    assert aw.infer(data, KERNEL).log_evidence.exp().sum().item() == pytest.approx(1, abs=0.02)


def test_for_a_flat_function_all_rankings_are_equally_likely():
    belief = aw.infer(rankings(list(range(25))), aw.kernel("se", 0.3, 1e-6))
    assert belief.log_evidence.item() == pytest.approx(-math.lgamma(26), abs=0.01)


def test_the_probabilities_of_win_loss_and_tie_add_up_to_one():
    x = uniform(1, 2, 2)
    duels = [aw.Data.duels(x, [c]).with_margin(0.6) for c in (0, 1)]
    chances = [aw.infer(data, KERNEL).log_evidence.exp() for data in (*duels, aw.Data.ties(x, 0.6))]
    assert sum(chances).item() == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("m", [3, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("margin", [0.1, 0.6, 2.0])
def test_the_probabilities_of_all_answers_about_a_group_add_up_to_one(m, margin):
    """Whether a winner is named or all are ranked: undecided, or one of the others."""
    x = uniform(1, m, 2, seed=m)
    undecided = aw.infer(aw.Data.ties(x, margin), KERNEL).log_evidence.exp()
    winners = stacked(*(aw.Data.rankings(x, [[k]]).with_margin(margin) for k in range(m)))
    named = aw.infer(winners, KERNEL).log_evidence.exp().sum()
    assert (named + undecided).item() == pytest.approx(1, abs=0.01 * m)
    if m == 3:
        orders = [list(order) for order in itertools.permutations(range(m), 2)]
        rankings = stacked(*(aw.Data.rankings(x, [order]).with_margin(margin) for order in orders))
        ranked = aw.infer(rankings, KERNEL).log_evidence.exp().sum()
        assert ranked.item() == pytest.approx(named.item(), abs=0.01)


@pytest.mark.parametrize("winner", [0, 1])
def test_a_ranking_of_two_is_a_duel(winner):
    x, at = uniform(6, 2, 2), uniform(5, 2, seed=1)
    ranked, duels = aw.Data.rankings(x, [[winner]] * 6), aw.Data.duels(x, [1 - winner] * 6)
    assert ranked.plain
    assert_same(aw.infer(ranked, KERNEL), aw.infer(duels, KERNEL), at, 1e-6)


@pytest.mark.parametrize("row_noise", [0.0, 0.5])
def test_for_a_single_row_point_noise_and_row_noise_are_equivalent(row_noise):
    """The noise of a duel may be on the row, on the points, or half on each."""
    x, at = uniform(6, 2, 2), uniform(5, 2, seed=1)
    duels = aw.Data.duels(x, [1, 0, 1, 1, 0, 0])
    noise = torch.zeros(12, dtype=torch.float64)
    noise[duels.first] = 0.5
    if row_noise == 0:
        noise[duels.second] = 0.5
    noisy = aw.Data(
        duels.points, duels.first, duels.second, duels.signs, noise, torch.full_like(duels.signs, row_noise)
    )
    assert_same(aw.infer(noisy, KERNEL), aw.infer(duels, KERNEL), at, 1e-6)


def test_the_last_of_a_ranking_need_not_be_named():
    at = uniform(5, 2, seed=1)
    full, short = (aw.infer(rankings(order, m=4), KERNEL) for order in ([2, 0, 3, 1], [2, 0, 3]))
    assert_same(full, short, at, 1e-12)


@FEW
@given(st.permutations(range(5)), st.integers(1, 5), st.randoms(use_true_random=False))
def test_the_order_of_the_options_does_not_matter(order, k, random):
    x, at = uniform(1, 5, 2), uniform(5, 2, seed=1)
    shuffled = random.sample(range(5), 5)
    renamed = [shuffled.index(member) for member in order[:k]]
    one, other = aw.Data.rankings(x, [order[:k]]), aw.Data.rankings(x[:, shuffled], [renamed])
    assert_same(aw.infer(one, KERNEL), aw.infer(other, KERNEL), at, 1e-6)
    ties = [aw.infer(aw.Data.ties(points), KERNEL) for points in (x, x[:, shuffled])]
    assert_same(*ties, at, 1e-6)


@FEW
@given(st.lists(st.sampled_from([0, 1, 2]), min_size=1, max_size=8), st.floats(0.05, 2))
def test_reversed_answers_reverse_the_mean(outcomes, margin):
    """Outcome 2 is a tie, which stays a tie."""
    x, at = uniform(len(outcomes), 2, 1), uniform(5, 1, seed=1)
    signs = [
        [2.0 * c - 1 if c < 2 else 0.0 for c in outcomes],
        [1 - 2.0 * c if c < 2 else 0.0 for c in outcomes],
    ]
    duels = aw.Data.duels(x, [0] * len(outcomes))
    beliefs = [
        aw.infer(aw.Data(duels.points, duels.first, duels.second, f64(one)).with_margin(margin), KERNEL)
        for one in signs
    ]
    torch.testing.assert_close(beliefs[0].mean(at), -beliefs[1].mean(at), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(beliefs[0].cov(at), beliefs[1].cov(at), rtol=1e-6, atol=1e-6)
    assert all(belief.converged for belief in beliefs)


def test_a_wider_margin_makes_a_tie_likelier_and_less_informative():
    data, at = aw.Data.ties(uniform(1, 3, 2)), uniform(5, 2, seed=1)
    beliefs = [aw.infer(data.with_margin(margin), KERNEL) for margin in (0.1, 0.5, 2.0, 50.0)]
    chances = [belief.log_evidence.item() for belief in beliefs]
    assert chances == sorted(chances)
    assert chances[-1] == pytest.approx(0, abs=2e-3)
    torch.testing.assert_close(beliefs[-1].cov(at), KERNEL(at).to_dense().detach(), rtol=0, atol=0.02)


# --- convergence and lanes


def hard_cases():
    duel, many = uniform(1, 2, 1).expand(50, 2, 1), uniform(1, 25, 2)
    order = torch.arange(25)[None]
    return {
        "50 ties of one pair": aw.Data.ties(duel),
        "50 ties against 50 wins": aw.Data.ties(duel) + aw.Data.duels(duel, torch.ones(50)),
        "50 yes, no and neither": aw.Data.binary(duel[:, 0], torch.arange(50) % 2)
        + aw.Data.ties(duel[:, :1]),
        "a ranking of 25": aw.Data.rankings(many, order),
        "five best of 25": aw.Data.rankings(many, order[:, :5]),
        "the best of 25": aw.Data.rankings(many, order[:, :1]),
        "12 within the margin": aw.Data.ties(many[:, :12], threshold="all"),
        "12 within a narrow margin": aw.Data.ties(many[:, :12], 0.02, threshold="all"),
        "4 within a hair": aw.Data.ties(many[:, :4], 1e-4, threshold="all"),
        "a ranking of 25 and its opposite, and a tie": aw.Data.rankings(many, order)
        + aw.Data.rankings(many, order.flip(-1))
        + aw.Data.ties(many[:, :12], 0.1, threshold="all"),
        "ten winners, each of whom lost": aw.Data.rankings(
            many[:, :10].expand(10, 10, 2), torch.arange(10)[:, None]
        ),
        "a ranking of one point with itself": aw.Data.rankings(many[:, :1].expand(1, 4, 2), [[2, 1, 0, 3]]),
        "a wide margin against a narrow prior": aw.Data.rankings(many, order[:, :2]).with_margin(3.0),
    }


HARD = hard_cases()


@pytest.mark.parametrize("case", HARD)
def test_hard_cases_converge_for_every_scale(case):
    data = HARD[case]
    scales = f64(list(itertools.product((1e-3, 0.3, 1e3), (1e-6, 1.0, 1e2, 1e6))))
    kernel = aw.kernel("matern32", scales[:, :1], scales[:, 1])
    belief = aw.infer(stacked(*[data] * len(scales)), kernel)
    assert belief.converged.all(), scales[~belief.converged]
    at = data.points[:3]
    for part in (*belief.moments(at), belief.cov(at), belief.log_evidence):
        assert part.isfinite().all()


@pytest.mark.parametrize(("m", "margin"), [(3, 0.5), (3, 0.1), (4, 0.2), (8, 0.3)])
def test_undecided_answers_about_groups_converge_for_every_reasonable_scale(m, margin):
    data = aw.Data.ties(uniform(3, m, 2), margin)
    scales = f64(list(itertools.product((1e-3, 0.3, 1e3), (1e-6, 1.0, 30.0))))
    belief = aw.infer(stacked(*[data] * len(scales)), aw.kernel("matern32", scales[:, :1], scales[:, 1]))
    assert belief.converged.all(), scales[~belief.converged]
    assert belief.cov(data.points[:3]).isfinite().all()


def test_a_row_without_noise_gives_finite_results():
    """A noiseless point against itself, and against its closest possible neighbour."""
    points = f64([[0.5], [0.5 + 1e-15]])
    first, second = torch.tensor([0, 0]), torch.tensor([0, 1])
    for sign in (1.0, 0.0):
        rows = aw.Data(points, first, second, f64([sign, sign]), row_noise=f64([0.0, 0.0]))
        belief = aw.infer(rows, KERNEL)
        assert belief.mean(PLACES).isfinite().all()
        assert belief.cov(PLACES).isfinite().all()


@pytest.mark.parametrize("method", ["ep", "gibbs"])
def test_lanes_together_equal_lanes_alone(method):
    together, at = random_mix(3, lanes=(3,)), uniform(4, 2, seed=5)
    data = together.with_margin(f64([0.3, 0.6, 1.1]))

    def belief(answers, *lanes):
        if method == "ep":
            return aw.infer(answers, KERNEL)
        sources = [stream("lane", lane) for lane in lanes]
        return gibbs(answers, KERNEL, generators=sources, chains=8, max_sweeps=5)

    joint = belief(data, 0, 1, 2)
    for lane in range(3):
        alone = belief(data.select(torch.tensor([lane])), lane)
        torch.testing.assert_close(joint.mean(at)[lane], alone.mean(at)[0], rtol=1e-7, atol=1e-7)
        torch.testing.assert_close(joint.cov(at)[lane], alone.cov(at)[0], rtol=1e-7, atol=1e-7)
        torch.testing.assert_close(joint.log_evidence[lane], alone.log_evidence[0], rtol=1e-7, atol=1e-7)


def test_lanes_may_hold_answers_of_different_kinds():
    """Three rows each: a tie of three; three duels; the winner of four."""
    x = uniform(3, 2, 2)
    parts = [aw.Data.ties(x.flatten(0, 1)[None, :3], threshold="all"), aw.Data.duels(x, [1, 0, 1])]
    parts = [*parts, aw.Data.rankings(x.flatten(0, 1)[None, :4], [[2]])]
    most = max(part.points.shape[-2] for part in parts)

    def filled(part):
        extra = most - part.points.shape[-2]
        points = torch.cat([part.points, part.points[:1].expand(extra, -1)])
        noise = torch.cat([part.point_noise, torch.zeros(extra, dtype=torch.float64)])
        return aw.Data(points, part.first, part.second, part.signs, noise, part.row_noise, part.margin)

    data, at = stacked(*map(filled, parts)), uniform(4, 2, seed=5)
    quick, exact = aw.infer(data, KERNEL), gibbs(data, KERNEL, chains=256, max_sweeps=200)
    assert exact.converged.all()
    for lane, part in enumerate(parts):
        alone = aw.infer(part, KERNEL)
        assert_same(quick.select(lane), alone, at, 1e-7)
        torch.testing.assert_close(exact.mean(at)[lane], alone.mean(at), rtol=0, atol=0.06)
        torch.testing.assert_close(exact.cov(at)[lane], alone.cov(at), rtol=0, atol=0.1)
        assert (exact.log_evidence[lane] - alone.log_evidence).abs() < 0.05


def test_a_warm_start_gives_the_same_in_fewer_sweeps():
    data, more = random_mix(0), random_mix(0) + aw.Data.ties(uniform(1, 2, 2, seed=7))
    cold = aw.infer(more, KERNEL)
    warm = aw.infer(more, KERNEL, warm=aw.infer(data, KERNEL))
    assert warm.sweeps < cold.sweeps
    assert_same(warm, cold, uniform(4, 2, seed=5), 1e-6)


# --- data


def test_the_rows_of_a_winner_share_its_noise():
    data = aw.Data.rankings(PLACES[None], [[1]])
    assert (data.n, data.points.shape[-2]) == (3, 4)
    assert data.row_noise.tolist() == [0.5] * 3
    assert len(set(data.first.tolist())) == 1
    assert data.point_noise[data.first].tolist() == [0.5] * 3
    assert data.point_noise[data.second].tolist() == [0.0] * 3


def test_the_rows_of_a_worst_share_its_noise():
    data = aw.Data.worst(PLACES[None], [1])
    named = torch.where(data.signs < 0, data.first, data.second)
    assert (data.n, data.points.shape[-2]) == (3, 4)
    assert torch.equal(data.points[named], PLACES[[1, 1, 1]])
    assert data.point_noise[named].tolist() == [0.5] * 3
    assert data.row_noise.tolist() == [0.5] * 3


def test_in_a_full_ranking_all_but_the_first_and_last_have_point_noise():
    data = aw.Data.rankings(PLACES[None], [[2, 0, 3, 1]])
    order = torch.cat([data.first, data.second[-1:]])
    assert torch.equal(data.points[order], PLACES[[2, 0, 3, 1]])
    assert data.point_noise[order].tolist() == [0, 0.5, 0.5, 0]
    assert data.row_noise.tolist() == [0.5, 0, 0.5]


def test_noisy_copies_are_never_merged_but_noiseless_points_are():
    twice = aw.Data.rankings(PLACES[None, :3].expand(2, 3, 1), [[0], [0]])
    assert sorted(twice.point_noise.tolist()) == [0, 0, 0.5, 0.5]
    more = twice + twice + aw.Data.binary(PLACES[:3], [1, 0, 1])
    assert sorted(more.point_noise.tolist()) == [0, 0, 0, 0.5, 0.5, 0.5, 0.5]
    assert more.row_noise.tolist() == [0.5] * 8 + [1.0] * 3
    assert torch.equal(more.points[more.first[:8]], PLACES[:1].expand(8, 1))


def test_adding_keeps_the_larger_margin_and_all_rows():
    tie, duel = aw.Data.ties(PLACES[None, :2], 0.3), aw.Data.duels(PLACES[None, 2:], [1])
    data = duel + tie
    assert data.margin.item() == (tie + duel).margin.item() == 0.3
    assert data.signs.tolist() == [1, 0]
    assert (data + tie.with_margin(0.8)).margin.item() == 0.8
    assert duel.margin.item() == 0
    assert aw.Data(tie.points, tie.first, tie.second, tie.signs).margin.item() == 0.5


def test_plain_data_are_those_without_ties_margins_and_shared_noise():
    duel = aw.Data.duels(PLACES[None, :2], [1])
    assert duel.plain
    assert (duel + aw.Data.binary(PLACES, [1, 0, 1, 0])).plain
    for data in (
        duel.with_margin(0.1),
        aw.Data.ties(PLACES[None, :2]),
        aw.Data.rankings(PLACES[None], [[0]]),
        replace(duel, point_noise=f64([0.0, 0.5])),
        replace(duel, row_noise=f64([0.5])),
    ):
        assert not data.plain


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: rankings([0, 0, 1]),
            ValueError,
            r"best must name each member at most once; got \[0, 0, 1\]",
        ),
        (lambda: rankings([0, 3], m=3), ValueError, "best must be indices from 0 to 2; got 3"),
        (lambda: rankings([-1], m=3), ValueError, "best must be indices from 0 to 2; got -1"),
        (lambda: rankings([0, 1, 2], m=2), ValueError, r"best must name 1 to 2 members .* got \(1, 3\)"),
        (lambda: rankings([], m=2), ValueError, r"best must name 1 to 2 members .* got \(1, 0\)"),
        (lambda: rankings([0.0], m=2), TypeError, "best must be whole numbers; got torch.float32"),
        (lambda: rankings([True], m=2), TypeError, "best must be whole numbers; got torch.bool"),
        (
            lambda: aw.Data.worst(uniform(1, 3, 2), [3]),
            ValueError,
            "worst must be indices from 0 to 2; got 3",
        ),
        (lambda: aw.Data.worst(uniform(1, 3, 2), [0.5]), TypeError, "worst must be whole numbers; got"),
        (lambda: aw.Data.worst(uniform(2, 3, 2), [0]), ValueError, r"worst must name .* got \(1, 1\)"),
        (lambda: aw.Data.worst(uniform(1, 1, 2), [0]), ValueError, "X must hold two points or more"),
        (lambda: rankings([0], m=1), ValueError, "X must hold two points or more a ranking; got 1"),
        (lambda: aw.Data.rankings(2 + uniform(1, 2, 1), [[0]]), ValueError, "X must lie in the unit cube"),
        (
            lambda: aw.Data.rankings(uniform(3, 1), [[0]]),
            ValueError,
            r"shape \[n, m, d\] or \[lane, n, m, d\]",
        ),
        (lambda: aw.Data.ties(uniform(3, 1)), ValueError, r"shape \[n, m, d\] or \[lane, n, m, d\]"),
        (
            lambda: aw.Data.ties(uniform(1, 0, 2)),
            ValueError,
            "X must hold at least one point a tie; got none",
        ),
        (lambda: aw.Data.ties(uniform(1, 2, 2), 0), ValueError, "above zero where there are ties; got 0"),
        (lambda: aw.Data.ties(uniform(1, 2, 2), -1.0), ValueError, "margin must be finite and not negative"),
        (lambda: rankings([0, 1]).with_margin(-0.1), ValueError, r"not negative, .* got -0\.1"),
        (lambda: rankings([0, 1]).with_margin(math.nan), ValueError, "margin must be finite .* got nan"),
        (lambda: rankings([0, 1]).with_margin(math.inf), ValueError, "margin must be finite .* got inf"),
        (lambda: rankings([0, 1]).with_margin(f64([1.0, 2.0])), ValueError, r"one for each lane, \(\); got"),
        (
            lambda: aw.infer(aw.Data.ties(uniform(1, 2, 2)), KERNEL, "laplace"),
            ValueError,
            "'ep' or 'gibbs' for",
        ),
        (lambda: aw.infer(rankings([0], m=3), KERNEL, "laplace"), ValueError, "'ep' or 'gibbs' for rankings"),
    ],
)
def test_invalid_answers_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_noiseless_ties_that_are_not_all_pairs_are_refused_by_gibbs():
    tie = aw.Data.ties(PLACES[None])
    some = aw.Data(
        tie.points, tie.first[1:], tie.second[1:], tie.signs[1:], tie.point_noise, tie.row_noise[1:]
    )
    with pytest.raises(ValueError, match=r"must be of all pairs of a group; got others\. Use Data\.ties"):
        gibbs(some, KERNEL)


@pytest.mark.parametrize("kind", ["rankings", "ties"])
def test_data_without_answers_can_be_added_to(kind):
    X = torch.empty(0, 3, 2, dtype=torch.float64)
    none = aw.Data.ties(X) if kind == "ties" else aw.Data.rankings(X, torch.empty(0, 2, dtype=torch.long))
    assert none.n == 0
    assert (none + rankings([1, 0, 2])).n == 2


# --- fitting


@pytest.mark.parametrize(
    "answers", [random_mix(1), rankings([1, 3, 0, 2], [0, 2, 3, 1]), random_mix(2, (2,))]
)
def test_the_gradient_of_the_evidence_agrees_with_differences(answers):
    lanes = answers.lanes
    logs = torch.tensor([0.3, 0.5, 3.0], dtype=torch.float64).log()

    def evidence(values):
        kernel = aw.kernel("se", values[:2].exp().expand(*lanes, 2), values[2].exp().expand(lanes))
        return aw.infer(answers, kernel, tolerance=1e-11).log_evidence.sum()

    kernel = aw.kernel("se", logs[:2].exp(), logs[2].exp()).requires_grad_(True)  # stores logarithms
    aw.infer(answers, kernel, tolerance=1e-11).log_evidence.sum().backward()
    got = torch.cat(
        [kernel.base_kernel.raw_lengthscale.grad.flatten(), kernel.raw_outputscale.grad.reshape(1)]
    )
    for k, step in enumerate(1e-5 * torch.eye(3, dtype=torch.float64)):
        slope = (evidence(logs + step) - evidence(logs - step)) / 2e-5
        assert got[k].item() == pytest.approx(slope.item(), rel=1e-5, abs=1e-6)


def test_kernels_are_fitted_to_answers_of_every_kind():
    fitted = fitting.fit(random_mix(0), "se")
    assert fitted.log_posterior > fitted.log_posterior_at_start
    assert fitted.belief.converged


def test_the_fitted_margin_is_the_best_of_the_grid():
    data = random_mix(4)
    fitted = with_fitted_margin(data, KERNEL)
    margins = torch.logspace(math.log10(0.02), math.log10(3), 24, dtype=torch.float64)
    prior = scipy.stats.lognorm(s=0.7, scale=0.4).logpdf(margins.numpy())
    scores = [
        aw.infer(data.with_margin(margin), KERNEL).log_evidence.item() + log_prior
        for margin, log_prior in zip(margins, prior, strict=True)
    ]
    assert fitted.margin.item() == pytest.approx(margins[int(np.argmax(scores))].item(), rel=1e-12)
    assert torch.equal(fitted.signs, data.signs)


def test_each_lane_gets_its_own_margin_under_its_own_kernel():
    data = random_mix(5, lanes=(3,))
    kernel = aw.kernel("se", uniform(3, 2) + 0.1, f64([1.0, 4.0, 20.0]))
    together = with_fitted_margin(data, kernel)
    for lane, scale in enumerate((1.0, 4.0, 20.0)):
        alone = with_fitted_margin(data.select(lane), aw.kernel("se", uniform(3, 2)[lane] + 0.1, scale))
        assert together.margin[lane] == alone.margin


def test_the_margin_is_fitted_only_in_lanes_with_ties():
    duels = aw.Data.duels(uniform(2, 3, 2, 1), torch.ones(2, 3))
    assert with_fitted_margin(duels, KERNEL) is duels
    signs = duels.signs.clone()
    signs[1, 0] = 0
    mixed = aw.Data(duels.points, duels.first, duels.second, signs)
    margin = with_fitted_margin(mixed, KERNEL).margin
    assert margin[0] == 0
    assert margin[1] > 0


def test_a_margin_is_roughly_recovered_from_many_duels():
    x = uniform(120, 2, 1, seed=2)
    f = 2 * torch.sin(6 * x[..., 0])
    for margin in (0.2, 1.0):
        response = f[:, 0] - f[:, 1] + normals(120, seed=3)
        tied = response.abs() <= margin
        data = aw.Data.duels(x[~tied], response[~tied] > 0) + aw.Data.ties(x[tied])
        assert 0.7 < with_fitted_margin(data, KERNEL).margin.item() / margin < 1.4


def test_the_interval_of_a_margin_holds_95_percent_of_its_posterior():
    x = uniform(60, 2, 1, seed=2)
    response = 2 * (torch.sin(6 * x[:, 0, 0]) - torch.sin(6 * x[:, 1, 0])) + normals(60, seed=3)
    tied = response.abs() <= 0.5
    data = aw.Data.duels(x[~tied], response[~tied] > 0) + aw.Data.ties(x[tied])
    low, high = margin_interval(data, KERNEL)
    margins = torch.linspace(0.01, 3, 300, dtype=torch.float64)
    prior = torch.from_numpy(scipy.stats.lognorm(s=0.7, scale=0.4).logpdf(margins.numpy()))
    each = [aw.infer(data.with_margin(margin), KERNEL).log_evidence for margin in margins]
    density = (torch.stack(each) + prior).softmax(0)
    assert density[margins < low].sum() == pytest.approx(0.025, abs=0.01)
    assert density[margins > high].sum() == pytest.approx(0.025, abs=0.01)


# --- posterior given pending queries


def pending_of(lanes=()):
    duels = aw.Data.duels(uniform(*lanes, 3, 2, 2, seed=21), torch.ones(*lanes, 3))
    return duels + aw.Data.rankings(uniform(*lanes, 1, 4, 2, seed=22), torch.zeros(*lanes, 1, 1).long())


@pytest.mark.parametrize("lanes", [(), (3,)])
@pytest.mark.parametrize("answered", [0, 1, 2])
def test_given_pending_queries_the_mean_stays_and_the_variance_shrinks(lanes, answered):
    data = random_mix(6, lanes)
    data = [aw.Data.binary(torch.empty(*lanes, 0, 2), torch.empty(*lanes, 0)), data, data + pending_of(lanes)]
    belief, x = aw.infer(data[answered], KERNEL), uniform(30, 2, seed=5)
    shrunk = given_pending(belief, pending_of(lanes))
    torch.testing.assert_close(shrunk.mean(x), belief.mean(x), rtol=1e-8, atol=1e-8)
    assert (shrunk.variance(x) <= belief.variance(x) + 1e-9).all()
    assert (shrunk.variance(x) < 0.9 * belief.variance(x)).any()
    assert shrunk.data.n == belief.data.n + 6
    assert torch.equal(shrunk.tau[..., :-6], belief.tau)
    assert torch.equal(shrunk.log_evidence, belief.log_evidence)


def test_pending_queries_work_with_laplace_too():
    data, x = aw.Data.duels(uniform(8, 2, 2), torch.arange(8) % 2), uniform(30, 2, seed=5)
    belief = aw.infer(data, KERNEL, "laplace")
    shrunk = given_pending(belief, pending_of())
    torch.testing.assert_close(shrunk.mean(x), belief.mean(x), rtol=1e-8, atol=1e-8)
    assert (shrunk.variance(x) <= belief.variance(x) + 1e-9).all()


@pytest.mark.parametrize("margin", [0.0, 0.5])
def test_the_precision_of_a_pending_row_is_its_mean_over_the_outcomes(margin):
    belief = aw.infer(
        random_mix(7, margin=0.5) if margin else aw.Data.duels(uniform(5, 2, 2), [1] * 5), KERNEL
    )
    x = uniform(1, 2, 2, seed=8)
    pending = aw.Data.duels(x, [1])
    mean, var = belief.difference(x[:, 0], x[:, 1])
    expected = 0.0
    for sign in (1.0, -1.0, 0.0) if margin else (1.0, -1.0):
        mass, _, after = by_quadrature(sign, 1.0, margin, mean.item(), var.item())
        expected += mass * (1 / after - 1 / var.item())
    for weight in (1, 0.25):
        shrunk = given_pending(belief, pending, weight)
        assert shrunk.tau[-1].item() == pytest.approx(weight * expected, rel=1e-6)
        left = shrunk.difference(x[:, 0], x[:, 1])[1].item()
        assert 1 / left == pytest.approx(1 / var.item() + weight * expected, rel=1e-6)


def test_zero_weight_or_no_pending_query_leaves_the_posterior():
    belief, x = aw.infer(random_mix(8), KERNEL), uniform(30, 2, seed=5)
    none = aw.Data.binary(torch.empty(0, 2), torch.empty(0))
    for same in (given_pending(belief, pending_of(), 0.0), given_pending(belief, none)):
        torch.testing.assert_close(same.cov(x), belief.cov(x), rtol=1e-9, atol=1e-9)


def test_invalid_pending_queries_are_refused():
    data = random_mix(9)
    with pytest.raises(ValueError, match="belief must have a site for each answer; got one of exact moments"):
        given_pending(gibbs(data, KERNEL, chains=4, max_sweeps=4), pending_of())
    belief = aw.infer(data, KERNEL)
    for weight in (-1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match=f"weight must be finite and not negative; got {weight}"):
            given_pending(belief, pending_of(), weight)
    with pytest.raises(ValueError, match="data to add must have the same lanes"):
        given_pending(belief, pending_of((2,)))


def test_pending_queries_weigh_more_until_the_choice_is_new():
    belief, x, variances = aw.infer(random_mix(8), KERNEL), uniform(5, 2, seed=5), []

    def choose(expected):
        variances.append(expected.variance(x))
        return f64(len(variances))

    weights = (0.5, 1.0, 2.0, 4.0)
    found, new = away_from_pending(belief, pending_of(), choose, lambda choice: choice == 3, weights)
    assert (found, new) == (3, True)
    for weight, got in zip(weights, variances, strict=False):
        torch.testing.assert_close(got, given_pending(belief, pending_of(), weight).variance(x))
    found, new = away_from_pending(belief, pending_of(), choose, lambda choice: False, weights)
    assert (found, new) == (7, False)


def test_without_pending_queries_the_choice_is_that_of_the_belief_itself():
    belief, none = aw.infer(random_mix(8), KERNEL), aw.Data.binary(torch.empty(0, 2), torch.empty(0))
    seen = []
    away_from_pending(belief, none, lambda given: seen.append(given) or f64(0), lambda choice: True, (1.0,))
    assert seen[0] is belief


# --- rules that read the answers


def test_after_a_tie_the_believer_challenges_the_best_queried_point():
    duel = aw.Data.duels(uniform(4, 2, 2), [1, 0, 1, 1])
    for last in (aw.Data.ties(uniform(1, 2, 2, seed=3)), rankings([2, 0], m=4, seed=4)):
        belief = aw.infer(duel + last, KERNEL)
        query = HallucinationBeliever().ask(belief, 2, Search.around(belief, stream("test", "tie")))
        points = belief.data.points
        torch.testing.assert_close(query[0], points[belief.mean(points).argmax()])
