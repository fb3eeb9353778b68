"""Runs in lockstep: each lane equals the run alone, and asks what a study would ask."""

import math
import re
from dataclasses import fields, replace
from typing import Any

import pytest
import torch
from gpytorch.kernels import Kernel
from scipy.stats import norm
from torch import Tensor

import askwise as aw
from askwise.bench.experiments import Arm, Experiment
from askwise.bench.functions import FUNCTIONS
from askwise.bench.lanes import RunId, Runs, run
from askwise.bench.problems import Problem
from askwise.bench.user import User
from askwise.model.features import FourierFeatures, HilbertFeatures
from askwise.model.paths import draw
from askwise.numerics.seeds import generator
from tensors import f64

HOUSE = re.compile(r"^[^;\n]+ must [^;\n]+; got [^\n]+\. [^\n]+$")
LINES = ("forrester", "gramacy_lee")
CERTAIN = User(noise=1e-9)


def experiment(*rules: tuple[str, int], functions: tuple[str, ...] = LINES, **others: Any) -> Experiment:
    """A small one: standardised functions, two initial queries, four more."""
    usual = {"replicates": 2, "iterations": 6, "initial": 2, "scale": "standardised", "prior": "likelihood"}
    arms = tuple(Arm(rule, m) for rule, m in rules)
    return Experiment("lanes", "Lanes", "For tests.", arms, functions=functions, **usual | others)


def ids_of(of: Experiment, label: str | None = None) -> list[RunId]:
    """All runs of an arm."""
    label = of.arms[0].label if label is None else label
    return [
        RunId(of.name, name, label, replicate) for name in of.functions for replicate in range(of.replicates)
    ]


def kernel_of(name: str, of: Experiment) -> Kernel:
    known = Problem.of(name, of.scale).hyperparameters(of.prior)
    assert known is not None
    return known.gpytorch()


def lane_of(runs: Runs, lane: int) -> Runs:
    parts = {field.name: getattr(runs, field.name)[lane, None] for field in fields(Runs)[:-1]}
    return Runs(**parts, seconds=runs.seconds)


def assert_alike(one: Runs, other: Runs, atol: float) -> None:
    assert torch.equal(one.answers, other.answers)
    for name in ("questions", "optima", "scores"):
        torch.testing.assert_close(getattr(one, name), getattr(other, name), rtol=0, atol=atol)


