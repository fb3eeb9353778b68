"""What is recorded of a study, who may change it, and that it goes on as if nothing had happened."""

import re
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch

import askwise as aw
from askwise.model.fitting import refit_count
from askwise.study import Preference, Question, Study, Worst
from askwise.study.model import Model
from askwise.study.questions import Situation
from askwise.study.state import State

KINDS = ("binary", "duel", "batch")
SLOW = pytest.mark.slow
each_kind = pytest.mark.parametrize("feedback", KINDS)
most_kinds = pytest.mark.parametrize("feedback", ["binary", "duel", pytest.param("batch", marks=SLOW)])


def plane() -> aw.Space:
    return aw.Space(u=aw.Real(-2, 2), v=aw.Real(1, 100, log=True))


def answer_to(study: Study, question: Question) -> dict[str, object]:
    values = [-((option["u"] - 0.5) ** 2) - (option["v"] / 50 - 1) ** 2 for option in question.options]
    if study.feedback == "binary":
        return {"answer": values[0] > -1.0}
    if study.feedback == "duel":
        return {"answer": int(values[1] > values[0])}
    return {"winner": max(range(len(values)), key=values.__getitem__)}


def played(study: Study, rounds: int) -> list[Question]:
    asked = []
    for _ in range(rounds):
        asked.append(study.ask())
        study.tell(asked[-1], **answer_to(study, asked[-1]))
    return asked


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'study.db'}"


# what may be told


def test_the_same_answer_again_changes_nothing():
    study = aw.Study(plane())
    study.tell(study.ask(), 1)
    events = study._ledger.record.events()
    study.tell(0, 1)
    assert study._ledger.record.events() == events


def test_another_answer_is_refused_unless_it_is_an_amendment():
    study = aw.Study(plane())
    study.tell(study.ask(), 1)
    with pytest.raises(ValueError, match=r"^question 0 must be open to be answered; got .*\. Use amend"):
        study.tell(0, 0)
    study.amend(0, 0, reason="wrong key")
    assert study.history()[0].answer == Preference(0)
    kinds = [(event.kind, event.body.get("reason")) for event in study._ledger.record.events()]
    assert kinds == [("asked", None), ("answered", None), ("amended", "wrong key")]


def test_a_refusal_says_what_to_do_instead():
    study = aw.Study(plane())
    study.tell(study.ask(), 1)
    for act, words in (
        (lambda: study.skip(0), "be open to be skipped; got one that is answered: {'prefers': 1}. Use void"),
        (lambda: study.expire(0), "be open to expire; got one that is answered: {'prefers': 1}. Only"),
        (lambda: study.amend(study.ask(), 1), "have an answer to amend; got one that is open. Use tell"),
    ):
        with pytest.raises(aw.Conflict, match=rf"^question \d must {re.escape(words)}"):
            act()


@each_kind
def test_an_amended_answer_counts_as_if_it_had_been_told_at_once(feedback):
    first, second = ({"answer": True}, {"answer": False}) if feedback == "binary" else ({}, {})
    if feedback == "duel":
        first, second = {"answer": 0}, {"answer": 1}
    if feedback == "batch":
        first, second = {"winner": 0}, {"ranking": [2, 1]}
    one, other = aw.Study(plane(), feedback), aw.Study(plane(), feedback)
    one.tell(one.ask(), **first)
    one.amend(0, **second)
    other.tell(other.ask(), **second)
    assert one.best() == other.best()
    assert one.ask() == other.ask()


def test_a_void_takes_an_answer_out_of_the_model_and_leaves_it_in_the_record():
    study, fresh = aw.Study(plane()), aw.Study(plane())
    study.tell(study.ask(), 1)
    study.void(0, reason="phone rang")
    assert study.best() == fresh.best()
    entry = study.history()[0]
    assert (entry.status, entry.answer) == ("voided", Preference(1))
    study.amend(0, 1)
    fresh.tell(fresh.ask(), 1)
    assert study.best() == fresh.best()


