"""Several programs at once do what one after the other could have done, whatever is done to them.

In the manner of Jepsen: four clients ask, tell, amend, void and expire while they are stopped, killed and cut
off and the server is restarted; what each was told, and when, must fit a sequential study.
"""

import json
import logging
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

import askwise as aw
import postgres
from askwise.study.state import State as Folded
from linearizability import Call, State, after, contradiction
from processes import forked

PEOPLE, SECONDS = ("p0", "p1", "p2", "p3"), 2.0


# the checker


def passed_through(*calls: Call) -> list[State]:
    """The states of a study on which these calls happen in this order."""
    states: list[State] = [()]
    for call in calls:
        states.append(after(states[-1], call)[0])
    return states


ASK = Call("a", "ask", 0, 0, 1, 2, 0)
TELL = Call("a", "tell", 0, 1, 3, 4, "ok")
OTHER = Call("b", "tell", 0, 0, 3.5, 5, "conflict")
LOST = Call("a", "tell", 0, 1, 3)
EXPIRE, VOID = Call("b", "expire", 0, 0, 5, 6, "ok"), Call("b", "void", 0, 0, 5, 6, "ok")
AMEND = Call("a", "amend", 0, 0, 7, 8, "ok")
ASKED, ANSWERED = passed_through(ASK), passed_through(ASK, TELL)

POSSIBLE = {
    "an answer": ([ASK, TELL], ANSWERED),
    "a lost answer that was recorded": ([ASK, LOST], ANSWERED),
    "a lost answer that was not": ([ASK, LOST], ASKED),
    "another answer that is refused": ([ASK, TELL, OTHER], ANSWERED),
    "another answer that comes first": (
        [ASK, replace(TELL, result="conflict"), replace(OTHER, result="ok")],
        passed_through(ASK, OTHER),
    ),
    "the same answer twice": ([ASK, TELL, replace(TELL, client="b", begin=2)], ANSWERED),
    "an open question again": ([ASK, replace(ASK, begin=2, end=4), TELL], ANSWERED),
    "effects in the order of the calls": ([ASK, TELL, VOID, AMEND], passed_through(ASK, TELL, VOID, AMEND)),
    "a lost answer that comes late": (
        [ASK, LOST, EXPIRE, Call("b", "ask", 0, 0, 6, 7, 0)],
        passed_through(ASK, EXPIRE, Call("b", "ask", 0, 0, 6), LOST),
    ),
}

IMPOSSIBLE = {
    "an answer that was lost": ([ASK, TELL], ASKED),
    "an answer that was lost later": ([ASK, TELL], [*ANSWERED, ASKED[-1]]),
    "an answer that was recorded twice": ([ASK, TELL, TELL], [*ANSWERED, ANSWERED[-1]]),
    "two different answers, both accepted": ([ASK, TELL, replace(OTHER, result="ok")], ANSWERED),
    "a refusal of the only answer": ([ASK, replace(TELL, result="conflict")], ASKED),
    "a question that is out of date": ([ASK, TELL, replace(ASK, begin=5, end=6)], ANSWERED),
    "the same question to two people": ([ASK, Call("b", "ask", 0, 0, 3, 4, 0)], ASKED),
    "a question unknown to one who comes later": (
        [ASK, Call("b", "void", 0, 0, 3, 4, "unknown question")],
        ASKED,
    ),
    "an effect before its call": ([ASK, TELL, replace(OTHER, begin=2, end=2.5)], ANSWERED),
    "an effect after its return": ([ASK, TELL, EXPIRE], passed_through(ASK, EXPIRE, TELL)),
    "effects in the wrong order": ([ASK, TELL, VOID, AMEND], passed_through(ASK, TELL, AMEND, VOID)),
    "an effect of nobody": ([ASK], ANSWERED),
    "an effect of one who was refused": (
        [ASK, TELL, replace(VOID, result="conflict")],
        passed_through(ASK, TELL, VOID),
    ),
    "two effects of one lost call": (
        [ASK, TELL, replace(VOID, end=LOST.end, result=None), Call("a", "amend", 0, 1, 5, 6, "ok")],
        passed_through(ASK, TELL, VOID, Call("a", "amend", 0, 1, 5), VOID),
    ),
    "an effect of a lost call before it": (
        [ASK, replace(TELL, result="conflict", begin=2, end=2.5), replace(OTHER, end=LOST.end, result=None)],
        passed_through(ASK, OTHER),
    ),
}


@pytest.mark.parametrize("name", POSSIBLE)
def test_the_checker_accepts_what_can_be(name):
    calls, states = POSSIBLE[name]
    assert contradiction(calls, states) is None


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_the_checker_finds_what_cannot_be(name):
    calls, states = IMPOSSIBLE[name]
    assert contradiction(calls, states) is not None


