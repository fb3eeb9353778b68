"""Several processes on this machine, each of which may be killed without harm."""

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

__all__ = ["Processes", "check_workers", "deaf_to_interrupts"]

Task = TypeVar("Task")
Result = TypeVar("Result")
_TRIES = 3
_NO_TASK: Any = object()
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def check_workers(workers: int) -> None:
    """Refuse a number of workers that is none."""
    if workers < 1:
        raise ValueError(f"workers must be 1 or more; got {workers}. Give as many as there are cores.")


class Processes:
    """Tasks computed by processes with one thread each.

    A process that dies is replaced, and its task tried again, up to three times.  An error that the
    work raises is raised here.  If this process dies, however suddenly, its workers end themselves.
    """

    name = "processes"
    is_here = True

    def __init__(self, workers: int) -> None:
        """So many processes; they start when there is work."""
        check_workers(workers)
        self.workers = workers

    def results(
        self, work: Callable[[Task], Result], tasks: Iterable[Task]
    ) -> Generator[tuple[Task, Result], None, None]:
        """Each task and its result, in the order in which they are done."""
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
                    worker = busy[pipe]  # type: ignore[index]  # what is waited for are these pipes
                    if (done := worker.done()) is not None:
                        yield done
        finally:
            for worker in team:
                worker.end()


class _Worker:
    """A process for one task at a time, started when there is one, and again if it dies."""

    def __init__(self, work: Callable[[Any], Any]) -> None:
        self.work = work
        self.process: multiprocessing.process.BaseProcess | None = None
        self.pipe: Connection | None = None
        self.task, self.tries = _NO_TASK, 0

    @property
    def is_idle(self) -> bool:
        return self.task is _NO_TASK

    def give(self, task: Any) -> None:
        """Let it compute this."""
        self.task, self.tries = task, self.tries + 1
        if self.process is None:
            self._start()
        assert self.pipe is not None
        with suppress(OSError):  # dead already: the empty pipe will tell
            self.pipe.send(task)

    def done(self) -> tuple[Any, Any] | None:
        """The task and its result; None if the process died, and another tries it again."""
        assert self.pipe is not None
        try:
            is_well, result = self.pipe.recv()
        except (EOFError, OSError):
            self._try_again()
            return None
        if not is_well:
            raise result
        task, self.task, self.tries = self.task, _NO_TASK, 0
        return task, result

    def end(self) -> None:
        """End the process, whatever it is doing."""
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
        context = multiprocessing.get_context("spawn")  # a fork would share the state of threads and GPUs
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, self.work), daemon=True)
        with deaf_to_interrupts(), _environment(_ONE_THREAD):
            self.process.start()
        theirs.close()  # so that the pipe ends with the process

    def _try_again(self) -> None:
        assert self.process is not None
        self.process.join(2)
        how = self.process.exitcode
        self.end()
        if self.tries == _TRIES:
            cause = f"signal {-how}" if how is not None and how < 0 else f"exit code {how}"
            raise ChildProcessError(
                f"worker must live until its runs are done; got {_TRIES} that ended by {cause}. "
                "Give it more memory, or fewer lanes (--lanes)."
            )
        self.give(self.task)


def _serve(pipe: Connection, work: Callable[[Any], Any]) -> None:
    """The whole life of a worker."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(EOFError, OSError):  # nobody is there any more
        while True:
            task = pipe.recv()
            try:
                reply = True, work(task)
            except Exception as error:
                reply = False, _portable(error)
            pipe.send(reply)


def _end_with_parent() -> None:
    """A worker whose results nobody waits for must not go on for hours."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _portable(error: Exception) -> Exception:
    """The error with its traceback as text, which is lost on the way otherwise."""
    text = traceback.format_exc()
    try:
        error.add_note(f"In a worker:\n{text}")
        pickle.loads(pickle.dumps(error))
    except Exception:  # of whatever kind: a class may ask for anything to be made
        return RuntimeError(text)
    return error


@contextmanager
def deaf_to_interrupts() -> Iterator[None]:
    """Ctrl-C is for who started the workers: processes and threads that begin in here never hear it."""
    resource_tracker.ensure_running()  # which, if it were started in here, would open our ears again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Variables for processes that begin in here."""
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
