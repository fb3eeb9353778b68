"""Level sets: how much of the space is on the wrong side of the level after 25, 50 and 100 answers?

    python benchmarks/level.py    # prints the tables and writes docs/bench-level.md; six minutes of one core

Each rule asks about functions whose answers are simulated; all runs of one dimension are lanes of one step.
"""

import argparse
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read when scipy is imported

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Bool, Float
from torch import Tensor

import askwise as aw
from askwise.bench.problems import Problem
from askwise.model import expected_kernel, expected_length, fit, refit_count
from askwise.numerics import generator, ndtr, sobol
from askwise.rules import latent_level
from askwise.study.level_sets import LevelOutlook, level_hint

OUT = Path(__file__).resolve().parent.parent / "docs" / "bench-level.md"
FUNCTIONS = (
    *("forrester", "gramacy_lee", "branin", "six_hump_camel", "holder_table", "levy"),
    *("trid", "ursem_waves", "hartmann3", "hartmann4"),
)
RULES = ("straddle_phi", "straddle", "ucb_phi", "space-filling", "random")
LEVELS = (0.95, 0.5)
SHOWN = (25, 50, 100)
FIRST = 5  # random questions, the same for every rule
RUNS = 12
STEEPNESS = 4.0  # standard deviation of the function, in units of the noise of an answer
SHARE = 0.25  # of the space that reaches the level
POINTS, CONFIDENCE = 2048, 0.95

HEAD = """# Level sets

`make bench-level`: simulated yes/no answers about {count} of the benchmark functions. Each function is
standardised, multiplied by {steep:g} (so its standard deviation is {steep:g} times the noise of an answer)
and shifted so that {share:.0%} of the space reaches the level. {first} random questions, the same for every
rule, then those of the rule; Matern 5/2 kernels learned from the answers, as in a study. *Misclassified*:
share of {points} settings spread over the space that the model puts on the wrong side of the level after 25,
50 and 100 answers; all outside would be {share:.0%}. Mean of {runs} runs, with a 95% interval (1.96
standard errors on either side), which is about the runs: other functions would give other numbers.
`space-filling` is a Sobol sequence. All of it took {seconds:.0f} s of CPU on one core.
"""
HONEST = """
## What a study says about itself

From the same runs. *Expected*: the share that the model itself expects to misclassify
(`study.status().misclassified`). *Inside*, *outside*: of the settings that are put there with a confidence
of {confidence:.0%}, the share that really is (it should be {confidence:.0%} or more), and in brackets their
share of the space. *Says stop*: in how many runs the hint is "You may stop", and what is then really
misclassified.
"""


FOUND = """
## What follows

At a level of 0.95 the three rules that look at the answers do not differ clearly over all functions;
`straddle_phi` misclassifies one to two percent of the space less than random or space-filling questions do
(the differences above; those of the other two rules were not computed). At a level of 0.5 it is better than
`ucb_phi`, which looks for the best setting. At 0.95 the straddle rules differ on single functions (`straddle`
is better on Forrester, `straddle_phi` on Ursem waves), not over all.
On Hartmann 4 space-filling questions are as good as any rule, or better. On Hölder's table and Gramacy-Lee,
which oscillate faster than the answers can follow, nothing helps at a level of 0.95.
"""


@dataclass(frozen=True)
class Seen:
    """What a model says after some answers, for each lane."""

    wrong: Float[Tensor, " lane"]
    """Share of settings on the wrong side."""
    expected: Float[Tensor, " lane"]
    inside: Float[Tensor, "lane 2"]
    """Share of the space that is put inside, and that is and really is."""
    outside: Float[Tensor, "lane 2"]
    stops: Bool[Tensor, " lane"]


