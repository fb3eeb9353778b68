"""How much better the best rule is than each other."""

from collections.abc import Mapping

from askwise.bench.effects import Superiority
from askwise.bench.published import ALPHA
from askwise.bench.regret import Interval
from askwise.bench.report.analysis import Analysis, recipe
from askwise.bench.report.numbers import spelled, within
from askwise.bench.report.page import Page
from askwise.bench.report.sheets import MISSING, Cell, Column, Sheet, code

__all__ = ["Advantage", "add"]

Advantage = dict[str, tuple[Interval, Interval]]
"""Of the best rule over each other, best first: by final score, and by AUC."""


def add(page: Page, key: str, own: Mapping[str, Analysis]) -> None:
    """Add how often the best rule of each experiment beats each other, and the regrets of all."""
    from askwise.bench.report.figures.odds import odds

    page.heading(3, "How much better is the best?")
    found = {way: (run.tables[ALPHA].rules[0], _advantage(run)) for way, run in own.items()}
    for way, run in own.items():
        page.sheet(_superiority(run, way, *found[way]))
    page.figure(
        f"superiority-{key}",
        odds(found),
        "The same as a picture: right of the line, runs of the best rule beat more than half of the other's.",
    )
    page.sheet(_regret(key, own))


def _advantage(run: Analysis) -> Advantage:
    best, *others = run.tables[ALPHA].rules
    final, auc = run.superiority("final"), run.superiority("auc")
    return {rule: (_against(final, best, rule), _against(auc, best, rule)) for rule in others}


def _against(found: Superiority, best: str, rule: str) -> Interval:
    at = found.rules.index(best), found.rules.index(rule)
    return Interval(float(found.matrix[at]), float(found.low[at]), float(found.high[at]))


def _superiority(run: Analysis, way: str, best: str, others: Advantage) -> Sheet:
    columns = [Column.of("against", align="l"), Column.of("final score"), Column.of("AUC")]
    rows = [
        [code(spelled(rule)), Cell(within(final)), Cell(within(auc))] for rule, (final, auc) in others.items()
    ]
    caption = f"Probability that a run of `{spelled(best)}`, the best {way}, beats a run of another rule."
    return Sheet(f"superiority-{run.name}", caption, columns, rows, recipe(run))


def _regret(key: str, own: Mapping[str, Analysis]) -> Sheet:
    """Mean normalised regret of all rules, the least in bold."""
    columns = [Column.of("rule", align="l")]
    cells: dict[str, list[Cell]] = {rule: [] for run in own.values() for rule in run.tables[ALPHA].rules}
    for way, run in own.items():
        for name, regret in (("last question", run.final_regret), ("all questions", run.average_regret)):
            columns.append(Column.of(name, way))
            found = {arm: regret(arm) for arm in run.arms}
            least = min(one.mean for one in found.values())
            for rule, row in cells.items():
                one = found.get(rule)
                row.append(MISSING if one is None else Cell(within(one, 4), bold=one.mean == least))
    rows = [[code(spelled(rule)), *row] for rule, row in cells.items()]
    caption = "Mean normalised regret over all functions, with intervals of 95 %."
    return Sheet(f"regret-{key}", caption, columns, rows, recipe(*own.values()))
