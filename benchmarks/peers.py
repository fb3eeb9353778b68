"""Whole searches by duels, beside BoTorch's EUBO and Optuna-dashboard's sampler: regret on eight functions.

    python benchmarks/peers.py --workers 2    # all runs that are missing, then docs/bench-peers.md
    python benchmarks/peers.py --page         # only the page

Every method learns its kernel from the answers of the same simulated user, in one process with one thread.
The functions are every third one of two dimensions in alphabetical order; nothing was chosen by the outcome.
"""

import os

os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from itertools import product
from pathlib import Path

import numpy as np
import torch
from final_regrets import within
from torch import Tensor

import askwise as aw
from askwise.bench.chunks import write_atomically
from askwise.bench.effects import averages, superiority
from askwise.bench.executors import Processes
from askwise.bench.functions import named
from askwise.bench.problems import Problem
from askwise.bench.published import PAPER
from askwise.numerics import generator

ROOT = Path(__file__).resolve().parent.parent
KEPT, PAGE = ROOT / "results" / "peers" / "runs.npz", ROOT / "docs" / "bench-peers.md"
FUNCTIONS = tuple(sorted(name for name in PAPER if named(name).dim == 2))[::3][:8]
RUNS, DUELS, LEVEL = 20, 40, 3.0
INITIAL = 5  # random duels of BoTorch's loop
LOOKS = (20, 40)
SPACE = aw.Space(x=aw.Real(0, 1), y=aw.Real(0, 1))
NAMES = {
    "averaged": "askwise, `Study`",
    "study": 'askwise, `Study(kernel="matern52")`',
    "random": "askwise, the same with random questions",
    "eubo": "BoTorch, EUBO",
    "optuna": "Optuna-dashboard, `PreferentialGPSampler`",
}
Prefers = Callable[[Tensor, Tensor], bool]
Found = Iterator[Tensor]


@dataclass(frozen=True, order=True)
class Case:
    """One search."""

    method: str
    function: str
    run: int


@dataclass(frozen=True)
class Outcome:
    """Regret after the duels of LOOKS (0 is the best point, 1 an average one), and CPU seconds."""

    case: Case
    regret: tuple[float, ...]
    seconds: float


def ours(case: Case, prefers: Prefers) -> Found:
    """A study with default settings, but for those that are named."""
    options = {} if case.method == "averaged" else {"kernel": "matern52"}
    options |= {"rule": "random"} if case.method == "random" else {}
    seed = generator("peers", *(case.function, case.run, "seed")).initial_seed() % 2**31
    study = aw.Study(SPACE, feedback="duel", seed=seed, **options)  # type: ignore[arg-type]
    for count in range(1, DUELS + 1):
        question = study.ask()
        first, second = (SPACE.unit(option) for option in question.options)
        study.tell(question, int(not prefers(first, second)))
        if count in LOOKS:
            yield SPACE.unit(study.best().params)


def eubo(case: Case, prefers: Prefers) -> Found:
    """The loop of BoTorch's tutorial: random duels, then pairs by EUBO with a model fitted to each answer."""
    from botorch.acquisition.analytic import PosteriorMean
    from botorch.acquisition.preference import AnalyticExpectedUtilityOfBestOption
    from botorch.exceptions.errors import ModelFittingError
    from botorch.fit import fit_gpytorch_mll
    from botorch.models.pairwise_gp import PairwiseGP, PairwiseLaplaceMarginalLogLikelihood
    from botorch.models.transforms import Normalize
    from botorch.optim.optimize import optimize_acqf

    torch.manual_seed(generator("peers", *(case.function, case.run, "botorch")).initial_seed() % 2**31)
    box = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    points, wins = torch.empty(0, 2, dtype=torch.float64), torch.empty(0, 2, dtype=torch.long)
    model = None
    for count in range(1, DUELS + 1):
        if model is None or count <= INITIAL:
            pair = torch.rand(2, 2, dtype=torch.float64)
        else:
            score = AnalyticExpectedUtilityOfBestOption(pref_model=model)
            pair, _ = optimize_acqf(score, bounds=box, q=2, num_restarts=4, raw_samples=256)
        order = [0, 1] if prefers(*pair) else [1, 0]
        wins = torch.cat([wins, torch.tensor([order]) + len(points)])
        points = torch.cat([points, pair])
        if count >= INITIAL:
            before = model
            model = PairwiseGP(points, wins, input_transform=Normalize(d=2, bounds=box))
            try:
                fit_gpytorch_mll(PairwiseLaplaceMarginalLogLikelihood(model.likelihood, model))
            except ModelFittingError:  # once in thousands of fits: the kernel of the answer before
                model = PairwiseGP(points, wins, input_transform=Normalize(d=2, bounds=box))
                if before is not None:
                    model.covar_module.load_state_dict(before.covar_module.state_dict())
        if count in LOOKS:
            assert model is not None
            best, _ = optimize_acqf(PosteriorMean(model), bounds=box, q=1, num_restarts=8, raw_samples=512)
            yield best[0]


