"""Studies of people: plans, questions of each, replay, and what is learned of them."""

import itertools
import json
import math
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import askwise as aw
from askwise.numerics.seeds import generator
from askwise.search import search
from askwise.study import Plan, Study
from askwise.study.people import NAMES, SHARED, People
from askwise.study.questions import Situation, _pending_rows
from askwise.study.repeats import is_repeat
from tensors import f64

DATA = Path(__file__).parents[1] / "data"
RECORDED = json.loads((DATA / "recorded-0.1.0.json").read_text())
LINE = aw.Space(x=aw.Real(0, 1))
KERNEL = aw.kernel("se", [0.3], 4.0)
SETTINGS = [
    ("duel", {}),
    ("duel", {"participants": "shared", "lapses": 0.05}),
    ("duel", {"participants": "separate", "lapses": "learned"}),
    ("batch", {"participants": "population", "aim": "population", "noise": "setting"}),
    ("binary", {"participants": "population", "aim": "person", "guess": 0.25, "lapses": 0}),
    ("binary", {"guess": 0.5, "noise": "constant"}),
]


def taste(who: str | None, x: float) -> float:
    """Utilities of people: those whose name begins with z like the opposite of what others like."""
    sign = -1 if str(who).startswith("z") else 1
    return sign * 3 * math.sin(5 * x)


def told(study: Study, question: aw.Question, number: int = 0) -> None:
    """Answer as the person would; now and then they can't decide."""
    values = [taste(question.participant, option["x"]) for option in question.options]
    if number % 7 == 5:
        study.tell(question, None)
    elif study.feedback == "binary":
        study.tell(question, values[0] > 0)
    elif study.feedback == "duel":
        study.tell(question, int(values[1] > values[0]))
    else:
        ranked = sorted(range(len(values)), key=lambda k: -values[k])
        ways = (
            {"ranking": ranked},
            {"winner": ranked[0]},
            {"worst": ranked[-1]},
            {"pairs": [tuple(ranked[:2])]},
        )
        study.tell(question, **ways[number % 4])


def played(study: Study, turns: "list[str | None]") -> list[aw.Question]:
    asked = []
    for number, who in enumerate(turns):
        asked.append(study.ask(who))
        told(study, asked[-1], number)
    return asked


def drawn(study: Study, who: str | None, source: torch.Generator, options: list[dict[str, float]]) -> object:
    """An answer with the noise that the model expects."""
    values = f64([taste(who, option["x"]) for option in options])
    return study.plan.kind.simulated(values, source)


# plans


@pytest.mark.parametrize(("feedback", "people"), SETTINGS)
def test_a_plan_is_read_as_it_was_written(feedback, people):
    plan = Plan.checked(LINE, feedback, **people)
    written = json.loads(json.dumps(plan.to_dict()))
    again = Plan.from_dict(written)
    assert again.people == plan.people
    assert again.to_dict() == plan.to_dict()
    for name, value in people.items():
        assert getattr(again.people, name) == value


def test_what_is_not_said_of_people_is_written_as_before_there_was_a_choice():
    assert SHARED.to_dict() == {}
    old = Plan.read(LINE, "duel").to_dict()
    assert not set(old) & set(NAMES)
    assert Plan.from_dict(old).people == SHARED
    new = Plan.checked(LINE, "duel")
    assert new.people == replace(SHARED, lapses="learned", threshold="best")
    assert Plan.checked(LINE, "duel", lapses=0).people == replace(SHARED, threshold="best")


@pytest.mark.parametrize(
    ("feedback", "given", "message"),
    [
        (
            "duel",
            {"participants": "many"},
            r"participants must be 'shared', 'separate' or 'population'; got 'many'\. Choose one of them\.",
        ),
        ("duel", {"aim": 3}, r"aim must be 'person' or 'population'; got 3\. Choose one of them\."),
        ("duel", {"noise": "loud"}, r"noise must be 'constant' or 'setting'; got 'loud'\."),
        ("duel", {"threshold": "none"}, r"threshold must be 'best' or 'all'; got 'none'\."),
        ("duel", {"lapses": 0.6}, r"lapses must be a share of answers from 0 to 0.5; got 0.6\. Write 0.02"),
        (
            "duel",
            {"lapses": "often"},
            r"lapses must be a share of answers .* got 'often'\. .* or 'learned'\.",
        ),
        ("duel", {"lapses": True}, r"lapses must be a share of answers .* got True\."),
        ("duel", {"lapses": math.nan}, r"lapses must be a share of answers .* got nan\."),
        (
            "binary",
            {"guess": 0.7},
            r"guess must be a share of answers from 0 to 0.5; got 0.7\. Write 0.25 for",
        ),
        ("duel", {"guess": 0.25}, r"guess must be 0 where settings are compared; got 0.25\. Leave it out"),
        ("duel", {"aim": "population"}, r"aim must be 'person' unless people have something in common; got"),
    ],
)
def test_impossible_people_are_refused(feedback, given, message):
    with pytest.raises(aw.Refused, match=message):
        Plan.checked(LINE, feedback, **given)


