import contextlib
import json
import os
import re
import sqlite3
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import postgres
from askwise import storage
from askwise.storage import KINDS, Event, Outrun, StudyNotFound, database, migrations, names, open_record
from askwise.storage.record import json_text

ONE_EXAMPLE_AFTER_ANOTHER = settings(
    max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path):
    """The address of an empty database."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'studies.db'}"
    else:
        with postgres.fresh_schema() as address:
            yield address


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def record(request, tmp_path):
    """A record without events."""
    with contextlib.ExitStack() as stack:
        address = None
        if request.param == "sqlite":
            address = str(tmp_path / "studies.db")
        elif request.param == "postgresql":
            address = stack.enter_context(postgres.fresh_schema())
        yield stack.enter_context(closing(open_record(address, "coffee", {"seed": 1})))


@pytest.fixture
def opened():
    """Opens records, and closes them at the end."""
    with contextlib.ExitStack() as stack:
        yield lambda *arguments: stack.enter_context(closing(open_record(*arguments)))


def rows(place: str, statement: str) -> list[tuple]:
    """What any other program would see, or do."""
    if place.startswith("postgresql"):
        return postgres.run(place, statement)
    with closing(sqlite3.connect(place.removeprefix("sqlite:///"))) as connection, connection:
        return connection.execute(statement).fetchall()


def make_older(place: str, revision: str = "0001") -> None:
    """A database as an older askwise left it, with a study of two events."""
    base = database.Database(place)
    base.write(lambda connection: migrations.upgrade(connection, revision))
    base.close()
    rows(place, "INSERT INTO studies (id, name, settings, created) VALUES (7, 'old', '{\"a\":1}', 1.5)")
    rows(place, "INSERT INTO events VALUES (7, 1, 'asked', 0, 2.5, '{}'), (7, 2, 'answered', 0, 3.5, '{}')")


# ---- the contract, on every storage


def test_events_come_back_as_they_were_written(record):
    first = record.append("asked", 0, {"points": [[0.25, 0.5]]}, expected=0, at=12.25)
    second = record.append("answered", 0, {"winner": 1}, expected=1)
    assert first == Event(1, "asked", 0, 12.25, {"points": [[0.25, 0.5]]})
    assert record.events() == [first, second]
    assert record.events(after=1) == [second]
    assert record.events(after=2) == []
    assert (record.name, record.settings) == ("coffee", {"seed": 1})


def same(left, right) -> bool:
    """Equal in type too: True is not 1, 1 is not 1.0, 0.0 is not -0.0."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return repr(left) == repr(right)


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**200), 2**200)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters()),  # with surrogates and zeros
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters()), inner, max_size=4),
    max_leaves=12,
)


@ONE_EXAMPLE_AFTER_ANOTHER
@given(
    st.dictionaries(st.text(st.characters()), anything, max_size=4),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(0, 2**31 - 1),
)
def test_bodies_survive_exactly(record, body, at, question):
    last = len(record.events())
    returned = record.append("amended", question, body, expected=last, at=at)
    (read,) = record.events(after=last)
    for event in (returned, read):
        assert (event.number, event.kind, event.question) == (last + 1, "amended", question)
        assert same(event.body, body)
        assert same(event.at, at)


@given(st.dictionaries(st.text(st.characters()), anything, max_size=4))
@settings(max_examples=20)
def test_settings_survive_exactly_in_memory(body):
    assert same(open_record(None, "x", body).settings, body)


def test_settings_survive_exactly(place, opened):
    body = {"\x00\ud800é": [True, 1, 1.0, -0.0, 5e-324, 0.1, None, 2**100], "": {}}
    opened(place, "x", body)
    assert same(opened(place, "x", None).settings, body)


def test_every_kind_can_be_written(record):
    for number, kind in enumerate(KINDS):
        record.append(kind, number, {}, expected=number)
    assert tuple(event.kind for event in record.events()) == KINDS


def test_changing_a_body_changes_no_event(record):
    body = {"points": [1]}
    event = record.append("asked", 0, body, expected=0)
    body["points"].append(2)
    event.body["points"].append(3)
    record.events()[0].body["points"].append(4)
    assert record.events()[0].body == {"points": [1]}


