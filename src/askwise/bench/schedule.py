"""Which runs of an experiment to compute together, and which of them first."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import product

from askwise.bench.experiments import Experiment
from askwise.bench.functions import FUNCTIONS
from askwise.bench.lanes import Cell
from askwise.bench.problems import Problem

__all__ = ["SlowestFirst", "Task", "cells_of", "tasks_of"]


@dataclass(frozen=True)
class Task:
    """Cells to be run together, and where; it goes to other processes and machines."""

    experiment: Experiment
    cells: tuple[Cell, ...]
    device: str


def cells_of(experiment: Experiment) -> list[Cell]:
    """Every run of an experiment: arm by arm, function by function."""
    counts = range(experiment.replicates)
    return [
        Cell(experiment.name, function, arm.label, replicate)
        for arm, function, replicate in product(experiment.arms, experiment.functions, counts)
    ]


def tasks_of(experiment: Experiment, done: Collection[Cell], device: str, lanes: int) -> list[Task]:
    """What is still to do, in chunks of at most so many lanes.

    Chunks of one kind are of nearly equal size, and cut so that those left of a campaign that was killed
    are the same as they were: lanes agree with others beside them only to rounding.
    """
    kinds: dict[tuple[object, ...], list[Cell]] = defaultdict(list)
    for cell in cells_of(experiment):
        kinds[_kind(experiment, cell)].append(cell)
    tasks = []
    for cells in kinds.values():
        size = math.ceil(len(cells) / math.ceil(len(cells) / lanes))
        left = [cell for cell in cells if cell not in done]
        tasks += [
            Task(experiment, tuple(left[begin : begin + size]), device) for begin in range(0, len(left), size)
        ]
    return tasks


def _kind(experiment: Experiment, cell: Cell) -> tuple[object, ...]:
    """What runs must share to be computed together: arm, number of dimensions, kernel."""
    problem = Problem.of(cell.function, experiment.scale)
    known = problem.hyperparameters(experiment.prior)
    return cell.arm, problem.function.dim, None if known is None else known.kernel


class SlowestFirst:
    """Tasks in the order of the time they are expected to take, so that none is waited for alone at the end.

    Rules differ by a factor of thirty.  How slow one is, is learned on the way; one that is not known yet
    comes first.
    """

    def __init__(self, tasks: Iterable[Task], known: Iterable[tuple[tuple[Cell, ...], float]] = ()) -> None:
        """All tasks that there are, and what is known already: cells, and the seconds they took."""
        self._left: dict[str, list[Task]] = defaultdict(list)
        for task in sorted(tasks, key=lambda task: _work(task.cells)):
            self._left[task.cells[0].arm].append(task)
        self._spent: dict[str, tuple[float, int]] = defaultdict(lambda: (0.0, 0))
        self._given: dict[str, int] = defaultdict(int)
        for cells, seconds in known:
            self.learn(cells, seconds)

    def learn(self, cells: tuple[Cell, ...], seconds: float) -> None:
        """Runs of this arm took so long."""
        spent, work = self._spent[cells[0].arm]
        self._spent[cells[0].arm] = spent + seconds, work + _work(cells)

    def __iter__(self) -> Iterator[Task]:
        """Itself: what is taken is gone."""
        return self

    def __next__(self) -> Task:
        """The slowest of those left."""
        arms = [arm for arm, tasks in self._left.items() if tasks]
        if not arms:
            raise StopIteration
        arm = max(arms, key=self._expected)
        self._given[arm] += 1
        return self._left[arm].pop()

    def _expected(self, arm: str) -> tuple[float, int]:
        """Seconds of the arm's next task; of arms not known, the least often tried come first."""
        spent, work = self._spent[arm]
        if work == 0:
            return math.inf, -self._given[arm]
        return spent / work * _work(self._left[arm][-1].cells), 0


def _work(cells: tuple[Cell, ...]) -> int:
    """Roughly what time grows with, for one arm: lanes and dimensions."""
    return sum(FUNCTIONS[cell.function].dim for cell in cells)
