"""What a study tells its user against what is true, over many simulated studies: ``make bench-calibration``.

    python benchmarks/calibration.py run [--workers N] [--kernel matern52] [--functions a,b] [--replicates N]
    python benchmarks/calibration.py page      # tables and figure of docs/calibration.md from the results

Studies of duels and of yes/no questions about the paper's functions, scaled to standard deviations of 1, 3
and 10 times the noise of an answer.  They run in lanes: each is asked and told what `aw.Study` with the same
seed would ask and tell, with learned kernels and lapses.  Finished chunks are kept beside the results, so
that an interrupted run goes on where it was.  A run needs neither matplotlib nor SQLAlchemy.
"""

import argparse
import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read when scipy is imported

import numpy as np
import torch
from gpytorch.kernels import Kernel
from torch import Tensor

import askwise as aw
from askwise.bench.chunks import write_atomically
from askwise.bench.executors import Executor, Processes, ThisProcess
from askwise.bench.functions import FUNCTIONS
from askwise.bench.problems import Problem
from askwise.bench.published import PAPER
from askwise.bench.user import User
from askwise.loop import ask
from askwise.model import Belief, Data, Kernels, Observer, averaged, fit, infer, lanes_by, refit_count
from askwise.numerics import generator, one_thread, sobol
from askwise.search import Search
from askwise.study import Answer, Model, Plan, Situation, expectations, next_question
from askwise.study.model import applied, expected_people
from askwise.study.questions import shown_order

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results" / "calibration" / "rows.npz"
KINDS, LEVELS = ("duel", "binary"), (1, 3, 10)
CHECKPOINTS = (10, 20, 30, 40, 60, 80)
REPLICATES = 10
CANDIDATES = 8  # settings at random, of which the truly best one is the reference
SETTINGS = 2**14  # of which the share that is truly better is counted
LANES = {"cpu": 16, "cuda": 340}  # studies computed together
COLUMNS = [
    ("feedback", "U6"),
    ("function", "U24"),
    ("d", "i2"),
    ("level", "i2"),
    ("replicate", "i2"),
    ("answers", "i2"),
    ("random", "f4"),  # what the study says of the recommended setting: preferred to a random one, or works
    ("true_random", "f4"),
    ("reference", "f4"),  # preferred to the reference; yes/no: more likely to work than that
    ("true_reference", "f4"),
    ("better", "f4"),  # really better than the reference
    ("true_better", "?"),
    ("ordinary", "f4"),  # really better than one setting at random
    ("true_ordinary", "f4"),
    ("best", "f4"),  # no setting asked about is better
    ("true_best", "?"),
    ("gain", "f4"),
    ("regret", "f4"),
    ("true_regret", "f4"),
    ("rate", "f4"),
    ("true_rate", "f4"),
    ("few", "f4"),  # fewer than one setting in a hundred is noticeably better
    ("true_share", "f4"),  # of settings that are
]
Rows = np.ndarray
"""Of COLUMNS: what a study said after so many answers, each beside the truth."""


@dataclass(frozen=True, order=True)
class Case:
    """One simulated study."""

    feedback: str
    function: str
    level: int
    """Standard deviation of the utility in units of the noise of an answer."""
    replicate: int

    @property
    def seed(self) -> int:
        """Of the study."""
        return generator("calibration", *astuple(self)).initial_seed() % 2**31

    @property
    def dimension(self) -> int:
        """Number of parameters."""
        return FUNCTIONS[self.function].dim

    def plan(self, kernel: str | None = None) -> Plan:
        """The study, with this kernel or the default one."""
        space = aw.Space(**{f"x{k}": aw.Real(0, 1) for k in range(self.dimension)})
        return Plan.checked(space, self.feedback, seed=self.seed, kernel=kernel)


@dataclass(frozen=True)
class Task:
    """Studies to compute together."""

    cases: tuple[Case, ...]
    device: str
    kernel: str | None


