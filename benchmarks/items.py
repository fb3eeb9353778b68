"""Duels about the items of real tables, or about a box whose settings stand for the nearest item.

Concrete: 992 distinct mixtures of eight ingredients, the stronger the better; also with the logarithm of the
age.  Biomass: 535 fuels by five elements, the more heat the better (both from R's package modeldata).
Diabetes: 442 patients with ten measurements (scikit-learn), the further progressed the better.  Worths have a
standard deviation of 2 in units of the noise of an answer.  Regret: by how much the best item exceeds the
recommended one, in the same units.  Run by `make bench-items`, which needs R with modeldata; tables are kept
in out/bench-items.
"""

import argparse
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.spatial import cKDTree
from scipy.special import ndtr
from scipy.stats import t as student

import askwise as aw

_FOLDER = Path("out/bench-items")
_EXPORT = {
    "concrete": "aggregate(compressive_strength ~ ., data = modeldata::concrete, FUN = mean)",
    "biomass": "aggregate(HHV ~ carbon + hydrogen + oxygen + nitrogen + sulfur, modeldata::biomass, mean)",
}
_AGE = 7  # column of concrete
_SPREAD = 2.0  # standard deviation of worths, in units of the noise of an answer
_DRAWN = 200_000  # points of the box, to see for how many of them an item stands

Array = np.ndarray[Any, Any]
Table = tuple[Array, Array]
"""Features scaled to the unit cube, and worths."""


def _from_r(name: str) -> Array:
    """A table of R's modeldata, worths last."""
    path = _FOLDER / f"{name}.csv"
    if not path.exists():
        _FOLDER.mkdir(parents=True, exist_ok=True)
        command = f'write.csv({_EXPORT[name]}, "{path}", row.names = FALSE)'
        subprocess.run(["Rscript", "-e", command], check=True)
    return np.genfromtxt(path, delimiter=",", skip_header=1)


def _concrete_log() -> Array:
    """Mixtures with the logarithm of their age."""
    rows = _from_r("concrete")
    rows[:, _AGE] = np.log(rows[:, _AGE])
    return rows


def _diabetes() -> Array:
    """Measurements of patients, and how far their disease progressed."""
    path = _FOLDER / "diabetes.csv"
    if not path.exists():
        from sklearn.datasets import load_diabetes

        _FOLDER.mkdir(parents=True, exist_ok=True)
        np.savetxt(
            path, np.column_stack(load_diabetes(return_X_y=True)), delimiter=",", header="x", comments=""
        )
    return np.genfromtxt(path, delimiter=",", skip_header=1)


_TABLES: dict[str, Callable[[], Array]] = {
    "biomass": partial(_from_r, "biomass"),
    "diabetes": _diabetes,
    "concrete": partial(_from_r, "concrete"),
    "concrete-log-age": _concrete_log,
}


def table(name: str) -> Table:
    """Features in the unit cube, and worths."""
    rows = _TABLES[name]()
    x, y = rows[:, :-1], rows[:, -1]
    return (x - x.min(0)) / np.ptp(x, 0), _SPREAD * (y - y.mean()) / y.std()


def share_of_best(x: Array, worth: Array) -> tuple[float, int]:
    """The share of the box for which the best item stands, and how many items stand for more."""
    drawn = np.random.default_rng(0).random((_DRAWN, x.shape[1]))
    shares = np.bincount(cKDTree(x).query(drawn)[1], minlength=len(x)) / _DRAWN
    best = shares[worth.argmax()]
    return float(best), int((shares > best).sum())


def regret(name: str, duels: int, job: tuple[int, bool]) -> float:
    """Regret of the recommended item after some duels with a simulated person."""
    (seed, as_items), (x, worth) = job, table(name)
    torch.set_num_threads(1)
    if as_items:
        space: Any = aw.Items(x)

        def item(setting: dict[str, Any]) -> int:
            return int(setting["item"])

    else:
        space = aw.Space({f"x{k}": aw.Real(0, 1) for k in range(x.shape[1])})

        def item(setting: dict[str, Any]) -> int:
            return int(((x - list(setting.values())) ** 2).sum(1).argmin())

    study, chance = aw.Study(space, seed=seed, lapses=0, kernel="matern52"), np.random.default_rng(seed)
    for _ in range(duels):
        question = study.ask()
        one, other = (worth[item(option)] for option in question.options)
        study.tell(question, int(chance.random() > ndtr(one - other)))
    return float(worth.max() - worth[item(study.best().params)])


def main() -> None:
    """Print mean regrets, and the mean of paired differences with its 95% interval, as rows of a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--duels", type=int, default=60)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("tables", nargs="*", default=list(_TABLES))
    options = parser.parse_args()
    for name in options.tables:
        (x, worth), started = table(name), time.perf_counter()
        jobs = [(seed, as_items) for seed in range(options.runs) for as_items in (True, False)]
        with ProcessPoolExecutor(options.workers) as pool:
            found = np.array(list(pool.map(partial(regret, name, options.duels), jobs))).reshape(-1, 2)
        apart = found[:, 0] - found[:, 1]
        half = student.ppf(0.975, len(apart) - 1) * apart.std(ddof=1) / len(apart) ** 0.5
        difference = f"{apart.mean():.2f} ({apart.mean() - half:.2f} to {apart.mean() + half:.2f})"
        share, larger = share_of_best(x, worth)
        cells = [name, len(x), x.shape[1], f"{share * len(x):.1f} ({larger + 1})"]
        cells += [f"{mean:.2f}" for mean in found.mean(0)] + [difference]
        print(f"| {' | '.join(map(str, cells))} |  {time.perf_counter() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
