"""What runs learn of people who lapse, can't decide or differ: as in a study, lane by lane."""

import math

import pytest
import torch

import askwise as aw
from askwise.bench.experiments import EXPERIMENTS, Arm, Experiment
from askwise.bench.habits import Habits
from askwise.bench.lanes import RunId, run
from askwise.bench.tastes import Tastes
from askwise.bench.user import UNDECIDED, User
from askwise.model import Data, expected_kernel, fit, with_fitted_margin, with_rater_column
from tensors import f64, uniform

PEOPLE = ("pbo-lapses", "pbo-ties", "pbo-raters")


def answers(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int8)[None, :, None]


def test_a_tie_is_a_duel_that_nobody_won():
    asked = uniform(1, 3, 2, 2)
    found = Habits(User(margin=0.5)).data(asked, answers(1, UNDECIDED, 0))
    assert found.signs.tolist() == [[1.0, 0.0, -1.0]]
    assert found.margin.tolist() == [0.5]
    apart = Data.duels(asked[:, :1], [[1]]) + Data.ties(asked[:, 1:2]) + Data.duels(asked[:, 2:], [[0]])
    kernel = aw.kernel("matern52", 0.4, 2.0)
    x = uniform(5, 2)
    for one, other in zip(
        aw.infer(found, kernel).moments(x), aw.infer(apart, kernel).moments(x), strict=True
    ):
        torch.testing.assert_close(one, other)


def test_people_answer_in_turn():
    asked = uniform(2, 5, 2, 3)
    found = Habits(User(people=2, own=0.3)).data(asked, torch.ones(2, 5, 1, dtype=torch.int8))
    assert found.points.shape[-1] == 3
    assert found.row_rater.tolist() == [[0, 1, 0, 1, 0]] * 2
    rows = [Data.duels(with_rater_column(asked[:, [at]], at % 2), [[1], [1]]) for at in range(5)]
    apart = sum(rows[1:], rows[0]).with_raters()
    torch.testing.assert_close(
        found.points.gather(-2, found.first[..., None].expand(-1, -1, 3)),
        apart.points.gather(-2, apart.first[..., None].expand(-1, -1, 3)),
    )


def test_the_margin_and_the_lapse_rate_are_learned_as_in_a_study():
    asked, user = uniform(1, 24, 2, 1), User(1 / 3, lapses=0.05, margin=0.5)
    said = user.answers(6 * asked[..., 0], uniform(1, 24, 1, seed=3))
    habits, prior = Habits(user), expected_kernel("matern52", [0.2])
    data = habits.data(asked, said)
    found, fitted = habits.fitted(data, prior)
    observer = aw.model.Observer.start(data, 1, ["lapse"])
    seen = data.with_margin(with_fitted_margin(observer.applied(data), prior).margin)
    by_hand = fit(seen, prior, observer=observer, learn=["lapse"])
    assert found.margin is not None
    assert found.margin.item() not in (0.0, 0.5)
    assert torch.equal(found.margin, seen.margin)
    assert torch.equal(fitted.kernel.outputscale, by_hand.kernel.outputscale)
    assert found.observer is not None
    assert by_hand.observer is not None
    assert torch.equal(found.observer.lapse, by_hand.observer.lapse)
    applied = found.applied(data)
    assert torch.equal(applied.margin, seen.margin)
    assert torch.equal(applied.lapse[0], found.observer.lapse[0].expand(24))


def test_a_lane_without_ties_so_far_has_the_usual_margin_when_the_first_comes():
    habits = Habits(User(margin=0.5), margin=f64([0.0, 0.3, 0.3]))
    data = Data.duels(uniform(3, 2, 2, 1), [[1, 0.5], [0.5, 0], [1, 0]])
    assert habits.applied(data).margin.tolist() == [0.5, 0.3, 0.0]


def test_a_plain_user_is_what_the_model_expects():
    data = Data.duels(uniform(2, 6, 2, 1), torch.ones(2, 6))
    habits, fitted = Habits(User()).fitted(data, expected_kernel("matern52", [0.2]))
    assert fitted.observer is None
    assert habits.applied(data) is data


def test_tastes_have_mean_zero_and_the_variance_and_lengthscale_they_should():
    d, people = 2, 400
    tastes = Tastes.drawn([("one", lane) for lane in range(20)], people, d)
    x = f64([[0.2, 0.7], [0.4, 0.6], [0.9, 0.1]]).expand(20, -1, -1)
    values = torch.stack([tastes.values(x, person) for person in range(people)], 1).flatten(0, 1)
    error = 6 / math.sqrt(len(values))
    assert float(values.mean(0).abs().max()) < error
    squared = torch.cdist(x[0], x[0]).square() / (d / 16)
    torch.testing.assert_close(values.T @ values / len(values), (-squared / 2).exp(), rtol=0, atol=2 * error)


def test_tastes_are_those_of_the_seed_and_everybody_has_their_own():
    one, same, other = (Tastes.drawn([seed], 2, 1) for seed in (("a", 1), ("a", 1), ("a", 2)))
    x = uniform(1, 4, 1)
    assert torch.equal(one.values(x, 0), same.values(x, 0))
    assert not torch.equal(one.values(x, 0), other.values(x, 0))
    assert not torch.equal(one.values(x, 0), one.values(x, 1))


@pytest.mark.parametrize("name", PEOPLE)
def test_a_lane_of_such_people_run_with_others_is_the_lane_run_alone(name):
    of = EXPERIMENTS[name].reduced(functions=("forrester", "gramacy_lee"), replicates=1, iterations=9)
    ids = [RunId(of.name, function, "muc", 0) for function in of.functions]
    together = run(of, ids)
    for lane, run_id in enumerate(ids):
        alone = run(of, [run_id])
        assert torch.equal(together.answers[lane, None], alone.answers)
        for part in ("questions", "optima", "scores"):
            torch.testing.assert_close(
                getattr(together, part)[lane, None], getattr(alone, part), rtol=0, atol=1e-5
            )


def test_people_with_the_same_taste_are_one_person_if_nothing_is_ones_own():
    # the share is learned, so questions differ, but all answer by the same function
    user = User(1e-9, people=3, own=0.0)
    of = Experiment(
        "agree", "All agree", "For tests.", (Arm("random", 2),), 1, 6, 2, "standardised", "learned",
        functions=("forrester",), user=user,
    )  # fmt: skip
    found = run(of, [RunId("agree", "forrester", "random", 0)])
    values = aw.bench.problems.Problem.of("forrester", "standardised").value(found.questions)
    assert torch.equal(found.answers[..., 0] == 1, values[..., 0] > values[..., 1])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"arms": (Arm("muc", 3),), "user": User(margin=0.5)},
            "queries must be duels if a user",
        ),
        ({"prior": "likelihood", "user": User(people=2)}, "prior must be learned along with what people are"),
    ],
)
def test_experiments_that_no_model_fits_are_refused(given, message):
    usual = {"arms": (Arm("muc", 2),), "replicates": 1, "iterations": 3, "initial": 2}
    usual |= {"scale": "standardised", "prior": "learned"}
    with pytest.raises(aw.errors.Refused, match=f"^{message}"):
        Experiment("refused", "Refused", "For tests.", **usual | given)