class Lanes:
    """Studies of one kind and dimension in lockstep."""

    def __init__(self, cases: Sequence[Case], device: str = "cpu", kernel: str | None = None) -> None:
        """Nothing has been asked yet."""
        self.cases, self.device = cases, torch.device(device)
        self.plans = [case.plan(kernel) for case in cases]
        self.kind, self.m, self.d = self.plans[0].kind, self.plans[0].size, cases[0].dimension
        self.initial, self.rule = self.plans[0].initial, self.plans[0].rule
        self.questions: list[Tensor] = []
        self.answers: list[Tensor] = []
        self.belief: Belief | None = None
        self._learned_from = 0

    # truth

    def values(self, x: Tensor) -> Tensor:
        """Utilities at points [lane, .., d], in units of the noise."""
        found = x.new_empty(x.shape[:-1])
        for (name, level), lanes in self._functions.items():
            found[lanes] = level * Problem.of(name, "standardised").value(x[lanes])
        return found

    @cached_property
    def _functions(self) -> dict[tuple[str, int], Tensor]:
        groups = lanes_by((case.function, case.level) for case in self.cases)
        return {key: lanes.to(self.device) for key, lanes in groups.items()}

    @cached_property
    def top(self) -> Tensor:
        """The highest utility of each lane."""
        best = [case.level * Problem.of(case.function, "standardised").best for case in self.cases]
        return torch.tensor(best, dtype=torch.float64, device=self.device)

    @cached_property
    def everywhere(self) -> Tensor:
        """Utilities of settings all over the space [lane, k]."""
        return self.values(sobol(self.d, SETTINGS).to(self.device).expand(len(self.cases), -1, -1))

    @cached_property
    def references(self) -> Tensor:
        """The setting that is used so far [lane, 1, d]: the best of some at random."""
        best = self.values(self.candidates).argmax(-1)[:, None, None]
        return self.candidates.gather(1, best.expand(-1, 1, self.d))

    @cached_property
    def candidates(self) -> Tensor:
        """Settings at random [lane, k, d]."""
        drawn = [
            torch.rand(CANDIDATES, self.d, generator=self._source(case, "reference"), dtype=torch.float64)
            for case in self.cases
        ]
        return torch.stack(drawn).to(self.device)

    @cached_property
    def _chances(self) -> Tensor:
        """The random numbers that decide the answers [lane, n]."""
        drawn = [
            torch.rand(max(CHECKPOINTS), generator=self._source(case, "answers"), dtype=torch.float64)
            for case in self.cases
        ]
        return torch.stack(drawn).to(self.device)

    def _source(self, case: Case, purpose: str) -> torch.Generator:
        return generator("calibration", *astuple(case), purpose)

    # studies

    @property
    def count(self) -> int:
        """Answers so far."""
        return len(self.answers)

    def step(self) -> None:
        """Ask the next question of each study and answer it."""
        query = self.query()
        answered = User().answers(self.values(query), self._chances[:, self.count, None])
        self.questions.append(query)
        self.answers.append(answered[:, 0])
        self.belief = self._infer() if self.count >= self.initial else None

    def query(self) -> Tensor:
        """The next question [lane, m, d] as it is shown: a space-filling one until there is a model."""
        if self.belief is None:
            return self._space_filling(range(len(self.cases)))
        sources = [generator("askwise study", plan.seed, self.count) for plan in self.plans]
        order = [shown_order(plan, Situation(self.count, ()), self.m) for plan in self.plans]
        shown = torch.tensor(order, device=self.device)[..., None].expand(-1, -1, self.d)
        query = ask(self.belief, self.rule, self.m, sources).gather(1, shown)
        if missing := (~self.ready).nonzero()[:, 0].tolist():
            query[missing] = self._space_filling(missing)
        return query

    def _space_filling(self, lanes: Sequence[int]) -> Tensor:
        found = []
        for lane in lanes:
            plan = self.plans[lane]
            options, _ = next_question(Model(plan), Situation(self.count, ()))
            found.append(torch.stack([plan.space.unit(setting) for setting in options]))
        return torch.stack(found).to(self.device)

    @property
    def ready(self) -> Tensor:
        """Which studies have a model: yes/no answers must have both outcomes."""
        said = torch.stack(self.answers, 1)
        mixed = said.any(1) & ~said.all(1)
        return torch.ones_like(mixed) if self.kind.compares else mixed

    def _infer(self) -> Belief:
        known = refit_count(self.count)
        warm = self.belief
        if known != self._learned_from:
            self._learn(self._data(known))
            self._learned_from, warm = known, None
        return infer(applied(self.people, self._data(self.count)), self.prior, warm=warm)

    def _learn(self, data: Data) -> None:
        """Kernel and lapses, as `Model` learns them where there are no ties."""
        observer, learn = expected_people(self.plans[0].people, data)
        rough = self.plans[0].averages
        fitted = fit(data, self.plans[0].expected_kernel(), observer=observer, learn=learn, roughly=rough)
        self.prior: Kernel | Kernels = fitted.kernel
        self.people: Observer | None = fitted.observer
        if self.plans[0].averages:
            count = refit_count(self.count)
            sources = [generator("askwise study", plan.seed, "kernels", count) for plan in self.plans]
            self.prior = averaged(applied(self.people, data), fitted.kernel, sources)

    def _data(self, count: int) -> Data:
        asked, said = torch.stack(self.questions[:count], 1), torch.stack(self.answers[:count], 1)
        return self._rows(asked, said)

    def _rows(self, asked: Tensor, said: Tensor) -> Data:
        return Data.duels(asked, said) if self.kind.compares else Data.binary(asked[:, :, 0], said)

    # what they tell

    def told(self) -> Rows:
        """What each study that has a model says, and the truth."""
        belief = self.belief
        assert belief is not None
        search = Search.around(belief, self._sources("best"))
        point = self.kind.champion(search, belief)
        query, threshold = self.query(), self.plans[0].people.threshold
        chances = self.kind.chances(belief, query, self._sources("answers")[0], threshold)
        look = expectations.expectations(
            *(self.kind, belief, self.prior, search, query, chances, self._answered),
            source=self._sources("outlook"),
        )
        asked, reference = torch.stack(self.questions, 1).flatten(1, 2), self.references
        here, others = self.values(point)[:, 0], self.values(asked)
        apart = here - self.values(reference)[:, 0]
        crowd = search.space_filling(expectations.CROWD)
        first = torch.cat([here[:, None], others], -1).argmax(-1)
        alike = torch.cat([torch.ones_like(here[:, None]) > 0, expectations.same(point, asked)], -1)
        success, compares = torch.special.ndtr, self.kind.compares
        against_crowd = here[:, None] - self.values(crowd)
        columns = {
            "random": expectations.chance(self.kind, belief, search, point, None),
            "true_random": success(against_crowd).mean(-1) if compares else success(here),
            "reference": expectations.chance(self.kind, belief, search, point, reference),
            "true_reference": success(apart) if compares else (apart > 0).double(),
            "better": belief.probability_of_better(point, reference)[:, 0],
            "true_better": apart > 0,
            "ordinary": belief.probability_of_better(point, self.candidates[:, :1])[:, 0],
            "true_ordinary": (here > self.values(self.candidates)[:, 0]).double(),
            "best": expectations.confidence(belief, point, asked, self._sources("best of them")),
            "true_best": alike.gather(1, first[:, None])[:, 0],
            "gain": look.gain,
            "regret": look.regret,
            "true_regret": self.top - here,
            "rate": look.rate,
            "true_rate": expectations.rate(self.kind, self.top, here),
            "few": look.few,
            "true_share": expectations.is_better(self.kind, self.everywhere, here[:, None]).double().mean(-1),
        }
        rows = np.zeros(len(self.cases), COLUMNS)
        for name, column in columns.items():
            rows[name] = column.cpu().numpy()
        for lane, case in enumerate(self.cases):
            feedback, function, level, replicate = astuple(case)
            names = feedback, function, case.dimension, level, replicate, self.count
            for column, value in zip(COLUMNS, names, strict=False):
                rows[lane][column[0]] = value
        return rows[self.ready.cpu().numpy()]

    def _answered(self, query: Tensor, answer: Answer) -> Data:
        outcome = torch.full((len(self.cases), 1), answer == self.kind.either[0], device=self.device)
        return applied(self.people, self._rows(query[:, None], outcome))

    def _sources(self, purpose: str) -> list[torch.Generator]:
        return [expectations.source(plan.seed, purpose) for plan in self.plans]