def answers_of(of: Experiment, run_id: RunId, questions: Tensor) -> Tensor:
    """The user's answers to these queries [t, m, d], from the definition."""
    t, m, _ = questions.shape
    pairs, first = max(1, m * (m - 1) // 2), of.initial
    start, rest = generator(*run_id.start), generator(*run_id.identity, "answers")
    torch.rand(first * m * questions.shape[-1], generator=start, dtype=torch.float64)
    early = torch.rand(first * pairs, generator=start, dtype=torch.float64)
    late = torch.rand((t - first) * pairs, generator=rest, dtype=torch.float64)
    chance = torch.cat([early, late]).reshape(t, pairs)
    values = Problem.of(run_id.function, of.scale).value(questions)
    better = values if m == 1 else torch.stack([a - b for a, b in in_pairs(values)], -1)
    return chance < f64(norm.cdf(better / of.user.noise))


def in_pairs(values: Tensor) -> list[tuple[Tensor, Tensor]]:
    m = values.shape[-1]
    return [(values[..., i], values[..., j]) for i in range(m) for j in range(i + 1, m)]


# alone and together

TOGETHER = {
    "muc": experiment(("muc", 2), replicates=1, iterations=4),
    "muc in batches": experiment(("muc", 3), replicates=1, iterations=3),
    "ucb_phi": experiment(("ucb_phi", 1), replicates=1, iterations=4, scale="rescaled", prior="recovered"),
    "kss, features of two kinds": experiment(
        ("kss", 2), functions=("griewank", "eggholder"), replicates=1, iterations=4
    ),
    "thompson, features of two kinds": experiment(
        ("thompson", 1), functions=("sphere", "drop_wave", "trid"), replicates=1, iterations=3
    ),
    "muc, a learned kernel": experiment(("muc", 2), replicates=1, prior="learned", iterations=3),
    "muc, averaged kernels": experiment(("muc", 2), replicates=1, prior="averaged", iterations=3),
}
SLOW = ("muc", "kss, features of two kinds")  # the first has a fast sibling with more lanes
slow = pytest.mark.slow


@pytest.mark.parametrize(
    "of", [pytest.param(of, marks=slow if name in SLOW else (), id=name) for name, of in TOGETHER.items()]
)
def test_a_lane_run_with_others_is_the_lane_run_alone(of):
    ids = ids_of(of)
    together = run(of, ids)
    for lane, run_id in enumerate(ids):
        assert_alike(lane_of(together, lane), run(of, [run_id]), atol=1e-6)


def test_the_cases_above_have_features_of_both_kinds():
    for of in TOGETHER.values():
        if "thompson" not in of.arms[0].rule and "kss" not in of.arms[0].rule:
            continue
        kinds = set()
        for name in of.functions:
            data = aw.Data.binary(torch.full((1, 2), 0.3), torch.ones(1))
            path = draw(aw.infer(data, kernel_of(name, of)), 1, generator(0))
            kinds.add(type(path.features))
        assert kinds == {HilbertFeatures, FourierFeatures}


def test_more_lanes_than_are_searched_at_once_equal_lanes_alone():
    of = experiment(("muc", 2), iterations=3, replicates=6)
    together = run(of, ids_of(of))
    assert len(together.scores) == 12
    for lane in (0, 7, 8, 11):
        assert_alike(lane_of(together, lane), run(of, [ids_of(of)[lane]]), atol=1e-6)


def test_the_order_of_lanes_does_not_matter():
    of = experiment(("kss", 2), iterations=4)
    forth, back = run(of, ids_of(of)), run(of, ids_of(of)[::-1])
    for lane in range(4):
        assert_alike(lane_of(forth, lane), lane_of(back, 3 - lane), atol=1e-6)


def test_equal_names_give_equal_runs():
    of = experiment(("kss", 2), iterations=4)
    ids = [*ids_of(of), ids_of(of)[1]]
    once, again = run(of, ids), run(of, ids)
    for field in fields(Runs)[:-1]:
        assert torch.equal(getattr(once, field.name), getattr(again, field.name))
    assert_alike(lane_of(once, 1), lane_of(once, 4), atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "m"), [("dueling_ucb", 2), ("bivariate_ei", 2), ("eiig", 2), ("ei", 2), ("dueling_thompson", 2)]
)
def test_lanes_of_other_rules_in_two_dimensions_equal_lanes_alone(rule, m):
    # none of the smoothest: with variance 20,000 at lengthscale 4 rounding grows to 3e-5 in eight questions;
    # nor the roughest, where points far from all answers, or around one, have the same score but for rounding
    of = experiment((rule, m), functions=("beale", "six_hump_camel", "ursem_waves"), iterations=8)
    together = run(of, ids_of(of))
    for lane, run_id in enumerate(ids_of(of)):
        assert_alike(lane_of(together, lane), run(of, [run_id]), atol=1e-5)


# how a run begins, and how it is answered


@pytest.fixture(scope="module")
def duels() -> tuple[Experiment, Runs, Runs]:
    """The same experiment by two rules."""
    of = experiment(("muc", 2), ("random", 2), iterations=5, initial=3)
    return of, run(of, ids_of(of)), run(of, ids_of(of, "random"))


def test_first_questions_are_uniform_and_follow_from_function_and_replicate(duels):
    of, muc, _ = duels
    for lane, run_id in enumerate(ids_of(of)):
        source = generator("lanes", run_id.function, run_id.replicate, "start")
        want = torch.rand(of.initial, 2, 1, generator=source, dtype=torch.float64)
        assert torch.equal(muc.questions[lane, : of.initial], want)


def test_all_rules_share_the_first_questions_and_answers_and_no_others(duels):
    of, muc, at_random = duels
    first = of.initial
    assert torch.equal(muc.questions[:, :first], at_random.questions[:, :first])
    assert torch.equal(muc.answers[:, :first], at_random.answers[:, :first])
    torch.testing.assert_close(muc.scores[:, :first], at_random.scores[:, :first], rtol=0, atol=1e-6)
    assert ((muc.questions[:, first:] - at_random.questions[:, first:]).abs() > 1e-3).any(-2).all()