def test_a_study_that_was_begun_otherwise_is_not_continued(tmp_path):
    path = tmp_path / "a.db"
    aw.Study(LINE, storage=path, participants="population").close()
    aw.Study(LINE, storage=path, participants="population").close()
    with pytest.raises(
        aw.Refused, match=r"participants must be as study 'study' was created with, 'population'"
    ):
        aw.Study(LINE, storage=path, participants="separate")
    with pytest.raises(
        aw.Refused, match=r"lapses must be as study 'study' was created with, 'learned'; got 0"
    ):
        aw.Study(LINE, storage=path, participants="population", lapses=0)
    assert aw.Study.open(path).plan.people.participants == "population"


@pytest.mark.parametrize("lapses", [None, 0, 0.05])
def test_what_nobody_asked_for_is_taken_from_the_stored_study(tmp_path, lapses):
    """A study goes on as it was begun, whatever new studies assume."""
    path = tmp_path / "a.db"
    begun = Study.of(Plan.read(LINE, "duel", seed=4, lapses=lapses), path)
    played(begun, [None] * 3)
    expected = begun.plan.people
    begun.close()
    again = aw.Study(LINE, "duel", storage=path, seed=4)
    assert again.plan.people == expected
    assert again.plan.people.threshold == "all"
    assert all(one.equal for one in again.replay())


def test_a_study_of_the_release_before_goes_on_by_the_same_arguments(tmp_path):
    path = Path(shutil.copy(DATA / "recorded-0.1.0.db", tmp_path / "study.db"))
    for name in RECORDED["studies"]:
        stored = aw.Study.open(path, name)
        plan = stored.plan
        same = (plan.space, plan.feedback, str(plan.rule))
        more = {"size": plan.size, "seed": plan.seed, "kernel": plan.kernel, "initial": plan.initial}
        again = aw.Study(*same, storage=path, name=name, expires=plan.expires, repeats=plan.repeats, **more)
        assert again.plan.people == SHARED
        context = RECORDED["studies"][name]["context"]
        assert again.ask("the next one", context).options == RECORDED["studies"][name]["next"]["options"]
        again.close()
        stored.close()


# separate people


TURNS = ["ann", "bob", "ann", "ann", "cy", "bob", "ann", "cy", "ann", "bob", "bob", "ann"]


@pytest.mark.parametrize("feedback", ["duel", pytest.param("binary", marks=pytest.mark.slow)])
def test_separate_people_are_asked_what_they_would_be_asked_alone(feedback):
    options = {"participants": "separate", "kernel": KERNEL, "repeats": 0.2, "initial": 2, "lapses": 0}
    together = aw.Study(LINE, feedback, **options)
    asked: dict[str, list[aw.Question]] = {}
    for who in TURNS:
        question = together.ask(who)
        told(together, question, len(asked.setdefault(who, [])))
        asked[who].append(question)
    for who, questions in asked.items():
        alone = played(aw.Study(LINE, feedback, **options), [who] * len(questions))
        assert [one.options for one in alone] == [one.options for one in questions]
        assert [one.order for one in alone] == [one.order for one in questions]
    assert len({str(questions[0].options) for questions in asked.values()}) == 3
    assert all(one.equal for one in together.replay())


