"""Why some runs fail: queries whose points coincide, and priors so wide that every answer looks certain."""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Bool

from askwise.bench.effects import averages
from askwise.bench.problems import Problem
from askwise.bench.report.analysis import COINCIDENT, Analysis, recipe
from askwise.bench.report.comparison import regrets
from askwise.bench.report.page import MISSING, Cell, Column, Page, Sheet, code, spelled

_WIDE = 100.0  # prior standard deviation; the noise of an answer has 1
_BOUND = 2e4  # of the prior variance, in benchmarks/likelihood.py
_COINCIDENT = (
    "**Points that coincide.** A duel of a point with itself says nothing, and a batch with two equal points "
    "less than it could. The table counts queries chosen by a rule (not the initial ones) in which two "
    f"points agree to {COINCIDENT:g} of the range in every coordinate, in the first run on each function."
)
_PRIORS = (
    "**Wide priors.** The known kernels of standardised functions have the highest likelihood for 1000 exact "
    "values. Smooth functions are fitted best by a huge variance with long lengthscales, and the fits bound "
    "the variance by {most:g}: {bound} of the {wide} functions with a prior standard deviation above "
    "{limit:g} sit on that bound ({names}), so that their kernels are those of the bound as much as those of "
    "the function. With such a prior nearly every answer looks certain."
)


def add(page: Page, runs: Mapping[str, Analysis]) -> None:
    """Add both tables, of the experiments that they are about."""
    several = {name: run for name, run in runs.items() if _sizes(run) - {1}}
    known = {name: run for name, run in runs.items() if run.results.experiment.prior == "likelihood"}
    known = {name: run for name, run in known.items() if _wide(run).any() and not _wide(run).all()}
    if several or known:
        page.text("## What goes wrong")
    if several:
        page.text(_COINCIDENT)
        page.sheet(_coincidences(several))
    if known:
        page.text(_words(known))
        page.sheet(_by_prior(known))


def _sizes(run: Analysis) -> set[int]:
    return {run.results.experiment.arm(label).m for label in run.arms}


def _coincidences(runs: Mapping[str, Analysis]) -> Sheet:
    labels = dict.fromkeys(label for run in runs.values() for label in run.arms)
    columns = [Column("rule", align="l"), *(Column(name, code=True) for name in runs)]
    rows = [
        [
            code(spelled(label)),
            *(
                Cell(f"{100 * run.coincident(label):.1f} %") if label in run.arms else MISSING
                for run in runs.values()
            ),
        ]
        for label in labels
    ]
    return Sheet(
        "coincidences", "Queries in which two points coincide.", columns, rows, recipe(*runs.values())
    )


def _outputscales(run: Analysis) -> list[float]:
    """The known prior variance of each function."""
    experiment = run.results.experiment
    found = [
        Problem.of(name, experiment.scale).hyperparameters(experiment.prior) for name in run.results.functions
    ]
    return [one.outputscale for one in found if one is not None]


def _wide(run: Analysis) -> Bool[np.ndarray, " function"]:
    return np.sqrt(_outputscales(run)) > _WIDE


def _words(runs: Mapping[str, Analysis]) -> str:
    run = max(runs.values(), key=lambda one: len(one.results.functions))
    scales, wide = np.array(_outputscales(run)), _wide(run)
    bound = scales >= _BOUND
    names = ", ".join(np.array(run.results.functions)[bound].tolist())
    return _PRIORS.format(most=_BOUND, bound=bound.sum(), wide=wide.sum(), limit=_WIDE, names=names)


def _by_prior(runs: Mapping[str, Analysis]) -> Sheet:
    """Mean regrets on functions with wide priors, and on the others."""
    columns, cells = [Column("rule", align="l")], []
    for name, run in runs.items():
        for which, chosen in ((f"sd > {_WIDE:g}", _wide(run)), ("others", ~_wide(run))):
            columns.append(Column(f"{which} ({chosen.sum()})", group=name))
            found = averages({arm: regret[chosen] for arm, regret in run.last_regret.items()})
            cells.append(regrets({arm: one.fixed for arm, one in found.each.items()}))
    labels = dict.fromkeys(label for run in runs.values() for label in run.arms)
    rows = [[code(spelled(label)), *(column.get(label, MISSING) for column in cells)] for label in labels]
    caption = (
        "Mean normalised regret after the last query on functions with wide priors (a prior standard "
        "deviation above 100) and on the others, with 95 % intervals for these functions."
    )
    return Sheet("wide-priors", caption, columns, rows, recipe(*runs.values()))
