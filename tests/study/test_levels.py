"""Studies that look for all settings that work often enough: plans, records, results and hints."""

import csv
import io
import math

import pytest
import scipy.stats
import torch
from hypothesis import given
from hypothesis import strategies as st

import askwise as aw
from askwise.numerics import generator, ndtr
from askwise.rules import latent_level, parse
from askwise.study import (
    LevelOutlook,
    Plan,
    Simulation,
    Study,
    conclusion,
    level_hint,
    load,
    side_of,
    simulated,
)
from askwise.study.export import level_csv
from askwise.study.level_sets import SETTINGS, _share, spread
from askwise.study.simulation import SimulatedUser
from tensors import f64

SPACE = aw.Space(force=aw.Real(0, 10), speed=aw.Real(0, 5))
KERNEL = aw.kernel("matern52", [0.4, 0.4], 9.0)
TOML = """
[study]
name = "grasp"
feedback = "binary"
{more}
[space.force]
type = "real"
low = 0
high = 10
"""


def strength(option: dict[str, float]) -> float:
    return 4 - 0.2 * (option["force"] - 6) ** 2 - 0.8 * (option.get("speed", 2) - 2) ** 2


def answered(study: Study, count: int, seed: int = 0) -> Study:
    """A study with yes/no answers about settings drawn at random."""
    source = generator("levels", seed)
    for point in torch.rand(count, study.space.d, generator=source, dtype=torch.float64):
        setting = study.space.natural(point)
        if not study.space.allows(setting):
            continue
        works = strength(setting) + torch.randn((), generator=source).item() > 0
        study.record([setting], bool(works), participant="anna")
    return study


def asked(study: Study, count: int) -> Study:
    for _ in range(count):
        question = study.ask()
        study.tell(question, strength(question.options[0]) > 0)
    return study


@pytest.fixture(scope="module")
def study() -> Study:
    return answered(Study(SPACE, "binary", level=0.9, kernel=KERNEL, lapses=0), 60)


# plans


def test_a_level_is_part_of_the_plan_and_chooses_the_rule():
    plan = Plan.checked(SPACE, "binary", level=0.9)
    written = plan.to_dict()
    assert (written["level"], written["rule"]) == (0.9, "straddle_phi")
    assert plan.rule == parse("straddle_phi(level=0.9)")
    assert Plan.from_dict(written).to_dict() == written
    assert Plan.from_dict(written).rule == plan.rule


def test_a_plan_without_a_level_is_written_as_before():
    assert "level" not in Plan.checked(SPACE, "binary").to_dict()
    assert Plan.checked(SPACE, "binary").rule == parse("ucb_phi")


@pytest.mark.parametrize(
    "rule", ["straddle", "straddle(level=0.9)", "straddle(level=0.95)", parse("straddle")]
)
def test_a_rule_takes_the_level_of_the_study(rule):
    plan = Plan.checked(SPACE, "binary", rule, level=0.9)
    assert str(plan.rule) == "straddle(level=0.9)"
    assert plan.to_dict()["rule"] == "straddle"


def test_other_rules_may_ask_in_a_study_with_a_level():
    assert Plan.checked(SPACE, "binary", "ucb_phi(beta=1)", level=0.9).rule == parse("ucb_phi(beta=1)")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"level": 1}, r"^level must be a success rate between 0 and 1; got 1\. Write 0.95 for 95%\."),
        ({"level": "0.9"}, r"^level must be a success rate between 0 and 1; got '0.9'"),
        ({"level": 0.9, "feedback": "duel"}, r"^level must be left out where settings are compared; got 0.9"),
        ({"level": 0.9, "rule": "straddle(level=0.8)"}, r"^rule must have the level of the study, 0.9; got"),
        (
            {"aim": "level"},
            r"^aim must be 'person' or 'population', .*; got 'level'\. Leave out the aim, and",
        ),
    ],
)
def test_impossible_levels_are_refused(settings, message):
    with pytest.raises(aw.Refused, match=message):
        Plan.checked(SPACE, **{"feedback": "binary", **settings})


# the record


def test_a_stored_study_replays_and_goes_on_bit_for_bit(tmp_path):
    where = tmp_path / "levels.db"
    with Study(SPACE, "binary", level=0.8, storage=where, name="s", seed=3) as first:
        asked(first, 9)
        coming = first.ask().options
    with Study(SPACE, "binary", level=0.8, storage=where, name="s", seed=3) as later:
        assert later.ask().options == coming
        assert all(one.equal for one in later.replay())
        found = later.level_set()
    with Study.open(where, "s") as again:
        assert again.plan.level == 0.8
        assert again.rule == parse("straddle_phi(level=0.8)")
        assert again.level_set() == found
    with pytest.raises(aw.Refused, match=r"^level must be as study 's' was created with, 0.8; got 0.7\."):
        Study(SPACE, "binary", level=0.7, storage=where, name="s", seed=3)


