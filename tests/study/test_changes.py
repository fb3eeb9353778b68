"""Studies that are changed after they began: what may change, what the record keeps, what follows from it."""

import re
import subprocess
import sys

import pytest
import torch

import askwise as aw
from askwise.storage.copies import salvage
from askwise.study.model import Model
from askwise.study.questions import Situation
from postgres import fresh_schema

ROOMY = aw.Space(gain=aw.Real(0, 40, unit="dB"), bands=aw.Integer(1, 8))
SMOOTH = aw.kernel("se", [0.3, 0.5], 4.0)
WINES = {"name": ["Chablis", "Rioja", "Chianti"], "sugar": [1.2, 2.5, 2.0]}


def answered(study: aw.Study, count: int, like: float = 30.0) -> aw.Study:
    """The study after some duels, in which a gain close to this one wins."""
    for _ in range(count):
        question = study.ask()
        first, second = (abs(option.get("gain", 0) - like) for option in question.options)
        study.tell(question, int(second < first))
    return study


def assert_replays(study: aw.Study) -> None:
    replayed = study.replay()
    assert replayed
    assert all(one.equal for one in replayed)


def kinds(study: aw.Study) -> list[str]:
    return [event.kind for event in study._ledger.record.events()]


def test_a_wider_range_is_asked_about_and_the_record_says_so(tmp_path):
    study = answered(
        aw.Study(ROOMY, storage=tmp_path / "a.db", kernel=SMOOTH, lapses=0.0, initial=4, seed=1), 10, like=60
    )
    before = [entry.options for entry in study.history()]
    words = study.change(
        space=ROOMY.replaced(gain=aw.Real(0, 60, unit="dB")), rule="muc_joint", reason="too quiet"
    )
    assert words == ["gain: 0 to 40 becomes 0 to 60 dB", "rule: muc becomes muc_joint"]
    assert (str(study.rule), study.space.parameters["gain"].high) == ("muc_joint", 60)
    answered(study, 8, like=60)
    assert max(option["gain"] for entry in study.history()[10:] for option in entry.options) > 45
    assert study.best().params["gain"] > 45
    assert [entry.options for entry in study.history()][:10] == before
    (change,) = study.changes()
    assert (change.words, change.reason, change.number) == (words, "too quiet", 21)
    assert_replays(study)
    again = aw.Study.open(tmp_path / "a.db")
    assert again.plan.to_dict() == study.plan.to_dict()
    assert again.ask() == study.ask()
    assert_replays(again)


@pytest.mark.parametrize("kernel", [pytest.param("matern52", marks=pytest.mark.slow), SMOOTH])
@pytest.mark.parametrize("rule", ["muc", "dueling_thompson", "bivariate_ei", "hallucination_believer"])
def test_after_a_range_is_narrowed_all_answers_count_and_only_the_range_is_asked_about(rule, kernel):
    study = answered(aw.Study(ROOMY, rule=rule, kernel=kernel, lapses=0.0, initial=4, seed=2), 12)
    # the best known settings are outside
    study.change(space=ROOMY.replaced(gain=aw.Real(5, 15), bands=aw.Integer(2, 4)))
    belief = study.belief()
    assert belief.data.n == 12
    assert belief.data.points.max() > 2
    answered(study, 2)
    for option in [one for entry in study.history()[12:] for one in entry.options] + [study.best().params]:
        assert 5 <= option["gain"] <= 15
        assert 2 <= option["bands"] <= 4
    for one in study.top(20):
        assert 5 <= one.params["gain"] <= 15
    assert study.best().params["gain"] > 12  # as the answers from before say
    assert study.status().regret is not None
    assert_replays(study)


def test_coordinates_out_of_a_range_go_on_on_its_scale():
    space = aw.Space(
        a=aw.Real(10, 20), b=aw.Real(10, 100, log=True), c=aw.Integer(2, 4), d=aw.Real(0, 1, step=0.5)
    )
    found = space.extended_unit({"a": 0, "b": 1000.0, "c": 8, "d": 0.3})
    torch.testing.assert_close(found, torch.tensor([-1.0, 2.0, 3.0, 0.3], dtype=torch.float64))
    inside = {"a": 12.5, "b": 31.0, "c": 3, "d": 0.5}
    assert space.extended_unit(inside).tolist() == space.unit(inside).tolist()
    assert space.allows(inside)
    assert not space.allows(inside | {"c": 5})
    with pytest.raises(aw.Refused, match="value must be a number; got 'x'"):
        space.extended_unit(inside | {"a": "x"})