@one_thread()
def computed(task: Task) -> Rows:
    """What the studies of a task say at each checkpoint."""
    lanes, rows = Lanes(task.cases, task.device, task.kernel), []
    with torch.no_grad():
        while lanes.count < max(CHECKPOINTS):
            lanes.step()
            if lanes.count in CHECKPOINTS:
                rows.append(lanes.told())
    return np.concatenate(rows)


# campaign


def cases(functions: Sequence[str], replicates: int) -> list[Case]:
    """All studies."""
    grid = product(KINDS, functions, LEVELS, range(replicates))
    return [Case(*each) for each in grid]


def tasks(wanted: Sequence[Case], device: str, lanes: int, kernel: str | None) -> Iterator[Task]:
    """Chunks of studies of one kind and dimension, the slowest first."""
    groups = lanes_by((case.dimension, case.feedback) for case in wanted)
    for _, members in sorted(groups.items(), reverse=True):
        for some in members.split(lanes):
            yield Task(tuple(wanted[lane] for lane in some.tolist()), device, kernel)


def run(
    wanted: Sequence[Case], out: Path, executor: Executor, device: str, lanes: int, kernel: str | None = None
) -> Rows:
    """Rows of all studies; those that were computed before are read."""
    folder, begun = out.with_suffix(".chunks"), time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    kept = [np.load(path) for path in sorted(folder.glob("*.npz"))]
    kept += [np.load(out)] if out.exists() else []
    rows = [one["rows"] for one in kept]
    done = {Case(*each) for one in kept for each in zip(*(one[name].tolist() for name in NAMES), strict=True)}
    left = [case for case in wanted if case not in done]
    for task, found in executor.results(computed, tasks(left, device, lanes, kernel)):
        write(folder / f"{name_of(task.cases)}.npz", task.cases, found)
        rows.append(found)
        done.update(task.cases)
        print(f"{len(done)} of {len(wanted)} studies after {time.perf_counter() - begun:.0f} s", flush=True)
    every = np.unique(np.concatenate(rows))
    write(out, sorted(done), every)
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    return every


