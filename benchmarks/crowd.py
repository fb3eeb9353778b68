"""Many programs on one study: how many questions each gets answered, and how long it waits for one.

    python benchmarks/crowd.py [--seconds 25]    # prints the table and puts it into docs/data-safety.md

Each program asks and answers as fast as it can, on one thread: duels in 2-D, a learned kernel, simulated
answers.
With a server in ASKWISE_TEST_POSTGRES (``tests/with-postgres make bench-crowd``) also through PostgreSQL.
"""

import argparse
import os
import re
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read when scipy is imported

import sqlalchemy as sa
import torch

import askwise as aw
from askwise.study import Simulation
from askwise.study.simulation import SimulatedUser

OUT = Path(__file__).resolve().parent.parent / "docs" / "data-safety.md"
SPACE = aw.Space(gain=aw.Real(0, 1), tone=aw.Real(0, 1))
PROGRAMS = (1, 2, 4, 8)
EARLY = 100  # answers


@dataclass(frozen=True)
class Asked:
    """One question."""

    answers: int
    """How many there were when it was asked."""
    seconds: float


def asks(place: str, person: int, seconds: float, start: Barrier) -> list[Asked]:
    """The questions that one program is asked in this time."""
    torch.set_num_threads(1)
    study = aw.Study(SPACE, storage=place, seed=1, kernel="matern52")
    user = SimulatedUser(Simulation(study.plan, 0, 1, seed=1), 0)
    found = []
    start.wait()
    end = time.monotonic() + seconds
    while (before := time.monotonic()) < end:
        question = study.ask(str(person))
        found.append(Asked(study.count(), time.monotonic() - before))
        study.tell(question, user.answer(question))
    study.close()
    return found


def crowd(place: str, programs: int, seconds: float) -> list[list[Asked]]:
    """The questions that each of several programs is asked."""
    context = get_context("spawn")
    with context.Manager() as manager, context.Pool(programs) as pool:
        start = manager.Barrier(programs)
        tasks = [(place, person, seconds, start) for person in range(programs)]
        return pool.starmap(asks, tasks, chunksize=1)


def row(name: str, found: list[list[Asked]]) -> str:
    """A line of the table."""
    counts = [len(one) for one in found]
    together = [asked for one in found for asked in one]
    early = [asked.seconds for asked in together if asked.answers < EARLY]
    few, many = min(counts), max(counts)
    each = f"{few}" if few == many else f"{few} to {many}"
    cells = (
        *(name, len(found), sum(counts), each),
        *(f"{1000 * statistics.median(early):.0f} ms", f"{max(early):.2f} s"),
        f"{max(asked.seconds for asked in together):.2f} s",
    )
    return f"| {' | '.join(map(str, cells))} |"


@contextmanager
def places() -> Iterator[dict[str, str]]:
    """An address for each kind of storage, with %d for the number of programs."""
    server = os.environ.get("ASKWISE_TEST_POSTGRES")
    with tempfile.TemporaryDirectory() as folder:
        found = {"SQLite": f"{folder}/%d.db"}
        if server is not None:
            found["PostgreSQL"] = f"{server}?options=-csearch_path%%3Dcrowd%d"
        yield found


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=25.0)
    seconds = parser.parse_args().seconds
    early = f"below {EARLY} answers"
    head = ("storage", "programs", "answers", "of each", f"median ask {early}", f"slowest ask {early}")
    lines = [f"| {' | '.join(head)} | slowest ask |", "|---" * 7 + "|"]
    with places() as storages:
        for name, place in storages.items():
            for programs in PROGRAMS:
                if name == "PostgreSQL":
                    new_schema(os.environ["ASKWISE_TEST_POSTGRES"], f"crowd{programs}")
                lines.append(row(name, crowd(place % programs, programs, seconds)))
                print(lines[-1], flush=True)
    table = "\n".join(lines)
    text = OUT.read_text()
    OUT.write_text(
        re.sub(r"(?<=<!-- crowd -->\n\n).*?(?=\n<!-- end -->)", lambda _: table + "\n", text, flags=re.DOTALL)
    )


def new_schema(server: str, name: str) -> None:
    """Make an empty schema."""
    engine = sa.create_engine(sa.make_url(server).set(drivername="postgresql+psycopg"))
    with engine.begin() as connection:
        connection.exec_driver_sql(f"DROP SCHEMA IF EXISTS {name} CASCADE")
        connection.exec_driver_sql(f"CREATE SCHEMA {name}")
    engine.dispose()


if __name__ == "__main__":
    main()
