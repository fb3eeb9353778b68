"""People who differ, lapse and disagree: regret, recovery of what is learned of them, the check, time.

    python benchmarks/raters.py [--parts a,b,c,d,e] [--workers N] [--seconds S] [--studies SHARE]

    a  five people: separate, shared and population models
    b  answers that are flipped: lapses learned and left out
    c  recovery of lapse rates, margins, noise and shares
    d  the check that people disagree
    e  CPU time of an ask

Prints the tables and puts them into docs/bench-raters.md.  Each study is kept in out/raters, so that an
interrupted run, or one that stops after S seconds, goes on where it was.  Real people: raters_real.py.
"""

import argparse
import json
import math
import os
import re
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple, dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read when scipy is imported

import numpy as np
import torch
from gpytorch.kernels import Kernel
from torch import Tensor

import askwise as aw
from askwise.bench.functions import FUNCTIONS
from askwise.model import infer, paths, refit_count
from askwise.numerics import generator, minimize, sobol
from askwise.study import Plan, Study
from askwise.study.plan import no_answers
from askwise.study.raters import Estimate
from askwise.study.simulation import drawn_kernel

ROOT = Path(__file__).resolve().parent.parent
OUT, KEPT = ROOT / "docs" / "bench-raters.md", ROOT / "out" / "raters"
PEOPLE, DUELS = 5, 40
MODELS = ("separate", "shared", "population")
KERNEL = "matern52"  # one, as the default was when these were run
SHARES = ("0", "0.2", "0.5", "1")
SHIFTED = "functions, shifted"
SHIFT = 0.1  # deviation of each person's own shift of a function, as a share of each range
DEVIATION = 3.0  # of functions, in units of the noise of an answer
FLIPS, LAPSES = ("0", "0.05"), ("0", "learned")
CLEAR = {"very clear": 10, "clear": 3}  # by how much utilities are larger where tastes are clear
USERS = {
    ("prior", 2): 250,
    ("prior", 4): 250,
    ("prior, clear", 2): 250,
    ("prior, kernel known", 2): 250,
    ("prior, clear, kernel known", 2): 250,
    ("prior, very clear", 2): 250,
    ("prior, very clear, kernel known", 2): 250,
    ("functions", 2): 250,
}
RATES, MARGINS = ("0.02", "0.05", "0.1"), ("0.2", "0.5", "1")
ALONE, EACH = 93, 63  # answers of one person, and of each of five: numbers after which all is learned anew
GROUPS, CHECKED, RECOVERED, RECOVERED_GROUPS = 100, 200, 200, 200
TOP, GRID = 16, 4096  # starts of the ascent to the true maximum, and Sobol points they are taken from
Numbers = list[float]


# people


