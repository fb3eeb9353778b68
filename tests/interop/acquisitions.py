"""Every acquisition function of BoTorch: how to construct it for a model, and how many points it takes."""

import importlib
import inspect
import pkgutil
from collections.abc import Callable

import botorch.acquisition
import torch
from botorch.acquisition import analytic, logei, monte_carlo
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.active_learning import PairwiseMCPosteriorVariance, qNegIntegratedPosteriorVariance
from botorch.acquisition.bayesian_active_learning import qBayesianActiveLearningByDisagreement
from botorch.acquisition.fixed_feature import FixedFeatureAcquisitionFunction
from botorch.acquisition.joint_entropy_search import qJointEntropySearch
from botorch.acquisition.knowledge_gradient import (
    ProjectedAcquisitionFunction,
    qKnowledgeGradient,
    qMultiFidelityKnowledgeGradient,
)
from botorch.acquisition.max_value_entropy_search import (
    qLowerBoundMaxValueEntropy,
    qMaxValueEntropy,
    qMultiFidelityLowerBoundMaxValueEntropy,
    qMultiFidelityMaxValueEntropy,
)
from botorch.acquisition.multi_objective import analytic as multi_analytic
from botorch.acquisition.multi_objective import logei as multi_logei
from botorch.acquisition.multi_objective import monte_carlo as multi_monte_carlo
from botorch.acquisition.multi_objective.hypervolume_knowledge_gradient import (
    qHypervolumeKnowledgeGradient,
    qMultiFidelityHypervolumeKnowledgeGradient,
)
from botorch.acquisition.multi_objective.joint_entropy_search import (
    qLowerBoundMultiObjectiveJointEntropySearch,
)
from botorch.acquisition.multi_objective.max_value_entropy_search import (
    qLowerBoundMultiObjectiveMaxValueEntropySearch,
)
from botorch.acquisition.multi_objective.multi_fidelity import MOMF
from botorch.acquisition.multi_objective.parego import qLogNParEGO
from botorch.acquisition.multi_objective.predictive_entropy_search import (
    qMultiObjectivePredictiveEntropySearch,
)
from botorch.acquisition.multi_step_lookahead import qMultiStepLookahead
from botorch.acquisition.multioutput_acquisition import (
    MultiOutputAcquisitionFunctionWrapper,
    MultiOutputPosteriorMean,
)
from botorch.acquisition.objective import GenericMCObjective
from botorch.acquisition.penalized import L2Penalty, PenalizedAcquisitionFunction
from botorch.acquisition.predictive_entropy_search import qPredictiveEntropySearch
from botorch.acquisition.preference import (
    AnalyticExpectedUtilityOfBestOption,
    PairwiseBayesianActiveLearningByDisagreement,
    qExpectedUtilityOfBestOption,
)
from botorch.acquisition.prior_guided import PriorGuidedAcquisitionFunction
from botorch.acquisition.proximal import ProximalAcquisitionFunction
from botorch.acquisition.thompson_sampling import PathwiseThompsonSampling
from botorch.models import ModelList
from botorch.models.model import Model
from botorch.sampling import SobolQMCNormalSampler
from botorch.sampling.list_sampler import ListSampler
from botorch.utils.multi_objective.box_decompositions.non_dominated import NondominatedPartitioning
from torch import Tensor

from tensors import uniform

POINTS = uniform(8, 2, seed=41)
WAITING = uniform(2, 2, seed=42)
FANTASIES = 4


def qmc(count: int = 16, seed: int = 0) -> SobolQMCNormalSampler:
    return SobolQMCNormalSampler(torch.Size([count]), seed=seed)


def top(model: Model) -> Tensor:
    return model.posterior(POINTS).mean.max().detach()


def ucb(model: Model) -> AcquisitionFunction:
    return analytic.UpperConfidenceBound(model, beta=2.0)


def two(model: Model) -> ModelList:
    """Two outputs that happen to be the same; what is tried is whether it runs."""
    return ModelList(model, model)


