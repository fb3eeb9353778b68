"""The scores of batches that were tried, against draws, and the answers of simulated people."""

import numpy as np
import pytest
import torch

import askwise as aw
from askwise.model import Data
from campaigns import script
from tensors import uniform


@pytest.fixture(scope="module")
def people():
    with script("people") as module:
        yield module


def drawn(mean: torch.Tensor, cov: torch.Tensor, count: int, seed: int = 0) -> torch.Tensor:
    source = torch.Generator().manual_seed(seed)
    normal = torch.randn(count, len(mean), generator=source, dtype=torch.float64)
    return mean + normal @ torch.linalg.cholesky(cov).mT


@pytest.mark.parametrize("spread", [0.0, 0.5, 2.0])
def test_choice_probabilities_are_how_often_each_is_best(people, spread):
    utilities = spread * torch.tensor([0.3, -0.5, 1.0, 0.1], dtype=torch.float64)
    best = drawn(utilities, torch.eye(4, dtype=torch.float64) / 2, 400_000).argmax(-1)
    want = torch.bincount(best, minlength=4) / len(best)
    torch.testing.assert_close(people.choice_probabilities(utilities), want.double(), rtol=0, atol=3e-3)


@pytest.mark.parametrize("spread", [0.0, 0.5, 2.0, 10.0])
def test_order_probabilities_are_how_often_each_order_is_seen(people, spread):
    utilities = spread * torch.tensor([0.3, -0.5, 1.0, 0.1], dtype=torch.float64)
    order = drawn(utilities, torch.eye(4, dtype=torch.float64) / 2, 400_000).argsort(-1)
    seen = torch.unique(order, dim=0, return_counts=True)[1] / len(order)
    want = torch.cat([seen, torch.zeros(24 - len(seen))]).double().sort().values
    got = people.order_probabilities(utilities).sort().values  # which order is which does not matter
    torch.testing.assert_close(got, want, rtol=0, atol=0.01)


def belief_and_points() -> tuple[aw.model.Belief, torch.Tensor]:
    data = Data.duels(uniform(6, 2, 2, seed=1), [1, 0, 1, 1, 0, 1])
    return aw.infer(data, aw.kernel("matern52", 0.3, 4.0)), uniform(4, 2, seed=2)


@pytest.mark.parametrize("answer", ["winner", "order"])
def test_information_is_that_of_the_definition(people, answer):
    belief, x = belief_and_points()
    probabilities = {"winner": people.choice_probabilities, "order": people.order_probabilities}
    score = {"winner": people.winner_information, "order": people.order_information}
    rates = probabilities[answer](drawn(*belief.joint(x), 100_000))
    mean = rates.mean(0)
    want = -(mean * mean.log()).sum() + (rates * rates.clamp_min(1e-30).log()).sum(-1).mean()
    assert score[answer](belief, x).item() == pytest.approx(want.item(), rel=0.15)


def test_the_expected_best_is_that_of_the_definition(people):
    belief, x = belief_and_points()
    want = drawn(*belief.joint(x), 200_000).amax(-1).mean()
    assert people.best_option(belief, x).item() == pytest.approx(want.item(), abs=0.05)


def test_people_say_what_they_are_asked_of_the_order_they_see(people):
    x, order = uniform(1, 1, 4, 2, seed=3), torch.tensor([[[2, 0, 3, 1]]])
    for said, want in (
        ("best", Data.rankings(x, [[[2]]])),
        ("worst", Data.worst(x, [[1]])),
        ("ranking", Data.rankings(x, [[[2, 0, 3]]])),
    ):
        got = people.rows(said, x, order)
        for mine, other in zip(got._parts(), want._parts(), strict=True):
            torch.testing.assert_close(mine, other)


def test_results_are_of_every_arm_where_it_was_run(people):
    found = people.results()
    assert set(found) == {arm.label for arm in people.ARMS}
    for arm in people.ARMS:
        dims = np.array([people.FUNCTIONS[name].dim for name in people.NAMES])
        assert (np.isfinite(found[arm.label]).all((1, 2)) == np.isin(dims, arm.dims)).all()
        assert (found[arm.label][np.isin(dims, arm.dims)] > -1e-6).all()
