"""Gibbs sampling against closed forms, quadrature, orthant probabilities and EP."""

import math

import numpy as np
import pytest
import scipy.stats
import torch
from gpytorch.kernels import Kernel
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import askwise as aw
from askwise.model import gibbs as module
from askwise.model.gibbs import gibbs, truncated_normal
from askwise.numerics.seeds import generator as seeded
from tensors import uniform

BOUNDS = [-40.0, -8.0, -1.0, 0.0, 0.5, 3.0, 8.0, 20.0, 29.9, 30.1, 60.0, 100.0]


def f64(*values) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def laned(data: aw.Data, count: int) -> aw.Data:
    """The same answers in each lane."""
    parts = (data.points, data.first, data.second, data.signs)
    return aw.Data(*(part.expand(count, *part.shape) for part in parts))


def sources(count: int, *identity: str | int) -> list[torch.Generator]:
    return [seeded("test gibbs", *identity, lane) for lane in range(count)]


def repeats(data: aw.Data, kernel: Kernel, count: int = 16, **options):
    """Beliefs of independent runs, one per lane."""
    return gibbs(laned(data, count), kernel, generators=sources(count), **options)


def assert_agrees(estimates: Tensor, exact: Tensor | float, tolerance: float = 0.0) -> None:
    """The mean of independent estimates [lane, ...] is within six standard errors of the exact value."""
    noise = estimates.std(0) / math.sqrt(len(estimates))
    gap = (estimates.mean(0) - exact).abs()
    assert (gap <= 6 * noise + tolerance).all(), (
        f"off by {(gap / noise).max():.1f} standard errors, {gap.max():.2g}"
    )


def orthant_cov(data: aw.Data, kernel: Kernel) -> np.ndarray:
    """Covariance of the latent responses, signed so that each outcome is "positive"."""
    K = kernel(data.points).to_dense().detach()
    rows = data.matvec(data.matvec(K).mT)
    turned = data.signs[:, None] * (rows + torch.eye(data.n, dtype=torch.float64)) * data.signs
    return turned.numpy()


@pytest.mark.parametrize("bound", BOUNDS)
def test_truncated_normals_have_the_stated_distribution(bound, generator):
    u = torch.rand(20_000, generator=generator, dtype=torch.float64)
    drawn = truncated_normal(torch.full_like(u, bound), u)
    assert (drawn >= bound).all()
    exact = scipy.stats.truncnorm(bound, math.inf)
    assert scipy.stats.kstest(drawn.numpy(), exact.cdf).pvalue > 1e-3
    standardised = (drawn.numpy().mean() - exact.mean()) / (exact.std() / math.sqrt(len(u)))
    assert abs(standardised) < 4


@pytest.mark.parametrize("bound", BOUNDS)
def test_truncated_normals_invert_the_distribution_into_its_tail(bound):
    """The probability to exceed the result, given that the bound is exceeded, is the uniform number."""
    u = torch.cat([torch.logspace(-15, -1, 57), 1 - torch.logspace(-15, -1, 57)]).double()
    drawn = truncated_normal(torch.full_like(u, bound), u).numpy()
    log_chance = scipy.stats.norm.logsf(drawn) - scipy.stats.norm.logsf(bound)
    if bound < 30:
        np.testing.assert_allclose(np.exp(log_chance), u.numpy(), rtol=1e-9, atol=1e-12)
    else:  # exponential to 1e-3 of its width
        np.testing.assert_allclose(np.exp(log_chance), u.numpy(), rtol=0, atol=5e-4)
        width = drawn - bound
        exact = scipy.stats.norm.isf(u.numpy()[u > 1e-3] * scipy.stats.norm.sf(bound)) if bound < 37 else None
        if exact is not None:
            np.testing.assert_allclose(width[u > 1e-3], exact - bound, rtol=1e-2, atol=1e-12)


@given(st.floats(-1e6, 1e6), st.floats(2.0**-53, 1 - 2.0**-53))
def test_truncated_normals_are_finite_and_above_any_bound(bound, u):
    drawn = truncated_normal(f64(bound), f64(u))
    assert drawn.isfinite()
    assert drawn >= bound
    assert drawn <= max(bound, 0) + 40