def lists(count: int = 16) -> ListSampler:
    return ListSampler(qmc(count), qmc(count, seed=1))


def negative(samples: Tensor) -> Tensor:
    """A constraint, which holds where it is below zero."""
    return samples[..., 0] - 1.0


def wins(samples: Tensor, X: Tensor | None = None) -> Tensor:
    return torch.special.ndtr(samples[..., 0])


def front() -> NondominatedPartitioning:
    return NondominatedPartitioning(REFERENCE, torch.tensor([[0.2, 0.1], [0.0, 0.4]], dtype=torch.float64))


class Favourite(torch.nn.Module):
    """A prior over the optimum."""

    def forward(self, X: Tensor) -> Tensor:
        return torch.exp(-(X - 0.5).square().sum(-1))


REFERENCE = torch.tensor([-3.0, -3.0], dtype=torch.float64)
CELLS = torch.tensor([[[[-1e9]], [[1.0]]]], dtype=torch.float64)  # below the front

Made = Callable[[Model], AcquisitionFunction]
TABLE: dict[str, tuple[type[AcquisitionFunction], int, Made]] = {}
"""By name: the class, the number of points it is evaluated at, and how to construct it."""


def add(cls: type[AcquisitionFunction], q: int, made: Made, variant: str = "") -> None:
    TABLE[cls.__name__ + (f", {variant}" if variant else "")] = (cls, q, made)


for cls in (
    analytic.LogProbabilityOfImprovement,
    analytic.ProbabilityOfImprovement,
    analytic.ExpectedImprovement,
    analytic.LogExpectedImprovement,
):
    add(cls, 1, lambda m, cls=cls: cls(m, best_f=top(m)))
add(
    analytic.qAnalyticProbabilityOfImprovement,
    2,
    lambda m: analytic.qAnalyticProbabilityOfImprovement(m, top(m)),
)
for cls in (analytic.LogConstrainedExpectedImprovement, analytic.ConstrainedExpectedImprovement):
    add(cls, 1, lambda m, cls=cls: cls(two(m), top(m), 0, {1: (None, 1.0)}))
add(
    analytic.LogProbabilityOfFeasibility,
    1,
    lambda m: analytic.LogProbabilityOfFeasibility(m, {0: (None, 1.0)}),
)
for cls in (analytic.NoisyExpectedImprovement, analytic.LogNoisyExpectedImprovement):
    add(cls, 1, lambda m, cls=cls: cls(m, POINTS, num_fantasies=FANTASIES))
add(analytic.UpperConfidenceBound, 1, ucb)
add(analytic.PosteriorMean, 1, analytic.PosteriorMean)
add(
    analytic.ScalarizedPosteriorMean,
    2,
    lambda m: analytic.ScalarizedPosteriorMean(m, weights=torch.tensor([0.3, 0.7], dtype=torch.float64)),
)
add(analytic.PosteriorStandardDeviation, 1, analytic.PosteriorStandardDeviation)
for cls in (
    monte_carlo.qExpectedImprovement,
    monte_carlo.qProbabilityOfImprovement,
    logei.qLogExpectedImprovement,
):
    add(cls, 2, lambda m, cls=cls: cls(m, best_f=top(m), sampler=qmc()))
    add(cls, 1, lambda m, cls=cls: cls(m, best_f=top(m), sampler=qmc(), X_pending=WAITING), "pending")
for cls in (monte_carlo.qNoisyExpectedImprovement, logei.qLogNoisyExpectedImprovement):
    add(cls, 2, lambda m, cls=cls: cls(m, POINTS, sampler=qmc()))
    add(cls, 1, lambda m, cls=cls: cls(m, POINTS, sampler=qmc(), X_pending=WAITING), "pending")
add(
    logei.qLogProbabilityOfFeasibility,
    2,
    lambda m: logei.qLogProbabilityOfFeasibility(m, constraints=[negative], sampler=qmc()),
)
for cls in (monte_carlo.qSimpleRegret, monte_carlo.qPosteriorStandardDeviation):
    add(cls, 2, lambda m, cls=cls: cls(m, sampler=qmc()))
