"""The cost of learning the kernel: regret with a learned kernel and with a known one.

    python benchmarks/learned.py [--workers N]    # prints the tables and writes docs/bench-learned.md

Users are simulated; their utility is a benchmark function with a standard deviation of twice the noise.
"""

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read when scipy is imported

import torch
from botorch.test_functions.synthetic import Branin, Hartmann, SixHumpCamel, SyntheticTestFunction
from gpytorch.kernels import Kernel
from torch import Tensor

import askwise as aw
from askwise.numerics import generator, minimize

OUT = Path(__file__).resolve().parent.parent / "docs" / "bench-learned.md"
FUNCTIONS = {"Branin": Branin, "six-hump camel": SixHumpCamel, "Hartmann 3": Hartmann}
SEEDS, ANSWERS, SHOWN = 20, 80, (10, 20, 40, 80)
SAMPLES, SPREAD = 400, 2.0

HEAD = f"""# Learned kernels

`make bench-learned`: duels about three functions, each scaled to a standard deviation of {SPREAD:g} times the
noise of an answer, and negated where it is to be minimised; {SEEDS} simulated users each; `aw.Study(space,
"duel")` with rule `muc`. *Known*: a Matern 5/2 kernel fitted by maximum likelihood to {SAMPLES} exact values
of the function, which no user has. *Learned*: from the answers, `kernel="matern52"`. Regret: value of the
best setting minus that of the recommended one, in units of the noise; mean over users and standard error.

"""
HONEST = """
## What a study says about itself

`study.status().regret` is the expected regret, and the hint says when to stop. All with learned kernels.
On these smooth functions the expected regret is too high; [on others it is far too low](calibration.md).

"""
Results = dict[tuple[str, int, bool], list[tuple[float, float, bool]]]


@dataclass(frozen=True)
class Utility:
    """A scaled benchmark function over the unit cube, to be maximised."""

    function: SyntheticTestFunction
    mean: float
    scale: float

    @classmethod
    def of(cls, name: str) -> "Utility":
        """The function of this name."""
        kind = FUNCTIONS[name]
        function = kind(dim=3, negate=True) if name == "Hartmann 3" else kind(negate=True)
        raw = cls(function.double(), 0.0, 1.0)(sobol(function.dim, 4096))
        return cls(function, raw.mean().item(), SPREAD / raw.std().item())

    def __call__(self, x: Tensor) -> Tensor:
        """Values at points of the unit cube."""
        low, high = torch.as_tensor(self.function.bounds, dtype=torch.float64)
        return (self.function(low + (high - low) * x) - self.mean) * self.scale

    @property
    def best(self) -> float:
        """The maximum."""
        return (self.function.optimal_value - self.mean) * self.scale


def sobol(d: int, count: int) -> Tensor:
    """Quasi-random points of the cube."""
    return torch.quasirandom.SobolEngine(d, scramble=True, seed=1).draw(count, dtype=torch.float64)


def known_kernel(utility: Utility) -> Kernel:
    """The maximum-likelihood kernel of exact values of the function."""
    x = sobol(utility.function.dim, SAMPLES)
    y = utility(x)[:, None]
    eye = torch.eye(SAMPLES, dtype=torch.float64)

    def objective(vector: Tensor) -> tuple[Tensor, Tensor]:
        vector = vector.detach().requires_grad_()
        length, variance = vector[0, :-1].exp(), vector[0, -1].exp()
        r = torch.cdist(x / length, x / length, compute_mode="donot_use_mm_for_euclid_dist") * 5**0.5
        K = variance * (1 + r + r.square() / 3) * torch.exp(-r)
        lower = torch.linalg.cholesky(K + 1e-6 * variance * eye)
        fit = torch.linalg.solve_triangular(lower, y, upper=False).square().sum() / 2
        value = fit + lower.diagonal().log().sum()
        (slope,) = torch.autograd.grad(value, vector)
        return value.detach()[None], slope

    start = torch.tensor([[0.3] * x.shape[-1] + [SPREAD**2]], dtype=torch.float64).log()
    bound = torch.full_like(start, 5.0)
    found, _ = minimize(objective, start, -bound, 2 * bound)
    return aw.kernel("matern52", found[0, :-1].exp(), found[0, -1].exp())


def regrets(case: tuple[str, int, bool]) -> list[tuple[float, float, bool]]:
    """For one user, at some numbers of answers: regret, expected regret, whether the hint is to stop."""
    torch.set_num_threads(1)
    name, seed, learned = case
    utility = Utility.of(name)
    names = [f"x{k}" for k in range(utility.function.dim)]
    space = aw.Space(**{each: aw.Real(0, 1) for each in names})
    study = aw.Study(space, "duel", seed=seed, kernel="matern52" if learned else known_kernel(utility))
    source, found = generator("learned", name, seed), []
    for count in range(1, ANSWERS + 1):
        question = study.ask()
        first, second = (utility(space.unit(option)) for option in question.options)
        wins = torch.special.ndtr(first - second)
        study.tell(question, int(torch.rand((), generator=source, dtype=torch.float64) >= wins))
        if count in SHOWN:
            regret = utility.best - utility(space.unit(study.best().params)).item()
            status = study.status()
            found.append((regret, status.regret or 0.0, status.hint.startswith("You may stop")))
    return found


def table(results: Results) -> str:
    """Regret with known and with learned kernels."""
    lines = ["| function | kernel | " + " | ".join(f"after {n}" for n in SHOWN) + " |", "|---" * 6 + "|"]
    for name in FUNCTIONS:
        for learned in (False, True):
            regret = torch.tensor([results[name, seed, learned] for seed in range(SEEDS)])[..., 0]
            mean, error = regret.mean(0), regret.std(0) / SEEDS**0.5
            cells = [f"{m:.2f} ± {e:.2f}" for m, e in zip(mean.tolist(), error.tolist(), strict=True)]
            lines.append(f"| {name} | {'learned' if learned else 'known'} | {' | '.join(cells)} |")
    return "\n".join(lines)


def honesty(results: Results) -> str:
    """Expected and true regret of studies with learned kernels."""
    lines = [
        "| function | answers | expected | true | says stop | true regret of those |",
        "|---" * 6 + "|",
    ]
    for name in FUNCTIONS:
        cells = torch.tensor([results[name, seed, True] for seed in range(SEEDS)], dtype=torch.float64)
        for k, count in enumerate(SHOWN):
            regret, expected, stop = cells[:, k].unbind(-1)
            stopped = regret[stop > 0]
            worst = f"{stopped.mean():.2f}, at most {stopped.max():.2f}" if len(stopped) else ""
            numbers = f"{expected.mean():.2f} | {regret.mean():.2f} | {len(stopped)} of {SEEDS} | {worst}"
            lines.append(f"| {name} | {count} | {numbers} |")
    return "\n".join(lines)


def main() -> None:
    """Run all users and write the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=2)
    workers = parser.parse_args().workers
    cases = [
        (name, seed, learned) for name in FUNCTIONS for learned in (False, True) for seed in range(SEEDS)
    ]
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        results = dict(zip(cases, pool.map(regrets, cases), strict=True))
    page = f"{HEAD}{table(results)}\n{HONEST}{honesty(results)}\n"
    print(page)
    OUT.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
