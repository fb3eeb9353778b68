"""A study from the first question to the best setting, and every answer that it must refuse."""

import inspect
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from gpytorch.kernels import ScaleKernel

import askwise as aw
from askwise.belief import Belief
from askwise.loop import next_query
from askwise.rules import parse
from askwise.seeds import generator
from askwise.study import Best, Question, Study, _expected
from tensors import f64

HOUSE = r"^[^;]+ must [^;]+; got (.|\n)+\. .+"
KINDS = ("binary", "duel", "batch")
each_kind = pytest.mark.parametrize("feedback", KINDS)
SIZE = {"binary": 1, "duel": 2, "batch": 3}


class Unchecked(Study):
    """A study as users have it, without the tests' type checker."""

    __init__ = inspect.unwrap(Study.__init__)
    tell = inspect.unwrap(Study.tell)
    _read = inspect.unwrap(Study._read)


def line() -> aw.Space:
    return aw.Space(u=aw.Real(-2, 2))


def plane() -> aw.Space:
    return aw.Space(u=aw.Real(-2, 2), v=aw.Real(1, 100, log=True))


def fixed() -> ScaleKernel:
    return aw.kernel("se", 0.3, 4.0)


def studying(feedback: str = "duel", space: aw.Space | None = None, **options: object) -> Study:
    options = {"kernel": fixed()} | options
    return Unchecked(line() if space is None else space, feedback, **options)


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
    study = studying(feedback)
    played(study, 2)
    once = study.ask()
    assert study.ask() == once
    assert once.id == 2
    answered(study, once)
    assert study.ask().id == 3
    assert study.ask().options != once.options


@each_kind
def test_a_question_may_be_answered_by_its_number(feedback):
    one, other = studying(feedback), studying(feedback)
    for _ in range(3):
        question = one.ask()
        answered(one, question)
        number = other.ask().id
        answered(other, Question(number, question.options))
    answer = {"binary": {"answer": True}, "duel": {"answer": 1}, "batch": {"ranking": [2, 0, 1]}}[feedback]
    one.tell(one.ask(), **answer)
    other.tell(other.ask().id, **answer)
    assert one.ask() == other.ask()
    assert one.best() == other.best()


@each_kind
def test_equal_seeds_and_answers_give_equal_questions(feedback):
    one, other = studying(feedback, seed=3), studying(feedback, seed=3)
    assert played(one, 7) == played(other, 7)
    assert one.best() == other.best()


@each_kind
def test_other_seeds_give_other_questions(feedback):
    first = [played(studying(feedback, seed=seed), 2) for seed in range(4)]
    assert all(first[k] != first[0] for k in range(1, 4))


@each_kind
def test_questions_are_in_natural_units_inside_the_bounds(feedback):
    study = studying(feedback, plane())
    for question in played(study, 8):
        assert len(question.options) == SIZE[feedback]
        for option in question.options:
            assert list(option) == ["u", "v"]
            assert all(isinstance(value, float) for value in option.values())
            assert -2 <= option["u"] <= 2
            assert 1 <= option["v"] <= 100


def test_the_first_questions_cover_a_logarithmic_scale():
    asked = [studying("binary", plane(), seed=seed).ask().options[0]["v"] for seed in range(60)]
    assert 15 < sum(value < 10 for value in asked) < 45


def data_of(study: Study, asked: list[Question]) -> aw.Data:
    """The answers as they were given, built by hand."""
    data = aw.Data.binary(torch.empty(0, study.space.d, dtype=torch.float64), torch.empty(0))
    for question in asked:
        X = torch.stack([study.space.unit(option) for option in question.options])
        values = [worth(option) for option in question.options]
        if study.feedback == "binary":
            data = data + aw.Data.binary(X, [int(values[0] > -0.2)])
        else:
            pairs = [(i, j) for i in range(len(X)) for j in range(i + 1, len(X))]
            won = [int(values[i] > values[j]) for i, j in pairs]
            data = data + aw.Data.duels(torch.stack([X[list(pair)] for pair in pairs]), won)
    return data


@each_kind
def test_a_study_asks_what_the_step_of_the_loop_asks(feedback):
    study = studying(feedback, seed=5, initial=2)
    rule = {"binary": "ucb_phi", "duel": "muc", "batch": "muc_joint"}[feedback]
    asked: list[Question] = []
    for number in range(5):
        data, source = data_of(study, asked), generator("askwise study", 5, number)
        heard_both = feedback != "binary" or len(set(data.signs.tolist())) == 2
        text = rule if number >= 2 and heard_both else "random"
        query = next_query(data, parse(text), fixed(), SIZE[feedback], source)
        question = study.ask()
        got = torch.stack([study.space.unit(option) for option in question.options])
        torch.testing.assert_close(got, query.points, rtol=0, atol=1e-6)
        answered(study, question)
        asked.append(question)


