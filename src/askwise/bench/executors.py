"""Where work is done: in this process, in several processes on this machine, or on a Dask cluster.

An executor applies a function to tasks and yields results in order of completion.  It takes tasks one by one
when there is capacity, so that the caller can still choose the next one.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import islice
from typing import Any, Protocol, runtime_checkable

from askwise.bench.processes import Done, Input, Output, check_workers, without_interrupts
from askwise.bench.processes import Processes as Processes
from askwise.errors import Failed, extra

_RETRIES = 3
_AHEAD = 2  # tasks per thread of a cluster: one running, one waiting
_PATIENCE = 20  # seconds to find a scheduler


@runtime_checkable
class Executor(Protocol):
    """Applies a function to tasks."""

    name: str  # in about.json
    workers: int  # number of tasks it computes at once
    is_here: bool  # whether it computes on this machine

    def results(self, work: Callable[[Input], Output], tasks: Iterable[Input]) -> Done[Input, Output]:
        """Each task and its result, in order of completion."""


class ThisProcess:
    """One task after another, in this process."""

    name, workers, is_here = "this process", 1, True

    def results(self, work: Callable[[Input], Output], tasks: Iterable[Input]) -> Done[Input, Output]:
        """Each task and its result."""
        return ((task, work(task)) for task in tasks)


class DaskCluster:
    """The workers of a Dask cluster, which need askwise installed but no shared disk.

    A task whose worker dies is retried on another, up to three times.
    """

    name = "dask"

    def __init__(self, address: str, workers: int = 1) -> None:
        """``address``: of a scheduler, or ``local`` for a cluster of ``workers`` processes here."""
        check_workers(workers)
        self.address, self.workers, self.is_here = address, workers, address == "local"

    def results(self, work: Callable[[Input], Output], tasks: Iterable[Input]) -> Done[Input, Output]:
        """Each task and its result, in order of completion."""
        with extra("bench", "dask"):
            distributed: Any = import_module("distributed")  # only this executor needs it
        with _client(distributed, self.address, self.workers) as client:
            done = distributed.as_completed()
            given: dict[Any, Input] = {}
            waiting = iter(tasks)
            while True:
                # workers may have joined; those that died are restarted
                self.workers = max(self.workers, sum(client.nthreads().values()))
                for task in islice(waiting, max(0, _AHEAD * self.workers - len(given))):
                    future = client.submit(work, task, pure=False, retries=_RETRIES)
                    given[future] = task
                    done.add(future)
                if not given:
                    return
                future = next(done)
                yield given.pop(future), _result(distributed, future)


@contextmanager
def _client(distributed: Any, address: str, workers: int) -> Iterator[Any]:
    """A connection to the cluster; a local cluster is started and ended with it."""
    if address != "local":
        try:
            client = distributed.Client(address, timeout=_PATIENCE)
        except (OSError, ValueError) as error:
            got, advice = f"{address} ({error})", "Start one with `dask scheduler`, which prints its address."
            raise Failed("--dask", "be the address of a scheduler, or local", got, advice) from None
        with client:
            yield client
        return
    with without_interrupts():
        cluster = distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            memory_limit=0,
            dashboard_address="127.0.0.1:0",  # any free port
            silence_logs=logging.CRITICAL,  # no message when a worker dies: its task is retried
        )
    with cluster, distributed.Client(cluster) as client:
        yield client


def _result(distributed: Any, future: Any) -> Any:
    try:
        return future.result()
    except distributed.KilledWorker as error:
        got = f"{error.allowed_failures + 1} killed by the same runs"
        advice = "Give them more memory, or use fewer --lanes."
        raise Failed("workers", "survive until their runs are done", got, advice) from None
    finally:
        future.release()