class Functions:
    """The functions of some lanes, in units of the noise of an answer, shifted to the level."""

    def __init__(self, names: Sequence[str], level: float) -> None:
        """One function for each lane."""
        self.problems = {name: Problem.of(name, "standardised") for name in dict.fromkeys(names)}
        self.lanes = {name: [k for k, one in enumerate(names) if one == name] for name in self.problems}
        self.d = next(iter(self.problems.values())).function.dim
        self.points, self.border = sobol(self.d, POINTS), latent_level(level)
        dense = sobol(self.d, 2**15)
        self.shifts = {
            name: self.border - STEEPNESS * float(problem.value(dense).quantile(1 - SHARE))
            for name, problem in self.problems.items()
        }

    def values(self, x: Float[Tensor, "lane q d"]) -> Float[Tensor, "lane q"]:
        """Values at the points of each lane."""
        found = x.new_empty(x.shape[:-1])
        for name, problem in self.problems.items():
            found[self.lanes[name]] = STEEPNESS * problem.value(x[self.lanes[name]]) + self.shifts[name]
        return found


def run(rule: str, names: Sequence[str], level: float, runs: int) -> dict[tuple[str, int], Seen]:
    """What the model says of each function after so many answers; functions of one dimension."""
    lanes = [(name, number) for name in names for number in range(runs)]
    asked = Functions([name for name, _ in lanes], level)
    first = [generator("level", name, number, "first") for name, number in lanes]
    chance = torch.stack([torch.rand(max(SHOWN), generator=one, dtype=torch.float64) for one in first])
    x = torch.stack([_start(one, asked.d, rule) for one in first])
    said = chance[:, : x.shape[1]] < ndtr(asked.values(x))
    chosen = None if rule in ("random", "space-filling") else aw.rules.parse(rule).at_level(level)
    found, kernel, belief = {}, None, None
    for count in range(FIRST, max(SHOWN) + 1):
        data = aw.Data.binary(x[:, :count], said[:, :count])
        is_read = chosen is not None or count >= refit_count(min(SHOWN))
        if is_read and (kernel is None or refit_count(count) == count):
            kernel, belief = _learned(data, asked.d), None
        if count in SHOWN:
            assert kernel is not None
            belief = aw.infer(data, kernel, warm=belief)
            parts = _seen(belief, asked, level, count)
            for k, name in enumerate(names):
                own = slice(k * runs, (k + 1) * runs)
                found[name, count] = Seen(**{key: part[own] for key, part in vars(parts).items()})
        if chosen is not None and count < max(SHOWN):
            assert kernel is not None
            source = [generator("level", rule, name, number, count) for name, number in lanes]
            query = aw.next_query(data, chosen, kernel, 1, source, warm=belief)
            belief, x = query.belief, torch.cat([x, query.points], 1)
            yes = chance[:, count : count + 1] < ndtr(asked.values(query.points))
            said = torch.cat([said, yes], 1)
    return found


def _start(source: torch.Generator, d: int, rule: str) -> Float[Tensor, "k d"]:
    """The random questions, or all of a rule that does not look at the answers."""
    first = torch.rand(FIRST, d, generator=source, dtype=torch.float64)
    if rule == "random":
        return torch.cat([first, torch.rand(max(SHOWN) - FIRST, d, generator=source, dtype=torch.float64)])
    if rule == "space-filling":
        seed = int(torch.randint(2**31, (), generator=source))
        engine = torch.quasirandom.SobolEngine(d, scramble=True, seed=seed)
        return torch.cat([first, engine.draw(max(SHOWN) - FIRST, dtype=torch.float64)])
    return first


def _learned(data: aw.Data, d: int) -> Kernel:
    return fit(data, expected_kernel("matern52", [expected_length(d)] * d)).kernel


def _seen(belief: aw.Belief, asked: Functions, level: float, count: int) -> Seen:
    with torch.no_grad():
        above = belief.probability_above(asked.points, asked.border)
    true = asked.values(asked.points.expand(*above.shape[:1], -1, -1)) >= asked.border
    inside, outside = above >= CONFIDENCE, 1 - above >= CONFIDENCE
    expected = torch.minimum(above, 1 - above).mean(-1)
    few = count < 5 * asked.d
    looks = [LevelOutlook(*pair) for pair in zip(above.mean(-1).tolist(), expected.tolist(), strict=True)]
    stops = torch.tensor([level_hint(look, level, few).startswith("You may stop") for look in looks])
    within, without = (
        torch.stack([side.double().mean(-1), (side & right).double().mean(-1)], -1)
        for side, right in ((inside, true), (outside, ~true))
    )
    return Seen(((above >= 0.5) != true).double().mean(-1), expected, within, without, stops)


