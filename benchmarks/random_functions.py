r"""Ten functions that are in none of the lists: draws of random processes in 2, 4 and 8 dimensions.

.. math:: f(x) = \sqrt{2 / F} \sum_{j=1}^{F} \cos(\omega_j^\top x + \varphi_j)

with frequencies of a Matern process (a multivariate t distribution with 2 nu degrees of freedom, divided by
the lengthscale) are smooth for nu = 5/2 and rough for nu = 1/2.  Rules were not chosen by these functions, so
they show what to expect of others.  ``python benchmarks/random_functions.py`` looks for their maxima.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from askwise.bench.functions import Function, named, register_function
from askwise.numerics import generator, minimize, sobol

WAVES, CHUNK = 128, 2**14
# name, dimensions, 2 nu, lengthscale, and the best point that was found
TABLE: tuple[tuple[str, int, int, float, tuple[float, ...]], ...] = (
    ("smooth_2", 2, 5, 0.3, (0.3984957, 0.0818071)),
    ("hilly_2", 2, 5, 0.15, (0.0183135, 0.6928159)),
    ("medium_2", 2, 3, 0.25, (0.7480703, 0.5018678)),
    ("rough_2", 2, 1, 0.4, (0.6196209, 0.7932307)),
    ("smooth_4", 4, 5, 0.5, (0.8302522, 0.5757523, 0.4382649, 1.0)),
    ("medium_4", 4, 3, 0.5, (0.0, 0.8906929, 0.7788562, 0.9559064)),
    ("rough_4", 4, 1, 0.8, (0.354416, 0.805054, 0.7757927, 0.715913)),
    ("smooth_8", 8, 5, 0.7, (0.2812463, 0.9669452, 0.6773367, 1.0, 0.0, 1.0, 0.0, 0.6794086)),
    ("medium_8", 8, 3, 0.8, (0.0, 1.0, 0.2891971, 0.8383695, 0.0021486, 1.0, 0.7424471, 1.0)),
    ("rough_8", 8, 1, 1.2, (0.6616516, 0.989154, 0.4887497, 0.0958793, 0.7776524, 0.1417768, 0.7639037, 1.0)),
)
NAMES = tuple(f"draw_{name}" for name, *_ in TABLE)


def formula(name: str, d: int, freedom: int, length: float) -> Callable[[Tensor], Tensor]:
    """The function, to be minimised."""
    source = generator("random functions", name)
    normal = torch.randn(WAVES, d, generator=source, dtype=torch.float64)
    squares = torch.randn(WAVES, freedom, generator=source, dtype=torch.float64).square().mean(-1)
    frequencies = normal / (length * squares.sqrt())[:, None]
    phases = 2 * math.pi * torch.rand(WAVES, generator=source, dtype=torch.float64)

    def minimised(x: Tensor) -> Tensor:
        waves, shift = frequencies.to(x.device), phases.to(x.device)
        parts = [(part @ waves.mT + shift).cos().sum(-1) for part in x.reshape(-1, d).split(CHUNK)]
        return -math.sqrt(2 / WAVES) * torch.cat(parts).reshape(x.shape[:-1])

    minimised.__name__ = minimised.__qualname__ = f"draw_{name}"
    return minimised


def registered() -> None:
    """Make them known; the maximum is the value at the best point that was found."""
    for name, d, freedom, length, best in TABLE:
        made = formula(name, d, freedom, length)
        box, top = ((0.0, 1.0),) * d, -made(torch.tensor(best, dtype=torch.float64)).item()
        register_function(f"Draw, {name}", box=box, kernel="matern52", argmax=best, max=top)(made)


def best_of(function: Function, points: int = 2**18, starts: int = 1024) -> tuple[float, Tensor]:
    """The best of many ascents."""
    grid = sobol(function.dim, points)
    start = grid[function.unit(grid).topk(starts).indices]

    def depth(x: Tensor) -> tuple[Tensor, Tensor]:
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            value = -function.unit(x)
            return value.detach(), torch.autograd.grad(value.sum(), x)[0]

    found, lowest = minimize(depth, start, torch.zeros_like(start), torch.ones_like(start), max_steps=500)
    return -lowest.min().item(), found[lowest.argmin()]


registered()

if __name__ == "__main__":
    for each in map(named, NAMES):
        value, point = best_of(each)
        print(each.name, each.max, value - each.max, [round(x, 7) for x in point.tolist()], flush=True)