def test_replicates_and_functions_have_first_questions_of_their_own(duels):
    _, muc, _ = duels
    assert len(muc.questions[:, 0].flatten().unique()) == 4 * 2


@pytest.mark.parametrize("initial", [1, 3])
def test_the_rule_asks_right_after_the_first_questions(initial):
    of = experiment(("muc", 2), iterations=4, initial=initial)
    runs, (run_id, *_) = run(of, ids_of(of)), ids_of(of)
    for number in range(initial, of.iterations):
        data = aw.Data.duels(runs.questions[0, :number], runs.answers[0, :number, 0].long())
        # the first point of a duel by muc is the champion, the point of highest mean
        belief = aw.infer(data, kernel_of(run_id.function, of))
        top = on_a_line(belief)[0]
        assert float(belief.mean(runs.questions[0, number, :1])) >= top - 1e-6
    assert torch.equal(
        runs.questions[0, :initial].flatten(),
        torch.rand(2 * initial, generator=generator(*run_id.start), dtype=torch.float64),
    )


def on_a_line(belief: aw.Belief) -> tuple[float, float]:
    """The highest mean, and the highest probability of a yes, on a fine grid."""
    x = torch.linspace(0, 1, 4001, dtype=torch.float64)[:, None]
    mean, var = belief.moments(x)
    return float(mean.max()), float(norm.cdf(mean / (1 + var).sqrt()).max())


@pytest.mark.parametrize(("rule", "m"), [("ucb_phi", 1), ("muc", 2), ("random", 3)])
def test_answers_are_those_of_the_user(rule, m):
    of = experiment((rule, m))
    runs = run(of, ids_of(of))
    for lane, run_id in enumerate(ids_of(of)):
        assert torch.equal(runs.answers[lane], answers_of(of, run_id, runs.questions[lane]))
    assert runs.answers.any()
    assert not runs.answers.all()


@pytest.mark.parametrize(("rule", "m"), [("ucb_phi", 1), ("muc", 2), ("random", 4)])
def test_a_user_without_noise_is_always_right(rule, m):
    of = experiment((rule, m), user=CERTAIN, iterations=4)
    runs = run(of, ids_of(of))
    for lane, run_id in enumerate(ids_of(of)):
        values = Problem.of(run_id.function, of.scale).value(runs.questions[lane])
        won = values > 0 if m == 1 else torch.stack([one > other for one, other in in_pairs(values)], -1)
        assert torch.equal(runs.answers[lane], won)


def test_another_user_answers_differently():
    of = experiment(("random", 4), iterations=4)
    sure, distracted = (run(replace(of, user=user), ids_of(of)) for user in (CERTAIN, User(lapses=1.0)))
    assert torch.equal(sure.questions, distracted.questions)
    # a coin, of 96 answers
    assert 24 < (sure.answers == distracted.answers).sum() < 72


# what comes out


@pytest.mark.parametrize(("rule", "m", "pairs"), [("ucb_f", 1, 1), ("kss", 2, 1), ("random", 4, 6)])
def test_runs_have_a_place_for_each_lane_and_question(rule, m, pairs):
    of = experiment((rule, m), functions=("sphere", "trid"), iterations=3)
    runs = run(of, ids_of(of))
    assert (runs.questions.shape, runs.questions.dtype) == ((4, 3, m, 2), torch.float64)
    assert (runs.answers.shape, runs.answers.dtype) == ((4, 3, pairs), torch.int8)
    assert (runs.optima.shape, runs.optima.dtype) == ((4, 3, 2), torch.float64)
    assert (runs.scores.shape, runs.scores.dtype) == ((4, 3), torch.float64)
    assert (runs.converged.shape, runs.converged.dtype) == ((4, 3), torch.bool)
    assert runs.seconds.shape == (3,)
    assert (runs.seconds > 0).all()
    assert runs.converged.all()
    for points in (runs.questions, runs.optima):
        assert ((points >= 0) & (points <= 1)).all()


