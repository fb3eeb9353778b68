"""Quality and speed of the search, compared with BoTorch's ``optimize_acqf``.

    python benchmarks/search.py speed                   # time per search, on the same beliefs and scores
    python benchmarks/search.py quality --workers 14    # against brute force: a million points, polished

The second takes five minutes with a GPU and 14 cores, and hours without.  Each rewrites its part of
docs/bench-search.md.
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
from botorch.acquisition.preference import AnalyticExpectedUtilityOfBestOption
from botorch.exceptions.errors import OptimizationGradientError
from botorch.models.pairwise_gp import PairwiseGP
from botorch.optim.optimize import optimize_acqf
from gpytorch.kernels import Kernel
from torch import Tensor

import askwise as aw
from askwise.interop.botorch import BeliefModel, LogMUC, UCBPhi
from askwise.model import Belief
from askwise.numerics import generator, minimize
from askwise.rules import RULES, Asks, Rule
from askwise.search import Search, with_gradient

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "bench-search.md"
ROWS = DOCUMENT.with_suffix(".jsonl")
BELIEFS, MILLION = 500, 1_000_000
LANES = 64
POLISHED = 256
RESTARTS, RAW = 3, 512  # for optimize_acqf, as in BoTorch's tutorial on preferences
CLOSE = 1e-3
SIZES = {Asks.BINARY: 1, Asks.DUEL: 2, Asks.BATCH: 4}


def data_of(prior: Kernel, d: int, n: int, members: int, source: torch.Generator) -> aw.Data:
    """Answers of a user whose utility is a draw from the prior."""
    nothing = aw.infer(aw.Data.binary(torch.empty(0, d), torch.empty(0)), prior)
    utility = aw.paths.draw(nothing, 1, source)
    x = torch.rand(n, members, d, generator=source, dtype=torch.float64)
    worth = utility(x.reshape(-1, d))[0].reshape(n, members)
    odds = torch.special.ndtr(worth[:, 0] - (worth[:, 1] if members == 2 else 0))
    answer = torch.rand(n, generator=source, dtype=torch.float64) < odds
    return aw.Data.binary(x[:, 0], answer) if members == 1 else aw.Data.duels(x, answer)


def random_belief(number: int, members: int) -> tuple[Belief, Kernel]:
    """A belief in 1 to 6 dimensions after 2 to 100 answers, with any of the kernels, and its prior."""
    source = generator("search benchmark", number)
    d, n, name = (int(torch.randint(*span, (), generator=source)) for span in ((1, 7), (2, 101), (0, 3)))
    length = 0.1 * 20 ** torch.rand(d, generator=source, dtype=torch.float64)
    variance = float(10 ** (2 * torch.rand((), generator=source)) / 4)
    prior = aw.kernel(("se", "matern32", "matern52")[name], length, variance)
    return aw.infer(data_of(prior, d, n, members, source), prior), prior


@dataclass(frozen=True)
class Recorder(Search):
    """A search that records its scores and results, or replays known results."""

    log: list[tuple[Any, int, Tensor]] = field(default_factory=list)
    known: list[Tensor] = field(default_factory=list)

    def argmax(self, score: Any, q: int = 1, **options: Any) -> Tensor:
        """The known result if there is one, otherwise that of a search."""
        known = self.known.pop(0).to(self.warm.device) if self.known else None
        found = super().argmax(score, q, **options) if known is None else known
        draws = options.get("draws")
        scores = [score] if draws is None else [partial(_one_draw, score, j) for j in range(draws)]
        for one, point in zip(scores, found[None] if draws is None else found, strict=True):
            self.log.append((one, q, point))
        return found

    def local_maximum(self, score: Any, groups: Tensor, scale: Tensor) -> Tensor:
        """The known result if there is one, otherwise that of an ascent."""
        known = self.known.pop(0).to(self.warm.device) if self.known else None
        found = super().local_maximum(score, groups, scale) if known is None else known
        self.log.append((score, groups.shape[-2], found))
        return found


def _one_draw(path: Callable[[Tensor], Tensor], j: int, x: Tensor) -> Tensor:
    return path(x)[j]


class Scored(AcquisitionFunction):
    """One of our scores for BoTorch's optimizer."""

    def __init__(self, score: Callable[[Tensor], Tensor], q: int) -> None:
        """``q``: points per group."""
        super().__init__(model=None)  # type: ignore[arg-type]
        self.score, self.q = score, q

    def forward(self, X: Tensor) -> Tensor:
        """Scores of batches of q points."""
        return self.score(X if self.q > 1 else X[..., 0, :])


