import contextlib
import os
import re
import shutil
import sqlite3
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import askwise as aw
import postgres
from askwise import storage
from askwise.storage import Event, StudyNotFound, database, migrations, names, open_record, schema, sql
from askwise.storage.chain import link
from askwise.storage.record import json_text
from askwise.testing import RecordContract, StorageContract

ONE_EXAMPLE_AFTER_ANOTHER = settings(
    max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture]
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


class TestMemory(RecordContract):
    @pytest.fixture
    def record(self):
        return open_record(None, "coffee", {"seed": 1})


class TestSqlite(StorageContract):
    @pytest.fixture
    def address(self, tmp_path):
        return f"sqlite:///{tmp_path / 'studies.db'}"


class TestPostgresql(StorageContract):
    @pytest.fixture
    def address(self):
        with postgres.fresh_schema() as address:
            yield address


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
@example({}, -0.0, 0)
def test_bodies_survive_exactly(record, body, at, question):
    last = len(record.events())
    returned = record.append("amended", question, body, expected=last, at=at)
    (read,) = record.events(after=last)
    for event in (returned, read):
        assert (event.number, event.kind, event.question) == (last + 1, "amended", question)
        assert same(event.body, body)
        assert same(event.at, at + 0.0)  # minus zero is no time


def test_all_events_come_after_a_negative_number(record):
    event = record.append("asked", 0, {}, expected=0)
    assert record.events(after=-1) == record.events(after=0) == [event]
    record.append("answered", 0, {}, expected=1)
    assert len(record.events(after=-1)) == 2


@given(st.dictionaries(st.text(st.characters()), anything, max_size=4))
@settings(max_examples=20)
def test_settings_survive_exactly_in_memory(body):
    assert same(open_record(None, "x", body).settings, body)


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


def test_looking_for_a_study_creates_nothing(place, tmp_path):
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
        rows(place, f"INSERT INTO events VALUES (1, 3, '{kind}', 0, 0.0, '{{}}', '')")
    assert len(record.events()) == 2


def test_a_study_deleted_by_somebody_else_is_not_written_to(place, opened):
    record = opened(place, "coffee", {})
    rows(place, "DELETE FROM studies")
    with pytest.raises(StudyNotFound, match=r"study 'coffee' must stay in .*; got it deleted. Restore"):
        record.append("asked", 0, {}, expected=0)


def test_events_are_read_in_order_whatever_the_order_of_their_rows(place, opened):
    scanned = "%20-cenable_indexscan%3Doff%20-cenable_bitmapscan%3Doff"  # else an index has them in order
    record = opened(place + scanned * place.startswith("postgresql"), "coffee", {})
    first, second = Event(1, "asked", 0, 0.0, {}), Event(2, "answered", 0, 0.0, {})
    one = link(rows(place, "SELECT hash FROM studies")[0][0], first, "{}")
    two = f"(1, 2, 'answered', 0, 0.0, '{{}}', '{link(one, second, '{}')}')"
    rows(place, f"INSERT INTO events VALUES {two}, (1, 1, 'asked', 0, 0.0, '{{}}', '{one}')")
    assert [event.number for event in record.events()] == [1, 2]


def test_if_two_create_a_study_the_first_decides_its_settings(place, opened):
    base = opened(place, "coffee", {"by": 1})._database
    base.write(lambda connection: sql._create(connection, "coffee", '{"by":2}'))
    assert base.read(lambda connection: sql._study(connection, "coffee")).settings == '{"by":1}'


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


def test_an_up_to_date_database_is_not_copied(place, opened, tmp_path):
    opened(place, "coffee", {})
    opened(place, "coffee", {})
    assert not [path for path in tmp_path.iterdir() if ".backup-" in path.name]