@pytest.mark.parametrize("scale", ["raw", "rescaled"])
@pytest.mark.parametrize("score", ["value", "probability"])
def test_scores_are_the_function_at_the_estimated_optimum_in_the_units_of_the_experiment(scale, score):
    of = experiment(("random", 1), scale=scale, prior="recovered", score=score, iterations=4)
    runs = run(of, ids_of(of))
    # as published: minus the mean, by the root of the variance
    moments = {"forrester": (-0.4553469869, 19.77925826), "gramacy_lee": (-0.7485435156, 1.702122135)}
    for lane, run_id in enumerate(ids_of(of)):
        want = FUNCTIONS[run_id.function].unit(runs.optima[lane])
        if scale == "rescaled":
            mean, var = moments[run_id.function]
            want = (want - mean) / math.sqrt(var)
        want = want if score == "value" else f64(norm.cdf(want))
        torch.testing.assert_close(runs.scores[lane], want, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("rule", "m"), [("ucb_phi", 1), ("muc", 2), ("random", 3)])
def test_the_estimated_optimum_has_the_highest_mean_or_the_highest_probability_of_a_yes(rule, m):
    of = experiment((rule, m), iterations=4, replicates=1)
    runs = run(of, ids_of(of))
    for lane, run_id in enumerate(ids_of(of)):
        for number in range(1, of.iterations + 1):
            asked, said = runs.questions[lane, :number], runs.answers[lane, :number]
            data = aw.Data.binary(asked[:, 0], said[:, 0]) if m == 1 else aw.Data.batches(asked, said)
            belief = aw.infer(data, kernel_of(run_id.function, of))
            best = runs.optima[lane, number - 1, None]
            mean, likeliest = on_a_line(belief)
            if m == 1:
                assert float(belief.success_probability(best)) >= likeliest - 1e-5
            else:
                assert float(belief.mean(best)) >= mean - 1e-4 * (1 + abs(mean))


def test_runs_computed_in_parts_are_joined():
    of = experiment(("random", 2), iterations=3)
    ids = ids_of(of)
    parts = [run(of, ids[:1]), run(of, ids[1:])]
    joined = Runs.joined(parts)
    assert_alike(joined, run(of, ids), atol=1e-6)
    assert torch.equal(joined.seconds, parts[0].seconds + parts[1].seconds)
    assert joined.converged.shape == (4, 3)


@pytest.mark.parametrize(("rule", "m"), [("muc", 2), ("random", 3)])
def test_a_run_that_ends_among_the_first_questions_is_the_beginning_of_a_longer_one(rule, m):
    short, long = (experiment((rule, m), iterations=t, initial=4) for t in (2, 5))
    begun, whole = run(short, ids_of(short)), run(long, ids_of(long))
    assert begun.questions.shape == (4, 2, m, 1)
    assert torch.equal(begun.questions, whole.questions[:, :2])
    assert torch.equal(begun.answers, whole.answers[:, :2])
    torch.testing.assert_close(begun.scores, whole.scores[:, :2], rtol=0, atol=1e-6)


# what does not belong together


@pytest.mark.parametrize(
    ("names", "rules", "message"),
    [
        (("forrester", "forrester"), ("muc", "random"), "got 2 groups"),
        (("forrester", "sphere"), ("muc", "muc"), "got 2 groups"),  # dimensions
        (("sphere", "griewank"), ("muc", "muc"), "got 2 groups"),  # kernels
        ((), (), "got 0 groups"),
    ],
)
def test_runs_that_do_not_belong_together_are_refused(names, rules, message):
    of = experiment(("muc", 2), ("random", 2), functions=("forrester", "sphere", "griewank"))
    ids = [RunId("lanes", name, rule, 0) for name, rule in zip(names, rules, strict=True)]
    with pytest.raises(ValueError, match=f"^runs must share one arm.*{message}") as caught:
        run(of, ids)
    assert HOUSE.match(str(caught.value))


def test_an_unknown_rule_or_function_is_refused():
    of = experiment(("muc", 2))
    with pytest.raises(ValueError, match=r"^rule must be one of muc; got 'kss'\."):
        run(of, [RunId("lanes", "forrester", "kss", 0)])
    with pytest.raises(ValueError, match=r"^function must be one of ackley, .*; got 'parabola'\."):
        run(of, [RunId("lanes", "parabola", "muc", 0)])