def test_a_record_that_moved_on_refuses_the_event(record):
    record.append("asked", 0, {}, expected=0)
    before = record.events()
    with pytest.raises(Outrun, match=r"expected must be the number of the last event, 1; got 0. Read"):
        record.append("answered", 0, {}, expected=0)
    with pytest.raises(ValueError, match=r"expected must be at most 1, .* got 5. Open the study again"):
        record.append("answered", 0, {}, expected=5)
    assert record.events() == before


@pytest.mark.parametrize("second", ["answered", "skipped"])
@pytest.mark.parametrize("first", ["answered", "skipped"])
def test_a_question_has_one_answer(record, first, second):
    record.append("asked", 0, {}, expected=0)
    record.append(first, 0, {}, expected=1)
    with pytest.raises(ValueError, match=f"question 0 must be open; got '{second}' after it was answered"):
        record.append(second, 0, {}, expected=2)
    record.append("answered", 1, {}, expected=2)
    assert [event.number for event in record.events()] == [1, 2, 3]


def test_a_question_is_asked_once(record):
    record.append("asked", 0, {}, expected=0)
    with pytest.raises(ValueError, match=r"question 0 must be new; got one asked before. Take"):
        record.append("asked", 0, {}, expected=1)
    record.append("again", 0, {}, expected=1)
    record.append("again", 0, {}, expected=2)
    assert [event.kind for event in record.events()] == ["asked", "again", "again"]


@pytest.mark.parametrize(
    ("body", "error", "message"),
    [
        ({"a": [0, float("nan")]}, ValueError, r"body['a'][1] must be finite; got nan. Write None"),
        ({"a": -float("inf")}, ValueError, "body['a'] must be finite; got -inf."),
        (
            {"a": (1, 2)},
            TypeError,
            "body['a'] must be str, int, float, bool, None, list or dict; got (1, 2).",
        ),
        ({"a": {1: 2}}, TypeError, "keys of body['a'] must be str; got 1. Write str(key)."),
        ({"a": np.float64(1)}, TypeError, "body['a'] must be str, int, float"),
        ({"a": b"x"}, TypeError, "got b'x'. Convert it first."),
        ({"a": 10**5000}, ValueError, "body['a'] must have at most 4096 bits; got more."),
        ({"a": json.loads("[" * 70 + "]" * 70)}, ValueError, "must be at most 64 levels deep; got more."),
    ],
)
def test_what_is_not_json_is_refused_and_not_written(record, body, error, message):
    with pytest.raises(error, match=re.escape(message)):
        record.append("asked", 0, body, expected=0)
    assert record.events() == []


@pytest.mark.parametrize(
    ("kind", "question", "at", "message"),
    [
        ("guessed", 0, None, "kind must be one of asked, .*; got 'guessed'. Choose"),
        ("asked", -1, None, "question must be a number from 0 on; got -1."),
        ("asked", True, None, "question must be a number from 0 on; got True."),
        ("asked", 2**31, None, "question must be a number from 0 on; got 2147483648."),
        ("asked", 0, float("nan"), "at must be seconds since 1970; got nan."),
    ],
)
def test_events_that_cannot_be_are_refused(record, kind, question, at, message):
    with pytest.raises(ValueError, match=message):
        record.append(kind, question, {}, expected=0, at=at)
    assert record.events() == []


def append_patiently(record, kind: str, question: int, body: dict) -> Event:
    """Tries again after reading what others wrote, as a study does."""
    last = 0
    while True:
        last += len(record.events(after=last))
        with contextlib.suppress(Outrun):
            return record.append(kind, question, body, expected=last)


def test_threads_share_a_record(record):
    def work(thread: int) -> list[Event]:
        return [append_patiently(record, "asked", 10 * thread + i, {"by": thread}) for i in range(10)]

    with ThreadPoolExecutor(8) as pool:
        written = [event for events in pool.map(work, range(8), timeout=60) for event in events]
    assert [event.number for event in record.events()] == list(range(1, 81))
    assert sorted(written, key=lambda event: event.number) == record.events()


# ---- memory


def test_memory_is_private_to_its_record():
    first, second = (open_record(None, "coffee", {}) for _ in range(2))
    first.append("asked", 0, {}, expected=0)
    assert second.events() == []
    with pytest.raises(StudyNotFound, match=r"name must be a study in memory; got 'coffee'. Give settings"):
        open_record(None, "coffee", None)


