"""Worker processes on this machine; killing one does no harm."""

import multiprocessing
import os
import pickle
import signal
import threading
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

from askwise.errors import Failed, Refused

Input = TypeVar("Input")
Output = TypeVar("Output")
_TRIES = 3
_NO_TASK: Any = object()
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def check_workers(workers: int) -> None:
    """Refuse to compute without workers."""
    if workers < 1:
        raise Refused("workers", "be 1 or more", workers, "Use one per core.")


class Processes:
    """Processes of one thread each.

    A process that dies is replaced and its task tried again, up to three times.  An error raised by the
    work is raised here.  If this process dies, its workers exit.
    """

    name = "processes"
    is_here = True

    def __init__(self, workers: int) -> None:
        """Processes start when there is work."""
        check_workers(workers)
        self.workers = workers

    def results(
        self, work: Callable[[Input], Output], tasks: Iterable[Input]
    ) -> Generator[tuple[Input, Output], None, None]:
        """Each task and its result, in order of completion."""
        waiting, team = iter(tasks), [_Worker(work) for _ in range(self.workers)]
        try:
            while True:
                for worker in team:
                    if worker.is_idle and (task := next(waiting, _NO_TASK)) is not _NO_TASK:
                        worker.give(task)
                busy = {worker.pipe: worker for worker in team if worker.pipe and not worker.is_idle}
                if not busy:
                    return
                for pipe in wait(list(busy)):
                    worker = busy[pipe]  # type: ignore[index]  # only these pipes are waited for
                    if (done := worker.done()) is not None:
                        yield done
        finally:
            for worker in team:
                worker.end()


class _Worker:
    """A process for one task at a time, started on demand, and again if it dies."""

    def __init__(self, work: Callable[[Any], Any]) -> None:
        self.work = work
        self.process: multiprocessing.process.BaseProcess | None = None
        self.pipe: Connection | None = None
        self.task, self.tries = _NO_TASK, 0

    @property
    def is_idle(self) -> bool:
        return self.task is _NO_TASK

    def give(self, task: Any) -> None:
        """Start this task."""
        self.task, self.tries = task, self.tries + 1
        if self.process is None:
            self._start()
        assert self.pipe is not None
        with suppress(OSError):  # it has died: `done` will notice the closed pipe
            self.pipe.send(task)

    def done(self) -> tuple[Any, Any] | None:
        """The task and its result; None if the process died and its successor retries the task."""
        assert self.pipe is not None
        try:
            succeeded, result = self.pipe.recv()
        except (EOFError, OSError):
            self._try_again()
            return None
        if not succeeded:
            raise result
        task, self.task, self.tries = self.task, _NO_TASK, 0
        return task, result

    def end(self) -> None:
        """Stop the process, even in the middle of a task."""
        if self.process is None or self.pipe is None:
            return
        self.pipe.close()
        self.process.terminate()
        self.process.join(2)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.process = self.pipe = None

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would copy the state of threads and GPUs
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, self.work), daemon=True)
        with without_interrupts(), _environment(_ONE_THREAD):
            self.process.start()
        theirs.close()  # so that the pipe closes with the process

    def _try_again(self) -> None:
        assert self.process is not None
        self.process.join(2)
        how = self.process.exitcode
        self.end()
        if self.tries == _TRIES:
            cause = f"signal {-how}" if how is not None and how < 0 else f"exit code {how}"
            raise Failed(
                "worker",
                "survive until its runs are done",
                f"{_TRIES} that ended by {cause}",
                "Give it more memory, or use fewer --lanes.",
            )
        self.give(self.task)


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
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