def test_values_may_be_added_to_choices_and_ordinals():
    space = aw.Space(mode=aw.Choice(["soft", "hard"]), window=aw.Ordinal([128, 512]), gain=aw.Real(0, 40))
    study = answered(aw.Study(space, rule="random", seed=3), 8)
    more = space.replaced(mode=aw.Choice(["soft", "mid", "hard"]), window=aw.Ordinal([64, 128, 256, 512]))
    assert study.change(space=more) == [
        "mode: soft, hard becomes soft, mid, hard",
        "window: 128 < 512 becomes 64 < 128 < 256 < 512",
    ]
    answered(study, 10)
    asked = [option for entry in study.history()[8:] for option in entry.options]
    assert {option["mode"] for option in asked} >= {"mid"}
    assert {option["window"] for option in asked} & {64, 256}
    assert_replays(study)


def test_items_may_be_added_and_the_others_keep_their_places(tmp_path):
    wines = aw.Items(WINES, features=["sugar"], id="name")
    study = aw.Study(wines, storage=tmp_path / "a.db", seed=4, initial=2)
    for _ in range(4):
        study.tell(study.ask(), 0)
    places = study.space.parameters["name"].rows
    more = wines.with_rows([{"name": "Port", "sugar": 9.0}])
    assert study.change(space=more) == ["name: 1 more item, Port"]
    assert study.space.parameters["name"].rows[:3].tolist() == places.tolist()
    for _ in range(4):
        study.tell(study.ask(), 0)
    assert_replays(study)
    # the whole table, whose scale would be another one
    whole = {"name": [*WINES["name"], "Port"], "sugar": [*WINES["sugar"], 9.0]}
    same = aw.Items(whole, features=["sugar"], id="name")
    assert same.scale != more.scale
    assert study.change(space=same) == []
    assert aw.Study(same, storage=tmp_path / "a.db", seed=4, initial=2).count() == 8


def test_constraints_expiry_repeats_and_kernels_may_change():
    study = answered(aw.Study(ROOMY, initial=3, seed=5, kernel=SMOOTH, lapses=0.0), 6)
    assert study.change(space=ROOMY.where("gain + bands <= 20"), expires=60, repeats=0.5) == [
        "constraints: none becomes gain + bands <= 20",
        "expires: never becomes after 60 s",
        "repeats: 0 becomes 0.5",
    ]
    assert study.change(kernel="matern32") == ["kernel: se, fixed becomes matern32, learned"]
    answered(study, 3)
    for entry in study.history()[6:]:
        assert all(option["gain"] + option["bands"] <= 20 for option in entry.options)
    assert study.change(repeats=0, kernel=aw.kernel("matern52", [0.3, 0.3], 2.0), expires=None) == [
        "kernel: matern32, learned becomes matern52, fixed",
        "expires: after 60 s becomes never",
        "repeats: 0.5 becomes 0",
    ]
    assert "repeats" not in study.plan.to_dict()
    answered(study, 3)
    assert_replays(study)


def test_a_repeated_question_lies_in_the_new_range():
    plan = {"kernel": SMOOTH, "lapses": 0.0, "rule": "random"}
    study = answered(aw.Study(ROOMY, initial=2, seed=6, repeats=0.5, **plan), 14)
    study.change(space=ROOMY.replaced(gain=aw.Real(0, 12)))
    answered(study, 8)
    assert all(option["gain"] <= 12 for entry in study.history()[14:] for option in entry.options)
    assert_replays(study)


REFUSED = [
    (
        {"space": ROOMY.replaced(gain=aw.Real(1, 40, log=True))},
        "log of gain must stay as it was at the first",
    ),
    ({"space": ROOMY.replaced(gain=aw.Integer(0, 40))}, "type of gain must stay .* real; got integer"),
    ({"space": ROOMY.replaced(gain=aw.Real(0, 40, context=True))}, "context of gain must stay"),
    ({"space": aw.Space(gain=aw.Real(0, 40))}, "parameters must stay gain, bands, in this order; got gain"),
    ({"space": aw.Space(bands=aw.Integer(1, 8), gain=aw.Real(0, 40))}, "in this order; got bands, gain"),
    ({"space": 3}, "space must be a Space"),
    ({"space": ROOMY.replaced(bands=aw.Integer(1, 8)), "rule": "ucb_phi"}, "rule must ask duel questions"),
    ({"rule": "nonsense"}, "rule must"),
    ({"kernel": aw.kernel("se", [0.3] * 3)}, "kernel"),
    ({"kernel": "nonsense"}, "kernel"),
    ({"expires": -1}, "expires must be a positive number"),
    ({"repeats": 2}, "repeats must be a share"),
    (
        {"feedback": "binary"},
        "feedback must stay as it was at the first question, 'duel', since the answers so far",
    ),
    ({"seed": 8}, "seed must stay as it was at the first question, 0, since the questions so far were drawn"),
    (
        {"lapses": 0.0},
        "lapses must stay as it was at the first question, 'learned', since it says how .* Begin",
    ),
    (
        {"gain": aw.Real(0, 60)},
        "setting must be one of space, rule, level, kernel, expires, repeats; got 'gain'",
    ),
    ({"rule": "eubo", "reason": 3}, "reason must be text"),
]


