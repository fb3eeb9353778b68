"""Recompute some committed runs on this CPU: do they make the same queries, and have the same results?

    python benchmarks/spot.py                              # all of results/
    python benchmarks/spot.py --experiments pbo --cells 5 --replicates 20

Writes docs/bench-spot-checks.md; sections about other experiments stay.
"""

import argparse
import json
import platform
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from scipy.stats import binomtest, mannwhitneyu
from torch import Tensor

from askwise.bench.experiments import Experiment
from askwise.bench.functions import named
from askwise.bench.lanes import RunId, Runs, run
from askwise.bench.problems import Problem
from askwise.bench.provenance import hardware
from askwise.bench.results import Results, Transcript, load
from askwise.model import Data, infer
from askwise.numerics import generator
from askwise.rules import parse
from askwise.search import Search
from askwise.search.ascent import Scored

ROOT = Path(__file__).resolve().parent.parent
RESULTS, KEPT, PAGE = ROOT / "results", ROOT / "out" / "spot", ROOT / "docs" / "bench-spot-checks.md"
DRAWS = ("thompson", "kss", "duel_thompson", "dueling_thompson")
MOST_DIMENSIONS = 3  # for rules that draw f: in more, a query takes 0.3 s on a CPU
NOTICED, PARTED = 1e-6, 1e-3  # differences of queries, in the unit cube
EQUAL = 1e-4  # scores closer than this fraction of themselves or of their range count as equal
TIE = 1e-5  # of the range of a score: the tolerance of inference and search

INTRODUCTION = """# Spot checks of the committed results on a CPU

`python benchmarks/spot.py`: for each experiment in `results/`, some pairs of a rule and a function, drawn
with a fixed seed and with different rules as far as possible, were recomputed on one thread of {here}.
Rules that draw f ({draws}) were checked on functions of up to {most} dimensions, since draws in more are
slow on a CPU; they, batches and learned kernels have half as many runs.

*Same queries*: the first run of each pair is committed with all its queries. The columns give the first query
that differs by more than 1e-6 and by more than 1e-3 in some coordinate of the unit cube, the first answer
that differs, and the largest difference before the queries diverge by 1e-3.
*Gap*: how much higher the CPU's query scores than the committed one where they diverge, by the rule's own
score and given the answers so far. The unit is the range of the better half of scores over the cube; the
search neglects 1e-7 of it, and inference, which stops at a tolerance of 1e-5, somewhat more.
*Same results*: of the runs computed, those whose score is the same after every query, and those whose final
score is the same (to 1e-4 of it or of the range of the committed ones); then medians of final scores, and
two-sided Mann-Whitney p against the same runs and against all committed ones.
"""
WHY = """
## Why queries diverge

CPU and GPU do the same arithmetic in a different order, so a mean or a gradient differs in its last digits.
That moves a maximum by 1e-8 or less, and such differences do not grow: the next search starts from the same
Sobol points and ends in the same maximum. Occasionally two distant maxima (mirror images of each other, say)
have equal scores within the tolerance of search and inference, and the two machines choose different ones.
From then on the runs receive different answers and diverge, each as valid a sample of the rule as the other.
The members of a batch are searched jointly, from candidate batches that differ by a whole member; there a
difference in the last digits can lead to a maximum that is lower by a hundredth of the range, on either
machine.

Most campaigns were also computed before searches, draws of f, inference and fits were written anew.
Where kernels are learned, f is drawn or batches are searched,
queries then differ by more than last digits, and first runs part soon.

Two things above are not quite what chance would do. Runs that end differently end lower here a little more
often than higher; on the four roughest functions the GPU had luck with equal scores
([findings](bench/findings.md)), which explains a part of it. And KSS with five people on Griewank's function
is at the limit of its experiment (p = 0.0043): on all 26 functions of that campaign, computed again, the
mean regret differs by 0.021 (-0.012 to 0.052).
"""