def test_a_tie_informs_the_model_and_a_skip_does_not():
    kernel = aw.kernel("se", 0.3, 4.0)
    fresh, skipped, tied = (aw.Study(plane(), kernel=kernel) for _ in range(3))
    for study in (fresh, skipped, tied):
        question = study.ask()
    skipped.skip(0, seconds=3.0)
    tied.tell(0, None)
    first, second = (fresh.space.unit(option)[None] for option in question.options)
    spreads = [study.belief().difference(first, second)[1].item() for study in (fresh, skipped, tied)]
    assert spreads[1] == spreads[0]
    assert spreads[2] < 0.8 * spreads[0]  # they are alike
    mean, _ = tied.belief().difference(first, second)
    assert mean.abs().item() < 1e-8
    assert [study.status().undecided for study in (skipped, tied)] == [0, 1]
    assert [study.status().skipped for study in (skipped, tied)] == [1, 0]
    assert [study.status().answers for study in (skipped, tied)] == [0, 1]


def test_the_margin_of_ties_is_learned_from_many_ties():
    study = aw.Study(plane(), kernel=aw.kernel("se", 0.3, 4.0))
    for number in range(8):
        study.tell(study.ask(), None if number % 4 else 1)
    eager = aw.Study(plane(), kernel=aw.kernel("se", 0.3, 4.0))
    for number in range(8):
        eager.tell(eager.ask(), 1 if number % 4 else None)
    assert study.belief().data.margin.item() > eager.belief().data.margin.item() > 0


def test_the_worst_can_be_told_amended_and_recorded():
    study = aw.Study(plane(), "batch", size=4, kernel=aw.kernel("se", [0.3, 0.3], 4.0))
    question = study.ask()
    study.tell(question, worst=np.int64(2))
    study.amend(question, worst=3)
    study.record(question.options, worst=1)
    study.record_many([{"options": question.options, "worst": 0}])
    assert [entry.answer for entry in study.history()] == [Worst(3), Worst(1), Worst(0)]
    points = torch.stack([study.space.unit(option) for option in question.options])
    study.void(1)
    study.void(2)
    assert study.belief().mean(points).argmin() == 3
    chosen = study.ask()  # the model goes on from there
    study.tell(chosen, worst=0)
    assert study.status().answers == 2


def test_a_winner_says_less_than_a_duel_with_each_of_the_others():
    kernel = aw.kernel("se", 0.3, 4.0)
    winner, pairs = (aw.Study(plane(), "batch", size=4, kernel=kernel) for _ in range(2))
    winner.tell(winner.ask(), winner=2)
    pairs.tell(pairs.ask(), pairs=[(2, 0), (2, 1), (2, 3)])
    points = torch.stack([winner.space.unit(option) for option in winner.history()[0].options])
    wins = [study.belief().success_probability(points[2:3], points[:1]).item() for study in (winner, pairs)]
    assert 0.5 < wins[0] < wins[1]


def test_response_times_are_kept():
    study = aw.Study(plane())
    study.tell(study.ask(), 1, seconds=2.5)
    study.tell(study.ask(), 1, seconds=0)
    assert [entry.seconds for entry in study.history()] == [2.5, 0]


# sides and participants


def test_sides_are_drawn_at_random_and_the_answer_is_about_what_was_shown():
    study = aw.Study(plane(), kernel=aw.kernel("se", 0.3, 4.0), rule="random")
    orders = [question.order for question in played(study, 24)]
    assert {tuple(sorted(order)) for order in orders} == {(0, 1)}
    assert 4 <= sum(order == (0, 1) for order in orders) <= 20
    assert [entry.order for entry in study.history()] == orders
    question = study.ask()
    first, second = (study.space.unit(option)[None] for option in question.options)
    before = study.belief().difference(second, first)[0].item()
    study.tell(question, 1)
    assert study.belief().difference(second, first)[0].item() > before + 0.1


