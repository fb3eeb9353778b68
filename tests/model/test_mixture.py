"""A belief that is a mixture over kernels, against sampling kernels and functions, and against one kernel."""

import inspect
import math

import pytest
import torch
from tests.tensors import f64, uniform

import askwise as aw
from askwise.loop import next_query
from askwise.model import (
    Kernels,
    Mixture,
    Stationary,
    away_from_pending,
    decompose,
    given_answers,
    hallucinated,
)
from askwise.model.pending import given_pending
from askwise.numerics import generator, ndtr

LENGTHS, SCALES = f64([[0.2, 0.5], [0.6, 0.3], [0.25, 0.25]]), f64([1.0, 6.0, 3.0])


def duels(n=12, lanes=(), seed=0):
    pairs = uniform(*lanes, n, 2, 2, seed=seed)
    return aw.Data.duels(pairs, (uniform(*lanes, n, seed=seed + 1) < 0.7).long())


def kernels(lanes=(), lengths=LENGTHS, scales=SCALES, name="matern52"):
    k, d = lengths.shape
    each = lengths.view(k, *[1] * len(lanes), d).expand(k, *lanes, d)
    return Kernels.equally_likely(Stationary(name, each, scales.view(k, *[1] * len(lanes)).expand(k, *lanes)))


def one(index):
    return aw.kernel("matern52", LENGTHS[index], SCALES[index])


def mixture(data=None):
    data = duels() if data is None else data
    return aw.infer(data, kernels(tuple(data.lanes)))


def test_weights_are_the_posterior_of_the_kernels():
    data, belief = duels(), mixture()
    evidence = torch.stack([aw.infer(data, one(k)).log_evidence for k in range(3)])
    torch.testing.assert_close(belief.weights, evidence.softmax(0), rtol=1e-8, atol=0)


def test_it_averages_the_beliefs_given_each_kernel():
    data, belief = duels(), mixture()
    beliefs = [aw.infer(data, one(k)) for k in range(3)]
    x, y = uniform(5, 2, seed=7), uniform(5, 2, seed=8)
    w = belief.weights
    mean = sum(w[k] * beliefs[k].mean(x) for k in range(3))
    second = sum(
        w[k] * (beliefs[k].cov(x) + torch.outer(beliefs[k].mean(x), beliefs[k].mean(x))) for k in range(3)
    )
    close = {"rtol": 1e-7, "atol": 1e-9}
    torch.testing.assert_close(belief.mean(x), mean, **close)
    torch.testing.assert_close(belief.joint(x)[1], second - torch.outer(mean, mean), **close)
    torch.testing.assert_close(belief.variance(x), belief.cov(x).diagonal(), **close)
    apart, spread = belief.difference(x, y)
    both = belief.cov(torch.cat([x, y]))
    torch.testing.assert_close(apart, belief.mean(x) - belief.mean(y), **close)
    torch.testing.assert_close(
        spread, both.diagonal()[:5] + both.diagonal()[5:] - 2 * both[:5, 5:].diagonal(), **close
    )
    chance = sum(w[k] * beliefs[k].success_probability(x, y) for k in range(3))
    torch.testing.assert_close(belief.success_probability(x, y), chance, **close)
    torch.testing.assert_close(ndtr(belief.quantile(x, y)), chance, **close)
    above = sum(w[k] * beliefs[k].probability_above(x, 0.4) for k in range(3))
    torch.testing.assert_close(belief.probability_above(x, 0.4), above, **close)
    better = sum(w[k] * beliefs[k].probability_of_better(x, y) for k in range(3))
    torch.testing.assert_close(belief.probability_of_better(x, y), better, **close)


@pytest.mark.parametrize("measure", ["variance", "entropy"])
def test_its_decomposition_is_that_of_kernels_and_functions_drawn_together(measure):
    belief, count = mixture(), 8_000
    x, other = f64([[0.1, 0.9], [0.5, 0.5]]), f64([[0.8, 0.3], [0.45, 0.6]])
    drawn = aw.paths.draw_at(torch.cat([x, other]), belief, count, generator(3))
    rate = ndtr(drawn[:, :2] - drawn[:, 2:])
    found = decompose(belief, x, other, measure)

    def uncertainty(p):
        return p * (1 - p) if measure == "variance" else -(torch.xlogy(p, p) + torch.xlogy(1 - p, 1 - p))

    # draws have features, whose error is 1e-3 of the variance
    torch.testing.assert_close(found.total, uncertainty(rate.mean(0)), rtol=0.04, atol=0)
    torch.testing.assert_close(found.aleatoric, uncertainty(rate).mean(0), rtol=0.04, atol=0)
    torch.testing.assert_close(found.total, found.epistemic + found.aleatoric, rtol=1e-7, atol=0)