def test_a_body_must_be_a_dict():
    with pytest.raises(TypeError, match=re.escape("body must be a dict; got [1]. Put it into one.")):
        json_text("body", [1])


# ---- databases


def test_a_study_outlives_its_record(place, opened):
    with closing(open_record(place, "coffee", {"seed": 1})) as record:
        event = record.append("asked", 0, {}, expected=0)
    again = opened(place, "coffee", {"seed": 2})
    assert again.settings == {"seed": 1}
    assert again.events() == [event]
    assert opened(place, "coffee", None).events() == [event]


def test_studies_of_one_database_do_not_meet(place, opened):
    first, second = opened(place, "b", {}), opened(place, "a", {})
    first.append("asked", 0, {}, expected=0)
    second.append("asked", 0, {}, expected=0)
    assert names(place) == ["a", "b"]
    assert len(first.events()) == len(second.events()) == 1


def test_a_study_that_is_not_there_is_named_with_those_that_are(place, opened):
    with pytest.raises(StudyNotFound, match=r"name must be a study in .*; got 'c'. Studies there: none."):
        open_record(place, "c", None)
    opened(place, "b", {})
    opened(place, "a", {})
    with pytest.raises(StudyNotFound, match=r"got 'c'. Studies there: 'a', 'b'."):
        open_record(place, "c", None)
    assert names(place) == ["a", "b"]


def test_looking_for_a_study_makes_nothing(place, tmp_path):
    assert names(place) == []
    with pytest.raises(StudyNotFound):
        open_record(place, "coffee", None)
    assert list(tmp_path.iterdir()) == []
    if place.startswith("postgresql"):
        assert rows(place, "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()") == []


@pytest.mark.parametrize("name", ["", " x", "x\n", "\x00", "\ud800", "x" * 201])
def test_names_that_nobody_can_type_are_refused(name):
    with pytest.raises(ValueError, match=r"name must have 1 to 200 printable characters"):
        open_record(None, name, {})


def test_a_closed_record_says_so(place):
    record = open_record(place, "coffee", {})
    record.close()
    record.close()
    with pytest.raises(
        ValueError, match=r"record must be open; got one that was closed. Open the study again"
    ):
        record.events()


def test_two_records_of_a_study_see_each_other(place, opened):
    first, second = opened(place, "coffee", {}), opened(place, "coffee", {})
    event = first.append("asked", 0, {}, expected=0)
    assert second.events() == [event]
    with pytest.raises(Outrun):
        second.append("answered", 0, {}, expected=0)
    answer = second.append("answered", 0, {}, expected=1)
    assert first.events(after=1) == [answer]


def test_events_can_be_read_while_others_write(place, opened):
    writer, reader = opened(place, "coffee", {}), opened(place, "coffee", {})
    done = threading.Event()

    def write():
        for number in range(60):
            writer.append("asked", number, {}, expected=number)
        done.set()

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        seen = [0]
        while not writing.done():
            numbers = [event.number for event in reader.events()]
            assert numbers == list(range(1, len(numbers) + 1))
            seen.append(len(numbers))
        writing.result(timeout=60)
    assert done.is_set()
    assert seen == sorted(seen)
    assert len(set(seen)) > 2
    assert len(reader.events()) == 60


@pytest.mark.parametrize(
    "change", ["UPDATE events SET body = '{}'", "DELETE FROM events", "UPDATE events SET kind = 'voided'"]
)
def test_the_database_refuses_to_change_events(place, opened, change):
    record = opened(place, "coffee", {})
    event = record.append("asked", 0, {"a": 1}, expected=0)
    with pytest.raises(Exception, match=r"events must stay as they were written"):
        rows(place, change)
    assert record.events() == [event]


@pytest.mark.parametrize("kind", ["answered", "skipped", "asked"])
def test_the_database_itself_refuses_a_second_answer(place, opened, kind):
    record = opened(place, "coffee", {})
    record.append("asked", 0, {}, expected=0)
    record.append("answered", 0, {}, expected=1)
    with pytest.raises(Exception, match=r"(?i)unique"):
        rows(place, f"INSERT INTO events VALUES (1, 3, '{kind}', 0, 0.0, '{{}}')")
    assert len(record.events()) == 2


def test_a_study_deleted_by_somebody_else_is_not_written_to(place, opened):
    record = opened(place, "coffee", {})
    rows(place, "DELETE FROM studies")
    with pytest.raises(StudyNotFound, match=r"study 'coffee' must stay in .*; got it deleted. Restore"):
        record.append("asked", 0, {}, expected=0)


