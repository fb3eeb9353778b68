"""Damage to a record is noticed: it reads the same, or is refused in words."""

import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

import askwise as aw
from askwise.errors import Damaged, Failed, Refused
from askwise.storage import Draft, Event, copies, database, filesystem, open_record, overwritable, sql
from askwise.storage.chain import link, origin
from askwise.study.ledger import Ledger
from processes import within

FEW, COPIES = 15, 1000
SHARE = 125  # copies in one test, so that several processes share them
LONGEST = 30  # seconds to read a copy or to salvage it
LOOPED = 525  # a copy in which a page leads back to itself, so that salvage read the same rows for ever
SPACE = aw.Space(gain=aw.Real(0, 1), mode=aw.Choice(["a", "b"]))


def written(file: Path, count: int = 40) -> list[Event]:
    """A study with this many events, and two others beside it."""
    for name in ("tea", "coffee", "cocoa"):
        with closing(open_record(str(file), name, {"seed": 1, "text": "x" * 300})) as record:
            drafts = [Draft("asked", number, {"options": [number, "y" * 80]}) for number in range(count // 2)]
            drafts += [Draft("answered", number, {"answer": number % 2}) for number in range(count // 2)]
            record.append_all(drafts, expected=0)
            events = record.events()
    return events


def changed(file: Path, statement: str, *values: object) -> None:
    """Change rows as somebody would who knows how to."""
    with closing(sqlite3.connect(file)) as connection, connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        assert connection.execute(statement, values).rowcount


def read(file: Path) -> tuple[object, ...]:
    with closing(open_record(str(file), "coffee", None)) as record:
        return record.settings, record.events()


def test_each_event_is_hashed_with_the_one_before():
    event = Event(3, "asked", 0, 0.1, {})
    one = link("before", event, "{}")
    others = [
        link("other", event, "{}"),
        link("before", Event(4, "asked", 0, 0.1, {}), "{}"),
        link("before", Event(3, "again", 0, 0.1, {}), "{}"),
        link("before", Event(3, "asked", 1, 0.1, {}), "{}"),
        link("before", Event(3, "asked", 0, 0.2, {}), "{}"),
        link("before", event, '{"a":1}'),
        origin("before", "{}"),
    ]
    assert len({one, *others}) == 8
    assert one == link("before", event, "{}")
    assert origin("ab", "c") != origin("a", "bc")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET body = replace(body, '1', '2') WHERE number = 2 AND study_id = 2",
        "UPDATE events SET kind = 'skipped' WHERE number = 30 AND study_id = 2",
        "UPDATE events SET question = 99 WHERE number = 40 AND study_id = 2",
        "UPDATE events SET at = at + 1 WHERE number = 1 AND study_id = 2",
        "UPDATE events SET body = 'nonsense' WHERE number = 7 AND study_id = 2",
        "UPDATE events SET at = 'late' WHERE number = 7 AND study_id = 2",
        "UPDATE events SET hash = 'ff' WHERE number = 7 AND study_id = 2",
        "UPDATE events SET number = 41 WHERE number = 40 AND study_id = 2",
        "DELETE FROM events WHERE number = 20 AND study_id = 2",
        "DELETE FROM events WHERE number = 1 AND study_id = 2",
        "UPDATE studies SET settings = replace(settings, '1', '2') WHERE name = 'coffee'",
    ],
)
def test_a_changed_row_is_noticed(tmp_path, statement):
    written(tmp_path / "a.db")
    changed(tmp_path / "a.db", statement)
    with pytest.raises(
        Damaged, match=r"^record must be as it was written; got event \d+ changed, missing or"
    ):
        read(tmp_path / "a.db")


def test_what_was_read_must_still_be_there(tmp_path):
    """Also if what is there instead is in order."""
    written(tmp_path / "a.db", 10)
    shutil.copy(tmp_path / "a.db", tmp_path / "old.db")
    with closing(open_record(str(tmp_path / "a.db"), "coffee", None)) as record:
        record.events()
        record.append("again", 0, {}, expected=10)
        changed(tmp_path / "a.db", "DELETE FROM events WHERE number = 11")
        for after in (0, 5, 11):
            with pytest.raises(Damaged, match="event 11 changed, missing"):
                record.events(after)
        with pytest.raises(Refused):
            record.append("again", 1, {}, expected=11)


def test_what_follows_a_changed_event_is_refused_and_not_tried_for_ever(tmp_path):
    written(tmp_path / "a.db", 4)
    with closing(open_record(str(tmp_path / "a.db"), "coffee", None)) as record:
        record.events()
        changed(tmp_path / "a.db", "UPDATE events SET hash = 'ff' WHERE number = 4 AND study_id = 2")
        with pytest.raises(Damaged, match="event 4 changed"):
            record.append("again", 0, {}, expected=4)


def test_a_conflict_without_later_events_ends(tmp_path):
    class Contradicting:
        name, settings = "study", {}

        def events(self, after=0):
            return []

        def append_all(self, drafts, *, expected):
            raise aw.Conflict("expected", "be the number of the last event", expected, "Read them.")

    with pytest.raises(Damaged, match="got later events that cannot be read"):
        Ledger(Contradicting()).add("asked", 0, {})


def test_a_file_cut_short_while_open_is_noticed_before_the_next_answer_counts(tmp_path):
    file = tmp_path / "a.db"
    written(file, 200)
    with closing(open_record(str(file), "coffee", None)) as record:
        record.events()
        time.sleep(0.02)  # clocks of file systems are coarse
        os.truncate(file, 3 * 4096)
        with pytest.raises(Failed):
            record.append("again", 0, {}, expected=200)


def test_a_file_overwritten_while_open_is_noticed_before_the_next_answer_counts(tmp_path):
    file = tmp_path / "a.db"
    written(file, 20)
    written(tmp_path / "other.db", 40)
    with closing(open_record(str(file), "coffee", None)) as record:
        last = record.append("again", 0, {}, expected=20)
        time.sleep(0.02)
        with open(tmp_path / "other.db", "rb") as other, open(file, "r+b") as overwritten:
            overwritten.write(other.read())
            overwritten.truncate()
        with pytest.raises(Failed):
            record.append("again", 1, {}, expected=last.number)


def test_others_who_write_are_no_damage(tmp_path):
    file = tmp_path / "a.db"
    written(file, 20)
    with (
        closing(open_record(str(file), "coffee", None)) as one,
        closing(sql.open_record(str(file), "coffee", None)) as two,
    ):
        number = 20
        for turn in range(6):
            record = (one, two)[turn % 2]
            record.events(number - 1)
            number = record.append("again", 0, {}, expected=number).number
        assert len(one.events()) == len(two.events()) == 26


def test_a_copy_without_its_log_has_everything(tmp_path):
    file = tmp_path / "a.db"
    study = aw.Study(SPACE, storage=file)
    for _ in range(3):
        study.tell(study.ask(), 1)
        shutil.copy(file, tmp_path / "copy.db")
        assert aw.Study.open(tmp_path / "copy.db").count() == study.count()
    study.close()


@pytest.mark.parametrize("how", ["emptied", "log gone"])
def test_a_file_that_has_lost_its_studies_is_not_taken_for_a_new_one(tmp_path, how):
    file = tmp_path / "a.db"
    aw.Study(SPACE, storage=file).close()
    if how == "emptied":
        changed(file, "DELETE FROM studies")
    else:
        file.unlink()
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")  # as an older askwise began
    before = file.read_bytes()
    with pytest.raises(
        Damaged, match=r"^storage must hold its studies; got .*a.db without any. Restore a backup"
    ):
        aw.Study(SPACE, storage=file)
    assert file.read_bytes() == before


DAMAGES = ("flip", "flip", "flip", "zeros", "noise", "cut", "page")


def damaged(content: bytes, source: random.Random) -> bytes:
    """The content with something done to it that happens to files."""
    data, kind = bytearray(content), source.choice(DAMAGES)
    at = source.randrange(len(data))
    if kind == "flip":
        for _ in range(source.choice((1, 1, 1, 5, 50))):
            data[source.randrange(len(data))] ^= 1 << source.randrange(8)
    elif kind == "zeros":
        data[at : at + source.choice((1, 16, 512, 4096))] = bytes(min(len(data) - at, 512))
    elif kind == "noise":
        data[at : at + 64] = source.randbytes(64)
    elif kind == "cut":
        del data[at:]
    else:
        page, other = (4096 * source.randrange(len(data) // 4096) for _ in range(2))
        data[page : page + 4096] = content[other : other + 4096]
    return bytes(data)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> tuple[bytes, tuple[object, ...]]:
    """A study and what it reads as."""
    file = tmp_path_factory.mktemp("whole") / "a.db"
    written(file, 60)
    return file.read_bytes(), read(file)


def outcome(file: Path, said: tuple[object, ...]) -> str:
    try:
        return "same" if read(file) == said else "other"
    except Refused as error:
        return "refused" if re.fullmatch(r".+ must .+; got .+\..+\.", str(error), re.DOTALL) else str(error)


@pytest.mark.parametrize(
    "numbers",
    [
        [*range(FEW), LOOPED],
        *(
            pytest.param(range(first, first + SHARE), marks=pytest.mark.slow)
            for first in range(0, COPIES, SHARE)
        ),
    ],
    ids=lambda numbers: f"{len(numbers)} from {numbers[0]}",
)
def test_a_damaged_copy_reads_the_same_or_is_refused_in_words(whole, tmp_path, numbers, record_property):
    content, said = whole
    outcomes, saved = Counter[str](), []
    for number in numbers:
        file = tmp_path / f"{number}.db"
        file.write_bytes(damaged(content, random.Random(number)))
        with within(LONGEST):
            outcomes[found := outcome(file, said)] += 1
            if found == "refused":
                saved.append(salvaged(file, said[1]))
        for rest in tmp_path.iterdir():
            rest.unlink()
    record_property("outcomes", dict(outcomes))
    assert set(outcomes) == {"refused", "same"}
    assert max(saved) > len(said[1]) / 2


def salvaged(file: Path, events: list[Event]) -> int:
    """Number of events that can be saved, each of them as it was written."""
    try:
        copies.salvage(file, new := file.with_suffix(".new"))
        with closing(open_record(str(new), "coffee", None)) as record:
            kept = record.events()
    except Refused:
        return 0
    bodies = [(event.kind, event.at, event.body) for event in events]
    assert all((event.kind, event.at, event.body) in bodies for event in kept)
    return len(kept)


def test_what_is_whole_is_salvaged_bit_for_bit(tmp_path):
    events = written(tmp_path / "a.db")
    saved = copies.salvage(tmp_path / "a.db", tmp_path / "b.db")
    assert saved == [copies.Saved(name, len(events), 0) for name in ("tea", "coffee", "cocoa")]
    assert read(tmp_path / "b.db") == read(tmp_path / "a.db")


def test_a_study_goes_on_from_what_was_salvaged(tmp_path):
    study = aw.Study(SPACE, storage=tmp_path / "a.db", initial=2)
    for number in range(6):
        study.tell(study.ask(), number % 2)
    questions = study.history()
    study.close()
    changed(tmp_path / "a.db", "UPDATE events SET body = '{}' WHERE number = 5")  # the third question
    with pytest.raises(Damaged, match=r"event 5 .* run `askwise salvage`"):
        aw.Study.open(tmp_path / "a.db")
    (saved,) = copies.salvage(tmp_path / "a.db", tmp_path / "b.db")
    # its answer is lost with it; event 6 itself is not proven without the hash of event 5, which is there
    assert (saved.events, saved.lost) == (10, 2)
    again = aw.Study.open(tmp_path / "b.db")
    kept = [questions[number] for number in (0, 1, 3, 4, 5)]
    assert [entry.options for entry in again.history()] == [entry.options for entry in kept]
    assert [entry.answer for entry in again.history()] == [entry.answer for entry in kept]
    again.tell(again.ask(), 1)
    assert again.count() == 6
    assert [one.id for one in again.replay()] == [0, 1, 5]
    assert all(one.equal for one in again.replay())


def test_an_older_file_is_salvaged_without_proof(tmp_path):
    fixture = Path(__file__).parents[1] / "data" / "recorded-0.1.0.db"
    shutil.copy(fixture, tmp_path / "a.db")
    saved = copies.salvage(tmp_path / "a.db", tmp_path / "b.db")
    for one in saved:
        with closing(open_record(str(tmp_path / "a.db"), one.name, None)) as record:
            assert (one.events, one.lost) == (len(record.events()), 0)


@pytest.mark.parametrize("content", [b"", b"nothing", bytes(8192)])
def test_what_has_nothing_to_save_is_refused_and_nothing_written(tmp_path, content):
    (tmp_path / "a.db").write_bytes(content)
    with pytest.raises(
        Refused, match=r"^file must have a study that can be read; got none in .*a.db. Restore"
    ):
        copies.salvage(tmp_path / "a.db", tmp_path / "b.db")
    assert [path.name for path in tmp_path.iterdir()] == ["a.db"]


# ---- backups


def test_a_backup_is_the_record_while_others_write(tmp_path):
    study = aw.Study(SPACE, storage=tmp_path / "a.db")
    study.tell(study.ask(), 1)
    study.ask()
    study.backup(tmp_path / "b.db")
    assert sorted(path.name for path in tmp_path.glob("b*")) == ["b.db"]
    copy = aw.Study.open(tmp_path / "b.db")
    assert copy.history() == study.history()
    study.tell(1, 0)
    copy.tell(1, 1)  # each goes on by itself
    assert copy.entry(1).answer != study.entry(1).answer
    with pytest.raises(Refused, match=r"^file must be new; got .*b.db, which exists. Choose another name"):
        study.backup(tmp_path / "b.db")
    with pytest.raises(Refused, match="be in a folder that exists"):
        study.backup(tmp_path / "nowhere" / "b.db")


def test_a_study_in_memory_may_be_backed_up(tmp_path):
    study = aw.Study(SPACE, name="here")
    study.tell(study.ask(), 1)
    study.backup(tmp_path / "b.db")
    copy = aw.Study.open(tmp_path / "b.db", "here")
    assert copy.history() == study.history()
    assert all(one.equal for one in copy.replay())


# ---- media that can only be read


def as_nobody(program: str, folder: Path) -> str:
    """What a program prints for somebody who may not write there, as root may everywhere."""
    # everything is imported first: they may not even read the libraries
    become = """
import os, tempfile
import askwise as aw
with tempfile.TemporaryDirectory() as folder:
    study = aw.Study(aw.Space(u=aw.Real(0, 1)), storage=folder + "/a.db", initial=1)
    study.tell(study.ask(), 1)
    study.status(), study.best(), study.close()
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
"""
    done = subprocess.run(
        [sys.executable, "-c", become + program], cwd=folder, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_read_only_file_can_be_read_and_is_not_written_to(tmp_path_factory):
    folder = Path("/tmp") / f"askwise-read-only-{os.getpid()}"  # where anybody may look
    folder.mkdir()
    try:
        study = aw.Study(SPACE, storage=folder / "a.db", initial=1)
        for answer in (1, 0):
            study.tell(study.ask(), answer)
        study.close()
        (folder / "a.db").chmod(0o444)
        folder.chmod(0o555)
        program = """
study = aw.Study.open("a.db")
print(study.count(), study.status().answers, 0 <= study.best().params["gain"] <= 1)
try:
    study.ask()
except aw.Refused as error:
    print(error)
"""
        shown = as_nobody(program, folder).splitlines()
        assert shown[0] == "2 2 True"
        assert shown[1].startswith("storage must be writable to record anything; got ")
        assert shown[1].endswith("a.db, read-only. Copy it to another folder, or change its permissions.")
        assert [path.name for path in folder.iterdir()] == ["a.db"]
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


def test_a_read_only_file_is_read_again_when_it_has_changed(tmp_path, monkeypatch):
    study = aw.Study(SPACE, storage=tmp_path / "a.db")
    study.ask()
    monkeypatch.setattr(database, "is_read_only", lambda file: True)
    looking = aw.Study.open(tmp_path / "a.db")
    monkeypatch.undo()
    assert len(looking.history()) == 1
    study.tell(0, 1)
    assert looking.count("answered") == 0
    assert looking.entry(0).status == "answered"


# ---- file systems


def test_a_network_file_system_asks_for_consent(tmp_path, monkeypatch):
    mounts = tmp_path / "mounts"
    monkeypatch.setattr(filesystem, "_MOUNTS", mounts)
    root = str(tmp_path.resolve()).replace(" ", "\\040")
    mounts.write_text(
        f"/dev/a / ext4 rw 0 0\nserver:/x {root} nfs4 rw 0 0\n/dev/b {root}/local ext4 rw 0 0\n"
    )
    (tmp_path / "local").mkdir()
    with pytest.raises(
        Refused, match=r"^storage must be on a local disk, .*; got nfs4 at .*\. Move it, or insist"
    ):
        open_record(str(tmp_path / "a.db"), "coffee", {})
    assert not (tmp_path / "a.db").exists()
    open_record(f"sqlite:///{tmp_path}/a.db?network=yes", "coffee", {}).close()
    open_record(str(tmp_path / "local" / "a.db"), "coffee", {}).close()
    mounts.unlink()
    assert filesystem.network_file_system(tmp_path) is None


# nothing is overwritten


@pytest.mark.parametrize("name", ["a.db", "a.db-wal", "a.db-shm", "a.db-journal", "link"])
def test_a_record_and_the_files_beside_it_are_not_overwritten(tmp_path, name):
    written(tmp_path / "a.db", 2)
    (tmp_path / "link").symlink_to(tmp_path / "a.db")
    with pytest.raises(
        Refused, match=rf"^file must not be the record of a study; got .*{name}, which is part of one. Choose"
    ):
        overwritable(tmp_path / name)


def test_other_files_may_be_overwritten(tmp_path):
    (tmp_path / "text").write_text("SQLite format 3")
    (tmp_path / "empty").touch()
    for name in ("text", "empty", "new", "text-wal"):
        assert overwritable(tmp_path / name) == tmp_path / name
    assert overwritable(Path("/dev/null")) == Path("/dev/null")


def test_a_copy_takes_away_no_other_file(tmp_path):
    study = aw.Study(SPACE, storage=tmp_path / "b.db.part")  # as unfinished copies were once called
    study.tell(study.ask(), 1)
    study.backup(tmp_path / "b.db")
    assert aw.Study.open(tmp_path / "b.db.part").count() == 1
    assert sorted(path.name for path in tmp_path.glob("b.db*") if "part" not in path.name) == ["b.db"]


def test_a_file_that_appears_during_a_copy_is_not_overwritten(tmp_path, monkeypatch):
    study = aw.Study(SPACE, storage=tmp_path / "a.db")
    study.ask()

    def slow(storage: str) -> list[str]:
        (tmp_path / "b.db").write_text("precious")
        return []

    monkeypatch.setattr(copies, "names", slow)
    with pytest.raises(Refused, match=r"^file must be new; got .*b.db, which exists"):
        study.backup(tmp_path / "b.db")
    assert (tmp_path / "b.db").read_text() == "precious"
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("b.db.")]
