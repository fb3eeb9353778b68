"""Fitted kernels against scipy, finite differences and BoTorch's priors."""

import copy
import math
from typing import NamedTuple

import jaxtyping
import pytest
import scipy.optimize
import scipy.stats
import torch
from botorch.models.utils.gpytorch_modules import get_covar_module_with_dim_scaled_prior
from gpytorch.constraints import Interval
from gpytorch.kernels import (
    ConstantKernel,
    Kernel,
    LinearKernel,
    MaternKernel,
    PeriodicKernel,
    RBFKernel,
    ScaleKernel,
)
from gpytorch.priors import GammaPrior, LogNormalPrior, NormalPrior
from torch import Tensor

import askwise as aw
from askwise.model import fitting as module
from askwise.model import priors
from askwise.model.fitting import Fitted
from askwise.model.observer import Observer
from askwise.numerics.bfgs import Objective, minimize
from tensors import uniform

METHODS = ["ep", "laplace"]
HARD_STARTS = [(1e-3, 1.0), (1e3, 1.0), (0.3, 1e-6), (0.3, 1e6)]  # lengthscale, outputscale


def hill(X: Tensor) -> Tensor:
    """Steep along the first dimension, nearly flat along the others."""
    return 3 * (5 * X[..., 0]).sin() + 0.3 * X.sum(-1)


def yes_no(n: int = 15, d: int = 2, seed: int = 0) -> aw.Data:
    X = uniform(n, d, seed=seed)
    return aw.Data.binary(X, (uniform(n, seed=seed + 1) < torch.special.ndtr(hill(X))).long())


def duels(n: int = 15, d: int = 2, seed: int = 0) -> aw.Data:
    X = uniform(n, 2, d, seed=seed)
    chance = torch.special.ndtr(hill(X[:, 0]) - hill(X[:, 1]))
    return aw.Data.duels(X, (uniform(n, seed=seed + 1) < chance).long())


PROBLEMS = {"yes/no": yes_no(), "duels": duels(), "mix": yes_no(8) + duels(8, seed=5)}

PAIRS = uniform(12, 2, 2, seed=3)
HARD_DATA = {
    "one yes": aw.Data.binary([[0.3, 0.6]], [1]),
    "one duel": aw.Data.duels([[[0.3, 0.6], [0.7, 0.1]]], [0]),
    "all answers equal": aw.Data.binary(uniform(15, 2), [1] * 15),
    "one duel repeated": aw.Data.duels([[[0.3, 0.6], [0.7, 0.1]]] * 60, [1] * 60),
    "the same champion": aw.Data.duels(torch.stack([torch.full((12, 2), 0.5), PAIRS[:, 0]], 1), [1] * 12),
    "contradictions": aw.Data.duels(torch.cat([PAIRS, PAIRS]), [1] * 12 + [0] * 12),
}


def laned(data: aw.Data, count: int) -> aw.Data:
    """The same answers in each lane."""
    parts = (data.points, data.first, data.second, data.signs)
    return aw.Data(*(part.expand(count, *part.shape).clone() for part in parts))


def different_lanes() -> tuple[aw.Data, list[aw.Data]]:
    """Three studies together, and each alone."""
    X = uniform(3, 12, 2, seed=9)
    c = (uniform(3, 12, seed=8) < torch.special.ndtr(hill(X))).long()
    return aw.Data.binary(X, c), [aw.Data.binary(X[i], c[i]) for i in range(3)]


def log_prior(data: aw.Data, kernel: Kernel) -> Tensor:
    """The log prior that fit adds to the evidence at the parameters of this kernel."""
    return aw.fit(data, kernel, max_steps=0).log_posterior_at_start - aw.infer(data, kernel).log_evidence


def with_priors(batch_shape: torch.Size = torch.Size()) -> ScaleKernel:  # noqa: B008
    base = MaternKernel(
        nu=2.5, ard_num_dims=2, lengthscale_prior=GammaPrior(3.0, 6.0), batch_shape=batch_shape
    )
    return ScaleKernel(base, outputscale_prior=GammaPrior(2.0, 0.15), batch_shape=batch_shape).double()