@dataclass(frozen=True)
class Crowd:
    """People's utilities over the unit cube, in units of the noise of an answer."""

    d: int
    utilities: Callable[[Tensor], Tensor]
    """From points [q, d] to utilities [people, q]."""
    deviation: float
    kernel: Kernel | str = "matern52"
    """Of which the utilities are draws; a name where it is not known."""

    @classmethod
    def drawn(
        cls, plan: Plan, people: int, share: float, source: torch.Generator, size: float = 1
    ) -> "Crowd":
        """Draws from the study's prior, its parameters included, of which this share is one's own."""
        prior = drawn_kernel(plan, source)
        path = paths.draw(infer(no_answers(plan.space.d), prior), people + 1, source)
        deviation = size * float(prior.outputscale.sqrt())
        known = aw.kernel("matern52", prior.base_kernel.lengthscale.flatten().tolist(), deviation**2)

        def utilities(x: Tensor) -> Tensor:
            common, *own = path(x)
            return size * (math.sqrt(1 - share) * common + math.sqrt(share) * torch.stack(own))

        return cls(plan.space.d, utilities, deviation, known)

    @classmethod
    def function(cls, name: str, people: int, shift: float, source: torch.Generator) -> "Crowd":
        """A benchmark function, which each person sees shifted by a vector of their own."""
        function = FUNCTIONS[name]
        shifts = shift * torch.randn(people, 1, function.dim, generator=source, dtype=torch.float64)
        values = function.unit(sobol(function.dim, GRID))

        def utilities(x: Tensor) -> Tensor:
            seen = 1 - (1 - (x + shifts).abs()).abs()  # reflected at the faces of the cube
            return DEVIATION / values.std() * (function.unit(seen.clamp(0, 1)) - values.mean())

        return cls(function.dim, utilities, DEVIATION)

    def best(self) -> Tensor:
        """Everybody's highest utility: by ascent from the best of many points."""
        grid = sobol(self.d, GRID)
        found = self.utilities(grid)
        starts = grid[found.topk(TOP, -1).indices].flatten(0, 1)
        whose = torch.arange(len(found)).repeat_interleave(TOP)

        def depth(x: Tensor) -> tuple[Tensor, Tensor]:
            with torch.enable_grad():
                x = x.detach().requires_grad_()
                value = -self.utilities(x)[whose, torch.arange(len(whose))]
                return value.detach(), torch.autograd.grad(value.sum(), x)[0]

        _, lowest = minimize(depth, starts, torch.zeros_like(starts), torch.ones_like(starts))
        return torch.maximum(found.amax(-1), (-lowest).reshape(len(found), TOP).amax(-1))

    def of(self, study: Study, settings: Sequence[dict[str, Any]]) -> Tensor:
        """Everybody's utilities of settings."""
        return self.utilities(torch.stack([study.space.unit(setting) for setting in settings]))

    def regrets(self, study: Study, recommended: Sequence[dict[str, Any]]) -> Numbers:
        """By how much everybody's best setting is better than the recommended one, in deviations."""
        reached = self.of(study, recommended).diagonal()
        return ((self.best() - reached).clamp_min(0) / self.deviation).tolist()


def space(d: int) -> aw.Space:
    """The parameters of all studies."""
    return aw.Space(**{f"x{k}": aw.Real(0, 1) for k in range(d)})


def crowd_of(row: str, people: int, d: int, seed: int) -> Crowd:
    """The people of a row of a table: a share of one's own, or functions."""
    source = generator("benchmark of raters", row, d, seed)
    if row in (SHIFTED, "functions"):
        names = [name for name, function in FUNCTIONS.items() if function.dim == d]
        return Crowd.function(names[seed % len(names)], people, SHIFT * (row == SHIFTED), source)
    if row.startswith("prior"):
        size = next((size for word, size in CLEAR.items() if word in row), 1)
        return Crowd.drawn(Plan.checked(space(d)), people, 0.0, source, size)
    return Crowd.drawn(Plan.checked(space(d)), people, float(row), source)


def told(lead: Tensor, noise: float, margin: float = 0.0) -> int | None:
    """The answer to a duel; None for a tie."""
    felt = float(lead) + noise
    return None if abs(felt) < margin else int(felt < 0)


def normals(count: int, *names: str | int) -> Numbers:
    """The noise in answers: the same for all models of a user."""
    return torch.randn(count, generator=generator(*names), dtype=torch.float64).tolist()


def uniforms(count: int, *names: str | int) -> Numbers:
    """Random numbers that say which answers are lapses or flipped."""
    return torch.rand(count, generator=generator(*names), dtype=torch.float64).tolist()


# studies


@dataclass(frozen=True)
class Case:
    """One study."""

    kind: str
    row: str
    variant: str
    d: int
    seed: int

    @property
    def file(self) -> Path:
        """Where the result is kept."""
        return KEPT / ("-".join(map(str, astuple(self))).replace(", ", "-") + ".json")


