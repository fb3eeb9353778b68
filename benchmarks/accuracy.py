"""Errors of EP and of Laplace's approximation against the exact posterior: ``make bench-accuracy``.

Three small problems are compared with long Markov chains, repeated from independent seeds so that every error
comes with the noise of its reference.  A fourth, hard for EP, is solved exactly by quadrature.  Prints the
page and writes it to ``docs/accuracy.md``.
"""

import math
import platform
import sys
import textwrap
import time
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

import askwise as aw
from askwise.model import Belief, Method
from askwise.model.gibbs import gibbs
from askwise.numerics import generator

REPORT = Path(__file__).parents[1] / "docs" / "accuracy.md"
REPEATS = 16  # independent repeats of everything random
CHAINS, SWEEPS = 64, 4000  # per repeat, for means and standard deviations
DRAWS, EVIDENCE_DRAWS = 2**14, 2**17  # per repeat, for probabilities and for the evidence
POINTS, QUESTIONS = 40, 10  # where f is compared, and where probabilities are
TIMES, VARIANCES = (1, 5, 20, 100), (1.0, 1e2, 1e4)  # of the repeated duel
METHODS: dict[str, Method] = {"EP": "ep", "Laplace": "laplace"}
PACKAGES = ("askwise", "torch", "gpytorch", "numpy", "scipy")
ROWS = {
    "mean": "mean of f, in posterior standard deviations",
    "sd": "standard deviation of f, relative",
    "probability": "probability of the next answer",
    "evidence": "log evidence",
}
# bounds on EP's errors, with a margin for similar problems; tests/model/test_gibbs.py checks them on some
PROMISED = {
    "EP, prior variance of a few units": (0.01, 0.08, 0.01, 0.08),
    "EP, prior variance of 100": (0.05, 0.1, 0.02, 0.15),
}


@dataclass(frozen=True)
class Case:
    """A problem: answers, a prior, and whether duels are predicted."""

    title: str
    data: aw.Data
    kernel: Kernel
    asks_duels: bool

    @property
    def points(self) -> Tensor:
        """Where f is compared: the queried points, and others."""
        asked = self.data.points
        return torch.cat([asked, uniform(POINTS - len(asked), asked.shape[-1], seed=5)])

    @property
    def questions(self) -> tuple[Tensor, Tensor | None]:
        """Points, and their opponents if duels are predicted."""
        x, other = uniform(2, QUESTIONS, self.data.points.shape[-1], seed=6)
        return x, other if self.asks_duels else None


@dataclass(frozen=True)
class Truth:
    """The exact posterior, estimated by each repeat, and the disagreement of the chains."""

    mean: Tensor
    sd: Tensor
    probability: Tensor
    log_evidence: Tensor
    disagreement: float


@dataclass(frozen=True)
class Figure:
    """An error and the standard error of its reference; in the tables "+0.0123 ± 0.0004"."""

    error: float
    noise: float
    signed: bool = True

    @property
    def bound(self) -> float:
        """A bound on the error: its size plus two standard errors."""
        return abs(self.error) + 2 * self.noise

    def __str__(self) -> str:  # noqa: D105
        return f"{self.error:{'+' if self.signed else ''}.4f} ± {self.noise:.4f}"


Errors = dict[str, list[Figure]]
"""For each of ROWS the largest error and, where there are several, their root mean square."""


def uniform(*shape: int, seed: int) -> Tensor:
    """Random numbers between 0 and 1, the same in every run."""
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def hill(x: Tensor) -> Tensor:
    """The function behind the simulated answers."""
    return 3 * (5 * x[..., 0]).sin() - 2 * (x[..., -1] - 0.4).abs()


def yes_no(n: int, d: int) -> aw.Data:
    """Simulated yes/no answers."""
    x = uniform(n, d, seed=1)
    return aw.Data.binary(x, (uniform(n, seed=2) < torch.special.ndtr(hill(x))).long())