@pytest.mark.parametrize(("change", "message"), REFUSED, ids=[message[:30] for _, message in REFUSED])
def test_what_must_stay_is_refused_in_words_and_nothing_changes(change, message):
    study = aw.Study(ROOMY)
    question = study.ask()
    with pytest.raises(aw.Refused, match=message):
        study.change(**change)
    assert kinds(study) == ["asked"]
    assert study.ask() == question
    assert study.plan.to_dict() == aw.Study(ROOMY).plan.to_dict()


def test_values_and_items_that_have_answers_stay():
    listed = aw.Space(mode=aw.Choice(["a", "b"]), size=aw.Ordinal([1, 2, 3]), rate=aw.Fixed(48))
    study = aw.Study(listed)
    for change, message in (
        (
            {"mode": aw.Choice(["a", "c"])},
            "values of mode must keep those that are there; got none that is 'b'",
        ),
        ({"size": aw.Ordinal([3, 2, 1])}, "values of size must stay in their order, 1 < 2 < 3; got 3, 2, 1"),
        ({"size": aw.Choice([1, 2, 3])}, "type of size must stay"),
        ({"rate": aw.Fixed(44)}, "value of rate must stay as it was at the first question, 48; got 44"),
    ):
        with pytest.raises(aw.Refused, match=re.escape(message)):
            study.change(space=listed.replaced(**change))
    wines = aw.Items(WINES, features=["sugar"], id="name")
    study = aw.Study(wines)
    for table, message in (
        ({"name": ["Chablis", "Rioja"], "sugar": [1.2, 2.5]}, "got a table with 1 fewer ('Chianti', say)"),
        ({**WINES, "sugar": [1.2, 2.6, 2.0]}, "got sugar = 2.6 instead of 2.5 for 'Rioja'"),
        (
            {"name": ["Chablis", "Port", "Rioja", "Chianti"], "sugar": [1.2, 9.0, 2.5, 2.0]},
            "got new items among those that are there",
        ),
    ):
        with pytest.raises(aw.Refused, match=re.escape(message)):
            study.change(space=aw.Items(table, features=["sugar"], id="name"))
    with pytest.raises(aw.Refused, match="space must have 2 settings or more"):
        aw.Study(aw.Space(n=aw.Integer(1, 5))).change(space=aw.Space(n=aw.Integer(1, 2)).where("n <= 1"))
    assert kinds(study) == []


def test_a_change_that_changes_nothing_writes_nothing():
    study = answered(aw.Study(ROOMY), 2)
    wider = {"space": ROOMY.replaced(gain=aw.Real(0, 60)), "rule": "eubo"}
    assert study.change() == study.change(space=ROOMY, rule="muc", kernel="averaged", expires=None) == []
    assert len(study.change(**wider)) == 2
    before = kinds(study)
    assert study.change(**wider) == []
    assert study.change(space=ROOMY.replaced(gain=aw.Real(0.0, 60.0))) == []
    assert kinds(study) == before == ["asked", "answered"] * 2 + ["changed"]


def test_a_pending_question_out_of_the_range_is_given_up_but_may_be_answered():
    study = aw.Study(ROOMY, seed=1)
    far, near = study.ask("ada"), study.record([{"gain": 1, "bands": 2}, {"gain": 2, "bands": 3}], 0)
    assert max(option["gain"] for option in far.options) > 5
    study.change(space=ROOMY.replaced(gain=aw.Real(0, 5)))
    assert kinds(study)[-2:] == ["changed", "expired"]
    assert study.entry(far).status == "expired"
    anew = study.ask("ada")
    assert anew.id not in (far.id, near.id)
    assert all(option["gain"] <= 5 for option in anew.options)
    study.tell(far, 1)  # who was looking at it meanwhile
    assert study.count() == 2
    study.best()
    assert_replays(study)
    # back in the range, it is asked again
    other = aw.Study(ROOMY, seed=1)
    far = other.ask("ada")
    other.change(space=ROOMY.replaced(gain=aw.Real(0, 5)))
    other.change(space=ROOMY)
    assert other.ask("ben").id == far.id


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path):
    """An address of each storage that several programs share."""
    if request.param == "sqlite":
        return str(tmp_path / "a.db")
    schema = fresh_schema()
    request.addfinalizer(lambda: schema.__exit__(None, None, None))  # noqa: PT021 - jaxtyping hides generators
    return schema.__enter__()


