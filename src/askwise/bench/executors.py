"""Where chunks of runs are computed: in this process, in several on this machine, or by Dask on many.

An executor knows nothing of benchmarks: it applies a function to tasks, and hands back results as they come.
Tasks are taken one by one as there is room for them, so that whoever gives them may still choose the next.
"""

import logging
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, Protocol, TypeVar, runtime_checkable

from askwise.bench.processes import Processes as Processes
from askwise.bench.processes import check_workers, deaf_to_interrupts

__all__ = ["DaskCluster", "Executor", "Processes", "ThisProcess"]

Task = TypeVar("Task")
Result = TypeVar("Result")
_RETRIES = 3
_AHEAD = 2  # tasks for each thread of a cluster: one that is computed, one that waits
_PATIENCE = 20  # seconds to find a scheduler


@runtime_checkable
class Executor(Protocol):
    """Something that computes."""

    @property
    def name(self) -> str:
        """What it is called in the records of a campaign."""

    @property
    def workers(self) -> int:
        """How many tasks it computes at once."""

    @property
    def is_here(self) -> bool:
        """Whether it computes on this machine."""

    def results(
        self, work: Callable[[Task], Result], tasks: Iterable[Task]
    ) -> Generator[tuple[Task, Result], None, None]:
        """Each task and its result, in the order in which they are done."""


class ThisProcess:
    """One task after another, here."""

    name = "this process"
    workers = 1
    is_here = True

    def results(
        self, work: Callable[[Task], Result], tasks: Iterable[Task]
    ) -> Generator[tuple[Task, Result], None, None]:
        """Each task and its result."""
        for task in tasks:
            yield task, work(task)


class DaskCluster:
    """The workers of a Dask cluster, which need askwise installed but share no disk with us.

    A task whose worker dies is given to another, up to three times.
    """

    name = "dask"

    def __init__(self, address: str, workers: int = 1) -> None:
        """``address``: that of a scheduler, or ``local`` for a cluster of so many processes here."""
        check_workers(workers)
        self.address, self.workers, self.is_here = address, workers, address == "local"

    def results(
        self, work: Callable[[Task], Result], tasks: Iterable[Task]
    ) -> Generator[tuple[Task, Result], None, None]:
        """Each task and its result, as the cluster delivers them."""
        distributed = _distributed()
        with _client(distributed, self.address, self.workers) as client:
            done = distributed.as_completed()
            given: dict[Any, Task] = {}
            waiting = iter(tasks)
            while True:
                # others may have joined; one that has died will be back
                self.workers = max(self.workers, sum(client.nthreads().values()))
                for task in islice(waiting, max(0, _AHEAD * self.workers - len(given))):
                    future = client.submit(work, task, pure=False, retries=_RETRIES)
                    given[future] = task
                    done.add(future)
                if not given:
                    return
                future = next(done)
                yield given.pop(future), _result(distributed, future)


def _distributed() -> Any:
    """Dask's package for clusters, which only this executor needs."""
    try:
        import distributed
    except ImportError as error:
        raise ImportError(
            f"dask must be installed for a cluster; got none ({error}). Run `pip install askwise[bench]`."
        ) from error
    return distributed


@contextmanager
def _client(distributed: Any, address: str, workers: int) -> Iterator[Any]:
    """A connection to the cluster, which ends with the cluster itself if that is ours."""
    if address != "local":
        try:
            client = distributed.Client(address, timeout=_PATIENCE)
        except (OSError, ValueError) as error:
            raise OSError(
                f"--dask must be the address of a scheduler, or local; got {address} ({error}). "
                "Start one with `dask scheduler`, which shows its address."
            ) from None
        with client:
            yield client
        return
    with deaf_to_interrupts():
        cluster = distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            memory_limit=0,
            dashboard_address=None,
            silence_logs=logging.CRITICAL,  # a worker that dies is no news: its task is tried again
        )
    with cluster, distributed.Client(cluster) as client:
        yield client


def _result(distributed: Any, future: Any) -> Any:
    try:
        return future.result()
    except distributed.KilledWorker as error:
        raise ChildProcessError(
            f"workers must live until their runs are done; got {error.allowed_failures + 1} killed by the "
            "same runs. Give them more memory, or fewer lanes (--lanes)."
        ) from None
    finally:
        future.release()