def test_only_their_own_answers_decide_how_separate_people_begin():
    study = aw.Study(LINE, "duel", participants="separate", kernel=KERNEL, initial=3, lapses=0)
    played(study, ["ann"] * 5)
    first = [one.options for one in played(study, ["bob"] * 3)]
    random = aw.Study(LINE, "duel", participants="separate", kernel=KERNEL, initial=99, lapses=0)
    played(random, ["ann"] * 5)
    assert [one.options for one in played(random, ["bob"] * 3)] == first  # space-filling
    assert study.ask("bob").options != random.ask("bob").options
    assert study.status(participant="cy").gain is None
    assert study.status(participant="ann").gain is not None


def test_an_expired_question_of_separate_people_is_asked_nobody_else():
    study = aw.Study(LINE, "duel", participants="separate", kernel=KERNEL)
    question = study.ask("ann")
    study.expire(question)
    other = study.ask("bob")
    assert (other.id, other.participant) == (1, "bob")
    again = study.ask("ann")
    assert (again.id, again.options, again.participant) == (0, question.options, "ann")
    told(study, again)
    told(study, other)
    assert study.participants() == ["ann", "bob"]
    assert study.status(participant="ann").answers == 1


def test_the_repeated_questions_of_separate_people_are_counted_by_their_own_numbers():
    study = aw.Study(
        LINE, "duel", "random", participants="separate", kernel=KERNEL, repeats=0.3, initial=2, lapses=0
    )
    played(study, ["ann", "bob", "bob"] * 12)
    repeated = 0
    for who in ("ann", "bob"):
        theirs = [entry for entry in study.history() if entry.participant == who]
        seen: list[str] = []
        for number, entry in enumerate(theirs):
            about = json.dumps(sorted(option["x"] for option in entry.options))
            if about in seen and entry.answer.to_json() != {"undecided": True}:
                assert is_repeat(study.plan, number)
                repeated += 1
            seen.append(about)
    (check,) = [one for one in study.checks() if one.name == "repeats"]
    assert repeated > 5
    counted = int(check.detail.split(" of ")[1].split()[0])
    undecided = sum(entry.answer.key == "undecided" for entry in study.history())
    assert repeated - undecided <= counted <= repeated
    status = study.status(participant="bob")
    (theirs,) = [one for one in status.checks if one.name == "repeats"]
    assert 0 < int(theirs.detail.split(" of ")[1].split()[0]) <= counted


def test_separate_people_must_be_named():
    study = aw.Study(LINE, "duel", participants="separate", kernel=KERNEL, initial=2)
    played(study, ["ann"] * 4)
    assert study.best() == study.best(participant="ann")
    played(study, ["zoe"] * 4)
    for what in (study.best, study.status, study.belief, study.raters):
        with pytest.raises(
            aw.Refused, match=r"participant must be named in a study of separate people; got none"
        ):
            what()
    assert study.best(participant="ann").params != study.best(participant="zoe").params
    assert "raters" not in [check.name for check in study.checks()]
    assert study.status(participant="zoe").answers == 4


def crowd(count: int) -> Study:
    """A study of separate people who have answered twice."""
    study = aw.Study(LINE, "duel", "random", participants="separate", kernel=KERNEL, initial=1, lapses=0)
    answers = [
        {"options": [{"x": k / 1000}, {"x": 0.9}], "answer": 0, "participant": f"person {k}"}
        for k in range(count)
        for _ in range(2)
    ]
    study.record_many(answers)
    return study


@pytest.mark.slow
def test_a_question_takes_no_longer_among_many_people():
    """The posterior is that of two answers, whoever else there is; reading 2,000 entries is fast."""
    times = []
    for count in (2, 1000):
        study, took = crowd(count), []
        for k in range(5):
            start = time.perf_counter()
            told(study, study.ask(f"person {k % 2}"))
            took.append(time.perf_counter() - start)
        times.append(min(took))
    assert times[1] < 5 * times[0] + 0.05


def test_each_of_200_people_has_a_model_of_their_own():
    study = crowd(200)
    for k in (0, 77, 199):
        data = study.belief(f"person {k}").data
        assert data.n == 2
        assert study.ask(f"person {k}").participant == f"person {k}"
    assert len(study.participants()) == 200


# a population


def busy(study: Study, rounds: int, hold: str = "dee") -> None:
    """Several people answer, one of them later than others; questions are skipped, amended and voided."""
    people = ["ann", "bob", "zoe", None]
    study.ask(hold)
    for number in range(rounds):
        who = people[number % len(people)]
        question = study.ask(who)
        if number == 5:
            study.skip(question)
            continue
        told(study, question, number)
        if number == 3:
            study.void(question)
        if number == 6:
            told(study, study.ask(hold), number)
            study.ask(hold)
        if number == 7 and study.feedback == "duel":
            study.amend(question, 0)


