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
from botorch.models import ModelList, PairwiseGP, SingleTaskGP
from botorch.models.model import Model
from botorch.optim import optimize_acqf
from botorch.sampling import SobolQMCNormalSampler
from botorch.utils.sampling import manual_seed
from torch import Tensor

import askwise as aw
from askwise.interop.botorch import BeliefModel, LogMUC, UCBPhi
from askwise.model.belief import Belief
from askwise.numerics.seeds import generator as source
from askwise.rules import parse
from askwise.search.search import Search

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


@pytest.mark.parametrize(("name", "lanes"), [("se", ()), ("matern32", ()), ("matern52", (2,))])
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
@pytest.mark.parametrize("name", ["se", pytest.param("matern52", marks=pytest.mark.slow)])
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


def test_it_can_be_part_of_a_model_list():
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


@pytest.mark.parametrize("indices", [[1], [0, 0], []])
def test_outputs_other_than_f_are_refused(indices):
    model = BeliefModel(belief())
    for ask in (model.subset_output, lambda idcs: model.posterior(uniform(2, 2), output_indices=idcs)):
        with pytest.raises(ValueError, match=r"output indices must be \[0\]; got .*one output, f"):
            ask(indices)


# the paper's rules


def about(seed: int, name: str = "matern52") -> Belief:
    """Yes/no answers and duels about the hill, with noise."""
    X, pairs = uniform(8, 2, seed=seed), uniform(8, 2, 2, seed=seed + 100)
    top = X.new_tensor([0.6, 0.4])
    height, heights = (1 - 8 * (x - top).square().sum(-1) for x in (X, pairs))
    yes = uniform(8, seed=seed + 200) < torch.special.ndtr(height)
    won = uniform(8, seed=seed + 300) < torch.special.ndtr(heights[:, 0] - heights[:, 1])
    data = aw.Data.binary(X, yes) + aw.Data.duels(pairs, won)
    return aw.infer(data, aw.kernel(name, lengthscale=[0.3, 0.4], outputscale=2.0))


def maximized(acquisition: torch.nn.Module) -> tuple[Tensor, Tensor]:
    with manual_seed(0):
        return optimize_acqf(acquisition, BOUNDS, q=1, num_restarts=6, raw_samples=128)


def searched(belief: Belief, which: str) -> tuple[torch.nn.Module, Tensor]:
    """An acquisition, and the point [1, 2] where our own search has its maximum."""
    rule, search, model = parse(which), Search.around(belief, source(0)), BeliefModel(belief)
    if which == "ucb_phi":
        return UCBPhi(model), rule.ask(belief, 1, search)
    question = rule.ask(belief, 2, search)
    return LogMUC(model, question[0]), question[1:]


@pytest.mark.parametrize("which", ["ucb_phi", "muc"])
def test_optimize_acqf_lands_where_our_search_does(which):
    same = []
    for seed in range(3):
        acquisition, ours = searched(about(seed, "se" if seed % 2 else "matern52"), which)
        theirs, value = maximized(acquisition)
        assert (acquisition(ours) - value).abs().item() < 1e-3
        same.append((ours - theirs).abs().max().item() < 1e-2)
    assert sum(same) >= 2


@pytest.mark.parametrize("beta", [None, 0.0, 1.0, 5.0])
def test_the_bound_is_that_of_the_rule(beta):
    belief, x = about(1), uniform(30, 1, 2)
    model = BeliefModel(belief)
    acquisition = UCBPhi(model) if beta is None else UCBPhi(model, beta)
    mean, var = (part[:, 0] for part in belief.moments(x))
    chance = belief.success_probability(x)[:, 0]
    deviation = aw.uncertainty.epistemic_variance(mean, var).sqrt()
    factor = 2.3263478740408408 if beta is None else beta
    torch.testing.assert_close(acquisition(x), chance + factor * deviation, rtol=1e-9, atol=1e-12)


def test_the_logarithm_of_muc_is_that_of_the_rule():
    belief, x, champion = about(2), uniform(30, 1, 2), uniform(2, seed=5)
    mean, var = belief.difference(x[:, 0], champion.expand(30, 2))
    want = parse("muc").score(mean, var).log()
    for given in (champion, champion[None]):
        torch.testing.assert_close(LogMUC(BeliefModel(belief), given)(x), want, rtol=1e-8, atol=1e-8)


def test_only_the_logarithm_says_that_it_is_one():
    model = BeliefModel(about(1))
    assert LogMUC(model, uniform(2))._log
    assert not UCBPhi(model)._log


def test_the_champion_is_kept_as_a_buffer_without_a_graph():
    champion = uniform(2).requires_grad_()
    acquisition = LogMUC(BeliefModel(about(1)), champion)
    assert not list(acquisition.parameters())
    assert not list(UCBPhi(acquisition.model).buffers())
    ((name, buffer),) = acquisition.state_dict().items()
    assert name == "champion"
    assert torch.equal(buffer, champion.detach()[None])
    assert acquisition.float().champion.dtype == torch.float32
    x = uniform(3, 1, 2)
    assert not acquisition.double()(x).requires_grad
    torch.testing.assert_close(copy.deepcopy(acquisition)(x), acquisition(x))


@pytest.mark.parametrize("shape", [(2, 2), (3, 1, 2), (0, 2)])
def test_more_or_less_than_one_champion_is_refused(shape):
    with pytest.raises(ValueError, match=r"^champion must be one point, [^;]+; got shape .+\. Give one\."):
        LogMUC(BeliefModel(about(1)), uniform(*shape))


