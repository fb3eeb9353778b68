"""Checks of the answers: each statistic against its definition, and whom it flags."""

import itertools
import json
import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import betabinom, binom

import askwise as aw
from askwise.model import average_evidence, chance_evidence, evidence, expected_kernel, held_out, infer
from askwise.study import Answer, Outlook, Plan, Preference, Simulation, Study
from askwise.study.answers import Pairs, Ranking, Tie, Worst, YesNo
from askwise.study.checks import Check, checks, place_ratio, repeat_ratio, repeats, sides, speed
from askwise.study.recommendation import UNTRUSTED, hint
from askwise.study.repeats import is_repeat, repeatable, subject, surest
from askwise.study.simulation import SimulatedUser
from askwise.study.state import Answered, Entry
from tensors import f64

LINE = aw.Space(x=aw.Real(0, 1))
DUEL, BATCH, YESNO = (Plan.checked(LINE, feedback) for feedback in ("duel", "batch", "binary"))
KERNEL = aw.kernel("matern52", [0.3], 4.0)
FIXED = aw.kernel("se", [0.3, 0.3], 4.0)


def entry(number: int, answer: Answer, options: tuple[float, ...] = (0.2, 0.8), **more: object) -> Entry:
    settings = tuple({"x": value} for value in options)
    made = Entry(number, settings, tuple(range(len(options))), None, None, number, 0.0, "answered", answer)
    return replace(made, **more)


def duels(*preferred: int, **more: object) -> list[Entry]:
    return [entry(number, Preference(place), **more) for number, place in enumerate(preferred)]


# sides


@given(st.integers(0, 60), st.integers(0, 60))
def test_the_ratio_of_places_is_that_of_a_mixture_of_coins_to_a_fair_one(first, second):
    n = first + second
    want = betabinom(n, 1, 1).logpmf(first) - binom(n, 0.5).logpmf(first)
    assert place_ratio([first, second]) == pytest.approx(want, abs=1e-9)


@pytest.mark.parametrize("size", [2, 3])
def test_the_ratio_of_places_is_one_in_expectation_for_people_without_a_side(size):
    n = 7
    each = [part for part in range(n + 1)]
    counts = (
        [(k, n - k) for k in each]
        if size == 2
        else [(a, b, n - a - b) for a in each for b in each[: n - a + 1]]
    )
    total = 0.0
    for some in counts:
        ways = math.factorial(n) / math.prod(math.factorial(count) for count in some)
        total += ways * size**-n * math.exp(place_ratio(some))
    assert total == pytest.approx(1.0)


def ever_flagged(chance: float, answers: int) -> float:
    """Probability that somebody who chooses the first with this chance is flagged at any of these answers."""
    alive, flagged = {0: 1.0}, 0.0
    for n in range(1, answers + 1):
        after: dict[int, float] = {}
        for first, weight in alive.items():
            for step, part in ((1, chance), (0, 1 - chance)):
                after[first + step] = after.get(first + step, 0.0) + weight * part
        out = [first for first in after if place_ratio([first, n - first]) >= math.log(100)]
        flagged += sum(after.pop(first) for first in out)
        alive = after
    return flagged


def test_honest_people_are_flagged_for_a_side_once_in_a_hundred_however_often_one_looks():
    assert 0.001 < ever_flagged(0.5, 300) < 0.01
    assert ever_flagged(0.8, 50) > 0.8


def test_somebody_who_always_takes_the_first_is_flagged_after_eleven_answers():
    assert [sides(DUEL, duels(*[0] * n)).flagged for n in (10, 11, 50)] == [False, True, True]
    found = sides(DUEL, duels(*[0] * 11))
    assert found == Check(
        "sides", True, "In the order shown, options were chosen 11 and 0 times; it is random."
    )
    assert sides(DUEL, duels(*[1] * 11)).flagged
    assert not sides(DUEL, duels(*[0, 1] * 20)).flagged


def test_in_batches_the_place_of_the_winner_counts():
    ranked = [entry(number, Ranking((2, 0)), (0.1, 0.4, 0.9)) for number in range(12)]
    assert sides(BATCH, ranked).detail.startswith("In the order shown, options were chosen 0, 0 and 12 times")
    assert sides(BATCH, ranked).flagged
    among = [entry(number, Pairs(((0, 1), (2, 1))), (0.1, 0.4, 0.9)) for number in range(12)]
    assert "chosen 0, 0 and 0 times" in sides(BATCH, among).detail  # two are good, so none was chosen