def by_botorch(score: Callable[[Tensor], Tensor], q: int, d: int) -> Tensor:
    """The result of BoTorch's optimizer."""
    acquisition = score if isinstance(score, AcquisitionFunction) else Scored(score, q)
    bounds = torch.stack([torch.zeros(d), torch.ones(d)]).double()
    try:
        found, _ = optimize_acqf(acquisition, bounds, q, num_restarts=RESTARTS, raw_samples=RAW)
    except OptimizationGradientError as error:  # where the score has no gradient
        found = torch.as_tensor(error.current_x)[: q * d]
    return found.reshape(q, d)


def value(score: Callable[[Tensor], Tensor], q: int, x: Tensor) -> float:
    """Score of one point or group."""
    with torch.no_grad():
        return float(score(x if q == 1 else x[None]))


def by_brute_force(score: Callable[[Tensor], Tensor], q: int, d: int, warm: Tensor) -> tuple[float, float]:
    """The best of a million points (or groups), after polishing the best of them, and their median."""
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
        height, slope = with_gradient(score, flat if q == 1 else flat.view(-1, q, d))
        return -height / unit, -slope.reshape(len(flat), -1) / unit

    bounds = torch.zeros_like(starts), torch.ones_like(starts)
    _, low = minimize(objective, starts, *bounds, max_steps=150, gradient_tolerance=1e-7)
    return max(float(-low.min() * unit), float(every.max())), float(middle)


def searched(rule: Rule, m: int, belief: Belief, number: int, known: list[Tensor]) -> Recorder:
    """The searches of a rule."""
    search = Search.around(belief, generator("search benchmark", number, "ask"))
    recorder = Recorder(search.lanes, search.source, search.warm, known=known)
    with torch.no_grad():
        asked = rule.ask(belief, m, recorder)
    for place, (score, q, _) in enumerate(recorder.log):
        if q > 1:  # later searches refine members of the group
            recorder.log[place:] = [(score, q, asked[..., -q:, :])]
            break
    return recorder


def elsewhere(belief: Belief, kernel: Kernel, device: str) -> Belief:
    """The same belief on another device."""
    data = belief.data
    parts = (part.to(device) for part in (data.points, data.first, data.second, data.signs))
    return aw.infer(aw.Data(*parts), kernel.to(device))


def gaps_below_the_best(number: int) -> list[dict[str, Any]]:
    """The gap to the best known value of each search of one rule on one belief."""
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
            if getattr(score, "logarithmic", False):
                row[name] = float(-torch.expm1(torch.tensor(height - best)))
            else:
                row[name] = (best - height) / scale
        rows.append(row)
    return rows


def _calls(log: list[tuple[Any, int, Tensor]]) -> list[Tensor]:
    """The result of each call of the search; the draws of one call are stacked."""
    calls: list[list[Any]] = []
    for score, _, point in log:
        path = score.args[0] if isinstance(score, partial) else None
        if path is not None and calls and calls[-1][0] is path:
            calls[-1][1].append(point)
        else:
            calls.append([path, [point]])
    return [torch.stack(points) if path is not None else points[0] for path, points in calls]


def quality(workers: int) -> None:
    """Measure all beliefs, and write the table and its rows."""
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        rows = [row for rows in pool.map(gaps_below_the_best, range(BELIEFS)) for row in rows]
    ROWS.write_text("\n".join(json.dumps(row) for row in rows) + "\n")
    table = quality_table(rows)
    write_part("quality", table)
    print(table)


def quality_table(rows: list[dict[str, Any]]) -> str:
    """Share of searches that end within 0.001 of the best known value."""
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


def milliseconds(call: Callable[[], object], repeats: int = 7) -> float:
    """Median CPU time of a call, after a warm-up."""
    call()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(1e3 * (time.process_time() - start))
    return statistics.median(times)


def speed() -> None:
    """Time a search by each method, on the same belief after n duels in two dimensions."""
    torch.set_num_threads(1)
    head = ["score", "n", "askwise, ms", "optimize_acqf on our model, ms", "", "BoTorch's own model, ms", ""]
    head += [f"askwise, {LANES} lanes, ms per lane", ""]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for n in (20, 80, 160):
        for line in speed_lines(n):
            print(line, flush=True)
            lines.append(line)
    write_part("speed", "\n".join(lines))


