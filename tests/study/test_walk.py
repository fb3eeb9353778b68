"""What one answer costs on its way from the key press to the next question."""

from collections import Counter

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Engine

import askwise as aw
from askwise.cli.conversation import Telling
from askwise.study.questions import Model


@pytest.fixture
def statements():
    """SQL statements by their first word."""
    counts: Counter[str] = Counter()

    def count(connection, cursor, statement, *_) -> None:
        counts[statement.split()[0]] += 1

    sa.event.listen(Engine, "before_cursor_execute", count)
    yield counts
    sa.event.remove(Engine, "before_cursor_execute", count)


def test_an_answer_costs_at_most_two_reads_and_one_rebuild_of_the_data(tmp_path, statements, monkeypatch):
    builds, built = [], Model._data
    monkeypatch.setattr(
        Model, "_data", lambda self, answers: builds.append(len(answers)) or built(self, answers)
    )
    study = aw.Study(aw.Space(u=aw.Real(0, 1)), storage=tmp_path / "a.db", initial=7, kernel="se")
    for number in range(10):  # among them those from which the kernel is learned anew
        question = study.ask()
        statements.clear()
        builds.clear()
        assert study.entry(question.id).status == "open"  # as a terminal looks before it records
        Telling.of(study, "AB"[number % 2]).record(study, question.id)
        study.ask()
        assert statements["SELECT"] <= 2
        assert statements["INSERT"] == 2
        assert builds in ([], [number + 1])


def test_an_answer_is_recorded_without_a_read_and_seen_by_others(tmp_path, statements):
    study = aw.Study(aw.Space(u=aw.Real(0, 1)), storage=tmp_path / "a.db")
    other = aw.Study.open(tmp_path / "a.db")
    question = study.ask()
    statements.clear()
    study.tell(question, 1)
    assert statements["SELECT"] == 0
    with pytest.raises(aw.Conflict, match=r"^question 0 must be open to be answered; got one"):
        other.tell(0, 0)  # it did not know of the question, nor of the answer
    other.tell(0, 1)
    assert other.count() == 1


def test_a_study_that_is_out_of_date_decides_by_the_record(tmp_path):
    """A study that has not seen what others did decides by what is recorded."""
    one = aw.Study(aw.Space(u=aw.Real(0, 1)), storage=tmp_path / "a.db")
    other = aw.Study.open(tmp_path / "a.db")
    question = one.ask()
    one.tell(question, 1)
    other.history()
    other.void(question.id)
    one.void(question.id)  # no second event
    other.amend(question.id, 0)
    one.tell(question.id, 0)  # the answer that is there: nothing to do, though here it looked void
    one.void(question.id)
    other.amend(question.id, 1)
    one.void(question.id)  # here it looked void already
    kinds = [event.kind for event in one._ledger.record.events()]
    assert kinds == ["asked", "answered", "voided", "amended", "voided", "amended", "voided"]
