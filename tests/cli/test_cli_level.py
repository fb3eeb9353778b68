"""Studies with a level in the terminal."""

import csv
from contextlib import closing
from pathlib import Path

import pytest
from test_cli import document, folder, recorded, refused, told, written  # noqa: F401

import askwise as aw

SPACE = """
[space.force]
type = "real"
low = 0
high = 10
unit = "N"
[space.speed]
type = "integer"
low = 1
high = 5
"""


@pytest.fixture
def answered() -> None:
    """Thirty answers: it works with a medium force."""
    written("binary", more='level = 0.9\nkernel = "se"\ninitial = 3\n', space=SPACE)
    told("ask")
    with closing(aw.Study.open("study.db", "hall")) as study:
        study.void(0)
        for number in range(30):
            setting = {"force": number / 3, "speed": 1 + number % 5}
            study.record([setting], 2 < setting["force"] < 7)


def test_check_shows_the_level():
    written("binary", more="level = 0.9\n", space=SPACE)
    assert "0.9: all settings that work at least 90% of the time" in told("check")
    found = document("check")
    assert (found["level"], found["rule"]) == (0.9, "straddle_phi")


def test_init_writes_a_level_to_uncomment():
    told("init", "--feedback", "binary")
    file = Path("askwise.toml")
    file.write_text(file.read_text().replace("# level = 0.95", "level = 0.95"))
    assert document("check")["level"] == 0.95


@pytest.mark.usefixtures("answered")
def test_status_and_best_speak_of_the_level():
    found = document("status")
    assert 0 < found["misclassified"] < 0.5
    assert found["gain"] is None
    assert "of the space is expected to work at least 90% of the time" in found["hint"]
    shown = told("status")
    assert found["hint"] in " ".join(shown.split())
    assert "improve the setting" not in shown
    best = document("best")
    assert f"at least 90% of the time has a probability of {best['above_level']:.0%}." in told("best")


@pytest.mark.usefixtures("answered")
def test_level_shows_the_sides_and_the_safest_settings():
    found = document("level")
    assert found["level"] == 0.9
    shares = [found[side]["value"] for side in ("inside", "outside", "unclear")]
    assert sum(shares) == pytest.approx(1)
    assert 2 < found["safest"][0]["params"]["force"] < 7
    shown = told("level")
    assert shown.startswith("Settings that work at least 90% of the time, after 30 answers:")
    assert "do not, with a probability of 95% or more" in shown
    assert "90% or more: the probability that it works at least 90% of the time." in shown
    lower = document("level", "--level", "0.6", "--confidence", "0.8")
    assert (lower["level"], lower["confidence"]) == (0.6, 0.8)
    assert lower["inside"]["value"] > found["inside"]["value"]
    assert "60% or more" in told("level", "--level", "0.6")


@pytest.mark.usefixtures("answered")
def test_level_writes_settings_with_their_sides():
    assert told("level", "--out", "sides.csv", "--count", "40").endswith("Wrote 40 settings to sides.csv.\n")
    with open("sides.csv") as file:
        rows = list(csv.DictReader(file))
    assert [*rows[0]] == ["force", "speed", "rate", "above_level", "side"]
    assert len(rows) == 40
    assert {row["side"] for row in rows} <= {"inside", "outside", "unclear"}
    found = document("level", "--out", "again.csv", "--count", "7")
    assert (found["file"], found["written"]) == ("again.csv", 7)
    assert document("level")["file"] is None


@pytest.mark.usefixtures("answered")
def test_predict_and_plot_know_the_level():
    assert 0 < document("predict", "force=5", "speed=2")["predictions"][0]["above_level"] < 1
    assert "90% or more" in told("predict", "force=5", "speed=2")
    assert told("plot", "--kind", "level", "--pair", "force,speed") == "plots/level.png\n"
    assert Path("plots/level.png").stat().st_size > 10_000


def test_a_study_without_a_level_has_no_such_figure_but_any_level_can_be_asked_for():
    written("binary", more='kernel = "se"\ninitial = 3\n', space=SPACE)
    told("ask")
    with closing(aw.Study.open("study.db", "hall")) as study:
        for number in range(6):
            study.record([{"force": number, "speed": 2}], number > 2)
    assert "level must be given in a study without one; got none." in refused("level")
    assert document("level", "--level", "0.7")["level"] == 0.7
    assert "level must be given, of a yes/no study; got none." in refused("plot", "--kind", "level")


@pytest.mark.usefixtures("answered")
def test_the_level_is_changed_by_the_file():
    written("binary", more='level = 0.8\nkernel = "se"\ninitial = 3\n', space=SPACE)
    assert "level must stay as it is in the record, 0.9; got 0.8. Run `askwise change`" in refused("status")
    assert told("change", "--yes").startswith("level: 0.9 becomes 0.8\n")
    assert document("check")["rule"] == "straddle_phi"
    written("binary", more='kernel = "se"\ninitial = 3\n', space=SPACE)
    words = ["rule: straddle_phi becomes ucb_phi", "level: 0.8 becomes none"]
    assert document("change", "--yes")["changes"] == words
    assert document("check")["rule"] == "ucb_phi"


def test_duels_have_no_level():
    written(more="level = 0.9\n")
    assert "level must be left out where settings are compared; got 0.9." in refused("check")
    written()
    assert "study must ask yes/no questions to have a level; got duel." in refused("level")


@pytest.mark.usefixtures("answered")
def test_a_wrong_confidence_is_refused():
    assert "confidence must be a probability above 0.5 and below 1; got 0.3." in refused(
        "level", "--confidence", "0.3"
    )
