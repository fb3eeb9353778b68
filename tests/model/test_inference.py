"""EP, Laplace and the belief against a textbook implementation, in float64 and in 50 digits."""

import inspect
import itertools
import math
import sys

import gpytorch
import numpy as np
import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel

import askwise as aw
import reference
from askwise.model.ep import _AndersonAcceleration
from askwise.model.kernels import covariance
from askwise.model.laplace import _newton_step
from askwise.model.sites import site_scale
from tensors import assert_slopes_are_differences, uniform

METHODS = ("ep", "laplace")
NAMES = ("se", "matern32", "matern52")
each_method = pytest.mark.parametrize("method", METHODS)


def f64(values):
    return torch.as_tensor(np.asarray(values), dtype=torch.float64)


def dense(data):
    """The signed matrix A of data without lanes, row by row."""
    A = np.zeros((data.n, data.points.shape[-2]))
    for row, first, second in zip(A, data.first.tolist(), data.second.tolist(), strict=True):
        row[first] += 1
        if second >= 0:
            row[second] -= 1
    return A


def wanted(data, settings, x, method, numbers=reference.FLOAT64):
    name, lengthscale, outputscale = settings
    length = np.broadcast_to(np.asarray(lengthscale, dtype=float), (data.points.shape[-1],))
    problem = reference.Problem(
        data.points.numpy(), dense(data), data.signs.numpy(), name, length, outputscale
    )
    return reference.posterior(problem, x.numpy(), method, numbers)


def assert_agrees(belief, want, x, tolerance=1e-6):
    def close(got, expected):
        torch.testing.assert_close(got.detach(), f64(expected), rtol=tolerance, atol=tolerance)

    assert belief.converged
    close(belief.mean(x), want.mean)
    close(belief.variance(x), want.variance)
    close(belief.cov(x), want.cov)
    for got, expected in zip(belief.difference(x, x.roll(1, 0)), want.difference, strict=True):
        close(got, expected)
    close(belief.log_evidence, want.log_evidence)


def assert_same(one, other, x, tolerance):
    for got, want in zip(
        (*one.moments(x), one.log_evidence), (*other.moments(x), other.log_evidence), strict=True
    ):
        torch.testing.assert_close(got, want, rtol=tolerance, atol=tolerance)