# ---- revisions


def test_files_are_named_after_their_revisions():
    from alembic.script import ScriptDirectory

    scripts = ScriptDirectory(
        str(Path(migrations.__file__).parent), version_locations=[Path(migrations.__file__).parent]
    )
    assert tuple(reversed([script.revision for script in scripts.walk_revisions()])) == migrations.REVISIONS
    assert scripts.get_current_head() == migrations.HEAD


def test_an_older_database_is_upgraded_and_a_copy_kept(place, opened, tmp_path):
    make_older(place)
    record = opened(place, "old", None)
    assert record.settings == {"a": 1}
    assert [event.kind for event in record.events()] == ["asked", "answered"]
    assert rows(place, "SELECT version_num FROM askwise_version") == [(migrations.HEAD,)]
    with pytest.raises(Exception, match=r"events must stay"):
        rows(place, "DELETE FROM events")
    if place.startswith("postgresql"):
        assert rows(place, "SELECT number, kind FROM events_before_0001") == [(1, "asked"), (2, "answered")]
        assert rows(place, "SELECT name FROM studies_before_0001") == [("old",)]
        return
    (backup,) = (path for path in tmp_path.iterdir() if ".backup-" in path.name)
    assert re.fullmatch(r"studies\.db\.backup-0001-\d{8}T\d{6}\.\d{6}Z", backup.name)
    copy = f"sqlite:///{backup}"
    assert rows(copy, "SELECT version_num FROM askwise_version") == [("0001",)]
    assert rows(copy, "SELECT number, kind FROM events") == [(1, "asked"), (2, "answered")]
    assert opened(copy, "old", None).events() == record.events()


def test_a_present_database_is_not_copied_again(place, opened, tmp_path):
    opened(place, "coffee", {})
    opened(place, "coffee", {})
    assert not [path for path in tmp_path.iterdir() if ".backup-" in path.name]


def test_an_upgrade_that_fails_changes_nothing(place, monkeypatch, tmp_path):
    make_older(place)
    # what stands in the way of a trigger or a copy of that name
    rows(place, "CREATE TABLE events_before_0001 (id INTEGER)")
    if place.startswith("sqlite"):
        rows(place, "CREATE TRIGGER events_no_delete BEFORE DELETE ON studies BEGIN SELECT 1; END")
    with pytest.raises((ValueError, OSError), match=r"storage must .*; got "):
        open_record(place, "old", None)
    assert rows(place, "SELECT version_num FROM askwise_version") == [("0001",)]
    rows(place, "UPDATE events SET at = 0.0")  # still without triggers


def test_a_newer_database_is_refused_and_left_alone(place, opened):
    with closing(open_record(place, "coffee", {})) as record:
        record.append("asked", 0, {}, expected=0)
    rows(place, "UPDATE askwise_version SET version_num = '9999'")
    for settings_ in ({}, None):
        with pytest.raises(ValueError, match=r"revision 0002 or an older one; got 9999, .* Update askwise"):
            open_record(place, "tea", settings_)
    with pytest.raises(ValueError, match=r"Update askwise"):
        names(place)
    assert rows(place, "SELECT version_num FROM askwise_version") == [("9999",)]
    assert rows(place, "SELECT name FROM studies") == [("coffee",)]


def test_a_database_of_something_else_is_refused_and_left_alone(place, tmp_path):
    rows(place, "CREATE TABLE alembic_version (version_num TEXT)")
    rows(place, "CREATE TABLE recipes (id INTEGER)")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    message = (
        r"storage must be empty or made by askwise; got other tables \(alembic_version, recipes\). Choose"
    )
    with pytest.raises(ValueError, match=message):
        open_record(place, "coffee", {})
    with pytest.raises(ValueError, match=message):
        names(place)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


# ---- SQLite


@pytest.mark.parametrize("content", [b"hello", b"\x89PNG" + bytes(3000), b"SQLite format 3"])
def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path, content):
    file = tmp_path / "picture.png"
    file.write_bytes(content)
    for settings_ in ({}, None):
        with pytest.raises(
            ValueError, match=r"storage must be a study file; got .*picture.png, which is somet"
        ):
            open_record(str(file), "coffee", settings_)
    assert file.read_bytes() == content
    assert list(tmp_path.iterdir()) == [file]