NAMES = ("feedbacks", "functions", "levels", "replicates")
"""Arrays that name the studies of a file."""


def write(path: Path, some: Sequence[Case], rows: Rows) -> None:
    """Keep the rows of these studies."""
    columns = zip(*map(astuple, some), strict=True)
    held: dict[str, Any] = dict(zip(NAMES, map(np.array, columns), strict=True)) | {"rows": rows}
    write_atomically(path, lambda file: np.savez_compressed(file, **held))


def name_of(some: Sequence[Case]) -> str:
    """A name for a file with these studies."""
    return hashlib.blake2b(repr(some).encode(), digest_size=12).hexdigest()


def main() -> None:
    """Run the studies, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=["run", "page"])
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--lanes", type=int, help="studies computed together")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--functions", default=",".join(PAPER))
    parser.add_argument("--replicates", type=int, default=REPLICATES)
    parser.add_argument("--kernel", help="of the studies, if not the default one")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    if given.what == "page":
        import calibration_page  # draws, which a run need not

        calibration_page.write(given.out)
        return
    executor = Processes(given.workers) if given.workers > 1 else ThisProcess()
    wanted = [
        case
        for case in cases(given.functions.split(","), given.replicates)
        if case.feedback in given.kinds.split(",")
    ]
    lanes = given.lanes or LANES[given.device.partition(":")[0]]
    rows = run(wanted, given.out, executor, given.device, lanes, given.kernel)
    print(f"{len(rows)} rows of {len(wanted)} studies in {given.out}")


if __name__ == "__main__":
    main()
