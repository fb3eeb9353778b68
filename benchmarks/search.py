"""How good and how fast the search is, beside BoTorch's ``optimize_acqf``.

    python benchmarks/search.py quality    # against a brute force of a million points, polished
    python benchmarks/search.py speed      # time a search, on the same beliefs and scores

The first takes two minutes with a GPU and 8 cores, and hours without.  Each rewrites its part of
docs/bench-search.md from what it measured.
"""

import argparse
import json
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.exceptions.errors import OptimizationGradientError
from botorch.optim import optimize_acqf
from gpytorch.kernels import Kernel
from torch import Tensor

import askwise as aw
from askwise import bfgs
from askwise.belief import Belief
from askwise.rules import RULES, Asks, Rule
from askwise.search import Search, with_slope
from askwise.seeds import generator

DOCS = Path(__file__).resolve().parent.parent / "docs"
MILLION = 1_000_000
POLISHED = 256
RESTARTS, RAW = 3, 512  # of optimize_acqf, as in BoTorch's tutorial on preferences
CLOSE = 1e-3
SIZES = {Asks.BINARY: 1, Asks.DUEL: 2, Asks.BATCH: 4}


def data_of(prior: Kernel, d: int, n: int, members: int, source: torch.Generator) -> aw.Data:
    """Answers of a user whose taste is a draw of the prior."""
    nothing = aw.infer(aw.Data.binary(torch.empty(0, d), torch.empty(0)), prior)
    taste = aw.paths.draw(nothing, 1, source)
    x = torch.rand(n, members, d, generator=source, dtype=torch.float64)
    worth = taste(x.reshape(-1, d))[0].reshape(n, members)
    odds = torch.special.ndtr(worth[:, 0] - (worth[:, 1] if members == 2 else 0))
    answer = torch.rand(n, generator=source, dtype=torch.float64) < odds
    return aw.Data.binary(x[:, 0], answer) if members == 1 else aw.Data.duels(x, answer)


def random_belief(number: int, members: int) -> tuple[Belief, Kernel]:
    """About a function in 1 to 6 dimensions after 2 to 100 answers, under any of the kernels."""
    source = generator("search benchmark", number)
    d, n, name = (int(torch.randint(*span, (), generator=source)) for span in ((1, 7), (2, 101), (0, 3)))
    length = 0.1 * 20 ** torch.rand(d, generator=source, dtype=torch.float64)
    variance = float(10 ** (2 * torch.rand((), generator=source)) / 4)
    prior = aw.kernel(("se", "matern32", "matern52")[name], length, variance)
    return aw.infer(data_of(prior, d, n, members, source), prior), prior


@dataclass(frozen=True)
class Recorder(Search):
    """A search that remembers its scores and what it found; or only repeats what was found before."""

    log: list[tuple[Any, int, Tensor]] = field(default_factory=list)
    known: list[Tensor] = field(default_factory=list)

    def argmax(self, score: Any, q: int = 1, **options: Any) -> Tensor:
        if self.known:
            found = self.known.pop(0).to(self.warm.device)
        else:
            found = super().argmax(score, q, **options)
        draws = options.get("draws")
        scores = [score] if draws is None else [partial(_one_draw, score, j) for j in range(draws)]
        for one, point in zip(scores, found[None] if draws is None else found, strict=True):
            self.log.append((one, q, point))
        return found


def _one_draw(path: Callable[[Tensor], Tensor], j: int, x: Tensor) -> Tensor:
    return path(x)[j]


class Scored(AcquisitionFunction):
    """A score of ours for BoTorch's optimizer."""

    def __init__(self, score: Callable[[Tensor], Tensor], q: int) -> None:
        super().__init__(model=None)
        self.score, self.q = score, q

    def forward(self, X: Tensor) -> Tensor:
        return self.score(X if self.q > 1 else X[..., 0, :])


def by_botorch(score: Callable[[Tensor], Tensor], q: int, d: int) -> Tensor:
    acquisition = score if isinstance(score, AcquisitionFunction) else Scored(score, q)
    bounds = torch.stack([torch.zeros(d), torch.ones(d)]).double()
    try:
        found, _ = optimize_acqf(acquisition, bounds, q, num_restarts=RESTARTS, raw_samples=RAW)
    except OptimizationGradientError as error:  # where the score has no slope
        found = torch.as_tensor(error.current_x)[: q * d]
    return found.reshape(q, d)


def value(score: Callable[[Tensor], Tensor], q: int, x: Tensor) -> float:
    """Score of one point or group."""
    with torch.no_grad():
        return float(score(x if q == 1 else x[None]))