def test_the_level_can_change_and_the_usual_rule_follows_it():
    study = asked(Study(SPACE, "binary", kernel=KERNEL, lapses=0), 6)
    assert study.change(level=0.9) == ["rule: ucb_phi becomes straddle_phi", "level: none becomes 0.9"]
    assert str(study.rule) == "straddle_phi(level=0.9)"
    asked(study, 2)
    assert study.change(level=0.8, reason="too hard") == ["level: 0.9 becomes 0.8"]
    assert study.status().misclassified is not None
    assert study.change(level=0.8) == []
    asked(study, 2)
    assert study.change(level=None) == ["rule: straddle_phi becomes ucb_phi", "level: 0.8 becomes none"]
    assert "level" not in study.plan.to_dict()
    assert len(study.changes()) == 3
    assert all(one.equal for one in study.replay())


def test_a_rule_that_was_chosen_stays_when_the_level_changes():
    study = Study(SPACE, "binary", "straddle", level=0.9)
    assert study.change(level=0.5) == ["level: 0.9 becomes 0.5"]
    assert str(study.rule) == "straddle(level=0.5)"


def test_the_questions_are_those_of_the_rule_at_the_level():
    one, other = (
        asked(Study(SPACE, "binary", level=rate, kernel=KERNEL, lapses=0), 12) for rate in (0.5, 0.95)
    )
    assert [e.options for e in one.history()][:3] == [e.options for e in other.history()][:3]
    assert [e.options for e in one.history()] != [e.options for e in other.history()]


# results


def test_a_prediction_has_the_probability_that_the_rate_reaches_the_level(study):
    settings = [{"force": 6.0, "speed": 2.0}, {"force": 1.0, "speed": 4.5}, {"force": 9.0, "speed": 2.0}]
    for found in study.predict(settings):
        f = found.mean + found.std * torch.randn(200_000, generator=generator(1), dtype=torch.float64)
        assert found.above_level == pytest.approx(float((ndtr(f) >= 0.9).double().mean()), abs=0.004)
    assert study.best().above_level == pytest.approx(study.predict(study.best().params)[0].above_level)


def test_without_a_level_there_is_no_such_probability():
    study = answered(Study(SPACE, "binary", kernel=KERNEL, lapses=0), 8)
    assert study.predict({"force": 6.0, "speed": 2.0})[0].above_level is None
    assert study.best().above_level is None
    assert study.status().misclassified is None
    with pytest.raises(aw.Refused, match=r"^level must be given in a study without one; got none\."):
        study.level_set()
    assert study.level_set(0.9).level == 0.9


def test_noise_that_depends_on_the_setting_counts(study):
    slopes = f64([1.0, -0.5])
    belief = study.belief().with_noise_slopes(slopes)
    x = f64([[0.9, 0.1], [0.2, 0.8]])
    mean, var = study.belief().moments(x)
    noise = torch.exp((x - 0.5) @ slopes)
    want = ndtr((mean / noise - 1.0) / (var.sqrt() / noise))
    torch.testing.assert_close(belief.probability_above(x, 1.0), want)


def test_shares_are_counts_of_settings_spread_over_the_space(study):
    found, rows = study.level_set(confidence=0.9), study.classified(SETTINGS, confidence=0.9)
    assert found.settings == len(rows) == SETTINGS
    for side in ("inside", "outside", "unclear"):
        share = sum(row.side == side for row in rows) / len(rows)
        estimate = getattr(found, side)
        assert estimate.value == share
        low, high = scipy.stats.binomtest(round(share * SETTINGS), SETTINGS).proportion_ci(0.95, "wilson")
        assert estimate.interval == pytest.approx((low, high), abs=1e-9)
    wrong = sum(min(row.above_level, 1 - row.above_level) for row in rows) / len(rows)
    assert found.misclassified == pytest.approx(wrong)
    assert found.inside.value > 0.02
    assert study.predict(rows[5].params)[0].above_level == pytest.approx(rows[5].above_level)
    assert study.predict(rows[5].params)[0].probability == pytest.approx(rows[5].rate)


def test_the_true_share_is_that_of_draws_of_f(study):
    found, belief = study.level_set().share, study.belief()
    points, _ = spread(belief, study.plan, None, 400)
    mean, cov = belief.joint(points)
    drawn = torch.distributions.MultivariateNormal(mean, cov + 1e-7 * torch.eye(len(mean)))
    torch.manual_seed(0)
    shares = (drawn.sample((4000,)) >= latent_level(0.9)).double().mean(-1)
    assert found.value == pytest.approx(float(shares.mean()), abs=0.01)
    ends = shares.quantile(f64([0.025, 0.975])).tolist()
    assert found.interval == pytest.approx(ends, abs=0.03)