@pytest.mark.parametrize("initial", [0, 1, 4])
@each_kind
def test_the_first_questions_are_at_random_and_independent_of_the_answers(feedback, initial):
    study, random = studying(feedback, initial=initial), studying(feedback, rule="random", initial=0)
    turned = studying(feedback, initial=initial)
    for number in range(initial + 1):
        question, drawn, same = study.ask(), random.ask(), turned.ask()
        if number == initial:
            assert feedback == "binary" or question != drawn  # a yes and a no must have been heard
            break
        assert question == drawn == same
        answered(study, question)
        answered(random, drawn)
        turned.tell(
            same, **{"binary": {"answer": False}, "duel": {"answer": 0}}.get(feedback, {"ranking": [0, 1, 2]})
        )


@pytest.mark.parametrize(
    ("feedback", "rule", "size", "initial"),
    [("binary", "ucb_phi", 1, 3), ("duel", "muc", 2, 5), ("batch", "muc_joint", 3, 2)],
)
def test_a_study_has_sensible_defaults(feedback, rule, size, initial):
    study = Study(line(), feedback)
    assert str(study.rule) == rule
    assert (study.size, study.initial, study.seed, study.kernel) == (size, initial, 0, "matern52")
    assert Study(line()).feedback == "duel"


def test_a_rule_may_be_given_by_text_or_as_it_is():
    assert studying("binary", rule="ucb_phi(beta=2)").rule == parse("ucb_phi(beta=2)")
    assert studying("binary", rule=parse("thompson")).rule == parse("thompson")


@pytest.mark.parametrize("size", [2, 3, 5])
def test_a_batch_has_as_many_options_as_wanted(size):
    study = studying("batch", size=size, initial=1)
    assert [len(question.options) for question in played(study, 3)] == [size] * 3


# answers


def same_state(study: Study) -> tuple[Question, Best, int]:
    return study.ask(), study.best(), len(study._answers)


def refused(study: Study, call: Callable[[], None]) -> str:
    """The message of the error, after which everything is as it was."""
    before = same_state(study)
    with pytest.raises((ValueError, TypeError), match=HOUSE) as error:
        call()
    assert same_state(study) == before
    answered(study, before[0])
    assert study.ask().id == before[0].id + 1
    return str(error.value)


NEVER = [2, -1, 7, 0.5, None, "1", "yes", "", math.nan, [1], [], {}, (0,)]
ARRAYS = [np.array([1, 0]), torch.tensor([0, 1])]


@pytest.mark.parametrize("answer", [*NEVER, *ARRAYS])
def test_an_answer_that_is_neither_yes_nor_no_is_refused(answer):
    study = studying("binary")
    question = study.ask()
    message = refused(study, lambda: study.tell(question, answer))
    assert message.startswith(f"answer must be True or False; got {answer!r}. ")


@pytest.mark.parametrize("answer", [*NEVER, *ARRAYS, True, False, np.True_, np.False_, torch.tensor(True)])
def test_an_answer_that_is_no_option_of_the_duel_is_refused(answer):
    study = studying("duel")
    question = study.ask()
    message = refused(study, lambda: study.tell(question, answer))
    assert message.startswith(f"answer must be 0 or 1, the index of the preferred option; got {answer!r}. ")


RANKINGS = [
    None,
    [],
    [0],
    [0, 1],
    [0, 1, 1],
    [1, 2, 3],
    [0, 1, 2, 3],
    [-1, 0, 1],
    (2, 2, 2),
    "012",
    [0.5, 1, 2],
]
MIXED = [[0, 1, "2"], [None] * 3, 5, {0, 1, 2}, {0: 0, 1: 1, 2: 2}]


@pytest.mark.parametrize("ranking", [*RANKINGS, [[0], [1], [2]], [math.nan, 0, 1], *MIXED], ids=str)
def test_a_ranking_that_does_not_name_each_option_once_is_refused(ranking):
    study = studying("batch")
    question = study.ask()
    message = refused(study, lambda: study.tell(question, ranking=ranking))
    assert message.startswith("ranking must name each of the options 0 to 2 once, best first; got ")


def test_a_batch_is_not_answered_by_one_option():
    study = studying("batch")
    assert refused(study, lambda: study.tell(study.ask(), 1)).startswith("ranking must name each")


@pytest.mark.parametrize("feedback", ["binary", "duel"])
def test_only_a_batch_is_answered_by_a_ranking(feedback):
    for answer in (None, 1):
        study = studying(feedback)
        message = refused(study, lambda s=study, a=answer: s.tell(s.ask(), a, ranking=[0, 1]))
        assert message.startswith("answer must be ")
        assert "ranking=[0, 1]" in message


