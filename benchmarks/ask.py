"""CPU time per step: add one answer, infer, choose the next query.

    python benchmarks/ask.py                      # prints the tables and writes docs/bench-ask.md
    python benchmarks/ask.py --before ../earlier  # beside an earlier version, in another folder

One thread, and a simulated user who answers the rule's own queries.  The second table has whole studies of
duels: learned kernels, refits and everything else that a user waits for.  Versions are measured in turns,
three times each, in processes of their own; the tables have the smallest figures.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read when scipy is imported

import torch
from torch import Tensor

import askwise as aw
from askwise.numerics import generator

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "docs" / "bench-ask.md"
RULES = {"ucb_phi": 1, "muc": 2, "thompson": 1}
ANSWERS = (20, 80, 160)
STEPS, STUDY, TURNS = 9, 100, 3

TITLE = """# Time to the next query

`make bench-ask`: CPU milliseconds per step (add one answer, infer, choose the next query) with a fixed
kernel, on one thread of a noisy 2-core cloud machine.{earlier}

"""
EARLIER = """ In brackets: the version before gradients, searches and
inference were written anew (fe78b4c), measured in turns with this one."""
STUDIES = """
Whole studies of {answers} duels about two parameters, by kernel: the median and the slowest question after
the first ten (the slowest are those at which the kernel is learned anew); after the last answer and the
question that follows, `status()` for the first time and again, and `best()`; milliseconds.

| kernel | a question | the slowest | status | status again | best |
|---|---|---|---|---|---|
{rows}

Start-up: the first question from a model, with all imports, takes {first:.2f} s of CPU, of which importing
torch takes {torch:.2f} s.
"""
FIRST = """
import askwise as aw
study = aw.Study(aw.Space(x=aw.Real(0, 1), y=aw.Real(0, 1)), feedback="duel", initial=2)
for answer in (1, 0):
    study.tell(study.ask(), answer)
study.ask()
"""
PEERS = """
For comparison, CPU seconds per step of other programs after 80 duels in 2-D, measured on a slower machine, on
which `muc` took 0.031 in place of the figure above:
BoTorch's EUBO 0.35 with a fixed kernel and 0.60 with a fitted one, AEPsych 0.6 to 1.7, Optuna-dashboard 0.8,
the EP-MUC of Takeno et al. (2023) 0.95, the code of the paper's authors under Octave 15.
"""


def worth(x: Tensor) -> Tensor:
    """The hidden utility: a bump and a ridge, on the same scale in every dimension."""
    gap = (x - 0.6).square().mean(-1)
    return 4 * torch.exp(-8 * gap) + torch.sin(9 * x[..., 0])


def answered(x: Tensor, source: torch.Generator) -> aw.Data:
    """The answers of a noisy user to queries [n, m, d]."""
    height = worth(x)
    score = height[:, 0] - 2 if x.shape[1] == 1 else height[:, 0] - height[:, 1]
    won = torch.rand(len(x), generator=source, dtype=torch.float64) < torch.special.ndtr(score)
    return aw.Data.binary(x[:, 0], won) if x.shape[1] == 1 else aw.Data.duels(x, won)


def seconds(name: str, m: int, d: int, n: int) -> float:
    """Median CPU seconds of the steps after n answers."""
    rule, kernel = aw.rules.parse(name), aw.kernel("matern52", [0.4] * d, 4.0)
    source = generator("ask", name, d, n)
    data = answered(torch.rand(n - 1, m, d, generator=source, dtype=torch.float64), source)
    question = torch.rand(1, m, d, generator=source, dtype=torch.float64)
    times = []
    for step in range(STEPS + 2):
        answer = answered(question, source)
        start = time.process_time()
        data = data + answer
        question = aw.next_query(data, rule, kernel, m, generator("ask", name, step)).points[None]
        times.append(time.process_time() - start)
    return statistics.median(times[2:])


def study_times(kernel: str) -> list[float]:
    """Median and longest time of a question in a study with this kernel; of two statuses, and of the best."""
    study = aw.Study(aw.Space(x=aw.Real(0, 1), y=aw.Real(0, 1)), feedback="duel", kernel=kernel, seed=1)
    source, times = generator("ask", "study", kernel), []
    for _ in range(STUDY):
        start = time.process_time()
        question = study.ask()
        times.append(time.process_time() - start)
        first, second = (worth(study.space.unit(option)) for option in question.options)
        won = torch.rand((), generator=source, dtype=torch.float64) < torch.special.ndtr(first - second)
        study.tell(question, int(not won))
    study.ask()  # what a status says of the next question is known then
    told = []
    for tell in (study.status, study.status, study.best):
        start = time.process_time()
        tell()
        told.append(time.process_time() - start)
    asked = times[10:]
    return [statistics.median(asked), max(asked), *told]


def startup(code: str) -> float:
    """CPU seconds of a new process that runs this, the median of five."""
    timed = f"import time\n{code}\nprint(time.process_time())"
    runs = [subprocess.run([sys.executable, "-c", timed], capture_output=True, text=True) for _ in range(5)]
    return statistics.median(float(run.stdout.split()[-1]) for run in runs)


def figures() -> dict[str, list[float]]:
    """All figures, in seconds, of the version that is imported."""
    torch.set_num_threads(1)
    found = {}
    for name, m in RULES.items():
        found[name] = [seconds(name, m, d, n) for d in (2, 6) for n in ANSWERS]
    found |= {kernel: study_times(kernel) for kernel in ("matern52", "averaged")}
    return found | {"start": [startup(FIRST), startup("import torch")]}


def measured(folders: list[Path]) -> list[dict[str, list[float]]]:
    """The smallest figures of each version, which are measured in turns."""
    best: list[dict[str, list[float]]] = [{} for _ in folders]
    for _ in range(TURNS):
        for found, folder in zip(best, folders, strict=True):
            environment = {**os.environ, "PYTHONPATH": str(folder.resolve() / "src")}
            command = [sys.executable, __file__, "--figures"]
            done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
            for name, new in json.loads(done.stdout).items():
                found[name] = list(map(min, found.get(name, new), new))
    return best


def main() -> None:
    """Measure and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--before", type=Path, help="folder of an earlier version to measure beside this one")
    parser.add_argument("--figures", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.figures:
        print(json.dumps(figures()))
        return
    versions = measured([ROOT] if options.before is None else [ROOT, options.before])

    def row(name: str) -> str:
        each = zip(*(version[name] for version in versions), strict=True)
        cells = [
            f"{1e3 * now:.1f}" + "".join(f" ({1e3 * old:.1f})" for old in others) for now, *others in each
        ]
        return f"| `{name}` | {' | '.join(cells)} |"

    head = " | ".join(f"{d}-D, n = {n}" for d in (2, 6) for n in ANSWERS)
    table = [f"| rule | {head} |", "|---" * (1 + 2 * len(ANSWERS)) + "|", *map(row, RULES)]
    rows = "\n".join(row(kernel) for kernel in ("matern52", "averaged"))
    first, alone = versions[0]["start"]
    studies = STUDIES.format(answers=STUDY, rows=rows, first=first, torch=alone)
    earlier = "" if options.before is None else EARLIER
    text = TITLE.format(earlier=earlier) + "\n".join(table) + "\n" + studies + PEERS
    OUT.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
