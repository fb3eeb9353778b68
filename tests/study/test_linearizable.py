"""Several programs at once do what one after the other could have done, whatever is done to them.

In the manner of Jepsen: four clients ask, tell, amend, void and expire while they are stopped, killed and cut
off; what each was told, and when, must fit the sequential study below in some order that respects time.
"""

import json
import math
import os
import random
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

import askwise as aw
import postgres
from processes import forked

CLIENTS, SECONDS, HISTORIES = 4, 0.5, 3


@dataclass(frozen=True)
class Call:
    """What a client did, what it was told, and when; ``end`` is infinite if it was never told."""

    client: str
    kind: str
    question: int
    answer: int
    begin: float
    end: float = math.inf
    result: int | str | None = None


State = tuple[tuple[str, str | None, int | None], ...]
"""Status, participant and answer of each question."""


def after(state: State, call: Call) -> tuple[State, int | str]:
    """What one program alone would do: the next state, and what the caller is told."""
    if call.kind == "ask":
        for number, (status, owner, _) in enumerate(state):
            if status == "open" and owner == call.client:
                return state, number
        for number, (status, _, answer) in enumerate(state):
            if status == "expired":
                return _with(state, number, ("open", call.client, answer)), number
        return (*state, ("open", call.client, None)), len(state)
    if call.question >= len(state):
        return state, "unknown question"
    status, owner, answer = state[call.question]
    wanted = {"tell": "answered", "amend": "answered", "void": "voided", "expire": "expired"}[call.kind]
    given = call.answer if wanted == "answered" else answer
    if status == wanted and given == answer:
        return state, "ok"
    allowed = {"tell": ("open", "expired"), "amend": ("answered", "voided"), "expire": ("open",)}
    if status not in allowed.get(call.kind, (status,)):
        return state, "conflict"
    return _with(state, call.question, (wanted, owner, given)), "ok"


def _with(state: State, number: int, question: tuple[str, str | None, int | None]) -> State:
    return (*state[:number], question, *state[number + 1 :])


def fits(calls: list[Call], start: State, final: State) -> bool:
    """Whether some order of the calls that respects time explains all results and the final state."""
    order = sorted(calls, key=lambda call: call.begin)
    seen: set[tuple[frozenset[int], State]] = set()
    waiting: list[tuple[frozenset[int], State]] = [(frozenset(range(len(order))), start)]
    while waiting:
        left, state = waiting.pop()
        if (left, state) in seen:
            continue
        seen.add((left, state))
        if state == final and all(order[index].end == math.inf for index in left):
            return True
        first = min((order[index].end for index in left), default=math.inf)
        for index in left:
            if order[index].begin <= first:
                then, result = after(state, order[index])
                if order[index].result in (None, result):
                    waiting.append((left - {index}, then))
    return False


def state_of(study: aw.Study) -> State:
    return tuple(
        (entry.status, entry.participant, entry.answer and entry.answer.to_json()["prefers"])
        for entry in study.history()
    )


def calls_of(client: str, file: Path) -> Iterator[Call]:
    begun: Call | None = None
    for line in file.read_text().splitlines():
        try:
            what, *parts = json.loads(line)
        except json.JSONDecodeError:  # cut off in the middle
            break
        if what == "call":
            begun = Call(client, *parts)
        elif what == "return" and begun is not None:
            result, end = parts
            yield (
                Call(*vars(begun).values())
                if result is None
                else Call(*[*vars(begun).values()][:5], end, result)
            )
            begun = None
    if begun is not None:
        yield begun