@pytest.mark.parametrize("feedback", ["binary", "duel"])
def test_a_ranking_that_is_refused_is_shown_as_it_was_written(feedback):
    study = studying(feedback)
    assert "; got ranking=[0, 1]. " in refused(study, lambda: study.tell(study.ask(), ranking=[0, 1]))


def test_a_batch_is_not_answered_twice_over():
    study = studying("batch")
    refused(study, lambda: study.tell(study.ask(), 1, ranking=[0, 1, 2]))


@pytest.mark.parametrize("number", [1, 7, -1, 0.5, 0.0, None, "0", [0], (), b"0", True, False])
def test_a_question_that_was_not_asked_is_not_answered(number):
    study = studying("duel")
    study.ask()
    message = refused(study, lambda: study.tell(number, 1))
    assert message == f"question must be one that was asked, or its id; got {number!r}. Asked so far: 1."


def test_nothing_is_answered_before_it_is_asked():
    study = studying("duel")
    with pytest.raises(ValueError, match=r"one that was asked, or its id; got 0\. Asked so far: 0\."):
        study.tell(0, 1)


@each_kind
def test_a_question_is_answered_once(feedback):
    study = studying(feedback)
    (question,) = played(study, 1)
    study.ask()
    for which in (question, 0):
        before = same_state(study)
        with pytest.raises(
            ValueError, match=r"^question 0 must be open; got an answer to it before\. Ask the"
        ):
            answered(study, which if isinstance(which, Question) else Question(which, question.options))
        assert same_state(study) == before


@pytest.mark.parametrize("number", [np.int64(0), torch.tensor(0)])
def test_a_question_is_answered_once_also_by_a_number_of_another_library(number):
    study = studying("duel")
    study.ask()
    study.tell(number, 1)
    for again in (number, 0):
        with pytest.raises(ValueError, match="question 0 must be open"):
            study.tell(again, 1)


def test_the_question_of_another_study_is_not_answered():
    study, other = studying("duel", seed=1), studying("duel", seed=2)
    study.ask()
    message = refused(study, lambda: study.tell(other.ask(), 1))
    assert message.startswith("question must be of this study; got Question(id=0, ")


LIKE_INTEGERS = [np.int64(1), np.int32(1), torch.tensor(1), np.array(1)]


@pytest.mark.parametrize("feedback", ["binary", "duel"])
@pytest.mark.parametrize("answer", LIKE_INTEGERS, ids=lambda answer: type(answer).__name__)
def test_numbers_of_other_libraries_are_numbers(feedback, answer):
    plain, other = studying(feedback), studying(feedback)
    plain.tell(plain.ask(), 1)
    other.tell(other.ask(), answer)
    assert plain.best() == other.best()


@pytest.mark.parametrize("answer", [np.True_, 1, np.uint8(1)])
def test_yes_has_many_spellings(answer):
    plain, other = studying("binary"), studying("binary")
    plain.tell(plain.ask(), True)
    other.tell(other.ask().id, answer)
    assert plain.best() == other.best()
    assert plain.ask() == other.ask()


@pytest.mark.parametrize("ranking", [(2, 0, 1), np.array([2, 0, 1]), [np.int64(2), np.int64(0), np.int64(1)]])
def test_a_ranking_may_be_any_sequence(ranking):
    plain, other = studying("batch"), studying("batch")
    plain.tell(plain.ask(), ranking=[2, 0, 1])
    other.tell(other.ask(), ranking=ranking)
    assert plain.best() == other.best()


def test_a_question_that_was_scribbled_on_harms_nothing_and_is_not_answered():
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


@each_kind
def test_asking_for_the_best_changes_nothing(feedback):
    one, other = studying(feedback, seed=2), studying(feedback, seed=2)
    for _ in range(6):
        assert one.best() == one.best()
        assert one.ask() == other.ask()
        answered(one, one.ask())
        one.best()
        answered(other, other.ask())


def belief_of(study: Study, asked: list[Question]) -> Belief:
    return aw.infer(data_of(study, asked), fixed())


@each_kind
def test_the_best_is_that_of_all_answers(feedback):
    study = studying(feedback, initial=2)
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


@each_kind
def test_a_hill_is_found(feedback):
    study = studying(feedback, plane(), kernel=aw.kernel("se", 0.4, 10.0))
    before = study.best()
    played(study, {"binary": 40, "duel": 20, "batch": 10}[feedback])
    best = study.best()
    assert worth(best.params) > -0.15
    assert best.probability > 0.7
    assert best.std < before.std


