"""The contract of storages, as tests."""

import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from typing import Any

import numpy as np
import pytest

from askwise import storage
from askwise.errors import Conflict, Refused
from askwise.storage import KINDS, Draft, Event, Record, StudyNotFound, open_record

Opened = Callable[..., Record]
"""Opens a record, and closes it at the end of the test."""

_NASTY = {"\x00\ud800é": [True, 1, 1.0, -0.0, 5e-324, 0.1, None, 2**100], "": {"\n": "\u2028"}}
_NOT_JSON = [
    ({"a": [0, float("nan")]}, "body['a'][1] must be finite; got nan. Write None"),
    ({"a": -float("inf")}, "body['a'] must be finite; got -inf."),
    ({"a": (1, 2)}, "body['a'] must be str, int, float, bool, None, list or dict; got (1, 2)."),
    ({"a": {1: 2}}, "keys of body['a'] must be str; got 1. Write str(key)."),
    ({"a": np.float64(1)}, "body['a'] must be str, int, float"),
    ({"a": b"x"}, "got b'x'. Convert it first."),
    ({"a": 10**5000}, "body['a'] must have at most 4096 bits; got more."),
    ({"a": json.loads("[" * 70 + "]" * 70)}, "must be at most 64 levels deep; got more."),
]
_NO_EVENTS: list[tuple[Any, Any, Any, str]] = [
    ("guessed", 0, None, "kind must be one of asked, .*; got 'guessed'. Choose"),
    ("asked", -1, None, "question must be a number from 0 on; got -1."),
    ("asked", True, None, "question must be a number from 0 on; got True."),
    ("asked", 2**31, None, "question must be a number from 0 on; got 2147483648."),
    ("asked", 0, float("nan"), "at must be seconds since 1970; got nan."),
]