def optuna(case: Case, prefers: Prefers) -> Found:
    """Their study as documented, with two trials to compare: the winner stays, and it is recommended."""
    import optuna as package
    from optuna_dashboard.preferential import create_study
    from optuna_dashboard.preferential.samplers.gp import PreferentialGPSampler

    package.logging.set_verbosity(package.logging.ERROR)
    seed = generator("peers", *(case.function, case.run, "optuna")).initial_seed() % 2**31
    study = create_study(n_generate=2, sampler=PreferentialGPSampler(seed=seed))
    for count in range(1, DUELS + 1):
        while study.should_generate():
            trial = study.ask()
            trial.suggest_float("x", 0, 1)
            trial.suggest_float("y", 0, 1)
        beaten = {worse.number for _, worse in study.get_preferences(deepcopy=False)}
        left = [trial for trial in study.get_trials(deepcopy=False) if trial.number not in beaten]
        first, second = (SPACE.unit(trial.params) for trial in left)
        study.report_preference(*(left if prefers(first, second) else left[::-1]))
        if count in LOOKS:
            (survivor,) = study.best_trials
            yield SPACE.unit(survivor.params)


def searched(case: Case) -> Outcome:
    """Run one search."""
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    warnings.filterwarnings("ignore")
    problem = Problem.of(case.function, "standardised")
    user = generator("peers", *(case.function, case.run, "user"))

    def prefers(first: Tensor, second: Tensor) -> bool:
        apart = LEVEL * (problem.value(first) - problem.value(second))
        return bool(torch.rand((), generator=user, dtype=torch.float64) < torch.special.ndtr(apart))

    method = {"eubo": eubo, "optuna": optuna}.get(case.method, ours)
    start = time.process_time()
    places = list(method(case, prefers))
    seconds = time.process_time() - start
    return Outcome(case, tuple(1 - float(problem.value(x)) / problem.best for x in places), seconds)


# what is kept


def kept() -> dict[Case, Outcome]:
    """The runs that were computed before."""
    if not KEPT.exists():
        return {}
    with np.load(KEPT) as file:
        columns = zip(*(file[name].tolist() for name in ("method", "function", "run")), strict=True)
        rows = zip(columns, file["regret"].tolist(), file["seconds"].tolist(), strict=True)
        return {Case(*each): Outcome(Case(*each), tuple(regret), seconds) for each, regret, seconds in rows}


def keep(found: dict[Case, Outcome]) -> None:
    """Write all runs."""
    every = [found[case] for case in sorted(found)]
    arrays = {
        "method": np.array([one.case.method for one in every]),
        "function": np.array([one.case.function for one in every]),
        "run": np.array([one.case.run for one in every]),
        "regret": np.array([one.regret for one in every]),
        "seconds": np.array([one.seconds for one in every]),
    }
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(KEPT, lambda file: np.savez_compressed(file, **arrays))  # type: ignore[arg-type]


