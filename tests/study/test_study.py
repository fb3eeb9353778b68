"""A study from the first question to the best setting, and every answer that it must refuse."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from gpytorch.kernels import ScaleKernel

import askwise as aw
from askwise.loop import next_query
from askwise.model.belief import Belief
from askwise.numerics.seeds import generator
from askwise.rules import parse
from askwise.study.plan import Plan
from askwise.study.study import Question, Study
from tensors import f64

KINDS = ("binary", "duel", "batch")
SLOW = pytest.mark.slow
each_kind = pytest.mark.parametrize("feedback", KINDS)
most_kinds = pytest.mark.parametrize("feedback", ["binary", "duel", pytest.param("batch", marks=SLOW)])
SIZE = {"binary": 1, "duel": 2, "batch": 3}


def line() -> aw.Space:
    return aw.Space(u=aw.Real(-2, 2))


def plane() -> aw.Space:
    return aw.Space(u=aw.Real(-2, 2), v=aw.Real(1, 100, log=True))


def fixed() -> ScaleKernel:
    return aw.kernel("se", 0.3, 4.0)


def studying(feedback: str = "duel", space: aw.Space | None = None, **options: object) -> Study:
    options = {"kernel": fixed(), "lapses": 0} | options
    return Study(line() if space is None else space, feedback, **options)


def worth(option: dict[str, float]) -> float:
    """Best at u = 0.5 and v = 10."""
    return -((option["u"] - 0.5) ** 2) - (math.log10(option.get("v", 10)) - 1) ** 2


def answered(study: Study, question: Question) -> None:
    values = [worth(option) for option in question.options]
    if study.feedback == "binary":
        study.tell(question, values[0] > -0.2)
    elif study.feedback == "duel":
        study.tell(question, int(values[1] > values[0]))
    else:
        study.tell(question, ranking=sorted(range(len(values)), key=lambda k: -values[k]))


def played(study: Study, rounds: int) -> list[Question]:
    asked = []
    for _ in range(rounds):
        asked.append(study.ask())
        answered(study, asked[-1])
    return asked


# questions


@each_kind
def test_an_open_question_is_asked_again(feedback):
    study = studying(feedback, rule="random")
    played(study, 2)
    once = study.ask()
    assert study.ask() == once
    assert once.id == 2
    answered(study, once)
    assert study.ask().id == 3
    assert study.ask().options != once.options


@each_kind
def test_a_question_may_be_answered_by_its_number(feedback):
    one, other = studying(feedback, rule="random"), studying(feedback, rule="random")
    for _ in range(3):
        question = one.ask()
        answered(one, question)
        number = other.ask().id
        answered(other, replace(question, id=number))
    answer = {"binary": {"answer": True}, "duel": {"answer": 1}, "batch": {"ranking": [2, 0, 1]}}[feedback]
    one.tell(one.ask(), **answer)
    other.tell(other.ask().id, **answer)
    assert one.ask() == other.ask()
    assert one.best() == other.best()


@most_kinds
def test_equal_seeds_and_answers_give_equal_questions(feedback):
    one, other = (studying(feedback, seed=3, initial=2) for _ in range(2))
    rounds = 3 if feedback == "batch" else 5
    assert played(one, rounds) == played(other, rounds)
    assert one.best() == other.best()


@each_kind
def test_other_seeds_give_other_questions(feedback):
    first = [played(studying(feedback, seed=seed), 2) for seed in range(4)]
    assert all(first[k] != first[0] for k in range(1, 4))


@most_kinds
def test_questions_are_in_natural_units_inside_the_bounds(feedback):
    study = studying(feedback, plane(), initial=2)
    for question in played(study, 3 if feedback == "batch" else 5):
        assert len(question.options) == SIZE[feedback]
        for option in question.options:
            assert list(option) == ["u", "v"]
            assert all(isinstance(value, float) for value in option.values())
            assert -2 <= option["u"] <= 2
            assert 1 <= option["v"] <= 100


def test_the_first_questions_cover_a_logarithmic_scale():
    asked = [studying("binary", plane(), seed=seed).ask().options[0]["v"] for seed in range(30)]
    assert 7 < sum(value < 10 for value in asked) < 23


def data_of(study: Study, asked: list[Question]) -> aw.Data:
    """The answers as they were given, built by hand."""
    data = aw.Data.binary(torch.empty(0, study.space.d, dtype=torch.float64), torch.empty(0))
    for question in asked:
        X = torch.stack([study.space.unit(option) for option in question.options])
        values = [worth(option) for option in question.options]
        if study.feedback == "binary":
            data = data + aw.Data.binary(X, [int(values[0] > -0.2)])
        elif study.feedback == "duel":
            data = data + aw.Data.duels(X[None], [int(values[0] > values[1])])
        else:
            ranking = sorted(range(len(values)), key=lambda k: -values[k])
            data = data + aw.Data.rankings(X[None], [ranking])
    return data


@each_kind
def test_a_study_asks_what_the_step_of_the_loop_asks(feedback):
    study = studying(feedback, seed=5, initial=2)
    rule = {"binary": "ucb_phi", "duel": "muc", "batch": "muc_joint"}[feedback]
    asked: list[Question] = []
    for number in range(3 if feedback == "batch" else 5):
        data, source = data_of(study, asked), generator("askwise study", 5, number)
        heard_both = feedback != "binary" or len(set(data.signs.tolist())) == 2
        question = study.ask()
        if number >= 2 and heard_both:
            query = next_query(data, parse(rule), fixed(), SIZE[feedback], source)
            got = torch.stack([study.space.unit(option) for option in question.options])
            want = query.points[list(question.order)]
            torch.testing.assert_close(got, want, rtol=0, atol=1e-6)
        answered(study, question)
        asked.append(question)


@pytest.mark.parametrize("initial", [0, 1, 4])
@each_kind
def test_the_first_questions_do_not_depend_on_the_answers(feedback, initial):
    study, turned = studying(feedback, initial=initial), studying(feedback, initial=initial)
    other = {"binary": {"answer": False}, "duel": {"answer": 0}, "batch": {"ranking": [0, 1, 2]}}[feedback]
    for _ in range(initial):
        question = study.ask()
        assert question == turned.ask()
        answered(study, question)
        turned.tell(question.id, **other)


@each_kind
def test_the_first_questions_cover_the_space(feedback):
    study = studying(feedback, plane(), initial=16)
    points = [study.space.unit(option) for question in played(study, 16) for option in question.options]
    quarters = {tuple((point * 4).long().tolist()) for point in points[:16]}
    assert len(quarters) >= 13  # sixteen independent draws take ten of sixteen fields


def test_the_first_questions_are_settings_that_satisfy_the_constraints():
    space = aw.Space(a=aw.Real(0, 1), b=aw.Real(0, 1), k=aw.Integer(1, 3), m=aw.Choice(["p", "q"]))
    study = aw.Study(space.where("a + b <= 0.4", "a + k >= 1.3"), "duel", rule="random", initial=16)
    options = [option for question in played_at_random(study, 16) for option in question.options]
    assert all(option["a"] + option["b"] <= 0.4 + 1e-9 for option in options)
    assert {option["k"] for option in options} == {1, 2, 3}
    assert {option["m"] for option in options} == {"p", "q"}


def test_constraints_that_leave_hardly_anything_leave_something_to_ask():
    space = aw.Space(a=aw.Real(0, 1), b=aw.Real(0, 1)).where("a + b <= 0.0001")
    question = aw.Study(space, "duel").ask()
    assert all(option["a"] + option["b"] <= 0.0001 + 1e-9 for option in question.options)


def played_at_random(study: Study, rounds: int) -> list[Question]:
    asked = []
    for _ in range(rounds):
        asked.append(study.ask())
        study.tell(asked[-1], 0)
    return asked


@pytest.mark.parametrize(
    ("feedback", "rule", "size", "initial", "kernel"),
    [
        ("binary", "ucb_phi", 1, 3, "matern52"),
        ("duel", "muc", 2, 10, "averaged"),
        ("batch", "muc_joint", 3, 2, "matern52"),
    ],
)
def test_a_study_has_sensible_defaults(feedback, rule, size, initial, kernel):
    study = Study(line(), feedback)
    assert str(study.rule) == rule
    assert (study.size, study.plan.initial, study.seed, study.plan.kernel) == (size, initial, 0, kernel)
    assert Study(line()).feedback == "duel"


def test_a_rule_may_be_given_as_text_or_as_an_object():
    assert studying("binary", rule="ucb_phi(beta=2)").rule == parse("ucb_phi(beta=2)")
    assert studying("binary", rule=parse("thompson")).rule == parse("thompson")


@pytest.mark.parametrize("size", [pytest.param(2, marks=SLOW), 4])
def test_a_batch_has_as_many_options_as_wanted(size):
    study = studying("batch", size=size, initial=1)
    assert [len(question.options) for question in played(study, 2)] == [size] * 2


# answers


LIKE_INTEGERS = [np.int64(1), np.int32(1), torch.tensor(1), np.array(1)]


@pytest.mark.parametrize("feedback", ["binary", "duel"])
@pytest.mark.parametrize("answer", LIKE_INTEGERS, ids=lambda answer: type(answer).__name__)
def test_numbers_of_other_libraries_are_numbers(feedback, answer, unchecked):
    plain, other = studying(feedback), studying(feedback)
    plain.tell(plain.ask(), 1)
    other.tell(other.ask(), answer)
    assert plain.best() == other.best()


@pytest.mark.parametrize("answer", [np.True_, 1, np.uint8(1)])
def test_yes_has_many_spellings(answer, unchecked):
    plain, other = studying("binary"), studying("binary")
    plain.tell(plain.ask(), True)
    other.tell(other.ask().id, answer)
    assert plain.best() == other.best()
    assert plain.ask() == other.ask()


@pytest.mark.parametrize("ranking", [(2, 0, 1), np.array([2, 0, 1]), [np.int64(2), np.int64(0), np.int64(1)]])
def test_a_ranking_may_be_any_sequence(ranking, unchecked):
    plain, other = studying("batch"), studying("batch")
    plain.tell(plain.ask(), ranking=[2, 0, 1])
    other.tell(other.ask(), ranking=ranking)
    assert plain.best() == other.best()


def test_a_question_that_was_modified_harms_nothing_and_cannot_be_answered():
    study, clean = studying("duel"), studying("duel")
    question = study.ask()
    question.options[0]["u"] = 99.0
    question.options.pop()
    assert study.ask() == clean.ask()
    with pytest.raises(ValueError, match=r"^question must be of this study; got .*99\.0.*\. Tell the study"):
        study.tell(question, 1)
    study.tell(question.id, 1)
    clean.tell(0, 1)
    assert study.best() == clean.best()


# the best setting


@each_kind
def test_without_answers_anything_may_be_best(feedback):
    for study in (studying(feedback, plane()), Study(plane(), feedback)):
        best = study.best()
        assert -2 <= best.params["u"] <= 2
        assert 1 <= best.params["v"] <= 100
        assert best.mean == 0
        assert best.std > 0
        assert best.probability == pytest.approx(0.5)


@most_kinds
def test_asking_for_the_best_changes_nothing(feedback):
    one, other = (studying(feedback, seed=2, initial=2) for _ in range(2))
    for _ in range(3 if feedback == "batch" else 4):
        assert one.best() == one.best()
        assert one.ask() == other.ask()
        answered(one, one.ask())
        one.best()
        answered(other, other.ask())


def belief_of(study: Study, asked: list[Question]) -> Belief:
    return aw.infer(data_of(study, asked), fixed())


@each_kind
def test_the_best_is_that_of_all_answers(feedback):
    study = studying(feedback, rule="random")
    asked = played(study, 6)
    best, belief = study.best(), belief_of(study, asked)
    grid = torch.linspace(0, 1, 4001, dtype=torch.float64)[:, None]
    value = belief.success_probability(grid) if feedback == "binary" else belief.mean(grid)
    top = study.space.natural(grid[value.argmax()])
    assert best.params["u"] == pytest.approx(top["u"], abs=5e-3)
    mean, var = belief.moments(study.space.unit(best.params)[None])
    assert best.mean == pytest.approx(mean.item(), abs=1e-4)
    assert best.std == pytest.approx(var.sqrt().item(), abs=1e-4)
    here = study.space.unit(best.params)[None]
    if feedback == "binary":
        chance = belief.success_probability(here)
    else:
        chance = belief.success_probability(here.expand_as(grid), grid).mean()
    assert best.probability == pytest.approx(chance.item(), abs=5e-3)
    assert feedback == "binary" or best.probability > 0.5


@pytest.mark.parametrize(
    "feedback", ["duel", *(pytest.param(kind, marks=SLOW) for kind in ("binary", "batch"))]
)
def test_a_hill_is_found(feedback):
    study = studying(feedback, plane(), kernel=aw.kernel("se", 0.4, 10.0))
    before = study.best()
    played(study, {"binary": 40, "duel": 20, "batch": 10}[feedback])
    best = study.best()
    assert worth(best.params) > -0.15
    assert best.probability > 0.7
    assert best.std < before.std


def test_after_nothing_but_no_a_study_looks_elsewhere():
    study, places = Study(line(), "binary"), []
    for _ in range(10):
        question = study.ask()
        places.append(round(question.options[0]["u"], 2))
        study.tell(question, False)
    assert len(set(places[3:])) >= 5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("feedback", "seed"),
    [(kind, seed) for kind in KINDS for seed in (0, 1, 2, 3)],
)
def test_a_hill_is_found_with_a_kernel_that_is_learned(feedback, seed):
    study = Study(plane(), feedback, seed=seed)
    played(study, {"binary": 45, "duel": 30, "batch": 12}[feedback])
    assert worth(study.best().params) > -0.15


# kernels


def test_a_kernel_that_is_given_stays_as_it_is():
    kernel = aw.kernel("matern32", 0.2, 3.0)
    state = {name: part.clone() for name, part in kernel.state_dict().items()}
    study = studying("duel", kernel=kernel, initial=1)
    played(study, 4)
    study.best()
    assert all(torch.equal(part, kernel.state_dict()[name]) for name, part in state.items())


def test_the_kernel_that_is_given_matters():
    rough, smooth = (studying("duel", kernel=aw.kernel("se", length)) for length in (0.05, 1.0))
    for study in (rough, smooth):
        played(study, 3)
    assert abs(rough.best().mean - smooth.best().mean) > 1e-2


@pytest.mark.parametrize("name", [pytest.param("se", marks=SLOW), "matern52"])
def test_the_parameters_of_a_named_kernel_are_learned(name):
    study = Study(line(), "duel", kernel=name, initial=4, lapses=0)
    asked = played(study, 4)
    data = data_of(study, asked)
    learned = aw.fit(data, Plan.checked(line(), kernel=name).expected_kernel()).kernel
    belief, best = aw.infer(data, learned), study.best()
    mean, var = belief.moments(study.space.unit(best.params)[None])
    assert best.mean == pytest.approx(mean.item(), abs=1e-4)
    assert best.std == pytest.approx(var.sqrt().item(), abs=1e-4)
    query = next_query(data, parse("muc"), learned, 2, generator("askwise study", 0, 4))
    question = study.ask()
    got = torch.stack([study.space.unit(option) for option in question.options])
    torch.testing.assert_close(got, query.points[list(question.order)], rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["se", "matern32", "matern52"])
@pytest.mark.parametrize("d", [1, 2, 9])
def test_a_study_expects_that_its_parameters_matter_and_good_settings_win(name, d):
    space = aw.Space(**{f"x{k}": aw.Real(0, 1) for k in range(d)})
    kernel, length = Plan.checked(space, kernel=name).expected_kernel(), 0.2 * math.sqrt(d)
    torch.testing.assert_close(kernel.base_kernel.lengthscale, f64([[length] * d]))
    torch.testing.assert_close(kernel.outputscale, f64(4.0))
    priors = {tag: prior for tag, _, prior, *_ in kernel.named_priors()}
    assert set(priors) == {"base_kernel.length", "variance"}
    got = {tag: (prior.loc.mean().item(), prior.scale.mean().item()) for tag, prior in priors.items()}
    assert got["base_kernel.length"] == pytest.approx((math.log(length), 0.5))
    assert got["variance"] == pytest.approx((math.log(4), 0.7))


@pytest.mark.parametrize("rule", ["ei", "bivariate_ei", "hallucination_believer", "muc"])
def test_without_answers_every_rule_starts_with_a_space_filling_question(rule):
    study = studying("duel", rule=rule, initial=0)
    assert study.ask() == studying("duel", initial=1).ask()
    played(study, 2)


@pytest.mark.parametrize(
    ("space", "feedback", "size"),
    [
        (aw.Space(m=aw.Choice(["a", "b", "c"])), "duel", None),
        (aw.Space(m=aw.Choice(["a", "b"])), "duel", None),
        (aw.Space(k=aw.Integer(0, 2)), "duel", None),
        (aw.Space(m=aw.Choice(list("abcde"))), "batch", 3),
    ],
    ids=str,
)
def test_first_questions_compare_different_settings_and_differ_from_those_that_are_open(
    space, feedback, size
):
    for seed in range(4):
        study = aw.Study(space, feedback, size=size, seed=seed, initial=9)
        asked = [study.ask(f"person {k}").options for k in range(3)]
        members = [sorted(str(option) for option in options) for options in asked]
        assert all(len(set(names)) == len(names) for names in members)
        possible = 1 if space.d == 2 else 3  # two values make one duel
        assert len({tuple(names) for names in members}) == possible


def test_questions_do_not_depend_on_the_number_of_threads():
    studies = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        studies.append(Study(plane(), "duel", seed=3, initial=8))
        played(studies[-1], 9)
        assert torch.get_num_threads() == threads
    assert studies[0].history()[-1].options == studies[1].history()[-1].options


def test_a_study_works_under_no_grad():
    one, other = (Study(line(), seed=3, initial=4) for _ in range(2))
    played(one, 5)
    with torch.inference_mode():
        played(other, 4)
    with torch.no_grad():
        played(other, 1)
        assert other.best() == one.best()
