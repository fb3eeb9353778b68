"""What one answer costs on its way from the key press to the next question."""

from collections import Counter
from dataclasses import replace

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Engine

import askwise as aw
from askwise.cli.conversation import Telling
from askwise.study import model
from askwise.study.model import Model
from askwise.study.shelf import Kept, Shelf


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


def test_a_kernel_that_another_program_learned_is_read_and_questions_stay_the_same_to_the_bit(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    learned, fit = [], model.fit
    monkeypatch.setattr(model, "fit", lambda *given, **more: learned.append(1) or fit(*given, **more))
    space = aw.Space(u=aw.Real(0, 1), v=aw.Real(0, 1))

    def answered(*studies: aw.Study) -> list:
        """Questions, and beliefs of everybody, when these studies take turns."""
        found = []
        for number in range(14):
            asking = studies[number % len(studies)]
            question = asking.ask()
            asking.tell(question, None if number == 5 else number % 2)  # a tie has a margin to learn, too
            beliefs = {tuple(study.belief().nu.tolist()) for study in studies}
            found.append((question.options, question.order, beliefs))
        return found

    alone = answered(aw.Study(space, initial=2))  # in memory, where nothing is shared
    once = len(learned)
    one = aw.Study(space, storage=tmp_path / "a.db", initial=2)
    other = aw.Study.open(tmp_path / "a.db")
    assert answered(one, other) == alone
    assert len(learned) == 2 * once  # by one of the two
    assert all(one.equal for one in other.replay())
    assert len(learned) > 2 * once  # a replay takes nothing for granted


@pytest.mark.parametrize("text", [b"", b"{}", b"[1]", b"\xff", b'{"key": "other"}'])
def test_a_shelf_with_something_else_on_it_is_of_no_use_and_does_no_harm(tmp_path, monkeypatch, text):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    study = aw.Study(aw.Space(u=aw.Real(0, 1)), storage=tmp_path / "a.db", initial=1)
    study.tell(study.ask(), 1)
    study.ask()
    (file,) = tmp_path.glob("*.learned")
    assert file.stat().st_mode & 0o077 == 0  # nobody else can write to it
    file.write_bytes(text)
    other = aw.Study.open(tmp_path / "a.db")
    other.tell(1, 0)
    other.ask()
    assert all(one.equal for one in other.replay())


def test_a_shelf_of_another_user_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    plan = aw.Study(aw.Space(u=aw.Real(0, 1))).plan
    shelf = Shelf(plan)
    shelf.put((), Kept(0.5, {"length": [0.1]}))
    assert shelf.get(()) == Kept(0.5, {"length": [0.1]})
    assert Shelf(replace(plan, seed=1)).get(()) is None
    monkeypatch.setattr("askwise.study.shelf._user", lambda: -1)
    assert shelf.get(()) is None
