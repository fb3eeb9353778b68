"""Time and memory of inference, beside BoTorch and scikit-learn: ``make bench-core``.

Every cell of the tables is measured in its own process, on one thread, on the same answers as its
neighbours.  The report goes to the terminal and to ``docs/bench-core.md``.
"""

import ctypes
import math
import os
import platform
import resource
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import partial
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import askwise as aw
from askwise.belief import Belief

REPORT = Path(__file__).parents[1] / "docs" / "bench-core.md"
SIZES, TINY, POINTS = (20, 80, 320, 1000), 8, 1000
LANES, LANE_SIZE = 256, 80
LENGTHSCALE, OUTPUTSCALE = 0.3, 4.0
BLOCKS, STACK = (1, 10, 100, 1000), 2e9  # points that a peer may evaluate jointly; bytes of its matrices
SECONDS, LONG = 0.7, 5.0  # for the repeats of a cell; too long for repeats
PACKAGES = ("askwise", "torch", "gpytorch", "botorch", "scikit-learn", "numpy", "scipy")

Job = Callable[[], object]


@dataclass(frozen=True)
class Cell:
    """One thing to measure: a task of some size, and who does it."""

    task: str
    who: str
    n: int


@dataclass(frozen=True)
class Result:
    """What a cell took; in the tables "14 ms, 21 sweeps, 3 MB"."""

    ms: float
    megabytes: float
    sweeps: float | None
    converged: bool

    def __str__(self) -> str:  # noqa: D105
        taken = f"{self.ms:.3g} ms" if self.ms < 1000 else f"{self.ms / 1000:.3g} s"
        sweeps = "" if self.sweeps is None else f", {self.sweeps:.0f} sweeps"
        memory = f"{self.megabytes:.0f} MB" if self.megabytes >= 1 else "< 1 MB"
        return f"{taken}{sweeps}, {memory}" + ("" if self.converged else " NOT CONVERGED")


def prior(factor: float = 1.0) -> Any:
    """The kernel of every contender; a factor of the variance makes up for another link."""
    return aw.kernel("se", [LENGTHSCALE] * 2, factor * OUTPUTSCALE)


def answers(task: str, n: int, *lanes: int) -> tuple[Tensor, Tensor]:
    """Points drawn evenly, and probit answers about a function drawn from the prior."""
    options: Any = {"generator": torch.Generator().manual_seed(n), "dtype": torch.float64}
    omega = torch.randn(2, 200, **options) / LENGTHSCALE
    phase = 2 * math.pi * torch.rand(200, **options)
    members = () if task == "yes/no" else (2,)
    X = torch.rand(*lanes, n, *members, 2, **options)
    f = math.sqrt(2 * OUTPUTSCALE / 200) * (X @ omega + phase).cos().sum(-1)
    chance = torch.special.ndtr(f[..., 0] - f[..., 1] if members else f)
    return X, (torch.rand(*lanes, n, **options) < chance).long()


def data(task: str, X: Tensor, c: Tensor) -> aw.Data:
    """Answers as our inference takes them."""
    return aw.Data.binary(X, c) if task == "yes/no" else aw.Data.duels(X, c)


def cold(task: str, n: int, method: Any = "ep") -> Job:
    """Our inference, from tensors of answers to a belief."""
    X, c = answers(task, n)
    kernel = prior()
    return lambda: aw.infer(data(task, X, c), kernel, method)


def warm(task: str, n: int) -> Job:
    """EP that knows the belief after all answers but the last."""
    X, c = answers(task, n)
    kernel = prior()
    known = aw.infer(data(task, X[:-1], c[:-1]), kernel)
    return lambda: aw.infer(known.data + data(task, X[-1:], c[-1:]), kernel, warm=known)


def together(task: str, n: int) -> Job:
    """EP for all lanes at once."""
    X, c = answers(task, n, LANES)
    kernel = prior()
    return lambda: aw.infer(data(task, X, c), kernel)


def alone(task: str, n: int) -> Job:
    """EP for the same lanes, one after the other."""
    X, c = answers(task, n, LANES)
    kernel = prior()
    return lambda: [aw.infer(data(task, *lane), kernel) for lane in zip(X, c, strict=True)]