@dataclass(frozen=True)
class Comparison:
    """One rule on one function, here and as committed; queries count from 1, and 0 means none."""

    arm: str
    function: str
    questions: int
    noticed: int
    parted: int
    answered: int
    largest: float
    """Difference between queries before they diverged."""
    runs: int
    same_throughout: int
    same_end: int
    better: int
    """Runs with another final score, which is better here."""
    medians: tuple[float, float, float]
    """Final scores here, of the same committed runs, of all committed runs."""
    p: tuple[float, float]
    """Against the same committed runs, and against all."""
    gaps: tuple[float | None, float | None] = (None, None)
    """By how much the query here scores higher, where it first differs and where they diverge."""
    seconds: float = 0.0


@dataclass(frozen=True)
class Witness(Search):
    """A search that records the scores of groups [k, q, d] that it maximises, and their q."""

    asked: list[tuple[int, Scored]] = field(default_factory=list, init=False)

    def argmax(
        self, score: Scored, q: int = 1, *, draws: int | None = None, extra: Tensor | None = None
    ) -> Tensor:
        """The result of a plain search."""
        if q > 1:
            self._ask_of_groups(score, q)
        elif draws:
            several = [partial(_of_draw, score, number, draws) for number in range(draws)]
            self.asked.extend((1, one) for one in several)
        elif not any(size > 1 for size, _ in self.asked):  # else it refines a group
            plain = torch.exp if getattr(score, "logarithmic", False) else torch.clone
            self.asked.append((1, lambda x: plain(score(x[None, :, 0])[0])))
        return super().argmax(score, q, draws=draws, extra=extra)

    def local_maximum(self, score: Scored, groups: Tensor, scale: Tensor) -> Tensor:
        """The result of a plain ascent, which chooses all challengers of a batch."""
        self._ask_of_groups(score, groups.shape[-2])
        return super().local_maximum(score, groups, scale)

    def _ask_of_groups(self, score: Scored, q: int) -> None:
        self.asked.append((q, lambda x: score(x[:, None])[:, 0]))

    def select(self, lanes: Tensor) -> Search:
        """Called when draws are replaced; which ones is not recorded."""
        self.asked.clear()
        return super().select(lanes)


def _of_draw(score: Scored, number: int, draws: int, x: Tensor) -> Tensor:
    return score(x[:, 0].expand(draws, 1, -1, -1))[number, 0]


def chosen(experiment: Experiment, count: int) -> list[tuple[str, str]]:
    """Pairs of an arm and a function, the same every time: the first arm, then others in random order."""
    source = np.random.default_rng([2021, *experiment.name.encode()])
    order, names = [0, *source.permutation(range(1, len(experiment.arms)))], experiment.functions
    cells: list[tuple[str, str]] = []
    for turn in range(count):
        arm = experiment.arms[order[turn % len(order)]]
        draws = parse(arm.rule).key in DRAWS
        fit = [name for name in names if not draws or named(name).dim <= MOST_DIMENSIONS]
        fresh = [name for name in fit if all(name != taken for _, taken in cells)]
        cells.append((arm.label, str(source.choice(fresh or fit))))
    return cells


def compared(results: Results, cell: tuple[str, str], runs: Runs) -> Comparison:
    """The first replicates of a pair, recomputed, compared with the committed ones."""
    first, every = results.firsts[cell], results.scores[cell[0]][results.functions.index(cell[1])]
    apart = np.abs(runs.questions[0].numpy() - first.questions).max((1, 2))
    parted = _first(apart > PARTED)
    mine, theirs = runs.scores.numpy(), every[: len(runs.scores)]
    same = np.isclose(mine, theirs, rtol=EQUAL, atol=EQUAL * np.ptp(every[:, -1]))
    # a rank test must see scores that differ by rounding as equal
    ends = np.where(same, theirs, mine)[:, -1]
    return Comparison(
        *cell,
        questions=len(apart),
        noticed=_first(apart > NOTICED),
        parted=parted,
        answered=_first((runs.answers[0].numpy() != first.answers).any(1)),
        largest=float(apart[: parted - 1 if parted else None].max(initial=0.0)),
        runs=len(mine),
        same_throughout=int(same.all(1).sum()),
        same_end=int(same[:, -1].sum()),
        better=int((ends > theirs[:, -1]).sum()),
        medians=(float(np.median(ends)), float(np.median(theirs[:, -1])), float(np.median(every[:, -1]))),
        p=(_p(ends, theirs[:, -1]), _p(ends, every[:, -1])),
    )


