"""Anything that people may do to a study, in any order: record, state and a twin never disagree."""

import math
import tempfile
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import askwise as aw
from askwise.study.answers import UNGIVEN
from askwise.study.state import State

PEOPLE = (None, "ada", "bob")
ANSWERS = {
    "binary": [True, False, None],
    "duel": [0, 1, None],
    "batch": [{"winner": 1}, {"ranking": [2, 0, 1]}, {"pairs": [(0, 1), (2, 1)]}, {"worst": 0}, None],
}
SPACE = aw.Space(u=aw.Real(-1, 1), k=aw.Integer(1, 5))
CHANGES = [
    *({"space": SPACE.replaced(u=aw.Real(*ends))} for ends in ((-0.4, 0.3), (-1, 1), (-3, 2))),
    *({"space": SPACE.replaced(k=aw.Integer(1, most)).where("u + k <= 4")} for most in (5, 9)),
    {"rule": "random", "expires": 50},
    {"rule": None, "kernel": aw.kernel("se", 0.5, 2.0)},
    {"repeats": 0.5, "expires": None},
]


def options(answer: object) -> dict[str, object]:
    return answer if isinstance(answer, dict) else {"answer": answer}


class Experiment(RuleBasedStateMachine):
    """A stored study that is restarted at will, a twin in memory that never is, and what they should hold."""

    @initialize(feedback=st.sampled_from(sorted(ANSWERS)), rule=st.sampled_from(["random", None]))
    def begin(self, feedback: str, rule: str | None) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.url = f"sqlite:///{Path(self.folder.name) / 'study.db'}"
        self.feedback, self.now = feedback, 1e9
        self.expires: float = 100
        plan = {"rule": rule, "seed": 3, "initial": 2, "expires": 100, "kernel": aw.kernel("se", 0.3, 4.0)}
        self.study = aw.Study(SPACE, feedback, storage=self.url, **plan)
        self.twin = aw.Study(SPACE, feedback, **plan)
        self.expected: dict[int, tuple[str, object]] = {}
        self.asked_at: dict[int, float] = {}

    def both(self, act):
        """Do the same to both, at the same time of day; they must answer or refuse alike."""
        results = []
        for study in (self.study, self.twin):
            with mock.patch("time.time", return_value=self.now):
                try:
                    results.append(act(study))
                except ValueError as error:
                    results.append(str(error))
        assert results[0] == results[1]
        return results[0]

    @rule(person=st.sampled_from(PEOPLE))
    def ask(self, person: str | None) -> None:
        waiting = {number for number, (status, _) in self.expected.items() if status == "open"}
        late = {number for number in waiting if self.asked_at[number] < self.now - self.expires}
        for number in late:
            self.expected[number] = ("expired", None)
        question = self.both(lambda study: study.ask(person))
        known = self.expected.get(question.id)
        assert known is None or known[0] in ("open", "expired")
        if known is None:
            assert question.id == len(self.expected)
        if known is None or known[0] == "expired":
            self.asked_at[question.id] = self.now
        self.expected[question.id] = ("open", None)
        assert question.participant == person
        assert all(self.study.space.allows(option) for option in question.options)

    @precondition(lambda self: self.expected)
    @rule(data=st.data())
    def tell(self, data: st.DataObject) -> None:
        number, answer = self.pick(data), data.draw(st.sampled_from(ANSWERS[self.feedback]))
        result = self.both(lambda study: study.tell(number, **options(answer)))
        status, before = self.expected[number]
        if status in ("open", "expired"):
            self.expected[number] = ("answered", answer)
            assert result is None
        else:
            assert (result is None) == (status == "answered" and before == answer)

    @precondition(lambda self: self.expected)
    @rule(data=st.data())
    def amend(self, data: st.DataObject) -> None:
        number, answer = self.pick(data), data.draw(st.sampled_from(ANSWERS[self.feedback]))
        result = self.both(lambda study: study.amend(number, **options(answer), reason="slip"))
        if self.expected[number][0] in ("answered", "skipped", "voided"):
            self.expected[number] = ("answered", answer)
            assert result is None
        else:
            assert "must have an answer to amend" in result

    @precondition(lambda self: self.expected)
    @rule(data=st.data())
    def skip(self, data: st.DataObject) -> None:
        number = self.pick(data)
        result = self.both(lambda study: study.skip(number))
        allowed = self.expected[number][0] in ("open", "expired", "skipped")
        assert (result is None) == allowed
        if allowed:
            self.expected[number] = ("skipped", None)

    @precondition(lambda self: self.expected)
    @rule(data=st.data())
    def void(self, data: st.DataObject) -> None:
        number = self.pick(data)
        assert self.both(lambda study: study.void(number)) is None
        self.expected[number] = ("voided", self.expected[number][1])

    @precondition(lambda self: self.expected)
    @rule(data=st.data())
    def expire(self, data: st.DataObject) -> None:
        number = self.pick(data)
        result = self.both(lambda study: study.expire(number))
        allowed = self.expected[number][0] in ("open", "expired")
        assert (result is None) == allowed
        if allowed:
            self.expected[number] = ("expired", None)

    @rule(change=st.sampled_from(CHANGES))
    def change(self, change: dict[str, object]) -> None:
        before = self.study.plan.to_dict()
        words = self.both(lambda study: study.change(**change))
        assert isinstance(words, list)
        assert bool(words) == (self.study.plan.to_dict() != before)
        assert self.both(lambda study: study.change(**change)) == []
        self.expires = math.inf if self.study.plan.expires is None else self.study.plan.expires
        for number, (status, _) in self.expected.items():
            if status == "open" and not all(map(self.study.space.allows, self.study.entry(number).options)):
                self.expected[number] = ("expired", None)

    @rule(seconds=st.sampled_from([1.0, 60.0, 150.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def restart(self) -> None:
        self.study.close()
        self.study = aw.Study.open(self.url)

    @invariant()
    def record_and_state_agree(self) -> None:
        if not hasattr(self, "study"):
            return
        history = {entry.id: entry for entry in self.study.history()}
        assert history == State.after(self.study._ledger.record.events()).entries
        assert sorted(history) == sorted(self.expected)
        for number, (status, answer) in self.expected.items():
            assert history[number].status == status
            if status == "answered":
                given = {"answer": UNGIVEN, **options(answer)}
                assert history[number].answer == self.study.plan.kind.read(self.study.size, **given)

    def pick(self, data: st.DataObject) -> int:
        return data.draw(st.sampled_from(sorted(self.expected)))

    def teardown(self) -> None:
        if hasattr(self, "study"):
            replayed = self.study.replay()
            assert all(question.equal for question in replayed)
            self.study.close()
            self.folder.cleanup()


Experiment.TestCase.settings = settings(max_examples=8, stateful_step_count=20, deadline=None)
TestExperiment = Experiment.TestCase


@pytest.mark.slow
def test_more_and_longer_experiments_keep_the_invariants():
    """The same, more and longer."""
    Experiment.TestCase.settings = settings(max_examples=300, stateful_step_count=50, deadline=None)
    Experiment.TestCase("runTest").runTest()