def duels(n: int, d: int) -> aw.Data:
    """Simulated duels."""
    x = uniform(n, 2, d, seed=3)
    chance = torch.special.ndtr(hill(x[:, 0]) - hill(x[:, 1]))
    return aw.Data.duels(x, (uniform(n, seed=4) < chance).long())


def cases() -> list[Case]:
    """The three problems."""
    return [
        Case(
            "12 yes/no answers in 1-D; squared exponential, lengthscale 0.2, variance 4",
            yes_no(12, 1),
            aw.kernel("se", 0.2, 4.0),
            asks_duels=False,
        ),
        Case(
            "15 duels in 2-D; Matern 5/2, lengthscale 0.4, variance 4",
            duels(15, 2),
            aw.kernel("matern52", [0.4, 0.4], 4.0),
            asks_duels=True,
        ),
        Case(
            "6 yes/no answers and 8 duels in 2-D; squared exponential, lengthscale 0.4, variance 100",
            yes_no(6, 2) + duels(8, 2),
            aw.kernel("se", [0.4, 0.4], 100.0),
            asks_duels=True,
        ),
    ]


def repeated(data: aw.Data, count: int) -> aw.Data:
    """The same answers in several lanes."""
    parts = (data.points, data.first, data.second, data.signs)
    return aw.Data(*(part.expand(count, *part.shape) for part in parts))


def probability_and_evidence(case: Case, repeat: int) -> tuple[Tensor, Tensor]:
    """The probability of a yes to each question, and the log evidence, exact up to noise.

    The probability is the ratio of the evidence with and without the yes.  Both are estimated from the same
    draws, so that most of their noise cancels.
    """

    def evidence(data: aw.Data, draws: int) -> Tensor:
        identity = ("accuracy", case.title, "evidence", repeat)
        sources = [generator(*identity) for _ in range(data.lanes.numel())]
        return gibbs(data, case.kernel, generators=sources, chains=draws, max_sweeps=1).log_evidence

    x, other = case.questions
    yes = torch.ones(len(x), 1)
    one = aw.Data.binary(x[:, None], yes)
    if other is not None:
        one = aw.Data.duels(torch.stack([x, other], -2)[:, None], yes)
    more = evidence(repeated(case.data, len(x)) + one, DRAWS) - evidence(case.data, DRAWS)
    return more.exp(), evidence(case.data, EVIDENCE_DRAWS)


def truth(case: Case) -> Truth:
    """The exact posterior, estimated once by each repeat."""
    sources = [generator("accuracy", case.title, "chains", repeat) for repeat in range(REPEATS)]
    data = repeated(case.data, REPEATS)
    belief = gibbs(data, case.kernel, generators=sources, chains=CHAINS, max_sweeps=SWEEPS)
    mean, var = belief.moments(case.points)
    others = []
    for repeat in range(REPEATS):
        line = f"{case.title}: {repeat + 1}/{REPEATS}"
        print(f"{line:<110}", end="\r", file=sys.stderr, flush=True)
        others.append(probability_and_evidence(case, repeat))
    probability, evidence = (torch.stack(parts) for parts in zip(*others, strict=True))
    return Truth(mean, var.sqrt(), probability, evidence, belief.change.max().item())


def summary(errors: Tensor) -> list[Figure]:
    """The largest of the errors [repeat, point] with its noise, and the root mean squares of both."""
    mean, noise = errors.mean(0), errors.std(0) / math.sqrt(len(errors))
    at = int(mean.abs().argmax())
    largest = Figure(mean[at].item(), noise[at].item())
    if len(mean) == 1:
        return [largest]
    rms, rms_of_noise = (part.square().mean().sqrt().item() for part in (mean, noise))
    return [largest, Figure(rms, rms_of_noise, signed=False)]