def people_in_turn(case: Case) -> dict[str, Any]:
    """Five people answer in turn: everybody's regret at the end; of a shared study, whether it is doubted."""
    study = Study(space(case.d), "duel", seed=case.seed, participants=case.variant, kernel=KERNEL)
    crowd = crowd_of(case.row, PEOPLE, case.d, case.seed)
    noises, doubted = normals(PEOPLE * DUELS, "in turn", case.row, case.seed), []
    for count, noise in enumerate(noises, 1):
        who = (count - 1) % PEOPLE
        question = study.ask(f"person {who}")
        first, second = crowd.of(study, question.options)[who]
        study.tell(question, told(first - second, noise))
        if case.variant == "shared" and count in (PEOPLE * DUELS // 2, PEOPLE * DUELS):
            doubted += [check.flagged for check in study.checks() if check.name == "raters"]
    differ = case.variant != "shared"
    best = [study.best(participant=f"person {who}" if differ else None).params for who in range(PEOPLE)]
    return {"regrets": crowd.regrets(study, best), "doubted": doubted}


def flipped_answers(case: Case) -> dict[str, Any]:
    """One person, some of whose answers are replaced by their opposites: the regret at the end."""
    flips, lapses = case.variant.split(" ")
    lapse: float | str = lapses if lapses == "learned" else float(lapses)
    crowd = crowd_of(case.row, 1, case.d, case.seed)
    kernel = crowd.kernel if "known" in case.row else "matern52"
    study = Study(space(case.d), "duel", seed=case.seed, lapses=lapse, kernel=kernel)
    names = (case.row, case.d, case.seed)
    for noise, u in zip(normals(DUELS, "noise", *names), uniforms(DUELS, "flips", *names), strict=True):
        question = study.ask()
        first, second = crowd.of(study, question.options)[0]
        answer = told(first - second, noise)
        assert answer is not None
        study.tell(question, 1 - answer if u < float(flips) else answer)
    return {"regrets": crowd.regrets(study, [study.best().params])}


def one_observer(case: Case) -> dict[str, Any]:
    """What is learned of one person, who lapses and perhaps can't decide."""
    rate, margin = (float(case.variant), 0.0) if case.row == "lapses" else (0.02, float(case.variant))
    study = Study(space(case.d), "duel", seed=case.seed, kernel=KERNEL)
    crowd = crowd_of("prior", 1, case.d, case.seed)
    noises, draws = (
        normals(ALONE, "observer", *astuple(case)),
        uniforms(ALONE, "observer lapses", *astuple(case)),
    )
    for noise, u in zip(noises, draws, strict=True):
        question = study.ask()
        first, second = crowd.of(study, question.options)[0]
        study.tell(question, int(u < rate / 2) if u < rate else told(first - second, noise, margin))
    found = study.raters()
    learned = [] if found.margin is None else listed(found.margin)
    return {"lapse": listed(found.each[0].lapse), "margin": learned}


def many_observers(case: Case) -> dict[str, Any]:
    """What is learned of five people from random duels: true values, then estimates with their intervals."""
    draws = uniforms(1 + 3 * PEOPLE * EACH, "observers", *astuple(case))
    share, lapses = 0.05 + 0.9 * draws[0], draws[1:]
    noises = [math.exp(0.5 * z) for z in normals(PEOPLE, "observers' noise", *astuple(case))]
    crowd = crowd_of(f"{share}", PEOPLE, case.d, case.seed)
    study = Study(space(case.d), "duel", seed=case.seed, participants="population", kernel=KERNEL)
    kept = []
    source = generator("observers' duels", *astuple(case))
    points = torch.rand(PEOPLE * EACH, 2, case.d, generator=source, dtype=torch.float64)
    utilities = crowd.utilities(points.flatten(0, 1)).unflatten(-1, (-1, 2))
    errors = normals(PEOPLE * EACH, "observers' errors", *astuple(case))
    for index, (pair, error, u) in enumerate(zip(points, errors, lapses, strict=False)):
        who = index % PEOPLE
        lead = utilities[who, index, 0] - utilities[who, index, 1]
        answer = int(u < 0.01) if u < 0.02 else told(lead, noises[who] * error)
        options = [study.space.natural(point) for point in pair]
        kept.append({"options": options, "answer": answer, "participant": f"person {who}"})
    study.record_many(kept)
    found = study.raters()
    assert found.share is not None
    return {
        "share": [share, *listed(found.share)],
        "noise": [[true, *listed(one.noise)] for true, one in zip(noises, found.each, strict=True)],
        "lapse": [[0.02, *listed(one.lapse)] for one in found.each],
    }


def listed(estimate: Estimate) -> Numbers:
    """An estimate and the ends of its interval."""
    return [estimate.value, *(estimate.interval or ())]


SOLVERS: dict[str, Callable[[Case], dict[str, Any]]] = {
    "people": people_in_turn,
    "flips": flipped_answers,
    "observer": one_observer,
    "observers": many_observers,
}


def cases(parts: str, part_of: float) -> Iterator[Case]:
    """All studies of some parts, in such an order that the first ones are of every kind."""
    for seed in range(round(part_of * max(GROUPS, CHECKED, RECOVERED_GROUPS, *USERS.values()))):

        def within(count: int, seed: int = seed) -> bool:
            return seed < part_of * count

        for row in (*SHARES, SHIFTED):
            for model in MODELS:
                checked = "d" in parts and model == "shared" and row != SHIFTED and within(CHECKED)
                if checked or ("a" in parts and within(GROUPS)):
                    yield Case("people", row, model, 2, seed)
        for (row, d), users in USERS.items():
            if "b" in parts and within(users):
                yield from (Case("flips", row, f"{f} {lapse}", d, seed) for f in FLIPS for lapse in LAPSES)
        if "c" in parts and within(RECOVERED):
            yield from (Case("observer", "lapses", rate, 2, seed) for rate in RATES)
            yield from (Case("observer", "margins", margin, 2, seed) for margin in MARGINS)
        if "c" in parts and within(RECOVERED_GROUPS):
            yield Case("observers", "population", "", 2, seed)


def solved(case: Case, deadline: float = math.inf) -> dict[str, Any] | None:
    """The result of a study, kept or new; None if there is no time left."""
    if case.file.exists():
        return json.loads(case.file.read_text())
    if time.time() > deadline:
        return None
    torch.set_num_threads(1)
    result = SOLVERS[case.kind](case)
    case.file.parent.mkdir(parents=True, exist_ok=True)
    written = case.file.with_suffix(".part")
    written.write_text(json.dumps(result))
    written.rename(case.file)
    return result


Results = dict[Case, dict[str, Any]]


# tables


def head(*columns: str) -> list[str]:
    """The first lines of a table."""
    return [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]


def interval(values: Sequence[float], digits: int = 3) -> str:
    """A mean with its 95% bootstrap interval."""
    given = np.asarray(values)
    drawn = np.random.default_rng(0).choice(given, (4000, len(given))).mean(-1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return f"{given.mean():.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def wilson(hits: int, total: int) -> str:
    """A share with its 95% Wilson interval."""
    z, p = 1.96, hits / total
    middle, half = p + z * z / (2 * total), z * math.sqrt(p * (1 - p) / total + (z / (2 * total)) ** 2)
    low, high = ((middle + side * half) / (1 + z * z / total) for side in (-1, 1))
    return f"{p:.1%} ({max(0.0, low):.1%} to {min(1.0, high):.1%})"


def paired(results: Results, kind: str, row: str, d: int, variants: Sequence[str]) -> list[Numbers]:
    """Mean regret of each study of each variant, for the seeds of which all variants are there."""
    seeds = sorted({case.seed for case in results if (case.kind, case.row, case.d) == (kind, row, d)})
    each = [[results.get(Case(kind, row, variant, d, seed)) for variant in variants] for seed in seeds]
    whole = [[statistics.mean(one["regrets"]) for one in many if one] for many in each if all(many)]
    return [list(column) for column in zip(*whole, strict=True)]


def minus(one: Numbers, other: Numbers) -> Numbers:
    """Differences of the same users."""
    return [x - y for x, y in zip(one, other, strict=True)]


def people_table(results: Results) -> str:
    """Regret of five people by model."""
    differences = [f"population - {other}" for other in MODELS[:2]]
    lines = head("share of one's own", "groups", *MODELS, *differences)
    for row in (*SHARES, SHIFTED):
        columns = paired(results, "people", row, 2, MODELS)
        if columns:
            compared = [minus(columns[2], other) for other in columns[:2]]
            cells = map(interval, [*columns, *compared])
            lines.append(f"| {row} | {len(columns[0])} | {' | '.join(cells)} |")
    return "\n".join(lines)


def flips_table(results: Results) -> str:
    """Regret with and without flipped answers, with lapses learned and left out."""
    compared = ["learned - none", "learned below none"]
    lines = head("flipped", "utilities", "users", "no lapses", "learned", *compared)
    for flips in FLIPS:
        for row, d in USERS:
            columns = paired(results, "flips", row, d, [f"{flips} {lapse}" for lapse in LAPSES])
            if columns:
                none, learned = columns
                gains = minus(learned, none)
                better = wilson(sum(gain < 0 for gain in gains), len(gains))
                name = f"{float(flips):.0%} | {row}, {d}-D | {len(none)}"
                lines.append(f"| {name} | {' | '.join(map(interval, [*columns, gains]))} | {better} |")
    return "\n".join(lines)


def harm_table(results: Results) -> str:
    """By how much flips raise the regret: all that a model of them could bring back."""
    lines = head("flipped", "utilities", "users", "no lapses", "learned")
    for flips in FLIPS[1:]:
        for row, d in USERS:
            variants = [f"{rate} {lapse}" for rate in (FLIPS[0], flips) for lapse in LAPSES]
            columns = paired(results, "flips", row, d, variants)
            if columns:
                harms = [minus(*pair) for pair in zip(columns[2:], columns[:2], strict=True)]
                name = f"{float(flips):.0%} | {row}, {d}-D | {len(columns[0])}"
                lines.append(f"| {name} | {' | '.join(map(interval, harms))} |")
    return "\n".join(lines)


def recovery_table(results: Results) -> str:
    """Bias, error and coverage of what is learned of people."""
    lines = head("what", "true", "studies", "estimates", "mean", "bias", "RMSE", "coverage of 95%")

    def add(what: str, true: str, studies: int, rows: list[Numbers]) -> None:
        """``rows``: true value, estimate and, if there is one, the interval."""
        if not rows:
            return
        errors = [row[1] - row[0] for row in rows]
        rmse = math.sqrt(statistics.mean(error**2 for error in errors))
        inside = [row[2] <= row[0] <= row[3] for row in rows if len(row) > 2]
        coverage = wilson(sum(inside), len(inside)) if inside else "no interval"
        mean = statistics.mean(row[1] for row in rows)
        numbers = f"{len(rows)} | {mean:.3f} | {interval(errors)} | {rmse:.3f} | {coverage}"
        lines.append(f"| {what} | {true} | {studies} | {numbers} |")

    for row, key, values in (("lapses", "lapse", RATES), ("margins", "margin", MARGINS)):
        for value in values:
            found = [
                [float(value), *result[key]]
                for case, result in results.items()
                if (case.kind, case.row, case.variant) == ("observer", row, value) and result[key]
            ]
            add(f"{key} of one person", value, len(found), found)
    groups = [result for case, result in results.items() if case.kind == "observers"]
    add("share", "0.05 to 0.95", len(groups), [one["share"] for one in groups])
    for low in (0.05, 0.35, 0.65):
        part = [one["share"] for one in groups if low <= one["share"][0] < low + 0.3]
        add("share", f"{low:g} to {low + 0.3:g}", len(part), part)
    logs = [[list(map(math.log, row)) for row in one["noise"]] for one in groups]
    add("log noise of each of five", "N(0, 0.5²)", len(groups), [row for one in logs for row in one])
    middles = [[statistics.mean(row[side] for row in one) for side in (0, 1)] for one in logs]
    both = zip(logs, middles, strict=True)
    relative = [[row[0] - m[0], row[1] - m[1]] for one, m in both for row in one]
    add("the same, less the mean of the five", "", len(groups), relative)
    add("lapse of each of five", "0.02", len(groups), [row for one in groups for row in one["lapse"]])
    return "\n".join(lines)


def check_table(results: Results) -> str:
    """How often people are said to disagree."""
    looks = [f"flagged after {DUELS // 2} answers each", f"after {DUELS} each"]
    lines = head("share of one's own", "groups", *looks)
    for share in SHARES:
        found = [
            result["doubted"]
            for case, result in results.items()
            if (case.kind, case.row, case.variant) == ("people", share, "shared")
        ]
        if found:
            cells = [wilson(sum(one[look] for one in found), len(found)) for look in (0, 1)]
            lines.append(f"| {share} | {len(found)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def time_table(studies: int = 4, first: int = 81, last: int = 141) -> str:
    """CPU milliseconds of asks around 100 answers of five people, without and with a refit."""
    torch.set_num_threads(1)
    refits = [count for count in range(first, last) if refit_count(count) == count]
    lines = head("model", "parameters", "asks", "median", "worst", *(f"refit at {n}" for n in refits))
    for d in (2, 4):
        for model in ("shared", "population"):
            spent: dict[int, Numbers] = {count: [] for count in range(last)}
            for seed in range(studies):
                study = Study(space(d), "duel", seed=seed, participants=model, kernel=KERNEL)
                crowd = crowd_of("0.2", PEOPLE, d, seed)
                for count, noise in enumerate(normals(last, "time", seed)):
                    start = time.process_time()
                    question = study.ask(f"person {count % PEOPLE}")
                    spent[count].append(1e3 * (time.process_time() - start))
                    first_one, second = crowd.of(study, question.options)[count % PEOPLE]
                    study.tell(question, told(first_one - second, noise))
            plain = [ms for n in range(first, last) if n not in refits for ms in spent[n]]
            cells = [statistics.median(plain), max(plain)]
            learned = [f"{statistics.median(spent[n]):.0f}, worst {max(spent[n]):.0f}" for n in refits]
            numbers = " | ".join([*(f"{cell:.0f}" for cell in cells), *learned])
            lines.append(f"| {model} | {d} | {len(plain)} | {numbers} |")
    return "\n".join(lines)


TABLES: dict[str, dict[str, Callable[[Results], str]]] = {
    "a": {"people": people_table},
    "b": {"flips": flips_table, "harm": harm_table},
    "c": {"recovery": recovery_table},
    "d": {"check": check_table},
    "e": {"time": lambda _: time_table()},
}


def put(tables: dict[str, str]) -> None:
    """Print tables and write them to their places on the page."""
    page = OUT.read_text(encoding="utf-8")
    for name, rows in tables.items():
        print(f"{rows}\n", flush=True)
        begin, end = re.escape(f"<!-- {name} -->"), re.escape("<!-- end -->")
        before, _, after = re.split(rf"(?<={begin})(.*?)(?={end})", page, maxsplit=1, flags=re.DOTALL)
        page = f"{before}\n\n{rows}\n\n{after}"
    OUT.write_text(page, encoding="utf-8")


def main() -> None:
    """Run the studies of the chosen parts and write their tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--parts", default="a,b,c,d,e")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=math.inf, help="start no study after so long")
    parser.add_argument("--studies", type=float, default=1.0, help="share of the studies, or a multiple")
    given = parser.parse_args()
    wanted, deadline = list(cases(given.parts, given.studies)), time.time() + given.seconds
    with ProcessPoolExecutor(given.workers, get_context("spawn")) as pool:
        found = list(pool.map(partial(solved, deadline=deadline), wanted))
    results = {case: result for case, result in zip(wanted, found, strict=True) if result is not None}
    print(f"{len(results)} of {len(wanted)} studies are finished.\n")
    tables = {name: table for part in given.parts.split(",") for name, table in TABLES[part].items()}
    put({name: table(results) for name, table in tables.items()})


if __name__ == "__main__":
    main()