def test_of_few_settings_all_are_counted():
    space = aw.Space(force=aw.Integer(0, 10), speed=aw.Integer(0, 5)).where("force + speed <= 12")
    study = answered(Study(space, "binary", level=0.9, kernel=KERNEL, lapses=0), 30)
    found, rows = study.level_set(), study.classified(100)
    assert found.settings == len(rows) == len({tuple(row.params.values()) for row in rows}) == 60
    assert found.inside.interval is None
    assert found.inside.value + found.outside.value + found.unclear.value == pytest.approx(1)
    assert all(row.params["force"] + row.params["speed"] <= 12 for row in rows)


def test_the_safest_settings_reach_the_level_most_probably_and_lie_apart(study):
    safest = study.level_set(safest=4).safest
    chances = [one.above_level for one in safest]
    assert chances == sorted(chances, reverse=True)
    assert chances[0] == max(row.above_level for row in study.classified(SETTINGS))
    points = study.model.points([one.params for one in safest])
    apart = (points[:, None] - points[None]).abs().amax(-1) + torch.eye(4)
    assert apart.min() > 0.1


def test_a_higher_level_or_confidence_leaves_fewer_inside(study):
    by_level = [study.level_set(rate) for rate in (0.5, 0.8, 0.95)]
    assert sorted((one.inside.value for one in by_level), reverse=True) == [
        one.inside.value for one in by_level
    ]
    assert sorted(one.outside.value for one in by_level) == [one.outside.value for one in by_level]
    by_confidence = [study.level_set(confidence=sure) for sure in (0.6, 0.9, 0.99)]
    assert sorted(one.unclear.value for one in by_confidence) == [one.unclear.value for one in by_confidence]


def test_people_who_differ_have_level_sets_of_their_own():
    plan = {"participants": "population", "level": 0.9, "kernel": KERNEL, "lapses": 0}
    study = answered(Study(SPACE, "binary", **plan), 20)
    study.record([{"force": 6.0, "speed": 2.0}], False, participant="ben")
    common, anna = study.level_set(), study.level_set(participant="anna")
    assert common.share.value != anna.share.value
    again = study.predict(anna.safest[0].params, participant="anna")[0]
    assert anna.safest[0].above_level == pytest.approx(again.above_level)


def test_with_contexts_it_is_about_one():
    space = aw.Space(force=aw.Real(0, 10), load=aw.Choice(["light", "heavy"], context=True))
    study = Study(space, "binary", level=0.7, kernel=aw.kernel("se", 0.3, 9.0), lapses=0)
    for force in range(11):
        for kind in ("light", "heavy"):
            study.record([{"force": force, "load": kind}], force > (3 if kind == "light" else 8))
    light, heavy = (study.level_set(context={"load": kind}) for kind in ("light", "heavy"))
    assert light.share.value > heavy.share.value + 0.2
    assert {one.params["load"] for one in heavy.safest} == {"heavy"}


@pytest.mark.parametrize("value", [0.5, 1, 0.2, "0.9", True])
def test_a_confidence_is_above_one_half(study, value):
    with pytest.raises(aw.Refused, match=r"^confidence must be a probability above 0.5 and below 1; got"):
        study.level_set(confidence=value)


def test_duels_have_no_level():
    with pytest.raises(aw.Refused, match=r"^study must ask yes/no questions to have a level; got duel\."):
        Study(SPACE).level_set(0.9)


@given(st.floats(0, 1), st.floats(0.51, 0.99))
def test_a_setting_is_on_one_side_and_its_mirror_on_the_other(probability, confidence):
    side, mirror = side_of(probability, confidence), side_of(1 - probability, confidence)
    assert {side, mirror} in ({"inside", "outside"}, {"unclear"})
    assert (side == "inside") == (probability >= confidence)


@given(st.integers(0, 500), st.integers(0, 500))
def test_the_interval_of_a_share_contains_it(count, others):
    total = count + others + 1
    found = _share(count, total, False)
    assert found.interval is not None
    assert 0 <= found.interval[0] <= found.value + 1e-12
    assert found.value - 1e-12 <= found.interval[1] <= 1
    assert _share(count, total, True).interval is None


# when to stop


