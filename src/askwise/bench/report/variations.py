"""Experiments beyond the paper: other values of beta, other batch sizes, learned kernels."""

from collections.abc import Mapping
from itertools import groupby

from askwise.bench.published import ALPHA
from askwise.bench.report import comparison, figures
from askwise.bench.report.analysis import Analysis, described, recipe
from askwise.bench.report.page import MISSING, Cell, Column, Page, Sheet, code, spelled, within

NAMES = ("beta", "batch-sizes", "pbo-learned")


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
    "ones are estimated from the answers so far. Here are duels with both."
)


def add(page: Page, runs: Mapping[str, Analysis]) -> None:
    """Add a section for each of these experiments that is among the runs."""
    beta, sizes, learned = map(runs.get, NAMES)
    if beta is not None:
        bounds = "The bounds `ucb_phi` and `ucb_f` add β times the uncertainty to the mean."
        page.text(f"## Sensitivity to β\n\n{bounds} The experiment, {described(beta)}")
        page.figure("beta", figures.regret_by_beta(beta.by_beta()), _BETA)
        page.sheet(_betas(beta))
        comparison.add_runs(page, beta, "Runs by β")
    if sizes is not None:
        answers = "A query of m points is answered by m(m - 1)/2 comparisons."
        page.text(f"## Batch sizes\n\n{answers} The experiment, {described(sizes)}")
        initial = sizes.results.experiment.initial
        page.figure("batch-sizes", figures.regret_by_size(sizes.by_size(), initial), _SIZES)
        page.sheet(_sizes(sizes))
        comparison.add_runs(page, sizes, "Runs by batch size")
    if learned is not None:
        both = {"known": runs["pbo"]} if "pbo" in runs else {}
        both["learned"] = learned
        page.text(f"## Known and learned hyperparameters\n\n{_LEARNED}\n\n{comparison.listed(both)}")
        page.sheet(_learned(both))
        comparison.warn(page, {title: run for title, run in both.items() if run.tables}, (ALPHA,))
        comparison.add_runs(page, learned, "Runs with learned hyperparameters")


def _betas(run: Analysis) -> Sheet:
    """The lowest regret of each rule after the last query is bold."""
    names = ("β", "after the last query", "over all queries")
    columns = [Column("rule", align="l"), *map(Column, names)]
    rows = []
    for _, variants in groupby(run.by_beta(), lambda one: one.rule):
        several = list(variants)
        final = comparison.regrets({one.value: one.final for one in several})
        for one in several:
            beta = Cell(f"{one.value:.4g}{' (default)' if one.default else ''}")
            rows.append([code(one.rule), beta, final[one.value], Cell(within(one.average, 4))])
    caption = "Mean normalised regret by β, with 95 % intervals."
    return Sheet("beta", caption, columns, rows, recipe(run))


def _sizes(run: Analysis) -> Sheet:
    """Rules by sizes, the lowest regret of each size in bold."""
    found = run.by_size()
    sizes = sorted({one.value for one in found})
    cells = [comparison.regrets({one.rule: one.final for one in found if one.value == m}) for m in sizes]
    rules = dict.fromkeys(one.rule for one in found)
    rows = [[code(spelled(rule)), *(column.get(rule, MISSING) for column in cells)] for rule in rules]
    columns = [Column("rule", align="l"), *(Column(f"m = {m}") for m in sizes)]
    caption = "Mean normalised regret after the last query, with 95 % intervals."
    return Sheet("batch-sizes", caption, columns, rows, recipe(run))


def _learned(both: Mapping[str, Analysis]) -> Sheet:
    """Regret and rank of each rule that all experiments have."""
    labels = [label for label in both["learned"].arms if all(label in run.arms for run in both.values())]
    cells = [
        comparison.regrets({label: run.final_regret(label) for label in labels}) for run in both.values()
    ]
    cells += [
        {label: comparison.place(run.tables[ALPHA], label) for label in labels if run.tables}
        for run in both.values()
    ]
    groups = ("normalised regret", "rank (Borda)")
    columns = [Column("rule", align="l"), *(Column(title, group=one) for one in groups for title in both)]
    rows = [[code(spelled(label)), *(column.get(label, MISSING) for column in cells)] for label in labels]
    caption = f"Mean normalised regret after the last query (95 % intervals), and ranks at level {ALPHA:g}."
    return Sheet("learned", caption, columns, rows, recipe(*both.values()))
