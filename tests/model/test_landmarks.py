"""Inference through landmarks, against exact inference and against its own dense definition."""

import math
import sys
from dataclasses import replace

import pytest
import torch

import askwise as aw
import reference
from askwise.model import Kernels, Stationary
from askwise.model.ep import ep
from askwise.model.kernels import covariance
from askwise.model.landmarks import LandmarkProblem, inference_problem
from askwise.model.paths import draw
from askwise.model.pending import given_pending
from askwise.model.sites import InferenceProblem
from tensors import assert_slopes_are_differences, f64, uniform

KERNEL = ("matern52", [0.6, 0.6], 4.0)


def answers(n, kind="duels", lanes=(), d=2, seed=0):
    """Answers about a sum of waves, noisy enough that both outcomes occur everywhere."""
    points = uniform(*lanes, n, 2, d, seed=seed)
    height = 2 * (4 * points + torch.arange(d)).sin().sum(-1)
    score = height[..., 0] - height[..., 1] if kind == "duels" else height[..., 0]
    c = (uniform(*lanes, n, seed=seed + 1) < torch.special.ndtr(score)).long()
    return aw.Data.duels(points, c) if kind == "duels" else aw.Data.binary(points[..., 0, :], c)


@pytest.fixture
def few(monkeypatch):
    """Landmarks from 40 answers on."""
    for module in ("landmarks", "inference"):
        monkeypatch.setattr(sys.modules[f"askwise.model.{module}"], "EXACT_TO", 40)
    monkeypatch.setattr(sys.modules["askwise.model.landmarks"], "_EXACT_IF_HARD_TO", 0)


def exact(data, kernel):
    return ep(InferenceProblem.of(data, kernel))


@pytest.mark.parametrize("kind", ["duels", "yes/no"])
@pytest.mark.parametrize(
    ("name", "variance"), [("matern52", 4.0), ("matern52", 0.01), ("se", 4.0), ("se", 1e4)]
)
def test_a_thousand_rows_have_the_exact_means_within_two_percent_of_a_deviation(
    kind, name, variance, few, monkeypatch
):
    monkeypatch.setattr(sys.modules["askwise.model.landmarks"], "_EXACT_IF_HARD_TO", 2000)
    data, kernel = answers(1000, kind), aw.kernel(name, [0.4, 0.4], variance)
    belief, whole = aw.infer(data, kernel), exact(data, kernel)
    assert belief.is_thin
    assert belief.predictive.points.shape[-2] <= 500
    problems = inference_problem(data, kernel), InferenceProblem.of(data, kernel)
    (mean, var, _), (true, true_var, _) = (
        problem.posterior.marginals(found.tau[None], found.nu[None])
        for problem, found in zip(problems, (belief, whole), strict=True)
    )
    assert ((mean - true) / true_var.sqrt()).abs().max() < 0.02
    assert ((var / true_var).sqrt() - 1).abs().max() < 0.01
    x = uniform(200, 2, seed=7)
    (mean, var), (true, true_var) = belief.moments(x), whole.moments(x)
    assert ((mean - true) / true_var.sqrt()).abs().max() < 0.02
    assert ((var / true_var).sqrt() - 1).abs().max() < 0.01
    assert belief.log_evidence.item() == pytest.approx(whole.log_evidence.item(), abs=0.05)


