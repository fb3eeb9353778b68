"""The experiments, and parts of them."""

import re
from dataclasses import replace

import pytest
import torch

from askwise.bench.experiments import EXPERIMENTS, Arm, Experiment
from askwise.bench.functions import FUNCTIONS
from askwise.bench.lanes import RunId, run
from askwise.bench.problems import Problem
from askwise.bench.published import PAPER
from askwise.bench.schedule import run_ids
from askwise.bench.user import User
from askwise.loop import check_size
from askwise.rules import parse

HOUSE = re.compile(r"^[^;\n]+ must [^;\n]+; got [^\n]+\. [^\n]+$")
BBO = ["ucb_phi", "ucb_f", "ucb_f(beta=2.33)", "thompson", "binary_ei", "random"]
PBO = [
    "muc",
    "dueling_ucb",
    "bivariate_ei",
    "duel_thompson",
    "dueling_thompson",
    "kss",
    "eiig(k=0.5)",
    "eiig(k=0.1)",
    "ei",
]
LATER = ["eubo", "dueling_ucb_phi", "max_entropy_challenge", "hallucination_believer"]
BATCH = ["muc", "kss", "random"]
PEOPLE = ("pbo-lapses", "pbo-ties", "pbo-raters")
each_experiment = pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=list(EXPERIMENTS))


def labels(name: str) -> list[str]:
    return [arm.label for arm in EXPERIMENTS[name].arms]


# what there is


def test_there_are_the_experiments_of_the_paper_and_ours():
    as_run, as_said = {"bbo-as-run", "pbo-as-run", "batch-as-run"}, {"bbo", "pbo", "batch"}
    learned = {f"{kind}-{how}" for kind in ("bbo", "pbo", "batch") for how in ("learned", "averaged")}
    people = {"pbo-lapses", "pbo-ties", "pbo-raters"}
    clearer = {f"pbo-{kernels}-{times}" for kernels in ("learned", "averaged", "rough") for times in (3, 10)}
    assert set(EXPERIMENTS) == as_run | as_said | learned | clearer | people | {"batch-sizes", "beta"}
    assert all(name == experiment.name for name, experiment in EXPERIMENTS.items())


def test_the_three_of_the_paper_have_its_runs_and_queries():
    paper = [EXPERIMENTS[name] for name in ("bbo", "pbo", "batch")]
    assert sum(each.lane_iterations for each in paper) == 34 * (6 * 60 * 100 + 14 * 40 * 80 + 3 * 30 * 30)
    assert [(each.replicates, each.iterations) for each in paper] == [(60, 100), (40, 80), (30, 30)]
    assert all(each.functions == PAPER for each in paper)


def test_rules_and_sizes_are_those_of_the_paper():
    for text in ("bbo", "bbo-as-run", "bbo-learned"):
        assert labels(text) == BBO
    assert labels("pbo-as-run") == [*PBO, "random"]
    for text in ("pbo", "pbo-averaged", "pbo-learned"):
        assert labels(text) == [*PBO, *LATER, "random"]
    for text in ("batch", "batch-as-run"):
        assert labels(text) == BATCH
    for name, m in (("bbo", 1), ("bbo-as-run", 1), ("beta", 1), ("pbo", 2), ("pbo-as-run", 2), ("batch", 3)):
        assert {arm.m for arm in EXPERIMENTS[name].arms} == {m}


def test_experiments_as_run_have_the_units_and_the_metric_of_the_published_table():
    bbo, pbo, batch = (EXPERIMENTS[f"{name}-as-run"] for name in ("bbo", "pbo", "batch"))
    assert (bbo.scale, bbo.score) == ("rescaled", "probability")
    assert {(each.scale, each.score) for each in (pbo, batch)} == {("raw", "value")}
    assert {each.prior for each in (bbo, pbo, batch)} == {"recovered"}
    assert (pbo.replicates, pbo.iterations, pbo.initial) == (20, 50, 6)


def test_the_user_is_the_one_of_the_models_and_all_others_are_standardised():
    clearer = {
        name: User(noise=1 / int(name.rpartition("-")[2])) for name in EXPERIMENTS if name[-1].isdigit()
    }
    clearer |= {
        "pbo-lapses": User(1 / 3, lapses=0.05),
        "pbo-ties": User(1 / 3, margin=0.5),
        "pbo-raters": User(1 / 3, people=5, own=0.3),
    }
    assert all(each.user == clearer.get(name, User()) for name, each in EXPERIMENTS.items())
    others = [each for name, each in EXPERIMENTS.items() if not name.endswith("as-run")]
    assert {(each.scale, each.score) for each in others} == {("standardised", "value")}
    for each in others:
        kernels = [prior for prior in ("averaged", "learned") if prior in each.name] or ["likelihood"]
        kernels = ["averaged"] if "rough" in each.name else kernels
        assert [each.prior] == (["learned"] if each.user in map(clearer.get, PEOPLE) else kernels)
        assert each.family == ("matern32" if "rough" in each.name else "matern52")


def test_batches_have_three_to_nine_members():
    arms = EXPERIMENTS["batch-sizes"].arms
    assert {(arm.rule, arm.m) for arm in arms} == {
        (rule, m) for rule in ("muc", "muc_joint", "random") for m in (3, 5, 7, 9)
    }
    assert "muc_joint m=7" in labels("batch-sizes")


def test_beta_is_varied_around_that_of_the_paper():
    assert labels("beta") == [
        *("ucb_phi(beta=0.5)", "ucb_phi(beta=1.0)", "ucb_phi", "ucb_phi(beta=5.0)"),
        *("ucb_f(beta=0.5)", "ucb_f", "ucb_f(beta=2.33)", "ucb_f(beta=5.0)"),
    ]


