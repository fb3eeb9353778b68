"""Kernels drawn from the posterior of their parameters, against long Markov chains and quadrature."""

import math

import pytest
import torch
from tests.tensors import uniform

import askwise as aw
from askwise.model import averaged, expected_kernel, fit, infer, particles
from askwise.model.particles import COUNT
from askwise.numerics import generator

LENGTH, SPREAD, VARIANCE, VARIANCE_SPREAD = 0.2, 0.5, 4.0, 0.7  # of expected_kernel


def answers(n, d, lanes=(), seed=0):
    x = uniform(*lanes, n, 2, d, seed=seed)
    f = 3 * torch.sin(5 * x).sum(-1)
    noise = torch.randn(*lanes, n, generator=generator("noise", seed), dtype=torch.float64)
    return aw.Data.duels(x, (f[..., 0] - f[..., 1] + noise > 0).long())


def drawn(data, count=COUNT, seed=0, **options):
    d = data.points.shape[-1]
    fitted = fit(data, expected_kernel("matern52", [LENGTH] * d), roughly=True)
    lanes = data.lanes.numel()
    source = (
        [generator("kernels", seed, lane) for lane in range(lanes)]
        if data.lanes
        else generator("kernels", seed, 0)
    )
    return averaged(data, fitted.kernel, source, count, **options)


def logs(kernels):
    return torch.cat([kernels.prior.lengthscale, kernels.prior.outputscale[..., None]], -1).log()


def quadrature(data):
    """Posterior mean and deviation of the two log parameters in one dimension, on a grid."""
    steps = torch.linspace(-4, 4, 41, dtype=torch.float64)
    length = math.log(LENGTH) + SPREAD * steps
    variance = math.log(VARIANCE) + VARIANCE_SPREAD * steps
    grid = torch.cartesian_prod(length, variance)
    many = data.in_lanes(torch.Size([len(grid)]))
    evidence = infer(many, aw.kernel("matern52", grid[:, :1].exp(), grid[:, 1].exp())).log_evidence
    prior = -torch.cartesian_prod(steps, steps).square().sum(-1) / 2
    weight = (evidence + prior).softmax(0)[:, None]
    mean = (weight * grid).sum(0)
    return mean, (weight * (grid - mean).square()).sum(0).sqrt()


@pytest.mark.parametrize("n", [0, 3, pytest.param(25, marks=pytest.mark.slow)])
def test_in_one_dimension_they_have_the_moments_of_the_posterior(n):
    data = answers(n, 1)
    mean, deviation = quadrature(data)
    found = logs(drawn(data, 256))
    assert ((found.mean(0) - mean).abs() < 0.15 * deviation).all()
    assert ((found.std(0) / deviation - 1).abs() < 0.15).all()


def chain(data, steps, seed=0):
    """A long chain of random-walk Metropolis, in 16 lanes."""
    d = data.points.shape[-1]
    middle = torch.tensor([math.log(LENGTH)] * d + [math.log(VARIANCE)], dtype=torch.float64)
    spread = torch.tensor([SPREAD] * d + [VARIANCE_SPREAD], dtype=torch.float64)
    many, source = data.in_lanes(torch.Size([16])), generator("chain", seed)

    def density(u):
        both = (middle + spread * u).exp()
        found = infer(many, aw.kernel("matern52", both[:, :d], both[:, d]), tolerance=1e-6)
        return found.log_evidence - u.square().sum(-1) / 2

    u = torch.randn(16, d + 1, generator=source, dtype=torch.float64)
    value, visited = density(u), []
    for step in range(steps):
        move = u + 0.8 * torch.randn(u.shape, generator=source, dtype=torch.float64)
        there = density(move)
        taken = torch.rand(16, generator=source, dtype=torch.float64).log() < there - value
        u, value = torch.where(taken[:, None], move, u), torch.where(taken, there, value)
        if step >= steps // 5:
            visited.append(middle + spread * u)
    return torch.cat(visited)


@pytest.mark.slow
def test_in_two_dimensions_they_agree_with_a_long_chain():
    data = answers(25, 2)
    long = chain(data, 3000)
    found = logs(drawn(data, 1024))
    assert ((found.mean(0) - long.mean(0)).abs() < 0.12 * long.std(0)).all()
    assert ((found.std(0) / long.std(0) - 1).abs() < 0.12).all()
    x, y = uniform(6, 2, seed=5), uniform(6, 2, seed=6)
    lanes = data.in_lanes(torch.Size([len(long[::24])]))
    each = infer(lanes, aw.kernel("matern52", long[::24, :2].exp(), long[::24, 2].exp()))
    rate = each.success_probability(x, y).mean(0)
    belief = infer(data, drawn(data, 1024))
    torch.testing.assert_close(belief.success_probability(x, y), rate, rtol=0, atol=0.01)
    few = torch.stack([infer(data, drawn(data, seed=k)).success_probability(x, y) for k in range(20)])
    assert ((few.mean(0) - rate).abs() < 0.02).all()  # eight are few, but on average they are right


