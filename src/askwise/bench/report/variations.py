"""Experiments beyond the paper: other values of beta, other batch sizes, learned kernels."""

from collections.abc import Mapping

from askwise.bench.published import ALPHA
from askwise.bench.report import comparison, figures
from askwise.bench.report.analysis import Analysis, Sized, Weighted, described, recipe
from askwise.bench.report.page import MISSING, Cell, Column, Page, Recipe, Sheet, code, spelled, within

NAMES = ("beta", "batch-sizes", "pbo-learned")


def add(page: Page, runs: Mapping[str, Analysis]) -> None:
    """Add a section for each of these experiments that is among the runs."""
    beta, sizes, learned = map(runs.get, NAMES)
    if beta is not None:
        _add_beta(page, beta)
    if sizes is not None:
        _add_sizes(page, sizes)
    if learned is not None:
        _add_learned(page, learned, runs.get("pbo"))


def _add_beta(page: Page, run: Analysis) -> None:
    page.heading(2, "Sensitivity to β")
    page.text(
        "The bounds `ucb_phi` and `ucb_f` add β times the uncertainty to the mean. The experiment, "
        f"{described(run)}"
    )
    found = run.weighted()
    page.figure(
        "beta",
        figures.regret_by_beta(found),
        "Mean normalised regret over all functions against β, with 95 % intervals: after the last query, and "
        "over all queries. Filled marks are the defaults.",
    )
    page.sheet(_betas(found, recipe(run)))
    comparison.add_runs(page, run, "Runs by β", ())


def _betas(found: list[Weighted], made: Recipe) -> Sheet:
    """The lowest regret of each rule is bold."""
    columns = [
        Column.of("rule", align="l"),
        Column.of("β"),
        Column.of("after the last query"),
        Column.of("over all queries"),
    ]
    rows = [
        [
            code(one.rule),
            Cell(f"{one.beta:.4g}{' (default)' if one.usual else ''}"),
            Cell(
                within(one.final, 4),
                bold=one.final.mean == min(other.final.mean for other in found if other.rule == one.rule),
            ),
            Cell(within(one.average, 4)),
        ]
        for one in found
    ]
    return Sheet("beta", "Mean normalised regret by β, with 95 % intervals.", columns, rows, made)


def _add_sizes(page: Page, run: Analysis) -> None:
    page.heading(2, "Batch sizes")
    page.text(f"A query of m points is answered by m(m - 1)/2 comparisons. The experiment, {described(run)}")
    found = run.sized()
    page.figure(
        "batch-sizes",
        figures.regret_by_size(found, run.results.experiment.initial),
        "Mean normalised regret over all functions: against the number of queries, for each size m, and "
        "after the last query against m, with 95 % intervals.",
    )
    page.sheet(_sizes(found, recipe(run)))
    comparison.add_runs(page, run, "Runs by batch size", ())


def _sizes(found: list[Sized], made: Recipe) -> Sheet:
    """Rules by sizes, the lowest regret of each size in bold."""
    sizes = sorted({one.m for one in found})
    least = {m: min(one.final.mean for one in found if one.m == m) for m in sizes}
    regrets = {(one.rule, one.m): one.final for one in found}
    rows = []
    for rule in dict.fromkeys(one.rule for one in found):
        own = {m: regrets.get((rule, m)) for m in sizes}
        cells = [
            MISSING if regret is None else Cell(within(regret, 4), bold=regret.mean == least[m])
            for m, regret in own.items()
        ]
        rows.append([code(spelled(rule)), *cells])
    columns = [Column.of("rule", align="l"), *(Column.of(f"m = {m}") for m in sizes)]
    caption = "Mean normalised regret after the last query, with 95 % intervals."
    return Sheet("batch-sizes", caption, columns, rows, made)


def _add_learned(page: Page, learned: Analysis, known: Analysis | None) -> None:
    own = ({} if known is None else {"known": known}) | {"learned": learned}
    page.heading(2, "Known and learned hyperparameters")
    page.text(
        "Known hyperparameters were fitted to the function itself, which is impossible in practice. Learned "
        "ones are estimated from the answers so far. Here are duels with both."
    )
    page.text("\n".join(f"- **{way}**, {described(run)}" for way, run in own.items()))
    page.sheet(_learned(own))
    comparison.add_runs(page, learned, "Runs with learned hyperparameters", ())


def _learned(own: Mapping[str, Analysis]) -> Sheet:
    """Regret and rank of each rule that all experiments have."""
    labels = [label for label in own["learned"].arms if all(label in run.arms for run in own.values())]
    least = {way: min(run.final_regret(label).mean for label in labels) for way, run in own.items()}
    columns = [
        Column.of("rule", align="l"),
        *(Column.of(way, "normalised regret") for way in own),
        *(Column.of(way, "rank (Borda)") for way in own),
    ]
    rows = []
    for label in labels:
        regrets = {way: run.final_regret(label) for way, run in own.items()}
        rows.append(
            [
                code(spelled(label)),
                *(Cell(within(regret, 4), bold=regret.mean == least[way]) for way, regret in regrets.items()),
                *(
                    comparison.place(run.tables[ALPHA], label) if run.tables else MISSING
                    for run in own.values()
                ),
            ]
        )
    caption = f"Mean normalised regret after the last query (95 % intervals), and ranks at level {ALPHA:g}."
    return Sheet("learned", caption, columns, rows, recipe(*own.values()))