BATCHES = [("batch", "muc_joint"), ("batch", "kss")]
DUELS = [("duel", rule) for rule in ("muc", "dueling_thompson", "kss", "hallucination_believer", "eubo")]
YESNO = [("binary", "ucb_phi"), ("binary", "thompson")]
ALL = [(*one, aim) for one in DUELS + YESNO + BATCHES for aim in ("person", "population")]
FAST = [
    ("duel", "muc", "person"),
    ("duel", "hallucination_believer", "person"),
    ("binary", "thompson", "population"),
]


@pytest.mark.parametrize(
    ("feedback", "rule", "aim"),
    [*FAST, *(pytest.param(*one, marks=pytest.mark.slow) for one in ALL if one not in FAST)],
)
def test_every_question_of_a_population_follows_from_the_record(feedback, rule, aim):
    study = aw.Study(
        LINE,
        feedback,
        rule,
        participants="population",
        aim=aim,
        repeats=0.2,
        initial=2,
        kernel=KERNEL,
        guess=0.25 if feedback == "binary" else 0.0,
    )
    busy(study, 9)
    replayed = study.replay()
    assert len(replayed) == len(study.history())
    assert all(one.equal for one in replayed)


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["constant", "setting"])
@pytest.mark.parametrize("participants", ["shared", "separate", "population"])
def test_every_question_follows_from_the_record_with_a_learned_kernel(noise, participants):
    study = aw.Study(LINE, "duel", participants=participants, noise=noise, initial=2, prefetch=True)
    busy(study, 14)
    assert all(one.equal for one in study.replay())
    study.close()


@pytest.mark.parametrize("participants", ["population", "separate"])
def test_questions_that_were_computed_ahead_are_the_same(participants):
    plain, ahead = (
        aw.Study(LINE, participants=participants, kernel=KERNEL, initial=2, prefetch=flag)
        for flag in (False, True)
    )
    turns = ["ann", "ann", "bob", "ann", "bob", "zoe"]
    assert [one.options for one in played(plain, turns)] == [one.options for one in played(ahead, turns)]
    ahead.close()


@pytest.fixture
def float64():
    yield lambda: torch.set_default_dtype(torch.float64)
    torch.set_default_dtype(torch.float32)


def course(**settings: object) -> list[object]:
    study = aw.Study(LINE, "duel", initial=2, **settings)
    said: list[object] = [
        one.options for one in played(study, ["ann", "bob", "ann", "bob", "ann", "bob", "ann"])
    ]
    return [*said, study.best(participant="ann"), study.status(participant="bob"), study.raters("ann")]


@pytest.mark.parametrize(
    "settings",
    [
        {"participants": "population"},
        pytest.param({"participants": "separate", "noise": "setting"}, marks=pytest.mark.slow),
        pytest.param({"participants": "population", "noise": "setting"}, marks=pytest.mark.slow),
    ],
)
def test_people_are_the_same_under_another_default_dtype(float64, settings):
    usual = course(**settings)
    float64()
    search._sobol.cache_clear()
    search._sobol_settings.cache_clear()
    assert repr(course(**settings)) == repr(usual)


def test_the_bounds_of_what_is_learned_do_not_depend_on_the_default_dtype(float64):
    from askwise.model import Observer
    from askwise.model.copies import one_per_lane
    from askwise.model.log_posterior import NegativeLogPosterior

    data = aw.Data.duels([[[0.1], [0.9]], [[0.2], [0.4]]], [1, 0])
    target = NegativeLogPosterior(
        data, one_per_lane(KERNEL, data), "ep", Observer.start(data, 1, ("lapse",)), ("lapse",)
    )
    usual = target.bounds(target.vector)
    float64()
    for one, other in zip(usual, target.bounds(target.vector), strict=True):
        assert torch.equal(one, other)
    assert usual[0][0, -1].item() == -9.2


