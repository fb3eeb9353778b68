"""Many lanes on a GPU, compared with one thread of the CPU: ``make bench-gpu``.

Prints the page and writes it to ``docs/bench-gpu.md``.
"""

import platform
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path

import torch
from core import answers, prior

import askwise as aw

REPORT = Path(__file__).parents[1] / "docs" / "bench-gpu.md"
SIZES = ((1, 80), (256, 80), (4096, 80), (1024, 200))
ON_CPU = 32  # lanes on the CPU, to estimate the time per lane
LARGEST = 1e-9  # difference below which results count as equal


def seconds(job: Callable[[], object]) -> float:
    """Time of the second call, until the device is done."""
    job()
    torch.cuda.synchronize()
    start = time.perf_counter()
    job()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def row(lanes: int, n: int) -> str:
    """One row of the table; fails if the two beliefs differ."""
    X, c = answers("duels", n, lanes)
    few = aw.Data.duels(X[:ON_CPU], c[:ON_CPU])
    many = aw.Data.duels(X.cuda(), c.cuda())
    kernel, on_gpu = prior("se"), prior("se").cuda()
    gpu = 1e3 * seconds(lambda: aw.infer(many, on_gpu)) / lanes
    cpu = 1e3 * seconds(lambda: aw.infer(few, kernel)) / min(lanes, ON_CPU)
    x = torch.rand(50, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    there, here = aw.infer(many, on_gpu), aw.infer(few, kernel)
    differences = [
        (there.mean(x.cuda())[:ON_CPU].cpu() - here.mean(x)).abs().max().item(),
        (there.variance(x.cuda())[:ON_CPU].cpu() - here.variance(x)).abs().max().item(),
    ]
    assert max(differences) < LARGEST, f"{lanes} x {n}: beliefs differ by {differences}"
    ratio = cpu / gpu
    return f"| {lanes} | {n} | {gpu:.3g} ms | {cpu:.3g} ms | {ratio:.2g} | {max(differences):.0e} |"


def main() -> None:
    """Measure, print, write."""
    torch.set_num_threads(1)
    versions = f"Python {platform.python_version()}, torch {torch.__version__}"
    lines = [
        "# EP for many lanes on a GPU",
        "",
        f"`make bench-gpu`, {date.today()}; {torch.cuda.get_device_name()}; {versions}.",
        "",
        "Duels in 2-D with a fixed squared exponential kernel, from scratch to a tolerance of 1e-8. The CPU",
        f"computes up to {ON_CPU} of the same lanes together on one thread. The last column is the largest",
        "difference of posterior means and variances between the two at 50 points.",
        "",
        "| lanes | answers each | GPU, per lane | CPU, per lane | CPU / GPU | difference |",
        "| --- | --- | --- | --- | --- | --- |",
        *(row(lanes, n) for lanes, n in SIZES),
        "",
    ]
    print("\n".join(lines))
    REPORT.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
