"""What must not be taken: each gets the error form of the house, and the record stays as it was."""

import math
from typing import Any

import numpy as np
import pytest

import askwise as aw

HOUSE = r"(?s)^.+ must .+; got .+\. .+"
NAN, INF = math.nan, math.inf


@pytest.fixture(autouse=True)
def as_users_have_it(unchecked):
    """Without the type checker of the tests, which would refuse many of these before we do."""


def space() -> aw.Space:
    return aw.Space(
        gain=aw.Real(0, 40),
        cutoff=aw.Real(100, 10_000, log=True),
        bands=aw.Integer(1, 8),
        mode=aw.Choice(["soft", "hard"]),
        room=aw.Choice(["quiet", "loud"], context=True),
        rate=aw.Fixed(44_100),
    ).where("gain + 2*bands <= 50")


QUIET = {"room": "quiet"}
GOOD = {"gain": 1.0, "cutoff": 200.0, "bands": 2, "mode": "soft", "room": "quiet"}
LINE = {"u": aw.Real(0, 1)}

CREATE: list[tuple[str, Any]] = [
    ("no parameters", lambda: aw.Space()),
    ("a tuple for a parameter", lambda: aw.Space(u=(0, 1))),
    ("low above high", lambda: aw.Real(2, 1)),
    ("low equal to high", lambda: aw.Real(1, 1)),
    ("low not a number", lambda: aw.Real(NAN, 1)),
    ("high infinite", lambda: aw.Real(0, INF)),
    ("a text as a bound", lambda: aw.Real("0", 1)),
    ("a truth value as a bound", lambda: aw.Real(False, 1)),
    ("log from zero", lambda: aw.Real(0, 1, log=True)),
    ("integer with a fraction", lambda: aw.Integer(0.5, 3)),
    ("integer of one value", lambda: aw.Integer(3, 3)),
    ("integer upside down", lambda: aw.Integer(3, 1)),
    ("log integer from zero", lambda: aw.Integer(0, 8, log=True)),
    ("choice of nothing", lambda: aw.Choice([])),
    ("choice of one", lambda: aw.Choice(["a"])),
    ("choice twice the same", lambda: aw.Choice(["a", "a"])),
    ("choice of lists", lambda: aw.Choice([[1], [2]])),
    ("choice of a text", lambda: aw.Choice("ab")),
    ("fixed to a list", lambda: aw.Fixed([1])),
    ("fixed to no number", lambda: aw.Fixed(NAN)),
    ("only fixed parameters", lambda: aw.Study(aw.Space(u=aw.Fixed(1)))),
    ("only context", lambda: aw.Study(aw.Space(u=aw.Real(0, 1, context=True)))),
    ("constraint on nobody", lambda: aw.Space(**LINE).where("w <= 1")),
    ("constraint without a sign", lambda: aw.Space(**LINE).where("u + 1")),
    ("constraint that is no sum", lambda: aw.Space(**LINE).where("u * u <= 1")),
    ("constraint that calls", lambda: aw.Space(**LINE).where("abs(u) <= 1")),
    ("constraint that is not text", lambda: aw.Space(**LINE).where(3)),
    ("constraint that cannot be parsed", lambda: aw.Space(**LINE).where("u <= ")),
    ("constraint on a choice", lambda: space().where("mode <= 1")),
    ("constraint that leaves nothing", lambda: aw.Space(**LINE).where("u >= 2")),
    ("space of another kind", lambda: aw.Study({"u": (0, 1)})),
    ("feedback unknown", lambda: aw.Study(aw.Space(**LINE), "stars")),
    ("feedback not a text", lambda: aw.Study(aw.Space(**LINE), 2)),
    ("rule unknown", lambda: aw.Study(aw.Space(**LINE), "duel", "best")),
    ("rule for other questions", lambda: aw.Study(aw.Space(**LINE), "duel", "ucb_phi")),
    ("rule with a setting it has not", lambda: aw.Study(aw.Space(**LINE), "duel", "muc(beta=1)")),
    ("rule not a text", lambda: aw.Study(aw.Space(**LINE), "duel", 3)),
    ("size of a duel", lambda: aw.Study(aw.Space(**LINE), "duel", size=3)),
    ("batch of one", lambda: aw.Study(aw.Space(**LINE), "batch", size=1)),
    ("batch of a fraction", lambda: aw.Study(aw.Space(**LINE), "batch", size=2.5)),
    ("seed of a fraction", lambda: aw.Study(aw.Space(**LINE), seed=0.5)),
    ("seed of text", lambda: aw.Study(aw.Space(**LINE), seed="0")),
    ("seed of truth", lambda: aw.Study(aw.Space(**LINE), seed=True)),
    ("initial below zero", lambda: aw.Study(aw.Space(**LINE), initial=-1)),
    ("kernel unknown", lambda: aw.Study(aw.Space(**LINE), kernel="cosine")),
    ("kernel a number", lambda: aw.Study(aw.Space(**LINE), kernel=3)),
    ("kernel of another dimension", lambda: aw.Study(aw.Space(**LINE), kernel=aw.kernel("se", [1, 1]))),
    ("expires at once", lambda: aw.Study(aw.Space(**LINE), expires=0)),
    ("expires never", lambda: aw.Study(aw.Space(**LINE), expires=INF)),
    ("name empty", lambda: aw.Study(aw.Space(**LINE), name="")),
    ("storage of another kind", lambda: aw.Study(aw.Space(**LINE), storage="mysql://host/db")),
    ("storage without its folder", lambda: aw.Study(aw.Space(**LINE), storage="sqlite:////no/such/a.db")),
    ("name not a text", lambda: aw.Study(aw.Space(**LINE), name=5)),
    ("storage not a text", lambda: aw.Study(aw.Space(**LINE), storage=3)),
]