def _first(where: np.ndarray) -> int:
    return int(where.argmax()) + 1 if where.any() else 0


def _p(some: np.ndarray, others: np.ndarray) -> float:
    if np.ptp(np.concatenate([some, others])) == 0:
        return 1.0
    return float(mannwhitneyu(some, others).pvalue)


def gap(
    experiment: Experiment,
    run_id: RunId,
    here: Transcript,
    there: Transcript,
    at: int,
    beyond: float = NOTICED,
) -> float | None:
    """By how much query ``at`` scores higher here than there, given the belief before it.

    The unit is the range of the score.  None if the kernel is learned or draws were replaced.
    """
    known = Problem.of(run_id.function, experiment.scale).hyperparameters(experiment.prior)
    if known is None:
        return None
    past, answers = (torch.from_numpy(one[: at - 1])[None] for one in (here.questions, here.answers))
    arm, pair = experiment.arm(run_id.arm), np.stack([here.questions[at - 1], there.questions[at - 1]])
    data = Data.binary(past[:, :, 0], answers[..., 0]) if arm.m == 1 else Data.batches(past, answers)
    belief = infer(data, known.gpytorch(), tolerance=1e-9)
    around = Search.around(belief, source := [generator(*run_id.identity, at - 1)])
    search = Witness(around.lanes, source, around.warm)
    with torch.no_grad():
        if arm.rule in ("ei", "bivariate_ei"):  # their first point is a past one, not searched
            search.asked.append((1, lambda x: belief.mean(x[None, :, 0])[0]))
        parse(arm.rule).ask(belief, arm.m, search)
        # the last searches were for the last points of the query
        end, asked = arm.m, search.asked
        member = _first(np.abs(pair[0] - pair[1]).max(-1) > beyond) - 1
        while asked and end - asked[-1][0] > member:
            end -= asked.pop()[0]
        if not asked:
            return None
        q, score = asked[-1]
        anywhere = torch.rand(512, q, past.shape[-1], generator=source[0], dtype=torch.float64)
        values = score(torch.cat([torch.from_numpy(pair[:, end - q : end]), anywhere, past[0, :, -q:]]))
        return float((values[0] - values[1]) / (values.amax() - values.amin()))