def test_the_best_setting_is_that_of_the_person_or_of_all():
    study = aw.Study(LINE, "duel", "random", participants="population", kernel=KERNEL)
    played(study, ["ann", "bob", "zoe"] * 12)
    best = {who: study.best(participant=who).params["x"] for who in ("ann", "bob", "zoe", None)}
    assert best["ann"] == pytest.approx(0.31, abs=0.2)
    assert best["bob"] == pytest.approx(0.31, abs=0.2)
    assert best["zoe"] == pytest.approx(0.94, abs=0.2)
    assert best[None] == study.best().params["x"] == pytest.approx(0.31, abs=0.2)
    newcomer = study.best(participant="newcomer")
    assert newcomer.params["x"] == pytest.approx(best[None], abs=1e-3)
    assert newcomer.std > study.best().std


def test_the_status_is_that_of_the_person():
    study = aw.Study(LINE, "duel", "random", participants="population", kernel=KERNEL, initial=2)
    played(study, ["ann"] * 9 + ["bob"])
    known, less, newcomer = (study.status(participant=who) for who in ("ann", "bob", "eve"))
    assert known.answers == less.answers == 10
    assert known.regret < less.regret
    assert less.regret < 1.5 * newcomer.regret
    assert all(status.gain >= 0 for status in (known, less, newcomer))


def test_the_aim_decides_whose_best_setting_is_looked_for():
    asked = []
    for aim in ("person", "population"):
        study = aw.Study(LINE, "duel", "muc", participants="population", aim=aim, kernel=KERNEL, lapses=0)
        for k in range(24):
            who = "zoe" if k % 4 == 3 else "ann"
            options = [{"x": (7 * k % 24) / 24}, {"x": (11 * k % 23) / 23}]
            values = [taste(who, option["x"]) for option in options]
            study.record(options, int(values[1] > values[0]), participant=who)
        question = study.ask("zoe")
        asked.append(question.options[question.order.index(0)]["x"])  # the champion
    assert abs(asked[0] - 0.94) < 0.2
    assert abs(asked[1] - 0.31) < 0.2


def test_newcomers_with_pending_questions_are_different_people():
    study = aw.Study(LINE, "duel", participants="population", kernel=KERNEL, initial=2)
    played(study, ["ann"] * 3)
    for who in ("eve", "flo", "ann"):
        study.ask(who)
    for who, numbers in {"gus": [2, 3, 0], "flo": [2, 1, 0], "ann": [1, 2, 0]}.items():
        situation = Situation.of(study._ledger.state, None, study.plan.people, who)
        pending = [study.model.points(json.loads(text)) for text in situation.pending]
        rows = _pending_rows(study.model, situation, pending)
        assert rows.row_rater.tolist() == numbers
        assert rows.share > 0


# what is learned of people


def test_there_is_nothing_to_learn_from_without_answers():
    for participants in ("shared", "population", "separate"):
        with pytest.raises(
            aw.Refused, match=r"study must have answers to learn from; got none\. Answer some"
        ):
            aw.Study(LINE, participants=participants).raters()
    fixed = aw.Study(LINE, lapses=0, kernel=KERNEL)
    told(fixed, fixed.ask())
    with pytest.raises(aw.Refused, match=r"study must learn something of the people; got one that does not"):
        fixed.raters()


def test_what_is_assumed_has_no_interval():
    study = aw.Study(LINE, lapses=0.05, kernel=KERNEL)
    played(study, [None] * 3)
    (one,) = study.raters().each
    assert (one.name, one.answers, one.lapse.value, one.lapse.interval) == (None, 3, 0.05, None)
    assert (one.noise.value, one.noise.interval) == (1.0, None)
    assert study.raters().share is None
    assert study.raters().slopes is None


def simulated(participants: str, people: list[str], each: int, seed: int = 0, **settings: object) -> Study:
    """Recorded duels of random settings, answered with the noise that the model expects."""
    study = aw.Study(LINE, "duel", "random", participants=participants, kernel=KERNEL, seed=seed, **settings)
    source, drafts = generator("test", "people", seed), []
    for who in people * each:
        x = torch.rand(2, generator=source, dtype=torch.float64).tolist()
        options = [{"x": value} for value in x]
        drafts.append({"options": options, "answer": drawn(study, who, source, options), "participant": who})
    study.record_many(drafts)
    return study


