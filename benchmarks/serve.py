"""From an answer to the next question, through the server, with simulated people who think for a while.

    python benchmarks/serve.py [--people 20] [--before 60] [--answers 25]

Each has a model of their own.  The server is `askwise serve` as a user starts it; the time is that of one
request, which records the answer and brings the next question.
"""

import argparse
import http.client
import json
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import askwise as aw
from askwise.study import load

STUDY = """
[study]
name = "speed"
participants = "separate"
storage = "speed.db"
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
THINK = (1.0, 4.0)  # seconds


def choice(options: list[dict[str, Any]], rng: random.Random) -> int:
    """The answer of somebody who likes a gain of 25 dB and a cutoff of 3 kHz."""
    values = [
        -(((one["gain"] - 25) / 10) ** 2) - abs(one["cutoff"] - 3000) / 2000 + rng.gauss(0, 0.7)
        for one in options
    ]
    return int(values[1] > values[0])


def prepared(folder: Path, people: int, before: int) -> Path:
    """A study file, and a record in which everybody has about so many answers."""
    file = folder / "speed.toml"
    file.write_text(STUDY)
    config = load(file)
    with aw.Study.of(config.plan(), folder / "speed.db", config.name) as study:
        for person in range(people):
            rng = random.Random(person)
            count = before if people == 1 else rng.randint(max(0, before - 10), before + 10)
            options = [
                [{"gain": rng.uniform(0, 40), "cutoff": 100 * 100 ** rng.random()} for _ in range(2)]
                for _ in range(count)
            ]
            study.record_all(
                [
                    {"options": two, "answer": choice(two, rng), "participant": f"person {person}"}
                    for two in options
                ]
            )
    return file


@contextmanager
def serving(file: Path) -> Iterator[tuple[str, str]]:
    """A server; its address and token."""
    command = [sys.executable, "-m", "askwise", "serve", file.name]
    with subprocess.Popen(command, cwd=file.parent, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        link = urlsplit(server.stdout.readline().strip())
        try:
            yield link.netloc, link.query.partition("=")[2]
        finally:
            server.terminate()


def answer(place: str, token: str, person: int, count: int, times: list[float]) -> None:
    """Answer so many questions, and note how long each next one took."""
    line, rng = http.client.HTTPConnection(place), random.Random(person)

    def post(path: str, body: dict[str, Any]) -> Any:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        line.request("POST", f"/api/v1/studies/speed/{path}", json.dumps(body), headers)
        response = line.getresponse()
        text = response.read()
        assert response.status == 200, text
        return json.loads(text)

    time.sleep(rng.uniform(0, THINK[1]))
    question = post("ask", {"participant": f"person {person}"})
    for _ in range(count):
        time.sleep(rng.uniform(*THINK))
        told = {"question": question["id"], "answer": choice(question["options"], rng), "next": True}
        began = time.perf_counter()
        question = post("tell", told)["next"]
        times.append(1000 * (time.perf_counter() - began))


def main() -> None:
    """Print the distribution of times."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--people", type=int, default=20)
    arguments.add_argument("--before", type=int, default=60)
    arguments.add_argument("--answers", type=int, default=25)
    given = arguments.parse_args()
    times: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        file = prepared(Path(folder), given.people, given.before)
        with serving(file) as (place, token):
            people = [
                threading.Thread(target=answer, args=(place, token, person, given.answers, times))
                for person in range(given.people)
            ]
            for one in people:
                one.start()
            for one in people:
                one.join()
    cuts = statistics.quantiles(times, n=100)
    print(
        f"{given.people} people, {len(times)} answers from about {given.before} each on: "
        f"median {cuts[49]:.0f} ms, 95% within {cuts[94]:.0f} ms, slowest {max(times):.0f} ms"
    )


if __name__ == "__main__":
    main()
