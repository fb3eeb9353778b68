"""Studies that the release before recorded open, replay and go on.

Nearly as they would have: their numerics had another version, and processors differ in last bits.
"""

import json
import shutil
from pathlib import Path

import pytest

import askwise as aw

DATA = Path(__file__).parents[1] / "data"
RECORDED = json.loads((DATA / "recorded-0.1.0.json").read_text())


@pytest.fixture
def database(tmp_path) -> Path:
    """A copy of a database with every kind of answer and event, made by askwise 0.1.0."""
    return Path(shutil.copy(DATA / "recorded-0.1.0.db", tmp_path / "study.db"))


def assert_same(found: object, expected: object) -> None:
    """Equal, numbers nearly so."""
    if isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-3, abs=1e-3)
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    elif isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key in expected:
            assert_same(found[key], expected[key])
    else:
        assert found == expected


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in ("batches", "duels") else ())
        for name in RECORDED["studies"]
    ],
)
def test_every_question_follows_from_the_record(database, name):
    study = aw.Study.open(database, name)
    replayed = study.replay()
    assert len(replayed) >= RECORDED["studies"][name]["questions"] - 1  # one was recorded, not asked
    for one in replayed:
        assert_same(one.again, one.asked)


@pytest.mark.parametrize("name", RECORDED["studies"])
def test_a_study_continues_as_it_would_have(database, name):
    expected, study = RECORDED["studies"][name], aw.Study.open(database, name)
    best, status = study.best(expected["context"]), study.status(expected["context"])
    assert_same(best.params, expected["best"])
    for part in ("mean", "std", "probability"):
        assert_same(getattr(best, part), expected[part])
    assert status.answers == expected["answers"]
    assert_same(status.gain, expected["gain"])
    question = study.ask("the next one", expected["context"])
    assert_same(question.options, expected["next"]["options"])
    study.tell(question, **expected["told"])
    then = study.ask("one more", expected["context"])
    assert_same(then.options, expected["then"]["options"])
    assert list(then.order) == expected["then"]["order"]