def test_a_study_that_has_only_heard_no_looks_elsewhere():
    study, places = Study(line(), "binary"), []
    for _ in range(10):
        question = study.ask()
        places.append(round(question.options[0]["u"], 2))
        study.tell(question, False)
    assert len(set(places[3:])) >= 5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("feedback", "seed"),
    [(kind, seed) for kind in KINDS for seed in (0, 2, 3)],
)
def test_a_hill_is_found_with_a_kernel_that_is_learned(feedback, seed):
    """Not with seed 1: its first sixty yes/no questions, at random, all miss the small part that is a yes."""
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
    assert study.kernel is kernel
    assert all(torch.equal(part, kernel.state_dict()[name]) for name, part in state.items())


def test_the_kernel_that_is_given_matters():
    rough, smooth = (studying("duel", kernel=aw.kernel("se", length)) for length in (0.05, 1.0))
    for study in (rough, smooth):
        played(study, 3)
    assert abs(rough.best().mean - smooth.best().mean) > 1e-2


@pytest.mark.parametrize("name", ["se", "matern32", "matern52"])
def test_the_parameters_of_a_named_kernel_are_learned(name):
    study = Study(line(), "duel", kernel=name, initial=4)
    asked = played(study, 4)
    data = data_of(study, asked)
    learned = aw.fit(data, _expected(name, 1)).kernel
    belief, best = aw.infer(data, learned), study.best()
    mean, var = belief.moments(study.space.unit(best.params)[None])
    assert best.mean == pytest.approx(mean.item(), abs=1e-4)
    assert best.std == pytest.approx(var.sqrt().item(), abs=1e-4)
    query = next_query(data, parse("muc"), learned, 2, generator("askwise study", 0, 4))
    got = torch.stack([study.space.unit(option) for option in study.ask().options])
    torch.testing.assert_close(got, query.points, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["se", "matern32", "matern52"])
@pytest.mark.parametrize("d", [1, 2, 9])
def test_a_study_expects_that_its_parameters_matter_and_good_settings_win(name, d):
    kernel, length = _expected(name, d), 0.2 * math.sqrt(d)
    torch.testing.assert_close(kernel.base_kernel.lengthscale, f64([[length] * d]))
    torch.testing.assert_close(kernel.outputscale, f64(4.0))
    priors = {tag: prior for tag, _, prior, *_ in kernel.named_priors()}
    assert set(priors) == {"base_kernel.length", "variance"}
    got = {tag: (prior.loc.item(), prior.scale.item()) for tag, prior in priors.items()}
    assert got["base_kernel.length"] == pytest.approx((math.log(length), 0.5))
    assert got["variance"] == pytest.approx((math.log(4), 0.7))


# what a study refuses


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"feedback": "yes/no"}, r"^feedback must be 'binary', 'duel' or 'batch'; got 'yes/no'\. Choose one"),
        ({"feedback": None}, r"^feedback must be .*; got None\. "),
        (
            {"rule": "ucb_phi"},
            r"^rule must ask duel questions; got ucb_phi, which asks binary\. Choose another",
        ),
        (
            {"feedback": "binary", "rule": "muc"},
            r"^rule must ask binary .*; got muc, which asks batch, duel\.",
        ),
        (
            {"feedback": "batch", "rule": parse("ei")},
            r"^rule must ask batch questions; got ei, which asks duel\.",
        ),
        ({"rule": "best"}, r"^rule must be one of .*; got 'best'\. "),
        ({"size": 3}, r"^size must be 2 for duel questions; got 3\. Leave it out\."),
        ({"feedback": "binary", "size": 2}, r"^size must be 1 for binary questions; got 2\. "),
        ({"feedback": "batch", "size": 1}, r"^size must be 2 or more for batch questions; got 1\. "),
        ({"feedback": "batch", "size": 0}, r"^size must be 2 or more for batch questions; got 0\. "),
        ({"feedback": "batch", "size": -3}, r"^size must be 2 or more for batch questions; got -3\. "),
    ],
)
def test_a_study_that_makes_no_sense_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Unchecked(line(), **options)


@pytest.mark.parametrize(
    "options",
    [
        {"kernel": "rbf"},
        {"kernel": 3},
        {"kernel": aw.kernel("se", [0.3, 0.3])},
        {"initial": -1},
        {"initial": 1.5},
        {"feedback": "batch", "size": 2.5},
        {"feedback": "batch", "size": "3"},
        {"feedback": ["duel"]},
        {"rule": 3},
    ],
    ids=str,
)
def test_a_study_that_cannot_go_on_is_refused_before_anyone_is_asked(options, monkeypatch):
    monkeypatch.setattr("askwise.study.kernel", inspect.unwrap(aw.kernel))
    with pytest.raises((ValueError, TypeError), match=HOUSE):
        Unchecked(line(), **options)


def test_a_rule_that_needs_answers_asks_nothing_without_them():
    study = studying("duel", rule="ei", initial=0)
    with pytest.raises(ValueError, match=r"must have answers to start from; got none\. Ask at random first"):
        study.ask()
    played(studying("duel", rule="ei", initial=1), 2)