# what users run


class AsStudy(RunId):
    """A run with the random numbers of a study: its replicate is the seed."""

    @property
    def identity(self) -> tuple[str | int, ...]:
        return "askwise study", self.replicate


SAME = [
    # rule, feedback, m, function, prior and family of its kernels, seed, initial, iterations
    ("ucb_phi", "binary", 1, "forrester", "likelihood", 7, 4, 7),
    ("thompson", "binary", 1, "trid", "likelihood", 11, 4, 7),
    ("muc", "duel", 2, "forrester", "likelihood", 7, 4, 7),
    # with seed 28 no sides are swapped: a swapped duel has a noise of the other sign, which is another draw
    pytest.param("kss", "duel", 2, "levy", "likelihood", 28, 4, 8, marks=slow),
    ("muc", "batch", 3, "gramacy_lee", "likelihood", 7, 4, 5),
    # learned from eight answers, and from these again after the ninth
    ("muc", "duel", 2, "forrester", "learned", 7, 8, 10),
    ("muc", "duel", 2, "forrester", "averaged", 7, 8, 10),
    ("muc", "duel", 2, "forrester", "learned matern32", 7, 8, 10),
]


def told(study: aw.Study, question: aw.Question, answer: list[bool]) -> dict[str, Any]:
    """An answer about the members of a query, as an answer about the options in the order shown."""
    place = {member: shown for shown, member in enumerate(question.order)}
    if study.feedback == "binary":
        return {"answer": answer[0]}
    if study.feedback == "duel":
        return {"answer": place[0 if answer[0] else 1]}
    pairs = [(i, j) for i in range(study.size) for j in range(i + 1, study.size)]
    won = [pair if first else pair[::-1] for pair, first in zip(pairs, answer, strict=True)]
    return {"pairs": [(place[better], place[worse]) for better, worse in won]}


def studying(of: Experiment, run_id: RunId, feedback: str) -> aw.Study:
    """A study as somebody would set it up for this function."""
    arm = of.arm(run_id.arm)
    return aw.Study(
        aw.Space(**{f"x{k}": aw.Real(0.0, 1.0) for k in range(FUNCTIONS[run_id.function].dim)}),
        feedback,
        arm.rule,
        seed=run_id.replicate,
        size=arm.m,
        kernel={"learned": of.family, "averaged": "averaged"}.get(of.prior) or kernel_of(run_id.function, of),
        initial=of.initial,
        lapses=0.0,  # as simulated users do
    )


def asked_by(study: aw.Study, question: aw.Question) -> Tensor:
    """The points of a question, in the order of the rule."""
    shown = f64([[option[name] for name in study.space.parameters] for option in question.options])
    return torch.empty_like(shown).index_copy(0, torch.tensor(question.order), shown)


@pytest.mark.parametrize(
    ("rule", "feedback", "m", "function", "prior", "seed", "initial", "iterations"), SAME
)
def test_a_study_and_a_lane_with_the_same_seed_ask_the_same_questions(  # noqa: PLR0913
    rule, feedback, m, function, prior, seed, initial, iterations
):
    """We benchmark what users run: a study records the initial answers, then asks the queries of the lane."""
    prior, _, family = prior.partition(" ")
    lengths = {"iterations": iterations, "initial": initial}
    of = experiment((rule, m), functions=(function,), prior=prior, family=family or "matern52", **lengths)
    run_id = AsStudy(of.name, function, rule, seed)
    runs, study = run(of, [run_id]), studying(of, run_id, feedback)
    names = list(study.space.parameters)
    for number, (members, answer) in enumerate(zip(runs.questions[0], runs.answers[0].tolist(), strict=True)):
        if number < initial:
            settings = [dict(zip(names, point.tolist(), strict=True)) for point in members]
            in_order = aw.Question(number, settings, tuple(range(m)))
            study.record(settings, **told(study, in_order, answer))
        else:
            question = study.ask()
            torch.testing.assert_close(asked_by(study, question), members, rtol=0, atol=1e-4)
            study.tell(question, **told(study, question, answer))
    best = f64([study.best().params[name] for name in names])
    torch.testing.assert_close(best, runs.optima[0, -1], rtol=0, atol=1e-4)