def test_another_program_goes_on_with_the_change(place):
    study = answered(aw.Study(ROOMY, storage=place, kernel=SMOOTH, lapses=0.0, initial=3, seed=2), 8)
    other = aw.Study.open(place, prefetch=True)
    waiting = other.ask("ada")
    study.change(space=ROOMY.replaced(gain=aw.Real(0, 60), bands=aw.Integer(1, 20)), rule="eubo")
    other.tell(waiting, 0)
    question = other.ask("ada")
    assert str(other.rule) == "eubo"
    assert other.space == study.space
    assert study.ask("ada") == question
    assert other.predict({"gain": 55, "bands": 19})
    other.record([{"gain": 55, "bands": 19}, {"gain": 3, "bands": 1}], 0)
    other.close()
    assert_replays(study)
    study.close()


def test_a_program_that_does_not_know_of_a_change_yet_reads_the_record_before_it_refuses(tmp_path):
    study = aw.Study(ROOMY, storage=tmp_path / "a.db")
    other = aw.Study.open(tmp_path / "a.db")
    study.change(space=ROOMY.replaced(gain=aw.Real(10, 60)))
    beyond = [{"gain": 55, "bands": 1}, {"gain": 50, "bands": 1}]
    assert other.record(beyond, 0).options[0]["gain"] == 55
    study.change(space=ROOMY.replaced(gain=aw.Real(10, 40)))
    with pytest.raises(aw.Refused, match="lie between 10 and 40; got 55"):
        other.record(beyond, 1)
    assert len(study.history()) == 1


def test_a_question_that_a_change_outruns_is_chosen_anew(tmp_path):
    study = answered(
        aw.Study(ROOMY, storage=tmp_path / "a.db", kernel=SMOOTH, lapses=0.0, initial=3, seed=2), 8
    )
    other, choose, seen = aw.Study.open(tmp_path / "a.db"), study._asking.choose, []

    def choose_while_it_changes(model: Model, situation: Situation) -> object:
        chosen = choose(model, situation)
        if not seen:
            other.change(space=ROOMY.replaced(gain=aw.Real(50, 60)))
        seen.append(model)
        return chosen

    study._asking.choose = choose_while_it_changes
    question = study.ask()
    assert len(seen) == 2
    assert all(50 <= option["gain"] <= 60 for option in question.options)
    assert_replays(study)


def test_a_change_that_a_question_outruns_gives_it_up(tmp_path):
    study, other = aw.Study(ROOMY, storage=tmp_path / "a.db"), aw.Study.open(tmp_path / "a.db")
    add_all, asked = study._ledger.add_all, []

    def add_after_another(drafts: list) -> bool:
        if not asked:
            asked.append(other.ask("ada"))
        return add_all(drafts)

    study._ledger.add_all = add_after_another
    study.change(space=ROOMY.replaced(gain=aw.Real(50, 60)))
    assert kinds(study) == ["asked", "changed", "expired"]
    assert all(option["gain"] >= 50 for option in other.ask("ada").options)


def test_a_changed_study_opens_with_its_present_settings_only(tmp_path):
    place = {"storage": tmp_path / "a.db", "seed": 1}
    wider = ROOMY.replaced(gain=aw.Real(0, 60))
    aw.Study(ROOMY, **place).change(space=wider, rule="eubo")
    assert str(aw.Study(wider, rule="eubo", **place).rule) == "eubo"
    with pytest.raises(aw.Refused) as error:
        aw.Study(ROOMY, **place)
    assert "space must be as study 'study' is since it was changed" in str(error.value)
    assert "with which it began. Open it by Study.open." in str(error.value)
    with pytest.raises(
        aw.Refused, match=r"rule must be as study 'study' is, 'eubo'; got 'muc_joint'. To go on so"
    ):
        aw.Study(wider, rule="muc_joint", **place)
    with pytest.raises(
        aw.Refused, match=r"use Study.open\(...\).change\(rule=...\); or open it by Study.open"
    ):
        aw.Study(wider, rule="muc_joint", **place)
    with pytest.raises(aw.Refused, match=r"seed must be .* Open it by Study.open, or choose another name"):
        aw.Study(wider, rule="eubo", storage=tmp_path / "a.db", seed=2)