def test_several_people_are_asked_different_questions():
    study = aw.Study(plane(), kernel=aw.kernel("se", 0.3, 4.0))
    played(study, 12)
    questions = [study.ask(f"person {k}") for k in range(5)]
    assert len({question.id for question in questions}) == 5
    points = [
        torch.stack([study.space.unit(option) for option in question.options]) for question in questions
    ]
    for i in range(5):
        for j in range(i):
            straight = (points[i] - points[j]).abs().max()
            crossed = (points[i] - points[j].flip(0)).abs().max()
            assert min(straight, crossed) > 1e-3
    assert [study.ask(f"person {k}") for k in range(5)] == questions


def test_a_pending_question_weighs_more_until_the_next_one_differs():
    study = aw.Study(aw.Space(u=aw.Integer(0, 4)), "binary", kernel=aw.kernel("se", 0.3, 4.0), initial=0)
    for value, works in ((2, True), (0, False), (4, False)):
        study.record([{"u": value}], works)
    first, second = (study.ask(person).options[0]["u"] for person in ("ada", "bob"))
    assert first == 2
    assert second != 2  # as if the first were answered once, 2 would still be best


def test_pending_questions_count_among_the_first():
    study = aw.Study(plane(), initial=3, rule="random")
    sobol = aw.Study(plane(), initial=9, rule="random")
    asked = [[one.ask(f"person {k}").options for k in range(4)] for one in (study, sobol)]
    assert asked[0][:3] == asked[1][:3]
    study.tell(0, 1)
    sobol.tell(0, 1)
    assert study.ask("one more").options != sobol.ask("one more").options


def test_an_expired_question_of_another_context_is_not_asked_again():
    study = aw.Study(aw.Space(u=aw.Real(0, 1), loud=aw.Choice([True, False], context=True)), rule="random")
    study.expire(study.ask(context={"loud": True}))
    assert study.ask(context={"loud": False}).id == 1
    assert study.ask("ada", context={"loud": True}).id == 0


def test_an_expired_question_is_asked_again_and_a_late_answer_is_taken():
    study = aw.Study(plane())
    question = study.ask("ada")
    study.expire(question)
    again = study.ask("bob")
    assert (again.id, again.options, again.participant) == (question.id, question.options, "bob")
    study.expire(again)
    study.tell(question, 1)
    assert study.ask("bob").id == 1


def test_a_question_that_expires_while_another_is_chosen_is_asked_instead(url):
    study, other = aw.Study(plane(), storage=url), aw.Study(plane(), storage=url)
    given_up, choose = other.ask("ada"), study._asking.choose

    def choose_while_it_expires(model: Model, situation: Situation) -> object:
        other.expire(given_up)
        return choose(model, situation)

    study._asking.choose = choose_while_it_expires
    assert study.ask("bob").id == given_up.id
    assert [event.kind for event in study._ledger.record.events()] == ["asked", "expired", "again"]
    study.close()
    other.close()


def test_questions_expire_by_the_clock(monkeypatch):
    now = 1000.0
    monkeypatch.setattr(time, "time", lambda: now)
    study = aw.Study(plane(), expires=60)
    assert study.ask("ada").id == 0
    now += 59
    assert study.ask("bob").id == 1
    now += 2
    assert study.ask("cy").id == 0
    assert study.status().open == 2
    assert study.ask("eve").id == 2  # cy has time from when cy was asked
    now += 62
    assert study.ask("dee").id == 0
    assert study.status().expired == 2


def test_a_context_is_given_and_kept():
    space = aw.Space(gain=aw.Real(0, 1), room=aw.Choice(["quiet", "loud"], context=True))
    study = aw.Study(space, kernel=aw.kernel("se", [0.3, 1.0, 1.0], 8.0), initial=2)
    for number in range(20):
        room = ("quiet", "loud")[number % 2]
        question = study.ask(context={"room": room})
        assert {option["room"] for option in question.options} == {room}
        goal = {"quiet": 0.2, "loud": 0.8}[room]
        worse = [abs(option["gain"] - goal) for option in question.options]
        study.tell(question, int(worse[1] < worse[0]))
    assert study.best({"room": "quiet"}).params["gain"] == pytest.approx(0.2, abs=0.12)
    assert study.best({"room": "loud"}).params["gain"] == pytest.approx(0.8, abs=0.12)