def test_whoever_comes_second_finds_nothing_to_upgrade(place, opened, tmp_path):
    base = opened(place, "coffee", {})._database
    base.write(lambda connection: schema._upgraded(base, connection, None))
    assert not [path for path in tmp_path.iterdir() if ".backup-" in path.name]
    tables = base.read(lambda connection: sa.inspect(connection).get_table_names())
    assert sorted(tables) == ["askwise_version", "events", "studies"]


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


def test_the_remains_of_an_interrupted_copy_are_replaced(tmp_path, opened):
    place = f"sqlite:///{tmp_path / 'studies.db'}"
    make_older(place)
    (tmp_path / "studies.db.backup.part").write_bytes(b"half of something")
    assert len(opened(place, "old", None).events()) == 2
    assert not list(tmp_path.glob("*.part"))


def test_a_newer_database_is_refused_and_left_alone(place, opened):
    with closing(open_record(place, "coffee", {})) as record:
        record.append("asked", 0, {}, expected=0)
    rows(place, "UPDATE askwise_version SET version_num = '9999'")
    for settings_ in ({}, None):
        with pytest.raises(ValueError, match=r"revision 0003 or an older one; got 9999, .* Update askwise"):
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


def test_no_password_is_shown():
    address = "postgresql://user:secret@host/x?password=hidden"
    assert storage.shown(address) == "postgresql://user:***@host/x"
    assert storage.shown("study.db") == "study.db"


# ---- SQLite


def test_a_read_sees_one_moment(tmp_path, opened):
    file = tmp_path / "a.db"
    reader, writer = opened(str(file), "coffee", {}), opened(str(file), "coffee", None)

    def counted(connection: sa.Connection) -> list[int]:
        count = sa.text("SELECT count(*) FROM events")
        before = connection.scalar(count)
        writer.append("asked", 0, {}, expected=0)
        return [before, connection.scalar(count)]

    assert reader._database.read(counted) == [0, 0]
    assert len(reader.events()) == 1


def test_little_disk_is_reported(tmp_path, monkeypatch, opened):
    opened(str(tmp_path / "a.db"), "coffee", {})
    for free, ok in ((100 * 2**20 - 1, False), (100 * 2**20, True)):
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=free: SimpleNamespace(free=free))
        (found,) = (f for f in storage.findings(str(tmp_path / "a.db")) if f.what == "free disk")
        assert found.ok == ok


def test_an_index_that_lost_a_row_is_reported(tmp_path):
    file = tmp_path / "a.db"
    open_record(str(file), "coffee", {}).close()
    index = "name = 'events_asked_once'"
    with closing(sqlite3.connect(file)) as connection, connection:
        row = connection.execute(f"SELECT * FROM sqlite_master WHERE {index}").fetchone()
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(f"DELETE FROM sqlite_master WHERE {index}")
    rows(f"sqlite:///{file}", "INSERT INTO events VALUES (1, 1, 'asked', 0, 0.0, '{}', '')")
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("INSERT INTO sqlite_master VALUES (?, ?, ?, ?, ?)", row)
    (found,) = (f for f in storage.findings(str(file)) if f.what == "integrity")
    assert not found.ok
    assert "events_asked_once" in found.detail


@pytest.mark.parametrize("content", [b"hello", b"\x89PNG" + bytes(3000), b"SQLite format 3"])
def test_a_file_that_is_not_a_database_is_refused_and_left_alone(tmp_path, content):
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


def test_a_path_means_the_same_file_after_a_change_of_folder(tmp_path, monkeypatch, opened):
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


def test_a_file_held_by_another_program_gives_a_readable_error(tmp_path, monkeypatch, opened):
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
        with pytest.raises(OSError, match=r"storage must stay where it was opened; got .*a.db moved"):
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
        OSError, match=r"storage must be whole; got .*a.db damaged .* Restore a backup, or run"
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