def client(place: str, me: str, seed: int, start: float, file: Path) -> None:
    """Do this and that until time is up, and write down each call and what came of it."""
    source, study = random.Random(seed), aw.Study.open(place)
    with file.open("a", buffering=1) as out:
        while time.monotonic() < start + SECONDS:
            kind = source.choice(["ask", "ask", "tell", "tell", "amend", "void", "expire"])
            question, answer = source.randrange(5), source.randrange(2)
            out.write(json.dumps(["call", kind, question, answer, time.monotonic()]) + "\n")
            try:
                result: int | str | None = "ok"
                if kind == "ask":
                    result = study.ask(me).id
                else:
                    getattr(study, kind)(question, *([answer] if kind in ("tell", "amend") else []))
            except aw.NotFound:
                result = "unknown question"
            except aw.Conflict:
                result = "conflict"
            except OSError:
                result = None  # it may have happened
            out.write(json.dumps(["return", result, time.monotonic()]) + "\n")
            time.sleep(source.uniform(0, 0.02))


def history(place: str, seed: int, folder: Path) -> tuple[list[Call], State]:
    """What four clients did on a new study while they were disturbed, and its state in the end."""
    source = random.Random(seed)
    aw.Study(aw.Space(x=aw.Real(0, 1)), rule="random", initial=10**6, storage=place).close()
    start = time.monotonic()
    files = [folder / f"p{k}" for k in range(CLIENTS)]
    children = [
        forked(partial(client, place, file.name, 10 * seed + k, start, file), folder / "log")
        for k, file in enumerate(files)
    ]
    while time.monotonic() < start + SECONDS:
        time.sleep(source.uniform(0.02, 0.15))
        disturb(source.choice(children), place, source)
    for child in children:
        os.waitpid(child, 0)
    calls = [call for file in files if file.exists() for call in calls_of(file.name, file)]
    study = aw.Study.open(place)
    try:
        return calls, state_of(study)
    finally:
        study.close()


def disturb(victim: int, place: str, source: random.Random) -> None:
    what = source.choice(["stop", "stop", "stop", "kill", "cut"])
    if what == "kill" and source.random() < 0.3:
        os.kill(victim, signal.SIGKILL)
    elif what == "cut" and place.startswith("postgresql"):
        mine = "FROM pg_stat_activity WHERE application_name = current_setting('application_name')"
        postgres.run(place, f"SELECT pg_terminate_backend(pid) {mine} AND pid <> pg_backend_pid()")
    else:
        os.kill(victim, signal.SIGSTOP)
        time.sleep(source.uniform(0.02, 0.1))
        os.kill(victim, signal.SIGCONT)


def test_the_checker_finds_what_cannot_be():
    ask = Call("a", "ask", 0, 0, 1, 2, 0)
    opened: State = (("open", "a", None),)
    assert fits([ask], (), opened)
    assert not fits([ask, Call("b", "ask", 0, 0, 3, 4, 0)], (), opened)  # the same question to two people
    tell = Call("a", "tell", 0, 1, 3, 4, "ok")
    answered: State = (("answered", "a", 1),)
    assert fits([ask, tell], (), answered)
    assert not fits([ask, tell], (), opened)  # an answer that was lost
    assert fits([ask, Call("a", "tell", 0, 1, 3)], (), opened)  # of which nobody was told
    assert fits([ask, Call("a", "tell", 0, 1, 3)], (), answered)
    other = Call("b", "tell", 0, 0, 3.5, 5, "ok")
    assert not fits([ask, tell, other], (), answered)  # two different answers, both accepted
    assert fits([ask, tell, Call("b", "tell", 0, 0, 3.5, 5, "conflict")], (), answered)
    late = Call("b", "void", 0, 0, 5, 6, "ok")
    assert not fits([ask, tell, late], (), answered)  # the last call must show
    assert fits([ask, tell, late], (), (("voided", "a", 1),))


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
@pytest.mark.slow
def test_what_clients_saw_could_have_happened_one_after_the_other(tmp_path, engine):
    for seed in range(HISTORIES):
        folder = tmp_path / str(seed)
        folder.mkdir()
        if engine == "sqlite":
            calls, final = history(str(folder / "a.db"), seed, folder)
        else:
            with postgres.fresh_schema() as place:
                calls, final = history(f"{place}&application_name=history_{seed}", seed, folder)
        assert len(calls) > 10
        assert fits(calls, (), final), (seed, calls, final)
