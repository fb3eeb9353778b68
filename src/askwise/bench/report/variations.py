"""Experiments beyond the paper: other values of beta, other batch sizes, learned kernels."""

from collections.abc import Iterator, Mapping
from itertools import combinations, groupby

import numpy as np

from askwise.bench.effects import averages, superiority
from askwise.bench.published import ALPHA
from askwise.bench.report import comparison, figures
from askwise.bench.report.analysis import Analysis, described, recipe
from askwise.bench.report.page import MISSING, Cell, Column, Page, Sheet, code, spelled, within

_BY_SCENARIO = {one.title: (one.key, f"{one.key}-learned") for one in comparison.SCENARIOS}
"""Experiments with known and with learned kernels."""
NAMES = ("beta", "batch-sizes", *(learned for _, learned in _BY_SCENARIO.values()))


_BETA = (
    "Mean normalised regret over all functions against β, with 95 % intervals: after the last query, and "
    "over all queries. Filled marks are the defaults."
)
_SIZES = (
    "Mean normalised regret over all functions: against the number of queries, for each size m, and "
    "after the last query against m, with 95 % intervals."
)
_LEARNED = (
    "Known hyperparameters were fitted to the function itself, which is impossible in practice. Learned "
    "ones are estimated from the answers so far."
)


def add(page: Page, runs: Mapping[str, Analysis]) -> None:
    """Add a section for each of these experiments that is among the runs."""
    beta, sizes, *every_learned = map(runs.get, NAMES)
    if beta is not None:
        bounds = "The bounds `ucb_phi` and `ucb_f` add β times the uncertainty to the mean."
        page.text(f"## Sensitivity to β\n\n{bounds} The experiment, {described(beta)}")
        page.figure("beta", figures.regret_by_beta(beta.by_beta()), _BETA)
        page.sheet(_betas(beta))
        if beta.tables:
            comparison.warn(page, {"beta": beta}, (ALPHA,))
            every = combinations(beta.tables[ALPHA].rules, 2)
            page.sheet(comparison.pairs(beta, every), folded="Every pair of variants (<code>beta</code>)")
        comparison.add_runs(page, beta, "Runs by β")
    if sizes is not None:
        answers = "A query of m points is answered by m(m - 1)/2 comparisons."
        page.text(f"## Batch sizes\n\n{answers} The experiment, {described(sizes)}")
        initial = sizes.results.experiment.initial
        page.figure("batch-sizes", figures.regret_by_size(sizes.by_size(), initial), _SIZES)
        page.sheet(_sizes(sizes))
        page.sheet(comparison.pairs(sizes, _same_size(sizes)))
        comparison.add_runs(page, sizes, "Runs by batch size")
    if any(every_learned):
        page.text(f"## Known and learned hyperparameters\n\n{_LEARNED}")
    for title, (known, learned) in _BY_SCENARIO.items():
        if learned in runs:
            _add_learned(page, title, runs.get(known), runs[learned])


def _add_learned(page: Page, title: str, known: Analysis | None, learned: Analysis) -> None:
    """Add the experiment with learned kernels beside that with known ones, if there is one."""
    both = {"known": known} if known and known.results.functions == learned.results.functions else {}
    both["learned"] = learned
    page.text(f"### {title}\n\n{comparison.listed(both)}")
    page.sheet(_learned(both))
    comparison.warn(page, {title: run for title, run in both.items() if run.tables}, (ALPHA,))
    if "known" in both:
        page.sheet(_difference(both["known"], learned))
    if learned.tables:
        every = combinations(learned.tables[ALPHA].rules, 2)
        folded = f"Every pair of rules, learned (<code>{learned.name}</code>)"
        page.sheet(comparison.pairs(learned, every), folded=folded)
    comparison.add_runs(page, learned, f"{title}: runs with learned hyperparameters")