@pytest.mark.parametrize("kind", ["duels", "yes/no"])
def test_the_belief_is_that_of_the_prior_with_landmarks(kind, few, monkeypatch):
    """By the textbook, with so few landmarks that much is left over."""
    monkeypatch.setattr(sys.modules["askwise.model.landmarks"], "_LANDMARKS", 7)
    data, kernel = answers(60, kind), aw.kernel(*KERNEL)
    belief, problem = aw.infer(data, kernel), inference_problem(data, kernel)
    assert isinstance(problem, LandmarkProblem)
    prior, Z = covariance(kernel), data.points[problem.index]
    assert len(Z) == 7

    def features(x):
        return torch.linalg.solve_triangular(
            torch.linalg.cholesky(prior.cross(Z, Z)), prior.cross(Z, x), upper=False
        ).mT

    Q = data.matvec(features(data.points))
    G = data.row_covariance(prior.cross(data.points, data.points))
    left = (G - Q @ Q.mT).diagonal()
    assert left.max() > 0.1
    G = Q @ Q.mT + left.diag()
    sites = reference.ep(G.numpy(), data.signs.numpy(), reference.FLOAT64)
    x = uniform(5, 2, seed=3)
    cross = features(x) @ Q.mT
    v = torch.linalg.solve_triangular(f64(sites.lower), f64(sites.S)[:, None] * cross.mT, upper=False)
    torch.testing.assert_close(belief.mean(x), cross @ f64(sites.pull), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(belief.cov(x), prior.cross(x, x) - v.mT @ v, rtol=1e-6, atol=1e-6)
    assert belief.log_evidence.item() == pytest.approx(float(sites.log_evidence), abs=1e-7)
    mean, var, solved = problem.posterior.marginals(belief.tau[None], belief.nu[None])
    cov = torch.linalg.inv(torch.linalg.inv(G) + belief.tau.diag())
    torch.testing.assert_close(var[0], cov.diagonal(), rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(mean[0], cov @ belief.nu, rtol=1e-7, atol=1e-7)
    vector = uniform(1, 60, seed=9)
    torch.testing.assert_close(problem.posterior.times(vector, solved)[0], cov @ vector[0])


def test_the_gradient_of_the_evidence_agrees_with_differences(few):
    data, kernel = answers(80), aw.kernel(*KERNEL).requires_grad_(True)
    assert aw.infer(data, kernel).is_thin
    assert_slopes_are_differences(
        lambda: aw.infer(data, kernel, tolerance=1e-11).log_evidence,
        list(kernel.parameters()),
        rel=1e-5,
        abs=1e-6,
    )


def test_up_to_a_thousand_answers_rankings_and_rough_priors_are_exact(monkeypatch):
    kernel = aw.kernel("matern52", [0.6, 0.6], 4.0)
    assert isinstance(inference_problem(answers(1000), kernel), InferenceProblem)
    assert isinstance(inference_problem(answers(1001), kernel), LandmarkProblem)
    points = uniform(600, 3, 2)
    rankings = aw.Data.rankings(points, torch.zeros(600, 1, dtype=torch.long))
    assert isinstance(inference_problem(rankings, kernel), InferenceProblem)
    rough = aw.kernel("matern52", [0.05, 0.05], 4.0)
    assert isinstance(inference_problem(answers(1001), rough), InferenceProblem)
    monkeypatch.setattr(sys.modules["askwise.model.landmarks"], "_EXACT_IF_HARD_TO", 1000)
    hard = inference_problem(answers(1001), rough)
    assert isinstance(hard, LandmarkProblem)
    assert len(hard.index) == 500


def test_lanes_and_several_kernels_have_landmarks_of_their_own(few):
    data = answers(100, lanes=(2,))
    lengths, variances = f64([[0.5, 0.7], [2.0, 2.0]]), f64([4.0, 9.0])
    together = aw.infer(data, aw.kernel("matern52", lengths, variances))
    x = uniform(4, 2, seed=3)
    for lane in range(2):
        kernel = aw.kernel("matern52", lengths[lane], float(variances[lane]))
        alone = aw.infer(data.select(lane), kernel)
        for got, want in zip(together.moments(x), alone.moments(x), strict=True):
            torch.testing.assert_close(got[lane], want, rtol=1e-9, atol=1e-9)
    kernels = Kernels.equally_likely(Stationary("matern52", lengths, variances))
    mixed = aw.infer(data.select(0), kernels)
    assert mixed.parts.is_thin
    each = [aw.infer(data.select(0), aw.kernel("matern52", lengths[k], float(variances[k]))) for k in (0, 1)]
    means = torch.stack([belief.mean(x) for belief in each])
    torch.testing.assert_close(mixed.mean(x), (mixed.weights[:, None] * means).sum(0), rtol=1e-8, atol=1e-8)
    waiting = given_pending(mixed, aw.Data.duels(x[None, :2], [1]))
    assert (waiting.parts.variance(x) < mixed.parts.variance(x) + 1e-3).all()
    assert waiting.parts.is_thin


def test_pending_queries_shrink_the_variance_as_they_do_exactly(few):
    data, kernel = answers(200), aw.kernel(*KERNEL)
    belief, whole = aw.infer(data, kernel), exact(data, kernel)
    pending = aw.Data.duels(f64([[[0.1, 0.9], [0.95, 0.05]]]), [1])
    x = uniform(20, 2, seed=3)
    got, want = given_pending(belief, pending), given_pending(whole, pending)
    torch.testing.assert_close(got.variance(x), want.variance(x), rtol=0.01, atol=1e-3)
    torch.testing.assert_close(got.mean(x), belief.mean(x), rtol=0, atol=5e-3)


def test_people_who_differ_have_their_own_utilities(few):
    data = answers(200)
    data = replace(data, rater=(torch.arange(data.points.shape[-2]) // 2) % 3).with_share(0.4)
    belief, whole = aw.infer(data, aw.kernel(*KERNEL)), exact(data, aw.kernel(*KERNEL))
    assert belief.is_thin
    x = uniform(20, 2, seed=3)
    for rater in (None, 1):
        for got, want in zip(
            belief.of_rater(rater).moments(x), whole.of_rater(rater).moments(x), strict=True
        ):
            torch.testing.assert_close(got, want, rtol=0.02, atol=0.02)


def test_draws_have_the_moments_of_the_belief(few):
    belief, x = aw.infer(answers(200), aw.kernel(*KERNEL)), uniform(5, 2, seed=3)
    path = draw(belief, 20_000, aw.seeds.generator(0))
    assert path.points.shape[-2] == len(belief.support) <= 100
    values = path(x)
    mean, cov = belief.joint(x)
    error = 6 / math.sqrt(20_000)
    assert ((values.mean(0) - mean) / cov.diagonal().sqrt()).abs().max() < error
    assert (torch.cov(values.mT) - cov).abs().max() < 0.02 * cov.diagonal().max()


def test_a_warm_start_saves_sweeps(few):
    data, kernel = answers(300), aw.kernel(*KERNEL)
    known = aw.infer(data, kernel)
    more = data + aw.Data.duels(uniform(1, 2, 2, seed=8), [1])
    warm, cold = aw.infer(more, kernel, warm=known, tolerance=1e-8), aw.infer(more, kernel)
    assert warm.converged
    assert cold.converged
    x = uniform(5, 2, seed=3)
    torch.testing.assert_close(warm.mean(x), cold.mean(x), rtol=0, atol=1e-6)


def test_kernels_that_do_not_fit_are_refused(few):
    data = answers(100)
    with pytest.raises(ValueError, match="kernel must have one lengthscale"):
        aw.infer(data, aw.kernel("se", [0.3, 0.3, 0.3]))
    kernel = aw.kernel("se", [0.3, 0.3])
    with torch.no_grad():
        kernel.raw_outputscale.fill_(math.nan)
    with pytest.raises(ValueError, match="kernel must give finite covariances"):
        aw.infer(data, kernel)


@pytest.mark.parametrize("variance", [1e-6, 1e6, 1e15])
def test_points_that_repeat_and_any_variance_have_landmarks(variance, few):
    points = uniform(50, 2, 1).repeat(3, 1, 1) + 1e-9 * uniform(150, 2, 1, seed=4)
    data = aw.Data.duels(points.clamp(0, 1), torch.ones(150, dtype=torch.long))
    belief = aw.infer(data, aw.kernel("matern52", 0.5, variance))
    assert belief.is_thin
    assert belief.mean(points[:, 0]).isfinite().all()
    assert (belief.variance(points[:, 0]) >= 0).all()