@pytest.mark.parametrize("d", [1, 4])
def test_a_champion_of_another_space_is_refused(d):
    """At the first challengers at the latest: a model need not tell its dimension."""
    with pytest.raises(ValueError, match=r"^champion must [^;]+; got .+\. .+"):
        LogMUC(BeliefModel(about(1)), uniform(d))(uniform(5, 1, 2))


def delicate(belief: Belief, champion: Tensor) -> Tensor:
    """Points where a variance may vanish or a slope may be forgotten, [k, 1, 2]."""
    beside = [champion + gap for gap in (0.0, 1e-16, 1e-12, 1e-9, 1e-7, 1e-5)]
    corners = torch.cartesian_prod(BOUNDS[:, 0], BOUNDS[:, 1])
    return torch.cat([torch.stack(beside), belief.data.points, corners, grid()]).clamp(0, 1)[:, None]


@pytest.mark.parametrize("name", ["se", "matern32", "matern52"])
def test_values_and_slopes_are_finite_everywhere_even_at_the_champion(name):
    belief = about(3, name)
    for champion in (Search.around(belief, source(0)).champion(belief)[0], belief.data.points[0], uniform(2)):
        for acquisition in (UCBPhi(BeliefModel(belief)), LogMUC(BeliefModel(belief), champion)):
            x = delicate(belief, champion).requires_grad_()
            value = acquisition(x)
            (slope,) = torch.autograd.grad(value.sum(), x)
            assert value.isfinite().all()
            assert slope.isfinite().all()


@pytest.mark.parametrize("name", ["se", "matern32", "matern52"])
def test_slopes_of_the_rules_match_finite_differences(name):
    model = BeliefModel(about(4, name))
    for acquisition in (UCBPhi(model), LogMUC(model, uniform(2, seed=9))):
        assert torch.autograd.gradcheck(acquisition, uniform(4, 1, 2).requires_grad_(), atol=1e-5)


def test_the_champion_itself_is_the_worst_challenger():
    belief, champion = about(3), uniform(2)
    acquisition = LogMUC(BeliefModel(belief), champion)
    assert acquisition(champion[None]) < acquisition(grid()[:, None]).min() - 5


@pytest.mark.parametrize("which", ["ucb_phi", "muc"])
def test_points_of_a_batch_do_not_disturb_each_other(which):
    acquisition, _ = searched(about(1), which)
    x = uniform(4, 3, 1, 2)
    together = acquisition(x)
    assert together.shape == (4, 3)
    alone = torch.stack([acquisition(point[None])[0] for point in x.flatten(0, 1)])
    torch.testing.assert_close(together.flatten(), alone, rtol=1e-10, atol=1e-12)
    assert torch.equal(together, acquisition(x))
    torch.testing.assert_close(acquisition(x[0, 0]), together[0, :1], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("which", ["ucb_phi", "muc"])
def test_two_points_at_once_are_refused(which):
    acquisition, _ = searched(about(1), which)
    with pytest.raises(AssertionError, match="q=1"):
        acquisition(uniform(5, 2, 2))


@pytest.mark.parametrize("which", ["ucb_phi", "muc"])
def test_botorchs_search_finds_the_same_point(which):
    acquisition, _ = searched(about(1), which)
    first, again = (maximized(acquisition) for _ in range(2))
    assert torch.equal(first[0], again[0])
    assert torch.equal(first[1], again[1])


@pytest.mark.parametrize("shape", [(5, 3), (5, 1)])
def test_each_lane_of_a_belief_has_its_own_bound_and_uncertainty(shape):
    lanes, champion, x = belief(lanes=(3,)), uniform(2, seed=4), uniform(*shape, 1, 2)
    for make in (UCBPhi, lambda model: LogMUC(model, champion)):
        together = make(BeliefModel(lanes))(x)
        assert together.shape == (5, 3)
        for k in range(3):
            alone = make(BeliefModel(lanes.select(k)))(x.expand(5, 3, 1, 2)[:, k])
            torch.testing.assert_close(together[:, k], alone, rtol=1e-9, atol=1e-10)


def regression() -> Model:
    X = uniform(12, 2, seed=3)
    model = SingleTaskGP(X, (6 * X).sin().sum(-1, keepdim=True), outcome_transform=None)
    model.covar_module.lengthscale = X.new_tensor([0.3, 0.4])
    model.likelihood.noise = X.new_tensor([0.01])
    return model.eval()


def preference() -> Model:
    data = duels()
    pairs = torch.stack([data.first, data.second], -1)
    winners = torch.where(data.signs[:, None] > 0, pairs, pairs.flip(-1))
    return PairwiseGP(data.points, winners, covar_module=aw.kernel("se", [0.3, 0.4], 4.0)).eval()


@pytest.mark.parametrize("make", [regression, preference])
# of PairwiseGP, whose inputs need not be scaled for it to have a posterior
@pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.InputDataWarning")
def test_the_rules_work_for_other_models(make):
    model, champion, x = make(), uniform(2, seed=6), grid()[:, None]
    with torch.no_grad():
        posterior = model.posterior(torch.cat([x, champion.expand_as(x)], -2))
        mean, cov = posterior.mean[..., 0], posterior.distribution.covariance_matrix
    bound = parse("ucb_phi").score(mean[:, 0], cov[:, 0, 0])
    uncertainty = parse("muc").score(mean[:, 0] - mean[:, 1], cov[:, 0, 0] + cov[:, 1, 1] - 2 * cov[:, 0, 1])
    for acquisition, want in ((UCBPhi(model), bound), (LogMUC(model, champion), uncertainty.log())):
        with torch.no_grad():
            torch.testing.assert_close(acquisition(x), want, rtol=1e-5, atol=1e-6)
        _, value = maximized(acquisition)
        assert value >= want.max() - 1e-5