USE: list[tuple[str, str, Any]] = [
    ("duel answered 2", "duel", lambda s: s.tell(0, 2)),
    ("duel answered -1", "duel", lambda s: s.tell(0, -1)),
    ("duel answered by truth", "duel", lambda s: s.tell(0, True)),
    ("duel answered by text", "duel", lambda s: s.tell(0, "A")),
    ("duel answered by a fraction", "duel", lambda s: s.tell(0, 0.5)),
    ("duel answered by nothing", "duel", lambda s: s.tell(0)),
    ("duel answered twice at once", "duel", lambda s: s.tell(0, 1, winner=1)),
    ("duel ranked", "duel", lambda s: s.tell(0, ranking=[0, 1])),
    ("duel answered by a winner", "duel", lambda s: s.tell(0, winner=0)),
    ("question not asked", "duel", lambda s: s.tell(7, 1)),
    ("question below zero", "duel", lambda s: s.tell(-1, 1)),
    ("question a text", "duel", lambda s: s.tell("0", 1)),
    ("question a truth", "duel", lambda s: s.tell(False, 1)),
    ("question none", "duel", lambda s: s.tell(None, 1)),
    ("question of another study", "duel", lambda s: s.tell(asked(study("duel", seed=9)), 1)),
    ("seconds below zero", "duel", lambda s: s.tell(0, 1, seconds=-1)),
    ("seconds not a number", "duel", lambda s: s.tell(0, 1, seconds=NAN)),
    ("seconds a text", "duel", lambda s: s.tell(0, 1, seconds="2")),
    ("seconds of a skip", "duel", lambda s: s.skip(0, seconds=INF)),
    ("yes/no answered 2", "binary", lambda s: s.tell(0, 2)),
    ("yes/no answered by text", "binary", lambda s: s.tell(0, "yes")),
    ("yes/no answered by nothing", "binary", lambda s: s.tell(0)),
    ("yes/no answered by a list", "binary", lambda s: s.tell(0, [True])),
    ("yes/no ranked", "binary", lambda s: s.tell(0, ranking=[0])),
    ("batch by truth", "batch", lambda s: s.tell(0, True)),
    ("winner outside", "batch", lambda s: s.tell(0, winner=3)),
    ("winner a text", "batch", lambda s: s.tell(0, winner="C")),
    ("ranking of nobody", "batch", lambda s: s.tell(0, ranking=[])),
    ("ranking one twice", "batch", lambda s: s.tell(0, ranking=[1, 1])),
    ("ranking of outsiders", "batch", lambda s: s.tell(0, ranking=[0, 3])),
    ("ranking by text", "batch", lambda s: s.tell(0, ranking="012")),
    ("ranking by fractions", "batch", lambda s: s.tell(0, ranking=[0.0, 1.0])),
    ("ranking and winner", "batch", lambda s: s.tell(0, ranking=[0, 1], winner=0)),
    ("worst outside", "batch", lambda s: s.tell(0, worst=3)),
    ("worst of a duel", "duel", lambda s: s.tell(0, worst=1)),
    ("worst and winner", "batch", lambda s: s.tell(0, worst=1, winner=0)),
    ("pairs of nobody", "batch", lambda s: s.tell(0, pairs=[])),
    ("pair with itself", "batch", lambda s: s.tell(0, pairs=[(1, 1)])),
    ("pair of three", "batch", lambda s: s.tell(0, pairs=[(0, 1, 2)])),
    ("pair both ways", "batch", lambda s: s.tell(0, pairs=[(0, 1), (1, 0)])),
    ("pairs a number", "batch", lambda s: s.tell(0, pairs=3)),
    ("amended before it is answered", "duel", lambda s: s.amend(0, 1)),
    ("amended to nothing", "duel", lambda s: s.amend(0), lambda s: s.tell(0, 1)),
    ("answered otherwise", "duel", lambda s: s.tell(0, 0), lambda s: s.tell(0, 1)),
    ("answered after a skip", "duel", lambda s: s.tell(0, 0), lambda s: s.skip(0)),
    ("skipped after an answer", "duel", lambda s: s.skip(0), lambda s: s.tell(0, 1)),
    ("expired after an answer", "duel", lambda s: s.expire(0), lambda s: s.tell(0, 1)),
    ("ranking of no dimension", "batch", lambda s: s.tell(0, ranking=np.array(3))),
    ("ranking by bytes", "batch", lambda s: s.tell(0, ranking=b"\x00\x01")),
    ("pairs of no dimension", "batch", lambda s: s.tell(0, pairs=np.array(3))),
    ("reason a number", "duel", lambda s: s.void(0, reason=3)),
    ("seconds without end", "duel", lambda s: s.tell(0, 1, seconds=10**300)),
    ("recorded in no time", "duel", lambda s: s.record([GOOD, GOOD], 0, seconds=-1)),
    ("void of nobody", "duel", lambda s: s.void(5)),
    ("participant a number", "duel", lambda s: s.ask(3, QUIET)),
    ("participant empty", "duel", lambda s: s.ask("", QUIET)),
    ("context left out", "duel", lambda s: s.ask()),
    ("context of nobody", "duel", lambda s: s.ask(context={"room": "quiet", "sun": 1})),
    ("context that is chosen", "duel", lambda s: s.ask(context={"room": "quiet", "gain": 1})),
    ("context of another value", "duel", lambda s: s.ask(context={"room": "noisy"})),
    ("context a text", "duel", lambda s: s.ask(context="quiet")),
    ("best without context", "duel", lambda s: s.best()),
    ("reference incomplete", "duel", lambda s: s.best(QUIET, reference={"gain": 1})),
    ("reference outside", "duel", lambda s: s.best(QUIET, reference={**GOOD, "gain": 41})),
    ("reference a number", "duel", lambda s: s.best(QUIET, reference=3)),
    ("recorded one option of two", "duel", lambda s: s.record([GOOD], 0)),
    ("recorded outside", "duel", lambda s: s.record([GOOD, {**GOOD, "cutoff": 1}], 0)),
    ("recorded a fraction of a band", "duel", lambda s: s.record([GOOD, {**GOOD, "bands": 1.5}], 0)),
    ("recorded an unknown mode", "duel", lambda s: s.record([GOOD, {**GOOD, "mode": "firm"}], 0)),
    (
        "recorded against the constraint",
        "duel",
        lambda s: s.record([GOOD, {**GOOD, "gain": 39, "bands": 8}], 0),
    ),
    ("recorded with a parameter too many", "duel", lambda s: s.record([GOOD, {**GOOD, "more": 1}], 0)),
    ("recorded with one too few", "duel", lambda s: s.record([GOOD, QUIET], 0)),
    ("recorded another rate", "duel", lambda s: s.record([GOOD, {**GOOD, "rate": 8000}], 0)),
    ("recorded no number", "duel", lambda s: s.record([GOOD, {**GOOD, "gain": NAN}], 0)),
    ("recorded a text for a number", "duel", lambda s: s.record([GOOD, {**GOOD, "gain": "1"}], 0)),
    ("recorded a truth for a number", "duel", lambda s: s.record([GOOD, {**GOOD, "gain": True}], 0)),
    ("recorded without an answer", "duel", lambda s: s.record([GOOD, GOOD])),
    ("recorded with a bad answer", "duel", lambda s: s.record([GOOD, GOOD], 2)),
    ("recorded text", "duel", lambda s: s.record("ab", 0)),
]


def study(feedback: str, seed: int = 0) -> aw.Study:
    return aw.Study(space(), feedback, "random", seed=seed)


def asked(one: aw.Study) -> aw.Question:
    return one.ask(context=QUIET)


@pytest.mark.parametrize("act", [act for _, act in CREATE], ids=[name for name, _ in CREATE])
def test_what_cannot_be_created_is_refused(act):
    with pytest.raises((ValueError, TypeError), match=HOUSE):
        act()


@pytest.mark.parametrize("case", USE, ids=[case[0] for case in USE])
def test_what_cannot_be_told_is_refused_and_changes_nothing(case):
    _, feedback, act, *before = case
    one = study(feedback)
    asked(one)
    for prepare in before:
        prepare(one)
    history, events = one.history(), one._ledger.record.events()
    with pytest.raises((ValueError, TypeError), match=HOUSE):
        act(one)
    assert one._ledger.record.events() == events
    assert one.history() == history


def test_there_are_more_than_a_hundred_cases():
    assert len(CREATE) + len(USE) > 100