def pairwise_gp(task: str, n: int) -> Callable[[], Any]:
    """BoTorch's model, which infers as it is built; its link is Phi(difference / sqrt 2)."""
    from botorch.models.pairwise_gp import PairwiseGP

    X, c = answers(task, n)
    kernel, start = prior(2.0), 2 * torch.arange(n)
    won_lost = torch.stack([start + 1 - c, start + c], -1)
    return lambda: PairwiseGP(X.flatten(0, 1), won_lost, covar_module=kernel).eval()


def classifier(task: str, n: int) -> Job:
    """scikit-learn's inference; its link is logistic, about Phi(f / 1.702)."""
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    X, c = (part.numpy() for part in answers(task, n))
    kernel = ConstantKernel(1.702**2 * OUTPUTSCALE) * RBF([LENGTHSCALE] * 2)
    return lambda: GaussianProcessClassifier(kernel, optimizer=None).fit(X, c)


def evaluation(moments: Callable[[Tensor], tuple[Tensor, Tensor]], block: int = POINTS) -> Job:
    """Mean and variance at many points, ``block`` of them jointly, and the gradient of their sum."""
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(POINTS // block, block, 2, generator=generator, dtype=torch.float64).requires_grad_()
    return lambda: torch.autograd.grad([part.sum() for part in moments(x)], x)


def our_evaluation(task: str, n: int) -> Job:
    """Evaluation of our belief."""
    return evaluation(aw.infer(data(task, *answers(task, n)), prior()).moments)


def pairwise_evaluation(task: str, n: int) -> Job:
    """Evaluation of BoTorch's posterior, in blocks of the size that is fastest for it."""
    model = pairwise_gp(task, n)()

    def moments(x: Tensor) -> tuple[Tensor, Tensor]:
        posterior = model.posterior(x)
        return posterior.mean, posterior.variance

    fitting = [block for block in BLOCKS if 8 * POINTS // block * (2 * n) ** 2 <= STACK]
    jobs = [evaluation(moments, block) for block in fitting]
    return min(jobs, key=lambda job: min(timed(job)[0] for _ in range(2)))


# of each task, we come first and the peer last
CONTENDERS: dict[tuple[str, str], Callable[[str, int], Job]] = {
    ("duels", "EP"): cold,
    ("duels", "EP, warm"): warm,
    ("duels", "Laplace"): partial(cold, method="laplace"),
    ("duels", "PairwiseGP"): pairwise_gp,
    ("yes/no", "EP"): cold,
    ("yes/no", "EP, warm"): warm,
    ("yes/no", "Laplace"): partial(cold, method="laplace"),
    ("yes/no", "scikit-learn"): classifier,
    ("evaluation", "Belief"): our_evaluation,
    ("evaluation", "PairwiseGP"): pairwise_evaluation,
    ("lanes", "together"): together,
    ("lanes", "one by one"): alone,
}


def timed(job: Job) -> tuple[float, object]:
    """Processor seconds of a call, which leave out waiting for others' work, and what it returns."""
    start = time.process_time()
    returned = job()
    return time.process_time() - start, returned


def peak() -> float:
    """Largest resident set so far, in MB."""
    with suppress(OSError):  # ru_maxrss would count the parent's, which a child inherits
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 2**10
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def forget_peak() -> None:
    """Let the peak start again from what is in use; only Linux can."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")


def measure(cell: Cell) -> Result:
    """Warm up on a tiny task, then call once for the memory and several times for the median."""
    torch.set_num_threads(1)
    make = partial(CONTENDERS[cell.task, cell.who], cell.task)
    make(TINY)()
    job = make(cell.n)
    forget_peak()
    before = peak()
    seconds, returned = timed(job)
    megabytes = peak() - before
    found = returned if isinstance(returned, list) else [returned]
    beliefs = [belief for belief in found if isinstance(belief, Belief)]
    sweeps = torch.cat([b.sweeps.reshape(-1) for b in beliefs]).double().mean().item() if beliefs else None
    converged = all(bool(belief.converged.all()) for belief in beliefs)
    if seconds < LONG:
        calls = max(3, min(50, int(SECONDS / seconds)))
        seconds = statistics.median(timed(job)[0] for _ in range(calls))
    count = LANES if cell.task == "lanes" else 1
    return Result(1e3 * seconds / count, megabytes, sweeps, converged)


def measured() -> dict[Cell, Result]:
    """Every cell, each in a fresh process of one thread, those of a row close in time."""
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    sizes = {task: (LANE_SIZE,) if task == "lanes" else SIZES for task, _ in CONTENDERS}
    cells = [Cell(task, who, n) for task, who in CONTENDERS for n in sizes[task]]
    cells.sort(key=lambda cell: (cell.task, cell.n))
    results = {}
    for done, cell in enumerate(cells, 1):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            results[cell] = pool.submit(measure, cell).result()
        line = f"{done}/{len(cells)}  {cell.task}, n = {cell.n}, {cell.who}: {results[cell]}"
        print(f"{line:<100}", end="\r", file=sys.stderr, flush=True)
    print(" " * 100, end="\r", file=sys.stderr, flush=True)
    return results


def table(results: dict[Cell, Result], task: str) -> str:
    """The contenders of a task at all sizes, in Markdown that is aligned on a terminal too."""
    names = [who for each, who in CONTENDERS if each == task]
    lines = [["n", *names, f"{names[-1]} / {names[0]}"]]
    for n in sorted({cell.n for cell in results if cell.task == task}):
        row = [results[Cell(task, who, n)] for who in names]
        times = row[-1].ms / row[0].ms
        lines.append([str(n), *map(str, row), f"{times:.3g}" + (" (we are slower)" if times < 1 else "")])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ["-" * width for width in widths])
    padded = ([text.ljust(width) for text, width in zip(line, widths, strict=True)] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in padded)


def machine() -> str:
    """Processor and number of cores."""
    name = platform.processor() or platform.machine()
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next((line.split(": ")[1] for line in lines if line.startswith("model name")), name)
    return f"{name}, {os.cpu_count()} cores, one thread used"


def report(results: dict[Cell, Result]) -> str:
    """All tables, and what one must know to read them."""
    return f"""# Speed and memory of the core

`make bench-core`, {date.today()}; {machine()};
Python {platform.python_version()}, {", ".join(f"{name} {version(name)}" for name in PACKAGES)}.

Median processor time of a call, sweeps over the answers, and growth of the peak resident memory during a
call. Each cell ran in its own process after a tiny task as warm-up. Its first call gives the memory and is
left out of the time, unless it took over {LONG:g} s: then it is the only one. Compare within a row: its cells
ran close in time on the same answers. The last column is the last contender's time over the first's.

The answers are probit looks at a function drawn from the prior (squared exponential in 2-D, lengthscale
{LENGTHSCALE:g}, variance {OUTPUTSCALE:g}) at random, distinct points; the kernel is fixed, the same for all.

## Inference from n duels

{table(results, "duels")}

## Inference from n yes/no answers

{table(results, "yes/no")}

- EP, warm: the belief after n - 1 answers is known, and one is added. The peers begin again when the number
  of answers changes.
- EP and Laplace stop when the scaled change of all sites is below 1e-8, or after 1000 sweeps
  (Newton steps). Both peers compute Laplace's less accurate approximation: compare them with its column.
- PairwiseGP (BoTorch) has the link Phi(difference / sqrt 2), so its variance is doubled. It works on the 2n
  points: `fsolve` to 1e-6 with at most 100 evaluations, then two Newton steps; the link's argument is
  clamped to [-3, 3]. It leaves the evidence and a matrix for predictions to later calls; ours are included.
- scikit-learn's `GaussianProcessClassifier(optimizer=None)` has the logistic link, so its variance is
  multiplied by 1.702^2. It takes at most 100 Newton steps, until the evidence grows by less than 1e-10, and
  its `fit` does so twice: for the evidence and for the model.

## Mean and variance at {POINTS} points with gradients, after n duels

{table(results, "evaluation")}

- The gradient is that of the sum of means and variances; memory is that of the evaluation alone.
- `Belief.moments` takes all points at once. PairwiseGP also computes the joint covariance of each batch of
  points and factorises its matrices for each, so it gets the fastest size of batch of {BLOCKS},
  as far as the stack of its matrices stays below {STACK / 1e9:g} GB.

## {LANES} studies of n duels, together and one by one

{table(results, "lanes")}

- Time of one study, mean of the sweeps, memory of all; EP to the same tolerance both ways.
"""


def main() -> None:
    """Measure, print, write."""
    start = time.perf_counter()
    text = report(measured())
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(text)
    print(f"{text}\n{time.perf_counter() - start:.0f} s; written to {REPORT}")


if __name__ == "__main__":
    main()