@pytest.mark.parametrize(
    ("share", "misclassified", "few", "hint"),
    [
        (0.3, 0.2, False, "Go on"),
        (0.3, 0.04, False, "You may stop"),
        (0.3, 0.04, True, "Go on a little"),
        (0.04, 0.03, False, "Go on"),  # little of the space, but most of what works
        (0.96, 0.03, False, "Go on"),
        (0.04, 0.005, False, "You may stop"),
        (0.001, 0.001, False, "Go on"),  # or nothing was found yet
    ],
)
def test_the_hint_says_go_on_until_little_is_misclassified(share, misclassified, few, hint):
    said = level_hint(LevelOutlook(share, misclassified), 0.95, few)
    assert said.partition(":")[0] == hint
    assert "at least 95% of the time" in said


def test_a_study_says_stop_once_the_region_is_known():
    study = Study(
        aw.Space(force=aw.Real(0, 10)), "binary", level=0.5, kernel=aw.kernel("se", 0.3, 25.0), lapses=0
    )
    assert study.status().hint == "Go on: too little has been answered to say anything."
    assert study.status().misclassified is None
    for place in range(41):
        study.record([{"force": place / 4}], 2.5 < place / 4 < 7.5)
    status = study.status()
    assert status.short_hint == "You may stop"
    assert status.misclassified < 0.05
    assert status.gain is status.regret is None
    assert study.level_set().share.value == pytest.approx(0.5, abs=0.05)


# files


def test_settings_are_written_as_a_table(study):
    rows = list(csv.DictReader(io.StringIO(level_csv(study.classified(20)))))
    assert [*rows[0]] == ["force", "speed", "rate", "above_level", "side"]
    assert len(rows) == 20
    for row in rows:
        assert row["side"] == side_of(float(row["above_level"]), 0.95)
        setting = {name: float(row[name]) for name in ("force", "speed")}
        assert float(row["rate"]) == pytest.approx(study.predict(setting)[0].probability, rel=1e-4)


def test_a_parameter_with_the_name_of_a_column_is_refused():
    study = answered(Study(aw.Space(rate=aw.Real(0, 10), force=aw.Real(0, 10)), "binary", level=0.9), 4)
    with pytest.raises(
        aw.Refused, match=r"^parameters must not have the names of columns of the table; got rate"
    ):
        level_csv(study.classified(3))


def test_a_study_file_may_have_a_level():
    assert load(TOML.format(more="level = 0.9")).plan().level == 0.9
    assert load(TOML.format(more="")).plan().level is None
    assert load(TOML.format(more='level = 0.9\nrule = "straddle"')).plan().rule == parse(
        "straddle(level=0.9)"
    )


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('level = "high"', r"^line 5: level must be a number; got 'high'. Write level = 0.95, say"),
        ("level = 95", r"level must be a success rate between 0 and 1; got 95. Write 0.95 for 95%"),
        ('level = 0.9\nrule = "straddle(level=0.5)"', r"rule must have the level of the study, 0.9; got"),
        ('aim = "level"', r"aim must be 'person' or 'population'.* write level=0.95"),
    ],
)
def test_a_wrong_level_in_a_file_is_refused_with_its_place(more, message):
    with pytest.raises(aw.Refused, match=message) as refusal:
        load(TOML.format(more=more))
    assert refusal.value.place.startswith("line ")


def test_the_template_for_yes_no_studies_has_a_level_to_uncomment():
    from askwise.study import template

    text = template("binary")
    assert "# level = 0.95\n" in text
    assert "# level" not in template("duel")
    assert load(text.replace("# level = 0.95", "level = 0.95")).plan().rule == parse("straddle_phi")


def test_the_level_of_the_latent_value_is_the_normal_quantile():
    for level in (0.01, 0.5, 0.95, 0.999):
        assert math.isclose(latent_level(level), scipy.stats.norm.ppf(level), abs_tol=1e-12)


def test_simulated_users_say_how_much_is_on_the_wrong_side():
    plan = Plan.checked(aw.Space(force=aw.Real(0, 10)), "binary", level=0.6, kernel=aw.kernel("se", 0.3, 9.0))
    (found,) = simulated(Simulation(plan, 8, 2, 0))
    assert len(found.misclassified) == 2
    assert all(0 <= share <= 1 for share in found.misclassified)
    assert "at most" in conclusion(found)
    user = SimulatedUser(Simulation(plan, 8, 1, 0), 0)
    study = Study.of(plan)
    x = torch.linspace(0, 10, 60, dtype=torch.float64)
    for place in x.tolist():  # who answers without noise is soon understood
        setting = {"force": place}
        study.record([setting], float(user.utilities([setting])) > latent_level(0.6))
    assert user.misclassified(study.belief(), 0.6) < 0.15
    assert user.misclassified(study.belief(), 1e-9) < 0.1
