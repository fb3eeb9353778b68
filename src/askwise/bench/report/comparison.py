"""The three scenarios of the paper, and the sections that other experiments share with them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from askwise.bench.published import ALPHA, PUBLISHED, Published
from askwise.bench.ranking import Table
from askwise.bench.regret import Interval
from askwise.bench.report import figures
from askwise.bench.report.analysis import ALPHAS, Advantage, Analysis, described, recipe
from askwise.bench.report.page import MISSING, Cell, Column, Page, Sheet, code, spelled, within

_WINS = (
    "Percentage of functions on which the rule of the row beats that of the column "
    f"at level {ALPHA:g}, by final score and by AUC."
)
_SUPERIORITY = (
    "The same as a figure: right of the line, the best rule wins more than half of the comparisons."
)
_SCORES = {"value": "Mean score", "probability": "Mean score (the probability of a yes)"}


@dataclass(frozen=True)
class Scenario:
    """A kind of query, and the two experiments with it."""

    key: str
    title: str
    about: str
    shown: tuple[str, ...]
    """The functions whose runs the paper shows."""

    @property
    def experiments(self) -> dict[str, str]:
        """The names of the two experiments: as the authors ran it, and as their paper describes it."""
        return {"as run": f"{self.key}-as-run", "as written": self.key}


SCENARIOS = (
    Scenario(
        "bbo",
        "Yes or no",
        "Each query is about one point; the answer is yes or no.",
        ("sphere", "sum_squares", "ursem_waves"),
    ),
    Scenario(
        "pbo",
        "Duels",
        "Each query is about two points: which is better?",
        ("ackley", "gramacy_lee", "ursem_waves"),
    ),
    Scenario(
        "batch",
        "Batches",
        "Each query is about several points, and every pair of them is compared.",
        ("holder_table", "schwefel", "ursem_waves"),
    ),
)


def add_scenario(page: Page, scenario: Scenario, runs: Mapping[str, Analysis]) -> None:
    """Add the results of a scenario, if any of its experiments is among the runs."""
    versions = {title: runs[name] for title, name in scenario.experiments.items() if name in runs}
    if versions:
        page.text(f"## {scenario.title}\n\n{scenario.about}\n\n{listed(versions)}")
        _add_comparison(page, scenario.key, versions, PUBLISHED[scenario.key])
        for title, run in versions.items():
            add_runs(page, run, f"Runs {title}", scenario.shown)


def add_other(page: Page, run: Analysis) -> None:
    """Add the results of an experiment without a section of its own."""
    page.text(f"## {run.results.experiment.title}\n\n- {described(run)}")
    _add_comparison(page, run.name, {run.name: run}, None)
    add_runs(page, run, "Runs")


def listed(versions: Mapping[str, Analysis]) -> str:
    """A list of experiments, each with a sentence or two."""
    return "\n".join(f"- **{title}**, {described(run)}" for title, run in versions.items())


def add_runs(page: Page, run: Analysis, heading: str, shown: Sequence[str] = ()) -> None:
    """Add the course of the runs: scores on the functions shown, regret on all."""
    page.text(f"### {heading}")
    examples = [name for name in shown if name in run.results.functions]
    if examples:
        caption = f"{_SCORES[run.results.experiment.score]} ± SEM after each query, `{run.name}`."
        page.figure(f"examples-{run.name}", figures.score_curves(run, examples), caption)
    caption = f"Mean normalised regret ± SEM after each query, `{run.name}`."
    page.figure(f"runs-{run.name}", figures.regret_curves(run), caption)


def _add_comparison(
    page: Page, key: str, versions: Mapping[str, Analysis], published: Published | None
) -> None:
    """Add the ranking, the shares of functions won, the advantage of the best rules, and all regrets."""
    ranked = {title: run for title, run in versions.items() if run.tables}
    if not ranked:
        return
    tables: dict[str, Table | Published] = {} if published is None else {"published": published}
    tables |= {title: run.tables[ALPHA] for title, run in ranked.items()}
    labels = list(dict.fromkeys(rule for table in tables.values() for rule in table.rules))
    page.text("### Ranking")
    page.sheet(_ranking(key, ranked, published, labels))
    warn(page, ranked, ALPHAS)
    page.figure(f"wins-{key}", figures.win_matrices(tables, labels), _WINS)
    page.text("### How much better is the best?")
    found = {title: (run.tables[ALPHA].rules[0], run.advantage()) for title, run in ranked.items()}
    for title, run in ranked.items():
        page.sheet(_superiority(run, title, *found[title]))
    page.figure(f"superiority-{key}", figures.superiority_of_best(found), _SUPERIORITY)
    page.sheet(_regret(key, ranked))


def _ranking(
    key: str, ranked: Mapping[str, Analysis], published: Published | None, labels: Sequence[str]
) -> Sheet:
    columns = [Column("rule", align="l")]
    if published is not None:
        columns.append(Column(f"{ALPHA:g}", group="published"))
    columns += [Column(f"{alpha:g}", group=title) for title in ranked for alpha in ALPHAS]
    rows = []
    for label in labels:
        theirs = [] if published is None else [_published_place(published, label)]
        ours = [place(run.tables[alpha], label) for run in ranked.values() for alpha in ALPHAS]
        rows.append([code(spelled(label)), *theirs, *ours])
    counts = {"published": len(published.rules)} if published else {}
    counts |= {title: len(run.arms) for title, run in ranked.items()}
    each = ", ".join(f"{title} {count}" for title, count in counts.items())
    compared = f"Scores grow with the number of rules compared: {each}."
    if len(set(counts.values())) == 1:
        compared = f"{counts.popitem()[1]} rules were compared."
    caption = f"Rank, with the Borda score in brackets, at several levels. {compared}"
    return Sheet(f"ranking-{key}", caption, columns, rows, recipe(*ranked.values()))


def warn(page: Page, ranked: Mapping[str, Analysis], alphas: Sequence[float]) -> None:
    """Say at which of these levels no rule can beat another, because there are too few replicates."""
    for title, run in ranked.items():
        for alpha in alphas:
            if why := run.tables[alpha].undecidable:
                page.text(f"**{title[:1].upper()}{title[1:]}, level {alpha:g}:** {why}")


def place(table: Table, label: str) -> Cell:
    """Rank and Borda score of a rule; a dash if it was not compared."""
    found = [row for row in table.rows if row.rule == label]
    return _place(found[0].rank, found[0].borda) if found else MISSING


def _published_place(published: Published, label: str) -> Cell:
    if label not in published.borda:
        return MISSING
    borda = published.borda[label]
    return _place(1 + sum(other > borda for other in published.borda.values()), borda)


def _place(rank: int, borda: int) -> Cell:
    return Cell(f"{rank} ({borda})", bold=rank == 1)


def _superiority(run: Analysis, title: str, best: str, others: Advantage) -> Sheet:
    columns = [Column("against", align="l"), Column("final score"), Column("AUC")]
    rows = [[code(spelled(rule)), *(Cell(within(one)) for one in pair)] for rule, pair in others.items()]
    caption = f"Probability that a run of `{spelled(best)}`, the best {title}, beats a run of another rule."
    return Sheet(f"superiority-{run.name}", caption, columns, rows, recipe(run))


def _regret(key: str, ranked: Mapping[str, Analysis]) -> Sheet:
    """Mean normalised regret of all rules."""
    columns, cells = [Column("rule", align="l")], []
    for title, run in ranked.items():
        for name, regret in (("last query", run.final_regret), ("all queries", run.average_regret)):
            columns.append(Column(name, group=title))
            cells.append(regrets({arm: regret(arm) for arm in run.arms}))
    rules = dict.fromkeys(rule for run in ranked.values() for rule in run.tables[ALPHA].rules)
    rows = [[code(spelled(rule)), *(column.get(rule, MISSING) for column in cells)] for rule in rules]
    caption = "Mean normalised regret over all functions, with 95 % intervals."
    return Sheet(f"regret-{key}", caption, columns, rows, recipe(*ranked.values()))


def regrets(found: Mapping[Any, Interval]) -> dict[Any, Cell]:
    """Cells of regrets, the lowest in bold."""
    least = min(one.mean for one in found.values())
    return {name: Cell(within(one, 4), bold=one.mean == least) for name, one in found.items()}