def test_a_study_in_memory_with_a_kernel_of_its_own_keeps_it():
    from gpytorch.kernels import RQKernel, ScaleKernel

    study = answered(aw.Study(ROOMY, kernel=ScaleKernel(RQKernel()).double(), rule="eubo", initial=3), 4)
    study.change(space=ROOMY.replaced(gain=aw.Real(0, 60)))
    answered(study, 2)
    assert_replays(study)
    with pytest.raises(aw.Refused, match="kernel must be a name or a kernel made by"):
        study.change(kernel=ScaleKernel(RQKernel()).double())


def test_learned_kernels_are_those_of_the_present_coordinates():
    """What is learned follows from the record alone, not from when this program learned it."""
    study = answered(aw.Study(ROOMY, initial=3, seed=7), 13)
    study.change(space=ROOMY.replaced(gain=aw.Real(0, 80)))
    answers = Situation.of(study._ledger.state).answers
    fresh = Model(study.plan).learned(answers[:12]).kernel
    learned = study.model.learned(answers[:12]).kernel
    for one, other in zip(learned.parameters(), fresh.parameters(), strict=True):
        assert one.tolist() == other.tolist()


def test_a_salvaged_record_keeps_changes_and_lost_ones_can_be_made_again(tmp_path):
    file = tmp_path / "a.db"
    space = aw.Space(mode=aw.Choice(["a", "b"]), gain=aw.Real(0, 40))
    more = space.replaced(mode=aw.Choice(["a", "b", "c"]))
    study = answered(aw.Study(space, storage=file, seed=1, initial=2), 3)
    study.change(space=more)
    answered(study, 6)
    study.close()
    salvage(file, tmp_path / "whole.db")
    with aw.Study.open(tmp_path / "whole.db") as saved:
        assert saved.space == more
        assert_replays(saved)
    values = b'{"type":"choice","values":["a","b","%s"]'
    assert values % b"c" in file.read_bytes()
    file.write_bytes(file.read_bytes().replace(values % b"c", values % b"x"))
    for rest in tmp_path.glob("a.db-*"):
        rest.unlink()
    salvage(file, tmp_path / "part.db")
    saved = aw.Study.open(tmp_path / "part.db")
    assert saved.space == space  # the change is lost
    with pytest.raises(aw.Refused, match="value must be one of 'a', 'b'; got 'c'"):
        saved.best()
    saved.change(space=more)
    saved.best()


def test_a_change_is_an_event_about_no_question_and_is_in_every_copy(tmp_path):
    study = aw.Study(ROOMY, storage=tmp_path / "a.db")
    study.change(rule="eubo")
    (event,) = study._ledger.record.events()
    assert (event.number, event.kind, event.question) == (1, "changed", 0)
    assert {key: value for key, value in event.body.items() if key != "program"} == {"rule": "eubo"}
    study.backup(tmp_path / "b.db")
    assert str(aw.Study.open(tmp_path / "b.db").rule) == "eubo"
    assert study.ask().id == 0


IN_ANOTHER = """
import sys
import askwise as aw
study = aw.Study.open(sys.argv[1])
space = study.space.replaced(gain=aw.Real(0, 40 + int(sys.argv[2])))
for number in range(4):
    study.tell(study.ask(sys.argv[2]), 0)
    if number == 1:
        study.change(space=space)
study.close()
"""


@pytest.mark.slow
def test_several_processes_change_and_answer_one_study(tmp_path):
    file = tmp_path / "a.db"
    aw.Study(ROOMY, storage=file, initial=3).close()
    words = [[sys.executable, "-c", IN_ANOTHER, str(file), str(number)] for number in (10, 20, 30)]
    working = [subprocess.Popen(one) for one in words]
    assert [one.wait(120) for one in working] == [0, 0, 0]
    study = aw.Study.open(file)
    assert study.count() == 12
    assert len(study.changes()) == 3
    assert_replays(study)


@pytest.mark.parametrize("rule", ["muc", "bivariate_ei", "hallucination_believer"])
def test_a_space_without_steps_or_choices_is_narrowed_as_well(rule):
    """There the search knows no domain but the cube, outside of which the best answers are."""
    space = aw.Space(gain=aw.Real(0, 40))
    study = answered(aw.Study(space, rule=rule, kernel=aw.kernel("se", 0.3, 4.0), lapses=0.0, initial=3), 6)
    study.change(space=aw.Space(gain=aw.Real(5, 15)))
    answered(study, 2)
    points = study.model.points([option for entry in study.history()[6:] for option in entry.options])
    assert ((points >= 0) & (points <= 1)).all()
    assert 5 <= study.best().params["gain"] <= 15
    assert_replays(study)
