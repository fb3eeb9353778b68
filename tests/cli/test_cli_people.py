"""Studies of several people in the terminal."""

import random
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from rich.console import Console
from test_cli import document, folder, recorded, refused, told, written  # noqa: F401

import askwise as aw
from askwise.cli.people import number, percent, sentences
from askwise.cli.reports import _print_raters
from askwise.storage import open_record
from askwise.study import Estimate, Rater, Raters, load

LIKED = {"anna": 10.0, "ben": 30.0}
TWO = ["anna", "ben"]


def answered(participants: str, count: int = 12, people: Sequence[str | None] = TWO) -> None:
    """A study with this number of answers of each, who like different gains."""
    written(more=f'participants = "{participants}"\ninitial = 4\nkernel = "se"\n')
    told("ask", "-p", "nobody")
    draw = random.Random(1)
    with closing(aw.Study.open("study.db", "hall")) as study:
        study.void(0)
        for turn in range(count):
            for who in people:
                gains = sorted(draw.uniform(0, 40) for _ in range(2))
                options = [{"gain": gain, "cutoff": 150.0 * (1 + turn), "mode": "soft"} for gain in gains]
                far = [abs(gain - LIKED.get(who or "", 20.0)) for gain in gains]
                study.record(options, int(far[1] < far[0]), participant=who)


def test_separate_people_have_a_row_each():
    answered("separate")
    lines = [line.split() for line in told("best").splitlines()]
    assert [line[:2] for line in lines if line[:1] and line[0] in LIKED] == [["anna", "12"], ["ben", "12"]]
    assert "Preferred: how often it is expected to be preferred to a setting at random." in told("best")
    found = document("best")["people"]
    assert [one["participant"] for one in found] == TWO
    assert all(abs(one["params"]["gain"] - LIKED[one["participant"]]) < 8 for one in found)
    assert [one["answers"] for one in found] == [12, 12]
    assert {check["name"] for check in found[0]["checks"]} >= {"sides", "model"}
    lines = [line.split() for line in told("status").splitlines()]
    assert [line[:3] for line in lines if line[:1] == ["anna"]] in (
        [["anna", "12", "Go"]],
        [["anna", "12", "You"]],
    )
    assert [one["participant"] for one in document("status")["people"]] == TWO


def test_one_of_separate_people_is_shown_by_name():
    answered("separate")
    assert told("best", "-p", "ben").startswith("Recommended setting for ben, after 12 answers:")
    one, other = document("best", "-p", "anna"), document("best", "-p", "ben")
    assert one["params"]["gain"] < other["params"]["gain"]
    assert (one["participant"], one["answers"]) == ("anna", 12)
    assert document("status", "-p", "ben")["answers"] == 12
    assert "For ben:" in told("status", "-p", "ben")
    assert "must have answered ('anna', 'ben'); got 'bne'" in refused("best", "-p", "bne")
    assert "Choose one of 'anna', 'ben'." in refused("plot")


def test_a_population_has_a_setting_for_all_and_one_for_each():
    answered("population")
    assert told("best").startswith("Recommended setting for all, after 24 answers by 2 people:")
    assert "what all have in common" not in told("best", "-p", "anna")
    assert told("best", "-p", "anna").startswith(
        "Recommended setting for anna, after 12 answers and 12 by others:"
    )
    low, middle, high = (
        document("best", *words)["params"]["gain"] for words in (["-p", "anna"], [], ["-p", "ben"])
    )
    assert low < high
    assert document("best")["answers"] == 24
    assert middle == document("best", "--json")["params"]["gain"]


def test_status_says_what_is_learned_of_a_population():
    answered("population")
    out = told("status")
    assert "without looking" in out
    assert "of a person's taste is their own" in out
    raters = document("status")["raters"]
    assert [one["name"] for one in raters["each"]] == TWO
    low, high = raters["share"]["interval"]
    assert 0 < low < raters["share"]["value"] < high < 1
    lines = told("status", "-p", "ben").splitlines()
    assert [line.split() for line in lines if line.startswith(" answers ")][:2] == [
        ["answers", "12"],
        ["answers", "by", "others", "12"],
    ]


def test_status_tells_of_lapses_from_twenty_answers_on():
    answered("shared", 9)
    assert "without looking" not in told("status")
    assert document("status")["raters"] is None
    answered_more(2)
    assert "of the answers are given without looking at the question." in told("status")
    assert document("status")["raters"]["each"][0]["answers"] == 22


def answered_more(count: int) -> None:
    with closing(aw.Study.open("study.db", "hall")) as study:
        for number_ in range(count):
            for who in TWO:
                options = [{"gain": gain, "cutoff": 200.0 + number_, "mode": "hard"} for gain in (5.0, 20.0)]
                study.record(options, 1, participant=who)


def test_one_taste_has_no_person():
    answered("shared", 4)
    message = "--participant must be left out where all share one taste; got 'anna'"
    assert message in refused("best", "-p", "anna")
    assert message in refused("status", "-p", "anna")