def test_a_lock_that_is_not_released_gives_a_readable_error(opened, monkeypatch):
    monkeypatch.setattr(database, "PATIENCE", 0.3)
    with postgres.fresh_schema() as place, postgres.psycopg.connect(place) as other:
        record = opened(place, "coffee", {})
        other.execute("SELECT * FROM studies FOR UPDATE")
        start = time.monotonic()
        with pytest.raises(TimeoutError, match=r"free to use within 0.3 seconds; got postgresql://.*another"):
            record.append("asked", 0, {}, expected=0)
        assert time.monotonic() - start < 20
        other.rollback()
        assert record.append("asked", 0, {}, expected=0).number == 1
        record.close()
        other.rollback()


def test_a_commit_waits_for_the_disk_even_if_the_server_would_not(opened):
    with postgres.fresh_schema() as place:
        record = opened(place + "%20-csynchronous_commit%3Doff", "coffee", {})
        setting = record._database.read(lambda c: c.exec_driver_sql("SHOW synchronous_commit").scalar())
        assert setting == "on"
        record.close()


def test_a_missing_schema_is_reported():
    with (
        postgres.fresh_schema() as place,
        pytest.raises(ValueError, match=r"storage must have a schema that exists; got none"),
    ):
        open_record(place + "x", "coffee", {})


# ---- packages


def test_memory_needs_no_packages_and_other_storages_say_which(tmp_path, monkeypatch):
    for module in [name for name in sys.modules if name.startswith("askwise.storage.")]:
        if module.endswith((".sql", ".database", ".schema", ".migrations")):
            monkeypatch.delitem(sys.modules, module)
    monkeypatch.delattr(storage, "sql")
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    open_record(None, "coffee", {})
    for call in (lambda: open_record(str(tmp_path / "a.db"), "x", {}), lambda: names("a.db")):
        with pytest.raises(ImportError, match=r"got .*sqlalchemy.* Run `pip install askwise\[storage\]`"):
            call()


def test_a_forgotten_record_closes_itself(tmp_path):
    record = open_record(str(tmp_path / "a.db"), "coffee", {})
    record.append("asked", 0, {}, expected=0)
    assert (tmp_path / "a.db-wal").exists()
    del record
    assert not (tmp_path / "a.db-wal").exists()  # by the last connection, when it closes


MISTYPED = [
    *("postgres:/user:hunter2@host", "postgresql//u:hunter2@h", "postgresql://u:hun@ter2@host/db"),
    *("sqlite://u:hunter2@h/x", "sqlite:///u:hunter2@h/x", "POSTGRESQL://u:hunter2@h/db", "u:hunter2@h/db"),
    *(
        "postgresql:u:hunter2@h/db",
        "postgres;//u:hunter2@h",
        "hunter2@h",
        "mysql://u:hunter2@h/x",
        "file:u:hunter2@h",
    ),
    *(
        "postgresql:/h/db?password=hunter2",
        "host=h password=hunter2",
        " postgresql://u:hunter2@h",
        "postgresql://u:hunter2",
    ),
    *(
        "postgresql:///u:hunter2@h",
        "postgresql://u:hunter2@h:port/db",
        "postgresql://u%3Ahunter2%40h",
        "http://u:hunter2@h",
    ),
    *("postgresql:///d?password=hunter2&port=x", "jdbc:postgresql://h/d?user=u&password=hunter2"),
]


@pytest.mark.parametrize("address", MISTYPED)
def test_a_mistyped_address_is_refused_without_its_password_and_makes_no_file(address, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(aw.Refused, match=r"^storage must ") as refused:
        open_record(address, "s", {})
    assert not any(part in str(refused.value) for part in ("hunter", "ter2"))
    assert not list(tmp_path.iterdir())


def test_a_file_with_an_at_sign_is_written_as_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for address in ("./me@home.db", "sqlite:///you@home.db", str(tmp_path / "us@home.db")):
        open_record(address, "s", {}).close()
    assert {file.name for file in tmp_path.glob("*.db")} == {"me@home.db", "you@home.db", "us@home.db"}