def checked(results: Results, cell: tuple[str, str], replicates: int) -> Comparison:
    """A pair recomputed, with up to this number of replicates."""
    experiment, start = results.experiment, time.process_time()
    arm = experiment.arm(cell[0])
    costly = parse(arm.rule).key in DRAWS or arm.m > 2 or experiment.prior in ("learned", "averaged")
    count = min(max(1, replicates // 2) if costly else replicates, experiment.replicates)
    lanes = [RunId(experiment.name, cell[1], cell[0], each) for each in range(count)]
    runs = run(experiment, lanes)
    spent, found = time.process_time() - start, compared(results, cell, runs)
    here = Transcript(*(one[0].numpy() for one in (runs.questions, runs.answers, runs.optima)))
    there, places = results.firsts[cell], ((found.noticed, NOTICED), (found.parted, PARTED))
    first, second = (gap(experiment, lanes[0], here, there, *place) if place[0] else None for place in places)
    return replace(found, gaps=(first, second), seconds=spent)


def section(experiment: Experiment, about: dict[str, list[str]], found: Sequence[Comparison]) -> str:
    """The section about an experiment."""
    there = "; ".join(f"{name} {', '.join(about[name])}".strip() for name in ("hardware", "torch", "python"))
    lines = [
        f"\n## {experiment.name}\n\nCommitted: {there}. Here: {sum(one.seconds for one in found):.0f} s.\n",
        (
            "| rule | function | dimensions | 1e-6 | 1e-3 | answer | before | gap "
            "| same throughout, at the end | medians: here, same runs, all | p: same runs, all | seconds |"
        ),
        "|" + " --- |" * 12,
    ]
    for one in found:
        firsts = " | ".join(
            f"{n} of {one.questions}" if n else "never" for n in (one.noticed, one.parted, one.answered)
        )
        ends = f"{one.same_throughout}, {one.same_end} of {one.runs} | " + ", ".join(
            f"{x:.4g}" for x in one.medians
        )
        gaps = ", ".join(f"{value:.0e}" for value in dict.fromkeys(one.gaps) if value is not None)
        lines.append(
            f"| `{one.arm}` | {one.function} | {named(one.function).dim} | {firsts} | {one.largest:.0e} "
            f"| {gaps} | {ends} | {one.p[0]:.2g}, {one.p[1]:.2g} | {one.seconds:.0f} |"
        )
    return "\n".join([*lines, "", verdict(found)])


def verdict(found: Sequence[Comparison]) -> str:
    """A summary of the agreement."""
    runs, p = sum(one.runs for one in found), [value for one in found for value in one.p]
    whole, ends = sum(not one.parted for one in found), sum(one.same_end for one in found)
    gaps = [abs(x) for one in found for x in one.gaps if x is not None]
    apart, better = sum(one.runs - one.same_end for one in found), sum(one.better for one in found)
    words = [
        f"**{whole} of {len(found)} first runs make the same queries to the end",
        f"{ends} of {runs} runs have the same final score; smallest p {min(p):.2g}",
        f"of {len(p)}, where below {0.05 / len(p):.1g} would be significant (Bonferroni).**",
    ]
    if gaps:
        ties = sum(value < TIE for value in gaps)
        words.append(
            f"Where queries diverge, {ties} of {len(gaps)} gaps are below {TIE:g}; largest {max(gaps):.0e}."
        )
    if apart:
        sign = binomtest(better, apart).pvalue
        words.append(
            f"Of {apart} runs with other final scores {better} are better here (sign test p {sign:.2g})."
        )
    return "; ".join(words[:2]) + " " + " ".join(words[2:])


def page() -> str:
    """The whole page."""
    here = f"{hardware('cpu')} (torch {torch.__version__}, Python {platform.python_version()})"
    parts, every = [], []
    for path in sorted(KEPT.glob("*.json")):
        found = [Comparison(**one) for one in json.loads(path.read_text())]
        results = load(RESULTS / path.stem)
        parts.append(section(results.experiment, results.about, found))
        every += found
    words = {"here": here, "draws": ", ".join(DRAWS), "most": MOST_DIMENSIONS}
    return (
        INTRODUCTION.format(**words) + f"\nAll together: {verdict(every)}\n" + "\n".join(parts) + "\n" + WHY
    )


def main() -> None:
    """Check experiments and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    names = sorted(path.parent.name for path in RESULTS.glob("*/about.json"))
    parser.add_argument(
        "--experiments", nargs="*", default=names, help="without names, only rewrite the page"
    )
    parser.add_argument("--cells", type=int, default=5)
    parser.add_argument("--replicates", type=int, default=20)
    options = parser.parse_args()
    torch.set_num_threads(1)
    KEPT.mkdir(parents=True, exist_ok=True)
    for name in options.experiments:
        found, results = [], load(RESULTS / name)
        for cell in chosen(results.experiment, options.cells):
            found.append(checked(results, cell, options.replicates))
            print(name, found[-1], flush=True)
        (KEPT / f"{name}.json").write_text(json.dumps([asdict(one) for one in found]))
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
