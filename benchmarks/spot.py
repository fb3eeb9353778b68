"""Some committed runs computed again on this CPU: do they ask the same, and do they end alike?

    python benchmarks/spot.py                              # all of results/
    python benchmarks/spot.py --experiments pbo --cells 5 --replicates 20

Writes docs/bench-spot-checks.md.  What was found of experiments that are not asked for stays in it.
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
from askwise.bench.functions import FUNCTIONS
from askwise.bench.lanes import Cell, Runs, run
from askwise.bench.problems import Problem
from askwise.bench.provenance import hardware
from askwise.bench.results import Results, Trace, load
from askwise.climb import Scored
from askwise.data import Data
from askwise.inference import infer
from askwise.kernels import kernel
from askwise.rules import parse
from askwise.search import Search
from askwise.seeds import generator

ROOT = Path(__file__).resolve().parent.parent
RESULTS, KEPT, PAGE = ROOT / "results", ROOT / "out" / "spot", ROOT / "docs" / "bench-spot-checks.md"
DRAWS = ("thompson", "kss", "duel_thompson", "dueling_thompson")
MOST_DIMENSIONS = 3  # for rules that draw f: beyond, a question takes 0.3 s on a CPU
NOTICED, PARTED = 1e-6, 1e-3  # differences of questions, in the unit cube
EQUAL = 1e-4  # differences of scores below this part of themselves or of their range are none
TIE = 1e-5  # of the range of a score: what inference and search leave open

INTRODUCTION = """# Committed results, spot-checked on a CPU

`python benchmarks/spot.py`: of each experiment in `results/`, some cells (a rule on a function) drawn by a
fixed seed, each of another rule as far as there are so many, were computed again on one thread of {here}.
Rules that draw f ({draws}) were checked on functions of up to {most} dimensions, since draws in more take
long on a CPU; they, batches and learned kernels with half as many runs.

*Asks the same*: the first run of each cell is committed with all its questions. The columns say which
question (of how many) is the first to differ by more than 1e-6 and by more than 1e-3 in some coordinate of
the unit cube, which answer is the first to differ, and the largest difference before questions part by
1e-3.
*Gap*: how much better by the rule's own score the CPU's question is than the committed one where they part,
given the answers that both had until then. The unit is the range of the better half of scores over the
cube, of which the search itself neglects 1e-7 and inference, which stops at a tolerance of 1e-5, somewhat
more.
*Ends the same*: runs whose score is the same after every question, and runs whose final score is the same
(to 1e-4 of it or of the range of the committed ones), of the runs computed; then medians of final scores,
and two-sided Mann-Whitney p against the same runs and against all committed ones.
"""
WHY = """
## Why questions part