def test_what_is_learned_of_a_population_has_intervals_that_contain_the_truth():
    study = simulated("population", ["ann", "bob", "cy"], 27)
    found = study.raters()
    assert [one.name for one in found.each] == ["ann", "bob", "cy"]
    assert [one.answers for one in found.each] == [27] * 3
    for one in found.each:
        low, high = one.noise.interval
        assert low < one.noise.value < high
        assert low < 1 < high
        assert one.lapse.interval[0] < 0.02
    low, high = found.share.interval
    assert 0 < low < found.share.value < high < 1
    assert found.share.value < 0.4  # all have the same taste
    assert simulated("population", ["ann", "zoe"], 27).raters().share.value > 0.6


def test_lapses_are_learned_from_flipped_answers():
    """Of 93 clear answers one in twenty is wrong: twice as many are given without looking."""
    rates = []
    for flips in (0, 20):
        study = aw.Study(LINE, "duel", "random", kernel=aw.kernel("se", [0.3], 16.0), seed=2)
        source, drafts = generator("test", "flips"), []
        for number in range(93):
            x = torch.rand(2, generator=source, dtype=torch.float64).tolist()
            better = int(math.sin(5 * x[1]) > math.sin(5 * x[0]))
            wrong = flips and number % flips == 0
            drafts.append(
                {"options": [{"x": value} for value in x], "answer": 1 - better if wrong else better}
            )
        study.record_many(drafts)
        rates.append(study.raters().each[0].lapse)
    assert rates[0].value < 0.02 < 0.04 < rates[1].value
    assert rates[0].interval[0] < 0.01
    low, high = rates[1].interval
    assert rates[0].value < low < 0.1 < high < 0.3


@pytest.mark.parametrize("noise", ["constant", "setting"])
def test_a_recommended_setting_succeeds_as_often_as_the_model_says(noise):
    """Where noise depends on the setting, in units of the noise there."""
    study = aw.Study(LINE, "binary", "random", noise=noise, kernel=KERNEL, seed=1)
    drafts = [{"options": [{"x": k / 20}], "answer": k % 3 > 0 if k > 10 else k < 7} for k in range(20)]
    study.record_many(drafts)
    best = study.best()
    point = study.space.unit(best.params)[None]
    assert best.probability == study.belief().success_probability(point).item()
    if noise == "setting":
        slopes = study.belief().slopes
        spread = (slopes * (point[0] - 0.5)).sum().exp().item()
        assert slopes[0] > 0.1  # answers above 0.5 contradict each other
        want = torch.special.ndtr(f64(best.mean / math.sqrt(spread**2 + best.std**2)))
        assert best.probability == pytest.approx(want.item(), abs=1e-9)
        assert len(study.raters().slopes) == 1


# checks


def rater_check(study: Study) -> "aw.study.Check":
    (found,) = [check for check in study.checks() if check.name == "raters"]
    return found


def test_opposite_tastes_are_flagged_and_the_detail_says_what_to_do():
    study = simulated("shared", ["ann", "zoe"], 25, lapses=0)
    found = rater_check(study)
    assert found.flagged
    assert found.detail.startswith("2 people answered; that their tastes differ explains the answers ")
    assert found.detail.endswith(
        "better than that they have one taste: with participants='population' each has a model of their own."
    )
    assert found in study.status().checks
    for participants in ("population", "separate"):
        other = simulated(participants, ["ann", "zoe"], 4)
        assert "raters" not in [check.name for check in other.checks()]
    assert "raters" not in [check.name for check in simulated("shared", ["ann"], 6).checks()]


@pytest.mark.parametrize("seeds", [range(4), pytest.param(range(4, 24), marks=pytest.mark.slow)])
def test_similar_people_are_not_flagged(seeds):
    flagged = [
        rater_check(simulated("shared", ["ann", "bob", "cy"], 10, seed, lapses=0)).flagged for seed in seeds
    ]
    assert sum(flagged) <= len(flagged) // 20


@pytest.mark.slow
def test_opposite_people_are_mostly_flagged():
    flagged = [
        rater_check(simulated("shared", ["ann", "zoe"], 25, seed, lapses=0)).flagged for seed in range(10)
    ]
    assert sum(flagged) >= 9


def test_people_are_plain_values():
    assert People.read(True) == SHARED
    assert not SHARED.differ
    for participants, aim in itertools.product(("separate", "population"), ("person",)):
        assert People.read(True, participants=participants, aim=aim).differ