def test_moves_leave_the_posterior_as_it_is():
    """After many of them only the moves matter, not the candidates that they began with."""
    data = answers(8, 1)
    mean, deviation = quadrature(data)
    found = logs(drawn(data, 2048, moves=15))
    assert ((found.mean(0) - mean).abs() < 0.08 * deviation).all()
    assert ((found.std(0) / deviation - 1).abs() < 0.06).all()


@pytest.mark.parametrize(("enough", "moved"), [(0.0, 0), (4.0, 1)])
def test_kernels_move_where_few_candidates_have_weight(enough, moved, monkeypatch):
    seen, move = [], particles._moved
    monkeypatch.setattr(particles, "_ENOUGH", enough)
    monkeypatch.setattr(particles, "_moved", lambda *given: seen.append(given) or move(*given))
    drawn(answers(10, 2))
    assert len(seen) == moved
    if moved:
        drawn(answers(10, 8))
        assert len(seen) == moved + 3  # in more dimensions more often


def test_lanes_that_move_do_not_move_others(monkeypatch):
    data = answers(10, 2, lanes=(3,))
    stay = logs(drawn(data, moves=0))
    resampled = particles._resampled
    effective = torch.tensor([100.0, 0.0, 100.0], dtype=torch.float64)
    monkeypatch.setattr(particles, "_resampled", lambda *given: (resampled(*given)[0], effective))
    found = logs(drawn(data))
    assert torch.equal(found[:, [0, 2]], stay[:, [0, 2]])
    assert (found[:, 1] != stay[:, 1]).any(-1).sum() >= 4


def test_the_evidence_of_candidates_is_as_exact_as_their_weights_need():
    data = answers(60, 2)
    posterior = particles._Posterior.of(
        data.with_lapses(0.02), fit(data, expected_kernel("matern52", [LENGTH] * 2)).kernel
    )
    u = torch.randn(32, 1, 3, generator=generator(0), dtype=torch.float64)
    start = posterior.at(posterior.fitted[None], None, particles._TOLERANCE)
    rough, exact = (
        posterior.at(u, start, tolerance, gradient=False).log_evidence
        for tolerance in (particles._ROUGH_TOLERANCE, 1e-9)
    )
    error = (rough - exact).abs()
    assert error.max() < 0.02
    assert error.median() < 1e-3


def test_they_are_a_function_of_answers_and_seed():
    data = answers(10, 2)
    found = drawn(data)
    parts = (found.prior.lengthscale, found.prior.outputscale, found.log_evidence, found.tau, found.nu)
    assert all(part.is_contiguous() for part in parts)  # as they are read from a record
    assert torch.equal(logs(drawn(data)), logs(drawn(data)))
    assert not torch.equal(logs(drawn(data)), logs(drawn(data, seed=1)))


def test_lanes_together_get_the_kernels_they_get_alone():
    data = answers(10, 2, lanes=(3,))
    together = logs(drawn(data))
    for lane in range(3):
        fitted = fit(data.select(lane), expected_kernel("matern52", [LENGTH] * 2), roughly=True)
        alone = averaged(data.select(lane), fitted.kernel, generator("kernels", 0, lane))
        torch.testing.assert_close(together[:, lane], logs(alone), rtol=0, atol=1e-4)


def test_twenty_dimensions_are_not_too_many():
    data = answers(15, 20)
    found = logs(drawn(data))
    assert found.isfinite().all()
    assert (
        found.std(0)[:20].mean() / SPREAD - 1
    ).abs() < 0.3  # few answers say little of twenty lengthscales


def test_weights_follow_the_answers_since():
    data = answers(30, 2)
    first = aw.Data.duels(uniform(30, 2, 2)[:20], (data.signs[:20] > 0).long())
    kernels = drawn(first)
    torch.testing.assert_close(
        infer(first, kernels).weights, torch.full((COUNT,), 1 / COUNT, dtype=torch.float64)
    )
    later = infer(data, kernels)
    gained = [
        infer(data, one).log_evidence - infer(first, one).log_evidence
        for one in (
            aw.kernel("matern52", kernels.prior.lengthscale[k], kernels.prior.outputscale[k])
            for k in range(COUNT)
        )
    ]
    torch.testing.assert_close(later.weights, torch.stack(gained).softmax(0), rtol=1e-4, atol=1e-6)


def test_kernels_without_the_priors_are_refused():
    with pytest.raises(
        aw.Refused, match=r"kernel to average over must have the priors of expected_kernel; got none\."
    ):
        averaged(answers(3, 1), aw.kernel("se", [0.3]), generator(0))
