"""Simulated users answer as the model expects, and answers help them."""

import pytest
import torch

import askwise as aw
from askwise.numerics import ndtr
from askwise.study import Checkpoint, Plan, Preference, Simulation, YesNo, conclusion, simulated, simulation
from askwise.study.simulation import SimulatedUser


def plan(feedback: str = "duel") -> Plan:
    return Plan.checked(aw.Space(gain=aw.Real(0, 1), mode=aw.Choice(["a", "b"])), feedback)


@pytest.mark.slow
def test_answers_help_the_simulated_users():
    wanted = Simulation(plan(), 20, 6, 0)
    first, last = simulated(wanted)
    assert (first.answers, last.answers) == (10, 20)
    assert sorted(last.share)[3] > 0.8
    assert all(share <= 1 for share in last.share)
    assert all(0.5 <= chance <= 1 for chance in last.chance)


@pytest.mark.slow
def test_simulated_users_answer_as_the_model_expects():
    settings = [{"gain": 0.1, "mode": "a"}, {"gain": 0.7, "mode": "b"}, {"gain": 0.4, "mode": "a"}]
    user = SimulatedUser(Simulation(plan(), 1, 1, 5), 0)
    values = user.utilities(settings)
    question = aw.Question(0, settings[:2], (0, 1))
    rate = sum(user.answer(question) == Preference(0) for _ in range(4000)) / 4000
    assert rate == pytest.approx(float(ndtr(values[0] - values[1])), abs=0.03)
    user.plan = plan("binary")
    rate = sum(user.answer(aw.Question(0, settings[:1], (0,))) == YesNo(True) for _ in range(4000)) / 4000
    assert rate == pytest.approx(float(ndtr(values[0])), abs=0.03)
    user.plan = plan("batch")
    rankings = [user.answer(aw.Question(0, settings, (0, 1, 2))).ranking for _ in range(4000)]
    rate = sum(next(k for k in ranking if k < 2) == 0 for ranking in rankings) / 4000
    assert rate == pytest.approx(float(ndtr(values[0] - values[1])), abs=0.03)


def test_simulated_users_guess_and_lapse_as_the_plan_says():
    space, setting = aw.Space(gain=aw.Real(0, 1)), {"gain": 0.2}
    user = SimulatedUser(Simulation(Plan.checked(space, "binary", guess=0.3, lapses=0.1), 1, 1, 5), 0)
    user.utilities = lambda settings: torch.tensor([-9.0])  # nothing is perceived
    answers = [user.answer(aw.Question(0, [setting], (0,))) for _ in range(2000)]
    assert answers.count(YesNo(True)) / 2000 == pytest.approx(0.3, abs=0.05)
    user.utilities = lambda settings: torch.tensor([9.0])  # always yes, but for lapses
    answers = [user.answer(aw.Question(0, [setting], (0,))) for _ in range(2000)]
    assert answers.count(YesNo(False)) / 2000 == pytest.approx(0.1, abs=0.03)
    user = SimulatedUser(Simulation(Plan.checked(space, "duel", lapses=0.2), 1, 1, 5), 0)
    user.utilities = lambda settings: torch.tensor([9.0, -9.0])
    answers = [user.answer(aw.Question(0, [setting] * 2, (0, 1))) for _ in range(2000)]
    assert answers.count(Preference(1)) / 2000 == pytest.approx(0.1, abs=0.03)


@pytest.mark.slow
def test_users_vary_as_the_study_expects():
    wanted = Simulation(Plan.checked(aw.Space(u=aw.Real(0, 1))), 1, 1, 0)
    values = torch.stack([SimulatedUser(wanted, user).utilities([{"u": 0.3}])[0] for user in range(300)])
    # variance 4 on average over its log-normal prior of deviation 0.7
    assert float(values.mean()) == pytest.approx(0, abs=0.5)
    assert float(values.var()) == pytest.approx(4 * 2.718281828 ** (0.7**2 / 2), rel=0.35)


def test_users_are_judged_at_checkpoints_and_differ(monkeypatch):
    seeds, of = [], simulation.Study.of
    monkeypatch.setattr(simulation.Study, "of", lambda plan: seeds.append(plan.seed) or of(plan))
    space = aw.Space(gain=aw.Real(0, 1))
    wanted = Simulation(Plan.checked(space, rule="random", kernel=aw.kernel("se", 0.3, 4.0)), 12, 2, 0)
    steps: list[None] = []
    first, last = simulated(wanted, lambda: steps.append(None))
    assert (first.answers, last.answers, len(steps)) == (10, 12, 24)
    assert last.share[0] != last.share[1]
    assert seeds == [0, 1]
    assert all(share <= 1 for share in first.share + last.share)
    assert all(0.5 <= chance <= 1 for chance in first.chance + last.chance)


def test_users_of_yes_no_studies_are_judged_by_how_often_it_works():
    user = SimulatedUser(Simulation(plan("binary"), 1, 1, 5), 0)
    setting = {"gain": 0.1, "mode": "a"}
    share, chance = user.judged(setting)
    assert chance == pytest.approx(float(ndtr(user.utilities([setting])[0])))
    top = float(ndtr(torch.tensor(user.best)))
    assert share == pytest.approx((chance - user.average) / (top - user.average))


def test_the_conclusion_counts_users():
    last = Checkpoint(40, [k / 10 for k in range(1, 11)], [0.5] * 10)
    assert conclusion(last).startswith(
        "With 40 answers, 9 of 10 users are recommended a setting at least 20% of"
    )
