"""Simulated people who compare two settings, or four: they name the best or the worst, or rank them.

    python benchmarks/people.py [--device cuda] [--workers 15]    # runs what docs/bench-people.npz lacks

Their utilities are the benchmark functions of 2 to 4 parameters, with a standard deviation of twice the noise
of an answer.  Every run is a lane.  `answers.py` and `minutes.py` report what is found.
"""

import argparse
import functools
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal, get_args

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read when scipy is imported

import numpy as np
import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from askwise.bench.functions import FUNCTIONS
from askwise.bench.problems import Problem
from askwise.loop import Query, next_query
from askwise.model import Data, expected_kernel, expected_length, fit, lanes_by, refit_count
from askwise.numerics import generator, ndtr, sobol
from askwise.rules import Asks, Rule, parse
from askwise.rules.base import Belief, Points, Search
from askwise.rules.muc_joint import JointMaximallyUncertainChallenge
from askwise.search import batches, best_challengers

FOUND = Path(__file__).resolve().parent.parent / "docs" / "bench-people.npz"
NAMES = sorted(name for name, function in FUNCTIONS.items() if 2 <= function.dim <= 4)
REPLICATES, SIZE, SPREAD = 5, 4, 2.0
QUESTIONS = {"duel": 80, "best": 30, "worst": 30, "ranking": 30}
LANES = 150  # computed together
RESAMPLES = 2000
_NODES = -4.0, 5.6, 0.8  # of the noise, above the highest utility
_ORDER_NODES, _BEYOND, _CERTAIN = 24, 2.0, 3.0  # over the utilities, beyond them, and where order is certain
Said = Literal["duel", "best", "worst", "ranking"]


@dataclass(frozen=True)
class Arm:
    """A rule, and how its questions are answered."""

    rule: str
    said: Said
    dims: tuple[int, ...] = (2, 3, 4)

    @property
    def size(self) -> int:
        """Options of a question."""
        return 2 if self.said == "duel" else SIZE

    @property
    def label(self) -> str:
        """Its name in the file of results."""
        return f"{self.rule}, {self.said}"


Scored = Literal["win", "order", "eubo"]
WINNER, ORDER, EUBO = (f"trial(score='{score}')" for score in get_args(Scored))
ARMS = [
    *(Arm(rule, "best") for rule in ("muc_joint", "muc", "random", EUBO)),
    Arm(WINNER, "best", (2, 4)),
    *(Arm(rule, "ranking") for rule in ("muc_joint", "muc", "random", EUBO)),
    Arm(WINNER, "ranking", (2,)),
    Arm(ORDER, "ranking", (2,)),
    Arm("muc_joint", "worst", (2,)),
    Arm("muc", "duel"),
]


@functools.cache
def normals(d: int, count: int, device: torch.device) -> Tensor:
    """Quasi-random standard normals [count, d] with mean zero."""
    drawn = torch.special.ndtri(sobol(d, count).clamp(1e-9, 1 - 1e-9))
    return (drawn - drawn.mean(0)).to(device)


def choice_probabilities(utilities: Tensor) -> Tensor:
    r"""Probability that each of m options [.., m] is named best, whose noise has variance 1/2.

    The integral of phi(t - sqrt(2) f_k) times the product of Phi(t - sqrt(2) f_j) over the others, with the
    same nodes for all k.
    """
    above = (utilities - utilities.amax(-1, keepdim=True).detach()) * 2**0.5
    z = torch.arange(*_NODES, dtype=above.dtype, device=above.device) - above[..., None]
    below = ndtr(z)
    found = (torch.exp(-z.square() / 2) * below.prod(-2, keepdim=True) / below).sum(-1)
    return found / found.sum(-1, keepdim=True)


def order_probabilities(utilities: Tensor) -> Tensor:
    r"""Probability of each order of m options [.., m], whose noise has variance 1/2: [.., m!].

    Nested integrals: that over the noisy utility of the worst, up to that of the second worst, and so on, by
    the trapezoidal rule.  Gaps between neighbours that leave no doubt are shortened, so that few nodes do.
    """
    values, index = utilities.float().sort(-1)
    gaps = values.diff(dim=-1).clamp_max(_CERTAIN)
    shortened = torch.cat([torch.zeros_like(gaps[..., :1]), gaps.cumsum(-1)], -1)
    height = torch.zeros_like(shortened).scatter(-1, index, shortened)
    share = torch.linspace(0, 1, _ORDER_NODES, dtype=height.dtype, device=height.device)
    span = shortened[..., -1:, None] + 2 * _BEYOND
    z = (span * share - _BEYOND - height[..., None]) * 2**0.5
    step = span * (2**0.5 / (_ORDER_NODES - 1))
    density = torch.exp(-z.square() / 2) * ((2 * torch.pi) ** -0.5 * step)
    options, below = range(height.shape[-1]), ndtr(z)
    worst: list[tuple[int, ...]] = [(k,) for k in options]
    while len(worst[0]) < len(options):
        longer = [(k, *few) for few in worst for k in options if k not in few]
        inner = below[..., [worst.index(few[1:]) for few in longer], :]
        each = density[..., [few[0] for few in longer], :] * inner
        below, worst = each.cumsum(-1) - each / 2, longer
    found = below[..., -1]
    return (found / found.sum(-1, keepdim=True)).double()


