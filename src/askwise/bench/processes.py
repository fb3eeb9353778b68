"""Worker processes on this machine; killing one does no harm."""

import multiprocessing
import os
import pickle
import signal
import threading
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

from askwise.errors import Failed, Refused

Input = TypeVar("Input")
Output = TypeVar("Output")
Done = Generator[tuple[Input, Output], None, None]  # tasks and their results
_TRIES = 3
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
# glibc gives freed memory back and fetches it again, thousands of pages a step: two fifths of the time
_KEPT_MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": str(2**30),
    "MALLOC_TRIM_THRESHOLD_": str(2**32),
    "MALLOC_TOP_PAD_": str(2**27),
}


def check_workers(workers: int) -> None:
    """Refuse to compute without workers."""
    if workers < 1:
        raise Refused("workers", "be 1 or more", workers, "Use one per core.")


class Processes:
    """Processes of one thread each.

    A process that dies is replaced and its task tried again, up to three times.  An error raised by the
    work is raised here.  If this process dies, its workers exit.
    """

    name, is_here = "processes", True

    def __init__(self, workers: int) -> None:
        """Processes start when there is work."""
        check_workers(workers)
        self.workers = workers

    def results(self, work: Callable[[Input], Output], tasks: Iterable[Input]) -> Done[Input, Output]:
        """Each task and its result, in order of completion."""
        waiting, team, idle = iter(tasks), list[_Worker](), list[_Worker]()
        busy: dict[Any, tuple[_Worker, Input, int]] = {}  # by pipe; the number counts tries of the task

        def give(task: Input, tries: int) -> None:
            if not idle:
                team.append(_Worker(work))
                idle.append(team[-1])
            worker = idle.pop()
            busy[worker.pipe] = worker, task, tries
            with suppress(OSError):  # it has died: the closed pipe will be noticed below
                worker.pipe.send(task)

        try:
            while True:
                for task in islice(waiting, self.workers - len(busy)):
                    give(task, 1)
                if not busy:
                    return
                for pipe in wait(list(busy)):
                    worker, task, tries = busy.pop(pipe)
                    try:
                        succeeded, result = worker.pipe.recv()
                    except (EOFError, OSError):
                        worker.bury(tries)
                        give(task, tries + 1)
                        continue
                    if not succeeded:
                        raise result
                    idle.append(worker)
                    yield task, result
        finally:
            for worker in team:
                worker.end()


class _Worker:
    """A process that does one task at a time."""

    def __init__(self, work: Callable[[Any], Any]) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would copy the state of threads and GPUs
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, work), daemon=True)
        with without_interrupts(), _environment(_ONE_THREAD | _KEPT_MEMORY):
            self.process.start()
        theirs.close()  # so that the pipe closes with the process

    def end(self) -> None:
        """Stop the process, even in the middle of a task."""
        self.pipe.close()
        self.process.terminate()
        self.process.join(2)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()

    def bury(self, tries: int) -> None:
        """Clean up after a process that died; give up if its task has killed too many."""
        self.process.join(2)
        how = self.process.exitcode
        self.end()
        if tries == _TRIES:
            cause = f"signal {-how}" if how is not None and how < 0 else f"exit code {how}"
            got, advice = f"{_TRIES} that ended by {cause}", "Give it more memory, or use fewer --lanes."
            raise Failed("worker", "survive until its runs are done", got, advice)


def _serve(pipe: Connection, work: Callable[[Any], Any]) -> None:
    """Main loop of a worker."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(EOFError, OSError):  # the parent is gone
        while True:
            task = pipe.recv()
            try:
                reply = True, work(task)
            except Exception as error:
                reply = False, _portable(error)
            pipe.send(reply)


def _end_with_parent() -> None:
    """Exit when the parent does, even in the middle of a task."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _portable(error: Exception) -> Exception:
    """The error with its traceback as a note, since pickling drops tracebacks."""
    text = traceback.format_exc()
    try:
        error.add_note(f"In a worker:\n{text}")
        pickle.loads(pickle.dumps(error))
    except Exception:  # unpickling calls the class of the error, which may raise anything
        return RuntimeError(text)
    return error


@contextmanager
def without_interrupts() -> Iterator[None]:
    """Block SIGINT in processes and threads started inside the block: Ctrl-C is for the main process."""
    resource_tracker.ensure_running()  # starting it inside the block would unblock SIGINT
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Environment variables for processes started inside the block."""
    before = {name: os.environ[name] for name in values if name in os.environ}
    os.environ.update(values)
    try:
        yield
    finally:
        for name in values:
            del os.environ[name]
        os.environ.update(before)