def interval(values: Float[Tensor, "function run"]) -> str:
    """Mean over functions and runs, with an interval of 95% that is about the runs."""
    middle = values.mean()
    reach = 1.96 * (values.var(-1) / values.shape[-1]).sum().sqrt() / len(values)
    return f"{100 * middle:.1f} ± {100 * reach:.1f}"


Results = dict[tuple[float, str, str, int], Seen]


def table(results: Results, level: float, functions: Sequence[str]) -> str:
    """Misclassified shares by function and rule."""
    lines = [f"\n## Level {level:g}\n\nMisclassified, in percent of the space:\n"]
    lines += ["| function | rule | " + " | ".join(f"after {count}" for count in SHOWN) + " |"]
    lines += ["|---" * (2 + len(SHOWN)) + "|"]
    groups: dict[str, Sequence[str]] = {"all": functions, **{name: [name] for name in functions}}
    for title, group in groups.items():
        for rule in RULES:
            cells = [
                interval(torch.stack([results[level, rule, name, count].wrong for name in group]))
                for count in SHOWN
            ]
            bold = "**" if title == "all" else ""
            lines.append(f"| {bold}{title}{bold} | `{rule}` | {' | '.join(cells)} |")
    pairs = ("straddle", "ucb_phi", "space-filling", "random")
    lines += ["\n`straddle_phi` minus another rule, over all functions (below zero it is better):\n"]
    lines += ["| rule | " + " | ".join(f"after {count}" for count in SHOWN) + " |", "|---" * 4 + "|"]
    for other in pairs:
        cells = []
        for count in SHOWN:
            one, two = (
                torch.stack([results[level, rule, name, count].wrong for name in functions])
                for rule in ("straddle_phi", other)
            )
            cells.append(interval(one - two))
        lines.append(f"| `{other}` | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def honesty(results: Results, functions: Sequence[str]) -> str:
    """What the model says of itself, over all functions."""
    lines = ["\n| level | rule | answers | expected | true | inside | outside | says stop | true of those |"]
    lines += ["|---" * 9 + "|"]
    for level in LEVELS:
        for rule in RULES:
            for count in SHOWN:
                seen = [results[level, rule, name, count] for name in functions]
                wrong, expected = (
                    torch.cat([getattr(one, key) for one in seen]) for key in ("wrong", "expected")
                )
                sides = []
                for key in ("inside", "outside"):
                    put, right = torch.cat([getattr(one, key) for one in seen]).mean(0).tolist()
                    sides.append(f"{right / put:.0%} ({put:.0%})" if put else "none")
                stops = torch.cat([one.stops for one in seen])
                stopped = wrong[stops]
                then = (
                    f"{100 * stopped.mean():.1f}, at most {100 * stopped.max():.1f}" if len(stopped) else ""
                )
                cells = (
                    f"{level:g} | `{rule}` | {count} | {100 * expected.mean():.1f} | "
                    f"{100 * wrong.mean():.1f} | {' | '.join(sides)} | "
                    f"{len(stopped)} of {len(stops)} | {then}"
                )
                lines.append(f"| {cells} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run everything and write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--functions", default=",".join(FUNCTIONS))
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    torch.set_num_threads(1)
    functions = given.functions.split(",")
    dimensions: dict[int, list[str]] = {}
    for name in functions:
        dimensions.setdefault(Problem.of(name, "standardised").function.dim, []).append(name)
    results: Results = {}
    began = time.process_time()
    for level in LEVELS:
        for rule in RULES:
            for names in dimensions.values():
                for (name, count), seen in run(rule, names, level, given.runs).items():
                    results[level, rule, name, count] = seen
            print(f"{level:g} {rule}: {time.process_time() - began:.0f} s of CPU so far", flush=True)
    head = HEAD.format(
        count=len(functions),
        steep=STEEPNESS,
        share=SHARE,
        first=FIRST,
        points=POINTS,
        runs=given.runs,
        seconds=time.process_time() - began,
    )
    tables = "".join(table(results, level, functions) for level in LEVELS)
    page = f"{head}{tables}{FOUND}{HONEST.format(confidence=CONFIDENCE)}{honesty(results, functions)}"
    given.out.write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