class RecordContract:
    """Tests of what a record must do; override the fixture ``record``."""

    @pytest.fixture
    def record(self) -> Record:
        """A record of a study named ``coffee`` with settings ``{"seed": 1}``, without events."""
        raise NotImplementedError

    def test_events_come_back_as_they_were_written(self, record: Record) -> None:
        """In order, all of them or those after a number."""
        first = record.append("asked", 0, {"points": [[0.25, 0.5]]}, expected=0, at=12.25)
        second = record.append("answered", 0, {"winner": 1}, expected=1)
        assert first == Event(1, "asked", 0, 12.25, {"points": [[0.25, 0.5]]})
        assert record.events() == [first, second]
        assert record.events(after=1) == [second]
        assert record.events(after=2) == []
        assert (record.name, record.settings) == ("coffee", {"seed": 1})

    def test_events_of_every_kind_survive_exactly(self, record: Record) -> None:
        """True is not 1, 1 is not 1.0, 0.0 is not -0.0, and any character may occur."""
        written = [Event(n, kind, n, 1.5, _NASTY) for n, kind in enumerate(KINDS, 1)]
        returned = [record.append(e.kind, e.number, _NASTY, expected=e.number - 1, at=1.5) for e in written]
        assert repr(returned) == repr(record.events()) == repr(written)

    def test_changing_a_body_changes_no_event(self, record: Record) -> None:
        """Neither the one that was given nor one that was returned."""
        body = {"points": [1]}
        event = record.append("asked", 0, body, expected=0)
        body["points"].append(2)
        event.body["points"].append(3)
        record.events()[0].body["points"].append(4)
        assert record.events()[0].body == {"points": [1]}

    def test_a_record_that_moved_on_refuses_the_event(self, record: Record) -> None:
        """With a Conflict if there are later events, otherwise because it is not the record that was read."""
        record.append("asked", 0, {}, expected=0)
        before = record.events()
        with pytest.raises(Conflict, match=r"expected must be the number of the last event, 1; got 0. Read"):
            record.append("answered", 0, {}, expected=0)
        with pytest.raises(Refused, match=r"expected must be at most 1, .* got 5. Open the study again"):
            record.append("answered", 0, {}, expected=5)
        assert record.events() == before

    @pytest.mark.parametrize("second", ["answered", "skipped"])
    @pytest.mark.parametrize("first", ["answered", "skipped"])
    def test_a_question_has_one_answer(self, record: Record, first: str, second: str) -> None:
        """Answered or skipped, once."""
        record.append("asked", 0, {}, expected=0)
        record.append(first, 0, {}, expected=1)
        with pytest.raises(Refused, match=f"question 0 must be open; got '{second}' after it was answered"):
            record.append(second, 0, {}, expected=2)
        record.append("answered", 1, {}, expected=2)
        assert [event.number for event in record.events()] == [1, 2, 3]

    def test_a_question_is_asked_once(self, record: Record) -> None:
        """Though it may be asked again, by another kind of event."""
        record.append("asked", 0, {}, expected=0)
        with pytest.raises(Refused, match=r"question 0 must be new; got one asked before. Take"):
            record.append("asked", 0, {}, expected=1)
        record.append("again", 0, {}, expected=1)
        record.append("again", 0, {}, expected=2)
        assert [event.kind for event in record.events()] == ["asked", "again", "again"]

    @pytest.mark.parametrize(("body", "message"), _NOT_JSON)
    def test_what_is_not_json_is_refused_and_not_written(
        self, record: Record, body: Any, message: str
    ) -> None:
        """So that what is read equals what was written."""
        with pytest.raises(Refused, match=re.escape(message)):
            record.append("asked", 0, body, expected=0)
        assert record.events() == []

    @pytest.mark.parametrize(("kind", "question", "at", "message"), _NO_EVENTS)
    def test_impossible_events_are_refused(
        self, record: Record, kind: Any, question: Any, at: Any, message: str
    ) -> None:
        """An unknown kind, an invalid number of a question, an invalid time."""
        with pytest.raises(Refused, match=message):
            record.append(kind, question, {}, expected=0, at=at)
        assert record.events() == []

    def test_several_events_are_written_together_or_not_at_all(self, record: Record) -> None:
        """Whatever it is that one of them is refused for."""
        asked = [Draft("asked", number, {"a": number}, at=1.5) for number in range(3)]
        written = record.append_all(asked, expected=0)
        assert written == [Event(n + 1, "asked", n, 1.5, {"a": n}) for n in range(3)] == record.events()
        assert record.append_all([], expected=3) == []
        later = Draft("answered", 0, {})
        for bad in (Draft("asked", 1, {}), Draft("guessed", 1, {}), Draft("skipped", 0, {})):
            with pytest.raises(Refused):
                record.append_all([later, bad], expected=3)
        with pytest.raises(Conflict):
            record.append_all([later, Draft("answered", 1, {})], expected=2)
        assert record.events() == written
        with pytest.raises(Refused, match="question 1 must be open; got 'answered' after"):
            record.append_all([Draft("skipped", 1, {}), Draft("answered", 1, {})], expected=3)

    def test_threads_share_a_record(self, record: Record) -> None:
        """Nothing is lost and nothing is written twice."""

        def work(thread: int) -> list[Event]:
            return [_append_patiently(record, "asked", 10 * thread + i, {"by": thread}) for i in range(10)]

        with ThreadPoolExecutor(8) as pool:
            written = [event for events in pool.map(work, range(8), timeout=60) for event in events]
        assert [event.number for event in record.events()] == list(range(1, 81))
        assert sorted(written, key=lambda event: event.number) == record.events()


