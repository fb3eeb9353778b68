"""The server under load: from an answer to the next question, memory, and what a killed server loses.

    make bench-web                                   # all of it, 20 minutes; writes docs/bench-web.md
    tests/with-postgres make bench-web               # also on PostgreSQL
    python benchmarks/web.py load --people 20        # one load
    python benchmarks/web.py kills --people 100      # kill -9 under load

Simulated people, each with a model of their own, answer duels about two parameters through `askwise serve`,
as a user starts it, on this machine.  The time is that of one request, which records the answer and brings
the next question.
"""

import argparse
import http.client
import json
import os
import random
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from crowd import new_schema

import askwise as aw
from askwise.study import load as load_study

OUT = Path(__file__).resolve().parent.parent / "docs" / "bench-web.md"
STUDY = """
[study]
name = "speed"
participants = "separate"
kernel = "matern52"
[space.gain]
type = "real"
low = 0
high = 40
[space.cutoff]
type = "real"
low = 100
high = 10000
log = true
"""
TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Load:
    """People who answer."""

    people: int
    before: int
    """Answers of everybody that are there at the beginning, on average."""
    think: float
    """Seconds between a question and its answer, on average; from 0.4 to 1.6 times as many."""
    seconds: float = 0.0
    """How long they answer."""

    def pause(self, rng: random.Random) -> float:
        """Seconds that somebody thinks."""
        return self.think * rng.uniform(0.4, 1.6)


@dataclass
class Seen:
    """What the people have seen of the server."""

    milliseconds: list[float] = field(default_factory=list)
    acknowledged: dict[int, int] = field(default_factory=dict)
    """Answers, by question."""
    sent: Counter[tuple[int, int]] = field(default_factory=Counter)
    """Questions with their answers, however often they had to be sent."""
    problems: list[str] = field(default_factory=list)