def has_an_order(calls: list[Call], states: list[State]) -> bool:
    """The definition: try every order of the calls that respects time."""
    if len(states) == 1 and all(call.is_lost for call in calls):
        return True
    for number, call in enumerate(calls):
        then, result = after(states[0], call)
        rest = states[1:] if then != states[0] else states
        possible = all(call.begin <= other.end for other in calls) and call.result in (None, result)
        if possible and rest[:1] == [then] and has_an_order(calls[:number] + calls[number + 1 :], rest):
            return True
    return False


def a_small_history(source: random.Random) -> tuple[list[Call], list[State]]:
    """What some clients could have seen."""
    kinds, calls, states = ["ask", "tell", "tell", "amend", "void", "expire"], [], [()]
    for moment in sorted(source.uniform(0, 3) for _ in range(7)):
        begin, end = moment - source.expovariate(2), moment + source.expovariate(2)
        who, kind = source.choice("ab"), "ask" if not calls else source.choice(kinds)
        call = Call(who, kind, source.randrange(2), source.randrange(2), begin)
        then, result = after(states[-1], call)
        if source.random() < 0.75:
            call = replace(call, end=end, result=result)
        elif source.random() < 0.5:  # lost before it happened
            then = states[-1]
        calls.append(call)
        states += [then] if then != states[-1] else []
    return calls, states


def corrupted(calls: list[Call], states: list[State], source: random.Random) -> None:
    """Change something, after which it may be possible or not."""
    which = source.randrange(len(calls))
    call = calls[which]
    match source.randrange(5):
        case 0 if not call.is_lost:
            calls[which] = replace(call, result=source.choice(["ok", "conflict", 0, 1]))
        case 1:
            shift = source.uniform(-2, 2)
            calls[which] = replace(call, begin=call.begin + shift, end=call.end + shift)
        case 2:
            del calls[which]
        case 3 if len(states) > 1:
            del states[source.randrange(1, len(states))]
        case 4:
            states.append(source.choice(states))


@pytest.mark.parametrize("histories", [300, pytest.param(5000, marks=pytest.mark.slow)])
def test_the_checker_agrees_with_the_definition(histories):
    source, verdicts = random.Random(1), Counter[bool]()
    for _ in range(histories):
        calls, states = a_small_history(source)
        assert contradiction(calls, states) is None
        corrupted(calls, states, source)
        verdict = has_an_order(calls, states)
        assert (contradiction(calls, states) is None) == verdict, (calls, states)
        verdicts[verdict] += 1
    assert min(verdicts[True], verdicts[False]) > 0.2 * histories


# histories


def client(place: str, me: str, seed: int, until: float, file: Path) -> None:
    """Do this and that until time is up, and write down each call and what came of it."""
    sys.settrace(None)  # coverage would only slow it down
    source, study, top = random.Random(seed), None, 0
    with file.open("a", buffering=1) as out:
        while time.monotonic() < until:
            time.sleep(source.uniform(0, 0.01))
            try:
                study = study or aw.Study.open(place)
            except OSError:
                continue
            kind = source.choice(["ask", "ask", "tell", "tell", "amend", "void", "expire"])
            question = 0 if kind == "ask" else source.randrange(max(0, top - 3), top + 2)
            answer = source.randrange(2) if kind in ("tell", "amend") else 0
            out.write(json.dumps(["call", kind, question, answer, time.monotonic()]) + "\n")
            result: int | str | None = "ok"
            try:
                if kind == "ask":
                    result = study.ask(me).id
                    top = max(top, result)
                else:
                    getattr(study, kind)(question, *([answer] if kind in ("tell", "amend") else []))
            except aw.NotFound:
                result = "unknown question"
            except aw.Conflict:
                result = "conflict"
            except OSError:
                result = None  # it may have happened
            out.write(json.dumps(["return", result, time.monotonic()]) + "\n")
            if result is None:
                time.sleep(0.05)


def calls_of(who: str, file: Path) -> Iterator[Call]:
    """What a client wrote down, to the line in which it was killed."""
    begun: Call | None = None
    for line in file.read_text().splitlines():
        try:
            what, *parts = json.loads(line)
        except json.JSONDecodeError:
            break
        if what == "call":
            begun = Call(who, *parts)
        elif begun is not None:
            result, end = parts
            yield begun if result is None else replace(begun, end=end, result=result)
            begun = None
    if begun is not None:
        yield begun