class StorageContract(RecordContract):
    """Tests of what a storage must do; override the fixture ``address``."""

    @pytest.fixture
    def address(self) -> str:
        """The address of an empty storage."""
        raise NotImplementedError

    @pytest.fixture
    def opened(self, request: pytest.FixtureRequest) -> Opened:
        """Opens records, and closes them at the end."""
        stack = ExitStack()
        request.addfinalizer(stack.close)  # noqa: PT021 - jaxtyping hides that a function is a generator
        return lambda *arguments: stack.enter_context(closing(open_record(*arguments)))

    @pytest.fixture
    def record(self, address: str, opened: Opened) -> Record:
        """A record without events."""
        return opened(address, "coffee", {"seed": 1})

    def test_settings_survive_exactly(self, address: str, opened: Opened) -> None:
        """As bodies do."""
        opened(address, "x", _NASTY)
        assert repr(opened(address, "x", None).settings) == repr(_NASTY)

    def test_a_study_outlives_its_record(self, address: str, opened: Opened) -> None:
        """With the settings that it was created with."""
        with closing(open_record(address, "coffee", {"seed": 1})) as record:
            event = record.append("asked", 0, {}, expected=0)
        again = opened(address, "coffee", {"seed": 2})
        assert again.settings == {"seed": 1}
        assert again.events() == [event]
        assert opened(address, "coffee", None).events() == [event]

    def test_studies_of_one_storage_are_independent(self, address: str, opened: Opened) -> None:
        """Each has its own events."""
        records = opened(address, "b", {}), opened(address, "a", {})
        for record in records:
            record.append("asked", 0, {}, expected=0)
        assert storage.names(address) == ["a", "b"]
        assert [len(record.events()) for record in records] == [1, 1]

    def test_a_missing_study_is_refused_with_the_names_of_the_others(
        self, address: str, opened: Opened
    ) -> None:
        """And looking for it creates nothing."""
        for name, there in (("b", "none"), ("a", "'b'"), ("d", "'a', 'b'")):
            refusal = rf"^name must be a study in .*; got 'c'. Studies there: {there}\."
            with pytest.raises(StudyNotFound, match=refusal):
                open_record(address, "c", None)
            opened(address, name, {})
        assert storage.names(address) == ["a", "b", "d"]

    def test_a_closed_record_says_so(self, address: str) -> None:
        """Closing it twice does no harm."""
        record = open_record(address, "coffee", {})
        record.close()
        record.close()
        with pytest.raises(Refused, match=r"record must be open; got one that was closed. Open the study"):
            record.events()

    def test_two_records_of_a_study_see_each_other(self, address: str, opened: Opened) -> None:
        """Whoever is late gets a Conflict."""
        first, second = opened(address, "coffee", {}), opened(address, "coffee", {})
        event = first.append("asked", 0, {}, expected=0)
        assert second.events() == [event]
        with pytest.raises(Conflict):
            second.append("answered", 0, {}, expected=0)
        answer = second.append("answered", 0, {}, expected=1)
        assert first.events(after=1) == [answer]

    def test_events_can_be_read_while_others_write(self, address: str, opened: Opened) -> None:
        """What is read is always a prefix of what is written."""
        writer, reader = opened(address, "coffee", {}), opened(address, "coffee", {})

        def write() -> None:
            for number in range(60):
                writer.append("asked", number, {}, expected=number)

        with ThreadPoolExecutor(1) as pool:
            writing = pool.submit(write)
            seen = [0]
            while not writing.done():
                numbers = [event.number for event in reader.events()]
                assert numbers == list(range(1, len(numbers) + 1))
                seen.append(len(numbers))
            writing.result(timeout=60)
        assert seen == sorted(seen)
        assert len(set(seen)) > 2
        assert len(reader.events()) == 60

    def test_it_says_where_it_is_and_whether_it_works(self, address: str, opened: Opened) -> None:
        """For people, and for `askwise doctor`."""
        opened(address, "coffee", {})
        findings = list(storage.findings(address))
        assert storage.shown(address)
        assert findings
        assert all(finding.ok for finding in findings)


def _append_patiently(record: Record, kind: str, question: int, body: dict[str, Any]) -> Event:
    """Try again after reading what others wrote, as a study does."""
    last = 0
    while True:
        last += len(record.events(after=last))
        with suppress(Conflict):
            return record.append(kind, question, body, expected=last)
