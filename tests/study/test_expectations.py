"""What is left to gain, against its definition, and in lanes."""

import pytest
import torch

import askwise as aw
from askwise.search import Search
from askwise.study import FEEDBACKS, Answer, expectations
from tensors import f64, seeded, uniform

LANES = 3
KERNEL = aw.kernel("matern52", [0.3, 0.4], 2.0)
kinds = pytest.mark.parametrize("kind", [FEEDBACKS["duel"], FEEDBACKS["binary"]], ids=["duel", "binary"])


def rows(kind, query, outcome):
    """Answers [lane, n] to queries [lane, n, m, d]."""
    return aw.Data.duels(query, outcome) if kind.compares else aw.Data.binary(query[..., 0, :], outcome)


def asked(kind, count: int) -> aw.Data:
    query = uniform(LANES, count, kind.size, 2, seed=count)
    height = 3 - 9 * (query - 0.4).square().sum(-1)
    lead = height[..., 0] - height[..., 1] if kind.compares else height[..., 0] - 1
    return rows(kind, query, (lead + 2 * uniform(LANES, count, seed=5) - 1 > 0).long())


def looked(kind, belief: aw.Belief, source) -> expectations.Expectations:
    lanes = belief.data.lanes
    query = uniform(kind.size, 2, seed=9).expand(*lanes, -1, -1).contiguous()

    def answered(points: torch.Tensor, answer: Answer) -> aw.Data:
        outcome = torch.full((*lanes, 1), float(answer == kind.either[0]))
        return rows(kind, points.unsqueeze(-3), outcome)

    search = Search.around(belief, source(1))
    chances = kind.chances(belief, query, seeded())
    with torch.no_grad():
        return expectations.expectations(
            kind, belief, KERNEL, search, query, chances, answered, source=source(2)
        )


@kinds
def test_a_lane_expects_what_it_would_alone(kind):
    belief = aw.infer(asked(kind, 12), KERNEL)
    together = looked(kind, belief, lambda seed: [seeded(seed + 10 * lane) for lane in range(LANES)])
    for lane in range(LANES):
        alone = looked(kind, belief.select(lane), lambda seed, lane=lane: seeded(seed + 10 * lane))
        for name, value in vars(alone).items():
            assert value.shape == torch.Size()
            torch.testing.assert_close(getattr(together, name)[lane], value, rtol=0, atol=1e-6)


@kinds
def test_expectations_are_those_of_draws_of_f(kind, monkeypatch):
    monkeypatch.setattr(expectations, "_DRAWS", 4000)
    monkeypatch.setattr(expectations, "_RIVALS", 300)
    belief = aw.infer(asked(kind, 25), KERNEL).select(0)
    found, search = looked(kind, belief, seeded), Search.around(belief, seeded(1))
    point = kind.champion(search, belief)
    points = torch.cat([point, search.warm, search.space_filling(300)])
    mean, cov = belief.joint(points)
    lower = torch.linalg.cholesky(cov + 1e-8 * torch.eye(len(cov)))
    drawn = mean + torch.randn(4000, len(mean), generator=seeded(3), dtype=torch.float64) @ lower.mT
    here, top = drawn[:, 0], drawn.amax(-1)
    success = torch.special.ndtr
    rate = success(top - here) if kind.compares else success(top) - success(here)
    others = drawn[:, -300:]
    if kind.compares:
        better = success(others - here[:, None]) >= 2 / 3
    else:
        better = success(others) - success(here)[:, None] >= 0.1
    assert float(found.regret) == pytest.approx(float((top - here).mean()), abs=0.04)
    assert float(found.rate) == pytest.approx(float(rate.mean()), abs=0.015)
    few = float((better.sum(-1) < 3).double().mean())
    assert 0.1 < few < 0.95
    assert float(found.few) == pytest.approx(few, abs=0.04)


def test_the_rate_of_a_setting_is_how_often_it_is_preferred():
    apart, margin = 0.7, 0.4
    noisy = apart + torch.randn(400_000, generator=seeded(), dtype=torch.float64)
    wins, ties = (noisy > margin).double().mean(), (noisy.abs() <= margin).double().mean()
    found = expectations.rate(FEEDBACKS["duel"], f64(1.0), f64(1.0 - apart), margin)
    assert float(found) == pytest.approx(float(wins + ties / 2), abs=4e-3)


def test_confidence_counts_settings_next_to_the_best_one_as_the_same():
    belief = aw.infer(asked(FEEDBACKS["duel"], 20), KERNEL).select(0)
    best, far = f64([[0.4, 0.4]]), uniform(4, 2, seed=3)
    near = torch.cat([best + 0.019, far])
    alone = expectations.probability_of_best(belief, torch.cat([best, near]), seeded())
    assert float(alone.sum()) == pytest.approx(1)
    sure = expectations.confidence(belief, best, near, seeded())
    assert float(sure) == pytest.approx(float(alone[:2].sum()))
    mean, cov = belief.joint(torch.cat([best, near]))
    drawn = (
        mean
        + torch.randn(20_000, 6, generator=seeded(4), dtype=torch.float64)
        @ torch.linalg.cholesky(cov + 1e-10 * torch.eye(6)).mT
    )
    assert float(sure) == pytest.approx(float((drawn.argmax(-1) < 2).double().mean()), abs=0.06)
