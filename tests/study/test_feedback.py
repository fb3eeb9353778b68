"""Which answers may come and how likely they are, when to stop, and what else differs between kinds."""

import functools
from dataclasses import replace

import pytest
import torch

import askwise as aw
from askwise.numerics import ndtr
from askwise.study import FEEDBACKS, Model, Outlook, Plan, Preference, outlook
from askwise.study.answers import Ranking, Tie, Worst, YesNo
from askwise.study.recommendation import hint
from askwise.study.searching import search_about
from tensors import f64

KERNEL = aw.kernel("se", 0.3, 4.0)
QUERY = f64([[0.2], [0.9]])


def belief(margin: float = 0.0) -> aw.Belief:
    data = aw.Data.duels([[[0.2], [0.6]], [[0.6], [0.9]]], [0, 1])
    if margin:
        data = (data + aw.Data.ties([[[0.4], [0.5]]])).with_margin(margin)
    return aw.infer(data, KERNEL)


@pytest.mark.parametrize("margin", [0.0, 0.7])
def test_chances_of_a_duel_are_those_of_the_noisy_difference(margin, generator):
    known = belief(margin)
    mean, var = known.difference(QUERY[:1], QUERY[1:])
    lead = mean + (1 + var).sqrt() * torch.randn(400_000, generator=generator, dtype=torch.float64)
    expected = {Preference(0): lead > margin, Preference(1): lead < -margin}
    if margin:
        expected[Tie()] = lead.abs() <= margin
    found = FEEDBACKS["duel"].chances(known, QUERY, generator)
    assert [answer for _, answer in found] == list(expected)
    for chance, answer in found:
        assert chance == pytest.approx(expected[answer].double().mean().item(), abs=4e-3)
    assert sum(chance for chance, _ in found) == pytest.approx(1)


def test_chances_of_a_yes_are_success_probabilities(generator):
    known = belief()
    (yes, one), (no, other) = FEEDBACKS["binary"].chances(known, QUERY[:1], generator)
    assert (one, other) == (YesNo(True), YesNo(False))
    assert yes == pytest.approx(known.success_probability(QUERY[:1]).item())
    assert no == pytest.approx(1 - yes)


@pytest.mark.parametrize("margin", [0.0, 0.7])
def test_chances_in_a_batch_of_two_are_those_of_a_duel(margin, generator):
    query = f64([[0.2], [0.6]])
    data = aw.Data.duels(query.expand(20, 2, 1), [1] * 15 + [0] * 5)  # the noise is most of what is unknown
    known = aw.infer(data + aw.Data.ties(query[None]).with_margin(margin) if margin else data, KERNEL)
    duel = FEEDBACKS["duel"].chances(known, query, generator)
    batch = FEEDBACKS["batch"].chances(known, query, generator)
    assert [answer for _, answer in batch] == [Ranking((0,)), Ranking((1,)), Tie()][: len(batch)]
    assert [float(chance) for chance, _ in batch] == pytest.approx(
        [float(chance) for chance, _ in duel], abs=0.025
    )


def test_likely_answers_are_all_winners_of_a_small_batch_or_all_worsts_after_one():
    assert FEEDBACKS["binary"].likely_answers(1, None) == [YesNo(True), YesNo(False)]
    assert FEEDBACKS["duel"].likely_answers(2, Preference(0)) == [Preference(0), Preference(1)]
    for last in (None, Ranking((0, 1)), Tie()):
        assert FEEDBACKS["batch"].likely_answers(6, last) == [Ranking((option,)) for option in range(6)]
    assert FEEDBACKS["batch"].likely_answers(4, Worst(1)) == [Worst(option) for option in range(4)]
    assert FEEDBACKS["batch"].likely_answers(7, Worst(1)) == []


def test_a_yes_no_study_has_a_model_when_it_has_both_outcomes():
    kind = FEEDBACKS["binary"]
    assert kind.has_both_outcomes(aw.Data.binary([[0.1], [0.2]], [1, 0]))
    for only in (0, 1):
        assert not kind.has_both_outcomes(aw.Data.binary([[0.1], [0.2]], [only, only]))
        assert FEEDBACKS["duel"].has_both_outcomes(aw.Data.duels([[[0.1], [0.2]]], [only]))