def test_what_was_answered_elsewhere_counts():
    study, other = aw.Study(plane()), aw.Study(plane())
    question = study.ask()
    study.tell(question, 1)
    other.record(question.options, 1, participant="ada")
    assert study.best() == other.best()
    assert other.replay() == []


# best and status


def test_the_best_is_compared_with_a_reference():
    study = aw.Study(plane(), kernel=aw.kernel("se", 0.4, 6.0))
    played(study, 15)
    bad, same = {"u": -2.0, "v": 1.0}, study.best().params
    best = study.best(reference=bad)
    here, there = (study.space.unit(setting)[None] for setting in (best.params, bad))
    chance = study.belief().success_probability(here, there).item()
    assert best.probability == pytest.approx(chance)
    assert best.probability > 0.7
    assert study.best(reference=same).probability == pytest.approx(0.5)


def test_the_best_of_yes_and_no_is_surely_better_than_a_bad_reference():
    study = aw.Study(plane(), "binary", kernel=aw.kernel("se", 0.4, 6.0))
    played(study, 12)
    belief, bad = study.belief(), {"u": -2.0, "v": 1.0}
    best = study.best(reference=bad)
    here, there = (study.space.unit(setting)[None] for setting in (best.params, bad))
    mean, var = belief.difference(here, there)
    want = torch.special.ndtr(mean / var.sqrt()).item()
    assert best.probability == pytest.approx(want, rel=1e-6)


@pytest.mark.parametrize(
    "feedback", ["duel", *(pytest.param(kind, marks=SLOW) for kind in ("binary", "batch"))]
)
def test_a_status_counts_and_says_when_to_stop(feedback):
    study = aw.Study(plane(), feedback, kernel=aw.kernel("se", 0.4, 4.0), initial=3)
    early = study.status()
    assert (early.answers, early.gain, early.regret) == (0, None, None)
    assert early.hint.startswith("Go on: too little")
    played(study, {"binary": 8, "duel": 6, "batch": 5}[feedback])
    middle = study.status()
    played(study, {"binary": 40, "duel": 12, "batch": 10}[feedback])
    late = study.status()
    assert late.answers == len(study.history())
    assert middle.gain > 0
    assert late.gain >= 0
    assert 0 < late.regret < middle.regret


@pytest.mark.parametrize("feedback", ["binary", "duel"])
def test_the_expected_gain_is_an_average_over_the_possible_answers(feedback):
    study = aw.Study(plane(), feedback, kernel=aw.kernel("se", 0.4, 4.0), lapses=0)
    played(study, 11)
    status, question = study.status(), study.ask()
    answers = [True, False] if feedback == "binary" else [0, 1]
    points = torch.stack([study.space.unit(option) for option in question.options])
    before = study.belief()
    first = before.success_probability(points[:1], None if feedback == "binary" else points[1:]).item()
    grid = torch.cartesian_prod(*[torch.linspace(0, 1, 61, dtype=torch.float64)] * 2)
    top, study_events = before.mean(grid).max().item(), study._ledger.record.events()
    after = []
    for answer in answers:
        copy = aw.Study(plane(), feedback, kernel=aw.kernel("se", 0.4, 4.0), lapses=0)
        for event in study_events:
            copy._ledger.add(event.kind, event.question, event.body)
        copy.tell(question.id, answer)
        after.append(copy.belief().mean(grid).max().item())
    expected = first * after[0] + (1 - first) * after[1] - top
    assert status.gain == pytest.approx(expected, abs=5e-3)


# learning


