"""Processes for tests that kill them or let many write at once, and the databases they write to."""

import os
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import postgres

PROCESSES = 8
LONGEST = 120  # seconds that a child may live


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path):
    """The address of an empty database."""
    if request.param == "sqlite":
        yield str(tmp_path / "studies.db")
    else:
        with postgres.fresh_schema() as address:
            yield address


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """Fail what hangs."""

    def late(*_: object) -> None:
        raise AssertionError(f"still running after {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def forked(work: Callable[[], object], log: Path) -> int:
    """The id of a child that does this work; what goes wrong there is in the log."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the child neither returns nor uses threads
        child = os.fork()
    if child:
        return child
    status = 1
    try:
        signal.alarm(LONGEST)
        os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
        work()
        status = 0
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(status)


def finish(children: list[int], log: Path) -> None:
    """Wait until all are done; fail if one failed, said anything or did not come to an end."""
    deadline = time.monotonic() + LONGEST
    running, failed = set(children), []
    while running and time.monotonic() < deadline:
        for child in list(running):
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                running.discard(child)
                failed += [status] if status else []
        time.sleep(0.002)
    for child in running:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    said = log.read_text() if log.exists() else ""
    assert (said, failed, running) == ("", [], set())


def at_once(work: Callable[[int], object], log: Path, processes: int = PROCESSES) -> None:
    """Do the work in many processes that start at the same moment."""
    waiting, gate = os.pipe()

    def start(number: int) -> None:
        os.close(gate)
        os.read(waiting, 1)  # ends when the parent closes its side
        work(number)

    children = [forked(lambda number=number: start(number), log) for number in range(processes)]
    os.close(waiting)
    os.close(gate)
    finish(children, log)