def test_rounding_moves_no_draw_below_its_bound():
    bounds = torch.linspace(-6, 40, 10_001, dtype=torch.float64)
    assert (truncated_normal(bounds, torch.full_like(bounds, 1 - 2.0**-53)) >= bounds).all()


@given(st.floats(-40, 100), st.floats(1e-12, 0.5), st.floats(0.5, 1 - 1e-12))
def test_a_larger_uniform_number_gives_a_smaller_draw(bound, less, more):
    low, high = truncated_normal(f64(bound, bound), f64(more, less))
    assert low <= high


@pytest.mark.parametrize("variance", [1e-4, 1.0, 100.0, 1e6])
@pytest.mark.parametrize("answer", [0, 1])
def test_one_answer_gives_the_closed_form(variance, answer):
    """For f ~ N(0, v) after a yes: mean v sqrt(2/pi) / s and variance v - 2 v^2 / (pi s^2), s^2 = 1 + v."""
    x = f64([0.4])
    belief = repeats(aw.Data.binary(x, [answer]), aw.kernel("se", 0.3, variance), chains=64, max_sweeps=50)
    mean = variance * math.sqrt(2 / math.pi / (1 + variance)) * (2 * answer - 1)
    assert_agrees(belief.mean(x)[:, 0], mean)
    assert_agrees(belief.variance(x)[:, 0], variance - 2 * variance**2 / math.pi / (1 + variance))
    torch.testing.assert_close(belief.log_evidence, torch.full((16,), math.log(0.5)).double())


def test_one_duel_gives_the_closed_form():
    x, other = f64(0.2, 0.3), f64(0.7, 0.5)
    kernel = aw.kernel("matern52", [0.3, 0.6], 5.0)
    variance = 2 * (5.0 - kernel(x[None], other[None]).to_dense().item())
    belief = repeats(aw.Data.duels(torch.stack([x, other])[None], [0]), kernel, chains=64, max_sweeps=50)
    mean, var = belief.difference(x[None], other[None])
    assert_agrees(mean[:, 0], -variance * math.sqrt(2 / math.pi / (1 + variance)))
    assert_agrees(var[:, 0], variance - 2 * variance**2 / math.pi / (1 + variance))


