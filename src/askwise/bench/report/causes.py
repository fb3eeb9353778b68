"""Why some runs fail: queries whose points coincide, and priors so wide that every answer looks certain."""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Bool, Float

from askwise.bench.effects import averages
from askwise.bench.problems import Problem
from askwise.bench.report.analysis import COINCIDENT, Analysis, recipe
from askwise.bench.report.comparison import SCENARIOS
from askwise.bench.report.page import MISSING, Cell, Column, Page, Sheet, code, spelled, within

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
    """Add both kinds of tables, for the experiments that they are about."""
    one_size = {name: run for name, run in runs.items() if len(_sizes(run)) == 1 and max(_sizes(run)) > 1}
    several = {name: run for name, run in runs.items() if len(_sizes(run)) > 1}
    known = {one.key: runs[one.key] for one in SCENARIOS if one.key in runs}
    known = {name: run for name, run in known.items() if _wide(run).any() and not _wide(run).all()}
    if one_size or several or known:
        page.text("## What goes wrong")
    if one_size or several:
        page.text(_COINCIDENT)
    if one_size:
        page.sheet(_coincidences(one_size))
    for run in several.values():
        page.sheet(_by_size(run))
    if known:
        page.text(_words(known))
    for run in known.values():
        page.sheet(_by_prior(run))


def _sizes(run: Analysis) -> set[int]:
    return {run.results.experiment.arm(label).m for label in run.arms}


def _coincidences(runs: Mapping[str, Analysis]) -> Sheet:
    labels = dict.fromkeys(label for run in runs.values() for label in run.arms)
    columns = [Column("rule", align="l"), *(Column(name, code=True) for name in runs)]
    rows = [[code(spelled(label)), *(_share(run, label) for run in runs.values())] for label in labels]
    caption = "Queries in which two points coincide."
    return Sheet("coincidences", caption, columns, rows, recipe(*runs.values()))


def _by_size(run: Analysis) -> Sheet:
    found = run.by_size()
    sizes, rules = sorted({one.value for one in found}), dict.fromkeys(one.rule for one in found)
    labels = {(one.rule, one.value): one.label for one in found}
    rows = [[code(spelled(rule)), *(_share(run, labels.get((rule, m), "")) for m in sizes)] for rule in rules]
    columns = [Column("rule", align="l"), *(Column(f"m = {m}") for m in sizes)]
    caption = f"Queries in which two points coincide, `{run.name}`."
    return Sheet(f"coincidences-{run.name}", caption, columns, rows, recipe(run))


def _share(run: Analysis, label: str) -> Cell:
    return Cell(f"{100 * run.coincident(label):.1f} %") if label in run.arms else MISSING


def _variances(run: Analysis) -> Float[np.ndarray, " function"]:
    """The prior variance of each function, if it is known."""
    experiment = run.results.experiment
    problems = (Problem.of(name, experiment.scale) for name in run.results.functions)
    found = (problem.hyperparameters(experiment.prior) for problem in problems)
    return np.array([np.nan if one is None else one.outputscale for one in found])


def _wide(run: Analysis) -> Bool[np.ndarray, " function"]:
    return np.sqrt(_variances(run)) > _WIDE


def _words(runs: Mapping[str, Analysis]) -> str:
    run = max(runs.values(), key=lambda one: len(one.results.functions))
    bound = _variances(run) >= _BOUND
    names = ", ".join(np.array(run.results.functions)[bound].tolist())
    return _PRIORS.format(most=_BOUND, bound=bound.sum(), wide=_wide(run).sum(), limit=_WIDE, names=names)


def _by_prior(run: Analysis) -> Sheet:
    """Regrets on functions with wide priors, and on the others."""
    wide, rules = _wide(run), list(run.arms)
    columns, cells = [Column("rule", align="l")], []
    for which, chosen in ((f"{wide.sum()} with wide priors", wide), (f"{(~wide).sum()} others", ~wide)):
        for statistic in (np.mean, np.median):
            columns.append(Column(statistic.__name__, group=which))
            found = averages({arm: regret[chosen] for arm, regret in run.last_regret.items()}, statistic)
            least = min(one.fixed.mean for one in found.each.values())
            cells.append(
                [Cell(within(one.fixed), bold=one.fixed.mean == least) for one in found.each.values()]
            )
    rows = [[code(spelled(rule)), *cells_of] for rule, *cells_of in zip(rules, *cells, strict=True)]
    caption = (
        "Normalised regret after the last query on functions with a prior standard deviation above "
        f"{_WIDE:g} and on the others, `{run.name}`, with 95 % intervals for these functions."
    )
    return Sheet(f"wide-priors-{run.name}", caption, columns, rows, recipe(run))
