"""Time and memory of a question after hundreds and thousands of duels: ``make bench-scale``.

Each row is measured in a process of its own, on one thread.  Prints the page and writes it to
``docs/bench-scale.md``.
"""

import os
import platform
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import date
from multiprocessing import get_context
from pathlib import Path

import core
import torch

import askwise as aw
from askwise.model.ep import ep
from askwise.model.landmarks import inference_problem
from askwise.model.sites import InferenceProblem

REPORT = Path(__file__).parents[1] / "docs" / "bench-scale.md"
SIZES = [
    (300, 2, 0.4),
    (1000, 2, 0.4),
    (3000, 2, 0.4),
    (3000, 2, 0.3),
    (5000, 2, 0.4),
    (1000, 6, 1.0),
    (2000, 6, 1.0),
    (3000, 6, 1.0),
    (5000, 6, 1.0),
    (3000, 6, 0.5),
    (300, 20, 1.8),
    (300, 50, 2.8),
]
EXACT = [(1001, 2, 0.4), (1001, 2, 0.3), (3000, 2, 0.3), (3000, 6, 2.0), (3000, 6, 1.0), (3000, 6, 0.5)]
VARIANCE, POINTS, ASKS = 4.0, 1000, 3


@dataclass(frozen=True)
class Asked:
    """What a question took."""

    infer: float
    ask: float
    megabytes: float
    weights: int
    """Points at which the belief has weights."""


@dataclass(frozen=True)
class Errors:
    """Means in posterior deviations from the exact ones, and deviations as multiples of these."""

    landmarks: int
    rows: tuple[float, float]
    elsewhere: tuple[float, float]
    deviation: tuple[float, float]


def duels(n: int, d: int, length: float) -> aw.Data:
    """Duels of uniform points, about a function drawn from a squared-exponential prior."""
    source = aw.seeds.generator("scale", n, d)
    waves = torch.randn(d, 200, generator=source, dtype=torch.float64) / length
    phases = 2 * torch.pi * torch.rand(200, generator=source, dtype=torch.float64)
    X = torch.rand(n, 2, d, generator=source, dtype=torch.float64)
    f = (2 * VARIANCE / 200) ** 0.5 * (X @ waves + phases).cos().sum(-1)
    won = torch.rand(n, generator=source, dtype=torch.float64) < torch.special.ndtr(f[:, 0] - f[:, 1])
    return aw.Data.duels(X, won.long())


def asked(n: int, d: int, length: float) -> Asked:
    """The next question by ``muc``, without anything known from the one before."""
    torch.set_num_threads(1)
    kernel, rule = aw.kernel("matern52", [length] * d, VARIANCE), aw.rules.parse("muc")
    aw.next_query(duels(20, d, length), rule, kernel, 2, aw.seeds.generator(0))  # imports
    data, times = duels(n, d, length), []
    core.forget_peak()
    before = core.peak()
    for _ in range(ASKS):
        start = time.process_time()
        query = aw.next_query(data, rule, kernel, 2, aw.seeds.generator(0))
        whole = time.process_time() - start
        start = time.process_time()
        aw.infer(data, kernel, tolerance=1e-5)
        times.append((whole, time.process_time() - start))
    ask, infer = (statistics.median(part) for part in zip(*times, strict=True))
    return Asked(infer, ask, core.peak() - before, query.belief.predictive.points.shape[-2])


def errors(n: int, d: int, length: float) -> Errors:
    """Inference as it is, compared with exact inference by EP."""
    torch.set_num_threads(1)
    data, kernel = duels(n, d, length), aw.kernel("matern52", [length] * d, VARIANCE)
    problems = inference_problem(data, kernel), InferenceProblem.of(data, kernel)
    beliefs = [aw.infer(data, kernel, tolerance=1e-6), ep(problems[1], None, 1e-6)]
    rows = [
        problem.posterior.marginals(belief.tau[None], belief.nu[None])[:2]
        for problem, belief in zip(problems, beliefs, strict=True)
    ]
    x = torch.rand(POINTS, d, generator=aw.seeds.generator("points"), dtype=torch.float64)
    elsewhere = [belief.moments(x) for belief in beliefs]
    apart = [
        (mean - true) / true_var.sqrt() for (mean, _), (true, true_var) in (tuple(rows), tuple(elsewhere))
    ]
    ratio = torch.cat([(one[1] / other[1]).sqrt().flatten() for one, other in (rows, elsewhere)])
    sizes = [(part.abs().max().item(), part.square().mean().sqrt().item()) for part in apart]
    weights = beliefs[0].predictive.points.shape[-2]
    return Errors(weights, sizes[0], sizes[1], (ratio.min().item(), ratio.max().item()))


PAGE = """# Thousands of answers

`make bench-scale`, {date}; {machine};
Python {python}, torch {torch}.

CPU time of a question by `muc` after n duels of uniform points in d dimensions, from nothing: infer the
belief to 1e-5, find champion and challenger. Matern 5/2, prior variance {variance:g}, the lengthscale as
given; median of {asks}. Memory is what the peak grew by.

| answers | d | lengthscale | infer | ask | memory | points with weights |
|---|---|---|---|---|---|---|
{times}

Up to 1000 answers inference is exact but for EP. Beyond, landmarks stand for all points
([`model/landmarks.py`](../src/askwise/model/landmarks.py)): as many as leave over less than 1e-4 of the
prior variance, at most 1000 and at most half as many as answers. If these leave over more, up to 2000
answers are still inferred exactly. Rankings always are.

## What landmarks cost in accuracy

Compared with exact inference: means in posterior standard deviations (largest, root mean square), of the
rows of the answers and of f at {points} new points; and the range of both standard deviations as multiples
of the exact ones.

| answers | d | lengthscale | points with weights | means of rows | means elsewhere | deviations |
|---|---|---|---|---|---|---|
{errors}

In two dimensions, and where the lengthscale is long, the difference is too small to matter. In six dimensions
with a short lengthscale it is not: the landmarks smooth f between them. Questions that a rule asks lie closer
together than these, which are uniform, and need fewer landmarks.
"""


def main() -> None:
    """Measure, print, write."""
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    times, found = [], []
    for n, d, length in SIZES:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            one = pool.submit(asked, n, d, length).result()
        cells = [
            n,
            d,
            length,
            f"{one.infer:.2f} s",
            f"{one.ask:.2f} s",
            f"{one.megabytes:.0f} MB",
            one.weights,
        ]
        times.append(f"| {' | '.join(map(str, cells))} |")
        print(times[-1], flush=True)
    for n, d, length in EXACT:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            error = pool.submit(errors, n, d, length).result()
        pairs = [f"{one:.4f}, {other:.4f}" for one, other in (error.rows, error.elsewhere)]
        cells = [n, d, length, error.landmarks, *pairs, "{:.3f} to {:.3f}".format(*error.deviation)]
        found.append(f"| {' | '.join(map(str, cells))} |")
        print(found[-1], flush=True)
    parts = {"times": "\n".join(times), "errors": "\n".join(found), "machine": core.machine()}
    about = {"date": date.today(), "python": platform.python_version(), "torch": torch.__version__}
    REPORT.write_text(PAGE.format(**parts, **about, variance=VARIANCE, asks=ASKS, points=POINTS))
    print(f"written to {REPORT}")


if __name__ == "__main__":
    main()