def cases() -> list[Case]:
    """All searches, run by run, so that an unfinished campaign has whole runs."""
    grid = product(range(RUNS), FUNCTIONS, NAMES)
    return [Case(method, function, run) for run, function, method in grid]


# the page

HEAD = """# Whole searches, beside BoTorch and Optuna-dashboard

`python benchmarks/peers.py`: duels about {functions} functions of two parameters, every third one in
alphabetical order, with a standard deviation of {level:g} times the noise of an answer. {runs} runs of
{duels} duels for each method and function; one thread of a noisy 2-core cloud machine;
{versions}.

- **askwise**: `aw.Study` with default settings, which average over kernels; with the kernel of highest
  posterior; and that with random questions.
- **BoTorch**: the loop of its tutorial on preferences. `PairwiseGP` is fitted after every answer, EUBO
  chooses both settings; the first {initial} duels are random; the setting of highest posterior mean is
  recommended.
- **Optuna-dashboard**: `PreferentialGPSampler` with two trials to compare. The winner stays, and the one
  that is unbeaten is recommended.

Regret: 0 is the best setting, 1 an average one. *Study above*: how often a run of `Study` ends above one of
the method. Intervals of 95% are for these functions; in the last column for functions like these. CPU seconds
are of whole runs: questions, fits and recommendations.

"""


def page() -> str:
    """The page, from the runs that every method has."""
    found = kept()
    runs = [run for run in range(RUNS) if all(Case(m, f, run) in found for m in NAMES for f in FUNCTIONS)]
    regret = {
        method: np.array(
            [[found[Case(method, function, run)].regret for run in runs] for function in FUNCTIONS]
        )
        for method in NAMES
    }
    seconds = {m: np.mean([found[Case(m, f, run)].seconds for f in FUNCTIONS for run in runs]) for m in NAMES}
    versions = ", ".join(f"{name} {version(name)}" for name in ("torch", "botorch", "optuna-dashboard"))
    sizes = {"functions": len(FUNCTIONS), "runs": len(runs), "duels": DUELS, "level": LEVEL}
    parts = [HEAD.format(**sizes, initial=INITIAL, versions=versions)]
    means = [averages({m: values[..., k] for m, values in regret.items()}) for k in range(len(LOOKS))]
    medians = averages({m: values[..., -1] for m, values in regret.items()}, np.median)
    above = superiority({m: -values[..., -1:] for m, values in regret.items()})
    heads = [*(f"regret after {count}" for count in LOOKS), "median", "Study above", "like these", "CPU s"]
    parts.append("| method | " + " | ".join(heads) + " |\n" + "|---" * (1 + len(heads)) + "|\n")
    for method, name in NAMES.items():
        chance = above.of("averaged", method) if method != "averaged" else None
        cells = [within(each.each[method].fixed) for each in means] + [within(medians.each[method].fixed)]
        cells += ["", ""] if chance is None else [within(chance.fixed, 2), within(chance.drawn, 2)]
        parts.append(f"| {name} | {' | '.join(cells)} | {seconds[method]:.1f} |\n")
    parts.append("\nMean regret after all duels, by function:\n\n| function | " + " | ".join(NAMES.values()))
    parts.append(" |\n" + "|---" * (1 + len(NAMES)) + "|\n")
    for row, function in enumerate(FUNCTIONS):
        cells = [f"{regret[method][row, :, -1].mean():.3f}" for method in NAMES]
        parts.append(f"| {named(function).title} | {' | '.join(cells)} |\n")
    return "".join(parts)


def main() -> None:
    """Compute what is missing, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--page", action="store_true", help="only write the page")
    given = parser.parse_args()
    found = kept()
    left = [] if given.page else [case for case in cases() if case not in found]
    for _, outcome in Processes(given.workers).results(searched, left) if left else ():
        found[outcome.case] = outcome
        if len(found) % 20 == 0 or len(found) == len(cases()):
            keep(found)
            print(f"{len(found)} of {len(cases())} runs", flush=True)
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
