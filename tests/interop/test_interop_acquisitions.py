"""Every acquisition function of BoTorch runs on a belief if it runs on BoTorch's own PairwiseGP."""

import re
from pathlib import Path

import pytest
import torch
from acquisitions import POINTS, TABLE, WAITING, discovered, outcome, qmc
from botorch.acquisition.analytic import UpperConfidenceBound
from botorch.acquisition.knowledge_gradient import qKnowledgeGradient
from botorch.acquisition.max_value_entropy_search import qLowerBoundMaxValueEntropy, qMaxValueEntropy
from botorch.acquisition.proximal import ProximalAcquisitionFunction
from botorch.acquisition.thompson_sampling import PathwiseThompsonSampling
from botorch.models import PairwiseGP, SingleTaskGP
from botorch.models.model import Model
from botorch.optim import optimize_acqf
from botorch.utils.sampling import manual_seed

import askwise as aw
from askwise.interop.botorch import BeliefModel
from tensors import uniform

# of BoTorch: advice to use another function, inputs that are not scaled, matrices that need jitter
pytestmark = [
    pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.BotorchWarning"),
    pytest.mark.filterwarnings("ignore::linear_operator.utils.warnings.NumericalWarning"),
    pytest.mark.filterwarnings("ignore::gpytorch.utils.warnings.NumericalWarning"),
]
PAGE = Path(__file__).parents[2] / "docs" / "interop.md"
BOUNDS = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)

# These do not work, and not with PairwiseGP either, for a reason that lies in the function.
EXCLUDED = {
    # they build a SingleTaskGP from the model's training data, and accept no other model
    "NoisyExpectedImprovement": "`SingleTaskGP`",
    "LogNoisyExpectedImprovement": "`SingleTaskGP`",
    # it compares the members of a sampled ensemble; a belief has one member
    "qBayesianActiveLearningByDisagreement": "SaasFullyBayesianSingleTaskGP",
    # they condition on values of f at the optimum; a belief is conditioned on answers alone
    "qJointEntropySearch": "noise",
    "qLowerBoundMultiObjectiveJointEntropySearch": "Y must be answers",
}


def duels() -> tuple[torch.Tensor, torch.Tensor]:
    """Pairs of points, and whether the first of them won."""
    pairs = uniform(10, 2, 2, seed=2)
    return pairs, (pairs[:, 0].sum(-1) > pairs[:, 1].sum(-1)).long()


def kernel(outputscale: float = 2.0):
    return aw.kernel("matern52", [0.3, 0.4], outputscale)


def binary_belief() -> Model:
    data = aw.Data.binary(uniform(12, 2, seed=1), (uniform(12, seed=3) < 0.6).long())
    return BeliefModel(aw.infer(data, kernel()))


def duel_belief() -> Model:
    return BeliefModel(aw.infer(aw.Data.duels(*duels()), kernel()))


def pairwise_gp() -> Model:
    pairs, won = duels()
    places = torch.arange(20).reshape(10, 2)
    winners_first = torch.where(won[:, None] > 0, places, places.flip(-1))
    return PairwiseGP(pairs.flatten(0, 1), winners_first, covar_module=kernel(4.0)).eval()


def regression(noise: float | None) -> Model:
    """With noise that is known or not."""
    x = uniform(12, 2, seed=1)
    y = (6 * x).sin().sum(-1, keepdim=True)
    return SingleTaskGP(x, y, train_Yvar=None if noise is None else torch.full_like(y, noise)).eval()


OURS = {"binary": binary_belief, "duel": duel_belief}


def test_the_table_has_every_acquisition_function_of_botorch():
    assert {kind for kind, *_ in TABLE.values()} == discovered()


_COMPILED = "qLogExpectedHypervolumeImprovement"  # by torch, when it is first used: half a minute


@pytest.mark.parametrize("kind", OURS)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name == _COMPILED else name for name in TABLE]
)
def test_value_and_gradient_are_there_unless_a_reason_is_known(kind, name):
    with manual_seed(0):
        wrong = outcome(OURS[kind](), name)
    if name in EXCLUDED:
        assert EXCLUDED[name] in wrong
    else:
        assert not wrong


def test_what_works_with_pairwise_gp_works_with_a_belief():
    with manual_seed(0):
        works = {name for name in TABLE if not outcome(pairwise_gp(), name)}
    assert len(works) > 40
    assert not works & set(EXCLUDED)


def test_what_does_not_work_is_constructed_as_botorch_wants_it():
    """Else the table might be to blame: each works with a regression, but for that of an ensemble."""
    with manual_seed(0):
        fails = {name for name in EXCLUDED if all(outcome(regression(noise), name) for noise in (None, 0.01))}
    assert fails == {"qBayesianActiveLearningByDisagreement"}


def candidates(model: Model) -> dict[str, tuple[torch.nn.Module, int]]:
    """Acquisition functions that read more than a posterior, and how many points to find."""
    return {
        "max-value entropy": (qMaxValueEntropy(model, POINTS, num_fantasies=4, X_pending=WAITING), 1),
        "GIBBON": (qLowerBoundMaxValueEntropy(model, POINTS, X_pending=WAITING), 1),
        "knowledge gradient": (qKnowledgeGradient(model, num_fantasies=None, sampler=qmc(4)), 2),
        "proximal": (ProximalAcquisitionFunction(UpperConfidenceBound(model, 2.0), BOUNDS[1], beta=1.0), 1),
        "Thompson": (PathwiseThompsonSampling(model), 2),
    }


SEARCHED = [
    "max-value entropy",
    "GIBBON",
    pytest.param("knowledge gradient", marks=pytest.mark.slow),
    "proximal",
    "Thompson",
]


@pytest.mark.parametrize("kind", OURS)
@pytest.mark.parametrize("which", SEARCHED)
def test_botorchs_search_improves_on_random_points(kind, which):
    with manual_seed(0):
        acquisition, q = candidates(OURS[kind]())[which]
        found, value = optimize_acqf(
            acquisition, BOUNDS, q=q, num_restarts=2, raw_samples=16, options={"maxiter": 30}
        )
        size = acquisition.get_augmented_q_batch_size(q) if which == "knowledge gradient" else q
        by_chance = acquisition(uniform(8, size, 2, seed=7))
    assert found.shape == (q, 2)
    assert value > by_chance.max() - 1e-6


def test_the_page_says_what_works_and_what_does_not():
    section = PAGE.read_text(encoding="utf-8").partition("## Acquisition functions")[2]
    works, fails = (set(re.findall(r"`(\w+)`", part)) for part in section.split("These do not work")[:2])
    excluded = {kind.__name__ for name, (kind, *_) in TABLE.items() if name in EXCLUDED}
    assert (
        works & {kind.__name__ for kind in discovered()}
        == {kind.__name__ for kind in discovered()} - excluded
    )
    assert excluded <= fails