def composite(batch_shape: torch.Size = torch.Size()) -> Kernel:  # noqa: B008
    """A product over single dimensions plus a constant, which has no closed form here."""
    length = {"lengthscale_prior": GammaPrior(3.0, 6.0), "batch_shape": batch_shape}
    product = RBFKernel(active_dims=[0], **length) * MaternKernel(nu=1.5, active_dims=[1], **length)
    scaled = ScaleKernel(product, outputscale_prior=GammaPrior(2.0, 0.5), batch_shape=batch_shape)
    return (scaled + ConstantKernel(batch_shape, constant_prior=GammaPrior(2.0, 2.0))).double()


class Optimisation(NamedTuple):
    """The arguments that fit passes to its optimiser."""

    objective: Objective
    start: Tensor
    lower: Tensor
    upper: Tensor
    fitted: Fitted


@pytest.fixture
def optimisation(monkeypatch):
    def optimisation(*args, **options) -> Optimisation:
        seen = []

        def spy(objective, start, lower, upper, **options):
            seen.extend([objective, start, lower, upper])
            return minimize(objective, start, lower, upper, **options)

        with monkeypatch.context() as patch:
            patch.setattr(module, "minimize", spy)
            fitted = aw.fit(*args, **options)
        return Optimisation(*seen, fitted)

    return optimisation