def test_the_place_of_the_worst_counts_beside_that_of_the_winner():
    worst = [entry(number, Worst(2), (0.1, 0.4, 0.9)) for number in range(12)]
    found = sides(BATCH, worst)
    assert "chosen 0, 0 and 0 times, and named the worst 0, 0 and 12 times; it" in found.detail
    assert found.flagged
    even = [entry(number, Worst(number % 3), (0.1, 0.4, 0.9)) for number in range(12)]
    assert not sides(BATCH, even).flagged
    winners = [entry(number, Ranking((0,)), (0.1, 0.4, 0.9)) for number in range(5)]
    assert max(place_ratio([5, 0, 0]), place_ratio([0, 0, 5])) < math.log(100)
    assert sides(BATCH, winners + worst[:5]).flagged  # each alone is too little


def test_sides_are_not_tested_where_nobody_drew_them():
    assert sides(YESNO, [entry(0, YesNo(True), (0.5,))]) is None
    assert "chosen 0 and 0 times" in sides(DUEL, duels(*[0] * 30, seen=None)).detail
    assert "chosen 0 and 0 times" in sides(DUEL, [entry(number, Tie()) for number in range(30)]).detail


# the model


def test_an_answer_is_foreseen_as_if_it_had_not_been_given(generator):
    points, c = torch.rand(20, 2, 2, generator=generator, dtype=torch.float64), [1, 0, 0, 1, 1] * 4
    prior = aw.kernel("matern52", [0.4, 0.4], 3.0)
    mean, var = held_out(infer(aw.Data.duels(points, c), prior), [1] * 20)
    for left_out in (0, 7, 19):
        rest = [k for k in range(20) if k != left_out]
        without = infer(aw.Data.duels(points[rest], [c[k] for k in rest]), prior)
        want, spread = without.difference(points[left_out, :1], points[left_out, 1:])
        assert mean[left_out].item() == pytest.approx(want.item(), abs=0.05)
        assert var[left_out].item() == pytest.approx(spread.item(), rel=0.05)


def test_all_comparisons_of_a_ranking_are_left_out_together(generator):
    points = torch.rand(8, 3, 1, generator=generator, dtype=torch.float64)
    best = [[0, 1], [2, 0], [1, 2], [0, 2], [1, 0], [2, 1], [0, 1], [1, 2]]
    mean, _ = held_out(infer(aw.Data.rankings(points, best), KERNEL), [2] * 8)
    without = infer(aw.Data.rankings(points[1:], best[1:]), KERNEL)
    want, _ = without.difference(points[0, :2], points[0, 1:])
    torch.testing.assert_close(mean[:2], want, atol=0.05, rtol=0)
    alone, _ = held_out(infer(aw.Data.rankings(points, best), KERNEL), [1] * 16)
    assert (alone[:2] - want).abs().max() > 0.2


def test_coin_flips_have_the_evidence_of_chance():
    data = aw.Data.duels([[[0.1], [0.9]], [[0.2], [0.4]], [[0.3], [0.5]]], [1, 0, 0])
    assert chance_evidence(data) == pytest.approx(3 * math.log(0.5), abs=1e-6)
    winner = aw.Data.rankings([[[0.1], [0.5], [0.9]]], [[1]])
    assert chance_evidence(winner) == pytest.approx(math.log(1 / 3), abs=0.02)  # EP is not exact here
    tie = aw.Data.ties([[[0.1], [0.5]]], margin=0.5)
    assert chance_evidence(tie) == pytest.approx(
        math.log(2 * torch.special.ndtr(f64(0.5)).item() - 1), abs=1e-6
    )


def test_average_evidence_is_the_mean_over_kernels_drawn_from_the_priors(generator):
    points, c = torch.rand(12, 2, 1, generator=generator, dtype=torch.float64), [1, 0, 1] * 4
    data, kernel = aw.Data.duels(points, c), expected_kernel("matern52", [0.2])
    z = torch.randn(400, 2, generator=generator, dtype=torch.float64)
    drawn = aw.kernel("matern52", 0.2 * (0.5 * z[:, :1]).exp(), 4.0 * (0.7 * z[:, 1]).exp())
    laned = data.unsqueezed().select(torch.zeros(400, dtype=torch.long))
    want = infer(laned, drawn, tolerance=1e-4).log_evidence.exp().mean().log().item()
    assert average_evidence(data, kernel) == pytest.approx(want, abs=0.1)


