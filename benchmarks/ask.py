"""CPU time per step: add one answer, infer, choose the next query.

    python benchmarks/ask.py    # prints the tables and writes docs/bench-ask.md

One thread, and a simulated user who answers the rule's own queries.  The second table has whole studies of
duels: learned kernels, refits and everything else that a user waits for.
"""

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

OUT = Path(__file__).resolve().parent.parent / "docs" / "bench-ask.md"
RULES = {"ucb_phi": 1, "muc": 2, "thompson": 1}
ANSWERS = (20, 80, 160)
STEPS, STUDY = 9, 100

TITLE = """# Time to the next query

`make bench-ask`: CPU milliseconds per step (add one answer, infer, choose the next query) with a fixed
kernel, on one thread of a noisy 2-core cloud machine.

"""
STUDIES = """
Whole studies of {answers} duels about two parameters, by kernel: the median and the slowest question after
the first ten (the slowest are those at which the kernel is learned anew), and `status()` after the last
answer, for the first time and again; milliseconds.

| kernel | a question | the slowest | status | status again |
|---|---|---|---|---|
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


def study_row(kernel: str) -> str:
    """Times of a study with this kernel."""
    study = aw.Study(aw.Space(x=aw.Real(0, 1), y=aw.Real(0, 1)), feedback="duel", kernel=kernel, seed=1)
    source, times = generator("ask", "study", kernel), []
    for _ in range(STUDY):
        start = time.process_time()
        question = study.ask()
        times.append(time.process_time() - start)
        first, second = (worth(study.space.unit(option)) for option in question.options)
        won = torch.rand((), generator=source, dtype=torch.float64) < torch.special.ndtr(first - second)
        study.tell(question, int(not won))
    statuses = []
    for _ in range(2):
        start = time.process_time()
        study.status()
        statuses.append(time.process_time() - start)
    asked = times[10:]
    cells = [statistics.median(asked), max(asked), *statuses]
    return f"| `{kernel}` | {' | '.join(f'{1e3 * cell:.1f}' for cell in cells)} |"


def startup(code: str) -> float:
    """CPU seconds of a new process that runs this, the median of five."""
    timed = f"import time\n{code}\nprint(time.process_time())"
    runs = [subprocess.run([sys.executable, "-c", timed], capture_output=True, text=True) for _ in range(5)]
    return statistics.median(float(run.stdout.split()[-1]) for run in runs)


def main() -> None:
    """Measure and write the tables."""
    torch.set_num_threads(1)
    head = " | ".join(f"{d}-D, n = {n}" for d in (2, 6) for n in ANSWERS)
    lines = [f"| rule | {head} |", "|---" * (1 + 2 * len(ANSWERS)) + "|"]
    for name, m in RULES.items():
        cells = [f"{1e3 * seconds(name, m, d, n):.1f}" for d in (2, 6) for n in ANSWERS]
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    table = "\n".join(lines)
    rows = "\n".join(study_row(kernel) for kernel in ("matern52", "averaged"))
    starts = {"first": startup(FIRST), "torch": startup("import torch")}
    studies = STUDIES.format(answers=STUDY, rows=rows, **starts)
    OUT.write_text(TITLE + table + "\n" + studies + PEERS)
    print(studies)


if __name__ == "__main__":
    main()
