"""Which runs of an experiment to compute together, and in which order."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import product

from askwise.bench.experiments import Experiment
from askwise.bench.functions import named
from askwise.bench.lanes import RunId, group_of


@dataclass(frozen=True)
class Task:
    """Runs to compute together; it is sent to other processes and machines."""

    experiment: Experiment
    ids: tuple[RunId, ...]
    device: str
    imports: tuple[str, ...] = ()  # modules that define rules and functions of the experiment
    others: tuple[Experiment, ...] = ()  # to which some of the runs belong


def run_ids(experiment: Experiment) -> list[RunId]:
    """Every run of an experiment: arm by arm, function by function."""
    counts = range(experiment.replicates)
    return [
        RunId(experiment.name, function, arm.label, replicate)
        for arm, function, replicate in product(experiment.arms, experiment.functions, counts)
    ]


def tasks_of(
    experiment: Experiment,
    done: Collection[RunId],
    device: str,
    lanes: int,
    imports: tuple[str, ...] = (),
    others: tuple[Experiment, ...] = (),
) -> list[Task]:
    """The remaining runs of an experiment and of ``others`` like it, in chunks of at most ``lanes``.

    Chunks of one group have nearly equal sizes, and the chunks left by a killed campaign are cut as before:
    the result of a lane depends, to rounding, on the other lanes in its chunk.
    """
    groups: dict[tuple[object, ...], list[RunId]] = defaultdict(list)
    for each in (experiment, *others):
        for run_id in run_ids(each):
            groups[group_of(each, run_id)].append(run_id)
    tasks = []
    for ids in groups.values():
        size = math.ceil(len(ids) / math.ceil(len(ids) / lanes))
        left = tuple(run_id for run_id in ids if run_id not in done)
        parts = [left[begin : begin + size] for begin in range(0, len(left), size)]
        tasks += [Task(experiment, part, device, imports, others) for part in parts]
    return tasks


class SlowestFirst:
    """An iterator over tasks, longest expected time first, so that no long one is left for the end.

    Rules differ in speed by a factor of thirty.  Their speed is measured during the campaign; rules without a
    measurement come first.
    """

    def __init__(self, tasks: Iterable[Task], known: Iterable[tuple[tuple[RunId, ...], float]] = ()) -> None:
        """``known``: runs that were measured before, and the seconds they took."""
        self._left: dict[str, list[Task]] = defaultdict(list)
        for task in sorted(tasks, key=lambda task: _work(task.ids)):
            self._left[task.ids[0].arm].append(task)
        self._spent: dict[str, tuple[float, int]] = defaultdict(lambda: (0.0, 0))
        self._given: dict[str, int] = defaultdict(int)
        for ids, seconds in known:
            self.learn(ids, seconds)

    def learn(self, ids: tuple[RunId, ...], seconds: float) -> None:
        """Record how long these runs took."""
        spent, work = self._spent[ids[0].arm]
        self._spent[ids[0].arm] = spent + seconds, work + _work(ids)

    def __iter__(self) -> Iterator[Task]:
        """This iterator."""
        return self

    def __next__(self) -> Task:
        """The slowest task left."""
        arms = [arm for arm, tasks in self._left.items() if tasks]
        if not arms:
            raise StopIteration
        arm = max(arms, key=self._expected)
        self._given[arm] += 1
        return self._left[arm].pop()

    def _expected(self, arm: str) -> tuple[float, int]:
        """Expected seconds of the arm's next task; among unmeasured arms, the least often tried is first."""
        spent, work = self._spent[arm]
        if work == 0:
            return math.inf, -self._given[arm]
        return spent / work * _work(self._left[arm][-1].ids), 0


def _work(ids: tuple[RunId, ...]) -> int:
    """A rough measure of cost for one arm: lanes times dimensions."""
    return sum(named(run_id.function).dim for run_id in ids)
