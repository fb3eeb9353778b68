"""Commands that take back, list, predict and compare; tables of spreadsheets; results in contexts."""

import json
import re
from pathlib import Path

import pytest
from test_cli import (  # noqa: F401
    NOISE,
    SPACE,
    answers,
    document,
    folder,
    history,
    recorded,
    refused,
    statuses,
    told,
    written,
)

from askwise.errors import Refused
from askwise.study import load

ONE, TWO = ("gain=10", "cutoff=500", "mode=soft"), ("gain=30", "cutoff=2000", "mode=hard")
ENDS = ("-n", "3")


def answered(count: int, *words: str, key: str = "a") -> None:
    told("run", *words, typed=f"{key}\n" * count)


# undo, expire, history


def test_undo_takes_back_the_last_answers_which_are_asked_again():
    written()
    answered(3, *ENDS)
    before = [entry.options for entry in history()]
    shown = "Took back the replies to questions 1 and 2, to be asked again. 1 answer left."
    assert told("undo", "2").strip() == shown
    assert statuses() == ["answered", "open", "open"]
    assert document("ask")["options"] == list(before[1])
    assert document("undo") == {"undone": [0], "answers": 0}
    assert "n must be at most 0, the number of answers and skips; got 1. Ask first." in refused("undo")
    answered(3, *ENDS, key="b")
    assert answers() == [{"prefers": 1}] * 3
    assert [entry.options for entry in history()] == before
    assert document("replay")["different"] == []


def test_undo_takes_back_what_one_participant_answered():
    written()
    told("run", "-p", "anna", typed="a\na\n")
    told("run", "-p", "bob", typed="a\n")
    (number,) = document("undo", "--participant", "anna")["undone"]
    assert (history()[number].participant, history()[number].status) == ("anna", "open")
    assert "skips of cleo; got 1" in refused("undo", "-p", "cleo")


def test_undo_takes_out_what_was_imported():
    written(space="[space.gain]\ntype = 'real'\nlow = 0\nhigh = 1\n")
    Path("more.csv").write_text("gain_a,gain_b,answer\n0.1,0.2,A\n0.3,0.2,B\n")
    told("import", "more.csv")
    shown = told("undo", "2").strip()
    assert shown == "Took out the replies to questions 0 and 1, recorded from elsewhere. 0 answers left."
    assert statuses() == ["voided", "voided"]


def test_expire_gives_up_waiting_and_the_question_goes_to_whoever_comes_next():
    written()
    told("ask", "-p", "anna")
    told("ask", "-p", "bob")
    assert "open questions must be exactly one if no id is given; got 2" in refused("expire")
    assert "--all must be used without a number" in refused("expire", "0", "--all")
    assert told("expire", "1").strip() == "1 question expired: 1."
    assert document("ask", "-p", "cleo")["id"] == 1
    assert document("expire", "--all") == {"expired": [0, 1]}
    assert told("expire", "--all").strip() == "0 questions expired."
    told("tell", "0", "A")
    assert "question 0 must be open to expire" in refused("expire", "0")
    assert "question must be one that was asked" in refused("expire", "9")


def test_history_lists_questions_newest_last():
    written()
    assert told("history").strip() == "No questions yet."
    told("run", "-n", "2", "-p", "anna", typed="a\nt\n")
    told("ask", "-p", "bob")
    told("tell", "2", "skip", "--reason", "noise outside")
    head, _, *rows = told("history").splitlines()
    assert head.split()[:4] == ["A:", "gain,", "cutoff,", "mode"]
    assert [row.split()[0] for row in rows] == ["0", "1", "2"]
    assert " tie " in rows[1]
    assert " dB, " in rows[1]
    assert "(skipped: noise outside)   bob" in rows[2]
    assert len(told("history", "-n", "2").splitlines()) == 4
    found = document("history", "-p", "anna", "-n", "1")
    assert found["all"] == 2
    (one,) = found["questions"]
    assert (one["id"], one["answer"], one["participant"]) == (1, {"undecided": True}, "anna")
    assert told("history", "-p", "nobody").strip() == "No questions of nobody yet."


def test_history_of_yes_no_questions_has_a_column_for_each_parameter():
    written("binary")
    told("run", "-n", "1", typed="y\n")
    head, _, row = told("history").splitlines()
    assert head.split() == ["gain", "cutoff", "mode", "answer", "seconds", "asked"]
    assert " yes " in row