@pytest.mark.parametrize(
    ("count", "used"), [(0, 0), (1, 1), (8, 8), (9, 8), (11, 8), (12, 12), (17, 12), (18, 18), (100, 93)]
)
def test_a_kernel_is_refitted_when_the_number_of_answers_has_grown_by_half(count, used):
    assert refit_count(count) == used


def test_a_model_with_a_cache_equals_a_fresh_one():
    study = aw.Study(plane(), seed=4)
    played(study, 9)
    answers = Situation.of(study._ledger.state).answers
    fresh = Model(study.plan)
    assert torch.equal(fresh.belief(answers).alpha, study.belief().alpha)


# going on


@most_kinds
def test_a_study_restarted_at_every_step_asks_the_same_questions(feedback, url):
    options = {"seed": 7, "initial": 2}
    if feedback != "duel":  # the kernel of which is learned
        options["kernel"] = aw.kernel("se", 0.3, 4.0)
    whole = aw.Study(plane(), feedback, **options)
    aw.Study(plane(), feedback, storage=url, **options).close()
    rounds = 3 if feedback == "batch" else 4
    for _ in range(rounds):
        study = Study.open(url)
        question = study.ask()
        study.close()
        study = Study.open(url)
        assert study.ask() == question == whole.ask()
        for one in (study, whole):
            one.tell(question.id, **answer_to(study, question))
        study.close()
    study = aw.Study(plane(), feedback, storage=url, **options)
    assert study.best() == whole.best()
    replayed = study.replay()
    assert len(replayed) == rounds
    assert all(question.equal for question in replayed)
    study.close()


def test_tampering_with_a_record_is_detected(monkeypatch):
    study = aw.Study(plane(), seed=7)
    played(study, 3)
    events = study._ledger.record.events()
    events[2].body["options"][0]["u"] += 1e-9
    monkeypatch.setattr(study._ledger.record, "events", lambda: events)
    assert [question.equal for question in study.replay()] == [True, False, True]
    events[4].body["order"].reverse()
    assert [question.equal for question in study.replay()] == [True, False, False]


def test_another_plan_is_refused_for_an_existing_study(url):
    study = aw.Study(plane(), storage=url, name="coffee", seed=1)
    study.tell(study.ask(), 1)
    study.close()
    with pytest.raises(ValueError, match=r"^seed must be as study 'coffee' was created with, 1; got 2\."):
        aw.Study(plane(), storage=url, name="coffee", seed=2)
    with pytest.raises(aw.StudyNotFound, match="tea"):
        Study.open(url, "tea")
    again = Study.open(url, "coffee")
    assert (again.plan.seed, len(again.history())) == (1, 1)
    again.close()


def test_a_kernel_that_cannot_be_written_is_for_studies_in_memory(url):
    from gpytorch.kernels import LinearKernel

    aw.Study(plane(), kernel=LinearKernel().double()).ask()
    with pytest.raises(
        ValueError, match=r"^kernel must be a name or a kernel made by askwise.kernel, to be stored; got "
    ):
        aw.Study(plane(), kernel=LinearKernel().double(), storage=url)


def test_a_kernel_that_is_given_is_stored(url):
    kernel = aw.kernel("se", [0.3, 0.7], 4.0)
    study, memory = aw.Study(plane(), storage=url, kernel=kernel), aw.Study(plane(), kernel=kernel)
    played(study, 7)
    played(memory, 7)
    study.close()
    again = Study.open(url)
    assert again.best() == memory.best()
    again.close()


# ahead of time


@most_kinds
def test_a_question_computed_ahead_is_the_one_that_would_have_been_asked(feedback):
    options = {"seed": 2, "initial": 2, "kernel": aw.kernel("se", 0.3, 4.0)}
    ahead, plain = (
        aw.Study(plane(), feedback, prefetch=True, **options),
        aw.Study(plane(), feedback, **options),
    )
    for number in range(5 if feedback == "batch" else 7):
        question = ahead.ask()
        assert question == plain.ask()
        for study in (ahead, plain):
            if number == 5:
                study.skip(question.id)
            elif number == 6:
                study.tell(question.id, None)
            else:
                study.tell(question.id, **answer_to(study, question))
        if number == 3:
            for study in (ahead, plain):
                study.void(2)
    ahead.close()