def test_average_evidence_is_the_same_in_parts_and_a_lower_bound_where_that_is_enough(monkeypatch):
    x = torch.linspace(0, 1, 30, dtype=torch.float64)[:, None, None]
    data = aw.Data.duels(torch.cat([x, x.roll(7, 0)], 1), (x > x.roll(7, 0)).long()[:, 0, 0])
    kernel = expected_kernel("matern52", [0.2])
    belief = aw.fit(data, kernel).belief
    whole = average_evidence(data, kernel, belief)
    assert whole == pytest.approx(average_evidence(data, kernel), abs=0.01)
    bound = average_evidence(data, kernel, belief, whole - 2)
    assert whole - 2 < bound < whole - 0.01
    monkeypatch.setattr(evidence, "_CHUNK_ENTRIES", 1)
    assert average_evidence(data, kernel, belief) == pytest.approx(whole, abs=1e-6)


def questioned(feedback: str, answers: int, person: str, seed: int = 0, **settings: object) -> Study:
    """A study answered by a good person or by a coin."""
    plan = Plan.checked(aw.Space(x=aw.Real(0, 1), y=aw.Real(0, 1)), feedback, seed=seed, **settings)
    study, source = Study.of(plan), torch.Generator().manual_seed(seed)
    user = SimulatedUser(Simulation(plan, answers, 1, seed), seed)
    for _ in range(answers):
        question = study.ask()
        coin = plan.kind.simulated(torch.zeros(plan.size, dtype=torch.float64), source)
        study.tell(question, coin if person == "coin" else user.answer(question))
    return study


def flagged(study: Study) -> list[str]:
    return [check.name for check in study.checks() if check.flagged]


def test_a_coin_is_found_and_its_study_is_never_told_to_stop():
    study = questioned("duel", 50, "coin", rule="random")
    assert flagged(study) == ["model"]
    status = study.status()
    assert status.checks == study.checks()
    assert status.hint.startswith("Look at the answers first: each from the others, the model foresees ")
    assert "coin flips explain them" in status.hint
    assert status.hint.endswith(UNTRUSTED)


def test_a_good_person_is_not_flagged():
    study = questioned("duel", 30, "good", rule="random")
    assert [check.name for check in study.checks()] == ["sides", "model"]
    assert not flagged(study)
    assert "the model explains them" in study.checks()[1].detail


def test_a_known_kernel_is_not_averaged_over():
    study = questioned("binary", 12, "good", rule="random", kernel=FIXED)
    (found,) = study.checks()
    ratio = math.exp(study.belief().log_evidence.item() - chance_evidence(study.belief().data))
    assert f"explains them {ratio:.0f} times better" in found.detail


def test_batches_count_comparisons():
    study = questioned("batch", 6, "good", rule="random")
    assert " of 12 comparisons; " in study.checks()[1].detail


def test_there_is_no_check_of_the_model_before_there_is_one():
    study = aw.Study(LINE, "binary")
    assert study.checks() == study.status().checks == []
    for _ in range(4):
        study.tell(study.ask(), True)
    assert study.checks() == []  # always yes may be the truth


# repeated questions


def test_a_repeat_is_one_question_in_as_many_as_wanted():
    for share in (0.05, 0.2, 0.5):
        plan = replace(DUEL, repeats=share)
        numbers = [number for number in range(1000) if is_repeat(plan, number)]
        assert len(numbers) == pytest.approx(1000 * share, abs=1)
        assert {later - earlier for earlier, later in itertools.pairwise(numbers)} == {1 / share}
    starts = {
        next(n for n in range(30) if is_repeat(replace(plan, repeats=0.05, seed=s), n)) for s in range(9)
    }
    assert len(starts) > 3
    assert not any(is_repeat(DUEL, number) for number in range(1000))


def test_what_was_decided_once_and_some_time_ago_is_asked_again():
    one = [Answered(({"x": k / 20}, {"x": 0.99}), Preference(0)) for k in range(12)]
    one[1] = replace(one[1], answer=Tie())
    one[3] = Answered((one[2].options[1], one[2].options[0]), Preference(1))  # the same on other sides
    waiting = json.dumps([{"x": 0.99}, {"x": 0.25}])
    assert [options[0]["x"] for options in repeatable(one, None, [waiting])] == [0.0, 0.2, 0.3]
    assert repeatable(one, {"x": 0.99}) == []
    assert repeatable(one[:5], None) == []


@pytest.mark.parametrize("members", [1, 2, 3])
def test_the_question_with_the_clearest_answer_is_the_surest(members):
    data = aw.Data.binary([[0.05], [0.1], [0.9], [0.95], [0.5]], [0, 0, 1, 1, 0])
    belief = infer(data, KERNEL)
    queries = f64([[0.6, 0.61, 0.62], [0.9, 0.1, 0.05], [0.5, 0.52, 0.51]])[:, :members, None]
    assert surest(belief, queries) == 1