for cls in (monte_carlo.qUpperConfidenceBound, monte_carlo.qLowerConfidenceBound):
    add(cls, 2, lambda m, cls=cls: cls(m, beta=2.0, sampler=qmc()))
add(
    qNegIntegratedPosteriorVariance,
    2,
    lambda m: qNegIntegratedPosteriorVariance(m, mc_points=POINTS, sampler=qmc(1)),
)
add(
    PairwiseMCPosteriorVariance,
    2,
    lambda m: PairwiseMCPosteriorVariance(m, GenericMCObjective(wins), sampler=qmc()),
)
add(qBayesianActiveLearningByDisagreement, 1, qBayesianActiveLearningByDisagreement)
add(
    FixedFeatureAcquisitionFunction,
    1,
    lambda m: FixedFeatureAcquisitionFunction(ucb(m), d=2, columns=[1], values=[0.5]),
)
add(
    qJointEntropySearch,
    2,
    lambda m: qJointEntropySearch(m, POINTS[:3], m.posterior(POINTS[:3]).mean.detach()),
)
add(qPredictiveEntropySearch, 1, lambda m: qPredictiveEntropySearch(m, POINTS[:3]))
add(
    qKnowledgeGradient,
    2 + FANTASIES,
    lambda m: qKnowledgeGradient(m, sampler=qmc(FANTASIES), num_fantasies=None),
)
add(
    qKnowledgeGradient,
    1 + FANTASIES,
    lambda m: qKnowledgeGradient(m, num_fantasies=None, sampler=qmc(FANTASIES), X_pending=WAITING),
    "pending",
)
add(
    qMultiFidelityKnowledgeGradient,
    2 + FANTASIES,
    lambda m: qMultiFidelityKnowledgeGradient(m, num_fantasies=None, sampler=qmc(FANTASIES)),
)
add(
    qMultiStepLookahead,
    2 + 2 * 2 + 2 * 2 * 1,
    lambda m: qMultiStepLookahead(m, [2, 1], samplers=[qmc(2), qmc(2)]),
)
add(ProjectedAcquisitionFunction, 1, lambda m: ProjectedAcquisitionFunction(ucb(m), lambda X: X))
for cls in (qMaxValueEntropy, qMultiFidelityMaxValueEntropy):
    add(cls, 1, lambda m, cls=cls: cls(m, POINTS, num_fantasies=FANTASIES))
    add(cls, 1, lambda m, cls=cls: cls(m, POINTS, num_fantasies=FANTASIES, X_pending=WAITING), "pending")
for cls in (qLowerBoundMaxValueEntropy, qMultiFidelityLowerBoundMaxValueEntropy):
    add(cls, 1, lambda m, cls=cls: cls(m, POINTS))
    add(cls, 1, lambda m, cls=cls: cls(m, POINTS, X_pending=WAITING), "pending")
add(
    MultiOutputAcquisitionFunctionWrapper,
    1,
    lambda m: MultiOutputAcquisitionFunctionWrapper([ucb(m), analytic.PosteriorMean(m)]),
)
add(MultiOutputPosteriorMean, 1, lambda m: MultiOutputPosteriorMean(two(m)))
add(
    PenalizedAcquisitionFunction,
    1,
    lambda m: PenalizedAcquisitionFunction(ucb(m), L2Penalty(torch.zeros(2, dtype=torch.float64)), 0.1),
)
add(PriorGuidedAcquisitionFunction, 1, lambda m: PriorGuidedAcquisitionFunction(ucb(m), Favourite()))
add(
    ProximalAcquisitionFunction,
    1,
    lambda m: ProximalAcquisitionFunction(ucb(m), torch.ones(2, dtype=torch.float64), beta=1.0),
)
add(PathwiseThompsonSampling, 2, PathwiseThompsonSampling)
add(AnalyticExpectedUtilityOfBestOption, 2, AnalyticExpectedUtilityOfBestOption)
add(
    AnalyticExpectedUtilityOfBestOption,
    1,
    lambda m: AnalyticExpectedUtilityOfBestOption(m, previous_winner=POINTS[:1]),
    "previous winner",
)
add(qExpectedUtilityOfBestOption, 3, lambda m: qExpectedUtilityOfBestOption(m, sampler=qmc()))
add(PairwiseBayesianActiveLearningByDisagreement, 2, PairwiseBayesianActiveLearningByDisagreement)
add(
    multi_analytic.ExpectedHypervolumeImprovement,
    1,
    lambda m: multi_analytic.ExpectedHypervolumeImprovement(two(m), REFERENCE.tolist(), front()),
)
for cls in (
    multi_monte_carlo.qExpectedHypervolumeImprovement,
    multi_logei.qLogExpectedHypervolumeImprovement,
):
    add(cls, 2, lambda m, cls=cls: cls(two(m), REFERENCE, front(), sampler=lists()))
