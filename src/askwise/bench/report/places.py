"""Who ranks where: published and ours, and who beats whom."""

from collections.abc import Mapping

from askwise.bench.published import ALPHA, Published
from askwise.bench.ranking import Row, Table
from askwise.bench.report.analysis import ALPHAS, Analysis, recipe
from askwise.bench.report.numbers import spelled
from askwise.bench.report.page import Page
from askwise.bench.report.sheets import MISSING, Cell, Column, Sheet, code

__all__ = ["add", "place"]

_WINS = (
    "Share of the functions, in per cent, on which the rule of the row beats that of the column "
    f"at level {ALPHA:g}, by final score and by AUC."
)


def add(page: Page, key: str, own: Mapping[str, Analysis], published: Published | None) -> None:
    """Add ranks and Borda scores, and the shares of functions won."""
    from askwise.bench.report.figures.wins import Panel, wins

    page.heading(3, "Ranking")
    page.sheet(_ranking(key, own, published))
    panels = []
    if published is not None:
        panels.append(Panel("published", published.rules, published.wins_final, published.wins_auc))
    for way, run in own.items():
        table = run.tables[ALPHA]
        panels.append(Panel(way, table.rules, table.wins_final, table.wins_auc))
    page.figure(f"wins-{key}", wins(panels, _labels(own, published)), _WINS)


def place(table: Table, label: str) -> Cell:
    """Rank and Borda score of a rule; a dash if it was not compared."""
    return _cell(next((row for row in table.rows if row.rule == label), None))


def _ranking(key: str, own: Mapping[str, Analysis], published: Published | None) -> Sheet:
    columns = [Column.of("rule", align="l")]
    if published is not None:
        columns.append(Column.of(f"{ALPHA:g}", "published"))
    columns += [Column.of(f"{alpha:g}", way) for way in own for alpha in ALPHAS]
    rows = []
    for label in _labels(own, published):
        theirs = [] if published is None else [_cell(_published_row(published, label))]
        ours = [place(run.tables[alpha], label) for run in own.values() for alpha in ALPHAS]
        rows.append([code(spelled(label)), *theirs, *ours])
    caption = f"Rank, and Borda score in brackets, at several levels of the test. {_counts(own, published)}"
    return Sheet(f"ranking-{key}", caption, columns, rows, recipe(*own.values()))


def _labels(own: Mapping[str, Analysis], published: Published | None) -> list[str]:
    """All rules: the published ones in their order, then ours, best first."""
    found = list(published.rules) if published else []
    for run in own.values():
        found += [rule for rule in run.tables[ALPHA].rules if rule not in found]
    return found


def _counts(own: Mapping[str, Analysis], published: Published | None) -> str:
    """How many rules were compared, if that differs."""
    counts = {"published": len(published.rules)} if published else {}
    counts |= {way: len(run.arms) for way, run in own.items()}
    if len(set(counts.values())) == 1:
        return f"Of {counts.popitem()[1]} rules."
    listed = ", ".join(f"{way} {count}" for way, count in counts.items())
    return f"The more rules are compared, the higher the scores: {listed}."


def _published_row(published: Published, label: str) -> Row | None:
    if label not in published.borda:
        return None
    borda = published.borda[label]
    return Row(label, 1 + sum(other > borda for other in published.borda.values()), borda)


def _cell(row: Row | None) -> Cell:
    return MISSING if row is None else Cell(f"{row.rank} ({row.borda})", bold=row.rank == 1)