def test_an_empty_file_becomes_a_database(tmp_path, opened):
    (tmp_path / "new.db").touch()
    opened(str(tmp_path / "new.db"), "coffee", {})
    assert names(str(tmp_path / "new.db")) == ["coffee"]


def test_a_path_means_the_file_also_after_a_change_of_folder(tmp_path, monkeypatch, opened):
    monkeypatch.chdir(tmp_path)
    record = opened("a.db", "coffee", {})
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    record.append("asked", 0, {}, expected=0)
    assert len(opened(f"sqlite:///{tmp_path}/a.db", "coffee", None).events()) == 1
    assert list((tmp_path / "inner").iterdir()) == []


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("{tmp}/no/a.db", "storage must be in a folder that exists; got .*a.db. Make .*no first."),
        ("sqlite:///{tmp}/no/a.db", "storage must be in a folder that exists"),
        ("{tmp}", "storage must be a file; got the folder .* Write e.g. .*study.db"),
        ("", "storage must name a file; got ''. Write e.g. study.db, or None"),
        ("sqlite://", "storage must name a file; got ''"),
        (":memory:", "storage must name a file; got ':memory:'"),
        ("sqlite:///:memory:", "storage must name a file; got ':memory:'"),
        ("sqlite:///a.db?mode=ro", "storage must be a file .* got an address of kind 'sqlite'"),
        ("mysql://user:secret@host/x", "storage must be a file .* got an address of kind 'mysql'"),
        ("://", "storage must be a file"),
    ],
)
def test_addresses_that_lead_nowhere_are_refused(tmp_path, address, message):
    with pytest.raises(ValueError, match=message) as raised:
        open_record(address.format(tmp=tmp_path), "coffee", {})
    assert "secret" not in str(raised.value)
    assert list(tmp_path.iterdir()) == []


def test_sqlite_waits_for_the_disk_before_an_append_returns(tmp_path, opened):
    record = opened(str(tmp_path / "a.db"), "coffee", {})

    def pragmas(connection: sa.Connection) -> list:
        return [
            connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys")
        ]

    assert record._database.read(pragmas) == ["wal", 2, 1]
    opened_again = opened(str(tmp_path / "a.db"), "coffee", None)
    assert opened_again._database.write(pragmas) == ["wal", 2, 1]


def test_a_file_held_for_long_gives_an_error_in_words(tmp_path, monkeypatch, opened):
    monkeypatch.setattr(database, "PATIENCE", 0.3)
    file = tmp_path / "a.db"
    record = opened(str(file), "coffee", {})
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(
            TimeoutError, match=r"free to use within 0.3 seconds; got .*a.db, which another"
        ) as e:
            record.append("asked", 0, {}, expected=0)
        assert "locked" not in str(e.value)
        assert record.events() == []
        other.execute("ROLLBACK")
    assert record.append("asked", 0, {}, expected=0).number == 1


def test_an_append_waits_for_another_writer(tmp_path, opened):
    file = tmp_path / "a.db"
    record = opened(str(file), "coffee", {})
    with closing(sqlite3.connect(file, isolation_level=None)) as other, ThreadPoolExecutor(1) as pool:
        other.execute("BEGIN IMMEDIATE")
        appending = pool.submit(record.append, "asked", 0, {}, expected=0)
        with pytest.raises(TimeoutError):
            appending.result(timeout=0.5)
        other.execute("ROLLBACK")
        assert appending.result(timeout=20).number == 1


def test_a_file_that_was_replaced_is_not_written_to(tmp_path, opened):
    file = tmp_path / "a.db"
    record = opened(str(file), "coffee", {})
    record.append("asked", 0, {}, expected=0)
    file.rename(tmp_path / "b.db")
    for _ in range(2):
        with pytest.raises(
            FileNotFoundError, match=r"storage must stay where it was opened; got .*a.db moved"
        ):
            record.append("answered", 0, {}, expected=1)
    assert not file.exists()
    (tmp_path / "b.db").rename(file)
    assert record.append("answered", 0, {}, expected=1).number == 2


