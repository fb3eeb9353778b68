"""Duels about the items of real tables, or about a box whose settings stand for the nearest item.

Concrete: 992 distinct mixtures of eight ingredients (R's package modeldata), the stronger the better.
Diabetes: 442 patients with ten measurements (scikit-learn), the further progressed the better.  Worths have a
standard deviation of 2 in units of the noise of an answer.  Regret: by how much the best item exceeds the
recommended one, in the same units.  Run by `make bench-items`, which needs R with modeldata for concrete.
"""

import argparse
import csv
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtr
from scipy.stats import t as student
from sklearn.datasets import load_diabetes

import askwise as aw

_EXPORT = """
data(concrete, package = "modeldata")
means <- aggregate(compressive_strength ~ ., data = concrete, FUN = mean)
write.csv(means, "{path}", row.names = FALSE)
"""
_SPREAD = 2.0  # standard deviation of worths, in units of the noise of an answer

Table = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]
"""Features scaled to the unit cube, and worths."""


def concrete() -> Table:
    """Mixtures, and the mean strength of each."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "concrete.csv"
        subprocess.run(["Rscript", "-e", _EXPORT.format(path=path)], check=True)
        with path.open() as file:
            rows = np.array([list(map(float, row)) for row in list(csv.reader(file))[1:]])
    return _scaled(rows[:, :-1], rows[:, -1])


def diabetes() -> Table:
    """Measurements of patients, and how far their disease progressed."""
    return _scaled(*load_diabetes(return_X_y=True))


def _scaled(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> Table:
    return (x - x.min(0)) / np.ptp(x, 0), _SPREAD * (y - y.mean()) / y.std()


def regret(table: Table, as_items: bool, seed: int, duels: int) -> float:
    """Regret of the recommended item after some duels with a simulated person."""
    x, worth = table
    if as_items:
        space: Any = aw.Items(x)

        def item(setting: dict[str, Any]) -> int:
            return int(setting["item"])

    else:
        space = aw.Space({f"x{k}": aw.Real(0, 1) for k in range(x.shape[1])})

        def item(setting: dict[str, Any]) -> int:
            return int(((x - list(setting.values())) ** 2).sum(1).argmin())

    study, chance = aw.Study(space, seed=seed, lapses=0), np.random.default_rng(seed)
    for _ in range(duels):
        question = study.ask()
        one, other = (worth[item(option)] for option in question.options)
        study.tell(question, int(chance.random() > ndtr(one - other)))
    return float(worth.max() - worth[item(study.best().params)])


def main() -> None:
    """Print mean regrets, and the mean of paired differences with its 95% interval."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="seed of the first run")
    parser.add_argument("--duels", type=int, default=60)
    parser.add_argument("tables", nargs="*", default=["concrete", "diabetes"])
    options = parser.parse_args()
    tables: dict[str, Callable[[], Table]] = {"concrete": concrete, "diabetes": diabetes}
    for name in options.tables:
        table, started = tables[name](), time.perf_counter()
        found = []
        for seed in range(options.first, options.first + options.runs):
            found.append([regret(table, as_items, seed, options.duels) for as_items in (True, False)])
            print(f"{name} {seed}: items {found[-1][0]:.2f}, box {found[-1][1]:.2f}", flush=True)
        each = np.array(found)
        apart = each[:, 0] - each[:, 1]
        half = student.ppf(0.975, len(apart) - 1) * apart.std(ddof=1) / len(apart) ** 0.5
        seconds = time.perf_counter() - started
        print(
            f"{name}: {len(table[1])} items, {options.runs} runs of {options.duels} duels: regret of items "
            f"{each[:, 0].mean():.2f}, of the box {each[:, 1].mean():.2f}, difference {apart.mean():.2f}, "
            f"95% from {apart.mean() - half:.2f} to {apart.mean() + half:.2f} ({seconds:.0f} s)",
            flush=True,
        )


if __name__ == "__main__":
    main()