@each_experiment
def test_every_experiment_has_the_functions_of_the_paper(experiment):
    assert experiment.functions == PAPER


@each_experiment
def test_every_rule_has_its_normal_spelling_and_takes_queries_of_this_size(experiment):
    for arm in experiment.arms:
        rule = parse(arm.rule)
        assert str(rule) == arm.rule
        check_size(rule, arm.m)
        assert experiment.arm(arm.label) is arm


@each_experiment
def test_there_is_a_prior_for_every_function_of_an_experiment_in_its_units(experiment):
    for name in experiment.functions:
        known = Problem.of(name, experiment.scale).hyperparameters(experiment.prior)
        assert (known is None) == (experiment.prior in ("averaged", "learned"))
        assert known is None or len(known.lengthscale) == FUNCTIONS[name].dim


@each_experiment
def test_every_experiment_has_a_title_and_a_purpose(experiment):
    assert experiment.title
    assert experiment.about.endswith(".")
    assert 1 <= experiment.initial < experiment.iterations
    assert experiment.lane_iterations == len(run_ids(experiment)) * experiment.iterations


# arms


def test_the_label_of_an_arm_is_its_rule_unless_given():
    assert Arm("ucb_phi( beta = 2 )", 1) == Arm("ucb_phi(beta=2.0)", 1, "ucb_phi(beta=2.0)")
    assert Arm("muc", 5, "five").label == "five"


def test_an_arm_without_a_known_rule_is_refused():
    with pytest.raises(ValueError, match=r"^rule must be one of .*; got 'oracle'") as caught:
        Arm("oracle", 1)
    assert HOUSE.match(str(caught.value))


# parts

SMALL = Experiment(
    name="small",
    title="A small one",
    about="For tests.",
    arms=(Arm("random", 2), Arm("muc", 2)),
    replicates=3,
    iterations=5,
    initial=3,
    scale="standardised",
    prior="likelihood",
    functions=("forrester", "gramacy_lee"),
)


def test_a_part_has_what_was_asked_for_and_is_otherwise_the_same():
    part = SMALL.reduced(("gramacy_lee",), ("muc",), 2, 4)
    assert part == replace(
        SMALL, functions=("gramacy_lee",), arms=(Arm("muc", 2),), replicates=2, iterations=4
    )
    assert SMALL.reduced() == SMALL
    assert SMALL.reduced(rules=("muc", "random")).arms == SMALL.arms[::-1]
    assert part.lane_iterations == 2 * 4


def test_other_functions_may_take_part():
    assert SMALL.reduced(functions=("branin", "levy")).functions == ("branin", "levy")


def test_the_runs_of_a_part_are_among_those_of_the_whole():
    part = SMALL.reduced(("gramacy_lee",), ("muc",), 2, 4)
    assert set(run_ids(part)) < set(run_ids(SMALL))


@pytest.fixture(scope="module")
def whole():
    return run(SMALL, [run_id for run_id in run_ids(SMALL) if run_id.arm == "muc"])


@pytest.mark.parametrize("iterations", [1, 2, 3, 4])
def test_a_run_of_a_part_is_the_run_of_the_whole_as_far_as_it_goes(whole, iterations):
    part = SMALL.reduced(("gramacy_lee",), ("muc",), 2, iterations)
    runs = run(part, run_ids(part))
    assert runs.questions.shape == (2, iterations, 2, 1)
    torch.testing.assert_close(runs.questions, whole.questions[3:5, :iterations], rtol=0, atol=1e-6)
    assert torch.equal(runs.answers, whole.answers[3:5, :iterations])
    torch.testing.assert_close(runs.optima, whole.optima[3:5, :iterations], rtol=0, atol=1e-6)
    torch.testing.assert_close(runs.scores, whole.scores[3:5, :iterations], rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"functions": ("parabola",)}, "function must be one of ackley, .*; got 'parabola'"),
        ({"functions": ()}, "functions must be one or more, each once; got none"),
        ({"functions": ("forrester",) * 2}, "functions must be one or more, each once; got forrester, forr"),
        ({"rules": ("kss",)}, "rule must be one of random, muc; got 'kss'"),
        ({"rules": ()}, "rules must be one or more, each once; got none"),
        ({"rules": ("muc", "muc")}, "rules must be one or more, each once; got muc, muc"),
        ({"replicates": 0}, "replicates must be 1 or more; got 0"),
        ({"replicates": -3}, "replicates must be 1 or more; got -3"),
        ({"iterations": 0}, "iterations must be 1 or more; got 0"),
    ],
)
def test_an_impossible_part_is_refused(asked, message):
    with pytest.raises(ValueError, match=f"^{message}") as caught:
        SMALL.reduced(**asked)
    assert HOUSE.match(str(caught.value))


def test_an_experiment_must_begin_with_random_questions():
    with pytest.raises(ValueError, match=r"^initial must be 1 or more; got 0") as caught:
        replace(SMALL, initial=0)
    assert HOUSE.match(str(caught.value))


def test_two_experiments_of_one_name_are_refused():
    with pytest.raises(
        ValueError, match=r"^experiment must have a name of its own; got 'pbo' twice"
    ) as caught:
        replace(SMALL, name="pbo").registered()
    assert HOUSE.match(str(caught.value))
    assert EXPERIMENTS["pbo"].title != SMALL.title


def test_a_new_experiment_is_found_by_its_name():
    assert SMALL.registered() is SMALL
    assert EXPERIMENTS.pop("small") is SMALL


def test_every_run_has_random_numbers_of_its_own():
    ids = run_ids(SMALL)
    assert ids[0] == RunId("small", "forrester", "random", 0)
    assert len({run_id.identity for run_id in ids}) == len(ids) == 2 * 2 * 3
    assert len({run_id.start for run_id in ids}) == 2 * 3