def errors(case: Case, exact: Truth, belief: Belief) -> Errors:
    """The errors of an approximation."""
    mean, var = belief.moments(case.points)
    sd = exact.sd.mean(0)
    return {
        "mean": summary((mean - exact.mean) / sd),
        "sd": summary((var.sqrt() - exact.sd) / sd),
        "probability": summary(belief.success_probability(*case.questions) - exact.probability),
        "evidence": summary((belief.log_evidence - exact.log_evidence)[:, None]),
    }


def repeated_duel(times: int, variance: float) -> tuple[float, float, float]:
    """EP's errors of mean, sd and log evidence for one duel that is repeated with the same answer.

    The problem depends only on the difference g of the two values, so that a sum over a fine grid is exact.
    """
    x, other = torch.tensor([[[0.0]], [[1.0]]], dtype=torch.float64)
    kernel = aw.kernel("se", 0.2, variance)
    data = aw.Data.duels(torch.stack([x, other], -2).expand(times, 2, 1), torch.ones(times))
    belief = aw.infer(data, kernel)
    prior_sd = math.sqrt(2 * variance * (1 - math.exp(-12.5)))
    g = torch.linspace(-20, 20 + 10 * prior_sd, 1_000_001, dtype=torch.float64)
    prior = -(g / prior_sd).square() / 2 - math.log(prior_sd * math.sqrt(2 * math.pi))
    density = prior + times * torch.special.log_ndtr(g) + (g[1] - g[0]).log()
    evidence = density.logsumexp(0)
    weight = (density - evidence).exp()
    mean = weight @ g
    sd = (weight @ (g - mean).square()).sqrt()
    ep_mean, ep_var = belief.difference(x, other)
    of_mean, of_sd = (ep_mean - mean) / sd, ep_var.sqrt() / sd - 1
    return of_mean.item(), of_sd.item(), (belief.log_evidence - evidence).item()


def table(lines: list[list[str]]) -> str:
    """Markdown that is aligned in a terminal as well; the first line is the header."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    ruled = [lines[0], ["-" * width for width in widths], *lines[1:]]
    padded = ([text.ljust(width) for text, width in zip(line, widths, strict=True)] for line in ruled)
    return "\n".join(f"| {' | '.join(line)} |" for line in padded)


def case_table(found: dict[str, Errors]) -> str:
    """The errors of all methods for one problem."""
    lines = [["", *METHODS]]
    for row, words in ROWS.items():
        kinds = ("largest error", "rms") if len(found["EP"][row]) == 2 else ("error",)
        for kind, *cells in zip(kinds, *(found[name][row] for name in METHODS), strict=True):
            lines.append([f"{words}: {kind}", *map(str, cells)])
    return table(lines)


def limits_table() -> str:
    """EP's errors for the repeated duel."""
    lines = [["times", "variance", "mean, in posterior sd", "sd, relative", "log evidence"]]
    for variance in VARIANCES:
        for times in TIMES:
            cells = [f"{error:+.4f}" for error in repeated_duel(times, variance)]
            lines.append([str(times), f"{variance:g}", *cells])
    return table(lines)


def filled(text: str) -> str:
    """The text, wrapped."""
    return textwrap.fill(" ".join(text.split()), 110)


def rounded_up(value: float) -> str:
    """Two digits, rounded up."""
    digit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return f"{math.ceil(value / digit) * digit:.2g}"


