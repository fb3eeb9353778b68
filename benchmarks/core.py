"""Time and memory of inference, compared with BoTorch and scikit-learn: ``make bench-core``.

Every entry of the tables is measured in its own process, on one thread, with the same answers as its
neighbours.  Prints the page and writes it to ``docs/bench-core.md``.
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
from askwise.model import Belief

REPORT = Path(__file__).parents[1] / "docs" / "bench-core.md"
SIZES, TINY, POINTS = (20, 80, 320, 1000), 8, 1000
LANES, LANE_SIZE = 256, 80
LENGTHSCALE, OUTPUTSCALE = 0.3, 4.0
KERNELS = ("matern52", "se")  # the default first
BLOCKS, STACK = (1, 10, 100, 1000), 2e9  # points that PairwiseGP evaluates jointly; bytes of its matrices
SECONDS, LONG = 0.7, 5.0  # for the repeats of an entry; too long for repeats
PACKAGES = ("askwise", "torch", "gpytorch", "botorch", "scikit-learn", "numpy", "scipy")

Job = Callable[[], object]


@dataclass(frozen=True)
class Entry:
    """One thing to measure: a task of some size, and a contender."""

    task: str
    who: str
    n: int
    kernel: str


@dataclass(frozen=True)
class Result:
    """A measurement; in the tables "14 ms, 21 sweeps, 3 MB"."""

    ms: float
    megabytes: float
    sweeps: float | None
    converged: bool

    def __str__(self) -> str:  # noqa: D105
        taken = f"{self.ms:.3g} ms" if self.ms < 1000 else f"{self.ms / 1000:.3g} s"
        sweeps = "" if self.sweeps is None else f", {self.sweeps:.0f} sweeps"
        memory = f"{self.megabytes:.0f} MB" if self.megabytes >= 1 else "< 1 MB"
        return f"{taken}{sweeps}, {memory}" + ("" if self.converged else " NOT CONVERGED")


def prior(kernel: str, factor: float = 1.0) -> Any:
    """The kernel of every contender; the factor of the variance corrects for another link."""
    return aw.kernel(kernel, [LENGTHSCALE] * 2, factor * OUTPUTSCALE)


def answers(task: str, n: int, *lanes: int) -> tuple[Tensor, Tensor]:
    """Uniform points, and probit answers about a function drawn from a squared-exponential prior."""
    options: Any = {"generator": torch.Generator().manual_seed(n), "dtype": torch.float64}
    omega = torch.randn(2, 200, **options) / LENGTHSCALE
    phase = 2 * math.pi * torch.rand(200, **options)
    members = () if task == "yes/no" else (2,)
    X = torch.rand(*lanes, n, *members, 2, **options)
    f = math.sqrt(2 * OUTPUTSCALE / 200) * (X @ omega + phase).cos().sum(-1)
    chance = torch.special.ndtr(f[..., 0] - f[..., 1] if members else f)
    return X, (torch.rand(*lanes, n, **options) < chance).long()


def data(task: str, X: Tensor, c: Tensor) -> aw.Data:
    """Answers in our format."""
    return aw.Data.binary(X, c) if task == "yes/no" else aw.Data.duels(X, c)


def cold(task: str, n: int, kernel: str, method: Any = "ep") -> Job:
    """Our inference, from tensors of answers to a belief."""
    X, c = answers(task, n)
    own = prior(kernel)
    return lambda: aw.infer(data(task, X, c), own, method)


def warm(task: str, n: int, kernel: str) -> Job:
    """EP warm-started from the belief after all answers but the last."""
    X, c = answers(task, n)
    own = prior(kernel)
    known = aw.infer(data(task, X[:-1], c[:-1]), own)
    return lambda: aw.infer(known.data + data(task, X[-1:], c[-1:]), own, warm=known)


def together(task: str, n: int, kernel: str) -> Job:
    """EP for all lanes at once."""
    X, c = answers(task, n, LANES)
    own = prior(kernel)
    return lambda: aw.infer(data(task, X, c), own)


def alone(task: str, n: int, kernel: str) -> Job:
    """EP for the same lanes, one after the other."""
    X, c = answers(task, n, LANES)
    own = prior(kernel)
    return lambda: [aw.infer(data(task, *lane), own) for lane in zip(X, c, strict=True)]


def pairwise_gp(task: str, n: int, kernel: str) -> Callable[[], Any]:
    """BoTorch's model, which infers on construction; its link is Phi(difference / sqrt 2)."""
    from botorch.models.pairwise_gp import PairwiseGP

    X, c = answers(task, n)
    own, start = prior(kernel, 2.0), 2 * torch.arange(n)
    won_lost = torch.stack([start + 1 - c, start + c], -1)
    return lambda: PairwiseGP(X.flatten(0, 1), won_lost, covar_module=own).eval()