def by_brute_force(score: Callable[[Tensor], Tensor], q: int, d: int, warm: Tensor) -> tuple[float, float]:
    """The best of a million points (or groups), the best of which are polished; and their median."""
    device = warm.device
    engine = torch.quasirandom.SobolEngine(q * d, scramble=True, seed=1)
    values, points = [], []
    with torch.no_grad():
        part = 2**16 // q
        for _ in range(0, MILLION, part):
            x = engine.draw(part, dtype=torch.float64).to(device)
            scores = torch.nan_to_num(score(x if q == 1 else x.view(-1, q, d)), nan=-torch.inf)
            top = scores.topk(POLISHED)
            values.append(scores)
            points.append((x[top.indices], top.values))
        every = torch.cat(values)
        starts, heights = (torch.cat(parts) for parts in zip(*points, strict=True))
        starts = starts[heights.topk(POLISHED - len(warm)).indices]
        starts = torch.cat([starts, warm.reshape(len(warm), q * d)])
        middle = every.median()
        unit = (every.max() - middle).clamp_min(1e-300)

    def objective(flat: Tensor) -> tuple[Tensor, Tensor]:
        height, slope = with_slope(score, flat if q == 1 else flat.view(-1, q, d))
        return -height / unit, -slope.reshape(len(flat), -1) / unit

    bounds = torch.zeros_like(starts), torch.ones_like(starts)
    _, low = bfgs.minimize(objective, starts, *bounds, max_steps=150, gradient_tolerance=1e-7)
    return max(float(-low.min() * unit), float(every.max())), float(middle)


def is_logarithmic(rule: Rule, score: Any) -> bool:
    formula = getattr(score, "formula", None)
    if formula is None or formula.__name__ == "standardised":
        return False
    return hasattr(rule, "log_score") or rule.key == "hallucination_believer"


def searched(rule: Rule, m: int, belief: Belief, number: int, known: list[Tensor]) -> Recorder:
    search = Search.around(belief, generator("search benchmark", number, "ask"))
    recorder = Recorder(**vars(search), known=known)
    with torch.no_grad():
        rule.ask(belief, m, recorder)
    return recorder


def elsewhere(belief: Belief, kernel: Kernel, device: str) -> Belief:
    """The belief about the same answers on another device."""
    data = belief.data
    parts = (part.to(device) for part in (data.points, data.first, data.second, data.signs))
    return aw.infer(aw.Data(*parts), kernel.to(device))


def shortfalls(number: int) -> list[dict[str, Any]]:
    """How far below the best known value the searches of one rule end on one belief."""
    torch.set_num_threads(1)
    rules = [RULES[key]() for key in sorted(RULES) if key != "random"]
    rule = rules[number % len(rules)]
    kinds = sorted(rule.asks)
    kind = kinds[number // len(rules) % len(kinds)]
    belief, kernel = random_belief(number, 1 if kind is Asks.BINARY else 2)
    d, device = belief.data.points.shape[-1], "cuda" if torch.cuda.is_available() else "cpu"
    log = searched(rule, SIZES[kind], belief, number, []).log
    found = []
    for score, q, ours in log:
        torch.manual_seed(number)
        found.append((score, q, ours.reshape(q, d), by_botorch(score, q, d).reshape(q, d)))
    known = _calls(log)
    there = searched(rule, SIZES[kind], elsewhere(belief, kernel, device), number, known).log
    rows = []
    for (score, q, ours, theirs), (score_there, _, _) in zip(found, there, strict=True):
        best, middle = by_brute_force(score_there, q, d, torch.stack([ours, theirs]).to(device))
        heights = {"ours": value(score, q, ours), "botorch": value(score, q, theirs)}
        best = max(best, *heights.values())
        scale = max(best - middle, 1e-12 * (1 + abs(best)))
        row: dict[str, Any] = {"number": number, "rule": rule.key, "q": q, "d": d, "n": belief.data.n}
        for name, height in heights.items():
            if is_logarithmic(rule, score):
                row[name] = float(-torch.expm1(torch.tensor(height - best)))
            else:
                row[name] = (best - height) / scale
        rows.append(row)
    return rows


def _calls(log: list[tuple[Any, int, Tensor]]) -> list[Tensor]:
    """What each call of the search returned: the draws of one call belong together."""
    calls: list[list[Any]] = []
    for score, _, point in log:
        path = score.args[0] if isinstance(score, partial) else None
        if path is not None and calls and calls[-1][0] is path:
            calls[-1][1].append(point)
        else:
            calls.append([path, [point]])
    return [torch.stack(points) if path is not None else points[0] for path, points in calls]


def quality(first: int, last: int, out: Path) -> None:
    """Measure and write the rows of some beliefs."""
    with ProcessPoolExecutor(14, mp_context=get_context("spawn")) as pool:
        rows = [row for rows in pool.map(shortfalls, range(first, last)) for row in rows]
    out.write_text(json.dumps(rows))
    print(quality_table(rows))


def quality_table(rows: list[dict[str, Any]]) -> str:
    """Share of searches that end within a thousandth of the best known value."""
    by_rule = defaultdict(list)
    for row in rows:
        by_rule[row["rule"]].append(row)
    lines = ["| rule | searches | askwise | optimize_acqf |", "|---|---|---|---|"]
    for name, group in [*sorted(by_rule.items()), ("**all**", rows)]:
        shares = (
            f"{sum(row[who] <= CLOSE for row in group) / len(group):.1%}" for who in ("ours", "botorch")
        )
        lines.append(f"| {name} | {len(group)} | {' | '.join(shares)} |")
    return "\n".join(lines)


def milliseconds(call: Callable[[], object], repeats: int) -> float:
    """Median CPU time of a call, after one to warm up."""
    call()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(1e3 * (time.process_time() - start))
    return statistics.median(times)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("quality", "speed"))
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--last", type=int, default=500)
    parser.add_argument("--out", type=Path, default=Path("out/search-quality.json"))
    given = parser.parse_args()
    if given.what == "quality":
        given.out.parent.mkdir(exist_ok=True)
        quality(given.first, given.last, given.out)