def points_of(rng, style, n, d):
    """Points to query: scattered, in pairs 1e-9 apart, a few that repeat, or on a line."""
    if style == "near":
        return np.clip(np.repeat(rng.random((n, d)), 2, 0) + 1e-9 * rng.standard_normal((2 * n, d)), 0, 1)
    if style == "repeat":
        return rng.random((max(2, n // 3), d))
    if style == "line":
        return np.linspace(0, 1, 2 * n)[:, None] * np.ones(d)
    return rng.random((2 * n, d))


def random_problem(seed, sizes=(1, 2, 5, 12, 30, 60), largest=6.0):
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(1, 5)), int(rng.choice(sizes))
    kind = ("binary", "duels", "mixed")[seed % 3]
    pool = points_of(rng, ("plain", "near", "repeat", "line")[seed % 4], n, d)
    answers = ("random", "equal", "function")[seed // 4 % 3]

    def outcomes(score):
        if answers == "random":
            return torch.tensor(rng.integers(2, size=len(score)))
        return (
            torch.ones(len(score), dtype=torch.long) if answers == "equal" else torch.tensor(score > 0).long()
        )

    def score(x):
        return np.sin(7 * x.sum(-1))

    yes_no = {"binary": n, "duels": 0, "mixed": n // 2}[kind]
    asked = pool[rng.integers(len(pool), size=yes_no)]
    pairs = pool[rng.integers(len(pool), size=(n - yes_no, 2))]
    data = aw.Data.binary(f64(asked).reshape(-1, d), outcomes(score(asked))) + aw.Data.duels(
        f64(pairs).reshape(-1, 2, d), outcomes(score(pairs[:, 0]) - score(pairs[:, 1]))
    )
    settings = (
        NAMES[seed % 3],
        (10.0 ** rng.uniform(-3, 3, d)).tolist(),
        float(10.0 ** rng.uniform(-6, largest)),
    )
    return data, settings, f64(np.concatenate([rng.random((3, d)), pool[:2]]))


def small_data(d=2, n=12, seed=0, lanes=()):
    generator = torch.Generator().manual_seed(seed)

    def rand(*shape):
        return torch.rand(*lanes, *shape, dtype=torch.float64, generator=generator)

    def coins(count):
        return torch.randint(2, (*lanes, count), generator=generator)

    return aw.Data.binary(rand(n // 2, d), coins(n // 2)) + aw.Data.duels(
        rand(n - n // 2, 2, d), coins(n - n // 2)
    )


@each_method
@pytest.mark.parametrize(
    "seed", [*range(12), *(pytest.param(s, marks=pytest.mark.slow) for s in range(12, 48))]
)
def test_posterior_and_evidence_agree_with_the_textbook(seed, method):
    data, settings, x = random_problem(seed)
    assert_agrees(aw.infer(data, aw.kernel(*settings), method), wanted(data, settings, x, method), x)


@each_method
@pytest.mark.parametrize(
    "seed", [*range(200, 204), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(204, 209))]
)
def test_posterior_and_evidence_agree_with_fifty_digits(seed, method):
    data, (name, lengthscale, _), x = random_problem(seed, sizes=(3, 5, 7))
    settings = (name, lengthscale, (1e-6, 1e3, 1e6)[seed % 3])
    want = wanted(data, settings, x, method, reference.DIGITS50)
    assert_agrees(aw.infer(data, aw.kernel(*settings), method), want, x)


@each_method
@pytest.mark.parametrize("outputscale", [1e-6, 1.0, 1e6])
def test_a_kernel_singular_to_working_precision_is_handled(method, outputscale):
    data = aw.Data.binary(f64(0.5 + 1e-9 * np.arange(6))[:, None], [1, 0, 1, 1, 0, 1])
    settings, x = ("se", 1e3, outputscale), f64([[0.1], [0.5], [0.9]])
    want = wanted(data, settings, x, method, reference.DIGITS50)
    assert_agrees(aw.infer(data, aw.kernel(*settings), method), want, x)


@each_method
def test_the_reference_in_float64_agrees_with_fifty_digits(method):
    data = small_data(n=8)
    settings, x = ("matern52", [0.3, 0.6], 2.0), f64([[0.1, 0.4], [0.7, 0.7]])
    coarse, fine = (wanted(data, settings, x, method, n) for n in (reference.FLOAT64, reference.DIGITS50))
    np.testing.assert_allclose(coarse.mean, fine.mean, rtol=1e-10)
    np.testing.assert_allclose(coarse.cov, fine.cov, rtol=1e-10)
    assert coarse.log_evidence == pytest.approx(fine.log_evidence, rel=1e-12)


def hard_cases():
    rng = np.random.default_rng(0)
    duel, ones = f64([[[0.3], [0.6]]]), torch.ones(200, dtype=torch.long)
    challenges = f64(rng.random((40, 2, 2)))
    challenges[:, 0] = challenges[0, 0]
    close = f64(0.5 + 1e-9 * np.arange(30))[:, None]
    return {
        "one yes": aw.Data.binary(f64([[0.3]]), [1]),
        "one duel": aw.Data.duels(duel, [0]),
        "a point against itself": aw.Data.duels(f64([[[0.3], [0.3]], [[0.3], [0.6]]]), [0, 1]),
        "only a point against itself": aw.Data.duels(f64([[[0.3], [0.3]]]), [1]),
        "twenty yes": aw.Data.binary(f64(rng.random((20, 2))), ones[:20]),
        "sixty no": aw.Data.binary(f64(rng.random((60, 2))), 0 * ones[:60]),
        "one duel 200 times": aw.Data.duels(duel.expand(200, 2, 1), ones),
        "one yes 200 times": aw.Data.binary(duel[0, :1].expand(200, 1), ones),
        "one duel, contradicted 100 times": aw.Data.duels(duel.expand(200, 2, 1), torch.arange(200) % 2),
        "one champion": aw.Data.duels(challenges, ones[:40]),
        "one champion, beaten at times": aw.Data.duels(challenges, torch.arange(40) % 3 // 2),
        "a circle": aw.Data.duels(f64([[[0.1], [0.5]], [[0.5], [0.9]], [[0.9], [0.1]]] * 7), ones[:21]),
        "near points that agree": aw.Data.binary(close, ones[:30]),
        "one near point against the others": aw.Data.binary(close, torch.arange(30) == 0),
    }


HARD = hard_cases()


@each_method
@pytest.mark.parametrize("case", HARD)
def test_hard_cases_converge_for_every_scale(case, method):
    data = HARD[case]
    x = torch.cat([data.points[:2], torch.full((1, data.points.shape[-1]), 0.77, dtype=torch.float64)])
    scales = f64(list(itertools.product((1e-3, 1e3), (1e-6, 1.0, 1e2, 1e6))))
    many = data.unsqueezed().select(torch.zeros(len(scales), dtype=torch.long))
    belief = aw.infer(many, aw.kernel("matern32", scales[:, :1], scales[:, 1]), method)
    assert belief.converged.all(), scales[~belief.converged]
    for part in (*belief.moments(x), *belief.difference(x, x.roll(1, 0)), belief.cov(x), belief.log_evidence):
        assert part.isfinite().all()


@each_method
@pytest.mark.parametrize("outputscale", [pytest.param(1.0, marks=pytest.mark.slow), 100.0])
@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.slow if HARD[case].n > 100 else ()) for case in HARD]
)
def test_hard_cases_agree_with_the_textbook(case, outputscale, method):
    data, settings = HARD[case], ("se", 0.4, outputscale)
    x = torch.cat([data.points[:2], torch.full((1, data.points.shape[-1]), 0.77, dtype=torch.float64)])
    assert_agrees(aw.infer(data, aw.kernel(*settings), method), wanted(data, settings, x, method), x)


@pytest.mark.parametrize(
    "seed", [*range(100, 112), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(112, 148))]
)
def test_steps_between_factorisations_lead_to_the_posterior_of_the_textbook(seed, monkeypatch):
    """As from 160 answers on; several kinds of points and variances from 1e-6 to 1e6."""
    monkeypatch.setattr(sys.modules["askwise.model.ep"], "_REFINED_FROM", 0)
    data, settings, x = random_problem(seed)
    assert_agrees(aw.infer(data, aw.kernel(*settings)), wanted(data, settings, x, "ep"), x)


@pytest.mark.parametrize("case", HARD)
def test_steps_between_factorisations_converge_in_hard_cases(case, monkeypatch):
    plain = aw.infer(HARD[case], aw.kernel("se", 0.4, 100.0))
    monkeypatch.setattr(sys.modules["askwise.model.ep"], "_REFINED_FROM", 0)
    longer = aw.infer(HARD[case], aw.kernel("se", 0.4, 100.0))
    assert longer.converged
    assert longer.sweeps <= 10 + plain.sweeps + plain.sweeps // 2
    assert_same(longer, plain, HARD[case].points[:3], 1e-7)


@pytest.mark.parametrize("task", ["yes/no", "duels"])
def test_hundreds_of_answers_agree_with_the_textbook_after_a_few_sweeps(task):
    X = torch.rand(200, 2, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    c = (X.sum((-2, -1)) > 2).long()
    data = aw.Data.binary(X[:, 0], c) if task == "yes/no" else aw.Data.duels(X, c)
    settings, x = ("matern52", 0.3, 4.0), X[:3, 1]
    belief = aw.infer(data, aw.kernel(*settings))
    assert_agrees(belief, wanted(data, settings, x, "ep"), x)
    assert belief.sweeps <= 10


def test_a_newton_step_that_descends_is_halved_until_it_does_not():
    """Two lanes of one row with variance one; the step leads far beyond the maximum, and one lane runs."""
    g, target = f64([[0.0], [0.0]]), f64([[40.0], [40.0]])
    tau, nu, signs = torch.zeros_like(g), target, torch.ones_like(g)
    moved, dual = _newton_step(g, g, target, tau, nu, signs, torch.tensor([True, False]))
    assert moved.flatten().tolist() == dual.flatten().tolist() == [0.625, 0.0]


def test_a_lane_whose_residual_grew_three_times_takes_damped_steps_only():
    iteration = _AndersonAcceleration(torch.full((2, 2, 3), 1e3, dtype=torch.float64))
    growing = f64([[1.0, 3.0, 9.0, 27.0, 13.0, 6.0, 3.0, 1.0], [8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0]])
    for number, change in enumerate(growing.mT):
        before, residual = iteration.sites, uniform(2, 2, 3, seed=number)
        iteration.step(residual, torch.ones_like(residual), change.numpy())
    damped = before + f64(iteration.damping)[:, None, None] * residual
    torch.testing.assert_close(iteration.sites[0], damped[0], rtol=0, atol=1e-9)
    assert (iteration.sites[1] - damped[1]).abs().max() > 1e-3


def test_lanes_that_have_converged_may_wait_for_others_and_stay_as_they_are(monkeypatch):
    source = torch.Generator().manual_seed(3)
    points = torch.rand(12, 30, 2, 1, generator=source, dtype=torch.float64)
    data = aw.Data.duels(points, torch.rand(12, 30, generator=source) < 0.5)
    variances = torch.logspace(-2, 4, 12, dtype=torch.float64)  # some take many sweeps more than others
    kernel = aw.kernel("matern52", torch.full((12, 1), 0.3, dtype=torch.float64), variances)
    at_once = aw.infer(data, kernel)
    monkeypatch.setitem(sys.modules["askwise.model.ep"]._STILL_RUNNING, "cpu", 0.5)  # as on a GPU
    later = aw.infer(data, kernel)
    assert len(set(at_once.sweeps.tolist())) > 4
    assert at_once.sweeps.tolist() == later.sweeps.tolist()
    for name in ("alpha", "log_evidence", "tau", "nu"):
        torch.testing.assert_close(getattr(later, name), getattr(at_once, name), rtol=1e-9, atol=1e-9)


def test_changes_of_sites_weigh_by_variance_and_those_of_strong_sites_relatively():
    var, tau = f64([[0.01, 0.01, 9.0, 9.0]]), f64([[0.5, 4.0, 0.5, 4.0]])
    assert site_scale(var).tolist() == [[[1.0, 1.0, 9.0, 9.0], [1.0, 1.0, 3.0, 3.0]]]
    assert site_scale(var, tau).tolist() == [[[1.0, 0.25, 9.0, 9.0], [1.0, 0.5, 3.0, 3.0]]]


@each_method
def test_without_answers_the_posterior_is_the_prior(method):
    data = aw.Data.binary(torch.zeros(0, 2, dtype=torch.float64), torch.zeros(0))
    belief, x = aw.infer(data, aw.kernel("se", 0.3, 2.0), method), torch.rand(4, 2, dtype=torch.float64)
    torch.testing.assert_close(belief.mean(x), f64(np.zeros(4)))
    torch.testing.assert_close(belief.cov(x), covariance(aw.kernel("se", 0.3, 2.0)).cross(x, x))
    assert belief.converged
    assert belief.log_evidence == 0


def composite():
    both = ScaleKernel(RBFKernel(ard_num_dims=2)) + ScaleKernel(MaternKernel(nu=2.5, active_dims=[1]))
    both = both.double()
    both.kernels[0].base_kernel.lengthscale = f64([[0.3, 0.7]])
    both.kernels[1].outputscale = 2.5
    return both


GRADED = {name: lambda name=name: aw.kernel(name, [0.3, 0.7], 2.0).requires_grad_(True) for name in NAMES}
GRADED["composite"] = composite


@each_method
@pytest.mark.parametrize("kernel", GRADED)
def test_the_gradient_of_the_evidence_agrees_with_differences(kernel, method):
    data, kernel = small_data(), GRADED[kernel]()
    assert_slopes_are_differences(
        lambda: aw.infer(data, kernel, method, tolerance=1e-11).log_evidence,
        list(kernel.parameters()),
        rel=1e-6,
        abs=1e-7,
    )


@each_method
def test_lanes_together_equal_lanes_alone(method):
    """Lanes differ in points, parameters and speed; the second, alone, has fewer points than answers."""
    X = torch.rand(4, 14, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    X[1] = X[1, :3].repeat(5, 1)[:14]
    c = torch.randint(2, (4, 14), generator=torch.Generator().manual_seed(4))
    c[2] = 1
    length = f64([[0.3, 0.5], [0.1, 0.2], [2.0, 3.0], [0.01, 0.02]])
    scale = f64([1.0, 5.0, 20.0, 0.1])
    together = aw.infer(aw.Data.binary(X, c), aw.kernel("matern52", length, scale), method)
    x = torch.rand(5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    assert together.converged.all()
    assert len(set(together.sweeps.tolist())) > 1
    for lane in range(4):
        alone = aw.infer(
            aw.Data.binary(X[lane], c[lane]), aw.kernel("matern52", length[lane], float(scale[lane])), method
        )
        for got, want in zip(together.moments(x), alone.moments(x), strict=True):
            torch.testing.assert_close(got[lane], want, rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(together.log_evidence[lane], alone.log_evidence, rtol=1e-9, atol=1e-9)


@each_method
def test_both_forms_of_the_site_posterior_agree(method):
    """Beside a lane with more points than answers, a lane is solved by rows instead of by points."""
    many = torch.rand(12, 2, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    few = many[:2].repeat(6, 1, 1)
    c, kernel = torch.arange(12) % 3 // 2, aw.kernel("se", 0.4, 50.0)
    alone, beside = aw.Data.duels(few, c), aw.Data.duels(torch.stack([few, many]), torch.stack([c, c]))
    assert alone.points.shape[-2] < alone.n <= beside.points.shape[-2]
    x = many[:3, 0]
    one, two = aw.infer(alone, kernel, method), aw.infer(beside, kernel, method)
    for got, want in zip(two.moments(x), one.moments(x), strict=True):
        torch.testing.assert_close(got[0], want, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(two.log_evidence[0], one.log_evidence, rtol=1e-9, atol=1e-9)


@each_method
def test_a_lane_that_does_not_converge_says_so(method):
    X = torch.rand(2, 10, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    kernel = aw.kernel("se", f64([[0.3], [0.3]]), f64([20.0, 1e-9]))
    belief = aw.infer(aw.Data.binary(X, torch.ones(2, 10, dtype=torch.long)), kernel, method, max_sweeps=2)
    assert belief.converged.tolist() == [False, True]
    assert belief.sweeps[0] == 2
    assert belief.change[0] > 1e-8 >= belief.change[1]
    assert belief.mean(X).isfinite().all()


@each_method
def test_a_warm_start_gives_the_same_in_fewer_sweeps(method):
    data, kernel, x = small_data(n=30), aw.kernel("se", 0.4, 5.0), f64([[0.2, 0.3], [0.8, 0.6]])
    more = data + aw.Data.binary(f64([[0.5, 0.5]]), [1])
    cold = aw.infer(more, kernel, method)
    warm = aw.infer(more, kernel, method, warm=aw.infer(data, kernel, method))
    assert_same(warm, cold, x, 1e-7)
    again = aw.infer(more, kernel, method, warm=cold)
    assert again.sweeps <= warm.sweeps
    assert again.sweeps < cold.sweeps
    assert warm.sweeps <= cold.sweeps


@each_method
@pytest.mark.parametrize("n", [160, 320])
def test_two_threads_give_the_results_of_one(n, method):
    X = torch.rand(2, n, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(n))
    data, kernel = aw.Data.binary(X, (X.sum(-1) > 1).long()), aw.kernel("matern52", 0.4)
    one = aw.infer(data, kernel, method, max_sweeps=2)
    torch.set_num_threads(2)
    try:
        two = aw.infer(data, kernel, method, max_sweeps=2)
        got = (*two.moments(X[:, :5]), two.log_evidence)
    finally:
        torch.set_num_threads(1)
    for value, want in zip(got, (*one.moments(X[:, :5]), one.log_evidence), strict=True):
        torch.testing.assert_close(value, want, rtol=1e-8, atol=1e-8)


KERNELS = {name: lambda name=name: aw.kernel(name, [0.3, 0.7], 2.0) for name in NAMES} | {
    "composite": composite
}


@pytest.mark.parametrize("kernel", KERNELS)
def test_gradients_of_the_belief_agree_with_differences(kernel):
    """Also at a point of the data, and for a point against itself."""
    data = small_data()
    belief = aw.infer(data, KERNELS[kernel]())
    other = torch.cat([data.points[:2], f64([[0.4, 0.1]])])
    x = torch.cat([data.points[:1], f64([[0.9, 0.2]]), other[2:]]).requires_grad_()

    def outputs(x):
        return (belief.mean(x), belief.variance(x), belief.cov(x), *belief.difference(x, other))

    assert torch.autograd.gradcheck(outputs, (x,))


@each_method
@pytest.mark.parametrize("outputscale", [1e-6, 1.0, 1e6])
def test_a_variance_is_never_negative(outputscale, method):
    data = HARD["one duel, contradicted 100 times"]
    belief = aw.infer(data, aw.kernel("se", 1.0, outputscale), method)
    x = torch.linspace(0, 1, 200, dtype=torch.float64)[:, None]
    assert (belief.variance(x) >= 0).all()
    assert (belief.difference(x, x)[1] == 0).all()
    assert (belief.difference(x, x.roll(1, 0))[1] >= 0).all()


def test_the_variance_of_a_difference_of_near_points_is_not_negative():
    x = torch.linspace(0, 1, 30, dtype=torch.float64)[:, None]
    belief = aw.infer(aw.Data.binary(x, torch.arange(30) % 2), aw.kernel("se", 0.5, 1e4))
    assert (belief.difference(x, (x + 1e-9).clamp_max(1))[1] >= 0).all()


@pytest.mark.parametrize("kernel", KERNELS)
def test_points_broadcast_with_the_lanes(kernel):
    data = small_data(lanes=(3,))
    belief = aw.infer(data, KERNELS[kernel]())
    x = torch.rand(5, 3, 4, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    mean, var, cov = belief.mean(x), belief.variance(x), belief.cov(x)
    apart = belief.difference(x, x.roll(1, -2))
    assert (mean.shape, cov.shape) == ((5, 3, 4), (5, 3, 4, 4))
    torch.testing.assert_close(belief.mean(x[0]), mean[0])
    torch.testing.assert_close(belief.variance(x[0]), var[0])
    torch.testing.assert_close(belief.difference(x[0], x[0].roll(1, -2)), (apart[0][0], apart[1][0]))
    torch.testing.assert_close(belief.mean(x[0, 1])[1], mean[0, 1])
    torch.testing.assert_close(belief.cov(x[0, 1])[1], cov[0, 1])
    torch.testing.assert_close(cov.diagonal(dim1=-2, dim2=-1), var)


def test_one_answer_has_the_moments_of_its_truncated_prior():
    """For one answer EP is exact: evidence 1/2, and mean and variance in closed form."""
    belief, v = aw.infer(aw.Data.binary(f64([[0.5]]), [1]), aw.kernel("se", 0.3, 3.0)), 3.0
    mean, var = (float(part) for part in belief.moments(f64([[0.5]])))
    assert float(belief.log_evidence) == pytest.approx(math.log(0.5), rel=1e-14)
    assert mean == pytest.approx(v / math.sqrt(1 + v) * math.sqrt(2 / math.pi), rel=1e-12)
    assert var == pytest.approx(v - v**2 / (1 + v) * 2 / math.pi, rel=1e-12)


def test_success_is_the_probit_of_the_moments():
    data = small_data()
    belief, x, y = aw.infer(data, aw.kernel("se", 0.3)), data.points[:3], data.points[3:6]
    mean, var = belief.difference(x, y)
    torch.testing.assert_close(belief.success_probability(x, y), aw.numerics.success_probability(mean, var))
    torch.testing.assert_close(
        belief.success_probability(x), aw.numerics.success_probability(*belief.moments(x))
    )


def test_an_unknown_method_is_refused():
    unchecked = inspect.unwrap(aw.infer)  # past the type checks of the tests
    with pytest.raises(ValueError, match=r"method must be one of 'ep', 'laplace'.*; got 'vb'"):
        unchecked(small_data(), aw.kernel("se"), "vb")


def test_a_kernel_with_other_lanes_is_refused():
    kernel = aw.kernel("se", torch.ones(3, 2))
    with pytest.raises(ValueError, match=r"kernel must have .*lanes"):
        aw.infer(small_data(lanes=(2,)), kernel)
    with pytest.raises(ValueError, match=r"kernel must have .*lanes"):
        aw.infer(small_data(), kernel)


def test_a_kernel_that_is_not_finite_is_refused():
    kernel = composite()
    with torch.no_grad():
        kernel.kernels[0].raw_outputscale.fill_(math.nan)
    with pytest.raises(ValueError, match="kernel must give finite covariances"):
        aw.infer(small_data(), kernel)


def test_a_warm_start_about_more_answers_is_refused():
    data, kernel = small_data(), aw.kernel("se")
    with pytest.raises(ValueError, match="warm must be a belief about the first of these 12 answers"):
        aw.infer(data, kernel, warm=aw.infer(data + data, kernel))


def test_a_kernel_for_another_dimension_is_refused():
    with pytest.raises(ValueError, match="lengthscale"):
        aw.infer(small_data(d=2), aw.kernel("se", [0.1, 0.2, 0.3]))


def test_a_kernel_of_float32_gives_beliefs_in_float64():
    belief = aw.infer(small_data(), gpytorch.kernels.ScaleKernel(RBFKernel()))
    x = f64([[0.2, 0.4]])
    assert {belief.mean(x).dtype, belief.variance(x).dtype, belief.log_evidence.dtype} == {torch.float64}


@pytest.mark.parametrize("method", ["ep", "laplace"])
def test_lanes_in_chunks_equal_lanes_together(method, monkeypatch):
    data, kernel = small_data(lanes=(7,)), aw.kernel("matern52", 0.3)
    whole = aw.infer(data, kernel, method)
    monkeypatch.setattr(
        "askwise.model.inference._CHUNK_ENTRIES", 2 * (data.n**2 + data.points.shape[-2] ** 2)
    )
    parts = aw.infer(data, kernel, method)
    again = aw.infer(data, kernel, method, warm=parts)
    for belief in (parts, again):
        torch.testing.assert_close(belief.alpha, whole.alpha, rtol=0, atol=1e-8)
        torch.testing.assert_close(belief.log_evidence, whole.log_evidence, rtol=0, atol=1e-8)
    assert (again.sweeps < parts.sweeps).all()


@pytest.mark.parametrize("own", [False, True], ids=["shared kernel", "own kernels"])
def test_a_selected_lane_equals_that_lane(own):
    data = small_data(lanes=(3,))
    belief = aw.infer(data, aw.kernel("se", torch.rand(3, 2) + 0.1) if own else aw.kernel("se", 0.3))
    x = f64([[0.2, 0.4], [0.9, 0.1]])
    assert belief.select(1).data.lanes == ()
    torch.testing.assert_close(belief.select(1).mean(x), belief.mean(x)[1])
    torch.testing.assert_close(belief.select(torch.tensor([2, 0])).cov(x), belief.cov(x)[[2, 0]])