def test_a_study_repeats_questions_and_replays_them():
    study = questioned("duel", 30, "good", rule="random", kernel=FIXED, repeats=0.2)
    asked = [subject(one.options) for one in study.history()]
    again = [number for number, about in enumerate(asked) if about in asked[:number]]
    assert again == [n for n in range(30) if n >= 10 and is_repeat(study.plan, n)]
    assert all(one.equal for one in study.replay())
    assert study.checks()[2].detail.endswith(
        f"of {len(again)} questions that were asked twice got the same answer twice."
    )


def test_other_questions_are_as_without_repeats():
    plain, some = (questioned("binary", 5, "good", kernel=FIXED, repeats=share) for share in (0.0, 0.5))
    assert plain.plan.to_dict().keys() == some.plan.to_dict().keys() - {"repeats"}
    assert [one.options for one in plain.history()][:3] == [one.options for one in some.history()][:3]


def test_a_plan_with_repeats_is_written_and_read():
    plan = Plan.checked(LINE, repeats=0.05)
    assert plan.to_dict()["repeats"] == 0.05
    assert Plan.from_dict(plan.to_dict()).repeats == 0.05
    assert Plan.from_dict(DUEL.to_dict()).repeats == 0.0
    for wrong in (-0.1, 0.6, "often", True, None, math.nan):
        with pytest.raises(aw.Refused, match=r"repeats must be a share of questions from 0 to 0.5; got"):
            Plan.checked(LINE, repeats=wrong)


def repeated(plan: Plan, alike: int, different: int) -> list[Entry]:
    """Two answers to so many questions; the second ones are repeats by number."""
    numbers = [number for number in range(1, 200) if is_repeat(plan, number)][: alike + different]
    found = []
    for count, number in enumerate(numbers):
        options = (0.1 + count / 1000, 0.9)
        found.append(entry(number - 1, Preference(0), options))
        found.append(entry(number, Preference(int(count < alike)), options[::-1]))
    return found


def test_repeated_answers_agree_by_setting_not_by_side():
    plan = replace(DUEL, repeats=0.2)
    assert repeats(plan, repeated(plan, 8, 2)) == Check(
        "repeats", False, "8 of 10 questions that were asked twice got the same answer twice."
    )
    assert repeats(plan, repeated(plan, 5, 5)).flagged
    assert repeats(DUEL, repeated(plan, 5, 5)) is None


def test_answers_of_others_and_undecided_ones_are_not_compared():
    plan = replace(DUEL, repeats=0.2)
    found = repeated(plan, 0, 6)
    for change in ({"participant": "ada"}, {"answer": Tie()}):
        other = [replace(one, **change) if k % 2 else one for k, one in enumerate(found)]
        assert repeats(plan, other).detail.startswith("0 of 0")
    by_chance = [replace(one, id=one.id - 2) for one in found]  # the rule asked the same twice
    assert repeats(plan, by_chance).detail.startswith("0 of 0")


def test_the_worst_is_compared_with_the_worst_of_the_same_question_and_not_with_the_best():
    plan = replace(BATCH, repeats=0.2)
    number = next(n for n in range(3, 20) if is_repeat(plan, n))
    shown, turned = (0.1, 0.4, 0.9), (0.9, 0.4, 0.1)
    first = entry(0, Worst(0), shown)
    for again, found in [
        (Worst(2), "1 of 1"),
        (Worst(0), "0 of 1"),
        (Ranking((1,)), "0 of 0"),
        (Tie(), "0 of 0"),
    ]:
        assert repeats(plan, [first, entry(number, again, turned)]).detail.startswith(found)


@given(st.integers(0, 20), st.integers(0, 20), st.sampled_from([2, 3, 4]))
def test_the_ratio_of_repeats_is_that_of_chance_to_people_who_mostly_agree(alike, different, ways):
    n = alike + different
    want = binom(n, 1 / ways).logpmf(alike) - binom(n, 0.9).logpmf(alike)
    assert repeat_ratio(alike, different, ways) == pytest.approx(want, abs=1e-8)


# speed


def test_answers_faster_than_anybody_chooses_are_flagged():
    slow, fast = duels(0, 1, seconds=1.5), duels(0, 1, seconds=0.29)
    assert speed(DUEL, slow * 8 + fast * 2) == Check("speed", False, "4 of 20 answers took less than 0.3 s.")
    assert speed(DUEL, slow * 7 + fast * 3).flagged
    assert not speed(DUEL, fast * 9).flagged  # too few to tell
    assert speed(DUEL, duels(0, 1)) is None
    assert speed(YESNO, [entry(0, YesNo(True), (0.5,), seconds=0.01)] * 30) is None  # perhaps a machine


