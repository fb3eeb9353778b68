"""Scores of groups: values from the belief's own duels, gradients by autograd and by finite differences."""

import pytest
import torch
from torch import Tensor

import askwise as aw
from askwise.model import Belief, GroupScore
from askwise.numerics import by_autograd
from tensors import f64, uniform

LENGTHS, SCALES = f64([[0.3, 0.6], [0.2, 0.9], [1.5, 0.4]]), f64([1.0, 2.5, 0.4])


def all_duels(var: Tensor, epistemic: Tensor) -> Tensor:
    return epistemic.sum((-2, -1)) / 2


def lopsided(var: Tensor, epistemic: Tensor) -> Tensor:
    """A total in which every pair has another weight, and the variances matter, too."""
    weight = torch.linspace(0.2, 1.0, var.shape[-1], dtype=var.dtype)
    return (weight[:, None] * weight.square() * (epistemic.square() + (var + 1e-3).sqrt())).sum((-2, -1))


def belief(name: str, lanes: tuple[int, ...], own: bool) -> Belief:
    pairs = uniform(*lanes, 12, 2, 2, seed=1)
    data = aw.Data.duels(pairs, uniform(*lanes, 12, seed=2) > 0.4)
    return aw.infer(data, aw.kernel(name, *((LENGTHS, SCALES) if own else (LENGTHS[0], 2.5))))


@pytest.mark.parametrize("total", [all_duels, lopsided])
@pytest.mark.parametrize(("lanes", "own"), [((), False), ((3,), False), ((3,), True)])
@pytest.mark.parametrize("name", ["se", "matern32", "matern52"])
def test_gradients_agree_with_autograd_and_finite_differences(name, lanes, own, total):
    score = GroupScore(belief(name, lanes, own), uniform(*lanes, 1, 2, seed=3), total)
    x = uniform(4, *lanes, 3, 2, seed=4)
    value, grad = score.with_gradient(x)
    want, by_x = by_autograd(score, x)
    torch.testing.assert_close(value, want, rtol=1e-11, atol=1e-13)
    torch.testing.assert_close(grad, by_x, rtol=1e-9, atol=1e-11)
    for member, k in ((0, 1), (2, 0)):
        step = torch.zeros_like(x)
        step[..., member, k] = 1e-6
        slope = (score(x + step) - score(x - step)) / 2e-6
        torch.testing.assert_close(grad[..., member, k], slope, rtol=1e-5, atol=1e-7)


def test_gradients_of_a_group_that_contains_the_champion_are_finite():
    one = belief("matern52", (), False)
    champion = uniform(1, 2, seed=3)
    value, grad = GroupScore(one, champion, all_duels).with_gradient(champion.expand(1, 2, 2))
    assert value.abs().item() < 1e-12
    assert grad.isfinite().all()


def test_gradients_far_from_the_data_and_in_the_tails_agree_with_autograd():
    x = f64([[[0.1], [0.9]]] * 40)
    sure = aw.infer(aw.Data.duels(x, torch.ones(40)), aw.kernel("se", 0.3, 400.0))
    score = GroupScore(sure, f64([[0.1]]), all_duels)
    at = f64([[[0.9], [0.11]], [[0.88], [0.5]]])
    value, grad = score.with_gradient(at)
    want, by_x = by_autograd(score, at)
    torch.testing.assert_close(value, want, rtol=1e-9, atol=0)
    torch.testing.assert_close(grad, by_x, rtol=1e-7, atol=1e-12)


def test_of_several_kernels_the_gradient_is_that_of_autograd():
    kernels = aw.model.Kernels.equally_likely(aw.model.Stationary("matern52", LENGTHS, SCALES))
    pairs = uniform(12, 2, 2, seed=1)
    mixture = aw.infer(aw.Data.duels(pairs, uniform(12, seed=2) > 0.4), kernels)
    score = GroupScore(mixture, uniform(1, 2, seed=3), all_duels)
    assert not score.in_closed_form
    x = uniform(4, 3, 2, seed=4)
    got, want = score.with_gradient(x), by_autograd(score, x)
    torch.testing.assert_close(got, want, rtol=0, atol=0)