def test_a_question_computed_ahead_is_not_computed_again(monkeypatch):
    study, threads = aw.Study(plane(), prefetch=True, rule="random"), []
    compute = study._asking.prefetch._compute

    def watched(situation):
        threads.append(threading.current_thread().name)
        return compute(situation)

    monkeypatch.setattr(study._asking.prefetch, "_compute", watched)
    question = study.ask()
    for answer in (1, 0):
        for future in list(study._asking.prefetch._found.values()):
            future.result()  # the person thinks
        threads.clear()
        study.tell(question, answer)
        question = study.ask()
        assert all(name.startswith("askwise prefetch") for name in threads)
    assert len(study._asking.prefetch._found) == 2  # one for each answer to the question that is open
    study.close()


def test_a_study_may_be_used_by_several_threads():
    study = aw.Study(plane(), rule="random")
    errors = []

    def work(person: str) -> None:
        try:
            for _ in range(5):
                study.tell(study.ask(person), 1)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(f"{k}",)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    assert len(study.history()) == 20
    assert State.after(study._ledger.record.events()).entries == study._ledger.state.entries


def test_a_question_that_could_not_be_computed_ahead_is_computed_again(monkeypatch):
    study, calls = aw.Study(plane(), prefetch=True, rule="random"), []
    compute = study._asking.prefetch._compute

    def failing(situation):
        calls.append(threading.current_thread().name)
        if calls[-1].startswith("askwise prefetch"):
            raise MemoryError("no room")
        return compute(situation)

    monkeypatch.setattr(study._asking.prefetch, "_compute", failing)
    for _ in range(3):
        question = study.ask()
        assert all(future.exception() is not None for future in list(study._asking.prefetch._found.values()))
        study.tell(question, 1)
    assert any(name.startswith("askwise prefetch") for name in calls)
    study.close()
    study.ask()  # nothing is computed ahead any more


def test_ties_are_among_the_possible_answers():
    study = aw.Study(aw.Space(u=aw.Real(0, 1)), kernel=aw.kernel("se", 0.3, 4.0))
    for _ in range(14):
        study.tell(study.ask(), None)
    status = study.status()
    assert status.gain < 0.2  # one more tie is what will come
    assert status.gain < status.regret


def test_contexts_may_be_numbers_of_other_libraries(unchecked):
    space = aw.Space(
        u=aw.Real(0, 1), level=aw.Integer(1, 5, context=True), odd=aw.Choice([1, True], context=True)
    )
    study = aw.Study(space)
    question = study.ask(context={"level": np.int64(3), "odd": 1})
    assert question.context == {"level": 3, "odd": 1}
    assert study.ask(context={"level": 3, "odd": True}).id == 1
    assert study.ask(context={"level": 3, "odd": 1}).id == 0


def test_history_is_a_copy():
    study = aw.Study(plane())
    question = study.ask()
    study.history()[0].options[0]["u"] = 99.0
    assert study.ask() == question


def test_a_study_may_be_kept_at_a_path(tmp_path):
    study = aw.Study(plane(), storage=tmp_path / "study.db")
    study.tell(study.ask(), 1)
    study.close()
    again = Study.open(tmp_path / "study.db")
    assert len(again.history()) == 1
    again.close()


def test_recorded_answers_are_one_event():
    study = aw.Study(plane())
    study.record([{"u": 0.0, "v": 10.0}, {"u": 1.0, "v": 10.0}], 1, seconds=2)
    (event,) = study._ledger.record.events()
    assert (event.kind, event.body["answer"], event.body["seconds"]) == ("asked", {"prefers": 1}, 2.0)
    assert study.history()[0].status == "answered"
    with pytest.raises(ValueError, match="must be open to be answered"):
        study.tell(0, 0)
    study.amend(0, 0)