Both computers do the same arithmetic in another order, so a mean or a slope differs in its last digits.
That moves a maximum by 1e-8 or less, and such differences do not grow by themselves: the next search starts
from the same Sobol points and ends in the same maximum. Now and then two maxima far apart (mirror images of
each other, say) score alike to within what search and inference leave open, and each computer takes another
one. From then on the answers are to another question and the runs go separate ways, each as good a sample
of the rule as the other. The members of a batch are sought together, from batches that differ by a whole
member; there a difference in the last digits may lead to a maximum that is lower by a hundredth of the
range, on either computer.
"""


@dataclass(frozen=True)
class Comparison:
    """One cell, here and as committed; questions are counted from 1, and none is 0."""

    arm: str
    function: str
    questions: int
    noticed: int
    parted: int
    answered: int
    largest: float
    """Difference between questions before they parted."""
    runs: int
    same_throughout: int
    same_end: int
    better: int
    """Runs that end elsewhere, and better here."""
    medians: tuple[float, float, float]
    """Final scores here, of the same committed runs, of all committed runs."""
    p: tuple[float, float]
    """Against the same committed runs, and against all."""
    gaps: tuple[float | None, float | None] = (None, None)
    """By how much the question here scores higher, where a difference is noticed and where they part."""
    seconds: float = 0.0


@dataclass(frozen=True)
class Witness(Search):
    """A search that remembers which scores of groups [k, q, d] it was asked to maximise, and their q."""

    asked: list[tuple[int, Scored]] = field(default_factory=list, init=False)

    def argmax(
        self, score: Scored, q: int = 1, *, draws: int | None = None, extra: Tensor | None = None
    ) -> Tensor:
        """What any search finds."""
        if q > 1:
            self.asked.append((q, lambda x: score(x[:, None])[:, 0]))
        elif draws:
            several = [partial(_of_draw, score, number, draws) for number in range(draws)]
            self.asked.extend((1, one) for one in several)
        elif not any(size > 1 for size, _ in self.asked):  # else it refines a group
            plain = torch.exp if getattr(score, "logarithmic", False) else torch.clone
            self.asked.append((1, lambda x: plain(score(x[None, :, 0])[0])))
        return super().argmax(score, q, draws=draws, extra=extra)

    def select(self, lanes: Tensor) -> Search:
        """Asked for when a draw is to be replaced by another; which, is not followed."""
        self.asked.clear()
        return super().select(lanes)


def _of_draw(score: Scored, number: int, draws: int, x: Tensor) -> Tensor:
    return score(x[:, 0].expand(draws, 1, -1, -1))[number, 0]


def chosen(experiment: Experiment, count: int) -> list[tuple[str, str]]:
    """So many arms and functions, the same ones every time: the first arm, then others in some order."""
    source = np.random.default_rng([2021, *experiment.name.encode()])
    order, names = [0, *source.permutation(range(1, len(experiment.arms)))], experiment.functions
    cells: list[tuple[str, str]] = []
    for turn in range(count):
        arm = experiment.arms[order[turn % len(order)]]
        draws = parse(arm.rule).key in DRAWS
        fit = [name for name in names if not draws or FUNCTIONS[name].dim <= MOST_DIMENSIONS]
        fresh = [name for name in fit if all(name != taken for _, taken in cells)]
        cells.append((arm.label, str(source.choice(fresh or fit))))
    return cells


def compared(results: Results, cell: tuple[str, str], runs: Runs) -> Comparison:
    """What the first replicates of a cell, computed anew, have in common with the committed ones."""
    first, every = results.firsts[cell], results.scores[cell[0]][results.functions.index(cell[1])]
    apart = np.abs(runs.questions[0].numpy() - first.questions).max((1, 2))
    parted = _first(apart > PARTED)
    mine, theirs = runs.scores.numpy(), every[: len(runs.scores)]
    same = np.isclose(mine, theirs, rtol=EQUAL, atol=EQUAL * np.ptp(every[:, -1]))
    # equal but for rounding must count as equal to a test of ranks
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
    experiment: Experiment, cell: Cell, here: Trace, there: Trace, at: int, beyond: float = NOTICED
) -> float | None:
    """By how much question ``at`` scores higher here than there, under what was believed before.

    The unit is the range of the score.  None where kernels are learned, or draws were replaced.
    """
    known = Problem.of(cell.function, experiment.scale).hyperparameters(experiment.prior)
    if known is None:
        return None
    past, answers = (torch.from_numpy(one[: at - 1])[None] for one in (here.questions, here.answers))
    arm, pair = experiment.arm(cell.arm), np.stack([here.questions[at - 1], there.questions[at - 1]])
    data = Data.binary(past[:, :, 0], answers[..., 0]) if arm.m == 1 else Data.batches(past, answers)
    belief = infer(data, kernel(known.kernel, known.lengthscale, known.outputscale), tolerance=1e-9)
    around = Search.around(belief, source := [generator(*cell.identity, at - 1)])
    search = Witness(around.lanes, source, around.warm)
    with torch.no_grad():
        if arm.rule in ("ei", "bivariate_ei"):  # their first point is one of the past, without a search
            search.asked.append((1, lambda x: belief.mean(x[None, :, 0])[0]))
        parse(arm.rule).ask(belief, arm.m, search)
        # the last searches were for the last points of the question
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
    """A cell computed again, in so many runs."""
    experiment, start = results.experiment, time.process_time()
    arm = experiment.arm(cell[0])
    costly = parse(arm.rule).key in DRAWS or arm.m > 2 or experiment.prior == "learned"
    count = min(max(1, replicates // 2) if costly else replicates, experiment.replicates)
    lanes = [Cell(experiment.name, cell[1], cell[0], each) for each in range(count)]
    runs = run(experiment, lanes)
    spent, found = time.process_time() - start, compared(results, cell, runs)
    here = Trace(*(one[0].numpy() for one in (runs.questions, runs.answers, runs.optima)))
    there, places = results.firsts[cell], ((found.noticed, NOTICED), (found.parted, PARTED))
    first, second = (gap(experiment, lanes[0], here, there, *place) if place[0] else None for place in places)
    return replace(found, gaps=(first, second), seconds=spent)


def section(experiment: Experiment, about: dict[str, list[str]], found: Sequence[Comparison]) -> str:
    """What the page says of an experiment."""
    there = "; ".join(f"{name} {', '.join(about[name])}".strip() for name in ("hardware", "torch", "python"))
    lines = [
        f"\n## {experiment.name}\n\nCommitted: {there}. Here: {sum(one.seconds for one in found):.0f} s.\n",
        (
            "| rule | function | dimensions | 1e-6 | 1e-3 | answer | before | gap "
            "| same all along, at the end | medians: here, same runs, all | p: same runs, all | seconds |"
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
            f"| `{one.arm}` | {one.function} | {FUNCTIONS[one.function].dim} | {firsts} | {one.largest:.0e} "
            f"| {gaps} | {ends} | {one.p[0]:.2g}, {one.p[1]:.2g} | {one.seconds:.0f} |"
        )
    return "\n".join([*lines, "", verdict(found)])


def verdict(found: Sequence[Comparison]) -> str:
    """How much agrees."""
    runs, p = sum(one.runs for one in found), [value for one in found for value in one.p]
    gaps = [abs(x) for one in found for x in one.gaps if x is not None]
    apart, better = sum(one.runs - one.same_end for one in found), sum(one.better for one in found)
    words = [
        f"**{sum(not one.parted for one in found)} of {len(found)} first runs ask the same to the end",
        f"{sum(one.same_end for one in found)} of {runs} runs end the same; smallest p {min(p):.2g}",
        f"of {len(p)}, where less than {0.05 / len(p):.1g} would be news (Bonferroni).**",
    ]
    if gaps:
        ties = sum(value < TIE for value in gaps)
        words.append(
            f"Where questions part, {ties} of {len(gaps)} gaps are below {TIE:g}; largest {max(gaps):.0e}."
        )
    if apart:
        sign = binomtest(better, apart).pvalue
        words.append(f"Of {apart} runs that end elsewhere {better} end better here (sign test p {sign:.2g}).")
    return "; ".join(words[:2]) + " " + " ".join(words[2:])


def page() -> str:
    """All that was found, of every experiment."""
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
    """Check what was asked for, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    names = sorted(path.parent.name for path in RESULTS.glob("*/about.json"))
    parser.add_argument("--experiments", nargs="*", default=names, help="none: only write the page anew")
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
