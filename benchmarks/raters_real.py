"""Real people: what is learned of listeners and observers, beside R's estimates from the same answers.

    python benchmarks/raters_real.py    # prints the tables and puts them into docs/bench-raters.md

Data and R's estimates are in tests/data, made by `Rscript benchmarks/raters.R tests/data`.
"""

import csv
import os
from pathlib import Path
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read when scipy is imported

import numpy as np
import torch
from gpytorch.kernels import Kernel, PolynomialKernel, ScaleKernel
from raters import head, put

import askwise as aw
from askwise.model import Belief
from askwise.numerics import generator
from askwise.study import Study

DATA = Path(__file__).resolve().parent.parent / "tests" / "data"
GUESS = 0.25  # four alternatives
WIDE = 1000.0  # prior variance of both parameters of a straight line, as good as none


def rows(name: str) -> list[dict[str, str]]:
    """A table of numbers."""
    with (DATA / f"{name}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def shuffled(answers: list[dict[str, Any]], *names: str) -> list[dict[str, Any]]:
    """In random order: the first ones, from which parameters are learned, are then like all."""
    order = torch.randperm(len(answers), generator=generator("real raters", *names))
    return [answers[index] for index in order.tolist()]


def listeners(answers: list[dict[str, str]], items: list[str], lapses: float | None) -> Study:
    """A population study of all listeners."""
    study = Study(
        aw.Space(mode=aw.Choice(items)), "duel", participants="population", kernel="matern52", lapses=lapses
    )
    told = [
        {
            "options": [{"mode": one["first"]}, {"mode": one["second"]}],
            "answer": 1 - int(one["won"]),
            "participant": one["listener"],
        }
        for one in answers
    ]
    study.record_many(shuffled(told, "listeners"))
    return study


def sound_tables() -> dict[str, str]:
    """Worths of eight ways to reproduce music, and how much listeners differ."""
    answers, estimates = rows("sound-quality"), rows("sound-quality-r")
    items = [one["item"] for one in estimates]
    worths, lines = [], head("lapses", "share of one's own", "with Bradley-Terry", "with Thurstone", "noise")
    for lapses in (None, 0.0):
        study = listeners(answers, items, lapses)
        worth = study.belief().mean(study.model.points([{"mode": item} for item in items]))
        worths.append((worth - worth.mean()).tolist())
        found = study.raters()
        assert found.share is not None
        assert found.share.interval is not None
        low, high = found.share.interval
        noises = np.array([one.noise.value for one in found.each])
        agree = [
            np.corrcoef(worths[-1], [float(one[name]) for one in estimates])[0, 1]
            for name in ("bradley_terry", "thurstone")
        ]
        spread = f"{np.median(noises):.2f}, {noises.min():.2f} to {noises.max():.2f}"
        numbers = f"{found.share.value:.2f} ({low:.2f} to {high:.2f}) | {agree[0]:.4f} | {agree[1]:.4f}"
        lines.append(f"| {'learned' if lapses is None else 'none'} | {numbers} | {spread} |")
    shown = head("reproduction", "ours, in noises of an answer", "Thurstone (R)", "Bradley-Terry (R)")
    for one, worth in zip(estimates, worths[0], strict=True):
        thurstone, logit = float(one["thurstone"]), float(one["bradley_terry"])
        shown.append(f"| {one['item']} | {worth:.2f} | {thurstone:.2f} | {logit:.2f} |")
    return {"sound": "\n".join(lines), "worths": "\n".join(shown)}


def straight_line() -> Kernel:
    """The prior of a straight line with an unknown intercept and slope."""
    kernel = ScaleKernel(PolynomialKernel(power=1)).double()
    kernel.outputscale, kernel.base_kernel.offset = WIDE, 1.0
    return kernel.requires_grad_(False)


def observer(part: list[dict[str, str]], lapses: float | None, kernel: Kernel | str) -> Study:
    """A yes/no study of one condition: correct or not, over contrast."""
    contrasts = [float(one["Contr"]) for one in part]
    space = aw.Space(contrast=aw.Real(min(contrasts), max(contrasts), log=True))
    study = Study(space, "binary", guess=GUESS, lapses=lapses, kernel=kernel)
    told = [
        {"options": [{"contrast": contrast}], "answer": answer}
        for contrast, one in zip(contrasts, part, strict=True)
        for answer, count in ((True, one["Correct"]), (False, one["Incorrect"]))
        for _ in range(int(count))
    ]
    study.record_many(shuffled(told, part[0]["task"], part[0]["Size"]))
    return study


def threshold(belief: Belief, space: aw.Space) -> float:
    """The contrast at which f is zero: half way from the guess rate to one."""
    x = torch.linspace(0, 1, 20_001, dtype=torch.float64)[:, None]
    below = belief.mean(x) < 0
    return float(space.natural(x[int(below.nonzero().max())])["contrast"])


def letters_table() -> str:
    """Thresholds of eight conditions."""
    lines = head("task", "letter height", "R", "its 95%", "straight line", "", "smooth curve", "")
    data = rows("ecc2")
    for one in rows("ecc2-r"):
        part = [row for row in data if (row["task"], float(row["Size"])) == (one["task"], float(one["size"]))]
        theirs, cells = float(one["threshold"]), []
        for lapses, kernel in ((0.0, straight_line()), (None, "matern52")):
            study = observer(part, lapses, kernel)
            ours = threshold(study.belief(), study.space)
            cells.append(f"{ours:.4f} | {ours / theirs - 1:+.1%}")
        side = 10 ** (1.96 * float(one["log10_deviation"]))
        numbers = f"{theirs:.4f} | {theirs / side:.4f} to {theirs * side:.4f} | {' | '.join(cells)}"
        lines.append(f"| {one['task']} | {one['size']} | {numbers} |")
    return "\n".join(lines)


if __name__ == "__main__":
    torch.set_num_threads(1)
    put({"letters": letters_table(), **sound_tables()})