def by_quadrature(data: aw.Data, kernel: Kernel, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Mean and covariance at ``x`` and the log evidence after two answers, by a grid over their rows."""
    K, cross = kernel(data.points).to_dense().detach(), kernel(data.points, x).to_dense().detach()
    G, cross = data.matvec(data.matvec(K).mT), data.matvec(cross)
    lower = torch.linalg.cholesky(G)
    nodes = torch.linspace(-9, 9, 361, dtype=torch.float64)
    z = torch.cartesian_prod(nodes, nodes)
    g = z @ lower.mT
    log_weight = torch.special.log_ndtr(data.signs * g).sum(-1) - z.square().sum(-1) / 2
    evidence = log_weight.logsumexp(0) + 2 * (nodes[1] - nodes[0]).log() - math.log(2 * math.pi)
    weight = log_weight.softmax(0)
    mean = weight @ g
    cov = (weight[:, None] * (g - mean)).mT @ (g - mean)
    gain = torch.cholesky_solve(cross, lower)  # f at x given the rows is normal with mean gain^T g
    rest = kernel(x).to_dense().detach() - cross.mT @ gain
    return gain.mT @ mean, rest + gain.mT @ cov @ gain, evidence


TWO = {
    "two yes": (aw.Data.binary([[0.2], [0.5]], [1, 1]), aw.kernel("se", 0.3, 4.0)),
    "yes and no, close": (aw.Data.binary([[0.2], [0.3]], [1, 0]), aw.kernel("se", 0.3, 30.0)),
    "duels with a common point": (
        aw.Data.duels([[[0.2], [0.5]], [[0.5], [0.9]]], [1, 0]),
        aw.kernel("matern32", 0.4, 3.0),
    ),
    "a yes and a duel": (
        aw.Data.binary([[0.1]], [0]) + aw.Data.duels([[[0.1], [0.4]]], [1]),
        aw.kernel("matern52", 0.2, 9.0),
    ),
}


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=pytest.mark.slow if number > 1 else ()) for number, case in enumerate(TWO)],
)
def test_two_answers_agree_with_quadrature(case):
    data, kernel = TWO[case]
    x = f64([0.0], [0.25], [0.5], [1.0])
    mean, cov, evidence = by_quadrature(data, kernel, x)
    belief = repeats(data, kernel, chains=64, max_sweeps=250)
    assert belief.converged.all()
    assert_agrees(belief.mean(x), mean)
    assert_agrees(belief.cov(x), cov)
    assert_agrees(belief.variance(x), cov.diagonal())
    assert_agrees(belief.log_evidence, evidence, tolerance=1e-3)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
@pytest.mark.parametrize("variance", [0.5, 20.0])
def test_the_evidence_is_the_probability_of_the_orthant(n, variance):
    data = aw.Data.binary(uniform(n, 2, seed=n), [1, 0, 1, 1, 0][:n]) if n % 2 else duels(n)
    kernel = aw.kernel("matern52", 0.5, variance)
    cov = orthant_cov(data, kernel)
    options = {"maxpts": 2_000_000, "abseps": 1e-7, "releps": 1e-6}
    exact = scipy.stats.multivariate_normal.cdf(np.zeros(n), np.zeros(n), cov, **options)
    belief = repeats(data, kernel, chains=2048, max_sweeps=1)
    assert_agrees(belief.log_evidence, math.log(exact), tolerance=1e-4)
    assert belief.log_evidence.std() < 0.05


def test_the_evidence_of_two_answers_is_the_arcsine():
    data, kernel = TWO["yes and no, close"]
    cov = orthant_cov(data, kernel)
    correlation = cov[0, 1] / math.sqrt(cov[0, 0] * cov[1, 1])
    exact = math.log(0.25 + math.asin(correlation) / (2 * math.pi))
    assert_agrees(repeats(data, kernel, chains=2048, max_sweeps=1).log_evidence, exact, tolerance=1e-4)


@pytest.mark.parametrize("answers", [[1, 1], [1, 0]])
def test_the_gradient_of_the_evidence_is_exact(answers):
    lanes, length, scale = 32, 0.3, 6.0
    data = aw.Data.binary([[0.2], [0.5]], answers)
    kernel = aw.kernel("se", torch.full((lanes, 1), length), torch.full((lanes,), scale)).requires_grad_(True)
    repeats(data, kernel, lanes, chains=64, max_sweeps=100).log_evidence.sum().backward()

    def exact(log_scale: float, log_length: float) -> float:
        variance, distance = math.exp(log_scale), 0.3 / math.exp(log_length)
        turned = 1 if answers[0] == answers[1] else -1
        correlation = turned * variance * math.exp(-(distance**2) / 2) / (1 + variance)
        return math.log(0.25 + math.asin(correlation) / (2 * math.pi))

    at, step = (math.log(scale), math.log(length)), 1e-5
    by_scale = (exact(at[0] + step, at[1]) - exact(at[0] - step, at[1])) / (2 * step)
    by_length = (exact(at[0], at[1] + step) - exact(at[0], at[1] - step)) / (2 * step)
    assert_agrees(kernel.raw_outputscale.grad, by_scale)
    assert_agrees(kernel.base_kernel.raw_lengthscale.grad.reshape(lanes), by_length)
    assert kernel.raw_outputscale.grad.mean().item() == pytest.approx(by_scale, rel=0.1)
    assert kernel.base_kernel.raw_lengthscale.grad.mean().item() == pytest.approx(by_length, rel=0.1)


def duels(n: int, d: int = 2, seed: int = 0) -> aw.Data:
    X = uniform(n, 2, d, seed=seed)
    chance = torch.special.ndtr(4 * (X[:, 0] - X[:, 1]).sum(-1))
    return aw.Data.duels(X, (uniform(n, seed=seed + 1) < chance).long())


def yes_no(n: int, d: int = 1, seed: int = 0) -> aw.Data:
    X = uniform(n, d, seed=seed)
    return aw.Data.binary(X, (uniform(n, seed=seed + 1) < torch.special.ndtr(3 * (5 * X[:, 0]).sin())).long())


def same(one, other) -> bool:
    names = ("alpha", "factor", "log_evidence", "change")
    return all(torch.equal(getattr(one, name), getattr(other, name)) for name in names)


def test_equal_generators_give_equal_beliefs_and_different_ones_do_not():
    data, kernel, few = duels(5), aw.kernel("se", 0.4), {"chains": 16, "max_sweeps": 10}
    one = gibbs(data, kernel, generators=seeded("a"), **few)
    assert same(one, gibbs(data, kernel, generators=seeded("a"), **few))
    assert not same(one, gibbs(data, kernel, generators=seeded("b"), **few))


def test_without_generators_calls_are_repeatable_and_leave_the_global_state():
    data, kernel, few = duels(5), aw.kernel("se", 0.4), {"chains": 16, "max_sweeps": 10}
    before = torch.get_rng_state()
    assert same(gibbs(data, kernel, **few), gibbs(data, kernel, **few))
    assert torch.equal(torch.get_rng_state(), before)


def test_infer_passes_on_its_options():
    data, kernel = duels(4), aw.kernel("se", 0.4)
    belief = aw.infer(data, kernel, "gibbs", max_sweeps=7, tolerance=1e9, generators=seeded("a"))
    assert (int(belief.sweeps), bool(belief.converged)) == (7, True)
    assert same(belief, gibbs(data, kernel, max_sweeps=7, generators=seeded("a")))


def test_lanes_with_their_own_generators_equal_lanes_alone():
    X, c = uniform(3, 6, 2), (uniform(3, 6, seed=1) < 0.5).long()
    lengthscale, outputscale = 0.2 + uniform(3, 2, seed=2), f64(0.5, 4.0, 50.0)
    few, x = {"chains": 16, "max_sweeps": 20}, uniform(5, 2, seed=3)
    kernel = aw.kernel("matern52", lengthscale, outputscale)
    together = gibbs(aw.Data.binary(X, c), kernel, generators=sources(3), **few)
    for lane, source in enumerate(sources(3)):
        own = aw.kernel("matern52", lengthscale[lane], outputscale[lane])
        alone = gibbs(aw.Data.binary(X[lane], c[lane]), own, generators=source, **few)
        torch.testing.assert_close(together.mean(x)[lane], alone.mean(x))
        torch.testing.assert_close(together.cov(x)[lane], alone.cov(x))
        torch.testing.assert_close(together.log_evidence[lane], alone.log_evidence)
        torch.testing.assert_close(together.change[lane], alone.change)


def test_with_one_generator_lanes_are_independent():
    belief = gibbs(laned(duels(4), 2), aw.kernel("se", 0.4), generators=seeded("a"), chains=16, max_sweeps=10)
    assert not torch.equal(belief.alpha[0], belief.alpha[1])


def test_a_wrong_number_of_generators_is_refused():
    message = r"generators must be one, or one for each of the 3 lanes; got 2\."
    with pytest.raises(ValueError, match=message):
        gibbs(laned(duels(4), 3), aw.kernel("se", 0.4), generators=sources(2))


def test_reversed_answers_give_the_reversed_mean_from_the_same_draws():
    X, c = uniform(6, 2, 2), (uniform(6) < 0.5).long()
    few, x = {"chains": 16, "max_sweeps": 20}, uniform(5, 2, seed=3)
    one, other = (gibbs(aw.Data.duels(X, answers), aw.kernel("se", 0.4), **few) for answers in (c, 1 - c))
    torch.testing.assert_close(one.mean(x), -other.mean(x))
    torch.testing.assert_close(one.cov(x), other.cov(x))
    torch.testing.assert_close(one.log_evidence, other.log_evidence)


def test_chains_that_mix_well_are_marked_converged():
    belief = gibbs(yes_no(6), aw.kernel("se", 0.2), chains=64, max_sweeps=300)
    assert belief.converged
    assert 0 < belief.change < 1e-2
    assert belief.sweeps == 300


def test_change_is_the_excess_potential_scale_reduction():
    """sqrt(1 + 1/k) for chains of k independent draws; with one answer draws are independent."""
    belief = gibbs(yes_no(1), aw.kernel("se", 0.2), chains=2000, max_sweeps=50)
    assert belief.change.item() == pytest.approx(math.sqrt(1 + 1 / 40) - 1, rel=0.15)


def test_more_sweeps_bring_the_chains_closer_to_each_other():
    short, long = (
        gibbs(duels(6), aw.kernel("se", 0.4, 20.0), chains=64, max_sweeps=sweeps).change
        for sweeps in (20, 320)
    )
    assert long < short / 4


def test_chains_that_mix_badly_are_not_marked_converged():
    """One duel repeated under a large variance: each response is constrained by the others."""
    data = aw.Data.duels([[[0.1], [0.8]]] * 10, [1] * 10)
    belief = gibbs(data, aw.kernel("se", 0.3, 1e6), chains=32, max_sweeps=50)
    assert not belief.converged
    assert belief.change > 1


def test_the_tolerance_decides_what_is_converged():
    data, kernel, few = yes_no(4), aw.kernel("se", 0.2), {"chains": 32, "max_sweeps": 50}
    change = gibbs(data, kernel, **few).change.item()
    assert not gibbs(data, kernel, tolerance=0.99 * change, **few).converged
    assert gibbs(data, kernel, tolerance=1.01 * change, **few).converged


def test_the_first_fifth_of_the_sweeps_is_discarded(monkeypatch):
    def start(latent, chains, source):
        return torch.zeros(1, chains, 1, dtype=torch.float64), torch.zeros(1, chains, dtype=torch.float64)

    monkeypatch.setattr(module, "_sequential_draws", start)
    monkeypatch.setattr(module, "_gibbs_sweeps", lambda latent, w, sweeps, source: w + 1)
    belief = gibbs(aw.Data.binary([[0.5]], [1]), aw.kernel("se", 0.3), chains=2, max_sweeps=10)
    assert belief.mean(f64([0.5])).item() == pytest.approx(6.5 / 2)  # half the mean of 3, 4, .., 10


def test_a_single_sweep_cannot_tell_whether_it_converged():
    belief = gibbs(yes_no(4), aw.kernel("se", 0.2), chains=32, max_sweeps=1)
    assert not belief.converged
    assert belief.alpha.isfinite().all()
    assert belief.factor.isfinite().all()
    assert belief.log_evidence.isfinite()


@pytest.mark.parametrize("variance", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("data", [yes_no(12), duels(12, 1), aw.Data.duels([[[0.1], [0.8]]] * 12, [1, 0] * 6)])
def test_the_covariance_is_positive_and_below_the_prior_however_short_the_chains(data, variance):
    kernel, x = aw.kernel("se", 0.2, variance), uniform(15, 1, seed=5)
    belief = repeats(data, kernel, 8, chains=2, max_sweeps=3)
    prior = kernel(x).to_dense().detach()
    assert torch.linalg.eigvalsh(belief.cov(x) / variance).min() > -1e-9
    assert torch.linalg.eigvalsh((prior - belief.cov(x)) / variance).min() > -1e-9
    assert belief.mean(x).isfinite().all()
    assert belief.log_evidence.isfinite().all()


def test_the_exact_posterior_has_no_sites():
    belief = gibbs(yes_no(4), aw.kernel("se", 0.2), chains=8, max_sweeps=3)
    assert torch.equal(belief.tau, torch.zeros(4).double())
    assert torch.equal(belief.nu, torch.zeros(4).double())


def test_a_point_against_itself_leaves_the_prior():
    data, kernel, x = aw.Data.duels([[[0.3], [0.3]]] * 2, [1, 0]), aw.kernel("se", 0.2, 3.0), uniform(4, 1)
    belief = gibbs(data, kernel, chains=64, max_sweeps=100)
    torch.testing.assert_close(belief.mean(x), torch.zeros(4).double())
    torch.testing.assert_close(belief.variance(x), torch.full((4,), 3.0).double())
    torch.testing.assert_close(belief.log_evidence, torch.tensor(math.log(0.25)).double())


def test_without_answers_the_posterior_is_the_prior():
    data = aw.Data.binary(torch.zeros(0, 1, dtype=torch.float64), torch.zeros(0))
    kernel, x = aw.kernel("se", 0.2, 3.0), uniform(4, 1)
    belief = gibbs(data, kernel, chains=4, max_sweeps=2)
    torch.testing.assert_close(belief.cov(x), kernel(x).to_dense())
    assert belief.mean(x).abs().max() == 0
    assert belief.log_evidence == 0
    assert belief.converged


# answers, kernel, and the error bounds that docs/accuracy.md states for EP: mean in posterior standard
# deviations, standard deviation (relative), probability of the next answer, log evidence
AGAINST_EP = {
    "yes/no in 1-D": (yes_no(10, seed=3), aw.kernel("se", 0.2, 4.0), (0.01, 0.08, 0.01, 0.08)),
    "duels in 2-D": (duels(12, seed=3), aw.kernel("matern52", [0.4, 0.4], 4.0), (0.01, 0.08, 0.01, 0.08)),
    "a mix under a large variance": (
        yes_no(5, d=2, seed=3) + duels(6, seed=5),
        aw.kernel("se", [0.4, 0.4], 100.0),
        (0.05, 0.1, 0.02, 0.15),
    ),
}


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=pytest.mark.slow if number else ()) for number, case in enumerate(AGAINST_EP)],
)
def test_ep_is_as_close_to_the_exact_posterior_as_stated(case):
    """The bounds are those of docs/accuracy.md; the problems are different ones of the same kind."""
    data, kernel, stated = AGAINST_EP[case]
    x = torch.cat([data.points, uniform(10, data.points.shape[-1], seed=7)])
    exact = repeats(data, kernel, 16, chains=32, max_sweeps=250)
    mean, var = exact.moments(x)
    sd = var.mean(0).sqrt()
    ep = aw.infer(data, kernel)
    assert_agrees((mean - ep.mean(x)) / sd, 0.0, tolerance=stated[0])
    assert_agrees((var.sqrt() - ep.variance(x).sqrt()) / sd, 0.0, tolerance=stated[1])
    probability, evidence = probability_and_evidence(data, kernel, x[-3:])
    assert_agrees(probability - ep.success_probability(x[-3:]), 0.0, tolerance=stated[2])
    assert_agrees(evidence - ep.log_evidence, 0.0, tolerance=stated[3])


def probability_and_evidence(data: aw.Data, kernel: Kernel, x: Tensor) -> tuple[Tensor, Tensor]:
    """Probability of a yes at each point [repeat, q] and log evidence [repeat], by sequential draws.

    The probability is the ratio of the evidence with and without the yes, from the same draws.
    """
    few = {"chains": 1024, "max_sweeps": 1}
    evidence = repeats(data, kernel, **few).log_evidence
    more = [repeats(data + aw.Data.binary(point[None], [1]), kernel, **few).log_evidence for point in x]
    return torch.stack([(each - evidence).exp() for each in more], -1), evidence


def test_laplace_is_not_as_close_as_ep():
    """So the bounds above distinguish the two."""
    data, kernel, stated = AGAINST_EP["duels in 2-D"]
    x = data.points
    mean, var = repeats(data, kernel, 16, chains=32, max_sweeps=80).moments(x)
    off = ((mean.mean(0) - aw.infer(data, kernel, "laplace").mean(x)) / var.mean(0).sqrt()).abs().max()
    assert off > 10 * stated[0]


@pytest.mark.parametrize("options", [{"chains": 1}, {"max_sweeps": 0}])
def test_too_few_chains_or_sweeps_are_refused(options):
    with pytest.raises(ValueError, match="chains must be 2 or more and max_sweeps at least 1; got"):
        gibbs(aw.Data.binary([[0.5]], [1]), aw.kernel("se"), **options)
