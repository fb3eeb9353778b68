"""Comparison with Optuna-dashboard's preferential sampler: CPU time per query, and regret after 40 answers.

    python benchmarks/preferential.py              # writes docs/bench-preferential.md
    python benchmarks/preferential.py --seeds 2    # a trial run, printed only

One problem, one simulated user, three methods: ``aw.Study``, their sampler in their study, and
``PreferentialSampler`` in their study.  One thread; all learn their kernel parameters.
"""

import os

os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import argparse
import math
import multiprocessing
import statistics
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any

import optuna
import torch
from optuna.samplers import BaseSampler, RandomSampler
from optuna_dashboard.preferential import PreferentialStudy, create_study
from optuna_dashboard.preferential.samplers.gp import PreferentialGPSampler
from scipy import stats
from torch import Tensor

import askwise as aw
from askwise.interop.optuna import PreferentialSampler
from askwise.numerics import generator

OUT = Path(__file__).resolve().parent.parent / "docs" / "bench-preferential.md"
SPACE = aw.Space(gain=aw.Real(0, 40), cutoff=aw.Real(100, 10_000, log=True))
LIKED = {"gain": 28.0, "cutoff": 500.0}
SEEDS, ANSWERS, TIMED_AT, TIMED = 20, 40, (20, 80), 9
THEIRS = "Optuna-dashboard, `PreferentialGPSampler`"
SAMPLERS: dict[str, Callable[[int], BaseSampler]] = {
    THEIRS: lambda seed: PreferentialGPSampler(seed=seed),
    "askwise, `PreferentialSampler()`": lambda seed: PreferentialSampler(seed=seed),
    'askwise, `PreferentialSampler("dueling_ucb")`': lambda seed: PreferentialSampler("dueling_ucb", seed),
}
OURS = 'askwise, `Study(kernel="matern52")`'

Params = dict[str, Any]


def utility(x: Tensor) -> Tensor:
    """The user's utility over the unit square: a hill of height 5 and one of height 3."""
    high = 5.0 * torch.exp(-((x - SPACE.unit(LIKED)) / 0.22).square().sum(-1))
    return high + 3.0 * torch.exp(-((x - torch.tensor([0.22, 0.75])) / 0.25).square().sum(-1))


def worth(setting: Params) -> float:
    """The user's utility of a setting."""
    return float(utility(SPACE.unit(setting)))


def prefers_first(first: Params, second: Params, user: torch.Generator) -> bool:
    """The answer of a user who prefers the first with probability Phi(difference in utility)."""
    chance = 0.5 * math.erfc((worth(second) - worth(first)) / math.sqrt(2))
    return bool(torch.rand((), generator=user, dtype=torch.float64) < chance)


def best_worth() -> float:
    """The maximum of the utility, on a fine grid."""
    side = torch.linspace(0, 1, 1001, dtype=torch.float64)
    return float(utility(torch.cartesian_prod(side, side)).max())


# both have the same steps: ask, which is timed, and answer


class OwnStudy:
    """Ours: each query is a pair."""

    def __init__(self, seed: int) -> None:
        """Start without answers."""
        self.study = aw.Study(SPACE, feedback="duel", kernel="matern52", seed=seed)

    def fill(self, count: int, user: torch.Generator) -> None:
        """Add answers about random pairs."""
        for pair in torch.rand(count, 2, 2, generator=user, dtype=torch.float64):
            options = [SPACE.natural(point) for point in pair]
            self.study.record(options, int(not prefers_first(options[0], options[1], user)))

    def ask(self) -> aw.Question:
        """The next query."""
        return self.study.ask()

    def answer(self, question: aw.Question, user: torch.Generator) -> None:
        """Tell what the user prefers."""
        first, second = question.options
        self.study.tell(question, int(not prefers_first(first, second, user)))

    def found(self) -> dict[str, Params]:
        """What it recommends."""
        return {"model": self.study.best().params}


class TheirStudy:
    """Theirs with ``n_generate=2``: the winner stays, and the sampler proposes the next challenger."""

    def __init__(self, sampler: BaseSampler) -> None:
        """Start without answers."""
        self.sampler = sampler
        self.study: PreferentialStudy = create_study(n_generate=2, sampler=sampler)

    def fill(self, count: int, user: torch.Generator) -> None:
        """Add answers about random challengers."""
        self.study._study.sampler = RandomSampler(seed=user.initial_seed() % 2**32)
        for _ in range(count):
            self.ask()
            self.answer(None, user)
        self.study._study.sampler = self.sampler

    def ask(self) -> None:
        """Generate trials until there are two to compare."""
        while self.study.should_generate():
            trial = self.study.ask()
            trial.suggest_float("gain", 0, 40)
            trial.suggest_float("cutoff", 100, 10_000, log=True)

    def answer(self, _: None, user: torch.Generator) -> None:
        """Report which of the two trials the user prefers."""
        beaten = {worse.number for _, worse in self.study.get_preferences(deepcopy=False)}
        trials = self.study.get_trials(deepcopy=False)
        first, second = (trial for trial in trials if trial.number not in beaten)
        better, worse = (
            (first, second) if prefers_first(first.params, second.params, user) else (second, first)
        )
        self.study.report_preference(better, worse)

    def found(self) -> dict[str, Params]:
        """The unbeaten trial, and the model's recommendation if there is one."""
        (survivor,) = self.study.best_trials
        found: dict[str, Params] = {"trial": survivor.params}
        if isinstance(self.sampler, PreferentialSampler):
            found["model"] = self.sampler.best(self.study).params
        return found