# several participants


def of(participant: str | None, entries: list[Entry]) -> list[Entry]:
    return [replace(one, participant=participant) for one in entries]


def test_somebody_who_always_takes_the_first_is_found_among_others_and_named():
    others = [*of("bo", duels(*[0, 1] * 20)), *of("cy", duels(*[1, 0] * 20))]
    found = sides(DUEL, [*others, *of("ada", duels(*[0] * 15))])
    assert found == Check(
        "sides",
        True,
        "Participant ada: in the order shown, options were chosen 15 and 0 times; it is random.",
    )
    unnamed = sides(DUEL, [*others, *of(None, duels(*[0] * 15))])
    assert unnamed.detail.startswith("Without a name: in the order shown, options were chosen 15 and 0")
    assert not sides(DUEL, others).flagged
    assert sides(DUEL, others).detail.startswith("In the order shown, options were chosen 40 and 40 times")


def test_what_everybody_does_is_found_though_nobody_answers_often():
    few = [one for person in range(10) for one in of(str(person), duels(*[0] * 3))]
    assert sides(DUEL, few) == Check(
        "sides", True, "In the order shown, options were chosen 30 and 0 times; it is random."
    )


def test_among_more_people_more_is_needed_so_that_false_alarms_do_not_add_up():
    """The limit is 100 times the number of checks: each participant, and all together."""

    def ratio_when_flagged(participants: int) -> float:
        others = [one for k in range(1, participants) for one in of(str(k), duels(*[0, 1] * 30))]
        count = next(n for n in range(60) if sides(DUEL, [*others, *of("ada", duels(*[0] * n))]).flagged)
        before, after = (math.exp(place_ratio([n, 0])) for n in (count - 1, count))
        checks = 1 if participants == 1 else participants + 1
        assert before < 100 * checks <= after
        return after

    assert ratio_when_flagged(1) < ratio_when_flagged(4) < ratio_when_flagged(30)


def test_repeats_and_times_are_those_of_each_participant():
    plan = replace(DUEL, repeats=0.2)
    good, careless = of("bo", repeated(plan, 12, 0)), of("ada", repeated(plan, 3, 6))
    assert not repeats(plan, good + of("cy", repeated(plan, 12, 0))).flagged
    found = repeats(plan, good + careless)
    assert found.flagged
    assert found.detail == (
        "Participant ada: 3 of 9 questions that were asked twice got the same answer twice."
    )
    slow, fast = of("bo", duels(*[0] * 200, seconds=2.0)), of("ada", duels(*[0] * 20, seconds=0.1))
    assert speed(DUEL, slow + fast) == Check(
        "speed", True, "Participant ada: 20 of 20 answers took less than 0.3 s."
    )
    assert not speed(DUEL, slow + fast[:19]).flagged


def test_a_long_name_is_shortened():
    among = [*of("x" * 500, duels(*[0] * 15)), *of("bo", duels(0, 1))]
    assert len(sides(DUEL, among).detail) < 150


# what follows


def test_a_flag_comes_before_everything_else_in_a_hint():
    look = Outlook(0.1, 0.1, 0.5, 0.95)
    well, bad, worse = (
        Check("sides", False, "Fine."),
        Check("speed", True, "Bad."),
        Check("model", True, "Worse."),
    )
    assert hint(DUEL, 50, look, [well]).startswith("You may stop: ")
    assert hint(DUEL, 50, look, [well]).endswith(DUEL.kind.unknown)
    assert hint(DUEL, 50, look, [well, bad, worse]) == f"Look at the answers first: bad. Worse. {UNTRUSTED}"
    assert hint(DUEL, 0, None, [bad]) == f"Look at the answers first: bad. {UNTRUSTED}"


def test_checks_that_do_not_apply_are_not_listed():
    assert [check.name for check in checks(DUEL, duels(0, 1), None)] == ["sides"]
    assert checks(YESNO, [entry(0, YesNo(True), (0.5,))], None) == []
    assert isinstance(checks(DUEL, duels(0, 1), None)[0], aw.Check)


@pytest.mark.slow
def test_most_coins_are_found_and_most_good_people_are_not_flagged():
    coins = sum("model" in flagged(questioned("duel", 50, "coin", seed)) for seed in range(20))
    good = sum("model" in flagged(questioned("duel", 50, "good", seed)) for seed in range(20))
    assert coins >= 14
    assert good <= 3