def draws(belief: Belief, x: Tensor, count: int) -> Tensor:
    """Draws of f at the points of each group [.., m, d], less that at the first: [.., count, m]."""
    mean, cov = belief.joint(x)
    apart = mean[..., 1:] - mean[..., :1]
    var = cov[..., 1:, 1:] - cov[..., 1:, :1] - cov[..., :1, 1:] + cov[..., :1, :1]
    eye = torch.eye(var.shape[-1], dtype=var.dtype, device=var.device)
    factor, failed = torch.linalg.cholesky_ex(var + 1e-8 * eye)
    factor = torch.where((failed == 0)[..., None, None], factor, 0.0)
    drawn = apart[..., None, :] + normals(var.shape[-1], count, var.device) @ factor.mT
    return torch.cat([torch.zeros_like(drawn[..., :1]), drawn], -1)


def winner_information(belief: Belief, x: Tensor) -> Tensor:
    """Mutual information of f and the option that is named best."""
    return information(choice_probabilities(draws(belief, x, 32)))


def order_information(belief: Belief, x: Tensor) -> Tensor:
    """Mutual information of f and the order of all options."""
    return information(order_probabilities(draws(belief, x, 16)))


def information(rates: Tensor) -> Tensor:
    """H(E[p]) - E[H(p)] for probabilities of answers [.., draws, answers]."""
    rates = rates.clamp_min(1e-30)
    mean = rates.mean(-2)
    return -(mean * mean.log()).sum(-1) + (rates * rates.log()).sum(-1).mean(-1)


def best_option(belief: Belief, x: Tensor) -> Tensor:
    """Expected utility of the best of each group (qEUBO: Astudillo et al. 2023)."""
    return belief.mean(x)[..., 0] + draws(belief, x, 128).amax(-1).mean(-1)


def with_better_member(
    score: Callable[[Tensor], Tensor], found: Tensor, member: int, search: Search
) -> Tensor:
    """The batch after a global search for one member and a local search for all."""

    def score_of_member(x: Tensor) -> Tensor:
        points = x.movedim(-2, 0)[..., None, :]
        others = found.expand(len(points), *found.shape)
        group = torch.cat([others[..., :member, :], points, others[..., member + 1 :, :]], -2)
        return score(group).movedim(0, -1)

    best = search.argmax(score_of_member)
    replaced = torch.cat([found[..., :member, :], best, found[..., member + 1 :, :]], -2)
    improved = search.local_maximum(score, torch.stack([found, replaced]), torch.ones_like(found[..., 0, :1]))
    better = score(improved[None])[0] > score(found[None])[0]
    return torch.where(better[..., None, None], improved, found)


@dataclass(frozen=True)
class Trial(Rule, register=False):
    """A rule for batches that was tried: the champion and challengers of highest score, or free members."""

    score: Scored = "win"

    key, title, asks, source, cost = "trial", "Trial", frozenset({Asks.BATCH}), "", ""

    def ask(self, belief: Belief, m: int, search: Search) -> Points:
        """The members of highest score."""
        worths = {"win": winner_information, "order": order_information, "eubo": best_option}
        champion, worth = search.champion(belief), worths[self.score]

        def score(x: Tensor) -> Tensor:
            return worth(belief, torch.cat([champion.expand(*x.shape[:-2], 1, -1), x], -2))

        begun = best_challengers(belief, champion, m, search, JointMaximallyUncertainChallenge().total)
        found = search.argmax(score, q=m - 1, extra=begun[None])
        for member in range(m - 1):
            found = with_better_member(score, found, member, search)
        found = torch.cat([champion, batches._sorted(found)], -2)
        if self.score != "eubo":
            return found
        return search.argmax(lambda x: worth(belief, x), q=m, extra=found[None])


def chooser(name: str) -> Rule:
    """The rule of this name."""
    for score in get_args(Scored):
        if name == f"trial(score='{score}')":
            return Trial(score)
    return parse(name)


def rows(said: Said, x: Tensor, order: Tensor) -> Data:
    """What people say of options [lane, n, m, d] that they would order so, best first [lane, n, m]."""
    if said == "duel":
        return Data.duels(x, (order[..., 0] == 0).double())
    if said == "worst":
        return Data.worst(x, order[..., -1])
    return Data.rankings(x, order[..., :1] if said == "best" else order[..., :-1])