# predict, compare


@pytest.mark.parametrize("feedback", ["duel", "binary"])
def test_predict_and_compare_settings(feedback):
    written(feedback)
    told("run", "-n", "4", typed="a\nb\na\nb\n" if feedback == "duel" else "y\nn\ny\nn\n")
    shown = told("predict", *ONE, *TWO)
    assert [line.split()[0] for line in shown.splitlines()[2:4]] == ["10", "30"]
    assert ("preferred" if feedback == "duel" else "works") in shown
    found = document("predict", *ONE, *TWO)["predictions"]
    assert [one["params"]["gain"] for one in found] == [10, 30]
    assert all(0 < one["probability"] < 1 and one["interval"][0] < one["mean"] for one in found)
    compared = document("compare", *ONE, *TWO)
    assert compared["difference"] == pytest.approx(found[0]["mean"] - found[1]["mean"])
    assert (compared["first"]["gain"], compared["second"]["gain"]) == (10, 30)
    chance = f"The first setting is better with a probability of {compared['better']:.0%}."
    assert chance in told("compare", *ONE, *TWO)


def test_settings_to_predict_may_come_from_a_file():
    written()
    Path("mine.csv").write_text("gain;cutoff;mode\n10,5;500;soft\n30;2000;hard\n")
    found = document("predict", "--file", "mine.csv")["predictions"]
    assert [one["params"]["gain"] for one in found] == [10.5, 30]
    Path("mine.csv").write_text("gain,cutoff,mode\n10,500,soft\nloud,2000,hard\n")
    assert "row 3: gain must be a number; got 'loud'" in refused("predict", "--file", "mine.csv")
    Path("mine.csv").write_text("gain,colour\n10,red\n")
    assert "have columns gain, cutoff, mode" in refused("predict", "--file", "mine.csv")
    assert "predict must be given settings or --file; got neither" in refused("predict")
    assert "got both" in refused("predict", *ONE, "--file", "mine.csv")
    assert "params must be gain, cutoff, mode; got gain" in refused("predict", "gain=3")
    assert "setting must be NAME=VALUE" in refused("predict", "gian=3")
    assert "compare must be given two settings; got 1" in refused("compare", *ONE)


# run, help, contexts


def test_run_that_has_its_answers_says_so_and_ends_well():
    written()
    answered(3, *ENDS)
    shown = told("run", "-n", "3")
    assert "Done: there are 3 answers, and 3 were wanted." in shown
    assert "Recommended setting, after 3 answers" in shown
    assert document("run", "-n", "2") == {"answers": 3, "given": 0, "interrupted": False}


@pytest.mark.parametrize("words", [(), ("tell",), ("bench",), ("bench", "run")])
def test_h_is_help(words):
    assert told(*words, "-h") == told(*words, "--help")


def test_status_and_best_have_a_row_for_each_context():
    written(space=SPACE + NOISE)
    for command in ("status", "best"):
        assert told(command).startswith("No answers yet, in any context;")
        assert document(command)["contexts"] == []
    for context in ("loud", "quiet", "loud"):
        number = document("ask", "-c", f"noise={context}")["id"]
        told("tell", str(number), "A")
    rows = document("status")["contexts"]
    assert [row["context"] for row in rows] == [{"noise": "loud"}, {"noise": "quiet"}]
    found = document("best")["contexts"]
    assert [(one["params"]["noise"], one["answers"]) for one in found] == [("loud", 2), ("quiet", 1)]
    shown = told("status")
    assert "--context noise=VALUE` says why" in shown
    assert [line.split()[:2] for line in shown.splitlines()[4:6]] == [["loud", "2"], ["quiet", "1"]]
    head = told("best").splitlines()[2].split()
    assert head == ["noise", "answers", "gain", "cutoff", "mode", "preferred"]
    one = document("best", "-c", "noise=loud")
    assert one["params"] == found[0]["params"]
    assert "--context must be NAME=VALUE" in refused("best", "-c", "noise")


def test_separate_people_in_contexts_have_a_row_each():
    written(more='participants = "separate"\n', space=SPACE + NOISE)
    for who in ("anna", "bob"):
        number = document("ask", "-c", "noise=loud", "-p", who)["id"]
        told("tell", str(number), "A")
    assert [one["participant"] for one in document("best")["contexts"]] == ["anna", "bob"]
    assert [line.split()[:3] for line in told("status").splitlines()[4:6]] == [
        ["anna", "loud", "1"],
        ["bob", "loud", "1"],
    ]