class Server:
    """`askwise serve`, which can be killed and started again."""

    def __init__(self, folder: Path, storage: str) -> None:
        """Start it."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        words = ["speed.toml", "--storage", storage, "--server-file", "keys.json", "--port", str(self.port)]
        self._command, self._folder = [sys.executable, "-m", "askwise", "serve", *words], folder
        self.token = ""
        self.start()

    def start(self) -> None:
        """Start it, and wait until it listens."""
        self._process = subprocess.Popen(self._command, cwd=self._folder, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.token = urlsplit(self._process.stdout.readline().strip()).query.partition("=")[2]

    def kill(self) -> None:
        """Kill it, as by kill -9."""
        self._process.kill()
        self._process.communicate()

    def usage(self) -> tuple[float, float]:
        """Megabytes in memory and seconds of CPU, of the server and of the processes that it started."""
        kilobytes = seconds = 0.0
        for process in (self._process.pid, *_children(self._process.pid)):
            status = Path(f"/proc/{process}/status").read_text()
            kilobytes += int(re.findall(r"VmRSS:\s+(\d+)", status)[0])
            times = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            seconds += (int(times[11]) + int(times[12])) / TICK
        return kilobytes / 1024, seconds


def _children(process: int) -> list[int]:
    return [
        int(child)
        for thread in Path(f"/proc/{process}/task").iterdir()
        for child in (thread / "children").read_text().split()
    ]


class Line:
    """A connection of one person, made anew when it is lost."""

    def __init__(self, server: Server, patience: float) -> None:
        """``patience``: seconds to go on trying; 0 if a lost connection is an error."""
        self._server, self._patience = server, patience
        self._connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """What the server answers."""
        latest = time.monotonic() + self._patience
        headers = {"Authorization": f"Bearer {self._server.token}", "Content-Type": "application/json"}
        while True:
            try:
                self._connection.request("POST", f"/api/v1/studies/speed/{path}", json.dumps(body), headers)
                response = self._connection.getresponse()
                text = response.read()
                if response.status == 200:
                    return json.loads(text)
                raise RuntimeError(f"{path}: {response.status} {text.decode()}")
            except (OSError, http.client.HTTPException):
                self._connection.close()
                if time.monotonic() > latest:
                    raise
                time.sleep(0.2)


def choice(options: list[dict[str, Any]], rng: random.Random) -> int:
    """The answer of somebody who likes a gain of 25 dB and a cutoff of 3 kHz."""
    values = [
        -(((one["gain"] - 25) / 10) ** 2) - abs(one["cutoff"] - 3000) / 2000 + rng.gauss(0, 0.7)
        for one in options
    ]
    return int(values[1] > values[0])


def prepare(folder: Path, storage: str, load: Load) -> None:
    """Write a study file, and a record in which everybody has about so many answers."""
    (folder / "speed.toml").write_text(STUDY)
    config = load_study(STUDY)
    with aw.Study.of(config.plan(), storage, config.name) as study:
        for person in range(load.people):
            rng = random.Random(person)
            spread = 0 if load.people == 1 else load.before // 6
            pairs = [
                [{"gain": rng.uniform(0, 40), "cutoff": 100 * 100 ** rng.random()} for _ in range(2)]
                for _ in range(load.before + rng.randint(-spread, spread))
            ]
            whose = {"participant": f"person {person}"}
            study.record_many([{"options": two, "answer": choice(two, rng), **whose} for two in pairs])


def answer(line: Line, person: int, load: Load, end: threading.Event, seen: Seen) -> None:
    """Answer until the end, and note how long each next question took."""
    rng = random.Random(person)
    time.sleep(load.pause(rng) * rng.random())
    try:
        question = line.post("ask", {"participant": f"person {person}"})
        while True:
            if end.wait(load.pause(rng)):
                return
            number, chosen = question["id"], choice(question["options"], rng)
            seen.sent[number, chosen] += 1
            began = time.perf_counter()
            question = line.post("tell", {"question": number, "answer": chosen, "next": True})["next"]
            seen.milliseconds.append(1000 * (time.perf_counter() - began))
            seen.acknowledged[number] = chosen
    except Exception as error:
        seen.problems.append(f"person {person}: {error!r}")


@contextmanager
def answering(server: Server, load: Load, patience: float = 0.0) -> Iterator[Seen]:
    """People who answer until the end of the block; what they see."""
    seen, end = Seen(), threading.Event()
    people = [
        threading.Thread(target=answer, args=(Line(server, patience), person, load, end, seen))
        for person in range(load.people)
    ]
    for one in people:
        one.start()
    try:
        yield seen
    finally:
        end.set()
        for one in people:
            one.join()


def lost(storage: str, seen: Seen) -> list[str]:
    """What the record has not as it was acknowledged, or has twice, or nobody sent."""
    with aw.Study.open(storage, "speed") as study:
        given = [event for event in study.events() if event.kind == "answered"]
    there = {event.question: event.body["answer"]["prefers"] for event in given}
    times = Counter(event.question for event in given)
    missing = [number for number, mark in seen.acknowledged.items() if there.get(number) != mark]
    twice = [number for number, count in times.items() if count > 1]
    invented = [number for number, mark in there.items() if not seen.sent[number, mark]]
    found = {"lost": missing, "recorded twice": twice, "sent by nobody": invented}
    return [f"{what}: {numbers}" for what, numbers in found.items() if numbers]


def measured(storage: str, load: Load) -> dict[str, Any]:
    """Times, memory, and whatever went wrong."""
    with tempfile.TemporaryDirectory() as name:
        prepare(Path(name), storage, load)
        server = Server(Path(name), storage)
        try:
            busy = os.getloadavg()[0]
            with answering(server, load) as seen:
                early = min(60.0, load.seconds / 3)  # until then models are made
                time.sleep(early)
                begun, count = server.usage(), len(seen.milliseconds)
                time.sleep(load.seconds - early)
                ended, answers = server.usage(), len(seen.milliseconds)
        finally:
            server.kill()
        cuts = statistics.quantiles(seen.milliseconds, n=100)
        return {
            "people": load.people,
            "answers": answers,
            "median": round(cuts[49]),
            "p95": round(cuts[94]),
            "p99": round(cuts[98]),
            "cpu": round(1000 * (ended[1] - begun[1]) / max(1, answers - count)),
            "memory": [round(begun[0]), round(ended[0])],
            "busy": round(busy, 1),
            "problems": seen.problems + lost(storage, seen),
        }


def killed(storage: str, load: Load, kills: int) -> dict[str, Any]:
    """What is lost if the server is killed so many times, at random moments under this load."""
    rng = random.Random(0)
    with tempfile.TemporaryDirectory() as name:
        prepare(Path(name), storage, load)
        server = Server(Path(name), storage)
        try:
            with answering(server, load, patience=300.0) as seen:
                for _ in range(kills):
                    before = len(seen.acknowledged)
                    while len(seen.acknowledged) < before + load.people // 4 and not seen.problems:
                        time.sleep(0.01)
                    time.sleep(rng.uniform(0, 0.5))
                    server.kill()
                    server.start()
        finally:
            server.kill()
        problems = seen.problems + lost(storage, seen)
        return {"kills": kills, "acknowledged": len(seen.acknowledged), "problems": problems}


def place(kind: str, folder: str) -> str:
    """The address of an empty database."""
    if kind == "SQLite":
        return f"{folder}/web.db"
    server = os.environ["ASKWISE_TEST_POSTGRES"]
    new_schema(server, "web")
    return f"{server}?options=-csearch_path%3Dweb"


LOADS = {
    "one participant, from 78 answers on": Load(1, 78, 2.5, 60),
    "20 participants, from about 60 answers on": Load(20, 60, 2.5, 60),
    "100 participants, from about 20 answers on": Load(100, 20, 5.0, 300),
}
KILLS = 50
PAGE = """# The server under load