for cls in (
    multi_monte_carlo.qNoisyExpectedHypervolumeImprovement,
    multi_logei.qLogNoisyExpectedHypervolumeImprovement,
):
    add(cls, 2, lambda m, cls=cls: cls(two(m), REFERENCE, POINTS, sampler=lists()))
add(MOMF, 2, lambda m: MOMF(two(m), REFERENCE, front(), sampler=lists()))
add(qLogNParEGO, 2, lambda m: qLogNParEGO(two(m), POINTS, sampler=lists()))


add(
    qHypervolumeKnowledgeGradient,
    2 + FANTASIES * 2,
    lambda m: qHypervolumeKnowledgeGradient(
        two(m), REFERENCE, num_fantasies=FANTASIES, num_pareto=2, sampler=lists(FANTASIES)
    ),
)
add(
    qMultiFidelityHypervolumeKnowledgeGradient,
    2 + FANTASIES * 2,
    lambda m: qMultiFidelityHypervolumeKnowledgeGradient(
        two(m), REFERENCE, {1: 1.0}, num_fantasies=FANTASIES, num_pareto=2, sampler=lists(FANTASIES)
    ),
)
# of one objective: a list of models has no `train_inputs`, which these three read
add(
    qLowerBoundMultiObjectiveMaxValueEntropySearch,
    1,
    lambda m: qLowerBoundMultiObjectiveMaxValueEntropySearch(m, CELLS),
)
add(
    qLowerBoundMultiObjectiveJointEntropySearch,
    1,
    lambda m: qLowerBoundMultiObjectiveJointEntropySearch(
        m, POINTS[None, :1], m.posterior(POINTS[None, :1]).mean.detach(), CELLS
    ),
)
add(
    qMultiObjectivePredictiveEntropySearch,
    1,
    lambda m: qMultiObjectivePredictiveEntropySearch(m, POINTS[None, :2]),
)


def discovered() -> set[type[AcquisitionFunction]]:
    """All classes of the package that can be constructed."""
    found = set()
    for module in pkgutil.walk_packages(botorch.acquisition.__path__, botorch.acquisition.__name__ + "."):
        for kind in vars(importlib.import_module(module.name)).values():
            if (
                inspect.isclass(kind)
                and issubclass(kind, AcquisitionFunction)
                and not inspect.isabstract(kind)
            ):
                found.add(kind)
    return found


def outcome(model: Model, name: str) -> str:
    """Empty if value and gradient are there and finite; otherwise what is wrong."""
    _, q, made = TABLE[name]
    d = 1 if name == "FixedFeatureAcquisitionFunction" else 2  # the other one is fixed
    X = uniform(3, q, d, seed=43).requires_grad_()
    try:
        acquisition = made(model)
        value = acquisition(X)
        (slope,) = torch.autograd.grad(value.sum(), X)
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    if len(value) != 3 or not (value.isfinite().all() and slope.isfinite().all()):
        return f"values {value.tolist()}, slopes finite: {bool(slope.isfinite().all())}"
    return "" if slope.any() else "no gradient"
