"""The three scenarios of the paper, and the sections that other experiments share with them."""

from collections.abc import Mapping
from dataclasses import dataclass

from askwise.bench.functions import named
from askwise.bench.published import ALPHA, PUBLISHED, Published
from askwise.bench.ranking import Row, Table
from askwise.bench.regret import levels
from askwise.bench.report import figures
from askwise.bench.report.analysis import ALPHAS, Advantage, Analysis, described, recipe
from askwise.bench.report.figures import Curves, Wins
from askwise.bench.report.page import MISSING, Cell, Column, Page, Sheet, code, spelled, within

_WINS = (
    "Percentage of functions on which the rule of the row beats that of the column "
    f"at level {ALPHA:g}, by final score and by AUC."
)
_SCORES = {"value": "Mean score", "probability": "Mean score (the probability of a yes)"}


@dataclass(frozen=True)
class Scenario:
    """A kind of query, and the two experiments about it."""

    key: str
    title: str
    about: str
    shown: tuple[str, ...]
    """The functions whose runs the paper shows."""

    @property
    def experiments(self) -> dict[str, str]:
        """Their names, by what they follow."""
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
    own = {way: runs[name] for way, name in scenario.experiments.items() if name in runs}
    if not own:
        return
    page.heading(2, scenario.title)
    page.text(scenario.about)
    page.text("\n".join(f"- **{way}**, {described(run)}" for way, run in own.items()))
    _add_comparison(page, scenario.key, own, PUBLISHED[scenario.key])
    for way, run in own.items():
        add_runs(page, run, f"Runs {way}", scenario.shown)


def add_other(page: Page, run: Analysis) -> None:
    """Add the results of an experiment without a section of its own."""
    page.heading(2, run.results.experiment.title)
    page.text(f"- {described(run)}")
    _add_comparison(page, run.name, {run.name: run}, None)
    add_runs(page, run, "Runs", ())


def _add_comparison(page: Page, key: str, own: Mapping[str, Analysis], published: Published | None) -> None:
    ranked = {way: run for way, run in own.items() if run.tables}
    if ranked:
        _add_ranking(page, key, ranked, published)
        _add_advantage(page, key, ranked)


def add_runs(page: Page, run: Analysis, heading: str, shown: tuple[str, ...]) -> None:
    """Add the course of the runs: scores on the functions shown, regret on all."""
    experiment, initial = run.results.experiment, run.results.experiment.initial
    page.heading(3, heading)
    place = {name: number for number, name in enumerate(run.results.functions)}
    examples = [
        Curves(
            named(name).title,
            {label: scores[place[name]] for label, scores in run.results.scores.items()},
            levels(name, experiment.scale, experiment.score).best,
        )
        for name in shown
        if name in place
    ]
    if examples:
        page.figure(
            f"examples-{run.name}",
            figures.score_curves(examples, run.arms, initial),
            f"{_SCORES[experiment.score]} ± SEM after each query, `{run.name}`.",
        )
    everywhere = [
        Curves(
            f"{named(name).title} ({named(name).dim}-D)",
            {label: regret[number] for label, regret in run.regret.items()},
        )
        for name, number in place.items()
    ]
    page.figure(
        f"runs-{run.name}",
        figures.regret_curves(everywhere, run.arms, initial),
        f"Mean normalised regret ± SEM after each query, `{run.name}`.",
    )


def _add_ranking(page: Page, key: str, own: Mapping[str, Analysis], published: Published | None) -> None:
    """Add ranks and Borda scores, and the shares of functions won."""
    page.heading(3, "Ranking")
    page.sheet(_ranking(key, own, published))
    panels = []
    if published is not None:
        panels.append(Wins("published", published.rules, published.wins_final, published.wins_auc))
    for way, run in own.items():
        table = run.tables[ALPHA]
        panels.append(Wins(way, table.rules, table.wins_final, table.wins_auc))
    page.figure(f"wins-{key}", figures.win_matrices(panels, _labels(own, published)), _WINS)


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
    caption = f"Rank, with the Borda score in brackets, at several levels. {_counts(own, published)}"
    return Sheet(f"ranking-{key}", caption, columns, rows, recipe(*own.values()))


def _labels(own: Mapping[str, Analysis], published: Published | None) -> list[str]:
    """All rules: the published ones in their order, then ours, best first."""
    found = list(published.rules) if published else []
    for run in own.values():
        found += [rule for rule in run.tables[ALPHA].rules if rule not in found]
    return found


def _counts(own: Mapping[str, Analysis], published: Published | None) -> str:
    """How many rules were compared."""
    counts = {"published": len(published.rules)} if published else {}
    counts |= {way: len(run.arms) for way, run in own.items()}
    if len(set(counts.values())) == 1:
        return f"{counts.popitem()[1]} rules were compared."
    listed = ", ".join(f"{way} {count}" for way, count in counts.items())
    return f"Scores grow with the number of rules compared: {listed}."


def _published_row(published: Published, label: str) -> Row | None:
    if label not in published.borda:
        return None
    borda = published.borda[label]
    return Row(label, 1 + sum(other > borda for other in published.borda.values()), borda)


def _cell(row: Row | None) -> Cell:
    return MISSING if row is None else Cell(f"{row.rank} ({row.borda})", bold=row.rank == 1)


def _add_advantage(page: Page, key: str, own: Mapping[str, Analysis]) -> None:
    """Add how often the best rule of each experiment beats the others, and the regrets of all."""
    page.heading(3, "How much better is the best?")
    found = {way: (run.tables[ALPHA].rules[0], run.advantage()) for way, run in own.items()}
    for way, run in own.items():
        page.sheet(_superiority(run, way, *found[way]))
    page.figure(
        f"superiority-{key}",
        figures.superiority_of_best(found),
        "The same as a figure: right of the line, the best rule wins more than half of the comparisons.",
    )
    page.sheet(_regret(key, own))


def _superiority(run: Analysis, way: str, best: str, others: Advantage) -> Sheet:
    columns = [Column.of("against", align="l"), Column.of("final score"), Column.of("AUC")]
    rows = [
        [code(spelled(rule)), Cell(within(final)), Cell(within(auc))] for rule, (final, auc) in others.items()
    ]
    caption = f"Probability that a run of `{spelled(best)}`, the best {way}, beats a run of another rule."
    return Sheet(f"superiority-{run.name}", caption, columns, rows, recipe(run))


def _regret(key: str, own: Mapping[str, Analysis]) -> Sheet:
    """Mean normalised regret of all rules, the lowest in bold."""
    columns = [Column.of("rule", align="l")]
    cells: dict[str, list[Cell]] = {rule: [] for run in own.values() for rule in run.tables[ALPHA].rules}
    for way, run in own.items():
        for name, regret in (("last query", run.final_regret), ("all queries", run.average_regret)):
            columns.append(Column.of(name, way))
            found = {arm: regret(arm) for arm in run.arms}
            least = min(one.mean for one in found.values())
            for rule, row in cells.items():
                one = found.get(rule)
                row.append(MISSING if one is None else Cell(within(one, 4), bold=one.mean == least))
    rows = [[code(spelled(rule)), *row] for rule, row in cells.items()]
    caption = "Mean normalised regret over all functions, with 95 % intervals."
    return Sheet(f"regret-{key}", caption, columns, rows, recipe(*own.values()))