def test_noise_by_setting_is_told_in_words():
    space = aw.Space(gain=aw.Real(0, 40, unit="dB"), mode=aw.Choice(["soft", "hard"]))
    slopes = [Estimate(0.693147, (0.0, 1.386294)), Estimate(0.0, (-0.693147, 0.693147)), Estimate(0.0, None)]
    found = Raters(
        [Rater(None, 30, Estimate(0.03, (0.004, 0.11)), Estimate(1.0))],
        None,
        slopes,
        Estimate(0.5, (0.3, 0.81)),
    )
    assert list(sentences(space, found)) == [
        "3% (0% to 11%) of the answers are given without looking at the question.",
        "Differences below 0.5 (0.3 to 0.81) noises of an answer are too small to decide.",
        "With gain 40 dB answers are 2 (1 to 4) times as noisy as with 0 dB.",
        "With mode soft answers are 1 (0.5 to 2) times as noisy as without.",
        "With mode hard answers are 1 (assumed) times as noisy as without.",
    ]
    assert percent(Estimate(0.0)) == "none (assumed)"
    assert number(Estimate(0.8421, (0.41, 1.72))) == "0.84 (0.41 to 1.7)"


def test_the_table_of_people_fits_a_terminal_of_80_columns_and_names_who_is_new(capsys):
    answered("population", 1, ["anna", None])
    rater = Rater("anna", 1, Estimate(0.03, (0.001, 0.11)), Estimate(0.8, (0.4, 1.7)))
    found = Raters([rater, Rater("zoe", 1, rater.lapse, rater.noise)], Estimate(0.41, (0.12, 0.78)), None)
    with closing(aw.Study.open("study.db", "hall")) as study:
        _print_raters(Console(width=80), study, found)
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert " anna" in out
    (line,) = (line for line in out.splitlines() if "(no name)" in line)
    assert "not known yet" in line
    assert "41% (12% to 78%) of a person's taste is their own, the rest is common to all." in out


def test_run_counts_the_answers_of_the_person_where_people_differ():
    written(more='participants = "separate"\n')
    out = told("run", "-n", "2", "-p", "anna", typed="a\nb\n")
    assert "Recommended setting for anna, after 2 answers:" in out
    out = told("run", "-n", "1", "-p", "ben", typed="a\n")
    assert "0 of 1 answers" in out
    assert "Recommended setting for ben, after 1 answer:" in out
    assert "without a name" not in out
    assert "Done: there are 2 answers of this participant" in told("run", "-n", "2", "-p", "anna")


@pytest.mark.parametrize("participants", ["separate", "population"])
def test_answers_without_a_name_are_of_one_more_person_and_that_is_said(participants):
    written(more=f'participants = "{participants}"\n')
    note = "These answers are of one person without a name; --participant NAME says who answers."
    assert note in told("ask")
    assert note not in told("ask", "-p", "anna")
    assert note in told("run", "-n", "1", typed="a\n")
    told("run", "-n", "1", "-p", "anna", typed="a\n")
    assert note not in told("replay")
    if participants == "separate":
        assert "(no name)" in told("best")
        assert [one["participant"] for one in document("best")["people"]] == [None, "anna"]


def test_one_taste_needs_no_name():
    written()
    assert "without a name" not in told("ask")


@pytest.mark.parametrize("participants", ["shared", "separate", "population"])
def test_every_command_works_with_several_people(participants):
    answered(participants, 5)
    with closing(aw.Study.open("study.db", "hall")) as study:
        for who in TWO:
            study.tell(study.ask(who), 1)
    assert "reproduced bit for bit" in told("replay")
    assert "in order" in told("check")
    found = {one["what"]: one["ok"] for one in document("doctor")["findings"]}
    assert found["record"]
    assert found["time per question"]
    assert told("plot", "--kind", "raters").strip() == "plots/raters.png"
    assert Path("plots/raters.png").read_bytes().startswith(b"\x89PNG")
    assert "way to the best" in told("simulate", "-n", "1", "-k", "1")
    assert ("Each user answers alone" in told("simulate", "-n", "1", "-k", "1")) == (
        participants == "population"
    )


def test_a_figure_of_raters_needs_two_people_and_is_left_out_for_one():
    answered("population", 6, ["anna"])
    assert "study must have answers of two people or more" in refused("plot", "--kind", "raters")
    assert "raters" not in document("plot")["files"]


@pytest.mark.parametrize(("participants", "new"), [("separate", True), ("shared", False)])
def test_the_same_answer_of_another_person_is_imported_where_people_differ(participants, new):
    written(more=f'participants = "{participants}"\n')
    for who in TWO:
        head = "gain_a,cutoff_a,mode_a,gain_b,cutoff_b,mode_b,answer,participant"
        Path(f"{who}.csv").write_text(f"{head}\n1,200,soft,2,300,hard,A,{who}\n")
    told("import", "anna.csv")
    if new:
        told("import", "ben.csv")
        assert len(recorded()) == 2
    else:
        assert "be new to the study" in refused("import", "ben.csv")


def test_check_shows_what_is_assumed_of_people():
    written("binary", more='participants = "population"\naim = "population"\nguess = 0.25\nlapses = 0.02\n')
    rows = {line.split()[0]: line.split()[1:] for line in told("check").splitlines() if line.strip()}
    assert rows["participants"] == rows["aim"] == ["population"]
    assert (rows["guess"], rows["lapses"]) == (["0.25"], ["0.02"])
    assert "threshold" not in rows
    assert document("check")["guess"] == 0.25


def test_a_study_from_before_lapses_were_learned_goes_on_without_them():
    written()
    settings = load("askwise.toml").plan().to_dict()
    old = {name: value for name, value in settings.items() if name not in ("lapses", "threshold")}
    open_record("study.db", "hall", old).close()
    told("ask")
    assert "lapses" not in document("check")
    written(more='lapses = "learned"\n')
    assert "lapses must stay as it was at the first question, not given, since it says how" in refused(
        "status"
    )
