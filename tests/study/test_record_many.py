"""A warm start: answers from tables, all of them or none."""

import json
from pathlib import Path

import numpy as np
import pandas
import pytest

import askwise as aw
from askwise.study.export import csv_text

SPACE = aw.Space(gain=aw.Real(0, 40), bands=aw.Integer(1, 8), mode=aw.Choice(["soft", "hard"]))


def earlier(feedback: str = "duel", **plan: object) -> aw.Study:
    """A study with answers of every kind, a skip, and an open question."""
    study = aw.Study(SPACE, feedback, rule="random", seed=2, **plan)
    for number in range(4):
        question = study.ask("ada" if number % 2 else None)
        if number == 2:
            study.skip(question)
        elif feedback == "batch":
            study.tell(question, **[{"ranking": [2, 0]}, {"winner": 1}, {}, {"pairs": [(0, 1)]}][number])
        else:
            study.tell(question, [1, None, 0, 0][number], seconds=2.5)
    study.ask()
    return study


def facts(study: aw.Study) -> list[tuple]:
    return [
        (entry.options, entry.answer, entry.participant, entry.seconds)
        for entry in study.history()
        if entry.status == "answered"
    ]


@pytest.mark.parametrize("feedback", ["duel", "batch"])
def test_a_table_is_recorded_once_whatever_form_it_comes_in(tmp_path, feedback):
    before, file = earlier(feedback), tmp_path / "answers.csv"
    file.write_text(csv_text(before))
    frame = pandas.read_csv(file)
    tables = [str(file), file, frame, frame.to_dict("records"), before.to_dataframe()]
    study = aw.Study(SPACE, feedback, rule="random")
    for table in tables:
        questions = study.record_many(table)
        assert [question.id for question in questions] == [0, 1, 2]
    assert study.count() == 3
    assert [fact[1:] for fact in facts(study)] == [fact[1:] for fact in facts(before)]
    for one, other in zip(facts(study), facts(before), strict=True):
        for option, same in zip(one[0], other[0], strict=True):
            assert option["gain"] == pytest.approx(same["gain"], rel=1e-14)
            assert (option["bands"], option["mode"]) == (same["bands"], same["mode"])
    assert study.best().params  # an honest model of them


def test_rows_by_hand_may_have_numbers_of_other_libraries():
    study = aw.Study(SPACE, "binary")
    rows = [
        {"gain": np.float64(3), "bands": np.int64(2), "mode": "soft", "answer": "yes"},
        {"gain": 5, "bands": 3.0, "mode": "hard", "answer": False},
    ]
    study.record_many(rows)
    assert [entry.options[0] for entry in study.history()] == [
        {"gain": 3.0, "bands": 2, "mode": "soft"},
        {"gain": 5.0, "bands": 3, "mode": "hard"},
    ]
    study.record_many(pandas.DataFrame(rows), key="the same once more")
    assert study.count() == 4
    assert study.record_many([]) == []


WRONG = [
    ([{"gain": 50, "bands": 2, "mode": "soft", "answer": "yes"}], "row 1: parameter gain must lie between 0"),
    ([{"gain": 5, "bands": 2, "answer": "yes"}], "columns must be gain, bands, mode, answer .* got no mode"),
    ([{"gain": 5, "bands": 2, "mode": "soft", "answer": "maybe"}], "row 1: answer must"),
    ([{"gain": 5, "bands": 2, "mode": "soft", "answer": 7}], "row 1: answer must"),
    ([{"gain": 5}, {"bands": 5}], "row 2 must have the columns gain; got bands"),
    ([{"options": [{"gain": 5}], "answr": True}], "answer must have options, .* only; got answr"),
    (
        [{"options": [{"gain": 5, "bands": 2, "mode": "soft"}], "answer": True}, {"answer": True}],
        "have options",
    ),
    (3, "answers must be a list of dictionaries, a DataFrame or the path of a file; got 3"),
]


@pytest.mark.parametrize(("table", "message"), WRONG)
def test_a_table_with_something_wrong_is_refused_as_a_whole(table, message):
    study = aw.Study(SPACE, "binary")
    good = {"gain": 5, "bands": 2, "mode": "soft", "answer": "yes"}
    with pytest.raises(aw.Refused, match=message):
        study.record_many(table)
    if isinstance(table, list) and set(table[0]) == set(good):
        with pytest.raises(aw.Refused, match=message.replace("row 1", "row 2")):
            study.record_many([good, *table])
    assert study.history() == []


def test_a_file_that_is_not_there_or_no_table_is_refused(tmp_path: Path):
    study = aw.Study(SPACE, "binary")
    with pytest.raises(aw.NotFound, match="file must exist; got 'nowhere"):
        study.record_many("nowhere.csv")
    wrong = tmp_path / "a.json"
    wrong.write_text(json.dumps({"questions": 3}))
    with pytest.raises(aw.Refused, match="file must have a list of questions"):
        study.record_many(wrong)