def started(method: str, seed: int) -> OwnStudy | TheirStudy:
    """A study without answers, in a quiet process with one thread."""
    torch.set_num_threads(1)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.filterwarnings(
        "ignore"
    )  # their sampler warns about every parameter that it samples independently
    return OwnStudy(seed) if method == OURS else TheirStudy(SAMPLERS[method](seed))


def seconds(method: str, answers: int) -> list[float]:
    """CPU seconds of the queries after this number of answers; two before that warm up."""
    run, user = started(method, 0), generator("preferential", "time", answers)
    run.fill(answers - 2, user)
    times = []
    for _ in range(TIMED + 2):
        start = time.process_time()
        question: Any = run.ask()
        times.append(time.process_time() - start)
        run.answer(question, user)
    return times[2:]


def regrets(method: str, seed: int) -> dict[str, float]:
    """Regret of what was found after all answers."""
    run, user = started(method, seed), generator("preferential", "user", seed)
    for _ in range(ANSWERS):
        question: Any = run.ask()
        run.answer(question, user)
    return {how: best_worth() - worth(params) for how, params in run.found().items()}


# the page

TITLE = """# Comparison with Optuna-dashboard's preferential sampler

`python benchmarks/preferential.py`: one thread of a noisy 2-core cloud machine, with
{versions}.

**The problem.** Two parameters (gain from 0 to 40, cutoff from 100 to 10,000 on a log scale) and a hidden
utility over the unit square: a hill of height 5 and radius 0.22, and another of height 3 and radius 0.25. A
simulated user prefers one of two settings with probability Phi(difference in height).

**The protocol.** Their study is used as documented, with `n_generate=2`: the winner stays and the sampler
proposes the next challenger, so one answer is one duel, as in ours (their tutorial shows four trials and
discards the worst). `aw.Study` chooses both settings of each duel. All learn their kernel parameters from the
answers. All settings are defaults, although the default of ten duels before the first model of `aw.Study` was
chosen on this problem and two others. There are two exceptions. The study takes one kernel, of highest
posterior; by default it averages over eight. And `dueling_ucb` was picked on this problem, as a rule whose
challengers are likely to win, which matters when the winner stays.

## CPU seconds per query

For the {timed} queries that follow 20 and 80 answers about random settings: median, and mean in brackets
(which includes refits: askwise refits its kernel only when the number of answers has grown by half).

"""
REGRET = """
## Regret after {answers} answers

Utility of the best setting minus that of the setting found: mean and standard error over {seeds} seeds,
median, and p of a paired Wilcoxon test against their sampler with the same user. Their study returns the
unbeaten trial. askwise recommends the optimum of its model, which need not be a trial; to compare the
samplers alone, look at the rows "unbeaten trial".

"""


def timed(methods: list[str]) -> list[str]:
    """The table of times."""
    lines = ["| | " + " | ".join(f"{n} answers" for n in TIMED_AT) + " |", "|---" * (1 + len(TIMED_AT)) + "|"]
    for method in methods:
        times = [seconds(method, n) for n in TIMED_AT]
        cells = [f"{statistics.median(t):.3f} ({statistics.mean(t):.3f})" for t in times]
        lines.append(f"| {method} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    return lines


def compared(found: dict[tuple[str, str], list[float]]) -> list[str]:
    """The table of regrets."""
    named = {"model": "recommended by the model", "trial": "unbeaten trial"}
    lines = ["| | setting | mean | median | p, against theirs |", "|---|---|---|---|---|"]
    theirs = found[THEIRS, "trial"]
    for (method, how), values in found.items():
        error = statistics.stdev(values) / math.sqrt(len(values))
        p = "" if method == THEIRS else f"{stats.wilcoxon(values, theirs).pvalue:.2g}"
        cells = [
            named[how],
            f"{statistics.mean(values):.2f} ± {error:.2f}",
            f"{statistics.median(values):.2f}",
            p,
        ]
        lines.append(f"| {method} | {' | '.join(cells)} |")
    return lines


def all_regrets(methods: list[str], seeds: int, processes: int) -> dict[tuple[str, str], list[float]]:
    """Regrets of all seeds, by method and by what was found."""
    found: dict[tuple[str, str], list[float]] = {}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        for method in methods:
            for each in pool.map(regrets, [method] * seeds, range(seeds)):
                for how, value in each.items():
                    found.setdefault((method, how), []).append(value)
            print(method, {how: round(statistics.mean(v), 3) for (m, how), v in found.items() if m == method})
    return found


def main() -> None:
    """Measure and print; write the page if all seeds were run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    methods = [*SAMPLERS, OURS]
    times = timed(methods)
    table = compared(all_regrets(methods, given.seeds, given.processes))
    names = ("torch", "optuna", "optuna-dashboard", "botorch")
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    page = TITLE.format(versions=versions, timed=TIMED) + "\n".join(times) + "\n"
    page += REGRET.format(answers=ANSWERS, seeds=given.seeds) + "\n".join(table) + "\n"
    print(page)
    if given.seeds >= SEEDS:
        OUT.write_text(page)


if __name__ == "__main__":
    main()