def test_draws_take_a_kernel_by_its_weight_and_then_a_function():
    belief, x, count = mixture(), uniform(3, 2, seed=9), 4_000
    mean, cov = belief.joint(x)
    for drawn in (
        aw.paths.draw(belief, count, generator(1))(x),
        aw.paths.draw_at(x, belief, count, generator(2)),
    ):
        assert drawn.shape == (count, 3)
        error = (cov.diagonal() / count).sqrt()
        assert ((drawn.mean(0) - mean).abs() < 5 * error).all()
        torch.testing.assert_close(drawn.mT.cov(), cov, rtol=0.1, atol=0.1)


def test_draws_have_the_gradients_that_autograd_finds():
    belief = mixture(duels(lanes=(2,)))
    path = aw.paths.draw(belief, 3, [generator(k) for k in range(2)])
    x = uniform(3, 2, 4, 2, seed=5)
    value, grad = path.with_gradient(x)
    moving = x.clone().requires_grad_()
    again = path(moving)
    torch.testing.assert_close(value, again)
    torch.testing.assert_close(grad, torch.autograd.grad(again.sum(), moving)[0])


def test_scores_have_the_gradients_that_autograd_finds():
    belief = mixture(duels(lanes=(2,)))
    predictive = belief.predictive.against(f64([[[0.5, 0.5]], [[0.2, 0.7]]]))
    x = uniform(2, 4, 2, seed=5)
    for score in (
        predictive.mean_only().score(),
        predictive.score(aw.numerics.log_epistemic_variance, mixed=aw.numerics.mixed_log_variance),
        predictive.score(lambda mean, var: mean + var.sqrt()),
    ):
        value, grad = score.with_gradient(x)
        moving = x.clone().requires_grad_()
        again = score(moving)
        assert value.shape == (2, 4)
        torch.testing.assert_close(value, again)
        torch.testing.assert_close(grad, torch.autograd.grad(again.sum(), moving)[0])


@pytest.mark.parametrize("rule", ["muc", "dueling_ucb", "eubo", "ei", "max_entropy_challenge", "eiig"])
def test_a_mixture_of_one_kernel_asks_what_that_kernel_asks(rule):
    data, alone = duels(), kernels(lengths=LENGTHS[:1], scales=SCALES[:1])
    averaged = next_query(data, aw.rules.parse(rule), alone, 2, generator(0), identify=True)
    plain = next_query(data, aw.rules.parse(rule), one(0), 2, generator(0), identify=True)
    assert isinstance(averaged.belief, Mixture)
    x = uniform(6, 2, seed=3)
    close = {"rtol": 1e-12, "atol": 1e-12}
    torch.testing.assert_close(averaged.belief.moments(x), plain.belief.moments(x), **close)
    torch.testing.assert_close(averaged.points, plain.points, rtol=0, atol=1e-6)
    torch.testing.assert_close(averaged.optimum, plain.optimum, rtol=0, atol=1e-6)


def test_lanes_together_are_lanes_alone():
    data = duels(lanes=(3,))
    together, x = mixture(data), uniform(4, 2, seed=3)
    for lane in range(3):
        alone = mixture(data.select(lane))
        close = {"rtol": 1e-7, "atol": 1e-9}
        torch.testing.assert_close(together.weights[:, lane], alone.weights, **close)
        torch.testing.assert_close(together.moments(x)[1][lane], alone.moments(x)[1], **close)
        torch.testing.assert_close(together.select(lane).mean(x), alone.mean(x), **close)
    some = together.select(torch.tensor([2, 0]))
    torch.testing.assert_close(some.joint(x)[1], together.joint(x)[1][[2, 0]])
    groups = uniform(5, 3, 4, 2, seed=4)
    torch.testing.assert_close(together.joint(groups)[1][2], together.joint(groups[2])[1])
    torch.testing.assert_close(together.duels(groups)[1][2], together.duels(groups[2])[1])
    torch.testing.assert_close(together.mean(groups)[3], together.mean(groups[3]))