def speed_lines(n: int) -> list[str]:
    """The rows for n duels."""
    prior = aw.kernel("matern52", [0.3, 0.3], 4.0)
    data = [data_of(prior, 2, n, 2, generator("search speed", n, lane)) for lane in range(LANES)]
    alone, together = aw.infer(data[0], prior), aw.infer(side_by_side(data), prior)
    model, theirs = BeliefModel(alone), botorch_model(data[0])
    lines = []
    searches = {"ucb_phi": search_ucb_phi, "muc, challenger": search_muc, "eubo, both points": search_eubo}
    for name, one in searches.items():
        ours = milliseconds(partial(one, alone))
        parts = [together.select(part) for part in torch.arange(LANES).split(8)]  # as on a CPU
        many = sum(milliseconds(partial(one, part), 1) for part in parts) / LANES
        same = milliseconds(partial(by_botorch, *acquisition(name, model, alone), 2))
        cells = [f"{ours:.1f}", f"{same:.0f}", f"{same / ours:.1f} x"]
        own = milliseconds(partial(by_botorch, *acquisition(name, theirs, alone), 2), 3)
        cells += [f"{own:.0f}", f"{own / ours:.0f} x", f"{many:.2f}", f"{own / many:.0f} x"]
        lines.append(f"| {name} | {n} | {' | '.join(cells)} |")
    return lines


def side_by_side(data: list[aw.Data]) -> aw.Data:
    """Several studies as lanes."""
    x = torch.stack([torch.stack([one.points[one.first], one.points[one.second]], -2) for one in data])
    return aw.Data.duels(x, torch.stack([(one.signs + 1) / 2 for one in data]))


def botorch_model(data: aw.Data) -> PairwiseGP:
    """BoTorch's model of the same duels; the kernel's variance is doubled, as its noise is."""
    winners = torch.where(data.signs > 0, data.first, data.second)
    losers = torch.where(data.signs > 0, data.second, data.first)
    prior = aw.kernel("matern52", [0.3, 0.3], 8.0)
    return PairwiseGP(data.points, torch.stack([winners, losers], -1), covar_module=prior).eval()


def search_ucb_phi(belief: Belief) -> Tensor:
    """One search for the maximum of the bound."""
    return searcher(belief).argmax(belief.predictive.score(aw.rules.parse("ucb_phi").score))  # type: ignore[attr-defined]


def search_muc(belief: Belief) -> Tensor:
    """One search for the challenger of a given point."""
    predictive = belief.predictive.against(torch.full_like(belief.data.points[..., :1, :], 0.5))
    return searcher(belief).argmax(predictive.score(aw.rules.parse("muc").log_score))  # type: ignore[attr-defined]


def search_eubo(belief: Belief) -> Tensor:
    """The whole rule: the champion, its challenger, and both jointly."""
    with torch.no_grad():
        return aw.rules.parse("eubo").ask(belief, 2, searcher(belief))


def searcher(belief: Belief) -> Search:
    """A search with one generator."""
    return Search.around(belief, generator("search speed"))


def acquisition(name: str, model: Any, belief: Belief) -> tuple[AcquisitionFunction, int]:
    """The same score for BoTorch, and its number of points."""
    if name.startswith("eubo"):
        return AnalyticExpectedUtilityOfBestOption(model), 2
    if name.startswith("muc"):
        return LogMUC(model, torch.full_like(belief.data.points[0], 0.5)), 1
    return UCBPhi(model), 1


def write_part(name: str, table: str) -> None:
    """Replace a table of the document."""
    text = DOCUMENT.read_text()
    before, rest = text.split(f"<!-- {name} -->\n", 1)
    _, after = rest.split(f"<!-- end of {name} -->", 1)
    DOCUMENT.write_text(f"{before}<!-- {name} -->\n{table}\n<!-- end of {name} -->{after}")


def main() -> None:
    """Measure quality or speed."""
    style = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    parser.add_argument("what", choices=("quality", "speed"))
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    if given.what == "quality":
        quality(given.workers)
    else:
        speed()


if __name__ == "__main__":
    main()