class Clients:
    """Four programs on one study; one that is killed is started again."""

    def __init__(self, place: str, folder: Path, seed: int) -> None:
        self.place, self.folder, self.source = place, folder, random.Random(seed)
        self.until, self.files = time.monotonic() + SECONDS, list[tuple[str, Path]]()
        self.running = {who: self._started(who) for who in PEOPLE}

    def kill(self, who: str) -> None:
        os.kill(self.running[who], signal.SIGKILL)
        os.waitpid(self.running[who], 0)
        self.running[who] = self._started(who)

    def stop(self, who: str) -> None:
        with frozen(self.running[who]):
            time.sleep(self.source.uniform(0.02, 0.1))

    def calls(self) -> list[Call]:
        """What all of them did, once they have come to their end."""
        failed = [who for who, child in self.running.items() if os.waitpid(child, 0)[1]]
        log = self.folder / "log"
        assert not failed, log.read_text()
        assert not log.exists() or not log.read_text()
        return [call for who, file in self.files if file.exists() for call in calls_of(who, file)]

    def _started(self, who: str) -> int:
        file = self.folder / f"calls-{len(self.files)}"
        self.files.append((who, file))
        work = partial(client, self.place, who, self.source.getrandbits(32), self.until, file)
        return forked(work, self.folder / "log")


@contextmanager
def frozen(process: int) -> Iterator[None]:
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


def disturb(clients: Clients, what: str, server: postgres.Server | None) -> None:
    source = clients.source
    if what == "stop":
        clients.stop(source.choice(PEOPLE))
    elif what == "kill":
        clients.kill(source.choice(PEOPLE))
    elif server is None:  # of SQLite: what runs on a machine that is restarted
        for who in PEOPLE:
            clients.kill(who)
    elif what == "restart":
        server.restart(source.choice(["fast", "immediate", "immediate", "kill"]))
    elif backends := server.backends():
        victim = source.choice(backends)
        with suppress(ProcessLookupError):
            if what == "cut":
                os.kill(victim, signal.SIGTERM)
            else:
                with frozen(victim):
                    time.sleep(source.uniform(0.1, 0.6))


def history(place: str, seed: int, folder: Path, server: postgres.Server | None) -> Counter[str]:
    """Check what four clients did on a new study while they were disturbed; how often each thing happened."""
    aw.Study(aw.Space(x=aw.Real(0, 1)), rule="random", initial=10**6, storage=place).close()
    impatient = place if server is None else f"{place}&timeout=0.5"  # gives up a frozen server
    clients, count = Clients(impatient, folder, seed), Counter[str]()
    source = clients.source
    restarts = [clients.until - source.uniform(0.2, 0.9) * SECONDS for _ in range(source.choice([1, 2]))]
    while time.monotonic() < clients.until:
        time.sleep(source.uniform(0.02, 0.15))
        what = source.choice(["stop", "stop", "stop", "kill", *([] if server is None else ["cut", "freeze"])])
        if restarts and time.monotonic() > min(restarts):
            restarts.remove(min(restarts))
            what = "restart"
        disturb(clients, what, server)
        count[what] += 1
    calls, states = clients.calls(), states_of(place)
    (folder / "states").write_text(json.dumps(states))
    assert contradiction(calls, states) is None, f"history {seed}; see {folder}"
    count["calls"] += len(calls)
    count["effects"] += len(states) - 1
    count["lost"] += sum(call.is_lost for call in calls)
    count["refused"] += sum(call.result in ("conflict", "unknown question") for call in calls)
    return count


def states_of(place: str) -> list[State]:
    """The states that a study has passed through."""
    study, folded, states = aw.Study.open(place), Folded(), list[State]([()])
    for event in study._ledger.record.events():
        folded.take(event)
        entries = [folded.entries[number] for number in sorted(folded.entries)]
        answers = [entry.answer and entry.answer.to_json()["prefers"] for entry in entries]
        states.append(
            tuple((entry.status, entry.participant, a) for entry, a in zip(entries, answers, strict=True))
        )
    study.close()
    return states


@pytest.mark.parametrize("histories", [1, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_what_clients_saw_could_have_happened_one_after_the_other(tmp_path, engine, histories):
    count = Counter[str]()
    with stoppable(engine) as server:
        for seed in range(histories):
            folder = tmp_path / str(seed)
            folder.mkdir()
            if server is None:
                count += history(str(folder / "a.db"), seed, folder, None)
            else:
                with postgres.fresh_schema(server.address) as place:
                    count += history(place, seed, folder, server)
    logging.info("%s: %s", engine, dict(count))  # shown by `pytest -rP --log-level=INFO`
    if histories > 1:  # in a single one, chance and a busy machine decide how much happens
        assert count["restart"] >= histories
        assert min(count["calls"], 3 * count["effects"]) > 50 * histories
        assert min(count["kill"] + count["stop"], count["lost"], count["refused"]) >= histories


@contextmanager
def stoppable(engine: str) -> Iterator[postgres.Server | None]:
    """A server that may be stopped; SQLite has none."""
    if engine == "sqlite":
        yield None
    else:
        with postgres.own_server() as server:
            yield server