# tables of spreadsheets


@pytest.mark.parametrize(
    "text",
    [
        "flav_a,flav_b,answer\n0.5,0.25,A\n",
        "flav_A,flav_B,answer\n0.5,0.25,A\n",
        "flav_A;flav_b;answer\n0.5;0.25;A\n",
        "flav_a;flav_b;answer\r\n0,5;0,25;A\r\n",
        '"flav_a";"flav_b";"answer"\n"0,5";"2,5e-1";"A"\n',
        "flav_a;flav_b;answer\n0,5;0,250;A\n",
    ],
)
def test_tables_with_semicolons_decimal_commas_and_capital_options_are_read(text):
    written(space="[space.flav]\ntype = 'real'\nlow = 0\nhigh = 1\n")
    Path("more.csv").write_bytes(text.encode())
    assert document("import", "more.csv")["imported"] == 1
    assert [option["flav"] for option in history()[0].options] == [0.5, 0.25]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("flav_a;flav_b;answer\n1,000;2,500;A\n", "where it can only be a decimal one; got '1,000'"),
        ("flav_a;flav_b;answer\n0,5;0.25;A\n", "row 2: flav_a must be a number; got '0,5'"),
        ("flav_a;flav_A;flav_b;answer\n1;1;2;A\n", "columns must have different names; got 'flav_a' twice"),
        ("flav_a;flav_b;answer\n1;2\n", "row 2 must have 3 cells, .*; got 2. Put quotes .* semicolon"),
    ],
)  # fmt: skip
def test_ambiguous_tables_are_refused(text, message):
    written(space="[space.flav]\ntype = 'real'\nlow = 0\nhigh = 10\n")
    Path("more.csv").write_text(text)
    assert re.search(message, refused("import", "more.csv"))


def test_an_export_that_a_spreadsheet_saved_with_semicolons_is_read():
    written(space="[space.flav]\ntype = 'real'\nlow = 0\nhigh = 1\n")
    answered(2, "-n", "2")
    rows = [line.split(",") for line in told("export").splitlines()]
    there = [[cell.replace(".", ",") if name in ("flav", "seconds") else cell
              for name, cell in zip(rows[0], row, strict=True)] for row in rows]  # fmt: skip
    Path("saved.csv").write_text("\n".join(";".join(row) for row in there))
    before = [entry.options for entry in history()]
    assert document("import", "saved.csv", "--again")["imported"] == 2
    assert [entry.options for entry in history()[2:]] == before


def test_a_choice_with_a_comma_in_it_stays_as_it_is():
    written("binary", space="[space.size]\ntype = 'choice'\nvalues = ['0,5', '1,25']\n")
    Path("more.csv").write_text("size;answer\n0,5;yes\n")
    told("import", "more.csv")
    assert history()[0].options == ({"size": "0,5"},)


# study files


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("log = True", "line 4: study file must be TOML; got True. Write true, in lower case."),
        ("values = [True, False]", "line 4: study file must be TOML; got True. Write true, in lower case."),
        ("values = [\nFalse]", "line 5: study file must be TOML; got False. Write false, in lower case."),
        ("low = 0,5", "line 4: study file must be TOML; got 0,5. Write 0.5, with a decimal point."),
        ("low = -1,25  # dB", "got -1,25. Write -1.25, with a decimal point."),
        ("unit = \u201cdB\u201d", 'must be TOML; got a quote \u201c. Write unit = "dB" with straight'),
        ("unit = \u2018dB\u2019", 'Write unit = "dB" with straight quotes.'),
        ('unit = "True" 3', "line 4: study file must be TOML; got expected newline"),
    ],
)  # fmt: skip
def test_common_slips_in_study_files_are_explained(line, message):
    with pytest.raises(Refused) as caught:
        load(f'[study]\nname = "hall"\n[space.gain]\n{line}\n')
    assert message in str(caught.value)


def test_json_of_every_command_is_one_document():
    written()
    answered(1, "-n", "1")
    for words in (("history",), ("undo",), ("expire",), ("predict", *ONE), ("compare", *ONE, *TWO)):
        assert json.loads(told(*words, "--json"))