def promise(found: list[dict[str, Errors]]) -> str:
    """The promised accuracy of EP, with what was measured: a table and a paragraph."""

    def measured(name: str, row: str, where: list[dict[str, Errors]]) -> float:
        return max(each[name][row][0].bound for each in where)

    lines = [["", *PROMISED, "Laplace, either"]]
    for at, (row, words) in enumerate(ROWS.items()):
        cells = []
        for promised, where in zip(PROMISED.values(), (found[:2], found[2:]), strict=True):
            largest = measured("EP", row, where)
            broken = ", MORE THAN PROMISED" if largest > promised[at] else ""
            cells.append(f"{promised[at]:g} (measured: {rounded_up(largest)}{broken})")
        lines.append([words, *cells, f"(measured: {rounded_up(measured('Laplace', row, found))})"])
    of_mean, of_sd, of_evidence = repeated_duel(TIMES[-1], VARIANCES[0])
    far_mean, far_sd, far_evidence = repeated_duel(TIMES[-1], VARIANCES[-1])
    again = f"""This holds for distinct questions. EP is worst for one question that is repeated with the
        same answer: after {TIMES[-1]} repetitions its standard deviation is {-of_sd:.0%} too small and its
        mean off by {abs(of_mean):.2f} standard deviations if the prior variance is {VARIANCES[0]:g}, by
        {-far_sd:.0%} and {abs(far_mean):.2f} if it is {VARIANCES[-1]:g}; the log evidence is
        {-of_evidence:.2f} and {-far_evidence:.2f} too low. Where EP's errors are largest, its standard
        deviation and its evidence are too small: it is overconfident."""
    return f"{table(lines)}\n\n{filled(again)}"


def report(exact: list[Truth], found: list[dict[str, Errors]]) -> str:
    """All tables, and how to read them."""
    parts = [f"## {case.title}\n\n{case_table(each)}" for case, each in zip(cases(), found, strict=True)]
    tables = "\n\n".join(parts)
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    apart = rounded_up(max(each.disagreement for each in exact))
    opening = """EP and Laplace's method approximate the posterior of f, which is not Gaussian, by a
        Gaussian. These are the errors of both in the mean, standard deviation, probabilities and evidence.
        The exact values are estimated by Markov chains (`method="gibbs"`) and by importance sampling."""
    reading = f"""The number after ± is the Monte Carlo standard error of the reference, from {REPEATS}
        independent repeats; an error below three of these is not significant. Errors of f are measured at
        {POINTS} points, the queried ones included. The largest has its sign (+: the approximation is too
        high) and the standard error at its point. The rms is followed by the rms of the standard errors,
        which is what it would be if the approximation were exact. Probabilities are those of a yes, or of a
        win in a duel, for {QUESTIONS} new questions."""
    reference = f"""Each repeat runs {CHAINS} chains of {SWEEPS} sweeps for the mean and the standard
        deviation (potential scale reduction within {apart} of one in every problem), and takes {DRAWS}
        sequential draws (Geweke, Hajivassiliou and Keane) for the probabilities and {EVIDENCE_DRAWS} for
        the evidence."""
    promising = """No theorem bounds EP's error. These bounds are empirical: the largest error of the
        problems below plus two standard errors (measured), with a margin for similar problems.
        `tests/model/test_gibbs.py` checks the bounds on other problems."""
    limits = """Errors of EP for the difference of the two options, whose exact posterior is known by
        quadrature. EP is exact for a single answer. Many equal answers truncate the Gaussian at zero, and EP
        approximates each of them by a separate factor."""
    return f"""# Accuracy of EP and of Laplace's approximation

`make bench-accuracy`, {date.today()}; Python {platform.python_version()}, {versions}.

{filled(opening)}

## What EP can promise

{filled(promising)}

{promise(found)}

## How to read the tables

{filled(reading)}

{filled(reference)}

{tables}

## The limits of EP: one duel repeated with the same answer

{filled(limits)}

{limits_table()}
"""


def main() -> None:
    """Measure, print, write."""
    torch.set_num_threads(1)
    start = time.perf_counter()
    exact = [truth(case) for case in cases()]
    found = [
        {
            name: errors(case, each, aw.infer(case.data, case.kernel, method))
            for name, method in METHODS.items()
        }
        for case, each in zip(cases(), exact, strict=True)
    ]
    text = report(exact, found)
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(text)
    print(f"{' ' * 110}\r{text}\n{time.perf_counter() - start:.0f} s; written to {REPORT}")


if __name__ == "__main__":
    main()
