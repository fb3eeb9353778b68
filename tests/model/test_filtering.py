"""One more answer with the earlier sites as they are, against inference from all answers at once."""

import pytest
import torch

import askwise as aw
from askwise.model import Kernels, Stationary, filtered
from tensors import f64, uniform

KERNEL = aw.kernel("matern52", [0.3, 0.4], 2.0)
X = uniform(60, 2, seed=3)


def duels(*shape: int, count: int = 20, seed: int = 1) -> aw.Data:
    query = uniform(*shape, count, 2, 2, seed=seed)
    height = -9 * (query - 0.4).square().sum(-1)
    won = height[..., 0] - height[..., 1] + 2 * uniform(*shape, count, seed=5) - 1 > 0
    return aw.Data.duels(query, won.long())


def assert_follows(known: aw.Belief, later: aw.Belief, exact: aw.Belief) -> None:
    """It moves where the mean of all answers moves, but for a fifth of that."""
    moved = exact.mean(X) - known.mean(X)
    assert (later.mean(X) - exact.mean(X)).abs().max() < 0.2 * moved.abs().max()
    assert (later.variance(X) - exact.variance(X)).abs().max() < 0.2 * known.variance(X).max()
    gained = exact.log_evidence - known.log_evidence
    torch.testing.assert_close(later.log_evidence - known.log_evidence, gained, rtol=0.02, atol=0.01)


@pytest.mark.parametrize(
    "answer",
    [
        aw.Data.duels(f64([[[0.4, 0.5], [0.9, 0.2]]]), [1]),
        aw.Data.duels(f64([[[0.4, 0.5], [0.9, 0.2]]]), [1]).with_lapses(0.05),
        aw.Data.rankings(f64([[[0.4, 0.5], [0.9, 0.2], [0.1, 0.9]]]), [[1]]),
    ],
    ids=["duel", "lapse", "ranking"],
)
def test_one_more_answer_is_nearly_what_all_answers_give(answer):
    data = duels(count=30)
    known = aw.infer(data, KERNEL)
    assert_follows(known, filtered(known, answer), aw.infer(data + answer, KERNEL))


def test_the_first_answer_is_exact():
    nothing, answer = duels(count=0), aw.Data.binary(f64([[0.4, 0.5]]), [1])
    exact, found = aw.infer(answer, KERNEL), filtered(aw.infer(nothing, KERNEL), answer)
    for mine, theirs in zip(found.moments(X), exact.moments(X), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-6)
    torch.testing.assert_close(found.log_evidence, exact.log_evidence, rtol=0, atol=1e-6)


def test_a_lane_follows_as_it_would_alone():
    known, answer = aw.infer(duels(3), KERNEL), duels(3, count=1, seed=8)
    together = filtered(known, answer)
    for lane in range(3):
        alone = filtered(known.select(lane), answer.select(lane))
        torch.testing.assert_close(together.select(lane).mean(X), alone.mean(X), rtol=0, atol=1e-9)


def test_kernels_that_foresaw_the_answer_get_more_weight():
    data, answer = duels(count=30), aw.Data.duels(f64([[[0.4, 0.5], [0.9, 0.2]]]), [0])
    lengths = f64([[0.1, 0.1], [0.5, 0.4], [1.0, 2.0]])
    kernels = Kernels.equally_likely(Stationary("matern52", lengths, f64([1.0, 2.0, 4.0])))
    known, exact = aw.infer(data, kernels), aw.infer(data + answer, kernels)
    later = filtered(known, answer)
    assert (exact.weights - known.weights).abs().max() > 0.01
    torch.testing.assert_close(later.weights, exact.weights, rtol=0, atol=0.01)
    assert (later.mean(X) - exact.mean(X)).abs().max() < 0.2 * (exact.mean(X) - known.mean(X)).abs().max()


def test_what_others_say_moves_a_person_less():
    points = torch.cat(
        [uniform(20, 2, 2, seed=2), (torch.arange(20) % 2).double().repeat(2, 1).T[..., None]], -1
    )
    data = aw.Data.duels(points, (points[:, 0, 0] > points[:, 1, 0]).long()).with_raters().with_share(0.4)
    query = torch.cat([f64([[[0.4, 0.5], [0.9, 0.2]]]), f64([[[1.0], [1.0]]])], -1)
    answer = aw.Data.duels(query, [1]).with_raters()
    everybody, all_at_once = aw.infer(data, KERNEL), aw.infer(data + answer, KERNEL)
    for rater in (0, 1):
        known = everybody.of_rater(rater)
        later, exact = filtered(known, answer), all_at_once.of_rater(rater)
        moved = (exact.mean(X) - known.mean(X)).abs().max()
        assert (later.mean(X) - exact.mean(X)).abs().max() < 0.2 * moved
