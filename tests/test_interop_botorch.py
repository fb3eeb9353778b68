import copy
import math

import gpytorch
import pytest
import torch
from botorch.acquisition.analytic import LogExpectedImprovement
from botorch.acquisition.logei import qLogNoisyExpectedImprovement
from botorch.acquisition.monte_carlo import qUpperConfidenceBound
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.acquisition.preference import (
    AnalyticExpectedUtilityOfBestOption,
    PairwiseBayesianActiveLearningByDisagreement,
    qExpectedUtilityOfBestOption,
)
from botorch.models import ModelList, PairwiseGP
from botorch.optim import optimize_acqf
from botorch.sampling import SobolQMCNormalSampler
from botorch.utils.sampling import manual_seed
from torch import Tensor

import askwise as aw
from askwise.belief import Belief
from askwise.interop.botorch import BeliefModel

BOUNDS = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)


def uniform(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def duels(lanes: tuple[int, ...] = (), n: int = 15) -> aw.Data:
    """Answers about a hill with its top at (0.6, 0.4)."""
    X = uniform(*lanes, n, 2, 2, seed=1)
    height = -8 * (X - X.new_tensor([0.6, 0.4])).square().sum(-1)
    chance = torch.special.ndtr(height[..., 0] - height[..., 1])
    return aw.Data.duels(X, (uniform(*lanes, n, seed=2) < chance).long())


def belief(name: str = "se", lanes: tuple[int, ...] = (), method: str = "ep") -> Belief:
    return aw.infer(duels(lanes), aw.kernel(name, lengthscale=[0.3, 0.4], outputscale=2.0), method=method)


def joint_draws(about: Belief, x: Tensor, generator: torch.Generator, count: int = 400_000) -> Tensor:
    """f at the points of ``x`` [q, d], drawn from the belief itself."""
    noise = torch.randn(count, x.shape[-2], generator=generator, dtype=torch.float64)
    return about.mean(x) + noise @ torch.linalg.cholesky(about.cov(x)).mT


def qmc(count: int = 256) -> SobolQMCNormalSampler:
    return SobolQMCNormalSampler(torch.Size([count]), seed=0)


def grid(side: int = 12) -> Tensor:
    steps = torch.linspace(0, 1, side, dtype=torch.float64)
    return torch.cartesian_prod(steps, steps)


@pytest.mark.parametrize("lanes", [(), (3,)])
@pytest.mark.parametrize("batch", [(), (3,), (5, 1), (4, 5, 3)])
def test_the_posterior_is_the_beliefs_mean_and_covariance(lanes, batch):
    about = belief(lanes=lanes)
    model, x = BeliefModel(about), uniform(*batch, 4, 2)
    posterior, shape = model.posterior(x), torch.broadcast_shapes(batch, lanes)
    assert (model.batch_shape, model.num_outputs) == (lanes, 1)
    assert posterior.mean.shape == (*shape, 4, 1)
    assert posterior.mean.dtype == torch.float64
    assert posterior.covariance_matrix.shape == (*shape, 4, 4)
    assert posterior.rsample(torch.Size([6])).shape == (6, *shape, 4, 1)
    torch.testing.assert_close(posterior.mean[..., 0], about.mean(x), rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(posterior.covariance_matrix, about.cov(x), rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(posterior.variance[..., 0], about.variance(x))


def test_each_lane_answers_as_it_would_alone():
    data, kernel, x = duels(lanes=(3,)), aw.kernel("se", lengthscale=[0.3, 0.4]), uniform(5, 1, 2, 2)
    model = BeliefModel(aw.infer(data, kernel))
    together = AnalyticExpectedUtilityOfBestOption(model)(x)
    assert together.shape == (5, 3)
    for lane, value in enumerate(together.unbind(-1)):
        parts = (part[lane] for part in (data.points, data.first, data.second, data.signs))
        alone = BeliefModel(aw.infer(aw.Data(*parts), kernel))
        torch.testing.assert_close(value, AnalyticExpectedUtilityOfBestOption(alone)(x[:, 0]))


@pytest.mark.parametrize("name", ["se", "matern32", "matern52"])
@pytest.mark.parametrize("lanes", [(), (2,)])
def test_gradients_in_the_points_match_finite_differences(name, lanes):
    model = BeliefModel(belief(name, lanes))

    def moments(x: Tensor) -> tuple[Tensor, Tensor]:
        posterior = model.posterior(x)
        return posterior.mean, posterior.covariance_matrix

    x = uniform(2, 1, 3, 2).requires_grad_()
    assert torch.autograd.gradcheck(moments, x)
    assert torch.autograd.gradcheck(AnalyticExpectedUtilityOfBestOption(model), x[..., :2, :])
    assert torch.autograd.gradcheck(qExpectedUtilityOfBestOption(model, sampler=qmc(16)), x)


@pytest.mark.parametrize("kernel", [aw.kernel("se"), gpytorch.kernels.PolynomialKernel(power=2).double()])
def test_points_in_single_precision_are_answered_in_double(kernel):
    model, x = BeliefModel(aw.infer(duels(), kernel)), uniform(3, 2, 2).float()
    posterior = model.to(x).posterior(x)
    assert posterior.mean.dtype == torch.float64
    torch.testing.assert_close(posterior.mean, model.posterior(x.double()).mean, rtol=0, atol=0)


def test_points_may_repeat():
    model = BeliefModel(belief())
    x = model.datapoints[[0, 0]].requires_grad_()
    value = AnalyticExpectedUtilityOfBestOption(model)(x)
    (slope,) = torch.autograd.grad(value, x)
    torch.testing.assert_close(value, model.posterior(x[:1]).mean[0], rtol=0, atol=1e-4)  # their floor: 1e-8
    assert slope.isfinite().all()


def test_analytic_eubo_is_the_expected_better_of_two(generator):
    about = belief()
    eubo = AnalyticExpectedUtilityOfBestOption(BeliefModel(about))
    for x in uniform(4, 2, 2):
        best = joint_draws(about, x, generator).amax(-1)
        error = best.std() / math.sqrt(len(best))
        assert (eubo(x) - best.mean()).abs() < 4 * error


def test_with_a_previous_winner_eubo_is_the_expected_gain_over_it(generator):
    about = belief()
    winner, x = about.data.points[:1], uniform(1, 2)
    eubo = AnalyticExpectedUtilityOfBestOption(BeliefModel(about), previous_winner=winner)
    f = joint_draws(about, torch.cat([x, winner]), generator)
    gain = (f[:, 0] - f[:, 1]).clamp_min(0)
    assert (eubo(x) - gain.mean()).abs() < 4 * gain.std() / math.sqrt(len(gain))


def test_qeubo_agrees_with_analytic_eubo():
    model, x = BeliefModel(belief()), uniform(50, 2, 2)
    by_sampling = qExpectedUtilityOfBestOption(model, sampler=qmc(4096))(x)
    torch.testing.assert_close(by_sampling, AnalyticExpectedUtilityOfBestOption(model)(x), rtol=0, atol=2e-3)


def test_botorchs_pairwise_bald_is_our_mutual_information():
    about, x = belief(), uniform(20, 2, 2)
    bald = PairwiseBayesianActiveLearningByDisagreement(BeliefModel(about), num_samples=100_000)
    mean, var = about.difference(x[:, :1], x[:, 1:])
    with manual_seed(0):
        by_sampling = bald(x)
    exact = aw.numerics.mutual_information(mean[:, 0], var[:, 0])
    torch.testing.assert_close(by_sampling, exact, rtol=0, atol=4e-3)


def acquisitions(model: BeliefModel) -> dict[str, tuple[torch.nn.Module, int]]:
    """Each with the number of points that it searches."""
    points = model.datapoints
    incumbent = model.posterior(points).mean.argmax()
    return {
        "eubo": (AnalyticExpectedUtilityOfBestOption(model), 2),
        "eubo, previous winner": (
            AnalyticExpectedUtilityOfBestOption(model, previous_winner=points[incumbent][None]),
            1,
        ),
        "qeubo": (qExpectedUtilityOfBestOption(model, sampler=qmc()), 2),
        "log ei": (LogExpectedImprovement(model, best_f=model.posterior(points).mean.max()), 1),
        "q log nei": (qLogNoisyExpectedImprovement(model, X_baseline=points[:6], sampler=qmc()), 1),
        "q ucb": (qUpperConfidenceBound(model, beta=4.0, sampler=qmc()), 2),
    }


@pytest.mark.parametrize("which", ["eubo", "eubo, previous winner", "qeubo", "log ei", "q log nei", "q ucb"])
# of BoTorch's sampler, where the search happens to put both points in one place
@pytest.mark.filterwarnings("ignore:A not p.d.:linear_operator.utils.warnings.NumericalWarning")
@pytest.mark.parametrize("name", ["se", "matern52"])
def test_optimize_acqf_finds_what_a_grid_finds(which, name):
    acquisition, q = acquisitions(BeliefModel(belief(name)))[which]
    candidates = grid()[torch.combinations(torch.arange(len(grid())), q)]
    with torch.no_grad():
        on_grid = acquisition(candidates).max()
    with manual_seed(0):
        x, value = optimize_acqf(acquisition, BOUNDS, q=q, num_restarts=8, raw_samples=256)
    assert x.shape == (q, 2)
    assert value >= on_grid - 1e-6
    torch.testing.assert_close(acquisition(x)[0], value)


def test_pairwise_gp_agrees_when_its_variance_is_doubled():
    data, lengthscale = duels(), [0.3, 0.4]
    about = aw.infer(data, aw.kernel("se", lengthscale, outputscale=2.0), method="laplace")
    at_data = about.mean(data.points)
    assert (at_data[data.first] - at_data[data.second]).abs().max() < 2.9  # beyond 3 they clamp

    pairs = torch.stack([data.first, data.second], -1)
    winner_first = torch.where(data.signs[:, None] > 0, pairs, pairs.flip(-1))
    theirs = PairwiseGP(
        data.points,
        winner_first,
        covar_module=aw.kernel("se", lengthscale, outputscale=4.0),
        jitter=1e-9,
        consolidate_atol=0.0,
    )
    x = uniform(6, 3, 2)
    with torch.no_grad():  # their start is drawn from NumPy's global generator, their mode is unique
        expected, posterior = theirs.posterior(x), BeliefModel(about).posterior(x)
    torch.testing.assert_close(math.sqrt(2) * posterior.mean, expected.mean, rtol=0, atol=1e-6)
    torch.testing.assert_close(2 * posterior.covariance_matrix, expected.covariance_matrix, rtol=0, atol=1e-6)


def test_a_posterior_transform_is_applied():
    model, x = BeliefModel(belief()), uniform(3, 2, 2)
    turned = ScalarizedPosteriorTransform(torch.tensor([-1.0], dtype=torch.float64), offset=0.5)
    posterior = model.posterior(x, posterior_transform=turned)
    torch.testing.assert_close(posterior.mean, 0.5 - model.posterior(x).mean)


def test_it_can_stand_in_a_list_of_models():
    first, second, x = BeliefModel(belief()), BeliefModel(belief("matern52")), uniform(3, 2, 2)
    both = ModelList(first, second)
    assert both.num_outputs == 2
    torch.testing.assert_close(both.posterior(x).mean[..., :1], first.posterior(x).mean)
    torch.testing.assert_close(both.posterior(x, output_indices=[1]).mean, second.posterior(x).mean)
    assert both.subset_output([1]) is second


def test_it_has_nothing_to_fit_and_can_be_copied():
    trainable = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RQKernel()).double()
    about = aw.infer(duels(), trainable)
    assert about.log_evidence.requires_grad
    model, x = BeliefModel(about), uniform(3, 2, 2)
    assert not list(model.parameters())
    assert not model.posterior(x).mean.requires_grad
    torch.testing.assert_close(copy.deepcopy(model).posterior(x).mean, about.mean(x)[..., None])


@pytest.mark.parametrize("noise", [True, torch.ones(1, 1)])
def test_observation_noise_is_refused(noise):
    with pytest.raises(ValueError, match=r"observation_noise must be False; got .*success_probability"):
        BeliefModel(belief()).posterior(uniform(2, 2), observation_noise=noise)


@pytest.mark.parametrize("indices", [[1], [0, 0], []])
def test_outputs_other_than_f_are_refused(indices):
    model = BeliefModel(belief())
    for ask in (model.subset_output, lambda idcs: model.posterior(uniform(2, 2), output_indices=idcs)):
        with pytest.raises(ValueError, match=r"output indices must be \[0\]; got .*one output, f"):
            ask(indices)


def test_conditioning_is_left_unimplemented():
    with pytest.raises(NotImplementedError, match="condition_on_observations"):
        BeliefModel(belief()).condition_on_observations(uniform(1, 2), torch.ones(1, 1))