def beginnings(arm: Arm, ids: Sequence[tuple[str, int]], d: int) -> tuple[Tensor, Tensor]:
    """First questions [lane, n, m, d], as many as in a study, and the noise of all answers [lane, t, m]."""
    initial, first, noise = 10 if arm.said == "duel" else 2, [], []
    for name, replicate in ids:
        seed = generator("people", name, replicate, "start").initial_seed() % 2**31
        engine = torch.quasirandom.SobolEngine(d, scramble=True, seed=seed)
        first.append(engine.draw(initial * arm.size, dtype=torch.float64).view(initial, arm.size, d))
        source = generator("people", name, replicate, "noise")
        noise.append(torch.randn(QUESTIONS[arm.said], arm.size, generator=source, dtype=torch.float64))
    return torch.stack(first), torch.stack(noise) * 0.5**0.5


def run(arm: Arm, ids: Sequence[tuple[str, int]], device: str) -> Tensor:
    """Regret of each lane after each answer, in standard deviations of its function."""
    torch.set_num_threads(1)
    problems = [Problem.of(name, "standardised") for name, _ in ids]
    lanes, d = {each: at.to(device) for each, at in lanes_by(problems).items()}, problems[0].function.dim
    best = torch.tensor([problem.best for problem in problems], dtype=torch.float64, device=device)

    def values(x: Tensor) -> Tensor:
        found = x.new_empty(x.shape[:-1])
        for problem, at in lanes.items():
            found[at] = problem.value(x[at])
        return found

    first, noise = (part.to(device) for part in beginnings(arm, ids, d))
    rule, prior, query = chooser(arm.rule), None, None
    asked, orders, regrets = list[Tensor](), list[Tensor](), list[Tensor]()
    for number in range(noise.shape[1]):
        x = first[:, number] if query is None or number < first.shape[1] else query.points
        asked.append(x)
        orders.append((SPREAD * values(x) + noise[:, number]).argsort(-1, descending=True))
        data = rows(arm.said, torch.stack(asked, 1), torch.stack(orders, 1))
        prior, warm = _learned(data, number + 1, prior, query, d)
        known = first.shape[1] <= number + 1 < noise.shape[1]
        sources = [
            generator("people", name, arm.rule, arm.size, arm.said, replicate, number)
            for name, replicate in ids
        ]
        asker = rule if known else parse("random")
        query = next_query(data, asker, prior, arm.size, sources, warm=warm, identify=True)
        assert query.optimum is not None
        regrets.append(best - values(query.optimum[:, 0]))
    return torch.stack(regrets, 1).cpu()


def _learned(
    data: Data, answers: int, prior: Kernel | None, query: Query | None, d: int
) -> tuple[Kernel, Belief | None]:
    """The kernel for these answers, and the belief to start from if it has the same."""
    if prior is None or refit_count(answers) == answers:
        return fit(data, expected_kernel("matern52", [expected_length(d)] * d)).kernel, None
    return prior, None if query is None else query.belief


def jobs(arms: Sequence[Arm]) -> Iterator[tuple[Arm, list[tuple[str, int]]]]:
    """Lanes that are computed together."""
    for arm in arms:
        for d in arm.dims:
            names = [name for name in NAMES if FUNCTIONS[name].dim == d]
            ids = [(name, replicate) for replicate in range(REPLICATES) for name in names]
            yield from ((arm, ids[start : start + LANES]) for start in range(0, len(ids), LANES))


def results() -> dict[str, np.ndarray]:
    """Regrets [function, replicate, question] by the label of the arm; NaN where there was no run."""
    if not FOUND.exists():
        return {}
    with np.load(FOUND) as kept:
        return {label: kept[label].astype(float) for label in kept.files}


def preferred(regret: np.ndarray) -> np.ndarray:
    """How often somebody would prefer the true best to the recommended setting, if that has this regret."""
    found: np.ndarray = ndtr(torch.as_tensor(SPREAD * regret)).numpy()
    return found


def interval(values: np.ndarray) -> tuple[float, float]:
    """95% interval of the mean of values [function, replicate], by resampling functions and replicates."""
    source, means = np.random.default_rng(0), []
    for _ in range(RESAMPLES):
        some = values[source.integers(len(values), size=len(values))]
        means.append(np.take_along_axis(some, source.integers(some.shape[1], size=some.shape), 1).mean())
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def main() -> None:
    """Run all arms that have no results yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--workers", type=int, default=2)
    given, found = parser.parse_args(), results()
    todo = list(jobs([arm for arm in ARMS if arm.label not in found]))
    with ProcessPoolExecutor(given.workers, get_context("spawn")) as pool:
        running = {pool.submit(run, arm, ids, given.device): (arm, ids) for arm, ids in todo}
        for future in as_completed(running):
            arm, ids = running[future]
            shape = len(NAMES), REPLICATES, QUESTIONS[arm.said]
            kept = found.setdefault(arm.label, np.full(shape, np.nan))
            for (name, replicate), regret in zip(ids, future.result(), strict=True):
                kept[NAMES.index(name), replicate] = regret
            print(f"{arm.label}: {len(ids)} runs", flush=True)
    small: dict[str, Any] = {label: kept.astype(np.float32) for label, kept in found.items()}
    np.savez_compressed(FOUND, **small)


if __name__ == "__main__":
    main()