def _betas(run: Analysis) -> Sheet:
    """The lowest regret of each rule after the last query is bold."""
    columns = [Column("rule", align="l"), Column("β"), Column("mean regret"), Column("median regret")]
    columns += [Column("over all queries"), Column("rank (Borda)")]
    columns += [Column(one, group="beats the default") for one in comparison.COVERED]
    rows = []
    for _, variants in groupby(run.by_beta(), lambda one: one.rule):
        several = list(variants)
        final = comparison.regrets({one.label: one.final for one in several})
        median = comparison.regrets({one.label: run.median_regret.each[one.label].fixed for one in several})
        default = next((one.label for one in several if one.default), None)
        for one in several:
            beta = Cell(f"{one.value:.4g}{' (default)' if one.default else ''}")
            rank = comparison.place(run, one.label) if run.tables else MISSING
            chance = (MISSING, MISSING)
            if default is not None and not one.default:
                chance = comparison.both(run.superiority[0].of(one.label, default), 3, 0.5)
            regrets = final[one.label], median[one.label], Cell(within(one.average, 3))
            rows.append([code(one.rule), beta, *regrets, rank, *chance])
    caption = (
        "Normalised regret by β after the last query, with 95 % intervals for these functions; ranks among "
        f"all variants at level {ALPHA:g}, with the Borda score ± its standard error; and the probability "
        "that a run ends above one with the default of the same rule."
    )
    return Sheet("beta", caption, columns, rows, recipe(run))


def _sizes(run: Analysis) -> Sheet:
    """Rules by sizes, the lowest regret of each size in bold."""
    found = run.by_size()
    sizes = sorted({one.value for one in found})
    cells = [comparison.regrets({one.rule: one.final for one in found if one.value == m}) for m in sizes]
    rules = dict.fromkeys(one.rule for one in found)
    rows = [[code(spelled(rule)), *(column.get(rule, MISSING) for column in cells)] for rule in rules]
    columns = [Column("rule", align="l"), *(Column(f"m = {m}") for m in sizes)]
    caption = "Mean normalised regret after the last query, with 95 % intervals for these functions."
    return Sheet("batch-sizes", caption, columns, rows, recipe(run))


def _same_size(run: Analysis) -> Iterator[tuple[str, str]]:
    """Pairs of arms with the same number of points."""
    found = run.by_size()
    for m in sorted({one.value for one in found}):
        yield from combinations([one.label for one in found if one.value == m], 2)


def _learned(both: Mapping[str, Analysis]) -> Sheet:
    """Regret and rank of each rule that all experiments have."""
    labels = _shared(both)
    cells = [
        comparison.regrets({label: found.each[label].fixed for label in labels})
        for statistic in ("final_regret", "median_regret")
        for found in (getattr(run, statistic) for run in both.values())
    ]
    cells += [
        {label: comparison.place(run, label) for label in labels if run.tables} for run in both.values()
    ]
    groups = ("mean regret", "median regret", "rank (Borda)")
    columns = [Column("rule", align="l"), *(Column(title, group=one) for one in groups for title in both)]
    rows = [[code(spelled(label)), *(column.get(label, MISSING) for column in cells)] for label in labels]
    caption = (
        "Normalised regret after the last query (95 % intervals for these functions), and ranks at level "
        f"{ALPHA:g} with the Borda score ± its standard error."
    )
    return Sheet(both["learned"].name, caption, columns, rows, recipe(*both.values()))


def _difference(known: Analysis, learned: Analysis) -> Sheet:
    """By how much learned kernels change the regret of each rule."""
    groups = ("probability of superiority", "difference of mean regrets", "difference of median regrets")
    columns = [Column("rule", align="l")]
    columns += [Column(one, group=of) for of in groups for one in comparison.COVERED]
    rows = []
    for label in _shared({"known": known, "learned": learned}):
        chance = superiority({name: run.results.scores[label] for name, run in _named(known, learned)})
        cells = [*comparison.both(chance.of("learned", "known"), 3, 0.5)]
        for statistic in (np.mean, np.median):
            found = averages(
                {name: run.last_regret[label] for name, run in _named(known, learned)}, statistic
            )
            cells += comparison.both(found.differences.of("learned", "known"), 3, 0.0)
        rows.append([code(spelled(label)), *cells])
    caption = (
        "Learned against known kernels after the last query: how often a run with a learned kernel ends "
        "above one with the known kernel, and how much its regret differs (negative: it is lower). Bold: "
        "significant for functions like these, at level 0.05."
    )
    return Sheet(f"{learned.name}-known", caption, columns, rows, recipe(known, learned))


def _named(known: Analysis, learned: Analysis) -> tuple[tuple[str, Analysis], tuple[str, Analysis]]:
    return ("known", known), ("learned", learned)


def _shared(runs: Mapping[str, Analysis]) -> list[str]:
    """The arms that all of them have."""
    first, *others = runs.values()
    return [label for label in first.arms if all(label in run.arms for run in others)]