def test_a_damaged_file_is_reported(tmp_path):
    file = tmp_path / "a.db"
    with closing(open_record(str(file), "coffee", {})) as record:
        record.append("asked", 0, {"a": "x" * 9000}, expected=0)
    content = bytearray(file.read_bytes())
    content[4096 * 1 :] = b"\xff" * (len(content) - 4096)
    file.write_bytes(content)
    with pytest.raises(
        OSError, match=r"storage must be whole; got .*a.db damaged .* Restore it from a backup"
    ):
        open_record(str(file), "coffee", {})


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_file_that_cannot_be_written_is_reported(tmp_path, opened):
    file = tmp_path / "a.db"
    open_record(str(file), "coffee", {}).close()
    file.chmod(0o444)
    with pytest.raises(OSError, match=r"storage must be readable and writable; got .* Check permissions"):
        opened(str(file), "tea", {})


def test_a_full_disk_is_reported_and_nothing_lost(tmp_path, opened):
    record = opened(str(tmp_path / "a.db"), "coffee", {})
    event = record.append("asked", 0, {}, expected=0)
    pages = record._database.read(lambda c: c.exec_driver_sql("PRAGMA page_count").scalar())
    record._database.read(lambda c: c.exec_driver_sql(f"PRAGMA max_page_count = {pages}").scalar())
    with pytest.raises(OSError, match=r"got database or disk is full from .* free space"):
        record.append("answered", 0, {"a": "x" * 10_000}, expected=1)
    assert record.events() == [event]


# ---- PostgreSQL


def test_a_server_that_does_not_answer_is_reported():
    with pytest.raises(
        ConnectionError, match=r"storage must be reachable; got .* Check the address"
    ) as raised:
        open_record("postgresql://user:secret@127.0.0.1:1/x", "coffee", {})
    assert "secret" not in str(raised.value)


def test_a_lost_connection_is_replaced(opened):
    with postgres.fresh_schema() as place:
        record = opened(place, "coffee", {})
        record.append("asked", 0, {}, expected=0)
        mine = record._database.read(lambda c: c.exec_driver_sql("SELECT pg_backend_pid()").scalar())
        postgres.run(place, f"SELECT pg_terminate_backend({mine})")
        assert record.append("answered", 0, {}, expected=1).number == 2
        record.close()


def test_a_lock_held_for_long_gives_an_error_in_words(opened, monkeypatch):
    monkeypatch.setattr(database, "PATIENCE", 0.3)
    with postgres.fresh_schema() as place, postgres.psycopg.connect(place) as other:
        record = opened(place, "coffee", {})
        other.execute("SELECT * FROM studies FOR UPDATE")
        with pytest.raises(TimeoutError, match=r"free to use within 0.3 seconds; got postgresql://.*another"):
            record.append("asked", 0, {}, expected=0)
        other.rollback()
        assert record.append("asked", 0, {}, expected=0).number == 1
        record.close()
        other.rollback()


def test_a_commit_waits_for_the_disk_also_where_the_server_would_not(opened):
    with postgres.fresh_schema() as place:
        record = opened(place + "%20-csynchronous_commit%3Doff", "coffee", {})
        setting = record._database.read(lambda c: c.exec_driver_sql("SHOW synchronous_commit").scalar())
        assert setting == "on"
        record.close()


def test_a_schema_that_is_not_there_is_reported():
    with (
        postgres.fresh_schema() as place,
        pytest.raises(ValueError, match=r"storage must have a schema that exists; got none"),
    ):
        open_record(place + "x", "coffee", {})


# ---- packages


def test_memory_needs_no_packages_and_the_rest_says_which(tmp_path, monkeypatch):
    for module in [name for name in sys.modules if name.startswith("askwise.storage.")]:
        if module.endswith((".sql", ".database", ".schema", ".migrations")):
            monkeypatch.delitem(sys.modules, module)
    monkeypatch.delattr(storage, "sql")
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    open_record(None, "coffee", {})
    for call in (lambda: open_record(str(tmp_path / "a.db"), "x", {}), lambda: names("a.db")):
        with pytest.raises(ImportError, match=r"got: .*sqlalchemy.* Run `pip install askwise\[storage\]`"):
            call()


def test_a_forgotten_record_closes_itself(tmp_path):
    record = open_record(str(tmp_path / "a.db"), "coffee", {})
    record.append("asked", 0, {}, expected=0)
    assert (tmp_path / "a.db-wal").exists()
    del record
    assert not (tmp_path / "a.db-wal").exists()  # by the last connection, when it closes