def by_scipy(found: Optimisation) -> float:
    """The log posterior found by L-BFGS-B from the same start."""

    def one(x):
        value, grad = found.objective(torch.as_tensor(x)[None])
        return value.item(), grad[0].numpy()

    bounds = list(zip(found.lower[0].tolist(), found.upper[0].tolist(), strict=True))
    options = {"ftol": 1e-10, "gtol": 1e-5}
    start = found.start[0].numpy()
    best = scipy.optimize.minimize(one, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return -best.fun


KERNELS = {
    "matern52": "matern52",
    "se with parameters": aw.kernel("se", 0.4, 3.0),
    "own priors": with_priors(),
    "composite": composite(),
}
COMBINED = [
    ("matern52", "yes/no", "ep"),
    ("matern52", "yes/no", "laplace"),
    pytest.param("matern52", "duels", "ep", marks=pytest.mark.slow),
    ("se with parameters", "duels", "laplace"),
    pytest.param("own priors", "yes/no", "ep", marks=pytest.mark.slow),
    ("composite", "mix", "ep"),
    pytest.param("composite", "mix", "laplace", marks=pytest.mark.slow),
]
each_combination = pytest.mark.parametrize(("kernel", "problem", "method"), COMBINED)
each_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
each_method = pytest.mark.parametrize("method", METHODS)
QUICK = ("one yes", "one duel", "contradictions")
each_hard_data = pytest.mark.parametrize(
    "case", [case if case in QUICK else pytest.param(case, marks=pytest.mark.slow) for case in HARD_DATA]
)


@each_combination
def test_the_gradient_of_the_objective_agrees_with_differences(kernel, problem, method, optimisation):
    target = optimisation(PROBLEMS[problem], KERNELS[kernel], method, max_steps=0)
    target.objective.tolerance = 1e-9
    at = target.start + 0.3 * (uniform(*target.start.shape) - 0.5)
    _, grad = target.objective(at)
    step = 1e-4
    for k in range(at.shape[-1]):
        shift = torch.zeros_like(at)
        shift[:, k] = step
        slope = (target.objective(at + shift)[0] - target.objective(at - shift)[0]) / (2 * step)
        torch.testing.assert_close(grad[:, k], slope, rtol=1e-5, atol=1e-6)


def test_the_gradient_of_each_lane_is_that_of_the_lane_alone(optimisation):
    together, alone = different_lanes()
    at = uniform(3, 3) - 1
    value, grad = optimisation(together, "se", max_steps=0).objective(at)
    for lane, data in enumerate(alone):
        own_value, own_grad = optimisation(data, "se", max_steps=0).objective(at[lane : lane + 1])
        torch.testing.assert_close(value[lane : lane + 1], own_value)
        torch.testing.assert_close(grad[lane : lane + 1], own_grad)


@each_combination
def test_the_optimum_is_as_good_as_scipys(kernel, problem, method, optimisation):
    found = optimisation(PROBLEMS[problem], KERNELS[kernel], method)
    assert found.fitted.log_posterior.item() == pytest.approx(by_scipy(found), abs=1e-4)


def test_the_optimum_is_as_good_as_scipys_from_a_hard_start(optimisation):
    found = optimisation(PROBLEMS["yes/no"], aw.kernel("matern52", [1e-3] * 2, 1e6))
    assert found.fitted.log_posterior.item() == pytest.approx(by_scipy(found), abs=1e-4)


@pytest.mark.parametrize("method", ["ep", pytest.param("laplace", marks=pytest.mark.slow)])
@each_hard_data
def test_hard_answers_from_hard_starts_lead_to_a_better_stationary_point(case, method, optimisation):
    lengthscale, outputscale = torch.tensor(HARD_STARTS, dtype=torch.float64).unbind(-1)
    kernel = aw.kernel("matern52", lengthscale[:, None].expand(-1, 2), outputscale)
    many, x = laned(HARD_DATA[case], len(HARD_STARTS)), uniform(5, 2)
    found = optimisation(many, kernel, method)
    fitted, belief = found.fitted, found.fitted.belief
    assert (fitted.log_posterior > fitted.log_posterior_at_start + 1).all()  # all are far from an optimum
    assert belief.converged.all()
    for part in (belief.mean(x), belief.variance(x), belief.cov(x)):
        assert part.isfinite().all()
    value, grad = found.objective(torch.cat([part.reshape(4, -1) for part in fitted.kernel.parameters()], -1))
    torch.testing.assert_close(fitted.log_posterior, -value, rtol=0, atol=1e-6)
    assert grad.abs().max() < 1e-3


def test_parameters_stay_in_the_range_for_which_inference_is_tested(optimisation):
    found = optimisation(PROBLEMS["yes/no"], "se", max_steps=0)
    bounds = (found.lower.exp(), found.upper.exp())
    for got, variance, length in zip(bounds, (1e-6, 1e6), (1e-3, 1e3), strict=True):
        assert got[0].tolist() == pytest.approx([variance, length, length])


def test_a_worse_end_of_the_optimisation_is_not_taken(monkeypatch):
    def worsen(objective, start, *_, **__):
        return start + 3, objective(start + 3)[0]

    start = aw.kernel("se", [0.3, 0.5], 2.0)
    monkeypatch.setattr(module, "minimize", worsen)
    fitted = aw.fit(PROBLEMS["yes/no"], start)
    assert fitted.log_posterior == fitted.log_posterior_at_start
    torch.testing.assert_close(fitted.kernel.base_kernel.lengthscale, start.base_kernel.lengthscale)


@pytest.mark.parametrize("start", [1e-5, pytest.param(1e5, marks=pytest.mark.slow)])
def test_a_start_outside_the_bounds_is_improved(start):
    data = PROBLEMS["duels"]
    fitted = aw.fit(data, aw.kernel("se", [start] * 2))
    assert fitted.log_posterior > fitted.log_posterior_at_start + 1
    assert fitted.belief.converged


@each_kernel
def test_without_steps_the_result_is_the_start(kernel):
    data = PROBLEMS["mix"]
    fitted = aw.fit(data, kernel, max_steps=0)
    assert torch.equal(fitted.log_posterior, fitted.log_posterior_at_start)
    if isinstance(kernel, Kernel):
        assert all(
            torch.equal(new, old)
            for new, old in zip(fitted.kernel.parameters(), kernel.parameters(), strict=True)
        )


@each_method
def test_the_belief_is_that_of_the_fitted_kernel(method):
    data, x = PROBLEMS["mix"], uniform(7, 2, seed=4)
    fitted = aw.fit(data, "matern32", method, max_steps=5)
    again = aw.infer(data, fitted.kernel, method)
    assert fitted.belief.converged
    for name in ("mean", "variance", "cov"):
        torch.testing.assert_close(
            getattr(fitted.belief, name)(x), getattr(again, name)(x), rtol=1e-6, atol=1e-7
        )
    torch.testing.assert_close(fitted.belief.log_evidence, again.log_evidence)


@each_kernel
def test_the_log_posterior_is_evidence_plus_prior_at_the_fitted_kernel(kernel):
    data = PROBLEMS["duels"]
    fitted = aw.fit(data, kernel, max_steps=3)
    sum_of_both = aw.infer(data, fitted.kernel).log_evidence + log_prior(data, fitted.kernel)
    torch.testing.assert_close(fitted.log_posterior, sum_of_both)


def test_lengthscales_and_variance_are_roughly_recovered_from_many_answers():
    """From 200 answers about one function, drawn from the kernel."""
    true = aw.kernel("se", [0.12, 0.6], outputscale=16.0)
    generator = torch.Generator().manual_seed(1)
    X = torch.rand(200, 2, generator=generator, dtype=torch.float64)
    cov = true(X).to_dense().detach() + 1e-8 * torch.eye(200, dtype=torch.float64)
    f = torch.linalg.cholesky(cov) @ torch.randn(200, generator=generator, dtype=torch.float64)
    c = (torch.rand(200, generator=generator, dtype=torch.float64) < torch.special.ndtr(f)).long()
    fitted = aw.fit(aw.Data.binary(X, c), "se").kernel
    short, long = fitted.base_kernel.lengthscale[0].tolist()
    assert short == pytest.approx(0.12, rel=0.35)
    assert long == pytest.approx(0.6, rel=0.5)
    assert math.log(fitted.outputscale.item()) == pytest.approx(math.log(16), abs=1)


def test_an_irrelevant_dimension_gets_the_longer_lengthscale():
    fitted = aw.fit(duels(60, d=2)).kernel
    steep, flat = fitted.base_kernel.lengthscale[0].tolist()
    assert flat > 2 * steep


@pytest.mark.parametrize("d", [1, 2, 7])
@pytest.mark.parametrize("name", ["se", "matern32", "matern52"])
def test_the_prior_of_lengthscales_is_that_of_botorch(name, d):
    theirs = get_covar_module_with_dim_scaled_prior(ard_num_dims=d).double().lengthscale_prior
    data, lengthscale = yes_no(5, d), 0.05 + uniform(d) / 2
    ours = log_prior(data, aw.kernel(name, lengthscale, 1.7))
    by_variance = torch.distributions.LogNormal(2.0, math.sqrt(2)).log_prob(torch.tensor(1.7).double())
    torch.testing.assert_close(ours, theirs.log_prob(lengthscale).sum() + by_variance, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("d", [1, 3])
def test_a_name_starts_where_botorch_starts_with_the_variance_at_the_mode_of_its_prior(d):
    start = aw.fit(yes_no(5, d), "se", max_steps=0).kernel
    theirs = get_covar_module_with_dim_scaled_prior(ard_num_dims=d)
    torch.testing.assert_close(start.base_kernel.lengthscale, theirs.lengthscale.detach().double())
    assert start.outputscale.item() == 1.0
    scales = torch.linspace(0.2, 5, 49, dtype=torch.float64)
    data = aw.Data.binary(torch.full((49, 1, 1), 0.5), torch.ones(49, 1))
    priors = log_prior(data, aw.kernel("se", torch.ones(49, 1), scales))
    assert scales[priors.argmax()].item() == pytest.approx(1.0)


@pytest.mark.parametrize("lanes", [(), (3,)])
def test_a_kernel_with_its_own_priors_keeps_only_those(lanes):
    data = laned(PROBLEMS["yes/no"], 3) if lanes else PROBLEMS["yes/no"]
    fitted = aw.fit(data, with_priors(torch.Size(lanes)), max_steps=5)
    for kernel in (with_priors(torch.Size(lanes)), fitted.kernel):
        lengths = GammaPrior(3.0, 6.0).double().log_prob(kernel.base_kernel.lengthscale).sum((-2, -1))
        own = lengths + GammaPrior(2.0, 0.15).double().log_prob(kernel.outputscale)
        torch.testing.assert_close(log_prior(data, kernel), own.detach(), rtol=1e-6, atol=1e-6)
    assert {name for name, *_ in fitted.kernel.named_priors()} == {
        "outputscale_prior",
        "base_kernel.lengthscale_prior",
    }


def test_without_information_a_fit_is_at_the_mode_of_the_priors_below_the_expected_parameters():
    lengths = torch.tensor([0.2, 0.4], dtype=torch.float64)
    nothing = aw.Data.duels([[[0.5, 0.5], [0.5, 0.5]]], [0])  # a point against itself
    fitted = aw.fit(nothing, priors.expected_kernel("matern52", lengths.tolist())).kernel
    torch.testing.assert_close(fitted.base_kernel.lengthscale[0], 0.7788 * lengths, rtol=1e-3, atol=0)
    assert float(fitted.outputscale.sqrt()) == pytest.approx(1.5654, rel=1e-3)


def test_the_expected_kernel_has_priors_around_its_parameters():
    lengths, at, variance = [0.2, 0.4], torch.tensor([0.3, 0.3], dtype=torch.float64), 2.5
    kernel = priors.expected_kernel("matern52", lengths)
    assert kernel.base_kernel.lengthscale.flatten().tolist() == pytest.approx(lengths)
    assert kernel.outputscale.item() == pytest.approx(4)
    kernel.base_kernel.lengthscale, kernel.outputscale = at, variance
    expected = scipy.stats.lognorm.logpdf(at.numpy(), 0.5, scale=lengths).sum()
    expected += scipy.stats.lognorm.logpdf(variance, 0.7, scale=4)
    assert log_prior(PROBLEMS["yes/no"], kernel).item() == pytest.approx(expected)
    assert priors.expected_length(4) == pytest.approx(0.4)


def test_a_kernel_is_refitted_after_each_of_eight_answers_and_then_at_each_growth_by_half():
    counts = range(1, 70)
    assert [n for n in counts if module.refit_count(n) == n] == [*range(1, 9), 12, 18, 27, 41, 62]
    assert [module.refit_count(n) for n in (11, 17, 40, 69)] == [8, 12, 27, 62]


def test_a_kernel_with_one_prior_gets_no_others():
    kernel = ScaleKernel(RBFKernel(lengthscale_prior=NormalPrior(0.3, 0.1))).double()
    own = NormalPrior(0.3, 0.1).log_prob(kernel.base_kernel.lengthscale.detach()).sum()
    torch.testing.assert_close(log_prior(PROBLEMS["duels"], kernel), own.double(), rtol=1e-6, atol=1e-6)


def test_a_strong_prior_holds_its_parameter():
    base = RBFKernel(lengthscale_prior=NormalPrior(0.77, 1e-2))
    kernel = ScaleKernel(base, outputscale_prior=GammaPrior(2.0, 0.5)).double()
    fitted = aw.fit(PROBLEMS["yes/no"], kernel)
    assert fitted.kernel.base_kernel.lengthscale.item() == pytest.approx(0.77, abs=0.02)


def test_a_kernel_of_another_kind_has_no_prior():
    kernel = ScaleKernel(PeriodicKernel()).double()
    assert log_prior(PROBLEMS["yes/no"], kernel).item() == pytest.approx(0.0, abs=1e-9)


def test_a_kernel_without_an_outputscale_keeps_variance_one():
    kernel = RBFKernel(ard_num_dims=2).double()
    fitted = aw.fit(PROBLEMS["yes/no"], kernel)
    assert type(fitted.kernel) is RBFKernel
    assert fitted.log_posterior > fitted.log_posterior_at_start
    torch.testing.assert_close(fitted.belief.prior.diagonal(uniform(4, 2)), torch.ones(4).double())


@pytest.mark.parametrize("matern", [False, True])
def test_the_kernel_of_botorchs_models_is_fitted_within_its_constraint(matern):
    kernel = get_covar_module_with_dim_scaled_prior(ard_num_dims=2, use_rbf_kernel=not matern).double()
    fitted = aw.fit(yes_no(25), kernel)
    assert fitted.log_posterior > fitted.log_posterior_at_start
    assert (fitted.kernel.lengthscale >= 2.5e-2).all()


@pytest.mark.parametrize(
    ("lengthscale", "outputscale"), [HARD_STARTS[1], pytest.param(*HARD_STARTS[3], marks=pytest.mark.slow)]
)
def test_a_gpytorch_kernel_is_fitted_as_well_as_a_named_one_from_hard_starts(lengthscale, outputscale):
    """Its parameters are transformed by softplus, those of a named kernel by exp."""
    kernel = ScaleKernel(MaternKernel(nu=2.5, ard_num_dims=2)).double()
    kernel.base_kernel.lengthscale, kernel.outputscale = lengthscale, outputscale
    fitted = aw.fit(PROBLEMS["yes/no"], kernel)
    named = aw.fit(PROBLEMS["yes/no"], aw.kernel("matern52", [lengthscale] * 2, outputscale))
    torch.testing.assert_close(fitted.log_posterior_at_start, named.log_posterior_at_start)
    assert fitted.log_posterior.item() >= named.log_posterior.item() - 1e-2


def smooth_and_line(how: str) -> Kernel:
    smooth = RBFKernel(lengthscale_prior=NormalPrior(5.0, 0.1))
    line = LinearKernel(variance_prior=LogNormalPrior(0.0, 1.0))
    if how == "times":
        return (smooth * line).double()
    total = smooth + line
    if how == "plus, scaled":
        return ScaleKernel(total, outputscale_prior=GammaPrior(2.0, 0.5)).double()
    rough = MaternKernel(lengthscale_prior=GammaPrior(3.0, 6.0))
    return (total * rough if how == "plus, times another" else total).double()


@pytest.mark.parametrize("how", ["plus", "plus, scaled", "plus, times another", "times"])
def test_combinations_with_a_linear_kernel_are_fitted(how):
    """GPyTorch adds a low-rank matrix by a Cholesky factor, with jitter and a warning."""
    fitted = aw.fit(yes_no(25), smooth_and_line(how), max_steps=5)
    assert fitted.log_posterior > fitted.log_posterior_at_start


INTERVALS = {
    "by a sigmoid": Interval(0.1, 0.4),
    "by none": Interval(0.1, 0.4, transform=None, initial_value=0.2),
}


@pytest.mark.parametrize("constraint", INTERVALS.values(), ids=INTERVALS)
def test_a_constrained_parameter_stays_in_its_interval(constraint):
    kernel = ScaleKernel(RBFKernel(ard_num_dims=2, lengthscale_constraint=constraint)).double()
    fitted = aw.fit(PROBLEMS["yes/no"], kernel)
    lengthscale = fitted.kernel.base_kernel.lengthscale
    assert ((lengthscale > 0.1 - 1e-6) & (lengthscale < 0.4 + 1e-6)).all()
    assert fitted.log_posterior > fitted.log_posterior_at_start


def test_a_start_on_the_bound_of_a_kernel_leaves_it():
    start, bound = (get_covar_module_with_dim_scaled_prior(ard_num_dims=2).double() for _ in range(2))
    bound.lengthscale = 2.5e-2
    best = aw.fit(PROBLEMS["yes/no"], start).log_posterior
    torch.testing.assert_close(aw.fit(PROBLEMS["yes/no"], bound).log_posterior, best, rtol=0, atol=1e-3)


def test_a_kernel_in_single_precision_is_fitted_as_well_as_one_in_double():
    """GPyTorch's kernels are in single precision by default."""
    single = aw.fit(PROBLEMS["yes/no"], ScaleKernel(RBFKernel(ard_num_dims=2)))
    double = aw.fit(PROBLEMS["yes/no"], ScaleKernel(RBFKernel(ard_num_dims=2)).double())
    torch.testing.assert_close(single.log_posterior, double.log_posterior, rtol=0, atol=1e-3)


def test_lanes_together_equal_lanes_alone():
    together, alone = different_lanes()
    many, x = aw.fit(together), uniform(6, 2)
    assert many.log_posterior.shape == many.log_posterior_at_start.shape == many.kernel.batch_shape == (3,)
    for lane, one in enumerate(map(aw.fit, alone)):
        for name in ("log_posterior", "log_posterior_at_start"):
            torch.testing.assert_close(getattr(many, name)[lane], getattr(one, name), rtol=0, atol=1e-6)
        torch.testing.assert_close(many.belief.mean(x)[lane], one.belief.mean(x), rtol=0, atol=1e-3)
        torch.testing.assert_close(many.kernel.outputscale[lane], one.kernel.outputscale, rtol=1e-3, atol=0)


def test_each_lane_starts_at_its_own_parameters():
    together, alone = different_lanes()
    lengthscale, outputscale = 0.1 + uniform(3, 2), 0.5 + uniform(3, seed=1)
    many = aw.fit(together, aw.kernel("se", lengthscale, outputscale), max_steps=5)
    for lane, data in enumerate(alone):
        one = aw.fit(data, aw.kernel("se", lengthscale[lane], outputscale[lane]), max_steps=5)
        torch.testing.assert_close(many.log_posterior_at_start[lane], one.log_posterior_at_start)
        torch.testing.assert_close(many.log_posterior[lane], one.log_posterior, rtol=0, atol=1e-6)


SHARED = {
    "a kernel without a variance": RBFKernel(ard_num_dims=2).double(),
    "a kernel with its own priors": with_priors(),
    "a composite kernel": composite(),
    "an interval": ScaleKernel(RBFKernel(lengthscale_constraint=Interval(0.3, 0.4))).double(),
}


@pytest.mark.parametrize("kernel", SHARED.values(), ids=SHARED)
def test_a_kernel_shared_by_lanes_is_fitted_in_each_as_alone(kernel):
    together, alone = different_lanes()
    many = aw.fit(together, kernel, max_steps=2)
    for lane, one in enumerate(aw.fit(data, kernel, max_steps=2) for data in alone):
        torch.testing.assert_close(many.log_posterior_at_start[lane], one.log_posterior_at_start)
        torch.testing.assert_close(many.log_posterior[lane], one.log_posterior, rtol=0, atol=1e-6)


def batched(which: str, lanes: torch.Size) -> Kernel:
    if which == "without a variance":
        return RBFKernel(ard_num_dims=2, batch_shape=lanes).double()
    return composite(lanes) if which == "composite" else with_priors(lanes)


@pytest.mark.parametrize("which", ["composite", "own priors", "without a variance"])
def test_a_kernel_with_lanes_is_fitted_in_each(which):
    together, alone = different_lanes()
    many = aw.fit(together, batched(which, torch.Size([3])), max_steps=2)
    assert (many.log_posterior > many.log_posterior_at_start).all()
    for lane, data in enumerate(alone):
        one = aw.fit(data, batched(which, torch.Size()), max_steps=2)
        torch.testing.assert_close(many.log_posterior[lane], one.log_posterior, rtol=0, atol=1e-6)


@each_kernel
def test_the_given_kernel_is_not_changed(kernel):
    kernel = copy.deepcopy(kernel) if isinstance(kernel, Kernel) else aw.kernel(kernel)
    before = {name: value.clone() for name, value in kernel.state_dict().items()}
    wanted = [part.requires_grad for part in kernel.parameters()]
    fitted = aw.fit(PROBLEMS["yes/no"], kernel, max_steps=3)
    assert all(torch.equal(value, before[name]) for name, value in kernel.state_dict().items())
    assert [part.requires_grad for part in kernel.parameters()] == wanted
    assert all(part.grad is None for part in kernel.parameters())
    found = {name: value.clone() for name, value in fitted.kernel.state_dict().items()}
    for part in kernel.parameters():
        part.data.add_(1.0)
    assert all(torch.equal(value, found[name]) for name, value in fitted.kernel.state_dict().items())


def test_the_fitted_kernel_requires_no_gradients():
    fitted = aw.fit(PROBLEMS["duels"], "se", max_steps=2)
    assert not any(part.requires_grad for part in fitted.kernel.parameters())
    assert not fitted.log_posterior.requires_grad
    assert not fitted.belief.log_evidence.requires_grad


def test_gibbs_can_be_used_for_fitting():
    data, kernel = aw.Data.duels([[[0.1], [0.7]]], [0]), aw.kernel("se", 0.1)
    fitted = aw.fit(data, kernel, "gibbs", max_steps=1)
    assert fitted.log_posterior > fitted.log_posterior_at_start
    by_ep = aw.fit(data, kernel, max_steps=1)  # exact for a single answer
    torch.testing.assert_close(fitted.log_posterior, by_ep.log_posterior, rtol=0, atol=0.02)


def test_without_answers_the_fit_is_the_mode_of_the_prior():
    data = aw.Data.binary(torch.zeros(0, 2, dtype=torch.float64), torch.zeros(0))
    fitted = aw.fit(data, aw.kernel("se", [0.7, 0.1], 4.0))
    mode = torch.tensor(math.exp(math.sqrt(2) + math.log(2) / 2 - 3)).double()
    torch.testing.assert_close(fitted.kernel.base_kernel.lengthscale[0], mode.expand(2), rtol=1e-3, atol=0)
    assert fitted.kernel.outputscale.item() == pytest.approx(1.0, rel=1e-3)


@pytest.fixture
def types_unchecked(monkeypatch):
    """As users run it, without the type checks of the tests."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.mark.usefixtures("types_unchecked")
def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match=r"kernel must be one of 'se', 'matern32', 'matern52'; got 'rbf'\."):
        aw.fit(PROBLEMS["duels"], "rbf")


@pytest.mark.usefixtures("types_unchecked")
def test_an_unknown_method_is_refused():
    with pytest.raises(ValueError, match=r"method must be one of 'ep', 'laplace', 'gibbs'; got 'vi'\."):
        aw.fit(PROBLEMS["duels"], "se", "vi")


def test_a_kernel_with_other_lanes_than_the_data_is_refused():
    with pytest.raises(
        ValueError, match=r"kernel must have no lanes or those of the data, \(\); got \(3,\)\."
    ):
        aw.fit(PROBLEMS["duels"], aw.kernel("se", torch.ones(3, 2)))
    with pytest.raises(ValueError, match=r"kernel must have the data's lanes, \(2,\), .*; got \(3,\)\. Give"):
        aw.fit(laned(PROBLEMS["duels"], 2), aw.kernel("se", torch.ones(3, 2)))


def test_a_composite_kernel_with_a_part_without_lanes_is_refused():
    lanes = torch.Size([3])
    kernel = (RBFKernel(batch_shape=lanes) + LinearKernel()).double()
    message = r"kernel must have the data's lanes, \(3,\), or none, in all its parts; got"
    with pytest.raises(ValueError, match=message):
        aw.fit(laned(PROBLEMS["duels"], 3), kernel)


def test_lapses_and_the_kernel_are_learned_from_answers_with_ties():
    X = uniform(30, 2, 2)
    lead = hill(X[:, 0]) - hill(X[:, 1])
    undecided = lead.abs() < 1
    data = aw.Data.duels(X[~undecided], (lead > 0)[~undecided]) + aw.Data.ties(X[undecided])
    start = priors.expected_kernel("matern52", [0.3, 0.3])
    people = Observer.start(data, 1, ["lapse"])
    fitted = module.fit(data, start, observer=people, learn=["lapse"], deviations=True)
    assert undecided.any()
    assert fitted.log_posterior > fitted.log_posterior_at_start + 0.1
    assert fitted.observer is not None
    assert fitted.observer.lapse != people.lapse
    assert fitted.deviation is not None
    assert fitted.deviation.isfinite().all()


@pytest.mark.parametrize(("d", "n"), [(1, 5), (2, 12), (2, 93), (4, 40)])
def test_a_rough_fit_is_close_to_a_fine_one(d, n):
    X = uniform(n, 2, d)
    data = aw.Data.duels(X, (hill(X[:, 0]) > hill(X[:, 1])).long())
    fine, rough = (
        aw.fit(data, priors.expected_kernel("matern52", [0.2] * d), roughly=roughly)
        for roughly in (False, True)
    )
    for name, parameter in fine.kernel.named_parameters():
        other = rough.kernel.get_parameter(name)
        assert not torch.equal(other, parameter)
        assert (other / parameter).log().abs().max() < 0.02


@pytest.mark.parametrize("learn", ["lapse", ["lapses"], ["lapse"]])
def test_what_cannot_be_learned_is_refused(learn):
    data = aw.Data.binary([[0.2], [0.8]], [0, 1])
    with pytest.raises(
        aw.errors.Refused, match="must be a list of" if learn != ["lapse"] else "observer must"
    ):
        aw.fit(data, learn=learn)