def classifier(task: str, n: int, kernel: str) -> Job:
    """scikit-learn's inference; its link is logistic, close to Phi(f / 1.702)."""
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

    X, c = (part.numpy() for part in answers(task, n))
    shape = RBF([LENGTHSCALE] * 2) if kernel == "se" else Matern([LENGTHSCALE] * 2, nu=2.5)
    scaled = ConstantKernel(1.702**2 * OUTPUTSCALE) * shape
    return lambda: GaussianProcessClassifier(scaled, optimizer=None).fit(X, c)


def evaluation(moments: Callable[[Tensor], tuple[Tensor, Tensor]], block: int = POINTS) -> Job:
    """Mean and variance at many points, ``block`` of them jointly, and the gradient of their sum."""
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(POINTS // block, block, 2, generator=generator, dtype=torch.float64).requires_grad_()
    return lambda: torch.autograd.grad([part.sum() for part in moments(x)], x)


def our_evaluation(task: str, n: int, kernel: str) -> Job:
    """Evaluation of our belief."""
    return evaluation(aw.infer(data(task, *answers(task, n)), prior(kernel)).moments)


def pairwise_evaluation(task: str, n: int, kernel: str) -> Job:
    """Evaluation of BoTorch's posterior, in blocks of its fastest size."""
    model = pairwise_gp(task, n, kernel)()

    def moments(x: Tensor) -> tuple[Tensor, Tensor]:
        posterior = model.posterior(x)
        return posterior.mean, posterior.variance

    fitting = [block for block in BLOCKS if 8 * POINTS // block * (2 * n) ** 2 <= STACK]
    jobs = [evaluation(moments, block) for block in fitting]
    return min(jobs, key=lambda job: min(timed(job)[0] for _ in range(2)))


# in each task, ours is first and the other library last
CONTENDERS: dict[tuple[str, str], Callable[[str, int, str], Job]] = {
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
    """CPU seconds of a call, and what it returns."""
    start = time.process_time()
    returned = job()
    return time.process_time() - start, returned


def peak() -> float:
    """Largest resident set so far, in MB."""
    with suppress(OSError):  # ru_maxrss would include the parent's, which a child inherits
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 2**10
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def forget_peak() -> None:
    """Reset the peak to current usage; works on Linux only."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")


def measure(entry: Entry) -> Result:
    """Warm up on a tiny task, then call once for the memory and several times for the median time."""
    torch.set_num_threads(1)
    make = partial(CONTENDERS[entry.task, entry.who], entry.task)
    make(TINY, entry.kernel)()
    job = make(entry.n, entry.kernel)
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
    count = LANES if entry.task == "lanes" else 1
    return Result(1e3 * seconds / count, megabytes, sweeps, converged)


def measured() -> dict[Entry, Result]:
    """Every entry, each in a fresh process of one thread, those of a row close in time."""
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    entries = [
        Entry(task, who, n, kernel)
        for task, who in CONTENDERS
        for n in ((LANE_SIZE,) if task == "lanes" else SIZES)
        for kernel in (KERNELS if task in ("duels", "yes/no") else KERNELS[:1])
    ]
    entries.sort(key=lambda entry: (entry.task, entry.kernel, entry.n))
    results = {}
    for done, entry in enumerate(entries, 1):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            results[entry] = pool.submit(measure, entry).result()
        what = f"{entry.task}, {entry.kernel}, n = {entry.n}, {entry.who}"
        line = f"{done}/{len(entries)}  {what}: {results[entry]}"
        print(f"{line:<100}", end="\r", file=sys.stderr, flush=True)
    print(" " * 100, end="\r", file=sys.stderr, flush=True)
    return results


def table(results: dict[Entry, Result], task: str) -> str:
    """The contenders of a task at all sizes, in Markdown that is aligned in a terminal as well."""
    names = [who for each, who in CONTENDERS if each == task]
    lines = [["kernel", "n", *names, f"{names[-1]} / {names[0]}"]]
    rows = {(KERNELS.index(entry.kernel), entry.n): entry.kernel for entry in results if entry.task == task}
    for (_, n), kernel in sorted(rows.items()):
        row = [results[Entry(task, who, n, kernel)] for who in names]
        times = row[-1].ms / row[0].ms
        slower = " (we are slower)" if times < 1 else ""
        lines.append([kernel, str(n), *map(str, row), f"{times:.3g}{slower}"])
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


def report(results: dict[Entry, Result]) -> str:
    """All tables, and how to read them."""
    return f"""# Speed and memory of the core

`make bench-core`, {date.today()}; {machine()};
Python {platform.python_version()}, {", ".join(f"{name} {version(name)}" for name in PACKAGES)}.

Median CPU time of a call, sweeps over the answers, and growth of the peak resident memory during a call. Each
entry was measured in its own process, after a tiny task as warm-up. Memory is measured in the first call,
which is not timed unless it takes over {LONG:g} s; then it is the only one. Compare within a
row: its entries were measured close in time, on the same answers. The last column is the time of the last
contender divided by that of the first.

The answers are probit answers about a function in 2-D drawn from a squared-exponential prior (lengthscale
{LENGTHSCALE:g}, variance {OUTPUTSCALE:g}) at random, distinct points. The kernel of the model is named in
each row; it is fixed, and the same for all. The squared exponential has low rank at these sizes, which
our inference exploits; Matern 5/2, the default, does not.

## Inference from n duels

{table(results, "duels")}

## Inference from n yes/no answers

{table(results, "yes/no")}

- EP, warm: the belief after n - 1 answers is given, and one answer is added. The other libraries start over
  when the number of answers changes.
- EP and Laplace stop when the scaled change of all sites is below 1e-8, or after 1000 sweeps
  (Newton steps). Both other libraries use the less accurate Laplace approximation: compare them with its
  column.
- PairwiseGP (BoTorch) has the link Phi(difference / sqrt 2), so its variance is doubled. It works on the 2n
  points: `fsolve` to 1e-6 with at most 100 evaluations, then two Newton steps; the link's argument is
  clamped to [-3, 3]. It computes the evidence and a matrix for predictions in later calls; ours are included.
- scikit-learn's `GaussianProcessClassifier(optimizer=None)` has the logistic link, so its variance is
  multiplied by 1.702^2. It takes at most 100 Newton steps, until the evidence grows by less than 1e-10, and
  its `fit` does so twice: for the evidence and for the model.

## Mean and variance at {POINTS} points with gradients, after n duels

{table(results, "evaluation")}

- The gradient is that of the sum of means and variances; memory is for the evaluation alone.
- `Belief.moments` takes all points at once. PairwiseGP also computes the joint covariance of each batch of
  points and factorises its matrices for each, so it gets the fastest batch size of {BLOCKS}
  whose matrices fit into {STACK / 1e9:g} GB.

## {LANES} studies of n duels, together and one by one

{table(results, "lanes")}

- Time per study, mean number of sweeps, memory of all studies; EP to the same tolerance both ways.
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