@pytest.mark.parametrize("feedback", FEEDBACKS)
def test_simulated_people_answer_as_often_as_the_model_expects(feedback, generator):
    values = f64([0.4, -0.3][: 1 if feedback == "binary" else 2])
    first = {"binary": YesNo(True), "duel": Preference(0), "batch": Ranking((0,))}[feedback]
    rate = sum(FEEDBACKS[feedback].simulated(values, generator) == first for _ in range(2000)) / 2000
    lead = values[0] - values[1] if len(values) == 2 else values[0]
    assert rate == pytest.approx(ndtr(lead).item(), abs=0.04)


SURELY = "with a probability of {} fewer than one setting in a hundred would "
DUELS = (
    "win two of three duels with the recommended one. In nine of ten simulated studies that said so, fewer "
    "than one in twenty would. A peak that takes up less than a twentieth of the space "
)
YES_NO = "succeed 10% more often than the recommended one. A peak that takes up less than a hundredth of the "
PERHAPS = "Go on: with a probability of {} more than one setting in a hundred would "


@pytest.mark.parametrize(
    ("feedback", "answers", "rate", "few", "words"),
    [
        (
            "duel",
            9,
            0.6,
            0.89,
            PERHAPS.format("11%") + "win two of three duels with the recommended one. The",
        ),
        (
            "duel",
            10,
            2 / 3,
            0.9,
            "Go on: hardly any setting would win two of three duels with the recommended",
        ),
        ("duel", 9, 0.66, 0.9, "Go on a little: " + SURELY.format("90%") + "win two of three duels"),
        ("duel", 10, 0.66, 0.9, "You may stop: " + SURELY.format("90%") + "win two of three duels"),
        ("binary", 10, 0.09, 0.5, PERHAPS.format("50%") + "succeed 10% more often than the recommended one."),
        (
            "binary",
            10,
            0.1,
            0.9,
            "Go on: hardly any setting would succeed 10% more often than the recommended",
        ),
        (
            "duel",
            10,
            0.66,
            0.93,
            f"You may stop: {SURELY.format('93%')}{DUELS}",
        ),
        (
            "binary",
            10,
            0.09,
            0.9,
            f"You may stop: {SURELY.format('90%')}{YES_NO}",
        ),
        ("duel", 9, None, 0, "Go on: too little has been answered"),
        ("binary", 2, None, 0, "Go on: too little has been answered"),
        ("binary", 3, None, 0, "Go on: before anything can be said there must be a yes and a no"),
    ],
)
def test_when_to_stop(feedback, answers, rate, few, words):
    plan = Plan.checked(aw.Space(u=aw.Real(0, 1), m=aw.Choice(["a", "b", "c"])), feedback)
    look = None if rate is None else Outlook(0.5, 0.5, rate, few)
    assert hint(plan, answers, look).startswith(words)


def test_a_tie_counts_half_for_the_true_best():
    plan, known = Plan.checked(aw.Space(u=aw.Real(0, 1)), kernel=KERNEL), belief()
    wide = replace(known, data=known.data.with_margin(3.0))
    rows = functools.partial(Model(plan).answered, (), who=None)
    sure, tied = (
        outlook(one, plan, KERNEL, search_about(one, plan, None), QUERY, rows) for one in (known, wide)
    )
    assert 0.5 < tied.rate < sure.rate - 0.01
    assert tied.regret == sure.regret


def test_two_values_of_a_choice_share_half_of_their_variance():
    plan = Plan.checked(aw.Space(m=aw.Choice(["a", "b", "c"]), u=aw.Real(0, 1)))
    kernel = plan.expected_kernel()
    same, other = f64([[1.0, 0.0, 0.0, 0.5]]), f64([[0.0, 1.0, 0.0, 0.5]])
    shared = kernel(same, other).to_dense() / kernel(same, same).to_dense()
    assert shared.item() == pytest.approx(0.5, abs=0.1)