def test_duels_of_a_group_have_the_epistemic_variance_of_each():
    belief, x = mixture(), uniform(3, 2, seed=6)
    var, epistemic = belief.duels(x)
    for i in range(3):
        for j in range(3):
            mean_and_var = belief.difference(x[i, None], x[j, None])
            torch.testing.assert_close(var[i, j], mean_and_var[1][0], rtol=1e-6, atol=1e-9)
            known = decompose(belief, x[i, None], x[j, None]).epistemic[0] if i != j else f64(0.0)
            torch.testing.assert_close(epistemic[i, j], known, rtol=1e-6, atol=1e-12)


def test_pending_questions_change_the_belief_of_each_kernel():
    belief, pending = mixture(), duels(2, seed=11)
    later, x = given_pending(belief, pending), uniform(4, 2, seed=3)
    assert torch.equal(later.weights, belief.weights)
    for k in range(3):
        alone = given_pending(belief.parts.select(k), pending)
        torch.testing.assert_close(later.parts.select(k).variance(x), alone.variance(x))
    chosen, new = away_from_pending(belief, pending, lambda found: found.mean(x), lambda _: True, [1.0])
    assert new
    torch.testing.assert_close(chosen, belief.mean(x), rtol=1e-6, atol=1e-8)


def test_a_hallucination_is_that_of_one_kernel():
    assert type(hallucinated(mixture(), generator(0))) is aw.Belief
    assert hallucinated(mixture(duels(lanes=(2,))), [generator(0), generator(1)]).data.lanes == (2,)


def test_what_only_one_kernel_can_have_is_of_the_likeliest():
    belief = mixture()
    top = belief.parts.select(int(belief.weights.argmax()))
    assert torch.equal(belief.alpha, top.alpha)
    assert torch.equal(belief.prior.lengthscale, top.prior.lengthscale)


def test_nothing_of_a_belief_is_left_to_one_kernel():
    """What a mixture inherits goes through its predictive distribution, or through what it overrides."""
    inherited = {
        "mean",
        "variance",
        "moments",
        "cov",
        "in_noise",
        "success_probability",
        "probability_above",
        "probability_of_better",
    }
    single = {"joined", "in_lanes", "unflattened", "shared_prior", "data_covariance"}  # parts of inference
    single |= {"is_thin", "support", "covariance_among"}
    public = {name for name, _ in inspect.getmembers(aw.Belief) if not name.startswith("_")}
    fields = {*aw.Belief.__dataclass_fields__}
    assert public - fields - inherited - single <= {*vars(Mixture)}


def test_what_it_cannot_do_is_refused():
    with pytest.raises(aw.Refused, match=r"belief to condition must have one kernel; got 3\."):
        given_answers(mixture(), duels(1))
    with pytest.raises(
        aw.Refused, match=r"method must be 'ep' or 'laplace' for several kernels; got 'gibbs'\."
    ):
        aw.infer(duels(), kernels(), "gibbs", generators=generator(0))
    with pytest.raises(aw.Refused, match=r"kernels must have the lanes of the data, \(2,\); got \(\)\."):
        aw.infer(duels(lanes=(2,)), kernels())


def test_laplace_averages_as_well():
    belief = aw.infer(duels(), kernels(), "laplace")
    assert math.isclose(float(belief.weights.sum()), 1.0)
    assert (belief.mean(uniform(4, 2)) - mixture().mean(uniform(4, 2))).abs().max() < 0.5


@pytest.mark.parametrize("shared", [False, True])
def test_rough_values_of_draws_with_their_own_kernels_are_those_of_single_precision(shared):
    path = aw.paths.draw(mixture(duels(lanes=(2,))), 3, [generator(k) for k in range(2)])
    x = (uniform(7, 2) if shared else uniform(3, 2, 7, 2)).expand(3, 2, 7, 2)
    torch.testing.assert_close(path.roughly(x), path(x), rtol=0, atol=1e-3)