Written by `tests/with-postgres make bench-web`. Simulated people, each with a model of their own with one
kernel (`kernel = "matern52"`), answer duels about two parameters through one `askwise serve`. The server, the
process that computes questions ahead, the simulated people and the database share {cores} cores. Time is from
sending an answer to having the next question, one request. Of 100 participants everybody answers every 5 s on
average, of 20 and of one every 2.5 s.

{table}

CPU: of the server and of the process beside it, for each answer. Memory: of both, after a third of the time
or one minute, and at the end. Load: the average number of processes that ran or waited to run in the minute
before. Errors: refused or failed requests, and answers that are lost, wrong or twice in the record.

**Killed servers.** The server is killed by `kill -9` while 100 participants answer, and started again;
everybody sends again what was not acknowledged.

{kills}
"""


def written(rows: list[str], kills: list[str]) -> None:
    """Write the page."""
    head = ("", "storage", "answers", "median", "95% within", "99% within", "CPU", "memory", "load", "errors")
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|", *rows]
    killed_head = [
        "| storage | times killed | acknowledged answers | lost, wrong or twice |",
        "|---|---|---|---|",
    ]
    cores = len(os.sched_getaffinity(0))
    tables = {"table": "\n".join(lines), "kills": "\n".join([*killed_head, *kills])}
    OUT.write_text(PAGE.format(cores=cores, **tables))


def row(name: str, kind: str, found: dict[str, Any]) -> str:
    """A line of the table."""
    times = [f"{found[part]} ms" for part in ("median", "p95", "p99", "cpu")]
    memory = "{} to {} MB".format(*found["memory"])
    cells = (name, kind, found["answers"], *times, memory, found["busy"], len(found["problems"]))
    return f"| {' | '.join(map(str, cells))} |"


def everything(kinds: list[str]) -> None:
    """Measure all, and write the page."""
    rows, kills = [], []
    for name, load in LOADS.items():
        for kind in kinds if load.people > 20 else kinds[:1]:
            with tempfile.TemporaryDirectory() as folder:
                found = measured(place(kind, folder), load)
            print(name, kind, json.dumps(found), flush=True)
            rows.append(row(name, kind, found))
    for kind in kinds:
        with tempfile.TemporaryDirectory() as folder:
            found = killed(place(kind, folder), LOADS["100 participants, from about 20 answers on"], KILLS)
        print(kind, json.dumps(found), flush=True)
        kills.append(f"| {kind} | {KILLS} | {found['acknowledged']} | {len(found['problems'])} |")
    written(rows, kills)


def main() -> None:
    """Do what the command says."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("what", choices=("all", "load", "kills"), nargs="?", default="all")
    arguments.add_argument("--people", type=int, default=20)
    arguments.add_argument("--before", type=int, default=60)
    arguments.add_argument("--think", type=float, default=2.5, help="seconds")
    arguments.add_argument("--seconds", type=float, default=60.0)
    arguments.add_argument("--kills", type=int, default=5)
    given = arguments.parse_args()
    kinds = ["SQLite", *(["PostgreSQL"] if "ASKWISE_TEST_POSTGRES" in os.environ else [])]
    load = Load(given.people, given.before, given.think, given.seconds)
    if given.what == "all":
        everything(kinds)
        return
    for kind in kinds:
        with tempfile.TemporaryDirectory() as folder:
            where = place(kind, folder)
            found = measured(where, load) if given.what == "load" else killed(where, load, given.kills)
        print(json.dumps({"storage": kind, **found}))


if __name__ == "__main__":
    main()
